//! The model of the games other than Heek.

use std::collections::{BTreeMap, BTreeSet};

use worldwire_uru::games::message::any::server::{OwnerChange, PlayerJoined, ServerMessage as Any};
use worldwire_uru::games::message::blue_spiral::client::ClientMessage as DoorHears;
use worldwire_uru::games::message::blue_spiral::server as door;
use worldwire_uru::games::message::climbing_wall::WallReady;
use worldwire_uru::games::message::climbing_wall::client::ClientMessage as ClimbHears;
use worldwire_uru::games::message::climbing_wall::server as climb;
use worldwire_uru::games::message::marker::MarkerGameType;
use worldwire_uru::games::message::marker::client::ClientMessage as HuntHears;
use worldwire_uru::games::message::marker::server as hunt;
use worldwire_uru::games::message::tic_tac_toe::client::ClientMessage as XoHears;
use worldwire_uru::games::message::tic_tac_toe::server as xo;
use worldwire_uru::games::message::var_sync::client::ClientMessage as ShelfHears;
use worldwire_uru::games::message::var_sync::server as shelf;
use worldwire_uru::games::{Array, GameBody, GameText};

use super::{Sent, say};

fn door_says(message: impl Into<door::ServerMessage>) -> GameBody<'static> {
    message.into().into()
}

/// The order of the cloths if random numbers are zero: each place in turn, starting with the last,
/// is swapped with the first.
const ORDER: [u8; 7] = [1, 2, 3, 4, 5, 6, 0];

/// A blue spiral. `touched` is `None` while nobody plays, and 7 when the game is won.
#[derive(Default)]
pub(super) struct Door {
    touched: Option<usize>,
    began: u64,
    spins: bool,
    pub(super) due: Option<u64>,
}

impl Door {
    pub(super) fn hear(&mut self, sent: &mut Sent, members: &[u32], body: &DoorHears, now: u64) {
        match (body, self.touched) {
            (DoorHears::StartGame(_), Some(_)) if now - self.began < 1_000 => {}
            (DoorHears::StartGame(_), touched) => {
                if touched.is_some() {
                    say(sent, members, &door_says(door::GameOver {}));
                }
                *self =
                    Self { touched: Some(0), began: now, spins: false, due: Some(now + 15_000) };
                say(sent, members, &door_says(door::ClothOrder { order: Array(ORDER) }));
                say(sent, members, &door_says(door::GameStarted { start_spin: false.into() }));
            }
            (DoorHears::HitCloth(hit), Some(touched)) if touched < 7 && hit.cloth < 7 => {
                if ORDER[touched] != hit.cloth {
                    say(sent, members, &door_says(door::GameOver {}));
                    *self = Self::default();
                    return;
                }
                self.touched = Some(touched + 1);
                say(sent, &members[..1], &door_says(door::SuccessfulHit {}));
                if touched == 6 {
                    self.due = Some(self.began + 75_000);
                    say(sent, &members[..1], &door_says(door::GameWon {}));
                }
            }
            (DoorHears::HitCloth(_), _) => {}
        }
    }

    pub(super) fn ring(&mut self, sent: &mut Sent, members: &[u32]) {
        if self.spins || self.touched == Some(7) {
            say(sent, members, &door_says(door::GameOver {}));
            *self = Self::default();
        } else {
            self.spins = true;
            self.due = Some(self.began + 75_000);
            say(sent, &members[..1], &door_says(door::GameStarted { start_spin: true.into() }));
        }
    }
}

