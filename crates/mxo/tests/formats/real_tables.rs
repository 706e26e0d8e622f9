//! Tests with tables in real use. The tables' licences do not allow including them here, so
//! `WORLDWIRE_MXO_DATA` names the directory with `attribute_classes.csv`, `gameobjects.csv` and
//! `goobj_tables.json`.

use std::path::PathBuf;

use worldwire_core::Reader;
use worldwire_core::value::parse_hex;
use worldwire_mxo::message::{Context, NoViews, Operation, Rules, Section};
use worldwire_mxo::schema::{Tables, Updates};

fn read(name: &str) -> Option<String> {
    let folder = std::env::var_os("WORLDWIRE_MXO_DATA").map(PathBuf::from)?;
    let bytes = std::fs::read(folder.join(name)).unwrap();
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[test]
fn json_agrees_with_the_built_in_tables() {
    let Some(text) = read("goobj_tables.json") else { return };
    let mut tables = Tables::new();
    assert_eq!(tables.read_json("goobj_tables.json", &text), []);
    let built_in = Tables::built_in();
    // The built-in tables contain additional layouts to guess from.
    for read in tables.classes() {
        let class = built_in.class(read.name()).unwrap();
        let names = |class: &worldwire_mxo::schema::Class| -> Vec<_> {
            let slots = class.create().slots().iter();
            slots.map(|slot| (slot.name().to_owned(), slot.kind().size())).collect()
        };
        assert_eq!(names(read), names(class));
        for view in [2, 3] {
            let names = |class: &worldwire_mxo::schema::Class| -> Option<Vec<_>> {
                let slots = class.updates().order(view)?.slots().iter();
                Some(slots.map(|slot| (slot.name().to_owned(), slot.fixed_size())).collect())
            };
            assert_eq!(names(read), names(class), "{}", class.name());
        }
    }
    let goobjs = |tables: &Tables| -> Vec<_> {
        tables.goobjs().map(|(id, goobj)| (id, goobj.class.clone(), goobj.name.clone())).collect()
    };
    assert_eq!(goobjs(&tables), goobjs(&built_in));
}

#[test]
fn every_class_and_name_is_read() {
    let Some(classes) = read("attribute_classes.csv") else { return };
    let Some(names) = read("gameobjects.csv") else { return };
    let mut tables = Tables::built_in();
    let built_in = tables.classes().len();
    assert_eq!(tables.read_class_csv("attribute_classes.csv", &classes), []);
    assert_eq!(tables.classes().len() - built_in, 1_319);
    let said = tables.read_name_csv("gameobjects.csv", &names);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(tables.goobjs().count() > 40_000);
    assert!(matches!(tables.class("3827").unwrap().updates(), Updates::Npc(_)));
    assert!(matches!(tables.class("3990").unwrap().updates(), Updates::Player { .. }));
    // The same layouts as the built-in classes, under other names.
    for (number, name) in [("364", "door364"), ("3827", "npc"), ("3990", "player")] {
        let (number, name) = (tables.class(number).unwrap(), tables.class(name).unwrap());
        assert_eq!(number.create(), name.create());
        assert_eq!(number.updates(), name.updates());
    }
    let text = tables.print();
    let mut again = Tables::new();
    assert_eq!(again.read("printed", &text), []);
    assert_eq!(again.print(), text);
}

/// A door of unknown class, as created by the live service. With all classes available, only one
/// interpretation is left.
#[test]
fn a_door_is_guessed() {
    let Some(classes) = read("attribute_classes.csv") else { return };
    let mut tables = Tables::new();
    assert_eq!(tables.read_class_csv("attribute_classes.csv", &classes), []);
    let objects = tables.compile();
    let bytes = parse_hex(
        "030100089f017a02f0346fcdab0384000000000000803f000000000000000011000000004023f0c000000000\
         00088140000000000088d340ffffffff0300000000",
    );
    let bytes = bytes.unwrap();
    let rules = Rules { guess: true, ..Rules::STRICT };
    let context = Context::server(&objects, &NoViews).with(rules);
    let section = Section::decode(&mut Reader::new(&bytes), &context).unwrap();
    let [Operation::Create(create)] = section.operations.as_slice() else { panic!("{section:?}") };
    assert!(create.guess);
    assert_eq!(objects.class(create.class).unwrap().name(), "364");
}
