//! Questions for the program under test, from the vectors.

use worldwire_core::Side;
use worldwire_core::json::Json;
use worldwire_core::value::parse_hex;

/// A question about one vector.
#[derive(Debug, PartialEq)]
pub(super) struct Question<'v> {
    /// The format of the bytes: the name of a codec.
    pub(super) format: String,
    pub(super) from: Option<Side>,
    /// The bytes, as hexadecimal digits.
    pub(super) hex: &'v str,
    pub(super) wanted: Wanted<'v>,
}

/// The correct answer.
#[derive(Debug, PartialEq)]
pub(super) enum Wanted<'v> {
    /// The bytes cannot be decoded.
    Error,
    /// A message with this name and these fields, if they are known.
    Message {
        name: Option<&'v str>,
        fields: Option<&'v Json>,
        /// Whether encoding the message again yields the same bytes.
        encodes: bool,
        /// Whether an error is also correct: a strict decoder refuses the bytes, while a lenient
        /// one keeps them.
        may_fail: bool,
    },
}

/// Vector files whose cases have the same format: the folder and the file, the list, and the format.
/// Cases in a list `invalid`, and those marked with `reject`, must be refused.
const FORMATS: &[(&str, &str, &str)] = &[
    ("ki/bcd", "cases", "ki.bcd"),
    ("ki/bcd", "invalid", "ki.bcd"),
    ("ki/frames", "frames", "ki.frame"),
    ("ki/nav", "cases", "ki.nav"),
    ("ki/nav", "invalid", "ki.nav"),
    ("ki/poi", "cases", "ki.poi"),
    ("ki/poi", "invalid", "ki.poi"),
    ("uru-game/netmsg", "vectors", "uru.net-message"),
    ("uru-game/plmessage", "vectors", "uru.plasma-message"),
    ("uru/connect_packets", "cases", "uru.connect"),
    ("uru/vault_nodes", "cases", "uru.vault-node"),
];

/// The question for a case of a list in a file such as `uru/messages`; `None` if the vector needs
/// more than a decoder and an encoder.
pub(super) fn question<'v>(file: &str, list: &str, case: &'v Json) -> Option<Question<'v>> {
    let text = |key: &str| case.get(key).and_then(Json::as_str);
    let hex = text("hex").filter(|hex| parse_hex(hex).is_some())?;
    let from = match text("direction") {
        Some("c2s" | "client" | "client->server") => Some(Side::Client),
        Some("s2c" | "server" | "server->client") => Some(Side::Server),
        _ => None,
    };
    let encodes = case.get("reencodes") != Some(&Json::Bool(false))
        && text("reencode").is_none_or(|how| how == "exact");
    let wanted = match (file, list) {
        ("uru/messages", "cases") => {
            let format = format!("uru.{}", text("connection")?);
            let (name, fields) = (text("name"), case.get("fields"));
            let wanted = Wanted::Message { name, fields, encodes, may_fail: false };
            return Some(Question { format, from, hex, wanted });
        }
        (_, "invalid") if text("must").is_some_and(|must| must.starts_with("strict error")) => {
            Wanted::Message { name: None, fields: None, encodes, may_fail: true }
        }
        (_, "invalid") => Wanted::Error,
        _ if case.get("reject") == Some(&Json::Bool(true)) => Wanted::Error,
        ("uru/vault_nodes", _) => {
            let fields = case.get("fields");
            Wanted::Message { name: None, fields, encodes, may_fail: false }
        }
        _ => Wanted::Message { name: None, fields: None, encodes, may_fail: false },
    };
    let (.., format) = FORMATS.iter().find(|(of, its, _)| *of == file && *its == list)?;
    Some(Question { format: (*format).to_owned(), from, hex, wanted })
}

