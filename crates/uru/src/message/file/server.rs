//! Messages from the server on a file connection.

use worldwire_core::{Bytes32, messages};

use crate::file::manifest::Manifest;
use crate::types::{Nested, NetError, TransId};

messages! {
    /// Messages from the server on a file connection.
    pub enum ServerMessage<'a>: "file", Server;
    reserved { 30 "UNUSED_1" }

    /// The reply to a ping, repeating all its fields.
    0 PingReply {
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
    }

    /// The newest build.
    10 BuildIdReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The build number; 918 for practically all current clients, 0 for "the newest".
        build_id "buildId": u32,
    }

    /// A new build is available. Optional.
    11 BuildIdUpdate {
        /// The build number; 918 for practically all current clients, 0 for "the newest".
        build_id "buildId": u32,
    }

    /// The files of a group.
    20 ManifestReply<'a> {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// An arbitrary number that acknowledgements repeat.
        reader_id "readerId": u32,
        /// The number of files; must match the manifest.
        num_files "numFiles": u32,
        /// The files; see [`Manifest`].
        manifest "manifest": Nested<'a, Manifest<'static>, 1_048_576>,
    }

    /// A piece of a file. All pieces carry the same transaction number.
    21 FileDownloadReply<'a> {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// An arbitrary number that acknowledgements repeat.
        reader_id "readerId": u32,
        /// The size of the whole file in bytes.
        total_file_size "totalFileSize": u32,
        /// The bytes.
        data "data": Bytes32<'a, 1_048_576>,
    }
}
