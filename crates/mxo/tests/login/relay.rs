//! A relay between both ends of a login.

use core::ops::Range;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use worldwire_core::connection::{
    Bounds, CloseReason, Connection as _, Decision, Event, Forward as _, Inject as _, Input,
    Piece as _, SendError, Timer,
};
use worldwire_core::testing::holding::{Family, check};
use worldwire_core::testing::pair::{Conditions, Pair};
use worldwire_core::{Side, Writer};
use worldwire_mxo::connection::MissingKey;
use worldwire_mxo::crypt::{KeyUse, KnownSession, PrivateKey, SessionKey};
use worldwire_mxo::file::PublicKeyFile;
use worldwire_mxo::frame::Channel;
use worldwire_mxo::login::{
    AuthReply, AuthServerMessage, CertChallenge, CertConnectRequest, ClaimCharacterNameReply,
    GetPublicKeyRequest, KnownAccount, LoginConnection, LoginKeys, LoginMessage, LoginNews,
    LoginReceived, LoginRefusal, LoginRelayConfig, LoginSender, LoginStatus, LoginTicket,
    MarginServerMessage, OwnLoginKeys, SecretFault, name,
};
use worldwire_mxo::types::{Bytes16, Str};

use crate::support::{
    AuthEnd, KEYS, Margin, auth_config, client_config, ends, log_in_over, public_key, random, send,
    ticket,
};

/// A relay's own key, which clients trust.
static OWN: LazyLock<(PrivateKey, PublicKeyFile)> = LazyLock::new(|| {
    let mut random = random(7);
    let key = PrivateKey::generate(KeyUse::Server, &mut random).unwrap();
    let file = PublicKeyFile::sign(5, key.public(), &KEYS.signing, &mut random).unwrap();
    (key, file)
});

const CHUNKS: [usize; 3] = [1, 50, 0];

fn in_chunks(segment: usize) -> Conditions {
    Conditions { segment, ..Conditions::default() }
}

fn servers_key() -> Option<LoginKeys> {
    Some(LoginKeys::Server(Box::new(KEYS.server.clone())))
}

fn own_key(server: Option<PublicKeyFile>) -> Option<LoginKeys> {
    let (key, public_key) = OWN.clone();
    Some(LoginKeys::Own(Box::new(OwnLoginKeys { key, public_key, server })))
}

fn relay(keys: Option<LoginKeys>, sessions: Vec<KnownSession>) -> LoginConnection {
    let config = LoginRelayConfig::new(sessions.into());
    let relay = LoginConnection::relay(&config, &[6; 16], Duration::ZERO);
    match keys {
        Some(keys) => relay.with_keys(Arc::new(keys), random(8)),
        None => relay,
    }
}

fn relayed(
    channel: Channel,
    keys: Option<LoginKeys>,
    conditions: Conditions,
) -> Pair<LoginConnection> {
    let [client, server] = ends(channel);
    Pair::relayed(client, relay(keys, Vec::new()), server, conditions)
}

/// Everything that a relay has reported.
#[derive(Debug, Default)]
struct Seen {
    messages: Vec<String>,
    /// The range of every piece, by side.
    pieces: [Vec<Range<u64>>; 2],
    news: Vec<LoginNews>,
    faults: Vec<String>,
}

impl Seen {
    fn note(&mut self, event: &Event<LoginReceived<'_>, LoginNews>) {
        match event {
            Event::Received(received) => {
                self.pieces[received.side.index()].push(received.range());
                let opcode = received.bytes[0];
                self.messages.push(match received.is_sealed {
                    true => "sealed".to_owned(),
                    false => name(received.channel, received.side, opcode).unwrap().to_owned(),
                });
            }
            Event::News(news) => self.news.push(news.clone()),
            Event::Fault { error, .. } => self.faults.push(error.to_string()),
            _ => {}
        }
    }

    /// Checks that the pieces of each side cover everything it has written, without gaps or
    /// overlaps.
    fn check_tiling(&self, written: &[Vec<u8>; 2]) {
        for (pieces, written) in self.pieces.iter().zip(written) {
            let mut end = 0;
            for piece in pieces {
                assert_eq!(piece.start, end);
                end = piece.end;
            }
            assert_eq!(end, written.len() as u64);
        }
    }

