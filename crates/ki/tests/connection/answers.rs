//! Replies sent while an event is being read.

use std::sync::Arc;

use worldwire_core::connection::{Connection as _, Event, Input, Sender as _};
use worldwire_core::testing::pair::Member;
use worldwire_core::{Side, connection};
use worldwire_ki::connection::{ClientConfig, Connection, News, ServerConfig, Unit};
use worldwire_ki::frame::{Body, Frame};
use worldwire_ki::schema::{Mode, Protocols};

use crate::support::{EPOCH, Talk, line, message};

/// Each end replies to every message with a shorter payload, until the payload is empty.
#[test]
fn two_ends_answer_each_other_while_they_read() {
    let mut talk = Talk::established();
    talk.client().send(&message(5, 1, &[7; 100])).unwrap();
    let mut events = [0; 2];
    talk.pair.settle(|member, event, sender| {
        let Event::Received(received) = event else { return };
        assert_eq!(sender.session_id(), Some(4660));
        assert_eq!(sender.salt(), received.salt);
        let Unit::Message { service, order } = received.unit else { return };
        events[usize::from(member == Member::Server)] += 1;
        if let [_, rest @ ..] = received.payload() {
            sender.send(&message(service, order, rest)).unwrap();
        }
    });
    assert_eq!(events, [50, 51]);
}

fn frame_of_three() -> Vec<u8> {
    let messages = (1..=3).map(|order| message(200, order, &[order])).collect();
    let frame = Frame::message(message(200, 1, b""));
    Frame { body: Body::Data(messages), ..frame }.to_bytes().unwrap()
}

/// A server's reaction to one message affects the next one, even in the same frame.
#[test]
fn commands_while_reading_take_effect_at_once() {
    let text = "<M><_ProtocolInfo><RECORD><ServiceID TYPE=\"UBYT\">200</ServiceID></RECORD>\
                </_ProtocolInfo><A><RECORD/></A><B><RECORD><_MsgAccessLvl TYPE=\"UBYT\" \
                NOXFER=\"TRUE\">2</_MsgAccessLvl></RECORD></B><C><RECORD/></C></M>";
    let mut protocols = Protocols::new();
    protocols.add("levels.xml", text.as_bytes(), Mode::Lenient);
    let config = ServerConfig { protocols: Some(Arc::new(protocols)), ..ServerConfig::new(EPOCH) };
    let play = |act: fn(&mut <Connection as connection::Connection>::Sender)| {
        let mut talk = Talk::new(ClientConfig::new(EPOCH), config.clone());
        talk.settle();
        let now = talk.pair.now;
        talk.server().input(now, Side::Client, Input::Bytes(&frame_of_three()));
        let mut reported = Vec::new();
        while let Some((event, sender)) = talk.pair.server.poll() {
            reported.push(line(&event));
            if reported.len() == 1 {
                act(sender);
            }
        }
        reported.join("\n")
    };
    insta::assert_snapshot!(play(|_| ()), @r"
    client 200/1 [01]
    ignored [02] because AccessLevel { needed: 2, has: 1 }
    client 200/3 [03]
    ");
    insta::assert_snapshot!(play(|sender| sender.set_access_level(2)), @r"
    client 200/1 [01]
    client 200/2 [02]
    client 200/3 [03]
    ");
    insta::assert_snapshot!(play(|sender| sender.refresh(9).unwrap()), @r"
    client 200/1 [01]
    ignored [02] because Stale
    ignored [03] because Stale
    ");
    insta::assert_snapshot!(play(|sender| sender.close()), @r"
    client 200/1 [01]
    Closed(Local)
    ");
}

#[test]
fn an_ignored_message_reports_its_range() {
    let config = ServerConfig { keep_early: false, ..ServerConfig::new(EPOCH) };
    let mut talk = Talk::new(ClientConfig::new(EPOCH), config);
    let bytes = frame_of_three();
    let now = talk.pair.now;
    talk.server().input(now, Side::Client, Input::Bytes(&bytes));
    let mut next = 0;
    for wanted in 1..=3u8 {
        let Some(Event::News(News::Ignored { unit, range, bytes, .. })) =
            talk.server().poll_event()
        else {
            panic!("nothing was ignored");
        };
        assert_eq!(unit, Unit::Message { service: 200, order: wanted });
        assert_eq!(bytes, [200, wanted, 5, 0, wanted]);
        assert_eq!(range.start, next, "ignored messages tile the stream too");
        next = range.end;
    }
    assert_eq!(next, bytes.len() as u64);
}
