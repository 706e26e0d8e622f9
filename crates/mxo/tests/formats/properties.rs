//! Property tests for values, sections and tables.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;
use worldwire_core::json::Style;
use worldwire_core::testing::render;
use worldwire_core::{Reader, Sampler, Side, Tree, Writer};
use worldwire_mxo::message::{
    Animation, Context, Create, Delete, FIRST_VIEW, Fault, Movement, OWN_VIEW, Operation,
    PendingUpdate, Properties, Rules, Script, Section, Update, Viewed,
};
use worldwire_mxo::schema::{Class, Objects, Order, Tables, Updates};
use worldwire_mxo::types::PropertyType;

static OBJECTS: LazyLock<Objects> = LazyLock::new(Objects::built_in);

/// The number of cases, unless `PROPTEST_CASES` sets it.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 512;
    }
    config
}

fn pick(sampler: &mut Sampler, count: usize) -> usize {
    usize::try_from(sampler.below(count as u64)).unwrap()
}

/// Random properties of an order, with random bytes.
fn properties(sampler: &mut Sampler, order: &Order) -> Properties<'static> {
    let mut properties = Properties::new();
    let most = sampler.length(order.len() as u64);
    for _ in 0..most {
        let index = pick(sampler, order.len());
        let slot = order.slot(index).unwrap();
        let length = slot.fixed_size().map_or_else(|| sampler.length(255), usize::from);
        properties.set(u16::try_from(index).unwrap(), sampler.bytes(length));
    }
    properties
}

fn movement(sampler: &mut Sampler, from: Side, own: bool) -> Movement {
    let mut byte = || (sampler.below(2) == 1).then(|| sampler.bits().to_le_bytes()[0]);
    let script_counter = byte();
    let animation = byte().zip(byte());
    let animation = animation.map(|(animation, mood)| Animation { animation, mood });
    let (action, yaw) = (byte(), byte());
    let mut float = || f32::from_bits(u32::try_from(sampler.number() & 0xffff_ffff).unwrap());
    let position = [float(), float(), float()];
    let position = (sampler.below(2) == 1).then_some(position);
    let script = (from == Side::Server).then(|| match sampler.below(3) {
        0 => Script::emote(4),
        1 => Script::Effect { id: 0x2800_00a5, unknown1: 0x100 },
        _ => Script::JackOut { unknown1: 0x1000 },
    });
    let script = script.filter(|_| script_counter.is_some());
    let timed = own || script.is_some();
    let time = (timed && from == Side::Server && position.is_some()).then_some(7);
    Movement { script_counter, script, animation, action, yaw, position, time }
}

fn update(sampler: &mut Sampler, from: Side, view: u16, viewed: Viewed) -> Update<'static> {
    let class = OBJECTS.class(viewed.class).unwrap();
    let moves = !matches!(class.updates(), Updates::Plain(_) | Updates::Unknown);
    let own = view == OWN_VIEW;
    let order = class.updates().order(view);
    let block1 = matches!(class.updates(), Updates::Npc(_)) && sampler.below(4) == 0;
    Update {
        view,
        class: viewed.class,
        guess: false,
        block1: block1.then_some(9),
        movement: (moves && sampler.below(2) == 1).then(|| movement(sampler, from, own)),
        properties: order.filter(|_| sampler.below(4) > 0).map(|order| properties(sampler, order)),
    }
}

fn create(sampler: &mut Sampler, new_view: u16) -> Create<'static> {
    let goobjs: Vec<u16> =
        (0..=u16::MAX).filter(|goid| OBJECTS.class_of(*goid).is_some()).collect();
    let goid = goobjs[pick(sampler, goobjs.len())];
    let (id, class) = OBJECTS.class_of(goid).unwrap();
    let spawn_seq = sampler.bits().to_le_bytes()[0];
    let mut create = match sampler.below(2) {
        0 => Create::dynamic(goid, id, spawn_seq, new_view),
        _ => Create::of_world(goid, 0x34f0_089a, id, spawn_seq, new_view),
    };
    // Unknown flags are kept.
    create.flags |= sampler.bits().to_le_bytes()[0] & 0xf8;
    create.tail = sampler.number().to_le_bytes()[0];
    create.with(properties(sampler, class.create()))
}

/// A random section and the views before it.
fn section(seed: u64, from: Side) -> (Section<'static>, BTreeMap<u16, Viewed>) {
    let mut sampler = Sampler::new(seed);
    let mut views: BTreeMap<u16, Viewed> = BTreeMap::new();
    views.insert(OWN_VIEW, OBJECTS.class_named("player").unwrap().0.into());
    for (view, name) in (FIRST_VIEW..).zip(["door364", "npc", "player", "vendor", "subway"]) {
        views.insert(view, OBJECTS.class_named(name).unwrap().0.into());
    }
    let before = views.clone();
    let mut operations = Vec::new();
    for _ in 0..sampler.length(8) {
        let choice = if from == Side::Client { 3 } else { sampler.below(5) };
        operations.push(match choice {
            0 => {
                let new = 2 + u16::try_from(sampler.below(40)).unwrap();
                let create = create(&mut sampler, new);
                views.insert(new, create.class.into());
                Operation::Create(create)
            }
            1 => {
                let gone: Vec<u16> = (0..sampler.length(4))
                    .map(|_| 2 + u16::try_from(sampler.below(40)).unwrap())
                    .collect();
                views.retain(|view, _| !gone.contains(view));
                Operation::Delete(Delete::of(gone))
            }
            2 => {
                let length = sampler.length(40);
                let data = sampler.bytes(length).into();
                Operation::PendingUpdate(PendingUpdate { flags: 0xf2, target: 300, data })
            }
            _ => {
                let known: Vec<_> = views.iter().map(|(view, viewed)| (*view, *viewed)).collect();
                let own = |(view, _): &&(u16, Viewed)| *view == OWN_VIEW || from == Side::Server;
                let known: Vec<_> = known.iter().filter(own).collect();
                let Some((view, viewed)) = known.get(pick(&mut sampler, known.len().max(1))) else {
                    continue;
                };
                Operation::Update(update(&mut sampler, from, *view, *viewed))
            }
        });
    }
    (Section { operations, unterminated: false }, before)
}

