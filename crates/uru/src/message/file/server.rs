//! What a server says on a file connection.

use worldwire_core::{Bytes32, messages};

use crate::file::manifest::Manifest;
use crate::types::{Nested, NetError, TransId};

messages! {
    /// What a server says on a file connection.
    pub enum ServerMessage<'a>: "file", Server;
    reserved { 30 "UNUSED_1" }

    /// The answer to a ping, with all fields of the request.
    0 PingReply {
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
    }

    /// The newest build.
    10 BuildIdReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The build; 918 for practically everything today, 0 for "the newest".
        build_id "buildId": u32,
    }

    /// A new build is there. Optional.
    11 BuildIdUpdate {
        /// The build; 918 for practically everything today, 0 for "the newest".
        build_id "buildId": u32,
    }

    /// The files of a group.
    20 ManifestReply<'a> {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// Any number; comes back in acknowledgements.
        reader_id "readerId": u32,
        /// How many files the manifest has; must agree.
        num_files "numFiles": u32,
        /// The files; see [`Manifest`].
        manifest "manifest": Nested<'a, Manifest<'static>, 1_048_576>,
    }

    /// A piece of a file; the same transaction until all bytes are there.
    21 FileDownloadReply<'a> {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// Any number; comes back in acknowledgements.
        reader_id "readerId": u32,
        /// Bytes of the whole file.
        total_file_size "totalFileSize": u32,
        /// The bytes.
        data "data": Bytes32<'a, 1_048_576>,
    }
}
