//! Logins, message by message, so that a test can send anything at any point.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use worldwire_core::{Side, Writer};
use worldwire_mxo::crypt::{Random, SessionKey};
use worldwire_mxo::frame::{Channel, MarginText, TcpFrame};
use worldwire_mxo::login::{
    AuthClient, AuthReply, AuthServerMessage, LoginMessage, LoginTicket, MarginClient,
    MarginClientAction, MarginClientMessage,
};

use crate::server::{PASSWORD, PATIENCE, Server};

/// A connection to the auth or margin server.
pub(crate) struct RawChannel {
    stream: TcpStream,
    channel: Channel,
    /// The key of a margin session.
    pub(crate) key: Option<SessionKey>,
    /// All frames sent so far.
    pub(crate) sent: Vec<Vec<u8>>,
}

impl RawChannel {
    pub(crate) async fn dial(server: SocketAddr, channel: Channel) -> Self {
        let stream = TcpStream::connect(server).await.unwrap();
        Self { stream, channel, key: None, sent: Vec::new() }
    }

    /// Logs in to the auth server and returns all frames that the client sent.
    pub(crate) async fn auth_frames(server: &Server, account: &str) -> Vec<Vec<u8>> {
        let mut this = Self::dial(server.auth, Channel::Auth).await;
        let login = server.login(account, PASSWORD);
        let mut client = AuthClient::new(login, Random::new([3; 32]));
        loop {
            while let Some(message) = client.poll() {
                this.send(&encoded(&LoginMessage::AuthClient(message))).await;
            }
            if let Some(outcome) = client.outcome() {
                outcome.unwrap();
                return this.sent;
            }
            match this.receive_message().await {
                LoginMessage::AuthServer(message) => client.handle(&message),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Opens a session on the margin server. `alter` can change what the client sends.
    pub(crate) async fn margin(
        server: &Server,
        ticket: LoginTicket,
        alter: impl Fn(&mut MarginClientMessage<'static>),
    ) -> Option<Self> {
        let mut this = Self::dial(server.margin, Channel::Margin).await;
        let mut client = MarginClient::new(ticket, Random::new([5; 32]));
        loop {
            while let Some(action) = client.poll() {
                match action {
                    MarginClientAction::Send(mut message) => {
                        alter(&mut message);
                        this.send(&encoded(&LoginMessage::MarginClient(Box::new(message)))).await;
                    }
                    MarginClientAction::SetKey(key) => this.key = Some(key),
                    MarginClientAction::Opened { .. } => return Some(this),
                    other => panic!("{other:?}"),
                }
            }
            let body = this.receive().await?;
            match LoginMessage::decode_strictly(&body, Channel::Margin, Side::Server).unwrap() {
                LoginMessage::MarginServer(message) => client.handle(message),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Sends a message, encrypted if there is a key.
    pub(crate) async fn send(&mut self, body: &[u8]) {
        let frame = match &self.key {
            None => TcpFrame::of(body),
            Some(key) => MarginText { time: 0, body: body.into() }.seal(key, &[7; 16]).unwrap(),
        };
        let mut writer = Writer::new();
        frame.encode(&mut writer).unwrap();
        self.send_bytes(writer.as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.sent.push(bytes.to_vec());
        // The server may have closed the connection already.
        let _ = self.stream.write_all(bytes).await;
    }

    /// Waits for a message and decrypts it; `None` at the end of the stream.
    pub(crate) async fn receive(&mut self) -> Option<Vec<u8>> {
        let read = async {
            let mut length = usize::from(self.stream.read_u8().await.ok()?);
            if length >= 0x80 {
                length = (length & 0x7f) << 8 | usize::from(self.stream.read_u8().await.ok()?);
            }
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body).await.ok()?;
            Some(body)
        };
        let body = timeout(PATIENCE, read).await.unwrap()?;
        let Some(key) = &self.key else { return Some(body) };
        let plain = key.open(body[..16].try_into().unwrap(), &body[16..]).unwrap();
        // The message follows the CRC, the length and the time.
        Some(plain[10..].to_vec())
    }

    pub(crate) async fn receive_message(&mut self) -> LoginMessage<'static> {
        let body: &'static [u8] = self.receive().await.unwrap().leak();
        LoginMessage::decode_strictly(body, self.channel, Side::Server).unwrap()
    }

    /// Waits for an auth reply that refuses the login.
    pub(crate) async fn refusal(&mut self) -> AuthReply<'static> {
        match self.receive_message().await {
            LoginMessage::AuthServer(message) => match *message {
                AuthServerMessage::AuthReply(reply) => reply,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// Whether the server closes the connection without another message.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.receive().await.is_none()
    }
}

fn encoded(message: &LoginMessage<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    message.encode(&mut writer).unwrap();
    writer.into_bytes()
}
