//! NAV: graphs of the places where characters can go.
//!
//! | file | in | nodes are |
//! | --- | --- | --- |
//! | `zone.nav` | the archive of each zone | locations in the zone |
//! | `zonemap.nav` | Root.wad (unverified) | zones, with their names at the end |
//!
//! | field | type | meaning |
//! | --- | --- | --- |
//! | last_id | `u16` | usually the largest ID; community tools ignore it |
//! | nodes | `u32` count, each 14 bytes | [`NavNode`] |
//! | links | `u32` count, each 4 bytes | [`NavLink`]: IDs, not positions |
//! | zone_names | `u32` count, each `u32` count and UTF-8 | only in `zonemap.nav`; name i belongs to the node with ID i |
//!
//! There is no magic and no version: a NAV file is recognised only by decoding it to the last byte.
//! A file without bytes after the links is a `zone.nav`; ten zero bytes are an empty `zone.nav`.
//!
//! Unverified: the first word of real files, whether IDs in `zonemap.nav` begin with 0 or 1, what
//! the locations in it mean, and whether links lead both ways. Both files of one client would
//! settle all of these.
//!
//! ```
//! use worldwire_core::Limits;
//! use worldwire_ki::file::nav::NavFile;
//!
//! let bytes = [1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0];
//! let (nav, warnings) = NavFile::open(&bytes, &Limits::DEFAULT)?;
//! assert_eq!((nav.last_id, nav.nodes.len(), nav.links.len()), (1, 1, 0));
//! assert!(warnings.is_empty());
//! assert_eq!(nav.to_bytes()?, bytes);
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod check;
mod draw;
mod graph;

use std::borrow::Cow;
#[cfg(any(test, feature = "fuzzing"))]
use std::io::Read as _;

#[cfg(any(test, feature = "fuzzing"))]
use flate2::{Compression, read::ZlibEncoder};
use worldwire_core::json::{FieldsOf, Json};
use worldwire_core::{Error, Field, Limits, Reader, Result, Sampler, Trace, Writer, record};

use super::primitive::{
    Many, Text, Vector3, collect_warnings, left_over, not_utf8, refuse_warnings, shown,
};

pub use graph::{Directions, NavGraph, Route};

use crate::object::inflate_up_to;

record! {
    /// A location or a zone.
    pub struct NavNode {
        /// The location in the zone. Unverified: the meaning of these bytes in `zonemap.nav`.
        location "location": Vector3,
        /// The ID by which links refer to the node.
        id "id": u16,
    }
}

record! {
    /// A link from one node to another.
    ///
    /// Unverified: that a link leads one way only, since files seem to list the way back as a
    /// separate link.
    pub struct NavLink {
        /// The ID of the node where the link begins.
        first "first": u16,
        /// The ID of the node where the link ends.
        second "second": u16,
    }
}

/// A NAV file.
#[derive(Clone, Debug, PartialEq)]
pub struct NavFile<'d> {
    /// The first word, kept verbatim. Writers store [`Self::largest_id`].
    pub last_id: u16,
    /// The nodes.
    pub nodes: Many<NavNode>,
    /// The links, in file order.
    pub links: Many<NavLink>,
    /// In a graph of zones, the names of the zones.
    pub zone_names: Option<Many<Text<'d>>>,
}

