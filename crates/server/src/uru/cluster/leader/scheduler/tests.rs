//! Tests of the scheduler alone. `age_simulation` tests it together with nodes.

use std::net::Ipv4Addr;

use super::*;

const CITY: u32 = 10_100;
const START: Duration = Duration::from_secs(100);

fn second(number: u64) -> Duration {
    START + Duration::from_secs(number)
}

fn placement(fence: u64, process: u64) -> Placement {
    let (node, filename) = ("a".to_owned(), "city".to_owned());
    Placement { fence, node, process, instance: Uuid([7; 16]), filename, folder: process }
}

fn visit(number: u32, fence: u64, player: u32) -> Visit {
    Visit {
        number,
        fence,
        filename: "city".to_owned(),
        age: number,
        instance: Uuid([7; 16]),
        player,
        account: Uuid([1; 16]),
        player_name: "Ann".to_owned(),
        is_admin: false,
        auth: u64::from(player) + 100,
        address: Ipv4Addr::LOCALHOST.into(),
    }
}

fn info(max_players: u32) -> AgeReport {
    let host = "192.0.2.7".to_owned();
    AgeReport::Info { info: NodeInfo { runs_ages: true, host, max_players } }
}

/// A scheduler with two nodes: process 1 with incarnation 11, and process 2 with incarnation 22.
fn two_nodes() -> Scheduler {
    let mut scheduler = Scheduler::new(START, Vec::new(), Duration::ZERO);
    for (name, process, incarnation) in [("a", 1, 11), ("b", 2, 22)] {
        scheduler.joined(START, name.to_owned(), incarnation, (process, process));
        scheduler.reported(START, incarnation, info(100));
    }
    scheduler
}

fn tasks(scheduler: &mut Scheduler) -> Vec<Task> {
    std::iter::from_fn(|| scheduler.poll_task()).collect()
}

/// Orders a node to expect a player, and lets the player arrive.
fn bring(scheduler: &mut Scheduler, number: u32, placed: &Placement, player: u32) {
    let incarnation = placed.process * 11;
    let request = scheduler.expect(START, placed, visit(number, placed.fence, player));
    scheduler.reported(START, incarnation, AgeReport::Expecting { request });
    let (fence, auth) = (placed.fence, u64::from(player) + 100);
    let arrived = AgeReport::Arrived { number, fence, player, auth };
    scheduler.reported(START, incarnation, arrived);
    let answer = Task::Answer { request, outcome: Ok(()) };
    assert!(tasks(scheduler).contains(&answer));
}

fn chosen(scheduler: &Scheduler) -> u64 {
    match scheduler.choose() {
        Choice::Node(candidate) => candidate.process,
        other => panic!("{other:?}"),
    }
}

#[test]
fn new_ages_go_where_most_room_is() {
    let mut scheduler = Scheduler::new(START, Vec::new(), Duration::ZERO);
    assert_eq!(scheduler.choose(), Choice::Here);
    scheduler.joined(START, "front".to_owned(), 33, (3, 3));
    let front = NodeInfo { host: "192.0.2.9".to_owned(), ..NodeInfo::default() };
    scheduler.reported(START, 33, AgeReport::Info { info: front });
    assert_eq!(scheduler.choose(), Choice::Here);

    let mut scheduler = two_nodes();
    assert_eq!(chosen(&scheduler), 1);
    // The node is being drained.
    scheduler.reported(START, 11, info(0));
    assert_eq!(chosen(&scheduler), 2);
    scheduler.reported(START, 11, info(100));
    assert_eq!(chosen(&scheduler), 1);
    bring(&mut scheduler, CITY, &placement(1, 1), 5);
    assert_eq!(chosen(&scheduler), 2);
    bring(&mut scheduler, CITY + 1, &placement(2, 2), 6);
    bring(&mut scheduler, CITY + 1, &placement(2, 2), 7);
    assert_eq!(chosen(&scheduler), 1);
    // The node now has three times as much room.
    scheduler.reported(START, 22, info(300));
    assert_eq!(chosen(&scheduler), 2);
    // An address that clients cannot use.
    let host = "a host name that is too long".to_owned();
    let info = NodeInfo { runs_ages: true, host, max_players: 900 };
    scheduler.reported(START, 22, AgeReport::Info { info });
    assert_eq!(chosen(&scheduler), 1);
}

