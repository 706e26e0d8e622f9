//! Connections as state machines without I/O, for clients and servers written in Python.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use worldwire_core::connection::{Connection, Event, Input, Piece as _, SendError, Sender};
use worldwire_core::{Error, Limits, Reader, Side, Writer};
use worldwire_ki::connection as ki;
use worldwire_ki::message::RawMessage;
use worldwire_mxo::connection as mxo;
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{Channel, RpcMessage};
use worldwire_mxo::login::{LoginConfig, LoginConnection, LoginMessage};
use worldwire_tera::connection as tera;
use worldwire_uru::connect::ConnectData;
use worldwire_uru::connection as uru;
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::{Message, Service};

use crate::codec::side_of;
use crate::error::{Class, Fault};
use crate::knowledge::Knowledge;

/// A connection of any family.
#[pyclass(module = "worldwire")]
pub(crate) struct Machine {
    machine: Family,
    side: Side,
}

enum Family {
    Ki(Box<ki::Connection>),
    Mxo(Box<mxo::Connection>),
    MxoLogin(Box<LoginConnection>, Channel),
    Tera(Box<tera::Connection>),
    Uru(Box<uru::Connection>),
}

/// An event as Python sees it: its kind, the sender, the codec of the bytes, the bytes, and a
/// text.
type Shown<'py> = (&'static str, Option<&'static str>, Option<String>, Bound<'py, PyBytes>, String);

/// An event before it becomes a Python object.
struct Seen {
    kind: &'static str,
    from: Option<Side>,
    codec: Option<String>,
    bytes: Vec<u8>,
    text: String,
}

/// Evaluates an expression for the connection, whatever its family.
macro_rules! each {
    ($family:expr, $connection:ident => $do:expr) => {
        match $family {
            Family::Ki($connection) => $do,
            Family::Mxo($connection) => $do,
            Family::MxoLogin($connection, _) => $do,
            Family::Tera($connection) => $do,
            Family::Uru($connection) => $do,
        }
    };
}

#[pymethods]
impl Machine {
    /// A KI connection. `epoch` is the time since 1970 when the caller's clock reads zero.
    #[staticmethod]
    fn ki(side: &str, session_id: u16, epoch: f64, now: f64) -> PyResult<Self> {
        let (side, epoch, now) = (side_of(side)?, time(epoch)?, time(now)?);
        let machine = match side {
            Side::Client => ki::Connection::client(Arc::new(ki::ClientConfig::new(epoch)), now),
            Side::Server => {
                ki::Connection::server(Arc::new(ki::ServerConfig::new(epoch)), session_id, now)
            }
        };
        Ok(Self { machine: Family::Ki(Box::new(machine)), side })
    }

    /// An MxO connection over UDP, for a session assigned by the margin server. `times` are those
    /// of [`ki`](Self::ki).
    #[staticmethod]
    fn mxo(
        py: Python<'_>,
        side: &str,
        session_id: u32,
        key: [u8; 16],
        character: u64,
        times: (f64, f64),
    ) -> PyResult<Self> {
        let (side, epoch, now) = (side_of(side)?, time(times.0)?, time(times.1)?);
        let session = mxo::Session::new(session_id, SessionKey::new(&key), &random(py)?);
        let machine = match side {
            Side::Client => {
                mxo::Connection::client(mxo::ClientConfig::new(epoch, character), session, now)
            }
            Side::Server => mxo::Connection::server(mxo::ServerConfig::new(epoch), session, now),
        };
        Ok(Self { machine: Family::Mxo(Box::new(machine)), side })
    }

