//! Transaction numbers, by which replies refer to requests.

use std::collections::HashMap;
use std::sync::LazyLock;

use worldwire_core::Side;
use worldwire_uru::connection::{Received, Unit};
use worldwire_uru::frame::{Service, table};

/// The positions of transaction numbers in messages, counted in bytes from the message number.
static PLACES: LazyLock<HashMap<(Service, Side, u32), usize>> = LazyLock::new(|| {
    let tables =
        Service::ALL.into_iter().flat_map(|service| Side::BOTH.map(|side| (service, side)));
    let mut places = HashMap::new();
    for (service, side) in tables {
        for message in table(service, side).messages {
            let fields = (message.fields)();
            let before = fields.iter().take_while(|field| field.name != "transId");
            // In some messages, four-byte numbers precede `transId`.
            let index = before.take_while(|field| field.layout == "u32").count();
            if fields.get(index).is_some_and(|field| field.name == "transId") {
                places.insert((service, side, message.number), index * 4);
            }
        }
    }
    places
});

/// The transaction number of a message.
pub(super) fn number(received: &Received<'_>) -> Option<u64> {
    let Unit::Message(service) = received.unit else { return None };
    let bytes = received.bytes;
    let (number, head) = match service {
        Service::File => (u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?), 8),
        _ => (u16::from_le_bytes(*bytes.first_chunk()?).into(), 2),
    };
    let place = PLACES.get(&(service, received.side, number))?;
    let bytes = bytes.get(head + place..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes).into())
}

#[cfg(test)]
mod tests {
    use worldwire_core::Sampler;
    use worldwire_uru::frame::Message;

    use super::*;

    #[test]
    fn numbers_are_those_of_the_fields() {
        let mut sampler = Sampler::new(7);
        let (mut found, mut without) = (0, 0);
        for service in Service::ALL {
            for side in Side::BOTH {
                for info in table(service, side).messages {
                    let message = Message::sample(service, side, info.number, &mut sampler);
                    let bytes = message.unwrap().to_bytes().unwrap();
                    let unit = Unit::Message(service);
                    let received =
                        Received { side, unit, bytes: &bytes, offset: 0, encrypted: false };
                    let limits = worldwire_core::Limits::DEFAULT;
                    let tree = received.tree(worldwire_core::Tree::new(), &limits);
                    let field = tree.find("fields.transId").and_then(|node| node.unsigned());
                    assert_eq!(number(&received), field, "{} {}", service.name(), info.name);
                    *(if field.is_some() { &mut found } else { &mut without }) += 1;
                }
            }
        }
        assert!(found > 80 && without > 10, "{found} {without}");
    }
}
