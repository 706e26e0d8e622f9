//! Hooks that subscribe to messages that are already waiting.

use core::time::Duration;

use worldwire_core::Side::{Client, Server};
use worldwire_core::json::{Json, json};

use super::{CONVERSATION, World, number};

fn pings() -> Json {
    json!({"type": "subscribe", "subscriptions": [{"id": "ping", "filter": "PingRequest"}]})
}

fn sync() -> Json {
    json!({"type": "sync", "conversation": CONVERSATION, "id": "s"})
}

#[test]
fn new_subscriptions_apply_to_messages_that_wait() {
    let mut world = World::new(false);
    let builds = json!([{"id": "build", "filter": "BuildIdRequest"}]);
    let hook = world.hook_with("a", builds, &["catch_up"]);
    world.ask_build(1);
    world.send(Client, 2);
    world.ask_build(3);
    world.send(Server, 4);
    let asked = hook.lines();
    assert_eq!(asked.len(), 2, "the requests");
    assert_eq!(world.received(Client), [4], "the other side does not wait");
    world.say(&hook, &pings());
    world.answer(&hook, &asked[0], json!({"do": "forward"}));
    world.say(&hook, &sync());
    let lines = hook.lines();
    assert_eq!((lines.len(), number(&lines[0])), (2, 2), "{lines:?}");
    assert_eq!(lines[1], json!({"type": "synced", "conversation": CONVERSATION, "id": "s"}));
    assert_eq!(world.received(Server), [1]);
    world.answer(&hook, &asked[1], json!({"do": "forward"}));
    assert!(world.received(Server).is_empty(), "it would overtake the ping");
    world.answer(&hook, &lines[0], json!({"do": "drop"}));
    assert_eq!(world.received(Server), [3]);
    assert!(world.problems().is_empty());
}

#[test]
fn messages_that_nobody_wants_continue_with_those_before_them() {
    let mut world = World::new(false);
    let builds = json!([{"id": "build", "filter": "BuildIdRequest"}]);
    let hook = world.hook_with("a", builds.clone(), &["catch_up"]);
    world.ask_build(1);
    world.send(Client, 2);
    assert!(world.received(Server).is_empty());
    world.answer(&hook, &hook.message(), json!({"do": "forward"}));
    assert_eq!(world.received(Server), [1, 2]);
    // Both messages also continue if the hook does not answer, or ends.
    world.ask_build(3);
    world.send(Client, 4);
    world.wait(Duration::from_secs(1));
    assert_eq!(world.received(Server), [3, 4]);
    world.ask_build(5);
    world.send(Client, 6);
    world.leave(&hook);
    assert_eq!(world.received(Server), [5, 6]);
    // Without the option, keep-alives do not wait.
    world.hook("b", builds);
    world.ask_build(7);
    world.send(Client, 8);
    assert_eq!(world.received(Server), [8]);
}

#[test]
fn later_hooks_see_messages_that_waited() {
    let mut world = World::new(false);
    let first =
        world.hook_with("a", json!([{"id": "b", "filter": "BuildIdRequest"}]), &["catch_up"]);
    let last = world.hook("z", json!([{"id": "all", "order": 5}]));
    world.ask_build(1);
    world.send(Client, 2);
    assert_eq!(last.lines().len(), 0, "both wait for the first hook");
    world.say(&first, &pings());
    world.send(Client, 3);
    let asked = first.lines();
    assert_eq!(asked.len(), 3, "also before it answers");
    for message in &asked {
        world.answer(&first, message, json!({"do": "forward"}));
    }
    let asked = last.lines();
    assert_eq!(asked.len(), 3);
    for message in &asked {
        world.answer(&last, message, json!({"do": "pass"}));
    }
    assert_eq!(world.received(Server), [1, 2, 3]);
}
