//! Processes that use the bus in ways that their keys do not entitle them to, or too much.

use super::*;
use crate::uru::cluster::ages::{AgeReport, NodeInfo};
use crate::uru::cluster::leader::MAX_REQUEST_BYTES;
use crate::uru::cluster::members::Description;
use crate::uru::cluster::requests::ClientReport;
use crate::uru::vault::ask::encoded;

#[test]
fn a_front_is_not_believed_about_ages_or_as_a_standby() {
    let list = files(&[("ages/Fern.age", 1)]);
    let with = |files, folder| Passport { files: Some(files), ..in_folder(folder) };
    let mut world = World::led(leader(with(list.clone(), 1)));
    let report = AgeReport::Info {
        info: NodeInfo { runs_ages: true, host: "192.0.2.7".to_owned(), max_players: 100 },
    };
    for (name, kind, believed) in
        [("front-1", NodeKind::Front, false), ("age-1", NodeKind::Age, true)]
    {
        let machine = LinkMachine::new(Subjects::of("sim"), kind, name, 10);
        world.nodes.push(Node { machine, events: Vec::new(), is_dead: false });
        let node = world.nodes.len() - 1;
        world.nodes[node].machine.show(with(list.clone(), 2 + node as u64));
        world.run(AT_ONCE);
        assert!(world.is_member(node), "{name}");
        assert!(world.nodes[node].machine.report_ages(&report));
        world.run(AT_ONCE);
        let heard = |event: &LeaderEvent| matches!(event, LeaderEvent::AgesReported { .. });
        assert_eq!(world.leaders[0].events.iter().any(heard), believed, "{name}");
        // Neither of them may lead.
        let description = Description { behind: Some(0), ..Description::of_this_version() };
        world.nodes[node].machine.describe(encoded(&description).unwrap());
        world.run(AT_ONCE);
        let members = world.leaders[0].machine.members(world.now);
        let member = members.iter().find(|member| member.node == name).unwrap();
        assert!(member.description.is_some() && !member.is_standby(), "{member:?}");
    }
    // A standby's files may differ from the leader's.
    let standby = Passport { is_standby: true, ..with(files(&[]), 9) };
    let machine = LinkMachine::new(Subjects::of("sim"), NodeKind::Age, "age-2", 11);
    world.nodes.push(Node { machine, events: Vec::new(), is_dead: false });
    let other = world.nodes.len() - 1;
    world.nodes[other].machine.show(standby.clone());
    let vault = world.start("b", 12, standby);
    world.run(AT_ONCE);
    assert!(world.is_member(vault) && !world.is_member(other));
    let refusals = world.refusals(other);
    assert!(matches!(refusals[0], Refusal::Files { .. }), "{refusals:?}");
}

/// Frames that arrive on the subject of another node or kind are ignored.
#[test]
fn a_process_cannot_speak_for_another() {
    let mut world = World::led(leader(in_folder(1)));
    let node = world.start("front-1", 10, in_folder(2));
    world.run(AT_ONCE);
    assert!(world.is_member(node));
    world.run(AT_ONCE);
    let session = world.nodes[node].machine.open_session().unwrap();
    let (subject, frame) = world.nodes[node].machine.poll_transmit(world.now).unwrap();
    for other in [subject.replace("front-1", "front-2"), subject.replace(".vault.", ".front.")] {
        world.leaders[0].machine.received(world.now, &other, &frame);
        assert!(world.leaders[0].machine.poll_event().is_none(), "{other}");
    }
    world.leaders[0].machine.received(world.now, &subject, &frame);
    let opened = world.leaders[0].machine.poll_event();
    assert!(matches!(opened, Some(LeaderEvent::Opened(it)) if it.session == session), "{opened:?}");
}

