//! Operators' requests to list, add and remove ages that belong to the shard itself.

use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::ages::PublicAge;
use super::clear_states::ClearError;
use super::config::{AgeNames, StaticAge};
use super::content::Facts;
use super::inspect::AT_ONCE;
use super::session::Outcome;
use super::steps::VaultState;
use super::trees::text;
use super::{ConnectionId, Vault};

/// The maximum number of instances of one age that are created for clients' links.
const MAX_LINKED: usize = 8;

/// An age, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgeSummary {
    /// The Age node.
    pub id: u32,
    /// The name that players see.
    pub title: String,
    /// Whether the age is in the public list.
    pub is_public: bool,
    /// Whether it is one of the shard's own.
    pub is_own: bool,
    /// The age's names, owners and population.
    pub age: PublicAge,
}

/// A logged-in client, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineSession {
    /// The number of the session.
    pub number: u64,
    /// The name of the account.
    pub account: String,
    /// The player's number and name, if one is chosen.
    pub player: Option<(u32, String)>,
    /// The name of the age in which others see the player.
    pub place: String,
    /// The instance of that age; zero for none.
    pub instance: Uuid,
}

/// Why an age was not removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// Players own the age.
    #[error("belongs to players, who would lose it")]
    Owned,
    /// The next start would create it again.
    #[error(
        "is in [ages] of shard.toml, so the next start would create it again; remove it there first"
    )]
    Configured,
    /// The age is one of the standard ages, which the next start would create again.
    #[error(
        "is one of the game's standard ages, which every start creates; to remove it, set \
        standard = false in [ages] of shard.toml and restart first"
    )]
    Standard,
    /// The age cannot be cleared.
    #[error(transparent)]
    Clear(#[from] ClearError),
}

impl Vault {
    /// All ages, or only those that are public or the shard's own.
    pub async fn ages(&self, all: bool) -> Result<Vec<AgeSummary>, NetError> {
        Ok(self.call(None, None, move |state| state.list_ages(all)).await?.0)
    }

    /// Creates a public age that belongs to the shard, unless an instance with this UUID exists.
    /// Returns the age, and whether it is new.
    ///
    /// # Errors
    /// [`NetError::InvalidParameter`] for names that are empty or too long, and for an instance of
    /// another age.
    pub async fn add_age(&self, age: StaticAge) -> Result<(AgeSummary, bool), NetError> {
        Ok(self.call(None, None, move |state| state.add_own_age(&age)).await?.0)
    }

    /// Removes an age, given its Age node, together with its states and the links to it. A running
    /// age ends first. On an error, the age still exists.
    pub async fn remove_age(&self, age: u32) -> Result<(), RemoveError> {
        let failed = |error| RemoveError::Clear(ClearError::Vault(error));
        let check = move |state: &mut VaultState| Ok(state.may_remove_age(age));
        self.call(None, None, check).await.map_err(failed)?.0?;
        self.clear_states(age, true).await?;
        let remove = move |state: &mut VaultState| state.remove_own_age(age);
        self.call(None, None, remove).await.map_err(failed)?.0
    }

    /// The sessions that are logged in, by number.
    pub async fn online(&self) -> Result<Vec<OnlineSession>, NetError> {
        Ok(self.call(None, None, VaultState::online_sessions).await?.0)
    }
}

impl VaultState {
    fn list_ages(&mut self, all: bool) -> Outcome<Vec<AgeSummary>> {
        let is_listed = |id: &u32| {
            self.graph()
                .age_info(*id)
                .is_some_and(|info| all || info.public || self.is_own_age(info.instance))
        };
        let infos: Vec<_> = self.graph().ids().into_iter().filter(is_listed).collect();
        for some in infos.chunks(AT_ONCE) {
            self.need(some)?;
        }
        infos.into_iter().map(|info| self.age_summary(info)).collect()
    }

    fn age_summary(&mut self, info: u32) -> Outcome<AgeSummary> {
        let facts = self.graph().age_info(info).ok_or(NetError::VaultNodeNotFound)?;
        let (id, is_public, instance) = (facts.age, facts.public, facts.instance);
        let age = self.public_age(info)?;
        let title = self.age_title(id, &age.filename)?;
        Ok(AgeSummary { id, title, is_public, is_own: self.is_own_age(instance), age })
    }

    fn add_own_age(&mut self, age: &StaticAge) -> Outcome<(AgeSummary, bool)> {
        let AgeNames { filename, instance_name, user_name, description } = &age.names;
        let mut names = [filename, instance_name, user_name, description].into_iter().enumerate();
        let is_fine = |(at, name): (usize, &String)| {
            let most = if at < 3 { 63 } else { self.config().max_text };
            name.encode_utf16().count() <= most && !name.contains(char::is_control)
        };
        let known = age.instance.and_then(|instance| self.age_of_instance(instance));
        let is_other = known.is_some_and(|known| {
            !matches!(self.graph().get(known).map(|entry| &entry.facts),
                Some(Facts::Age { filename: known, .. }) if **known == **filename)
        });
        if filename.is_empty() || !names.all(is_fine) || is_other {
            return Err(NetError::InvalidParameter.into());
        }
        let before = self.count_ages(filename);
        let info = self.static_age(age)?;
        let is_new = self.count_ages(filename) > before;
        Ok((self.age_summary(info)?, is_new))
    }

