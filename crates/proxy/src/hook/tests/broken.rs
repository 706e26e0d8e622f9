//! Hooks that end, send faulty lines, or are required.

use core::time::Duration;

use worldwire_core::Side::{Client, Server};
use worldwire_core::json::json;

use super::{World, hex, number};
use crate::hook::link::MAX_UNANSWERED;

#[test]
fn messages_of_a_hook_that_ends_continue() {
    let mut world = World::new(false);
    let first = world.hook("first", json!([{"id": "all"}]));
    let second = world.hook("second", json!([{"id": "all"}]));
    for number in [1, 2, 3] {
        world.send(Client, number);
    }
    let asked = first.lines();
    world.answer(&first, &asked[1], json!({"do": "drop"}));
    world.answer(&first, &asked[2], json!({"do": "hold"}));
    world.leave(&first);
    let asked = second.lines();
    assert_eq!(asked.iter().map(number).collect::<Vec<_>>(), [1, 3]);
    for message in &asked {
        world.answer(&second, message, json!({"do": "pass"}));
    }
    world.leave(&second);
    world.send(Client, 4);
    assert_eq!(world.received(Server), [1, 3, 4]);
    assert!(world.problems().is_empty());
    assert!(!world.exchange.is_closed());
}

#[test]
fn wrong_answers_change_nothing() {
    let mut world = World::new(false);
    let hook = world.hook("a", json!([{"id": "all"}]));
    let other = world.hook("b", json!([]));
    world.send(Client, 1);
    let message = hook.message();
    for (player, id) in
        [(&hook, "7.999"), (&hook, "7.0"), (&other, message["id"].as_str().unwrap())]
    {
        world.say(player, &json!({"type": "answer", "id": id, "do": "drop"}));
        let errors = player.lines();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0]["id"].as_str(), Some(id));
    }
    world.answer(&hook, &message, json!({"do": "replace", "fields": {"pingTimeMs": "x"}}));
    let errors = hook.errors();
    assert!(errors.len() == 1 && errors[0].starts_with("file.PingRequest continues unchanged: "));
    assert_eq!(world.received(Server), [1]);
    world.answer(&hook, &message, json!({"do": "drop"}));
    assert_eq!(hook.errors().len(), 1, "it was answered before");
    // Bytes that are not a message.
    world.send(Client, 2);
    world.answer(&hook, &hook.message(), json!({"do": "replace", "bytes": "0102"}));
    assert_eq!(world.received(Server), [2]);
    let (errors, problems) = (hook.errors(), world.problems());
    assert!(errors.len() == 1 && problems == errors, "{errors:?} {problems:?}");
    assert!(errors[0].starts_with("file.PingRequest was forwarded unchanged: "), "{errors:?}");
}

#[test]
fn a_hook_that_answers_nothing_is_passed_over() {
    let mut world = World::new(false);
    let hook = world.hook("a", json!([{"id": "all"}]));
    for _ in 0..MAX_UNANSWERED - 2 {
        hook.link.ask("a message of another conversation\n").unwrap();
    }
    hook.link.take();
    for number in 0..5 {
        world.ask_build(number);
    }
    let asked = hook.lines();
    assert_eq!(asked.len(), 2);
    let problems = world.problems();
    assert!(
        problems.len() == 1 && problems[0].contains("4096 unanswered messages"),
        "{problems:?}"
    );
    for message in &asked {
        world.answer(&hook, message, json!({"do": "forward"}));
    }
    assert_eq!(world.received(Server), [0, 1, 2, 3, 4]);
    world.ask_build(5);
    assert_eq!(hook.lines().len(), 1, "there is room again");
}

#[test]
fn changes_that_wait_are_bounded() {
    let mut world = World::new(false);
    let hook = world.hook("a", json!([{"id": "all"}]));
    for number in 0..8 {
        world.send(Client, number);
    }
    let asked = hook.lines();
    // As long as the first message is held, all the others wait.
    for message in asked.iter().skip(1) {
        world.replace(&hook, message, vec![0; 7 << 20]);
    }
    let errors = hook.errors();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[0].contains("more than 33554432 bytes"), "{errors:?}");
    world.answer(&hook, &asked[0], json!({"do": "pass"}));
    assert_eq!(world.received(Server), (0..8).collect::<Vec<_>>());
}

#[test]
fn a_required_hook_ends_conversations_instead() {
    // A required hook that is not running.
    let mut world = World::with_sources(true, &["hook.py"]);
    world.send(Client, 1);
    assert!(world.exchange.is_closed() && world.received(Server).is_empty());
    assert_eq!(world.problems(), ["the hook hook.py is required, but it is not running"]);
    // A required hook that does not answer.
    let mut world = World::with_sources(true, &["hook.py"]);
    let hook = world.hook("a", json!([{"id": "all"}]));
    world.send(Client, 1);
    world.answer(&hook, &hook.message(), json!({"do": "pass"}));
    assert_eq!(world.received(Server), [1]);
    world.send(Client, 2);
    world.wait(Duration::from_secs(1));
    assert!(world.exchange.is_closed() && world.received(Server).is_empty());
    let problems = [
        "the hook a is required, but it did not answer within 1s",
        "1 held message was dropped: the conversation has ended",
    ];
    assert_eq!(world.problems(), problems);
    // A required hook that ends.
    let mut world = World::with_sources(true, &["hook.py"]);
    let hook = world.hook("a", json!([{"id": "all"}]));
    world.send(Client, 1);
    world.leave(&hook);
    assert!(world.exchange.is_closed() && world.received(Server).is_empty());
    // A required hook that is too slow.
    let mut world = World::with_sources(true, &["hook.py"]);
    let hook = world.hook("a", json!([{"id": "all"}]));
    for _ in 0..MAX_UNANSWERED {
        hook.link.ask("a message of another conversation\n").unwrap();
    }
    world.send(Server, 1);
    assert!(world.exchange.is_closed() && world.received(Client).is_empty());
}

#[test]
fn a_message_that_a_hook_answered_is_not_changed_by_its_end() {
    let mut world = World::new(false);
    let hook = world.hook("a", json!([{"id": "all"}]));
    let next = world.hook("b", json!([{"id": "all"}]));
    world.send(Client, 1);
    world.answer(&hook, &hook.message(), json!({"do": "replace", "bytes": hex(2)}));
    world.leave(&hook);
    world.answer(&next, &next.message(), json!({"do": "pass"}));
    assert_eq!(world.received(Server), [2]);
}
