//! Logins: what a client computes from a password.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use worldwire_core::{Field as _, Reader, Side, Writer};
use worldwire_ki::character::Character;
use worldwire_ki::crypt::Salt;
use worldwire_ki::crypt::login::{Rec1, Secret, apply_rec1, password_hash, pk3};
use worldwire_mxo::crypt::Random;
use worldwire_mxo::file::PublicKeyFile;
use worldwire_mxo::frame::Channel;
use worldwire_mxo::login::{
    AuthClient, AuthClientConfig, LoginMessage, LoginRefusal, LoginStatus, LoginTicket,
    MarginClient, MarginClientAction, MarginClientMessage,
};
use worldwire_mxo::types::Str;
use worldwire_uru::crypt::login::login_fields;

use crate::error::{Class, Fault};
use crate::knowledge::read_file;
use crate::machine::random;

/// What an Uru client sends to log in: its challenge and the hash, given a random number and the
/// server's challenge.
#[pyfunction]
pub(crate) fn uru_login<'py>(
    py: Python<'py>,
    account: &str,
    password: &str,
    challenge: u32,
) -> PyResult<(u32, Bound<'py, PyBytes>)> {
    let random = u32::from_le_bytes(random(py)?);
    let fields = login_fields(account, password, random, challenge);
    Ok((fields.client_challenge, PyBytes::new(py, &fields.challenge_hash)))
}

/// A session: its ID, and the seconds and milliseconds of its offer.
type Session = (u16, i64, u32);

fn salt((session_id, seconds, millis): Session) -> Salt {
    Salt { session_id, seconds, millis }
}

/// The `Rec1` that a KI client sends to log in.
#[pyfunction]
pub(crate) fn ki_login<'py>(
    py: Python<'py>,
    account: &str,
    password: &str,
    session: Session,
) -> Bound<'py, PyBytes> {
    let salt = salt(session);
    PyBytes::new(py, &Rec1::new(account, &password_hash(password), salt).seal(salt))
}

/// The secret (CK2) in the `Rec1` of the answer; `None` if it belongs to another session.
#[pyfunction]
pub(crate) fn ki_secret(mut sealed: Vec<u8>, session: Session) -> Option<String> {
    apply_rec1(salt(session), &mut sealed);
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let fits = !sealed.is_empty() && sealed.iter().all(is_base64);
    String::from_utf8(sealed).ok().filter(|_| fits)
}

/// The `PassKey3` that proves the secret on another connection.
#[pyfunction]
pub(crate) fn ki_proof(secret: String, session: Session) -> String {
    pk3(&Secret::new(secret), salt(session)).as_str().to_owned()
}

/// The ID, name and school of a KI character.
#[pyfunction]
pub(crate) fn ki_character(py: Python<'_>, blob: &[u8]) -> PyResult<(u64, String, u32)> {
    let character = Character::read(blob);
    let character = character.map_err(|error| Fault::of(Class::Decode, &error).raise(py))?;
    let name = String::from_utf8_lossy(character.name()).into_owned();
    Ok((character.global_id(), name, character.school()))
}

/// A new KI character.
#[pyfunction]
pub(crate) fn ki_new_character<'py>(
    py: Python<'py>,
    name: &str,
    school: &str,
) -> Bound<'py, PyBytes> {
    /// The client builds the displayed name from these parts.
    const NAME_INDICES: u32 = 0x01_0101;
    PyBytes::new(py, Character::plain(name, school, NAME_INDICES).as_bytes())
}

/// A login to an MxO auth server, without I/O.
#[pyclass(module = "worldwire.mxo")]
pub(crate) struct AuthLogin(AuthClient);

#[pymethods]
impl AuthLogin {
    #[new]
    fn new(
        py: Python<'_>,
        account: &str,
        password: &str,
        public_key: Option<PathBuf>,
    ) -> PyResult<Self> {
        let public_key = public_key.map(|path| read_public_key(py, path)).transpose()?;
        let config = AuthClientConfig::new(account, password, public_key);
        Ok(Self(AuthClient::new(config, Random::new(random(py)?))))
    }

    /// Handles a message from the server.
    fn receive(&mut self, data: &[u8]) {
        if let Ok(LoginMessage::AuthServer(message)) =
            LoginMessage::decode_strictly(data, Channel::Auth, Side::Server)
        {
            self.0.handle(&message);
        }
    }

    /// The next message to send.
    fn poll<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let message = self.0.poll().map(LoginMessage::AuthClient);
        message.map(|message| encoded(py, &message)).transpose()
    }

    /// How the login ended: a ticket, or why it was refused.
    fn outcome(&mut self) -> Option<(Option<Ticket>, String)> {
        self.0.outcome().map(|outcome| match outcome {
            Ok(ticket) => (Some(Ticket(ticket)), String::new()),
            Err(refusal) => (None, reason(&refusal)),
        })
    }
}

