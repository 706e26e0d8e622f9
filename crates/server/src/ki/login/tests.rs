//! Tests of the login on its own. The tests answer its queries.

use std::net::Ipv4Addr;

use worldwire_ki::crypt::login::{Rec1, apply_rec1, ck2, password_hash, pk3};

use super::*;
use crate::ki::config::KiConfig;

const EPOCH: Duration = Duration::from_secs(1_700_000_000);
const MACHINE: u64 = 77;
const USER: u64 = 5;
const AT: Duration = Duration::from_secs(1);

/// A client with a session, and the data for answering queries.
struct TestLogin {
    login: Login,
    salt: Salt,
    account: Account,
    tickets: Vec<Secret>,
    place: QueuePosition,
    pause: Duration,
    asked: Vec<&'static str>,
    notes: Vec<LoginEvent>,
    is_closed: bool,
}

impl TestLogin {
    fn new() -> Self {
        Self::with(Rules::of(&KiConfig::default()))
    }

    fn with(rules: Rules) -> Self {
        let mut login = Login::new(Arc::new(rules), EPOCH);
        let salt = Salt { session_id: 1419, seconds: 1_700_000_000, millis: 7 };
        login.established(AT, salt);
        let password = Some(password_hash("hunter2"));
        let account = Account { user: USER, password, banned: false, paying: true, capped: false };
        let (tickets, asked, notes) = Default::default();
        Self {
            login,
            salt,
            account,
            tickets,
            place: QueuePosition::In,
            pause: Duration::ZERO,
            asked,
            notes,
            is_closed: false,
        }
    }

    /// Replaces the session.
    fn refresh(&mut self) {
        self.salt.session_id += 1;
        self.salt.millis = 57;
        self.login.established(AT, self.salt);
    }

    /// Sends a request and returns the replies.
    fn send(&mut self, request: Request) -> Vec<Reply> {
        self.login.handle(AT, request);
        self.replies()
    }

    fn replies(&mut self) -> Vec<Reply> {
        let mut replies = Vec::new();
        while let Some(output) = self.login.poll() {
            match output {
                Output::Send(reply) => replies.push(reply),
                Output::Ask(query) => {
                    let answer = self.answer(query);
                    self.login.answer(AT, answer);
                }
                Output::Tell(note) => {
                    if let LoginEvent::Failed { .. } = note {
                        self.asked.push("failed");
                    }
                    self.notes.push(note);
                }
                Output::Pause(_) => self.asked.push("pause"),
                Output::Close => self.is_closed = true,
            }
        }
        replies
    }

    fn answer(&mut self, query: Query) -> Answer {
        let (name, answer) = match query {
            Query::Account(name) => {
                let found = Some(self.account.clone()).filter(|_| name == "merle");
                ("account", Answer::Account { found, pause: self.pause, fresh: Some([9; 64]) })
            }
            Query::Tickets { user, .. } => {
                let found = Some(self.account.clone()).filter(|_| user == USER);
                ("tickets", Answer::Tickets { found, tickets: self.tickets.clone() })
            }
            Query::Enter => ("enter", Answer::QueuePosition(self.place)),
            Query::Characters(USER) => {
                ("characters", Answer::Characters { blobs: vec![vec![1], vec![2]], purchased: 3 })
            }
            Query::Characters(_) => ("characters of others", Answer::Done(Ok(()))),
            Query::Create { .. } => ("create", Answer::Done(Ok(()))),
            Query::Delete { .. } => ("delete", Answer::Done(Err(Refusal::UnknownCharacter))),
            Query::Select { character: 1, .. } => {
                ("select", Answer::Selected(Err(Refusal::UnknownCharacter)))
            }
            Query::Select { .. } => ("select", Answer::Selected(Ok(Box::new(zone())))),
            Query::Attach { .. } => {
                let zone = Zone { id: 1, name: "Zone".to_owned() };
                ("attach", Answer::Attached(Ok(zone)))
            }
        };
        self.asked.push(name);
        answer
    }

    fn log_in(&mut self, name: &str, password: &str) -> Vec<Reply> {
        let request = authenticate(name, password, self.salt, Form::V3);
        self.send(request)
    }

