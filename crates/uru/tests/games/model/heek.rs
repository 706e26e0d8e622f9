//! The model of Heek.

use worldwire_uru::games::GameBody;
use worldwire_uru::games::message::heek::client::ClientMessage;
use worldwire_uru::games::message::heek::server as says;
use worldwire_uru::games::message::heek::{HeekChoice, HeekCountdown, HeekLight};

use super::Sent;

/// The current phase at a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Now {
    #[default]
    Nothing,
    Break,
    Count,
    Stopped,
    Shown,
    ShownWin,
    Winner,
}

/// A player's account in the running game.
#[derive(Clone, Debug, Default)]
struct Account {
    player: u32,
    seat: Option<u8>,
    points: u32,
    paid: bool,
    chose: Option<u8>,
    wins: [u32; 3],
    reached: Option<u8>,
}

#[derive(Default)]
pub(super) struct Bench {
    now: Now,
    pub(super) due: Option<u64>,
    pool: u32,
    decides: bool,
    colour: u8,
    accounts: Vec<Account>,
    dirty: Vec<u8>,
}

fn body(message: impl Into<says::ServerMessage<'static>>) -> GameBody<'static> {
    message.into().into()
}

impl Bench {
    fn seated(&self) -> Vec<usize> {
        let mut seated: Vec<usize> = (0..self.accounts.len()).collect();
        seated.retain(|at| self.accounts[*at].seat.is_some());
        seated.sort_by_key(|at| self.accounts[*at].seat);
        seated
    }

    fn at(&self, player: u32) -> Option<usize> {
        self.accounts.iter().position(|it| it.player == player)
    }

    fn seat_of(&self, player: u32) -> Option<usize> {
        self.at(player).filter(|at| self.accounts[*at].seat.is_some())
    }

    fn rank(&self, at: usize) -> u32 {
        let own = self.accounts[at].points;
        let better = self.seated().into_iter().filter(|it| self.accounts[*it].points > own).count();
        1 + u32::try_from(better).unwrap()
    }

    fn tell_points(&self, sent: &mut Sent, at: usize, display: bool) {
        let (points, rank) = (self.accounts[at].points, self.rank(at));
        let update = says::PointUpdate { display: display.into(), points, rank };
        sent.push((self.accounts[at].player, body(update)));
    }

    fn buttons(&self, sent: &mut Sent, enabled: bool) {
        for at in self.seated() {
            let state = says::InterfaceState { enabled: enabled.into() };
            sent.push((self.accounts[at].player, body(state)));
        }
    }

    fn count(sent: &mut Sent, members: &[u32], state: HeekCountdown) {
        if let Some(owner) = members.first() {
            sent.push((*owner, body(says::CountdownState { state })));
        }
    }

    pub(super) fn clean(&mut self, sent: &mut Sent, owner: u32) {
        self.dirty.sort_unstable();
        for position in self.dirty.drain(..) {
            sent.push((owner, body(says::Drop { position })));
        }
    }

    pub(super) fn deserted(self) -> Self {
        Self { dirty: self.dirty, ..Self::default() }
    }

    pub(super) fn hear(
        &mut self,
        sent: &mut Sent,
        members: &[u32],
        player: u32,
        said: &ClientMessage<'static>,
        now: u64,
    ) {
        match said {
            ClientMessage::PlayGame(it) if it.position < 5 => {
                let is_taken = self.accounts.iter().any(|other| other.seat == Some(it.position));
                if is_taken || self.seat_of(player).is_some() {
                    let no = false.into();
                    let reply = says::PlayGame { playing: no, single: no, enable: no };
                    sent.push((player, body(reply)));
                    return;
                }
                // Only the account of a running game is kept.
                let at = match self.at(player) {
                    Some(at) => at,
                    None => {
                        let points = if it.points > 0x7fff_ffff { 0 } else { it.points };
                        self.accounts.push(Account { player, points, ..Account::default() });
                        self.accounts.len() - 1
                    }
                };
                self.accounts[at].seat = Some(it.position);
                let (count, open) =
                    (self.seated().len(), matches!(self.now, Now::Nothing | Now::Break));
                let reply = says::PlayGame {
                    playing: true.into(),
                    single: (count == 1).into(),
                    enable: (count > 1 && open).into(),
                };
                sent.push((player, body(reply)));
                for other in self.seated() {
                    let other = self.accounts[other].player;
                    if count == 2 && open && other != player {
                        let state = says::InterfaceState { enabled: true.into() };
                        sent.push((other, body(state)));
                    }
                }
                let (points, rank) = (self.accounts[at].points, self.rank(at));
                for other in self.seated() {
                    let welcome = says::Welcome { points, rank, name: it.name.clone() };
                    sent.push((self.accounts[other].player, body(welcome)));
                }
            }
            ClientMessage::PlayGame(_) => {}
            ClientMessage::StandUp(_) => {
                let Some(at) = self.seat_of(player) else { return };
                let is_last = self.seated().len() == 1;
                let gain = if is_last { self.pool } else { 0 };
                self.accounts[at].points += gain;
                self.tell_points(sent, at, gain > 1);
                sent.push((player, body(says::Goodbye {})));
                self.free(sent, members, at);
            }
            ClientMessage::Choose(it) => self.choose(sent, members, player, it.choice.0, now),
            ClientMessage::SeqFinished(it) if members[0] == player => {
                let awaited = match self.now {
                    Now::Stopped => Some(0),
                    Now::Shown | Now::ShownWin => Some(1),
                    Now::Winner => Some(2),
                    _ => None,
                };
                if awaited == Some(it.sequence.0) {
                    self.ring(sent, members, now);
                }
            }
            ClientMessage::SeqFinished(_) => {}
        }
    }

    fn choose(&mut self, sent: &mut Sent, members: &[u32], player: u32, choice: u8, now: u64) {
        let can = matches!(self.now, Now::Nothing | Now::Break | Now::Count);
        let Some(at) = self.seat_of(player).filter(|_| can && self.seated().len() > 1) else {
            return;
        };
        if self.now == Now::Nothing {
            self.pool = 0;
            for account in &mut self.accounts {
                (account.paid, account.wins, account.reached) = (false, [0; 3], None);
            }
        }
        if self.now != Now::Count {
            self.accounts.iter_mut().for_each(|it| it.chose = None);
            Self::count(sent, members, HeekCountdown::Start);
            (self.now, self.due) = (Now::Count, Some(now + 7_000));
        }
        self.accounts[at].chose = Some(choice);
        if !self.accounts[at].paid {
            let fee = self.accounts[at].points.min(1);
            self.accounts[at].paid = true;
            self.accounts[at].points -= fee;
            self.pool += fee;
            self.tell_points(sent, at, false);
        }
        if self.seated().iter().all(|it| self.accounts[*it].chose.is_some()) {
            Self::count(sent, members, HeekCountdown::Stop);
            (self.now, self.due) = (Now::Stopped, Some(now + 1_000));
        }
    }

    /// A seat becomes free.
    fn free(&mut self, sent: &mut Sent, members: &[u32], at: usize) {
        let account = &mut self.accounts[at];
        (account.seat, account.chose, account.reached) = (None, None, None);
        match self.seated().len() {
            0 => {
                if matches!(self.now, Now::Count | Now::Stopped) {
                    Self::count(sent, members, HeekCountdown::Idle);
                }
                self.pool = 0;
                self.rest();
            }
            1 if matches!(self.now, Now::Nothing | Now::Break | Now::Count | Now::Stopped) => {
                self.buttons(sent, false);
            }
            _ => {}
        }
        // If no game is running, no data is kept about players who are not seated.
        if self.now == Now::Nothing {
            self.rest();
        }
    }

    fn rest(&mut self) {
        (self.now, self.due, self.decides) = (Now::Nothing, None, false);
        self.accounts.retain(|account| account.seat.is_some());
    }

    pub(super) fn lose(&mut self, sent: &mut Sent, members: &[u32], player: u32) {
        if let Some(at) = self.seat_of(player) {
            let position = self.accounts[at].seat.unwrap();
            match members.first() {
                Some(owner) => sent.push((*owner, body(says::Drop { position }))),
                None => self.dirty.push(position),
            }
            self.free(sent, members, at);
        }
        self.accounts.retain(|account| account.player != player);
    }

    fn again(&mut self, sent: &mut Sent, members: &[u32]) {
        Self::count(sent, members, HeekCountdown::Idle);
        if self.seated().len() > 1 {
            self.buttons(sent, true);
        }
        (self.now, self.due) = (Now::Break, None);
    }

    /// Called when the time is up or the owner's client has finished.
    pub(super) fn ring(&mut self, sent: &mut Sent, members: &[u32], now: u64) {
        let chosen = self.seated().iter().filter(|it| self.accounts[**it].chose.is_some()).count();
        match self.now {
            Now::Count if chosen > 1 => {
                Self::count(sent, members, HeekCountdown::Stop);
                (self.now, self.due) = (Now::Stopped, Some(now + 1_000));
            }
            Now::Stopped => {
                self.buttons(sent, false);
                if chosen > 1 {
                    self.round(sent, now);
                } else {
                    self.again(sent, members);
                }
            }
            Now::ShownWin => {
                let choice = HeekChoice(self.colour);
                sent.push((members[0], body(says::GameWin { choice })));
                for at in self.seated() {
                    if self.accounts[at].paid {
                        self.tell_points(sent, at, true);
                    }
                }
                (self.now, self.due) = (Now::Winner, Some(now + 6_000));
            }
            Now::Winner => {
                self.again(sent, members);
                self.rest();
            }
            _ => self.again(sent, members),
        }
    }

    fn round(&mut self, sent: &mut Sent, now: u64) {
        let players: Vec<usize> =
            self.seated().into_iter().filter(|it| self.accounts[*it].chose.is_some()).collect();
        // The number of players who chose each of the three; each choice beats the one before it,
        // and the first beats the last.
        let mut of = [0_i32; 3];
        for at in &players {
            of[usize::from(self.accounts[*at].chose.unwrap())] += 1;
        }
        let score = |choice: u8| {
            let choice = usize::from(choice);
            of[(choice + 2) % 3] - of[(choice + 1) % 3]
        };
        let scores: Vec<i32> =
            players.iter().map(|at| score(self.accounts[*at].chose.unwrap())).collect();
        let best = *scores.iter().max().unwrap();
        for (at, own) in players.into_iter().zip(scores) {
            let account = &mut self.accounts[at];
            let choice = account.chose.unwrap();
            let has_won = own == best && best > 0;
            let shown = says::WinLose { win: has_won.into(), choice: HeekChoice(choice) };
            sent.push((account.player, body(shown)));
            if !has_won {
                continue;
            }
            account.wins[usize::from(choice)] += 1;
            let wins = account.wins[usize::from(choice)];
            if wins < 3 {
                let light = choice * 2 + u8::try_from(wins - 1).unwrap();
                let light = says::LightState { light, state: HeekLight::On };
                sent.push((account.player, body(light)));
            } else if !self.decides {
                account.reached = Some(choice);
            }
        }
        let sum = |account: &Account| account.wins.iter().sum::<u32>();
        let ahead: Vec<usize> =
            self.seated().into_iter().filter(|it| self.accounts[*it].reached.is_some()).collect();
        let most = ahead.iter().map(|at| sum(&self.accounts[*at])).max();
        let ahead: Vec<usize> =
            ahead.into_iter().filter(|at| Some(sum(&self.accounts[*at])) == most).collect();
        for at in 0..self.accounts.len() {
            if !ahead.contains(&at) {
                self.accounts[at].reached = None;
            }
        }
        (self.now, self.due) = (Now::Shown, Some(now + 11_000));
        self.decides = ahead.len() > 1;
        if let [winner] = *ahead {
            let pool = core::mem::take(&mut self.pool);
            let account = &mut self.accounts[winner];
            self.colour = account.reached.unwrap();
            for second in 0..2 {
                let light = self.colour * 2 + second;
                let light = says::LightState { light, state: HeekLight::Flash };
                sent.push((account.player, body(light)));
            }
            account.points += pool;
            self.now = Now::ShownWin;
        }
    }
}