/// The result of a login to an MxO auth server.
#[pyclass(frozen, module = "worldwire.mxo")]
pub(crate) struct Ticket(LoginTicket);

#[pymethods]
impl Ticket {
    /// The characters: ID, name, and world number.
    #[getter]
    fn characters(&self) -> Vec<(u64, String, u16)> {
        let characters = self.0.characters.iter();
        characters.map(|it| (it.id, it.handle.text(), it.world_id)).collect()
    }

    /// The worlds: number and name.
    #[getter]
    fn worlds(&self) -> Vec<(u16, String)> {
        self.0.worlds.iter().map(|it| (it.id, it.name.text())).collect()
    }
}

/// A session with an MxO margin server, without I/O.
#[pyclass(module = "worldwire.mxo")]
pub(crate) struct MarginLogin(MarginClient);

/// An event: its kind, bytes, a number, and a text.
type Report<'py> = (&'static str, Bound<'py, PyBytes>, u64, String);

#[pymethods]
impl MarginLogin {
    #[new]
    fn new(py: Python<'_>, ticket: &Ticket) -> PyResult<Self> {
        Ok(Self(MarginClient::new(ticket.0.clone(), Random::new(random(py)?))))
    }

    /// Handles a message from the server.
    fn receive(&mut self, data: &[u8]) {
        if let Ok(LoginMessage::MarginServer(message)) =
            LoginMessage::decode_strictly(data, Channel::Margin, Side::Server)
        {
            self.0.handle(message);
        }
    }

    /// What to do next, or what has happened.
    fn poll<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Report<'py>>> {
        let Some(action) = self.0.poll() else { return Ok(None) };
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
        let replied = |kind, status: LoginStatus, id| (kind, bytes(b""), id, status_of(status));
        Ok(Some(match action {
            MarginClientAction::Send(message) => {
                let message = LoginMessage::MarginClient(Box::new(message));
                ("send", encoded(py, &message)?, 0, String::new())
            }
            MarginClientAction::SetKey(key) => ("key", bytes(key.as_bytes()), 0, String::new()),
            MarginClientAction::Opened { session_id, key } => {
                ("opened", bytes(key.as_bytes()), session_id.into(), String::new())
            }
            MarginClientAction::Claimed { status, character_id } => {
                replied("claimed", status, character_id)
            }
            MarginClientAction::Deleted { status, character_id } => {
                replied("deleted", status, character_id)
            }
            MarginClientAction::Part(part) => replied("part", part.status, 0),
            MarginClientAction::Loaded => ("loaded", bytes(b""), 0, String::new()),
            MarginClientAction::Established => ("established", bytes(b""), 0, String::new()),
            MarginClientAction::Refused(refusal) => ("refused", bytes(b""), 0, reason(&refusal)),
        }))
    }

    /// Reserves a name for a new character.
    fn claim(&mut self, py: Python<'_>, name: &str) -> PyResult<()> {
        let name = Str::new(name).map_err(|error| Fault::of(Class::Encode, &error).raise(py))?;
        self.0.claim(name.into_owned());
        Ok(())
    }

    /// Creates a character with the reserved name, given an encoded request.
    fn create(&mut self, data: &[u8]) {
        if let Ok(LoginMessage::MarginClient(message)) =
            LoginMessage::decode_strictly(data, Channel::Margin, Side::Client)
            && let MarginClientMessage::CreateCharacterRequest(request) = *message
        {
            self.0.create(request.into_owned());
        }
    }

    /// Loads a character.
    fn load(&mut self, character: u64) {
        self.0.load(character);
    }

    /// Deletes a character.
    fn delete(&mut self, character: u64) {
        self.0.delete(character);
    }
}

fn encoded<'py>(py: Python<'py>, message: &LoginMessage<'_>) -> PyResult<Bound<'py, PyBytes>> {
    let mut writer = Writer::new();
    let written = message.encode(&mut writer);
    written.map_err(|error| Fault::of(Class::Encode, &error).raise(py))?;
    Ok(PyBytes::new(py, &writer.into_bytes()))
}

/// The name of a status, or its number.
fn status_of(status: LoginStatus) -> String {
    status.name().map_or_else(|| status.0.to_string(), str::to_owned)
}

fn reason(refusal: &LoginRefusal) -> String {
    match refusal {
        LoginRefusal::Status(status) => status_of(*status),
        other => other.to_string(),
    }
}

/// Reads `pubkey.dat`.
fn read_public_key(py: Python<'_>, path: PathBuf) -> PyResult<PublicKeyFile> {
    let bytes = read_file(py, &path)?;
    let mut reader = Reader::new(&bytes);
    let key = PublicKeyFile::decode(&mut reader).and_then(|key| reader.end().map(|()| key));
    key.map_err(|error| {
        let problem = format!("{}: {}", path.display(), error.closed());
        Fault::new(Class::Keys, problem).at_path(&path.to_string_lossy()).raise(py)
    })
}
