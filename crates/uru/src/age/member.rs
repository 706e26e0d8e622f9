//! The members of an age.

use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};

use crate::net_message::{PageFlags, PagingRoom, RelevanceRegions};
use crate::types::{SequenceNumber, Uoid, Uuid};

/// A player as known to the server; none of this comes from the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Player {
    /// The KI number of the player; not 0.
    pub id: u32,
    /// The name shown to others; at most 255 bytes of it are sent.
    pub name: String,
    /// Whether the player is an administrator.
    pub is_admin: bool,
    /// The account, if known. Players of one account share a quota of the age's room for states.
    /// Never sent to clients.
    pub account: Uuid,
}

impl Player {
    /// A player who is not an administrator.
    #[must_use]
    pub fn new(id: u32, name: &str) -> Self {
        Self { id, name: name.to_owned(), is_admin: false, account: Uuid::ZERO }
    }

    /// The same player as an administrator.
    #[must_use]
    pub fn admin(self) -> Self {
        Self { is_admin: true, ..self }
    }
}

/// A player in an age.
#[derive(Clone, Debug)]
pub struct Member {
    pub(super) player: Player,
    pub(super) avatar: Option<Uoid<'static>>,
    pub(super) regions: Option<RelevanceRegions>,
    pub(super) pages: BTreeSet<u32>,
    pub(super) joined: Duration,
    pub(super) last_active: Duration,
    pub(super) malformed: RateWindow,
    pub(super) state_requests: RateWindow,
    pub(super) has_members: bool,
    pub(super) has_state: bool,
    pub(super) is_closing: bool,
}

impl Member {
    pub(super) fn new(player: Player, now: Duration) -> Self {
        Self {
            player,
            avatar: None,
            regions: None,
            pages: BTreeSet::new(),
            joined: now,
            last_active: now,
            malformed: RateWindow::default(),
            state_requests: RateWindow::default(),
            has_members: false,
            has_state: false,
            is_closing: false,
        }
    }

    /// The player.
    #[must_use]
    pub fn player(&self) -> &Player {
        &self.player
    }

    /// The avatar, if loaded.
    #[must_use]
    pub fn avatar(&self) -> Option<&Uoid<'static>> {
        self.avatar.as_ref()
    }

    /// The pages that the client has loaded, ascending.
    pub fn pages(&self) -> impl Iterator<Item = SequenceNumber> {
        self.pages.iter().copied().map(SequenceNumber)
    }

    /// Records that rooms were paged in or out. Returns false if there are too many pages.
    pub(super) fn page(&mut self, room: &PagingRoom<'_>, max: usize) -> bool {
        if room.page_flags.contains(PageFlags::ResetList) {
            self.pages.clear();
        }
        let is_out = room.page_flags.contains(PageFlags::PagingOut);
        for page in room.rooms.iter().map(|room| room.location.sequence_number.0) {
            if is_out {
                self.pages.remove(&page);
            } else if !self.pages.contains(&page) {
                if self.pages.len() >= max {
                    return false;
                }
                self.pages.insert(page);
            }
        }
        true
    }

    /// Whether the member cares about a region that the sender is in. Everyone cares about region 0,
    /// and members in it care about all regions. Members who are in no region are in region 0.
    /// Members who have not sent any regions see everyone and are seen by everyone.
    pub(super) fn cares_about(&self, sender: &Self) -> bool {
        let (Some(mine), Some(theirs)) = (&self.regions, &sender.regions) else { return true };
        let is_outside = |regions: &RelevanceRegions| {
            regions.in_.contains(0) || regions.in_.bits().next().is_none()
        };
        if is_outside(mine) || is_outside(theirs) {
            return true;
        }
        let mut words = mine.care_about.0.iter().zip(&theirs.in_.0);
        words.any(|(cares, is_in)| cares & is_in != 0)
    }
}

/// The members of an age, in the order of joining.
#[derive(Clone, Debug, Default)]
pub(super) struct Members(Vec<Member>);

impl Members {
    pub(super) fn iter(&self) -> core::slice::Iter<'_, Member> {
        self.0.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, player_id: u32) -> Option<&Member> {
        self.0.iter().find(|member| member.player.id == player_id)
    }

    pub(super) fn get_mut(&mut self, player_id: u32) -> Option<&mut Member> {
        self.0.iter_mut().find(|member| member.player.id == player_id)
    }

    pub(super) fn push(&mut self, member: Member) {
        self.0.push(member);
    }

    pub(super) fn remove(&mut self, player_id: u32) -> Option<Member> {
        let index = self.0.iter().position(|member| member.player.id == player_id)?;
        Some(self.0.remove(index))
    }

    /// The longest-standing member among those active lately or, if there are none, among all
    /// members.
    pub(super) fn longest(&self, now: Duration, silence: Duration) -> Option<u32> {
        let is_active = |member: &&Member| now.saturating_sub(member.last_active) <= silence;
        let longest = self.0.iter().find(is_active).or_else(|| self.0.first());
        longest.map(|member| member.player.id)
    }
}

/// Counts events within the last minute, up to a bound.
#[derive(Clone, Debug, Default)]
pub(super) struct RateWindow(VecDeque<Duration>);

const MINUTE: Duration = Duration::from_secs(60);

impl RateWindow {
    /// Records an event and returns how many occurred within the last minute; at most `max` are
    /// counted.
    pub(super) fn add(&mut self, now: Duration, max: usize) -> usize {
        self.forget_old(now);
        if self.0.len() >= max {
            self.0.pop_front();
        }
        self.0.push_back(now);
        self.0.len()
    }

    /// Records an event unless `max` occurred within the last minute.
    pub(super) fn try_add(&mut self, now: Duration, max: usize) -> bool {
        self.forget_old(now);
        let has_room = self.0.len() < max;
        if has_room {
            self.0.push_back(now);
        }
        has_room
    }

    fn forget_old(&mut self, now: Duration) {
        while self.0.front().is_some_and(|then| now.saturating_sub(*then) >= MINUTE) {
            self.0.pop_front();
        }
    }
}