    fn account(&self) -> Arc<KnownAccount> {
        let account = self.news.iter().find_map(|news| match news {
            LoginNews::Account(account) => Some(Arc::clone(account)),
            _ => None,
        });
        account.unwrap()
    }
}

/// Logs in through a relay.
fn log_in(
    pair: &mut Pair<LoginConnection>,
    client_key: Option<PublicKeyFile>,
    decide: impl Fn(&LoginReceived<'_>, &mut LoginSender),
) -> (AuthEnd, Seen) {
    let mut seen = Seen::default();
    let mut config = client_config("neo", "zion");
    config.public_key = client_key;
    let end = log_in_over(pair, auth_config(), config, &mut |event, sender| {
        seen.note(&event);
        if let Event::Received(received) = &event {
            decide(received, sender);
        }
    });
    (end, seen)
}

fn pass(_: &LoginReceived<'_>, _: &mut LoginSender) {}

/// A login at a margin server through a relay. The relay's reports are added to the list.
fn margin(
    pair: Pair<LoginConnection>,
    ticket: LoginTicket,
    account: Option<Arc<KnownAccount>>,
    decide: impl Fn(&LoginReceived<'_>, &mut LoginSender) + Send + 'static,
) -> (Margin, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut margin = Margin::over(pair, ticket, None);
    margin.accounts.extend(account);
    let shared = Arc::clone(&seen);
    margin.on_relay = Box::new(move |event, sender| {
        shared.lock().unwrap().note(&event);
        if let Event::Received(received) = &event {
            decide(received, sender);
        }
    });
    margin.run();
    (margin, seen)
}

const AUTH: [&str; 6] = [
    "GetPublicKeyRequest",
    "GetPublicKeyReply",
    "AuthRequest",
    "AuthChallenge",
    "AuthChallengeResponse",
    "AuthReply",
];
const OPENING: [&str; 8] = [
    "CertConnectRequest",
    "CertChallenge",
    "CertChallengeResponse",
    "CertConnectReply",
    "ConnectRequest",
    "ConnectChallenge",
    "ConnectChallengeResponse",
    "ConnectReply",
];

fn body(message: &LoginMessage<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    message.encode(&mut writer).unwrap();
    writer.into_bytes()
}

#[test]
fn a_login_passes_byte_for_byte_with_the_servers_key() {
    for segment in CHUNKS {
        let mut pair = relayed(Channel::Auth, servers_key(), in_chunks(segment));
        let (end, seen) = log_in(&mut pair, Some(public_key()), pass);
        assert_eq!(seen.messages, AUTH);
        assert_eq!(pair.arrived, pair.written);
        seen.check_tiling(&pair.written);
        assert_eq!((seen.news.len(), seen.faults.len()), (1, 0), "{seen:?}");
        let ticket = end.outcome.unwrap().unwrap();
        let account = seen.account();
        assert_eq!(account.certificate, ticket.certificate);
        assert_eq!(account.key.exponent(), ticket.key.exponent());

        let pair = relayed(Channel::Margin, servers_key(), in_chunks(segment));
        let (mut margin, seen) = margin(pair, ticket, Some(account), pass);
        margin.client.load(2);
        margin.run();
        let seen = seen.lock().unwrap();
        assert_eq!(seen.messages[..8], OPENING);
        assert_eq!(seen.messages[8], "LoadCharacterRequest");
        assert!(seen.messages[9..].iter().all(|name| name == "LoadCharacterReply"));
        assert!(margin.news.last().unwrap().ends_with("Loaded"), "{:?}", margin.news);
        assert_eq!(margin.pair.arrived, margin.pair.written);
        seen.check_tiling(&margin.pair.written);
        // The session that the game channel's relay needs.
        let (id, key) = margin.sessions[1].unwrap();
        let session = KnownSession { id: Some(id), key: SessionKey::new(&key) };
        assert_eq!(margin.pair.relay.as_ref().unwrap().opened_with(), Some(&session));
        let session = Arc::new(session);
        assert_eq!(seen.news, [LoginNews::Character { id: 2, session }]);
        assert_eq!(seen.faults, [""; 0]);
    }
}

#[test]
fn a_relays_own_key_stands_in_for_the_servers() {
    for (segment, server, client_key) in [
        (1, Some(public_key()), Some(OWN.1.clone())),
        // Either side may have to ask for the key.
        (50, None, None),
        (0, None, Some(OWN.1.clone())),
        (0, Some(public_key()), None),
    ] {
        let mut pair = relayed(Channel::Auth, own_key(server.clone()), in_chunks(segment));
        let (end, seen) = log_in(&mut pair, client_key, pass);
        assert_eq!(seen.messages, AUTH);
        assert_eq!((seen.news.len(), seen.faults.len()), (1, 0), "{seen:?}");
        seen.check_tiling(&pair.written);
        let (ticket, account) = (end.outcome.unwrap().unwrap(), seen.account());
        // The client's certificate is the relay's, with the same contents.
        assert!(ticket.certificate.is_signed_by(OWN.0.public()));
        assert!(account.certificate.is_signed_by(KEYS.server.public()));
        assert_eq!(ticket.certificate.certificate, account.certificate.certificate);

        let pair = relayed(Channel::Margin, own_key(server), in_chunks(segment));
        let (margin, seen) = margin(pair, ticket, Some(account), pass);
        assert!(margin.client.is_open(), "{:?} {:?}", margin.refusal, margin.fault);
        assert_eq!(seen.lock().unwrap().messages, OPENING);
        let known = margin.pair.relay.as_ref().unwrap().opened_with().unwrap();
        assert_eq!(*known.key.as_bytes(), margin.sessions[1].unwrap().1);
    }
}

/// A relay that replaces certificates must not make a forged one valid.
#[test]
fn a_forged_certificate_stays_forged() {
    let mut pair = relayed(Channel::Auth, own_key(None), Conditions::default());
    let (end, seen) = log_in(&mut pair, Some(OWN.1.clone()), pass);
    let (ticket, account) = (end.outcome.unwrap().unwrap(), seen.account());
    let mut signature = ticket.clone();
    signature.certificate.signature[5] ^= 1;
    let mut contents = ticket;
    contents.certificate.certificate.user_id += 1;
    for forged in [signature, contents] {
        let pair = relayed(Channel::Margin, own_key(None), Conditions::default());
        let (margin, _) = margin(pair, forged, Some(Arc::clone(&account)), pass);
        assert_eq!(margin.refusal, Some(LoginRefusal::UnsignedCertificate));
    }
}

#[test]
fn names_are_changed_on_their_way() {
    fn rename(received: &LoginReceived<'_>, sender: &mut LoginSender) {
        let mut message = received.message().unwrap();
        match &mut message {
            LoginMessage::AuthServer(reply) => {
                let AuthServerMessage::AuthReply(AuthReply { success, .. }) = &mut **reply else {
                    return;
                };
                let characters = &mut success.as_mut().unwrap().characters.0;
                characters[0].handle = Str::new("Thomas").unwrap();
            }
            LoginMessage::MarginServer(MarginServerMessage::ClaimCharacterNameReply(reply)) => {
                reply.handle = Str::new("Trin").unwrap();
            }
            _ => return,
        }
        sender.forward(Decision::instead(body(&message))).unwrap();
    }
    for (keys, client_key) in [(servers_key(), public_key()), (own_key(None), OWN.1.clone())] {
        let mut pair = relayed(Channel::Auth, keys.clone(), in_chunks(1));
        let (end, seen) = log_in(&mut pair, Some(client_key), rename);
        let ticket = end.outcome.unwrap().unwrap();
        assert_eq!(ticket.characters[0].handle.text(), "Thomas");
        let pair = relayed(Channel::Margin, keys, in_chunks(1));
        let (mut margin, _) = margin(pair, ticket, Some(seen.account()), rename);
        margin.client.claim(Str::new("Trinity").unwrap());
        margin.run();
        let message = margin.bodies.last().unwrap();
        let message =
            LoginMessage::decode_strictly(message, Channel::Margin, Side::Server).unwrap();
        let LoginMessage::MarginServer(MarginServerMessage::ClaimCharacterNameReply(
            ClaimCharacterNameReply { handle, status, .. },
        )) = message
        else {
            panic!("{message:?}")
        };
        assert_eq!((handle.text(), status), ("Trin".to_owned(), LoginStatus::Success));
    }
}

#[test]
fn messages_are_dropped_and_added() {
    let ticket = ticket();
    let account = KnownAccount { certificate: ticket.certificate.clone(), key: ticket.key.clone() };
    let drop_claims = |received: &LoginReceived<'_>, sender: &mut LoginSender| {
        if received.bytes[0] == 10 && received.side == Side::Client {
            sender.forward(Decision::Drop).unwrap();
        }
    };
    let pair = relayed(Channel::Margin, servers_key(), in_chunks(1));
    let (mut margin, _) = margin(pair, ticket, Some(Arc::new(account)), drop_claims);
    let before = margin.bodies.len();
    margin.client.claim(Str::new("Trinity").unwrap());
    margin.run();
    assert_eq!(margin.bodies.len(), before, "the server never saw the request");
    // The relay asks in the client's place.
    let claim = [&[10, 3, 0, 8, 0][..], b"Trinity\0"].concat();
    let relay = margin.pair.relay.as_mut().unwrap();
    relay.sender().inject(Side::Server, &claim).unwrap();
    margin.run();
    assert_eq!(margin.bodies.len(), before + 1);
    assert_eq!(margin.bodies.last().unwrap()[0], 11);
    let relay = margin.pair.relay.as_mut().unwrap().sender();
    // A reply without its fields.
    let refused = relay.inject(Side::Client, &[11]).unwrap_err();
    assert!(matches!(refused, SendError::Encode(_)), "{refused}");
    assert!(matches!(relay.inject(Side::Server, &[]), Err(SendError::Encode(_))));
}

#[test]
fn nothing_is_added_before_the_challenge() {
    let ticket = ticket();
    let account = KnownAccount { certificate: ticket.certificate.clone(), key: ticket.key.clone() };
    let early = |received: &LoginReceived<'_>, sender: &mut LoginSender| {
        let refused = sender.inject(Side::Client, &[0x77]);
        match received.encrypted {
            true => refused.unwrap(),
            false => assert_eq!(refused, Err(SendError::NotEstablished)),
        }
    };
    let pair = relayed(Channel::Margin, servers_key(), Conditions::default());
    let (margin, _) = margin(pair, ticket, Some(Arc::new(account)), early);
    // Clients ignore opcodes without a layout.
    assert!(margin.client.is_open());
    assert_eq!(margin.bodies.iter().filter(|body| body[..] == [0x77]).count(), 6);
}

/// With other keys, the conversation is forwarded but stays encrypted.
#[test]
fn other_keys_read_nothing() {
    let other = Some(LoginKeys::Server(Box::new(OWN.0.clone())));
    let mut pair = relayed(Channel::Auth, other.clone(), in_chunks(50));
    let (end, seen) = log_in(&mut pair, Some(public_key()), pass);
    let ticket = end.outcome.unwrap().unwrap();
    let fault = SecretFault::OtherServerKey;
    assert_eq!(seen.news, [LoginNews::Unopened { side: Side::Client, fault }]);
    assert_eq!(pair.arrived, pair.written);

    let wrong = KnownSession { id: None, key: SessionKey::new(&[9; 16]) };
    let [client, server] = ends(Channel::Margin);
    let pair = Pair::relayed(client, relay(other, vec![wrong]), server, in_chunks(50));
    let touch = |received: &LoginReceived<'_>, sender: &mut LoginSender| {
        if received.is_sealed {
            let refused = sender.forward(Decision::instead(&[0x77][..])).unwrap_err();
            assert!(matches!(refused, SendError::Unchangeable(_)), "{refused}");
            assert_eq!(sender.inject(Side::Client, &[0x77]), Err(SendError::NotEstablished));
        }
    };
    let (margin, seen) = margin(pair, ticket, None, touch);
    assert!(margin.client.is_open());
    assert_eq!(margin.pair.arrived, margin.pair.written);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.messages[..3], ["CertConnectRequest", "CertChallenge", "sealed"]);
    let missing = MissingKey::NoneFits { keys: 1 };
    assert_eq!(
        seen.news,
        [
            LoginNews::Unopened { side: Side::Client, fault: SecretFault::UnknownAccount },
            LoginNews::KeysNeeded { side: Side::Client, missing },
        ]
    );
}

