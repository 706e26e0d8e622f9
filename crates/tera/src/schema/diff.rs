//! Differences between two versions of a layout.

use core::fmt;

use super::parse::{Line, Type};

/// Maximum number of steps for comparing two definitions line by line; beyond it they are compared
/// by name only.
const MAX_STEPS: usize = 1 << 24;

/// One difference between an old and a new definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A field only in the new definition.
    Added {
        /// Its path: `members.name`.
        path: String,
        /// Its type.
        kind: String,
        /// The field before it.
        after: Option<String>,
    },
    /// A field only in the old definition.
    Removed {
        /// Its path.
        path: String,
        /// Its type.
        kind: String,
    },
    /// A field whose type changed.
    Retyped {
        /// Its path.
        path: String,
        /// The old type.
        from: String,
        /// The new one.
        to: String,
    },
    /// A field at the same position with the same type but a different name.
    Renamed {
        /// The old path.
        from: String,
        /// The new one.
        to: String,
        /// The type.
        kind: String,
    },
    /// A field at a different position.
    Moved {
        /// Its path.
        path: String,
        /// The field before it now.
        after: Option<String>,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |after: &Option<String>| match after {
            Some(after) => format!("after {after}"),
            None => "before all others".to_owned(),
        };
        // The path of a count or offset line already contains its type.
        let field = |kind: &str, path: &str| match path.strip_prefix(kind) {
            Some(rest) if rest.starts_with(' ') => path.to_owned(),
            _ => format!("{kind} {path}"),
        };
        match self {
            Self::Added { path, kind, after } => {
                write!(f, "+ {}, {}", field(kind, path), place(after))
            }
            Self::Removed { path, kind } => write!(f, "- {}", field(kind, path)),
            Self::Retyped { path, from, to } => write!(f, "~ {path}: {from} became {to}"),
            Self::Renamed { from, to, kind } => write!(f, "~ {kind} {from} is now called {to}"),
            Self::Moved { path, after } => write!(f, "~ {path} moved {}", place(after)),
        }
    }
}

/// The changes from one definition to another, in the order of the new one. Removed fields are
/// listed where they used to be.
///
/// ```
/// use worldwire_tera::schema::{Definition, FileName, ParseOptions, diff::diff};
/// let read = |text| {
///     let file = FileName::parse("S_A.1.def").unwrap();
///     Definition::parse(&file, text, &ParseOptions::default()).unwrap()
/// };
/// let (old, new) = (read("int32 id\nint32 hp\n"), read("int32 id\nint64 hp\nstring name\n"));
/// let changes: Vec<_> =
///     diff(old.lines(), new.lines()).iter().map(ToString::to_string).collect();
/// assert_eq!(changes, ["~ hp: int32 became int64", "+ string name, after hp"]);
/// ```
#[must_use]
pub fn diff(old: &[Line], new: &[Line]) -> Vec<Change> {
    let (old, new) = (entries(old), entries(new));
    let same = common(&old, &new);
    let mut changes = Vec::new();
    let (mut from_old, mut from_new) = (0, 0);
    let end = (old.len(), new.len());
    // Common lines are anchors; the lines between two of them are compared separately.
    for (to_old, to_new) in same.into_iter().chain([end]) {
        let gone = old.get(from_old..to_old).unwrap_or_default();
        let come = new.get(from_new..to_new).unwrap_or_default();
        let before = from_new.checked_sub(1).and_then(|index| new.get(index));
        changes.push((gone, come, before));
        (from_old, from_new) = (to_old + 1, to_new + 1);
    }
    let gaps = changes;
    let all_gone: std::collections::HashMap<&str, &Entry> =
        gaps.iter().flat_map(|gap| gap.0).map(|entry| (&*entry.path, entry)).collect();
    let all_come: std::collections::HashSet<&str> =
        gaps.iter().flat_map(|gap| gap.1).map(|entry| &*entry.path).collect();
    let mut changes = Vec::new();
    for (gone, come, before) in gaps {
        let mut left = gone.iter().filter(|entry| !all_come.contains(&*entry.path)).peekable();
        let mut after = before.map(|entry| entry.path.clone());
        for entry in come {
            let Entry { path, kind } = entry;
            let change = match all_gone.get(&**path) {
                Some(old) if old.kind == *kind => {
                    Change::Moved { path: path.clone(), after: after.take() }
                }
                Some(old) => {
                    Change::Retyped { path: path.clone(), from: old.kind.clone(), to: kind.clone() }
                }
                None => match left.peek() {
                    Some(old) if old.kind == *kind && parent(&old.path) == parent(path) => {
                        let from = old.path.clone();
                        left.next();
                        Change::Renamed { from, to: path.clone(), kind: kind.clone() }
                    }
                    _ => {
                        let after = after.take();
                        Change::Added { path: path.clone(), kind: kind.clone(), after }
                    }
                },
            };
            changes.push(change);
            after = Some(path.clone());
        }
        changes.extend(left.map(|Entry { path, kind }| Change::Removed {
            path: path.clone(),
            kind: kind.clone(),
        }));
    }
    changes
}

