//! The margin server and its clients.

use std::sync::Arc;

use worldwire_core::connection::Connection as _;
use worldwire_core::testing::pair::Conditions;
use worldwire_core::{Field as _, Sampler};
use worldwire_mxo::crypt::{KeyUse, PrivateKey};
use worldwire_mxo::login::{
    Background, BackgroundText, Certificate, CreateCharacterRequest, LoadCharacterReply, LoadKind,
    LoginMessage, LoginRefusal, LoginTicket, MarginClientMessage, MarginServerMessage,
    SignedCertificate, is_handle,
};
use worldwire_mxo::types::{Array, Str};

use super::support::{KEYS, Margin, NOW, character, random, ticket};

/// A ticket with another certificate.
fn forged(change: impl FnOnce(&mut Certificate), signer: &PrivateKey) -> LoginTicket {
    let mut ticket = ticket();
    let mut certificate = ticket.certificate.certificate.clone();
    change(&mut certificate);
    ticket.certificate = SignedCertificate::sign(certificate, signer, &mut random(1)).unwrap();
    ticket
}

fn refusal(ticket: LoginTicket) -> Option<LoginRefusal> {
    let mut margin = Margin::new(ticket, None, Conditions::default());
    margin.run();
    assert!(!margin.client.is_open());
    margin.refusal
}

fn request() -> CreateCharacterRequest<'static> {
    let mut request = CreateCharacterRequest::sample(&mut Sampler::new(3));
    request.first_name = Str::new("Thomas").unwrap();
    request
}

#[test]
fn both_sides_agree_on_a_session() {
    let margin = Margin::open();
    assert!(margin.sessions[0].is_some());
    assert_eq!(margin.sessions[0], margin.sessions[1]);
    assert_eq!(margin.server.user_id(), Some(28));
    // Another connection has another key and another session.
    let mut other = Margin::new(ticket(), None, Conditions::default());
    other.server = worldwire_mxo::login::MarginServer::new(
        Arc::new(worldwire_mxo::login::MarginServerConfig {
            key: KEYS.server.public().clone(),
            message_of_the_day: None,
        }),
        random(40),
    );
    other.run();
    assert!(other.client.is_open());
    assert_ne!(margin.sessions[1], other.sessions[1]);
}

#[test]
fn certificates_are_checked() {
    let other = PrivateKey::generate(KeyUse::Server, &mut random(8)).unwrap();
    assert_eq!(refusal(forged(|_| (), &other)), Some(LoginRefusal::UnsignedCertificate));
    let expired = forged(|certificate| certificate.expires = NOW - 1, &KEYS.server);
    assert_eq!(refusal(expired), Some(LoginRefusal::Expired { at: NOW - 1 }));
    let unknown = forged(|certificate| certificate.user_id = 29, &KEYS.server);
    assert!(matches!(refusal(unknown), Some(LoginRefusal::Status(_))));
    let weak = forged(|certificate| certificate.modulus = [0; 96], &KEYS.server);
    assert_eq!(refusal(weak), Some(LoginRefusal::InvalidUserKey));
    let odd = forged(|certificate| certificate.exponent.0 = 3, &KEYS.server);
    assert_eq!(refusal(odd), Some(LoginRefusal::InvalidUserKey));
    // A stolen certificate is worthless without its key, because the challenge cannot be decrypted.
    let key = PrivateKey::generate(KeyUse::User, &mut random(8)).unwrap();
    let mut margin = Margin::new(LoginTicket { key, ..ticket() }, None, Conditions::default());
    margin.run();
    assert!(!margin.client.is_open());
    assert_eq!(margin.news, ["Refused(InvalidSecret)"]);
}

#[test]
fn a_step_cannot_be_skipped() {
    let mut margin = Margin::new(ticket(), None, Conditions::default());
    let load = worldwire_mxo::login::DeleteCharacterRequest { unknown1: 0, character_id: 2 };
    margin.server.handle(MarginClientMessage::from(load.clone()), NOW);
    margin.run();
    assert_eq!(margin.refusal, Some(LoginRefusal::OutOfOrder { opcode: 13 }));
    let mut margin = Margin::open();
    let again = worldwire_mxo::login::CertChallengeResponse { challenge: [0; 16] };
    margin.server.handle(MarginClientMessage::from(again), NOW);
    margin.run();
    assert_eq!(margin.refusal, Some(LoginRefusal::OutOfOrder { opcode: 3 }));
    // A closed machine stays closed.
    margin.refusal = None;
    margin.server.handle(MarginClientMessage::from(load), NOW);
    margin.run();
    assert_eq!(margin.refusal, None);
}

/// L-10: any digest of files is accepted. L-09: statuses have 32 bits.
#[test]
fn a_character_is_claimed_created_deleted_and_loaded() {
    let mut margin = Margin::open();
    margin.client.claim(Str::new("Trinity").unwrap());
    margin.run();
    margin.client.create(request());
    margin.run();
    margin.client.delete(2);
    margin.client.delete(5);
    margin.run();
    assert_eq!(margin.news[0], "Claimed { status: Success (0), character_id: 4294967299 }");
    assert_eq!(margin.news[1], "part 1 Unknown1 (1) Success (0)");
    assert_eq!(margin.news[13], "part 13 End (15) Success (0)");
    assert_eq!(margin.news[14], "Loaded");
    assert_eq!(margin.news[15], "Deleted { status: Success (0), character_id: 2 }");
    // The claim is used up.
    assert_eq!(margin.server.take_claim(), None);
    // L-15: the reply to a deletion has 13 bytes.
    assert_eq!(margin.bodies.last().map(Vec::len), Some(13));
}

