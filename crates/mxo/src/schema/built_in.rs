//! The objects that are built in.

use super::tables::Tables;

/// What stands for the name of a file.
pub(super) const NAME: &str = "built in";
const TABLE: &str = include_str!("built_in.txt");

/// Reads the table. A line that cannot be read is left out; a test sees to it that there are none.
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
