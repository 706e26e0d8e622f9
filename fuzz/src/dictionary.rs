//! Dictionaries: words of text formats that a fuzzer would not guess.
//!
//! A dictionary contains the words of the target's seeds, and words that seeds may lack: punctuation,
//! keywords, and edge cases.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A format: the targets that read it, and its words.
type Format = (&'static [&'static str], &'static [&'static str]);

/// The text formats.
const FORMATS: &[Format] = &[
    (
        &[
            "uru_json",
            "uru_json_format",
            "uru_sdl_json",
            "ki_dml_json",
            "ki_object_json",
            "ki_object_types",
            "mxo_table_json",
            "proxy_hook",
        ],
        JSON,
    ),
    (&["ki_dml_xml", "ki_dml_table_text", "ki_object_xml"], XML),
    (&["ki_dml_xml", "ki_dml_table_text"], DML),
    (&["ki_object_json", "ki_object_types"], CLASSES),
    (&["dissect_filter", "proxy_rules"], FILTER),
    (&["proxy_rules"], RULES),
    (&["tera_def"], DEF),
    (&["uru_sdl_text", "uru_sdl_descriptors_and_blob"], SDL),
    (&["tera_map", "uru_manifest_text"], &["#", " = ", "\t", "\r\n", "65536", "4294967296", ","]),
    (&["tera_sysmsg"], &["@", "\u{b}", ":", "@0", "SMT_", "{", "}", "4294967296"]),
    (&["mxo_table"], TABLE),
    (
        &["mxo_table_classes", "mxo_table_names", "mxo_table_map", "mxo_table_dump"],
        &[",", "\r\n", "65535", "65536", "#VALUES FOR GOID: ", "#USING ", "Binary-Present: YES"],
    ),
    (
        &["mxo_table_declarations"],
        &["public ", "AttributeClass364", " Object420", " = new ", "();\n", "65535", "65536", "//"],
    ),
    (&["uru_age_file"], AGE),
    (&["ki_key_file", "mxo_keys", "uru_key_file"], KEYS),
    (
        &["mxo_private_key"],
        &[
            "-----BEGIN PRIVATE KEY-----\n",
            "-----END PRIVATE KEY-----\n",
            "-----BEGIN RSA PRIVATE KEY-----\n",
            "<RSAKeyValue>",
            "</RSAKeyValue>",
            "<Modulus>",
            "</Modulus>",
            "<Exponent>EQ==</Exponent>",
            "<D>",
            "</D>",
            "MII",
            "AQ",
        ],
    ),
    (
        &["ki_client_args"],
        &["-L", "-U", "-P", "-V", "-A", "-CS", "-ST", "-SR", "-HS", "-HD", "-PT", "-UN", "..", "="],
    ),
];

const SDL: &[&str] = &[
    "STATEDESC a\n{\nVERSION 1\n",
    "\n}\n",
    "VAR BOOL b[1]",
    "VAR $a b[]",
    "VAR CREATABLE c[2]",
    "VAR AGETIMEOFDAY d[]",
    "[9998]",
    "[9999]",
    " DEFAULT=",
    " DEFAULTOPTION=VAULT",
    " DISPLAYOPTION=hidden",
    "(1,2,3)",
    "nil",
    "empty",
    "\"\"",
    ";",
    "#",
];

const AGE: &[&str] = &[
    "StartDateTime=0000000000",
    "DayLength=24.0",
    "MaxCapacity=20",
    "LingerTime=180",
    "SequencePrefix=-1",
    "ReleaseVersion=0",
    "Page=a,0,1",
    "=",
    ",",
    "\r\n",
];

const TABLE: &[&str] = &[
    "worldwire-mxo-objects 1\n",
    "\nclass a b\n",
    "  create:\n",
    "    LTVector3d",
    "    raw4",
    "    raw255",
    "65535",
    "65536",
    "#",
];