#[test]
fn ages_requested_at_the_same_time_go_to_different_nodes() {
    let mut scheduler = two_nodes();
    assert_eq!(chosen(&scheduler), 1);
    scheduler.reserve(1);
    assert_eq!(chosen(&scheduler), 2);
    scheduler.reserve(2);
    assert_eq!(chosen(&scheduler), 1);
    bring(&mut scheduler, CITY, &placement(1, 1), 5);
    scheduler.release(1);
    assert_eq!(chosen(&scheduler), 2);
    scheduler.release(2);
    assert_eq!(chosen(&scheduler), 2, "it has no ages");
    // As after a change of leader.
    scheduler.release(2);
    assert!(scheduler.reserved.is_empty());
}

#[test]
fn a_node_whose_files_differ_gets_no_new_ages() {
    let mut scheduler = two_nodes();
    scheduler.compared(11, false);
    assert_eq!(chosen(&scheduler), 2);
    scheduler.compared(22, false);
    assert_eq!(scheduler.choose(), Choice::Here);
    scheduler.compared(11, true);
    assert_eq!(chosen(&scheduler), 1);
}

#[test]
fn a_node_that_does_not_answer_gets_no_more_ages() {
    let mut scheduler = two_nodes();
    bring(&mut scheduler, CITY + 1, &placement(2, 2), 6);
    scheduler.reported(START, 11, info(9_000));
    let request = scheduler.expect(START, &placement(1, 1), visit(CITY, 1, 5));
    let order = AgeOrder::Expect { request, visit: visit(CITY, 1, 5) };
    assert_eq!(tasks(&mut scheduler), [Task::Order { incarnation: 11, order }]);
    // An answer from the wrong node.
    scheduler.reported(START, 22, AgeReport::Expecting { request });
    assert_eq!(scheduler.poll_timeout(), START + LOOK_EVERY);
    scheduler.timeout(START + LOOK_EVERY);
    assert_eq!(scheduler.poll_timeout(), START + ANSWER_WITHIN);
    scheduler.timeout(START + ANSWER_WITHIN);
    let outcome = Err(NotExpected::NoAnswer);
    assert_eq!(tasks(&mut scheduler), [Task::Answer { request, outcome }]);
    assert_eq!(chosen(&scheduler), 2);
    scheduler.reported(second(3), 11, AgeReport::Expecting { request });
    assert_eq!(chosen(&scheduler), 1);
}

#[test]
fn a_silent_node_loses_its_ages_at_once_and_others_after_a_while() {
    let mut scheduler = two_nodes();
    bring(&mut scheduler, CITY, &placement(1, 1), 5);
    bring(&mut scheduler, CITY + 1, &placement(2, 2), 6);
    scheduler.left(second(1), 11, true);
    let left = Task::Left { auth: 105, age: CITY };
    assert_eq!(tasks(&mut scheduler), [left, Task::End(vec![(CITY, 1)])]);
    // A caller that learned of that placement before it ended needs a new one.
    let request = scheduler.expect(second(1), &placement(1, 1), visit(CITY, 1, 5));
    let over = Task::Answer { request, outcome: Err(NotExpected::Over) };
    assert!(tasks(&mut scheduler).contains(&over));

    scheduler.left(second(1), 22, false);
    assert_eq!(tasks(&mut scheduler), []);
    assert_eq!(scheduler.choose(), Choice::Wait);
    scheduler.timeout(second(1) + PATIENCE - Duration::from_millis(1));
    assert_eq!(tasks(&mut scheduler), []);
    scheduler.timeout(second(1) + PATIENCE);
    assert!(tasks(&mut scheduler).contains(&Task::End(vec![(CITY + 1, 2)])));
    assert_eq!(scheduler.choose(), Choice::Here);
    assert!(scheduler.loads.is_empty() && scheduler.running(second(5)).is_empty());
}

