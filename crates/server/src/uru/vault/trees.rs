//! Trees that the server itself creates and deletes: the System tree, ages and players.

use worldwire_uru::types::{TermStr, Uuid};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use super::ages::InitAge;
use super::config::{AgeNames, StaticAge};
use super::content::folder;
use super::session::{Outcome, Session};
use super::steps::VaultState;

/// The main nodes of an age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgeNodes {
    /// The Age node.
    pub age: u32,
    /// The AgeInfo node.
    pub info: u32,
}

/// The lists below a Player node, in the order of their creation.
pub(super) const PLAYER_LISTS: [(NodeType, i32); 11] = [
    (NodeType::Folder, folder::INBOX),
    (NodeType::Folder, folder::JOURNALS),
    (NodeType::Folder, folder::CHRONICLE),
    (NodeType::Folder, folder::OUTFIT),
    (NodeType::Folder, folder::CLOSET),
    (NodeType::Folder, folder::INVITES),
    (NodeType::PlayerInfoList, folder::BUDDIES),
    (NodeType::PlayerInfoList, folder::IGNORED),
    (NodeType::PlayerInfoList, folder::KNOWN),
    (NodeType::AgeInfoList, folder::VISITED_AGES),
    (NodeType::AgeInfoList, folder::OWNED_AGES),
];

/// The creator of a node.
#[derive(Clone, Copy)]
struct Maker {
    account: Uuid,
    player: u32,
}

impl VaultState {
    /// Creates the parts that every shard has, unless they exist: its identity, the System tree,
    /// the city, a neighbourhood, and the static ages.
    pub(crate) fn found(&mut self) -> Outcome<()> {
        if self.system() == 0 {
            let nobody = Maker { account: Uuid::ZERO, player: 0 };
            let system = self.make(NodeType::System, nobody, VaultNode::default())?;
            let inbox = self.make_list(NodeType::Folder, folder::GLOBAL_INBOX, nobody)?;
            self.link(system, inbox, 0);
            self.put_system(system);
        }
        self.city()?;
        self.neighbourhood()?;
        let names = self.config().neighbourhood.clone();
        for info in self.graph().find(&of_names(&names), usize::MAX) {
            self.owns(info);
        }
        for age in self.config().static_ages.clone() {
            self.static_age(&age)?;
        }
        self.identify();
        Ok(())
    }

    /// Marks an age as the shard's own, even if it is renamed later.
    fn owns(&mut self, info: u32) {
        if let Some(facts) = self.graph().age_info(info) {
            self.put_own_age(facts.instance);
        }
    }

    /// The AgeInfo of the city. Creates the city if it is missing.
    fn city(&mut self) -> Outcome<u32> {
        let city = self.config().city.clone();
        self.static_age(&city)
    }

    /// The AgeInfo of an age of which only one instance exists. Creates the age if it is missing.
    pub(super) fn static_age(&mut self, age: &StaticAge) -> Outcome<u32> {
        let info = match self.find_static(age, 1).first() {
            Some(info) => *info,
            None => {
                let instance = age.instance.unwrap_or_else(|| self.random_uuid());
                self.make_age(&InitAge { instance, ..named(&age.names) }, true)?.info
            }
        };
        self.owns(info);
        Ok(info)
    }

    /// At most `most` AgeInfos, any of which the shard would use for this age when it starts.
    pub(super) fn find_static(&self, age: &StaticAge, most: usize) -> Vec<u32> {
        // An instance is one age, no matter what its name is.
        let template = match age.instance {
            Some(_) => VaultNode {
                node_type: Some(NodeType::AgeInfo),
                uuid_1: age.instance,
                ..VaultNode::default()
            },
            None => of_names(&age.names),
        };
        self.graph().find(&template, most)
    }

    /// The AgeInfo of the first neighbourhood with room, in the order of their numbers. If all are
    /// full, creates a new one.
    pub(crate) fn neighbourhood(&mut self) -> Outcome<u32> {
        let names = self.config().neighbourhood.clone();
        let template = VaultNode { int32_2: Some(1), ..of_names(&names) };
        let mut hoods = self.graph().find(&template, usize::MAX);
        hoods.sort_by_key(|info| (self.graph().age_info(*info).map(|info| info.sequence), *info));
        let most = self.config().neighbours;
        let roomy = hoods.into_iter().find(|info| {
            let owners = self.owners_list(*info);
            owners.is_some_and(|list| self.graph().children(list).take(most).count() < most)
        });
        if let Some(info) = roomy {
            return Ok(info);
        }
        let sequence = self.next_sequence(&names.filename, &names.user_name);
        let instance = self.random_uuid();
        let new = InitAge { instance, sequence, ..named(&names) };
        let info = self.make_age(&new, true)?.info;
        self.owns(info);
        Ok(info)
    }

