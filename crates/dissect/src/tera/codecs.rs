//! The codec of TERA.

use worldwire_core::Result;

use super::library;
use crate::codec::{Codec, Remark, Shape, read_opening};
use crate::line::{Blob, Line};

/// The codec of a message.
pub(super) fn blob(line: &Line<'_>) -> Result<Option<Blob>> {
    if line.name.starts_with("handshake.") {
        return Ok(None);
    }
    let name = line.name.strip_prefix("tera.").ok_or_else(|| line.no_message())?;
    // Without a definition the fields are the whole message: header and payload.
    if line.fields.get("payload").is_some() && line.fields.get("opcode").is_some() {
        return Ok(Some(("tera.packet", line.fields.clone())));
    }
    let opcode = line.members.get("opcode").cloned().unwrap_or_else(|| name.into());
    let mut json = serde_json::json!({"opcode": opcode, "fields": line.fields});
    if let Some(version) = line.members.get("version") {
        json["version"] = version.clone();
    }
    Ok(Some(("tera.packet", json)))
}

/// All of them, by name.
pub(crate) static CODECS: &[Codec] = &[Codec {
    name: "tera.packet",
    about: "a message with its header, decrypted",
    shape: Shape::Fields,
    sided: false,
    decode: |data, options, tree| {
        let packets = library(options.definitions).shared();
        read_opening("tera.packet", data, options, tree, packets, |reader| {
            packets.decode(reader).map(drop)
        })
    },
    encode: |json, options| library(options.definitions).shared().encode_json(json),
    tables: Vec::new,
    remarks: |_, options| {
        library(options.definitions).unmapped().into_iter().map(Remark::note).collect()
    },
}];
