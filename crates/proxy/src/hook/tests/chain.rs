//! Several hooks in order: the messages that each of them sees, and those that are sent.

use core::time::Duration;

use worldwire_core::Side::{Client, Server};
use worldwire_core::json::json;

use super::{World, flags, hex, number};

#[test]
fn messages_that_no_hook_wants_pass_at_once() {
    let mut world = World::new(false);
    world.send(Client, 1);
    let hook = world.hook(
        "a",
        json!([
            {"id": "auth", "filter": "auth.*"},
            {"id": "server", "from": "server"},
            {"id": "large", "filter": "pingTimeMs > 100"},
            {"id": "fake", "fake": true},
        ]),
    );
    world.send(Client, 2);
    assert_eq!(world.received(Server), [1, 2]);
    assert!(hook.lines().is_empty());
    world.send(Server, 3);
    let message = hook.message();
    assert_eq!(message["subscriptions"], json!(["server"]));
    assert_eq!(message["name"].as_str(), Some("file.PingReply"));
    assert_eq!(message["conversation"].as_u64(), Some(super::CONVERSATION));
    world.send(Client, 101);
    assert_eq!(hook.message()["subscriptions"], json!(["large"]));
    assert!(world.received(Server).is_empty() && world.received(Client).is_empty());
}

#[test]
fn each_hook_sees_what_the_one_before_left() {
    let mut world = World::new(false);
    let all = |order| json!([{"id": "all", "order": order, "bytes": true}]);
    let (second, first) = (world.hook("second", all(2)), world.hook("first", all(-1)));
    let third = world.hook(
        "third",
        json!([
            {"id": "small", "order": 3, "filter": "pingTimeMs < 5"},
            {"id": "modified", "order": 3, "modified": true, "fields": false},
            {"id": "untouched", "order": 4, "modified": false},
        ]),
    );
    world.send(Client, 1);
    assert!(second.lines().is_empty() && third.lines().is_empty());
    let message = first.message();
    assert_eq!((number(&message), flags(&message)), (1, vec![]));
    assert_eq!(message["bytes"].as_str(), Some(&*hex(1)));
    world.answer(&first, &message, json!({"do": "replace", "fields": {"pingTimeMs": 20}}));
    let message = second.message();
    assert_eq!((number(&message), flags(&message)), (20, vec!["modified"]));
    assert_eq!(message["bytes"].as_str(), Some(&*hex(20)));
    assert_eq!(message["name"].as_str(), Some("file.PingRequest"));
    world.answer(&second, &message, json!({"do": "replace", "bytes": hex(30)}));
    let message = third.message();
    assert_eq!(message["subscriptions"], json!(["modified"]));
    assert_eq!(message["fields"], json!({}), "they were not asked for");
    assert!(world.received(Server).is_empty());
    world.answer(&third, &message, json!({"do": "pass"}));
    assert_eq!(world.received(Server), [30]);
    let counts = world.exchange.counts();
    assert_eq!((counts.messages, counts.changed, counts.dropped, counts.added), (1, 1, 0, 0));
}

#[test]
fn dropped_messages_can_be_seen_and_restored() {
    let mut world = World::new(false);
    let first = world.hook("first", json!([{"id": "all"}]));
    let second = world.hook("second", json!([{"id": "all", "silenced": true}]));
    let third = world.hook("third", json!([{"id": "all"}]));
    for (number, what, passes) in
        [(1, json!({"do": "pass"}), false), (2, json!({"do": "forward"}), true)]
    {
        world.send(Client, number);
        world.answer(&first, &first.message(), json!({"do": "drop"}));
        let message = second.message();
        assert_eq!(flags(&message), ["silenced"]);
        world.answer(&second, &message, what);
        if passes {
            world.answer(&third, &third.message(), json!({"do": "forward"}));
        }
        assert!(third.lines().is_empty());
        assert_eq!(world.received(Server), if passes { vec![number] } else { vec![] });
    }
    // Replacing a dropped message restores it, too.
    world.send(Client, 3);
    world.answer(&first, &first.message(), json!({"do": "drop"}));
    world.answer(&second, &second.message(), json!({"do": "replace", "bytes": hex(4)}));
    let message = third.message();
    assert_eq!((number(&message), flags(&message)), (4, vec!["modified"]));
    world.answer(&third, &message, json!({"do": "pass"}));
    assert_eq!(world.received(Server), [4]);
    let counts = world.exchange.counts();
    assert_eq!((counts.messages, counts.changed, counts.dropped), (3, 1, 1));
}

