//! The wire rules for servers, tested with handwritten bytes.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::{sleep, timeout};
use worldwire_core::{Reader, Side};
use worldwire_ki::control::{Control, SessionOffer};
use worldwire_ki::frame::{Body, Frame};
use worldwire_ki::message::Put;
use worldwire_ki::schema::Protocols;

use crate::stage::Stage;

/// A client that sends raw bytes.
struct Raw {
    stream: DuplexStream,
    bytes: Vec<u8>,
}

const PING: [u8; 4] = [1, 1, 4, 0];

impl Raw {
    fn new(stage: &Stage) -> Self {
        Self { stream: stage.stream().0, bytes: Vec::new() }
    }

    /// A client with a session and the session's ID.
    async fn established(stage: &Stage) -> (Self, u16) {
        let mut raw = Self::new(stage);
        let offer = raw.offer().await;
        raw.accept(offer).await;
        (raw, offer)
    }

    async fn offer(&mut self) -> u16 {
        let frame = self.frame().await.expect("an offer");
        let frame = Frame::decode(&mut Reader::new(&frame), Some(Side::Server)).unwrap();
        match frame.body {
            Body::Control(Control::SessionOffer(SessionOffer { session_id, .. })) => session_id,
            other => panic!("wanted an offer, found {other:?}"),
        }
    }

    async fn accept(&mut self, id: u16) {
        let mut body = vec![1, 5, 0, 0, 0, 0];
        body.extend([0; 12]);
        body.extend(id.to_le_bytes());
        self.send(&body).await;
    }

    /// Sends a body in a frame, without a trailer.
    async fn send(&mut self, body: &[u8]) {
        let mut frame = vec![0x0d, 0xf0];
        frame.extend(u16::try_from(body.len()).unwrap().to_le_bytes());
        frame.extend(body);
        // The server may already have closed the connection.
        let _ = self.stream.write_all(&frame).await;
    }

    /// Sends messages in one frame.
    async fn say(&mut self, messages: &[&[u8]]) {
        let body = [&[0; 4], &*messages.concat()].concat();
        self.send(&body).await;
    }

    /// The next frame; `None` at the end of the stream, or if nothing arrives.
    async fn frame(&mut self) -> Option<Vec<u8>> {
        while self.bytes.len() < 4 || self.bytes.len() < 4 + self.length() {
            let mut piece = [0; 4096];
            let count = timeout(Duration::from_secs(5), self.stream.read(&mut piece));
            match count.await {
                Ok(Ok(count)) if count > 0 => self.bytes.extend(&piece[..count]),
                _ => return None,
            }
        }
        let length = 4 + self.length();
        Some(self.bytes.drain(..length).collect())
    }

    fn length(&self) -> usize {
        usize::from(u16::from_le_bytes([self.bytes[2], self.bytes[3]]))
    }

    /// Counts the pings that the server answers before it stops sending anything.
    async fn pongs(&mut self) -> usize {
        let mut count = 0;
        while let Some(frame) = self.frame().await {
            // K-14: there is always a trailer.
            assert_eq!(frame[4..], [0, 0, 0, 0, 1, 2, 4, 0, 0], "{frame:02x?}");
            count += 1;
        }
        count
    }

    /// Whether the server has closed the connection.
    async fn is_over(&mut self) -> bool {
        while self.frame().await.is_some() {}
        let mut piece = [0; 1];
        matches!(timeout(Duration::from_secs(5), self.stream.read(&mut piece)).await, Ok(Ok(0)))
    }
}

#[tokio::test(start_paused = true)]
async fn k_04_frames_may_hold_several_messages_but_answers_have_one() {
    let stage = Stage::new(|_| ()).await;
    let (mut raw, _) = Raw::established(&stage).await;
    raw.say(&[&PING, &PING, &PING]).await;
    assert_eq!(raw.pongs().await, 3);
}

#[tokio::test(start_paused = true)]
async fn k_06_a_message_that_is_in_no_table_is_ignored() {
    let stage = Stage::new(|_| ()).await;
    let (mut raw, _) = Raw::established(&stage).await;
    // An unknown service, an unknown message of a known service, a server's message, and a
    // truncated message.
    for message in [&[99, 1, 4, 0][..], &[7, 200, 4, 0], &[7, 20, 12, 0, 1, 0, 0, 0, 0, 0, 0, 0]] {
        raw.say(&[message, &PING]).await;
        assert_eq!(raw.pongs().await, 1, "{message:?}");
    }
    raw.say(&[&[7, 6, 6, 0, 1, 2], &PING]).await;
    assert_eq!(raw.pongs().await, 1);
}