/// VarSync: the messages that create the variables, in order.
#[derive(Default)]
pub(super) struct Shelf(Vec<shelf::ServerMessage<'static>>);

impl Shelf {
    pub(super) fn all(&self) -> Vec<GameBody<'static>> {
        let last = shelf::ServerMessage::from(shelf::AllVarsSent {});
        self.0.iter().cloned().chain([last]).map(GameBody::from).collect()
    }

    pub(super) fn hear(
        &mut self,
        sent: &mut Sent,
        members: &[u32],
        player: u32,
        body: &ShelfHears<'static>,
    ) {
        let is_owner = members[0] == player;
        let var = u32::try_from(self.0.len() + 1).unwrap();
        let (name, made): (&GameText<'_, 256>, shelf::ServerMessage<'_>) = match body {
            ShelfHears::RequestAllVars(_) => {
                sent.extend(self.all().into_iter().map(|body| (player, body)));
                return;
            }
            ShelfHears::SetStringVar(set) if is_owner => {
                let at = usize::try_from(set.var).unwrap().wrapping_sub(1);
                if let Some(shelf::ServerMessage::StringVarCreated(it)) = self.0.get_mut(at) {
                    it.value = set.value.clone();
                    let (var, value) = (set.var, set.value.clone());
                    let changed =
                        shelf::ServerMessage::from(shelf::StringVarChanged { var, value });
                    say(sent, members, &changed.into());
                }
                return;
            }
            ShelfHears::SetNumericVar(set) if is_owner => {
                let at = usize::try_from(set.var).unwrap().wrapping_sub(1);
                if let Some(shelf::ServerMessage::NumericVarCreated(it)) = self.0.get_mut(at) {
                    it.value = set.value;
                    let (var, value) = (set.var, set.value);
                    let changed =
                        shelf::ServerMessage::from(shelf::NumericVarChanged { var, value });
                    say(sent, members, &changed.into());
                }
                return;
            }
            ShelfHears::SetStringVar(_) | ShelfHears::SetNumericVar(_) => return,
            ShelfHears::CreateStringVar(it) => {
                let (name, value) = (it.name.clone(), it.value.clone());
                (&it.name, shelf::StringVarCreated { name, var, value }.into())
            }
            ShelfHears::CreateNumericVar(it) => {
                let (name, value) = (it.name.clone(), it.value);
                (&it.name, shelf::NumericVarCreated { name, var, value }.into())
            }
        };
        let known = self.0.iter().find(|known| match known {
            shelf::ServerMessage::StringVarCreated(it) => it.name == *name,
            shelf::ServerMessage::NumericVarCreated(it) => it.name == *name,
            _ => false,
        });
        match known {
            Some(known) => sent.push((player, known.clone().into())),
            None => {
                say(sent, members, &made.clone().into());
                self.0.push(made);
            }
        }
    }
}

/// A climbing wall.
#[derive(Default)]
pub(super) struct Climb {
    count: i32,
    /// Whether teams 1 and 2 are ready: first to agree on the number of blockers, then with the
    /// blockers' places.
    ready: [[bool; 2]; 2],
    blockers: [Vec<u8>; 2],
    climbers: BTreeMap<u32, usize>,
    pub(super) due: Option<u64>,
}

impl Climb {
    /// 0: agreeing on the number, 1: placing, 2: climbing, 3: over.
    fn phase(&self) -> usize {
        match (self.due, self.ready) {
            (Some(_), _) => 3,
            (_, [[true, true], [true, true]]) => 2,
            (_, [[true, true], _]) => 1,
            _ => 0,
        }
    }

    fn list(&self, team: usize) -> Array<i32, 20> {
        let mut list = [-1; 20];
        for (place, blocker) in list.iter_mut().zip(&self.blockers[team]) {
            *place = i32::from(*blocker);
        }
        Array(list)
    }

