//! The states of ages in the vault. An age's own state is in the SDL node of its AgeInfo. Each
//! object's state is in a separate node outside all trees, so clients never see it.

use std::collections::HashMap;
use std::sync::Arc;

use worldwire_core::{Field as _, Reader, Writer};
use worldwire_uru::sdl::ObjectKey;
use worldwire_uru::types::{NetError, TermStr, Uoid, Uuid};
use worldwire_uru::vault::{MAX_STRING_UNITS, NodeBlob, NodeType, VaultNode};

use super::ask::asks;
use super::content::{Content, decode};
use super::markers::is_marker_node;
use super::session::{Outcome, Session, Stop};
use super::steps::VaultState;
use super::trees::text;
use super::{ConnectionId, Notice, Vault};

/// The type of nodes with the state of an object. Clients cannot create nodes of unnamed types.
const OBJECT_STATE: NodeType = NodeType(0x7577_0001);

/// The type of nodes with the settings for all instances of an age.
const AGE_SETTINGS: NodeType = NodeType(0x7577_0002);
/// The revision that tells running ages to reload their settings.
pub(in crate::uru) const SETTINGS_CHANGED: Uuid = Uuid([0xff; 16]);

/// The revision that tells a running age to end if it is empty.
pub(in crate::uru) const END_WANTED: Uuid = Uuid([0xfe; 16]);

/// Whether nodes of this type belong to no tree.
pub(crate) fn stands_alone(kind: NodeType) -> bool {
    kind == OBJECT_STATE || kind == AGE_SETTINGS || is_marker_node(kind)
}

/// The maximum number of nodes to read, or of states to write, in one request.
const AT_ONCE: usize = 256;

/// The key of an object's state: the object and the descriptor's name.
pub(in crate::uru) type StateKey = (ObjectKey, String);

/// An age in the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::uru) struct AgeRecord {
    /// The Age node.
    pub(in crate::uru) age: u32,
    pub(in crate::uru) instance: Uuid,
}

/// The placement on whose behalf an age's task writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The number with which players join the age.
    pub(in crate::uru) number: u32,
    /// The fence of the placement; 0 in the process with the vault, whose ages need none.
    pub(in crate::uru) fence: u64,
}

/// All stored data about an age.
#[derive(Debug, Default)]
pub(in crate::uru) struct StoredStates {
    /// The SDL node of the AgeInfo, and the state in it.
    pub(in crate::uru) sdl: Option<(u32, Vec<u8>)>,
    /// The settings for all instances of the age.
    pub(in crate::uru) settings: Option<Vec<u8>>,
    /// Objects and their states.
    pub(in crate::uru) objects: Vec<(Uoid<'static>, Vec<u8>)>,
    /// The nodes with these states.
    pub(in crate::uru) nodes: HashMap<StateKey, u32>,
}

/// An object's state to write, or to remove if there is no blob.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::uru) struct StateChange {
    pub(in crate::uru) key: StateKey,
    pub(in crate::uru) object: Uoid<'static>,
    pub(in crate::uru) blob: Option<Vec<u8>>,
    /// The node with the state, if there is one.
    pub(in crate::uru) node: Option<u32>,
}

/// The content of a node of one of these types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AgeNode {
    /// The state of an object in an instance.
    Object {
        instance: Uuid,
        /// The name of the state's descriptor.
        descriptor: String,
        /// The object's Uoid, encoded.
        object: Vec<u8>,
        state: Vec<u8>,
    },
    /// The settings for all instances of an age.
    Settings {
        /// The age's filename.
        age: String,
        state: Vec<u8>,
    },
}