    fn validate(&mut self, ck2: &Secret) -> Vec<Reply> {
        let pass_key = pk3(ck2, self.salt);
        self.send(Request::Validate { user: USER, pass_key, machine: MACHINE })
    }
}

fn zone() -> Selected {
    Selected {
        ip: Ipv4Addr::LOCALHOST.to_string(),
        tcp_port: 1,
        udp_port: 2,
        key: "key".to_owned(),
        user: USER,
        character: 3,
        zone_id: 4,
        zone: "Zone".to_owned(),
        location: "START".to_owned(),
        server: "worldwire".to_owned(),
    }
}

fn authenticate(name: &str, password: &str, salt: Salt, form: Form) -> Request {
    let rec1 = Rec1::new(name, &password_hash(password), salt).seal(salt);
    Request::Authenticate { form, rec1, machine: MACHINE }
}

/// The names of replies, with the reasons for refusals.
fn short(replies: &[Reply]) -> Vec<String> {
    let kind = |reply: &Reply| match reply {
        Reply::Authenticated { outcome: Ok(_), .. } => "authenticated".to_owned(),
        Reply::Authenticated { outcome: Err(why), .. } => format!("authenticated: {why}"),
        Reply::Validated { outcome: Ok(_), .. } => "validated".to_owned(),
        Reply::Validated { outcome: Err(why), .. } => format!("validated: {why}"),
        Reply::Admit(position) => format!("admit {position}"),
        Reply::EndList(Some(why)) => format!("list: {why}"),
        Reply::Created(Some(why)) => format!("created: {why}"),
        Reply::Deleted(Some(why)) => format!("deleted: {why}"),
        Reply::Selected(Err(why)) => format!("selected: {why}"),
        Reply::Selected(Ok(_)) => "selected".to_owned(),
        other => format!("{other:?}").split([' ', '(']).next().unwrap_or_default().to_lowercase(),
    };
    replies.iter().map(kind).collect()
}

/// The CK2 from a successful login.
fn issued(replies: &[Reply], salt: Salt) -> Secret {
    let Some(Reply::Authenticated { outcome: Ok((USER, rec1)), .. }) = replies.first() else {
        panic!("no login: {:?}", short(replies));
    };
    let mut plain = rec1.clone();
    apply_rec1(salt, &mut plain);
    Secret::new(String::from_utf8(plain).unwrap())
}

#[test]
fn k_15_a_standalone_login_enters_the_queue_with_its_first_request() {
    let mut test = TestLogin::new();
    let replies = test.log_in("merle", "hunter2");
    assert_eq!(short(&replies), ["authenticated", "admit 0"]);
    assert!(issued(&replies, test.salt).is(&ck2(&[9; 64])));
    assert_eq!(test.asked, ["account"]);
    let list = ["startlist", "character", "character", "endlist"];
    assert_eq!(short(&test.send(Request::ListCharacters)), list);
    assert_eq!(test.asked, ["account", "enter", "characters"]);
    assert_eq!(short(&test.send(Request::ListCharacters)), list, "it has its slot");
    assert_eq!(test.asked.iter().filter(|asked| **asked == "enter").count(), 1);

    // On a full server, the client waits like the others.
    let mut test = TestLogin::new();
    test.place = QueuePosition::Waiting(2);
    assert_eq!(short(&test.log_in("merle", "hunter2")), ["authenticated", "admit 0"]);
    let refused = ["admit 2", "list: NotAdmitted"];
    assert_eq!(short(&test.send(Request::ListCharacters)), refused);
    test.login.placed(AT, QueuePosition::In);
    assert_eq!(short(&test.replies()), ["admit 0"]);
    assert_eq!(short(&test.send(Request::ListCharacters)), list);
}