    /// Messages 4, 5 (twice), 6 (twice) and 8 of the wall.
    fn message(&self, number: usize, local: bool) -> GameBody<'static> {
        let local_only = local.into();
        let message: climb::ServerMessage = match number {
            0 => climb::NumBlockersChanged { count: self.count.try_into().unwrap(), local_only }
                .into(),
            1 | 2 => {
                let ready_type = [WallReady::NumBlockers, WallReady::Blockers][number - 1];
                let [team1, team2] = self.ready[number - 1].map(Into::into);
                climb::Ready { ready_type, team1, team2, local_only }.into()
            }
            3 | 4 => {
                let (team, blockers) = (number - 2, self.list(number - 3));
                climb::BlockersChanged { team: team.try_into().unwrap(), blockers, local_only }
                    .into()
            }
            _ => {
                let [team1, team2] =
                    [0, 1].map(|team| self.climbers.values().any(|it| *it == team).into());
                climb::SuitMachineLocked { team1, team2, local_only }.into()
            }
        };
        message.into()
    }

    pub(super) fn tell(&self, sent: &mut Sent, to: &[u32], local: &[bool]) {
        for number in 0..6 {
            for (to, local) in to.iter().zip(local) {
                sent.push((*to, self.message(number, *local)));
            }
        }
    }

    fn show(&self, sent: &mut Sent, members: &[u32], number: usize) {
        for (index, member) in members.iter().enumerate() {
            sent.push((*member, self.message(number, index > 0)));
        }
    }

    fn restart(&mut self, sent: &mut Sent, members: &[u32]) {
        *self = Self::default();
        let local: Vec<bool> = (0..members.len()).map(|index| index > 0).collect();
        self.tell(sent, members, &local);
    }

    fn over(&mut self, sent: &mut Sent, members: &[u32], team: usize, now: u64) {
        self.due = Some(now + 1_000);
        for (index, member) in members.iter().enumerate() {
            let over = climb::GameOver {
                team_won: u8::try_from(team + 1).unwrap(),
                team1_blockers: self.list(0),
                team2_blockers: self.list(1),
                local_only: (index > 0).into(),
            };
            sent.push((*member, climb::ServerMessage::from(over).into()));
        }
    }

    pub(super) fn hear(
        &mut self,
        sent: &mut Sent,
        members: &[u32],
        player: u32,
        body: &ClimbHears,
        now: u64,
    ) {
        let phase = self.phase();
        match body {
            ClimbHears::ChangeNumBlockers(it) if phase == 0 => {
                self.count = (self.count + it.amount).clamp(0, 20);
                self.show(sent, members, 0);
                if self.ready[0].contains(&true) {
                    self.ready[0] = [false; 2];
                    self.show(sent, members, 1);
                }
            }
            ClimbHears::Ready(it) if phase == usize::from(it.ready_type.0) => {
                let (kind, team) = (usize::from(it.ready_type.0), usize::from(it.team) - 1);
                if !self.ready[kind][team] {
                    self.ready[kind][team] = true;
                    self.show(sent, members, 1 + kind);
                }
            }
            ClimbHears::BlockerChanged(it) if phase == 1 && (1..=2).contains(&it.team) => {
                let team = usize::from(it.team) - 1;
                if self.ready[1][team] {
                    return;
                }
                let list = &mut self.blockers[team];
                let before = list.clone();
                if !it.added.is_true() {
                    list.retain(|other| *other != it.blocker);
                } else if !list.contains(&it.blocker) && list.len() < self.count.try_into().unwrap()
                {
                    list.push(it.blocker);
                }
                if *list != before {
                    self.show(sent, members, 3 + team);
                }
            }
            ClimbHears::Reset(_) if phase < 2 || phase == 2 && self.climbers.is_empty() => {
                self.restart(sent, members);
            }
            ClimbHears::PlayerEntered(it) if phase == 2 => {
                let team = usize::from(it.team) - 1;
                let is_taken = self.climbers.values().any(|other| *other == team);
                if !is_taken && !self.climbers.contains_key(&player) {
                    self.climbers.insert(player, team);
                    let entered = climb::ServerMessage::from(climb::PlayerEntered {});
                    sent.push((player, entered.into()));
                    self.show(sent, members, 5);
                }
            }
            ClimbHears::FinishedGame(_) | ClimbHears::Panic(_) if phase == 2 => {
                if let Some(team) = self.climbers.get(&player).copied() {
                    let has_won = matches!(body, ClimbHears::FinishedGame(_));
                    self.over(sent, members, if has_won { team } else { 1 - team }, now);
                }
            }
            _ => {}
        }
    }

    pub(super) fn lose(&mut self, sent: &mut Sent, members: &[u32], player: u32, now: u64) {
        if let Some(team) = self.climbers.get(&player).copied().filter(|_| self.phase() == 2) {
            self.over(sent, members, 1 - team, now);
        }
    }

    pub(super) fn ring(&mut self, sent: &mut Sent, members: &[u32]) {
        self.restart(sent, members);
    }
}

