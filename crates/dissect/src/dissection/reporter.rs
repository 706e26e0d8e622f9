//! Counts and shows the items of one conversation.

use worldwire_core::Side;

use crate::defect::{Defect, catch_defect};
use crate::family::Family;
use crate::item::{Item, ItemBody, Note, NoteKind, Stamp};
use crate::overview::Overview;
use crate::sink::Sink;

/// Reusable memory and the item's name, for `show`.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The name of the item, as [`Item::push_name`] writes it.
    pub name: String,
    /// Memory for the item's tree, recycled from an earlier one.
    pub tree: worldwire_core::Tree<'static>,
    /// Whether the item was shown before and that output was dropped. A `show` that does more than
    /// append to its sink, such as counting, should do so only if this is false.
    pub is_repeated: bool,
}

/// Counts and shows the items of one conversation.
pub(super) struct Reporter<'t, S, F> {
    pub(super) overview: &'t mut Overview,
    pub(super) scratch: &'t mut Scratch,
    pub(super) sink: &'t mut S,
    pub(super) show: &'t F,
}

impl<S: Sink, F: Fn(&Item<'_>, &mut Scratch, &mut S)> Reporter<'_, S, F> {
    /// Counts and shows an item. A panic here does not affect the conversation, so the next item
    /// can be read.
    pub(super) fn item(&mut self, item: &Item<'_>) {
        let before = self.sink.len();
        let Err(defect) = catch_defect(|| self.count_and_show(item)) else {
            return;
        };
        let mut name = String::new();
        // Writing the name may be what panics.
        if catch_defect(|| item.push_name(&mut name)).is_err() {
            name.push_str("without a readable name");
        }
        let (stream, packet) = (item.stamp.stream, packet_text(item.stamp));
        let subject = format!("{} message {name}, conversation {stream}, {packet}", item.family);
        let note = Note::problem(defect.report(&subject, item.bytes()));
        self.problem(before, &item.replaced_by(note));
    }

    fn count_and_show(&mut self, item: &Item<'_>) {
        let name = &mut self.scratch.name;
        name.clear();
        item.push_name(name);
        match &item.body {
            ItemBody::Message(_) => count(self.overview, item, name),
            ItemBody::Note(Note { kind: NoteKind::Problem, .. }) => self.overview.problems += 1,
            // Only the family knows that datagrams are missing. Gaps in streams are counted as they
            // are captured, whether or not a family reads them.
            ItemBody::Note(Note { kind: NoteKind::Gap, .. }) if self.overview.datagrams => {
                self.overview.gaps += 1;
            }
            ItemBody::Note(_) | ItemBody::Wire(_) => {}
        }
        (self.show)(item, self.scratch, self.sink);
        // Checked after `show`: if that built a tree, the message need not be decoded again.
        self.overview.problems += u64::from(!item.is_whole());
    }

    /// Reports a panic outside any message.
    pub(super) fn given_up(&mut self, defect: &Defect, side: Side, bytes: &[u8], stamp: Stamp) {
        let family = self.overview.family.map_or("unknown", Family::name);
        let (stream, packet) = (stamp.stream, packet_text(stamp));
        let reading =
            format!("{family} conversation {stream}, abandoned at {packet} from the {side}");
        let body = ItemBody::Note(Note::problem(defect.report(&reading, bytes)));
        self.problem(self.sink.len(), &Item::new(stamp, family, side, 0..0, body));
    }

    /// Shows the report of a panic in place of all output after `before`.
    fn problem(&mut self, before: usize, item: &Item<'_>) {
        self.sink.truncate(before);
        self.overview.problems += 1;
        self.scratch.name.clear();
        item.push_name(&mut self.scratch.name);
        if catch_defect(|| (self.show)(item, self.scratch, self.sink)).is_err() {
            // The report itself cannot be shown. The summary still counts it.
            self.sink.truncate(before);
        }
    }
}

/// Names the packet, or the end of the capture.
fn packet_text(stamp: Stamp) -> String {
    stamp.packet.map_or_else(|| "the end".to_owned(), |packet| format!("packet {packet}"))
}

/// Counts a message by its name, and by the names inside. Does not allocate once the names are
/// known.
fn count(overview: &mut Overview, item: &Item<'_>, name: &mut String) {
    overview.messages.add(item.from, name);
    let length = name.len();
    item.push_inside(name);
    if name.len() > length {
        overview.inside.add(item.from, name);
    }
    name.truncate(length);
}
