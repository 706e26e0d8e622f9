//! States: updates by the rules of each implementation, upgrades, comparisons, and the database.

use worldwire_core::json::{Json, json};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{
    Blob, MergePolicy, ObjectKey, ObjectState, Scalar, StateDb, StoredState, UpdateError,
    UpdateOrigin, hook,
};
use worldwire_uru::types::{
    CloneIds, LoadMask, Location, LocationFlags, SafeString, SequenceNumber, UnifiedTime, Uoid,
};

use crate::sdl_blobs::{blob, changed, set};

fn at(seconds: u32) -> UnifiedTime {
    UnifiedTime { seconds, microseconds: 0 }
}

fn diff(old: &ObjectState, new: &ObjectState) -> String {
    let lines: Vec<_> = old.diff(new).iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn implementations_apply_updates_differently() {
    let set = set();
    let base = blob(
        &set,
        "fhWardrobe",
        1,
        json!({
            "mood": {"hint": "why", "flags": ["Dirty"], "value": 5},
            "list": {"hint": "", "flags": ["Dirty"], "value": [1, 2]},
            "shoes": {"hint": "", "elements": [
                {"variables": {"tint": changed(json!([1, 1, 1]))}},
                {"variables": {"tint": changed(json!([2, 2, 2]))}},
            ]},
        }),
    );
    let update = blob(
        &set,
        "fhWardrobe",
        1,
        json!({
            "mood": {"hint": "", "flags": ["Dirty", "WantTimeStamp"], "value": 6},
            "list": {"hint": "", "flags": [], "value": [3]},
            "shoes": {"hint": "", "elements": [
                {"index": 1, "variables": {"tint": changed(json!([7, 7, 7]))}},
            ]},
        }),
    );
    let mut shown = String::new();
    for (name, rule) in [
        ("ours", MergePolicy::OURS),
        ("client", MergePolicy::CLIENT),
        ("MOSS", MergePolicy::MOSS),
        ("dirtsand", MergePolicy::DIRTSAND),
    ] {
        let before = ObjectState::of(&base);
        let mut after = before.clone();
        after.apply(&update, rule, &at(1_700_000_000)).unwrap();
        shown += &format!("{name}\n{}\n", diff(&before, &after));
    }
    insta::assert_snapshot!(shown, @r#"
    ours
    ~ shoes[1].tint: [2,2,2] became [7,7,7]
    + shoes[1].tint time = 1700000000.000000
    ~ list: [1,2] became [3]
    + list time = 1700000000.000000
    ~ mood: 5 became 6
    + mood time = 1700000000.000000
    client
    ~ shoes[1].tint: [2,2,2] became [7,7,7]
    ~ list: [1,2] became [3]
    ~ mood: 5 became 6
    MOSS
    - shoes[0].tint = [1,1,1]
    ~ shoes[1].tint: [2,2,2] became [7,7,7]
    + shoes[1].tint time = 1700000000.000000
    ~ mood: 5 became 6
    - mood hint = "why"
    + mood time = 1700000000.000000
    dirtsand
    - shoes[0].tint = [1,1,1]
    ~ shoes[1].tint: [2,2,2] became [7,7,7]
    + shoes[1].tint time = 1700000000.000000
    ~ list: [1,2] became [3]
    ~ mood: 5 became 6
    - mood hint = "why"
    + mood time = 1700000000.000000
    "#);
}

#[test]
fn updates_of_newer_versions_upgrade_and_older_ones_are_refused() {
    let set = set();
    let old = blob(
        &set,
        "Fernhollow",
        1,
        json!({
            "fhLampCount": changed(json!(300)),
            "fhGateOpen": {"flags": ["SameAsDefault", "Dirty"]},
        }),
    );
    let newer = blob(&set, "fernhollow", 3, json!({"fhTide": changed(json!([1.0, 2.0, 3.5]))}));
    let mut state = ObjectState::of(&old);
    let before = state.clone();
    state.apply(&newer, MergePolicy::OURS, &at(9)).unwrap();
    assert_eq!(state.descriptor().version(), 3);
    insta::assert_snapshot!(diff(&before, &state), @r"
    ~ Fernhollow version: 1 became 3
    ~ fhLampCount: 300 became 255
    + fhTide = [1.0,2.0,3.5]
    + fhTide time = 9.000000
    ");
    // A variable that was set to the old default keeps that value when the default changes.
    assert_eq!(state.scalar("fhGateOpen"), Some(Scalar::Bool(false)));
    let unchanged = state.clone();
    let refused = state.apply(&old, MergePolicy::OURS, &at(10)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Fernhollow: the update uses version 1, but the state already has version 3"
    );
    let other = blob(&set, "fhLever", 1, json!({}));
    let refused = state.apply(&other, MergePolicy::OURS, &at(10)).unwrap_err();
    assert_eq!(refused.to_string(), "the update is for fhLever, not for Fernhollow");
    assert_eq!(state, unchanged);
}

#[test]
fn upgrades_convert_compatible_values() {
    let text = "
        STATEDESC a { VERSION 1
            VAR FLOAT up[1] VAR DOUBLE down[1] VAR INT wide[1] VAR BOOL flag[1] VAR BYTE list[]
            VAR INT same[2] VAR VECTOR3 v[1] VAR $c one[2] VAR $c none[1] VAR STRING32 gone[1]
            VAR PLKEY key[2] }
        STATEDESC a { VERSION 2
            VAR BYTE UP[1] VAR INT down[1] VAR FLOAT wide[1] VAR SHORT flag[1] VAR SHORT list[3] DEFAULT=8
            VAR INT same[] VAR RGB v[1] VAR $d one[1] VAR INT none[1] VAR PLKEY key[1] }
        STATEDESC c { VERSION 1 VAR INT x[1] VAR INT y[1] }
        STATEDESC d { VERSION 1 VAR BOOL y[1] VAR INT z[1] DEFAULT=4 }";
    let set = Descriptors::load([("a.sdl", text)]);
    assert_eq!(set.problems(), []);
    let key = json!({
        "location": {"sequenceNumber": 33, "flags": []}, "classIndex": 1, "objectId": 0,
        "name": "k",
    });
    let old = blob(
        &set,
        "a",
        1,
        json!({
            "up": changed(json!(-7.9)), "down": changed(json!(1e300)), "wide": changed(json!(16777217)),
            "flag": changed(json!(true)), "list": changed(json!([5, 6])),
            "same": changed(json!([1, 2])), "v": changed(json!([1.0, 2.0, 3.0])),
            "gone": changed(json!("x")), "key": changed(json!([key, key])),
            "one": {"elements": [
                {"index": 0, "variables": {"x": changed(json!(1)), "y": changed(json!(2))}},
            ]},
            "none": {"elements": [{"variables": {}}]},
        }),
    );
    let new = ObjectState::of(&old).upgrade(&set.newest("a").unwrap());
    let json = new.to_blob().to_json(&set).unwrap();
    let value = |name: &str| json["variables"][name]["value"].clone();
    assert_eq!(value("UP"), 0);
    assert_eq!(value("down"), i32::MAX);
    assert_eq!(value("wide"), 16_777_216.0);
    assert_eq!(value("flag"), 1);
    assert_eq!(value("list"), json!([5, 6, 8]));
    assert_eq!(value("same"), json!([1, 2]));
    assert_eq!(value("key")["name"], "k");
    assert_eq!(new.scalar("v"), Some(Scalar::Triple([0.0; 3])));
    assert!(!new.is_set("v") && !new.is_set("none"));
    let one = new.view().element("one", 0).unwrap();
    assert_eq!(one.scalar("y"), Some(Scalar::Bool(true)));
    assert_eq!(one.scalar("z"), Some(Scalar::Int(4)));
    assert!(new.view().element("one", 1).is_none());
}

#[test]
fn states_are_compared_by_name_and_depth() {
    let set = set();
    let wardrobe = set.newest("fhWardrobe").unwrap();
    let old = ObjectState::of(&blob(
        &set,
        "fhWardrobe",
        1,
        json!({
            "worn": {"length": 2, "elements": [{"variables": {"tint": changed(json!([1, 2, 3]))}}]},
            "mood": changed(json!(1)),
        }),
    ));
    let mut new = old.clone();
    let update = blob(
        &set,
        "fhWardrobe",
        1,
        json!({
            "worn": {"hint": "torn", "length": 1, "elements": [
                {"variables": {"tint": {"flags": ["SameAsDefault"]}}}]},
            "list": changed(json!([4])),
        }),
    );
    new.apply(&update, MergePolicy::CLIENT, &at(1)).unwrap();
    insta::assert_snapshot!(diff(&old, &new), @r#"
    ~ worn length: 2 became 1
    + worn hint = "torn"
    ~ worn[0].tint: [1,2,3] became [1,1,1]
    + list = [4]
    "#);
    insta::assert_snapshot!(diff(&new, &ObjectState::new(wardrobe)), @r#"
    - worn length = 1
    - worn hint = "torn"
    - worn[0].tint = [1,1,1]
    - list = [4]
    - mood = 1
    "#);
    let mut json = String::new();
    old.diff(&new)[0].write_json(&mut json);
    assert_eq!(json, r#"{"path":"worn","part":"length","before":2,"after":1}"#);
    assert_eq!(new.diff(&new), []);
}

#[test]
fn servers_can_set_variables() {
    let mut state = ObjectState::new(set().newest("fhlever").unwrap());
    state.set("Place", &[Scalar::Int(4)], &at(3)).unwrap();
    state.set("notches", &[1, 2, 3].map(Scalar::Short), &at(4)).unwrap();
    assert_eq!(state.view().scalars("notches").unwrap().len(), 3);
    assert_eq!(state.view().time("notches"), Some(at(4)));
    let error = |state: &mut ObjectState, name: &str, value: &[Scalar<'_>]| {
        state.set(name, value, &at(5)).unwrap_err().to_string()
    };
    assert_eq!(
        error(&mut state, "plaze", &[]),
        "wanted a simple variable of fhLever, found \"plaze\""
    );
    assert_eq!(
        error(&mut state, "place", &[Scalar::Byte(1)]),
        "place[0]: wanted an element of type INT, found Byte(1)"
    );
    assert_eq!(error(&mut state, "place", &[]), "place: wanted 1 element, found 0");
    let long = [Scalar::Text(&[b'x'; 33])];
    assert!(error(&mut state, "label", &long).contains("bytes of this string"));
}

fn object(sequence: u32, name: &str, clone: Option<u16>) -> Uoid<'static> {
    Uoid {
        location: Location {
            sequence_number: SequenceNumber(sequence),
            flags: LocationFlags::default(),
        },
        load_mask: None,
        class_index: 1,
        object_id: 5,
        name: SafeString::from(name),
        clone: clone.map(|id| CloneIds { id, filler: 0, player_id: 10_190 }),
    }
}

#[test]
fn objects_are_identified_by_page_class_name_and_clone() {
    let plain = object(0x21, "Lever", None);
    let mut same = plain.clone();
    same.object_id = 99;
    same.load_mask = Some(LoadMask(3));
    same.location.flags = LocationFlags::Itinerant;
    assert_eq!(ObjectKey::of(&plain), ObjectKey::of(&same));
    same.location.flags = LocationFlags::BuiltIn;
    for other in [
        same,
        object(0x22, "Lever", None),
        object(0x21, "Lever", Some(1)),
        object(0x21, "lever", None),
    ] {
        assert_ne!(ObjectKey::of(&plain), ObjectKey::of(&other));
    }
}

#[test]
fn a_database_keeps_one_state_for_each_object_and_descriptor() {
    let set = set();
    let mut db = StateDb::with_limit(3);
    let lever = blob(&set, "fhLever", 1, json!({"place": changed(json!(1))}));
    let body = blob(&set, "fhBody", 1, json!({}));
    let kept = UpdateOrigin { persist: true, avatar: false, player_id: 10_190 };
    let (one, two) = (object(0x21, "Lever", None), object(0x21, "Lever", Some(2)));
    let mut apply = |object: &Uoid<'_>, blob: &Blob<'_>, sent| {
        db.apply(object, blob, sent, MergePolicy::OURS, &at(1)).map(|stored| stored.is_durable())
    };
    assert_eq!(apply(&one, &lever, kept), Ok(true));
    assert_eq!(apply(&one, &body, UpdateOrigin { avatar: true, ..kept }), Ok(false));
    // States of clones do not outlive the server.
    assert_eq!(apply(&two, &lever, kept), Ok(false));
    assert_eq!(apply(&one, &lever, UpdateOrigin { persist: false, ..kept }), Ok(false));
    let volatile = json!({
        "flags": ["AddedVarLengthIO"], "descriptor": "FHLEVER", "version": 1,
        "recordFlags": ["Volatile"], "variables": {},
    });
    let volatile = Blob::from_json(&set, &volatile).unwrap();
    assert_eq!(apply(&one, &volatile, kept), Ok(false));
    let three = object(0x22, "Lever", None);
    assert_eq!(apply(&three, &lever, kept), Err(UpdateError::Full { limit: 3 }));
    assert_eq!((db.len(), db.of(&one).len()), (3, 2));
    assert_eq!(db.get(&one, "fhlever").unwrap().state.scalar("place"), Some(Scalar::Int(1)));
    let restored =
        StoredState { object: one.clone(), state: ObjectState::of(&lever), origin: kept };
    assert_eq!(db.insert(restored).unwrap().map(|old| old.state.is_volatile()), Some(true));
    assert_eq!(db.iter().filter(|stored| stored.is_durable()).count(), 1);
    db.retain(|stored| !stored.origin.avatar);
    assert_eq!(db.len(), 2);
    assert_eq!((db.remove(&two).len(), db.len()), (1, 1));
    assert_eq!(db.iter().count(), 1);
}

#[test]
fn the_state_of_an_age_is_merged_by_time() {
    let set = set();
    let stamped = |value: Json, seconds: u32| json!({"flags": ["HasTimeStamp"], "time": {"seconds": seconds, "microseconds": 0}, "value": value});
    let instance = ObjectState::of(&blob(
        &set,
        "Fernhollow",
        3,
        json!({
            "fhGateOpen": stamped(json!(false), 10), "fhLampCount": stamped(json!(5), 10),
            "fhMotto": {"flags": [], "value": "mine"}, "fhSky": stamped(json!([1, 1, 1]), 10),
        }),
    ));
    // These settings follow an older version of the descriptor.
    let shard = ObjectState::of(&blob(
        &set,
        "Fernhollow",
        2,
        json!({
            "fhGateOpen": stamped(json!(true), 11), "fhLampCount": stamped(json!(6), 10),
            "fhTide": {"flags": [], "value": [1.5, 2.5]},
        }),
    ));
    let merged = hook::merged(&instance, &shard);
    insta::assert_snapshot!(diff(&instance, &merged), @r"
    ~ fhGateOpen: false became true
    ~ fhGateOpen time: 10.000000 became 11.000000
    + fhTide = [1.5,2.5,0.5]
    ");
    let nothing = ObjectState::new(set.get("Fernhollow", 3).unwrap());
    assert_eq!(hook::merged(&instance, &nothing), instance);
}

#[test]
fn the_age_hook_is_distinguished_from_objects_of_the_same_name() {
    let hook = hook::object(120).unwrap();
    assert_eq!(hook.location.sequence_number, SequenceNumber(0x0079_001f));
    assert!(hook::is_hook(&hook, 120) && !hook::is_hook(&hook, 121));
    let mut other = hook.clone();
    other.location.flags = LocationFlags::BuiltIn | LocationFlags::Itinerant;
    other.object_id = 0;
    assert!(hook::is_hook(&other, 120));
    other.location.flags = LocationFlags::default();
    assert!(!hook::is_hook(&other, 120));
    assert!(!hook::is_hook(&object(0x0079_001f, "AgeSDLHook", None), 120));
    let mut clone = hook.clone();
    clone.clone = Some(CloneIds { id: 1, filler: 0, player_id: 7 });
    assert!(!hook::is_hook(&clone, 120));
    assert_eq!(hook::object(70_000), None);
}
