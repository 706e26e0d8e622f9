//! Writes key files.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use worldwire_core::value::push_hex;
use zeroize::Zeroizing;

use crate::crypt::key::{KEY_BYTES, PrivateKey, PublicKey, ServerKind};

use super::KeyRing;

/// The formats in which keys can be written, each for the program that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyFileFormat {
    /// Worldwire's TOML, with all known keys. Secret.
    Toml,
    /// Worldwire's TOML for clients, without secrets.
    TomlPublic,
    /// Lines for dirtsand's configuration, with the droid key. Secret.
    Dirtsand,
    /// Lines for moulars' configuration. Secret.
    Moulars,
    /// Sections for NAGUS's configuration. Secret.
    ///
    /// Unverified: the section names, which are worldwire's names for the servers.
    Nagus,
    /// Lines for the `server.ini` of the H'uru client.
    ServerIni,
    /// C arrays for the OpenUru client's source, with each server's base.
    OpenUru,
}

impl KeyFileFormat {
    /// All formats.
    pub const ALL: [Self; 7] = [
        Self::Toml,
        Self::TomlPublic,
        Self::Dirtsand,
        Self::Moulars,
        Self::Nagus,
        Self::ServerIni,
        Self::OpenUru,
    ];
}

impl KeyRing {
    /// Writes the keys that the format can express. Equal rings produce equal texts.
    ///
    /// Server formats contain key pairs and omit servers whose secret is unknown; client formats
    /// contain public keys. Keys of the defunct CSR server are written only to TOML and C, and the
    /// droid key only to [`KeyFileFormat::Toml`] and [`KeyFileFormat::Dirtsand`]. The text is
    /// cleared on drop; it is empty if there is nothing to write.
    #[must_use]
    pub fn format(&self, format: KeyFileFormat) -> Zeroizing<String> {
        // Large enough for all keys in any format: growing would leave copies of secrets in freed
        // memory.
        let mut text =
            Zeroizing::new(String::with_capacity((16 << 10) + 100 * self.sessions.len()));
        match format {
            KeyFileFormat::Toml => self.toml(&mut text, true),
            KeyFileFormat::TomlPublic => self.toml(&mut text, false),
            KeyFileFormat::Dirtsand => {
                for key in self.live_pairs() {
                    let server = title(key.kind());
                    line(&mut text, format_args!("Key.{server}.N = "), &n(key.public()), "\n");
                    line(&mut text, format_args!("Key.{server}.K = "), &key.a(), "\n");
                }
                if let Some(droid) = self.droid() {
                    put(&mut text, format_args!("Key.Droid = {}\n", *droid.to_hex()));
                }
            }
            KeyFileFormat::Moulars => {
                for key in self.live_pairs() {
                    let server = title(key.kind()).to_ascii_lowercase();
                    line(&mut text, format_args!("{server}.n = \""), &n(key.public()), "\"\n");
                    line(&mut text, format_args!("{server}.k = \""), &key.a(), "\"\n");
                }
            }
            KeyFileFormat::Nagus => {
                for key in self.live_pairs() {
                    section(&mut text, format_args!("[{}]\n", key.kind()));
                    line(&mut text, format_args!("key_n = \""), &n(key.public()), "\"\n");
                    line(&mut text, format_args!("key_a = \""), &key.a(), "\"\n");
                }
            }
            KeyFileFormat::ServerIni => {
                for key in LIVE.into_iter().filter_map(|kind| self.public(kind)) {
                    let server = title(key.kind());
                    line(&mut text, format_args!("Server.{server}.N \""), &n(key), "\"\n");
                    line(&mut text, format_args!("Server.{server}.X \""), &key.x(), "\"\n");
                }
            }
            KeyFileFormat::OpenUru => {
                for key in ServerKind::ALL.into_iter().filter_map(|kind| self.public(kind)) {
                    let server = source_name(key.kind());
                    let base = key.kind().base();
                    let head = format_args!("static const unsigned k{server}DhGValue = {base};\n");
                    section(&mut text, head);
                    array(&mut text, format_args!("k{server}DhNData"), n(key));
                    array(&mut text, format_args!("k{server}DhXData"), key.x());
                }
            }
        }
        text
    }

    fn toml(&self, text: &mut String, secrets: bool) {
        if let Some(droid) = self.droid().filter(|_| secrets) {
            put(text, format_args!("[uru]\ndroid = \"{}\"\n", *droid.to_hex()));
        }
        for kind in ServerKind::ALL {
            let Some(key) = self.public(kind) else { continue };
            section(text, format_args!("[uru.{kind}]\n"));
            line(text, format_args!("n = \""), &n(key), "\"\n");
            if let Some(pair) = self.private(kind).filter(|_| secrets) {
                line(text, format_args!("a = \""), &pair.a(), "\"\n");
            }
            line(text, format_args!("x = \""), &key.x(), "\"\n");
        }
        for (seed, (service, key)) in self.sessions.iter().filter(|_| secrets) {
            section(text, format_args!("[[uru.session]]\nservice = \"{}\"\n", service.name()));
            for (name, bytes) in [("seed", seed), ("key", key.as_bytes())] {
                put(text, format_args!("{name} = \""));
                push_hex(text, bytes);
                text.push_str("\"\n");
            }
        }
    }

    /// The key pairs of the servers still in use.
    fn live_pairs(&self) -> impl Iterator<Item = &PrivateKey> {
        LIVE.into_iter().filter_map(|kind| self.private(kind))
    }
}

fn n(key: &PublicKey) -> [u8; KEY_BYTES] {
    key.n().to_be_bytes()
}

/// Writes a number in base64, with text before and after it.
fn line(text: &mut String, head: std::fmt::Arguments<'_>, number: &[u8; KEY_BYTES], tail: &str) {
    put(text, head);
    STANDARD.encode_string(number, text);
    text.push_str(tail);
}

/// Writes a section header, after an empty line unless it comes first.
fn section(text: &mut String, head: std::fmt::Arguments<'_>) {
    if !text.is_empty() {
        text.push('\n');
    }
    put(text, head);
}

/// Writes a C array. The number is given most significant byte first and written in reverse.
fn array(text: &mut String, name: std::fmt::Arguments<'_>, mut number: [u8; KEY_BYTES]) {
    number.reverse();
    put(text, format_args!("static const unsigned char {name}[] = {{\n"));
    for row in number.chunks(ROW) {
        let row: Vec<String> = row.iter().map(|byte| format!("0x{byte:02x},")).collect();
        put(text, format_args!("    {}\n", row.join(" ")));
    }
    text.push_str("};\n");
}

fn put(text: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(piece);
}

/// The name of a server in the configurations of dirtsand and H'uru.
fn title(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Gatekeeper => "Gate",
        ServerKind::Auth => "Auth",
        ServerKind::Game => "Game",
        ServerKind::Csr => "Csr",
    }
}

/// The name of a server in OpenUru's source code.
fn source_name(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Gatekeeper => "GateKeeper",
        other => title(other),
    }
}

/// The servers still in use, in the order of [`ServerKind::ALL`].
const LIVE: [ServerKind; 3] = [ServerKind::Gatekeeper, ServerKind::Auth, ServerKind::Game];
/// Bytes per line of an array.
const ROW: usize = 12;
