//! Reads property values from the wire and reports them to a trace.

use worldwire_core::{Form, Place, Reader, Result, Span, Trace, Value as Shown};

use super::{PropertyType, text};

impl PropertyType {
    /// Reads the bytes of a value and reports their meaning to the trace under this name.
    #[inline]
    pub fn decode<'d, 'n, T: Trace<'n>>(
        self,
        reader: &mut Reader<'d, T>,
        name: &'n str,
    ) -> Result<&'d [u8]> {
        if !T::ON {
            return reader.take(self.size().into()).map_err(|error| error.inside(name));
        }
        self.decode_shown(reader, name)
    }

    /// Reads length-prefixed text: a length byte and that many bytes, without padding.
    #[inline]
    pub fn decode_counted<'d, 'n, T: Trace<'n>>(
        reader: &mut Reader<'d, T>,
        name: &'n str,
    ) -> Result<&'d [u8]> {
        let start = reader.place_if_on();
        let outcome = reader
            .take_array::<1>()
            .and_then(|[length]| reader.take(length.into()))
            .map_err(|error| error.inside(name))?;
        if T::ON {
            let span = reader.span_behind(form(outcome), outcome.len());
            reader.leaf_from(name, start, span);
        }
        Ok(outcome)
    }

    fn decode_shown<'d, 'n, T: Trace<'n>>(
        self,
        reader: &mut Reader<'d, T>,
        name: &'n str,
    ) -> Result<&'d [u8]> {
        let start = reader.place();
        let size = usize::from(self.size());
        let whole = reader.rest().get(..size);
        let Some(bytes) = whole else {
            // The size is known in advance, so an incomplete value is never read in part.
            return reader.take(size).map_err(|error| error.inside(name));
        };
        let parts: &[&str] = match self {
            Self::Vector3d | Self::Vector3f => &["x", "y", "z"],
            Self::Quaternion => &["x", "y", "z", "w"],
            _ => &[],
        };
        if !parts.is_empty() {
            let number = |reader: &mut Reader<'d, T>, part| match self {
                Self::Vector3d => reader.f64(part).map(drop),
                _ => reader.f32(part).map(drop),
            };
            reader.record(name, |reader| parts.iter().try_for_each(|part| number(reader, part)))?;
            return Ok(bytes);
        }
        reader.take(size)?;
        let shown = match self.read(bytes) {
            Some(super::Value::Unsigned(number)) => match self {
                Self::RezId | Self::MissionKey | Self::EventId => Shown::Hex(number.into()),
                _ => Shown::Unsigned(number.into()),
            },
            Some(super::Value::Signed(number)) => Shown::Signed(number.into()),
            Some(super::Value::Bool(value)) => Shown::Bool(value),
            Some(super::Value::Float(number)) => Shown::F32(number),
            Some(super::Value::Bytes(_)) => reader.span_behind(Form::Bytes, size),
            Some(super::Value::Text(_)) => {
                report_text(reader, name, start, bytes);
                return Ok(bytes);
            }
            // Vectors and quaternions were reported as records above.
            _ => return Ok(bytes),
        };
        reader.leaf_from(name, start, shown);
        Ok(bytes)
    }
}

/// Reports the padded text that was just read.
fn report_text<'n, T: Trace<'n>>(
    reader: &mut Reader<'_, T>,
    name: &'n str,
    start: Place,
    bytes: &[u8],
) {
    let (text, behind) = text::split(bytes);
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(0);
    let span = |form, at: u32, bytes: &[u8]| {
        Shown::Span(Span { form, start: start.byte + at, length: length(bytes) })
    };
    let behind = behind.filter(|behind| behind.iter().any(|byte| *byte != 0));
    match behind {
        None if text::is_latin1(text) => {
            reader.leaf_from(name, start, span(Form::Latin1, 0, text));
        }
        // Report all bytes: encoding does not pad bytes.
        None => reader.leaf_from(name, start, span(Form::Bytes, 0, bytes)),
        Some(behind) => {
            let end = reader.place();
            let place = |at: u32| Place { byte: start.byte + at, bit: 0 };
            reader.trace_mut().scope(name, Shown::Record, start, |trace| {
                let ends = length(text);
                trace.leaf("text", span(form(text), 0, text), start, place(ends + 1));
                let rest = span(Form::Bytes, ends + 1, behind);
                trace.leaf("behind", rest, place(ends + 1), end);
                ((), end)
            });
        }
    }
}

/// How to show the bytes of text.
fn form(text: &[u8]) -> Form {
    if text::is_latin1(text) { Form::Latin1 } else { Form::Bytes }
}
