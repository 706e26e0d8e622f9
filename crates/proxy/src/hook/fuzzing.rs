//! The fuzz target for lines from hooks.

use core::time::Duration;
use std::sync::Arc;

use worldwire_core::Side;
use worldwire_core::json::{Json, Parser, parse};
use worldwire_core::value::parse_hex;
use worldwire_dissect::{Decision, Item, ItemBody, Keys, Message, Stamp};

use super::chain::Chain;
use super::frames;
use super::hub::{Hub, HubSettings};
use super::link::Link;
use super::protocol::{Form, FromHook};
use crate::coder::Coder;
use crate::exchange::Known;
use crate::fuzzing::DEFINITIONS;
use crate::handler::{Effects, Passing};
use crate::kept::{Kept, Moment};

/// The conversation that hooks can answer.
const CONVERSATION: u64 = 1;
/// The number of messages that wait before the first line.
const MESSAGES: u8 = 4;

/// Two hooks send these lines alternately, while messages wait for them.
///
/// # Panics
/// If a line to a hook is not JSON, or a message is lost or finished twice.
pub(crate) fn lines(data: &[u8]) {
    let definitions = Arc::clone(&DEFINITIONS);
    let settings = HubSettings { is_required: false, answer_time: Duration::from_secs(1) };
    let hub = Hub::new(core::iter::empty(), settings, Arc::clone(&definitions));
    let keys = Arc::new(Keys::none());
    let coder = Coder::new(Known { family: "uru", definitions, keys });
    // The second one uses frames.
    let forms = [(0, ""), (1, r#""form":"binary","catch_up":true,"#)];
    let links = forms.map(|(order, form)| {
        let hello = format!(
            r#"{{"type":"hello","version":1,{form}"subscriptions":[{{"id":"s","order":{order},"bytes":true,"fields":{},"fake":null}}]}}"#,
            order == 0
        );
        let Ok(FromHook::Hello(hello)) = FromHook::parse(&hello, &mut Parser::default()) else {
            unreachable!("a hello")
        };
        hub.enter(0, hello).unwrap_or_else(|error| panic!("{error}"))
    });
    let (set, mut version) = hub.newer_than(0).unwrap_or_default();
    let mut chain = Chain::new(CONVERSATION, coder.clone(), set);
    let mut waiting: Vec<u64> = Vec::new();
    for number in 0..MESSAGES {
        let mut effects = Effects::default();
        message(&mut chain, &coder, number, &mut effects);
        waiting.extend(effects.ticket);
        settle(&mut waiting, effects);
    }
    let mut parser = Parser::default();
    let text = String::from_utf8_lossy(data);
    let mut now = Duration::ZERO;
    for (line, link) in text.lines().take(64).zip(links.iter().cycle()) {
        now += Duration::from_millis(10);
        let mut effects = Effects::default();
        // Frames are written in hexadecimal.
        let parsed = match line.strip_prefix('#').and_then(parse_hex) {
            Some(frame) => frames::parse(&frame, &mut parser),
            None => FromHook::parse(line, &mut parser),
        };
        match parsed {
            Ok(FromHook::Hello(_) | FromHook::Log(..)) | Err(_) => {}
            Ok(FromHook::Subscribe(wanted)) => drop(hub.subscribe(link, wanted)),
            Ok(FromHook::Unsubscribe(ids)) => drop(hub.unsubscribe(link, &ids)),
            Ok(FromHook::Query(query)) => drop(hub.look_up(&query)),
            Ok(FromHook::Sync(_, id)) => chain.sync(link, &id),
            Ok(FromHook::Answer(id, reply)) => {
                chain.answer(now, link, id.number, reply, &mut effects);
            }
            Ok(FromHook::Add(_, messages)) => chain.add(now, link, messages, &mut effects),
        }
        settle(&mut waiting, effects);
        if let Some((set, newer)) = hub.newer_than(version) {
            version = newer;
            let mut effects = Effects::default();
            chain.use_set(now, set, &mut effects);
            settle(&mut waiting, effects);
        }
        let mut effects = Effects::default();
        message(&mut chain, &coder, MESSAGES, &mut effects);
        waiting.extend(effects.ticket);
        settle(&mut waiting, effects);
    }
    // Once the hooks have ended, no message may be left waiting.
    for link in &links {
        let mut effects = Effects::default();
        link.close();
        chain.timeout(now + Duration::from_secs(2), &mut effects);
        chain.gone(now, link, &mut effects);
        settle(&mut waiting, effects);
        check(link);
    }
    assert!(waiting.is_empty(), "{waiting:?} are lost");
}

/// Passes a ping to the chain.
fn message(chain: &mut Chain, coder: &Coder, number: u8, effects: &mut Effects) {
    let body = vec![12, 0, 0, 0, 0, 0, 0, 0, number, 0, 0, 0];
    let name = (Side::Client, "file.PingRequest".to_owned());
    let kept = Kept::added(name, body, Moment::default(), coder);
    let item = Item::new(Stamp::default(), "uru", Side::Client, 0..12, ItemBody::Message(&kept));
    let message: &dyn Message = &kept;
    let passing = Passing::new((&item, message), "file.PingRequest", Duration::ZERO, None, false);
    chain.message(&passing, effects);
}

/// Removes finished messages from those that wait.
fn settle(waiting: &mut Vec<u64>, effects: Effects) {
    for finished in effects.finished {
        let Some(decision) = finished.decision else { continue };
        let at = waiting.iter().position(|ticket| *ticket == finished.ticket);
        waiting.swap_remove(at.unwrap_or_else(|| panic!("{} is not waiting", finished.ticket)));
        let (Decision::AsIs | Decision::Drop | Decision::Instead(_)) = decision;
    }
}

/// Checks that all lines to a hook are JSON objects with a type, and that all frames are whole.
fn check(link: &Link) {
    let bytes = link.take();
    if link.form == Form::Lines {
        return String::from_utf8_lossy(&bytes).lines().for_each(check_line);
    }
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk().unwrap_or_else(|| panic!("a cut length"));
        let length = u32::from_le_bytes(*length) as usize;
        let (frame, after) =
            after.split_at_checked(length).unwrap_or_else(|| panic!("a cut frame"));
        match frame {
            [0, line @ ..] => check_line(&String::from_utf8_lossy(line)),
            [kind, ..] => assert_eq!(*kind, 1),
            [] => panic!("an empty frame"),
        }
        rest = after;
    }
}

fn check_line(line: &str) {
    let json = parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert!(json.get("type").and_then(Json::as_str).is_some(), "{line}");
}

/// Conversations of hooks.
#[must_use]
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let seeds = [
        "{\"type\":\"answer\",\"id\":\"1.1\",\"do\":\"forward\"}\n\
         {\"type\":\"answer\",\"id\":\"1.9\",\"do\":\"drop\"}\n\
         {\"type\":\"answer\",\"id\":\"1.3\",\"do\":\"replace\",\"fields\":{\"pingTimeMs\":5}}\n\
         {\"type\":\"answer\",\"id\":\"1.3\",\"do\":\"pass\"}\n\
         {\"type\":\"answer\",\"id\":\"1.5\",\"do\":\"replace\",\"bytes\":\"0c00000000000000ff000000\"}\n",
        "{\"type\":\"add\",\"conversation\":1,\"messages\":[{\"to\":\"server\",\
         \"name\":\"file.PingRequest\",\"fields\":{\"pingTimeMs\":1}},{\"to\":\"client\",\
         \"bytes\":\"0c0000000000000001000000\",\"name\":\"file.PingReply\"}]}\n\
         {\"type\":\"answer\",\"id\":\"1.9\",\"do\":\"hold\",\"add\":[{\"to\":\"client\",\
         \"bytes\":\"00\"}]}\n\n{\"type\":\"log\",\"text\":\"x\"}\n",
        "{\"type\":\"subscribe\",\"subscriptions\":[{\"id\":\"t\",\"filter\":\"pingTimeMs > 1\",\
         \"from\":\"client\",\"order\":-1.5,\"bytes\":true,\"fields\":false,\"modified\":true,\
         \"silenced\":null}]}\n\
         {\"type\":\"unsubscribe\",\"ids\":[\"s\"]}\n\
         {\"type\":\"query\",\"id\":\"q\",\"messages\":\"auth.Ping*\"}\n\
         {\"type\":\"hello\",\"version\":1,\"name\":\"n\",\"json_safe\":true}\n",
        "\n#0201000000000000000200000000000000030100000100000c00000061\n\
         {\"type\":\"unsubscribe\",\"ids\":[\"s\"]}\n\
         #020100000000000000020000000000000000000000\n\
         {\"type\":\"sync\",\"conversation\":1,\"id\":\"y\"}\n\
         #03010000000000000001000110006c652e50696e6752657175657374\n",
    ];
    seeds.map(|seed| seed.as_bytes().to_vec()).to_vec()
}