#[test]
fn attempts_under_one_name_leave_room_for_others() {
    let mut world = World::led(leader(in_folder(1)));
    let first = world.start("front-1", 10, in_folder(2));
    world.run(AT_ONCE);
    assert!(world.is_member(first));
    // All use the same folder, as if one process were restarted again and again.
    for process in 100..1_100 {
        let head = Head { shard: 7, process, attempt: 1, ..Head::of(1) };
        let frame = encode_frame(&head, &in_folder(2).to_bytes()).unwrap();
        world.leaders[0].machine.received(world.now, "ww.sim.1.up.1.vault.front-1", &frame);
    }
    let second = world.start("front-2", 11, in_folder(3));
    world.run(AT_ONCE);
    assert!(world.is_member(second) && world.refusals(second).is_empty());
    world.run(LONG);
    assert!(world.is_member(first) && world.is_member(second));
    assert!(world.given_up().is_empty(), "{:?}", world.given_up());
}

#[test]
fn a_node_cannot_open_sessions_faster_than_the_leader_can_begin_them() {
    let mut world = World::led(leader(in_folder(1)));
    let node = world.start("front-1", 10, in_folder(2));
    world.run(AT_ONCE);
    let opened = |world: &World| {
        let events = world.leaders[0].events.iter();
        events.filter(|event| matches!(event, LeaderEvent::Opened(_))).count()
    };
    for _ in 0..5_000 {
        world.nodes[node].machine.open_session().unwrap();
    }
    world.run(AT_ONCE);
    assert_eq!(opened(&world), 2_000);
    assert_eq!(world.times(node, |event| matches!(event, LinkEvent::Ended { .. })), 3_000);
    world.run(Duration::from_secs(1));
    world.nodes[node].machine.open_session().unwrap();
    world.run(AT_ONCE);
    assert_eq!(opened(&world), 2_001);
    assert_eq!(world.times_left(node), 0);
}

/// Both a burst and joining again and again.
#[test]
fn a_node_that_sends_too_much_costs_only_its_own_clients() {
    let mut world = World::led(leader(in_folder(1)));
    let [node, other] = [("front-1", 10), ("front-2", 11)]
        .map(|(name, process)| world.start(name, process, in_folder(process)));
    world.run(AT_ONCE);
    for _ in 0..40 {
        if let Some(session) = world.nodes[node].machine.open_session() {
            for _ in 0..50_000 {
                world.nodes[node].machine.report(session, &ClientReport::Lost);
            }
        }
        world.run(AT_ONCE);
    }
    let reports = world.leaders[0].events.iter();
    let reports = reports.filter(|event| matches!(event, LeaderEvent::Reported { .. })).count();
    // 12 s of its quota, and what it can send at once.
    assert!((100_000..320_000).contains(&reports), "{reports}");
    assert!(world.given_up().contains(&GiveUpReason::TooManyItems));
    assert!(world.refusals(node).contains(&Refusal::Excess));
    assert!(world.is_member(other) && world.times_left(other) == 0);
    world.run(LONG);
    assert!(world.is_member(node));
}

#[test]
fn a_node_cannot_make_the_leader_keep_more_requests_than_it_may() {
    let mut world = World::led(leader(in_folder(1)));
    let node = world.start("front-1", 10, in_folder(2));
    world.run(AT_ONCE);
    let session = world.nodes[node].machine.open_session().unwrap();
    let half = vec![0; MAX_REQUEST_BYTES / 2];
    for _ in 0..2 {
        world.nodes[node].machine.request(session, 1, half.clone()).unwrap();
    }
    world.run(AT_ONCE);
    assert!(world.given_up().is_empty());
    // Answered, or ended with their session.
    let asked = world.leaders[0].events.iter().find_map(|event| match event {
        LeaderEvent::Requested { from, number, .. } => Some((*from, *number)),
        _ => None,
    });
    let (from, number) = asked.unwrap();
    world.leaders[0].machine.reply(from, number, 0, Ok(Vec::new()));
    world.nodes[node].machine.request(session, 1, half.clone()).unwrap();
    world.run(AT_ONCE);
    assert!(world.given_up().is_empty());
    world.nodes[node].machine.end_session(session);
    let session = world.nodes[node].machine.open_session().unwrap();
    for _ in 0..2 {
        world.nodes[node].machine.request(session, 1, half.clone()).unwrap();
    }
    world.run(AT_ONCE);
    assert!(world.given_up().is_empty());
    world.nodes[node].machine.request(session, 1, vec![0]).unwrap();
    world.run(AT_ONCE);
    assert_eq!(world.given_up(), [GiveUpReason::TooManyRequests]);
}
