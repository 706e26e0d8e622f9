//! Requests about ages: creating, entering and publishing them.

use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::ConnectionId;
use super::content::{Facts, decode};
use super::session::Outcome;
use super::steps::VaultState;
use super::trees::{AgeNodes, text};

/// The fields of `VaultInitAgeRequest`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InitAge {
    /// The instance, or zero for a new one.
    pub instance: Uuid,
    /// The instance to which it belongs, or zero.
    pub parent: Uuid,
    /// The age's filename.
    pub filename: String,
    /// The instance's name.
    pub instance_name: String,
    /// The name its owner gave it.
    pub user_name: String,
    /// Its description.
    pub description: String,
    /// Its sequence number among ages with these names; negative for the next one.
    pub sequence: i32,
    /// Its language; -1 for none.
    pub language: i32,
}

/// An age that a session may join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgeFound {
    /// The Age node; 0 for an age that is not in the vault.
    pub age: u32,
    /// The instance.
    pub instance: Uuid,
}

/// A public age, as in `PublicAgeList`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicAge {
    /// The instance.
    pub instance: Uuid,
    /// The age's filename.
    pub filename: String,
    /// The instance's name.
    pub instance_name: String,
    /// The name its owner gave it.
    pub user_name: String,
    /// Its description.
    pub description: String,
    /// Its sequence number among ages with these names.
    pub sequence: i32,
    /// Its language; -1 for none.
    pub language: i32,
    /// The number of owners.
    pub owners: u32,
    /// The number of players in it.
    pub population: u32,
}

/// The highest sequence number that a client may choose. It leaves room for later ones.
const MAX_SEQUENCE: i32 = 1_000_000;
/// The number of nodes in a new age.
const NODES_OF_AGE: usize = 10;
/// The maximum number of ages for which a session is remembered as the creator.
const MAX_MADE: usize = 32;
/// The maximum number of public ages in a list.
const MAX_PUBLIC: usize = 50;
/// The age in which players are chosen.
const START: &str = "StartUp";
/// Ages whose sequence number always comes from the server.
const NUMBERED: [&str; 3] = ["Neighborhood", "BahroCave", "LiveBahroCaves"];

impl VaultState {
    /// `VaultInitAgeRequest`: finds or creates an age.
    pub(crate) fn init_age(
        &mut self,
        connection: ConnectionId,
        new: &InitAge,
    ) -> Outcome<AgeNodes> {
        let mut session = self.playing(connection)?.clone();
        let unfit = |c: char| c.is_control() || matches!(c, '/' | '\\' | ':' | '\u{fffd}');
        let is_name = !new.filename.contains(unfit) && !new.filename.contains("..");
        if new.filename.is_empty() || !is_name || new.sequence > MAX_SEQUENCE {
            return Err(NetError::InvalidParameter.into());
        }
        if let Some(nodes) = self.known_age(new) {
            return Ok(nodes);
        }
        // An instance belongs to a single age, even if the request names another parent.
        if self.age_of_instance(new.instance).is_some() {
            return Err(NetError::InvalidParameter.into());
        }
        if !self.may_make_below(&session, new.parent) {
            return Err(NetError::VaultNodeAccessViolation.into());
        }
        let texts = [&new.filename, &new.instance_name, &new.user_name].into_iter();
        let fit = texts.chain([&new.description]).enumerate().all(|(at, text)| {
            let most = if at < 3 { 63 } else { self.config().max_text };
            text.encode_utf16().count() <= most && !text.contains('\0')
        });
        if !fit {
            return Err(NetError::InvalidParameter.into());
        }
        let numbered = NUMBERED.contains(&&*new.filename);
        let sequence = if new.sequence < 0 || numbered {
            self.next_sequence(&new.filename, &new.user_name)
        } else {
            new.sequence
        };
        let instance = if new.instance.is_zero() { self.random_uuid() } else { new.instance };
        if !session.is_admin() {
            self.check_room(session.player, NODES_OF_AGE)?;
        }
        let nodes = self.make_age(&InitAge { instance, sequence, ..new.clone() }, false)?;
        self.count_built(session.player, NODES_OF_AGE);
        if session.made.len() == MAX_MADE {
            session.made.remove(0);
        }
        session.made.push(nodes.info);
        self.put_session(connection, Some(session));
        Ok(nodes)
    }

    /// The existing age that a request refers to: by parent and filename, or by instance.
    fn known_age(&self, new: &InitAge) -> Option<AgeNodes> {
        let by_parent = !new.parent.is_zero();
        if !by_parent && new.instance.is_zero() {
            return None;
        }
        let template = VaultNode {
            node_type: Some(NodeType::AgeInfo),
            uuid_1: (!by_parent).then_some(new.instance),
            uuid_2: by_parent.then_some(new.parent),
            string64_2: text(&new.filename),
            ..VaultNode::default()
        };
        let info = *self.graph().find(&template, 1).first()?;
        Some(AgeNodes { age: self.graph().age_info(info)?.age, info })
    }