#[test]
fn k_16_a_second_validate_keeps_the_position_and_each_position_is_sent_once() {
    let mut test = TestLogin::new();
    test.tickets = vec![Secret::new("older"), Secret::new("secret")];
    test.place = QueuePosition::Waiting(3);
    for ck2 in ["secret", "older"] {
        assert_eq!(short(&test.validate(&Secret::new(ck2))), ["validated", "admit 3"]);
    }
    test.login.placed(AT, QueuePosition::Waiting(3));
    assert!(test.replies().is_empty());
    test.login.placed(AT, QueuePosition::Waiting(2));
    assert_eq!(short(&test.replies()), ["admit 2"]);
    test.login.placed(AT, QueuePosition::In);
    assert_eq!(short(&test.replies()), ["admit 0"]);
}

#[test]
fn k_07_requests_about_characters_require_admission() {
    let requests = || {
        [
            (Request::ListCharacters, "list: NotAdmitted"),
            (Request::CreateCharacter(Vec::new()), "created: NotAdmitted"),
            (Request::DeleteCharacter(1), "deleted: NotAdmitted"),
            (Request::SelectCharacter(2), "selected: NotAdmitted"),
        ]
    };
    let mut test = TestLogin::new();
    for (request, refused) in requests() {
        assert_eq!(short(&test.send(request)), [refused]);
    }
    assert!(test.asked.is_empty());
    test.tickets = vec![Secret::new("secret")];
    test.place = QueuePosition::Waiting(1);
    test.validate(&Secret::new("secret"));
    for (request, refused) in requests() {
        assert_eq!(
            short(&test.send(request)),
            [refused],
            "waiting clients are not admitted either"
        );
    }
    assert_eq!(test.asked, ["tickets", "enter"]);
}

#[test]
fn k_10_a_resent_message_may_use_the_previous_session() {
    let mut test = TestLogin::new();
    let again = || authenticate("merle", "hunter2", TestLogin::new().salt, Form::V3);
    test.refresh();
    let replies = test.send(again());
    // The reply uses the current session.
    assert!(issued(&replies, test.salt).is(&ck2(&[9; 64])));
    // Only one message may use the previous session.
    assert_eq!(short(&test.send(again())), ["authenticated: AuthenFailed"]);
    // The client stays logged in.
    test.refresh();
    assert_eq!(short(&test.send(Request::ListCharacters))[0], "startlist");

    let mut test = TestLogin::new();
    test.tickets = vec![Secret::new("secret")];
    let pass_key = pk3(&Secret::new("secret"), test.salt);
    test.refresh();
    let validate =
        || Request::Validate { user: USER, pass_key: pass_key.clone(), machine: MACHINE };
    assert_eq!(short(&test.send(validate())), ["validated", "admit 0"]);
    assert_eq!(short(&test.send(validate())), ["validated: ValidateFailed"]);
}

#[test]
fn k_18_the_fifth_failure_closes_the_connection() {
    let mut test = TestLogin::new();
    for (name, password) in [("merle", "x"), ("nobody", "hunter2"), ("merle", ""), ("", "")] {
        assert_eq!(short(&test.log_in(name, password)), ["authenticated: AuthenFailed"]);
        assert!(!test.is_closed);
    }
    // K-19: a failed VALIDATE counts, too.
    assert_eq!(short(&test.validate(&Secret::new("x"))), ["validated: ValidateFailed"]);
    assert!(test.is_closed);
    assert!(test.log_in("merle", "hunter2").is_empty(), "it is over");
    let failed = test.notes.iter().filter(|note| matches!(note, LoginEvent::Failed { .. })).count();
    assert_eq!(failed, 5);
    // A failure reply carries no data but the reason.
    let mut test = TestLogin::new();
    let Reply::Authenticated { outcome: Err(why), paying: false, .. } =
        &test.log_in("merle", "x")[0]
    else {
        panic!("it is refused");
    };
    assert_eq!(*why, Refusal::AuthenFailed);
}

#[test]
fn k_18_failures_delay_the_next_reply() {
    let mut test = TestLogin::new();
    test.pause = Duration::from_secs(1);
    assert_eq!(short(&test.log_in("merle", "hunter2")), ["authenticated", "admit 0"]);
    assert_eq!(test.asked, ["account", "pause"]);
    test.asked.clear();
    // A failure counts even if the client leaves during the delay.
    assert_eq!(short(&test.log_in("merle", "x")), ["authenticated: AuthenFailed"]);
    assert_eq!(test.asked, ["account", "failed", "pause"]);
}