impl AgeNode {
    /// The node with this content, without its number and times. `age` is the instance's Age node.
    pub(crate) fn node(self, age: u32) -> VaultNode<'static> {
        match self {
            Self::Object { instance, descriptor, object, state } => VaultNode {
                node_type: Some(OBJECT_STATE),
                creator_acct: Some(instance),
                creator_id: Some(age),
                uuid_1: Some(instance),
                text_1: text(&descriptor),
                blob_1: Some(NodeBlob::new(state)),
                blob_2: Some(NodeBlob::new(object)),
                ..VaultNode::default()
            },
            Self::Settings { age, state } => VaultNode {
                node_type: Some(AGE_SETTINGS),
                creator_acct: Some(Uuid::ZERO),
                creator_id: Some(0),
                string64_2: text(&age),
                blob_1: Some(NodeBlob::new(state)),
                ..VaultNode::default()
            },
        }
    }

    /// The content of a node, if it has one of these types.
    pub(crate) fn of(node: &VaultNode<'_>) -> Option<Self> {
        let text = |field: &Option<TermStr<'_>>| field.as_ref().map(TermStr::to_text);
        let bytes = |field: &Option<NodeBlob<'_>>| field.as_ref().map(|blob| blob.to_vec());
        match node.node_type? {
            OBJECT_STATE => Some(Self::Object {
                instance: node.uuid_1.unwrap_or_default(),
                descriptor: text(&node.text_1).unwrap_or_default(),
                object: bytes(&node.blob_2).unwrap_or_default(),
                state: bytes(&node.blob_1).unwrap_or_default(),
            }),
            AGE_SETTINGS => Some(Self::Settings {
                age: text(&node.string64_2).unwrap_or_default(),
                state: bytes(&node.blob_1).unwrap_or_default(),
            }),
            _ => None,
        }
    }
}

impl VaultState {
    pub(in crate::uru) fn age_states(&self, age: u32) -> Option<u32> {
        let info = self.graph().child(age, NodeType::AgeInfo, None)?;
        self.graph().children(info).find(|node| self.graph().kind(*node) == Some(NodeType::SDL))
    }

    pub(in crate::uru) fn object_states(&self, instance: Uuid) -> Vec<u32> {
        let node_type = Some(OBJECT_STATE);
        let template = VaultNode { node_type, uuid_1: Some(instance), ..VaultNode::default() };
        self.graph().find(&template, usize::MAX)
    }

    fn blob_of(&mut self, node: u32) -> Outcome<Vec<u8>> {
        let content = self.content(node)?;
        Ok(decode(&content)?.blob_1.map(|blob| blob.to_vec()).unwrap_or_default())
    }

    /// Changes an object's state. Returns the state's node, or `None` if the state was removed.
    fn change_state(&mut self, record: AgeRecord, change: &StateChange) -> Outcome<Option<u32>> {
        let node = change.node.filter(|node| self.graph().kind(*node) == Some(OBJECT_STATE));
        let Some(blob) = &change.blob else {
            if let Some(node) = node {
                self.drop_node(node);
            }
            return Ok(None);
        };
        if let Some(node) = node {
            let blob_1 = Some(NodeBlob::new(blob.clone()));
            self.change_node(node, None, VaultNode { blob_1, ..VaultNode::default() })?;
            return Ok(Some(node));
        }
        let mut writer = Writer::new();
        change.object.encode(&mut writer).map_err(|_| NetError::InvalidParameter)?;
        let AgeRecord { age, instance } = record;
        let (descriptor, state) = (change.key.1.clone(), blob.clone());
        let node = AgeNode::Object { instance, descriptor, object: writer.into_bytes(), state };
        self.make_node(node.node(age)).map(Some)
    }

    fn age_settings(&self, name: &str) -> Option<u32> {
        let template = VaultNode {
            node_type: Some(AGE_SETTINGS),
            string64_2: text(name),
            ..VaultNode::default()
        };
        self.graph().find(&template, 1).first().copied()
    }

    fn read_settings(&mut self, name: &str) -> Outcome<Option<Vec<u8>>> {
        self.age_settings(name).map(|node| self.blob_of(node)).transpose()
    }

    fn set_settings(&mut self, name: &str, blob: &[u8]) -> Outcome<()> {
        let units = name.encode_utf16().count();
        if units == 0 || units > MAX_STRING_UNITS {
            return Err(NetError::InvalidParameter.into());
        }
        let node_id = match self.age_settings(name) {
            Some(node) => {
                let blob_1 = Some(NodeBlob::new(blob.to_vec()));
                self.change_node(node, None, VaultNode { blob_1, ..VaultNode::default() })?;
                node
            }
            None => {
                let node = AgeNode::Settings { age: name.to_owned(), state: blob.to_vec() };
                self.make_node(node.node(0))?
            }
        };
        // Sessions with an age but no account belong to running ages.
        let ages = self.sessions().iter().filter(|(_, it)| it.account.is_zero() && it.age != 0);
        let ages: Vec<_> = ages.map(|(connection, _)| *connection).collect();
        for connection in ages {
            self.tell(connection, Notice::NodeChanged { node_id, revision_id: SETTINGS_CHANGED });
        }
        Ok(())
    }

