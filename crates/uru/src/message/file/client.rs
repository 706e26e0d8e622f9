//! Messages from the client on a file connection.

use worldwire_core::messages;

use crate::types::{TransId, WFix};

messages! {
    /// Messages from the client on a file connection.
    pub enum ClientMessage<'a>: "file", Client;
    reserved { 30 "UNUSED_1" }

    /// Keep-alive, sent right after setup and then every 30 seconds. The server answers immediately
    /// with all fields unchanged.
    0 PingRequest {
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
    }

    /// Requests the newest build number.
    10 BuildIdRequest {
        trans_id "transId": TransId,
    }

    /// Requests the files of a group: `ExternalPatcher`, `External`, ..., or the name of an age.
    20 ManifestRequest<'a> {
        trans_id "transId": TransId,
        /// The name of the manifest.
        group "group": WFix<'a, 260>,
        /// The build number; 918 for practically all current clients, 0 for "the newest".
        build_id "buildId": u32,
    }

    /// Requests a file. It is sent in several replies.
    21 FileDownloadRequest<'a> {
        trans_id "transId": TransId,
        /// The directory and name, separated by a backslash.
        filename "filename": WFix<'a, 260>,
        /// The build number; 918 for practically all current clients, 0 for "the newest".
        build_id "buildId": u32,
    }

    /// Acknowledges a manifest; ignored.
    22 ManifestEntryAck {
        trans_id "transId": TransId,
        /// An arbitrary number that acknowledgements repeat.
        reader_id "readerId": u32,
    }

    /// Acknowledges a chunk of a file.
    23 FileDownloadChunkAck {
        trans_id "transId": TransId,
        /// An arbitrary number that acknowledgements repeat.
        reader_id "readerId": u32,
    }
}