#[test]
fn a_process_that_joins_again_keeps_its_ages() {
    let mut scheduler = two_nodes();
    bring(&mut scheduler, CITY, &placement(1, 1), 5);
    bring(&mut scheduler, CITY, &placement(1, 1), 6);
    scheduler.left(second(1), 11, false);
    let request = scheduler.expect(second(1), &placement(1, 1), visit(CITY, 1, 7));
    assert_eq!(tasks(&mut scheduler), []);
    scheduler.joined(second(2), "a".to_owned(), 12, (1, 1));
    let order = AgeOrder::Expect { request, visit: visit(CITY, 1, 7) };
    assert_eq!(tasks(&mut scheduler), [Task::Order { incarnation: 12, order }]);
    let running = AgeReport::Running { number: CITY, fence: 1 };
    scheduler.reported(second(2), 12, running);
    // Player 6 has left in the meantime.
    let arrived = AgeReport::Arrived { number: CITY, fence: 1, player: 5, auth: 105 };
    scheduler.reported(second(2), 12, arrived);
    assert_eq!(tasks(&mut scheduler), [Task::Came { player: 5 },]);
    scheduler.timeout(second(7));
    assert!(tasks(&mut scheduler).contains(&Task::Left { auth: 106, age: CITY }));
    assert_eq!(scheduler.players(), [5]);
    scheduler.timeout(second(60));
    assert_eq!(scheduler.running(second(60)).len(), 1);
}

#[test]
fn placements_of_earlier_leaders_wait_for_their_processes() {
    let stored = vec![(CITY, placement(4, 1)), (CITY + 1, placement(5, 2))];
    let hold = Duration::from_secs(30);
    let mut scheduler = Scheduler::new(START, stored, hold);
    assert_eq!(scheduler.choose(), Choice::Wait);
    scheduler.joined(START, "a".to_owned(), 11, (1, 1));
    assert_eq!(scheduler.choose(), Choice::Wait, "its information is missing");
    scheduler.reported(START, 11, info(100));
    assert_eq!(chosen(&scheduler), 1);
    // An age whose placement has ended, and an age of another process.
    for (number, fence) in [(CITY, 3), (CITY + 1, 5), (CITY + 2, 1)] {
        scheduler.reported(START, 11, AgeReport::Running { number, fence });
        let order = AgeOrder::Revoke { number, fence };
        assert_eq!(tasks(&mut scheduler), [Task::Order { incarnation: 11, order }]);
    }
    scheduler.reported(START, 11, AgeReport::Running { number: CITY, fence: 4 });
    assert_eq!(tasks(&mut scheduler), []);
    let end = START + PATIENCE + hold;
    scheduler.timeout(START + PATIENCE - Duration::from_millis(1));
    assert_eq!(tasks(&mut scheduler), []);
    scheduler.timeout(START + PATIENCE + LOOK_EVERY);
    let (nodes, after) = (BTreeSet::from(["a".to_owned()]), hold - LOOK_EVERY);
    assert_eq!(tasks(&mut scheduler), [Task::Missing { nodes, ages: 1, after }]);
    scheduler.timeout(end - Duration::from_millis(1));
    assert_eq!(tasks(&mut scheduler), []);
    scheduler.timeout(end);
    assert_eq!(tasks(&mut scheduler), [Task::End(vec![(CITY + 1, 5)])]);
}

