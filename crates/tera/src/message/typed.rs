//! Runtime support for generated structs: see [`codegen`](crate::codegen).
//!
//! A generated struct holds the layout of one definition as plain code. It gives the same
//! guarantees as the decoder that runs definitions: it accepts and rejects the same messages,
//! within the same bounds on work, and encodes the same values to the same bytes. There are two
//! differences: [`Notes`](super::Notes) are not collected, and if the fixed part of a record is cut
//! off, the error names the record and not the field in it.
//!
//! [`Input`] and [`Output`] are for generated code; other code uses [`Typed`].

use std::borrow::Cow;

use worldwire_core::{Error, Result};

use super::bounds::{self, Budget, Chain};
use super::encode::MAX_BYTES;
use super::fault::Fault;
use super::{Head, HeaderForm, Value};
use crate::types::{Skill, SkillForm, Text};

/// Maximum capacity reserved before any elements have been read.
const MAX_ROOM: usize = 256;

/// A message as a struct.
///
/// ```
/// use worldwire_core::Result;
/// use worldwire_tera::message::typed::{Input, Output, Typed, part, put};
/// use worldwire_tera::message::{Head, HeaderForm, Value};
///
/// /// Generated from `int32 id`.
/// #[derive(Debug, PartialEq)]
/// struct SGreetingV1 {
///     id: i32,
/// }
///
/// impl<'d> Typed<'d> for SGreetingV1 {
///     const NAME: &'static str = "S_GREETING";
///     const VERSION: u32 = 1;
///     const WORDS: usize = 0;
///     fn read(input: &mut Input<'d>, start: usize) -> Result<Self> {
///         let fixed = input.scope::<4>(start, 10)?;
///         Ok(Self { id: i32::from_le_bytes(part(fixed, 0)) })
///     }
///     fn write(&self, output: &mut Output<'_>) -> Result<()> {
///         output.fixed::<4>(|fixed| {
///             put(fixed, 0, self.id.to_le_bytes());
///             Ok(())
///         })?;
///         Ok(())
///     }
///     fn value(&self) -> Result<Value<'_>> {
///         Ok(Value::Record(vec![Value::Signed(self.id.into())]))
///     }
/// }
///
/// let mut bytes = Vec::new();
/// SGreetingV1 { id: 5 }.encode(Head::plain(7), &mut bytes)?;
/// assert_eq!(bytes, [8, 0, 7, 0, 5, 0, 0, 0]);
/// let (head, again) = SGreetingV1::decode(&bytes, HeaderForm::Plain)?;
/// assert_eq!((head.opcode, again.id), (7, 5));
/// # Ok::<(), worldwire_core::Error>(())
/// ```
pub trait Typed<'d>: Sized {
    /// The message's name.
    const NAME: &'static str;
    /// The version of the layout.
    const VERSION: u32;
    /// Bytes after the header that hold counts and offsets. No offset may point into them.
    const WORDS: usize;

    /// Reads the fields, which begin at `start`.
    fn read(input: &mut Input<'d>, start: usize) -> Result<Self>;

    /// Writes the fields.
    fn write(&self, output: &mut Output<'_>) -> Result<()>;

    /// The fields as values, in the order of the definition: for display, and for
    /// [`Plan::encode`](crate::schema::Plan::encode).
    fn value(&self) -> Result<Value<'_>>;

    /// Reads a message. Text and bytes are borrowed.
    #[inline]
    fn decode(message: &'d [u8], form: HeaderForm) -> Result<(Head, Self)> {
        let read = || {
            let head = Head::read(message, form)?;
            let mut input = Input::new(message, form.bytes() + Self::WORDS);
            Ok((head, Self::read(&mut input, form.bytes())?))
        };
        read().map_err(about::<Self>)
    }

    /// Appends a message to `out`, in canonical form.
    ///
    /// # Errors
    /// `Value`, with the path of the field that cannot be written; `out` is left unchanged.
    #[inline]
    fn encode(&self, head: Head, out: &mut Vec<u8>) -> Result<()> {
        let origin = out.len();
        head.reserve(out);
        let mut output = Output { out, origin };
        match self.write(&mut output).and_then(|()| output.position()) {
            Ok(_) => {
                head.put(out.get_mut(origin..).unwrap_or_default());
                Ok(())
            }
            Err(error) => {
                out.truncate(origin);
                Err(error)
            }
        }
    }
}

#[cold]
fn about<'d, T: Typed<'d>>(error: Error) -> Error {
    error.about(format!("{}.{}", T::NAME, T::VERSION))
}

/// A message being read.
#[derive(Debug)]
pub struct Input<'d> {
    data: &'d [u8],
    /// The first byte that an offset may point to.
    floor: usize,
    budget: Budget,
    /// The end of what was read last.
    cursor: usize,
}

