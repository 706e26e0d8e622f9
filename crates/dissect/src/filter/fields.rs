//! Finds fields in filters that no message has. Most of them are misspelled.

use std::collections::BTreeSet;

use worldwire_core::nearest;

use super::expression::{Check, Expression, Path, Pattern, Start, Step};
use super::resolve::Resolver;
use crate::family::Family;
use crate::knowledge::Definitions;
use crate::vocabulary::MessageNames;

/// A field that no message has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The unknown name.
    pub name: String,
    /// The most similar known name, or the path to a nested field of that name.
    pub nearest: Option<String>,
    /// Whether all possible names are known. If not, a message may have the field after all.
    pub is_certain: bool,
}

/// Names in trees that no definition lists: additions by families, and metadata.
const COMMON: &[&str] = &[
    "body",
    "bytes",
    "checksum",
    "counter",
    "elapsed",
    "error",
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
    "remarks",
    "service",
    "stream",
    "time",
    "version",
];
/// The names of metadata in other programs.
const ELSEWHERE: &[(&str, &str)] = &[
    ("frame.len", "length"),
    ("frame.number", "packet"),
    ("frame.time", "date"),
    ("frame.time_epoch", "date"),
    ("frame.time_relative", "elapsed"),
    ("ip.addr", "addr"),
    ("ip.dst", "dst"),
    ("ip.src", "src"),
    ("ipv6.addr", "addr"),
    ("ipv6.dst", "dst"),
    ("ipv6.src", "src"),
    ("tcp.dstport", "dstport"),
    ("tcp.port", "port"),
    ("tcp.srcport", "srcport"),
    ("tcp.stream", "stream"),
    ("udp.dstport", "dstport"),
    ("udp.port", "port"),
    ("udp.srcport", "srcport"),
    ("udp.stream", "stream"),
];

/// A message and its possible fields.
pub(super) struct KnownMessage<'d> {
    pub(super) family: &'static str,
    pub(super) names: MessageNames<'d>,
}

/// The fields in a filter that no message has. If the filter also names messages, only those count.
pub(super) fn unknown(expression: &Expression, resolver: &Resolver<'_>) -> Vec<UnknownField> {
    let mut found = Vec::new();
    each_path(expression, &mut Vec::new(), &mut |path, _, scope| {
        found.extend(check_path(path, scope, resolver));
    });
    found
}

/// The names on the path to each field.
pub(super) fn names(expression: &Expression) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    each_path(expression, &mut Vec::new(), &mut |path, _, _| found.extend(path_names(path)));
    found
}

/// The metadata that a filter tests, by name.
pub(super) fn metadata(expression: &Expression) -> Vec<&str> {
    let mut found = Vec::new();
    each_path(expression, &mut Vec::new(), &mut |path, _, _| {
        if let (true, Some(Step::Name(name))) = (path.is_metadata(), path.steps().last()) {
            found.push(&**name);
        }
    });
    found
}

/// The names on the path to a field; `None` for metadata.
pub(super) fn path_names(path: &Path) -> Option<Vec<&str>> {
    let skipped = match path.start() {
        Start::Message(_) | Start::Anywhere(Some(_)) => return None,
        Start::Anywhere(None) => 0,
        Start::Top => 1,
    };
    let names = path.steps().iter().skip(skipped).filter_map(|step| match step {
        Step::Name(name) => Some(&**name),
        Step::Index(_) | Step::Each => None,
    });
    Some(names.collect())
}

