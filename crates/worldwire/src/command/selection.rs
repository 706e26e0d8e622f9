//! The items selected by `--stream` and `--filter`.

use worldwire_core::{Limits, Tree};
use worldwire_dissect::filter::{Filter, Subject};
use worldwire_dissect::{Item, Scratch};

use super::dissect::refuse_ambiguity;
use crate::output::Failure;

/// Which items to show or count.
#[derive(Debug)]
pub(super) struct Selection {
    /// Only items of this conversation.
    pub(super) stream: Option<u64>,
    /// Only items that match.
    pub(super) filter: Option<Filter>,
}

/// A selected item, with its name and fields.
pub(super) struct Shown<'s, 'i> {
    pub(super) item: &'s Item<'i>,
    pub(super) name: &'s str,
    pub(super) tree: &'s Tree<'i>,
    /// Whether it was not shown before; see [`Scratch::is_repeated`].
    pub(super) is_first: bool,
}

impl Selection {
    /// Passes an item to `show` if it is selected. `needs_fields` states whether `show` uses the
    /// tree; if not, the tree may be empty. Returns false if the filter hides the item.
    pub(super) fn pass(
        &self,
        item: &Item<'_>,
        scratch: &mut Scratch,
        needs_fields: bool,
        show: impl FnOnce(&Shown<'_, '_>),
    ) -> bool {
        if self.stream.is_some_and(|stream| stream != item.stamp.stream) {
            return true;
        }
        let (name, is_first, limits) = (&*scratch.name, !scratch.is_repeated, Limits::DEFAULT);
        let needs_fields = needs_fields || self.filter.is_some();
        // The output and the filter use only the tree's fields.
        let tree = match needs_fields {
            true => item.tree(core::mem::take(&mut scratch.tree).recycle(), &limits),
            false => Tree::new(),
        };
        let matches = |filter: &Filter| filter.matches(&Subject::of(item, name, &tree));
        let is_selected = self.filter.as_ref().is_none_or(matches);
        if is_selected {
            show(&Shown { item, name, tree: &tree, is_first });
        }
        if needs_fields {
            scratch.tree = tree.recycle();
        }
        is_selected
    }

    /// Whether an item is selected. The scratch is used as in [`pass`](Self::pass).
    pub(super) fn has(&self, item: &Item<'_>, scratch: &mut Scratch) -> bool {
        let mut is_selected = false;
        self.pass(item, scratch, false, |_| is_selected = true);
        is_selected
    }

    /// Refuses a filter whose path can mean several fields of a message.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.filter.as_ref().map_or(Ok(()), |filter| refuse_ambiguity(filter.ambiguity()))
    }
}
