//! The files of the npm package `worldwire-mods`, which runs TERA toolbox mods under Node.js.
//!
//! They are built into the program, so `worldwire proxy tera --mods` needs nothing but Node.js.
//!
//! ```
//! let folder = tempfile::tempdir()?;
//! let entry = worldwire_mods::unpack(folder.path())?;
//! assert!(entry.ends_with("bin/worldwire-mods.js"));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file to run with `node`.
const ENTRY: &str = "bin/worldwire-mods.js";

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../", $path)))),*]
    };
}

/// The path and text of each file.
const FILES: &[(&str, &str)] = &files![
    "package.json",
    "bin/worldwire-mods.js",
    "lib/check.js",
    "lib/cli.js",
    "lib/client.js",
    "lib/codec.js",
    "lib/command.js",
    "lib/connection.js",
    "lib/data.js",
    "lib/definition.js",
    "lib/dispatch.js",
    "lib/game/character.js",
    "lib/game/index.js",
    "lib/game/me.js",
    "lib/game/party.js",
    "lib/game/tables.js",
    "lib/globals.js",
    "lib/info.js",
    "lib/interface.js",
    "lib/legacy.js",
    "lib/manager.js",
    "lib/modules.js",
    "lib/promises.js",
    "lib/protocol.js",
    "lib/report.js",
    "lib/runner.js",
    "lib/settings.js",
    "lib/standins/binary-search.js",
    "lib/standins/command.js",
    "lib/standins/node-fetch.js",
    "lib/standins/tera-data-parser.js",
    "lib/standins/tera-game-state.js",
    "lib/standins/tera-mod-ui.js",
    "lib/standins/tera-network-proxy.js",
    "lib/standins/tera-toolbox-mui.js",
    "lib/standins/tera-types.js",
    "lib/standins/tera-vec3.js",
    "lib/thrown.js",
    "lib/timers.js",
    "lib/trial.js",
    "lib/types.js",
    "lib/watchdog.js",
    "lib/wire.js",
    "lib/words.js",
];

/// Writes the package to a directory, which is created if missing, and returns the path of the file
/// to run with `node`. Files that are up to date are not touched.
///
/// # Errors
/// Fails if a file or directory cannot be read or written.
pub fn unpack(folder: &Path) -> io::Result<PathBuf> {
    for (path, text) in FILES {
        let file = folder.join(path);
        if fs::read_to_string(&file).is_ok_and(|present| present == *text) {
            continue;
        }
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        let draft = file.with_extension("tmp");
        fs::write(&draft, text)?;
        fs::rename(&draft, &file)?;
    }
    Ok(folder.join(ENTRY))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All files below one of this crate's directories.
    fn all(folder: &str) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => found.extend(all(&path)),
                false => found.push(path),
            }
        }
        found
    }

    #[test]
    fn every_file_is_included() {
        let mut expected: Vec<String> = ["bin", "lib"].into_iter().flat_map(all).collect();
        expected.push("package.json".to_owned());
        expected.sort();
        let mut included: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        included.sort_unstable();
        assert_eq!(included, expected);
    }

    #[test]
    fn files_are_written_where_they_differ() {
        let folder = tempfile::tempdir().unwrap();
        let entry = unpack(folder.path()).unwrap();
        let text = fs::read_to_string(&entry).unwrap();
        fs::write(&entry, "changed").unwrap();
        let kept = folder.path().join("lib/codec.js");
        let written = fs::metadata(&kept).unwrap().modified().unwrap();
        assert_eq!(unpack(folder.path()).unwrap(), entry);
        assert_eq!(fs::read_to_string(&entry).unwrap(), text);
        assert_eq!(fs::metadata(&kept).unwrap().modified().unwrap(), written);
    }
}
