//! Tracks the views of a conversation.

use core::mem::{Discriminant, discriminant};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use worldwire_core::{Error, Reader, Result, Side, Step};
use worldwire_mxo::frame::{
    PacketHead, RccFlags, Section as PacketSection, SequenceNumber, SequenceWord,
};
use worldwire_mxo::message::{Fault, Oddity, Operation, Section};
use worldwire_mxo::replica::{Notice, Replica};
use worldwire_mxo::schema::Objects;

use super::objects::ObjectSections;
use super::unread::{Unread, unknown_goobj, unread};
use crate::item::Note;

/// The views of one client, tracked through the packets of a capture.
///
/// Packets can be missing from a capture, and classes can be unknown. Anything that cannot be
/// decoded as a result is skipped, and reported once for each goobj, view and reason.
#[derive(Clone, Debug)]
pub struct MxoViews {
    replica: Replica,
    reported: HashSet<Reported>,
    /// The last create that could not be decoded.
    failed: Option<FailedCreate>,
    /// The packet of the last section that could not be decoded completely.
    unread: Option<PacketNumber>,
    creates: Creates,
}

/// Which creates the client has acknowledged, as far as the server knows. The server may repeat a
/// create until it knows that the client has acknowledged it.
#[derive(Clone, Debug, Default)]
struct Creates {
    /// Views by the server's packets that created them.
    sent: Pending,
    /// Views by the client's packets that acknowledged them.
    told: Pending,
    /// The views whose creates have arrived.
    live: BTreeSet<u16>,
}

impl Creates {
    /// Handles a packet from the server, which acknowledges packets from the client.
    fn server(&mut self, sequence: SequenceWord) {
        self.live.extend(self.told.acknowledged(sequence));
        self.sent.begin(sequence.local.get());
    }

    /// Handles a packet from the client, which acknowledges packets from the server.
    fn client(&mut self, sequence: SequenceWord) {
        let local = sequence.local.get();
        self.told.begin(local);
        for view in self.sent.acknowledged(sequence) {
            self.told.add(local, view);
        }
    }

    /// Forgets a view that no longer exists.
    fn forget(&mut self, view: u16) {
        self.live.remove(&view);
        self.sent.forget(view);
        self.told.forget(view);
    }
}

/// The views that packets from a side are about, until the other side acknowledges these packets.
#[derive(Clone, Debug, Default)]
struct Pending {
    /// The views, by packet number.
    by_packet: BTreeMap<u16, Vec<u16>>,
    /// The views with their packet numbers, except views that were forgotten.
    by_view: BTreeSet<(u16, u16)>,
}

impl Pending {
    /// Starts a new packet. Numbers are reused.
    fn begin(&mut self, number: u16) {
        for view in self.by_packet.remove(&number).into_iter().flatten() {
            self.by_view.remove(&(view, number));
        }
    }

    fn add(&mut self, number: u16, view: u16) {
        self.by_packet.entry(number).or_default().push(view);
        self.by_view.insert((view, number));
    }

    fn forget(&mut self, view: u16) {
        let own: Vec<_> = self.by_view.range((view, 0)..=(view, u16::MAX)).copied().collect();
        for pair in own {
            self.by_view.remove(&pair);
        }
    }