/// L-11: names are checked before a query is made; an unused claim can be returned.
#[test]
fn names_follow_rules() {
    for name in ["N", "Neo", "Persephone_12", &"x".repeat(31)] {
        assert!(is_handle(name), "{name}");
    }
    for name in ["", "1Neo", "_Neo", "Ne o", "Néo", &"x".repeat(32)] {
        assert!(!is_handle(name), "{name}");
    }
    let mut margin = Margin::open();
    for name in ["1Neo", "nEo", "Cypher"] {
        margin.client.claim(Str::new(name).unwrap());
        margin.run();
    }
    let status = |line: &String| line.split([':', ',']).nth(1).unwrap().trim().to_owned();
    let found: Vec<String> = margin.news.iter().map(status).collect();
    assert_eq!(found, ["InvalidName (285212678)", "NameInUse (285212673)", "Success (0)"]);
    assert_eq!(margin.server.take_claim().as_deref(), Some("Cypher"));
    // Without a claim, nothing is created.
    margin.client.create(request());
    margin.run();
    assert!(margin.news.last().unwrap().ends_with("InvalidName (285212678)"));
}

/// L-13: the offsets of a new character's texts are not needed to read them.
#[test]
fn odd_offsets_of_texts_are_accepted() {
    let mut margin = Margin::open();
    margin.client.claim(Str::new("Trinity").unwrap());
    margin.run();
    let odd = CreateCharacterRequest { offsets: Array([1, 2, 3, 4]), ..request() };
    let message = MarginClientMessage::from(odd);
    margin.pair.client.send(&LoginMessage::MarginClient(Box::new(message))).unwrap();
    margin.run();
    assert_eq!(margin.news.last().map(String::as_str), Some("Loaded"));
}

fn parts(margin: &Margin) -> Vec<LoadCharacterReply<'_>> {
    let part = |body: &'_ Vec<u8>| -> Option<LoadCharacterReply<'static>> {
        let message = LoginMessage::decode_strictly(
            body,
            worldwire_mxo::frame::Channel::Margin,
            worldwire_core::Side::Server,
        );
        match message.unwrap() {
            LoginMessage::MarginServer(MarginServerMessage::LoadCharacterReply(part)) => {
                Some(part.into_owned())
            }
            _ => None,
        }
    };
    margin.bodies.iter().filter_map(part).collect()
}

/// L-16: the last part is the message of the day, or empty. L-17: a new character has no
/// appearance. L-23: kinds without data.
#[test]
fn a_character_arrives_in_numbered_parts() {
    for motd in [None, Some("Welcome")] {
        let mut margin = Margin::new(ticket(), motd, Conditions::default());
        margin.run();
        margin.client.load(2);
        margin.run();
        let parts = parts(&margin);
        let numbers: Vec<u8> = parts.iter().map(|part| part.number).collect();
        assert_eq!(numbers, (1..=13).collect::<Vec<u8>>());
        let last = parts.last().unwrap();
        let kind = if motd.is_some() { LoadKind::MessageOfTheDay } else { LoadKind::End };
        assert_eq!((last.kind, last.code, last.is_last), (kind, 10_000, 1));
        assert!(parts[..12].iter().all(|part| (part.code, part.is_last) == (0, 0)));
        let without: Vec<u8> =
            parts.iter().filter(|part| part.data.is_none()).map(|part| part.kind.0).collect();
        assert_eq!(without, [1, 3, 9, 14]);
        let background = |parts: &[LoadCharacterReply<'_>]| match &parts[1].data {
            Some(worldwire_mxo::login::LoadData::Background(background)) => background.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(background(&parts), character().background);
        margin.bodies.clear();
        margin.client.claim(Str::new("Trinity").unwrap());
        margin.run();
        margin.client.create(request());
        margin.run();
        let text = Box::new(BackgroundText::sample(&mut Sampler::new(1)));
        let parts = self::parts(&margin);
        assert_eq!(background(&parts), Background { appearance: None, text });
    }
}

/// L-14: the number before the character's ID is ignored. L-31 and L-08 concern the code that
/// manages the characters.
#[test]
fn a_refused_character_is_one_part() {
    let mut margin = Margin::open();
    let odd = worldwire_mxo::login::DeleteCharacterRequest { unknown1: 777, character_id: 2 };
    let message = MarginClientMessage::from(odd);
    margin.pair.client.send(&LoginMessage::MarginClient(Box::new(message))).unwrap();
    margin.client.load(6);
    margin.run();
    assert_eq!(
        margin.news,
        ["Deleted { status: Success (0), character_id: 2 }", "part 1 0 CharacterInUse (184549413)"]
    );
    assert_eq!(margin.bodies.last().map(Vec::len), Some(16));
}

/// L-18: five bytes announce that the hello has arrived.
#[test]
fn the_server_confirms_the_hello() {
    let mut margin = Margin::open();
    margin.server.established();
    margin.run();
    assert_eq!(margin.news, ["Established"]);
    assert_eq!(margin.bodies.last().unwrap(), &[17, 0, 0, 0, 0]);
}