    /// The next sequence number for ages with these names, at least 1.
    pub(crate) fn next_sequence(&self, filename: &str, user_name: &str) -> i32 {
        let template = VaultNode {
            node_type: Some(NodeType::AgeInfo),
            string64_2: text(filename),
            string64_4: text(user_name),
            ..VaultNode::default()
        };
        let found = self.graph().find(&template, usize::MAX).into_iter();
        let infos = found.filter_map(|info| self.graph().age_info(info));
        // A template cannot require that a name is absent.
        let alike = infos.filter(|info| *info.user_name == *user_name);
        alike.map(|info| info.sequence).max().unwrap_or(0).max(0).saturating_add(1)
    }

    /// Creates an age with all nodes of its tree.
    pub(crate) fn make_age(&mut self, new: &InitAge, public: bool) -> Outcome<AgeNodes> {
        let optional = |id: Uuid| Some(id).filter(|id| !id.is_zero());
        let age = self.make_node(VaultNode {
            node_type: Some(NodeType::Age),
            creator_acct: Some(new.instance),
            creator_id: Some(0),
            uuid_1: Some(new.instance),
            uuid_2: optional(new.parent),
            string64_1: text(&new.filename),
            ..VaultNode::default()
        })?;
        let maker = Maker { account: new.instance, player: age };
        let info = self.make(
            NodeType::AgeInfo,
            maker,
            VaultNode {
                int32_1: Some(new.sequence),
                int32_2: Some(i32::from(public)),
                int32_3: Some(new.language),
                uint32_1: Some(age),
                uint32_2: Some(0),
                uint32_3: Some(0),
                uuid_1: Some(new.instance),
                uuid_2: optional(new.parent),
                string64_2: text(&new.filename),
                string64_3: text(&new.instance_name),
                string64_4: text(&new.user_name),
                text_1: text(&new.description),
                ..VaultNode::default()
            },
        )?;
        let system = self.system();
        self.link(age, system, 0);
        let chronicle = self.make_list(NodeType::Folder, folder::CHRONICLE, maker)?;
        let known = self.make_list(NodeType::PlayerInfoList, folder::KNOWN, maker)?;
        let sub_ages = self.make_list(NodeType::AgeInfoList, folder::SUB_AGES, maker)?;
        let devices = self.make_list(NodeType::Folder, folder::DEVICES, maker)?;
        for child in [chronicle, known, sub_ages, info, devices] {
            self.link(age, child, 0);
        }
        let visitors = self.make_list(NodeType::PlayerInfoList, folder::CAN_VISIT, maker)?;
        let states =
            VaultNode { int32_1: Some(0), string64_1: text(&new.filename), ..VaultNode::default() };
        let states = self.make(NodeType::SDL, maker, states)?;
        let owners = self.make_list(NodeType::PlayerInfoList, folder::OWNERS, maker)?;
        let child_ages = self.make_list(NodeType::AgeInfoList, folder::CHILD_AGES, maker)?;
        for child in [visitors, states, owners, child_ages] {
            self.link(info, child, 0);
        }
        Ok(AgeNodes { age, info })
    }

    /// Creates a player with all nodes of its tree, a Relto, and membership in a neighbourhood.
    /// Returns the Player node, whose number is the player's.
    pub(crate) fn make_player(&mut self, account: Uuid, name: &str, shape: &str) -> Outcome<u32> {
        let player = self.make_node(VaultNode {
            node_type: Some(NodeType::Player),
            creator_acct: Some(account),
            creator_id: Some(0),
            int32_1: Some(0),
            int32_2: Some(1),
            uint32_1: Some(0),
            uuid_1: Some(account),
            string64_1: text(shape),
            istring64_1: text(name),
            ..VaultNode::default()
        })?;
        let maker = Maker { account, player };
        let system = self.system();
        self.link(player, system, player);
        let info = self.make(
            NodeType::PlayerInfo,
            maker,
            VaultNode {
                int32_1: Some(0),
                int32_2: Some(0),
                uint32_1: Some(player),
                uuid_1: Some(Uuid::ZERO),
                string64_1: Some(TermStr::default()),
                istring64_1: text(name),
                ..VaultNode::default()
            },
        )?;
        self.link(player, info, player);
        let mut owned = 0;
        for (kind, list) in PLAYER_LISTS {
            let node = self.make_list(kind, list, maker)?;
            self.link(player, node, player);
            owned = node;
        }

        let names = AgeNames {
            filename: "Personal".to_owned(),
            instance_name: "Relto".to_owned(),
            user_name: format!("{name}'s"),
            description: format!("{name}'s Relto"),
        };
        let instance = self.random_uuid();
        let relto = self.make_age(&InitAge { instance, ..named(&names) }, false)?;
        self.link(relto.age, owned, player);
        let hood = self.neighbourhood()?;
        let city = self.city()?;
        for (age, spawn) in [
            (relto.info, "Default:LinkInPointDefault:;"),
            (hood, "Default:LinkInPointDefault:;"),
            (city, "Ferry Terminal:LinkInPointFerry:;"),
        ] {
            let (unlocked, volatile) = (Some(0), Some(0));
            let spawn = Some(NodeBlob::new(spawn.as_bytes()));
            let link = VaultNode {
                int32_1: unlocked,
                int32_2: volatile,
                blob_1: spawn,
                ..VaultNode::default()
            };
            let link = self.make(NodeType::AgeLink, maker, link)?;
            self.link(owned, link, player);
            self.link(link, age, player);
        }
        for age in [relto.info, hood] {
            if let Some(owners) = self.owners_list(age) {
                self.link(owners, info, player);
            }
        }
        Ok(player)
    }

