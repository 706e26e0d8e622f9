//! The classes of objects that an age's messages have named.

use std::collections::{BTreeSet, HashMap};

use worldwire_uru::plasma_message::PlasmaMessage;
use worldwire_uru::types::{Key, SequenceNumber, Uoid};

/// The classes of objects, by name and page. A scene object and its modifiers can share a name.
#[derive(Debug, Default)]
pub(super) struct SeenClasses {
    objects: HashMap<(SequenceNumber, String), BTreeSet<u16>>,
}

/// The maximum number of objects remembered. Later ones are ignored.
const MAX_OBJECTS: usize = 65_536;
/// The maximum number of classes remembered for one name.
const MAX_CLASSES: usize = 16;

impl SeenClasses {
    pub(super) fn see(&mut self, object: &Uoid<'_>) {
        let key = (object.location.sequence_number, object.name.to_text());
        if self.objects.len() == MAX_OBJECTS && !self.objects.contains_key(&key) {
            return;
        }
        let classes = self.objects.entry(key).or_default();
        if classes.len() < MAX_CLASSES {
            classes.insert(object.class_index);
        }
    }

    /// Records the classes of a message's sender and receivers, unless the message is a reply from
    /// the server, which only repeats the class in the request.
    pub(super) fn see_ends(&mut self, message: &PlasmaMessage<'_>) {
        let is_answer = matches!(message, PlasmaMessage::ServerReplyMsg(_));
        let Some(header) = message.header().filter(|_| !is_answer) else { return };
        let ends = header.receivers.iter().chain([&header.sender]);
        ends.filter_map(Key::uoid).for_each(|object| self.see(object));
    }

    /// The classes seen for a name on a page, in ascending order.
    pub(super) fn of(&self, page: SequenceNumber, name: &str) -> impl Iterator<Item = u16> + '_ {
        let classes = self.objects.get(&(page, name.to_owned()));
        classes.into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use worldwire_uru::types::{Location, LocationFlags};

    use super::*;

    fn object(name: &str, class_index: u16) -> Uoid<'_> {
        let (sequence_number, flags) = (SequenceNumber(0x22), LocationFlags(0));
        let location = Location { sequence_number, flags };
        let (load_mask, object_id, clone) = (None, 0, None);
        Uoid { location, load_mask, class_index, object_id, name: name.into(), clone }
    }

    #[test]
    fn classes_are_remembered_by_name_and_page() {
        let mut seen = SeenClasses::default();
        for class in [0x2d, 1, 0x2d] {
            seen.see(&object("Lever", class));
        }
        let of = |page, name| seen.of(SequenceNumber(page), name).collect::<Vec<_>>();
        assert_eq!(of(0x22, "Lever"), [1, 0x2d]);
        assert!(of(0x23, "Lever").is_empty() && of(0x22, "Door").is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let mut seen = SeenClasses::default();
        for class in 0..100 {
            seen.see(&object("Lever", class));
        }
        assert_eq!(seen.of(SequenceNumber(0x22), "Lever").count(), MAX_CLASSES);
        for number in 0..=MAX_OBJECTS {
            seen.see(&object(&number.to_string(), 1));
        }
        assert_eq!(seen.objects.len(), MAX_OBJECTS);
        // Known objects are still updated.
        seen.see(&object("7", 2));
        assert_eq!(seen.of(SequenceNumber(0x22), "7").count(), 2);
    }
}