/// Tic-tac-toe for two: the marks of the first and the second player, as bits.
#[derive(Default)]
pub(super) struct Xo {
    pub(super) runs: bool,
    marks: [u16; 2],
    players: Vec<u32>,
}

impl Xo {
    pub(super) fn begin(&mut self, sent: &mut Sent, members: &[u32]) {
        self.runs = true;
        self.players = members.to_vec();
        for (index, player) in members.iter().enumerate() {
            let started = xo::GameStarted { your_turn: (index == 0).into() };
            sent.push((*player, xo::ServerMessage::from(started).into()));
        }
    }

    fn over(sent: &mut Sent, members: &[u32], result: u32, winner: u32) {
        let over = xo::GameOver { result: xo::TicTacToeResult(result), winner };
        say(sent, members, &xo::ServerMessage::from(over).into());
    }

    pub(super) fn give_up(&self, sent: &mut Sent, winner: u32) {
        Self::over(sent, &[winner], 2, winner);
    }

    pub(super) fn hear(
        &mut self,
        sent: &mut Sent,
        members: &[u32],
        player: u32,
        body: &XoHears,
    ) -> bool {
        let XoHears::MakeMove(it) = body;
        let all = self.marks[0] | self.marks[1];
        let turn = usize::try_from(all.count_ones() % 2).unwrap();
        let bit = 1_u16 << (it.row * 3 + it.col);
        if !self.runs || self.players[turn] != player || all & bit != 0 {
            return false;
        }
        self.marks[turn] |= bit;
        let made = xo::MoveMade { player, row: it.row, col: it.col };
        say(sent, members, &xo::ServerMessage::from(made).into());
        let lines = [0o7, 0o70, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124];
        if lines.iter().any(|line| self.marks[turn] & line == *line) {
            Self::over(sent, members, 0, player);
        } else if (all | bit) == 0o777 {
            Self::over(sent, members, 1, 0);
        } else {
            return false;
        }
        true
    }
}

#[derive(Clone)]
struct Template {
    creator: u32,
    kind: u8,
    name: GameText<'static, 256>,
    next: u32,
    markers: BTreeMap<u32, hunt::MarkerAdded<'static>>,
    captured: BTreeSet<(u32, u32)>,
}

/// The store of marker games.
#[derive(Clone, Default)]
pub(super) struct Store(BTreeMap<String, Template>);

/// An open marker game.
pub(super) struct Hunt {
    pub(super) template: String,
    creator: u32,
    kind: u8,
    plays: bool,
}

