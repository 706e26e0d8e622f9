//! Messages that hooks add.

use worldwire_core::Side::{Client, Server};
use worldwire_core::json::{Json, json};

use super::{CONVERSATION, World, flags, hex, number};
use crate::hook::router::{MAX_ADDED_BYTES, MAX_DEPTH};

fn named(to: &str, number: u32) -> Json {
    let name = if to == "client" { "file.PingReply" } else { "file.PingRequest" };
    json!({"to": to, "name": name, "fields": {"pingTimeMs": number}})
}

#[test]
fn additions_leave_right_before_their_message() {
    let mut world = World::new(false);
    let hook = world.hook("a", json!([{"id": "all", "from": "client"}]));
    for number in [1, 2, 3] {
        world.send(Client, number);
    }
    let asked = hook.lines();
    let add = json!([named("server", 20), {"to": "server", "bytes": hex(21)}, named("client", 22)]);
    world.answer(&hook, &asked[1], json!({"do": "forward", "add": add}));
    assert!(world.received(Server).is_empty(), "they would overtake the first message");
    let add = json!([named("server", 30)]);
    world.answer(&hook, &asked[2], json!({"do": "drop", "add": add}));
    let add = json!([named("client", 11), named("server", 10)]);
    world.answer(&hook, &asked[0], json!({"do": "replace", "bytes": hex(12), "add": add}));
    assert_eq!(world.received(Server), [10, 12, 20, 21, 2, 30]);
    assert_eq!(world.received(Client), [11, 22]);
    assert!(hook.errors().is_empty());
    let counts = world.exchange.counts();
    assert_eq!((counts.messages, counts.changed, counts.dropped, counts.added), (3, 1, 1, 6));
}

#[test]
fn messages_can_be_added_at_any_time() {
    let mut world = World::new(false);
    let hook = world.hook("a", json!([{"id": "all"}]));
    let line =
        |messages| json!({"type": "add", "conversation": CONVERSATION, "messages": messages});
    world.say(&hook, &line(json!([named("client", 1), named("server", 2), named("client", 3)])));
    assert_eq!((world.received(Client), world.received(Server)), (vec![1, 3], vec![2]));
    // Added messages do not wait for messages that hooks have to answer.
    world.send(Client, 4);
    world.say(&hook, &line(json!([{"to": "server", "bytes": hex(5)}])));
    assert_eq!(world.received(Server), [5]);
    world.answer(&hook, &hook.message(), json!({"do": "forward"}));
    assert_eq!(world.received(Server), [4]);
}

#[test]
fn additions_that_cannot_be_sent_are_reported() {
    let mut world = World::new(false);
    let hook = world.hook("a", json!([{"id": "all"}]));
    world.send(Client, 1);
    let message = hook.message();
    let add = json!([
        {"to": "server", "name": "file.PingRequst", "fields": {}},
        {"to": "server", "name": "file.PingRequest", "fields": {"pingTimeMs": -1}},
        named("server", 2),
        {"to": "server", "bytes": "00"},
    ]);
    world.answer(&hook, &message, json!({"do": "pass", "add": add}));
    assert_eq!(world.received(Server), [2, 1], "the others are sent");
    let lines = hook.lines();
    let text = |index: usize| lines[index]["text"].as_str().unwrap();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(text(0).starts_with("add[0] was not added: "), "{}", text(0));
    assert!(text(1).starts_with("add[1] was not added: ") && text(1).contains("pingTimeMs"));
    assert_eq!([&lines[0]["id"], &lines[1]["id"]], [&message["id"]; 2]);
    assert!(text(2).starts_with("a message was not added: "), "{}", text(2));
}

#[test]
fn other_hooks_can_see_and_change_additions() {
    let mut world = World::new(false);
    let author = world.hook("author", json!([{"id": "all", "fake": null}]));
    let other = world.hook("other", json!([{"id": "fakes", "fake": true, "order": -1}]));
    let last = world.hook("last", json!([{"id": "fakes", "fake": true, "order": 1}]));
    world.send(Client, 1);
    let add = json!([named("server", 2), named("server", 3), {"to": "client", "bytes": hex(9)}]);
    world.answer(&author, &author.message(), json!({"do": "forward", "add": add}));
    let message = other.message();
    assert_eq!((number(&message), flags(&message)), (2, vec!["fake"]));
    world.answer(&other, &message, json!({"do": "replace", "fields": {"pingTimeMs": 20}}));
    let message = last.message();
    assert_eq!((number(&message), flags(&message)), (20, vec!["modified", "fake"]));
    world.answer(&last, &message, json!({"do": "pass"}));
    world.answer(&other, &other.message(), json!({"do": "drop"}));
    assert!(author.lines().is_empty() && last.lines().is_empty());
    assert_eq!((world.received(Server), world.received(Client)), (vec![20, 1], vec![9]));
}

#[test]
fn hooks_that_answer_each_other_come_to_an_end() {
    let mut world = World::new(false);
    let fakes = json!([{"id": "fakes", "fake": true}]);
    let (one, other) = (world.hook("one", fakes.clone()), world.hook("other", fakes));
    let line =
        json!({"type": "add", "conversation": CONVERSATION, "messages": [named("server", 0)]});
    world.say(&one, &line);
    let mut count = 0;
    for (index, player) in [&other, &one].into_iter().cycle().take(100).enumerate() {
        let lines = player.lines();
        let Some(message) = lines.first() else { break };
        count += 1;
        let next = u32::try_from(index).unwrap() + 1;
        world.answer(player, message, json!({"do": "pass", "add": [named("server", next)]}));
    }
    assert_eq!(count, MAX_DEPTH);
    let received = world.received(Server);
    assert_eq!(received, (0..=MAX_DEPTH).rev().collect::<Vec<_>>());
}

#[test]
fn waiting_additions_are_bounded() {
    let mut world = World::new(false);
    let author = world.hook("author", json!([{"id": "all"}]));
    let _other = world.hook("other", json!([{"id": "fakes", "fake": true}]));
    world.send(Client, 1);
    let bytes = "00".repeat(MAX_ADDED_BYTES / 3);
    let large = json!({"to": "server", "name": "file.PingRequest", "bytes": bytes});
    let add = json!([large, large, large]);
    let message = author.message();
    world.answer(&author, &message, json!({"do": "pass", "add": add}));
    assert!(author.errors().is_empty());
    world.say(&author, &json!({"type": "add", "conversation": CONVERSATION, "messages": [large]}));
    let errors = author.errors();
    assert!(errors.len() == 1 && errors[0].contains("16777216 bytes"), "{errors:?}");
}
