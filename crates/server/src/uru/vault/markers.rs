//! Marker games: templates, markers, and the players who have captured them.
//!
//! Clients keep a MarkerGame node for each of their games. The node contains the game's name and
//! the UUID of its template, and players send it to each other like any other node. The rest of the
//! game is stored here, in nodes outside all trees, which clients never see:
//!
//! | node | fields |
//! | --- | --- |
//! | template | `Uuid_1` template, `UInt32_1` creator, `Int32_1` type, `UInt32_2` time limit, `UInt32_3` next marker, `UInt32_4` when it was found unused, `Text_1` name |
//! | marker | `Uuid_1` template, `UInt32_1` number, `Text_1` text, `Text_2` the age's filename, `Blob_1` position: three `f64` |
//! | captures | `Uuid_1` template, `UInt32_1` player, `Blob_1` the numbers of captured markers: `u32` each |
//!
//! A marker's number is never reused in its template, so deleting a marker does not need to change
//! the captures: numbers without a marker are ignored.
//!
//! A quest is kept until no MarkerGame node has named it for a day, because others may have it even
//! if its creator has deleted it. A calibration mission has no such node; it is removed together
//! with its creator. Running games are always kept: age nodes report those that run there.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use worldwire_uru::games::message::marker::MarkerGameType;
use worldwire_uru::games::{GameText, Marker, MarkerAnswer, MarkerRequest, MarkerTemplate};
use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use super::age_states::Owner;
use super::ask::asks;
use super::content::{Facts, decode};
use super::graph::Graph;
use super::session::{Outcome, Stop};
use super::steps::VaultState;
use super::{ConnectionId, Vault};

/// The type of nodes with a template. Clients cannot create nodes of unnamed types.
const TEMPLATE: NodeType = NodeType(0x7577_0003);
/// The type of nodes with a marker.
const MARKER: NodeType = NodeType(0x7577_0004);
/// The type of nodes with the markers that a player has captured.
const CAPTURES: NodeType = NodeType(0x7577_0005);

/// How long a quest is kept after it was found unused, in seconds.
const GRACE: u32 = 24 * 3_600;
/// The maximum number of requests in one transaction.
pub(in crate::uru) const AT_ONCE: usize = 32;

/// Whether nodes of this type store parts of marker games.
pub(crate) fn is_marker_node(kind: NodeType) -> bool {
    matches!(kind, TEMPLATE | MARKER | CAPTURES)
}

/// The facts about a node that stores part of a marker game or names one.
pub(super) fn facts(node: &VaultNode<'_>) -> Facts {
    let template = node.uuid_1.unwrap_or_default();
    let number = node.uint32_1.unwrap_or_default();
    match node.node_type.unwrap_or_default() {
        TEMPLATE => Facts::MarkerTemplate {
            template,
            creator: number,
            is_quest: node.int32_1 != Some(i32::from(MarkerGameType::Cgz.0)),
            unused_since: node.uint32_4.unwrap_or_default(),
        },
        MARKER => Facts::Marker { template, marker: number },
        CAPTURES => Facts::MarkerCaptures { template, player: number },
        NodeType::MarkerGame if !template.is_zero() => Facts::MarkerGame { template },
        _ => Facts::None,
    }
}

asks! {
    /// Carries out marker games' requests in one transaction, in order.
    120 CarryOut { owner: Owner, requests: Vec<MarkerRequest> } -> Vec<MarkerAnswer>,
        owned by owner;
        |state, _id| {
            state.check_placement(*owner)?;
            requests.iter().map(|request| state.try_markers(request)).collect()
        }

    /// Finds the names of marker games.
    121 NameGames { templates: BTreeSet<Uuid> } -> BTreeMap<Uuid, String>;
        |state, _id| state.marker_names(templates)

    /// Removes unused marker games. Returns their number.
    122 CleanUp { open: BTreeSet<Uuid> } -> u64;
        |state, _id| Ok(state.clean_up_markers(open)? as u64)

    /// Protects marker games that run on a node from removal.
    123 KeepGames { templates: BTreeSet<Uuid> } -> ();
        |state, _id| state.keep_games(templates)
}

impl Vault {
    /// Carries out marker games' requests in one transaction, in order. The answers come after
    /// the commit; if it fails, all are [`MarkerAnswer::Failed`].
    pub(in crate::uru) async fn carry_out(
        &self,
        owner: Owner,
        requests: Vec<MarkerRequest>,
    ) -> Vec<MarkerAnswer> {
        let count = requests.len();
        match self.ask(ConnectionId::NONE, CarryOut { owner, requests }).await {
            Ok((answers, _)) => answers,
            Err(error) => {
                tracing::warn!(?error, count, "cannot carry out marker games' requests");
                vec![MarkerAnswer::Failed; count]
            }
        }
    }