    /// The player of a session, if it has one.
    pub(super) fn identity(&self, connection: ConnectionId) -> Option<PlayerIdentity> {
        let session = self.playing(connection).ok()?;
        let name = self.players().of(session.account).into_iter();
        let name = name.into_iter().find(|summary| summary.id == session.player);
        Some(PlayerIdentity {
            account: session.account,
            player: session.player,
            name: name.map(|summary| summary.name).unwrap_or_default(),
            is_admin: session.is_admin(),
        })
    }

    /// Records that a session's player has left its age, unless it has requested another one.
    fn left_age(&mut self, connection: ConnectionId, age: u32) -> Outcome<()> {
        match self.playing(connection) {
            Ok(session) if session.age == age => self.leave_age(connection),
            _ => Ok(()),
        }
    }
}

asks! {
    /// From now on, lets the session receive notices about everything below an age. Reads the data
    /// that is stored about the age: the SDL node with the age's state, the settings for all
    /// instances, and the nodes with objects' states.
    100 Watch { record: AgeRecord, name: String } -> Watched;
        |state, id| {
            let AgeRecord { age, instance } = *record;
            state.put_session(id, Some(Session { age, ..Session::default() }));
            let sdl = match state.age_states(age) {
                Some(node) => Some((node, state.blob_of(node)?)),
                None => None,
            };
            Ok((sdl, state.read_settings(name)?, state.object_states(instance)))
        }

    /// Reads nodes.
    101 ReadNodes { nodes: Vec<u32> } -> Vec<(u32, Content)>;
        |state, _id| {
            state.need(nodes)?;
            nodes.iter().map(|node| Ok((*node, state.content(*node)?))).collect()
        }

    /// Reads the state of an age.
    102 ReadState { node: u32 } -> Vec<u8>, needs node;
        |state, _id| state.blob_of(*node)

    /// Reads the settings for all instances of an age.
    103 ReadSettings { name: String } -> Option<Vec<u8>>;
        |state, _id| state.read_settings(name)

    /// Writes the state of an age.
    104 SaveState { owner: Owner, node: u32, revision: Uuid, blob: Vec<u8> } -> (), needs node,
        owned by owner;
        |state, _id| {
            state.check_placement(*owner)?;
            if owner.fence != 0 && state.age_states(owner.number) != Some(*node) {
                return Err(NetError::VaultNodeAccessViolation.into());
            }
            let blob_1 = Some(NodeBlob::new(blob.clone()));
            state.change_node(*node, Some(*revision), VaultNode { blob_1, ..VaultNode::default() })
        }

    /// Writes or removes objects' states. Returns their nodes. States that are too large for the
    /// vault are skipped.
    105 SaveObjects { owner: Owner, record: AgeRecord, changes: Arc<[StateChange]> }
        -> Vec<Option<u32>>, owned by owner;
        |state, _id| {
            state.check_placement(*owner)?;
            if owner.fence != 0 && owner.number != record.age {
                return Err(NetError::VaultNodeAccessViolation.into());
            }
            let places = changes.iter().map(|change| match state.change_state(*record, change) {
                Err(Stop::Refused(NetError::InvalidParameter)) => Ok(change.node),
                outcome => outcome,
            });
            places.collect()
        }

    /// Finds the player of an auth session, if it has one.
    106 FindPlayer {} -> Option<PlayerIdentity>;
        |state, id| Ok(state.identity(id))

    /// Records that the player of an auth session has left an age.
    107 RecordLeft { age: u32 } -> ();
        |state, id| state.left_age(id, *age)
}

#[cfg(test)]
impl SaveObjects {
    /// A request that changes nothing.
    pub(super) fn nothing(owner: Owner, record: AgeRecord) -> Self {
        Self { owner, record, changes: Vec::new().into() }
    }
}

/// The reply to [`Watch`].
type Watched = (Option<(u32, Vec<u8>)>, Option<Vec<u8>>, Vec<u32>);

