//! The vault, as far as messages show it: nodes, references and changes.

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde_json::{Value, json};

use super::report::NamedValue;
use super::{Moment, size, values};

/// The nodes and references seen so far.
#[derive(Debug, Default)]
pub(super) struct Vault {
    nodes: HashMap<u32, Node>,
    references: usize,
    /// The size of all values.
    bytes: usize,
    is_full: bool,
}

#[derive(Debug, Default)]
struct Node {
    fields: Vec<NamedValue>,
    is_deleted: bool,
    parents: BTreeSet<u32>,
    children: BTreeSet<u32>,
    changes: VecDeque<Change>,
    /// The size of all changes.
    bytes: usize,
}

#[derive(Debug)]
struct Change {
    moment: Moment,
    fields: Vec<NamedValue>,
}

const MAX_NODES: usize = 200_000;
const MAX_REFERENCES: usize = 1_000_000;
/// The maximum size of all values and changes, in bytes; estimated.
const MAX_BYTES: usize = 64 << 20;
/// The maximum number of changes of a node; the oldest are forgotten.
const MAX_CHANGES: usize = 1000;
/// The maximum size of a node's changes; estimated.
const MAX_HISTORY: usize = 4 << 20;
/// The maximum number of parents or children that are listed with a node.
const MAX_LISTED: usize = 1000;

/// The fields that name a node, the best first.
const TITLES: [&str; 13] = [
    "PlayerName",
    "AgeUserDefinedName",
    "AgeInstName",
    "AgeFilename",
    "AgeName",
    "FolderName",
    "EntryName",
    "NoteTitle",
    "ImageTitle",
    "SDLName",
    "GameName",
    "FolderType",
    "AgeSpawnPoints",
];

impl Vault {
    /// The numbers of nodes and references, and whether more were seen than can be kept.
    pub(super) fn counts(&self) -> (usize, usize, bool) {
        (self.nodes.len(), self.references, self.is_full)
    }

    /// Records fields of a node.
    pub(super) fn change(
        &mut self,
        id: u32,
        fields: &[NamedValue],
        is_whole: bool,
        moment: Moment,
    ) {
        if self.bytes + 2 * size(fields) > MAX_BYTES {
            self.is_full = true;
            return;
        }
        let Some(node) = self.node(id) else { return };
        let is_new = |field: &&NamedValue| {
            !node.fields.iter().any(|own| own.same_name(field) && own.value == field.value)
        };
        // A change does not repeat the node's type, on which the game's names depend.
        let named = |field: &NamedValue| {
            let own = node.fields.iter().find(|own| own.same_name(field));
            let game = field.game.clone().or_else(|| own.and_then(|own| own.game.clone()));
            NamedValue { game, ..field.clone() }
        };
        let changed: Vec<NamedValue> = fields.iter().filter(is_new).map(named).collect();
        let before = node.memory();
        node.is_deleted = false;
        if is_whole {
            node.fields = fields.to_vec();
        } else {
            for field in &changed {
                match node.fields.iter_mut().find(|own| own.same_name(field)) {
                    Some(own) => own.value.clone_from(&field.value),
                    None => node.fields.push(field.clone()),
                }
            }
        }
        if !changed.is_empty() {
            node.bytes += size(&changed);
            node.changes.push_back(Change { moment, fields: changed });
        }
        while (node.changes.len() > MAX_CHANGES || node.bytes > MAX_HISTORY)
            && node.changes.len() > 1
            && let Some(oldest) = node.changes.pop_front()
        {
            node.bytes -= size(&oldest.fields);
        }
        let after = node.memory();
        self.bytes = (self.bytes + after).saturating_sub(before);
    }

    pub(super) fn delete(&mut self, id: u32) {
        if let Some(node) = self.node(id) {
            node.is_deleted = true;
        }
    }

    pub(super) fn refer(&mut self, parent: u32, child: u32) {
        if self.references >= MAX_REFERENCES {
            self.is_full = true;
            return;
        }
        if self.node(parent).is_none() || self.node(child).is_none() {
            return;
        }
        let is_new = self.nodes.get_mut(&parent).is_some_and(|node| node.children.insert(child));
        if let Some(node) = self.nodes.get_mut(&child) {
            node.parents.insert(parent);
        }
        self.references += usize::from(is_new);
    }

    pub(super) fn unrefer(&mut self, parent: u32, child: u32) {
        let was = self.nodes.get_mut(&parent).is_some_and(|node| node.children.remove(&child));
        if let Some(node) = self.nodes.get_mut(&child) {
            node.parents.remove(&parent);
        }
        self.references -= usize::from(was);
    }

    /// The name of a player, from the player's nodes.
    pub(super) fn player(&self, id: u32) -> Option<&str> {
        let node = self.nodes.get(&id)?;
        node.field("PlayerName").filter(|name| !name.is_empty())
    }

    /// Nodes without parents, in order.
    pub(super) fn roots(&self) -> Vec<u32> {
        let roots = self.nodes.iter().filter(|(_, node)| node.parents.is_empty());
        let mut roots: Vec<u32> = roots.map(|(id, _)| *id).collect();
        roots.sort_unstable();
        roots
    }

