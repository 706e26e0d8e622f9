//! The effect of each statement.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::json::Json;
use worldwire_proxy::RuleFile;
use worldwire_tera::integrity::checksum;

use crate::samples::{STEP, Sample, ki, mxo, mxo_login, only, tera, uru, uru_age};

/// All samples.
fn all() -> Vec<Sample> {
    vec![uru(), uru_age(), ki(), mxo(), mxo_login(), tera()]
}

#[test]
fn rules_that_never_match_change_nothing() {
    for sample in all() {
        let before = sample.run("on connect { log \"begins\" }");
        let after = sample.run(
            "when no_such.* { drop }\nwhen from == client and not from == client { drop }\n\
             when * and playerId == -5 { set playerId = 1 }",
        );
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before.messages, after.messages, "{}", sample.family);
            assert_eq!(after.counts.changed + after.counts.dropped, 0);
            assert_eq!(before.logs(), ["begins"]);
        }
        assert!(before.iter().map(|outcome| outcome.messages.len()).sum::<usize>() > 8);
    }
}

#[test]
fn fields_are_set_in_every_family() {
    for (sample, rules, name, field, wanted) in [
        (
            uru(),
            "when auth.AcctLoginRequest { set os = \"mac\" }",
            "auth.AcctLoginRequest",
            "os",
            "\"mac\"",
        ),
        (
            ki(),
            "when MSG_USER_VALIDATE_RSP { set Error = AccountBanned }",
            "LOGIN.MSG_USER_VALIDATE_RSP",
            "Error",
            "\"AccountBanned\"",
        ),
        (
            tera(),
            "when S_CHAT { set message = authorName + \": \" + message }",
            "tera.S_CHAT",
            "message",
            "\"Elin: Hello!\"",
        ),
        (tera(), "when C_START_SKILL { set loc.x = loc.x + 1 }", "tera.C_START_SKILL", "loc", ""),
        (
            mxo_login(),
            "when margin.ClaimCharacterNameRequest { set handle = \"Trinity\" }",
            "margin.ClaimCharacterNameRequest",
            "fields",
            "{\"handle\":\"Trinity\",\"handleOffset\":3}",
        ),
        (
            mxo(),
            "when game.* and exists(simTime) { set simTime = 1.5 }",
            "game.Objects",
            "simTime",
            "1.5",
        ),
    ] {
        let outcomes = sample.run(rules);
        let changed = outcomes.iter().filter(|outcome| outcome.counts.changed > 0);
        let changed: Vec<_> = changed.collect();
        assert!(!changed.is_empty(), "{rules}: {:?}", outcomes[0].reports);
        for outcome in outcomes.iter() {
            assert_eq!(outcome.problems(), [""; 0], "{rules}");
        }
        let values: Vec<String> = changed
            .iter()
            .flat_map(|outcome| outcome.fields(name))
            .filter_map(|fields| fields.get(field).map(ToString::to_string))
            .collect();
        assert!(!values.is_empty());
        if wanted.is_empty() {
            assert_eq!(
                values,
                [
                    "{\"x\":12341.0,\"y\":-6780.0,\"z\":512.0}",
                    "{\"x\":12342.0,\"y\":-6780.0,\"z\":512.0}"
                ]
            );
        } else {
            assert!(values.iter().all(|value| value == wanted), "{rules}: {values:?}");
        }
    }
}

#[test]
fn nested_fields_are_set_by_the_end_of_their_path() {
    let rules = "when PropagateBuffer and user == \"Yeesha\" { set text = \"Hello!\" }\n\
                 when PropagateBuffer and text == \"Hello!\" { log \"{user}: {text}\" }";
    let outcomes = uru_age().run(rules);
    let game = only(&outcomes, |outcome| outcome.counts.changed > 0);
    assert!(game.logs().contains(&"Yeesha: Hello!"), "{:?}", game.reports);
    assert_eq!(game.problems(), [""; 0]);
    let texts: Vec<_> = game
        .fields("game.PropagateBuffer")
        .into_iter()
        .filter_map(|fields| fields["buffer"]["message"]["stream"]["payload"]["text"].as_str())
        .collect();
    assert!(texts.contains(&"Hello!"), "{texts:?}");
}

#[test]
fn later_rules_see_what_earlier_rules_left() {
    let outcomes = tera().run(
        "when S_CHAT { set message = \"one\"; set message = message + \" two\"; log \"{message}\" }\n\
         when S_CHAT and message == \"one two\" { set channel = channel + 5 }\n\
         when S_CHAT and channel == 5 { log \"last {message} {channel}\" }\n\
         when S_CHAT and channel == 0 { drop }",
    );
    let [outcome] = &outcomes[..] else { panic!() };
    assert_eq!(outcome.logs(), ["one two", "last one two 5"]);
    assert_eq!(outcome.fields("tera.S_CHAT")[0]["message"], "one two");
    assert_eq!((outcome.counts.changed, outcome.counts.dropped), (1, 0));
}