#[test]
fn k_19_a_failed_selection_has_no_key_and_keeps_the_connection() {
    let mut test = TestLogin::new();
    test.log_in("merle", "hunter2");
    let replies = test.send(Request::SelectCharacter(1));
    assert_eq!(short(&replies), ["selected: UnknownCharacter"]);
    assert!(!test.is_closed);
    assert_eq!(short(&test.send(Request::DeleteCharacter(1))), ["deleted: UnknownCharacter"]);
    assert_eq!(short(&test.send(Request::SelectCharacter(2))), ["selected"]);
    assert!(test.is_closed, "K-23: the client connects to its zone");
}

#[test]
fn k_20_names_are_single_words_and_sessions_have_one_spelling() {
    let mut test = TestLogin::new();
    let seal = |text: &str, salt: Salt| {
        let mut rec1 = text.as_bytes().to_vec();
        apply_rec1(salt, &mut rec1);
        Request::Authenticate { form: Form::V3, rec1, machine: MACHINE }
    };
    let proof = worldwire_ki::crypt::login::ck1(&password_hash("hunter2"), test.salt);
    for id in ["01419", "+1419", "1420", ""] {
        let request = seal(&format!("{id} merle {}", proof.as_str()), test.salt);
        assert_eq!(short(&test.send(request)), ["authenticated: AuthenFailed"], "{id}");
    }
    let request = seal(&format!("1419 merle {}", proof.as_str()), test.salt);
    assert_eq!(short(&test.send(request))[0], "authenticated");
}

#[test]
fn k_21_a_ban_is_revealed_only_with_the_right_password() {
    let mut test = TestLogin::new();
    test.account.banned = true;
    assert_eq!(short(&test.log_in("merle", "x")), ["authenticated: AuthenFailed"]);
    assert_eq!(short(&test.log_in("merle", "hunter2")), ["authenticated: AccountBanned"]);
    test.tickets = vec![Secret::new("secret")];
    assert_eq!(short(&test.validate(&Secret::new("secret"))), ["validated: AccountBanned"]);

    let mut rules = Rules::of(&KiConfig::default());
    rules.banned_machines = [MACHINE].into();
    let mut test = TestLogin::with(rules);
    assert_eq!(short(&test.log_in("merle", "x")), ["authenticated: AuthenFailed"]);
    assert_eq!(short(&test.log_in("merle", "hunter2")), ["authenticated: MachineBanned"]);

    let mut rules = Rules::of(&KiConfig::default());
    rules.open = false;
    let mut test = TestLogin::with(rules);
    assert_eq!(short(&test.log_in("merle", "hunter2")), ["authenticated: AISNoLogin"]);

    let mut test = TestLogin::new();
    test.account.capped = true;
    assert_eq!(short(&test.log_in("merle", "hunter2")), ["authenticated: FtpCapped"]);
}

#[test]
fn k_22_silent_clients_are_disconnected_after_fifteen_minutes() {
    let mut test = TestLogin::new();
    let quarter = Duration::from_secs(15 * 60);
    assert_eq!(test.login.poll_timeout(), Some(AT + quarter), "from when the session was accepted");
    test.refresh();
    assert_eq!(test.login.poll_timeout(), Some(AT + quarter), "a refresh is not activity");
    let later = Duration::from_secs(600);
    test.login.handle(later, Request::NotAfk);
    assert_eq!(test.login.poll_timeout(), Some(later + quarter));
    test.login.timeout(later + quarter - Duration::from_nanos(1));
    assert!(test.replies().is_empty());
    test.login.timeout(later + quarter);
    assert!(matches!(test.replies()[..], [Reply::Afk { in_zone: false }]));
    assert!(test.is_closed && test.login.poll_timeout().is_none());
}