    /// The names of marker games, by template. Unknown templates are left out.
    pub(in crate::uru) async fn marker_names(
        &self,
        templates: BTreeSet<Uuid>,
    ) -> Result<BTreeMap<Uuid, String>, NetError> {
        Ok(self.ask(ConnectionId::NONE, NameGames { templates }).await?.0)
    }

    /// Protects marker games that run on this node from removal. If this fails, the next time is
    /// soon enough.
    pub(in crate::uru) async fn keep_marker_games(&self, templates: BTreeSet<Uuid>) {
        if let Ok((session, _notices)) = self.connect().await
            && let Err(error) = session.ask(KeepGames { templates }).await
        {
            tracing::debug!(?error, "cannot renew marker games that are running");
        }
    }

    /// Removes quests that no node has named for a day, and data that belongs to deleted players.
    /// `open` contains the templates of running games. Returns the number of removed templates.
    pub(in crate::uru) async fn clean_up_markers(&self, open: BTreeSet<Uuid>) -> u64 {
        match self.ask(ConnectionId::NONE, CleanUp { open }).await {
            Ok((removed, _)) => removed,
            Err(error) => {
                tracing::warn!(?error, "cannot remove unused marker games");
                0
            }
        }
    }
}

impl VaultState {
    /// Carries out a request. If it fails, the others of its batch are not affected.
    fn try_markers(&mut self, request: &MarkerRequest) -> Outcome<MarkerAnswer> {
        match self.run(|state| state.markers(request)) {
            Err(Stop::Refused(error)) => {
                tracing::warn!(?error, "cannot carry out a marker game's request");
                Ok(MarkerAnswer::Failed)
            }
            outcome => outcome,
        }
    }

    /// Does the same as [`MarkerLibrary`](worldwire_uru::games::MarkerLibrary).
    pub(in crate::uru::vault) fn markers(
        &mut self,
        request: &MarkerRequest,
    ) -> Outcome<MarkerAnswer> {
        match request {
            MarkerRequest::Create { template, creator, game_type, name, time_limit } => {
                let made = MarkerTemplate::new(*creator, *game_type, name.clone(), *time_limit);
                self.create_template(*template, made)
            }
            MarkerRequest::Open { template, player, game_type } => {
                self.open_template(*template, *player, *game_type)
            }
            MarkerRequest::Add { template, creator, marker } => {
                self.add_marker(*template, *creator, marker)
            }
            MarkerRequest::Delete { template, creator, marker } => {
                let node = self.marker_made_by(*template, *creator, *marker);
                let deleted = node.map(|node| self.drop_marker_nodes(vec![node]));
                Ok(deleted.map_or(MarkerAnswer::Nothing, |()| MarkerAnswer::Done))
            }
            MarkerRequest::Rename { template, creator, marker, name } => {
                let node = self.marker_made_by(*template, *creator, *marker);
                self.change(node, VaultNode { text_1: Some(stored(name)), ..VaultNode::default() })
            }
            MarkerRequest::RenameGame { template, creator, name } => {
                let node = self.template_made_by(*template, *creator);
                self.change(node, VaultNode { text_1: Some(stored(name)), ..VaultNode::default() })
            }
            MarkerRequest::SetTimeLimit { template, creator, time_limit } => {
                let node = self.template_made_by(*template, *creator);
                let uint32_2 = Some(*time_limit);
                self.change(node, VaultNode { uint32_2, ..VaultNode::default() })
            }
            MarkerRequest::Capture { template, player, marker } => {
                self.capture(*template, *player, *marker)
            }
            MarkerRequest::Forget { template, player } => {
                if let Some(node) = self.graph().markers().captures(*template, *player) {
                    self.drop_node(node);
                }
                Ok(MarkerAnswer::Done)
            }
            MarkerRequest::Remove { template, creator } => {
                if self.template_made_by(*template, *creator).is_some() {
                    self.remove_template(*template);
                }
                Ok(MarkerAnswer::Done)
            }
        }
    }