fn hunt_says(message: impl Into<hunt::ServerMessage<'static>>) -> GameBody<'static> {
    message.into().into()
}

impl Store {
    pub(super) fn open(
        &mut self,
        player: u32,
        template: &str,
        kind: u8,
    ) -> Option<(Hunt, Vec<GameBody<'static>>)> {
        let is_new = template.is_empty();
        // The result of zero random numbers.
        let key = if is_new { super::TEMPLATES[1] } else { template };
        if is_new && self.0.contains_key(key) {
            return None;
        }
        let blank = |creator, name: &str| Template {
            creator,
            kind,
            name: name.into(),
            next: 0,
            markers: BTreeMap::new(),
            captured: BTreeSet::new(),
        };
        if is_new {
            self.0.insert(key.to_owned(), blank(player, "Hunt"));
        } else if kind == 1 && !self.0.contains_key(key) {
            self.0.insert(key.to_owned(), blank(player, ""));
        }
        let nobodys = blank(0, "");
        let of = self.0.get(key).unwrap_or(&nobodys);
        let game_type = hunt_says(hunt::GameType { game_type: MarkerGameType(of.kind) });
        let name = hunt_says(hunt::GameNameChanged { name: of.name.clone() });
        let joined = [
            hunt_says(hunt::TeamAssigned { team: 1 }),
            Any::from(PlayerJoined { player }).into(),
            Any::from(OwnerChange { owner: player }).into(),
        ];
        let mut messages = Vec::new();
        if is_new {
            messages.push(hunt_says(hunt::TemplateCreated { template: key.into() }));
            messages.extend([game_type, name]);
            messages.extend(joined);
        } else {
            messages.extend(joined);
            messages.push(game_type);
            messages.extend(of.markers.values().cloned().map(hunt_says));
            messages.push(name);
            for (_, marker) in of.captured.iter().filter(|it| it.0 == player) {
                messages.push(hunt_says(hunt::MarkerCaptured { marker: *marker, team: 1 }));
            }
        }
        let (template, creator) = (key.to_owned(), of.creator);
        Some((Hunt { template, creator, kind: of.kind, plays: false }, messages))
    }

    /// Returns whether the game is over.
    pub(super) fn hear(
        &mut self,
        sent: &mut Sent,
        hunt_of: &mut Hunt,
        player: u32,
        body: &HuntHears<'static>,
    ) -> bool {
        let mut of = self.0.get_mut(&hunt_of.template);
        let may_edit = hunt_of.creator == player;
        let still = of.as_ref().is_some_and(|of| of.creator == hunt_of.creator);
        let answer = match body {
            HuntHears::StartGame(_) => {
                let was_playing = core::mem::replace(&mut hunt_of.plays, true);
                (!was_playing).then(|| hunt_says(hunt::GameStarted {}))
            }
            HuntHears::PauseGame(_) => {
                hunt_of.plays = false;
                Some(hunt_says(hunt::GamePaused { time_left: 0 }))
            }
            HuntHears::ResetGame(_) => {
                hunt_of.plays = false;
                if let Some(of) = of {
                    of.captured.retain(|it| it.0 != player);
                }
                Some(hunt_says(hunt::GameReset {}))
            }
            HuntHears::CaptureMarker(it) => {
                let of = of.filter(|of| of.markers.contains_key(&it.marker));
                let is_first = of.is_some_and(|of| of.captured.insert((player, it.marker)));
                is_first.then(|| hunt_says(hunt::MarkerCaptured { marker: it.marker, team: 1 }))
            }
            HuntHears::DeleteGame(_) => {
                if may_edit && still && hunt_of.kind == 1 {
                    self.0.remove(&hunt_of.template);
                }
                sent.push((player, hunt_says(hunt::GameDeleted { failed: false.into() })));
                return true;
            }
            _ if !may_edit || !still => None,
            HuntHears::ChangeGameName(it) => of.as_mut().map(|of| {
                of.name = it.name.clone();
                hunt_says(hunt::GameNameChanged { name: it.name.clone() })
            }),
            HuntHears::ChangeTimeLimit(it) => {
                Some(hunt_says(hunt::TimeLimitChanged { time_limit: it.time_limit }))
            }
            HuntHears::AddMarker(it) => of.map(|of| {
                let (x, y, z, marker) = (it.x, it.y, it.z, of.next);
                let (name, age) = (it.name.clone(), it.age.clone());
                let added = hunt::MarkerAdded { x, y, z, marker, name, age };
                of.next += 1;
                of.markers.insert(marker, added.clone());
                hunt_says(added)
            }),
            HuntHears::DeleteMarker(it) => of.and_then(|of| {
                of.markers.remove(&it.marker)?;
                of.captured.retain(|captured| captured.1 != it.marker);
                Some(hunt_says(hunt::MarkerDeleted { marker: it.marker }))
            }),
            HuntHears::ChangeMarkerName(it) => of.and_then(|of| {
                of.markers.get_mut(&it.marker)?.name = it.name.clone();
                let (marker, name) = (it.marker, it.name.clone());
                Some(hunt_says(hunt::MarkerNameChanged { marker, name }))
            }),
        };
        sent.extend(answer.map(|answer| (player, answer)));
        false
    }
}
