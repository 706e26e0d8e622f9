//! Text in a fixed number of units, padded with zeros.

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{Error, Form, Reader, Result, Trace, Writer};

use super::units::{inner_zero, too_long, unit, whole_units, wide, zero_unit};

/// Reads `count` units of padded text. Units after the first zero are traced only if they are not
/// all zero.
pub(crate) fn decode_padded<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    name: &'n str,
    count: usize,
    wide: bool,
) -> Result<&'d [u8]> {
    let (start, size) = (reader.place_if_on(), count * unit(wide));
    let Some(all) = reader.rest().get(..size) else {
        let error = Error::incomplete(size, reader.remaining());
        return Err(error.at(reader.position() as u64).inside(name));
    };
    if !T::ON {
        return reader.take(size);
    }
    let form = if wide { Form::Utf16 } else { Form::Utf8 };
    let text = zero_unit(all, wide).unwrap_or(size);
    if all.iter().skip(text).any(|byte| *byte != 0) {
        return reader.record(name, |reader| {
            reader.span("text", text, form)?;
            reader.bytes("deadMemory", size - text)?;
            Ok(all)
        });
    }
    reader.take(text)?;
    let span = reader.span_behind(form, text);
    reader.take(size - text)?;
    reader.leaf_from(name, start, span);
    Ok(all)
}

/// Writes text in `count` units, padded with zeros.
pub(crate) fn encode_padded(
    stored: &[u8],
    count: usize,
    wide: bool,
    writer: &mut Writer,
) -> Result<()> {
    let Some(rest) = (count * unit(wide)).checked_sub(stored.len()) else {
        return Err(too_long(count, stored.len(), wide));
    };
    writer.bytes(stored);
    writer.zeros(rest);
    Ok(())
}

/// Reads the JSON of padded text: the text, or an object with `text` and `deadMemory`.
pub(crate) fn padded_from_json(json: Given<'_>, count: usize, wide: bool) -> Result<Vec<u8>> {
    let encode = |text: &str| if wide { self::wide(text) } else { text.as_bytes().to_vec() };
    let size = count * unit(wide);
    if json.get("text").is_none() {
        let mut stored = whole_units(json::text(&json, encode)?, wide)?;
        if zero_unit(&stored, wide).is_some() {
            return Err(inner_zero(wide));
        }
        if stored.len() > size {
            return Err(too_long(count, stored.len(), wide));
        }
        stored.resize(size, 0);
        return Ok(stored);
    }
    let mut fields = FieldsOf::new(json)?;
    let mut stored = json::text(fields.take("text")?, encode)?;
    let text = stored.len();
    stored.extend(json::bytes(fields.take("deadMemory")?)?);
    fields.end()?;
    if stored.len() != size {
        let wanted = format!("{size} bytes of text and dead memory in total");
        return Err(Error::value(wanted, format!("{} bytes", stored.len())));
    }
    // Readers stop at the first zero.
    match zero_unit(&stored, wide) {
        Some(end) if end < text => Err(inner_zero(wide).inside("text")),
        end if end != Some(text) && text < size => {
            let (wanted, found) = match wide {
                true => ("a NUL character first", "a different one"),
                false => ("a NUL byte first", "a different one"),
            };
            Err(Error::value(wanted, found).inside("deadMemory"))
        }
        _ => Ok(stored),
    }
}
