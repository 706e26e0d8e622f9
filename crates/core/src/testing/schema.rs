//! A JSON schema validator that supports only what the schemas in `docs` use.

#![allow(clippy::unwrap_used, reason = "a schema with mistakes fails its test")]

use crate::json::Json;

/// Checks that a value matches `schema`, a part of the schema `root`. Knows only the keywords that
/// this project's schemas use and panics on others.
///
/// # Errors
/// Why the value does not match.
///
/// # Panics
/// If the schema is not one of this project's.
pub fn valid(root: &Json, schema: &Json, value: &Json) -> Result<(), String> {
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
                let known = object.get("properties").and_then(Json::as_object);
                for (name, value) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.contains_key(name)) {
                        continue;
                    }
                    if of.as_bool() == Some(false) {
                        return Err(format!("{name} is unknown"));
                    }
                    valid(root, of, value).map_err(|why| format!("{name}: {why}"))?;
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
            "maximum" if value.as_f64() > of.as_f64() => return fail(key),
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
            "const" | "enum" | "minimum" | "maximum" | "default" | "description" | "title"
            | "$schema" | "$defs" => {}
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
