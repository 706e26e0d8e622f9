//! The file with the user's keys and account secrets.
//!
//! ```toml
//! # Key and first nonce of an encrypted connection.
//! [[ki.stream]]
//! session = 1419                            # the session's ID; without it, any
//! key = "000102030405060708090a0b0c0d0e0f"
//! nonce = "101112131415161718191a1b1c1d1e1f"
//!
//! # An account: one of password, password-hash and ck2.
//! [[ki.login]]
//! user = "Merle"                            # without it, any
//! password = "hunter2"
//! ```
//!
//! Other tables belong to other families.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use worldwire_core::Diagnostic;
use worldwire_core::value::{parse_hex, push_hex};

use super::Salt;
use super::login::{Rec1, Secret, apply_rec1, password_hash};
use super::observer::{ObserverKeys, StreamKey};
use crate::settings::{Settings, Value};

/// The user's keys for connections, and secrets of accounts.
#[derive(Clone, Debug, Default)]
pub struct KeyFile {
    streams: Arc<ObserverKeys>,
    logins: Vec<Login>,
}

/// The information that the user has about an account.
#[derive(Clone, Debug)]
pub struct Login {
    /// The account's name; `None` matches every account.
    pub user: Option<String>,
    /// The known secret.
    pub secret: LoginSecret,
}

/// A secret of an account.
#[derive(Clone, Debug)]
pub enum LoginSecret {
    /// The password, hashed.
    PasswordHash(Secret),
    /// The CK2 from the server's reply to a login.
    Ck2(Secret),
}

/// The decrypted text of a `Rec1` field that belongs to one of the user's accounts.
///
/// Anyone who sees the session offer could decrypt the field. Its text is returned only to users
/// who supply the password or the CK2 that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedRec1(pub String);

impl KeyFile {
    /// Reads KI's tables from a TOML file. A text without such tables yields an empty key file.
    ///
    /// # Errors
    /// Returns every error in the file.
    pub fn parse(name: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        if !is_ours(text) {
            return Ok(Self::default());
        }
        let (mut file, root) = Settings::open(name, text);
        let mut streams = Vec::new();
        let mut logins = Vec::new();
        if let Some(ki) = root.get(TABLE) {
            for (key, value) in file.table(ki) {
                match key.get_ref().as_ref() {
                    "stream" => file.each("ki.stream", value, |file, table| {
                        streams.extend(stream(file, table));
                    }),
                    "login" => file.each("ki.login", value, |file, table| {
                        logins.extend(login(file, table));
                    }),
                    // The same file may also hold settings for the contents of fields.
                    "object" | "core" => {}
                    _ => file.unknown(key, &["stream", "login"]),
                }
            }
        }
        file.close(Self { streams: Arc::new(ObserverKeys { streams }), logins })
    }

    /// Appends the entries of another file, as if both were one file.
    pub fn merge(&mut self, other: Self) {
        let streams = &mut Arc::make_mut(&mut self.streams).streams;
        streams.extend(other.streams.streams.iter().cloned());
        self.logins.extend(other.logins);
    }

    /// Formats a stream's key as a table that [`parse`](Self::parse) reads.
    #[must_use]
    pub fn format_stream(session: Option<u16>, key: &StreamKey) -> String {
        let mut text = String::from("[[ki.stream]]\n");
        if let Some(id) = session {
            text.push_str(&format!("session = {id}\n"));
        }
        for (name, bytes) in [("key", &key.key), ("nonce", &key.nonce)] {
            text.push_str(name);
            text.push_str(" = \"");
            push_hex(&mut text, bytes);
            text.push_str("\"\n");
        }
        text
    }

