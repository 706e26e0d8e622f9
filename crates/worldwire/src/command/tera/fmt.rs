//! `worldwire tera def fmt`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use worldwire_tera::schema::format::canonical;

use super::folder;
use crate::cli::{Common, Target};
use crate::output::{Failure, print, write_all};

pub(super) fn run(paths: &[PathBuf], check: bool, common: &Common) -> Result<(), Failure> {
    let mut out = String::new();
    let (mut broken, mut differs) = (false, false);
    for path in paths {
        if path == Path::new("-") {
            match tidy("standard input", &folder::read(path, common)?) {
                Some(text) => out.push_str(&text),
                None => broken = true,
            }
            continue;
        }
        for file in folder::files(path, common)? {
            if file.extension().is_some_and(|end| end == "js" || end == "json") {
                continue;
            }
            let text = match folder::read(&file, common) {
                Ok(text) => text,
                // The others are still formatted.
                Err(Failure::Input) => {
                    broken = true;
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            match tidy(&file.display().to_string(), &text) {
                None => broken = true,
                Some(tidy) if tidy == text => {}
                Some(tidy) => {
                    differs = true;
                    if !check {
                        let target = Target { output: Some(file.clone()), force: true };
                        write_all(&target, tidy.as_bytes())?;
                    }
                    let _ = writeln!(out, "{}", file.display());
                }
            }
        }
    }
    print(&out)?;
    if broken || (check && differs) { Err(Failure::Input) } else { Ok(()) }
}

/// The canonical text. If it cannot be parsed, its problems are reported.
fn tidy(name: &str, text: &str) -> Option<String> {
    canonical(name, text).map_err(|problems| folder::tell(&problems, false)).ok()
}