    /// Takes the views of acknowledged packets.
    fn acknowledged(&mut self, sequence: SequenceWord) -> Vec<u16> {
        let mut taken = Vec::new();
        for number in sequence.acked().map(SequenceNumber::get) {
            let views = self.by_packet.remove(&number).into_iter().flatten();
            taken.extend(views.filter(|view| self.by_view.remove(&(*view, number))));
        }
        taken
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reported {
    Goobj(u16),
    UnknownView(u16),
    Rest(Fault),
    Pending(u16),
    Again(u16),
    Replaced(u16),
    OddityKind(Discriminant<Oddity>),
    Unread(usize, Unread),
}

/// The number of a packet in its capture, if any.
type PacketNumber = Option<u64>;

/// A create that could not be decoded.
#[derive(Clone, Copy, Debug)]
struct FailedCreate {
    goid: Option<u16>,
    number: PacketNumber,
}

impl MxoViews {
    /// A tracker without views.
    #[must_use]
    pub fn new(objects: Arc<Objects>) -> Self {
        Self {
            replica: Replica::new(objects),
            reported: HashSet::new(),
            failed: None,
            unread: None,
            creates: Creates::default(),
        }
    }

    /// The current views.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Applies a decrypted packet. `number` is its number in the capture, if any. Returns problems
    /// and warnings.
    ///
    /// # Errors
    /// Those of [`Packet::decode`](worldwire_mxo::frame::Packet::decode), and exceeded limits on
    /// views. The views are then unchanged.
    pub fn take(&mut self, from: Side, packet: &[u8], number: Option<u64>) -> Result<Vec<Note>> {
        self.enter(from, packet)?;
        let packet = self.sections(from).packet(&mut Reader::new(packet))?;
        match from {
            Side::Client => {
                self.creates.client(packet.sequence);
                self.replica.acknowledged(packet.sequence);
            }
            Side::Server => self.creates.server(packet.sequence),
        }
        let mut notes = Vec::new();
        for (index, section) in packet.sections.iter().enumerate() {
            if let PacketSection::Objects(bytes) = section {
                let taken = self.section(from, packet.sequence, bytes, number, &mut notes);
                taken.inspect_err(|error| self.fail(error, number))?;
            } else if let Some(unread) = unread(index, section, from)
                && (self.reported.insert(Reported::Unread(from.index(), unread))
                    || unread == Unread::Rpc)
            {
                let text = format!("{}{}", at(number), unread.text(section, from));
                notes.push(unread.note(text));
            }
        }
        Ok(notes)
    }

    /// Starts a packet. Packets can arrive in any order; each is decoded with the views that
    /// existed when it was sent.
    pub(super) fn enter(&mut self, from: Side, packet: &[u8]) -> Result<()> {
        let head = PacketHead::decode(&mut Reader::new(packet))?;
        if from == Side::Server && head.flags.contains(RccFlags::Reset) {
            self.reset();
        }
        self.replica.packet(from, head.sequence.local, head.time);
        Ok(())
    }

    fn section(
        &mut self,
        from: Side,
        sequence: SequenceWord,
        bytes: &[u8],
        number: PacketNumber,
        notes: &mut Vec<Note>,
    ) -> Result<()> {
        let sections = self.sections(from);
        let section = Section::decode_after_id(&mut Reader::new(bytes), &sections.context())?;
        for (_, oddity) in section.oddities() {
            if self.reported.insert(Reported::OddityKind(discriminant(&oddity))) {
                notes.push(Note::warning(format!("{}{oddity}", at(number))));
            }
        }
        let notices = self.replica.apply(&section, from)?;
        let stale: BTreeSet<u16> = notices.iter().filter_map(stale_view).collect();
        for notice in notices {
            notes.extend(self.describe(&notice, number));
        }
        if !stale.is_empty() {
            let text = format!("{}stale: {}", at(number), late(&stale));
            notes.push(Note::warning(text));
        }
        for operation in &section.operations {
            match operation {
                Operation::Create(create) if !stale.contains(&create.new_view) => {
                    let view = create.new_view;
                    self.reported.remove(&Reported::UnknownView(view));
                    self.creates.sent.add(sequence.local.get(), view);
                }
                Operation::Delete(delete) => {
                    let gone = delete.views.iter().filter(|view| !stale.contains(view));
                    gone.for_each(|view| self.creates.forget(*view));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Records a section that could not be decoded.
    fn fail(&mut self, error: &Error, number: PacketNumber) {
        let is_create = |step: &Step| matches!(step, Step::Field(name) if &**name == "create");
        if error.path().any(is_create) {
            self.failed = Some(FailedCreate { goid: None, number });
        }
        self.unread = Some(number);
    }

    /// Starts a new session without views.
    pub fn reset(&mut self) {
        self.replica.reset();
        self.creates = Creates::default();
        (self.failed, self.unread) = (None, None);
    }

    /// Decodes the next sections from a side.
    pub(super) fn sections(&self, from: Side) -> ObjectSections<'_> {
        ObjectSections { objects: self.replica.objects(), views: &self.replica, from }
    }

    /// Reports something undecoded or odd.
    fn describe(&mut self, notice: &Notice, number: PacketNumber) -> Option<Note> {
        let reported = match notice {
            Notice::UnknownCreate { goid } => {
                self.failed = Some(FailedCreate { goid: Some(*goid), number });
                Reported::Goobj(*goid)
            }
            Notice::Undecoded { view, fault: Fault::UnknownView } => Reported::UnknownView(*view),
            Notice::Undecoded { fault, .. } => Reported::Rest(*fault),
            Notice::BadPending { view, .. } => Reported::Pending(*view),
            // A create that the client may have missed is repeated.
            Notice::CreatedAgain(view) if self.creates.live.contains(view) => {
                Reported::Again(*view)
            }
            Notice::Replaced(view) => {
                self.creates.forget(*view);
                Reported::Replaced(*view)
            }
            _ => return None,
        };
        let is_new = self.reported.insert(reported);
        let text = is_new.then(|| self.text(notice));
        if matches!(notice, Notice::Undecoded { .. } | Notice::UnknownCreate { .. }) {
            self.unread = Some(number);
        }
        let text = format!("{}{}", at(number), text?);
        // Anything not decoded completely is a problem, whatever the reason.
        let is_problem = matches!(
            notice,
            Notice::Undecoded { .. } | Notice::UnknownCreate { .. } | Notice::BadPending { .. }
        );
        Some(if is_problem { Note::problem(text) } else { Note::warning(text) })
    }

    fn text(&self, notice: &Notice) -> String {
        match notice {
            Notice::UnknownCreate { goid } => unknown_goobj(*goid),
            Notice::Undecoded { view, fault: Fault::UnknownView } => {
                format!(
                    "view {view} is unknown, so the rest of the packet is not decoded: {}",
                    self.origin()
                )
            }
            Notice::Undecoded { fault: Fault::ServerOnlyCommand, .. } => {
                "this is a relevance notice, which only servers exchange; the rest of the packet \
                 is not decoded"
                    .to_owned()
            }
            Notice::Undecoded { view, .. } => format!(
                "an update of view {view}{} has a block of unknown layout, so the rest of the \
                 packet is not decoded",
                self.class_of(*view)
            ),
            Notice::BadPending { view, error } => format!("pending update of view {view}: {error}"),
            Notice::CreatedAgain(view) => {
                format!("view {view} is created again, although the client has acknowledged it")
            }
            Notice::Replaced(view) => {
                format!("view {view} is created for another object without being deleted first")
            }
            _ => String::new(),
        }
    }

    /// The class that a view is decoded with.
    fn class_of(&self, view: u16) -> String {
        let view = self.replica.view(view);
        match view.and_then(|view| self.replica.objects().class(view.class())) {
            Some(class) => {
                let file = class.file().map_or(String::new(), |file| format!(" ({file})"));
                format!(", decoded as class {}{file},", class.name())
            }
            None => String::new(),
        }
    }

    /// Explains where an unknown view may come from.
    fn origin(&self) -> String {
        let within = |number: PacketNumber| match number {
            Some(number) => format!(" in packet {number}"),
            None => String::new(),
        };
        match (self.failed, self.unread) {
            (Some(FailedCreate { goid: Some(goid), number }), _) => {
                format!("the create of goobj {goid}{} could not be decoded", within(number))
            }
            (Some(FailedCreate { goid: None, number }), _) => {
                format!("a create{} could not be decoded", within(number))
            }
            (None, Some(Some(number))) => format!(
                "it was created before the capture, in a missing packet, or in the rest of packet \
                 {number}"
            ),
            (None, _) => "it was created before the capture or in a missing packet".to_owned(),
        }
    }
}

fn stale_view(notice: &Notice) -> Option<u16> {
    match notice {
        Notice::Stale(view) => Some(*view),
        _ => None,
    }
}

/// Reports that a late packet's information is outdated.
fn late(views: &BTreeSet<u16>) -> String {
    const MAX_NAMED: usize = 8;
    let mut names: Vec<String> = views.iter().take(MAX_NAMED).map(u16::to_string).collect();
    if views.len() > MAX_NAMED {
        names.push(format!("{} more", views.len() - MAX_NAMED));
    }
    let subject = if views.len() == 1 { "view" } else { "views" };
    format!("the packet was late; newer information about {subject} {} is kept", names.join(", "))
}

fn at(number: PacketNumber) -> String {
    number.map_or(String::new(), |number| format!("packet {number}: "))
}
