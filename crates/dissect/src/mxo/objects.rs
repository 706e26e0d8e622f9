//! Decodes and encodes object sections inside packets.

use std::sync::Arc;

use worldwire_core::json::{Given, Json};
use worldwire_core::opener::{Closer, Opener, Site};
use worldwire_core::{Reader, Result, Side, Trace, TreeBuilder, Writer};
use worldwire_mxo::frame::Packet;
use worldwire_mxo::message::{Context, NoViews, OWN_VIEW, Rules, Section, Viewed, Views};
use worldwire_mxo::schema::Objects;

/// The field of a packet's section that holds objects.
const FIELD: &str = "objects";
/// The goobj of player characters.
const PLAYER: u16 = 12;

/// Decodes the object sections that a side sends, given the views that exist at that point.
#[derive(Clone, Copy)]
pub(super) struct ObjectSections<'o> {
    pub(super) objects: &'o Objects,
    pub(super) views: &'o (dyn Views + Sync),
    pub(super) from: Side,
}

impl core::fmt::Debug for ObjectSections<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ObjectSections").field("from", &self.from).finish_non_exhaustive()
    }
}

impl<'o> ObjectSections<'o> {
    /// The context for decoding sections. Unknown classes are guessed from the bytes; those that
    /// remain unknown are kept as bytes.
    pub(super) fn context(&self) -> Context<'o, '_> {
        let rules = Rules { guess: true, ..Rules::LENIENT };
        Context { objects: self.objects, views: self, from: self.from, rules }
    }

    /// Whether the section would decode if the other side had sent it.
    pub(super) fn fits_other_side(&self, bytes: &[u8]) -> bool {
        let other = Self { from: self.from.other(), ..*self };
        let section = Section::decode_after_id(&mut Reader::new(bytes), &other.context());
        section.is_ok_and(|section| section.operations.iter().all(|it| it.fault().is_none()))
    }

    /// Decodes a packet with its sections.
    pub(super) fn packet<'d, 'n, T: Trace<'n>>(
        &self,
        reader: &mut Reader<'d, T>,
    ) -> Result<Packet<'d>> {
        // A section that cannot be decoded extends to the end of the packet.
        let mut measure = |bytes: &[u8]| {
            let mut reader = Reader::new(bytes);
            let section = Section::decode_after_id(&mut reader, &self.context());
            Ok(section.map_or(bytes.len(), |_| reader.position()))
        };
        Packet::decode_lenient(reader, Some(self.from), &mut measure)
    }
}

/// Assumes that the view of the client's own character exists, even if its create is missing.
impl Views for ObjectSections<'_> {
    fn viewed(&self, view: u16) -> Option<Viewed> {
        let own = || {
            let (class, _) = self.objects.class_of(PLAYER).filter(|_| view == OWN_VIEW)?;
            Some(Viewed { class, guess: true })
        };
        self.views.viewed(view).or_else(own)
    }
}

impl<'n> Opener<'n> for ObjectSections<'n> {
    fn opens(&self, site: Site<'_>, _: &[u8]) -> bool {
        site.field == FIELD
    }

    fn open(&'n self, _: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()> {
        Section::decode(reader, &self.context()).map(drop)
    }
}

impl Closer for ObjectSections<'_> {
    fn close(&self, _: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
        let Json::Object(parts) = json else { return Ok(None) };
        if !parts.contains_key("operations") {
            return Ok(None);
        }
        let mut parts = parts.clone();
        parts.remove("bytes");
        let json = Json::Object(parts);
        let section = Section::from_json(Given::from(&json), &self.context())?;
        let mut writer = Writer::new();
        section.encode(self.objects, self.from, &mut writer)?;
        Ok(Some(writer.into_bytes()))
    }
}

/// Decodes the object sections of a blob, without any known views.
#[derive(Clone, Debug)]
pub(super) struct BlobSections {
    objects: Arc<Objects>,
    from: Side,
}

impl BlobSections {
    /// One decoder per side.
    pub(super) fn of(objects: &Arc<Objects>) -> [Self; 2] {
        Side::BOTH.map(|from| Self { objects: Arc::clone(objects), from })
    }

    pub(super) fn sections(&self) -> ObjectSections<'_> {
        ObjectSections { objects: &self.objects, views: &NoViews, from: self.from }
    }
}

impl<'n> Opener<'n> for BlobSections {
    fn opens(&self, site: Site<'_>, _: &[u8]) -> bool {
        site.field == FIELD
    }

    fn open(&'n self, _: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()> {
        Section::decode(reader, &self.sections().context()).map(drop)
    }
}

impl Closer for BlobSections {
    fn close(&self, site: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
        self.sections().close(site, json)
    }
}