/// Some servers do not send their key.
#[test]
fn a_missing_server_key_is_reported() {
    let mut pair = relayed(Channel::Auth, own_key(None), Conditions::default());
    let (mut server, mut client) = (auth_config(), client_config("neo", "zion"));
    // The relay sends this ID in its request, so the server assumes that the client has the key.
    server.public_key.key_id = 0;
    client.public_key = Some(OWN.1.clone());
    let mut seen = Seen::default();
    let end = log_in_over(&mut pair, server, client, &mut |event, _| seen.note(&event));
    let fault = SecretFault::NoServerKey;
    assert_eq!(seen.news, [LoginNews::Unopened { side: Side::Client, fault }]);
    assert_eq!(end.refusal, Some(LoginRefusal::OtherServerKey));
}

/// Feeds bytes to a relay. Returns the faults and the bytes to send to each side.
fn feed(relay: &mut LoginConnection, from: Side, bytes: &[u8]) -> (Vec<String>, [Vec<u8>; 2]) {
    relay.input(Duration::ZERO, from, Input::Bytes(bytes));
    poll(relay)
}

fn poll(relay: &mut LoginConnection) -> (Vec<String>, [Vec<u8>; 2]) {
    let mut seen = Seen::default();
    while let Some(event) = relay.poll_event() {
        seen.note(&event);
    }
    let left = Side::BOTH
        .map(|to| std::iter::from_fn(|| relay.poll_transmit(to)).flatten().collect::<Vec<_>>());
    (seen.faults, left)
}

