//! Fields that a filter asks for and no message has: most likely their names are misspelt.

use std::collections::BTreeSet;

use worldwire_core::{MessageInfo, Record, nearest};
use worldwire_tera::schema::Definition;
use worldwire_tera::schema::plan::{Field, FieldKind, Plan};
use worldwire_uru::file::manifest::{FileListEntry, ManifestEntry};
use worldwire_uru::message::{NetAgeInfo, NodeRef, Rank, Score};
use worldwire_uru::types::{Location, UnifiedTime};

use super::expression::{Expression, Path, Pattern, Start, Step};
use crate::{Codec, Definitions, Family};

/// A field that no message has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The name that is not known.
    pub name: String,
    /// The nearest one that is.
    pub nearest: Option<String>,
    /// Whether all names that could stand there are known. Otherwise a message may have it all the
    /// same.
    pub is_certain: bool,
}

/// Names at the top of trees and in them that no definition tells: what families show beside the
/// fields, and what is known about every message.
const COMMON: &[&str] = &[
    "body",
    "bytes",
    "checksum",
    "counter",
    "family",
    "fields",
    "from",
    "hello",
    "isBoundByFrame",
    "key",
    "length",
    "message",
    "name",
    "number",
    "opcode",
    "order",
    "packet",
    "payload",
    "service",
    "stream",
    "time",
    "version",
];
/// The fields of connect and setup packets.
const SETUP: &[&str] = &[
    "connType",
    "headerBytes",
    "buildId",
    "buildType",
    "branchId",
    "productId",
    "dataBytes",
    "token",
    "accountId",
    "ageInstanceId",
    "realBuildId",
    "serverType",
    "channel",
    "type",
    "byteCount",
    "y",
    "seed",
    "error",
];
/// The fields of Uru's vault nodes.
const VAULT: &[&str] = &[
    "NodeId",
    "CreateTime",
    "ModifyTime",
    "CreateAgeName",
    "CreateAgeUuid",
    "CreatorAcct",
    "CreatorId",
    "NodeType",
    "Int32_1",
    "Int32_2",
    "Int32_3",
    "Int32_4",
    "UInt32_1",
    "UInt32_2",
    "UInt32_3",
    "UInt32_4",
    "Uuid_1",
    "Uuid_2",
    "Uuid_3",
    "Uuid_4",
    "String64_1",
    "String64_2",
    "String64_3",
    "String64_4",
    "String64_5",
    "String64_6",
    "IString64_1",
    "IString64_2",
    "Text_1",
    "Text_2",
    "Blob_1",
    "Blob_2",
];
/// The fields of KI's control messages, and what is in them.
const CONTROL: &[&str] = &[
    "sessionId",
    "timeHigh",
    "timeLow",
    "millis",
    "crypto",
    "reserved",
    "minutes",
    "uptimeMillis",
    "flags",
    "keySlot",
    "keyMask",
    "echo",
    "signature",
    "controlMask",
    "spec",
    "rest",
    "unknown",
    "sealed",
    "nonce",
];
/// What is shown inside KI's `STR` fields: opened secrets, and objects.
const FILLED: &[&str] =
    &["sessionId", "username", "ck1", "ck2", "object", "envelope", "compressed", "size", "flags"];

/// The parts of TERA's values (points, skills, looks), and of what system messages say.
const PARTS: &[&str] = &[
    "x",
    "y",
    "z",
    "w",
    "type",
    "npc",
    "huntingZoneId",
    "id",
    "reserved",
    "unk",
    "skinColor",
    "faceStyle",
    "faceDecal",
    "hairStyle",
    "hairColor",
    "voice",
    "tattoos",
    "name",
    "values",
    "value",
    "key",
    "index",
];

/// What a message may hold.
struct Known<'d> {
    family: &'static str,
    name: String,
    /// Its own fields.
    fields: Vec<&'d str>,
    /// What stands inside of them.
    inner: Vec<&'d str>,
    /// Whether that is all.
    is_complete: bool,
}

/// The fields in a filter that no message has: of those that the filter names, if it names some.
pub(super) fn unknown(expression: &Expression, definitions: &Definitions) -> Vec<UnknownField> {
    let known = known(definitions);
    let mut found = Vec::new();
    check(expression, &mut Vec::new(), &known, &mut found);
    found
}

fn check<'f>(
    expression: &'f Expression,
    scope: &mut Vec<&'f Pattern>,
    known: &[Known<'_>],
    found: &mut Vec<UnknownField>,
) {
    match expression {
        Expression::Message(_) => {}
        Expression::Exists(path) | Expression::Test(path, _) => {
            found.extend(check_path(path, scope, known));
        }
        Expression::Not(inner) => check(inner, scope, known, found),
        Expression::Any(parts) => {
            parts.iter().for_each(|part| check(part, scope, known, found));
        }
        Expression::All(parts) => {
            let outer = scope.len();
            scope.extend(parts.iter().filter_map(|part| match part {
                Expression::Message(pattern) => Some(pattern),
                _ => None,
            }));
            parts.iter().for_each(|part| check(part, scope, known, found));
            scope.truncate(outer);
        }
    }
}

