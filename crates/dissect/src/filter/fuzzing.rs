//! What the fuzz targets of filters call.

use worldwire_core::{Limits, Side};

use super::{Filter, Subject};
use crate::registry::definitions;
use crate::{Codec, CodecOptions, Keys};

/// Reads any text as a filter; what can be read must print as the same filter and answer the same.
///
/// # Panics
/// When it does not.
pub fn filter(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(filter) = Filter::parse(&text) else {
        return;
    };
    let printed = filter.to_string();
    let again = match Filter::parse(&printed) {
        Ok(again) => again,
        Err(error) => panic!("{printed:?} does not read: {error}"),
    };
    assert_eq!(again, filter, "{printed:?} reads as something else");
    let (keys, limits) = (Keys::none(), Limits::DEFAULT);
    let definitions = definitions();
    let options = CodecOptions { from: Side::Client, keys: &keys, definitions, limits: &limits };
    let message = [6, 0, 7, 0, 0, 0, 9, 0, 0, 0];
    let Ok(codec) = Codec::named("uru.auth") else {
        return;
    };
    let tree = codec.decode(&message, &options);
    let subject = Subject {
        name: "auth.AcctSetPlayerRequest",
        family: "uru",
        from: "client",
        stream: 1,
        packet: 2,
        time: 0.5,
        length: 10,
        tree: &tree,
    };
    assert_eq!(filter.matches(&subject), again.matches(&subject));
}
