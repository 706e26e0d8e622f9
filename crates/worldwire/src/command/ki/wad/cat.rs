//! `worldwire ki wad cat`.

use std::path::Path;

use worldwire_ki::file::wad::{Archive, Inflater};
use worldwire_ki::object::MAGIC;

use crate::cli::Target;
use crate::command::ki::inside;
use crate::command::ki::op::show::Show;
use crate::input::title;
use crate::output::{Failure, Output, complain};

/// Concatenates files, converting objects to another form if requested.
pub(super) fn run(
    path: &Path,
    archive: &Archive<'_>,
    names: &[String],
    show: Option<&Show<'_>>,
    target: &Target,
) -> Result<(), Failure> {
    let title = title(path);
    let mut entries = Vec::new();
    for name in names {
        entries.push(inside::entry(path, archive, name)?);
    }
    let mut output = Output::open(target)?;
    let (mut inflater, mut outcome) = (Inflater::new(), Ok(()));
    for entry in entries {
        let name = entry.name_lossy();
        let fail = |text: &str| {
            complain(&title, text);
            Err(Failure::Input)
        };
        let file = match archive.read(entry, &mut inflater) {
            Ok(Some(file)) => file,
            Ok(None) => return fail(&format!("{name}: not downloaded yet")),
            Err(error) => return fail(&super::explained(error)),
        };
        match show {
            Some(show) if file.starts_with(MAGIC) || !show.choices.is_file() => {
                match show.form(file, None, &name) {
                    Ok((text, is_whole)) => {
                        output.write(&text)?;
                        outcome = if is_whole { outcome } else { Err(Failure::Input) };
                    }
                    Err(lines) => return fail(&format!("{name}: {}", lines.join("; "))),
                }
            }
            _ => output.write(file)?,
        }
    }
    output.finish()?;
    outcome
}