    fn count_ages(&self, filename: &str) -> usize {
        let template = VaultNode {
            node_type: Some(NodeType::AgeInfo),
            string64_2: text(filename),
            ..VaultNode::default()
        };
        self.graph().find(&template, usize::MAX).len()
    }

    /// The Age node of an instance. If there is none, and the game's scripts link to fixed
    /// instances of this age, creates the instance for the client that follows such a link.
    pub(crate) fn linked_age(
        &mut self,
        connection: ConnectionId,
        filename: &str,
        instance: Uuid,
    ) -> Outcome<Option<u32>> {
        if let Some(age) = self.age_of_instance(instance) {
            return Ok(Some(age));
        }
        let names = self.config().linked_ages.iter().find(|names| names.filename == filename);
        let Some(names) = names.cloned().filter(|_| !instance.is_zero()) else { return Ok(None) };
        if self.playing(connection).is_err() || self.count_ages(filename) >= MAX_LINKED {
            return Ok(None);
        }
        self.static_age(&StaticAge { names, instance: Some(instance) })?;
        tracing::info!(filename, %instance, "created an age that a client linked to");
        Ok(self.age_of_instance(instance))
    }

    fn may_remove_age(&self, age: u32) -> Result<(), RemoveError> {
        let info = self.graph().child(age, NodeType::AgeInfo, None);
        let facts = info.and_then(|info| self.graph().age_info(info));
        let (Some(info), Some(_)) = (info, facts) else {
            return Err(ClearError::Vault(NetError::VaultNodeNotFound).into());
        };
        let owners = self.owners_list(info);
        if owners.is_some_and(|list| self.graph().children(list).next().is_some()) {
            return Err(RemoveError::Owned);
        }
        // If several ages have the configured names, all but one can be removed.
        let is_only = |age: &&StaticAge| self.find_static(age, 2) == [info];
        let config = self.config();
        let mut configured = [&config.city].into_iter().chain(&config.static_ages);
        match configured.find(is_only) {
            Some(age) if config.linked_ages.contains(&age.names) => Err(RemoveError::Standard),
            Some(_) => Err(RemoveError::Configured),
            None => Ok(()),
        }
    }

    fn remove_own_age(&mut self, age: u32) -> Outcome<Result<(), RemoveError>> {
        if let Err(error) = self.may_remove_age(age) {
            return Ok(Err(error));
        }
        // Somebody may have entered since the age's states were cleared.
        if self.sessions().values().any(|session| session.age == age) {
            return Ok(Err(ClearError::Running.into()));
        }
        let info = self.graph().child(age, NodeType::AgeInfo, None);
        let parents = info.into_iter().flat_map(|info| self.graph().parents(info));
        let is_link = |id: &u32| self.graph().kind(*id) == Some(NodeType::AgeLink);
        let links: Vec<_> = parents.filter(is_link).collect();
        self.remove_age_nodes(age);
        links.into_iter().for_each(|link| self.remove_tree(link));
        Ok(Ok(()))
    }

    fn online_sessions(&mut self) -> Outcome<Vec<OnlineSession>> {
        let sessions = self.sessions().iter().filter(|(_, session)| !session.account.is_zero());
        let sessions: Vec<_> =
            sessions.map(|(id, session)| (id.0, session.account, session.player)).collect();
        let info_of = |player: u32| self.graph().child(player, NodeType::PlayerInfo, None);
        let infos: Vec<_> = sessions.iter().filter_map(|(.., player)| info_of(*player)).collect();
        self.need(&infos)?;
        let mut online = Vec::new();
        for (number, account, player) in sessions {
            let account = self.accounts().get(account).map(|account| account.name.clone());
            let name = self.players().name(player).map(str::to_owned);
            let info = self.graph().child(player, NodeType::PlayerInfo, None);
            let (mut place, mut instance) = (String::new(), Uuid::ZERO);
            if let Some(info) = info {
                let content = self.content(info)?;
                let node = super::content::decode(&content)?;
                place = node.string64_1.as_ref().map(|place| place.to_text()).unwrap_or_default();
                instance = node.uuid_1.unwrap_or_default();
            }
            online.push(OnlineSession {
                number,
                account: account.unwrap_or_default(),
                player: name.map(|name| (player, name)),
                place,
                instance,
            });
        }
        Ok(online)
    }
}
