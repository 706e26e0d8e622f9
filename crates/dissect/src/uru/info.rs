//! The most informative fields of messages.

use crate::info::{InfoFields, InfoTable};

/// Fields that say little: message numbers, the parts of headers, and what precedes contents. The
/// names of inner messages are already on the line.
const HIDDEN: &[&str] = &[
    "bcastFlags",
    "class",
    "classIndex",
    "compression",
    "delay",
    "flags",
    "gameId",
    "location",
    "messageId",
    "objectId",
    "payload",
    "receivers",
    "sender",
    "size",
    "timeSent",
    "timestamp",
    "trailing",
    "transId",
    "uncompressedLength",
    "words",
];

/// Messages whose first fields are not the most informative ones, sorted by name.
const SHOWN: InfoTable = &[
    ("auth.AcctActivateRequest", &[]),
    ("auth.AcctCreateFromKeyRequest", &["accountName", "billingType"]),
    ("auth.AcctLoginReply", &["result", "accountId", "accountFlags", "billingType"]),
    ("auth.AcctLoginRequest", &["accountName", "os"]),
    ("auth.AgeReply", &["result", "gameServerAddress", "ageMcpId", "ageNodeId", "ageInstanceId"]),
    ("auth.AgeReplyEx", &["result", "gameServerAddress", "ageMcpId", "ageNodeId", "ageInstanceId"]),
    ("auth.ClientRegisterReply", &[]),
    ("auth.FileDownloadChunk", &["result", "chunkOffset", "totalFileSize"]),
    ("auth.FileListReply", &["result", "files[*].name"]),
    ("auth.PropagateBuffer", &["type"]),
    ("auth.PublicAgeList", &["result", "ages[*].instanceName"]),
    ("auth.ScoreGetScoresReply", &["result", "scores[*].gameName", "scores[*].value"]),
    ("auth.ServerAddr", &["serverAddress"]),
    ("auth.VaultFetchNodeRefs", &["nodeId"]),
    ("auth.VaultNodeCreate", NEW_NODE),
    ("auth.VaultNodeFetched", FETCHED_NODE),
    ("auth.VaultNodeFind", NEW_NODE),
    ("auth.VaultNodeRefsFetched", &["result", "refs[*].childId"]),
    ("auth.VaultNodeSave", SAVED_NODE),
    ("connect.CliToAuth", &["buildId", "buildType"]),
    ("connect.CliToFile", &["realBuildId", "serverType"]),
    ("connect.CliToGame", &["buildId", "ageInstanceId", "accountId"]),
    ("connect.CliToGateKeeper", &["buildId", "buildType"]),
    ("file.FileDownloadReply", &["result", "totalFileSize"]),
    ("file.ManifestReply", &["result", "numFiles", "manifest[*].clientName"]),
    ("game.GameMgrMsg", &["buffer.message.fields"]),
    ("game.PropagateBuffer", NET_MESSAGE),
    ("setup.Connect", &[]),
    ("setup.Encrypt", &[]),
    ("setup.Error", &[]),
];

/// A net message, with the message inside first.
const NET_MESSAGE: &[&str] = &["buffer.message.stream.payload", "buffer.message"];
/// A node that the client asked for.
const FETCHED_NODE: &[&str] = &[
    "result",
    "node.NodeId",
    "node.NodeType",
    "node.String64_1",
    "node.IString64_1",
    "node.Text_1",
    "node.Int32_1",
];
/// A node's new values.
const SAVED_NODE: &[&str] = &[
    "nodeId",
    "node.NodeType",
    "node.String64_1",
    "node.IString64_1",
    "node.Text_1",
    "node.Int32_1",
];
/// A node without an ID, or the fields to look for.
const NEW_NODE: &[&str] =
    &["node.NodeType", "node.CreatorId", "node.String64_1", "node.IString64_1", "node.Int32_1"];

pub(super) fn fields(name: &str) -> InfoFields {
    InfoFields::find(name, SHOWN, HIDDEN)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_fits_the_messages() {
        crate::info::tests::assert_fits(&super::super::Uru, super::SHOWN, super::HIDDEN);
    }
}
