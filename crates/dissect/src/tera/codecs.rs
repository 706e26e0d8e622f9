//! TERA's codec.

use worldwire_core::Result;
use worldwire_tera::frame::Header;

use super::definitions::{library, unused_list};
use crate::codec::{Codec, Remark, read_opening};
use crate::line::{Blob, Line};

/// The codec for a message.
pub(super) fn blob(line: &Line<'_>) -> Result<Option<Blob>> {
    if line.name.starts_with("handshake.") {
        return Ok(None);
    }
    let name = line.name.strip_prefix("tera.").ok_or_else(|| line.no_message())?;
    // Without a definition, the fields are the whole message: header and payload.
    let is_whole = ["payload", "opcode"].iter().all(|key| line.fields.get(key).is_some());
    let mut json = if is_whole {
        line.fields.clone()
    } else {
        let opcode = line.members.get("opcode").cloned().unwrap_or_else(|| name.into());
        [("opcode", opcode), ("fields", line.fields.clone())].into_iter().collect()
    };
    for key in ["version", "revision"] {
        if let (Some(object), Some(member)) = (json.as_object_mut(), line.members.get(key)) {
            object.insert(key, member.clone());
        }
    }
    Ok(Some(("tera.packet", json)))
}

pub(crate) static CODECS: &[Codec] = &[Codec {
    remarks: |data, options| {
        let tera = library(options.definitions);
        let opcode = Header::peek(data).ok().flatten().map(|header| header.opcode);
        let unused = opcode.and_then(|opcode| unused_list(tera.shared(), opcode));
        let remarks = tera.unmapped().into_iter().chain(unused).chain(tera.shared().remarks(data));
        remarks.map(Remark::note).collect()
    },
    ..Codec::new(
        "tera.packet",
        "a decrypted message with its header",
        |data, options, tree| {
            let packets = &**library(options.definitions).shared();
            read_opening("tera.packet", data, options, tree, packets, |reader| {
                packets.decode(reader).map(drop)
            })
        },
        |json, options| library(options.definitions).encode(json),
    )
}];
