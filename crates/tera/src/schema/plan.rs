//! The compiled form of a definition.
//!
//! A *scope* is the root of a message or one element of an array. It begins with its fixed-size
//! fields. If a fixed-size field follows a body of variable length, another *segment* begins after
//! that body. Every fixed-size field has a [`Spot`]: a segment and an offset in it.

use core::ops::Range;

use worldwire_core::Error;

use crate::types::Scalar;

/// Bytes before the fields of an element: its own offset and the next element's.
pub(crate) const LINKS: usize = 4;

/// A position in the fixed part of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Index of the segment in the scope; segment 0 begins where the scope does.
    pub segment: u16,
    /// Offset from the start of the segment, in bytes.
    pub offset: u16,
}

/// How a text is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPlace {
    /// At the offset stored here.
    Offset(Spot),
    /// In place: for leniently read files that have no line for its offset.
    Here(Spot),
}

/// Where a definition puts its counts and offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// At the start of their scope, in field order.
    Front,
    /// Where the definition has lines for them.
    Explicit,
    /// At their field.
    InPlace,
}

/// A compiled definition, ready to read and write messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Name and version of the definition, as usually written.
    pub(crate) title: Box<str>,
    pub(crate) fields: Vec<Field>,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) ops: Vec<Op>,
    /// All fixed-size fields; those of one scope are in byte order.
    pub(crate) fixed: Vec<Fixed>,
    /// The positions of the booleans of all scopes.
    pub(crate) bools: Vec<Spot>,
    /// The scope of each field.
    pub(crate) around: Vec<u32>,
    pub(crate) root: u32,
    /// Bytes after the message header that hold counts and offsets. No offset may point into them.
    pub(crate) words: u32,
    pub(crate) placement: Placement,
    /// Whether array elements are written in pairs, matched by a number in them.
    pub(crate) pairs: bool,
}

/// A field of a compiled definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub(crate) name: Box<str>,
    pub(crate) kind: FieldKind,
    /// Its index in the plan's list.
    pub(crate) index: u32,
    /// For an earlier copy of a repeated field: the index of the last one, whose value it takes if
    /// it has none of its own. For any other field its own index.
    pub(crate) last: u32,
    /// Its index in the enclosing record.
    pub(crate) slot: u32,
    /// For text, bytes and arrays: its index among those in its scope.
    pub(crate) body: u32,
}

/// The type of a field, and the positions of its fixed parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A value of fixed size.
    Scalar {
        /// Its type.
        scalar: Scalar,
        /// Its position.
        spot: Spot,
    },
    /// UTF-16 text, terminated by a zero unit.
    Text {
        /// How to find it.
        place: TextPlace,
    },
    /// A byte string.
    Bytes {
        /// The position of its offset.
        offset: Spot,
        /// The position of its count.
        count: Spot,
    },
    /// A linked list of elements.
    Array {
        /// The position of the count.
        count: Spot,
        /// The position of the first element's offset.
        offset: Spot,
        /// Index of the scope of an element.
        scope: u32,
        /// Whether its elements alternate with those of the neighbouring arrays.
        interleaved: bool,
    },
    /// Named fields in the enclosing scope.
    Object(Range<u32>),
    /// A row of unnamed fields in the enclosing scope.
    Row(Range<u32>),
}

/// The root of a message, or an element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Bytes in the first segment.
    pub(crate) size: u32,
    /// Number of segments.
    pub(crate) segments: u16,
    /// Number of 2-byte words that hold counts and offsets.
    pub(crate) words: u32,
    /// Its fields.
    pub(crate) fields: Range<u32>,
    /// Whether its only field is the value itself rather than part of a record.
    pub(crate) single: bool,
    /// The steps in byte order.
    pub(crate) wire: Range<u32>,
    /// The steps in field order, if that differs.
    pub(crate) emit: Option<Range<u32>>,
    /// `wire` without the fixed-size fields: enough for reading if those are not needed one by
    /// one.
    pub(crate) loose: Range<u32>,
    /// Its booleans, as a range of the plan's list.
    pub(crate) bools: Range<u32>,
    /// Number of texts, byte strings and arrays.
    pub(crate) bodies: u32,
    /// The bytes of work that reading it counts as, without its bodies.
    pub(crate) cost: u32,
    /// Whether all steps of `wire` are fields in the first segment, and field order is byte order.
    pub(crate) flat: bool,
    /// The distance between consecutive elements that contain no offsets; 0 for others, and for
    /// elements that count as more work than they have bytes.
    pub(crate) stride: u32,
    /// Its fields as a range of the plan's list, if all have a fixed size and one step reads them.
    pub(crate) run: Range<u32>,
    /// Whether `run` covers the whole scope.
    pub(crate) one_run: bool,
    /// Whether all steps of `loose` are fields in the first segment.
    pub(crate) loose_flat: bool,
    /// Whether it has bodies, all of them texts or arrays of plain elements in the first segment,
    /// and its work equals its bytes.
    pub(crate) nested: bool,
    /// Whether it has texts, byte strings, lists or further segments, which several scopes may
    /// share.
    pub(crate) has_bodies: bool,
}