#[tokio::test(start_paused = true)]
async fn k_08_an_accept_with_another_id_closes() {
    let stage = Stage::new(|_| ()).await;
    let mut raw = Raw::new(&stage);
    let id = raw.offer().await;
    raw.accept(id + 1).await;
    assert!(raw.is_over().await);
    assert_eq!(stage.door.0.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_not_accepted_in_time_ends() {
    let stage = Stage::new(|_| ()).await;
    let mut raw = Raw::new(&stage);
    raw.offer().await;
    sleep(Duration::from_secs(14)).await;
    assert_eq!(stage.door.0.sessions(), 1);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.door.0.sessions(), 0);
    assert!(raw.is_over().await);
}

#[tokio::test(start_paused = true)]
async fn k_09_a_message_renews_a_stale_session_but_a_keep_alive_does_not() {
    let stage = Stage::new(|_| ()).await;
    let (mut raw, id) = Raw::established(&stage).await;
    raw.say(&[&PING]).await;
    assert_eq!(raw.pongs().await, 1);
    assert_eq!(stage.realm.refresh(None), Ok(1));
    sleep(Duration::from_millis(10)).await;
    let alive = [1, 3, 0, 0, 1, 2, 3, 4, 5, 6];
    raw.send(&alive).await;
    // K-12: the reply has the same form as the request.
    let answer = raw.frame().await.unwrap();
    assert_eq!(answer[4..], [1, 4, 0, 0, 1, 2, 3, 4, 5, 6, 0]);
    raw.say(&[&PING]).await;
    let next = raw.offer().await;
    assert_ne!(next, id);
    raw.accept(next).await;
    assert_eq!(raw.pongs().await, 0, "a message in the stale session was ignored");
    raw.say(&[&PING]).await;
    assert_eq!(raw.pongs().await, 1);
}

#[tokio::test(start_paused = true)]
async fn k_11_messages_before_the_accept_are_queued_within_bounds() {
    let stage = Stage::new(|_| ()).await;
    let mut raw = Raw::new(&stage);
    let id = raw.offer().await;
    for _ in 0..256 {
        raw.say(&[&PING]).await;
    }
    raw.accept(id).await;
    assert_eq!(raw.pongs().await, 256);

    let mut raw = Raw::new(&stage);
    raw.offer().await;
    for _ in 0..257 {
        raw.say(&[&PING]).await;
    }
    assert!(raw.is_over().await);
}

#[tokio::test(start_paused = true)]
async fn k_13_any_message_counts_as_a_sign_of_life() {
    let stage = Stage::new(|_| ()).await;
    let (mut raw, _) = Raw::established(&stage).await;
    // The client answers no keep-alives but sends other messages.
    for _ in 0..10 {
        sleep(Duration::from_secs(40)).await;
        raw.say(&[&PING]).await;
    }
    assert_eq!(stage.door.0.sessions(), 1);
    // Then the client sends nothing more. The server sends one keep-alive, and closes the
    // connection when the next one is due.
    sleep(Duration::from_secs(121)).await;
    assert_eq!(stage.door.0.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn k_24_an_unknown_control_message_is_ignored() {
    let stage = Stage::new(|_| ()).await;
    let (mut raw, _) = Raw::established(&stage).await;
    for opcode in [1, 2, 6, 255] {
        raw.send(&[1, opcode, 0, 0, 1, 2, 3]).await;
    }
    raw.say(&[&PING]).await;
    assert_eq!(raw.pongs().await, 1);
}

#[tokio::test(start_paused = true)]
async fn an_offer_says_that_nothing_is_encrypted() {
    let stage = Stage::new(|_| ()).await;
    let mut raw = Raw::new(&stage);
    let frame = raw.frame().await.unwrap();
    // Current servers send 28 bytes when nothing is encrypted.
    assert_eq!(frame.len(), 28);
    assert_eq!(frame[..8], [0x0d, 0xf0, 24, 0, 1, 0, 0, 0]);
    assert_eq!(frame[22..], [1, 0, 0, 0, 0, 0]);
    let decoded = Frame::decode(&mut Reader::new(&frame), Some(Side::Server)).unwrap();
    assert_eq!(decoded.to_bytes().unwrap(), frame);
}

#[tokio::test(start_paused = true)]
async fn a_disconnect_message_frees_the_clients_slot() {
    let stage = Stage::new(|config| config.limits.players = 1).await;
    // One client in the zone and one at the login server send the message but keep their streams
    // open.
    let (mut login, _) = stage.logged_in("merle").await;
    let plain = worldwire_ki::character::Character::plain("Merle", "Fire", 1);
    login.create(plain.as_bytes()).await.unwrap();
    let character = login.characters().await.unwrap().list[0].global_id();
    let to = login.select(character).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    let (mut zone, _) = Raw::established(&stage).await;
    let attach = Protocols::built_in().compose(
        5,
        "MSG_ATTACH",
        &[
            ("LoginKey", Put::text(&to.key)),
            ("UserID", Put::from(to.user)),
            ("CharID", Put::from(to.character)),
        ],
    );
    let attach = attach.unwrap();
    let length = u16::try_from(attach.payload.len() + 4).unwrap().to_le_bytes();
    let head = [attach.service, attach.order, length[0], length[1]];
    zone.say(&[&head, &attach.payload]).await;
    assert!(zone.frame().await.is_some(), "it is in");
    assert_eq!(stage.realm.census().playing, 1);
    let (mut seated, _) = stage.logged_in("other").await;
    seated.characters().await.unwrap();
    assert_eq!(stage.realm.census().admitted, 1);
    let mut next = stage.validated("merle").await;
    seated.send(5, "MSG_CLIENT_DISCONNECT", &[]).await.unwrap();
    zone.say(&[&[5, 40, 4, 0]]).await;
    sleep(Duration::from_millis(10)).await;
    let census = stage.realm.census();
    assert_eq!((census.playing, census.admitted, census.waiting), (0, 1, 0));
    next.wait_until_admitted().await.unwrap();
    next.select(character).await.unwrap();
}