#[test]
fn a_node_cannot_move_players_of_others() {
    let mut scheduler = two_nodes();
    bring(&mut scheduler, CITY, &placement(1, 1), 5);
    bring(&mut scheduler, CITY + 1, &placement(2, 2), 6);
    let departed = AgeReport::Departed { number: CITY, fence: 1, player: 5 };
    scheduler.reported(START, 22, departed);
    let arrived = AgeReport::Arrived { number: CITY + 1, fence: 2, player: 5, auth: 105 };
    scheduler.reported(START, 22, arrived.clone());
    let order = AgeOrder::Out { number: CITY + 1, player: 5, auth: 105 };
    assert_eq!(tasks(&mut scheduler), [Task::Order { incarnation: 22, order }]);
    assert_eq!(scheduler.present.get(5).map(|place| place.process), Some(1));
    // Once the player is expected there, they may leave the city.
    let request = scheduler.expect(START, &placement(2, 2), visit(CITY + 1, 2, 5));
    scheduler.reported(START, 22, AgeReport::Expecting { request });
    scheduler.reported(START, 22, arrived);
    let order = AgeOrder::Out { number: CITY, player: 5, auth: 105 };
    assert!(tasks(&mut scheduler).contains(&Task::Order { incarnation: 11, order }));
}

#[test]
fn an_age_ends_when_it_is_empty_or_not_heard_of() {
    let mut scheduler = two_nodes();
    bring(&mut scheduler, CITY, &placement(1, 1), 5);
    bring(&mut scheduler, CITY + 1, &placement(2, 1), 6);
    scheduler.reported(START, 11, AgeReport::Departed { number: CITY, fence: 1, player: 5 });
    assert_eq!(tasks(&mut scheduler), [Task::Left { auth: 105, age: CITY }]);
    // Meanwhile, a player is on the way.
    let request = scheduler.expect(START, &placement(1, 1), visit(CITY, 1, 7));
    tasks(&mut scheduler);
    scheduler.reported(START, 11, AgeReport::Ended { number: CITY, fence: 1 });
    let over = Task::Answer { request, outcome: Err(NotExpected::Over) };
    assert_eq!(tasks(&mut scheduler), [over, Task::End(vec![(CITY, 1)])]);
    scheduler.have_ended(&[(CITY, 1)]);
    assert!(scheduler.ending.is_empty());

    let running = AgeReport::Running { number: CITY + 1, fence: 2 };
    scheduler.reported(second(60), 11, running);
    scheduler.timeout(second(129));
    assert_eq!(tasks(&mut scheduler), []);
    scheduler.timeout(second(131));
    let order = AgeOrder::Revoke { number: CITY + 1, fence: 2 };
    let found = tasks(&mut scheduler);
    assert_eq!(found.first(), Some(&Task::Order { incarnation: 11, order }));
    assert_eq!(found.last(), Some(&Task::End(vec![(CITY + 1, 2)])));
}

#[test]
fn players_are_in_one_age_and_leave_with_their_sessions() {
    let mut scheduler = two_nodes();
    bring(&mut scheduler, CITY, &placement(1, 1), 5);
    let out = |incarnation, number| {
        let order = AgeOrder::Out { number, player: 5, auth: 105 };
        Task::Order { incarnation, order }
    };
    let elsewhere = placement(2, 2);
    let request = scheduler.expect(START, &elsewhere, visit(CITY + 1, 2, 5));
    scheduler.reported(START, 22, AgeReport::Expecting { request });
    tasks(&mut scheduler);
    let arrived = AgeReport::Arrived { number: CITY + 1, fence: 2, player: 5, auth: 105 };
    scheduler.reported(START, 22, arrived);
    assert_eq!(tasks(&mut scheduler), [out(11, CITY), Task::Came { player: 5 }]);
    // The old age reports the departure late.
    scheduler.reported(START, 11, AgeReport::Departed { number: CITY, fence: 1, player: 5 });
    assert_eq!(tasks(&mut scheduler), []);
    assert_eq!(scheduler.players(), [5]);

    scheduler.offline(&[4, 5]);
    assert_eq!(tasks(&mut scheduler), [out(22, CITY + 1)]);
    let request = scheduler.expect(START, &placement(1, 1), visit(CITY, 1, 5));
    tasks(&mut scheduler);
    scheduler.session_ended(105);
    assert_eq!(tasks(&mut scheduler), [out(22, CITY + 1), out(11, CITY)]);
    assert!(scheduler.waiting.contains_key(&request) && scheduler.expected.get(5).is_none());
}

