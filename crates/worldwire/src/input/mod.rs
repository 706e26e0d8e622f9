//! Files and standard input.

pub(crate) mod map;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use worldwire_core::Limits;
use worldwire_dissect::Keys;

use crate::output::{Failure, complain};

/// Opens a file, or standard input for `-`.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read + Send>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    if path.is_dir() {
        return Err(Failure::Run(format!("{}: is a folder, wanted a file", path.display())));
    }
    let file = File::open(path).map_err(|error| Failure::io(path, &error))?;
    Ok(Box::new(file))
}

/// Reads a whole file of bounded size.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let most = Limits::DEFAULT.file_bytes;
    let mut bytes = Vec::new();
    open(path)?
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::io(path, &error))?;
    if bytes.len() as u64 > most {
        let message = format!("{}: larger than {most} bytes (file bytes)", path.display());
        return Err(Failure::Run(message));
    }
    Ok(bytes)
}

/// Reads a whole text file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        complain(&path.display().to_string(), &format!("at byte {at}: wanted UTF-8 text"));
        Failure::Input
    })
}

/// Reads a key file, if there is one.
pub(crate) fn keys(path: Option<&Path>) -> Result<Keys, Failure> {
    let Some(path) = path else {
        return Ok(Keys::none());
    };
    let text = read_text(path)?;
    Keys::parse(&text).map_err(|error| {
        let text = error.to_string();
        let mut lines: Vec<&str> = text.lines().collect();
        let last = lines.pop().unwrap_or_default();
        for line in lines {
            complain(&path.display().to_string(), line);
        }
        Failure::Run(format!("{}: {last}", path.display()))
    })
}

/// A file, or all files of a folder and the folders in it, in the order of their names.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    /// Deeper folders are somebody's loop.
    const MOST_DEEP: usize = 32;
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![(path.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| Failure::io(&folder, &error))?;
        for entry in entries {
            let path = entry.map_err(|error| Failure::io(&folder, &error))?.path();
            if !path.is_dir() {
                found.push(path);
            } else if depth < MOST_DEEP {
                folders.push((path, depth + 1));
            }
        }
    }
    found.sort();
    Ok(found)
}