    /// Whether the file has no keys and no accounts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.streams.streams.is_empty() && self.logins.is_empty()
    }

    /// The keys for observers and relays.
    #[must_use]
    pub fn observer(&self) -> Arc<ObserverKeys> {
        Arc::clone(&self.streams)
    }

    /// The accounts.
    #[must_use]
    pub fn logins(&self) -> &[Login] {
        &self.logins
    }

    /// Opens a `Rec1` field of this session if it belongs to one of the user's accounts: a client's
    /// field if a password proves it, a server's if it is a known CK2.
    #[must_use]
    pub fn open_rec1(&self, sealed: &[u8], salt: Salt) -> Option<OpenedRec1> {
        if self.logins.is_empty() {
            return None;
        }
        let rec1 = Rec1::open(sealed, salt).ok();
        let mut plain = sealed.to_vec();
        apply_rec1(salt, &mut plain);
        let plain = String::from_utf8(plain).ok()?;
        let whole = Secret::new(plain.clone());
        let known = self.logins.iter().any(|login| match (&login.secret, &rec1) {
            (LoginSecret::PasswordHash(hash), Some(rec1)) => {
                let named = login.user.as_ref().is_none_or(|user| *user == rec1.username);
                named && rec1.proves(hash, salt)
            }
            // Users learn a CK2 only by logging in, so this Rec1 belongs to the user.
            (LoginSecret::Ck2(_), Some(rec1)) => {
                login.user.as_ref().is_some_and(|user| *user == rec1.username)
            }
            (LoginSecret::Ck2(ck2), None) => whole.is(ck2),
            (LoginSecret::PasswordHash(_), None) => false,
        });
        known.then_some(OpenedRec1(plain))
    }
}

const TABLE: &str = "ki";
const SESSION: &str = "must be a session ID from 1 to 65535";

/// Whether the text has a KI table and must therefore be TOML.
fn is_ours(text: &str) -> bool {
    text.lines().any(|line| {
        let name = line.trim_start().trim_start_matches('[').trim_start();
        let rest = name.strip_prefix(TABLE).map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with(['.', ']', '=']))
    })
}

fn hex(settings: &mut Settings<'_>, value: &Value<'_>) -> Option<[u8; 16]> {
    let text = value.get_ref().as_str().and_then(parse_hex);
    let bytes = text.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    if bytes.is_none() {
        settings.error(value.span(), "must be 32 hexadecimal digits in quotes");
    }
    bytes
}

fn stream(settings: &mut Settings<'_>, value: &Value<'_>) -> Option<(Option<u16>, StreamKey)> {
    let (mut session, mut stream_key, mut nonce) = (None, None, None);
    let before = settings.count();
    for (key, value) in settings.table(value) {
        match key.get_ref().as_ref() {
            "session" => {
                session = settings.number::<u16>(value, SESSION);
                if session == Some(0) {
                    settings.error(value.span(), SESSION);
                }
            }
            "key" => stream_key = hex(settings, value),
            "nonce" => nonce = hex(settings, value),
            _ => settings.unknown(key, &["session", "key", "nonce"]),
        }
    }
    match (stream_key, nonce) {
        (Some(key), Some(nonce)) => Some((session, StreamKey { key, nonce })),
        _ => {
            if settings.count() == before {
                settings.error(value.span(), "needs both key and nonce");
            }
            None
        }
    }
}

fn login(settings: &mut Settings<'_>, value: &Value<'_>) -> Option<Login> {
    let (mut user, mut secrets) = (None, Vec::new());
    let before = settings.count();
    for (key, value) in settings.table(value) {
        let text = settings.text(value)?;
        match key.get_ref().as_ref() {
            "user" => user = Some(text),
            "password" => secrets.push(LoginSecret::PasswordHash(password_hash(&text))),
            "password-hash" => {
                if let Some(found) = describe_non_hash(&text) {
                    let wanted = "must be a SHA-512 hash in base64 (88 characters), but";
                    settings.error(value.span(), format!("{wanted} {found}"));
                }
                secrets.push(LoginSecret::PasswordHash(Secret::new(text)));
            }
            "ck2" => secrets.push(LoginSecret::Ck2(Secret::new(text))),
            _ => settings.unknown(key, &["user", "password", "password-hash", "ck2"]),
        }
    }
    if settings.count() == before && secrets.len() != 1 {
        settings.error(value.span(), "needs exactly one of password, password-hash and ck2");
    }
    let secret = secrets.pop()?;
    Some(Login { user, secret })
}

