//! A list of families, and lookups over all of them.

use core::fmt;

use worldwire_core::json::{Json, expected};
use worldwire_core::{Error, Result};

use crate::codec::{Codec, CodecOptions};
use crate::family::{Family, Opening, Verdict};
use crate::line::{Blob, Line};

/// The families that a program knows.
#[derive(Clone, Copy)]
pub struct Families(&'static [&'static dyn Family]);

impl Families {
    /// A list in the order in which families are asked to recognise a conversation.
    #[must_use]
    pub const fn new(families: &'static [&'static dyn Family]) -> Self {
        Self(families)
    }

    /// All families of the list.
    pub fn iter(self) -> impl Iterator<Item = &'static dyn Family> {
        self.0.iter().copied()
    }

    /// The family of that name; the error suggests the nearest known name.
    pub fn named(self, name: &str) -> Result<&'static dyn Family> {
        self.iter().find(|family| family.name() == name).ok_or_else(|| {
            let error = Error::invalid(format!("unknown family \"{name}\""));
            match worldwire_core::nearest(name, self.iter().map(Family::name)) {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => error,
            }
        })
    }

    /// All codecs, by family and name.
    pub fn codecs(self) -> impl Iterator<Item = &'static Codec> {
        self.iter().flat_map(|family| family.codecs())
    }

    /// The codec of that name; the error suggests the nearest known name.
    pub fn codec(self, name: &str) -> Result<&'static Codec> {
        self.codecs().find(|codec| codec.name == name).ok_or_else(|| {
            let error = Error::invalid(format!("unknown codec \"{name}\""));
            match worldwire_core::nearest(name, self.codecs().map(|codec| codec.name)) {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => error.hint("`worldwire codecs` lists them"),
            }
        })
    }

    /// Asks each family in turn whether it recognises a conversation.
    pub(crate) fn recognize(self, opening: &Opening<'_>) -> Recognition {
        let mut wait = false;
        for family in self.iter().filter(|family| !opening.datagrams || family.speaks_datagrams()) {
            match family.recognize(opening) {
                Verdict::Yes => return Recognition::Yes { family, swapped: false },
                Verdict::Swapped => return Recognition::Yes { family, swapped: true },
                Verdict::NeedMore => wait = true,
                Verdict::No => {}
            }
        }
        if wait { Recognition::NeedMore } else { Recognition::No }
    }
}

impl fmt::Debug for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Family::name)).finish()
    }
}

/// The verdict of all families together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recognition {
    /// The first family that claims the conversation.
    Yes {
        /// The family.
        family: &'static dyn Family,
        /// Whether the presumed client is the server.
        swapped: bool,
    },
    /// No family recognises it.
    No,
    /// At least one family needs more bytes to decide.
    NeedMore,
}

impl Line<'_> {
    /// Encodes the message of this line.
    ///
    /// Unchanged JSON yields the bytes that were read, decrypted and without the frame around them.
    /// Definitions that choose a build apply here too. If the line has an error, its `payload` is
    /// used and its fields are ignored. `None` for a step of connection setup that is not a
    /// message.
    ///
    /// # Errors
    /// `Value` if the family or message is unknown or the fields do not fit the message.
    pub fn encode(&self, options: &CodecOptions<'_>) -> Result<Option<Vec<u8>>> {
        if let Some(payload) = self.payload_of_error() {
            return payload.map(Some);
        }
        let families = options.definitions.families();
        let blob = self.blob(families)?;
        let options = CodecOptions { from: self.from, ..*options };
        let encode = |(codec, json)| families.codec(codec)?.encode(json, &options);
        blob.map(encode).transpose().map_err(|error| {
            let family = self.family(families).ok();
            let advice = family
                .and_then(|family| family.vocabulary().advice_on(self.name, options.definitions));
            match advice {
                Some(advice) => error.hint(advice),
                None => error,
            }
        })
    }

    /// The codec of the message, and the JSON that the codec takes. `None` for a step of connection
    /// setup without a codec.
    pub fn blob(&self, families: Families) -> Result<Option<Blob>> {
        let family = self.family(families)?;
        family.blob(self).map_err(|error| error.about(self.name.to_owned()))
    }

    fn family(&self, families: Families) -> Result<&'static dyn Family> {
        let family = match self.members.get("family") {
            Some(Json::String(family)) => families.named(family),
            Some(other) => Err(expected("the name of a family", other)),
            None => Err(Error::invalid("the line does not name a family")),
        };
        family.map_err(|error| error.inside("family"))
    }
}