#[test]
fn damaged_streams_are_forwarded_unread() {
    let foreign = b"GET / HTTP/1.1\r\n\r\n";
    for (bytes, wanted) in [
        (&foreign[..], "wanted a whole message, found 18 bytes of one"),
        (&[0, 0, 0][..], "length at byte 0: wanted a body of at least 1 byte, found none"),
        (&[3, 0xee, 1, 2][..], "wanted the beginning of a login, found a different message"),
    ] {
        let mut relay = relay(servers_key(), Vec::new());
        let (mut faults, [_, mut left]) = feed(&mut relay, Side::Client, bytes);
        relay.input(Duration::ZERO, Side::Client, Input::End);
        let (more, [_, rest]) = poll(&mut relay);
        faults.extend(more);
        left.extend(rest);
        assert_eq!(left, bytes, "{faults:?}");
        assert!(faults.len() == 1 && faults[0].ends_with(wanted), "{faults:?}");
        // The server's answer is forwarded unread, too, whatever it is.
        let (_, [left, _]) = feed(&mut relay, Side::Server, &[0, 9]);
        assert_eq!(left, [0, 9]);
        assert!(!relay.is_closed());
    }
}

#[test]
fn torn_and_damaged_messages_are_reported() {
    // A request and the beginning of another one.
    let request = [9, 6, 1, 0, 7, 0, 4, 0, 0, 0];
    let mut torn = relay(servers_key(), Vec::new());
    feed(&mut torn, Side::Client, &[&request[..], &[9, 6, 1]].concat());
    torn.input(Duration::ZERO, Side::Client, Input::End);
    let (faults, left) = poll(&mut torn);
    let wanted = "byte 10: wanted a whole message, found 3 bytes of one";
    assert!(faults.len() == 1 && faults[0].ends_with(wanted), "{faults:?}");
    assert_eq!(left[Side::Server.index()], [9, 6, 1]);

    // A margin conversation whose client sends damaged messages.
    let ticket = ticket();
    let account = KnownAccount { certificate: ticket.certificate.clone(), key: ticket.key.clone() };
    let pair = relayed(Channel::Margin, servers_key(), Conditions::default());
    let (mut margin, _) = margin(pair, ticket, Some(Arc::new(account)), pass);
    let relay = margin.pair.relay.as_mut().unwrap();
    let damaged = [&[48][..], &[7; 48]].concat();
    let (faults, left) = feed(relay, Side::Client, &damaged);
    assert!(faults.len() == 1 && faults[0].contains("found"), "{faults:?}");
    assert_eq!(left[Side::Server.index()], damaged);
    let refused = relay.sender().inject(Side::Server, &[0x77]).unwrap_err();
    assert_eq!(refused, SendError::Unread);
    // The other direction is still read.
    relay.sender().inject(Side::Client, &[0x77]).unwrap();
}

