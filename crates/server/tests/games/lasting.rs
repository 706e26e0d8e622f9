//! Tests what outlives a game: nothing, except for marker games, which even outlive the shard.
//!
//! A child process runs a shard and is killed while a player edits and plays a marker game. After
//! that, all messages that were answered must have taken effect; any number of the others may have
//! taken effect, in order and without gaps. `WORLDWIRE_CHAOS_ROUNDS=N` kills it N times with SQLite
//! and a fifth of that with PostgreSQL; a plain `cargo test` does so a few times.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Child;

use worldwire_core::Sampler;
use worldwire_core::json::{Json, json};
use worldwire_net::Stop;
use worldwire_server::uru::{Shard, keys};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::games::message::marker::MarkerGameType;
use worldwire_uru::games::message::marker::server::ServerMessage as Says;
use worldwire_uru::games::{GameBody, Marker, MarkerAnswer, MarkerLibrary, MarkerRequest};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};

use crate::child::{self, say};
use crate::database::Database;
use crate::player::Player;
use crate::world::{A, Got, Guest, Mailbox, PASSWORD, World, encoded, markers, settings};

#[test]
fn deleted_games_and_lost_players_leave_nothing() {
    let mut world = World::new();
    let hunts = [world.open(A, "", 0), world.open(A, "", 0)];
    world.runs(&[(hunts[0].min(hunts[1]), vec![A]), (hunts[0].max(hunts[1]), vec![A])]);
    world.send_in(A, 0, hunts[0], "Marker.DeleteGame", json!({}));
    let names: Vec<_> = world.take(A).iter().map(Got::name).collect();
    assert_eq!(names.last(), Some(&"GameDeleted"));
    world.look();
    world.runs(&[(hunts[1], vec![A])]);
    world.leave(A);
    world.look();
    world.runs(&[]);
}

const FOLDER: &str = "WORLDWIRE_GAMES_FOLDER";
const URL: &str = "WORLDWIRE_GAMES_URL";
const ROUNDS: &str = "WORLDWIRE_CHAOS_ROUNDS";
/// The number of messages that the player sends before a kill.
const BURST: usize = 120;

/// The child: serves a shard until it is killed. When run directly, it does nothing.
#[test]
fn shard() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let url = std::env::var(URL).ok();
    child::run(async {
        let shard = Shard::open_with(Path::new(&folder), PrimeKind::Plain, |config| {
            settings(config);
            config.listen = "127.0.0.1:0".parse().unwrap();
            config.status = String::new();
            config.database = url.unwrap_or_default();
        });
        let shard = shard.await.unwrap();
        // The account exists when the shard starts again.
        let added = shard.vault().add_account("ann", PASSWORD, AccountFlags(0)).await;
        assert!(matches!(added, Ok(_) | Err(NetError::AccountAlreadyExists)));
        // The test harness has already started a line.
        say(&format!("\naddress {}", shard.address().unwrap()));
        shard.serve(Stop::new().signal()).await.unwrap();
    });
}

fn start(database: &Database) -> (Child, SocketAddr, KeyRing) {
    let mut command = child::command("lasting::shard");
    command.env(FOLDER, database.folder.path());
    if let Some(url) = &database.url {
        command.env(URL, url);
    }
    let mut child = command.spawn().unwrap();
    let mut lines = child::lines(&mut child);
    let address = lines.find_map(|line| Some(line.strip_prefix("address ")?.parse().unwrap()));
    let keys = keys::load(&database.folder.path().join("keys.toml")).unwrap();
    (child, address.expect("the shard starts"), keys)
}

/// A message in a marker game, and the change that the store must make.
struct Said {
    bytes: Vec<u8>,
    request: MarkerRequest,
}

fn said(template: Uuid, player: u32, game: u32, sampler: &mut Sampler) -> Said {
    let marker = u32::try_from(sampler.below(12)).unwrap();
    let word = ["here", "Sh\u{f3}rah", ""][usize::try_from(sampler.below(3)).unwrap()];
    let creator = player;
    let (name, fields, request): (_, Json, _) = match sampler.below(10) {
        0..5 => {
            let marker =
                Marker { position: [1.5, -2.0, 0.25], name: word.into(), age: "city".into() };
            let fields = json!({"x": 1.5, "y": -2.0, "z": 0.25, "name": word, "age": "city"});
            ("AddMarker", fields, MarkerRequest::Add { template, creator, marker: marker.into() })
        }
        5 => {
            let request = MarkerRequest::Delete { template, creator, marker };
            ("DeleteMarker", json!({"marker": marker}), request)
        }
        6 => {
            let request = MarkerRequest::Rename { template, creator, marker, name: word.into() };
            ("ChangeMarkerName", json!({"marker": marker, "name": word}), request)
        }
        7 => {
            let request = MarkerRequest::RenameGame { template, creator, name: word.into() };
            ("ChangeGameName", json!({"name": word}), request)
        }
        _ => {
            let request = MarkerRequest::Capture { template, player, marker };
            ("CaptureMarker", json!({"marker": marker}), request)
        }
    };
    Said { bytes: encoded(0, game, &format!("Marker.{name}"), fields), request }
}

/// The data that a client receives about a game that it opens: its name, its markers, and the
/// captured ones.
#[derive(Debug, PartialEq)]
struct Opened {
    name: String,
    markers: Vec<(u32, [u64; 3], String, String)>,
    captured: BTreeSet<u32>,
}