fn encode(section: &Section<'_>, from: Side) -> Vec<u8> {
    let mut writer = Writer::new();
    section.encode(&OBJECTS, from, &mut writer).unwrap();
    writer.into_bytes()
}

proptest! {
    #![proptest_config(config())]

    /// Values, bytes and JSON round-trip, and every prefix is refused with the proper error.
    #[test]
    fn sections_round_trip(seed: u64, client: bool) {
        let from = if client { Side::Client } else { Side::Server };
        let (made, views) = section(seed, from);
        let context = Context { objects: &OBJECTS, views: &views, from, rules: Rules::STRICT };
        let bytes = encode(&made, from);
        let lengths = made.operations.iter().map(|one| one.encoded_len(&OBJECTS));
        prop_assert_eq!(lengths.sum::<usize>() + 3, bytes.len());

        // Bytes after the section are not touched.
        let longer = [&bytes[..], &[4, 1, 0, 0]].concat();
        let mut reader = Reader::new(&longer);
        let read = Section::decode(&mut reader, &context).unwrap();
        prop_assert_eq!(reader.rest(), [4, 1, 0, 0]);
        // NaN is not equal to itself, but its bytes are.
        prop_assert_eq!(encode(&read, from), &bytes[..]);
        prop_assert_eq!(read.operations.len(), made.operations.len());

        let mut reader = Reader::traced("section", &bytes, Tree::new());
        Section::decode(&mut reader, &context).unwrap();
        let json = render(&reader.finish(), Style::default());
        let again = Section::from_json(&json, &context).unwrap();
        prop_assert_eq!(encode(&again, from), &bytes[..], "{}", json);

        for end in 0..bytes.len() {
            let outcome = Section::decode(&mut Reader::new(&bytes[..end]), &context);
            let fault = Fault::of(&outcome.unwrap_err());
            let short = matches!(fault, Some(Fault::Truncated | Fault::MissingTerminator));
            prop_assert!(short, "{:?} at {}", fault, end);
        }
    }

    /// Bytes of any value survive as any type, in trees and JSON.
    #[test]
    fn values_round_trip(seed: u64, kind in 0_usize..20) {
        let mut sampler = Sampler::new(seed);
        let raws = [1, 3, 255].map(|size| PropertyType::raw(size).unwrap());
        let kind = PropertyType::NAMED.iter().chain(&raws).nth(kind).copied().unwrap();
        let mut bytes = sampler.bytes(kind.size().into());
        if sampler.below(2) == 0 {
            // Text of letters and zeros.
            bytes.iter_mut().for_each(|byte| *byte = [b'a', b'b', 0, 0xe9][usize::from(*byte % 4)]);
        }
        let mut reader = Reader::traced("value", &bytes, Tree::new());
        prop_assert_eq!(kind.decode(&mut reader, "value").unwrap(), &bytes[..]);
        let json = render(&reader.finish(), Style::default());
        prop_assert_eq!(kind.bytes_from_json(&json["value"]).unwrap(), &bytes[..], "{}", json);

        let counted = [&[u8::try_from(bytes.len()).unwrap()][..], &bytes].concat();
        let mut reader = Reader::traced("value", &counted, Tree::new());
        PropertyType::decode_counted(&mut reader, "value").unwrap();
        let json = render(&reader.finish(), Style::default());
        let again = PropertyType::counted_from_json(&json["value"]).unwrap();
        prop_assert_eq!(again, bytes, "{}", json);
    }

    /// Tables survive printing and reading.
    #[test]
    fn tables_round_trip(seed: u64) {
        let mut sampler = Sampler::new(seed);
        let mut tables = Tables::new();
        let kinds: Vec<_> = PropertyType::NAMED.into_iter().chain(PropertyType::raw(9)).collect();
        for class in 0..sampler.length(6) {
            let name = |index| format!("p{index}");
            let mut list = |most: u64| -> Vec<(String, PropertyType)> {
                let count = sampler.length(most);
                let kind = |sampler: &mut Sampler| kinds[pick(sampler, kinds.len())];
                (0..count).map(|index| (name(index), kind(&mut sampler))).collect()
            };
            fn of(list: &[(String, PropertyType)]) -> impl Iterator<Item = (&str, PropertyType)> {
                list.iter().map(|(name, kind)| (name.as_str(), *kind))
            }
            let (create, first, second) = (list(20), list(10), list(10));
            let made = Class::new(&format!("c{class}"), of(&create));
            let made = match sampler.below(4) {
                0 => made,
                1 => made.updated(of(&first)),
                2 => made.updated_as_npc(of(&first)),
                _ => made.updated_as_player(of(&first), of(&second)).with_source("a test"),
            };
            prop_assert!(tables.add(made));
            let goobj = tables.goobj_mut(sampler.bits().to_le_bytes()[0].into());
            goobj.class = Some(format!("c{class}").into());
            goobj.name = (sampler.below(2) == 0).then(|| "A name".into());
        }
        let text = tables.print();
        let mut again = Tables::new();
        prop_assert_eq!(again.read("printed", &text), []);
        prop_assert_eq!(again.print(), text);
        prop_assert_eq!(again, tables);
    }
}
