//! An opcode map to which names are added.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use worldwire_tera::file::{CodeMap, MapKind, text};

use super::{folder, map};
use crate::cli::{Common, Target};
use crate::definitions::shell;
use crate::input;
use crate::output::{Failure, Place, shown, write_all};

/// The file of a map, with its content when it was read.
#[derive(Default)]
pub(super) struct GrowingMap {
    file: PathBuf,
    bytes: Vec<u8>,
    map: CodeMap,
}

impl GrowingMap {
    /// Reads a line-based map from a file, which may be missing. Problems in single lines are
    /// reported; the lines are kept.
    pub(super) fn open(file: &Path, common: &Common) -> Result<Self, Failure> {
        let file = Place::file_at(file, true).map(|_| file.to_owned())?;
        let bytes = content(&file)?;
        let refuse = |why: &str| Failure::Run(format!("{}: {why}", shown(&file)));
        let (text, _) = text::read(bytes.clone()).map_err(|error| refuse(&error.to_string()))?;
        if text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
            let convert = format!("worldwire tera map convert {} --to map", shell(&file));
            return Err(refuse(&format!(
                "is a JSON map, which cannot be extended; to convert it, run {convert}"
            )));
        }
        let (map, problems) = CodeMap::parse(MapKind::Protocol, &shown(&file), &text);
        folder::tell(&problems, common.quiet);
        map::wants_opcodes(&file, &map)?;
        Ok(Self { file, bytes, map })
    }

    /// The names in the map.
    pub(super) fn map(&self) -> &CodeMap {
        &self.map
    }

    /// Appends lines to the map, except those that it already contains.
    pub(super) fn add<'l>(&self, lines: impl Iterator<Item = &'l str>) -> Result<(), Failure> {
        let known = self.bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
        let known: HashSet<&[u8]> = known.collect();
        let end = if self.bytes.contains(&b'\r') { "\r\n" } else { "\n" };
        let mut bytes = self.bytes.clone();
        for line in lines.filter(|line| !known.contains(line.trim_ascii_end().as_bytes())) {
            if !bytes.is_empty() && !bytes.ends_with(b"\n") {
                bytes.extend_from_slice(end.as_bytes());
            }
            bytes.extend_from_slice(line.trim_ascii_end().as_bytes());
            bytes.extend_from_slice(end.as_bytes());
        }
        // Finding names takes a while, and the file may have been edited in the meantime.
        if content(&self.file)? != self.bytes {
            let problem = "was changed in the meantime and not overwritten; run the command again";
            return Err(Failure::Run(format!("{}: {problem}", shown(&self.file))));
        }
        write_all(&Target { output: Some(self.file.clone()), force: true }, &bytes)
    }
}

/// The content of a file; empty if the file is missing.
fn content(file: &Path) -> Result<Vec<u8>, Failure> {
    if file.exists() { input::read(file) } else { Ok(Vec::new()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A file with this content after lines are added.
    fn grown(content: &[u8], lines: &[&str]) -> Result<Vec<u8>, Failure> {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("a.map");
        fs::write(&file, content).expect("it is written");
        GrowingMap::open(&file, &Common::default())?.add(lines.iter().copied())?;
        Ok(fs::read(&file).expect("it is there"))
    }

    #[test]
    fn all_that_is_there_stays_as_it_is() {
        let lines = ["S_A = 5 # new\n", "# S_B = 6 # a tie\n"];
        for (before, after) in [
            (&b""[..], &b"S_A = 5 # new\n# S_B = 6 # a tie\n"[..]),
            (b"C_X 1", b"C_X 1\nS_A = 5 # new\n# S_B = 6 # a tie\n"),
            (
                b"\xef\xbb\xbfC_X 1\r\n",
                b"\xef\xbb\xbfC_X 1\r\nS_A = 5 # new\r\n# S_B = 6 # a tie\r\n",
            ),
            (b"# caf\xe9\nC_X  1\n", b"# caf\xe9\nC_X  1\nS_A = 5 # new\n# S_B = 6 # a tie\n"),
            // Problems reported by an earlier run are not repeated.
            (b"# S_B = 6 # a tie\n", b"# S_B = 6 # a tie\nS_A = 5 # new\n"),
        ] {
            assert_eq!(grown(before, &lines).expect("it is a map"), after);
        }
    }

    #[test]
    fn what_is_no_map_of_lines_is_refused() {
        for (content, wanted) in [
            (
                &b"{\"S_A\": 5}"[..],
                "is a JSON map, which cannot be extended; to convert it, run worldwire tera map \
                 convert",
            ),
            (b"S\0_\0", "encoded as UTF-16; save it as UTF-8"),
            (b"SMT_A 5\n", "is a system message map, not an opcode map"),
        ] {
            let refused = format!("{:?}", grown(content, &["S_B = 6"]).map(drop));
            assert!(refused.contains(wanted), "{refused}");
        }
    }

    #[test]
    fn what_somebody_wrote_in_the_meantime_stays() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("a.map");
        let map = GrowingMap::open(&file, &Common::default())
            .expect("a file that is missing has no names");
        fs::write(&file, "S_A = 5\n").expect("it is written");
        let refused = format!("{:?}", map.add(["S_B = 6"].into_iter()));
        assert!(refused.contains("was changed in the meantime"), "{refused}");
        assert_eq!(fs::read(&file).expect("it is there"), b"S_A = 5\n");
    }
}
