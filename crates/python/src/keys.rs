//! Key files as values: the native part of `worldwire/keys.py`.

use pyo3::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng as _;
use worldwire_core::json::string;
use worldwire_core::value::push_hex;
use worldwire_dissect::Keys;
use worldwire_ki::crypt::keys::{KeyFile as KiKeys, Login, LoginSecret};
use worldwire_ki::crypt::stream::StreamKey;
use worldwire_mxo::crypt::{KeyFile as MxoKeys, KnownSession, SessionKey as MxoKey};
use worldwire_uru::crypt::exchange::SessionKey;
use worldwire_uru::crypt::key::{Modulus, PrimeKind, PrivateKey, PublicKey, ServerKind};
use worldwire_uru::file::keys::{KeyFileFormat, KeyRing};
use worldwire_uru::file::secure::SecureKeyError;
use worldwire_uru::frame::Service;

use crate::error::{Class, Fault};
use crate::knowledge::read_keys;
use crate::machine::random;

/// An Uru server: its name, `n`, `x` and, if known, `a`.
type UruServer = (String, Vec<u8>, Vec<u8>, Option<Vec<u8>>);
/// An Uru session: its service, seed and key.
type UruSession = (String, Vec<u8>, Vec<u8>);
/// An encrypted KI connection: its session, key and first nonce.
type KiStream = (Option<u16>, Vec<u8>, Vec<u8>);
/// A KI account: its name, its password's hash, and its CK2.
type KiAccount = (Option<String>, Option<String>, Option<String>);
/// An MxO session: its ID and key.
type MxoSession = (Option<u32>, Vec<u8>);

/// Everything that key files can contain.
type Contents = (
    Vec<UruServer>,
    Option<Vec<u8>>,
    Vec<UruSession>,
    Vec<KiStream>,
    Vec<KiAccount>,
    Vec<MxoSession>,
);

