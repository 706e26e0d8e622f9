//! The output for sections (trees, JSON, errors), and rules that the vectors do not cover.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use worldwire_core::json::{Json, Style, json};
use worldwire_core::testing::{hex as field, render, run_vectors};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::value::parse_hex;
use worldwire_core::{ErrorKind, Reader, Result, Side, Tree, Writer};
use worldwire_mxo::message::{
    Context, Create, Delete, Fault, MAX_OPERATIONS, Movement, NoViews, Operation, Properties,
    Rules, Section, Update, Viewed,
};
use worldwire_mxo::schema::{Class, Objects, Tables};
use worldwire_mxo::types::PropertyType;

static OBJECTS: LazyLock<Objects> = LazyLock::new(Objects::built_in);

static VIEWS: LazyLock<BTreeMap<u16, Viewed>> = LazyLock::new(|| {
    let views = [(2, "player"), (3, "door364"), (4, "player"), (5, "npc"), (6, "vendor")];
    views.iter().map(|(id, name)| (*id, OBJECTS.class_named(name).unwrap().0.into())).collect()
});

fn bytes(text: &str) -> Vec<u8> {
    parse_hex(text).unwrap()
}

fn server() -> Context<'static, 'static> {
    Context::server(&OBJECTS, &*VIEWS)
}

/// The text of the tree, and the result.
fn shown(text: &str, context: &Context<'_, '_>) -> (String, Result<()>) {
    let bytes = bytes(text);
    let mut reader = Reader::traced("section", &bytes, Tree::new());
    let outcome = Section::decode(&mut reader, context).map(drop);
    let (tree, outcome) = reader.conclude(outcome);
    let mut shown = String::new();
    write_tree(&tree, TextStyle { ranges: true, ..TextStyle::default() }, &mut shown);
    render(&tree, Style::default());
    (shown, outcome)
}

fn fault(text: &str, context: &Context<'_, '_>) -> Option<Fault> {
    Fault::of(&Section::decode(&mut Reader::new(&bytes(text)), context).unwrap_err())
}