/// Calls `visit` for all paths, with the condition on each and the messages that the filter names
/// together with it.
pub(super) fn each_path<'f>(
    expression: &'f Expression,
    scope: &mut Vec<&'f Pattern>,
    visit: &mut impl FnMut(&'f Path, Option<&'f Check>, &[&'f Pattern]),
) {
    match expression {
        Expression::Message(_) | Expression::Inside(_) | Expression::Anywhere(_) => {}
        Expression::Exists(path) => visit(path, None, scope),
        Expression::Test(path, check) => visit(path, Some(check), scope),
        Expression::Not(inner) => each_path(inner, scope, visit),
        Expression::Any(parts) => {
            parts.iter().for_each(|part| each_path(part, scope, visit));
        }
        Expression::All(parts) => {
            let outer = scope.len();
            scope.extend(parts.iter().filter_map(|part| match part {
                Expression::Message(pattern) => Some(pattern),
                _ => None,
            }));
            parts.iter().for_each(|part| each_path(part, scope, visit));
            scope.truncate(outer);
        }
    }
}

fn check_path(path: &Path, scope: &[&Pattern], resolver: &Resolver<'_>) -> Option<UnknownField> {
    if matches!(path.start(), Start::Message(_) | Start::Anywhere(Some(_))) {
        return None;
    }
    let in_scope = |known: &&KnownMessage<'_>| {
        scope.iter().all(|pattern| pattern.fits(known.family, &known.names.name))
    };
    let known = &resolver.known().messages;
    let messages: Vec<&KnownMessage<'_>> = known.iter().filter(in_scope).collect();
    // The message may have only a number.
    if messages.is_empty() {
        return None;
    }
    let steps = path.steps();
    let steps = if path.start() == Start::Top { steps.get(1..)? } else { steps };
    let mut is_first = !path.is_tail();
    let mut before: Option<&str> = None;
    for step in steps {
        let Step::Name(name) = step else {
            // An element of some list.
            is_first = false;
            before = None;
            continue;
        };
        if let Some(unknown) = before.and_then(|holder| inside(holder, name, &messages, resolver)) {
            return Some(unknown);
        }
        before = Some(name);
        let own = messages.iter().flat_map(|message| message.names.fields.iter());
        let inner = messages.iter().flat_map(|message| message.names.inner.iter());
        let inner = inner.filter(|_| !is_first);
        let mut names = own.chain(inner).chain(COMMON).copied();
        if !is_free(name) && !names.clone().any(|known| known == &**name) {
            let whole = path.to_string();
            if let Some((_, own)) = ELSEWHERE.iter().find(|(other, _)| *other == whole) {
                let nearest = Some((*own).to_owned());
                return Some(UnknownField { name: whole, nearest, is_certain: true });
            }
            let definitions = resolver.definitions();
            let inside = |family: &'static dyn Family| {
                let is_asked = messages.iter().any(|message| message.family == family.name());
                family.vocabulary().path_to(name, definitions).filter(|_| is_first && is_asked)
            };
            let nearest = definitions.families().iter().find_map(inside);
            let nearest = nearest.or_else(|| nearest_name(name, names.by_ref()).map(str::to_owned));
            let is_certain = is_first || messages.iter().all(|message| message.names.is_complete);
            return Some(UnknownField { name: name.to_string(), nearest, is_certain });
        }
        // `fields` and its siblings are at the top.
        is_first = is_first && &**name == "fields";
    }
    None
}

/// The name after a field that is a record around a value, if the record can never have that name.
fn inside(
    holder: &str,
    name: &str,
    messages: &[&KnownMessage<'_>],
    resolver: &Resolver<'_>,
) -> Option<UnknownField> {
    let (family, value) = resolver.values().holders_of(holder).next()?;
    // Other families can have a field of that name.
    let has = |known: &KnownMessage<'_>| {
        known.names.fields.contains(&holder) || known.names.inner.contains(&holder)
    };
    if messages.iter().any(|known| known.family != family && has(known)) {
        return None;
    }
    let mut families = resolver.definitions().families().iter();
    let own = families.find(|it| it.name() == family)?.vocabulary().holder_fields();
    if own.is_empty() || own.contains(&name) || is_free(name) {
        return None;
    }
    let (name, nearest) = (format!("{holder}.{name}"), Some(format!("{holder}.{value}")));
    Some(UnknownField { name, nearest, is_certain: true })
}

/// Whether names of this kind are possible anywhere: worldwire's own remarks, and nameless
/// properties.
fn is_free(name: &str) -> bool {
    name.starts_with(['$', '_']) || name.starts_with("0x")
}

/// Whether a word is a field or a path to one.
pub(super) fn is_field(word: &str, known: &[KnownMessage<'_>]) -> bool {
    let is_known = |(index, name): (usize, &str)| {
        let holds = |known: &KnownMessage<'_>| {
            let names = &known.names;
            names.fields.contains(&name) || (index > 0 && names.inner.contains(&name))
        };
        COMMON.contains(&name) || known.iter().any(holds)
    };
    word.split('.').enumerate().all(is_known)
}

