//! The built-in tables.

use super::class::BUILT_IN;
use super::objects::Objects;
use super::tables::Tables;

const TABLE: &str = include_str!("built_in.txt");

impl Tables {
    /// The built-in tables: objects known from the protocol's description, recorded packets and
    /// working servers.
    #[must_use]
    pub fn built_in() -> Self {
        let mut tables = Self::new();
        // Unreadable lines would be skipped; a test ensures that there are none.
        tables.read(BUILT_IN, TABLE);
        tables
    }
}

impl Objects {
    /// The built-in tables.
    #[must_use]
    pub fn built_in() -> Self {
        Tables::built_in().compile()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let mut tables = Tables::new();
        assert_eq!(tables.read("built_in.txt", TABLE), []);
        assert_eq!((tables.classes().len(), tables.goobjs().count()), (25, 31));
        assert!(tables.classes().iter().all(|class| class.source().is_some()));
        assert!(tables.goobjs().all(|(_, goobj)| goobj.source.is_some()));
    }
}