const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "null",
    "true",
    "false",
    "-0",
    "-1",
    "0.5",
    "1e999",
    "1E-9",
    "18446744073709551615",
    "9223372036854775808",
    "\\u0000",
    "\\ud800",
    "\\u00e9",
    "\\\\",
    "\\n",
    "\"$hex\":",
    "\"$bits\":",
    "\"$class\":",
    "\"$type\":",
    "\"$rest\":",
    "\"$trailing\":",
    "\"$unknown\":",
    "\"$original\":",
    "\"#1\"",
];

const XML: &[&str] = &[
    "<?xml version=\"1.0\"?>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<!DOCTYPE",
    "</",
    "/>",
    "=\"",
    "&amp;",
    "&lt;",
    "&quot;",
    "&apos;",
    "&#0;",
    "&#65;",
    "&#x41;",
    "&#xD800;",
    "&",
    "\u{feff}",
];

const DML: &[&str] = &[
    "<RECORD>",
    "</RECORD>",
    "<_ProtocolInfo>",
    "<_MsgName",
    "<_MsgType",
    "<_MsgOrder",
    "<_MsgHandler",
    "<_MsgDescription",
    "<_MsgAccessLvl",
    "<ServiceID",
    "<ProtocolType",
    " TYPE=\"",
    " NOXFER=\"TRUE\"",
    "BYT",
    "UBYT",
    "SHRT",
    "USHRT",
    "INT",
    "UINT",
    "FLT",
    "DBL",
    "GID",
    "STR",
    "WSTR",
    "BOOL",
    "UBYTE",
    "USHORT",
    "hex:",
    "NaN",
    "inf",
    "-128",
    "255",
    "65536",
    "4294967296",
];

const CLASSES: &[&str] = &[
    "\"version\":2",
    "\"classes\":",
    "\"properties\":",
    "\"bases\":",
    "\"singleton\":",
    "\"flags\":",
    "\"container\":",
    "\"dynamic\":",
    "\"enum_options\":",
    "\"__DEFAULT\"",
    "\"__BASECLASS\"",
    "Static",
    "List",
    "Vector",
    "class ",
    "enum ",
    "SharedPointer<class ",
    "std::string",
    "std::wstring",
    "unsigned __int64",
    "bui7",
    "bi2",
    "s24",
    "u24",
    "gid",
    "class Color",
    "class Point<float>",
    "|",
];

const FILTER: &[&str] = &[
    " and ",
    " or ",
    "not ",
    "&&",
    "||",
    "!",
    "(",
    ")",
    "==",
    "!=",
    "<=",
    ">=",
    "<",
    ">",
    "~",
    " eq ",
    " ne ",
    " lt ",
    " le ",
    " gt ",
    " ge ",
    " contains ",
    " startswith ",
    " endswith ",
    " matches ",
    " has ",
    " in ",
    " is ",
    "{1, 5..9}",
    "exists(",
    "fields.",
    "[*]",
    "[\"",
    "[0]",
    "hex\"",
    "98:53",
    "0x",
    "0b",
    "-1",
    "1e9",
    "nan",
    "null",
    "true",
    "\\x",
    "\\u{",
    "any contains ",
    "elapsed",
    "time",
    "stream",
    "packet",
    "family",
    "from",
    "length",
    "auth.*",
    "(?i)",
    "[[:alpha:]]",
    "a{99}",
];

const RULES: &[&str] = &[
    "when * {",
    "every 30s {",
    "on connect {",
    "let a = ",
    "set ",
    "drop",
    "pause",
    "delay 200ms",
    "log \"{",
    "{{",
    "}}",
    "count \"a\"",
    "inject back ",
    "inject client ",
    "inject server ",
    "\n",
    ";",
    "#",
    "[",
    "]",
    ",",
    " + ",
    " - ",
    " * ",
    "r\"",
    "1ms",
    "24h",
];