#[test]
fn dropped_messages_end_the_rules() {
    let outcomes = tera().run(
        "when S_CHAT { drop; count \"chats\"; log \"gone\" }\n\
         when S_CHAT { set message = \"x\"; log \"never\" }",
    );
    assert_eq!(outcomes[0].logs(), ["gone"]);
    assert!(outcomes[0].fields("tera.S_CHAT").is_empty());
    assert_eq!(outcomes[0].counts.dropped, 1);
}

#[test]
fn a_value_that_does_not_fit_is_reported_with_its_line() {
    let rules = "\nwhen C_START_SKILL {\n  set moving = 5\n  set w = \"x\"\n  log \"seen\"\n}\n\
                 when tera.* and exists(skill) {\n  set w = 0.25\n  set gameId = 5\n}\n\
                 when C_CHAT { set channel = 99999999999 }";
    let outcomes = tera().run(rules);
    let mut problems = outcomes[0].problems();
    problems
        .sort_by_key(|problem| problem.split(':').nth(1).and_then(|line| line.parse::<u32>().ok()));
    // The problem is reported once, although two messages cause it.
    assert_eq!(problems.len(), 3, "{problems:#?}");
    assert!(problems[0].starts_with("my.rules:4: `set w`: "), "{problems:#?}");
    assert!(problems[1].starts_with("my.rules:9: `set gameId`: "), "{problems:#?}");
    assert!(problems[2].starts_with("my.rules:11: `set channel`: "), "{problems:#?}");
    assert!(problems.iter().all(|it| it.ends_with("; the message is forwarded unchanged")));
    assert_eq!(outcomes[0].logs(), ["seen", "seen"]);
    assert_eq!(outcomes[0].counts.changed, 0);
    assert_eq!(tera().run("")[0].messages, outcomes[0].messages);
}

#[test]
fn messages_are_delayed_in_order() {
    let before = tera().run("");
    let after = tera().run("when C_CHAT { delay 200ms }\nwhen C_CHAT { delay 50ms }");
    let own = |outcome: &crate::samples::Outcome, side: &str| {
        let messages = outcome.messages.iter().zip(&outcome.times);
        let own = messages.filter(|(line, _)| line["from"] == side);
        own.map(|(line, at)| (line["name"].to_string(), *at)).collect::<Vec<_>>()
    };
    assert_eq!(own(&before[0], "server"), own(&after[0], "server"));
    let (before, delayed) = (own(&before[0], "client"), own(&after[0], "client"));
    assert_eq!(before.len(), delayed.len());
    let place = before.iter().position(|(name, _)| name.contains("C_CHAT")).unwrap();
    for (index, (one, other)) in before.iter().zip(&delayed).enumerate() {
        assert_eq!(one.0, other.0);
        let wanted = if index < place { Duration::ZERO } else { Duration::from_millis(200) };
        if index <= place {
            assert_eq!(other.1 - one.1, wanted, "{}", one.0);
        } else {
            assert!(other.1 >= delayed[place].1);
        }
    }
}

#[test]
fn paused_messages_wait_for_a_decision() {
    let outcomes = tera().run("when S_CHAT { pause; delay 5ms }");
    assert!(outcomes[0].fields("tera.S_CHAT").is_empty());
    assert_eq!(outcomes[0].counts.held, 1);
    let held = outcomes[0].reports.iter().any(|report| {
        matches!(report, worldwire_proxy::Report::Held { name, .. } if name == "tera.S_CHAT")
    });
    assert!(held, "{:?}", outcomes[0].reports);
}

#[test]
fn messages_are_added_before_the_one_that_caused_them() {
    let outcomes = tera().run(
        "let name = \"nobody\"\n\
         when C_LOGIN_ARBITER { let seen = name; let name = name + \"!\"; log \"{seen}\" }\n\
         when C_CHAT {\n\
           inject client S_CHAT { channel: channel + 1, gameId: 5, isWorldEventTarget: false,\n\
             gm: false, authorName: name, message: \"<\" + message + \">\" }\n\
           inject back S_CHAT { channel: 7, gameId: 5, isWorldEventTarget: false, gm: false,\n\
             \"authorName\": \"b\", message: \"c\" }\n\
         }",
    );
    let [outcome] = &outcomes[..] else { panic!() };
    assert_eq!(outcome.problems(), [""; 0]);
    let chats = outcome.fields("tera.S_CHAT");
    // The name of the player is a field, but the variable wins.
    assert_eq!(
        (&chats[0]["authorName"], &chats[0]["message"]),
        (&"nobody!".into(), &"<Hello!>".into())
    );
    assert_eq!((&chats[0]["channel"], &chats[1]["channel"]), (&1.into(), &7.into()));
    assert_eq!(chats.len(), 3);
    assert_eq!(outcome.counts.added, 2);
}

