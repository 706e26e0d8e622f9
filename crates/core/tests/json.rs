//! `Json` agrees with `serde_json::Value`.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use proptest::prelude::*;
use serde_json::Value;
use worldwire_core::json::{Json, Object, json, parse};

/// An arbitrary document, with keys repeated within an object and across objects.
fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(Value::from(-0.0)),
        "\\PC{0,9}|[\\x00-\\x7f]{0,9}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 128, 40, |inner| {
        let key = prop_oneof!["[a-f]", "k[0-9]{2}", "\\PC{0,9}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..9).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..40)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Every query has the same result, at every level.
fn agree(json: &Json, value: &Value) {
    assert_eq!(json.as_str(), value.as_str());
    assert_eq!(json.as_u64(), value.as_u64());
    assert_eq!(json.as_i64(), value.as_i64());
    assert_eq!(json.as_f64().map(f64::to_bits), value.as_f64().map(f64::to_bits));
    assert_eq!(json.as_number(), value.as_number());
    assert_eq!(json.as_bool(), value.as_bool());
    assert_eq!(json.is_null(), value.is_null());
    assert_eq!(json.is_number(), value.is_number());
    assert_eq!(json.is_string(), value.is_string());
    assert_eq!(json.is_object(), value.is_object());
    assert_eq!(json.as_array().map(<[_]>::len), value.as_array().map(Vec::len));
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        agree(json.get(at).unwrap(), item);
        agree(&json[at], item);
    }
    assert!(json.get(100).is_none() && json[100].is_null());
    assert_eq!(json.as_object().map(Object::len), value.as_object().map(serde_json::Map::len));
    if let (Some(ours), Some(theirs)) = (json.as_object(), value.as_object()) {
        assert!(ours.keys().eq(theirs.keys()));
        assert_eq!(ours.is_empty(), theirs.is_empty());
        for (((key, value), (name, wanted)), at) in ours.iter().zip(theirs).zip(ours.values()) {
            assert_eq!(key, name);
            assert!(std::ptr::eq(value, at));
            agree(value, wanted);
            agree(json.get(name).unwrap(), wanted);
            agree(&json[name], wanted);
            assert!(ours.contains_key(name));
        }
    }
    assert!(json.get("no key").is_none() && json["no key"].is_null());
    assert_eq!(json.to_string(), value.to_string());
}

proptest! {
    #[test]
    fn a_document_is_the_same_in_both(value in documents()) {
        let json = Json::from(&value);
        agree(&json, &value);
        prop_assert_eq!(format!("{json:#}"), format!("{value:#}"));
        prop_assert_eq!(serde_json::to_value(&json).unwrap(), value.clone());
        prop_assert_eq!(&Json::from(value), &json);
        prop_assert_eq!(&json.clone(), &json);
    }

    #[test]
    fn reading_gives_the_same_in_both(value in documents(), pretty in any::<bool>()) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        let json = parse(&text).unwrap();
        agree(&json, &serde_json::from_str(&text).unwrap());
        prop_assert_eq!(&serde_json::from_str::<Json>(&text).unwrap(), &json);
        prop_assert_eq!(json.to_string(), value.to_string());
        // The same object, with its keys in a different order.
        if let Json::Object(object) = &json {
            let members: Vec<_> = object.iter().map(|(key, value)| {
                format!("{}:{value}", Json::from(key))
            }).collect();
            let turned = members.iter().rev().cloned().collect::<Vec<_>>().join(",");
            prop_assert_eq!(&parse(&format!("{{{turned}}}")).unwrap(), &json);
            // A repeated key is refused, wherever it is.
            for member in members.iter().step_by(7) {
                let twice = format!("{{{turned},{member}}}");
                let error = parse(&twice).unwrap_err().to_string();
                prop_assert!(error.contains("occurs twice"), "{}", error);
                prop_assert_eq!(&serde_json::from_str::<Json>(&twice).unwrap(), &json);
            }
        }
    }

    #[test]
    fn changes_are_the_same_in_both(
        mut value in documents(),
        changes in prop::collection::vec(("[a-f]|k[0-9]{2}", any::<Option<u8>>()), 0..40),
    ) {
        if !value.is_object() {
            value = Value::Null;
        }
        let mut json = Json::from(&value);
        for (key, change) in changes {
            match change {
                Some(new) if new % 2 == 0 => {
                    value[&key] = new.into();
                    json[&key] = new.into();
                }
                Some(new) => {
                    let (Some(ours), Some(theirs)) = (json.as_object_mut(), value.as_object_mut())
                    else { continue };
                    let old = theirs.insert(key.clone(), new.into());
                    prop_assert_eq!(ours.insert(&key, new.into()), old.map(Json::from));
                }
                None => {
                    let theirs = value.as_object_mut().and_then(|object| object.remove(&key));
                    let ours = json.as_object_mut().and_then(|object| object.remove(&key));
                    prop_assert_eq!(ours, theirs.map(Json::from));
                }
            }
            agree(&json, &value);
        }
    }

    #[test]
    fn any_text_is_read_or_refused_alike(text in "[\\[\\]{}:,\"\\\\a1e.+ -]{0,20}|\\PC{0,20}") {
        let ours = serde_json::from_str::<Json>(&text).map_err(|error| error.to_string());
        let theirs = serde_json::from_str::<Value>(&text).map_err(|error| error.to_string());
        prop_assert_eq!(ours, theirs.map(Json::from));
    }
}

#[test]
fn values_are_small() {
    assert_eq!(size_of::<Json>(), 24);
    assert_eq!(size_of::<Object>(), 16);
}

#[test]
fn what_is_written_down_compares_with_what_it_means() {
    let mut json = json!({"a": [1, -2, 1.5, true, "x", null], "b": {}});
    assert!(json["a"][0] == 1 && json["a"][1] == -2 && json["a"][2] == 1.5);
    assert!(json["a"][3] == true && json["a"][4] == "x" && json["a"][5].is_null());
    assert!("x" == json["a"][4] && 1_u64 == json["a"][0] && json["a"][0] != "1");
    assert_eq!(json["a"][4].take(), "x");
    assert_eq!(json["a"].to_string(), "[1,-2,1.5,true,null,null]");
    *json.get_mut("b").unwrap() = vec![1_u8, 2].into();
    for (key, value) in json.as_object_mut().unwrap().iter_mut() {
        if key == "a" {
            *value = "new".into();
        }
    }
    json.as_object_mut().unwrap().values_mut().for_each(|value| *value = value.to_string().into());
    assert_eq!(json, json!({"a": "\"new\"", "b": "[1,2]"}));
    assert_eq!(Json::from(f64::NAN), Json::Null);
    let twice: Json = [("a", 1), ("b", 2), ("a", 3)].into_iter().collect();
    assert_eq!(twice, json!({"a": 3, "b": 2}));
    let none = Object::new();
    assert!(none["a"].is_null() && none.get("a").is_none());
}

/// Finding a key, and detecting a repeated one, is fast regardless of the number of keys.
#[test]
fn many_keys_cost_no_more_each() {
    let count = 100_000;
    let members: Vec<_> = (0..count).map(|at| format!("\"{at}\":{at}")).collect();
    let text = format!("{{{}}}", members.join(","));
    let json = parse(&text).unwrap();
    assert!((0..count).all(|at| json[at.to_string()] == at));
    let twice = format!("{{{},\"7\":0}}", members.join(","));
    let error = parse(&twice).unwrap_err().to_string();
    assert!(error.starts_with("the key \"7\" occurs twice at line 1 column "), "{error}");
}