#[test]
fn answers_may_come_in_any_order() {
    let mut world = World::new(false);
    let first = world.hook("first", json!([{"id": "all"}]));
    let second = world.hook("second", json!([{"id": "all", "filter": "pingTimeMs != 2"}]));
    for number in [1, 2, 3, 4] {
        world.send(Client, number);
    }
    let asked = first.lines();
    assert_eq!(asked.iter().map(number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    world.send(Server, 9);
    world.answer(&first, &first.message(), json!({"do": "forward"}));
    world.answer(&second, &second.message(), json!({"do": "forward"}));
    assert_eq!(world.received(Client), [9], "the other direction does not wait");
    for index in [2, 1, 3] {
        world.answer(&first, &asked[index], json!({"do": "forward"}));
        assert!(second.lines().is_empty(), "later messages do not overtake");
    }
    world.answer(&first, &asked[0], json!({"do": "forward"}));
    let asked = second.lines();
    assert_eq!(asked.iter().map(number).collect::<Vec<_>>(), [1, 3, 4]);
    world.answer(&second, &asked[1], json!({"do": "drop"}));
    world.answer(&second, &asked[2], json!({"do": "forward"}));
    assert!(world.received(Server).is_empty());
    world.answer(&second, &asked[0], json!({"do": "forward"}));
    assert_eq!(world.received(Server), [1, 2, 4]);
}

#[test]
fn without_an_answer_a_message_continues_unchanged() {
    let mut world = World::new(false);
    let slow = world.hook("slow", json!([{"id": "all"}]));
    let next = world.hook("next", json!([{"id": "all"}]));
    world.send(Client, 1);
    let late = slow.message();
    world.wait(Duration::from_millis(999));
    assert!(next.lines().is_empty());
    world.wait(Duration::from_millis(1));
    world.answer(&next, &next.message(), json!({"do": "pass"}));
    assert_eq!(world.received(Server), [1]);
    let problems = world.problems();
    let expected = "file.PingRequest continued without the hook slow: it did not answer within 1s";
    assert_eq!(problems, [expected]);
    let errors = slow.errors();
    assert_eq!(errors, ["no answer in time; the message continued unchanged"]);
    world.answer(&slow, &late, json!({"do": "drop"}));
    let errors = slow.errors();
    assert!(errors.len() == 1 && errors[0].contains("timed out"), "{errors:?}");
    // Warnings are logged once a minute.
    for second in 2..=61 {
        world.send(Client, second);
        world.wait(Duration::from_secs(1));
        next.lines();
    }
    let problems = world.problems();
    let of_slow: Vec<_> = problems.iter().filter(|it| it.contains("hook slow")).collect();
    assert_eq!(of_slow.len(), 1, "{problems:?}");
    assert!(of_slow[0].ends_with("60 messages since the last warning"), "{of_slow:?}");
}

#[test]
fn a_held_message_waits_for_its_answer() {
    let mut world = World::new(false);
    let hook = world.hook("a", json!([{"id": "all"}]));
    world.send(Client, 1);
    world.send(Client, 2);
    let [held, other] = <[_; 2]>::try_from(hook.lines()).unwrap();
    world.answer(&hook, &held, json!({"do": "hold", "add": [{"to": "server", "bytes": hex(5)}]}));
    world.answer(&hook, &other, json!({"do": "forward"}));
    assert_eq!(world.received(Server), [5], "additions do not wait with it");
    world.wait(Duration::from_secs(3600));
    assert!(world.received(Server).is_empty() && world.problems().is_empty());
    world.send(Server, 3);
    world.answer(&hook, &hook.message(), json!({"do": "forward"}));
    assert_eq!(world.received(Client), [3]);
    world.answer(&hook, &held, json!({"do": "replace", "fields": {"pingTimeMs": 11}}));
    assert_eq!(world.received(Server), [11, 2]);
}

#[test]
fn subscriptions_change_between_messages() {
    let mut world = World::new(false);
    let hook = world.hook("a", json!([]));
    world.send(Client, 1);
    let subscription = json!({"id": "x", "filter": "file.PingRequest"});
    world.say(&hook, &json!({"type": "subscribe", "subscriptions": [subscription]}));
    world.send(Client, 2);
    let message = hook.message();
    // The message that waits is not affected.
    world.say(&hook, &json!({"type": "unsubscribe", "ids": ["x"]}));
    world.ask_build(3);
    assert_eq!(world.received(Server), [1], "messages that no hook wants to see wait, too");
    world.answer(&hook, &message, json!({"do": "forward"}));
    assert_eq!(world.received(Server), [2, 3]);
    let changed = json!({"id": "x", "filter": "file.PingReply"});
    world.say(&hook, &json!({"type": "subscribe", "subscriptions": [subscription]}));
    world.say(&hook, &json!({"type": "subscribe", "subscriptions": [changed]}));
    world.send(Client, 4);
    world.send(Server, 5);
    assert_eq!((world.received(Server), number(&hook.message())), (vec![4], 5));
}

#[test]
fn a_new_hook_takes_its_place_in_the_order() {
    let mut world = World::new(false);
    let first = world.hook("first", json!([{"id": "all", "order": 1}]));
    world.send(Client, 1);
    let message = first.message();
    let before = world.hook("before", json!([{"id": "all", "order": 0}]));
    let after = world.hook("after", json!([{"id": "all", "order": 2}]));
    world.answer(&first, &message, json!({"do": "pass"}));
    assert!(before.lines().is_empty());
    world.answer(&after, &after.message(), json!({"do": "pass"}));
    world.send(Client, 2);
    world.answer(&before, &before.message(), json!({"do": "pass"}));
    assert_eq!(number(&first.message()), 2);
    assert_eq!(world.received(Server), [1]);
}
