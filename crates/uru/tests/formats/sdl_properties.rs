//! Properties of all descriptors, blobs and states: converting to text, bytes and JSON loses
//! nothing, and arbitrary updates have the specified effect.

use std::sync::LazyLock;

use proptest::prelude::*;
use worldwire_core::{Reader, Sampler, Tree};
use worldwire_uru::schema::{Descriptor, Descriptors, parse};
use worldwire_uru::sdl::{Blob, MergePolicy, ObjectState, SimpleFlags};
use worldwire_uru::types::UnifiedTime;

static SET: LazyLock<Descriptors> = LazyLock::new(|| {
    Descriptors::load([
        ("age", include_str!("../../../../samples/sdl/Fernhollow.sdl")),
        ("things", include_str!("../../../../samples/sdl/things.sdl")),
    ])
});

fn descriptor() -> impl Strategy<Value = Descriptor> {
    (0..SET.len()).prop_map(|at| SET.iter().nth(at).unwrap())
}

fn made_up(descriptor: &Descriptor, seed: u64) -> Blob<'static> {
    Blob::sample(descriptor, &mut Sampler::sized(seed, 6))
}

const RULES: [MergePolicy; 4] =
    [MergePolicy::OURS, MergePolicy::CLIENT, MergePolicy::MOSS, MergePolicy::DIRTSAND];

fn now() -> UnifiedTime {
    UnifiedTime { seconds: 1_700_000_000, microseconds: 1 }
}

