//! Replays of every family, against replays of the other side.

use std::time::Duration;

use worldwire_core::Side;
use worldwire_proxy::replay::{Pace, ReplayEvent, ReplaySummary};

use crate::recipes::recipe;
use crate::replay::{PATIENCE, Played, Terms, play, play_after, try_script};
use crate::samples::{Sample, ki, mxo, tera, uru, uru_age};

fn with(rules: &'static str) -> Terms {
    Terms { rules, seed: 11, ..Terms::default() }
}

/// Plays both sides, which must both complete. Returns the counts: sent and received by the client.
fn complete(sample: &Sample, capture: &str, stream: u64) -> [u64; 2] {
    let played = play(sample, capture, stream, [&Terms::default(), &with("")]);
    let [client, server] = Side::BOTH.map(|side| played.summary(side));
    for summary in [client, server] {
        let ReplaySummary { sent, received, skipped, .. } = summary;
        assert_eq!(sent + received + skipped, summary.recorded, "{summary:?}");
    }
    [client.sent, client.received]
}

#[test]
fn uru_conversations_are_replayed() {
    let counts = [0, 1, 2, 3].map(|stream| complete(&uru(), "uru-login.pcapng", stream));
    assert_eq!(counts, [[2, 2], [3, 2], [14, 13], [1, 1]]);
    // The members of the age and the end of its state are expected; its states are not.
    assert_eq!(complete(&uru_age(), "uru-age.pcapng", 1), [5, 3]);
}

#[test]
fn ki_conversations_are_replayed() {
    let counts = [0, 1, 2].map(|stream| complete(&ki(), "ki-login.pcapng", stream));
    // The repetition of a request for a new session is not replayed.
    assert_eq!(counts, [[2, 2], [3, 6], [5, 1]]);
}

#[test]
fn tera_conversations_are_replayed() {
    assert_eq!(complete(&tera(), "tera-login.pcapng", 0), [5, 6]);
}

#[test]
fn mxo_conversations_are_replayed() {
    assert_eq!(complete(&mxo(), "mxo-world.pcapng", 0), [7, 3]);
}

#[test]
fn uru_values_follow_the_live_peer() {
    // The client numbers its transactions differently, and the server its players.
    let client = Terms {
        account: Some(("ann@example.org", "hunter2")),
        ..with("when from == client and auth.* and transId > 0 { set transId = transId + 100 }")
    };
    let server = with(
        "when auth.AcctPlayerInfo { set playerId = 777 }\n\
         when auth.ClientRegisterReply { set serverChallenge = 5 }",
    );
    let played = play(&uru(), "uru-login.pcapng", 2, [&client, &server]);
    let login = played.adapted(Side::Client, "auth.AcctLoginRequest");
    assert_eq!(login, ["accountName", "clientChallenge", "challengeHash"]);
    assert_eq!(played.adapted(Side::Server, "auth.AcctLoginReply"), ["transId"]);
    assert!(played.adapted(Side::Client, "auth.AcctSetPlayerRequest").contains(&"playerId"));
    for side in Side::BOTH {
        assert_eq!(played.problems(side), [""; 0]);
        played.summary(side);
    }
}

#[test]
fn an_uru_age_is_joined_with_the_values_of_the_login() {
    let server = with("when auth.AgeReply { set ageMcpId = 99 }");
    let login = play(&uru(), "uru-login.pcapng", 2, [&Terms::default(), &server]);
    let terms = [&Terms::default(), &Terms::default()];
    let joined = play_after(&uru(), "uru-login.pcapng", 3, terms, Some(&login));
    assert_eq!(joined.adapted(Side::Client, "game.JoinAgeRequest"), ["ageMcpId"]);
    joined.summary(Side::Client);
}

