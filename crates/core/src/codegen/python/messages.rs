//! Dataclasses for messages that a protocol crate declares.

use core::fmt::Write as _;
use std::collections::HashMap;

use super::{Names, Value, documented, module, quoted};
use crate::codegen::{Taken, camel};
use crate::{Error, FieldInfo, Form, MessageInfo, Result, Shape, nearest};

/// Deeper records are plain dictionaries.
const MAX_DEPTH: usize = 8;
/// Names that no class can have.
const IMPORTED: [&str; 9] =
    ["Any", "ClassVar", "Dict", "Fields", "List", "Message", "Optional", "Union", "Vec3"];
/// The condition of fields that a mask announces.
const MASKED: &str = "masked";

/// A Python module with a dataclass for each selected message of these tables, or for all if the
/// selection is empty. A table has the prefix of its messages' names, which may be empty. It can be
/// selected by its title.
///
/// # Errors
/// A selected name that no table has.
pub fn messages(tables: &[Table], selection: &[String]) -> Result<String> {
    let name_of = |table: &Table, message: &MessageInfo| match table.prefix {
        "" => message.name.to_owned(),
        prefix => format!("{prefix}.{}", message.name),
    };
    let rows = || tables.iter().flat_map(|table| table.messages.iter().map(move |it| (table, it)));
    let is_named = |word: &String, (table, message): &(&Table, &MessageInfo)| {
        table.title == word || name_of(table, message) == *word
    };
    for word in selection {
        if !rows().any(|row| is_named(word, &row)) {
            let names: Vec<String> =
                rows().map(|(table, message)| name_of(table, message)).collect();
            let near = nearest(word, names.iter().map(String::as_str));
            let error = Error::value(
                "the name of a message or of a group of messages",
                format!("\"{word}\""),
            );
            return Err(match near {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => error,
            });
        }
    }
    let mut classes = Classes::default();
    for word in IMPORTED {
        classes.taken.fresh(word.to_owned());
    }
    for row in rows() {
        if selection.is_empty() || selection.iter().any(|word| is_named(word, &row)) {
            let (table, message) = row;
            classes.message(&name_of(table, message), table.title, message);
        }
    }
    Ok(module(&classes.source))
}

/// Messages whose names have the same prefix.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The word that selects all of them: `auth`.
    pub title: &'static str,
    /// The prefix of their names, without the dot.
    pub prefix: &'static str,
    /// The messages.
    pub messages: &'static [MessageInfo],
}

#[derive(Default)]
struct Classes {
    source: String,
    taken: Taken,
    /// The classes of records, by their fields: many messages contain the same record.
    records: HashMap<String, String>,
}

impl Classes {
    fn message(&mut self, name: &str, title: &str, message: &MessageInfo) {
        let class = self.taken.fresh(camel(&format!("{title}_{}", message.name), "Msg"));
        let fields = self.fields(&(message.fields)(), &class, 0);
        let sender = message.sender.name();
        let about = documented(&format!("{} Sent by the {sender}.", message.doc));
        let _ = write!(self.source, "\n\n@dataclass\nclass {class}(Message):\n");
        let _ = writeln!(self.source, "    \"\"\"{about}\"\"\"\n");
        let _ = writeln!(self.source, "    NAME: ClassVar[str] = {}", quoted(name));
        self.source.push_str(&fields);
    }

    fn fields(&mut self, fields: &[FieldInfo], class: &str, depth: usize) -> String {
        let (mut names, mut out) = (Names::default(), String::new());
        for field in fields {
            let about = About { class, field, depth };
            let line = match self.kind(&field.shape, &about) {
                Kind::Plain(kind) => names.field(field.name, Value::Plain(kind)),
                Kind::Bytes(size) => names.field(field.name, Value::Bytes(size)),
                Kind::Group(class) => names.field(field.name, Value::Group(&class)),
                Kind::List(kind, of) => names.field(field.name, Value::List(&kind, of.as_deref())),
                Kind::Optional(kind) => names.field(field.name, Value::Optional(kind)),
                Kind::Absent(kind) => names.field(field.name, Value::Absent(kind)),
            };
            let _ = writeln!(out, "    {line}");
            let doc = documented(field.doc);
            if !doc.is_empty() {
                let _ = writeln!(out, "    \"\"\"{doc}\"\"\"");
            }
        }
        out
    }