/// Whether a word is a field inside others, so that the end of its path identifies it.
pub(super) fn is_inner(word: &str, known: &[KnownMessage<'_>]) -> bool {
    known.iter().any(|known| known.names.inner.contains(&word))
}

/// The name that was probably meant: a name that starts with what was typed, else the most
/// similar name.
pub(super) fn nearest_name<'n>(
    typed: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    /// Shorter words are prefixes of too many names.
    const LEAST: usize = 3;
    let names: BTreeSet<&str> = names.into_iter().collect();
    let begins = |name: &&&str| {
        let start = name.get(..typed.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(typed))
    };
    let longer = names.iter().filter(begins).min_by_key(|name| name.len());
    longer.filter(|_| typed.len() >= LEAST).copied().or_else(|| nearest(typed, names))
}

/// All messages with their possible fields.
pub(super) fn all_messages(definitions: &Definitions) -> Vec<KnownMessage<'_>> {
    let of = |family: &'static dyn Family| {
        let messages = family.vocabulary().messages(definitions).into_iter();
        messages.map(|names| KnownMessage { family: family.name(), names })
    };
    definitions.families().iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Filter, Resolver};
    use super::nearest_name;
    use crate::knowledge::Definitions;

    fn definitions() -> Definitions {
        let mut definitions = Definitions::built_in();
        definitions.add([("S_LISTS.1.def", "skillid s\narray list\n- angle w\n- string t\n")]);
        definitions
    }

    #[test]
    fn misspelled_fields_get_suggestions() {
        let definitions = definitions();
        for (filter, name, nearest, is_certain) in [
            ("resultt == 3", "resultt", Some("result"), true),
            ("AcctLoginReply and not resultt == 3", "resultt", Some("result"), true),
            ("PingRequest and result == 3", "result", None, true),
            ("uru and exists(accountNam)", "accountNam", Some("accountName"), true),
            ("fields.transIdd", "transIdd", Some("transId"), true),
            ("refs[3].parentIdd == 5", "parentIdd", Some("parentId"), false),
            ("tera.S_LISTS and list.ww == 5", "ww", None, true),
            ("PropagateBuffer and buffer.mesage.playerId == 5", "mesage", Some("message"), true),
            ("game.* and buffer.message.strem.payload.user == x", "strem", Some("stream"), true),
            ("PropagateBuffer and playerId == 5", "playerId", None, true),
            ("LOGIN.* and Localle == \"x\"", "Localle", Some("Locale"), true),
        ] {
            let parsed = Filter::parse(filter).unwrap();
            let unknown = parsed.unknown_fields(&Resolver::new(&definitions));
            assert_eq!(unknown.len(), 1, "{filter}: {unknown:?}");
            assert_eq!(unknown[0].name, name, "{filter}");
            if nearest.is_some() {
                assert_eq!(unknown[0].nearest.as_deref(), nearest, "{filter}");
            }
            assert_eq!(unknown[0].is_certain, is_certain, "{filter}");
        }
    }

    #[test]
    fn a_record_around_a_value_has_only_its_own_fields() {
        let mut definitions = Definitions::built_in();
        let sdl = "STATEDESC Body { VERSION 1 VAR POINT3 bodyPlace[1] VAR INT count[1] }";
        definitions.add([("Body.sdl", sdl)]);
        let unknown = |filter: &str| {
            let resolver = Resolver::new(&definitions);
            Filter::parse(filter).unwrap().resolve(&resolver).unknown_fields(&resolver)
        };
        for filter in ["bodyPlace.x > 3", "game.* and bodyPlace.x > 3"] {
            let [field] = &unknown(filter)[..] else { panic!("{filter}") };
            assert_eq!(field.name, "bodyPlace.x", "{filter}");
            assert_eq!(field.nearest.as_deref(), Some("bodyPlace.value"), "{filter}");
            assert!(field.is_certain, "{filter}");
        }
        for filter in ["bodyPlace.value[0] > 3", "exists(bodyPlace)", "bodyPlace.hint == 3"] {
            assert_eq!(unknown(filter), [], "{filter}");
        }
    }

    #[test]
    fn valid_names_are_accepted() {
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
            let unknown = unknown.unknown_fields(&Resolver::new(&definitions));
            assert!(unknown.iter().all(|field| !field.is_certain), "{filter}: {unknown:?}");
        }
    }

    #[test]
    fn prefixes_are_suggested_first() {
        let names = ["auth.AcctLoginRequest", "auth.AcctLoginReply", "auth.AcctLogout"];
        assert_eq!(nearest_name("auth.AcctLoginReq", names), Some(names[0]));
        assert_eq!(nearest_name("auth.AcctLoginRepyl", names), Some(names[1]));
        assert_eq!(nearest_name("x", names), None);
    }
}
