//! Collects the results that items are turned into.

use std::vec;

/// Collects what a caller turns items into: text, or values of any type.
///
/// Each conversation of a batch fills its own sink, on any thread. Afterwards
/// [`Dissection::run`](crate::Dissection::run) merges the sinks piece by piece, in capture order.
pub trait Sink: Default + Send {
    /// A full sink that is being merged into another, from the front.
    type Source;

    /// The length of the collected results, in units of the sink's choice. These lengths delimit
    /// pieces.
    fn len(&self) -> usize;

    /// Whether nothing has been collected.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reserves space for what this many items are likely to produce.
    fn expect(&mut self, items: usize) {
        let _ = items;
    }

    /// Drops everything after the first `length`: an item's incomplete output.
    fn truncate(&mut self, length: usize);

    /// Prepares the sink to be merged into another.
    fn into_source(self) -> Self::Source;

    /// Appends the next `count` units of another sink.
    fn append(&mut self, source: &mut Self::Source, count: usize);
}

impl Sink for String {
    /// The text, and the length that was merged.
    type Source = (Self, usize);

    fn len(&self) -> usize {
        self.len()
    }

    fn expect(&mut self, items: usize) {
        /// The length of a brief line, with some room to spare for events that produce several.
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
