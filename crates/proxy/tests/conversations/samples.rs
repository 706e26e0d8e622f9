//! Passes the conversations of the sample captures through a proxy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use worldwire_capture::{CaptureReader, Conversations, EventKind, Record};
use worldwire_core::connection::Input;
use worldwire_core::json::{Json, parse};
use worldwire_core::testing::sample_file;
use worldwire_core::{Limits, Side, Tree};
use worldwire_dissect::{
    CodecOptions, Definitions, Facts, Families, Format, Item, Keys, Line, RelaySession, Session,
    Stamp, Start, Time,
};
use worldwire_proxy::{Counts, Exchange, Handler, Known, Report, Rules};

/// A family with its sample capture.
pub struct Sample {
    pub family: &'static str,
    pub definitions: Arc<Definitions>,
    pub keys: Arc<Keys>,
    pub conversations: Vec<Conversation>,
    pub is_udp: bool,
}

/// The segments that each side sent.
pub type Conversation = Vec<(Side, Vec<u8>)>;

/// The time between two segments.
pub const STEP: Duration = Duration::from_millis(10);

/// The output of a proxy.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Every message as a JSON line, in the order of sending.
    pub messages: Vec<Json>,
    /// When each of them was sent.
    pub times: Vec<Duration>,
    pub reports: Vec<Report>,
    /// What the reader of the output noted.
    pub notes: Vec<String>,
    pub counts: Counts,
}

impl Outcome {
    /// The names of all messages.
    pub fn names(&self) -> Vec<&str> {
        self.messages.iter().filter_map(|line| line["name"].as_str()).collect()
    }

    /// The fields of the messages of one name.
    pub fn fields(&self, name: &str) -> Vec<&Json> {
        let own = self.messages.iter().filter(|line| line["name"] == name);
        own.map(|line| &line["fields"]).collect()
    }

    /// The lines that rules logged.
    pub fn logs(&self) -> Vec<&str> {
        let logs = self.reports.iter().filter_map(|report| match report {
            Report::Log(text) => Some(text.as_str()),
            _ => None,
        });
        logs.collect()
    }

    /// The reported problems.
    pub fn problems(&self) -> Vec<&str> {
        let problems = self.reports.iter().filter_map(|report| match report {
            Report::Problem(text) => Some(text.as_str()),
            _ => None,
        });
        problems.collect()
    }
}

pub fn uru() -> Sample {
    Sample::load("uru", "uru-login.pcapng", Some("uru-keys.toml"), &[])
}

pub fn uru_age() -> Sample {
    let data = ["sdl/Fernhollow.sdl", "sdl/things.sdl"];
    Sample::load("uru", "uru-age.pcapng", Some("uru-keys.toml"), &data)
}

pub fn ki() -> Sample {
    Sample::load("ki", "ki-login.pcapng", Some("ki-keys.toml"), &[])
}

pub fn mxo() -> Sample {
    Sample::load("mxo", "mxo-world.pcapng", Some("mxo-keys.toml"), &[])
}

/// The auth and margin channels.
pub fn mxo_login() -> Sample {
    Sample::load("mxo", "mxo-login.pcapng", Some("mxo-login-keys.toml"), &[])
}

pub fn tera() -> Sample {
    let data = [
        "tera/definitions/C_CHAT.1.def",
        "tera/definitions/C_CHECK_VERSION.1.def",
        "tera/definitions/C_LOGIN_ARBITER.1.def",
        "tera/definitions/C_START_SKILL.1.def",
        "tera/definitions/S_CHAT.2.def",
        "tera/definitions/S_CHECK_VERSION.1.def",
        "tera/definitions/S_LOGIN_ACCOUNT_INFO.1.def",
        "tera/definitions/S_LOGIN_ARBITER.1.def",
        "tera/definitions/S_SPAWN_USER.1.def",
        "tera/integrity/98.json",
        "tera/map/protocol.999001.map",
        "tera/revisions.json",
    ];
    Sample::load("tera", "tera-login.pcapng", None, &data)
}