#[test]
fn a_silent_client_is_closed() {
    let mut relay = relay(None, Vec::new());
    assert_eq!(relay.poll_timeout(), Some(Duration::from_secs(15)));
    relay.timeout(Duration::from_secs(15));
    let closed = relay.poll_event().unwrap();
    assert!(matches!(closed, Event::Closed(CloseReason::Timeout(Timer::Setup))), "{closed:?}");
    let mut relay = self::relay(None, Vec::new());
    feed(&mut relay, Side::Client, &[9, 6, 1, 0, 7, 0, 4, 0, 0, 0]);
    assert_eq!(relay.poll_timeout(), None);
}

/// While an account is being looked up, input is bounded.
#[test]
fn a_relay_does_not_wait_for_ever() {
    let ticket = ticket();
    let request = CertConnectRequest { certificate: ticket.certificate };
    let request = body(&LoginMessage::MarginClient(Box::new(request.into())));
    let frame = [&[0x81, 0x3b][..], &request].concat();
    let mut waiting = relay(servers_key(), Vec::new());
    assert_eq!(feed(&mut waiting, Side::Client, &frame).1, <[Vec<u8>; 2]>::default());
    assert!(waiting.wanted_account().is_some());
    let long = [&[0xff, 0xff][..], &[6; 0x7fff]].concat().repeat(3);
    let (_, left) = feed(&mut waiting, Side::Client, &long);
    assert!(waiting.wanted_account().is_none());
    assert_eq!(left[Side::Server.index()], [frame.clone(), long].concat());

    let mut ended = relay(servers_key(), Vec::new());
    feed(&mut ended, Side::Client, &frame);
    ended.input(Duration::ZERO, Side::Client, Input::End);
    assert_eq!(poll(&mut ended).1[Side::Server.index()], frame);
}