const DEF: &[&str] = &[
    "- ",
    "- - ",
    "- - - ",
    "array ",
    "array<",
    "object ",
    "object[2] ",
    "[interleaved] ",
    "ref ",
    "count ",
    "offset ",
    "string ",
    "bytes ",
    "bool ",
    "byte ",
    "int16 ",
    "uint16 ",
    "int32 ",
    "uint32 ",
    "int64 ",
    "uint64 ",
    "float ",
    "double ",
    "vec3 ",
    "vec3fa ",
    "angle ",
    "skillid ",
    "customize ",
    ">",
    "[65535]",
    "=5",
    " ^27-98.02",
    " ^-",
    "@include ",
    "# ",
    "//",
    "\r\n",
    "\t",
];

const KEYS: &[&str] = &[
    "[",
    "]",
    "[[",
    "]]",
    " = ",
    "\"",
    "'''",
    "\"\"\"",
    "\\u0000",
    "#",
    ";",
    "//",
    "/*",
    "*/",
    "0x",
    "@",
    "{",
    "}",
    ",",
    "[uru.auth]",
    "[uru.game]",
    "[uru.gatekeeper]",
    "Key.Auth.N",
    "Key.Auth.K",
    "server.Auth.N",
    "kAuthDhNData",
    "kAuthDhXData",
    "Server.Auth.N",
    "[[ki.stream]]",
    "[[ki.login]]",
    "session",
    "nonce",
    "user",
    "password",
    "base64:",
    "==",
];

/// The maximum number of words from seeds. With more, a fuzzer would try little else.
const MAX_WORDS: usize = 400;

/// A target's dictionary in libFuzzer's format, if it reads text.
pub(crate) fn text(name: &str, seeds: &[Vec<u8>]) -> Option<String> {
    let formats = FORMATS.iter().filter(|(targets, _)| targets.contains(&name));
    let mut words: BTreeSet<&str> = formats.flat_map(|(_, words)| *words).copied().collect();
    if words.is_empty() {
        return None;
    }
    let most = words.len() + MAX_WORDS;
    for seed in seeds {
        // The first byte may be an option rather than text.
        let tail = || core::str::from_utf8(seed.get(1..)?).ok();
        let text = core::str::from_utf8(seed).ok().or_else(tail).unwrap_or_default();
        for word in text.split(|c: char| !c.is_alphanumeric() && !"_.$".contains(c)) {
            let is_name = !word.starts_with(|c: char| c.is_ascii_digit());
            if is_name && (2..=32).contains(&word.len()) && words.len() < most {
                words.insert(word);
            }
        }
    }
    let mut text = String::new();
    for word in words {
        text.push('"');
        for byte in word.bytes() {
            match byte {
                b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
                b' '..=b'~' => text.push(char::from(byte)),
                _ => {
                    let _ = write!(text, "\\x{byte:02x}");
                }
            }
        }
        text.push_str("\"\n");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_name_targets_that_exist() {
        for name in FORMATS.iter().flat_map(|(targets, _)| *targets) {
            assert!(crate::find(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn text_formats_have_dictionaries() {
        for target in crate::targets() {
            let seeds = (target.seeds)();
            let is_text = |seed: &Vec<u8>| {
                seed.len() > 16
                    && core::str::from_utf8(seed).is_ok_and(|text| !text.contains(['\0', '\u{1}']))
            };
            if seeds.iter().all(is_text) {
                assert!(text(target.name, &seeds).is_some(), "{}: no dictionary", target.name);
            }
        }
    }

    #[test]
    fn dictionaries_contain_words_of_seeds_and_escaped_bytes() {
        let text = text("tera_sysmsg", &[b"@7\x0bitem\x0b\"a\"".to_vec()]).unwrap_or_default();
        assert!(text.lines().any(|line| line == "\"item\""), "{text}");
        assert!(text.lines().any(|line| line == r#""\x0b""#), "{text}");
        assert_eq!(super::text("uru_connect", &[]), None);
    }
}
