//! Checks the lines of hooks against their schema.

use worldwire_core::json::{Json, parse};
use worldwire_core::testing::schema::valid;

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
        // Long lines are continued on indented lines.
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
    assert!(example.ends_with(shown), "docs/hooks.md shows a different example");
}