#[test]
fn a_ki_login_is_proven_again_and_continued() {
    let client = Terms { account: Some(("merle", "hunter2")), ..Terms::default() };
    let login = play(&ki(), "ki-login.pcapng", 0, [&client, &with("")]);
    assert_eq!(login.adapted(Side::Client, "LOGIN.MSG_USER_AUTHEN_V3"), ["Rec1"]);
    assert_eq!(login.adapted(Side::Server, "LOGIN.MSG_USER_AUTHEN_RSP"), ["Rec1"]);
    let validated = play_after(&ki(), "ki-login.pcapng", 1, [&client, &with("")], Some(&login));
    assert_eq!(validated.adapted(Side::Client, "LOGIN.MSG_USER_VALIDATE"), ["PassKey3"]);
    assert_eq!(validated.problems(Side::Client), [""; 0]);

    // Without an account and a login, the recorded proofs are sent, and the replay says so.
    let played = play(&ki(), "ki-login.pcapng", 0, [&Terms::default(), &with("")]);
    assert!(played.problems(Side::Client)[0].contains("--account"));
    let played = play(&ki(), "ki-login.pcapng", 1, [&Terms::default(), &with("")]);
    assert!(played.problems(Side::Client)[0].contains("--token"));
}

#[test]
fn a_tera_login_gets_a_new_ticket_by_rules() {
    let client = with(Box::leak(recipe("ticket").into_boxed_str()));
    let played = play(&tera(), "tera-login.pcapng", 0, [&client, &Terms::default()]);
    let changed = |event: &ReplayEvent| match event {
        ReplayEvent::Changed { name, is_dropped } => name == "tera.C_LOGIN_ARBITER" && !is_dropped,
        _ => false,
    };
    assert!(played.events[Side::Client.index()].iter().any(changed));
    assert_eq!(played.summary(Side::Client).changed, 1);
}

#[test]
fn the_recorded_pace_is_kept() {
    let slow = Terms { pace: Pace::Recorded, ..Terms::default() };
    let fast = play(&uru(), "uru-login.pcapng", 2, [&Terms::default(), &with("")]);
    let slow = play(&uru(), "uru-login.pcapng", 2, [&slow, &with("")]);
    assert_eq!(fast.summary(Side::Client).time, Duration::ZERO);
    let time = slow.summary(Side::Client).time;
    assert!((250..600).contains(&time.as_millis()), "{time:?}");
}

#[test]
fn ignored_messages_may_be_missing() {
    let ignored = Terms { ignored: Some("AgeReply or KickedOff"), ..Terms::default() };
    let rules = "when auth.AgeReply { drop; inject client auth.KickedOff { reason: 1 } }";
    let played = play(&uru(), "uru-login.pcapng", 2, [&ignored, &with(rules)]);
    assert_eq!(played.summary(Side::Client).received, 12);
    assert_eq!(played.summary(Side::Server).changed, 1);

    // In MxO, messages are ignored by the names of the RPC messages in recorded packets.
    let ignored = Terms { ignored: Some("game.Rpc and packet < 20"), ..Terms::default() };
    let played = play(&mxo(), "mxo-world.pcapng", 0, [&ignored, &with("")]);
    assert_eq!(played.summary(Side::Client).received, 1);
}

/// The explanations of several divergences of the client, caused by the server.
fn explained(sample: &Sample, capture: &str, stream: u64, causes: &[Terms]) -> String {
    let mut text = String::new();
    for terms in causes {
        let played = play(sample, capture, stream, [&Terms::default(), terms]);
        let cause = if terms.rules.is_empty() {
            terms.leaves_after.unwrap_or("other keys")
        } else {
            terms.rules
        };
        text.push_str(&format!("# {cause}\n{}\n\n", played.divergence(Side::Client)));
    }
    text
}

fn leaves(after: &'static str) -> Terms {
    Terms { leaves_after: Some(after), ..with("") }
}

#[test]
fn divergences_of_uru_are_explained() {
    let text = explained(
        &uru(),
        "uru-login.pcapng",
        2,
        &[
            with("when auth.AcctLoginReply { set result = AuthenticationFailed }"),
            with("when auth.AcctSetPlayerReply { inject client auth.KickedOff { reason: 17 } }"),
            with("when auth.ScoreGetScoresReply { drop }"),
            leaves("auth.AcctLoginReply"),
        ],
    );
    insta::assert_snapshot!("uru", text);
}