    /// An MxO connection over TCP, on the channel "auth" or "margin". `epoch` is that of
    /// [`ki`](Self::ki).
    #[staticmethod]
    fn mxo_login(
        py: Python<'_>,
        side: &str,
        channel: &str,
        epoch: f64,
        now: f64,
    ) -> PyResult<Self> {
        let (side, epoch, now) = (side_of(side)?, time(epoch)?, time(now)?);
        let channel = match channel {
            "auth" => Channel::Auth,
            "margin" => Channel::Margin,
            other => {
                let text = format!("channel must be \"auth\" or \"margin\", not {other:?}");
                return Err(PyValueError::new_err(text));
            }
        };
        let machine = match side {
            Side::Client => {
                // Servers are silent for as long as their client is in the game.
                let idle_time = Duration::from_secs(30 * 24 * 60 * 60);
                let config = LoginConfig { idle_time, ..LoginConfig::client(channel, epoch) };
                LoginConnection::client(Arc::new(config), &random(py)?, now)
            }
            Side::Server => {
                let config = LoginConfig::server(channel, epoch);
                LoginConnection::server(Arc::new(config), &random(py)?, now)
            }
        };
        Ok(Self { machine: Family::MxoLogin(Box::new(machine), channel), side })
    }

    /// A TERA connection.
    #[staticmethod]
    fn tera(py: Python<'_>, side: &str, now: f64) -> PyResult<Self> {
        let (side, now) = (side_of(side)?, time(now)?);
        let (config, keys) = (Arc::default(), [random(py)?, random(py)?]);
        let machine = match side {
            Side::Client => tera::Connection::client(config, keys, now),
            Side::Server => tera::Connection::server(config, keys, now),
        };
        Ok(Self { machine: Family::Tera(Box::new(machine)), side })
    }

    /// An Uru connection. Without a key for the service, a client requests an unencrypted
    /// connection, and a server without any keys accepts it. A server given a build admits no
    /// other builds.
    #[staticmethod]
    fn uru(
        py: Python<'_>,
        side: &str,
        service: &str,
        keys: Option<&Bound<'_, PyAny>>,
        build: Option<u32>,
        now: f64,
    ) -> PyResult<Self> {
        let (side, now) = (side_of(side)?, time(now)?);
        let knowledge = Knowledge::read(py, keys, None)?;
        let ring = knowledge.keys.part::<KeyRing>();
        if side == Side::Server {
            let mut config = uru::ServerConfig::new((*ring).clone());
            if ring.is_empty() {
                config.encryption = uru::Encryption::AllowPlain;
            }
            config.builds = build.map_or(uru::BuildPolicy::Any, uru::BuildPolicy::Exact);
            let machine = uru::Connection::server(Arc::new(config), random(py)?, now);
            return Ok(Self { machine: Family::Uru(Box::new(machine)), side });
        }
        let (service, kind) = match service {
            "gatekeeper" => (Service::Gatekeeper, Some(ServerKind::Gatekeeper)),
            "auth" => (Service::Auth, Some(ServerKind::Auth)),
            "game" => (Service::Game, Some(ServerKind::Game)),
            "file" => (Service::File, None),
            other => {
                let text = format!(
                    "service must be \"gatekeeper\", \"auth\", \"game\" or \"file\", not {other:?}"
                );
                return Err(PyValueError::new_err(text));
            }
        };
        let key = kind.and_then(|kind| ring.public(kind).cloned());
        let mut config = uru::ClientConfig::new(service, key);
        if let Some(build) = build {
            match &mut config.connect.data {
                ConnectData::File(data) => data.real_build_id = build,
                _ => config.connect.build_id = build,
            }
        }
        let machine = uru::Connection::client(Arc::new(config), random(py)?, now);
        let machine = machine.map_err(|error| Fault::of(Class::Encode, &error).raise(py))?;
        Ok(Self { machine: Family::Uru(Box::new(machine)), side })
    }

    /// Handles bytes from the other side's stream; over UDP, a datagram.
    fn receive(&mut self, data: Cow<'_, [u8]>, now: f64) -> PyResult<()> {
        let (from, now) = (self.side.other(), time(now)?);
        let input = match &self.machine {
            Family::Mxo(_) => Input::Datagram(&data),
            _ => Input::Bytes(&data),
        };
        each!(&mut self.machine, it => it.input(now, from, input));
        Ok(())
    }

