//! The output for sections (trees, JSON, errors), and rules that the vectors do not cover.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use worldwire_core::json::{Style, json};
use worldwire_core::testing::render;
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::value::parse_hex;
use worldwire_core::{ErrorKind, Reader, Result, Side, Tree, Writer};
use worldwire_mxo::message::{
    Context, Create, Delete, Fault, MAX_OPERATIONS, Movement, NoViews, Operation, Properties,
    Rules, Script, Section, Update, Viewed,
};
use worldwire_mxo::schema::Objects;

pub(super) static OBJECTS: LazyLock<Objects> = LazyLock::new(Objects::built_in);

pub(super) static VIEWS: LazyLock<BTreeMap<u16, Viewed>> = LazyLock::new(|| {
    let views = [(2, "player"), (3, "door364"), (4, "player"), (5, "npc"), (6, "vendor")];
    views.iter().map(|(id, name)| (*id, OBJECTS.class_named(name).unwrap().0.into())).collect()
});

pub(super) fn bytes(text: &str) -> Vec<u8> {
    parse_hex(text).unwrap()
}

pub(super) fn server() -> Context<'static, 'static> {
    Context::server(&OBJECTS, &*VIEWS)
}

/// The text of the tree and the result.
pub(super) fn shown(text: &str, context: &Context<'_, '_>) -> (String, Result<()>) {
    let bytes = bytes(text);
    let mut reader = Reader::traced("section", &bytes, Tree::new());
    let outcome = Section::decode(&mut reader, context).map(drop);
    let (tree, outcome) = reader.conclude(outcome);
    let mut shown = String::new();
    write_tree(&tree, TextStyle { ranges: true, ..TextStyle::default() }, &mut shown);
    render(&tree, Style::default());
    (shown, outcome)
}

pub(super) fn fault(text: &str, context: &Context<'_, '_>) -> Option<Fault> {
    Fault::of(&Section::decode(&mut Reader::new(&bytes(text)), context).unwrap_err())
}

/// One operation of each kind.
pub(super) fn sample() -> Vec<u8> {
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

pub(super) fn hex(bytes: &[u8]) -> String {
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
    // Everything that follows from the rest can be omitted.
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
        "030500080000",
        "0303000180023808",
        "0301000203006900",
        "0300",
    ]
    .iter()
    .map(|text| shown(text, &server()).1.unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(all.join("\n"), @r"
    operations[0].create.properties at byte 12: wanted presence bits for the class's properties, found presence byte 3, beyond the last property; goobj 415 is read as class door364 (built in)
    operations[0].create.properties at byte 16: wanted a count equal to the number of presence bits, found a count of 2 and 1 bits; goobj 415 is read as class door364 (built in)
    operations[0].create.goid at byte 4: wanted a goobj whose class is known, found 65278
    operations[0].delete.views at byte 6: wanted 6 bytes, found 4
    operations[0].create.magic at byte 7: wanted the magic number 0xabcd, found 0xcdab
    operations[0].view at byte 1: wanted a view whose class is known, found 119
    operations[0].update.mask at byte 3: wanted a block whose layout is known, found block 0x02 of class door364; view 3 is read as class door364 (built in)
    operations[0].update.movement.flags at byte 4: wanted a block whose layout is known, found flag 0x40
    operations[0].update.mask at byte 3: wanted a block whose layout is known, found block 0x08 of class npc; view 5 is read as class npc (built in)
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
    // Keeping unknown parts does not make the section valid.
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
    for text in ["0304000120010203", "03050008aabb", "0304000110", "0306000101aa", "0303000200"] {
        assert_eq!(fault(text, &server()), Some(Fault::UnknownLayout), "{text}");
        let input = bytes(text);
        let read = Section::decode(&mut Reader::new(&input), &lenient).unwrap();
        let [Operation::Undecoded(rest)] = read.operations.as_slice() else { panic!("{read:?}") };
        assert_eq!((rest.fault, &*rest.bytes), (Fault::UnknownLayout, &input[3..]));
        assert!(read.unterminated);
    }
}

/// L-21: the first block of an NPC's update is assumed to be one byte only if everything after it
/// fits.
#[test]
fn an_unlikely_block_is_kept_as_bytes() {
    let lenient = server().with(Rules::LENIENT);
    let read = |text: &str| {
        let input = bytes(text);
        Section::decode(&mut Reader::new(&input), &lenient).unwrap().into_owned()
    };
    for text in ["03050001aabb", "03050001aa7700010000", "03050001020600aabb"] {
        let section = read(text);
        let [Operation::Undecoded(rest)] = &section.operations[..] else { panic!("{section:?}") };
        assert_eq!((rest.view, rest.fault), (5, Fault::UnknownLayout));
    }
    let section = read("03050001020500020405050001030000");
    let first = |operation: &Operation<'_>| match operation {
        Operation::Update(update) => update.block1,
        other => panic!("{other:?}"),
    };
    assert_eq!(section.operations.iter().map(first).collect::<Vec<_>>(), [Some(2), None, Some(3)]);
    // A receiver that must not guess reads the block as one byte and refuses whatever does not fit.
    assert_eq!(fault("03050001aabb", &server()), Some(Fault::Truncated));
}

/// L-20 and L-22: a server's time follows a position in the client's own view, or a position sent
/// with a script.
#[test]
fn a_script_moves_the_time_into_other_views() {
    let read = |text: &str| {
        let input = bytes(text);
        let section = Section::decode(&mut Reader::new(&input), &server()).unwrap().into_owned();
        match &section.operations[..] {
            [Operation::Update(update)] => update.movement.unwrap(),
            other => panic!("{other:?}"),
        }
    };
    let position = "0000803f0000004000004040";
    let emote =
        read(&format!("030400012803400025040000 10{position}07000000 0000").replace(' ', ""));
    assert_eq!((emote.script, emote.time), (Some(Script::emote(4)), Some(7)));
    let walk = read(&format!("0304000108{position}0000"));
    assert_eq!((walk.script, walk.time), (None, None));
    let own = read(&format!("0302000108{position}070000000000"));
    assert_eq!((own.script, own.time), (None, Some(7)));
    let leaving = read("030400 01 20 09 c000740010 0000".replace(' ', "").as_str());
    assert_eq!(leaving.script, Some(Script::JackOut { unknown1: 0x1000 }));
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
    Some(0) 1 more presence byte than needed
    Some(0) flags 0xfc with unknown bits
    Some(0) a create that ends with 0x77 instead of 0
    Some(0) flags 0xf1 with unknown bits
    Some(0) a deletion without views
    Some(1) flags 0x12 with unknown bits
    Some(0) an object that is not normal: bit 3 of the flags is clear
    Some(0) an update without blocks
    Some(1) 1 more presence byte than needed
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
    // A view that existed before the section is deleted as well.
    assert_eq!(
        fault("03010001010003000300018002380800000000", &server()),
        Some(Fault::UnknownView)
    );
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
pub(super) fn bytes_kept_undecoded_are_not_empty_and_come_last() {
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
    operations[0]: wanted undecoded as the last operation, found more operations after it
    ");
    let error = Section::decode(&mut Reader::new(&[3, 7, 0]), &context).unwrap_err();
    assert_eq!(Fault::of(&error), Some(Fault::Truncated), "{error}");
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
    insta::assert_snapshot!(both("0180023908").unwrap_err(), @"operations[0].pending_update.data: wanted the bytes of the update, found 5 different bytes; omit `data` or `update`");
}
