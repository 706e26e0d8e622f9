//! The most informative values of a message, on one line.

mod leaf;
mod node;

use unicode_width::UnicodeWidthChar as _;
use worldwire_core::{NodeRef, Tree, Value};

use self::leaf::{push_leaf, push_name, push_text};
use self::node::{is_blank, is_opened, is_secret, is_vector, only_record};
use crate::item::Item;
use crate::message::NumberNames;

/// What a family declares about the values that [`Item::push_info`] shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct InfoFields {
    /// Paths of the values to show, below the message's fields and in this order: `node.NodeId`,
    /// `files[*].name`. A path to a record shows the first values in it that are neither zero nor
    /// empty; `None` does the same for the whole message.
    pub shown: Option<&'static [&'static str]>,
    /// Names of fields that are not shown: secrets whose names do not reveal that they are secret,
    /// and uninformative fields. Names such as `passwordHash`, `token` and `ticket` need no entry.
    pub hidden: &'static [&'static str],
}

/// The fields to show for each message, sorted by the message's name.
pub type InfoTable = &'static [(&'static str, &'static [&'static str])];

impl InfoFields {
    /// The fields of a message that a table selects.
    #[must_use]
    pub fn find(name: &str, table: InfoTable, hidden: &'static [&'static str]) -> Self {
        let index = table.binary_search_by(|(known, _)| (*known).cmp(name));
        let row = index.ok().and_then(|index| table.get(index));
        Self { shown: row.map(|(_, shown)| *shown), hidden }
    }
}

/// The maximum number of values.
const MAX_VALUES: usize = 8;
/// The maximum number of elements of a list.
const MAX_ELEMENTS: usize = 4;
/// The maximum number of values of a record in a list.
const MAX_INNER_VALUES: usize = 4;
/// The maximum depth below the message's fields.
const MAX_DEPTH: usize = 8;
/// The maximum number of nodes examined.
const MAX_NODES: usize = 1024;
/// The number of bytes after which nothing more is written.
const MAX_LENGTH: usize = 1024;

impl Item<'_> {
    /// Appends the most informative values of a message: `accountName="yeesha" os="win"`. Appends
    /// nothing for notes or for messages without such values. `name` is the message's name and
    /// `tree` its tree.
    ///
    /// The result is one line. Control characters and characters that change the direction of text
    /// are escaped. Passwords, tokens, digests and keys are never shown. The number of values, their
    /// depth and length, and the number of nodes examined are bounded; [`cut`] limits the width.
    pub fn push_info(&self, name: &str, tree: &Tree<'_>, out: &mut String) {
        let Some(message) = self.message() else { return };
        let InfoFields { shown, hidden } = message.info_fields(name);
        let numbers = self.number_names();
        let (start, values, nodes) = (out.len(), MAX_VALUES, MAX_NODES);
        let mut info = Info { hidden, numbers, start, values, nodes, out };
        let fields = tree.find("fields");
        match (shown, fields) {
            (Some(paths), Some(fields)) => paths.iter().for_each(|path| info.path(fields, path)),
            (Some(_), None) => {}
            (None, Some(fields)) => info.children(fields, "", 0),
            (None, None) => tree.roots().for_each(|node| info.field(node, "", 0)),
        }
    }
}

/// Cuts a line, which begins at byte `start` of `out`, to `width` columns of a terminal. A cut line
/// ends with `...`. Wide characters occupy two columns; colour codes occupy none.
pub fn cut(out: &mut String, start: usize, width: usize) {
    const END: &str = "...";
    let (mut column, mut end, mut is_colour) = (0, None, false);
    for (at, c) in out.get(start..).unwrap_or_default().char_indices() {
        if is_colour || c == '\x1b' {
            is_colour = c != 'm';
            continue;
        }
        let next = column + c.width().unwrap_or(0);
        if end.is_none() && next > width.saturating_sub(END.len()) {
            end = Some(start + at);
        }
        if next > width
            && let Some(end) = end
        {
            out.truncate(end);
            out.push_str(END.get(..width.min(END.len())).unwrap_or_default());
            return;
        }
        column = next;
    }
}