#[test]
fn k_25_milliseconds_are_hashed_without_padding() {
    for millis in [0, 7, 57, 999] {
        let mut test = TestLogin::new();
        test.salt.millis = millis;
        test.login.established(AT, test.salt);
        test.login.handle(AT, Request::NotAfk);
        let replies = test.log_in("merle", "hunter2");
        let ck2 = issued(&replies, test.salt);
        test.tickets = vec![ck2.clone()];
        assert_eq!(short(&test.validate(&ck2)), ["validated", "admit 0"], "{millis} ms");
        // A wrong implementation would pad the milliseconds to three digits.
        let padded = format!("{}{}{millis:03}", test.salt.session_id, test.salt.seconds);
        assert_eq!(padded == test.salt.to_string(), millis > 99, "{millis} ms");
    }
}

#[test]
fn older_login_messages_are_accepted_refused_or_ignored() {
    for (legacy, wanted) in [
        (Legacy::Accept, &["authenticated", "admit 0"][..]),
        (Legacy::Refuse, &["authenticated: AuthenFailed"]),
        (Legacy::Ignore, &[]),
    ] {
        let mut test = TestLogin::with(Rules { legacy, ..Rules::of(&KiConfig::default()) });
        let request = authenticate("merle", "hunter2", test.salt, Form::Legacy);
        assert_eq!(short(&test.send(request)), wanted, "{legacy:?}");
        assert_eq!(short(&test.log_in("merle", "hunter2")), ["authenticated", "admit 0"]);
    }
}

#[test]
fn k_17_refused_characters_get_a_specific_reason() {
    let mut test = TestLogin::new();
    test.log_in("merle", "hunter2");
    let mut create = |blob: Vec<u8>| short(&test.send(Request::CreateCharacter(blob)))[0].clone();
    let plain = |name: &str, indices| Character::plain(name, "Fire", indices).into_bytes();
    assert_eq!(create(plain("", 0xff_ffff)), "created");
    assert_eq!(create(plain("", 0x100_0000)), "created: InvalidName");
    let long = "x".repeat(65);
    for name in ["Mer\nle", " Merle", &long] {
        assert_eq!(create(plain(name, 1)), "created: InvalidName", "{name:?}");
    }
    for blob in [Vec::new(), vec![0; 100], plain("", 1)[..20].to_vec(), vec![0; 20_000]] {
        assert_eq!(create(blob), "created: MalformedCharacter");
    }
    assert_eq!(test.asked.iter().filter(|asked| **asked == "create").count(), 1);
}

#[test]
fn a_login_to_another_account_gives_up_the_queue_position() {
    let mut test = TestLogin::new();
    test.log_in("merle", "hunter2");
    test.send(Request::ListCharacters);
    test.account.user = 6;
    test.log_in("merle", "hunter2");
    assert!(test.notes.iter().any(|note| matches!(note, LoginEvent::LoggedOut)));
    assert_eq!(test.login.user(), Some(6));
    test.send(Request::ListCharacters);
    assert_eq!(test.asked.iter().filter(|asked| **asked == "enter").count(), 2);
}

#[test]
fn requests_during_a_query_are_ignored() {
    let mut test = TestLogin::new();
    let request = authenticate("merle", "hunter2", test.salt, Form::V3);
    test.login.handle(AT, request);
    assert!(matches!(test.login.poll(), Some(Output::Ask(Query::Account(_)))));
    test.login.handle(AT, Request::Ping);
    test.login.answer(AT, Answer::QueuePosition(QueuePosition::In));
    assert!(test.login.poll().is_none(), "an answer to another query is ignored");
    test.login.answer(AT, Answer::nobody());
    assert_eq!(short(&test.replies()), ["authenticated: AuthenFailed"]);
}

#[test]
fn zones_ignore_logins() {
    let mut test = TestLogin::new();
    let attach = || Request::Attach { key: Secret::new("key"), user: USER, character: 3 };
    assert_eq!(short(&test.send(attach())), ["inzone"]);
    assert!(test.log_in("merle", "hunter2").is_empty());
    assert!(test.send(Request::ListCharacters).is_empty());
    assert!(matches!(test.send(Request::Ping)[..], [Reply::Pong]));
    test.login.stop();
    assert!(matches!(test.replies()[..], [Reply::Shutdown { in_zone: true }]));
}