    fn kind(&mut self, shape: &Shape, about: &About<'_>) -> Kind {
        match shape {
            Shape::List(_, inner) | Shape::Array(_, inner) | Shape::Rest(inner) => {
                match self.kind(inner, about) {
                    Kind::Plain(kind) => Kind::List(format!("List[{kind}]"), None),
                    Kind::Bytes(_) => Kind::List("List[bytes]".to_owned(), None),
                    Kind::Group(class) => Kind::List(format!("List[{class}]"), Some(class)),
                    Kind::List(kind, of) => Kind::List(format!("List[{kind}]"), of),
                    _ => Kind::List("List[Any]".to_owned(), None),
                }
            }
            Shape::Nested(_, _, inner) => self.kind(inner, about),
            Shape::Optional(MASKED, inner) => match self.kind(inner, about) {
                Kind::Plain(kind) | Kind::Optional(kind) | Kind::Absent(kind) => Kind::Absent(kind),
                Kind::Bytes(_) => Kind::Absent("bytes"),
                _ => Kind::Absent("Any"),
            },
            // It may be absent, whatever its type.
            Shape::Optional(_, inner) => match self.kind(inner, about) {
                Kind::Plain(kind) | Kind::Optional(kind) => Kind::Optional(kind),
                Kind::Absent(kind) => Kind::Absent(kind),
                Kind::Bytes(_) => Kind::Optional("bytes"),
                _ => Kind::Optional("Any"),
            },
            Shape::Record(fields) if about.depth < MAX_DEPTH => self.record(&fields(), about),
            Shape::Masked(_, fields) if about.depth < MAX_DEPTH => {
                let masked = |(_, field): (u32, FieldInfo)| FieldInfo {
                    shape: Shape::Optional(MASKED, field.shape.into()),
                    ..field
                };
                let fields: Vec<FieldInfo> = fields().into_iter().map(masked).collect();
                self.record(&fields, about)
            }
            Shape::Record(_) | Shape::Masked(..) => Kind::Plain("Dict[str, Any]"),
            shape => plain(shape),
        }
    }

    fn record(&mut self, fields: &[FieldInfo], about: &About<'_>) -> Kind {
        let name = about.record_name();
        let body = self.fields(fields, &name, about.depth + 1);
        if let Some(known) = self.records.get(&body) {
            return Kind::Group(known.clone());
        }
        let class = self.taken.fresh(name);
        let _ = write!(self.source, "\n\n@dataclass\nclass {class}(Fields):\n");
        let _ = writeln!(self.source, "    \"\"\"`{}` of a message.\"\"\"\n", about.field.name);
        self.source.push_str(if body.is_empty() { "    pass\n" } else { &body });
        self.records.insert(body, class.clone());
        Kind::Group(class)
    }
}

/// The type of a field in Python.
enum Kind {
    Plain(&'static str),
    /// This many bytes.
    Bytes(usize),
    /// An object of a class.
    Group(String),
    /// A list type, and the class of its innermost elements.
    List(String, Option<String>),
    Optional(&'static str),
    Absent(&'static str),
}

/// The field whose type is being described, its class, and its depth.
struct About<'f> {
    class: &'f str,
    field: &'f FieldInfo,
    depth: usize,
}

impl About<'_> {
    /// The class of a record in the field: its name in the layout, or one derived from the field's.
    fn record_name(&self) -> String {
        let words = self.field.layout.split(|c: char| !c.is_ascii_alphanumeric());
        let mut types = words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()));
        match (types.next(), types.next()) {
            (Some(name), None) => camel(name, "Part"),
            _ => camel(&format!("{}_{}", self.class, self.field.name), "Part"),
        }
    }
}