/// The number of terminal columns that a line occupies.
pub(crate) fn columns(line: &str) -> usize {
    let mut is_colour = false;
    let width = |c: char| {
        if is_colour || c == '\x1b' {
            is_colour = c != 'm';
            return 0;
        }
        c.width().unwrap_or(0)
    };
    line.chars().map(width).sum()
}

/// A line that is being written.
struct Info<'i> {
    hidden: &'static [&'static str],
    numbers: Option<&'i dyn NumberNames>,
    /// Where it begins in `out`.
    start: usize,
    /// The number of values that can still be shown.
    values: usize,
    /// The number of nodes that can still be examined.
    nodes: usize,
    out: &'i mut String,
}

impl Info<'_> {
    /// Writes the values at a declared path.
    fn path(&mut self, fields: NodeRef<'_, '_>, path: &str) {
        let mut found = Vec::new();
        self.collect(fields, path, &mut found);
        let label = path.rsplit('.').next().unwrap_or(path).trim_end_matches("[*]");
        match &found[..] {
            [] => {}
            [node] if !path.contains('*') => match node.value() {
                Value::Record if !is_vector(*node) => self.children(*node, "", 0),
                _ => self.declared(*node, label),
            },
            nodes if !self.is_full() => {
                self.begin("", label);
                self.elements(nodes.iter().copied(), label, 0);
            }
            _ => {}
        }
    }

    /// Writes a value that is shown even if it is zero.
    fn declared(&mut self, node: NodeRef<'_, '_>, label: &str) {
        let can_be_absent = matches!(node.value(), Value::Null | Value::List | Value::Span(_));
        let is_absent = can_be_absent && is_blank(node);
        if self.is_full() || is_absent || self.is_hidden(label) {
            return;
        }
        self.begin("", label);
        self.value(node, label, 0);
    }

    /// Collects the nodes at a path, at most one more than can be shown.
    fn collect<'t, 'n>(
        &mut self,
        node: NodeRef<'t, 'n>,
        path: &str,
        found: &mut Vec<NodeRef<'t, 'n>>,
    ) {
        let (segment, rest) = path.split_once('.').unwrap_or((path, ""));
        let (name, is_list) = match segment.strip_suffix("[*]") {
            Some(name) => (name, true),
            None => (segment, false),
        };
        let Some(child) = node.child(name) else { return };
        let mut step = |info: &mut Self, node| match rest {
            "" => found.push(node),
            _ => info.collect(node, rest, found),
        };
        if !is_list {
            return step(self, child);
        }
        for element in child.children() {
            if self.nodes == 0 {
                return;
            }
            self.nodes -= 1;
            step(self, element);
        }
    }

    /// Writes the informative children of a record: plain values first, because the first inner
    /// record alone can have more values than are shown.
    fn children(&mut self, record: NodeRef<'_, '_>, parent: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        // The bytes of a field that another format describes, and what they contain.
        let is_opened = is_opened(record);
        for wants_containers in [false, true] {
            for child in record.children() {
                if self.is_full() {
                    return;
                }
                self.nodes -= 1;
                let is_container = child.value().is_container() && !is_vector(child);
                let is_source = is_opened && child.name() == "bytes";
                if is_container == wants_containers && !is_source {
                    self.field(child, parent, depth);
                }
            }
        }
    }

    fn field(&mut self, node: NodeRef<'_, '_>, parent: &str, depth: usize) {
        let name = node.name();
        if self.is_full() || self.is_hidden(name) || is_blank(node) {
            return;
        }
        match node.value() {
            Value::Record if !is_vector(node) => self.children(node, name, depth + 1),
            _ => {
                self.begin(parent, name);
                self.value(node, name, depth);
            }
        }
    }

    /// Writes the name of a value.
    fn begin(&mut self, parent: &str, name: &str) {
        self.values -= 1;
        if self.out.len() > self.start {
            self.out.push(' ');
        }
        if !parent.is_empty() {
            push_name(parent, self.out);
            self.out.push('.');
        }
        push_name(name, self.out);
        self.out.push('=');
    }

    /// Writes a value, without its name. `field` is the name of the field, or of its list.
    fn value(&mut self, node: NodeRef<'_, '_>, field: &str, depth: usize) {
        let number = match node.value() {
            Value::Record if is_vector(node) => {
                self.out.push('(');
                for (index, child) in node.children().enumerate() {
                    self.out.push_str(if index > 0 { ", " } else { "" });
                    push_leaf(child, self.out);
                }
                return self.out.push(')');
            }
            Value::Record => return self.inner(node, depth + 1),
            Value::List => {
                self.out.push('[');
                self.elements(node.children(), field, depth);
                return self.out.push(']');
            }
            Value::Unsigned(number) => Some(number),
            Value::Signed(number) => u64::try_from(number).ok(),
            _ => None,
        };
        push_leaf(node, self.out);
        if let Some(number) = number
            && let Some(name) = self.numbers.and_then(|names| names.name(field, number))
        {
            self.out.push_str(" (");
            push_text(name, self.out);
            self.out.push(')');
        }
    }

    fn elements<'t, 'n: 't>(
        &mut self,
        nodes: impl Iterator<Item = NodeRef<'t, 'n>>,
        field: &str,
        depth: usize,
    ) {
        for (index, node) in nodes.enumerate() {
            self.out.push_str(if index > 0 { ", " } else { "" });
            if index == MAX_ELEMENTS || self.is_long() {
                return self.out.push_str("...");
            }
            self.nodes -= 1;
            self.value(node, field, depth);
        }
    }

    /// Writes a record in a list: `{name="Garden" size=88}`. If it contains nothing but another
    /// record, that record's name precedes the brace: `create{class="player"}`.
    fn inner(&mut self, mut record: NodeRef<'_, '_>, mut depth: usize) {
        while depth < MAX_DEPTH
            && let Some(only) = only_record(record)
        {
            push_name(only.name(), self.out);
            (record, depth) = (only, depth + 1);
        }
        self.out.push('{');
        let mut count = 0;
        for child in record.children() {
            if count == MAX_INNER_VALUES || depth > MAX_DEPTH || self.is_long() {
                break;
            }
            self.nodes -= 1;
            if self.is_hidden(child.name()) || is_blank(child) {
                continue;
            }
            self.out.push_str(if count > 0 { " " } else { "" });
            count += 1;
            push_name(child.name(), self.out);
            self.out.push('=');
            self.value(child, child.name(), depth);
        }
        self.out.push('}');
    }

    /// Whether no other value can be shown.
    fn is_full(&self) -> bool {
        self.values == 0 || self.is_long()
    }

    fn is_long(&self) -> bool {
        self.nodes == 0 || self.out.len() - self.start >= MAX_LENGTH
    }

    fn is_hidden(&self, name: &str) -> bool {
        self.hidden.contains(&name) || is_secret(name)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use core::fmt;

    use worldwire_core::json::Json;
    use worldwire_core::{Form, Limits, Names, Reader, Result, Side};

    use super::*;
    use crate::item::{ItemBody, Stamp};
    use crate::message::Message;
    use crate::{Definitions, Family};

    /// Checks that a family's table is sorted, and that its messages and their fields exist.
    pub(crate) fn assert_fits(family: &dyn Family, table: InfoTable, hidden: &[&str]) {
        assert!(table.is_sorted_by(|a, b| a.0 < b.0), "the table is sorted by name");
        assert!(hidden.is_sorted(), "{hidden:?}");
        let definitions = Definitions::built_in();
        let messages = family.vocabulary().messages(&definitions);
        for (name, paths) in table {
            let known: Vec<_> = messages.iter().filter(|known| known.name == *name).collect();
            assert!(!known.is_empty(), "there is no message {name}");
            for path in *paths {
                let first = path.split('.').next().unwrap_or_default().trim_end_matches("[*]");
                let has = known.iter().any(|known| known.fields.contains(&first));
                assert!(has || known.iter().all(|it| it.fields.is_empty()), "{name}: {path}");
                let last = path.rsplit('.').next().unwrap_or_default();
                // A hidden field may be listed if a record around it is listed too: that record
                // then does not repeat it.
                let is_inner = paths.iter().any(|outer| path.starts_with(&format!("{outer}.")));
                let is_hidden = is_secret(last) || (hidden.contains(&last) && !is_inner);
                assert!(!is_hidden, "{name}: {path} is hidden");
            }
        }
    }

    /// A message with the tree that a function reads.
    struct Made<F> {
        bytes: Vec<u8>,
        fields: InfoFields,
        read: F,
    }

    impl<F> fmt::Debug for Made<F> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Made")
        }
    }

    type Traced<'t> = Reader<'t, worldwire_core::TreeBuilder<'t>>;

    impl<F: for<'t> Fn(&mut Traced<'t>) -> Result<()>> Message for Made<F> {
        fn push_name(&self, name: &mut String) {
            name.push_str("toy.Made");
        }

        fn info_fields(&self, _: &str) -> InfoFields {
            self.fields
        }

        fn bytes(&self) -> &[u8] {
            &self.bytes
        }

        fn is_message(&self) -> bool {
            true
        }

        fn is_whole(&self) -> bool {
            true
        }

        fn tree_of<'t>(&'t self, body: &'t [u8], _: Tree<'t>, limits: &'t Limits) -> Tree<'t> {
            let mut reader = Reader::traced_within("toy", body, Tree::new(), limits);
            let outcome = reader.record("fields", |reader| (self.read)(reader));
            reader.conclude(outcome).0
        }

        fn encode(&self, _: &Json) -> Result<Vec<u8>> {
            Ok(Vec::new())
        }
    }

    fn info(
        bytes: &[u8],
        fields: InfoFields,
        read: impl for<'t> Fn(&mut Traced<'t>) -> Result<()>,
    ) -> String {
        let message = Made { bytes: bytes.to_vec(), fields, read };
        let body = ItemBody::Message(&message);
        let item = Item::new(Stamp::default(), "toy", Side::Client, 0..0, body);
        let (limits, mut out) = (Limits::DEFAULT, String::new());
        let tree = item.tree(Tree::new(), &limits);
        item.push_info("toy.Made", &tree, &mut out);
        out
    }

    #[test]
    fn values_are_in_order_and_zeros_are_missing() {
        static NAMES: Names = Names::fixed(&[(0, "Success"), (1, "Failure")]);
        let read = |reader: &mut Traced<'_>| {
            let place = reader.place();
            reader.leaf_from("result", place, Value::Enum(0, &NAMES));
            reader.u16("zero")?;
            reader.u16("count")?;
            reader.record("loc", |reader| {
                let place = reader.place();
                for (axis, value) in [("x", 1.5), ("y", -2.0), ("z", 0.0)] {
                    reader.leaf_from(axis, place, Value::F32(value));
                }
                Ok(())
            })?;
            reader.record("skill", |reader| reader.u8("id").map(drop))?;
            reader.span("name", 2, Form::Utf8)?;
            reader.bytes("blob", 9)?;
            reader.list("ids", |reader| {
                (0..6).try_for_each(|index| reader.item(index, |r| r.u8("").map(drop)))
            })
        };
        let bytes = [&[0, 0, 7, 0, 3][..], b"hi", &[1; 9], &[1, 2, 3, 4, 5, 6]].concat();
        assert_eq!(
            info(&bytes, InfoFields::default(), read),
            "result=Success count=7 loc=(1.5, -2.0, 0.0) name=\"hi\" blob=<9 bytes> skill.id=3 \
             ids=[1, 2, 3, 4, ...]"
        );
        let shown = Some(&["name", "zero", "ids[*]", "missing"][..]);
        let fields = InfoFields { shown, hidden: &[] };
        assert_eq!(info(&bytes, fields, read), "name=\"hi\" zero=0 ids=1, 2, 3, 4, ...");
        let fields = InfoFields { shown: None, hidden: &["name", "ids", "id", "loc"] };
        assert_eq!(info(&bytes, fields, read), "result=Success count=7 blob=<9 bytes>");
    }

    #[test]
    fn secrets_are_never_shown() {
        for name in [
            "password",
            "passwordHash",
            "PassKey3",
            "authToken",
            "token",
            "SteamAuthTicket",
            "Digest",
            "encryptionKey",
            "loginKey",
            "x_secret_y",
        ] {
            assert!(is_secret(name), "{name}");
            let shown = Some(&["password", "authToken"][..]);
            for shown in [None, shown] {
                let fields = InfoFields { shown, hidden: &[] };
                let text = info(b"abc", fields, |reader| {
                    reader.span("password", 1, Form::Utf8)?;
                    reader.record("authToken", |reader| reader.u8("inside").map(drop))?;
                    reader.u8("x").map(drop)
                });
                assert!(!text.contains("97") && !text.contains('a'), "{text}");
            }
        }
        for name in ["passenger", "passivity", "accountName", "key", "tick", "os", "", "p", "é"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn hostile_text_stays_on_its_line() {
        let shown = |text: &str| {
            info(text.as_bytes(), InfoFields::default(), |reader| {
                let length = reader.remaining();
                reader.span("text", length, Form::Utf8).map(drop)
            })
        };
        let text = "a\u{1b}[2J\n\u{202e}\u{2028}\u{200b}\u{e0041}\"'é漢";
        let wanted = r#"text="a\u{1b}[2J\n\u{202e}\u{2028}\u{200b}\u{e0041}\"'é漢""#;
        assert_eq!(shown(text), wanted);
        // A filter accepts this form.
        assert_eq!(shown("dat\\new.age"), r#"text=r"dat\new.age""#);
        assert_eq!(shown("dat\\new\t"), r#"text="dat\\new\t""#);
        let cut = "\\".to_owned() + &"a".repeat(leaf::MAX_TEXT) + "\n";
        assert_eq!(shown(&cut), format!("text=r\"\\{}...\"", "a".repeat(leaf::MAX_TEXT - 1)));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        for (form, unit) in [
            (Form::Utf8, "é漢".as_bytes().to_vec()),
            (Form::InvertedUtf8, "é漢".bytes().map(|byte| !byte).collect()),
            (Form::Utf16, "é𝄞".encode_utf16().flat_map(u16::to_le_bytes).collect()),
            (Form::Latin1, vec![0xe9]),
        ] {
            for before in 0..4 {
                let flip = if form == Form::InvertedUtf8 { !b'_' } else { b'_' };
                let head: &[u8] = if form == Form::Utf16 { &[b'_', 0] } else { &[flip] };
                let bytes = [head.repeat(before), unit.repeat(1000)].concat();
                let text = info(&bytes, InfoFields::default(), |reader| {
                    let length = reader.remaining();
                    reader.span("t", length, form).map(drop)
                });
                assert!(text.ends_with("...\"") && text.contains('é'), "{form:?}: {text}");
                assert_eq!(text.chars().count(), "t=\"...\"".len() + leaf::MAX_TEXT);
            }
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        fn nest(reader: &mut Traced<'_>, depth: usize) -> Result<()> {
            reader.list("list", |reader| {
                (0..6).try_for_each(|index| match depth {
                    0 => Ok(()),
                    _ => reader.item(index, |r| r.record("", |r| nest(r, depth - 1))),
                })
            })
        }
        let text = info(&[], InfoFields::default(), |reader| nest(reader, 5));
        assert!(text.len() < 10_000, "{}", text.len());
        let text = info(&[1; 1000], InfoFields::default(), |reader| {
            (0..1000).try_for_each(|_| reader.u8("n").map(drop))
        });
        assert_eq!(text, ["n=1"; MAX_VALUES].join(" "));
    }

    #[test]
    fn lines_are_cut_to_columns() {
        use super::cut as cut_line;
        let cut = |text: &str, width| {
            let mut out = format!("before\n{text}");
            cut_line(&mut out, 7, width);
            assert!(out.starts_with("before\n") && columns(&out[7..]) <= width, "{out}");
            out.split_off(7)
        };
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abc...");
        assert_eq!(cut("漢字漢字", 8), "漢字漢字");
        assert_eq!(cut("漢字漢字", 7), "漢字...");
        assert_eq!(cut("漢字漢字", 6), "漢...");
        assert_eq!(cut("\x1b[1mabcdef\x1b[0m", 6), "\x1b[1mabcdef\x1b[0m");
        assert_eq!(cut("abc", 2), "..");
        assert_eq!(cut("abc", 0), "");
    }
}
