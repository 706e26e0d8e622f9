//! Table files: the data read from them and the problems reported.

use core::fmt::Write as _;

use worldwire_core::Diagnostic;
use worldwire_mxo::schema::{MAX_PROBLEMS, Tables, Updates};
use worldwire_mxo::types::PropertyType;

fn lines(problems: &[Diagnostic]) -> String {
    problems.iter().fold(String::new(), |mut text, problem| {
        let _ = writeln!(text, "{problem}");
        text
    })
}

#[test]
fn every_problem_of_a_table_is_listed() {
    let mut tables = Tables::new();
    let problems = tables.read(
        "mine.txt",
        "worldwire-mxo-objects 2\n  stray\nclass a b\n  Position LTVector3d\n  create:\n    \
         Position LTVector4\n    Position LTVector3d\n    Position raw1\n    State\n    St*te raw1\n  \
         update plain:\n    State\n    Position raw2\n  update npc:\n    Position\n  update later:\nclass \
         a\nclass\nobject 5\ngoobj 70000 a\ngoobj 5\ngoobj 5 b\n  source: never\ngoobj 6 a Six\n\
         goobj 7 - Seven\n  origin: here\n",
    );
    insta::assert_snapshot!(lines(&problems), @r#"
    mine.txt:1:1: error: wanted worldwire-mxo-objects 1, found "worldwire-mxo-objects 2" (the first line names the format and its version)
    mine.txt:2:3: error: wanted class or goobj, found "stray"
    mine.txt:4:3: error: wanted create: or an update order before properties, found "Position LTVector3d"
    mine.txt:6:14: error: wanted a type such as uint8 or raw4, found "LTVector4"
    mine.txt:8:5: error: wanted a property that is not in the order yet, found "Position"
    mine.txt:9:10: error: wanted a type after the name, found nothing
    mine.txt:10:5: error: wanted the name of a property, found "St*te"
    mine.txt:12:5: error: wanted a property of the create order, or a type after the name, found "State"
    mine.txt:14:3: error: wanted one update order, or one own: order and one other: order, found "update npc:"
    mine.txt:16:3: error: wanted create:, or update plain:, npc:, own: or other:, found "update later:"
    mine.txt:17:7: error: wanted a class that the file has not defined yet, found "a"
    mine.txt:18:6: error: wanted the name of a class, found nothing
    mine.txt:19:1: error: wanted class or goobj, found "object"
    mine.txt:20:7: error: wanted the number of a goobj from 0 to 65535, found "70000"
    mine.txt:21:8: error: wanted a class, or -, found nothing
    mine.txt:22:9: error: there is no class "b" (define a class before using it)
    mine.txt:24:9: error: there is no class "a" (it has errors and was left out)
    mine.txt:26:3: error: wanted source:, found "origin: here"
    "#);
    assert!(tables.class("a").is_none());
    assert_eq!(tables.goobjs().count(), 1);
    insta::assert_snapshot!(lines(&Tables::new().read("empty.txt", "\n# nothing\n")), @"empty.txt:1:1: error: wanted worldwire-mxo-objects 1, found an empty file");
}

#[test]
fn a_class_with_an_error_does_not_replace_the_existing_one() {
    let mut tables = Tables::built_in();
    let door = tables.class("door364").cloned();
    let text = "worldwire-mxo-objects 1\nclass door364\n  create:\n    IsGMAligned rwa1\n    \
                Position LTVector3d\n";
    assert_eq!(tables.read("mine.txt", text).len(), 1);
    assert_eq!(tables.class("door364").cloned(), door);
}

#[test]
fn facts_that_a_table_omits_stay_unchanged() {
    let mut names = Tables::new();
    assert_eq!(names.read_name_csv("names.csv", "name,id,\nDoor2,414,\n"), []);
    let mut tables = Tables::built_in();
    let class = tables.goobj_mut(414).class.clone();
    assert!(class.is_some());
    assert_eq!(tables.read("names.txt", &names.print()), []);
    assert_eq!(tables.goobj_mut(414).class, class);
    assert_eq!(tables.goobj_mut(414).name.as_deref(), Some("Door2"));
}

#[test]
fn problems_are_bounded() {
    let text = "worldwire-mxo-objects 1\n".to_owned() + &"x\n".repeat(5_000);
    let problems = Tables::new().read("long.txt", &text);
    assert_eq!(problems.len(), MAX_PROBLEMS + 1);
    insta::assert_snapshot!(problems.last().unwrap(), @"long.txt:202:1: error: 4800 more problems are not shown");
}

#[test]
fn classes_are_read_from_csv() {
    let mut tables = Tables::built_in();
    let text = "class_id,create_index,name,size,update_index\n0,1,UseCount,4,0\n0,0,Position,24,-1\n\
                7,0,NPCRank,1,0\n9,0,Odd,3,-1\n";
    assert_eq!(tables.read_class_csv("classes.csv", text), []);
    let class = tables.class("0").unwrap();
    let kinds: Vec<_> = class.create().slots().iter().map(|slot| slot.kind()).collect();
    assert_eq!(kinds, [PropertyType::Vector3d, PropertyType::raw(4).unwrap()]);
    assert_eq!(class.updates().order(3).unwrap().slots()[0].create_index(), Some(1));
    assert!(matches!(tables.class("7").unwrap().updates(), Updates::Npc(_)));
    assert!(class.updates().order(3).is_some_and(|order| order.len() == 1));

    let problems = tables.read_class_csv(
        "bad.csv",
        "1,0,Position,24\n1,x,Position,24,-1\n1,0,Posi*tion,24,-1\n1,0,Position,0,-1\n\
         1,0,Position,256,-1\n1,0,Position,24,-2\nx,0,Position,24,-1\n2,1,Position,24,-1\n\
         3,0,A,1,-1\n3,1,A,1,-1\n4,0,A,1,1\n4,1,B,1,2\n",
    );
    insta::assert_snapshot!(lines(&problems), @r#"
    bad.csv:1:1: error: wanted "class_id,create_index,name,size,update_index", found "1,0,Position,24"
    bad.csv:2:3: error: wanted an index from 0 to 1023, found "x"
    bad.csv:3:5: error: wanted the name of a property, found "Posi*tion"
    bad.csv:4:14: error: wanted a size from 1 to 255, found "0"
    bad.csv:5:14: error: wanted a size from 1 to 255, found "256"
    bad.csv:6:17: error: wanted an index from 0 to 1023, or -1, found "-2"
    bad.csv:7:1: error: wanted the number of a class, found "x"
    bad.csv:8:1: error: wanted create index 0 of class 2, found 1
    bad.csv:10:1: error: class 3 already has a property named A
    bad.csv:11:1: error: wanted update index 0 of class 4, found 1
    "#);
    assert!(["1", "2", "3", "4"].iter().all(|name| tables.class(name).is_none()));
}

#[test]
fn names_and_maps_are_read() {
    let mut tables = Tables::built_in();
    let problems = tables.read_name_csv(
        "names.csv",
        "First,500,\nSecond,500,\r\nA long name, 501 ,17\nSpell,-2147099648,\n,5,\nName\nName,x,\n",
    );
    insta::assert_snapshot!(lines(&problems), @r#"
    names.csv:5:1: error: wanted a name, found ""
    names.csv:6:1: error: wanted "name,id", found "Name"
    names.csv:7:6: error: wanted a number, found "x"
    names.csv:4:7: warning: 1 name left out: wanted a goobj from 0 to 65535, found -2147099648
    "#);
    let problems = tables.read_map(
        "map.txt",
        "goid,class_id\n500,door364\n# doors\n501,nowhere\n70000,door364\n500,door363\n501\n",
    );
    insta::assert_snapshot!(lines(&problems), @r#"
    map.txt:4:5: error: there is no class "nowhere" (read the table of classes first)
    map.txt:5:1: error: wanted a goobj from 0 to 65535, found "70000"
    map.txt:6:1: error: goobj 500 already has a class
    map.txt:7:1: error: wanted "goid,class_id", found "501"
    "#);
    let objects = tables.compile();
    assert_eq!((objects.name_of(500), objects.name_of(501)), (Some("First"), Some("A long name")));
    assert_eq!(objects.class_of(500).unwrap().1.name(), "door364");
    assert!(objects.class_of(501).is_none() && objects.class_of(65_535).is_none());
}

#[test]
fn a_map_discards_the_source_of_the_previous_class() {
    let mut tables = Tables::built_in();
    let source = |tables: &Tables| {
        let (_, goobj) = tables.goobjs().find(|(goid, _)| *goid == 414).unwrap();
        goobj.source.clone()
    };
    assert!(source(&tables).is_some());
    assert_eq!(tables.read_class_csv("cl.csv", "9000,0,P,24,0\n"), []);
    assert_eq!(tables.read_map("m.csv", "414,9000\n"), []);
    assert_eq!(source(&tables), None);
    let text = tables.print_some(Some(414), &[]);
    assert!(text.contains("9000") && !text.contains("source"), "{text}");
}

#[test]
fn the_community_dump_is_read() {
    let mut tables = Tables::new();
    let classes = "364,0,Orientation,16,-1\n364,1,TrapFX,4,0\n";
    assert_eq!(tables.read_class_csv("classes.csv", classes), []);
    let text = "#VALUES FOR GOID: 415, Door SL\n#USING 364, Binary-Present: YES\n\
                17,Orientation,LTQuaternion,16\n18,TrapFX,REZ_ID,4\n\n\
                #VALUES FOR GOID: 417, Lift\r\n#USING 363, Binary-Present: NO\r\n9,Odd,Thing,3\r\n\
                10,Flag,bool,1\r\n";
    assert_eq!(tables.read_dump("dump.txt", text), []);
    let door = tables.class("364").unwrap();
    // The type comes from the dump, and the updates come from the classes.
    let order = door.updates().order(3).unwrap();
    assert_eq!(order.slot(0).unwrap().kind(), PropertyType::RezId);
    let objects = tables.compile();
    assert_eq!(objects.name_of(415), Some("Door SL"));
    let (_, lift) = objects.class_of(417).unwrap();
    assert_eq!((lift.name(), lift.create().len()), ("363", 2));
    assert_eq!(lift.updates(), &Updates::Unknown);

    let problems = tables.read_dump(
        "bad.txt",
        "1,A,uint8,1\n#USING 5\n#VALUES FOR GOID: x, A\n#VALUES FOR GOID: 5, A\n#USING five\n\
         #VALUES FOR GOID: 6, B\n1,A,uint8,2\n#VALUES FOR GOID: 7, C\n#USING 9\n1,A,uint8,1\n\
         1,A,uint8,1\n#VALUES FOR GOID: 8, D\n#USING 364\n1,A,uint8,1\n#VALUES FOR GOID: 9, E\n\
         #USING 364\n1,B,uint8,1\n#VALUES FOR GOID: 10, F\n#USING 77\n",
    );
    insta::assert_snapshot!(lines(&problems), @r##"
    bad.txt:1:1: error: wanted #VALUES FOR GOID: before properties, found "1,A,uint8,1"
    bad.txt:2:1: error: wanted one #USING after #VALUES FOR GOID:, found "#USING 5"
    bad.txt:3:19: error: wanted a goobj from 0 to 65535, found "x"
    bad.txt:5:8: error: wanted the number of a class, found "five"
    bad.txt:7:5: warning: wanted 1 as the size of uint8, found 2; it is read as bytes
    bad.txt:6:1: error: no class for the goobj (a line such as #USING 364, Binary-Present: YES)
    bad.txt:11:3: error: wanted a property that is not in the class yet, found "A"
    bad.txt:12:1: warning: class 364 was already defined with different properties
    bad.txt:15:1: error: class 364 is defined with different properties above
    bad.txt:18:1: warning: class 77 has no properties here; it is skipped
    "##);
}

#[test]
fn json_is_read() {
    let mut tables = Tables::new();
    let text = r#"{
  "tables": {
    "door": [{"index": 0, "name": "CurrentState", "size": 4, "type": "EventID"}],
    "bad": [{"index": 0, "name": "CurrentState", "size": 3, "type": "EventID"}],
    "worse": {"index": 0}
  },
  "update_tables": {
    "door_update": [{"index": 0, "name": "CurrentState", "size": 4, "type": "EventID"}],
    "skips": [{"index": 1, "name": "CurrentState", "size": 4, "type": "EventID"}]
  },
  "update_table_for": {"door": "door_update"},
  "goobjects": {
    "5": {"name": "Five", "table": "door"},
    "6": {"name": "Six", "table": "nowhere"},
    "x": {}
  }
}"#;
    let problems = tables.read_json("tables.json", text);
    insta::assert_snapshot!(lines(&problems), @r#"
    tables.json:9:36: error: wanted properties in the order of their indices, found {"index":1,"name":"CurrentState","size":4,"type":"EventID"}
    tables.json:4:34: error: wanted a type such as uint8 or raw4, and its size, found {"index":0,"name":"CurrentState","size":3,"type":"EventID"}
    tables.json:5:5: error: wanted an array of at most 1024 properties, found {"index":0}
    tables.json:14:5: error: wanted the name of a table, found "nowhere"
    tables.json:15:5: error: wanted a goobj from 0 to 65535, found "x"
    "#);
    let objects = tables.compile();
    let (_, class) = objects.class_of(5).unwrap();
    assert!(matches!(class.updates(), Updates::Plain(order) if order.len() == 1));
    insta::assert_snapshot!(lines(&tables.read_json("cut.json", "{\n  \"tables\": [")), @"cut.json:2:13: error: invalid JSON: EOF while parsing a list");
    insta::assert_snapshot!(lines(&tables.read_json("list.json", "[]")), @"list.json:1:1: error: wanted an object with tables and goobjects, found []");
}

#[test]
fn a_file_defines_a_goobj_once() {
    let mut tables = Tables::built_in();
    let text = "worldwire-mxo-objects 1\ngoobj 7 door364 Seven\ngoobj 7 vendor Seven again\n";
    insta::assert_snapshot!(lines(&tables.read("twice.objects", text)), @r#"twice.objects:3:7: error: wanted a goobj that the file has not defined yet, found "7""#);
    let (_, goobj) = tables.goobjs().find(|(goid, _)| *goid == 7).unwrap();
    assert_eq!(goobj.class.as_deref(), Some("door364"));
}

#[test]
fn a_printed_class_can_be_read() {
    let whole = Tables::built_in();
    let mut again = Tables::new();
    for class in whole.classes() {
        let shown = whole.print_some(None, &[class.name()]);
        assert_eq!(again.read("shown", &shown), [], "{shown}");
        assert_eq!(again.class(class.name()), Some(class), "{shown}");
    }
    for (goid, _) in whole.goobjs() {
        assert_eq!(again.read("shown", &whole.print_some(Some(goid), &[])), []);
    }
    assert_eq!(again, whole);
    let text =
        "worldwire-mxo-objects 1\nclass one\n  create: # all\n    A uint8 # 0\n    B raw3\t# 1\n";
    assert_eq!(again.read("remarks", text), []);
    assert_eq!(again.class("one").unwrap().create().len(), 2);
}

#[test]
fn facts_that_json_omits_stay_unchanged() {
    let mut tables = Tables::built_in();
    let text = r#"{"goobjects": {"414": {"name": "Mine"}, "12": {"table": "vendor"}}}"#;
    assert_eq!(tables.read_json("some.json", text), []);
    let objects = tables.compile();
    assert_eq!(objects.class_of(414).unwrap().1.name(), "door364");
    assert_eq!(objects.name_of(12), Some("PlayerCharacter"));
}

#[test]
fn csv_may_have_quotes_and_spaces() {
    let mut tables = Tables::new();
    let classes = "\"Class ID\",\"Create Index\",\"Name\",Size,\"Update Index\"\r\n\
                   \"9000\", \"0\",\"Current State\",\"4\",\"0\"\r\n";
    assert_eq!(tables.read_class_csv("classes.csv", classes), []);
    assert_eq!(tables.class("9000").unwrap().create().slots()[0].name(), "Current_State");
    let names = "\"name\",\"id\",\n\"Door, \"\"left\"\"\",7,\n\"Open,8,\n\"Lamp\",x,\n";
    insta::assert_snapshot!(lines(&tables.read_name_csv("names.csv", names)), @r#"
    names.csv:3:1: error: wanted "name,id", found "\"Open,8,"
    names.csv:4:8: error: wanted a number, found "x"
    "#);
    let map = "\"Goid\",\"Class ID\"\n\"7\",\"9000\"\n";
    assert_eq!(tables.read_map("map.csv", map), []);
    let objects = tables.compile();
    assert_eq!(objects.name_of(7), Some("Door, \"left\""));
    assert_eq!(objects.class_of(7).unwrap().1.name(), "9000");
}

#[test]
fn contradictions_between_files_are_reported() {
    let mut tables = Tables::built_in();
    assert_eq!(tables.read_class_csv("a.csv", "9000,0,P,24,0\n9001,0,P,24,0\n"), []);
    assert_eq!(tables.read_map("a.map", "414,9000\n7,9000\n"), []);
    // Repeating a definition is not a contradiction.
    assert_eq!(tables.read_class_csv("b.csv", "9000,0,P,24,0\n"), []);
    assert_eq!(tables.read_map("b.map", "7,9000\n"), []);
    let said = [
        tables.read_class_csv("c.csv", "9000,0,P,12,0\n"),
        tables.read_map("c.map", "414,9001\n"),
        tables.read("d.txt", "worldwire-mxo-objects 1\nclass 9001\n  create:\ngoobj 7 9001\n"),
        tables.read_json(
            "e.json",
            r#"{"tables": {"9000": []}, "goobjects": {"7": {"table": "9000"}}}"#,
        ),
        tables.read_dump("f.txt", "#VALUES FOR GOID: 7, Door\n#USING 9001\n1,Q,uint8,1\n"),
    ];
    insta::assert_snapshot!(lines(&said.concat()), @r"
    c.csv:1:1: warning: class 9000 has different properties in b.csv; this definition is used
    c.map:1:1: warning: goobj 414 has class 9000 in a.map; this class is used
    d.txt:2:7: warning: class 9001 has different properties in a.csv; this definition is used
    d.txt:4:9: warning: goobj 7 has class 9000 in b.map; this class is used
    e.json:1:13: warning: class 9000 has different properties in c.csv; this definition is used
    e.json:1:40: warning: goobj 7 has class 9001 in d.txt; this class is used
    f.txt:1:1: warning: class 9001 was already defined with different properties
    f.txt:1:1: warning: goobj 7 has class 9000 in e.json; this class is used
    ");
}

#[test]
fn unknown_json_keys_are_reported() {
    let text = r#"{"note": "mine", "table": {}, "tables": {}, "update_table_for": {"dor": "x"}}"#;
    insta::assert_snapshot!(lines(&Tables::new().read_json("odd.json", text)), @r#"
    odd.json:1:18: warning: unknown key "table" is ignored; did you mean tables?
    odd.json:1:66: warning: there is no table "dor" here; the entry is ignored
    "#);
}

#[test]
fn names_of_other_ids_are_counted() {
    let mut tables = Tables::new();
    let said = tables.read_name_csv("names.csv", "Door,7,\nBoost,-5,\nHouse,70000,\nLamp,8,\n");
    let lines: Vec<String> = said.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @"names.csv:2:7: warning: 2 names left out: wanted a goobj from 0 to 65535, found -5 and others");
    assert_eq!(tables.goobjs().count(), 2);
    assert_eq!(tables.read_name_csv("names.csv", "Door,7,\n"), []);
}
