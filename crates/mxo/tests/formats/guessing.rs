//! Guessed layouts of goobjs whose class is unknown.

use worldwire_core::testing::{hex as field, run_vectors};
use worldwire_core::{Reader, Side, Writer};
use worldwire_mxo::message::{Context, Create, Fault, NoViews, Operation, Rules, Section};
use worldwire_mxo::schema::{Class, Objects, Tables};
use worldwire_mxo::types::PropertyType;

use crate::reading::{OBJECTS, VIEWS, bytes, fault, shown};

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
    // No class fits a wrong count.
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
    // A single property of one or two bytes: the rest looks valid either way.
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

/// All classes, but no goobj that has one of them.
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