    /// Handles the end of the other side's stream.
    fn receive_end(&mut self, now: f64) -> PyResult<()> {
        let (from, now) = (self.side.other(), time(now)?);
        each!(&mut self.machine, it => it.input(now, from, Input::End));
        Ok(())
    }

    /// Handles deadlines that have passed.
    fn timeout(&mut self, now: f64) -> PyResult<()> {
        let now = time(now)?;
        each!(&mut self.machine, it => it.timeout(now));
        Ok(())
    }

    /// The time at which to call `timeout`.
    fn next_timeout(&self) -> Option<f64> {
        let at = each!(&self.machine, it => it.poll_timeout());
        at.map(|at| at.as_secs_f64())
    }

    /// The next bytes to send; over UDP, one datagram.
    fn transmit<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let to = self.side.other();
        let bytes = each!(&mut self.machine, it => it.poll_transmit(to));
        bytes.map(|bytes| PyBytes::new(py, &bytes))
    }

    /// The events since the last call.
    fn events<'py>(&mut self, py: Python<'py>) -> Vec<Shown<'py>> {
        let mut all = Vec::new();
        match &mut self.machine {
            Family::Ki(it) => collect(&mut **it, &mut all, |piece| {
                let message = piece.bytes.get(piece.message.clone()).unwrap_or_default();
                ("ki.dml", message.to_vec())
            }),
            Family::Mxo(it) => collect(&mut **it, &mut all, |piece| match piece.unit {
                mxo::Unit::Rpc { .. } => ("mxo.rpc", rpc(piece.bytes)),
                _ => ("mxo.objects", piece.bytes.to_vec()),
            }),
            Family::MxoLogin(it, _) => collect(&mut **it, &mut all, |piece| {
                let codec = match piece.channel {
                    Channel::Auth => "mxo.auth",
                    Channel::Margin => "mxo.margin",
                };
                (codec, piece.bytes.to_vec())
            }),
            Family::Tera(it) => {
                collect(&mut **it, &mut all, |piece| ("tera.packet", piece.bytes.to_vec()));
            }
            Family::Uru(it) => collect(&mut **it, &mut all, |piece| {
                let codec = match piece.unit {
                    uru::Unit::Message(Service::Gatekeeper) => "uru.gatekeeper",
                    uru::Unit::Message(Service::Auth) => "uru.auth",
                    uru::Unit::Message(Service::Game) => "uru.game",
                    _ => "uru.file",
                };
                (codec, piece.bytes.to_vec())
            }),
        }
        let show = |seen: Seen| {
            let Seen { kind, from, codec, bytes, text } = seen;
            (kind, from.map(Side::name), codec, PyBytes::new(py, &bytes), text)
        };
        all.into_iter().map(show).collect()
    }

    /// Queues an encoded message.
    fn send(&mut self, py: Python<'_>, data: Cow<'_, [u8]>) -> PyResult<()> {
        let sent = self.send_bytes(&data);
        sent.map_err(|error| {
            let fault = match &error {
                SendError::Encode(error) => Fault::of(Class::Encode, error),
                error => Fault::new(Class::Encode, error),
            };
            fault.raise(py)
        })
    }

    /// From now on, encrypts an MxO connection on the margin channel.
    fn set_key(&mut self, key: [u8; 16]) -> PyResult<()> {
        let Family::MxoLogin(it, _) = &mut self.machine else {
            return Err(PyValueError::new_err("only MxO's margin channel takes a key"));
        };
        it.set_key(SessionKey::new(&key));
        Ok(())
    }

    /// A KI connection's session: its ID, and the seconds and milliseconds of its offer.
    fn ki_session(&self) -> Option<(u16, i64, u32)> {
        let Family::Ki(it) = &self.machine else { return None };
        it.salt().map(|salt| (salt.session_id, salt.seconds, salt.millis))
    }

    /// A likely cause, if the connection ends now.
    fn closing_hint(&self) -> Option<&'static str> {
        let Family::Uru(it) = &self.machine else { return None };
        it.closing_hint()
    }

    /// Ends the connection. Queued bytes can still be sent.
    fn close(&mut self) {
        each!(&mut self.machine, it => it.close());
    }

    #[getter]
    fn is_established(&self) -> bool {
        each!(&self.machine, it => it.is_established())
    }

    #[getter]
    fn is_closed(&self) -> bool {
        each!(&self.machine, it => it.is_closed())
    }

    /// The number of bytes waiting to be sent.
    #[getter]
    fn queued_bytes(&self) -> usize {
        let to = self.side.other();
        each!(&self.machine, it => it.queued_bytes(to))
    }
}

