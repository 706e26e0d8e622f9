//! The codec of TERA.

use super::library;
use crate::codec::{Codec, Shape, read_opening};

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
    remarks: |_, options| library(options.definitions).unmapped().into_iter().collect(),
}];