/// Reads all stored data about an age and lets `watcher` receive notices about it.
pub(in crate::uru) async fn load(
    vault: &Vault,
    watcher: u64,
    name: &str,
    record: AgeRecord,
) -> Result<StoredStates, NetError> {
    let watch = Watch { record, name: name.to_owned() };
    let (sdl, settings, nodes) = vault.ask(ConnectionId(watcher), watch).await?.0;
    let mut stored = StoredStates { sdl, settings, ..StoredStates::default() };
    for some in nodes.chunks(AT_ONCE) {
        let read = ReadNodes { nodes: some.to_vec() };
        for (id, content) in vault.ask(ConnectionId::NONE, read).await?.0 {
            let Some((key, object, blob)) = object_state(&content) else {
                tracing::warn!(node = id, "cannot decode a stored state of an object");
                continue;
            };
            stored.nodes.insert(key, id);
            stored.objects.push((object, blob));
        }
    }
    Ok(stored)
}

fn object_state(content: &[u8]) -> Option<(StateKey, Uoid<'static>, Vec<u8>)> {
    let node = decode(content).ok()?;
    let (descriptor, blob, object) = (node.text_1?.to_text(), node.blob_1?, node.blob_2?);
    let mut reader = Reader::new(&object);
    let object = Uoid::decode(&mut reader, "object").ok()?.into_owned();
    Some(((ObjectKey::of(&object), descriptor), object, blob.to_vec()))
}

/// Reads an age's own state.
pub(in crate::uru) async fn age_state(vault: &Vault, node: u32) -> Result<Vec<u8>, NetError> {
    Ok(vault.ask(ConnectionId::NONE, ReadState { node }).await?.0)
}

impl Vault {
    /// The settings for all instances of an age, by its filename: an SDL state of the descriptor
    /// with that name.
    pub async fn age_settings(&self, name: &str) -> Result<Option<Vec<u8>>, NetError> {
        let read = ReadSettings { name: name.to_owned() };
        Ok(self.ask(ConnectionId::NONE, read).await?.0)
    }

    /// Sets the settings for all instances of an age and notifies the running ages. A variable
    /// applies to every instance that has not changed it since. Fails with
    /// [`NetError::InvalidParameter`] if the name or the state is too long.
    pub async fn set_age_settings(&self, name: &str, state: Vec<u8>) -> Result<(), NetError> {
        let name = name.to_owned();
        self.operate(None, move |vault| vault.set_settings(&name, &state)).await
    }
}

/// Writes an age's own state.
pub(in crate::uru) async fn save_age(
    vault: &Vault,
    owner: Owner,
    node: u32,
    revision: Uuid,
    blob: Vec<u8>,
) -> Result<(), NetError> {
    let save = SaveState { owner, node, revision, blob };
    vault.ask(ConnectionId::NONE, save).await?;
    Ok(())
}

/// Writes objects' states in transactions of at most [`AT_ONCE`] states. Returns their nodes.
/// States that are too large for the vault are skipped.
pub(in crate::uru) async fn save_objects(
    vault: &Vault,
    owner: Owner,
    record: AgeRecord,
    changes: &[StateChange],
) -> Result<Vec<(StateKey, Option<u32>)>, NetError> {
    let mut places = Vec::with_capacity(changes.len());
    for some in changes.chunks(AT_ONCE) {
        let save = SaveObjects { owner, record, changes: some.into() };
        let saved = vault.ask(ConnectionId::NONE, save).await?.0;
        places.extend(some.iter().map(|change| change.key.clone()).zip(saved));
    }
    Ok(places)
}

/// A player, as known to its auth session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlayerIdentity {
    pub(in crate::uru) account: Uuid,
    pub(in crate::uru) player: u32,
    pub(in crate::uru) name: String,
    pub(in crate::uru) is_admin: bool,
}

/// The player of an auth session, if it has one.
pub(in crate::uru) async fn player_of(
    vault: &Vault,
    auth: u64,
) -> Result<Option<PlayerIdentity>, NetError> {
    Ok(vault.ask(ConnectionId(auth), FindPlayer {}).await?.0)
}

/// Records that a player has left an age.
pub(in crate::uru) async fn left(vault: &Vault, auth: u64, age: u32) {
    if let Err(error) = vault.ask(ConnectionId(auth), RecordLeft { age }).await {
        tracing::debug!(?error, age, "cannot record that a player has left an age");
    }
}
