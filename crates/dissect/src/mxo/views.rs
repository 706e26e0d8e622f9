//! The views of a conversation, as its packets change them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use worldwire_core::{Error, Reader, Result, Side, Step};
use worldwire_mxo::frame::{
    Packet, PacketHead, RccFlags, Section as PacketSection, SequenceNumber, SequenceWord,
};
use worldwire_mxo::message::{Fault, Oddity, Operation, Section};
use worldwire_mxo::replica::{Notice, Replica};
use worldwire_mxo::schema::Objects;

use super::objects::ObjectSections;
use super::unread::{Unread, unread};
use crate::item::Note;

/// The views of one client, followed through the packets of a capture.
///
/// A capture may miss packets, and objects may have classes that nobody knows. What cannot be read
/// then is told once for each goobj, view and reason, and left out.
#[derive(Clone, Debug)]
pub struct MxoViews {
    replica: Replica,
    told: BTreeSet<Told>,
    /// The last create that could not be read.
    failed: Option<Failed>,
    /// The packet of the last section that could not be read to its end.
    unread: Option<Place>,
    carried: Carried,
}

/// Which creates the client has acknowledged.
#[derive(Clone, Debug, Default)]
struct Carried {
    /// The views that each packet of the server created, by its number.
    by_packet: BTreeMap<u16, Vec<u16>>,
    /// The same by view, with those of packets that are not acknowledged.
    by_view: BTreeSet<(u16, u16)>,
    /// The views whose creates have arrived.
    live: BTreeSet<u16>,
}

impl Carried {
    /// A new packet of the server has this number.
    fn begin(&mut self, number: u16) {
        for view in self.by_packet.remove(&number).into_iter().flatten() {
            self.by_view.remove(&(view, number));
        }
    }

    fn create(&mut self, number: u16, view: u16) {
        self.by_packet.entry(number).or_default().push(view);
        self.by_view.insert((view, number));
    }

    /// What the view was is gone.
    fn forget(&mut self, view: u16) {
        self.live.remove(&view);
        let own: Vec<_> = self.by_view.range((view, 0)..=(view, u16::MAX)).copied().collect();
        for pair in own {
            self.by_view.remove(&pair);
        }
    }

    fn acknowledge(&mut self, sequence: SequenceWord) {
        for number in sequence.acked().map(SequenceNumber::get) {
            for view in self.by_packet.remove(&number).into_iter().flatten() {
                if self.by_view.remove(&(view, number)) {
                    self.live.insert(view);
                }
            }
        }
    }
}

/// What was told already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Goobj(u16),
    UnknownView(u16),
    Rest(Fault),
    Pending(u16),
    Again(u16),
    Replaced(u16),
    Odd(Odd),
    Unread(usize, Unread),
}

/// The kinds of oddities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Odd {
    Flags,
    NotNormal,
    Tail,
    Padding,
    Nothing,
    Unterminated,
    Other,
}

/// The number of a packet in its capture, if there is one.
type Place = Option<u64>;

/// A create that could not be read.
#[derive(Clone, Copy, Debug)]
struct Failed {
    goid: Option<u16>,
    place: Place,
}

impl MxoViews {
    /// No views yet.
    #[must_use]
    pub fn new(objects: Arc<Objects>) -> Self {
        Self {
            replica: Replica::new(objects),
            told: BTreeSet::new(),
            failed: None,
            unread: None,
            carried: Carried::default(),
        }
    }

