//! Another parser, written in JavaScript, run on the messages that we are measured on.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use worldwire_tera::schema::Definition;

/// A kind of messages: its name, and each message with its definition.
pub(crate) type Kind<'s> = (&'s str, Vec<(&'s Definition, Vec<u8>)>);

/// Definitions and messages in a folder that goes away with this.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Writes the files of a set and, for each kind, its messages.
    pub(crate) fn write(files: &[(String, String)], kinds: &[Kind<'_>]) -> std::io::Result<Self> {
        let name = format!("worldwire-tera-opponent-{}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        std::fs::create_dir_all(folder.0.join("definitions"))?;
        for (name, text) in files {
            std::fs::write(folder.0.join("definitions").join(name), text)?;
        }
        let messages = |messages: &[(&Definition, Vec<u8>)]| -> Json {
            let message = |(definition, bytes): &(&Definition, Vec<u8>)| {
                let mut hex = String::new();
                for byte in bytes {
                    let _ = write!(hex, "{byte:02x}");
                }
                let (name, version) = (definition.name(), definition.version());
                serde_json::json!({ "name": name, "version": version, "hex": hex })
            };
            messages.iter().map(message).collect()
        };
        let kinds: Json =
            kinds.iter().map(|(kind, list)| ((*kind).to_owned(), messages(list))).collect();
        std::fs::write(folder.0.join("messages.json"), kinds.to_string())?;
        Ok(folder)
    }

    /// Runs a parser over everything, each thing for so many milliseconds; what comes out is told
    /// in `opponent.mjs`.
    pub(crate) fn run(&self, parser: &Path, milliseconds: u64) -> Result<Json, String> {
        let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/opponent.mjs");
        let output = Command::new("node")
            .arg(adapter)
            .arg(parser)
            .arg(&self.0)
            .arg(milliseconds.to_string())
            .output()
            .map_err(|error| format!("node: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is the temporary folder's business.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether there is a node to run it with.
pub(crate) fn has_node() -> bool {
    Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success())
}
