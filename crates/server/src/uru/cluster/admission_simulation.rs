//! Processes that join a leader or are refused, in virtual time, on a bus that loses no messages.

mod abuse;

use std::time::Duration;

use worldwire_uru::crypt::key::{PrimeKind, PrivateKey, ServerKind};
use worldwire_uru::file::keys::KeyRing;

use super::frames::{Head, decode_frame, encode_frame};
use super::leader::admission::Admission;
use super::leader::machine::{GiveUpReason, LeaderEvent, LeaderMachine};
use super::link::machine::{LeaveReason, LinkEvent, LinkMachine};
use super::passport::{FileDigests, KeyDigests, Passport, Refusal};
use super::subjects::{NodeKind, Subjects, matches};
use crate::uru::keys;

const TICK: Duration = Duration::from_millis(50);
/// Long enough for another attempt.
const LONG: Duration = Duration::from_secs(10);
/// Long enough for a process to join if it is admitted at the first attempt.
const AT_ONCE: Duration = Duration::from_millis(300);

struct Node {
    machine: LinkMachine,
    events: Vec<LinkEvent>,
    is_dead: bool,
}

struct Leader {
    machine: LeaderMachine,
    events: Vec<LeaderEvent>,
    is_dead: bool,
}

/// Leaders and nodes that can all hear each other.
#[derive(Default)]
struct World {
    now: Duration,
    leaders: Vec<Leader>,
    nodes: Vec<Node>,
}

impl World {
    fn led(admission: Admission) -> Self {
        let mut world = Self::default();
        world.lead(1, admission);
        world
    }

    fn lead(&mut self, epoch: u64, admission: Admission) {
        let machine = LeaderMachine::new(Subjects::of("sim"), epoch, self.now);
        let machine = machine.admitting(admission);
        self.leaders.push(Leader { machine, events: Vec::new(), is_dead: false });
    }

