//! Checks definitions, maps and messages against conformance vectors.

#![allow(dead_code, unused_imports, reason = "each test uses only a part")]

mod checked;
mod codec;
mod damage;
mod text;

pub(crate) use codec::{Message, codec, convert, malformed};
pub(crate) use text::{deprecated, file_name, map, syntax, system_message};

use worldwire_core::json::Json;

/// The outcome of a case; an error says what is wrong.
pub(crate) type Outcome = Result<(), String>;

pub(crate) fn check(good: bool, what: impl Into<String>) -> Outcome {
    if good { Ok(()) } else { Err(what.into()) }
}

pub(crate) fn text<'j>(case: &'j Json, key: &str) -> Result<&'j str, String> {
    case.get(key).and_then(Json::as_str).ok_or_else(|| format!("no {key}"))
}

pub(crate) fn number(case: &Json, key: &str) -> Result<u64, String> {
    case.get(key).and_then(Json::as_u64).ok_or_else(|| format!("no {key}"))
}

/// The expected result of a case, which may be just an error.
pub(crate) fn expect(case: &Json) -> Result<&Json, String> {
    case.get("expect").ok_or_else(|| "no expect".to_owned())
}

pub(crate) fn error_of(expect: &Json) -> Option<&str> {
    expect.get("error").and_then(Json::as_str)
}

pub(crate) fn hex_of(case: &Json, key: &str) -> Result<Vec<u8>, String> {
    worldwire_core::testing::hex(case, key)
}