impl Sample {
    fn load(family: &'static str, capture: &str, keys: Option<&str>, data: &[&str]) -> Self {
        let text = |name: &str| String::from_utf8(sample_file(name)).unwrap();
        let mut definitions = Definitions::built_in();
        let data: Vec<(&str, String)> = data
            .iter()
            .map(|name| (name.rsplit('/').next().unwrap(), text(name)))
            .map(
                |(name, text)| {
                    if name == "98.json" { ("integrity/98.json", text) } else { (name, text) }
                },
            )
            .collect();
        if !data.is_empty() {
            let files = data.iter().map(|(name, text)| (*name, text.as_str()));
            assert_eq!(definitions.add(files), Some(Vec::new()));
        }
        let keys = keys.map_or_else(Keys::none, |name| Keys::parse(&text(name)).unwrap());
        let is_udp = capture == "mxo-world.pcapng";
        Self {
            family,
            definitions: Arc::new(definitions),
            keys: Arc::new(keys),
            conversations: recorded(&sample_file(capture), is_udp),
            is_udp,
        }
    }

    fn start<'s>(&'s self, facts: &'s Facts) -> Start<'s> {
        Start {
            keys: &self.keys,
            definitions: &self.definitions,
            facts,
            prepared: None,
            datagrams: self.is_udp,
            midstream: false,
        }
    }

    pub fn relay(&self, facts: &Facts) -> Box<dyn RelaySession> {
        let family = Families::standard().named(self.family).unwrap();
        family.relay(&self.start(facts), &mut |bytes| bytes.fill(7), Duration::ZERO).unwrap()
    }

    fn observer(&self, facts: &Facts) -> Box<dyn Session> {
        Families::standard().named(self.family).unwrap().session(&self.start(facts))
    }

    /// The bytes of a message, given as a line.
    pub fn encoded(&self, line: &Json) -> Vec<u8> {
        let line = Line::parse(line).unwrap().unwrap();
        let (keys, definitions, limits) = (&*self.keys, &*self.definitions, &Limits::DEFAULT);
        let options = CodecOptions { from: line.from, keys, definitions, limits };
        line.encode(&options).unwrap().unwrap()
    }

    /// The rules of a file, which must have no errors.
    pub fn rules(&self, text: &str) -> Rules {
        Rules::parse("my.rules", text, &self.definitions).unwrap_or_else(|mistakes| {
            let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            panic!("{}", mistakes.join("\n"))
        })
    }

    /// Passes all conversations through proxies with these rules. The other side must be able to
    /// read everything.
    pub fn run(&self, rules: &str) -> Vec<Outcome> {
        let rules = self.rules(rules);
        let outcomes = self.run_with(&mut || rules.handler(), &mut |_, _| {});
        for outcome in &outcomes {
            assert_eq!(outcome.notes, [""; 0], "{}", self.family);
        }
        outcomes
    }

    /// Like [`run`](Self::run), with any handler. `before` is called before each segment, with the
    /// numbers of the conversation and the segment.
    pub fn run_with(
        &self,
        handler: &mut dyn FnMut() -> Box<dyn Handler>,
        before: &mut dyn FnMut(usize, usize),
    ) -> Vec<Outcome> {
        let mut facts = Facts::default();
        let mut read = Facts::default();
        let conversations = self.conversations.iter().enumerate();
        let all = conversations.map(|(number, segments)| {
            let known = Known {
                family: self.family,
                definitions: Arc::clone(&self.definitions),
                keys: Arc::clone(&self.keys),
            };
            let epoch = (number as u64, Time(1_767_225_600_000_000_000));
            let session = self.relay(&facts);
            let mut exchange = Exchange::new(session, vec![handler()], known, epoch, None);
            let mut observer = self.observer(&read);
            let mut outcome = Outcome::default();
            let mut now = Duration::ZERO;
            for (index, (from, bytes)) in segments.iter().enumerate() {
                before(number, index);
                now += STEP;
                self.pass_time(&mut exchange, &mut *observer, now, &mut read, &mut outcome);
                exchange.input(now, *from, self.input(bytes));
                if exchange.waits() {
                    exchange.learn(now, &facts);
                }
                exchange.facts().into_iter().for_each(|fact| facts.state(fact));
                self.drain(&mut exchange, &mut *observer, now, &mut read, &mut outcome);
            }
            let end = now + Duration::from_secs(2);
            self.pass_time(&mut exchange, &mut *observer, end, &mut read, &mut outcome);
            while let Some(report) = exchange.poll_report() {
                outcome.reports.push(report);
            }
            outcome.counts = exchange.counts();
            outcome
        });
        all.collect()
    }

