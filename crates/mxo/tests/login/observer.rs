//! Observers of both sides of a login.

use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{Connection as _, Event, Input};
use worldwire_mxo::connection::MissingKey;
use worldwire_mxo::crypt::{KnownSession, SessionKey};
use worldwire_mxo::frame::Channel;
use worldwire_mxo::login::{LoginConnection, LoginNews, name};
use worldwire_mxo::types::Str;

use crate::support::{Margin, auth_streams};

/// What an observer reports about two streams, read in chunks of this size.
fn observe(
    sessions: Vec<KnownSession>,
    streams: &[Vec<u8>; 2],
    chunk: usize,
) -> (Vec<String>, Vec<LoginNews>, Option<u32>) {
    let mut observer = LoginConnection::observer(sessions.into());
    let (mut seen, mut news) = (Vec::new(), Vec::new());
    for (side, stream) in Side::BOTH.into_iter().zip(streams) {
        for bytes in stream.chunks(chunk) {
            observer.input(Duration::ZERO, side, Input::Bytes(bytes));
            while let Some(event) = observer.poll_event() {
                match event {
                    Event::Received(received) => {
                        let opcode = received.bytes[0];
                        let name = name(received.channel, received.side, opcode);
                        assert_eq!(received.side, side);
                        seen.push(match received.is_sealed {
                            true => format!("sealed {}", received.range.end - received.range.start),
                            false => {
                                received.message().unwrap();
                                name.unwrap().to_owned()
                            }
                        });
                    }
                    Event::News(it) => news.push(it),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    (seen, news, observer.opened_with().and_then(|session| session.id))
}

#[test]
fn observers_decrypt_with_the_sessions_key() {
    let mut margin = Margin::open();
    margin.client.claim(Str::new("Trinity").unwrap());
    margin.run();
    let (id, key) = margin.sessions[1].unwrap();
    let streams = &margin.pair.written;
    let known = KnownSession { id: Some(id), key: SessionKey::new(&key) };
    let other = KnownSession { id: None, key: SessionKey::new(&[9; 16]) };
    for chunk in [1, 7, usize::MAX] {
        let sessions = vec![other.clone(), known.clone()];
        let (seen, news, opened) = observe(sessions, streams, chunk);
        let wanted = [
            "CertConnectRequest",
            "CertChallengeResponse",
            "ConnectRequest",
            "ConnectChallengeResponse",
            "ClaimCharacterNameRequest",
            "CertChallenge",
            "CertConnectReply",
            "ConnectChallenge",
            "ConnectReply",
            "ClaimCharacterNameReply",
        ];
        assert_eq!(seen, wanted);
        assert_eq!((news.len(), opened), (0, Some(id)));
    }
    // Without the key, the messages are reported, but still encrypted.
    let missing = [(vec![], MissingKey::NotGiven), (vec![other], MissingKey::NoneFits { keys: 1 })];
    for (sessions, missing) in missing {
        let (seen, news, opened) = observe(sessions, streams, 64);
        assert_eq!(seen.iter().filter(|name| name.starts_with("sealed ")).count(), 8, "{seen:?}");
        assert_eq!((seen[0].as_str(), opened), ("CertConnectRequest", None));
        assert_eq!(news, [LoginNews::KeysNeeded { side: Side::Client, missing }]);
    }
}

#[test]
fn observers_recognise_the_channel() {
    let (seen, news, _) = observe(Vec::new(), &auth_streams(), 5);
    let wanted = [
        "GetPublicKeyRequest",
        "AuthRequest",
        "AuthChallengeResponse",
        "GetPublicKeyReply",
        "AuthChallenge",
        "AuthReply",
    ];
    assert_eq!((seen, news), (wanted.map(str::to_owned).to_vec(), Vec::new()));
    let mut observer = LoginConnection::observer(Vec::new().into());
    observer.input(
        Duration::ZERO,
        Side::Client,
        Input::Bytes(&[9, 6, 0xd9, 0x21, 7, 0, 4, 0, 0, 0]),
    );
    let event = observer.poll_event();
    let Some(Event::Received(received)) = event else { panic!("{event:?}") };
    assert_eq!(received.channel, Channel::Auth);
    // Nothing can be sent.
    observer.close();
    assert!(observer.poll_transmit(Side::Server).is_none());
}