    /// Starts a process. Returns its index.
    fn start(&mut self, name: &str, process: u64, passport: Passport) -> usize {
        let mut machine = LinkMachine::new(Subjects::of("sim"), NodeKind::Vault, name, process);
        machine.show(passport);
        self.nodes.push(Node { machine, events: Vec::new(), is_dead: false });
        self.nodes.len() - 1
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += TICK;
            while self.exchange() {}
        }
    }

    /// Delivers everything that leaders and nodes have to send. Returns whether there was anything.
    fn exchange(&mut self) -> bool {
        let now = self.now;
        let mut sent = Vec::new();
        for node in self.nodes.iter_mut().filter(|node| !node.is_dead) {
            node.machine.timeout(now);
            sent.extend(std::iter::from_fn(|| node.machine.poll_transmit(now)));
        }
        for leader in self.leaders.iter_mut().filter(|leader| !leader.is_dead) {
            leader.machine.timeout(now);
            sent.extend(std::iter::from_fn(|| leader.machine.poll_transmit(now)));
        }
        for (subject, message) in &sent {
            for node in self.nodes.iter_mut().filter(|node| !node.is_dead) {
                let [announcements, frames] = node.machine.subscriptions();
                match subject {
                    subject if *subject == announcements => node.machine.announced(now, message),
                    subject if *subject == frames => node.machine.received(now, message),
                    _ => {}
                }
                node.events.extend(std::iter::from_fn(|| node.machine.poll_event()));
            }
            for leader in self.leaders.iter_mut().filter(|leader| !leader.is_dead) {
                if matches(&leader.machine.subscription(), subject) {
                    leader.machine.received(now, subject, message);
                }
                leader.events.extend(std::iter::from_fn(|| leader.machine.poll_event()));
            }
        }
        !sent.is_empty()
    }

    fn is_member(&mut self, node: usize) -> bool {
        let session = self.nodes[node].machine.open_session();
        session.inspect(|session| self.nodes[node].machine.end_session(*session)).is_some()
    }

    /// The refusals that a node received, in order.
    fn refusals(&self, node: usize) -> Vec<Refusal> {
        let refusal = |event: &LinkEvent| match event {
            LinkEvent::NotAdmitted(refusal) => Some(refusal.clone()),
            _ => None,
        };
        self.nodes[node].events.iter().filter_map(refusal).collect()
    }

    fn times(&self, node: usize, is_meant: impl Fn(&LinkEvent) -> bool) -> usize {
        self.nodes[node].events.iter().filter(|event| is_meant(event)).count()
    }

    fn times_left(&self, node: usize) -> usize {
        self.times(node, |event| matches!(event, LinkEvent::Left(_)))
    }

    /// The refusals that the leader reports.
    fn reported(&self) -> Vec<String> {
        let refusal = |event: &LeaderEvent| match event {
            LeaderEvent::NotAdmitted { node, place, refusal } => {
                Some(format!("{node}, {place}: {refusal}"))
            }
            _ => None,
        };
        self.leaders[0].events.iter().filter_map(refusal).collect()
    }

    /// Why the leader gave up members.
    fn given_up(&self) -> Vec<GiveUpReason> {
        let reason = |event: &LeaderEvent| match event {
            LeaderEvent::Left { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        self.leaders[0].events.iter().filter_map(reason).collect()
    }

    /// What the leader reports about members' files.
    fn compared(&self) -> Vec<String> {
        let compared = |event: &LeaderEvent| match event {
            LeaderEvent::FilesCompared { differences, .. } => {
                Some(differences.as_ref().map_or_else(String::new, ToString::to_string))
            }
            _ => None,
        };
        self.leaders[0].events.iter().filter_map(compared).collect()
    }
}

fn in_folder(folder: u64) -> Passport {
    let place = format!("process {folder} on host-{folder}, folder /srv/uru");
    Passport { place, folder, ..Passport::default() }
}

fn files(files: &[(&str, u8)]) -> FileDigests {
    FileDigests::of(files.iter().map(|(path, digest)| ((*path).to_owned(), [*digest; 32])))
}

/// The leader `a`, with the settings `{}`.
fn leader(passport: Passport) -> Admission {
    Admission { node: "a".to_owned(), shard: 7, settings: "{}".to_owned(), passport }
}

#[test]
fn a_process_with_other_keys_is_refused() {
    let ring = keys::generate(PrimeKind::Plain);
    let mut other = KeyRing::new();
    other.merge(ring.clone());
    let key = PrivateKey::generate(
        ServerKind::Game,
        PrimeKind::Plain,
        &mut rand_core::UnwrapErr(getrandom::SysRng),
    );
    other.insert_private(key);
    let with =
        |ring: &KeyRing, folder| Passport { keys: KeyDigests::of(ring), ..in_folder(folder) };
    let mut world = World::led(leader(with(&ring, 1)));
    let wrong = world.start("front-1", 10, with(&other, 2));
    let right = world.start("front-2", 11, with(&ring, 3));
    world.run(AT_ONCE);
    assert!(world.is_member(right));
    world.run(LONG);
    assert!(!world.is_member(wrong));
    let refusals = world.refusals(wrong);
    assert!((8..=11).contains(&refusals.len()), "{}", refusals.len());
    let text = refusals[0].to_string();
    assert!(text.starts_with("the keys in keys.toml differ (game); copy keys.toml"), "{text}");
    let reported = world.reported();
    assert_eq!(reported.len(), 1, "once: {reported:?}");
    assert!(reported[0].starts_with("front-1, process 2 on host-2"), "{reported:?}");
    assert!(reported[0].contains("keys.toml differ (game)"), "{reported:?}");
}

#[test]
fn an_age_node_needs_the_leaders_files() {
    let with = |list: &[(&str, u8)], folder| {
        let files = Some(files(list));
        Passport { files, ..in_folder(folder) }
    };
    let list = [("ages/Fern.age", 1), ("ages/Moss.age", 2), ("secure/SDL/Fern.sdl", 3)];
    let mut world = World::led(leader(with(&list, 1)));
    let empty = world.start("age-1", 10, with(&[], 2));
    let other =
        world.start("age-2", 11, with(&[("ages/Fern.age", 9), ("ages/Moss.age", 2), ("x", 1)], 3));
    let front = world.start("front-1", 12, in_folder(4));
    let right = world.start("age-3", 13, with(&list, 5));
    let standby = Passport { is_standby: true, ..with(&[], 6) };
    let standby = world.start("b", 14, standby);
    world.run(AT_ONCE);
    let members = [empty, other, front, right, standby].map(|node| world.is_member(node));
    assert_eq!(members, [false, false, true, true, true]);
    let [of_empty, of_other] = [empty, other].map(|node| world.refusals(node)[0].to_string());
    assert!(of_empty.contains("ages/Fern.age (missing on the node), ages/Moss.age (missing"));
    assert!(
        of_other.contains(
            "files in data differ: ages/Fern.age (different), secure/SDL/Fern.sdl (missing on the \
             node), x (missing on the leader); copy data/ages and data/secure/SDL"
        ),
        "{of_other}"
    );
    assert_eq!(world.compared().len(), 1, "the standby's");

    // Once the files are copied, the process joins without a restart.
    world.nodes[empty].machine.show(with(&list, 2));
    world.run(Duration::from_secs(2));
    assert!(world.is_member(empty));
}

#[test]
fn files_are_compared_again_when_they_change() {
    let with = |digest, folder| {
        let files = Some(files(&[("ages/Fern.age", digest)]));
        Passport { files, ..in_folder(folder) }
    };
    let mut world = World::led(leader(with(1, 1)));
    let node = world.start("age-1", 10, with(1, 2));
    world.run(AT_ONCE);
    world.nodes[node].machine.show(with(2, 2));
    world.run(AT_ONCE);
    let different = "ages/Fern.age (different)";
    assert_eq!(world.compared(), [different]);
    world.leaders[0].machine.show(with(2, 1));
    world.run(AT_ONCE);
    assert_eq!(world.compared(), [different, ""]);
    assert!(world.is_member(node));
    assert_eq!(world.times_left(node), 0);

    // A change while the request to join is pending also counts.
    let late = world.start("age-2", 11, with(2, 3));
    let machine = &mut world.nodes[late].machine;
    machine.announced(world.now, &announcement());
    let (subject, asked) = machine.poll_transmit(world.now).unwrap();
    machine.show(with(3, 3));
    world.leaders[0].machine.received(world.now, &subject, &asked);
    world.run(AT_ONCE);
    assert_eq!(world.compared(), [different, "", different]);
    assert!(world.is_member(late));
}

fn announcement() -> Vec<u8> {
    super::frames::Announcement::of(1, 7, "", false).to_bytes().unwrap()
}

#[test]
fn a_second_process_with_the_same_name_is_refused_until_the_first_has_ended() {
    let mut world = World::led(leader(in_folder(1)));
    let first = world.start("front-1", 10, in_folder(2));
    world.run(Duration::from_secs(12));
    let second = world.start("front-1", 11, in_folder(3));
    world.run(LONG);
    assert!(world.is_member(first) && !world.is_member(second));
    assert_eq!(world.times_left(first), 0, "the second process does not disturb it");
    let refusal = world.refusals(second)[0].to_string();
    let wanted = "another process named `front-1` (process 2 on host-2, folder /srv/uru) joined \
                  12 s ago and was last heard from 0.";
    assert!(refusal.starts_with(wanted), "{refusal}");
    assert!(refusal.ends_with("give each process its own name with `node` in [cluster]"));
    assert_eq!(world.reported().len(), 1, "{:?}", world.reported());

    world.nodes[first].is_dead = true;
    let died = world.now;
    while !world.is_member(second) {
        world.run(TICK);
        assert!(world.now - died < Duration::from_millis(2_500), "joining takes too long");
    }
    assert!(world.now - died > Duration::from_millis(750), "too early: the first may be alive");
}

#[test]
fn processes_that_start_at_the_same_time_do_not_share_a_name() {
    let mut world = World::led(leader(in_folder(1)));
    let nodes = [10, 11].map(|process| world.start("front-1", process, in_folder(process)));
    world.run(LONG);
    let members = nodes.map(|node| world.is_member(node));
    assert!(members[0] != members[1], "{members:?}");
    assert_eq!(nodes.map(|node| world.times_left(node)), [0, 0]);
}

#[test]
fn a_restarted_process_joins_at_once() {
    let mut world = World::led(leader(in_folder(1)));
    let first = world.start("front-1", 10, in_folder(2));
    world.run(AT_ONCE);
    world.nodes[first].is_dead = true;
    let second = world.start("front-1", 11, in_folder(2));
    world.run(AT_ONCE);
    assert!(world.is_member(second));
    assert!(world.refusals(second).is_empty());
}

#[test]
fn processes_whose_folders_seem_the_same_replace_each_other_once() {
    let mut world = World::led(leader(in_folder(1)));
    let first = world.start("front-1", 10, in_folder(2));
    world.run(AT_ONCE);
    let second = world.start("front-1", 11, in_folder(2));
    world.run(LONG);
    assert!(world.is_member(second) && !world.is_member(first));
    assert_eq!([first, second].map(|node| world.times_left(node)), [1, 0]);
    let told = LinkEvent::Left(LeaveReason::Replaced);
    assert_eq!(world.times(first, |event| *event == told), 1, "it is told immediately");
    assert!(matches!(world.refusals(first)[0], Refusal::NameTaken { .. }));
    assert_eq!(world.given_up(), [GiveUpReason::Restarted]);
}

#[test]
fn nobody_joins_under_the_leaders_name() {
    let mut world = World::led(leader(in_folder(1)));
    let standby = Passport { is_standby: true, ..in_folder(2) };
    let standby = world.start("a", 10, standby);
    world.run(LONG);
    assert!(!world.is_member(standby));
    let refusal = world.refusals(standby)[0].to_string();
    assert!(
        refusal.starts_with("`a` is also the name of the leader (process 1 on host-1"),
        "{refusal}"
    );
    assert_eq!(world.reported().len(), 1);
}

#[test]
fn nodes_keep_to_the_shard_that_they_know() {
    let mut world = World::led(leader(in_folder(1)));
    let node = world.start("front-1", 10, in_folder(2));
    world.run(AT_ONCE);
    // One has the same epoch, the other a later one.
    for epoch in [1, 2] {
        world.lead(epoch, Admission { shard: 8, ..leader(in_folder(3)) });
    }
    world.run(LONG);
    assert!(world.is_member(node));
    assert_eq!(world.times_left(node), 0);
    world.leaders[0].is_dead = true;
    world.run(LONG);
    assert!(!world.is_member(node), "it waits for its own leader");
    assert!(world.leaders[1..].iter().all(|other| other.events.is_empty()));
    world.lead(2, leader(in_folder(1)));
    world.run(AT_ONCE);
    assert!(world.is_member(node));
    // A standby knows its shard from its database.
    world.nodes[node].machine.belong_to(8);
    world.run(Duration::from_secs(4));
    assert!(world.is_member(node));
    assert!(world.leaders[2].events.iter().any(|it| matches!(it, LeaderEvent::Joined { .. })));
}

#[test]
fn only_a_leader_of_the_same_shard_can_lead_its_restored_database() {
    let mut world = World::default();
    world.lead(5, leader(in_folder(1)));
    let node = world.start("front-1", 10, in_folder(2));
    world.run(AT_ONCE);
    assert!(world.is_member(node));
    world.leaders[0].is_dead = true;
    world.lead(4, Admission { shard: 8, ..leader(in_folder(3)) });
    world.run(LONG);
    assert!(!world.is_member(node));
    world.lead(3, leader(in_folder(1)));
    world.run(LONG);
    assert!(world.is_member(node));
    let restored = LinkEvent::Restored { former: 5, epoch: 3 };
    assert_eq!(world.times(node, |event| *event == restored), 1);
    assert!(world.leaders[1].events.is_empty());
}

#[test]
fn a_node_that_stops_while_it_asks_does_not_join() {
    let mut world = World::led(leader(in_folder(1)));
    let node = world.start("front-1", 10, in_folder(2));
    let machine = &mut world.nodes[node].machine;
    machine.announced(world.now, &announcement());
    let (subject, asked) = machine.poll_transmit(world.now).unwrap();
    machine.stop();
    world.leaders[0].machine.received(world.now, &subject, &asked);
    world.run(LONG);
    assert!(!world.is_member(node));
    assert!(world.nodes[node].machine.is_idle());
    assert!(world.leaders[0].events.is_empty(), "{:?}", world.leaders[0].events);
}

#[test]
fn settings_come_before_membership() {
    let mut world = World::led(leader(in_folder(1)));
    let node = world.start("front-1", 10, in_folder(2));
    world.run(AT_ONCE);
    assert_eq!(world.nodes[node].events, [LinkEvent::Settings("{}".to_owned()), LinkEvent::Joined]);
}

/// Programs older than the first release requested to join with an empty frame.
#[test]
fn a_process_that_shows_nothing_is_refused() {
    let mut machine =
        LeaderMachine::new(Subjects::of("sim"), 1, Duration::ZERO).admitting(leader(in_folder(1)));
    let head = Head { shard: 7, process: 1, attempt: 1, ..Head::of(1) };
    let subject = "ww.sim.1.up.1.front.front-1";
    machine.received(Duration::ZERO, subject, &encode_frame(&head, &[]).unwrap());
    let (subject, answer) = machine.poll_transmit(Duration::ZERO).unwrap();
    assert_eq!(subject, "ww.sim.1.down.front-1.0000000000000001");
    let (head, payload) = decode_frame(&answer).unwrap();
    assert_eq!((head.gone, head.incarnation), (1, 0));
    assert_eq!(Refusal::parse(&payload).unwrap(), Refusal::Unreadable);
}

#[test]
fn a_node_with_another_port_is_refused() {
    let on = |port, folder| Passport { port, ..in_folder(folder) };
    let mut world = World::led(leader(on(14_617, 1)));
    let other = world.start("front-1", 10, on(14_618, 2));
    let same = world.start("front-2", 11, on(14_617, 3));
    // 0 means that the system chose the port.
    let any = world.start("front-3", 12, on(0, 4));
    world.run(AT_ONCE);
    assert_eq!([other, same, any].map(|node| world.is_member(node)), [false, true, true]);
    let refusal = world.refusals(other)[0].to_string();
    assert!(refusal.contains("port 14618, but the leader on port 14617"), "{refusal}");
}

#[test]
fn nodes_hear_of_changed_settings() {
    let mut world = World::led(leader(in_folder(1)));
    let node = world.start("front-1", 10, in_folder(2));
    world.run(AT_ONCE);
    world.leaders[0].machine.share("{\"build\":7}".to_owned());
    let late = world.start("front-2", 11, in_folder(3));
    world.run(AT_ONCE);
    let settings = |node: usize| {
        let events = world.nodes[node].events.iter();
        let settings = events.filter_map(|event| match event {
            LinkEvent::Settings(settings) => Some(settings.as_str()),
            _ => None,
        });
        settings.collect::<Vec<_>>()
    };
    assert_eq!(settings(node), ["{}", "{\"build\":7}"]);
    assert_eq!(settings(late), ["{\"build\":7}"]);
}