impl Opened {
    fn of(library: &mut MarkerLibrary, template: Uuid, player: u32) -> Self {
        let game_type = MarkerGameType::Quest;
        let answer = library.apply(&MarkerRequest::Open { template, player, game_type });
        let MarkerAnswer::Opened { template, captured } = answer else { panic!("{answer:?}") };
        let markers = template.markers.iter().map(|(id, marker)| {
            let position = marker.position.map(f64::to_bits);
            (*id, position, marker.name.to_text(), marker.age.to_text())
        });
        Self { name: template.name.to_text(), markers: markers.collect(), captured }
    }

    fn take(&mut self, says: &Says<'_>) {
        match says {
            Says::GameNameChanged(it) => self.name = it.name.to_text(),
            Says::MarkerAdded(it) => {
                let position = [it.x, it.y, it.z].map(|it| it.0.to_bits());
                self.markers.push((it.marker, position, it.name.to_text(), it.age.to_text()));
            }
            Says::MarkerCaptured(it) => drop(self.captured.insert(it.marker)),
            _ => {}
        }
    }
}

/// Starts the shard and lets the player into the age.
async fn enter(database: &Database) -> (Child, Guest, u32) {
    let (child, address, keys) = start(database);
    let mut auth = Player::connect_to(address, &keys).await;
    let (players, reply) = auth.log_in("ann", PASSWORD).await;
    let player = match players.first() {
        Some((id, _)) => *id,
        None => auth.create("Ann", "female").await.unwrap(),
    };
    assert_eq!(auth.choose(player).await, NetError::Success);
    let mut guest = Guest::new(auth, reply.account_id, player);
    guest.link(address, &keys).await;
    (child, guest, player)
}

/// Opens a game. Returns its ID, its template, and the data that the client received about it.
async fn open(guest: &mut Guest, mailbox: &mut Mailbox, template: &str) -> (u32, String, Opened) {
    guest.play(&encoded(9, 0, "Manager.CreateGame", markers(template, 0))).await;
    let mut opened = Opened { name: String::new(), markers: Vec::new(), captured: BTreeSet::new() };
    let mut template = template.to_owned();
    loop {
        let got = guest.hear(mailbox).await.expect("the shard runs");
        let GameBody::MarkerServer(says) = &got.body else { continue };
        match says {
            Says::TemplateCreated(it) => template = it.template.to_text(),
            Says::GameNameChanged(_) => {
                guest.play(&encoded(0, got.game_id, "Marker.PauseGame", json!({}))).await;
            }
            // The answer follows all data about the opened game.
            Says::GamePaused(_) => return (got.game_id, template, opened),
            _ => {}
        }
        opened.take(says);
    }
}

async fn rounds(database: Database, rounds: usize) -> usize {
    let (mut template, mut answered) = (String::new(), 0);
    // The states that the store may be in.
    let mut states = Vec::new();
    for round in 0..=rounds {
        let (mut child, mut guest, player) = enter(&database).await;
        let mut mailbox = Mailbox::default();
        let (game, name, found) = open(&mut guest, &mut mailbox, &template).await;
        let id = Uuid::parse(&name).unwrap();
        if template.is_empty() {
            let mut library = MarkerLibrary::default();
            let (template, creator, game_type) = (id, player, MarkerGameType::Quest);
            let (name, time_limit) = ("Hunt".into(), 120);
            let create = MarkerRequest::Create { template, creator, game_type, name, time_limit };
            library.apply(&create);
            states.push(library);
        }
        template = name;
        let is_it = |state: &&MarkerLibrary| {
            Opened::of(&mut MarkerLibrary::clone(state), id, player) == found
        };
        let Some(mut library) = states.iter().find(is_it).cloned() else {
            panic!("round {round}: the shard has {found:?}");
        };
        let mut sampler = Sampler::new(round as u64 + 1);
        let said: Vec<Said> = (0..BURST).map(|_| said(id, player, game, &mut sampler)).collect();
        for said in said.iter().filter(|_| round < rounds) {
            guest.play(&said.bytes).await;
        }
        // Kill it at a different moment in each round, and before the shard has answered
        // everything.
        let enough = 1 + round * 17 % 41;
        let mut heard = 0;
        while round < rounds
            && heard < enough
            && let Some(got) = guest.hear(&mut mailbox).await
        {
            assert!(matches!(got.body, GameBody::MarkerServer(_)), "{got:?}");
            heard += 1;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Read answers that were in flight.
        while guest.hear(&mut mailbox).await.is_some() {
            heard += 1;
        }
        answered += heard;
        states.clear();
        let mut answers = 0;
        for said in [None].into_iter().chain(said.iter().map(Some)) {
            if let Some(said) = said {
                let answer = library.apply(&said.request);
                answers += usize::from(!matches!(answer, MarkerAnswer::Nothing));
            }
            if answers >= heard {
                states.push(library.clone());
            }
        }
    }
    answered
}

fn wanted() -> usize {
    std::env::var(ROUNDS).ok().map_or(2, |rounds| rounds.parse().unwrap())
}

fn killed(database: Database, number: usize) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(rounds(database, number))
}

#[test]
fn marker_games_survive_kills_with_sqlite() {
    let answers = killed(Database::sqlite(), wanted());
    println!("{} kills with SQLite: {answers} answered changes, all there", wanted());
}

#[test]
fn marker_games_survive_kills_with_postgres() {
    let Some(database) = Database::postgres() else { return };
    let number = wanted().div_ceil(5);
    let answers = killed(database, number);
    println!("{number} kills with PostgreSQL: {answers} answered changes, all there");
}
