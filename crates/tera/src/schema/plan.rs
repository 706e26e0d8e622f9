//! The compiled form of a definition.
//!
//! A *scope* is the root of a message or one element of an array. Its fixed part stands at its
//! start; where a fixed field follows a body of variable length, a further *segment* begins behind
//! that body. Everything of fixed size has a [`Spot`]: a segment and an offset in it.

use core::ops::Range;

use crate::types::Scalar;

/// Bytes in front of the fields of an element: its own offset, and that of the next one.
pub(crate) const LINKS: usize = 4;

/// A place in the fixed part of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Which segment of the scope; 0 begins where the scope does.
    pub segment: u16,
    /// Bytes from the start of the segment.
    pub offset: u16,
}

/// How a text is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPlace {
    /// By the offset that stands here.
    Offset(Spot),
    /// It stands where its field does: in files that give no place to its offset, read leniently.
    Here(Spot),
}

/// Where the counts and offsets of a definition stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In front of their scope, in the order of the fields.
    Front,
    /// Where the definition says.
    Explicit,
    /// Where their field stands.
    InPlace,
}

/// A definition made ready to read and write messages with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub(crate) fields: Vec<Field>,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) ops: Vec<Op>,
    /// All fields of fixed size, those of a scope in the order of its bytes.
    pub(crate) fixed: Vec<Fixed>,
    /// Where the truth values of all scopes stand.
    pub(crate) bools: Vec<Spot>,
    /// Which scope each field stands in.
    pub(crate) around: Vec<u32>,
    pub(crate) root: u32,
    /// Bytes behind the header of a message that no offset may lead to.
    pub(crate) words: u32,
    pub(crate) placement: Placement,
    /// Whether elements of lists stand in pairs, by a number in them.
    pub(crate) pairs: bool,
}

/// A field of a compiled definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub(crate) name: Box<str>,
    pub(crate) kind: FieldKind,
    /// Its index in the plan's list.
    pub(crate) index: u32,
    /// For an earlier copy of a repeated field: the index of the last one, which it takes its value
    /// from when it has none of its own. For any other its own.
    pub(crate) last: u32,
    /// Its index in the record around.
    pub(crate) slot: u32,
    /// Of a text, bytes or an array: which of those in its scope it is.
    pub(crate) body: u32,
}

/// What a field is, and where its fixed part stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A value of fixed size.
    Scalar {
        /// Its type.
        scalar: Scalar,
        /// Where it stands.
        spot: Spot,
    },
    /// UTF-16 text that ends with a zero unit.
    Text {
        /// How it is found.
        place: TextPlace,
    },
    /// Bytes.
    Bytes {
        /// Where their offset stands.
        offset: Spot,
        /// Where their count stands.
        count: Spot,
    },
    /// Linked elements.
    Array {
        /// Where their count stands.
        count: Spot,
        /// Where the offset of the first stands.
        offset: Spot,
        /// Index of the scope of an element.
        scope: u32,
        /// Whether the elements stand among those of the neighbouring arrays.
        interleaved: bool,
    },
    /// Named fields in the scope around.
    Object(Range<u32>),
    /// Unnamed fields in a row, in the scope around.
    Row(Range<u32>),
}

/// The root of a message, or an element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Bytes of the first segment.
    pub(crate) size: u32,
    /// How many segments there are.
    pub(crate) segments: u16,
    /// Words of counts and offsets.
    pub(crate) words: u32,
    /// Its fields.
    pub(crate) fields: Range<u32>,
    /// Whether the one field is the value itself, and not a record.
    pub(crate) single: bool,
    /// What to do, in the order of the bytes.
    pub(crate) wire: Range<u32>,
    /// What to do in the order of the fields, where that is another.
    pub(crate) emit: Option<Range<u32>>,
    /// The same as `wire` without the fields of fixed size: all that reading takes when nobody
    /// wants these one by one.
    pub(crate) loose: Range<u32>,
    /// Its truth values, in the plan's list.
    pub(crate) bools: Range<u32>,
    /// How many texts, bytes and arrays it has.
    pub(crate) bodies: u32,
    /// How many bytes of a message reading it counts as, without its bodies.
    pub(crate) cost: u32,
    /// Whether the steps of `wire` are fields alone, all of them in the first segment, and nothing
    /// else is to be done in the order of the fields; whether those of `loose` are.
    pub(crate) flat: bool,
    /// How far apart elements stand that lead nowhere else; 0 for others, and for those that count
    /// as more bytes than they have.
    pub(crate) stride: u32,
    /// Where its fields are in the plan's list, if they are of fixed size and one step does for all.
    pub(crate) run: Range<u32>,
    /// Whether they are.
    pub(crate) one_run: bool,
    /// The type of all of them, if it is one, and they stand one behind the other, with nothing else.
    pub(crate) alike: Option<Scalar>,
    pub(crate) loose_flat: bool,
    /// Whether it has bodies, all of them texts and arrays of plain elements in the first segment,
    /// and counts as the bytes that it has.
    pub(crate) nested: bool,
    /// Whether it has texts, bytes, lists or further segments, which scopes may share.
    pub(crate) has_bodies: bool,
}