impl<'d> NavFile<'d> {
    /// Decodes a file, plain or inside a zlib stream.
    ///
    /// A plain file can begin like a zlib stream, so inflating is tried only if plain decoding does
    /// not use every byte.
    pub fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let bytes = reader.rest();
        if !Self::is_compressed(bytes, reader.limits()) {
            return Self::plain(reader).map_err(Error::closed);
        }
        let inflated = match inflate(bytes, reader.limits()) {
            Ok(inflated) => inflated,
            Err(inflating) => {
                // The error from plain decoding gives a more precise position.
                let plain = Self::plain(reader).map_err(Error::closed)?;
                return if reader.remaining() > 0 { Err(inflating) } else { Ok(plain) };
            }
        };
        let start = reader.place();
        reader.take(bytes.len())?;
        reader.layer("inflated", start, inflated, |reader| {
            let nav = NavFile::plain(reader)?;
            reader.end()?;
            Ok(nav.into_owned())
        })
    }

    /// Whether the bytes must be read as a zlib stream: they begin like one and are not a plain
    /// file.
    #[must_use]
    pub fn is_compressed(bytes: &[u8], limits: &Limits) -> bool {
        let like_zlib = bytes
            .first_chunk::<2>()
            .is_some_and(|head| head[0] == 0x78 && u16::from_be_bytes(*head).is_multiple_of(31));
        let mut reader = Reader::within(bytes, limits);
        like_zlib && NavFile::plain(&mut reader).and_then(|_| reader.end()).is_err()
    }

    /// Decodes a file for tools, with warnings instead of errors where possible. Bytes left at the
    /// end are skipped.
    pub fn open(bytes: &'d [u8], limits: &'d Limits) -> Result<(Self, Vec<String>)> {
        let mut reader = Reader::within(bytes, limits);
        let nav = Self::decode(&mut reader)?;
        let compressed = Self::is_compressed(bytes, limits)
            .then(|| "is a zlib stream; it will be written uncompressed".to_owned());
        let names = nav.zone_names.iter().flat_map(|names| names.iter()).enumerate();
        let names = names
            .filter_map(|(index, name)| not_utf8(format_args!("the name of zone {index}"), name));
        let warnings =
            collect_warnings(left_over(&reader).into_iter().chain(compressed).chain(names));
        Ok((nav, warnings))
    }

    /// Decodes a file, refusing it if there are any warnings. Used to recognise NAV files.
    pub fn strict(bytes: &'d [u8], limits: &'d Limits) -> Result<Self> {
        let (nav, warnings) = Self::open(bytes, limits)?;
        refuse_warnings(warnings.into_iter()).map(|()| nav)
    }

    /// Encodes the file in its plain form.
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.u16(self.last_id);
        self.nodes.encode(writer).map_err(|error| error.inside("nodes"))?;
        self.links.encode(writer).map_err(|error| error.inside("links"))?;
        match &self.zone_names {
            Some(names) => names.encode(writer).map_err(|error| error.inside("zone_names")),
            None => Ok(()),
        }
    }

    /// Encodes the file to bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer).map(|()| writer.into_bytes())
    }

    /// Encodes the file to a zlib stream, for the fuzz target.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn to_zlib(&self) -> Result<Vec<u8>> {
        let plain = self.to_bytes()?;
        let mut packed = Vec::new();
        let outcome = ZlibEncoder::new(&plain[..], Compression::best()).read_to_end(&mut packed);
        outcome.map_err(|error| Error::value("bytes to compress", error.to_string()))?;
        Ok(packed)
    }

    /// Reads a file from the JSON of a traced decode, or from either of the two shapes that katsuba
    /// writes, `{"nodes", "links"}` and `{"graph": {...}, "zone_names"}`. If `last_id` is missing,
    /// the largest ID is used.
    pub fn from_json(json: &Json) -> Result<NavFile<'static>> {
        let mut fields = FieldsOf::new(json)?;
        let zone_names = fields.given_optional("zone_names").map(Many::from_json).transpose();
        let zone_names = zone_names.map_err(|error| error.inside("zone_names"))?;
        let mut nav = if let Some(graph) = fields.take_optional("graph") {
            let mut inner = FieldsOf::new(graph).map_err(|error| error.inside("graph"))?;
            let nav = graph_from_json(&mut inner).and_then(|nav| inner.end().map(|()| nav));
            nav.map_err(|error| error.inside("graph"))?
        } else {
            graph_from_json(&mut fields)?
        };
        fields.end()?;
        nav.zone_names = zone_names;
        Ok(nav)
    }

    /// The largest node ID; 0 if there are no nodes.
    #[must_use]
    pub fn largest_id(&self) -> u16 {
        self.nodes.iter().map(|node| node.id).max().unwrap_or(0)
    }

    /// The name of a node's zone.
    #[must_use]
    pub fn name(&self, id: u16) -> Option<&Text<'d>> {
        self.zone_names.as_ref()?.get(usize::from(id))
    }

    /// Copies borrowed text.
    #[must_use]
    pub fn into_owned(self) -> NavFile<'static> {
        let Self { last_id, nodes, links, zone_names } = self;
        NavFile { last_id, nodes, links, zone_names: zone_names.map(Field::into_owned) }
    }

    /// Generates a file for tests.
    pub fn sample(sampler: &mut Sampler) -> Self {
        Self {
            last_id: u16::sample(sampler),
            nodes: Many::sample(sampler),
            links: Many::sample(sampler),
            zone_names: (sampler.below(2) == 0).then(|| Many::sample(sampler)),
        }
    }

    fn plain<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let last_id = reader.u16("last_id")?;
        let nodes = Many::decode(reader, "nodes")?;
        let links = Many::decode(reader, "links")?;
        let zone_names = match reader.remaining() {
            // There are too few bytes for a count, so they are left over.
            0..4 => None,
            _ => Some(Many::decode(reader, "zone_names")?),
        };
        Ok(Self { last_id, nodes, links, zone_names })
    }

    /// The name of a node for display.
    fn label(&self, id: u16) -> Cow<'_, str> {
        match self.name(id) {
            Some(name) => name.to_lossy(),
            None => id.to_string().into(),
        }
    }
}