    pub fn input<'b>(&self, bytes: &'b [u8]) -> Input<'b> {
        if self.is_udp { Input::Datagram(bytes) } else { Input::Bytes(bytes) }
    }

    /// Advances time to `until`.
    fn pass_time(
        &self,
        exchange: &mut Exchange,
        observer: &mut dyn Session,
        until: Duration,
        read: &mut Facts,
        outcome: &mut Outcome,
    ) {
        for _ in 0..10_000 {
            match exchange.poll_timeout() {
                Some(at) if at < until => {
                    exchange.timeout(at);
                    self.drain(exchange, observer, at, read, outcome);
                }
                _ => return,
            }
        }
        panic!("time does not advance");
    }

    fn drain(
        &self,
        exchange: &mut Exchange,
        observer: &mut dyn Session,
        now: Duration,
        read: &mut Facts,
        outcome: &mut Outcome,
    ) {
        for to in Side::BOTH {
            while let Some(bytes) = exchange.poll_transmit(to) {
                let mut show = |item: Item<'_>| {
                    if let Some(note) = item.note() {
                        outcome.notes.push(note.text.clone());
                        return;
                    }
                    if !item.message().unwrap().is_message() {
                        return;
                    }
                    let mut name = String::new();
                    item.push_name(&mut name);
                    let tree = item.tree(Tree::new(), &Limits::DEFAULT);
                    assert!(tree.error().is_none(), "{:?}", tree.error());
                    let mut line = String::new();
                    Format::Json(worldwire_core::json::Style::default())
                        .write(&item, &name, &tree, &mut line);
                    outcome.messages.push(parse(&line).unwrap());
                    outcome.times.push(now);
                };
                let from = to.other();
                observer.input(Stamp::default(), from, self.input(&bytes), &mut show);
                if observer.waits() {
                    observer.learn(read, Stamp::default(), &mut show);
                }
                observer.facts().into_iter().for_each(|fact| read.state(fact));
            }
        }
    }
}

/// The conversations of a capture over TCP or over UDP.
fn recorded(capture: &[u8], is_udp: bool) -> Vec<Conversation> {
    let limits = Limits::DEFAULT;
    let mut capture = CaptureReader::new(capture, &limits).unwrap();
    let mut conversations = Conversations::new(&limits);
    let mut all: BTreeMap<u64, Conversation> = BTreeMap::new();
    while let Some(record) = capture.next().unwrap() {
        let Record::Packet(packet) = record else { continue };
        conversations.push(&packet, &mut |event| {
            let (EventKind::Data { side, bytes, .. } | EventKind::Datagram { side, bytes }) =
                event.kind
            else {
                return;
            };
            if matches!(event.kind, EventKind::Datagram { .. }) == is_udp {
                all.entry(event.conversation).or_default().push((side, bytes.to_vec()));
            }
        });
    }
    all.into_values().collect()
}

/// The only conversation for which `has` returns true.
pub fn only(outcomes: &[Outcome], has: impl Fn(&Outcome) -> bool) -> &Outcome {
    let mut found = outcomes.iter().filter(|outcome| has(outcome));
    let one = found.next().expect("a conversation");
    assert!(found.next().is_none(), "several conversations");
    one
}