impl Machine {
    fn send_bytes(&mut self, data: &[u8]) -> Result<(), SendError> {
        let limits = Limits::DEFAULT;
        match &mut self.machine {
            Family::Ki(it) => {
                let mut reader = Reader::within(data, &limits);
                let message = RawMessage::decode(&mut reader, false);
                let message = message.map_err(|error| SendError::Encode(Error::closed(error)))?;
                it.sender().send(&message)
            }
            Family::Mxo(it) => {
                let mut reader = Reader::within(data, &limits);
                let message = RpcMessage::decode(&mut reader, Some(self.side));
                let message = message.map_err(|error| SendError::Encode(Error::closed(error)))?;
                it.sender().send(&message)
            }
            Family::MxoLogin(it, channel) => {
                let message = LoginMessage::decode_strictly(data, *channel, self.side);
                let message = message.map_err(|error| SendError::Encode(Error::closed(error)))?;
                it.sender().send(&message)
            }
            Family::Tera(it) => it.sender().send(data),
            Family::Uru(it) => {
                let unknown = || SendError::Encode(Error::invalid("the service is not known yet"));
                let service = it.service().ok_or_else(unknown)?;
                let mut reader = Reader::within(data, &limits);
                let message = Message::decode(service, self.side, &mut reader);
                let message = message.map_err(|error| SendError::Encode(Error::closed(error)))?;
                it.sender().send(&message)
            }
        }
    }
}

/// Collects a connection's events. `content` returns a message's codec and bytes.
fn collect<C: Connection>(
    connection: &mut C,
    all: &mut Vec<Seen>,
    content: impl Fn(&C::Received<'_>) -> (&'static str, Vec<u8>),
) {
    while let Some(event) = connection.poll_event() {
        let seen = |kind, from, text| Seen { kind, from, codec: None, bytes: Vec::new(), text };
        all.push(match event {
            Event::Received(piece) if piece.is_message() => {
                let (codec, bytes) = content(&piece);
                let (from, codec) = (Some(piece.side()), Some(codec.to_owned()));
                Seen { kind: "message", from, codec, bytes, text: String::new() }
            }
            Event::Received(piece) => Seen {
                bytes: piece.bytes().to_vec(),
                ..seen("setup", Some(piece.side()), String::new())
            },
            Event::News(news) => seen("news", None, format!("{news:?}")),
            Event::Gap { side, .. } | Event::Resync { side, .. } => {
                seen("gap", Some(side), String::new())
            }
            Event::Fault { side, error } => seen("fault", Some(side), error.to_string()),
            Event::Closed(reason) => seen("closed", None, reason.to_string()),
        });
    }
}

/// An RPC message with its length, from its opcode and data.
fn rpc(body: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    let message = RpcMessage { is_long: false, body: Cow::Borrowed(body) };
    match message.encode(&mut writer) {
        Ok(()) => writer.into_bytes(),
        Err(_) => body.to_vec(),
    }
}

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>(py: Python<'_>) -> PyResult<[u8; N]> {
    py.import("os")?.getattr("urandom")?.call1((N,))?.extract()
}

fn time(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err("a time must be a non-negative number of seconds"))
}
