//! Bookmarks and notes, saved next to the capture.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, BuildHasherDefault};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::error::Refusal;

/// The notes file: the capture's name followed by [`ENDING`].
#[derive(Debug)]
pub(crate) struct Notes {
    path: PathBuf,
    /// One request writes at a time.
    writing: Mutex<()>,
}

/// All notes on a capture.
#[derive(Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoteList {
    /// The version of this format: 1.
    pub(crate) version: u32,
    pub(crate) notes: Vec<RowNote>,
}

/// A bookmark on a row, with text that may be empty.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowNote {
    pub(crate) row: u32,
    /// The row's packet and name. They find the row again if rows are numbered differently, for
    /// example because different keys are used.
    #[serde(default)]
    pub(crate) packet: u64,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    text: String,
}

/// Identifies the content of the notes file, as an `ETag`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag(pub(crate) String);

impl Tag {
    fn of(content: &[u8]) -> Self {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(content);
        Self(format!("\"{hash:016x}\""))
    }
}

const ENDING: &str = ".worldwire-notes.json";
/// The maximum number of notes, and bytes of each text and of the file.
const MAX_NOTES: usize = 10_000;
const MAX_TEXT: usize = 10_000;
pub(crate) const MAX_FILE: usize = 8 << 20;

impl Notes {
    /// The notes on a capture.
    pub(crate) fn beside(capture: &Path) -> Self {
        let mut name = OsString::from(capture.as_os_str());
        name.push(ENDING);
        Self { path: name.into(), writing: Mutex::default() }
    }

    /// Reads the file; there are no notes if it does not exist.
    pub(crate) fn read(&self) -> Result<(NoteList, Tag), Refusal> {
        match fs::symlink_metadata(&self.path) {
            Ok(about) if about.is_file() => {}
            // Opening a pipe would wait for its other end.
            Ok(_) => return Err(self.refused("is not a regular file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((NoteList { version: 1, notes: Vec::new() }, Tag::of(&[])));
            }
            Err(error) => return Err(self.failed(&error)),
        }
        let file = File::open(&self.path).map_err(|error| self.failed(&error))?;
        let mut bytes = Vec::new();
        let most = MAX_FILE as u64 + 1;
        file.take(most).read_to_end(&mut bytes).map_err(|error| self.failed(&error))?;
        if bytes.len() > MAX_FILE {
            return Err(self.refused(&format!("is larger than {MAX_FILE} bytes")));
        }
        let list: NoteList =
            serde_json::from_slice(&bytes).map_err(|error| self.refused(&error.to_string()))?;
        match list.version {
            1 => Ok((list, Tag::of(&bytes))),
            other => Err(self.refused(&format!("version {other} is not supported"))),
        }
    }

    /// Replaces the file atomically, if it still has the content that `known` names.
    pub(crate) fn write(&self, list: &NoteList, known: Option<&str>) -> Result<Tag, Refusal> {
        list.check()?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // An unreadable file must not be overwritten.
        let (_, Tag(now)) = self.read()?;
        if known.is_some_and(|known| known != now) {
            let text = "the notes were changed elsewhere; reload them";
            return Err(Refusal::new(StatusCode::PRECONDITION_FAILED, text));
        }
        let mut text = serde_json::to_vec_pretty(list).unwrap_or_default();
        text.push(b'\n');
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        let stored = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(&self.path).map(drop).map_err(|error| error.error)
        });
        stored.map_err(|error| self.failed(&error))?;
        Ok(Tag::of(&text))
    }

    fn failed(&self, error: &io::Error) -> Refusal {
        Refusal::failed(format!("{}: {error}", self.path.display()))
    }

    fn refused(&self, why: &str) -> Refusal {
        Refusal::failed(format!("{}: {why}; move this file elsewhere", self.path.display()))
    }
}

impl NoteList {
    fn check(&self) -> Result<(), Refusal> {
        if self.version != 1 {
            return Err(Refusal::bad("version: only 1 is supported"));
        }
        if self.notes.len() > MAX_NOTES {
            return Err(Refusal::bad(format!("notes: at most {MAX_NOTES} are allowed")));
        }
        let is_long = |note: &RowNote| note.text.len() > MAX_TEXT || note.name.len() > MAX_TEXT;
        if let Some(index) = self.notes.iter().position(is_long) {
            return Err(Refusal::bad(format!(
                "notes[{index}]: text is longer than {MAX_TEXT} bytes"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> NoteList {
        let note = RowNote { row: 5, packet: 9, name: "auth.X".to_owned(), text: text.to_owned() };
        NoteList { version: 1, notes: vec![note] }
    }

    #[test]
    fn notes_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::beside(&folder.path().join("a.pcapng"));
        let (none, mut tag) = notes.read().unwrap();
        assert!(none.notes.is_empty());
        for text in ["first", "second \u{202e}<b>"] {
            let old = tag.clone();
            tag = notes.write(&list(text), Some(&old.0)).unwrap();
            assert_eq!(notes.read().unwrap(), (list(text), tag.clone()));
            let refused = notes.write(&list("late"), Some(&old.0)).unwrap_err();
            assert_eq!(refused.status, StatusCode::PRECONDITION_FAILED);
        }
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, ["a.pcapng.worldwire-notes.json"]);
    }

    #[test]
    fn other_files_are_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::beside(&folder.path().join("a.pcapng"));
        for content in ["my shopping list", r#"{"version":2,"notes":[]}"#] {
            fs::write(&notes.path, content).unwrap();
            assert!(notes.read().is_err() && notes.write(&list("x"), None).is_err());
            assert_eq!(fs::read_to_string(&notes.path).unwrap(), content);
        }
        fs::remove_file(&notes.path).unwrap();
        fs::create_dir(&notes.path).unwrap();
        assert!(notes.write(&list("x"), None).is_err() && notes.read().is_err());
        #[cfg(unix)]
        {
            fs::remove_dir(&notes.path).unwrap();
            let other = folder.path().join("other.json");
            fs::write(&other, r#"{"version":1,"notes":[]}"#).unwrap();
            std::os::unix::fs::symlink(&other, &notes.path).unwrap();
            assert!(notes.write(&list("x"), None).is_err() && notes.read().is_err());
        }
    }

    #[test]
    fn notes_are_bounded() {
        let notes = Notes::beside(Path::new("/nonexistent/a.pcapng"));
        let refused = notes.write(&list(&"x".repeat(MAX_TEXT + 1)), None).unwrap_err();
        assert!(refused.text.contains("notes[0]"), "{}", refused.text);
        assert!(notes.write(&NoteList { version: 2, notes: Vec::new() }, None).is_err());
    }
}