/// Describes text that is not a [`password_hash`], without quoting it: it may be a secret.
fn describe_non_hash(text: &str) -> Option<String> {
    /// The number of bytes in a SHA-512 digest.
    const SIZE: usize = 64;
    match BASE64.decode(text) {
        Ok(bytes) if bytes.len() == SIZE => None,
        Ok(bytes) => Some(format!("encodes {} bytes", bytes.len())),
        Err(_) => Some(format!("has {} characters that are not base64", text.chars().count())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_password_hashes_are_refused() {
        let parse = |hash: &str| {
            KeyFile::parse("k", &format!("[[ki.login]]\npassword-hash = \"{hash}\"\n"))
        };
        let error = |hash: &str| parse(hash).expect_err("an invalid hash")[0].to_string();
        let wanted = "k:2:17: error: must be a SHA-512 hash in base64 (88 characters), but";
        assert_eq!(error("abc"), format!("{wanted} has 3 characters that are not base64"));
        assert_eq!(error("c2VjcmV0"), format!("{wanted} encodes 6 bytes"));
        let hash = password_hash("hunter2");
        assert_eq!(parse(hash.as_str()).expect("a valid hash").logins().len(), 1);
    }

    #[test]
    fn a_file_is_read() {
        let text = "[uru]\ndroid = \"00\"\n[[ki.stream]]\nsession = 1419\n\
                    key = \"000102030405060708090a0b0c0d0e0f\"\n\
                    nonce = \"101112131415161718191a1b1c1d1e1f\"\n\
                    [[ki.login]]\nuser = \"Merle\"\npassword = \"hunter2\"\n";
        let file = KeyFile::parse("keys", text).expect("a valid key file");
        let (session, key) = file.observer().streams[0];
        assert_eq!((session, key.key[15], key.nonce[0]), (Some(1419), 15, 16));
        assert!(text.contains(&KeyFile::format_stream(session, &key)));
        let written = KeyFile::format_stream(None, &key);
        let again = KeyFile::parse("keys", &written).expect("a valid key file");
        assert_eq!(again.observer().streams, [(None, key)]);
        let salt = Salt { session_id: 7, seconds: 1_700_000_000, millis: 1 };
        let sealed = |user, password| Rec1::new(user, &password_hash(password), salt).seal(salt);
        let opened = file.open_rec1(&sealed("Merle", "hunter2"), salt).expect("it is known");
        assert!(opened.0.starts_with("7 Merle "));
        let mut both = again;
        both.merge(file.clone());
        assert_eq!(both.observer().streams, [(None, key), (session, key)]);
        assert!(both.open_rec1(&sealed("Merle", "hunter2"), salt).is_some());
        // The secrets of other accounts stay encrypted.
        assert_eq!(file.open_rec1(&sealed("Merle", "hunter3"), salt), None);
        assert_eq!(file.open_rec1(&sealed("Other", "hunter2"), salt), None);
        assert!(KeyFile::parse("keys", "Key.Auth.N = 1").expect("not ours").is_empty());
    }

    #[test]
    fn a_ck2_alone_opens_the_servers_answer() {
        let salt = Salt { session_id: 7, seconds: 1_700_000_000, millis: 1 };
        let file = KeyFile::parse("keys", "[[ki.login]]\nck2 = \"c2VjcmV0\"\n").expect("right");
        let mut sealed = b"c2VjcmV0".to_vec();
        apply_rec1(salt, &mut sealed);
        assert_eq!(file.open_rec1(&sealed, salt), Some(OpenedRec1("c2VjcmV0".into())));
        sealed[0] ^= 1;
        assert_eq!(file.open_rec1(&sealed, salt), None);
    }

    #[test]
    fn everything_wrong_is_named() {
        let text = "[[ki.stream]]\nsession = 65536\nkey = \"00\"\nnonec = \"\"\n\
                    [[ki.login]]\nuser = \"x\"\n[ki.other]\n";
        let errors = KeyFile::parse("keys.toml", text).expect_err("an invalid key file");
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        keys.toml:2:11: error: must be a session ID from 1 to 65535
        keys.toml:3:7: error: must be 32 hexadecimal digits in quotes
        keys.toml:4:1: error: unknown key nonec; it must be one of session, key, nonce (did you mean nonce?)
        keys.toml:5:1: error: needs exactly one of password, password-hash and ck2
        keys.toml:7:5: error: unknown key other; it must be one of stream, login
        ");
        let errors = KeyFile::parse("keys.toml", "[[ki.stream]\n").expect_err("an unclosed table");
        insta::assert_snapshot!(errors[0], @"keys.toml:1:13: error: unclosed array table, expected `]`");
    }
}
