//! What a client says on a file connection.

use worldwire_core::messages;

use crate::types::{TransId, WFix};

messages! {
    /// What a client says on a file connection.
    pub enum ClientMessage<'a>: "file", Client;
    reserved { 30 "UNUSED_1" }

    /// Keep-alive: sent right after setup and every 30 seconds. The server answers at once with all
    /// fields unchanged.
    0 PingRequest {
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
    }

    /// Asks for the newest build.
    10 BuildIdRequest {
        trans_id "transId": TransId,
    }

    /// Asks for the files of a group: `ExternalPatcher`, `External`, ..., or the name of an age.
    20 ManifestRequest<'a> {
        trans_id "transId": TransId,
        /// The name of the manifest.
        group "group": WFix<'a, 260>,
        /// The build; 918 for practically everything today, 0 for "the newest".
        build_id "buildId": u32,
    }

    /// Asks for a file. It comes in several replies.
    21 FileDownloadRequest<'a> {
        trans_id "transId": TransId,
        /// The name with its directory, with a backslash between.
        filename "filename": WFix<'a, 260>,
        /// The build; 918 for practically everything today, 0 for "the newest".
        build_id "buildId": u32,
    }

    /// Acknowledges a manifest; ignored.
    22 ManifestEntryAck {
        trans_id "transId": TransId,
        /// Any number; comes back in acknowledgements.
        reader_id "readerId": u32,
    }

    /// Acknowledges a chunk of a file.
    23 FileDownloadChunkAck {
        trans_id "transId": TransId,
        /// Any number; comes back in acknowledgements.
        reader_id "readerId": u32,
    }
}
