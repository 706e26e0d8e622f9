//! Texts in login messages and RPC messages, all in Windows-1252.
//!
//! | type | bytes | JSON |
//! | --- | --- | --- |
//! | [`Str`] | `u16` length with the zero, text, a zero; length 0 means none | a string, or null |
//! | [`Padded`] | text and zeros, of a fixed size | a string |
//! | [`Terminated`] | text, a zero | a string |
//! | [`Remaining`] | text to the end | a string |
//!
//! In JSON, text with bytes that mean something else in ISO 8859-1 is written as bytes, such as
//! `{"$hex": "80"}`. So is padded text with other bytes after its first zero.

use core::fmt;
use std::borrow::Cow;

use worldwire_core::json::{self, Given, Json};
use worldwire_core::{
    Error, Field, Form, Reader, Result, Sampler, Shape, Span, Trace, Value, Writer,
};

use super::text;
use super::value::windows_1252;

/// Text in Windows-1252 after its length, with a terminating zero. Length 0 means that there is no
/// text.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Str<'d>(Option<Cow<'d, [u8]>>);

impl<'d> Str<'d> {
    /// No text: only the length, 0.
    pub const NONE: Self = Self(None);

    /// The maximum size of the text in bytes.
    pub const MAX: usize = u16::MAX as usize - 1;

    /// Creates a text.
    ///
    /// # Errors
    /// A value error for text that is too long, or contains a zero or a character that is not in
    /// Windows-1252.
    pub fn new(text: &str) -> Result<Str<'static>> {
        checked(windows_1252(text)?, Str::MAX).map(|bytes| Str(Some(bytes.into())))
    }

    /// The text; empty if there is none.
    #[must_use]
    pub fn text(&self) -> String {
        text::decode(self.bytes())
    }

    /// The bytes of the text; empty if there is none.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The number of bytes on the wire.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        2 + self.0.as_ref().map_or(0, |bytes| bytes.len() + 1)
    }

    /// Whether there is no text, not even an empty one.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for Str<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(bytes) => fmt::Debug::fmt(&text::decode(bytes), f),
            None => f.write_str("none"),
        }
    }
}

impl<'d> Field<'d> for Str<'d> {
    type Owned = Str<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("u16 length, text, 00")
    }

    fn shape() -> Shape {
        Shape::Counted { form: Form::Latin1, count: 2, unit: 1, end: 1 }
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let start = reader.place_if_on();
        let length = reader.take_array().map_err(|error| error.inside(name))?;
        let at = reader.position();
        let length = usize::from(u16::from_le_bytes(length));
        let bytes = reader.take(length).map_err(|error| error.inside(name))?;
        let Some((last, text)) = bytes.split_last() else {
            reader.leaf_from(name, start, Value::Null);
            return Ok(Self::NONE);
        };
        if *last != 0 || text.contains(&0) {
            let found = if *last == 0 { "a NUL before the end" } else { "no NUL" };
            let error = Error::malformed("text with a single NUL, at its end", found);
            return Err(error.at(at as u64).inside(name));
        }
        if T::ON {
            reader.leaf_from(name, start, shown(text, at));
        }
        Ok(Self(Some(Cow::Borrowed(text))))
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let Some(text) = &self.0 else {
            writer.u16(0);
            return Ok(());
        };
        let Some(length) = u16::try_from(text.len()).ok().and_then(|length| length.checked_add(1))
        else {
            return Err(Error::limit("bytes of text", Self::MAX as u64, text.len() as u64));
        };
        writer.u16(length);
        writer.bytes(text);
        writer.u8(0);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        if json.is_null() {
            return Ok(Self::NONE);
        }
        checked(text_from_json(&json)?, Self::MAX).map(|bytes| Self(Some(bytes.into())))
    }

    fn sample(sampler: &mut Sampler) -> Self {
        if sampler.below(8) == 0 {
            return Self::NONE;
        }
        Self(Some(sample_text(sampler, 24).into()))
    }

    fn into_owned(self) -> Self::Owned {
        Str(self.0.map(|bytes| Cow::Owned(bytes.into_owned())))
    }
}

/// Text in Windows-1252, padded with zeros to `N` bytes. Other bytes after the first zero are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Padded<const N: usize>([u8; N]);

impl<const N: usize> Padded<N> {
    /// Creates a text.
    ///
    /// # Errors
    /// A value error for text that is longer than `N` bytes, or contains a zero or a character that
    /// is not in Windows-1252.
    pub fn new(text: &str) -> Result<Self> {
        checked(windows_1252(text)?, N).map(|bytes| Self::of(&bytes))
    }

    /// The text up to the first zero.
    #[must_use]
    pub fn text(&self) -> String {
        text::decode(text::split(&self.0).0)
    }

    fn of(bytes: &[u8]) -> Self {
        let mut padded = [0; N];
        padded.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Self(padded)
    }
}

impl<const N: usize> Default for Padded<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> fmt::Debug for Padded<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}

impl<'d, const N: usize> Field<'d> for Padded<N> {
    type Owned = Self;
    const LEAST: usize = N;

