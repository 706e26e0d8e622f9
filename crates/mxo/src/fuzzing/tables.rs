//! Object tables: worldwire's format, and every loader.

use std::sync::LazyLock;

use worldwire_core::Diagnostic;
use worldwire_core::testing::Target;

use crate::schema::{MAX_PROBLEMS, Tables};

/// The targets of this file: worldwire's format, and each format that can be imported.
pub(super) const TARGETS: &[Target] = &[
    Target { name: "mxo_table", run: table, seeds: table_seeds },
    Target {
        name: "mxo_table_classes",
        run: |data| loader(data, Tables::read_class_csv),
        seeds: class_seeds,
    },
    Target {
        name: "mxo_table_names",
        run: |data| loader(data, Tables::read_name_csv),
        seeds: || vec![b"Neo,12,\nTank, 13 ,4\r\n\nAbility,-2147099648,\nagain,12,\n".to_vec()],
    },
    Target {
        name: "mxo_table_map",
        run: |data| loader(data, Tables::read_map),
        seeds: || vec![b"goid,class_id\n12,player\n# door\n420, door364\n".to_vec()],
    },
    Target {
        name: "mxo_table_declarations",
        run: |data| loader(data, Tables::read_declarations),
        seeds: || vec![b"public AttributeClass364 Object420 = new AttributeClass364();\n".to_vec()],
    },
    Target {
        name: "mxo_table_dump",
        run: |data| loader(data, Tables::read_dump),
        seeds: dump_seeds,
    },
    Target {
        name: "mxo_table_json",
        run: |data| loader(data, Tables::read_json),
        seeds: json_seeds,
    },
];

/// The tables before a file is read.
static BASE: LazyLock<Tables> = LazyLock::new(|| {
    let mut tables = Tables::new();
    let text = "worldwire-mxo-objects 1\nclass player\n  create:\n    Name string32\nclass 364\n  \
                create:\n    Orientation raw16\n    Trap raw3\n  update plain:\n    Trap\n\
                class door364\n  create:\n    A raw1\n";
    assert_eq!(tables.read("base", text), [], "it is valid");
    tables
});

fn table(data: &[u8]) {
    loader(data, Tables::read);
    let Ok(text) = core::str::from_utf8(data) else { return };
    let mut tables = Tables::new();
    if tables.read("fuzz", text).is_empty() {
        // Without problems, printing preserves the meaning.
        let printed = tables.print();
        let mut again = Tables::new();
        assert_eq!(again.read("again", &printed), [], "{printed}");
        assert_eq!(again.print(), printed, "printed tables are read as different tables");
    }
}

/// Everything that a loader reads can be printed, read again and compiled.
fn loader(data: &[u8], load: fn(&mut Tables, &str, &str) -> Vec<Diagnostic>) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let mut tables = BASE.clone();
    let problems = load(&mut tables, "fuzz", text);
    assert!(problems.len() <= MAX_PROBLEMS + 1, "{} problems", problems.len());
    for problem in &problems {
        assert!(problem.line() > 0 && problem.column() > 0, "{problem}");
    }
    let printed = tables.print();
    let mut again = Tables::new();
    assert_eq!(again.read("again", &printed), [], "{printed}");
    assert_eq!(again.print(), printed, "printed tables are read as different tables");
    let objects = tables.compile();
    assert_eq!(objects.classes().count(), tables.classes().len(), "a class is missing");
}

fn table_seeds() -> Vec<Vec<u8>> {
    let text = "worldwire-mxo-objects 1\n\n# a door\nclass door364 from a packet\n  create:\n    \
                Position LTVector3d\n    CurrentState EventID\n  update plain:\n    CurrentState\n\n\
                class player\n  create:\n    Name string32\n  update own:\n    Name\n    More raw4\n  \
                update other:\n\nclass npc\n  create:\n  update npc:\n    Health uint16\n\n\
                goobj 12 player The One\n  source: a packet\ngoobj 13 - Nobody\n";
    vec![text.into(), Tables::built_in().print().into_bytes()]
}

fn class_seeds() -> Vec<Vec<u8>> {
    let text = "class_id,create_index,name,size,update_index\n0,0,Position,24,-1\n0,1,UseCount,1,0\n\
                7,0,NPCRank,1,0\n7,1,Health,2,1\n";
    vec![text.into()]
}

fn dump_seeds() -> Vec<Vec<u8>> {
    let text = "#VALUES FOR GOID: 415, Door\n#USING 364, Binary-Present: YES\n17,Orientation,\
                LTQuaternion,16\n18,Trap,unknown,3\n\n#VALUES FOR GOID: 416, Door 2\n#USING 364, \
                Binary-Present: NO\n17,Orientation,LTQuaternion,16\n18,Trap,unknown,3\n";
    vec![text.into()]
}

fn json_seeds() -> Vec<Vec<u8>> {
    let text = r#"{"tables":{"a":[{"index":0,"name":"CurrentState","size":4,"type":"EventID"}],
        "b":[{"index":0,"name":"Name","size":32,"type":"string32"}]},
        "update_tables":{"u":[{"index":0,"name":"CurrentState","size":4,"type":"EventID"}],
        "own":[{"index":0,"name":"Name","size":32,"type":"string32"}]},
        "update_table_for":{"a":"u","b":{"own_view":"own","other_view":"u"}},
        "goobjects":{"5":{"name":"Five","table":"a","evidence":"none"},"6":{"name":"Six"}}}"#;
    vec![text.into()]
}