impl<'d> Input<'d> {
    const fn new(data: &'d [u8], floor: usize) -> Self {
        Self { data, floor, budget: Budget::of(data.len()), cursor: 0 }
    }

    /// Reads the fixed part of a scope, counting `cost` bytes of work.
    #[inline]
    pub fn scope<const SIZE: usize>(
        &mut self,
        start: usize,
        cost: usize,
    ) -> Result<&'d [u8; SIZE]> {
        let fixed = self.fixed::<SIZE>(start)?;
        self.budget.spend(cost, start)?;
        Ok(fixed)
    }

    /// Reads the fixed part that follows the last body, and returns its position too.
    #[inline]
    pub fn segment<const SIZE: usize>(&mut self) -> Result<(usize, &'d [u8; SIZE])> {
        let start = self.cursor;
        self.budget.spend(SIZE, start)?;
        Ok((start, self.fixed::<SIZE>(start)?))
    }

    #[inline]
    fn fixed<const SIZE: usize>(&mut self, start: usize) -> Result<&'d [u8; SIZE]> {
        match self.data.get(start..).and_then(|rest| rest.first_chunk::<SIZE>()) {
            Some(fixed) => {
                self.cursor = start + SIZE;
                Ok(fixed)
            }
            None => Err(truncated(self.data.len(), start, SIZE)),
        }
    }

    /// Reads the text at an offset, which is stored at `place`.
    #[inline]
    pub fn text(&mut self, offset: impl Into<usize>, place: usize) -> Result<Text<'d>> {
        let at = offset.into();
        bounds::check_offset(self.data, self.floor, at, place)?;
        let text = bounds::text(self.data, at)?;
        self.budget.spend(text.len() + 2, at)?;
        self.cursor = at + text.len() + 2;
        Ok(Text::from_bytes(text))
    }

    /// Reads a text in place.
    #[inline]
    pub fn text_here(&mut self, at: usize) -> Result<Text<'d>> {
        self.text(at, at)
    }

    /// Reads a byte string; its count and offset are stored at `places`.
    #[inline]
    pub fn bytes(
        &mut self,
        count: u16,
        offset: u16,
        places: (usize, usize),
    ) -> Result<Cow<'d, [u8]>> {
        if count == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        let (count, offset) = ((count.into(), places.0), (offset.into(), places.1));
        let bytes = bounds::bytes(self.data, self.floor, count, offset)?;
        self.budget.spend(bytes.len(), offset.0)?;
        self.cursor = offset.0 + bytes.len();
        Ok(Cow::Borrowed(bytes))
    }

    /// Reads a list whose elements have at least `least` bytes. The offset of the first element is
    /// stored at `place`. `read` receives the position of an element's fields.
    ///
    /// # Errors
    /// `Malformed` if a link points outside the message or the list does not have `count` elements;
    /// and errors of `read`.
    #[inline]
    pub fn list<T>(
        &mut self,
        count: u16,
        offset: u16,
        place: usize,
        least: usize,
        mut read: impl FnMut(&mut Self, usize) -> Result<T>,
    ) -> Result<Vec<T>> {
        let (mut at, mut link) = (usize::from(offset), place);
        if count == 0 {
            return Ok(Vec::new());
        }
        // The count comes from the message: reserve only what its bytes could hold, within limits.
        let room = self.data.len().saturating_sub(at) / least.max(4);
        let mut items = Vec::with_capacity(usize::from(count).min(room + 1).min(MAX_ROOM));
        let mut chain = Chain::new();
        for index in 0..count.into() {
            let next = chain.element((self.data, self.floor), (at, link), (index, count.into()));
            let next = next.map_err(|error| error.inside_item(index))?;
            // This does not use `map_err`, which would copy the element once more.
            match read(self, at + 4) {
                Ok(item) => items.push(item),
                Err(error) => return Err(error.inside_item(index)),
            }
            (link, at) = (at + 2, next);
        }
        if at == 0 { Ok(items) } else { Err(bounds::too_long(at, count.into(), link)) }
    }

    /// The end of what was read last.
    #[inline]
    #[must_use]
    pub const fn cursor(&self) -> usize {
        self.cursor
    }

    /// Moves to the end of a group of alternating lists that began at `start`, given the number of
    /// elements and the end of each list.
    pub fn close_group(&mut self, start: usize, lists: &[(usize, usize)]) {
        let filled = lists.iter().filter(|(count, _)| *count > 0);
        // The last element is in the longest list; if several are equally long, in the last of
        // them.
        self.cursor = filled.max_by_key(|(count, _)| *count).map_or(start, |(_, end)| *end);
    }
}