#[test]
fn blocks_run_when_a_conversation_begins_and_in_intervals() {
    let outcomes = uru().run(
        "let runs = 0\n\
         on connect {\n  inject server auth.PingRequest { transId: 9, pingTimeMs: 1, payload: hex\"\" }\n\
           inject server game.PingRequest { pingTimeMs: 1 }\n}\n\
         every 500ms { let runs = runs + 1; log \"run {runs}\" }\n\
         every 700ms { inject server auth.PingRequest { transId: 8, pingTimeMs: runs, payload: hex\"\" } }",
    );
    for outcome in &outcomes {
        assert_eq!(outcome.problems(), [""; 0]);
        assert_eq!(outcome.logs()[..3], ["run 1", "run 2", "run 3"]);
    }
    // Only the auth connection receives messages of auth connections.
    let auth = only(&outcomes, |outcome| outcome.names().contains(&"auth.PingRequest"));
    let added: Vec<u64> = outcomes.iter().map(|outcome| outcome.counts.added).collect();
    assert!(added[..2] == [0, 0] && added[2] > 2 && added[3] == 1, "{added:?}");
    let pings = auth.fields("auth.PingRequest");
    let ids: Vec<u64> = pings.iter().filter_map(|fields| fields["transId"].as_u64()).collect();
    assert_eq!(ids[..2], [9, 0]);
    assert!(ids.iter().filter(|id| **id == 8).count() >= 2, "{ids:?}");
    assert!(pings.iter().any(|fields| fields["pingTimeMs"] == 2_u64));
}

#[test]
fn messages_that_cannot_be_added_are_reported_once_a_minute_with_their_line() {
    let outcomes = uru().run(
        "let id = 9\nlet none = \"x\"\non connect { let id = none }\n\
         every 500ms { inject server auth.PingRequest { transId: id, pingTimeMs: 1, payload: hex\"\" } }",
    );
    let auth = only(&outcomes, |outcome| outcome.names().contains(&"auth.PingRequest"));
    let problems = auth.problems();
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    let start = "my.rules:4: `inject auth.PingRequest`: the message was not added: ";
    assert!(problem.starts_with(start) && problem.contains("transId"), "{problem}");
}

#[test]
fn variables_are_used_in_filters() {
    let outcomes = tera().run(
        "let author = \"nobody\"\nlet known = [1, 2]\n\
         when S_CHAT and authorName == author { log \"first\" }\n\
         when C_LOGIN_ARBITER { let author = fields.name; let known = [77] }\n\
         when S_CHAT and authorName == author and gameId in {known} { log \"by {author}\" }\n\
         when S_CHAT and message contains author { log \"never\" }",
    );
    assert_eq!(outcomes[0].logs(), ["first", "by Elin"]);
    // Each conversation has its own variables.
    let outcomes = uru().run(
        "let n = 0\nwhen *.PingRequest { let n = n + 1; log \"{n}\" }\n\
         when * and playerId == unset { drop }\nwhen no.Such* { let unset = 1 }",
    );
    for outcome in &outcomes {
        assert_eq!(outcome.logs()[..1], ["1"]);
        assert_eq!(outcome.counts.dropped, 0);
    }
}

#[test]
fn growing_variables_are_bounded() {
    let rules = "let x = \"abcdefgh\"\nwhen * { let x = x + x }\nwhen * { log \"{x}\" }";
    let mut rules = rules.to_owned();
    rules.push_str(&"\nwhen * { let x = x + x; let x = x + x; let x = x + x }".repeat(10));
    let outcomes = tera().run(&rules);
    let problems = outcomes[0].problems();
    assert!(problems[0].contains("a variable can hold at most 65536 bytes"), "{problems:?}");
}

