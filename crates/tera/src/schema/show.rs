//! The fields of a compiled definition with their positions, for display.

use core::fmt;

use super::plan::{Field, FieldKind, Plan, Spot, TextPlace};

/// Bytes before the fields of an element: its own offset and the next element's.
const LINKS: u32 = 4;

/// One field of a compiled definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its nesting depth.
    pub depth: usize,
    /// Its name; empty for an array element that is a plain value.
    pub name: String,
    /// Its type.
    pub kind: String,
    /// Its parts that have fixed positions.
    pub parts: Vec<Part>,
}

/// A part of a field with a fixed position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its kind: `value`, `count`, `offset` or `text`.
    pub what: &'static str,
    /// Its offset in bytes: from the start of the message; below an array, from the start of the
    /// element; in a later segment, from the end of the body before it.
    pub at: u32,
    /// Its segment: 0, or the number of variable-length bodies before it.
    pub segment: u16,
    /// Its size in bytes; 0 for a text.
    pub size: u32,
}

impl Plan {
    /// All fields with their positions, in the order of the definition. `header` is the number of
    /// bytes before the fields.
    #[must_use]
    pub fn rows(&self, header: u32) -> Vec<Row> {
        let mut rows = Vec::new();
        self.add_rows(self.fields(), header, 0, &mut rows);
        rows
    }

    fn add_rows(&self, fields: &[Field], start: u32, depth: usize, rows: &mut Vec<Row>) {
        for field in fields {
            let part = |what, spot: Spot, size| {
                let start = if spot.segment == 0 { start } else { 0 };
                Part { what, at: start + u32::from(spot.offset), segment: spot.segment, size }
            };
            let (kind, parts) = match field.kind() {
                FieldKind::Scalar { scalar, spot } => {
                    let size = u32::try_from(scalar.size()).unwrap_or(0);
                    (scalar.name().to_owned(), vec![part("value", *spot, size)])
                }
                FieldKind::Text { place: TextPlace::Offset(spot) } => {
                    ("string".to_owned(), vec![part("offset", *spot, 2)])
                }
                FieldKind::Text { place: TextPlace::Here(spot) } => {
                    ("string".to_owned(), vec![part("text", *spot, 0)])
                }
                FieldKind::Bytes { offset, count } => {
                    let parts = vec![part("offset", *offset, 2), part("count", *count, 2)];
                    ("bytes".to_owned(), parts)
                }
                FieldKind::Array { count, offset, interleaved, .. } => {
                    let kind = if *interleaved { "array[interleaved]" } else { "array" };
                    let parts = vec![part("count", *count, 2), part("offset", *offset, 2)];
                    (kind.to_owned(), parts)
                }
                FieldKind::Object(_) => ("object".to_owned(), Vec::new()),
                FieldKind::Row(range) => (format!("row of {}", range.len()), Vec::new()),
            };
            rows.push(Row { depth, name: field.name().to_owned(), kind, parts });
            match field.kind() {
                FieldKind::Array { scope, .. } => {
                    self.add_rows(self.element(*scope).0, LINKS, depth + 1, rows);
                }
                FieldKind::Object(range) => {
                    self.add_rows(self.fields_of(range), start, depth + 1, rows);
                }
                // All values of a row have the same layout.
                FieldKind::Row(range) => {
                    let first = self.fields_of(range).get(..1).unwrap_or_default();
                    self.add_rows(first, start, depth + 1, rows);
                }
                _ => {}
            }
        }
    }
}

/// `4  int32 id`, `6/8  array members` (count and offset), `1+0  int32 tail` (after a body).
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<String> = self
            .parts
            .iter()
            .map(|part| match part.segment {
                0 => part.at.to_string(),
                segment => format!("{segment}+{}", part.at),
            })
            .collect();
        let name = if self.name.is_empty() { "(element)" } else { &self.name };
        write!(f, "{:>9}  {:indent$}", places.join("/"), "", indent = self.depth * 2)?;
        write!(f, "{} {name}", self.kind)
    }
}

#[cfg(test)]
mod tests {
    use crate::schema::Definition;

    #[test]
    fn offsets_count_from_the_message_or_the_element() {
        let text = "int32 id\nstring name\nobject o\n- bool b\n- bytes c\narray l\n- vec3 at\n\
                    - array<uint16> m\nint16 tail\n";
        let definition = Definition::of_text(text);
        let rows: Vec<_> = definition.plan().rows(4).iter().map(ToString::to_string).collect();
        let wanted = [
            "       14  int32 id",
            "        4  string name",
            "           object o",
            "      1+0    bool b",
            "      6/8    bytes c",
            "    10/12  array l",
            "        8    vec3 at",
            "      4/6    array m",
            "        4      uint16 (element)",
            "      2+0  int16 tail",
        ];
        assert_eq!(rows, wanted);
    }
}