/// One operation of each kind.
fn sample() -> Vec<u8> {
    let (door, class) = OBJECTS.class_of(415).unwrap();
    let mut created = Properties::new();
    created.set(2, vec![0; 16]);
    created.set(13, vec![0x34, 8, 0, 0]);
    let mut closed = Properties::new();
    let state = class.updates().order(9).unwrap().index_of("CurrentState").unwrap();
    closed.set(u16::try_from(state).unwrap(), vec![0x38, 8, 0, 0]);
    let closed = Update::of(9, door, closed);
    let mut own = Properties::new();
    own.set(5, &b"Neo"[..]);
    own.set(25, &[0x32, 0][..]);
    let mut own = Update::of(2, OBJECTS.class_of(12).unwrap().0, own);
    own.movement = Some(Movement {
        yaw: Some(64),
        position: Some([1.0, -2.5, 0.0]),
        time: Some(99),
        ..Movement::default()
    });
    let section = Section {
        operations: vec![
            Operation::Delete(Delete::of(vec![7, 8])),
            Operation::Create(Create::of_world(415, 0x34f0_089a, door, 1, 9).with(created)),
            Operation::PendingUpdate(
                worldwire_mxo::message::PendingUpdate::wrap(&closed, &OBJECTS).unwrap(),
            ),
            Operation::Update(closed),
            Operation::Update(own),
        ],
        unterminated: false,
    };
    let mut writer = Writer::new();
    section.encode(&OBJECTS, Side::Server, &mut writer).unwrap();
    writer.into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_section_as_a_tree() {
    let (text, outcome) = shown(&hex(&sample()), &server());
    outcome.unwrap();
    insta::assert_snapshot!(text, @r#"
    0x0000..0x0001    mpm: 3
    0x0001..0x0066    operations: 5 items
    0x0001..0x000a      [0]
    0x0001..0x000a        delete:
    0x0001..0x0003          view: 1
    0x0003..0x0004          flags: 0x0001
    0x0004..0x0006          count: 2
    0x0006..0x000a          views: 2 items
    0x0006..0x0008            [0] 7
    0x0008..0x000a            [1] 8
    0x000a..0x0030      [1]
    0x000a..0x0030        create:
    0x000a..0x000c          view: 1
    0x000c..0x000d          flags: 0x0008
    0x000d..0x000f          goid: 415
    0x000d..0x000f          object: Door SL Push Knob Greenmetal01texvar (415)
    0x000f..0x0013          world_id: 0x34f0089a
    0x0013..0x0014          spawn_seq: 1
    0x0014..0x0016          magic: 0xabcd
    0x0016..0x0017          count: 2
    0x0017..0x0017          class: door364
    0x0017..0x002d          properties:
    0x0018..0x0028            Orientation:
    0x0018..0x001c              x: 0.0
    0x001c..0x0020              y: 0.0
    0x0020..0x0024              z: 0.0
    0x0024..0x0028              w: 0.0
    0x0029..0x002d            CurrentState: 0x0834
    0x002d..0x002f          new_view: 9
    0x002f..0x0030          tail: 0
    0x0030..0x003e      [2]
    0x0030..0x003e        pending_update:
    0x0030..0x0032          view: 1
    0x0032..0x0033          flags: 0x0002
    0x0033..0x0035          length: 11
    0x0035..0x0037          target: 9
    0x0037..0x003e          update:
    0x0037..0x0037            class: door364
    0x0037..0x0038            mask: 0x0001
    0x0038..0x003e            properties:
    0x003a..0x003e              CurrentState: 0x0838
    0x003e..0x0047      [3]
    0x003e..0x0047        update:
    0x003e..0x0040          view: 9
    0x0040..0x0040          class: door364
    0x0040..0x0041          mask: 0x0001
    0x0041..0x0047          properties:
    0x0043..0x0047            CurrentState: 0x0838
    0x0047..0x0066      [4]
    0x0047..0x0066        update:
    0x0047..0x0049          view: 2
    0x0049..0x0049          class: player
    0x0049..0x004a          mask: 0x0003
    0x004a..0x005c          movement:
    0x004a..0x004b            flags: 0x000c
    0x004b..0x004c            yaw: 64
    0x004c..0x0058            position:
    0x004c..0x0050              x: 1.0
    0x0050..0x0054              y: -2.5
    0x0054..0x0058              z: 0.0
    0x0058..0x005c            time: 99
    0x005c..0x0066          properties:
    0x005d..0x0061            RealLastName: "Neo"
    0x0064..0x0066            InnerStrengthAvailable: 50
    0x0066..0x0068    end: 0
    "#);
}

#[test]
fn a_section_as_json() {
    let bytes = sample();
    let mut reader = Reader::traced("section", &bytes, Tree::new());
    Section::decode(&mut reader, &server()).unwrap();
    let json = render(&reader.finish(), Style::default());
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap(), @r#"
    {
      "end": 0,
      "mpm": 3,
      "operations": [
        {
          "delete": {
            "count": 2,
            "flags": 1,
            "view": 1,
            "views": [
              7,
              8
            ]
          }
        },
        {
          "create": {
            "class": "door364",
            "count": 2,
            "flags": 8,
            "goid": 415,
            "magic": 43981,
            "new_view": 9,
            "object": "Door SL Push Knob Greenmetal01texvar",
            "properties": {
              "CurrentState": 2100,
              "Orientation": {
                "w": 0.0,
                "x": 0.0,
                "y": 0.0,
                "z": 0.0
              }
            },
            "spawn_seq": 1,
            "tail": 0,
            "view": 1,
            "world_id": 888146074
          }
        },
        {
          "pending_update": {
            "flags": 2,
            "length": 11,
            "target": 9,
            "update": {
              "class": "door364",
              "mask": 1,
              "properties": {
                "CurrentState": 2104
              }
            },
            "view": 1
          }
        },
        {
          "update": {
            "class": "door364",
            "mask": 1,
            "properties": {
              "CurrentState": 2104
            },
            "view": 9
          }
        },
        {
          "update": {
            "class": "player",
            "mask": 3,
            "movement": {
              "flags": 12,
              "position": {
                "x": 1.0,
                "y": -2.5,
                "z": 0.0
              },
              "time": 99,
              "yaw": 64
            },
            "properties": {
              "InnerStrengthAvailable": 50,
              "RealLastName": "Neo"
            },
            "view": 2
          }
        }
      ]
    }
    "#);
    // Everything that the rest implies can be omitted.
    let short = json!({"operations": [
        {"delete": {"views": [7, 8]}},
        {"create": {"goid": 415, "world_id": 0x34f0_089a, "spawn_seq": 1, "new_view": 9,
            "properties": {"CurrentState": 0x834, "Orientation": {"x": 0, "y": 0, "z": 0, "w": 0}}}},
        {"pending_update": {"target": 9, "data": {"$hex": "01800238080000"}}},
        {"update": {"view": 9, "properties": {"CurrentState": "0x838"}}},
        {"update": {"view": 2, "properties": {"RealLastName": "Neo", "InnerStrengthAvailable": 50},
            "movement": {"yaw": 64, "time": 99, "position": {"x": 1, "y": -2.5, "z": 0}}}}
    ]});
    let section = Section::from_json(&short, &server()).unwrap();
    let mut writer = Writer::new();
    section.encode(&OBJECTS, Side::Server, &mut writer).unwrap();
    assert_eq!(writer.as_bytes(), bytes);
}

#[test]
fn json_that_does_not_fit_is_refused() {
    let error = |json: Json| {
        let operations = json!({"operations": [json]});
        Section::from_json(&operations, &server()).unwrap_err().to_string()
    };
    let create = |class: &str, properties: Json| {
        let goid = if class == "npc" { 599 } else { 415 };
        error(json!({"create": {"goid": goid, "class": class, "spawn_seq": 1, "new_view": 9,
            "count": 1, "properties": properties}}))
    };
    let all = [
        error(json!({"remove": {}})),
        error(json!({"update": {"view": 77}})),
        error(json!({"update": {"view": 3, "mask": 3, "properties": {}}})),
        error(json!({"update": {"view": 6, "properties": {}}})),
        error(json!({"update": {"view": 3, "movement": {}}})),
        error(json!({"update": {"view": 3, "properties": {"CurrentStat": 1}}})),
        error(json!({"delete": {"views": [65536]}})),
        error(json!({"pending_update": {"target": 5, "length": 9, "data": {"$hex": ""}}})),
        create("door", json!({})),
        create("door364", json!({})),
        create("door364", json!({"CurrentState": -1})),
        create("door364", json!({"Orientation": {"x": 0, "y": 0, "z": 0}})),
        create("door364", json!({"TrapFX": {"$hex": "00"}})),
        create("npc", json!({"CharacterName": "日本"})),
        create("npc", json!({"CharacterName": {"text": "a", "behind": {"$hex": "01"}}})),
    ];
    insta::assert_snapshot!(all.join("\n"), @r#"
    operations[0]: wanted create, delete, pending_update, update, unknown_create or undecoded, found "remove"
    operations[0].update.view: wanted a view whose class is known, found 77
    operations[0].update.mask: wanted 1, as the other fields imply, found 3; omit it to have it filled in
    operations[0].update.properties: wanted a block whose layout is known, found a class whose updates are unknown
    operations[0].update: wanted a block whose layout is known, found a block that is not in updates of door364
    operations[0].update.properties: wanted a property of the class, found "CurrentStat"; did you mean "CurrentState"?
    operations[0].delete.views[0]: wanted a whole number from 0 to 65535, found 65536
    operations[0].pending_update.length: wanted 4, as the other fields imply, found 9; omit it to have it filled in
    operations[0].create.class: wanted the name of a class, found "door"
    operations[0].create.count: wanted 0, as the other fields imply, found 1; omit it to have it filled in
    operations[0].create.properties.CurrentState: wanted a whole number from 0 to 4294967295, found -1
    operations[0].create.properties.Orientation.w: is missing
    operations[0].create.properties.TrapFX: wanted 4 bytes, found 1
    operations[0].create.properties.CharacterName: wanted Windows-1252 characters, found "日本"
    operations[0].create.properties.CharacterName: wanted 32 bytes, found 3
    "#);
}

#[test]
fn errors_name_field_offset_and_rule() {
    let all: Vec<String> = [
        "0301000c9f0101cdab0180803408000009000000",
        "0301000c9f0101cdab02804034080000090000",
        "0301000cfefe01cdab0101",
        "03010001030005000100",
        "0301000c9f0101abcd",
        "0377000101aa0000",
        "0303000280",
        "0302000140",
        "030500010000",
        "0303000180023808",
        "0301000203006900",
        "0300",
    ]
    .iter()
    .map(|text| shown(text, &server()).1.unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(all.join("\n"), @r"
    operations[0].create.properties at byte 12: wanted presence bits of the class's properties, found byte 3 of them; goobj 415 is read as class door364 (built in)
    operations[0].create.properties at byte 16: wanted as many presence bits as the count, found a count of 2 and 1 bits; goobj 415 is read as class door364 (built in)
    operations[0].create.goid at byte 4: wanted a goobj whose class is known, found 65278
    operations[0].delete.views at byte 6: wanted 6 bytes, found 4
    operations[0].create.magic at byte 7: wanted the magic number 0xabcd, found 0xcdab
    operations[0].view at byte 1: wanted a view whose class is known, found 119
    operations[0].update.mask at byte 3: wanted a block whose layout is known, found block 0x02 of class door364; view 3 is read as class door364 (built in)
    operations[0].update.movement.flags at byte 4: wanted a block whose layout is known, found flag 0x40
    operations[0].update.mask at byte 3: wanted a block whose layout is known, found block 0x01 of class npc; view 5 is read as class npc (built in)
    operations[0].update.properties.CurrentState at byte 6: wanted 4 bytes, found 2; view 3 is read as class door364 (built in)
    operations[0].pending_update.length at byte 4: wanted a length of at least 4, found 3
    operations at byte 1: wanted 2 bytes, found 1
    ");
}

#[test]
fn a_client_may_only_update_its_own_view() {
    let client = Context::client(&OBJECTS, &*VIEWS);
    assert_eq!(fault("030300018002380800000000", &client), Some(Fault::BadViewId));
    assert_eq!(fault("03010001010069000000", &client), Some(Fault::BadViewId));
    // Keeping unknown parts does not make it valid.
    let lenient = client.with(Rules::LENIENT);
    assert_eq!(fault("030300018002380800000000", &lenient), Some(Fault::BadViewId));
    let input = bytes("0302000104fd0000");
    let read = Section::decode(&mut Reader::new(&input), &client).unwrap();
    let [Operation::Update(update)] = read.operations.as_slice() else { panic!("{read:?}") };
    assert_eq!(update.movement.unwrap().yaw, Some(0xfd));
}

#[test]
fn unknown_parts_are_kept_to_the_end() {
    let lenient = server().with(Rules::LENIENT);
    let (text, outcome) = shown("030100010100050001000cfefe01cdab0101aa0000", &lenient);
    outcome.unwrap();
    insta::assert_snapshot!(text, @r"
    0x0000..0x0001    mpm: 3
    0x0001..0x0015    operations: 2 items
    0x0001..0x0008      [0]
    0x0001..0x0008        delete:
    0x0001..0x0003          view: 1
    0x0003..0x0004          flags: 0x0001
    0x0004..0x0006          count: 1
    0x0006..0x0008          views: 1 item
    0x0006..0x0008            [0] 5
    0x0008..0x0015      [1]
    0x0008..0x0015        unknown_create:
    0x0008..0x000a          view: 1
    0x000a..0x000b          flags: 0x000c
    0x000b..0x000d          goid: 65278
    0x000d..0x000e          spawn_seq: 1
    0x000e..0x0010          magic: 0xabcd
    0x0010..0x0011          count: 1
    0x0011..0x0015          bytes: 01aa0000 (4 bytes)
    0x0015..0x0015    end: nothing
    ");
    // A server's script, an NPC block, an unknown flag, a class without updates.
    for text in ["0304000120010203", "03050001aabb", "0304000110", "0306000101aa", "0303000200"] {
        assert_eq!(fault(text, &server()), Some(Fault::UnknownLayout), "{text}");
        let input = bytes(text);
        let read = Section::decode(&mut Reader::new(&input), &lenient).unwrap();
        let [Operation::Undecoded(rest)] = read.operations.as_slice() else { panic!("{read:?}") };
        assert_eq!((rest.fault, &*rest.bytes), (Fault::UnknownLayout, &input[3..]));
        assert!(read.unterminated);
    }
}

#[test]
fn padding_flags_and_tails_survive() {
    // Text in 64 bytes with bytes after its end, and Windows-1252 characters.
    let name = |text: &[u8]| {
        let mut name = text.to_vec();
        name.resize(64, 0);
        format!("0301000cd02001cdab0104{}0900000000", hex(&name))
    };
    let mut odd = Vec::new();
    for text in [
        // A superfluous presence byte, unknown flags, a tail, no views.
        "0301000cd02001cdab0080000900000000".to_owned(),
        "030100fcd02001cdab00000900770000".to_owned(),
        "030100f10000010012040069000000".to_owned(),
        "0301000000000000000001cdab00000900000000".to_owned(),
        // An empty update, one with padding, and no end marker.
        "030300000300018000".to_owned(),
        name(b"Neo\0\xc3\xa9"),
        name(b"Caf\xe9 \x80"),
        name(b"\x80\0x"),
    ] {
        let input = bytes(&text);
        let mut reader = Reader::traced("section", &input, Tree::new());
        let lenient = server().with(Rules::LENIENT);
        Section::decode(&mut reader, &lenient).unwrap_or_else(|error| panic!("{text}: {error}"));
        let end = reader.position();
        let json = render(&reader.finish(), Style::default());
        let again = Section::from_json(&json, &lenient).unwrap();
        let mut writer = Writer::new();
        again.encode(&OBJECTS, Side::Server, &mut writer).unwrap();
        assert_eq!(writer.as_bytes(), &input[..end], "{json}");
        let oddities = again.oddities().map(|(index, oddity)| format!("{index:?} {oddity}"));
        odd.extend(oddities);
    }
    insta::assert_snapshot!(odd.join("\n"), @r"
    Some(0) 1 presence byte more than needed
    Some(0) flags 0xfc with unknown bits
    Some(0) a create that ends with 0x77 instead of 0
    Some(0) flags 0xf1 with unknown bits
    Some(0) a deletion of no views
    Some(1) flags 0x12 with unknown bits
    Some(0) an object that is not normal: bit 3 of the flags is clear
    Some(0) an update without blocks
    Some(1) 1 presence byte more than needed
    None no end marker (view ID 0)
    ");
    assert_eq!(
        Section::decode(&mut Reader::new(&sample()), &server()).unwrap().oddities().count(),
        0
    );
}

#[test]
fn a_view_exists_from_its_create_to_its_deletion() {
    let create = "01000c9f0101cdab01804034080000090000";
    let update = "090001800238080000";
    let delete = "01000101000900";
    let context = Context::server(&OBJECTS, &NoViews);
    let read = |text: String| Section::decode(&mut Reader::new(&bytes(&text)), &context).map(drop);
    read(format!("03{create}{update}{delete}0000")).unwrap();
    for text in [format!("03{update}{create}0000"), format!("03{create}{delete}{update}0000")] {
        assert_eq!(Fault::of(&read(text).unwrap_err()), Some(Fault::UnknownView));
    }
    // A view from before the section is deleted as well.
    assert_eq!(
        fault("03010001010003000300018002380800000000", &server()),
        Some(Fault::UnknownView)
    );
}

#[test]
fn a_guess_is_marked() {
    let mut tables = Tables::built_in();
    tables.goobj_mut(415).class = None;
    let objects = tables.compile();
    let rules = Rules { guess: true, ..Rules::STRICT };
    let context = Context::server(&objects, &NoViews);
    let text =
        "030100089f017a02f0346fcdab0384000000000000803f000000000000000011000000004023f0c0000000\
                0000088140000000000088d340ffffffff030000010001000003000180023808 00000000"
            .replace(' ', "");
    assert_eq!(fault(&text, &context), Some(Fault::UnknownGoid));
    let (shown, outcome) = shown(&text, &context.with(rules));
    outcome.unwrap();
    insta::assert_snapshot!(shown, @r"
    0x0000..0x0001    mpm: 3
    0x0001..0x004d    operations: 3 items
    0x0001..0x003f      [0]
    0x0001..0x003f        create:
    0x0001..0x0003          view: 1
    0x0003..0x0004          flags: 0x0008
    0x0004..0x0006          goid: 415
    0x0004..0x0006          object: Door SL Push Knob Greenmetal01texvar (415)
    0x0006..0x000a          world_id: 0x34f0027a
    0x000a..0x000b          spawn_seq: 111
    0x000b..0x000d          magic: 0xabcd
    0x000d..0x000e          count: 3
    0x000e..0x000e          class: door364
    0x000e..0x000e          guess: true
    0x000e..0x003c          properties:
    0x000f..0x001f            Orientation:
    0x000f..0x0013              x: 0.0
    0x0013..0x0017              y: 1.0
    0x0017..0x001b              z: 0.0
    0x001b..0x001f              w: 0.0
    0x0020..0x0038            Position:
    0x0020..0x0028              x: -66100.0
    0x0028..0x0030              y: 545.0
    0x0030..0x0038              z: 20000.0
    0x0038..0x003c            MissionKey: 0xffffffff
    0x003c..0x003e          new_view: 3
    0x003e..0x003f          tail: 0
    0x003f..0x0044      [1]
    0x003f..0x0044        delete:
    0x003f..0x0041          view: 1
    0x0041..0x0042          flags: 0x0001
    0x0042..0x0044          count: 0
    0x0044..0x0044          views: 0 items
    0x0044..0x004d      [2]
    0x0044..0x004d        update:
    0x0044..0x0046          view: 3
    0x0046..0x0046          class: door364
    0x0046..0x0046          guess: true
    0x0046..0x0047          mask: 0x0001
    0x0047..0x004d          properties:
    0x0049..0x004d            CurrentState: 0x0838
    0x004d..0x004f    end: 0
    ");
    // Too many classes have one property of 24 bytes, and nothing distinguishes them.
    let section =
        bytes("0301000c0f2701cdab01010000000000000000000000000000000000000000000000000900000000");
    let read = Section::decode(&mut Reader::new(&section), &context.with(rules)).unwrap();
    let [Operation::Create(create)] = read.operations.as_slice() else { panic!("{read:?}") };
    assert!(create.guess);
    // Nothing fits a wrong count.
    assert_eq!(
        fault("0301000c0f2701cdab020100000000", &context.with(rules)),
        Some(Fault::UnknownGoid)
    );
}

#[test]
fn ambiguous_bytes_are_not_guessed() {
    let mut tables = Tables::new();
    let kind = |size| PropertyType::raw(size).unwrap();
    let rules = Rules { guess: true, ..Rules::STRICT };
    // One property of one or two bytes: the rest looks valid either way.
    let text = "0301000c010001cdab0101ff050600000000";
    for (size, fault_then) in [(1, None), (2, Some(Fault::UnknownGoid))] {
        assert!(tables.add(Class::new(&format!("raw{size}"), [("A", kind(size))])));
        let objects = tables.compile();
        let context = Context::server(&objects, &NoViews).with(rules);
        let input = bytes(text);
        let outcome = Section::decode(&mut Reader::new(&input), &context);
        assert_eq!(outcome.err().as_ref().and_then(Fault::of), fault_then, "{size}");
    }
}

#[test]
fn operations_are_bounded() {
    let mut input = vec![3];
    for _ in 0..=MAX_OPERATIONS {
        input.extend([3, 0, 0]);
    }
    let error = Section::decode(&mut Reader::new(&input), &server()).unwrap_err();
    let limit = MAX_OPERATIONS as u64;
    let kind = ErrorKind::Limit { name: "operations of a section", limit, asked: limit + 1 };
    assert_eq!(error.kind(), kind);
    input.truncate(1 + 3 * MAX_OPERATIONS);
    input.extend([0, 0]);
    Section::decode(&mut Reader::new(&input), &server()).unwrap();
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let door = OBJECTS.class_of(415).unwrap().0;
    let refuse = |operation: Operation<'_>, from: Side| {
        operation.encode(&OBJECTS, from, &mut Writer::new()).unwrap_err().to_string()
    };
    let create = |view| Create::dynamic(415, door, 1, view);
    let mut short = Properties::new();
    short.set(13, &[1, 2][..]);
    let mut far = Properties::new();
    far.set(14, &[1][..]);
    let mut further = Properties::new();
    further.set(900, &[1][..]);
    let moving = Movement { position: Some([0.0; 3]), ..Movement::default() };
    let own = Update {
        view: 2,
        class: OBJECTS.class_of(12).unwrap().0,
        guess: false,
        movement: Some(moving),
        properties: None,
    };
    let timed = Movement { time: Some(1), ..moving };
    let all = [
        refuse(Operation::Create(create(1)), Side::Server),
        refuse(Operation::Create(Create { flags: 8, ..create(5) }), Side::Server),
        refuse(Operation::Create(Create { flags: 1, ..create(5) }), Side::Server),
        refuse(Operation::Create(create(5).with(short)), Side::Server),
        refuse(Operation::Create(create(5).with(far.clone())), Side::Server),
        refuse(Operation::Create(create(5).with(further)), Side::Server),
        refuse(Operation::Update(Update::of(3, door, far)), Side::Server),
        refuse(Operation::Update(own.clone()), Side::Server),
        refuse(Operation::Update(Update { movement: Some(timed), ..own }), Side::Client),
        refuse(Operation::Delete(Delete::of(vec![5, 0])), Side::Server),
        refuse(Operation::Delete(Delete { flags: 2, views: vec![] }), Side::Server),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    new_view: wanted a view ID that is allowed here, found 1
    world_id: wanted a world object ID with these flags, found none; bit 2 of the flags marks a dynamic object
    flags: wanted the flags of a create, found 0x01
    properties.CurrentState: wanted 4 bytes of EventID, found 2
    properties: wanted presence bits of the class's properties, found index 14 of 14
    properties: wanted presence bits of the class's properties, found index 900 of 14
    properties: wanted presence bits of the class's properties, found index 14 of 9
    movement.time: wanted a time after a position, from a server, for the client's own view, found none
    movement.time: wanted no time, found one
    views[1]: wanted a view ID that is allowed here, found 0
    flags: wanted flags with the lowest two bits 1, found 0x02
    ");
}

#[test]
fn json_that_contradicts_known_facts_is_refused() {
    let read = |operation: Json| {
        let section = json!({ "operations": [operation] });
        Section::from_json(&section, &server()).map(drop)
    };
    let create = |more: (&str, &str)| {
        let mut create = json!({ "goid": 414, "spawn_seq": 1, "new_view": 9, "properties": {} });
        create[more.0] = more.1.into();
        read(json!({ "create": create }))
    };
    let update =
        |class: &str| read(json!({ "update": { "view": 3, "class": class, "properties": {} } }));
    let unknown = |name: &str| {
        let create = json!({ "goid": 12, "object": name, "spawn_seq": 1, "count": 0, "bytes": {"$hex": ""} });
        read(json!({ "unknown_create": create }))
    };
    let right = [
        create(("object", "Door SL Push Knob Graymetal01texvar")),
        create(("class", "door364")),
        update("door364"),
        unknown("PlayerCharacter"),
    ];
    right.into_iter().for_each(Result::unwrap);
    let wrong = [
        create(("object", "PlayerCharacter")),
        create(("class", "vendor")),
        update("vendor"),
        unknown("Nobody"),
    ];
    let told = wrong.map(|outcome| outcome.unwrap_err().to_string());
    insta::assert_snapshot!(told.join("\n"), @r#"
    operations[0].create.object: wanted "Door SL Push Knob Graymetal01texvar", the name of goobj 414, found "PlayerCharacter"; omit it to have it filled in
    operations[0].create.class: wanted door364, the class that is known, found vendor; omit it to have it filled in
    operations[0].update.class: wanted door364, the class that is known, found vendor; omit it to have it filled in
    operations[0].unknown_create.object: wanted "PlayerCharacter", the name of goobj 12, found "Nobody"; omit it to have it filled in
    "#);
}

#[test]
fn bytes_kept_undecoded_are_not_empty_and_come_last() {
    let objects = Objects::built_in();
    let context = Context::server(&objects, &NoViews).with(Rules::LENIENT);
    let encode = |json: &str| {
        let json = worldwire_core::json::parse(json).unwrap();
        let mut writer = Writer::new();
        let section = Section::from_json(&json, &context);
        let encoded =
            section.and_then(|section| section.encode(&objects, Side::Server, &mut writer));
        encoded.map(|()| writer.into_bytes()).map_err(|error| error.to_string())
    };
    let rest = |view: u16, bytes: &str| {
        format!(
            "{{\"undecoded\":{{\"view\":{view},\"fault\":\"unknown_view\",\
             \"bytes\":{{\"$hex\":\"{bytes}\"}}}}}}"
        )
    };
    let section = |list: &[String], end: &str| {
        encode(&format!("{{\"operations\":[{}]{end}}}", list.join(",")))
    };
    assert_eq!(section(&[rest(7, "01")], ""), Ok(vec![3, 7, 0, 1]));
    assert_eq!(section(&[rest(7, "01")], ",\"end\":null"), Ok(vec![3, 7, 0, 1]));
    let refused = [
        section(&[rest(7, "")], ""),
        section(&[rest(0, "01")], ""),
        section(&[rest(7, "01")], ",\"end\":0"),
        section(&[rest(7, "01"), rest(8, "01")], ""),
    ];
    insta::assert_snapshot!(refused.map(Result::unwrap_err).join("\n"), @r"
    operations[0].undecoded.bytes: wanted at least 1 byte after the view, found none
    operations[0].undecoded.view: wanted a view ID that is allowed here, found 0
    end: wanted null, after an unreadable operation, found 0
    operations[0]: wanted undecoded as the last operation, found more after it
    ");
    let error = Section::decode(&mut Reader::new(&[3, 7, 0]), &context).unwrap_err();
    assert_eq!(Fault::of(&error), Some(Fault::Truncated), "{error}");
}

#[test]
fn operations_that_a_client_may_not_send_are_refused() {
    let context = Context::client(&OBJECTS, &*VIEWS);
    let refused = |operation: Json| {
        let json = json!({ "operations": [operation] });
        let section = Section::from_json(&json, &context).unwrap();
        let error = section.encode(&OBJECTS, Side::Client, &mut Writer::new()).unwrap_err();
        // A server may send it; from a client it is not read, either.
        let mut writer = Writer::new();
        section.encode(&OBJECTS, Side::Server, &mut writer).unwrap();
        let read = Section::decode(&mut Reader::new(writer.as_bytes()), &context);
        assert_eq!(Fault::of(&read.unwrap_err()), Some(Fault::BadViewId));
        assert_eq!(Fault::of(&error), Some(Fault::BadViewId));
        error.to_string()
    };
    insta::assert_snapshot!(refused(json!({"delete": {"views": [5]}})), @"operations[0].delete.view: wanted a view ID that is allowed here, found 1 from a client");
    insta::assert_snapshot!(refused(json!({"update": {"view": 5, "movement": {"yaw": 3}}})), @"operations[0].update.view: wanted a view ID that is allowed here, found 5 from a client");
    refused(json!({"pending_update": {"target": 2, "data": {"$hex": "00"}}}));
    refused(json!({"undecoded": {"view": 9, "fault": "unknown_view", "bytes": {"$hex": "00"}}}));
}

#[test]
fn a_pending_update_may_have_both_forms_if_they_agree() {
    let both = |data: &str| {
        let update = json!({"properties": {"CurrentState": 0x838}});
        let pending = json!({"target": 3, "update": update, "data": {"$hex": data}});
        Section::from_json(&json!({"operations": [{"pending_update": pending}]}), &server())
    };
    let mut writer = Writer::new();
    both("01800238080000").unwrap().encode(&OBJECTS, Side::Server, &mut writer).unwrap();
    assert_eq!(writer.as_bytes(), bytes("030100020b00030001800238080000 0000"));
    insta::assert_snapshot!(both("0180023908").unwrap_err(), @"operations[0].pending_update.data: wanted the bytes of the update, found 5 others; omit one of them");
}

/// All classes, but no goobj has one.
fn without_classes() -> Objects {
    let mut tables = Tables::built_in();
    let goobjs: Vec<u16> = tables.goobjs().map(|(goid, _)| goid).collect();
    goobjs.into_iter().for_each(|goid| tables.goobj_mut(goid).class = None);
    tables.compile()
}

const GUESSING: Rules = Rules { guess: true, ..Rules::LENIENT };

#[test]
fn guesses_agree_with_known_classes() {
    let strange = without_classes();
    let counts = std::sync::Mutex::new((0, 0));
    run_vectors("mxo", &["transport", "scenarios", "malformed", "bitvectors"], |case| {
        let Ok(input) = field(case.case, "input") else { return Ok(()) };
        let read = |objects, rules| {
            let context = Context::server(objects, &NoViews).with(rules);
            Section::decode(&mut Reader::new(&input), &context).map(Section::into_owned)
        };
        let (Ok(known), Ok(guessed)) = (read(&OBJECTS, Rules::LENIENT), read(&strange, GUESSING))
        else {
            return Ok(());
        };
        for (known, guessed) in known.operations.iter().zip(&guessed.operations) {
            let Operation::Create(known) = known else { continue };
            let Operation::Create(guessed) = guessed else {
                counts.lock().unwrap().1 += 1;
                break;
            };
            let values = |create: &Create<'_>| -> Vec<Vec<u8>> {
                create.properties.list().iter().map(|one| one.bytes().to_vec()).collect()
            };
            if values(known) != values(guessed) || known.new_view != guessed.new_view {
                return Err(format!("{guessed:?}"));
            }
            counts.lock().unwrap().0 += 1;
        }
        Ok(())
    });
    let (right, raw) = counts.into_inner().unwrap();
    assert!(right > 10 && raw * 5 < right, "{right} guessed, {raw} raw");
}

#[test]
fn reading_continues_after_a_create_of_unknown_class() {
    let strange = without_classes();
    let context = Context::server(&strange, &*VIEWS).with(GUESSING);
    let kinds = |text: &str| -> Vec<&'static str> {
        let input = bytes(&text.replace(' ', ""));
        let section = Section::decode(&mut Reader::new(&input), &context).unwrap();
        let mut writer = Writer::new();
        section.encode(&strange, Side::Server, &mut writer).unwrap();
        assert_eq!(writer.as_bytes(), input);
        section.operations.iter().map(Operation::name).collect()
    };
    // Three layouts have these sizes in some order. Only one has an orientation of length 1 and
    // coordinates that are not tiny. An update of a known view follows.
    let turned = "00000000 0000803f 00000000 00000000";
    let place = "000000004023f0c0 0000000000088140 000000000088d340";
    let size = "0000803f 0000803f 0000803f";
    let head = "0100 0c fefe 01 cdab";
    let update = "0300 01 8002 38080000";
    let all = format!("03 {head} 03 07 {turned} {place} {size} 0900 00 {update} 0000");
    assert_eq!(kinds(&all), ["create", "update"]);
    let input = bytes(&all.replace(' ', ""));
    let section = Section::decode(&mut Reader::new(&input), &context).unwrap();
    let Operation::Create(create) = &section.operations[0] else { panic!() };
    assert!(create.guess && create.properties.list()[1].bytes().len() == 24);
    // No layout fits, but the next create is found.
    let strange_create = format!("{head} 04 0f 01020304 0900 00");
    let create = format!("{head} 03 07 {turned} {place} {size} 0a00 00");
    let both = format!("03 {strange_create} {create} {strange_create} {create} 0000");
    assert_eq!(kinds(&both), ["unknown_create", "create", "unknown_create", "create"]);
    let last = format!("03 {create} {strange_create} {update} 0000");
    assert_eq!(kinds(&last), ["create", "unknown_create"]);
}