    /// `AgeRequest`: finds an age, and records that the player is about to enter it. An age that
    /// the player may not enter counts as not found.
    pub(crate) fn request_age(
        &mut self,
        connection: ConnectionId,
        filename: &str,
        instance: Uuid,
    ) -> Outcome<AgeFound> {
        let session = self.logged_in(connection)?.clone();
        if session.player == 0 && filename != START {
            return Err(NetError::AuthenticationFailed.into());
        }
        let age = self.linked_age(connection, filename, instance)?.unwrap_or(0);
        let place = match self.graph().get(age).map(|entry| &entry.facts) {
            Some(Facts::Age { filename: known, .. }) if **known == *filename => {
                self.age_title(age, filename)?
            }
            Some(_) => return Err(NetError::AgeNotFound.into()),
            None if self.is_temporary(filename) => filename.to_owned(),
            None => return Err(NetError::AgeNotFound.into()),
        };
        if age != 0 && session.player != 0 && !self.may_enter(&session, age) {
            return Err(NetError::AgeNotFound.into());
        }
        if session.player != 0 {
            let player = session.player;
            self.put_session(connection, Some(session.moved_to(age, self.now())));
            self.show_player(player, true, &place, instance)?;
        }
        Ok(AgeFound { age, instance })
    }

    fn is_temporary(&self, filename: &str) -> bool {
        self.config().any_temporary_age
            || self.config().temporary_ages.iter().any(|allowed| allowed == filename)
    }

    /// The name of an age that players see: `Ann's Relto`, `DRC(3) Hood`.
    pub(crate) fn age_title(&mut self, age: u32, filename: &str) -> Outcome<String> {
        let Some(info) = self.graph().child(age, NodeType::AgeInfo, None) else {
            return Ok(filename.to_owned());
        };
        let content = self.content(info)?;
        let node = decode(&content)?;
        let field = |field: &Option<TermStr<'_>>| {
            field.as_ref().map(TermStr::to_text).filter(|text| !text.is_empty())
        };
        let sequence = node.int32_1.filter(|number| *number > 0);
        let number = sequence.map(|number| format!("({number})")).unwrap_or_default();
        let instance = field(&node.string64_3).unwrap_or_else(|| filename.to_owned());
        let title = match field(&node.string64_4) {
            Some(user) => format!("{user}{number} {instance}"),
            None => format!("{instance}{number}"),
        };
        // Truncate to the length of a String64.
        let mut units = 0;
        let fits = |c: &char| {
            units += c.len_utf16();
            units <= worldwire_uru::vault::MAX_STRING_UNITS
        };
        Ok(title.chars().take_while(fits).collect())
    }

    /// `GetPublicAgeList`: the public instances of an age, most recently changed first.
    pub(crate) fn public_ages(
        &mut self,
        connection: ConnectionId,
        filename: &str,
    ) -> Outcome<Vec<PublicAge>> {
        self.playing(connection)?;
        let infos: Vec<_> = self.graph().ages().public(filename).take(MAX_PUBLIC).collect();
        self.need(&infos)?;
        infos.into_iter().map(|info| self.public_age(info)).collect()
    }

    pub(super) fn public_age(&mut self, info: u32) -> Outcome<PublicAge> {
        let content = self.content(info)?;
        let node = decode(&content)?;
        let field =
            |field: &Option<TermStr<'_>>| field.as_ref().map(TermStr::to_text).unwrap_or_default();
        let instance = node.uuid_1.unwrap_or_default();
        let owners = self.owners_list(info).map_or(0, |list| self.graph().children(list).count());
        Ok(PublicAge {
            instance,
            filename: field(&node.string64_2),
            instance_name: field(&node.string64_3),
            user_name: field(&node.string64_4),
            description: field(&node.text_1),
            sequence: node.int32_1.unwrap_or_default(),
            language: node.int32_3.unwrap_or(-1),
            owners: u32::try_from(owners).unwrap_or(u32::MAX),
            population: self.graph().ages().population(instance),
        })
    }

    /// `SetAgePublic`: makes an age public or private, on behalf of one of its owners.
    pub(crate) fn set_public(
        &mut self,
        connection: ConnectionId,
        info: u32,
        public: bool,
    ) -> Outcome<()> {
        let session = self.playing(connection)?;
        let age = self.graph().age_info(info).ok_or(NetError::VaultNodeNotFound)?;
        if !self.may_publish(session, info, age) {
            return Err(NetError::VaultNodeAccessViolation.into());
        }
        let change = VaultNode { int32_2: Some(i32::from(public)), ..VaultNode::default() };
        self.change_node(info, None, change)
    }
}
