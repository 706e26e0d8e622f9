//! `worldwire man`.

use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use crate::cli::{self, ManArguments};
use crate::output::{Failure, WholeFile, occupied};

/// Writes a page per command, from the same definitions as the help.
pub(crate) fn run(arguments: &ManArguments) -> Result<(), Failure> {
    let ManArguments { output, force } = arguments;
    std::fs::create_dir_all(output).map_err(|error| Failure::io(output, &error))?;
    let mut pages = Vec::new();
    collect(&cli::for_pages(), &mut pages);
    for (name, page) in pages {
        store(&output.join(name), &page, *force)?;
    }
    Ok(())
}

/// Adds the pages of a command and of its subcommands, with their file names.
fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) {
    if command.is_hide_set() {
        return;
    }
    let page = Man::new(command.clone());
    let (name, mut bytes) = (page.get_filename(), Vec::new());
    // Writing to memory cannot fail.
    let _ = page.render(&mut bytes);
    pages.push((name, bytes));
    command.get_subcommands().for_each(|inner| collect(inner, pages));
}

fn store(path: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    WholeFile::store(path, bytes, force).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::Run(occupied(path)),
        _ => Failure::io(path, &error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_for_every_command() {
        let mut pages = Vec::new();
        collect(&cli::for_pages(), &mut pages);
        let page = |name: &str| {
            let found = pages.iter().find(|(other, _)| other == name);
            String::from_utf8_lossy(&found.expect(name).1).into_owned()
        };
        assert!(page("worldwire.1").contains("worldwire\\-dissect(1)"));
        let dissect = page("worldwire-dissect.1");
        assert!(dissect.contains("\\-\\-filter"), "{dissect}");
        assert!(dissect.contains("worldwire dissect samples/uru\\-login.pcapng"), "{dissect}");
        assert!(page("worldwire-tera-def-rank.1").contains("worldwire tera def rank"));
        let names: std::collections::BTreeSet<_> = pages.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), pages.len());
    }
}
