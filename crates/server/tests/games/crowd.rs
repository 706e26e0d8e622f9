//! Many players share variables. `WORLDWIRE_GAMES_CROWD=200` sets the number of players to 200.

use std::time::{Duration, Instant};

use worldwire_core::json::{Json, json};
use worldwire_server::uru::ShardConfig;
use worldwire_uru::games::message::var_sync::server::ServerMessage as Says;
use worldwire_uru::games::{GameBody, GameType};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::NetError;

use crate::client::Running;
use crate::player::Player;
use crate::world::{Guest, Mailbox, PASSWORD, StillTime, encoded, join, settings};

const VARIABLES: u32 = 20;
/// The time between two changes: the owner makes ten a second.
const BETWEEN: Duration = Duration::from_millis(100);
const CHANGES: u32 = 300;
/// The number of changes after which a client sends a ping.
const PING_EVERY: u32 = 100;
/// The table of the game in which clients share variables.
const TABLE: u32 = 255;

fn players() -> usize {
    let wanted = std::env::var("WORLDWIRE_GAMES_CROWD").ok();
    wanted.and_then(|players| players.parse().ok()).unwrap_or(12)
}

/// Starts a shard for many clients from one address.
async fn shard() -> Running {
    let change = |config: &mut ShardConfig| {
        settings(config);
        config.limits.connections_per_address = 10_000;
    };
    Running::start(|_| (), change).await
}

/// A player in the age who shares the variables.
struct Sharer {
    guest: Guest,
    mailbox: Mailbox,
    game: u32,
    /// The first variables that the player received.
    first: Vec<(u32, f64)>,
}

impl Sharer {
    async fn join(shard: &Running, number: usize) -> Self {
        let name = format!("crowd{number}");
        shard.vault.add_account(&name, PASSWORD, AccountFlags(0)).await.unwrap();
        let mut auth = Player::connect(shard).await;
        let (_, reply) = auth.log_in(&name, PASSWORD).await;
        let id = auth.create(&format!("Player {number}"), "female").await.unwrap();
        assert_eq!(auth.choose(id).await, NetError::Success);
        let mut guest = Guest::new(auth, reply.account_id, id);
        guest.link(shard.address, &shard.keys).await;
        guest.play(&encoded(9, 0, "Manager.JoinGame", join(GameType::VarSync, TABLE))).await;
        let mut sharer = Self { guest, mailbox: Mailbox::default(), game: 0, first: Vec::new() };
        loop {
            match sharer.hear().await {
                GameBody::VarSyncServer(Says::NumericVarCreated(it)) => {
                    sharer.first.push((it.var, it.value.0));
                }
                GameBody::VarSyncServer(Says::AllVarsSent(_)) => break,
                _ => {}
            }
        }
        sharer.game = sharer.mailbox.known_game(GameType::VarSync).unwrap();
        sharer
    }

    async fn say(&self, name: &str, fields: Json) {
        self.guest.play(&encoded(0, self.game, &format!("VarSync.{name}"), fields)).await;
    }

    async fn hear(&mut self) -> GameBody<'static> {
        self.guest.hear(&mut self.mailbox).await.expect("the connection is open").body
    }

    /// The next variables that the player receives: their IDs and values, and whether they are new.
    async fn variables(&mut self, count: usize) -> Vec<(u32, f64, bool)> {
        let mut variables = Vec::new();
        while variables.len() < count {
            match self.hear().await {
                GameBody::VarSyncServer(Says::NumericVarCreated(it)) => {
                    variables.push((it.var, it.value.0, true));
                }
                GameBody::VarSyncServer(Says::NumericVarChanged(it)) => {
                    variables.push((it.var, it.value.0, false));
                }
                _ => {}
            }
        }
        variables
    }
}

/// Nobody misses a change, no matter how late they read it, and a newcomer gets the newest values.
#[test]
fn everybody_gets_every_change_of_a_variable() {
    let begun = Instant::now();
    StillTime::new().run(async {
        let shard = shard().await;
        let mut crowd = Vec::new();
        for number in 0..players() {
            crowd.push(Sharer::join(&shard, number).await);
        }
        let mut wanted = Vec::new();
        for var in 1..=VARIABLES {
            let fields = json!({"name": format!("QuabRun{var}"), "value": 0.0});
            crowd[0].say("CreateNumericVar", fields).await;
            wanted.push((var, 0.0, true));
        }
        for change in 0..CHANGES {
            let (var, value) = (1 + change % VARIABLES, f64::from(change));
            crowd[0].say("SetNumericVar", json!({"var": var, "value": value})).await;
            wanted.push((var, value, false));
            tokio::time::advance(BETWEEN).await;
            if change % PING_EVERY == 0 {
                for sharer in &mut crowd {
                    sharer.guest.ping().await;
                }
            }
        }
        // Nobody has read anything yet.
        for sharer in &mut crowd {
            assert_eq!(sharer.variables(wanted.len()).await, wanted);
        }
        let late = Sharer::join(&shard, players()).await;
        let newest = wanted.iter().rev().take(late.first.len()).rev();
        let newest: Vec<_> = newest.map(|(var, value, _)| (*var, *value)).collect();
        assert_eq!((late.first.len(), &late.first), (VARIABLES as usize, &newest));
        drop((crowd, late));
        tokio::time::resume();
        shard.stop().await;
    });
    let (players, elapsed) = (players(), begun.elapsed());
    println!("{CHANGES} changes of {VARIABLES} variables to {players} players: {elapsed:.1?}");
}
