//! A message that outlives the buffers of its conversation, while hooks handle it or a breakpoint
//! holds it.

use core::fmt;

use worldwire_core::json::{Json, Style, parse};
use worldwire_core::{Limits, Result, Side, Tree};
use worldwire_dissect::{Ends, Format, Item, ItemBody, Message, Stamp};

use crate::coder::Coder;
use crate::handler::Passing;

/// An owned message.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) from: Side,
    pub(crate) name: String,
    pub(crate) body: Vec<u8>,
    moment: Moment,
    range: core::ops::Range<u64>,
    /// Further members of its line: `,"version":3`.
    members: String,
    coder: Coder,
}

/// When and between whom a message was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) stamp: Stamp,
    pub(crate) ends: Option<Ends>,
}

impl Kept {
    /// Copies a message as earlier handlers have left it.
    pub(crate) fn new(passing: &Passing<'_>, coder: &Coder) -> Self {
        let item = passing.item;
        let mut members = String::new();
        passing.message().push_members(&mut members);
        Self {
            from: item.from,
            name: passing.name.to_owned(),
            body: passing.body.to_vec(),
            moment: Moment { stamp: item.stamp, ends: item.ends.cloned() },
            range: item.range.clone(),
            members,
            coder: coder.clone(),
        }
    }

    /// A message that a hook adds.
    pub(crate) fn added(
        (from, name): (Side, String),
        body: Vec<u8>,
        moment: Moment,
        coder: &Coder,
    ) -> Self {
        let members = String::new();
        Self { from, name, body, moment, range: 0..0, members, coder: coder.clone() }
    }

    /// Changes its fields.
    pub(crate) fn replace_fields(&mut self, fields: Json) -> Result<()> {
        let members = match self.members.strip_prefix(',') {
            Some(members) => parse(&format!("{{{members}}}")).unwrap_or_default(),
            None => Json::Null,
        };
        let members = members.as_object().map(|members| members.iter());
        let members = members.into_iter().flatten();
        let members = members.map(|(key, value)| (key.to_owned(), value.clone()));
        self.body = self.coder.encode(self.from, &self.name, fields, members)?;
        Ok(())
    }

    /// The message as a line of `dissect --json`.
    pub(crate) fn line(&self) -> String {
        let mut line = String::new();
        self.with_item(|item| {
            let tree = item.tree(Tree::new(), &Limits::DEFAULT);
            Format::Json(Style::default()).write(item, &self.name, &tree, &mut line);
        });
        line.truncate(line.trim_end().len());
        line
    }

    /// Calls `f` with its item.
    pub(crate) fn with_item<R>(&self, f: impl FnOnce(&Item<'_>) -> R) -> R {
        let family = self.coder.family();
        let body = ItemBody::Message(self);
        let mut item = Item::new(self.moment.stamp, family, self.from, self.range.clone(), body);
        item.ends = self.moment.ends.as_ref();
        f(&item)
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, name, .. } = self;
        f.debug_struct("Kept").field("from", from).field("name", name).finish_non_exhaustive()
    }
}

impl Message for Kept {
    fn push_name(&self, name: &mut String) {
        name.push_str(&self.name);
    }

    fn bytes(&self) -> &[u8] {
        &self.body
    }

    fn is_message(&self) -> bool {
        true
    }

    fn is_whole(&self) -> bool {
        self.coder.tree_of(self.from, &self.name, &self.body).error().is_none()
    }

    fn tree_of<'t>(&'t self, body: &'t [u8], _: Tree<'t>, _: &'t Limits) -> Tree<'t> {
        self.coder.tree_of(self.from, &self.name, body)
    }

    fn encode(&self, fields: &Json) -> Result<Vec<u8>> {
        let mut changed = self.clone();
        changed.replace_fields(fields.clone())?;
        Ok(changed.body)
    }

    fn push_members(&self, line: &mut String) {
        line.push_str(&self.members);
    }
}

/// Appends the line of a message as `dissect --json` writes it, to continue an object: its first
/// character is a comma.
pub(crate) fn write_line(
    item: &Item<'_>,
    name: &str,
    tree: &Tree<'_>,
    is_safe: bool,
    out: &mut String,
) {
    let start = out.len();
    Format::Json(Style { safe: is_safe }).write(item, name, tree, out);
    out.replace_range(start..=start, ",");
}
