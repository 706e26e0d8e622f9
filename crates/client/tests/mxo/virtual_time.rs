//! The whole server with this project's client, without sockets: on a bad network, and over a long
//! time.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::{Instant, sleep, timeout};
use worldwire_client::mxo::{Client, Happening, LoginError, Margin, Travel, compare};
use worldwire_core::json::Style;
use worldwire_mxo::login::LoginStatus;
use worldwire_mxo::message::{OWN_VIEW, Script};
use worldwire_mxo::replica::Replica;
use worldwire_mxo::rpc::{ChatScope, EmoteId};
use worldwire_net::lossy::Conditions;

use crate::server::{notices, until};
use crate::stage::{PATIENCE, Stage};

/// A network that loses 30 % of all datagrams.
const BAD: Conditions = Conditions {
    delay: Duration::from_millis(60),
    loss: 300,
    duplication: 100,
    reordering: 300,
    seed: 1,
};

/// A server whose world ticks once a second, so that hours pass quickly.
async fn slow_stage() -> Stage {
    Stage::new(|config| config.world.tick_milliseconds = 1_000).await
}

fn json(replica: &Replica) -> serde_json::Value {
    let mut text = String::new();
    replica.write_json(Style::default(), &mut text);
    serde_json::from_str(&text).unwrap()
}

/// Waits until nothing is in transit to a client, then compares its views with the world.
async fn sees_all(stage: &Stage, client: &Client) {
    let world = || stage.services.worlds().of(client.with_view(|view| view.district().unwrap()));
    let it = || world().client_of(client.uid()).unwrap();
    // Waits until the client's last step has been sent.
    sleep(Duration::from_secs(1)).await;
    let hold = || world().hold(Duration::MAX);
    until("it settles", async || {
        hold();
        let uid = it();
        client.with_view(|view| view.is_acknowledged()) && world().is_settled(uid)
    })
    .await;
    let uid = it();
    let truth = world().truth(uid).unwrap();
    let seen = client.with_view(|view| json(view.replica()));
    assert_eq!(compare(&json(&truth), &seen, 5), []);
    assert!(truth.len() > 1 && client.with_view(|view| view.notices()) == 0);
}

/// Waits until a client has heard this many texts.
async fn heard(client: &Client, count: usize) -> Vec<(ChatScope, String)> {
    let mut heard = Vec::new();
    until("they are heard", async || {
        client.with_view(|view| {
            heard.extend(view.take_happenings().filter_map(|it| match it {
                Happening::Said { scope, text, .. } => Some((scope, text)),
                _ => None,
            }));
        });
        heard.len() >= count
    })
    .await;
    heard
}