/// An SDL file with valid and invalid descriptors.
fn text() -> impl Strategy<Value = String> {
    let word = "[a-zA-Z_$0-9.-]{1,6}";
    let value = prop_oneof![
        word.prop_map(String::from),
        "\"[ -!#-~]{0,6}\"",
        "\\([a-z0-9.,\" -]{0,8}\\)",
        "-?[0-9]{1,4}(\\.[0-9]{1,3})?",
    ];
    let option = prop_oneof![
        Just("DEFAULT"),
        Just("DEFAULTOPTION"),
        Just("DISPLAYOPTION"),
        Just("default"),
        Just("HUE"),
    ];
    let kind = prop_oneof![
        Just("INT".to_owned()),
        Just("bool".to_owned()),
        Just("STRING32".to_owned()),
        Just("RGB8".to_owned()),
        Just("$a".to_owned()),
        Just("$b".to_owned()),
        Just("QUAT9".to_owned()),
        Just("PLKEY".to_owned()),
        word.prop_map(String::from),
    ];
    let attribute = (option, value).prop_map(|(option, value)| format!(" {option}={value}"));
    let variable = (kind, word, "[0-9]{0,2}", proptest::collection::vec(attribute, 0..3)).prop_map(
        |(kind, name, count, rest)| format!("VAR {kind} {name}[{count}]{}\n", rest.concat()),
    );
    let statement = ("[abAB]", 0..3_u8, proptest::collection::vec(variable, 0..5)).prop_map(
        |(name, version, all)| {
            format!("STATEDESC {name}\n{{ VERSION {version} # note\n{}}}\n", all.concat())
        },
    );
    let noise = "[ -~\n]{0,12}";
    proptest::collection::vec(prop_oneof![9 => statement, 1 => noise.prop_map(String::from)], 0..6)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn valid_descriptors_round_trip(text in text()) {
        let parsed = parse("text", &text);
        for statement in parsed.statements.iter().filter(|statement| statement.valid) {
            let shown = statement.definition.to_string();
            let again = parse("shown", &shown);
            prop_assert!(again.statements.len() == 1, "{shown}");
            prop_assert!(again.statements[0].valid, "{shown}: {:?}", again.problems);
            prop_assert_eq!(&again.statements[0].definition, &statement.definition);
        }
        let set = Descriptors::load([("text", &*text)]);
        prop_assert!(set.len() <= parsed.statements.len());
        for descriptor in set.iter() {
            prop_assert_eq!(made_up(&descriptor, 1).descriptor, descriptor);
        }
    }

    #[test]
    fn blobs_round_trip(descriptor in descriptor(), seed in any::<u64>()) {
        let blob = made_up(&descriptor, seed);
        let bytes = blob.to_bytes().unwrap();
        let mut reader = Reader::new(&bytes);
        prop_assert_eq!(&Blob::decode(&SET, &mut reader).unwrap(), &blob);
        reader.end().unwrap();
        let json = blob.to_json(&SET).unwrap();
        let again = Blob::from_json(&SET, &json).unwrap();
        prop_assert_eq!(again.to_bytes().unwrap(), bytes);
    }

    #[test]
    fn truncated_blobs_are_errors_with_an_offset(
        descriptor in descriptor(), seed in any::<u64>(), cut in any::<prop::sample::Index>(),
    ) {
        let bytes = made_up(&descriptor, seed).to_bytes().unwrap();
        let bytes = &bytes[..cut.index(bytes.len())];
        let plain = Blob::decode(&SET, &mut Reader::new(bytes)).unwrap_err();
        prop_assert!(plain.offset().is_some(), "{plain}");
        let mut traced = Reader::traced("cut", bytes, Tree::new());
        prop_assert_eq!(Blob::decode(&SET, &mut traced).unwrap_err(), plain);
    }

    #[test]
    fn an_update_changes_only_its_own_variables(
        descriptor in descriptor(), base in any::<u64>(), update in any::<u64>(),
    ) {
        let (base, update) = (made_up(&descriptor, base), made_up(&descriptor, update));
        let named: Vec<_> = {
            let shape = descriptor.shape();
            let simple = update.record.simple.iter().map(|one| shape.simple(one.index as usize));
            let nested = update.record.nested.iter();
            let nested = nested.map(|one| shape.nested(one.index as usize).map(|one| one.0));
            simple.chain(nested).map(|one| one.unwrap().label().to_owned()).collect()
        };
        for rule in RULES {
            let before = ObjectState::of(&base);
            let mut after = before.clone();
            after.apply(&update, rule, &now()).unwrap();
            for change in before.diff(&after) {
                let name = change.path.split(['[', '.']).next().unwrap();
                prop_assert!(named.iter().any(|one| one == name), "{change}");
            }
            // Applying the update again changes nothing, and the state fits into a blob.
            let mut again = after.clone();
            again.apply(&update, rule, &now()).unwrap();
            prop_assert_eq!(&again, &after);
            let bytes = after.to_blob().to_bytes().unwrap();
            prop_assert_eq!(&ObjectState::of(&Blob::decode(&SET, &mut Reader::new(&bytes)).unwrap()), &after);
            prop_assert_eq!(after.diff(&after), []);
        }
    }

    #[test]
    fn upgraded_states_follow_the_new_version(
        from in 0..3_usize, to in 0..3_usize, seed in any::<u64>(),
    ) {
        let versions: Vec<_> = SET.versions("Fernhollow").collect();
        let state = ObjectState::of(&made_up(&versions[from], seed));
        let moved = state.upgrade(&versions[to]);
        let bytes = moved.to_blob().to_bytes().unwrap();
        let blob = Blob::decode(&SET, &mut Reader::new(&bytes)).unwrap();
        prop_assert_eq!(&ObjectState::of(&blob), &moved);
        if from == to {
            prop_assert_eq!(&moved, &state);
        }
    }

    #[test]
    fn the_server_stamps_variables(descriptor in descriptor(), seed in any::<u64>()) {
        let update = made_up(&descriptor, seed);
        let mut state = ObjectState::new(descriptor);
        state.apply(&update, MergePolicy::OURS, &now()).unwrap();
        prop_assert_eq!(state.record().simple.len(), update.record.simple.len());
        for (entry, sent) in state.record().simple.iter().zip(&update.record.simple) {
            prop_assert_eq!(&entry.time, &Some(now()));
            prop_assert!(!entry.flags.contains(SimpleFlags::WantTimeStamp));
            let dirty = SimpleFlags::Dirty;
            prop_assert_eq!(entry.flags.contains(dirty), sent.flags.contains(dirty));
        }
    }
}