fn check_path(path: &Path, scope: &[&Pattern], known: &[Known<'_>]) -> Option<UnknownField> {
    if matches!(path.start(), Start::Message(_) | Start::Anywhere(Some(_))) {
        return None;
    }
    let in_scope =
        |known: &&Known<'_>| scope.iter().all(|pattern| pattern.fits(known.family, &known.name));
    let messages: Vec<&Known<'_>> = known.iter().filter(in_scope).collect();
    // Messages may be known by their number only.
    if messages.is_empty() {
        return None;
    }
    let steps = path.steps();
    let steps = if path.start() == Start::Top { steps.get(1..)? } else { steps };
    let mut is_first = true;
    for step in steps {
        let Step::Name(name) = step else {
            // An element of whatever there is.
            is_first = false;
            continue;
        };
        let own = messages.iter().flat_map(|message| message.fields.iter());
        let inner = messages.iter().flat_map(|message| message.inner.iter());
        let inner = inner.filter(|_| !is_first);
        let mut names = own.chain(inner).chain(COMMON).copied();
        if !is_free(name) && !names.clone().any(|known| known == &**name) {
            let nearest = nearest_name(name, names.by_ref()).map(str::to_owned);
            let is_certain = is_first || messages.iter().all(|message| message.is_complete);
            return Some(UnknownField { name: name.to_string(), nearest, is_certain });
        }
        // At the top there are the fields and what stands beside them.
        is_first = is_first && &**name == "fields";
    }
    None
}

/// Whether names of this kind can stand anywhere: remarks of ours, and properties without a name.
fn is_free(name: &str) -> bool {
    name.starts_with(['$', '_']) || name.starts_with("0x")
}

/// The name that was most likely meant: one that begins with what was typed, else the nearest one.
pub(super) fn nearest_name<'n>(
    typed: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    /// Fewer letters begin too many names.
    const LEAST: usize = 3;
    let names: BTreeSet<&str> = names.into_iter().collect();
    let begins = |name: &&&str| {
        let start = name.get(..typed.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(typed))
    };
    let longer = names.iter().filter(begins).min_by_key(|name| name.len());
    longer.filter(|_| typed.len() >= LEAST).copied().or_else(|| nearest(typed, names))
}

/// All messages, with what they may hold.
fn known(definitions: &Definitions) -> Vec<Known<'_>> {
    let mut all = Vec::new();
    let names = |fields: Vec<worldwire_core::FieldInfo>| fields.into_iter().map(|field| field.name);
    let mut inner: Vec<&str> = VAULT.to_vec();
    for fields in [
        NodeRef::fields(),
        NetAgeInfo::fields(),
        Score::fields(),
        Rank::fields(),
        Location::fields(),
        UnifiedTime::fields(),
        ManifestEntry::fields(),
        FileListEntry::fields(),
    ] {
        inner.extend(names(fields));
    }
    for codec in Codec::all() {
        let Some((family, kind)) = codec.name.split_once('.') else { continue };
        let family = Family::from_name(family).map_or("", Family::name);
        let messages: Vec<&MessageInfo> = codec.tables().into_iter().flatten().collect();
        all.extend(messages.into_iter().map(|message| Known {
            family,
            name: format!("{kind}.{}", message.name),
            fields: names((message.fields)()).collect(),
            inner: inner.clone(),
            is_complete: false,
        }));
    }
    let plain = |family: Family, name: &str, fields: &[&'static str]| {
        let (name, fields) = (name.to_owned(), fields.to_vec());
        Known { family: family.name(), name, inner: fields.clone(), fields, is_complete: true }
    };
    all.extend(crate::uru::SETUP_NAMES.map(|name| plain(Family::Uru, name, SETUP)));
    let control = crate::ki::names(definitions).into_iter();
    let control = control.filter(|name| name.starts_with("control.") || name == "data.empty");
    all.extend(control.map(|name| plain(Family::Ki, &name, CONTROL)));
    ki(definitions, &mut all);
    tera(definitions, &mut all);
    all
}

/// The DML messages.
fn ki<'d>(definitions: &'d Definitions, all: &mut Vec<Known<'d>>) {
    let classes = definitions.ki_objects.classes();
    let mut inner: BTreeSet<&str> = FILLED.iter().chain(CONTROL).copied().collect();
    if let Some(classes) = classes {
        let properties = classes.all().iter().flat_map(|class| class.properties());
        inner.extend(properties.map(|property| &*property.name));
    }
    for message in definitions.ki.iter().flat_map(|protocol| protocol.messages()) {
        // Only these hold more than a value; the list of all classes is long.
        let is_open = definitions.ki_objects.fields(message).next().is_some();
        let own = message.fields().iter().chain(message.appended());
        all.push(Known {
            family: Family::Ki.name(),
            name: definitions.ki.name(message),
            fields: own.map(|field| &*field.name).collect(),
            inner: if is_open { inner.iter().copied().collect() } else { FILLED.to_vec() },
            is_complete: !is_open,
        });
    }
}