/// The keys in the files of a `keys` argument.
#[pyfunction]
pub(crate) fn load_keys(py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Contents> {
    Ok(contents(&read_keys(py, Some(keys))?))
}

/// The keys in the text of a key file.
#[pyfunction]
pub(crate) fn parse_keys(py: Python<'_>, text: &str) -> PyResult<Contents> {
    let keys = Keys::parse(text);
    let keys = keys.map_err(|error| Fault::new(Class::Keys, error).raise(py))?;
    Ok(contents(&keys))
}

/// The text of a key file with these keys, in worldwire's own format.
#[pyfunction]
pub(crate) fn format_keys(py: Python<'_>, contents: Contents) -> PyResult<String> {
    text_of(contents).map_err(|problem| Fault::new(Class::Keys, problem).raise(py))
}

/// A new key pair for an Uru server: `n`, `x` and `a`.
#[pyfunction]
pub(crate) fn new_uru_key(py: Python<'_>, server: &str) -> PyResult<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let kind = kind_of(server).map_err(|problem| Fault::new(Class::Keys, problem).raise(py))?;
    let mut random = ChaCha20Rng::from_seed(random(py)?);
    let key = py.detach(|| PrivateKey::generate(kind, PrimeKind::Safe, &mut random));
    Ok((key.n().to_be_bytes().to_vec(), key.x().to_vec(), key.a().to_vec()))
}

fn contents(keys: &Keys) -> Contents {
    let (ring, ki, mxo) = (keys.part::<KeyRing>(), keys.part::<KiKeys>(), keys.part::<MxoKeys>());
    let servers = ServerKind::ALL.into_iter().filter_map(|kind| {
        let public = ring.public(kind)?;
        let a = ring.private(kind).map(|key| key.a().to_vec());
        Some((kind.name().to_owned(), public.n().to_be_bytes().to_vec(), public.x().to_vec(), a))
    });
    let droid = ring.droid().map(|key| key.words().map(u32::to_be_bytes).concat());
    let sessions = ring.sessions().map(|(seed, service, key)| {
        (service.name().to_owned(), seed.to_vec(), key.as_bytes().to_vec())
    });
    let observer = ki.observer();
    let streams = observer.streams.iter();
    let streams = streams.map(|(id, key)| (*id, key.key.to_vec(), key.nonce.to_vec()));
    let accounts = ki.logins().iter().map(|Login { user, secret }| match secret {
        LoginSecret::PasswordHash(hash) => (user.clone(), Some(hash.as_str().to_owned()), None),
        LoginSecret::Ck2(ck2) => (user.clone(), None, Some(ck2.as_str().to_owned())),
    });
    let mxo = mxo.sessions().iter().map(|it| (it.id, it.key.as_bytes().to_vec()));
    let (servers, sessions) = (servers.collect(), sessions.collect());
    (servers, droid, sessions, streams.collect(), accounts.collect(), mxo.collect())
}

fn text_of((servers, droid, sessions, streams, accounts, mxo): Contents) -> Result<String, String> {
    let mut ring = KeyRing::new();
    for (server, n, x, a) in servers {
        let name = |what: &str| format!("{what} of the {server} server");
        let kind = kind_of(&server)?;
        let (n, x) = (sized(&n, &name("n"))?, sized(&x, &name("x"))?);
        let refused = |error| format!("the key of the {server} server: {error}");
        let n = Modulus::from_be_bytes(&n).map_err(refused)?;
        let public = PublicKey::new(kind, n.clone(), &x).map_err(refused)?;
        let Some(a) = a else {
            ring.insert_public(public);
            continue;
        };
        let private = PrivateKey::new(kind, n, &sized(&a, &name("a"))?).map_err(refused)?;
        if *private.public() != public {
            return Err(refused(worldwire_uru::crypt::key::KeyError::Mismatch));
        }
        ring.insert_private(private);
    }
    if let Some(droid) = droid {
        let bytes: [u8; 16] = sized(&droid, "the droid key")?;
        let mut digits = String::new();
        push_hex(&mut digits, &bytes);
        ring.set_droid(digits.parse().map_err(|error: SecureKeyError| error.to_string())?);
    }
    for (service, seed, key) in sessions {
        let known = Service::from_name(&service);
        let known = known.ok_or_else(|| format!("unknown service {service:?}"))?;
        let (seed, key) = (sized(&seed, "the seed of a session")?, sized(&key, "a session's key")?);
        ring.insert_session(known, seed, SessionKey::new(key));
    }
    let mut parts = vec![ring.format(KeyFileFormat::Toml).to_string()];
    for (session, key, nonce) in streams {
        if session == Some(0) {
            return Err("the session of a stream must be from 1 to 65535".to_owned());
        }
        let (key, nonce) = (sized(&key, "a stream's key")?, sized(&nonce, "a stream's nonce")?);
        parts.push(KiKeys::format_stream(session, &StreamKey { key, nonce }));
    }
    for (user, password_hash, ck2) in accounts {
        let (name, secret) = match (password_hash, ck2) {
            (Some(hash), None) => ("password-hash", hash),
            (None, Some(ck2)) => ("ck2", ck2),
            _ => return Err("an account needs either password_hash or ck2".to_owned()),
        };
        let user = user.map_or_else(String::new, |user| format!("user = {}\n", quoted(&user)));
        parts.push(format!("[[ki.login]]\n{user}{name} = {}\n", quoted(&secret)));
    }
    for (id, key) in mxo {
        let key = MxoKey::new(&sized(&key, "a session's key")?);
        parts.push(MxoKeys::format_session(&KnownSession { id, key }));
    }
    parts.retain(|part| !part.is_empty());
    let text = parts.join("\n");
    // Everything that was not checked above.
    if !text.is_empty() {
        Keys::parse(&text).map_err(|error| error.to_string())?;
    }
    Ok(text)
}

fn kind_of(server: &str) -> Result<ServerKind, String> {
    let found = ServerKind::ALL.into_iter().find(|kind| kind.name() == server);
    found.ok_or_else(|| format!("unknown server {server:?}"))
}

fn sized<const SIZE: usize>(bytes: &[u8], what: &str) -> Result<[u8; SIZE], String> {
    let sized = bytes.try_into();
    sized.map_err(|_| format!("{what} must have {SIZE} bytes, not {}", bytes.len()))
}

/// A string in TOML: like JSON, except that JSON does not escape DEL.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    string(text, &mut quoted);
    quoted.replace('\u{7f}', "\\u007f")
}