/// Checks fields against those of a vector. The vector may omit some. Bytes can be given as
/// hexadecimal text, booleans as 0 and 1, and numbers as text. Text and bytes can be inside an
/// object with further details. Names of enumeration values and flags are accepted in place of
/// numbers, because encoding will check them.
///
/// # Errors
/// The path of the first field that differs, and how.
pub(super) fn agrees(found: &Json, wanted: &Json, path: &str) -> Result<(), String> {
    let differs = || Err(format!("{path}: wanted {wanted}, found {found}"));
    match (wanted, found) {
        (Json::Object(fields), Json::Object(found)) => {
            for (name, wanted) in fields {
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                match found.get(name) {
                    Some(found) => agrees(found, wanted, &path)?,
                    None => return Err(format!("{path}: missing")),
                }
            }
            Ok(())
        }
        (Json::Array(items), Json::Array(found)) if items.len() == found.len() => {
            for (index, (wanted, found)) in items.iter().zip(found).enumerate() {
                agrees(found, wanted, &format!("{path}[{index}]"))?;
            }
            Ok(())
        }
        (Json::String(text), Json::Object(object)) => {
            if let Some(inner) = object.get("text").or_else(|| object.get("bytes")) {
                return agrees(inner, wanted, path);
            }
            match object.get("$hex").and_then(Json::as_str) {
                Some(digits) if parse_hex(digits) == parse_hex(text) => Ok(()),
                _ => differs(),
            }
        }
        (Json::Number(number), Json::Bool(found)) => {
            if number.as_u64() == Some(u64::from(*found)) {
                Ok(())
            } else {
                differs()
            }
        }
        (Json::Number(number), Json::String(found)) => {
            let is_name = found.parse::<f64>().is_err();
            if is_name || number.to_string() == **found { Ok(()) } else { differs() }
        }
        (Json::Number(_), Json::Array(names)) if names.iter().all(Json::is_string) => Ok(()),
        (Json::Number(one), Json::Number(other)) if one.as_f64() == other.as_f64() => Ok(()),
        (Json::String(one), Json::String(other)) if one.eq_ignore_ascii_case(other) => Ok(()),
        (one, other) if one == other => Ok(()),
        _ => differs(),
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::json::json;

    use super::*;

    #[test]
    fn a_vector_becomes_a_question() {
        let case = json!({ "connection": "auth", "direction": "s2c", "name": "PingReply",
                           "hex": "00", "fields": { "a": 1 }, "reencodes": false });
        let question = question("uru/messages", "cases", &case).expect("it has bytes");
        assert_eq!((&*question.format, question.from), ("uru.auth", Some(Side::Server)));
        let fields = case.get("fields");
        let name = Some("PingReply");
        let wanted = Wanted::Message { name, fields, encodes: false, may_fail: false };
        assert_eq!(question.wanted, wanted);
        let case = json!({ "name": "cut", "hex": "0d" });
        let wanted = super::question("ki/bcd", "invalid", &case).map(|it| it.wanted);
        assert_eq!(wanted, Some(Wanted::Error));
        let lenient = json!({ "hex": "0d", "must": "strict error, lenient keeps the bytes" });
        let wanted = super::question("ki/bcd", "invalid", &lenient).map(|it| it.wanted);
        assert!(matches!(wanted, Some(Wanted::Message { may_fail: true, encodes: true, .. })));
        let rejected = json!({ "hex": "63", "reject": true });
        let wanted = super::question("uru/connect_packets", "cases", &rejected);
        assert_eq!(wanted.map(|it| it.wanted), Some(Wanted::Error));
        assert_eq!(super::question("ki/crc", "cases", &case), None);
        assert_eq!(super::question("ki/frames", "frames", &json!({ "hex": "x" })), None);
    }

    #[test]
    fn fields_agree_in_other_spellings() {
        let wanted = json!({ "a": 1, "b": "00ff", "c": [1.5, "X"], "d": { "e": null } });
        let found = json!({ "a": true, "b": { "$hex": "00FF" }, "c": [1.5, "x"],
                            "d": { "e": null, "f": 2 }, "g": 3 });
        assert_eq!(agrees(&found, &wanted, ""), Ok(()));
        let more = json!({ "a": 1, "b": { "bytes": { "$hex": "00ff" }, "message": {} },
                           "c": [1.5, { "text": "X", "deadMemory": {} }], "d": { "e": null } });
        assert_eq!(agrees(&more, &wanted, ""), Ok(()));
        let named = json!({ "result": "Success", "flags": ["Admin"] });
        assert_eq!(agrees(&named, &json!({ "result": 0, "flags": 1 }), ""), Ok(()));
        assert!(agrees(&json!({ "a": "2" }), &json!({ "a": 1 }), "").is_err());
        let other = json!({ "a": true, "b": { "$hex": "00FE" } });
        let why = agrees(&other, &wanted, "").expect_err("they differ");
        assert!(why.starts_with("b: wanted \"00ff\""), "{why}");
        assert_eq!(agrees(&json!({}), &json!({ "a": 1 }), ""), Err("a: missing".to_owned()));
    }
}