    fn marker_names(&mut self, templates: &BTreeSet<Uuid>) -> Outcome<BTreeMap<Uuid, String>> {
        let index = self.graph().markers();
        let node_of = |template: &Uuid| Some((*template, index.template(*template)?));
        let nodes: Vec<_> = templates.iter().filter_map(node_of).collect();
        self.need(&nodes.iter().map(|(_, node)| *node).collect::<Vec<_>>())?;
        let mut names = BTreeMap::new();
        for (template, node) in nodes {
            let content = self.content(node)?;
            let name = decode(&content)?.text_1.as_ref().map(TermStr::to_text);
            names.insert(template, name.unwrap_or_default());
        }
        Ok(names)
    }

    fn change(&mut self, node: Option<u32>, change: VaultNode<'static>) -> Outcome<MarkerAnswer> {
        let Some(node) = node else { return Ok(MarkerAnswer::Nothing) };
        self.change_node(node, None, change)?;
        Ok(MarkerAnswer::Done)
    }

    /// The node of a template, if this player created it. The template may have been removed, and
    /// created again by another player.
    fn template_made_by(&self, template: Uuid, player: u32) -> Option<u32> {
        let node = self.graph().markers().template(template)?;
        match self.graph().get(node)?.facts {
            Facts::MarkerTemplate { creator, .. } if creator == player => Some(node),
            _ => None,
        }
    }

    fn marker_made_by(&self, template: Uuid, player: u32, marker: u32) -> Option<u32> {
        self.template_made_by(template, player)?;
        self.graph().markers().marker(template, marker)
    }

    fn create_template(&mut self, template: Uuid, made: MarkerTemplate) -> Outcome<MarkerAnswer> {
        let index = self.graph().markers();
        let own = index.made_by(made.creator).count();
        if own >= self.config().markers.templates || index.template(template).is_some() {
            return Ok(MarkerAnswer::Full);
        }
        self.make_node(VaultNode {
            node_type: Some(TEMPLATE),
            creator_acct: Some(Uuid::ZERO),
            creator_id: Some(0),
            int32_1: Some(made.game_type.0.into()),
            uint32_1: Some(made.creator),
            uint32_2: Some(made.time_limit),
            uint32_3: Some(made.next_marker),
            uint32_4: Some(0),
            uuid_1: Some(template),
            text_1: Some(stored(&made.name)),
            ..VaultNode::default()
        })?;
        Ok(MarkerAnswer::Opened { template: Box::new(made), captured: BTreeSet::new() })
    }

    fn open_template(
        &mut self,
        template: Uuid,
        player: u32,
        game_type: MarkerGameType,
    ) -> Outcome<MarkerAnswer> {
        let index = self.graph().markers();
        let Some(node) = index.template(template) else {
            let made = MarkerTemplate::new(player, game_type, "".into(), 0);
            if game_type == MarkerGameType::Cgz {
                return self.create_template(template, made);
            }
            let nobodys = MarkerTemplate { creator: 0, ..made };
            let (template, captured) = (Box::new(nobodys), BTreeSet::new());
            return Ok(MarkerAnswer::Opened { template, captured });
        };
        let nodes: Vec<_> = index.markers(template).collect();
        let captures = index.captures(template, player);
        let mut needed: Vec<_> = nodes.iter().map(|(_, node)| *node).collect();
        needed.push(node);
        needed.extend(captures);
        self.need(&needed)?;
        // Otherwise, the game could be removed before its age is asked which games run.
        if self.is_unused(node) {
            self.change_node(node, None, VaultNode { uint32_4: Some(0), ..VaultNode::default() })?;
        }
        let mut markers = BTreeMap::new();
        for (number, node) in nodes {
            let content = self.content(node)?;
            markers.entry(number).or_insert(marker_of(&decode(&content)?));
        }
        let captured = match captures {
            Some(node) => self.captured(node)?,
            None => BTreeSet::new(),
        };
        let captured = captured.into_iter().filter(|it| markers.contains_key(it)).collect();
        let content = self.content(node)?;
        let node = decode(&content)?;
        let template = Box::new(MarkerTemplate {
            creator: node.uint32_1.unwrap_or_default(),
            game_type: match node.int32_1 {
                Some(1) => MarkerGameType::Cgz,
                _ => MarkerGameType::Quest,
            },
            name: sound(node.text_1.as_ref()),
            time_limit: node.uint32_2.unwrap_or_default(),
            next_marker: node.uint32_3.unwrap_or_default(),
            markers,
        });
        Ok(MarkerAnswer::Opened { template, captured })
    }