/// The type of a value without parts.
fn plain(shape: &Shape) -> Kind {
    Kind::Plain(match shape {
        Shape::Unsigned(_) | Shape::Hex(_) | Shape::Signed(_) => "int",
        Shape::Float(_) => "float",
        Shape::Bool(_) => "bool",
        Shape::Enum { .. } => "Union[int, str]",
        Shape::Flags(..) => return Kind::List("List[str]".to_owned(), None),
        Shape::Fixed(Form::Bytes, size) => return Kind::Bytes(*size),
        Shape::Padded(Form::Bytes, _) => "bytes",
        // These can contain other formats, which are decoded.
        Shape::Counted { form: Form::Bytes, .. } | Shape::Terminated(Form::Bytes) | Shape::Tail => {
            return Kind::Absent("Any");
        }
        Shape::Fixed(..) | Shape::Padded(..) | Shape::Terminated(_) | Shape::Counted { .. } => {
            "str"
        }
        _ => return Kind::Absent("Any"),
    })
}

#[cfg(test)]
#[expect(
    dead_code,
    elided_lifetimes_in_paths,
    unreachable_pub,
    reason = "the macros are made for other crates"
)]
mod tests {
    use super::*;
    use crate::{Bytes32, Float, List32, Messages as _, record, wire_enum};

    wire_enum! {
        /// A color.
        pub enum Color(u8) {
            /// Red.
            Red = 1,
        }
    }

    record! {
        /// A part.
        pub struct Part {
            number "number": u16,
            class "class": Float,
        }
    }

    record! {
        /// Optional values.
        pub struct Options: mask u32 {
            0 size "size": u8,
            1 class "class": Part,
        }
    }

    crate::messages! {
        /// The messages of this test.
        pub enum TestMessage<'a>: "test", Client;
        reserved {}

        /// Says "hello".
        1 Hello<'a> {
            /// Whom it "greets".
            color "color": Color,
            part "part": Part,
            parts "parts": List32<Part, 8>,
            late "late": u8 where color.0 > 1,
            data "data": Bytes32<'a, 8>,
            options "options": Options,
            digest "digest": [u8; 4],
        }

        /// Nothing.
        2 Nothing {}
    }

    #[test]
    fn messages_become_classes() {
        let table = Table { title: "test", prefix: "test", messages: TestMessage::INFO };
        let source = messages(&[table], &[]).unwrap();
        let (_, classes) = source.split_once("\n\n@dataclass").unwrap();
        assert_eq!(
            classes,
            r#"
class Part(Fields):
    """`part` of a message."""

    number: int = 0
    class_: float = named("class", 0.0)


@dataclass
class Options(Fields):
    """`options` of a message."""

    size: Optional[int] = absent()
    class_: Optional[Any] = absent("class")


@dataclass
class TestHello(Message):
    """Says hello. Sent by the client."""

    NAME: ClassVar[str] = "test.Hello"
    color: Union[int, str] = 0
    """Whom it greets."""
    part: Part = group(Part)
    parts: List[Part] = items(Part)
    late: Optional[int] = None
    data: Optional[Any] = absent()
    options: Options = group(Options)
    digest: bytes = bytes(4)


@dataclass
class TestNothing(Message):
    """Nothing. Sent by the client."""

    NAME: ClassVar[str] = "test.Nothing"
"#
        );
        let select = |word: &str| messages(&[table], &[word.to_owned()]);
        assert!(!select("test.Nothing").unwrap().contains("TestHello"));
        assert!(select("test").unwrap().contains("TestHello"));
        let error = select("test.Nothin").unwrap_err().to_string();
        assert!(error.contains("did you mean \"test.Nothing\"?"), "{error}");
    }
}
