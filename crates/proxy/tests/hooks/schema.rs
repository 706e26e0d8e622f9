//! The schema of the lines, and as much of a validator as it needs.

use worldwire_core::json::{Json, json, parse};

/// The schema.
fn schema() -> Json {
    parse(include_str!("../../../../docs/hooks.schema.json")).unwrap()
}

/// Checks a line against one of the schema's definitions.
pub(crate) fn check(definition: &str, line: &str) {
    let schema = schema();
    let json = parse(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    if let Err(why) = valid(&schema, &schema["$defs"][definition], &json) {
        panic!("{definition}: {why}: {line}");
    }
}

/// Whether a value matches. Knows only the keywords that the schema uses.
fn valid(root: &Json, schema: &Json, value: &Json) -> Result<(), String> {
    let fail = |key: &str| Err(format!("{key} fails for {value}"));
    let object = schema.as_object().expect("a schema is an object");
    for (key, of) in object {
        match key {
            "$ref" => {
                let name = of.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                assert!(root["$defs"].get(name).is_some(), "{name} is not defined");
                valid(root, &root["$defs"][name], value)?;
            }
            "anyOf" => {
                let outcomes: Vec<_> =
                    of.as_array().unwrap().iter().map(|one| valid(root, one, value)).collect();
                if outcomes.iter().all(Result::is_err) {
                    return Err(format!("anyOf: {outcomes:?}"));
                }
            }
            "const" if value != of => return fail(key),
            "enum" if !of.as_array().unwrap().contains(value) => return fail(key),
            "type" => {
                let one = [of.clone()];
                let types = of.as_array().unwrap_or(&one);
                if !types.iter().any(|it| has_type(it.as_str().unwrap(), value)) {
                    return fail(key);
                }
            }
            "properties" => {
                for (name, of) in of.as_object().unwrap() {
                    if let Some(value) = value.as_object().and_then(|it| it.get(name)) {
                        valid(root, of, value).map_err(|why| format!("{name}: {why}"))?;
                    }
                }
            }
            "required" => {
                let names = of.as_array().unwrap().iter();
                if let Some(name) =
                    names.filter_map(Json::as_str).find(|it| value.get(*it).is_none())
                {
                    return Err(format!("{name} is missing"));
                }
            }
            "additionalProperties" => {
                assert_eq!(of, &json!(false));
                let known = object["properties"].as_object().unwrap();
                let mut names = value.as_object().unwrap().keys();
                if let Some(name) = names.find(|name| !known.contains_key(name)) {
                    return Err(format!("{name} is unknown"));
                }
            }
            "items" => {
                for item in value.as_array().unwrap_or_default() {
                    valid(root, of, item)?;
                }
            }
            "minItems" | "maxItems" | "minLength" | "maxLength" => {
                let bound = usize::try_from(of.as_u64().unwrap()).unwrap();
                let length = value
                    .as_array()
                    .map(<[_]>::len)
                    .or_else(|| value.as_str().map(|text| text.chars().count()));
                let fits =
                    |length| if key.starts_with("min") { length >= bound } else { length <= bound };
                if !length.is_none_or(fits) {
                    return fail(key);
                }
            }
            "minimum" if value.as_f64() < of.as_f64() => return fail(key),
            "pattern" => {
                let text = value.as_str().unwrap_or_default();
                let fits = match of.as_str().unwrap() {
                    "^[0-9]+\\.[0-9]+$" => {
                        let digits = |part: &str| {
                            !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit())
                        };
                        text.split_once('.').is_some_and(|(one, two)| digits(one) && digits(two))
                    }
                    "^([0-9A-Fa-f]{2})*$" => {
                        text.len().is_multiple_of(2)
                            && text.bytes().all(|it| it.is_ascii_hexdigit())
                    }
                    other => panic!("unknown pattern {other}"),
                };
                if !fits {
                    return fail(key);
                }
            }
            "const" | "enum" | "minimum" | "default" | "description" => {}
            other => panic!("unknown keyword {other}"),
        }
    }
    Ok(())
}

fn has_type(name: &str, value: &Json) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.as_array().is_some(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_u64().is_some() || value.as_i64().is_some(),
        "boolean" => value.as_bool().is_some(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    }
}

#[test]
fn the_schema_tells_right_from_wrong() {
    check("from_hook", r#"{"type":"hello","version":1}"#);
    check("from_hook", r#"{"type":"answer","id":"1.2","do":"replace","bytes":"00"}"#);
    let schema = schema();
    for wrong in [
        r#"{"type":"hello","version":2}"#,
        r#"{"type":"hello","version":1,"subscription":[]}"#,
        r#"{"type":"answer","id":"1","do":"pass"}"#,
        r#"{"type":"answer","id":"1.2","do":"pass","fields":{}}"#,
        r#"{"type":"answer","id":"1.2","do":"replace","bytes":"0"}"#,
        r#"{"type":"add","conversation":-1,"messages":[]}"#,
        r#"{"type":"add","conversation":1,"messages":[{"to":"client","fields":{}}]}"#,
        r#"{"type":"subscribe","subscriptions":[{"id":""}]}"#,
    ] {
        let json = parse(wrong).unwrap();
        assert!(valid(&schema, &schema["$defs"]["from_hook"], &json).is_err(), "{wrong}");
    }
}

#[test]
fn the_guide_shows_valid_lines() {
    let guide = include_str!("../../../../docs/hooks.md");
    let blocks = guide.split("```json\n").skip(1);
    let mut count = 0;
    for block in blocks {
        let (block, _) = block.split_once("```").unwrap();
        // A line that is too long for the page is continued with blanks.
        let mut lines: Vec<String> = Vec::new();
        for line in block.lines() {
            match lines.last_mut() {
                Some(last) if line.starts_with(' ') => last.push_str(line),
                _ => lines.push(line.to_owned()),
            }
        }
        for line in lines {
            let json = parse(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let kind = json["type"].as_str().unwrap();
            let to_hook =
                ["welcome", "opened", "closed", "message", "definitions", "synced", "error"]
                    .contains(&kind);
            check(if to_hook { "to_hook" } else { "from_hook" }, &line);
            count += 1;
        }
    }
    assert!(count >= 14, "{count}");
    for name in ["hook.py", "hook.mjs"] {
        assert!(guide.contains(name));
    }
    // The guide shows a part of the example.
    let example = include_str!("../../../../docs/examples/hook.py");
    let (_, shown) = guide.split_once("```python\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    assert!(example.ends_with(shown), "docs/hooks.md shows another example");
}
