//! Where the things are collected that items become.

use std::vec;

/// Collects what the items of a capture become: text, or a list of values of any type.
///
/// Every conversation of a batch fills a sink of its own, on any thread. Afterwards
/// [`Dissection::run`](crate::Dissection::run) merges them piece by piece, in capture order.
pub trait Sink: Default + Send {
    /// A full sink that is being merged into another one, from its front.
    type Source;

    /// How much has been collected. A piece is everything that was added between two moments.
    fn len(&self) -> usize;

    /// Whether nothing has been collected.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes room for what so many items likely become.
    fn expect(&mut self, items: usize) {
        let _ = items;
    }

    /// Drops everything behind the first `length`: an item's unfinished output.
    fn truncate(&mut self, length: usize);

    /// Starts to merge.
    fn into_source(self) -> Self::Source;

    /// Appends the next `count` from another sink.
    fn append(&mut self, source: &mut Self::Source, count: usize);
}

impl Sink for String {
    /// The text and how much of it was merged.
    type Source = (Self, usize);

    fn len(&self) -> usize {
        self.len()
    }

    fn expect(&mut self, items: usize) {
        /// A brief line; some events become several.
        const LINE: usize = 96;
        self.reserve(items * LINE);
    }

    fn truncate(&mut self, length: usize) {
        self.truncate(length);
    }

    fn into_source(self) -> Self::Source {
        (self, 0)
    }

    fn append(&mut self, (text, merged): &mut Self::Source, count: usize) {
        let end = merged.saturating_add(count);
        self.push_str(text.get(*merged..end).unwrap_or_default());
        *merged = end;
    }
}

impl<T: Send> Sink for Vec<T> {
    type Source = vec::IntoIter<T>;

    fn len(&self) -> usize {
        self.len()
    }

    fn truncate(&mut self, length: usize) {
        self.truncate(length);
    }

    fn into_source(self) -> Self::Source {
        self.into_iter()
    }

    fn append(&mut self, source: &mut Self::Source, count: usize) {
        self.extend(source.take(count));
    }
}

/// For callers who only want the overviews.
impl Sink for () {
    type Source = ();

    fn len(&self) -> usize {
        0
    }

    fn truncate(&mut self, _: usize) {}

    fn into_source(self) {}

    fn append(&mut self, (): &mut (), _: usize) {}
}

#[cfg(test)]
mod tests {
    use super::Sink;

    fn merged<S: Sink>(mut whole: S, [first, second]: [S; 2]) -> S {
        let (mut first, mut second) = (first.into_source(), second.into_source());
        whole.append(&mut first, 2);
        whole.append(&mut second, 1);
        whole.append(&mut first, 1);
        whole
    }

    #[test]
    fn pieces_are_merged_from_the_front() {
        assert_eq!(merged("_".to_owned(), ["abc".to_owned(), "x".to_owned()]), "_abxc");
        assert_eq!(merged(vec![0], [vec![1, 2, 3], vec![9]]), [0, 1, 2, 9, 3]);
    }
}
