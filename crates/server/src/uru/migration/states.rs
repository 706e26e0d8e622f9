//! Imports states: objects' states, and the settings for all instances of an age.

use std::collections::{HashMap, HashSet};

use worldwire_core::{Error, Field as _, Reader};
use worldwire_uru::sdl::{Blob, BlobHeader};
use worldwire_uru::types::{Uoid, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::row::At;
use super::{Cell, Importer, Result, Row, whole};
use crate::uru::vault::AgeNode;

/// Why a state is not imported.
#[derive(Debug, thiserror::Error)]
enum StateError {
    #[error("its age is missing")]
    NoAge,
    #[error("not base64")]
    NotBase64,
    #[error("{}", .0.clone().closed())]
    Malformed(#[from] Error),
    #[error("a duplicate")]
    Duplicate,
}

impl Importer<'_> {
    /// Adds nodes with the states after the existing ones. States that no age could use are listed
    /// with the reason.
    pub(super) fn states(&mut self) -> Result<()> {
        let ages = self.ages()?;
        self.check_age_states();
        let mut kept = Vec::new();
        let mut seen = HashSet::new();
        for row in by_number(self.rows("agestates")) {
            let at = At { table: "agestates", row };
            let number = at.number("idx")?.unwrap_or(0);
            let descriptor = at.text("descriptor")?.unwrap_or_default();
            let server = at.number("serveridx")?.unwrap_or(0);
            let Some(&(instance, age)) = ages.get(&server) else {
                self.skip_state(number, &descriptor, &StateError::NoAge);
                continue;
            };
            let (Ok(Some(object)), Ok(Some(state))) = (at.blob("objectkey"), at.blob("sdlblob"))
            else {
                self.skip_state(number, &descriptor, &StateError::NotBase64);
                continue;
            };
            let checked = check_object(&object).and_then(|()| self.check(&state));
            if let Err(why) = checked {
                self.skip_state(number, &descriptor, &why);
                continue;
            }
            let [object, state] = [object, state].map(|blob| blob.to_vec());
            if !seen.insert((instance, descriptor.to_lowercase(), object.clone())) {
                self.skip_state(number, &descriptor, &StateError::Duplicate);
                continue;
            }
            self.counts.object_states += 1;
            kept.push(AgeNode::Object { instance, descriptor, object, state }.node(age));
        }
        let mut names = HashSet::new();
        for row in by_number(self.rows("globalstates")) {
            let at = At { table: "globalstates", row };
            let age = at.text("descriptor")?.unwrap_or_default();
            match at.blob("sdlblob") {
                Ok(Some(state)) => match self.check(&state) {
                    Err(why) => self.skip_settings(&age, &why),
                    Ok(()) if !names.insert(age.clone()) => {
                        self.skip_settings(&age, &StateError::Duplicate);
                    }
                    Ok(()) => {
                        self.counts.settings += 1;
                        kept.push(AgeNode::Settings { age, state: state.to_vec() }.node(0));
                    }
                },
                _ => self.skip_settings(&age, &StateError::NotBase64),
            }
        }
        let mut next = self.nodes.keys().next_back().copied().unwrap_or(0);
        for node in kept {
            next = next.checked_add(1).ok_or_else(|| whole("no node number is left"))?;
            let (node_id, time) = (Some(next), Some(0));
            let node = VaultNode { node_id, create_time: time, modify_time: time, ..node };
            self.nodes.insert(next, node);
        }
        Ok(())
    }

    /// Checks the states of ages, which are in nodes. Removes those that cannot be decoded.
    fn check_age_states(&mut self) {
        let is_state = |node: &VaultNode<'_>| node.node_type == Some(NodeType::SDL);
        let nodes = self.nodes.iter().filter(|(_, node)| is_state(node));
        let states = nodes.filter_map(|(id, node)| Some((*id, node.blob_1.as_ref()?.to_vec())));
        for (id, state) in states.filter(|(_, state)| !state.is_empty()).collect::<Vec<_>>() {
            if let Err(why) = self.check(&state) {
                self.skipped.push(format!("the state of an age in node {id}: {why}"));
                if let Some(node) = self.nodes.get_mut(&id) {
                    node.blob_1 = None;
                }
            }
        }
    }

    /// Checks that a state can be decoded. If its descriptor is missing, checks only its header.
    fn check(&mut self, state: &[u8]) -> std::result::Result<(), StateError> {
        let mut reader = Reader::new(state);
        let head = BlobHeader::decode_fields(&mut reader)?;
        let name = head.name.to_bytes();
        if self.descriptors.find(&name, head.version).is_err() {
            let name = format!("{}.{}", String::from_utf8_lossy(&name), head.version);
            *self.counts.unchecked.entry(name).or_default() += 1;
            return Ok(());
        }
        let mut reader = Reader::new(state);
        Blob::decode(self.descriptors, &mut reader)?;
        reader.end()?;
        self.counts.checked += 1;
        Ok(())
    }

    fn skip_state(&mut self, number: i64, descriptor: &str, why: &StateError) {
        self.skipped.push(format!("state {number} of an object ({descriptor}): {why}"));
    }

    fn skip_settings(&mut self, age: &str, why: &StateError) {
        self.skipped.push(format!("shard-wide settings of {age}: {why}"));
    }

    /// Instances and their Age nodes, by server number.
    fn ages(&self) -> Result<HashMap<i64, (Uuid, u32)>> {
        let mut ages = HashMap::new();
        for row in self.rows("servers") {
            let at = At { table: "servers", row };
            let number = at.number("idx")?.unwrap_or(0);
            let instance = at.uuid("ageuuid")?.or(at.uuid("instanceuuid")?).unwrap_or_default();
            let age = at.unsigned("ageidx")?.unwrap_or(0);
            // A temporary age has no node, and its states are not meant to last.
            if self.nodes.get(&age).is_some_and(|node| node.node_type == Some(NodeType::Age)) {
                ages.insert(number, (instance, age));
            }
        }
        Ok(ages)
    }
}

/// Sorts rows by their `idx`, because a dump has them in any order.
fn by_number(rows: &[Row]) -> Vec<&Row> {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by_key(|row| match row.get("idx") {
        Some(Cell::Number(number)) => *number,
        _ => 0,
    });
    rows
}

/// Checks that an object's key can be decoded.
fn check_object(bytes: &[u8]) -> std::result::Result<(), StateError> {
    let mut reader = Reader::new(bytes);
    Uoid::decode(&mut reader, "object")?;
    Ok(reader.end()?)
}
