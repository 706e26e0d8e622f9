//! A cache of nodes' contents, which are in the database.

use std::collections::HashMap;

use lru::LruCache;

use super::content::Content;

/// A bounded cache, plus the contents that the current batch needs.
#[derive(Debug)]
pub(crate) struct Contents {
    cache: LruCache<u32, Content>,
    bytes: usize,
    most: usize,
    /// Contents loaded for the current batch. They stay until it ends, no matter how large they
    /// are.
    loaded: HashMap<u32, Content>,
}

/// The approximate overhead of caching a node's content, in bytes.
const OVERHEAD: usize = 96;

impl Contents {
    pub(crate) fn new(most: usize) -> Self {
        Self { cache: LruCache::unbounded(), bytes: 0, most, loaded: HashMap::new() }
    }

    pub(crate) fn get(&mut self, id: u32) -> Option<Content> {
        self.loaded.get(&id).or_else(|| self.cache.get(&id)).cloned()
    }

    /// Whether a node's content is in memory. This check does not count as a use of it.
    pub(crate) fn has(&self, id: u32) -> bool {
        self.loaded.contains_key(&id) || self.cache.contains(&id)
    }

    /// Adds a node's content from the database.
    pub(crate) fn loaded(&mut self, id: u32, content: Content) {
        self.loaded.insert(id, content);
    }

    /// Ends the batch. Its contents can then be evicted.
    pub(crate) fn end_batch(&mut self) {
        for (id, content) in std::mem::take(&mut self.loaded) {
            self.keep(id, content);
        }
    }

    /// Adds a node's committed content.
    pub(crate) fn keep(&mut self, id: u32, content: Content) {
        self.bytes += content.len() + OVERHEAD;
        if let Some(old) = self.cache.put(id, content) {
            self.bytes -= old.len() + OVERHEAD;
        }
        while self.bytes > self.most
            && let Some((_, old)) = self.cache.pop_lru()
        {
            self.bytes -= old.len() + OVERHEAD;
        }
    }

    pub(crate) fn forget(&mut self, id: u32) {
        self.loaded.remove(&id);
        if let Some(old) = self.cache.pop(&id) {
            self.bytes -= old.len() + OVERHEAD;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_contents_are_evicted() {
        let mut contents = Contents::new(4 * (OVERHEAD + 10));
        let content = |byte| Content::from([byte; 10]);
        for id in 1..=4 {
            contents.keep(id, content(0));
        }
        assert_eq!(contents.get(1).as_deref(), Some(&[0; 10][..]));
        contents.loaded(5, content(5));
        contents.keep(6, content(6));
        assert!(contents.has(1) && !contents.has(2) && contents.has(5));
        contents.end_batch();
        assert!(contents.has(5) && !contents.has(3) && contents.has(6));
        contents.keep(6, Content::from([7; 40]));
        contents.forget(6);
        contents.forget(6);
        let left: usize = contents.cache.iter().map(|(_, content)| content.len() + OVERHEAD).sum();
        assert_eq!(contents.bytes, left);
    }
}
