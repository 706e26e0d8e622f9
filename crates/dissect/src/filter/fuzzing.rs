//! Fuzz target of filters.

use std::sync::LazyLock;

use worldwire_core::{Limits, Side};

use super::resolve::Known;
use super::{Filter, Subject};
use crate::item::{Ends, Time};
use crate::registry::definitions;
use crate::{Codec, CodecOptions, Keys};

/// The names that filters are resolved against. Collecting them takes longer than a run.
static KNOWN: LazyLock<Known<'static>> = LazyLock::new(|| Known::new(definitions()));

/// Parses any text as a filter. A valid filter must print as the same filter, with the same result.
///
/// # Panics
/// If the filter prints as anything else.
pub fn filter(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(filter) = Filter::parse(&text) else {
        return;
    };
    let printed = filter.to_string();
    let again = match Filter::parse(&printed) {
        Ok(again) => again,
        Err(error) => panic!("{printed:?} does not parse: {error}"),
    };
    assert_eq!(again, filter, "{printed:?} parses as something else");
    let (keys, limits) = (Keys::none(), Limits::DEFAULT);
    let definitions = definitions();
    let options = CodecOptions { from: Side::Client, keys: &keys, definitions, limits: &limits };
    let message = [6, 0, 7, 0, 0, 0, 9, 0, 0, 0];
    let Ok(codec) = Codec::named("uru.auth") else {
        return;
    };
    let tree = codec.decode(&message, &options);
    let ends = ["192.0.2.10:49154", "192.0.2.1:14617"].map(|end| end.parse().expect("an address"));
    let ends = Ends::new(ends[0], ends[1]);
    let subject = Subject {
        name: "auth.AcctSetPlayerRequest",
        family: "uru",
        from: "client",
        stream: 1,
        packet: 2,
        time: 0.5,
        date: Time(1_767_225_600_631_500_000),
        ends: Some(&ends),
        length: 10,
        tree: &tree,
        item: None,
    };
    assert_eq!(filter.matches(&subject), again.matches(&subject));
    let resolved = KNOWN.resolve(filter.expression, &mut Vec::new());
    let _ = Filter::of(resolved).matches(&subject);
}