    /// Deletes a player's nodes: its Relto, its entries in lists, and all nodes that are only in
    /// its own tree.
    pub(crate) fn remove_player_nodes(&mut self, player: u32) {
        if let Some(info) = self.graph().child(player, NodeType::PlayerInfo, None) {
            self.remove_tree(info);
        }
        let owned = self.graph().child(player, NodeType::AgeInfoList, Some(folder::OWNED_AGES));
        let reltos: Vec<_> = owned
            .map(|owned| self.graph().parents(owned).filter(|parent| *parent != player).collect())
            .unwrap_or_default();
        for relto in reltos {
            if self.graph().kind(relto) != Some(NodeType::Age) {
                continue;
            }
            self.remove_age_nodes(relto);
        }
        self.remove_tree(player);
    }

    /// Deletes an age's nodes.
    pub(super) fn remove_age_nodes(&mut self, age: u32) {
        if let Some(info) = self.graph().child(age, NodeType::AgeInfo, None) {
            self.remove_tree(info);
        }
        self.leave_age_node(age);
        self.remove_tree(age);
    }

    /// Deletes a node, and all nodes below it that have no other parent.
    pub(super) fn remove_tree(&mut self, top: u32) {
        let parents: Vec<_> = self.graph().parents(top).collect();
        for parent in parents {
            self.unlink(parent, top);
        }
        let mut waiting = vec![top];
        while let Some(node) = waiting.pop() {
            let children: Vec<_> = self.graph().children(node).collect();
            for child in children {
                self.unlink(node, child);
                let root = matches!(
                    self.graph().kind(child),
                    Some(NodeType::Player | NodeType::Age | NodeType::System)
                );
                if !root && self.graph().parents(child).next().is_none() {
                    waiting.push(child);
                }
            }
            self.drop_node(node);
        }
    }

    /// Clears the age of all sessions that are in it. Their players are not disconnected.
    fn leave_age_node(&mut self, age: u32) {
        let inside = self.sessions().iter().filter(|(_, session)| session.age == age);
        let inside =
            inside.map(|(id, session)| (*id, Session { age: 0, ..Session::clone(session) }));
        for (connection, session) in inside.collect::<Vec<_>>() {
            self.put_session(connection, Some(session));
        }
    }

    fn make(&mut self, kind: NodeType, maker: Maker, node: VaultNode<'_>) -> Outcome<u32> {
        self.make_node(VaultNode {
            node_type: Some(kind),
            creator_acct: Some(maker.account),
            creator_id: Some(maker.player),
            ..node
        })
    }

    fn make_list(&mut self, kind: NodeType, list: i32, maker: Maker) -> Outcome<u32> {
        self.make(kind, maker, VaultNode { int32_1: Some(list), ..VaultNode::default() })
    }
}

/// A template for the AgeInfo of an age with these names.
fn of_names(names: &AgeNames) -> VaultNode<'static> {
    VaultNode {
        node_type: Some(NodeType::AgeInfo),
        string64_2: text(&names.filename),
        string64_3: text(&names.instance_name),
        string64_4: text(&names.user_name),
        ..VaultNode::default()
    }
}

/// A new age with these names.
fn named(names: &AgeNames) -> InitAge {
    let AgeNames { filename, instance_name, user_name, description } = names.clone();
    let (language, rest) = (-1, InitAge::default());
    InitAge { filename, instance_name, user_name, description, language, ..rest }
}

/// A text field; an empty text is an absent field.
pub(crate) fn text(text: &str) -> Option<TermStr<'static>> {
    if text.is_empty() { None } else { Some(TermStr::from(text)) }
}
