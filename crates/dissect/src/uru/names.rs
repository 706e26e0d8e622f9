//! The names of messages and fields.

use std::collections::BTreeSet;

use worldwire_core::{Record, Side};
use worldwire_uru::file::manifest::{FileListEntry, ManifestEntry};
use worldwire_uru::frame::{Service, table};
use worldwire_uru::message::{NetAgeInfo, NodeRef, Rank, Score};
use worldwire_uru::types::{Location, UnifiedTime};
use worldwire_uru::vault::VaultNode;

use crate::family::MessageNames;

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

/// Every message, and every packet of setup.
pub(super) fn messages() -> Vec<MessageNames<'static>> {
    let names = |fields: Vec<worldwire_core::FieldInfo>| fields.into_iter().map(|field| field.name);
    let inner: BTreeSet<&str> = [
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
    .into_iter()
    .flat_map(names)
    .collect();
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