/// One step of reading or writing a scope. `slot` is the index in the enclosing record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Fixed-size fields from index `from` up to `to` in the plan's list, also consecutive in the
    /// definition, all within the first `reach` bytes of one segment.
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
        /// The distance between its elements if one step reads each of them, they have no booleans,
        /// and the offset follows the count; otherwise 0.
        plain: u16,
    },
    Open {
        field: u32,
        slot: u32,
        row: bool,
    },
    Close,
    /// A later segment begins at the cursor.
    Segment {
        size: u32,
    },
    /// The bodies of the next `arrays` arrays alternate. In pairs, elements of the second array
    /// follow the element of the first that begins with the same number.
    Group {
        arrays: u32,
        pairs: bool,
    },
    /// A word that belongs to no field.
    Orphan {
        spot: Spot,
    },
}

/// A fixed-size field in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) scalar: Scalar,
    pub(crate) offset: u16,
    pub(crate) field: u32,
    pub(crate) slot: u32,
}

impl Op {
    /// Whether it is a field that lies entirely in the first segment.
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
    /// The name; empty for elements of arrays and rows. Earlier copies of a repeated field are
    /// called `name#1`, `name#2`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its type and position.
    #[must_use]
    pub fn kind(&self) -> &FieldKind {
        &self.kind
    }

    /// For an earlier copy, the index of the last one.
    pub(crate) fn twin(&self) -> Option<u32> {
        (self.last != self.index).then_some(self.last)
    }
}

impl Plan {
    /// The fields of the message.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        self.fields_of(&self.scope(self.root).fields)
    }

    /// The fields of an object or row.
    #[must_use]
    pub fn fields_of(&self, range: &Range<u32>) -> &[Field] {
        self.fields.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// The fields of an array element, given its scope, and whether the only field is the element
    /// itself.
    #[must_use]
    pub fn element(&self, scope: u32) -> (&[Field], bool) {
        let scope = self.scope(scope);
        (self.fields_of(&scope.fields), scope.single)
    }

    /// Names the message in an error.
    #[cold]
    pub(crate) fn named(&self, error: Error) -> Error {
        error.about(self.title.to_string())
    }

    /// Where counts and offsets are placed.
    #[must_use]
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// The minimum length of a message in bytes, without its header.
    #[must_use]
    pub fn min_length(&self) -> usize {
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
        // Indices are only created for existing scopes.
        &self.scopes[index as usize]
    }

    #[inline]
    pub(crate) fn field(&self, index: u32) -> &Field {
        // Indices are only created for existing fields.
        &self.fields[index as usize]
    }

    /// The scope of a field, by the field's index.
    pub(crate) fn scope_around(&self, field: usize) -> u32 {
        self.around.get(field).copied().unwrap_or(self.root)
    }

    /// The booleans of a scope.
    #[inline]
    pub(crate) fn bools(&self, scope: &Scope) -> &[Spot] {
        self.bools.get(scope.bools.start as usize..scope.bools.end as usize).unwrap_or_default()
    }

    /// Whether all booleans of a scope are 0 or 1; the scope has one segment, whose bytes are
    /// given.
    #[inline(always)]
    pub(crate) fn bools_hold(&self, scope: &Scope, segment: &[u8]) -> bool {
        let holds = |spot: &Spot| {
            let value = segment.get(usize::from(spot.offset));
            value.is_none_or(|value| *value <= 1)
        };
        self.bools(scope).iter().all(holds)
    }

    /// The fixed-size fields of a step.
    #[inline]
    pub(crate) fn run(&self, from: u32, to: u32) -> &[Fixed] {
        self.fixed.get(from as usize..to as usize).unwrap_or_default()
    }

    /// The fields of a scope that consists of one run.
    #[inline]
    pub(crate) fn run_of(&self, scope: &Scope) -> &[Fixed] {
        self.run(scope.run.start, scope.run.end)
    }

    /// The steps in a range.
    #[inline]
    pub(crate) fn steps(&self, range: &Range<u32>) -> &[Op] {
        self.ops.get(range.start as usize..range.end as usize).unwrap_or_default()
    }
}