#[tokio::test(start_paused = true)]
async fn players_meet_on_a_bad_network() {
    let mut stage = Stage::new(|config| config.world.reach = 3_000).await;
    stage.conditions = BAD;
    let (mut neo_margin, neo_id) = stage.newcomer("neo", "Neo").await;
    let (mut trinity_margin, id) = stage.newcomer("trinity", "Trinity").await;
    let mut neo = stage.enter(&mut neo_margin, neo_id).await;
    let trinity = stage.enter(&mut trinity_margin, id).await;
    for line in ["Knock, knock.", "Follow the white rabbit."] {
        neo.say(line).unwrap();
        trinity.whisper("Neo", line).unwrap();
    }
    // RPC messages arrive once and in order.
    let lines =
        |scope| ["Knock, knock.", "Follow the white rabbit."].map(|line| (scope, line.to_owned()));
    assert_eq!(heard(&trinity, 2).await, lines(ChatScope::Area));
    assert_eq!(heard(&neo, 2).await, lines(ChatScope::Whisper));
    // Scripts are not repeated, so one of them may be lost.
    let is_bow = |it: &Happening| matches!(it, Happening::Played { view, script, .. } if *view != OWN_VIEW && *script == Script::emote(3));
    let bowing = async {
        loop {
            neo.emote(EmoteId::Bow).unwrap();
            sleep(Duration::from_millis(600)).await;
        }
    };
    tokio::select! {
        _ = notices(&trinity, is_bow) => {}
        () = bowing => {}
    }
    let shown = trinity.with_view(|view| {
        let mut text = String::new();
        view.replica().write_text(&mut text);
        text
    });
    assert!(shown.contains("  emote Bow  "), "{shown}");
    // Both walk, and the world changes.
    for client in [&neo, &trinity] {
        client.with_view(|view| view.set_walking(true));
    }
    sleep(Duration::from_secs(20)).await;
    for client in [&neo, &trinity] {
        client.with_view(|view| view.set_walking(false));
    }
    for client in [&neo, &trinity] {
        sees_all(&stage, client).await;
    }
    let left = neo.with_view(|view| {
        view.replica().view(OWN_VIEW).unwrap().movement().position.unwrap().map(f64::from)
    });
    timeout(PATIENCE, neo.jack_out()).await.unwrap().unwrap();
    timeout(PATIENCE, neo_margin.ended()).await.unwrap();
    until("he is gone", async || stage.world().players() == 1).await;
    until("she sees it", async || {
        let names = trinity.with_view(|view| json(view.replica()).to_string());
        !names.contains("\"Neo\"")
    })
    .await;
    // He returns to the position at which he left.
    let mut margin = stage.margin("neo").await;
    margin.load(neo_id).await.unwrap();
    let neo = stage.enter(&mut margin, neo_id).await;
    until("he is there", async || neo.with_view(|view| view.replica().view(OWN_VIEW).is_some()))
        .await;
    let back = neo.with_view(|view| view.replica().view(OWN_VIEW).unwrap().position().unwrap());
    assert!(
        left.iter().zip(back).all(|(left, back)| (left - back).abs() < 0.01),
        "{left:?} {back:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn players_travel_between_districts() {
    let mut stage = Stage::new(|config| {
        config.world.reach = 3_000;
        config.world.other_districts = vec![2, 3];
    })
    .await;
    stage.conditions = BAD;
    let (mut neo_margin, neo_id) = stage.newcomer("neo", "Neo").await;
    let (mut trinity_margin, id) = stage.newcomer("trinity", "Trinity").await;
    let neo = stage.enter(&mut neo_margin, neo_id).await;
    let trinity = stage.enter(&mut trinity_margin, id).await;
    let is_neo = |name: &String| name == "Neo";
    notices(&trinity, |it| matches!(it, Happening::Appeared { name, .. } if is_neo(name))).await;
    neo.with_view(|view| view.take_happenings().for_each(drop));
    for district in [2, 3, 1, 2] {
        let travelled = neo.travel(district, PATIENCE).await.unwrap();
        assert_eq!(travelled, Travel::Arrived, "district {district}");
    }
    let loads = neo.with_view(|view| {
        let loads = |it: &Happening| matches!(it, Happening::LoadsWorld { .. });
        view.take_happenings().filter(|it| loads(it)).count()
    });
    assert_eq!(loads, 4);
    notices(&trinity, |it| matches!(it, Happening::Disappeared { name, .. } if is_neo(name))).await;
    assert_eq!(
        stage.services.worlds().all().map(|world| world.players()).collect::<Vec<_>>(),
        [1, 1, 0]
    );
    // Players there do not hear those in other districts, except for whispers.
    trinity.with_view(|view| view.take_happenings().for_each(drop));
    trinity.say("Where are you?").unwrap();
    trinity.whisper("Neo", "Come back.").unwrap();
    let whispered = [(ChatScope::Whisper, "Come back.".to_owned())];
    assert_eq!(heard(&neo, 1).await, whispered);
    for client in [&neo, &trinity] {
        sees_all(&stage, client).await;
    }
    // No hardline leads within a district, or to one that the server does not have.
    const REFUSAL: &str = "This server does not have that hardline.";
    let began = Instant::now();
    assert_eq!(neo.travel(2, PATIENCE).await.unwrap(), Travel::Arrived, "it is there already");
    assert_eq!(neo.travel(4, PATIENCE).await.unwrap(), Travel::Refused(REFUSAL.to_owned()));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(heard(&neo, 2).await[1].1, REFUSAL);
    assert_eq!(neo.with_view(|view| view.district()), Some(2));
    // The character returns to the district in which it left.
    neo.leave().await;
    timeout(PATIENCE, neo_margin.ended()).await.unwrap();
    let mut margin = stage.margin("neo").await;
    margin.load(neo_id).await.unwrap();
    let neo = stage.enter(&mut margin, neo_id).await;
    until("the world", async || neo.with_view(|view| view.district().is_some())).await;
    assert_eq!(neo.with_view(|view| view.district()), Some(2));
}

/// Waits until a client has received these options.
async fn receives_options(client: &Client, wanted: &[(&str, &str)]) {
    let mut found = Vec::new();
    until("options", async || {
        client.with_view(|view| {
            found.extend(view.take_happenings().filter_map(|it| match it {
                Happening::Option { name, value } => Some((name, value)),
                _ => None,
            }));
        });
        found.len() >= wanted.len()
    })
    .await;
    let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(found, wanted);
}

#[tokio::test(start_paused = true)]
async fn weather_and_options_reach_all_players() {
    let mut stage = Stage::new(|config| {
        let options = "[world]\nsky = \"WinterSky3\"\noptions = { PvPServer = 6, X = \"yes\" }";
        *config = worldwire_server::mxo::MxoConfig::parse(options).unwrap();
    })
    .await;
    let (mut margin, id) = stage.newcomer("neo", "Neo").await;
    let neo = stage.enter(&mut margin, id).await;
    let loads = |wanted: &'static str| move |it: &Happening| matches!(it, Happening::LoadsWorld { sky, .. } if sky == wanted);
    receives_options(&neo, &[("PvPServer", "6"), ("X", "yes")]).await;
    stage.realm.set_sky("bluesky1").unwrap();
    receives_options(&neo, &[("WR_RezEvents", "bluesky1")]).await;
    for unshown in ["", "a\n", &"x".repeat(1_025)] {
        stage.realm.set_sky(unshown).unwrap_err();
    }
    let (mut margin, id) = stage.newcomer("trinity", "Trinity").await;
    let trinity = stage.enter(&mut margin, id).await;
    notices(&trinity, loads("bluesky1")).await;
}

#[tokio::test(start_paused = true)]
async fn players_read_why_the_server_ends_their_session() {
    let mut stage = slow_stage().await;
    stage.add("neo").await;
    let mut known = None;
    for text in [
        "An operator has disconnected you.",
        "Your account has been banned.",
        "Your account has been deactivated.",
        "The server is shutting down.",
    ] {
        let mut margin = stage.margin("neo").await;
        let id = match known {
            Some(id) => margin.load(id).await.map(|_| id).unwrap(),
            None => {
                let plain = worldwire_client::mxo::plain_character("", "", "").unwrap();
                margin.create("Neo", plain).await.unwrap()
            }
        };
        known = Some(id);
        let neo = stage.enter(&mut margin, id).await;
        match text.split(' ').next_back() {
            Some("you.") => assert_eq!(stage.realm.kick("neo"), Ok(1)),
            Some("banned.") => stage.realm.ban("neo", true).await.unwrap(),
            Some("deactivated.") => stage.realm.deactivate("neo", true).await.unwrap(),
            _ => stage.stop(),
        }
        assert_eq!(heard(&neo, 1).await, [(ChatScope::Modal, text.to_owned())]);
        timeout(PATIENCE, margin.ended()).await.unwrap();
        until("it is gone", async || stage.world().players() == 0).await;
        stage.realm.ban("neo", false).await.unwrap();
        stage.realm.deactivate("neo", false).await.unwrap();
    }
}

/// The number of seconds after which the server closes a connection.
async fn closes_after(mut stream: DuplexStream) -> u64 {
    let (began, mut rest) = (Instant::now(), Vec::new());
    timeout(PATIENCE, stream.read_to_end(&mut rest)).await.unwrap().unwrap();
    began.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn silent_logins_end() {
    let stage = slow_stage().await;
    stage.add("neo").await;
    // A connection without a first message.
    assert_eq!(closes_after(stage.auth()).await, 10);
    assert_eq!(closes_after(stage.margin_stream()).await, 10);
    // Half a message is not a message.
    let mut stream = stage.auth();
    stream.write_all(&[9, 6, 0xd9]).await.unwrap();
    assert_eq!(closes_after(stream).await, 10);
    // A connection on which nothing is sent after the first message.
    let mut stream = stage.auth();
    stream.write_all(&[9, 6, 0xd9, 0x21, 7, 0, 4, 0, 0, 0]).await.unwrap();
    assert_eq!(closes_after(stream).await, 300);
    // A connection on the margin channel, before a character is in the world.
    let (margin, began) = (stage.margin("neo").await, Instant::now());
    margin.ended().await;
    assert_eq!(began.elapsed().as_secs(), 60);
    // A certificate can be used until it expires.
    let ticket = stage.ticket("neo").await;
    sleep(Duration::from_secs(599)).await;
    Margin::over(stage.margin_stream(), ticket.clone(), PATIENCE).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    let late = Margin::over(stage.margin_stream(), ticket, PATIENCE).await;
    assert!(matches!(late, Err(LoginError::Ended(_))), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn players_whose_network_fails_can_return() {
    let mut stage = slow_stage().await;
    let (mut margin, id) = stage.newcomer("neo", "Neo").await;
    let lost = stage.enter(&mut margin, id).await;
    // A client in the world may send nothing on the margin channel.
    sleep(Duration::from_secs(5 * 60)).await;
    assert!(!lost.is_over() && !margin.is_over());
    stage.link.take().unwrap().cut();
    let began = Instant::now();
    until("the character is gone", async || {
        sleep(Duration::from_secs(1)).await;
        stage.world().players() == 0
    })
    .await;
    assert!((28..=34).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    // The session is still there.
    assert_eq!(stage.realm.census().loaded, 1);
    let back = stage.enter(&mut margin, id).await;
    assert_eq!(stage.world().players(), 1);
    drop(back);
    drop(lost);
    // Without a character in the world, the session ends, too.
    let began = Instant::now();
    timeout(PATIENCE, margin.ended()).await.unwrap();
    assert!((85..=100).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!(stage.realm.census().loaded, 0);
}

#[tokio::test(start_paused = true)]
async fn a_silent_session_is_replaced() {
    let mut stage = slow_stage().await;
    let (mut margin, id) = stage.newcomer("neo", "Neo").await;
    let neo = stage.enter(&mut margin, id).await;
    let mut again = stage.margin("neo").await;
    sleep(Duration::from_secs(20)).await;
    let in_use = again.load(id).await;
    assert!(matches!(in_use, Err(LoginError::Denied(LoginStatus::CharacterInUse))), "{in_use:?}");
    stage.link.take().unwrap().cut();
    // The client pings every 20 seconds.
    sleep(Duration::from_secs(26)).await;
    again.load(id).await.unwrap();
    timeout(PATIENCE, margin.ended()).await.unwrap();
    drop(neo);
    let neo = stage.enter(&mut again, id).await;
    assert!(!neo.is_over());
    assert_eq!((stage.world().players(), stage.realm.census().loaded), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn moving_cancels_jacking_out() {
    let mut stage = Stage::new(|config| config.world.reach = 1_000).await;
    let (mut margin, id) = stage.newcomer("neo", "Neo").await;
    let mut neo = stage.enter(&mut margin, id).await;
    assert!(timeout(Duration::from_secs(5), neo.jack_out()).await.is_err());
    neo.with_view(|view| view.set_walking(true));
    sleep(Duration::from_secs(1)).await;
    neo.with_view(|view| view.set_walking(false));
    sleep(Duration::from_secs(20)).await;
    assert!(!neo.is_over() && stage.world().players() == 1);
    let began = Instant::now();
    timeout(PATIENCE, neo.jack_out()).await.unwrap().unwrap();
    assert_eq!(began.elapsed().as_secs(), 10);
    timeout(PATIENCE, margin.ended()).await.unwrap();
    assert_eq!((stage.world().players(), stage.realm.census().loaded), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn travelling_cancels_jacking_out() {
    let mut stage = Stage::new(|config| config.world.other_districts = vec![2]).await;
    let (mut margin, id) = stage.newcomer("neo", "Neo").await;
    let mut neo = stage.enter(&mut margin, id).await;
    assert!(timeout(Duration::from_secs(5), neo.jack_out()).await.is_err());
    // The client sees that its character is leaving.
    sees_all(&stage, &neo).await;
    assert_eq!(neo.travel(2, PATIENCE).await.unwrap(), Travel::Arrived);
    sleep(Duration::from_secs(20)).await;
    assert!(!neo.is_over());
    sees_all(&stage, &neo).await;
    // A character cannot leave while it travels.
    assert!(timeout(Duration::ZERO, neo.travel(1, PATIENCE)).await.is_err());
    assert!(timeout(Duration::ZERO, neo.jack_out()).await.is_err());
    sleep(Duration::from_secs(20)).await;
    assert!(!neo.is_over());
    sees_all(&stage, &neo).await;
}

#[tokio::test(start_paused = true)]
async fn failed_logins_delay_answers() {
    let stage = slow_stage().await;
    stage.add("neo").await;
    stage.add("trinity").await;
    for _ in 0..16 {
        stage.try_ticket("neo", "blue pill").await.unwrap_err();
    }
    let began = Instant::now();
    stage.ticket("neo").await;
    assert_eq!(began.elapsed().as_secs(), 4);
    // Another player logs in from another address.
    let began = Instant::now();
    let stream = stage.auth_from("198.51.100.1:1");
    let login = stage.login("trinity", crate::server::PASSWORD);
    worldwire_client::mxo::log_in_over(stream, login, PATIENCE).await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_ends_all_sessions() {
    let mut stage = slow_stage().await;
    let (mut margin, id) = stage.newcomer("neo", "Neo").await;
    let mut neo = stage.enter(&mut margin, id).await;
    stage.stop();
    timeout(PATIENCE, margin.ended()).await.unwrap();
    timeout(PATIENCE, neo.ended()).await.unwrap();
    assert_eq!(stage.world().players(), 0);
}

#[tokio::test(start_paused = true)]
async fn names_are_reserved_and_characters_deleted() {
    let stage = slow_stage().await;
    let plain = || worldwire_client::mxo::plain_character("", "", "").unwrap();
    stage.add("neo").await;
    stage.add("smith").await;
    let (mut neo, mut smith) = (stage.margin("neo").await, stage.margin("smith").await);
    neo.claim("TheOne").await.unwrap();
    let taken = smith.claim("theone").await;
    assert!(matches!(taken, Err(LoginError::Denied(LoginStatus::NameInUse))), "{taken:?}");
    // The name is released with the connection.
    drop(neo);
    sleep(Duration::from_secs(1)).await;
    let first = smith.create("TheOne", plain()).await.unwrap();
    let second = smith.create("Smith", plain()).await.unwrap();
    let in_use = smith.delete(second).await;
    assert!(matches!(in_use, Err(LoginError::Denied(LoginStatus::CharacterInUse))), "{in_use:?}");
    smith.delete(first).await.unwrap();
    let left = stage.ticket("smith").await.characters;
    assert_eq!(left.iter().map(|it| it.id).collect::<Vec<_>>(), [second]);
}