    /// The views.
    #[must_use]
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Takes in a packet of a side, decrypted, with its number in the capture if it has one.
    /// Returns what there is to say of it.
    ///
    /// # Errors
    /// Those of [`Packet::decode`], and the limits on views; views are as they were then.
    pub fn take(&mut self, from: Side, packet: &[u8], place: Option<u64>) -> Result<Vec<Note>> {
        self.enter(from, packet)?;
        let sections = self.sections(from);
        let mut measure = |bytes: &[u8]| Ok(sections.measure(bytes));
        let packet = Packet::decode_lenient(&mut Reader::new(packet), Some(from), &mut measure)?;
        match from {
            Side::Client => self.carried.acknowledge(packet.sequence),
            Side::Server => self.carried.begin(packet.sequence.local.get()),
        }
        let mut said = Vec::new();
        for (index, section) in packet.sections.iter().enumerate() {
            if let PacketSection::Objects(bytes) = section {
                let taken = self.section(from, packet.sequence, bytes, place, &mut said);
                taken.inspect_err(|error| self.fail(error, place))?;
            } else if let Some(unread) = unread(index, section, from)
                && (self.told.insert(Told::Unread(from.index(), unread)) || unread == Unread::Rpc)
            {
                let text = format!("{}{}", at(place), unread.text(section, from));
                said.push(unread.note(text));
            }
        }
        Ok(said)
    }

    /// A packet comes, in whatever order: what is read then is read as it was sent.
    ///
    /// # Errors
    /// Those of [`PacketHead::decode`].
    pub(super) fn enter(&mut self, from: Side, packet: &[u8]) -> Result<()> {
        let head = PacketHead::decode(&mut Reader::new(packet))?;
        if from == Side::Server && head.flags.contains(RccFlags::Reset) {
            self.begin_anew();
        }
        self.replica.packet(from, head.sequence.local, head.time);
        Ok(())
    }