    fn add_marker(
        &mut self,
        template: Uuid,
        creator: u32,
        marker: &Marker,
    ) -> Outcome<MarkerAnswer> {
        let Some(node) = self.template_made_by(template, creator) else {
            return Ok(MarkerAnswer::Nothing);
        };
        let most = self.config().markers.markers;
        let count = self.graph().markers().markers(template).take(most).count();
        let content = self.content(node)?;
        let number = decode(&content)?.uint32_3.unwrap_or_default();
        let Some(next) = number.checked_add(1).filter(|_| count < most) else {
            return Ok(MarkerAnswer::Full);
        };
        let uint32_3 = Some(next);
        self.change_node(node, None, VaultNode { uint32_3, ..VaultNode::default() })?;
        let position: Vec<u8> = marker.position.iter().flat_map(|it| it.to_le_bytes()).collect();
        self.make_node(VaultNode {
            node_type: Some(MARKER),
            creator_acct: Some(Uuid::ZERO),
            creator_id: Some(0),
            uint32_1: Some(number),
            uuid_1: Some(template),
            text_1: Some(stored(&marker.name)),
            text_2: Some(stored(&marker.age)),
            blob_1: Some(NodeBlob::new(position)),
            ..VaultNode::default()
        })?;
        Ok(MarkerAnswer::Added { marker: number })
    }

    fn capture(&mut self, template: Uuid, player: u32, marker: u32) -> Outcome<MarkerAnswer> {
        let index = self.graph().markers();
        if index.template(template).is_none() || index.marker(template, marker).is_none() {
            return Ok(MarkerAnswer::Nothing);
        }
        let Some(node) = index.captures(template, player) else {
            self.make_node(VaultNode {
                node_type: Some(CAPTURES),
                creator_acct: Some(Uuid::ZERO),
                creator_id: Some(0),
                uint32_1: Some(player),
                uuid_1: Some(template),
                blob_1: Some(numbers(&BTreeSet::from([marker]))),
                ..VaultNode::default()
            })?;
            return Ok(MarkerAnswer::Done);
        };
        let mut captured = self.captured(node)?;
        if !captured.insert(marker) {
            return Ok(MarkerAnswer::Nothing);
        }
        // This keeps the set from growing beyond the number of markers.
        captured.retain(|marker| self.graph().markers().marker(template, *marker).is_some());
        let blob_1 = Some(numbers(&captured));
        self.change(Some(node), VaultNode { blob_1, ..VaultNode::default() })
    }

    /// The numbers of markers in a node.
    fn captured(&mut self, node: u32) -> Outcome<BTreeSet<u32>> {
        let content = self.content(node)?;
        let node = decode(&content)?;
        let blob = node.blob_1.as_ref().map(|blob| blob.as_chunks().0).unwrap_or_default();
        Ok(blob.iter().copied().map(u32::from_le_bytes).collect())
    }

    /// Deletes a template with its markers and captures.
    fn remove_template(&mut self, template: Uuid) {
        let index = self.graph().markers();
        let markers = index.markers(template).map(|(_, node)| node);
        let mut nodes: Vec<u32> = markers.chain(index.all_captures(template)).collect();
        nodes.extend(index.template(template));
        self.drop_marker_nodes(nodes);
    }

    fn drop_marker_nodes(&mut self, nodes: Vec<u32>) {
        for node in nodes {
            // Only an administrator can have put the node into a tree.
            let parents: Vec<_> = self.graph().parents(node).collect();
            parents.into_iter().for_each(|parent| self.unlink(parent, node));
            let children: Vec<_> = self.graph().children(node).collect();
            children.into_iter().for_each(|child| self.unlink(node, child));
            self.drop_node(node);
        }
    }

    /// Deletes the record of the markers that a player has captured, and the player's calibration
    /// missions.
    pub(super) fn remove_markers_of(&mut self, player: u32) {
        let index = self.graph().markers();
        let captures: Vec<_> = index.captured_by(player).collect();
        let missions = index.made_by(player).filter(|(_, node)| !self.is_quest(*node));
        let missions: Vec<_> = missions.map(|(template, _)| template).collect();
        self.drop_marker_nodes(captures);
        missions.into_iter().for_each(|template| self.remove_template(template));
    }

    /// From now on, games count as used until they are found unused.
    fn keep_games(&mut self, templates: &BTreeSet<Uuid>) -> Outcome<()> {
        let index = self.graph().markers();
        let nodes = templates.iter().filter_map(|template| index.template(*template));
        let nodes: Vec<_> = nodes.filter(|node| self.is_unused(*node)).collect();
        self.need(&nodes)?;
        for node in nodes {
            self.change_node(node, None, VaultNode { uint32_4: Some(0), ..VaultNode::default() })?;
        }
        Ok(())
    }