/// One step of reading or writing a scope. `slot` is the index in the record around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Fields of fixed size, from one place in the plan's list to another, one after the other also
    /// in the definition; all in one segment, whose first `reach` bytes hold them.
    Fixed {
        segment: u16,
        reach: u32,
        from: u32,
        to: u32,
    },
    Text {
        place: TextPlace,
        field: u32,
        slot: u32,
        body: u32,
    },
    Bytes {
        offset: Spot,
        count: Spot,
        field: u32,
        slot: u32,
        body: u32,
    },
    Array {
        count: Spot,
        offset: Spot,
        scope: u32,
        field: u32,
        slot: u32,
        body: u32,
        /// How far apart its elements stand, if they are fields of fixed size that one step does
        /// for, no truth values among them, and its offset stands right behind its count; else 0.
        plain: u16,
    },
    Open {
        field: u32,
        slot: u32,
        row: bool,
    },
    Close,
    /// A further segment begins at the cursor.
    Segment {
        size: u32,
    },
    /// The bodies of so many arrays that follow alternate; in pairs, those of the second that have
    /// the number of one of the first, which both begin with, stand behind that.
    Group {
        arrays: u32,
        pairs: bool,
    },
    /// A word that belongs to no field.
    Orphan {
        spot: Spot,
    },
}

/// A field of fixed size, in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) scalar: Scalar,
    pub(crate) offset: u16,
    pub(crate) field: u32,
    pub(crate) slot: u32,
}

impl Op {
    /// Whether it is a field, all of it in the first segment.
    pub(crate) fn is_flat(&self) -> bool {
        let first = |spot: &Spot| spot.segment == 0;
        match self {
            Self::Fixed { segment, .. } => *segment == 0,
            Self::Text { place: TextPlace::Offset(spot), .. } => first(spot),
            Self::Bytes { offset, count, .. } | Self::Array { offset, count, .. } => {
                first(offset) && first(count)
            }
            _ => false,
        }
    }
}

impl Field {
    /// The name; empty for elements of arrays and rows. Earlier copies of a field that stands more
    /// than once are called `name#1`, `name#2`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> &FieldKind {
        &self.kind
    }

    /// Whether it is an earlier copy of a field that stands more than once.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.twin().is_some()
    }

    /// For an earlier copy, the index of the last one.
    pub(crate) fn twin(&self) -> Option<u32> {
        (self.last != self.index).then_some(self.last)
    }
}

impl Plan {
    /// The fields of the message itself.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        self.fields_of(&self.scope(self.root).fields)
    }

    /// The fields of an object or row.
    #[must_use]
    pub fn fields_of(&self, range: &Range<u32>) -> &[Field] {
        self.fields.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// The fields of an element of an array, by its scope, and whether the only one is the element
    /// itself.
    #[must_use]
    pub fn element(&self, scope: u32) -> (&[Field], bool) {
        let scope = self.scope(scope);
        (self.fields_of(&scope.fields), scope.single)
    }

    /// Where the counts and offsets stand.
    #[must_use]
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// The fewest bytes of a message, without its header.
    #[must_use]
    pub fn least(&self) -> usize {
        self.scope(self.root).size as usize
    }

    /// Whether every message has the same length.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        let root = self.scope(self.root);
        let steps = self.steps(&root.wire);
        !steps.iter().any(|op| matches!(op, Op::Text { .. } | Op::Bytes { .. } | Op::Array { .. }))
    }

    #[inline]
    pub(crate) fn scope(&self, index: u32) -> &Scope {
        // Indices are only made from existing scopes.
        &self.scopes[index as usize]
    }

    #[inline]
    pub(crate) fn field(&self, index: u32) -> &Field {
        // Indices are only made from existing fields.
        &self.fields[index as usize]
    }

    /// The scope that a field stands in, by the field's index.
    pub(crate) fn scope_around(&self, field: usize) -> u32 {
        self.around.get(field).copied().unwrap_or(self.root)
    }

    /// Where the truth values of a scope stand.
    #[inline]
    pub(crate) fn bools(&self, scope: &Scope) -> &[Spot] {
        self.bools.get(scope.bools.start as usize..scope.bools.end as usize).unwrap_or_default()
    }

    /// Whether all truth values of a scope of one segment, which is given, are 0 or 1.
    #[inline(always)]
    pub(crate) fn bools_hold(&self, scope: &Scope, segment: &[u8]) -> bool {
        let holds = |spot: &Spot| {
            let value = segment.get(usize::from(spot.offset));
            value.is_none_or(|value| *value <= 1)
        };
        self.bools(scope).iter().all(holds)
    }

    /// The fields of fixed size of a step.
    #[inline]
    pub(crate) fn run(&self, from: u32, to: u32) -> &[Fixed] {
        self.fixed.get(from as usize..to as usize).unwrap_or_default()
    }

    /// The fields of a scope that has one run of them and nothing else.
    #[inline]
    pub(crate) fn run_of(&self, scope: &Scope) -> &[Fixed] {
        self.run(scope.run.start, scope.run.end)
    }

    /// The fields of a step, each beside its part of the run.
    #[inline]
    pub(crate) fn fields_of_run(&self, run: &[Fixed]) -> &[Field] {
        let from = run.first().map_or(0, |fixed| fixed.field as usize);
        self.fields.get(from..).unwrap_or_default()
    }

    /// The steps of a range.
    #[inline]
    pub(crate) fn steps(&self, range: &Range<u32>) -> &[Op] {
        self.ops.get(range.start as usize..range.end as usize).unwrap_or_default()
    }
}