fn graph_from_json(fields: &mut FieldsOf<'_>) -> Result<NavFile<'static>> {
    let last_id = fields.given_optional("last_id").map(u16::from_json).transpose();
    let last_id = last_id.map_err(|error| error.inside("last_id"))?;
    let nodes = fields.value("nodes")?;
    let links = fields.value("links")?;
    let mut nav = NavFile { last_id: 0, nodes, links, zone_names: None };
    nav.last_id = last_id.unwrap_or_else(|| nav.largest_id());
    Ok(nav)
}

/// Inflates a single zlib stream that must span all of `bytes`.
fn inflate(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>> {
    let ratio = limits.inflated_ratio.saturating_mul(bytes.len() as u64);
    let max = limits.inflated_bytes.min(ratio);
    inflate_up_to(bytes, usize::try_from(max).unwrap_or(usize::MAX))?.ok_or_else(|| {
        let name = if max == ratio { "inflated ratio" } else { "inflated bytes" };
        Error::limit(name, max, max.saturating_add(1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use worldwire_core::json::json;

    #[test]
    fn katsubas_shapes_are_read() {
        let graph = json!({
            "nodes": [{"location": [1.0, 2.0, 3.0], "id": 7}, {"location": [0, 0, 0], "id": 2}],
            "links": [{"first": 7, "second": 2}],
        });
        let nav = NavFile::from_json(&graph).unwrap();
        assert_eq!((nav.last_id, nav.nodes.len(), nav.zone_names.is_none()), (7, 2, true));
        let zones = NavFile::from_json(&json!({"graph": graph, "zone_names": ["A/B"]})).unwrap();
        assert_eq!(zones.zone_names.as_ref().unwrap()[0].as_text(), Some("A/B"));
        assert_eq!(NavFile { zone_names: None, ..zones }, nav);
        let error = NavFile::from_json(&json!({"graph": {"nodes": []}})).unwrap_err();
        assert_eq!(error.to_string(), "graph.links: is missing");
    }

    #[test]
    fn other_files_are_refused_with_an_offset() {
        let error = |bytes: &[u8]| NavFile::open(bytes, &Limits::DEFAULT).unwrap_err().to_string();
        assert_eq!(
            error(&[0; 9]),
            "links: wanted 4 bytes, found 3".replace("links", "links at byte 6")
        );
        let mut promised = vec![0, 0, 0xff, 0xff, 0xff, 0xff];
        promised.extend([0; 20]);
        assert_eq!(error(&promised), "nodes at byte 6: wanted 60129542130 bytes, found 20");
    }

    #[test]
    fn inflating_is_bounded() {
        let nav =
            NavFile { last_id: 0, nodes: vec![].into(), links: vec![].into(), zone_names: None };
        let mut plain = nav.to_bytes().unwrap();
        plain.resize(1 << 20, 0);
        let mut packed = Vec::new();
        ZlibEncoder::new(&plain[..], Compression::best()).read_to_end(&mut packed).unwrap();
        let limits = Limits { inflated_bytes: 1 << 16, ..Limits::DEFAULT };
        let error = inflate(&packed, &limits).unwrap_err().to_string();
        assert_eq!(error, "wanted at most 65536 (inflated bytes), found 65537");
        let limits = Limits { inflated_ratio: 2, ..Limits::DEFAULT };
        assert!(inflate(&packed, &limits).unwrap_err().to_string().contains("inflated ratio"));
        packed.push(0);
        let error = inflate(&packed, &Limits::DEFAULT).unwrap_err().to_string();
        assert_eq!(error, "wanted the end of the zlib data, found 1 more byte");
    }
}
