//! The views of a conversation, as its packets change them.

use std::collections::BTreeSet;
use std::sync::Arc;

use worldwire_core::{Reader, Result, Side};
use worldwire_mxo::frame::{Packet, RccFlags, Section as PacketSection};
use worldwire_mxo::message::Section;
use worldwire_mxo::replica::{Notice, Replica};
use worldwire_mxo::schema::Objects;

use super::objects::ObjectSections;

/// The views of one client, followed through the packets of a capture.
///
/// A capture may miss packets, and objects may have classes that nobody knows. What cannot be read
/// then is told once for each goobj and each reason, and left out.
#[derive(Clone, Debug)]
pub struct MxoViews {
    replica: Replica,
    told: BTreeSet<String>,
}

impl MxoViews {
    /// No views yet.
    #[must_use]
    pub fn new(objects: Arc<Objects>) -> Self {
        Self { replica: Replica::new(objects), told: BTreeSet::new() }
    }

    /// The views.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Takes in a packet of a side, decrypted. Returns what there is to say of it.
    ///
    /// # Errors
    /// Those of [`Packet::decode`], and the limits on views; views are as they were then.
    pub fn take(&mut self, from: Side, packet: &[u8]) -> Result<Vec<String>> {
        let sections = self.sections(from);
        let mut measure = |bytes: &[u8]| Ok(sections.measure(bytes));
        let packet = Packet::decode_measured(&mut Reader::new(packet), Some(from), &mut measure)?;
        let mut said = Vec::new();
        if from == Side::Server && packet.flags.contains(RccFlags::Reset) {
            self.replica.reset();
        }
        for section in &packet.sections {
            let PacketSection::Objects(bytes) = section else { continue };
            let context = self.sections(from);
            let section = Section::decode_behind_id(&mut Reader::new(bytes), &context.context())?;
            for notice in self.replica.apply(&section, from)? {
                if let Some(text) = describe(&notice)
                    && self.told.insert(text.clone())
                {
                    said.push(text);
                }
            }
        }
        Ok(said)
    }

    /// Another session begins: there are no views.
    pub fn begin_anew(&mut self) {
        self.replica.reset();
    }

    /// What reads the sections of a side that come next.
    pub(super) fn sections(&self, from: Side) -> ObjectSections<'_> {
        ObjectSections { objects: self.replica.objects(), views: &self.replica, from }
    }
}

/// What there is to say of what was not read.
fn describe(notice: &Notice) -> Option<String> {
    Some(match notice {
        Notice::UnknownCreate { goid } => format!(
            "goobj {goid} has no known class, so the rest of its packet is not read; give its \
             table with --data"
        ),
        Notice::Undecoded(fault) => format!(
            "the rest of an object section is not read ({fault}): its view was created before the \
             capture or in a packet that is missing, or its layout is not known"
        ),
        Notice::BadPending { view, error } => format!("pending update of view {view}: {error}"),
        _ => return None,
    })
}
