//! Blobs that dirtsand damaged.
//!
//! dirtsand counts all elements of a nested variable but omits the records of unset ones, so the
//! remaining records cannot be matched to elements. Clients cannot read such a blob either.

use worldwire_core::{Error, Reader, Result};

use super::record::{
    MAX_DEPTH, NestedVariable, RECORD_VERSION, SimpleVariable, Width, record_head,
};
use crate::schema::Shape;

/// The number of records of nested elements that are missing from a blob's record (everything after
/// the stream header), provided that nothing else is wrong with it.
///
/// Records can be missing only where all elements are counted and therefore carry no indices.
/// `None` if nothing is missing, or if something else is wrong as well.
#[must_use]
#[cfg(feature = "fuzzing")]
pub(crate) fn missing_records(
    descriptor: &crate::schema::Descriptor,
    record: &[u8],
) -> Option<usize> {
    missing(descriptor.shape(), record)
}

/// Adds the explanation to an error if this damage caused it.
#[cold]
pub(super) fn explain(error: Error, shape: Shape<'_>, record: &[u8]) -> Error {
    let Some(missing) = missing(shape, record) else { return error };
    let (records, are) = if missing == 1 { ("record", "is") } else { ("records", "are") };
    error.hint(format!(
        "{missing} {records} of nested elements {are} missing, as in blobs that dirtsand \
         damaged: the remaining ones cannot be assigned to elements"
    ))
}

fn missing(shape: Shape<'_>, record: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(record);
    let mut missing = 0;
    walk(shape, &mut reader, 1, &mut missing).ok()?;
    Some(missing).filter(|missing| *missing > 0 && reader.remaining() == 0)
}

fn wrong() -> Error {
    Error::malformed("a record", "something else")
}

fn walk(shape: Shape<'_>, reader: &mut Reader<'_>, depth: u32, missing: &mut usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(wrong());
    }
    record_head(reader)?;
    let width = Width::of(shape.count());
    for index in indices(reader, width, shape.simple_count())? {
        let index = index.read(reader, width)?;
        let variable = shape.simple(index as usize).ok_or_else(wrong)?;
        SimpleVariable::decode(variable, index, reader)?;
    }
    for index in indices(reader, width, shape.nested_count())? {
        let index = index.read(reader, width)?;
        let (variable, inner) = shape.nested(index as usize).ok_or_else(wrong)?;
        let (_, _, length) = NestedVariable::decode_head(variable, reader)?;
        let width = Width::of_elements(variable);
        for index in indices(reader, width, length as usize)? {
            if let Index::Implied(index) = index
                && !begins_record(reader)
            {
                // If no record begins here, the records of all later elements are missing too.
                *missing += (length - index) as usize;
                break;
            }
            index.read(reader, width)?;
            walk(inner, reader, depth + 1, missing)?;
        }
    }
    Ok(())
}

/// The source of an entry's index.
#[derive(Clone, Copy)]
enum Index {
    /// The index precedes the entry.
    Written,
    /// All entries are present, so the position is the index.
    Implied(u32),
}

impl Index {
    fn read(self, reader: &mut Reader<'_>, width: Width) -> Result<u32> {
        match self {
            Self::Written => width.read(reader),
            Self::Implied(index) => Ok(index),
        }
    }
}

/// Reads the count of the entries present, out of `total`.
fn indices(
    reader: &mut Reader<'_>,
    width: Width,
    total: usize,
) -> Result<impl Iterator<Item = Index> + use<>> {
    let count = width.read(reader)?;
    if count as usize > total {
        return Err(wrong());
    }
    let all = count as usize == total;
    Ok((0..count).map(move |number| if all { Index::Implied(number) } else { Index::Written }))
}

/// Whether a record comes next: flags without unknown bits, then the version.
fn begins_record(reader: &Reader<'_>) -> bool {
    matches!(reader.rest(), [0 | 1, 0, RECORD_VERSION, ..])
}
