//! The marker games, which outlive an age: templates, markers, and captures.

use std::collections::{BTreeMap, BTreeSet};

use super::GameText;
use super::message::marker::{AGE_UNITS, MarkerGameType, NAME_UNITS};
use crate::types::Uuid;

/// A marker of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    /// The position in the age; finite numbers.
    pub position: [f64; 3],
    /// The text.
    pub name: GameText<'static, NAME_UNITS>,
    /// The age's file name.
    pub age: GameText<'static, AGE_UNITS>,
}

/// A marker game, as all its players see it.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkerTemplate {
    /// The player who created it; 0 for a template that does not exist.
    pub creator: u32,
    /// The type.
    pub game_type: MarkerGameType,
    /// The name.
    pub name: GameText<'static, NAME_UNITS>,
    /// The time limit in milliseconds.
    pub time_limit: u32,
    /// The ID of the next marker. IDs are never used twice.
    pub next_marker: u32,
    /// The markers by ID.
    pub markers: BTreeMap<u32, Marker>,
}

impl MarkerTemplate {
    /// A template without markers.
    #[must_use]
    pub fn new(
        creator: u32,
        game_type: MarkerGameType,
        name: GameText<'static, NAME_UNITS>,
        time_limit: u32,
    ) -> Self {
        Self { creator, game_type, name, time_limit, next_marker: 0, markers: BTreeMap::new() }
    }
}

/// A request from a [`GameManager`](super::GameManager) to the store for marker games.
///
/// The store carries out requests from all ages in the order in which it receives them, and answers
/// each once its change is durable.
#[derive(Clone, Debug, PartialEq)]
pub enum MarkerRequest {
    /// Create a template. The answer is `Opened`, or `Full`.
    Create {
        /// The template: a random UUID.
        template: Uuid,
        /// The player who creates it.
        creator: u32,
        /// The type.
        game_type: MarkerGameType,
        /// The name.
        name: GameText<'static, NAME_UNITS>,
        /// The time limit in milliseconds.
        time_limit: u32,
    },
    /// Read a template and the player's captures. The answer is `Opened`, or `Full`. A missing
    /// quest is read as an empty one with creator 0; a missing calibration mission is created.
    Open {
        /// The template.
        template: Uuid,
        /// The player.
        player: u32,
        /// The type to give to a missing template.
        game_type: MarkerGameType,
    },
    /// Add a marker. The answer is `Added`, `Full`, or `Nothing` if the template is gone.
    Add {
        /// The template.
        template: Uuid,
        /// The player who created the template. If another player created it, nothing changes.
        creator: u32,
        /// The marker.
        marker: Box<Marker>,
    },
    /// Delete a marker and all captures of it. The answer is `Done`, or `Nothing`.
    Delete {
        /// The template.
        template: Uuid,
        /// The player who created the template. If another player created it, nothing changes.
        creator: u32,
        /// The marker's ID.
        marker: u32,
    },
    /// Change a marker's text. The answer is `Done`, or `Nothing`.
    Rename {
        /// The template.
        template: Uuid,
        /// The player who created the template. If another player created it, nothing changes.
        creator: u32,
        /// The marker's ID.
        marker: u32,
        /// The text.
        name: GameText<'static, NAME_UNITS>,
    },
    /// Change the name of the game. The answer is `Done`, or `Nothing`.
    RenameGame {
        /// The template.
        template: Uuid,
        /// The player who created the template. If another player created it, nothing changes.
        creator: u32,
        /// The name.
        name: GameText<'static, NAME_UNITS>,
    },
    /// Change the time limit. The answer is `Done`, or `Nothing`.
    SetTimeLimit {
        /// The template.
        template: Uuid,
        /// The player who created the template. If another player created it, nothing changes.
        creator: u32,
        /// The limit in milliseconds.
        time_limit: u32,
    },
    /// Record that a player has captured a marker. The answer is `Done`, or `Nothing` if the player
    /// had already captured it or there is no such marker.
    Capture {
        /// The template.
        template: Uuid,
        /// The player.
        player: u32,
        /// The marker's ID.
        marker: u32,
    },
    /// Forget what a player has captured. The answer is `Done`.
    Forget {
        /// The template.
        template: Uuid,
        /// The player.
        player: u32,
    },
    /// Delete a template with its markers and captures. The answer is `Done`.
    Remove {
        /// The template.
        template: Uuid,
        /// The player who created the template. If another player created it, nothing changes.
        creator: u32,
    },
}

/// The answer to a [`MarkerRequest`].
#[derive(Clone, Debug, PartialEq)]
pub enum MarkerAnswer {
    /// A template and the markers that the player has captured.
    Opened {
        /// The template.
        template: Box<MarkerTemplate>,
        /// The captured markers.
        captured: BTreeSet<u32>,
    },
    /// The ID of a new marker.
    Added {
        /// The ID.
        marker: u32,
    },
    /// The change is stored.
    Done,
    /// Nothing changed.
    Nothing,
    /// A bound of the store is reached.
    Full,
    /// The store failed.
    Failed,
}

/// Bounds on the data that a store keeps for players.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerBounds {
    /// Markers of a template. Default: 500.
    pub markers: usize,
    /// Templates of a player. Default: 200.
    pub templates: usize,
}