#[cold]
fn truncated(length: usize, start: usize, size: usize) -> Error {
    let left = length.saturating_sub(start);
    Fault::Truncated.malformed(start.min(length), format!("{left} of {size} bytes"))
}

/// A message being written.
#[derive(Debug)]
pub struct Output<'o> {
    out: &'o mut Vec<u8>,
    /// Where the message begins in `out`.
    origin: usize,
}

/// A list being written as part of a group.
#[derive(Debug)]
pub struct Lane {
    /// Where to write the offset of the next element.
    link: usize,
    /// Number of elements written.
    written: usize,
}

impl Output<'_> {
    /// Appends a zeroed fixed part and calls `fill` on it; returns its position.
    #[inline]
    pub fn fixed<const SIZE: usize>(
        &mut self,
        fill: impl FnOnce(&mut [u8; SIZE]) -> Result<()>,
    ) -> Result<usize> {
        let start = self.out.len();
        self.out.resize(start + SIZE, 0);
        self.out.last_chunk_mut().map_or(Ok(()), fill)?;
        Ok(start)
    }

    /// Appends a text and writes its offset to `place`.
    #[inline]
    pub fn text(&mut self, place: usize, text: &Text<'_>) -> Result<()> {
        let position = self.position()?;
        self.patch(place, position);
        self.text_here(text)
    }

    /// Appends a text.
    #[inline]
    pub fn text_here(&mut self, text: &Text<'_>) -> Result<()> {
        self.position()?;
        if text.has_nul() {
            return Err(Fault::StringContainsNul.value(format!("{text:?}")));
        }
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(&[0, 0]);
        Ok(())
    }

    /// Appends bytes and writes their count and offset to `places`.
    #[inline]
    pub fn bytes(&mut self, places: (usize, usize), bytes: &[u8]) -> Result<()> {
        let position = self.position()?;
        self.patch(places.1, position);
        let length = u16::try_from(bytes.len())
            .map_err(|_| Fault::MessageTooLong.value(format!("{} bytes", bytes.len())))?;
        self.patch(places.0, length);
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends the elements of a list; writes their count and the offset of the first one to
    /// `places`.
    ///
    /// # Errors
    /// `Value` if there are too many elements or the message becomes too long; and errors of
    /// `write`.
    #[inline]
    pub fn list<T>(
        &mut self,
        places: (usize, usize),
        items: &[T],
        mut write: impl FnMut(&mut Self, &T) -> Result<()>,
    ) -> Result<()> {
        let mut lane = self.lane(places, items.len())?;
        items.iter().try_for_each(|item| self.element(&mut lane, |output| write(output, item)))
    }

    /// Begins a list: writes its count to the first of `places`; the offset of the first element
    /// will be written to the second.
    #[inline]
    pub fn lane(&mut self, places: (usize, usize), count: usize) -> Result<Lane> {
        let count = u16::try_from(count)
            .map_err(|_| Fault::MessageTooLong.value(format!("{count} elements")))?;
        self.patch(places.0, count);
        Ok(Lane { link: places.1, written: 0 })
    }

    /// Appends the next element of a list.
    #[inline]
    pub fn element(
        &mut self,
        lane: &mut Lane,
        write: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let here = self.position()?;
        self.patch(lane.link, here);
        lane.link = self.out.len() + 2;
        let [low, high] = here.to_le_bytes();
        self.out.extend_from_slice(&[low, high, 0, 0]);
        let index = lane.written;
        lane.written += 1;
        write(self).map_err(|error| error.inside_item(index))
    }

    /// The offset of the next body from the start of the message.
    #[inline]
    fn position(&self) -> Result<u16> {
        let length = self.out.len() - self.origin;
        match u16::try_from(length) {
            Ok(position) if length <= MAX_BYTES => Ok(position),
            _ => Err(Fault::MessageTooLong.value(format!("at least {length}"))),
        }
    }

    #[inline]
    fn patch(&mut self, at: usize, word: u16) {
        if let Some(room) = self.out.get_mut(at..at + 2) {
            room.copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// Some bytes of a fixed part. Bytes past its end would be zero, but generated code requests none.
#[inline(always)]
#[must_use]
pub fn part<const SIZE: usize, const LENGTH: usize>(fixed: &[u8; SIZE], at: usize) -> [u8; LENGTH] {
    match fixed.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(part) => *part,
        None => [0; LENGTH],
    }
}

/// A count or offset in a fixed part.
#[inline(always)]
#[must_use]
pub fn word<const SIZE: usize>(fixed: &[u8; SIZE], at: usize) -> u16 {
    u16::from_le_bytes(part(fixed, at))
}

/// Three floats in a fixed part.
#[inline(always)]
#[must_use]
pub fn floats<const SIZE: usize>(fixed: &[u8; SIZE], at: usize) -> [f32; 3] {
    [0, 4, 8].map(|step| f32::from_le_bytes(part(fixed, at + step)))
}

/// Writes bytes to a fixed part.
#[inline(always)]
pub fn put<const SIZE: usize, const LENGTH: usize>(
    fixed: &mut [u8; SIZE],
    at: usize,
    bytes: [u8; LENGTH],
) {
    if let Some(room) = fixed.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *room = bytes;
    }
}

/// Writes three floats to a fixed part.
#[inline(always)]
pub fn put_floats<const SIZE: usize>(fixed: &mut [u8; SIZE], at: usize, numbers: [f32; 3]) {
    for (step, number) in [0, 4, 8].into_iter().zip(numbers) {
        put(fixed, at + step, number.to_le_bytes());
    }
}

/// The raw number of a skill, in 64 bits.
#[inline]
pub fn wide(skill: Skill) -> Result<u64> {
    skill_word(skill, SkillForm::Wide)
}

/// The raw number of a skill, in 32 bits.
#[inline]
pub fn narrow(skill: Skill) -> Result<u32> {
    // The parts together take 32 bits.
    skill_word(skill, SkillForm::Narrow).map(|word| u32::try_from(word).unwrap_or(u32::MAX))
}

fn skill_word(skill: Skill, form: SkillForm) -> Result<u64> {
    skill.to_raw(form).map_err(|error| {
        let wanted = format!("a whole number from 0 to {}", error.max);
        Error::value(wanted, "a larger one").inside(error.part).hint(Fault::ValueOutOfRange.name())
    })
}

/// The order of the elements of two paired lists, given the numbers that they begin with: the index
/// of the list, and the index in it.
#[must_use]
pub fn pairs(
    firsts: impl Iterator<Item = u32>,
    seconds: impl Iterator<Item = u32>,
) -> Vec<(usize, usize)> {
    let (firsts, seconds): (Vec<u32>, Vec<u32>) = (firsts.collect(), seconds.collect());
    super::pairs::order(&firsts, &seconds)
}

/// Checks that a row does not have too many values.
#[inline]
pub fn row(length: usize, room: usize) -> Result<()> {
    if length <= room {
        return Ok(());
    }
    Err(Fault::WrongKind.value(format!("{length} values for a row of {room}")))
}