/// A player who re-enters the same age does not count as having left it.
#[test]
fn a_player_who_comes_back_has_not_left() {
    let mut scheduler = two_nodes();
    bring(&mut scheduler, CITY, &placement(1, 1), 5);
    scheduler.expect(START, &placement(1, 1), visit(CITY, 1, 5));
    tasks(&mut scheduler);
    scheduler.reported(START, 11, AgeReport::Departed { number: CITY, fence: 1, player: 5 });
    assert_eq!(tasks(&mut scheduler), []);
}

#[test]
fn messages_of_operators_reach_all_nodes_with_ages() {
    let mut scheduler = two_nodes();
    bring(&mut scheduler, CITY, &placement(1, 1), 5);
    assert_eq!(scheduler.announce(Some(Uuid([8; 16])), "Shard", "Hello"), 0);
    assert_eq!(tasks(&mut scheduler).len(), 2);
    assert_eq!(scheduler.announce(None, "Shard", "Hello"), 1);
    let [text, sender] = ["Hello", "Shard"].map(str::to_owned);
    let order = AgeOrder::Announce { instance: Uuid::ZERO, sender, text };
    let orders = [11, 22].map(|incarnation| Task::Order { incarnation, order: order.clone() });
    assert_eq!(tasks(&mut scheduler), orders);
    let ages = scheduler.running(second(3));
    assert_eq!(ages.len(), 1);
    assert_eq!(ages[0].players, [(5, Duration::from_secs(3))]);
}

/// The database was restored from a backup that has an earlier placement of the same process.
#[test]
fn placements_of_a_restored_database_end_when_their_process_had_later_ones() {
    let (number, fence) = (CITY, 9);
    for report in [
        AgeReport::Ended { number, fence },
        AgeReport::Running { number, fence },
        AgeReport::Arrived { number, fence, player: 1, auth: 101 },
    ] {
        let mut scheduler = Scheduler::new(START, vec![(CITY, placement(4, 1))], Duration::ZERO);
        scheduler.joined(START, "a".to_owned(), 11, (1, 1));
        scheduler.joined(START, "b".to_owned(), 22, (2, 2));
        scheduler.reported(START, 22, report.clone());
        assert!(!tasks(&mut scheduler).contains(&Task::End(vec![(CITY, 4)])), "another process");
        scheduler.reported(START, 11, report);
        assert!(tasks(&mut scheduler).contains(&Task::End(vec![(CITY, 4)])));
    }
}

#[test]
fn ages_of_a_restarted_node_do_not_wait_until_an_old_leader_must_be_gone() {
    let hold = Duration::from_secs(30);
    for (folder, wait) in [(1, PATIENCE), (9, PATIENCE + hold), (0, PATIENCE + hold)] {
        let stored = vec![(CITY, placement(7, 1))];
        let mut scheduler = Scheduler::new(START, stored, hold);
        scheduler.joined(START, "a".to_owned(), 22, (2, folder));
        scheduler.reported(START, 22, info(100));
        scheduler.timeout(START + wait - Duration::from_millis(1));
        let ended =
            |scheduler: &mut Scheduler| tasks(scheduler).contains(&Task::End(vec![(CITY, 7)]));
        assert!(!ended(&mut scheduler), "{folder}");
        scheduler.timeout(START + wait);
        assert!(ended(&mut scheduler), "{folder}");
    }
}