/// A line in comparable form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    path: String,
    kind: String,
}

fn entries(lines: &[Line]) -> Vec<Entry> {
    let mut open: Vec<&str> = Vec::new();
    let entry = |line: &'_ Line, open: &[&str]| {
        let mut path = open.join(".");
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&line.name);
        let mut kind = line.kind.to_string();
        if line.interleaved {
            kind.push_str("[interleaved]");
        }
        if let Some(range) = line.range {
            kind.push_str(&format!(" {range}"));
        }
        // An offset line has the same name as its field.
        if matches!(line.kind, Type::Meta(_)) {
            path = format!("{kind} {path}");
        }
        Entry { path, kind }
    };
    let mut entries = Vec::with_capacity(lines.len());
    for line in lines {
        open.truncate(line.depth);
        entries.push(entry(line, &open));
        open.push(&line.name);
    }
    entries
}

fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(parent, _)| parent)
}

/// The index pairs of a longest common subsequence.
fn common(old: &[Entry], new: &[Entry]) -> Vec<(usize, usize)> {
    let front = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (old.get(front..).unwrap_or(&[]), new.get(front..).unwrap_or(&[]));
    let mut same: Vec<_> = (0..front).map(|index| (index, index)).collect();
    let (rows, columns) = (old_rest.len() + 1, new_rest.len() + 1);
    if rows.saturating_mul(columns) > MAX_STEPS {
        return same;
    }
    // For each pair of positions, the length of the subsequence from there on.
    let mut lengths = vec![0_u32; rows * columns];
    for (row, old) in old_rest.iter().enumerate().rev() {
        for (column, new) in new_rest.iter().enumerate().rev() {
            lengths[row * columns + column] = if old == new {
                lengths[(row + 1) * columns + column + 1] + 1
            } else {
                lengths[(row + 1) * columns + column].max(lengths[row * columns + column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    while row + 1 < rows && column + 1 < columns {
        if old_rest[row] == new_rest[column] {
            same.push((front + row, front + column));
            (row, column) = (row + 1, column + 1);
        } else if lengths[(row + 1) * columns + column] >= lengths[row * columns + column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::parse::{Statement, parse};

    fn lines(text: &str) -> Vec<Line> {
        let statements = parse("t", text).0.into_iter();
        let line = |statement| match statement {
            Statement::Line(line) => Some(line),
            Statement::Include { .. } => None,
        };
        statements.filter_map(line).collect()
    }

    #[test]
    fn every_kind_of_change_is_reported() {
        let old = "int32 id\nint32 gone\nstring name\narray l\n- int32 a\n- int16 b\nbool last\n";
        let new = "bool last\nint32 id\nstring title\narray l\n- int32 a\n- int32 b\n- byte c\n";
        let changes: Vec<_> =
            diff(&lines(old), &lines(new)).iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(changes.join("\n"), @r"
        ~ last moved before all others
        + string title, after id
        - int32 gone
        - string name
        ~ l.b: int16 became int32
        + byte l.c, after l.b
        ");
        assert_eq!(diff(&lines(old), &lines(old)), []);
        let changes = diff(&lines("string a\n"), &lines("ref a\nstring a\n"));
        assert_eq!(changes[0].to_string(), "+ ref a, before all others");
    }
}