    /// Whether a template was found unused.
    fn is_unused(&self, node: u32) -> bool {
        let facts = self.graph().get(node).map(|entry| &entry.facts);
        matches!(facts, Some(Facts::MarkerTemplate { unused_since: 1.., .. }))
    }

    fn is_quest(&self, node: u32) -> bool {
        let facts = self.graph().get(node).map(|entry| &entry.facts);
        matches!(facts, Some(Facts::MarkerTemplate { is_quest: true, .. }))
    }

    /// Removes quests that have been unused for a day, and missions whose creator is gone.
    pub(in crate::uru::vault) fn clean_up_markers(
        &mut self,
        open: &BTreeSet<Uuid>,
    ) -> Outcome<usize> {
        let now = self.now().max(1);
        let (mut gone, mut changed) = (Vec::new(), Vec::new());
        for (template, node) in self.graph().markers().templates() {
            let facts = self.graph().get(node).map(|entry| &entry.facts);
            let Some(Facts::MarkerTemplate { creator, is_quest, unused_since, .. }) = facts else {
                continue;
            };
            let is_used = match is_quest {
                true => self.graph().markers().is_named(template),
                false => self.players().contains(*creator),
            };
            match (is_used || open.contains(&template), *unused_since) {
                (true, 0) => {}
                (true, _) => changed.push((node, 0)),
                (false, 0) => changed.push((node, now)),
                (false, since) if now.saturating_sub(since) >= GRACE => gone.push(template),
                (false, _) => {}
            }
        }
        self.need(&changed.iter().map(|(node, _)| *node).collect::<Vec<_>>())?;
        for (node, since) in changed {
            let uint32_4 = Some(since);
            self.change_node(node, None, VaultNode { uint32_4, ..VaultNode::default() })?;
        }
        let removed = gone.len();
        gone.into_iter().for_each(|template| self.remove_template(template));
        Ok(removed)
    }
}

/// Finds problems in the marker games of a graph: node, kind of problem, and text.
pub(super) fn marker_problems(graph: &Graph) -> Vec<(u32, &'static str, &'static str)> {
    let mut problems = Vec::new();
    for id in graph.ids() {
        let Some(entry) = graph.get(id) else { continue };
        let index = graph.markers();
        let problem = match entry.facts {
            Facts::MarkerTemplate { template, .. } if index.template(template) != Some(id) => {
                ("marker-twice", "is a second template of the same marker game")
            }
            Facts::Marker { template, .. } | Facts::MarkerCaptures { template, .. }
                if index.template(template).is_none() =>
            {
                ("marker-without-game", "belongs to a marker game that does not exist")
            }
            Facts::Marker { template, marker } if index.marker(template, marker) != Some(id) => {
                ("marker-twice", "is a second marker with the same number")
            }
            Facts::MarkerCaptures { template, player }
                if index.captures(template, player) != Some(id) =>
            {
                ("marker-twice", "is a second list of a player's captures in the same game")
            }
            _ => continue,
        };
        problems.push((id, problem.0, problem.1));
    }
    problems
}

fn stored<const N: usize>(text: &GameText<'_, N>) -> TermStr<'static> {
    TermStr::from(text.as_bytes().to_vec())
}

/// Changes text so that it does not crash clients. An operator may have replaced it with anything.
fn sound<const N: usize>(text: Option<&TermStr<'_>>) -> GameText<'static, N> {
    let text = text.map(TermStr::to_text).unwrap_or_default();
    let mut units = 0;
    let fits = |c: &char| {
        units += c.len_utf16();
        *c != '\0' && units < N
    };
    let text: String = text.chars().take_while(fits).collect();
    text.as_str().into()
}

fn numbers(captured: &BTreeSet<u32>) -> NodeBlob<'static> {
    NodeBlob::new(captured.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
}

fn marker_of(node: &VaultNode<'_>) -> Marker {
    let blob: &[[u8; 8]] = node.blob_1.as_ref().map(|blob| blob.as_chunks().0).unwrap_or_default();
    let at = |axis: usize| {
        let number = blob.get(axis).copied().map(f64::from_le_bytes);
        number.filter(|number| number.is_finite()).unwrap_or_default()
    };
    let position = [at(0), at(1), at(2)];
    Marker { position, name: sound(node.text_1.as_ref()), age: sound(node.text_2.as_ref()) }
}
