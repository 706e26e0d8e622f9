//! The built-in message definitions.

use crate::types::FieldType;

use super::{FieldDef, Message, Protocol};

/// The origin of built-in protocols, in place of a file name.
pub(super) const ORIGIN: &str = "built in";

const TABLE: &str = include_str!("built_in.txt");

/// Parses the table. Malformed lines are skipped; a test ensures that there are none.
pub(super) fn protocols() -> Vec<Protocol> {
    TABLE.split("\nservice ").skip(1).filter_map(protocol).collect()
}

fn protocol(text: &str) -> Option<Protocol> {
    let (head, body) = text.split_once('\n')?;
    let mut words = head.split(' ');
    let service = words.next()?.parse().ok()?;
    let kind = words.next()?;
    let flags: Vec<&str> = words.collect();
    // An indented line continues the line before it.
    let body = body.replace("\n  ", " ");
    let messages = body.lines().filter_map(|line| message(service, line)).collect();
    let mut protocol = Protocol::assemble(service, kind, ORIGIN, messages);
    protocol.version = 1;
    protocol.is_explicit = flags.contains(&"explicit");
    protocol.is_partial = flags.contains(&"partial");
    Some(protocol)
}

fn message(service: u8, line: &str) -> Option<Message> {
    let mut words = line.split(' ').peekable();
    let order = words.next()?.parse().ok()?;
    let tag = words.next()?;
    let level = words.next_if(|word| word.starts_with('@'));
    let (mut fields, mut appended) = (Vec::new(), Vec::new());
    let mut list = &mut fields;
    for word in words {
        match word.split_once(':') {
            Some((name, kind)) => list.push(FieldDef::new(name, FieldType::parse(kind)?.0)),
            None => list = &mut appended,
        }
    }
    let mut message =
        Message::with_fields(service, order, tag.strip_suffix('?').unwrap_or(tag), fields);
    message.access_level = level.and_then(|word| word[1..].parse().ok()).unwrap_or(0);
    message.is_tag_inferred = tag.ends_with('?');
    message.appended = appended;
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::super::Protocols;
    use super::*;

    #[test]
    fn every_line_is_a_message() {
        let protocols = protocols();
        let messages: usize = protocols.iter().map(|protocol| protocol.messages().len()).sum();
        let lines = TABLE.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
        assert_eq!(messages, lines.count());
        let sizes: Vec<_> = protocols.iter().map(|p| (p.service, p.messages().len())).collect();
        assert_eq!(sizes, [(1, 2), (2, 6), (5, 22), (7, 28), (8, 3)]);
    }

    #[test]
    fn messages_are_found_by_number_and_name() {
        let protocols = Protocols::built_in();
        let message = protocols.message(7, 27).unwrap();
        assert_eq!(protocols.name(message), "LOGIN.MSG_USER_AUTHEN_V3");
        assert_eq!(message.access_level, 1);
        assert_eq!(message.fields().len(), 10);
        assert_eq!(message.appended().len(), 3);
        for name in ["LOGIN.MSG_USER_AUTHEN_V3", "7.MSG_USER_AUTHEN_V3", "7.27", "LOGIN.27"] {
            assert_eq!(protocols.message_named(name), Some(message), "{name}");
        }
        assert_eq!(
            protocols.suggest("LOGIN.MSG_USER_AUTHN_V3").as_deref(),
            Some("LOGIN.MSG_USER_AUTHEN_V3")
        );
        assert!(protocols.service(5).unwrap().is_partial);
        assert!(protocols.service(8).is_some_and(|patch| !patch.is_partial));
        assert!(protocols.message(7, 0).is_none());
        assert!(protocols.message(6, 1).is_none());
    }
}