    pub(super) fn children(&self, id: u32) -> Vec<u32> {
        self.nodes.get(&id).map(|node| node.children.iter().copied().collect()).unwrap_or_default()
    }

    /// Nodes with this number, or with a text in their type or in a value. Case does not matter.
    pub(super) fn search(&self, text: &str) -> Vec<u32> {
        let number = text.parse().ok();
        let text = text.to_lowercase();
        let has = |value: &str| value.to_lowercase().contains(&text);
        let found = self.nodes.iter().filter(|(id, node)| {
            Some(**id) == number || node.fields.iter().any(|field| has(&field.value))
        });
        let mut found: Vec<u32> = found.map(|(id, _)| *id).collect();
        found.sort_unstable();
        found
    }

    /// A node in a list.
    pub(super) fn line(&self, id: u32) -> Value {
        let node = self.nodes.get(&id);
        let children = node.map_or(0, |node| node.children.len());
        let mut line = json!({
            "id": id,
            "type": node.and_then(|node| node.field("NodeType")).unwrap_or_default(),
            "title": node.map(Node::title).unwrap_or_default(),
            "children": children,
        });
        if node.is_some_and(|node| node.is_deleted) {
            line["deleted"] = true.into();
        }
        line
    }

    /// A node with everything that is known about it.
    pub(super) fn detail(&self, id: u32) -> Option<Value> {
        let node = self.nodes.get(&id)?;
        let lines = |ids: &BTreeSet<u32>| -> Vec<Value> {
            ids.iter().take(MAX_LISTED).map(|id| self.line(*id)).collect()
        };
        let mut detail = self.line(id);
        detail["fields"] = values(&node.fields);
        detail["parents"] = lines(&node.parents).into();
        detail["shown_children"] = lines(&node.children).into();
        let change = |change: &Change| change.moment.with("fields", values(&change.fields));
        detail["history"] = node.changes.iter().map(change).collect();
        Some(detail)
    }

    fn node(&mut self, id: u32) -> Option<&mut Node> {
        if self.nodes.len() >= MAX_NODES && !self.nodes.contains_key(&id) {
            self.is_full = true;
            return None;
        }
        Some(self.nodes.entry(id).or_default())
    }
}

impl Node {
    fn memory(&self) -> usize {
        size(&self.fields) + self.bytes
    }

    /// A value by its name or by the game's name.
    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|field| field.name == name || field.game.as_deref() == Some(name));
        found.map(|field| &*field.value)
    }

    fn title(&self) -> &str {
        let mut titles = TITLES.iter().filter_map(|name| self.field(name));
        titles.find(|title| !title.is_empty()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, game: &str, value: &str) -> NamedValue {
        let game = (!game.is_empty()).then(|| game.to_owned());
        NamedValue { name: name.to_owned(), game, value: value.to_owned() }
    }

    #[test]
    fn changes_are_kept_apart_from_repetitions() {
        let mut vault = Vault::default();
        let whole = [field("NodeType", "", "Player"), field("IString64_1", "PlayerName", "Ann")];
        vault.change(5, &whole, true, Moment::test(1));
        vault.change(5, &whole, true, Moment::test(2));
        vault.change(5, &[field("IString64_1", "", "Anna")], false, Moment::test(3));
        let detail = vault.detail(5).unwrap();
        assert_eq!((&detail["type"], &detail["title"]), (&json!("Player"), &json!("Anna")));
        let rows: Vec<_> =
            detail["history"].as_array().unwrap().iter().map(|it| it["row"].clone()).collect();
        assert_eq!(rows, [1, 3]);
        assert_eq!(detail["history"][1]["fields"][0]["game"], "PlayerName");
        assert_eq!(vault.player(5), Some("Anna"));
        assert_eq!(vault.search("ANNA"), [5]);
        assert_eq!(vault.search("5"), [5]);
    }

    #[test]
    fn references_form_a_graph() {
        let mut vault = Vault::default();
        for (parent, child) in [(1, 2), (1, 3), (2, 3), (3, 2), (1, 2)] {
            vault.refer(parent, child);
        }
        assert_eq!((vault.counts(), vault.roots()), ((3, 4, false), vec![1]));
        vault.unrefer(1, 2);
        vault.unrefer(1, 2);
        vault.unrefer(8, 9);
        assert_eq!((vault.counts().1, vault.children(1)), (3, vec![3]));
        vault.delete(3);
        assert_eq!(vault.line(3)["deleted"], true);
    }

    #[test]
    fn memory_is_bounded() {
        let mut vault = Vault::default();
        let value = "x".repeat(1000);
        for row in 0..50_000 {
            let fields = [field("Text_1", "", &format!("{row}{value}"))];
            vault.change(row % 7, &fields, false, Moment::test(row as usize));
        }
        assert!(vault.bytes <= MAX_BYTES, "{}", vault.bytes);
        assert!(vault.nodes.values().all(|node| node.changes.len() <= MAX_CHANGES));
        for id in 0..300_000 {
            vault.refer(id, id + 1);
        }
        assert_eq!(vault.counts().0, MAX_NODES);
        assert!(vault.is_full);
    }
}