impl Default for MarkerBounds {
    fn default() -> Self {
        Self { markers: 500, templates: 200 }
    }
}

/// An in-memory store of marker games. It is the reference for how every store must behave.
#[derive(Clone, Debug, Default)]
pub struct MarkerLibrary {
    bounds: MarkerBounds,
    templates: BTreeMap<Uuid, MarkerTemplate>,
    /// Template, player and marker.
    captures: BTreeSet<(Uuid, u32, u32)>,
}

impl MarkerLibrary {
    /// An empty store.
    #[must_use]
    pub fn new(bounds: MarkerBounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// A template, if it exists.
    #[must_use]
    pub fn template(&self, template: Uuid) -> Option<&MarkerTemplate> {
        self.templates.get(&template)
    }

    /// Carries out a request.
    pub fn apply(&mut self, request: &MarkerRequest) -> MarkerAnswer {
        match request {
            MarkerRequest::Create { template, creator, game_type, name, time_limit } => {
                let made = MarkerTemplate::new(*creator, *game_type, name.clone(), *time_limit);
                self.create(*template, made)
            }
            MarkerRequest::Open { template, player, game_type } => {
                self.open(*template, *player, *game_type)
            }
            MarkerRequest::Add { template, creator, marker } => {
                self.add(*template, *creator, marker)
            }
            MarkerRequest::Delete { template, creator, marker } => {
                let of = self.made_by(*template, *creator);
                if of.and_then(|of| of.markers.remove(marker)).is_none() {
                    return MarkerAnswer::Nothing;
                }
                self.captures.retain(|(of, _, id)| (of, id) != (template, marker));
                MarkerAnswer::Done
            }
            MarkerRequest::Rename { template, creator, marker, name } => {
                let of = self.made_by(*template, *creator);
                done(of.and_then(|of| of.markers.get_mut(marker)), |of| of.name = name.clone())
            }
            MarkerRequest::RenameGame { template, creator, name } => {
                done(self.made_by(*template, *creator), |of| of.name = name.clone())
            }
            MarkerRequest::SetTimeLimit { template, creator, time_limit } => {
                done(self.made_by(*template, *creator), |of| of.time_limit = *time_limit)
            }
            MarkerRequest::Capture { template, player, marker } => {
                let of = self.templates.get(template);
                let exists = of.is_some_and(|of| of.markers.contains_key(marker));
                match exists && self.captures.insert((*template, *player, *marker)) {
                    true => MarkerAnswer::Done,
                    false => MarkerAnswer::Nothing,
                }
            }
            MarkerRequest::Forget { template, player } => {
                self.captures.retain(|(of, by, _)| (of, by) != (template, player));
                MarkerAnswer::Done
            }
            MarkerRequest::Remove { template, creator } => {
                if self.made_by(*template, *creator).is_some() {
                    self.templates.remove(template);
                    self.captures.retain(|(of, ..)| of != template);
                }
                MarkerAnswer::Done
            }
        }
    }

    /// Returns a template if this player created it. It may have been deleted and created again by
    /// another player.
    fn made_by(&mut self, template: Uuid, creator: u32) -> Option<&mut MarkerTemplate> {
        self.templates.get_mut(&template).filter(|of| of.creator == creator)
    }

    fn create(&mut self, template: Uuid, made: MarkerTemplate) -> MarkerAnswer {
        let own = self.templates.values().filter(|of| of.creator == made.creator).count();
        if own >= self.bounds.templates || self.templates.contains_key(&template) {
            return MarkerAnswer::Full;
        }
        self.templates.insert(template, made.clone());
        MarkerAnswer::Opened { template: Box::new(made), captured: BTreeSet::new() }
    }

    fn open(&mut self, template: Uuid, player: u32, game_type: MarkerGameType) -> MarkerAnswer {
        let Some(of) = self.templates.get(&template) else {
            let made = MarkerTemplate::new(player, game_type, "".into(), 0);
            if game_type == MarkerGameType::Cgz {
                return self.create(template, made);
            }
            let nobodys = MarkerTemplate { creator: 0, ..made };
            return MarkerAnswer::Opened { template: Box::new(nobodys), captured: BTreeSet::new() };
        };
        let captured = self.captures.range((template, player, 0)..=(template, player, u32::MAX));
        MarkerAnswer::Opened {
            template: Box::new(of.clone()),
            captured: captured.map(|(.., marker)| *marker).collect(),
        }
    }

    fn add(&mut self, template: Uuid, creator: u32, marker: &Marker) -> MarkerAnswer {
        let bound = self.bounds.markers;
        let Some(of) = self.made_by(template, creator) else { return MarkerAnswer::Nothing };
        let id = of.next_marker;
        let Some(next) = id.checked_add(1).filter(|_| of.markers.len() < bound) else {
            return MarkerAnswer::Full;
        };
        of.next_marker = next;
        of.markers.insert(id, marker.clone());
        MarkerAnswer::Added { marker: id }
    }
}

fn done<T>(found: Option<&mut T>, change: impl FnOnce(&mut T)) -> MarkerAnswer {
    let Some(found) = found else { return MarkerAnswer::Nothing };
    change(found);
    MarkerAnswer::Done
}