/// The messages of all definitions, whichever of them a build may choose.
fn tera<'d>(definitions: &'d Definitions, all: &mut Vec<Known<'d>>) {
    let definitions = &definitions.tera;
    let built_in = definitions.shared().definitions().iter();
    for definition in definitions.library().definitions.definitions().chain(built_in) {
        let mut inner = Vec::new();
        add_inner(definition, &mut inner);
        all.push(Known {
            family: Family::Tera.name(),
            name: format!("tera.{}", definition.name()),
            fields: definition.plan().fields().iter().map(Field::name).collect(),
            inner,
            is_complete: true,
        });
    }
}

/// Every field of a definition.
fn add_inner<'d>(definition: &'d Definition, inner: &mut Vec<&'d str>) {
    let plan: &'d Plan = definition.plan();
    let mut rest = vec![plan.fields()];
    while let Some(fields) = rest.pop() {
        for field in fields {
            inner.push(field.name());
            match field.kind() {
                FieldKind::Array { scope, .. } => rest.push(plan.element(*scope).0),
                FieldKind::Object(range) | FieldKind::Row(range) => {
                    rest.push(plan.fields_of(range));
                }
                FieldKind::Scalar { .. } | FieldKind::Text { .. } | FieldKind::Bytes { .. } => {}
            }
        }
    }
    inner.extend(PARTS);
}

#[cfg(test)]
mod tests {
    use super::super::Filter;
    use super::nearest_name;
    use crate::Definitions;

    fn definitions() -> Definitions {
        let mut definitions = Definitions::built_in();
        definitions.add([("S_LISTS.1.def", "skillid s\narray list\n- angle w\n- string t\n")]);
        definitions
    }

    #[test]
    fn misspelt_fields_are_named_with_the_nearest() {
        let definitions = definitions();
        for (filter, name, nearest, is_certain) in [
            ("resultt == 3", "resultt", Some("result"), true),
            ("AcctLoginReply and not resultt == 3", "resultt", Some("result"), true),
            ("PingRequest and result == 3", "result", None, true),
            ("uru and exists(accountNam)", "accountNam", Some("accountName"), true),
            ("fields.transIdd", "transIdd", Some("transId"), true),
            ("refs[3].parentIdd == 5", "parentIdd", Some("parentId"), false),
            ("tera.S_LISTS and list.ww == 5", "ww", None, true),
            ("LOGIN.* and Localle == \"x\"", "Localle", Some("Locale"), true),
        ] {
            let parsed = Filter::parse(filter).unwrap();
            let unknown = parsed.unknown_fields(&definitions);
            assert_eq!(unknown.len(), 1, "{filter}: {unknown:?}");
            assert_eq!(unknown[0].name, name, "{filter}");
            if nearest.is_some() {
                assert_eq!(unknown[0].nearest.as_deref(), nearest, "{filter}");
            }
            assert_eq!(unknown[0].is_certain, is_certain, "{filter}");
        }
    }

    #[test]
    fn right_names_are_not_refused() {
        let definitions = definitions();
        for filter in [
            "result == 3 and from == client and message.length < 3",
            "_trailing == 00:11 or exists(message.system.values) or exists(fields._trailing)",
            "tera.S_LISTS and list[2].w == 5 and list.t == \"x\"",
            "node.Text_1 == \"x\" or exists(fields.node.Blob_1)",
            "refs[3].parentId == 5 or refs.childId == 3",
            "MSG_USER_AUTHEN_V3 and Rec1.username == \"x\"",
            "tera.51042 and whatever == 3",
            "control.SessionOffer and crypto.flags == 3",
            "name == \"x\" and payload contains 00:11 and opcode == 5 and version == 1",
            "CharacterInfo.object.m_level == 12",
            "connect.CliToAuth and buildId == 918 or setup.Connect and y contains 00",
        ] {
            let unknown = Filter::parse(filter).unwrap();
            let unknown = unknown.unknown_fields(&definitions);
            assert!(unknown.iter().all(|field| !field.is_certain), "{filter}: {unknown:?}");
        }
    }

    #[test]
    fn names_that_begin_so_come_first() {
        let names = ["auth.AcctLoginRequest", "auth.AcctLoginReply", "auth.AcctLogout"];
        assert_eq!(nearest_name("auth.AcctLoginReq", names), Some(names[0]));
        assert_eq!(nearest_name("auth.AcctLoginRepyl", names), Some(names[1]));
        assert_eq!(nearest_name("x", names), None);
    }
}