#[test]
fn new_rules_take_effect_in_running_conversations() {
    let sample = tera();
    let text = "let chats = 0\nevery 1h { log \"x\" }\nwhen S_CHECK_VERSION { count \"old\"; let chats = chats + 5 }\n\
                when S_CHAT { log \"old\" }";
    let file = RuleFile::new("my.rules", text, Arc::clone(&sample.definitions)).unwrap();
    let mut step = 0;
    let outcomes = sample.run_with(&mut || file.handler(), &mut |_, segment| {
        step += 1;
        if segment == 10 {
            assert!(file.reload("when S_CHAT { lgo \"new\" }").is_err());
            assert_eq!(file.counts(), [("old".to_owned(), 1)]);
            let text = "let chats = 1\nlet other = 2\nwhen S_CHAT { log \"new {chats} {other}\"; count \"old\" }\n\
                        every 50ms { count \"timer\" }";
            file.reload(text).unwrap();
        }
    });
    assert!(step > 12);
    assert_eq!(outcomes[0].logs(), ["new 5 2"]);
    let counts = file.counts();
    assert_eq!(counts[0], ("old".to_owned(), 2));
    assert!(counts[1].1 > 10, "{counts:?}");
    assert_eq!(STEP, Duration::from_millis(10));
}

#[test]
fn searches_of_long_messages_are_bounded() {
    let search = vec!["message matches \"x{1,9}yN$\""; 32].join(" or ");
    let rules =
        format!("let long = \"{}\"\nwhen S_CHAT {{ set message = long }}\n", "a".repeat(30_000));
    let rules = rules
        + &format!("when S_CHAT and ({search}) {{ drop }}\n").repeat(8)
        + "when S_CHAT { log \"the end\" }\n";
    let outcomes = tera().run(&rules);
    let [problem] = &outcomes[0].problems()[..] else { panic!("{:?}", outcomes[0].problems()) };
    let wanted = "the rules require too much work for a message of 60034 bytes; this one and all later \
                  ones are skipped";
    assert!(problem.starts_with("my.rules:5: `when`: ") && problem.ends_with(wanted), "{problem}");
    // The effects of earlier rules remain, and short messages pass all rules.
    assert_eq!(outcomes[0].counts.changed, 1);
    assert_eq!(outcomes[0].logs(), [""; 0]);
    let short = rules.replace("set message = long", "count \"chats\"");
    let outcomes = tera().run(&short);
    assert_eq!(outcomes[0].problems(), [""; 0]);
    assert_eq!(outcomes[0].logs(), ["the end"]);
}

#[test]
fn many_changes_of_one_message_are_bounded() {
    let rules =
        "let n = 0\n".to_owned() + &"when S_CHAT { set channel = channel + 1 }\n".repeat(100);
    let outcomes = tera().run(&rules);
    assert_eq!(outcomes[0].fields("tera.S_CHAT")[0]["channel"], 64_u64);
    let problems = outcomes[0].problems();
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].contains("more than 64 rules would change this message; the rest are skipped")
    );
}

#[test]
fn ambiguous_paths_are_reported() {
    let rules = "when PropagateBuffer and sequenceNumber == 7864353 { log \"x\" }\n\
                 when PropagateBuffer { set sequenceNumber = 5 }";
    let outcomes = uru_age().run(rules);
    let game = only(&outcomes, |outcome| !outcome.problems().is_empty());
    assert!(game.problems().iter().any(|it| it.contains("my.rules:2: `set sequenceNumber`: ")));
}

#[test]
fn teras_client_messages_are_signed_again() {
    const SKILL: &str = "tera.C_START_SKILL";
    let sample = tera();
    let [before] = &sample.run("on connect { log \"begins\" }")[..] else { panic!("one") };
    let seed = before.fields("tera.S_LOGIN_ACCOUNT_INFO")[0]["integrityIv"].as_u64().unwrap();
    let seed = u32::try_from(seed).unwrap();
    let [_, second] = before.fields(SKILL)[..] else { panic!("two skills") };
    let rules = "when C_START_SKILL and $integrity.counter == 1 { drop }";
    let [after] = &sample.run(rules)[..] else { panic!("one") };
    let [left] = after.fields(SKILL)[..] else { panic!("{:?}", after.names()) };
    // The server must not notice that a message is missing.
    let mut wanted = second.clone();
    let counted = |fields: &Json| fields["$integrity"]["counter"].as_u64();
    assert_eq!((counted(second), counted(left)), (Some(2), Some(1)));
    wanted.get_mut("$integrity").unwrap().get_mut("counter").unwrap().clone_from(&1_u64.into());
    let mut line = before.messages.iter().rfind(|line| line["name"] == SKILL).unwrap().clone();
    *line.get_mut("fields").unwrap() = wanted;
    let body = sample.encoded(&line);
    let checksum = checksum(&body, seed).unwrap();
    assert_eq!(left["$integrity"]["checksum"].as_u64(), Some(checksum.into()));
    assert_ne!(left["$integrity"]["checksum"], second["$integrity"]["checksum"]);
}