    fn layout() -> Cow<'static, str> {
        Cow::Owned(format!("text({N})"))
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        let (start, at) = (reader.place_if_on(), reader.position());
        let bytes: [u8; N] = reader.take_array().map_err(|error| error.inside(name))?;
        if T::ON {
            let (text, rest) = text::split(&bytes);
            // Text is shown without its zeros. Anything else after it is shown as bytes, with all
            // zeros.
            let is_text = rest.is_none_or(|rest| rest.iter().all(|byte| *byte == 0));
            let value = match is_text && text::is_latin1(text) {
                true => shown(text, at),
                false => span(Form::Bytes, at, N),
            };
            reader.leaf_from(name, start, value);
        }
        Ok(Self(bytes))
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        writer.bytes(&self.0);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        if let Json::String(text) = json.json() {
            return Self::new(text);
        }
        <[u8; N]>::from_json(json).map(Self)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        if sampler.below(8) == 0 {
            return Self(Field::sample(sampler));
        }
        Self::of(&sample_text(sampler, N as u64))
    }

    fn into_owned(self) -> Self {
        self
    }
}

macro_rules! texts {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $layout:literal, $least:literal, $holds:expr;
        take |$reader:ident| $take:expr;
        $(=> |$writer:ident| $end:expr;)?
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, PartialEq, Eq, Default)]
        pub struct $name<'d>(Cow<'d, [u8]>);

        impl<'d> $name<'d> {
            /// Creates a text.
            ///
            /// # Errors
            /// A value error for a character that cannot be written.
            pub fn new(text: &str) -> Result<$name<'static>> {
                Self::of(windows_1252(text)?)
            }

            fn of(bytes: Vec<u8>) -> Result<$name<'static>> {
                let holds: fn(&[u8]) -> bool = $holds;
                match holds(&bytes) {
                    true => Ok($name(bytes.into())),
                    false => Err(Error::value("text without NUL characters", "a NUL character")),
                }
            }

            /// The text.
            #[must_use]
            pub fn text(&self) -> String {
                text::decode(&self.0)
            }
        }

        impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.text(), f)
            }
        }

        impl<'d> Field<'d> for $name<'d> {
            type Owned = $name<'static>;
            const LEAST: usize = $least;

            fn layout() -> Cow<'static, str> {
                Cow::Borrowed($layout)
            }

            fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
                let (start, at) = (reader.place_if_on(), reader.position());
                let $reader = &mut *reader;
                let bytes: &'d [u8] = $take.map_err(|error: Error| error.inside(name))?;
                if T::ON {
                    reader.leaf_from(name, start, shown(bytes, at));
                }
                Ok(Self(bytes.into()))
            }

            fn encode(&self, writer: &mut Writer) -> Result<()> {
                writer.bytes(&self.0);
                $(
                    let $writer = writer;
                    $end;
                )?
                Ok(())
            }

            fn from_json(json: Given<'_>) -> Result<Self> {
                Self::of(text_from_json(&json)?)
            }

            fn sample(sampler: &mut Sampler) -> Self {
                Self(sample_text(sampler, 24).into())
            }

            fn into_owned(self) -> Self::Owned {
                $name(Cow::Owned(self.0.into_owned()))
            }
        }
    )*};
}

texts! {
    /// Text in Windows-1252 up to a zero.
    Terminated: "text, 00", 1, |bytes| !bytes.contains(&0);
    take |reader| {
        let (text, rest) = text::split(reader.rest());
        match rest {
            Some(_) => reader.take(text.len() + 1).map(|_| text),
            None => Err(reader.place_error(Error::incomplete(text.len() + 1, text.len()))),
        }
    };
    => |writer| writer.u8(0);

    /// Text in Windows-1252 up to the end.
    Remaining: "text to the end", 0, |_| true;
    take |reader| reader.take(reader.remaining());
}

/// Text at this position. Bytes that mean something else in ISO 8859-1 are shown as bytes.
fn shown<'n>(text: &[u8], at: usize) -> Value<'n> {
    let form = if text::is_latin1(text) { Form::Latin1 } else { Form::Bytes };
    span(form, at, text.len())
}

fn span<'n>(form: Form, at: usize, length: usize) -> Value<'n> {
    let narrow = |offset| u32::try_from(offset).unwrap_or(u32::MAX);
    Value::Span(Span { form, start: narrow(at), length: narrow(length) })
}

fn text_from_json(json: &Json) -> Result<Vec<u8>> {
    match json {
        Json::String(text) => windows_1252(text),
        _ => json::text(json, |text| text.as_bytes().to_vec()),
    }
}

/// Text of at most `most` bytes, without a zero.
fn checked(bytes: Vec<u8>, most: usize) -> Result<Vec<u8>> {
    if bytes.contains(&0) {
        return Err(Error::value("text without NUL characters", "a NUL character"));
    }
    if bytes.len() > most {
        return Err(Error::limit("bytes of text", most as u64, bytes.len() as u64));
    }
    Ok(bytes)
}

fn sample_text(sampler: &mut Sampler, most: u64) -> Vec<u8> {
    let length = sampler.length(most);
    let mut text = sampler.bytes(length);
    text.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b'0');
    text
}