#[test]
fn divergences_of_ki_are_explained() {
    let text = explained(
        &ki(),
        "ki-login.pcapng",
        1,
        &[
            with("when LOGIN.MSG_USER_VALIDATE_RSP { set Error = 246825817 }"),
            with(
                "when LOGIN.MSG_CHARACTERLIST { inject client LOGIN.MSG_DISCONNECT_LOGIN_AFK \
                 { Warning: 1 } }",
            ),
            with("when LOGIN.MSG_USER_ADMIT_IND { drop }"),
            leaves("LOGIN.MSG_USER_VALIDATE_RSP"),
        ],
    );
    insta::assert_snapshot!("ki", text);
}

#[test]
fn divergences_of_tera_are_explained() {
    let text = explained(
        &tera(),
        "tera-login.pcapng",
        0,
        &[
            with("when S_LOGIN_ARBITER { set success = false }"),
            with("when S_LOGIN_ACCOUNT_INFO { inject client S_CHECK_VERSION { ok: true } }"),
            with("when S_LOGIN_ACCOUNT_INFO { drop }"),
            leaves("tera.S_CHECK_VERSION"),
        ],
    );
    insta::assert_snapshot!("tera", text);
}

#[test]
fn divergences_of_mxo_are_explained() {
    let other = "[[mxo.session]]\nid = 0x1f2e3d4c\nkey = \"ff0102030405060708090a0b0c0d0e0f\"\n";
    let text = explained(
        &mxo(),
        "mxo-world.pcapng",
        0,
        &[
            with("when game.Rpc and from == server { drop }"),
            with("when game.Rpc and from == server { set opcode = 46 }"),
            Terms { keys: Some(other), ..with("") },
        ],
    );
    insta::assert_snapshot!("mxo", text);
}

#[test]
fn a_server_explains_what_the_client_does_differently() {
    let silent = with("when C_CHAT { drop }");
    let played = play(&tera(), "tera-login.pcapng", 0, [&silent, &Terms::default()]);
    let divergence = played.divergence(Side::Server);
    assert_eq!(
        (&*divergence.place.name, divergence.cause.name()),
        ("tera.C_CHAT", "other-message")
    );
    let early = Terms { leaves_after: Some("auth.AcctLoginRequest"), ..Terms::default() };
    let played = play(&uru(), "uru-login.pcapng", 2, [&early, &with("")]);
    let divergence = played.divergence(Side::Server);
    assert_eq!((&*divergence.place.name, divergence.is_own), ("auth.AcctSetPlayerRequest", false));
    assert_eq!(divergence.cause.name(), "closed");
}

#[test]
fn conversations_that_cannot_be_replayed_are_refused() {
    let mut texts = Vec::new();
    let mut refused = |sample: &Sample, capture: &str, stream: Option<u64>| {
        texts.push(try_script(sample, capture, stream, None).unwrap_err().to_string());
    };
    refused(&uru(), "uru-login.pcapng", None);
    refused(&uru(), "uru-login.pcapng", Some(7));
    refused(&tera(), "uru-login.pcapng", Some(2));
    refused(&tera(), "mxo-world.pcapng", None);
    insta::assert_snapshot!("refused", texts.join("\n\n"));
}

#[test]
fn damaged_conversations_end() {
    for (sample, capture, stream) in [
        (uru(), "uru-login.pcapng", 2),
        (uru_age(), "uru-age.pcapng", 1),
        (ki(), "ki-login.pcapng", 1),
        (tera(), "tera-login.pcapng", 0),
        (mxo(), "mxo-world.pcapng", 0),
    ] {
        for every in [7, 150, 700] {
            for side in Side::BOTH {
                let damaged = Terms { damage: Some(every), ..Terms::default() };
                let fine = Terms::default();
                let mut terms = [&fine; 2];
                terms[side.index()] = &damaged;
                let played: Played = play(&sample, capture, stream, terms);
                assert!(played.outcomes.iter().all(Option::is_some));
                assert!(played.time < PATIENCE * 10, "{capture} {every}: {:?}", played.time);
            }
        }
    }
}
