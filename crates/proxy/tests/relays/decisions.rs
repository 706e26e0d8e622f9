//! Single decisions, in a KI conversation.

use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::Input;
use worldwire_dissect::{Decision, Time};
use worldwire_proxy::fuzzing::relayed::{Choices, Content, End, FAMILIES, Heard, World};
use worldwire_proxy::{Effects, Exchange, Handler, Next, Passing, Report};

/// Handles each message of the client by its number.
struct Script {
    count: usize,
    act: fn(usize, &Passing<'_>, &mut Effects),
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Handler for Script {
    fn message(&mut self, passing: &Passing<'_>, effects: &mut Effects) -> Next {
        if passing.item.from == Side::Client {
            self.count += 1;
            (self.act)(self.count, passing, effects);
        }
        Next::Done
    }
}

struct Table {
    ends: [Box<dyn End>; 2],
    exchange: Exchange,
    content: std::sync::Arc<Content>,
    heard: [Vec<Vec<u8>>; 2],
}

impl Table {
    fn new(act: fn(usize, &Passing<'_>, &mut Effects)) -> Self {
        // The first kind of conversation is a plain one.
        let World { ends, session, known, content, .. } = FAMILIES[0](&mut Choices::encoded(&[0]));
        let handlers: Vec<Box<dyn Handler>> = vec![Box::new(Script { count: 0, act })];
        let exchange = Exchange::new(session, handlers, known, (1, Time(0)), None);
        let mut table = Self { ends, exchange, content, heard: Default::default() };
        table.settle(Duration::ZERO);
        assert!(table.ends.iter().all(|end| end.is_established()));
        table
    }

    /// Carries everything in transit.
    fn settle(&mut self, now: Duration) {
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for side in Side::BOTH {
                for bytes in self.ends[side.index()].transmit() {
                    self.exchange.input(now, side, Input::Bytes(&bytes));
                    moved = true;
                }
                while let Some(bytes) = self.exchange.poll_transmit(side) {
                    self.ends[side.index()].input(now, Input::Bytes(&bytes));
                    moved = true;
                }
                for heard in self.ends[side.index()].poll() {
                    let Heard::Message(body) = heard else { panic!("{heard:?}") };
                    self.heard[side.index()].push(body);
                }
            }
        }
    }

    /// The client sends this many messages.
    fn say(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut choices = Choices::seeded(1);
        let said: Vec<_> =
            (0..count).map(|_| self.content.make(Side::Client, &mut choices)).collect();
        for body in &said {
            self.ends[0].say(body).expect("room");
            self.settle(Duration::ZERO);
        }
        said
    }

    fn decide(&mut self, number: u64, decision: Decision<'_>) {
        self.exchange.decide(number, decision).expect("it is held");
        self.exchange.resume(Duration::from_secs(2));
        self.settle(Duration::from_secs(2));
    }

    fn at_server(&self) -> &[Vec<u8>] {
        &self.heard[Side::Server.index()]
    }
}

/// A message that nobody sent.
const ADDED: [u8; 6] = [200, 9, 6, 0, 1, 2];

#[test]
fn a_delayed_change_behind_a_breakpoint_does_not_keep_the_proxy_busy() {
    let mut table = Table::new(|number, passing, effects| match number {
        1 => effects.pause(),
        _ => {
            effects.change(ADDED.to_vec());
            effects.delay_until(passing.now + Duration::from_secs(1));
        }
    });
    let said = table.say(2);
    assert_eq!(table.exchange.poll_timeout(), Some(Duration::from_secs(1)));
    table.exchange.timeout(Duration::from_secs(1));
    table.settle(Duration::from_secs(1));
    assert_eq!(table.exchange.poll_timeout(), None, "a decision must come first");
    assert!(table.at_server().is_empty());
    table.decide(1, Decision::AsIs);
    assert_eq!(table.at_server(), [said[0].clone(), ADDED.to_vec()]);
}

#[test]
fn additions_leave_although_their_message_is_dropped_at_a_breakpoint() {
    let mut table = Table::new(|number, _, effects| {
        effects.pause();
        if number == 2 {
            effects.add(Side::Server, ADDED.to_vec());
        }
    });
    let said = table.say(3);
    table.decide(2, Decision::Drop);
    table.decide(3, Decision::AsIs);
    assert!(table.at_server().is_empty());
    assert_eq!(table.exchange.held().len(), 1);
    table.decide(1, Decision::AsIs);
    assert_eq!(table.at_server(), [said[0].clone(), ADDED.to_vec(), said[2].clone()]);
    assert_eq!((table.exchange.counts().added, table.exchange.counts().dropped), (1, 1));
}

#[test]
fn a_held_message_says_whether_its_receiver_has_ended() {
    let mut table = Table::new(|_, _, effects| effects.pause());
    table.say(1);
    let has_ended = |table: &Table| table.exchange.held()[0].has_receiver_ended;
    assert!(!has_ended(&table));
    table.exchange.input(Duration::ZERO, Side::Server, Input::End);
    assert!(has_ended(&table));
}

#[test]
fn decisions_at_breakpoints_are_counted() {
    let mut table = Table::new(|_, _, effects| effects.pause());
    table.say(3);
    table.decide(1, Decision::Drop);
    table.decide(2, Decision::instead(&ADDED));
    table.decide(3, Decision::AsIs);
    let counts = table.exchange.counts();
    assert_eq!((counts.messages, counts.held, counts.changed, counts.dropped), (3, 3, 1, 1));
}

#[test]
fn nothing_is_held_in_a_closed_conversation() {
    let mut table = Table::new(|number, passing, effects| match number {
        1 => effects.pause(),
        _ => effects.delay_until(passing.now + Duration::from_secs(1)),
    });
    table.say(2);
    table.exchange.poll_report().expect("a breakpoint");
    table.exchange.close();
    assert!(table.exchange.held().is_empty());
    let dropped = "2 held messages were dropped: the conversation has ended".to_owned();
    assert_eq!(table.exchange.poll_report(), Some(Report::Problem(dropped)));
    assert_eq!(table.exchange.counts().dropped, 2);
    table.exchange.close();
    table.exchange.timeout(Duration::from_secs(1));
    assert_eq!(table.exchange.poll_report(), None, "nothing was forwarded");
    assert_eq!(table.exchange.poll_timeout(), None);
}

#[test]
fn additions_are_counted_only_if_they_are_sent() {
    let mut table = Table::new(|number, _, effects| {
        let body = if number == 1 { vec![0xff] } else { ADDED.to_vec() };
        effects.add(Side::Server, body);
    });
    let said = table.say(2);
    assert_eq!(table.at_server(), [said[0].clone(), ADDED.to_vec(), said[1].clone()]);
    assert_eq!(table.exchange.counts().added, 1);
    let report = table.exchange.poll_report();
    let is_it = |text: &String| text.starts_with("a message was not added: ");
    assert!(matches!(&report, Some(Report::Problem(text)) if is_it(text)), "{report:?}");
}