    fn section(
        &mut self,
        from: Side,
        sequence: SequenceWord,
        bytes: &[u8],
        place: Place,
        said: &mut Vec<Note>,
    ) -> Result<()> {
        let sections = self.sections(from);
        let section = Section::decode_after_id(&mut Reader::new(bytes), &sections.context())?;
        for (_, oddity) in section.oddities() {
            if self.told.insert(Told::Odd(kind(&oddity))) {
                said.push(Note::warning(format!("{}{oddity}", at(place))));
            }
        }
        let notices = self.replica.apply(&section, from)?;
        let stale: BTreeSet<u16> = notices.iter().filter_map(stale_view).collect();
        for notice in notices {
            said.extend(self.describe(&notice, place));
        }
        if !stale.is_empty() {
            let text = format!("{}stale: {}", at(place), late(&stale));
            said.push(Note::warning(text));
        }
        for operation in &section.operations {
            match operation {
                Operation::Create(create) if !stale.contains(&create.new_view) => {
                    let view = create.new_view;
                    self.told.remove(&Told::UnknownView(view));
                    self.carried.create(sequence.local.get(), view);
                }
                Operation::Delete(delete) => {
                    let gone = delete.views.iter().filter(|view| !stale.contains(view));
                    gone.for_each(|view| self.carried.forget(*view));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A section could not be read.
    fn fail(&mut self, error: &Error, place: Place) {
        let is_create = |step: &Step| matches!(step, Step::Field(name) if &**name == "create");
        if error.path().any(is_create) {
            self.failed = Some(Failed { goid: None, place });
        }
        self.unread = Some(place);
    }

    /// Another session begins: there are no views.
    pub fn begin_anew(&mut self) {
        self.replica.reset();
        self.carried = Carried::default();
        (self.failed, self.unread) = (None, None);
    }

    /// What reads the sections of a side that come next.
    pub(super) fn sections(&self, from: Side) -> ObjectSections<'_> {
        ObjectSections { objects: self.replica.objects(), views: &self.replica, from }
    }

    /// What there is to say of what was not read, or is odd.
    fn describe(&mut self, notice: &Notice, place: Place) -> Option<Note> {
        let told = match notice {
            Notice::UnknownCreate { goid } => {
                self.failed = Some(Failed { goid: Some(*goid), place });
                Told::Goobj(*goid)
            }
            Notice::Undecoded { view, fault: Fault::UnknownView } => Told::UnknownView(*view),
            Notice::Undecoded { fault, .. } => Told::Rest(*fault),
            Notice::BadPending { view, .. } => Told::Pending(*view),
            // One that the client may not have yet is repeated.
            Notice::CreatedAgain(view) if self.carried.live.contains(view) => Told::Again(*view),
            Notice::Replaced(view) => {
                self.carried.forget(*view);
                Told::Replaced(*view)
            }
            _ => return None,
        };
        let is_new = self.told.insert(told);
        let text = is_new.then(|| self.text(notice));
        if matches!(notice, Notice::Undecoded { .. } | Notice::UnknownCreate { .. }) {
            self.unread = Some(place);
        }
        let text = format!("{}{}", at(place), text?);
        // What is not read to its end is a problem, whatever the reason.
        let is_problem = matches!(
            notice,
            Notice::Undecoded { .. } | Notice::UnknownCreate { .. } | Notice::BadPending { .. }
        );
        Some(if is_problem { Note::problem(text) } else { Note::warning(text) })
    }

    fn text(&self, notice: &Notice) -> String {
        match notice {
            Notice::UnknownCreate { goid } => format!(
                "goobj {goid} has no known class, so the rest of the packet is not read; give its \
                 table with --data"
            ),
            Notice::Undecoded { view, fault: Fault::UnknownView } => {
                format!(
                    "view {view} is not known, so the rest of the packet is not read: {}",
                    self.origin()
                )
            }
            Notice::Undecoded { fault: Fault::ServerOnlyCommand, .. } => {
                "a relevance notice, which only servers send to each other; the rest of the packet \
                 is not read"
                    .to_owned()
            }
            Notice::Undecoded { view, .. } => format!(
                "an update of view {view}{} has a block of unknown layout; the rest of the packet \
                 is not read",
                self.class_of(*view)
            ),
            Notice::BadPending { view, error } => format!("pending update of view {view}: {error}"),
            Notice::CreatedAgain(view) => {
                format!("view {view} is created again though the client has acknowledged it")
            }
            Notice::Replaced(view) => {
                format!("view {view} is created for another object without being deleted")
            }
            _ => String::new(),
        }
    }

    /// By which class a view is read.
    fn class_of(&self, view: u16) -> String {
        let view = self.replica.view(view);
        match view.and_then(|view| self.replica.objects().class(view.class())) {
            Some(class) => {
                let file = class.file().map_or(String::new(), |file| format!(" ({file})"));
                format!(", read as class {}{file},", class.name())
            }
            None => String::new(),
        }
    }

    /// Where a view may come from that is not known.
    fn origin(&self) -> String {
        let within = |place: Place| match place {
            Some(number) => format!(" in packet {number}"),
            None => String::new(),
        };
        match (self.failed, self.unread) {
            (Some(Failed { goid: Some(goid), place }), _) => {
                format!("the create of goobj {goid}{} could not be read", within(place))
            }
            (Some(Failed { goid: None, place }), _) => {
                format!("a create{} could not be read", within(place))
            }
            (None, Some(Some(number))) => format!(
                "it was created before the capture, in a packet that is missing, or in the rest of \
                 packet {number}"
            ),
            (None, _) => {
                "it was created before the capture or in a packet that is missing".to_owned()
            }
        }
    }
}

fn stale_view(notice: &Notice) -> Option<u16> {
    match notice {
        Notice::Stale(view) => Some(*view),
        _ => None,
    }
}

/// What a packet that came late says too late.
fn late(views: &BTreeSet<u16>) -> String {
    const MAX_NAMED: usize = 8;
    let mut names: Vec<String> = views.iter().take(MAX_NAMED).map(u16::to_string).collect();
    if views.len() > MAX_NAMED {
        names.push(format!("{} more", views.len() - MAX_NAMED));
    }
    let subject = if views.len() == 1 { "view" } else { "views" };
    format!("it came late; what is known of {subject} {} is newer and is kept", names.join(", "))
}

fn at(place: Place) -> String {
    place.map_or(String::new(), |number| format!("packet {number}: "))
}

fn kind(oddity: &Oddity) -> Odd {
    match oddity {
        Oddity::Flags(_) => Odd::Flags,
        Oddity::NotNormal => Odd::NotNormal,
        Oddity::Tail(_) => Odd::Tail,
        Oddity::Padding(_) => Odd::Padding,
        Oddity::NothingDeleted | Oddity::NothingUpdated => Odd::Nothing,
        Oddity::Unterminated => Odd::Unterminated,
        _ => Odd::Other,
    }
}
