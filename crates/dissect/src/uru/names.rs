//! The names of messages and fields.

use std::collections::{BTreeMap, BTreeSet};

use worldwire_core::{FieldInfo, Names, Record, Side};
use worldwire_uru::connect::{BuildType, ConnectionType, SetupType};
use worldwire_uru::file::manifest::{FileListEntry, ManifestEntry, ManifestFlags};
use worldwire_uru::frame::{Service, table};
use worldwire_uru::message::{AccountFlags, NetAgeInfo, NodeRef, Rank, Score};
use worldwire_uru::types::{ClassIndex, Location, LocationFlags, NetError, UnifiedTime};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::family::{MessageNames, ValueNames};

/// The names of what stands in front of all messages.
const SETUP_NAMES: [&str; 9] = [
    "connect.CliToAuth",
    "connect.CliToGame",
    "connect.CliToFile",
    "connect.CliToCsr",
    "connect.SimpleNet",
    "connect.CliToGateKeeper",
    "setup.Connect",
    "setup.Encrypt",
    "setup.Error",
];
/// The fields of connect and setup packets.
const SETUP: &[&str] = &[
    "connType",
    "headerBytes",
    "buildId",
    "buildType",
    "branchId",
    "productId",
    "dataBytes",
    "token",
    "accountId",
    "ageInstanceId",
    "realBuildId",
    "serverType",
    "channel",
    "type",
    "byteCount",
    "y",
    "seed",
    "error",
];

/// The types whose values have names, as layouts call them.
const NAMED: [(&str, &Names); 7] = [
    ("NetError", NetError::NAMES),
    ("AccountFlags", AccountFlags::NAMES),
    ("NodeType", NodeType::NAMES),
    ("BuildType", BuildType::NAMES),
    ("ConnectionType", ConnectionType::NAMES),
    ("ClassIndex", ClassIndex::NAMES),
    ("LocationFlags", LocationFlags::NAMES),
];
/// The same for the fields of setup.
const NAMED_SETUP: [(&str, &Names); 4] = [
    ("connType", ConnectionType::NAMES),
    ("buildType", BuildType::NAMES),
    ("type", SetupType::NAMES),
    ("error", NetError::NAMES),
];

/// Every message, and every packet of setup.
pub(super) fn messages() -> Vec<MessageNames<'static>> {
    let names = |fields: Vec<FieldInfo>| fields.into_iter().map(|field| field.name);
    let inner: BTreeSet<&str> = parts().into_iter().flat_map(names).collect();
    let mut all = Vec::new();
    for service in Service::ALL {
        let messages = Side::BOTH.into_iter().flat_map(|side| table(service, side).messages);
        all.extend(messages.map(|message| MessageNames {
            name: format!("{}.{}", service.name(), message.name),
            fields: names((message.fields)()).collect(),
            inner: inner.iter().copied().collect(),
            is_complete: false,
        }));
    }
    all.extend(SETUP_NAMES.map(|name| MessageNames {
        name: name.to_owned(),
        fields: SETUP.to_vec(),
        inner: SETUP.to_vec(),
        is_complete: true,
    }));
    all
}

/// The fields of what stands inside messages.
fn parts() -> [Vec<FieldInfo>; 9] {
    [
        VaultNode::fields(),
        NodeRef::fields(),
        NetAgeInfo::fields(),
        Score::fields(),
        Rank::fields(),
        Location::fields(),
        UnifiedTime::fields(),
        ManifestEntry::fields(),
        FileListEntry::fields(),
    ]
}

/// The fields whose values have names.
pub(super) fn values() -> Vec<ValueNames<'static>> {
    let mut named: BTreeMap<&str, Vec<&'static Names>> = BTreeMap::new();
    let mut others: BTreeSet<&str> = BTreeSet::new();
    let tables = Service::ALL.into_iter().flat_map(|service| {
        let sides = Side::BOTH.into_iter();
        sides.flat_map(move |side| {
            table(service, side).messages.iter().map(|message| (message.fields)())
        })
    });
    for field in tables.chain(parts()).flatten() {
        let words: Vec<&str> = field.layout.split(|c: char| !c.is_alphanumeric()).collect();
        match NAMED.iter().find(|(name, _)| words.contains(name)) {
            Some((_, names)) => named.entry(field.name).or_default().push(names),
            None => {
                others.insert(field.name);
            }
        }
    }
    // Their layout does not tell.
    named.entry("flags").or_default().push(ManifestFlags::NAMES);
    for field in SETUP {
        match NAMED_SETUP.iter().find(|(name, _)| name == field) {
            Some((_, names)) => named.entry(field).or_default().push(names),
            None => {
                others.insert(field);
            }
        }
    }
    let names = |sets: Vec<&'static Names>| -> BTreeSet<&str> {
        sets.into_iter().flat_map(Names::iter).map(|(_, name)| name).collect()
    };
    let values = named.into_iter().map(|(field, sets)| ValueNames {
        field,
        names: names(sets).into_iter().collect(),
        is_only: !others.contains(field),
    });
    values.collect()
}
