//! The built-in tables.

use super::tables::Tables;

/// Takes the place of a file name.
pub(super) const NAME: &str = "built in";
const TABLE: &str = include_str!("built_in.txt");

/// Reads the built-in table. Unreadable lines would be skipped; a test ensures that there are none.
pub(super) fn tables() -> Tables {
    let mut tables = Tables::new();
    tables.read(NAME, TABLE);
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let mut tables = Tables::new();
        assert_eq!(tables.read("built_in.txt", TABLE), []);
        assert_eq!((tables.classes().len(), tables.goobjs().count()), (11, 31));
        assert!(tables.classes().iter().all(|class| class.source().is_some()));
        assert!(tables.goobjs().all(|(_, goobj)| goobj.source.is_some()));
    }
}
