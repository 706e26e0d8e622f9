//! An independent model of the game manager, compared with the real one under random operations by
//! eight players. Random numbers are zero in both.

mod heek;
mod small;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use worldwire_core::{Sampler, Side};
use worldwire_uru::games::message::any::server::{
    InviteError, InviteFailed, OwnerChange, PlayerJoined, PlayerLeft, ServerMessage as Any,
};
use worldwire_uru::games::message::manager::GameResult;
use worldwire_uru::games::message::manager::server::{GameInstance, ServerMessage as Manager};
use worldwire_uru::games::message::{any, tables};
use worldwire_uru::games::{GameBody, GameMessage, GameScope, GameType};
use worldwire_uru::types::{TransId, Uuid};

use crate::world::{OPERATIONS, PLAYERS, World, encoded, join, markers, rounds};
use small::{Climb, Door, Hunt, Shelf, Store, Xo};

/// The messages that players are sent, in the order of sending.
type Sent = Vec<(u32, GameBody<'static>)>;

/// A game in the model.
struct Play {
    id: u32,
    kind: GameType,
    table: Option<u32>,
    members: Vec<u32>,
    state: State,
}

enum State {
    Door(Door),
    Shelf(Shelf),
    Climb(Climb),
    Xo(Xo),
    Hunt(Hunt),
    Heek(heek::Bench),
}

impl State {
    fn new(kind: GameType) -> Self {
        match kind {
            GameType::BlueSpiral => Self::Door(Door::default()),
            GameType::ClimbingWall => Self::Climb(Climb::default()),
            GameType::Heek => Self::Heek(heek::Bench::default()),
            GameType::TicTacToe => Self::Xo(Xo::default()),
            GameType::VarSync => Self::Shelf(Shelf::default()),
            GameType::Marker => unreachable!("made by the store"),
        }
    }

    fn due(&self) -> Option<u64> {
        match self {
            Self::Door(door) => door.due,
            Self::Climb(climb) => climb.due,
            Self::Heek(bench) => bench.due,
            _ => None,
        }
    }
}

#[derive(Default)]
struct Model {
    plays: Vec<Play>,
    made: u32,
    now: u64,
    store: Store,
    sent: Sent,
}

const FIRST_ID: u32 = 7_000;

fn say(sent: &mut Sent, to: &[u32], body: &GameBody<'static>) {
    sent.extend(to.iter().map(|to| (*to, body.clone())));
}

impl Model {
    fn add(&mut self, kind: GameType, table: Option<u32>, state: State) -> usize {
        let id = FIRST_ID + self.made;
        self.made += 1;
        self.plays.push(Play { id, kind, table, members: Vec::new(), state });
        self.plays.len() - 1
    }

    fn instance(&mut self, to: u32, result: GameResult, owner: u32, kind: Uuid, id: u32) {
        let game = GameInstance { result, owner, game_type: kind, game_id: id };
        self.sent.push((to, Manager::from(game).into()));
    }

    fn join(&mut self, player: u32, kind: GameType, table: u32) {
        if kind == GameType::Marker {
            return self.instance(player, GameResult::InitFailed, 0, kind.id(), 0);
        }
        let found = |play: &Play| play.kind == kind && play.table == Some(table);
        let at = match self.plays.iter().position(found) {
            Some(at) => at,
            None => self.add(kind, Some(table), State::new(kind)),
        };
        let play = &self.plays[at];
        let again = play.members.contains(&player);
        if !again && matches!(&play.state, State::Xo(xo) if xo.runs) {
            return self.instance(player, GameResult::GameStarted, 0, kind.id(), 0);
        }
        if !again {
            self.plays[at].members.push(player);
        }
        let (id, owner) = (self.plays[at].id, self.plays[at].members[0]);
        self.instance(player, GameResult::Success, owner, kind.id(), id);
        let Self { plays, sent, .. } = self;
        let play = &mut plays[at];
        let mut variables = Vec::new();
        if let State::Shelf(shelf) = &play.state {
            variables = shelf.all();
        }
        let told: Vec<u32> = if again { vec![player] } else { play.members.clone() };
        let joined = Any::from(PlayerJoined { player }).into();
        let change = Any::from(OwnerChange { owner }).into();
        if player != owner {
            sent.extend(variables.iter().map(|body| (player, body.clone())));
        }
        say(sent, &told, &joined);
        sent.push((player, change));
        if player == owner {
            sent.extend(variables.into_iter().map(|body| (player, body)));
        }
        match &mut play.state {
            State::Climb(climb) if player != owner => climb.tell(sent, &[player], &[true]),
            State::Heek(bench) if player == owner => bench.clean(sent, player),
            State::Xo(xo) if !xo.runs && play.members.len() == 2 => xo.begin(sent, &play.members),
            _ => {}
        }
    }

    fn leave(&mut self, at: usize, player: u32) {
        let Self { plays, sent, now, .. } = self;
        let play = &mut plays[at];
        let was_owner = play.members[0] == player;
        play.members.retain(|member| *member != player);
        let members = play.members.clone();
        say(sent, &members, &Any::from(PlayerLeft { player }).into());
        if was_owner && let Some(owner) = members.first() {
            say(sent, &members, &Any::from(OwnerChange { owner: *owner }).into());
        }
        let mut is_over = members.is_empty() && play.table.is_none();
        match &mut play.state {
            State::Heek(bench) => bench.lose(sent, &members, player),
            State::Climb(climb) => climb.lose(sent, &members, player, *now),
            State::Xo(xo) if xo.runs && !members.is_empty() => {
                xo.give_up(sent, members[0]);
                is_over = true;
            }
            _ => {}
        }
        if is_over {
            plays.remove(at);
        } else if members.is_empty() {
            play.state = match core::mem::replace(&mut play.state, State::Shelf(Shelf::default())) {
                State::Heek(bench) => State::Heek(bench.deserted()),
                _ => State::new(play.kind),
            };
        }
    }

    fn quit(&mut self, player: u32) {
        let mut ids: Vec<u32> = Vec::new();
        ids.extend(self.plays.iter().filter(|it| it.members.contains(&player)).map(|it| it.id));
        for id in ids {
            let at = self.plays.iter().position(|play| play.id == id).unwrap();
            self.leave(at, player);
        }
    }

    fn open(&mut self, player: u32, template: &str, kind: u8) {
        let own =
            self.plays.iter().filter(|it| it.kind == GameType::Marker && it.members == [player]);
        let marker = GameType::Marker.id();
        if own.count() >= 8 {
            return self.instance(player, GameResult::MaxPlayers, 0, marker, 0);
        }
        let Some((hunt, messages)) = self.store.open(player, template, kind) else {
            return self.instance(player, GameResult::MaxPlayers, 0, marker, 0);
        };
        let at = self.add(GameType::Marker, None, State::Hunt(hunt));
        self.plays[at].members.push(player);
        let id = self.plays[at].id;
        self.instance(player, GameResult::Success, player, marker, id);
        self.sent.extend(messages.into_iter().map(|body| (player, body)));
    }

    fn message(&mut self, player: u32, at: usize, body: &GameBody<'static>) {
        if !self.plays[at].members.contains(&player) {
            return;
        }
        match body {
            GameBody::AnyClient(any::client::ClientMessage::LeaveGame(_)) => {
                return self.leave(at, player);
            }
            GameBody::AnyClient(any::client::ClientMessage::Invite(invite)) => {
                let (invitee, error) = (invite.player, InviteError::NoJoin);
                let failed = Any::from(InviteFailed { invitee, operation: 1, error });
                self.sent.push((player, failed.into()));
                return;
            }
            _ => {}
        }
        let Self { plays, sent, now, store, .. } = self;
        let Play { members, state, .. } = &mut plays[at];
        let is_over = match (state, body) {
            (State::Door(door), GameBody::BlueSpiralClient(body)) => {
                door.hear(sent, members, body, *now);
                false
            }
            (State::Shelf(shelf), GameBody::VarSyncClient(body)) => {
                shelf.hear(sent, members, player, body);
                false
            }
            (State::Climb(climb), GameBody::ClimbingWallClient(body)) => {
                climb.hear(sent, members, player, body, *now);
                false
            }
            (State::Heek(bench), GameBody::HeekClient(body)) => {
                bench.hear(sent, members, player, body, *now);
                false
            }
            (State::Xo(xo), GameBody::TicTacToeClient(body)) => {
                xo.hear(sent, members, player, body)
            }
            (State::Hunt(hunt), GameBody::MarkerClient(body)) => {
                store.hear(sent, hunt, player, body)
            }
            _ => false,
        };
        if is_over {
            self.plays.remove(at);
        }
    }

    /// The games, by ID, and their members.
    fn running(&self) -> Vec<(u32, Vec<u32>)> {
        let mut running: Vec<_> = self.plays.iter().map(|it| (it.id, it.members.clone())).collect();
        running.sort();
        running
    }

    /// Advances the clock. Returns the times at which timers went off, in milliseconds from the
    /// start.
    fn advance(&mut self, milliseconds: u64) -> Vec<u64> {
        let (begin, end) = (self.now, self.now + milliseconds);
        let mut rang = Vec::new();
        loop {
            let due = self.plays.iter().filter_map(|play| play.state.due()).min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            rang.push(self.now - begin);
            let Self { plays, sent, now, .. } = self;
            for play in plays.iter_mut().filter(|play| play.state.due() == Some(due)) {
                match &mut play.state {
                    State::Door(door) => door.ring(sent, &play.members),
                    State::Climb(climb) => climb.ring(sent, &play.members),
                    State::Heek(bench) => bench.ring(sent, &play.members, *now),
                    _ => {}
                }
            }
        }
        self.now = end;
        rang
    }

    /// Ends all games without any message while a player's messages to a marker game are handled.
    /// Returns the answers to these messages, and the possible contents of the store afterwards,
    /// each with the number of answers sent until then.
    fn kill(&mut self, player: u32, burst: &[GameMessage<'static>]) -> (Sent, Vec<(usize, Store)>) {
        let mut stores = vec![(0, self.store.clone())];
        for message in burst {
            let at = self.plays.iter().position(|play| play.id == message.game_id).unwrap();
            self.message(player, at, &message.body);
            stores.push((self.sent.len(), self.store.clone()));
        }
        self.plays.clear();
        self.made = 0;
        (core::mem::take(&mut self.sent), stores)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Join {
        player: u32,
        kind: usize,
        table: u32,
    },
    Open {
        player: u32,
        template: usize,
        kind: u8,
    },
    Say {
        player: u32,
        game: usize,
        number: u32,
        seed: u64,
    },
    Quit {
        player: u32,
    },
    Wait {
        milliseconds: u64,
    },
    /// The server is killed and restarted while it handles the messages of a player who changes a
    /// marker game, if anyone is playing one.
    Kill {
        game: usize,
        seed: u64,
    },
}

/// The maximum number of messages in flight when a server is killed.
pub(crate) const BURST: usize = 12;
/// The messages whose effect is visible in the marker game: `ChangeGameName`, `AddMarker`,
/// `ChangeMarkerName`, `CaptureMarker`.
const EDITS: [u32; 4] = [6, 9, 11, 12];

const TEMPLATES: [&str; 3] =
    ["", "00000000-0000-4000-8000-000000000000", "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"];

fn operation() -> impl Strategy<Value = Operation> {
    let player = || prop::sample::select(PLAYERS.to_vec());
    let waits =
        prop::sample::select(vec![1_u64, 10, 500, 999, 1_000, 6_000, 7_000, 15_000, 60_000]);
    prop_oneof![
        16 => (player(), 0..6_usize, 0..2_u32)
            .prop_map(|(player, kind, table)| Operation::Join { player, kind, table }),
        4 => (player(), 0..3_usize, 0..2_u8)
            .prop_map(|(player, template, kind)| Operation::Open { player, template, kind }),
        96 => (player(), any::<usize>(), 0..13_u32, any::<u64>())
            .prop_map(|(player, game, number, seed)| Operation::Say { player, game, number, seed }),
        4 => player().prop_map(|player| Operation::Quit { player }),
        2 => (any::<usize>(), any::<u64>())
            .prop_map(|(game, seed)| Operation::Kill { game, seed }),
        12 => waits.prop_map(|milliseconds| Operation::Wait { milliseconds }),
    ]
}

/// A message with small values, most of which are valid.
fn body(kind: GameType, number: u32, seed: u64) -> Option<GameBody<'static>> {
    let mut sampler = Sampler::new(seed);
    let scope = GameScope::Game(kind);
    let message = GameMessage::sample(scope, Side::Client, number, &mut sampler)?;
    let mut body = message.into_owned().body;
    let small = |bound: u64, sampler: &mut Sampler| u32::try_from(sampler.below(bound)).unwrap();
    let byte = |bound: u64, sampler: &mut Sampler| u8::try_from(sampler.below(bound)).unwrap();
    let s = &mut sampler;
    use worldwire_uru::games::message as m;
    match &mut body {
        GameBody::BlueSpiralClient(m::blue_spiral::client::ClientMessage::HitCloth(it)) => {
            it.cloth = byte(9, s);
        }
        GameBody::ClimbingWallClient(it) => {
            use m::climbing_wall::client::ClientMessage as Wall;
            match it {
                Wall::ChangeNumBlockers(it) => it.amount = i32::from(byte(9, s)) - 3,
                Wall::Ready(it) => {
                    (it.ready_type.0, it.team) = (byte(2, s), 1 + byte(2, s));
                }
                Wall::BlockerChanged(it) => (it.team, it.blocker) = (byte(4, s), byte(4, s)),
                Wall::PlayerEntered(it) => it.team = 1 + byte(2, s),
                _ => {}
            }
        }
        GameBody::HeekClient(it) => {
            use m::heek::client::ClientMessage as Heek;
            match it {
                Heek::PlayGame(it) => (it.position, it.points) = (byte(6, s), small(5, s)),
                Heek::Choose(it) => it.choice.0 = byte(3, s),
                Heek::SeqFinished(it) => it.sequence.0 = byte(3, s),
                Heek::StandUp(_) => {}
            }
        }
        GameBody::TicTacToeClient(m::tic_tac_toe::client::ClientMessage::MakeMove(it)) => {
            (it.row, it.col) = (byte(3, s), byte(3, s));
        }
        GameBody::VarSyncClient(it) => {
            use m::var_sync::client::ClientMessage as Vars;
            let names = ["a", "b", "c", "d"];
            let name = names[usize::from(byte(4, s))];
            let number = f64::from(byte(9, s)).into();
            match it {
                Vars::SetStringVar(it) => it.var = small(5, s),
                Vars::SetNumericVar(it) => (it.var, it.value) = (small(5, s), number),
                Vars::CreateStringVar(it) => it.name = name.into(),
                Vars::CreateNumericVar(it) => (it.name, it.value) = (name.into(), number),
                Vars::RequestAllVars(_) => {}
            }
        }
        GameBody::MarkerClient(it) => {
            use m::marker::client::ClientMessage as Hunt;
            match it {
                Hunt::AddMarker(it) => (it.x, it.y, it.z) = (1.0.into(), 2.0.into(), 3.0.into()),
                Hunt::DeleteMarker(it) => it.marker = small(4, s),
                Hunt::ChangeMarkerName(it) => it.marker = small(4, s),
                Hunt::CaptureMarker(it) => it.marker = small(4, s),
                _ => {}
            }
        }
        _ => {}
    }
    Some(body)
}

/// The messages that each game and the manager send to each player.
fn streams(
    sent: Sent,
    game_of: impl Fn(&GameBody<'_>) -> u32,
) -> BTreeMap<(u32, u32), Vec<String>> {
    let mut streams = BTreeMap::<_, Vec<String>>::new();
    for (to, body) in sent {
        streams.entry((to, game_of(&body))).or_default().push(format!("{body:?}"));
    }
    streams
}

fn run(operations: Vec<Operation>) {
    let mut world = World::new();
    world.fix_random();
    let operations = world.paced(operations);
    let mut model = Model { now: 100_000, ..Model::default() };
    for operation in &operations {
        match operation {
            Operation::Join { player, kind, table } => {
                let kind = GameType::ALL[*kind];
                world.send_in(*player, 5, 0, "Manager.JoinGame", join(kind, *table));
                model.join(*player, kind, *table);
            }
            Operation::Open { player, template, kind } => {
                let fields = markers(TEMPLATES[*template], *kind);
                world.send_bytes(*player, &encoded(5, 0, "Manager.CreateGame", fields));
                model.open(*player, TEMPLATES[*template], *kind);
            }
            Operation::Say { player, game, number, seed } => {
                // Most messages come from members.
                let count = model.plays.len();
                let theirs = (0..count).filter(|at| model.plays[*at].members.contains(player));
                let theirs: Vec<usize> = theirs.collect();
                let at = match (theirs.len(), count) {
                    (_, 0) => continue,
                    (0, _) => game % count,
                    (own, _) => theirs[game % own],
                };
                let kind = model.plays[at].kind;
                let Some(body) = body(kind, *number, *seed) else { continue };
                let game_id = model.plays[at].id;
                let message = GameMessage { trans_id: TransId(0), game_id, body };
                world.send_bytes(*player, &message.to_bytes().unwrap());
                model.message(*player, at, &message.body);
            }
            Operation::Quit { player } => {
                world.leave(*player);
                model.quit(*player);
            }
            Operation::Wait { milliseconds } => {
                let rang = model.advance(*milliseconds);
                world.advance_over(*milliseconds, &rang);
            }
            Operation::Kill { game, seed } => kill(&mut world, &mut model, *game, *seed),
        }
        let wanted = core::mem::take(&mut model.sent);
        let wanted = streams(wanted, |_| 0);
        let mut found = Sent::new();
        for player in PLAYERS {
            found.extend(world.take(player).into_iter().map(|got| (player, got.body)));
        }
        // Within one operation, the messages of several games are only mixed if a player leaves the
        // age or time passes.
        let found = streams(found, |_| 0);
        let sort = |mut streams: BTreeMap<(u32, u32), Vec<String>>| {
            if matches!(operation, Operation::Quit { .. } | Operation::Wait { .. }) {
                streams.values_mut().for_each(|stream| stream.sort());
            }
            streams
        };
        assert_eq!(sort(found), sort(wanted), "{operation:?}");
        world.runs(&model.running());
        count(operation);
    }
    for player in PLAYERS {
        world.leave(player);
        model.quit(player);
    }
    // Only the tables remain, without players.
    assert!(model.plays.iter().all(|play| play.table.is_some() && play.members.is_empty()));
    world.look();
    world.runs(&model.running());
}

/// Kills the server while a player changes a marker game, then opens the game again. The game must
/// contain all changes that were answered, and may contain some of the others, in order and without
/// gaps.
fn kill(world: &mut World, model: &mut Model, game: usize, seed: u64) {
    let hunts = model.plays.iter().filter_map(|play| match &play.state {
        State::Hunt(hunt) => Some((play.id, play.members[0], hunt.template.clone())),
        _ => None,
    });
    let hunts: Vec<_> = hunts.collect();
    let mut sampler = Sampler::new(seed);
    let mut below = |bound: usize| usize::try_from(sampler.below(bound as u64)).unwrap();
    let (mut player, mut burst, mut template) = (PLAYERS[0], Vec::new(), None);
    if !hunts.is_empty() {
        let (game_id, member, of) = hunts[game % hunts.len()].clone();
        (player, template) = (member, Some(of));
        for index in 0..1 + below(BURST) {
            let number = EDITS[below(EDITS.len())];
            let body = body(GameType::Marker, number, seed.wrapping_add(index as u64)).unwrap();
            burst.push(GameMessage { trans_id: TransId(0), game_id, body });
        }
    }
    let (wanted, stores) = model.kill(player, &burst);
    let bytes: Vec<_> = burst.iter().map(|message| message.to_bytes().unwrap()).collect();
    let got = world.kill(player, &bytes, below(wanted.len() + 1));
    let answers = got.len();
    let got: Vec<_> = got.into_iter().map(|got| (player, got.body)).collect();
    assert_eq!(got, wanted[..answers], "answers to {burst:?}");
    let Some(template) = template else { return };
    world.send_bytes(player, &encoded(5, 0, "Manager.CreateGame", markers(&template, 0)));
    let opened: Sent = world.take(player).into_iter().map(|got| (player, got.body)).collect();
    let mut fits = false;
    for (_, store) in stores.into_iter().filter(|(answered, _)| *answered >= answers) {
        let other = Model { store, now: model.now, ..Model::default() };
        *model = other;
        model.open(player, &template, 0);
        if core::mem::take(&mut model.sent) == opened {
            fits = true;
            break;
        }
    }
    assert!(fits, "after {answers} answers to {burst:?}, the game has {opened:?}");
    HUNTED.fetch_add(1, Ordering::Relaxed);
}

/// The operations so far, by kind, and the number of kills in the middle of a marker game.
static COUNTS: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];
static HUNTED: AtomicU64 = AtomicU64::new(0);

fn count(operation: &Operation) {
    let kind = match operation {
        Operation::Join { .. } => 0,
        Operation::Open { .. } => 1,
        Operation::Say { .. } => 2,
        Operation::Quit { .. } => 3,
        Operation::Wait { .. } => 4,
        Operation::Kill { .. } => 5,
    };
    COUNTS[kind].fetch_add(1, Ordering::Relaxed);
}

fn report() {
    let [joins, opens, messages, losses, waits, kills] =
        COUNTS.each_ref().map(|count| count.load(Ordering::Relaxed));
    let total = joins + opens + messages + losses + waits + kills;
    println!(
        "{total} operations: {joins} joins, {opens} marker games opened, {messages} messages, \
         {losses} lost connections, {waits} waits, {kills} kills, {} of them during changes of a \
         marker game",
        HUNTED.load(Ordering::Relaxed)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(), ..ProptestConfig::default() })]

    #[test]
    fn the_manager_agrees_with_the_model(
        operations in prop::collection::vec(operation(), 1..OPERATIONS)
    ) {
        run(operations);
        report();
    }
}

/// The generator knows every message of every game.
#[test]
fn the_operations_reach_every_message() {
    for kind in GameType::ALL {
        for info in tables(GameScope::Game(kind), Side::Client).into_iter().flatten() {
            assert!(info.number < 13 && body(kind, info.number, 1).is_some(), "{}", info.name);
        }
    }
}