/// Two ends of this channel and a relay that can read their messages.
fn numbered_pair(channel: Channel, bounds: Bounds) -> Pair<LoginConnection> {
    let key = SessionKey::new(&[5; 16]);
    let known = KnownSession { id: None, key: key.clone() };
    let config = LoginRelayConfig { bounds, ..LoginRelayConfig::new([known].into()) };
    let [client, server] = ends(channel);
    let relay = LoginConnection::relay(&config, &[6; 16], Duration::ZERO);
    let mut pair = Pair::relayed(client, relay, server, Conditions::default());
    if channel == Channel::Auth {
        let request = GetPublicKeyRequest { client_version: 7, key_id: 4 };
        send(&mut pair.client, LoginMessage::AuthClient(request.into()));
        pair.settle(|_, _, _| {});
        send(&mut pair.server, numbered(0));
    } else {
        let request = CertConnectRequest { certificate: ticket().certificate };
        send(&mut pair.client, LoginMessage::MarginClient(Box::new(request.into())));
        pair.settle(|_, _, _| {});
        let challenge = CertChallenge { blob: Bytes16(vec![1; 96].into()) };
        send(&mut pair.server, LoginMessage::MarginServer(challenge.into()));
        pair.settle(|_, _, _| {});
        pair.client.set_key(key.clone());
        pair.server.set_key(key);
    }
    pair.settle(|_, _, _| {});
    pair
}

/// A message without a layout.
fn numbered(number: u8) -> LoginMessage<'static> {
    LoginMessage::Other { opcode: 0x77, data: vec![number; 20].into() }
}

#[test]
fn holding_keeps_its_promises() {
    for channel in [Channel::Auth, Channel::Margin] {
        check(&Family {
            pair: &|bounds| numbered_pair(channel, bounds),
            say: &|end, _, number| send(end, numbered(number)),
            number: &|_, bytes| Some(*bytes.get(20)?).filter(|_| bytes[0] == 0x77),
            replacement: &|_, _, number| body(&numbered(number)),
            // The ends wait for a minute, and one of them is silent for twice this long.
            patience: Duration::from_secs(25),
        });
    }
}
