//! Finds values in filters that the compared field cannot have. Most of them are misspelled.

use core::cmp::Ordering;
use core::fmt;
use std::collections::BTreeSet;
use std::net::IpAddr;

use super::expression::{Check, Expression, Metadata, Path, Pattern, Start, Step};
use super::fields::{self, KnownMessage, nearest_name};
use super::literal::{Literal, Member};
use super::moment::date;
use super::number::Number;
use super::resolve::Resolver;
use crate::family::Family;
use crate::knowledge::Definitions;
use crate::vocabulary::{ValueKind, ValueNames};

/// A value that the compared field cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownValue {
    /// The field as written.
    pub field: String,
    /// The value.
    pub value: String,
    /// The most similar value that the field can have.
    pub nearest: Option<String>,
    /// The values that the field can have, if the list is short: `` `client` or `server` ``.
    pub wanted: Option<String>,
    /// If the operator does not fit the field: the values that it works on. `value` is then the
    /// operator.
    pub works_on: Option<&'static str>,
    /// Whether all values of the field are known. If not, it may have this one after all.
    pub is_certain: bool,
}

/// `` `result` has no value named `Succes`; did you mean `Success`? ``
impl fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, nearest, wanted, works_on, .. } = self;
        match wanted {
            Some(wanted) if let Some(on) = works_on => {
                write!(f, "`{field}` is {wanted}; `{value}` works on {on}")?;
            }
            Some(wanted) => write!(f, "`{field}` is {wanted}, not `{value}`")?,
            None => write!(f, "`{field}` has no value named `{value}`")?,
        }
        match nearest {
            Some(near) => write!(f, "; did you mean `{near}`?"),
            None => Ok(()),
        }
    }
}

/// The values in a filter that the compared fields cannot have.
pub(super) fn unknown(expression: &Expression, resolver: &Resolver<'_>) -> Vec<UnknownValue> {
    let mut found = Vec::new();
    fields::each_path(expression, &mut Vec::new(), &mut |path, check, scope| {
        let Some(check) = check else { return };
        let known = FilterVocabulary::new(resolver);
        let metadata = match path.start() {
            Start::Message(metadata) => Some((metadata, true)),
            Start::Anywhere(metadata) => metadata.map(|metadata| (metadata, false)),
            Start::Top => None,
        };
        if let Some(value) = known.check_operator(path, metadata, check, scope) {
            return found.push(value);
        }
        if let Check::Is(class) = check {
            found.extend(check_class(path, class.name(), resolver.definitions()));
        }
        let has = matches!(check, Check::Has(_));
        for literal in literals(check) {
            if let Some(value) = known.check_shape(path, literal, scope) {
                found.push(value);
                continue;
            }
            found.extend(match metadata {
                _ if has => known.check_name(path, literal, scope),
                Some((metadata, is_alone)) => {
                    known.check_metadata(path, metadata, is_alone, literal, scope)
                }
                None => known.check_name(path, literal, scope),
            });
        }
    });
    found
}

/// The kind of value in a field, if all messages in the scope agree.
pub(super) fn kind(path: &Path, scope: &[Pattern], resolver: &Resolver<'_>) -> Option<ValueKind> {
    let scope: Vec<&Pattern> = scope.iter().collect();
    let known = FilterVocabulary::new(resolver);
    let (family, last) = known.family(path, &scope)?;
    known.values.kind(family, last)
}

/// The words without quotes that fields are compared with, each with the names on the path.
pub(super) fn words(expression: &Expression) -> Vec<(Vec<&str>, &str)> {
    let mut found = Vec::new();
    fields::each_path(expression, &mut Vec::new(), &mut |path, check, _| {
        let Some(names) = fields::path_names(path) else { return };
        found.extend(check.map(literals).unwrap_or_default().into_iter().filter_map(|literal| {
            match literal {
                Literal::Text(text) if text.is_bare() => Some((names.clone(), text.as_str())),
                _ => None,
            }
        }));
    });
    found
}

/// The classes after `is`.
pub(super) fn classes(expression: &Expression) -> Vec<&str> {
    let mut found = Vec::new();
    fields::each_path(expression, &mut Vec::new(), &mut |_, check, _| {
        if let Some(Check::Is(class)) = check {
            found.push(class.name());
        }
    });
    found
}

/// The values that a field is compared with.
fn literals(check: &Check) -> Vec<&Literal> {
    match check {
        Check::Compare(_, literal) | Check::Has(literal) => vec![literal],
        Check::In(set) => {
            let members = set.members().iter().filter_map(|member| match member {
                Member::One(literal) => Some(literal),
                Member::Range(..) => None,
            });
            members.collect()
        }
        Check::Contains(_)
        | Check::StartsWith(_)
        | Check::EndsWith(_)
        | Check::Matches(_)
        | Check::Is(_) => Vec::new(),
    }
}

/// The messages and values that filters are checked against.
struct FilterVocabulary<'k, 'd> {
    messages: &'k [KnownMessage<'d>],
    values: &'k KnownValues<'d>,
}

/// The values of all families' fields.
pub(super) struct KnownValues<'d> {
    names: Vec<(&'static str, ValueNames<'d>)>,
    families: Vec<&'static str>,
    kinds: Vec<(&'static str, &'d str, ValueKind)>,
    holders: Vec<(&'static str, &'d str, &'static str)>,
}

impl<'d> KnownValues<'d> {
    pub(super) fn new(definitions: &'d Definitions) -> Self {
        let of = |family: &'static dyn Family| {
            let values = family.vocabulary().values(definitions).into_iter();
            values.map(|values| (family.name(), values))
        };
        let families = definitions.families();
        let kinds = |family: &'static dyn Family| {
            let kinds = family.vocabulary().kinds(definitions).into_iter();
            kinds.map(|(field, kind)| (family.name(), field, kind))
        };
        let holders = |family: &'static dyn Family| {
            let holders = family.vocabulary().holders(definitions).into_iter();
            holders.map(|(field, inside)| (family.name(), field, inside))
        };
        Self {
            kinds: families.iter().flat_map(kinds).collect(),
            holders: families.iter().flat_map(holders).collect(),
            names: families.iter().flat_map(of).collect(),
            families: families.iter().map(Family::name).collect(),
        }
    }

    /// The families in which a field is a record that holds a value, each with the inner field.
    pub(super) fn holders_of(&self, field: &str) -> impl Iterator<Item = (&'static str, &str)> {
        let own = self.holders.iter().filter(move |(_, name, _)| *name == field);
        own.map(|(family, _, inside)| (*family, *inside))
    }

    fn kind(&self, family: &str, field: &str) -> Option<ValueKind> {
        let mut kinds = self.kinds.iter();
        kinds.find(|(of, name, _)| *of == family && *name == field).map(|(.., kind)| *kind)
    }
}

impl<'k, 'd> FilterVocabulary<'k, 'd> {
    fn new(resolver: &'k Resolver<'d>) -> Self {
        Self { messages: &resolver.known().messages, values: resolver.values() }
    }

    /// The messages that the filter asks for.
    fn in_scope(&self, scope: &[&Pattern]) -> Vec<&'k KnownMessage<'d>> {
        let fits = |known: &&KnownMessage<'_>| {
            scope.iter().all(|it| it.fits(known.family, &known.names.name))
        };
        self.messages.iter().filter(fits).collect()
    }

    /// Checks the metadata: sender, family and numbers.
    fn check_metadata(
        &self,
        path: &Path,
        metadata: Metadata,
        is_alone: bool,
        literal: &Literal,
        scope: &[&Pattern],
    ) -> Option<UnknownValue> {
        let value = match literal {
            Literal::Text(text) => text.as_str().to_owned(),
            Literal::Number(_) | Literal::Bool(_) => literal.to_string(),
            Literal::Null | Literal::Bytes(_) => return None,
        };
        let possible: &[&str] = match metadata {
            Metadata::Name | Metadata::Error | Metadata::Remarks => return None,
            Metadata::Source | Metadata::Target | Metadata::Address
                if value.parse::<IpAddr>().is_ok() =>
            {
                return None;
            }
            Metadata::Date if matches!(literal, Literal::Number(_)) || date(&value).is_some() => {
                return None;
            }
            Metadata::Source | Metadata::Target | Metadata::Address => &["192.0.2.1"],
            Metadata::Date => &["2026-01-01 00:00:00"],
            Metadata::From => &["client", "server"],
            Metadata::Family => &self.values.families,
            Metadata::Elapsed if is_date(literal) => {
                let wanted = Some("the number of seconds since the first packet".to_owned());
                let (field, nearest) = (path.to_string(), Some("date".to_owned()));
                let (works_on, is_certain) = (None, false);
                return Some(UnknownValue { field, value, nearest, wanted, works_on, is_certain });
            }
            Metadata::Stream | Metadata::Packet | Metadata::Elapsed | Metadata::Length => &[],
            Metadata::SourcePort | Metadata::TargetPort | Metadata::Port => &[],
        };
        let is_right = match literal {
            _ if possible.contains(&&*value) => true,
            Literal::Text(_) => possible.is_empty() && value.parse::<f64>().is_ok(),
            _ => possible.is_empty(),
        };
        if is_right {
            return None;
        }
        let field = path.to_string();
        // A field of that name would take precedence.
        let has = |known: &&KnownMessage<'_>| known.names.fields.contains(&&*field);
        let is_certain = is_alone || !self.in_scope(scope).iter().any(has);
        let (wanted, possible) = match metadata {
            Metadata::Source | Metadata::Target | Metadata::Address => {
                ("an address, such as `192.0.2.1`".to_owned(), &[][..])
            }
            Metadata::Date => ("a date, such as `\"2026-01-01 00:00:00\"`".to_owned(), &[][..]),
            _ if possible.is_empty() => ("a number".to_owned(), possible),
            _ => (one_of(possible), possible),
        };
        let nearest = nearest(&value, possible.iter().copied());
        let (wanted, works_on) = (Some(wanted), None);
        Some(UnknownValue { field, value, nearest, wanted, works_on, is_certain })
    }

    /// Finds text compared with a number, and values compared with a record that holds them.
    fn check_shape(
        &self,
        path: &Path,
        literal: &Literal,
        scope: &[&Pattern],
    ) -> Option<UnknownValue> {
        let (family, last) = self.family(path, scope)?;
        let (field, value) = (path.to_string(), literal.to_string());
        let holder =
            self.values.holders.iter().find(|(of, name, _)| *of == family && *name == last);
        let wanted = match (holder, literal) {
            (_, Literal::Null) => return None,
            (Some((.., inside)), _) => {
                format!("a record with its value in `{field}.{inside}`")
            }
            (None, literal) => match (self.values.kind(family, last)?, literal) {
                (ValueKind::Number, Literal::Text(text))
                    if text.as_str().parse::<f64>().is_err() =>
                {
                    "a number".to_owned()
                }
                (ValueKind::Text, Literal::Bool(_)) => "text".to_owned(),
                _ => return None,
            },
        };
        let (nearest, works_on) = (None, None);
        let wanted = Some(wanted);
        Some(UnknownValue { field, value, nearest, wanted, works_on, is_certain: true })
    }

    /// Finds operators for other kinds of values.
    fn check_operator(
        &self,
        path: &Path,
        metadata: Option<(Metadata, bool)>,
        check: &Check,
        scope: &[&Pattern],
    ) -> Option<UnknownValue> {
        let kind = match metadata {
            Some((metadata, is_alone)) => {
                // A field of that name would take precedence.
                let field = path.to_string();
                let has = |known: &&KnownMessage<'_>| known.names.fields.contains(&&*field);
                if !is_alone && self.in_scope(scope).iter().any(has) {
                    return None;
                }
                metadata.kind()
            }
            None => {
                let (family, last) = self.family(path, scope)?;
                self.values.kind(family, last)?
            }
        };
        let (wanted, works_on) = match (kind, check) {
            (ValueKind::Number, Check::Contains(needle)) if needle.is_text() => {
                ("a number", "text and bytes")
            }
            (
                ValueKind::Number,
                Check::StartsWith(Literal::Text(_)) | Check::EndsWith(Literal::Text(_)),
            ) => ("a number", "text and bytes"),
            (ValueKind::Number, Check::Matches(_)) => ("a number", "text"),
            (ValueKind::Text, Check::Has(_)) => ("text", "numbers and flags"),
            (ValueKind::Number, Check::Is(_)) => ("a number", "objects"),
            (ValueKind::Text, Check::Is(_)) => ("text", "objects"),
            _ => return None,
        };
        Some(UnknownValue {
            field: path.to_string(),
            value: check.operator().to_owned(),
            nearest: None,
            wanted: Some(wanted.to_owned()),
            works_on: Some(works_on),
            is_certain: true,
        })
    }

    /// The only family whose messages have the field at the end of a path, and the field. If
    /// several families have it, it can be anything.
    fn family<'p>(&self, path: &'p Path, scope: &[&Pattern]) -> Option<(&'static str, &'p str)> {
        let Some(Step::Name(last)) = path.steps().last() else { return None };
        let in_scope = self.in_scope(scope);
        let has = |known: &&&KnownMessage<'_>| {
            let names = &known.names;
            names.fields.contains(&&**last) || names.inner.contains(&&**last)
        };
        let families: BTreeSet<&str> = in_scope.iter().filter(has).map(|it| it.family).collect();
        let mut families = families.into_iter();
        families.next().filter(|_| families.next().is_none()).map(|family| (family, &**last))
    }

    /// Checks the name of an enumeration value or flag.
    fn check_name(
        &self,
        path: &Path,
        literal: &Literal,
        scope: &[&Pattern],
    ) -> Option<UnknownValue> {
        let Literal::Text(text) = literal else { return None };
        if !text.is_bare() || text.guid().is_some() || text.ipv4().is_some() {
            return None;
        }
        let value = text.as_str();
        let names = path.steps().iter().filter_map(|step| match step {
            Step::Name(name) => Some(&**name),
            Step::Index(_) | Step::Each => None,
        });
        let names: Vec<&str> = names.collect();
        let last = *names.last()?;
        let whole = names.join(".");
        let is_meant = |field: &str| {
            let above = whole.strip_suffix(field);
            above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
        };
        let holds = |known: &&&KnownMessage<'_>| {
            let names = &known.names;
            names.fields.contains(&last) || names.inner.contains(&last)
        };
        let in_scope = self.in_scope(scope);
        let holders: Vec<&&KnownMessage<'_>> = in_scope.iter().filter(holds).collect();
        // Some messages have only a number, and output shows some names beside the fields.
        let of: BTreeSet<&str> = match holders.is_empty() {
            true if in_scope.is_empty() => self.values.families.iter().copied().collect(),
            true => in_scope.iter().map(|known| known.family).collect(),
            false => holders.iter().map(|known| known.family).collect(),
        };
        let sets: Vec<&(&str, ValueNames<'_>)> = self
            .values
            .names
            .iter()
            .filter(|(family, values)| of.contains(family) && is_meant(values.field))
            .filter(|(family, values)| {
                let is_of = |known: &&&KnownMessage<'_>| {
                    *family == known.family && known.names.name.starts_with(values.prefix)
                };
                values.prefix.is_empty() || holders.iter().any(is_of)
            })
            .collect();
        let all = sets.iter().flat_map(|(_, values)| values.names.iter().copied());
        if sets.is_empty() || all.clone().any(|name| name == value) {
            return None;
        }
        // Nested fields can have values that are not in the tables.
        let is_outer = names.len() == 1 || (path.start() == Start::Top && names.len() == 2);
        let is_closed = |known: &&&KnownMessage<'_>| {
            (is_outer || known.names.is_complete)
                && sets.iter().any(|(family, values)| {
                    *family == known.family && known.names.name.starts_with(values.prefix)
                })
        };
        let is_certain = !holders.is_empty()
            && holders.iter().all(is_closed)
            && sets.iter().all(|(_, values)| values.is_only);
        let nearest = nearest(value, all);
        let (field, value) = (path.to_string(), value.to_owned());
        Some(UnknownValue { field, value, nearest, wanted: None, works_on: None, is_certain })
    }
}

/// Checks the class after `is`. Without any classes, none can be unknown.
fn check_class(path: &Path, class: &str, definitions: &Definitions) -> Option<UnknownValue> {
    let known = || definitions.families().iter().map(Family::vocabulary);
    if known().any(|vocabulary| vocabulary.derived(class, definitions).is_some()) {
        return None;
    }
    let names: Vec<&str> =
        known().flat_map(|vocabulary| vocabulary.object_classes(definitions)).collect();
    if names.is_empty() {
        return None;
    }
    let bare = names.iter().map(|name| name.split_once(' ').map_or(*name, |(_, bare)| bare));
    Some(UnknownValue {
        field: path.to_string(),
        value: class.to_owned(),
        nearest: nearest(class, bare),
        wanted: Some("an object of a class in the type list".to_owned()),
        works_on: None,
        is_certain: true,
    })
}

/// Whether a number can only be the date of a packet, in seconds since 1970.
fn is_date(literal: &Literal) -> bool {
    /// A date in 1973. As seconds since the first packet, it would be over three years, longer than
    ///       any capture.
    const LEAST: Number = Number::Whole(100_000_000);
    let Literal::Number(number) = literal else { return false };
    number.compare(&LEAST).is_some_and(Ordering::is_ge)
}

/// The most similar name: one that differs only in case; otherwise, the name is chosen as for
/// fields.
fn nearest<'n>(typed: &str, names: impl Iterator<Item = &'n str> + Clone) -> Option<String> {
    let same = names.clone().find(|name| name.eq_ignore_ascii_case(typed));
    same.or_else(|| nearest_name(typed, names)).map(str::to_owned)
}

/// `` `a`, `b` or `c` ``
fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Filter, Resolver};
    use super::UnknownValue;
    use crate::knowledge::Definitions;

    fn unknown(filter: &str) -> Vec<UnknownValue> {
        Filter::parse(filter).unwrap().unknown_values(&Resolver::new(&Definitions::built_in()))
    }

    #[test]
    fn metadata_values_are_checked() {
        for (filter, nearest) in [
            ("from == clinet", Some("client")),
            ("from == \"Server\"", Some("server")),
            ("message.from in {client, severr}", Some("server")),
            ("from != 3", None),
            ("family == wow", None),
            ("family == Uru", Some("uru")),
            ("stream == abc", None),
            ("AcctLoginReply and not time < soon", None),
        ] {
            let [value] = &unknown(filter)[..] else { panic!("{filter}") };
            assert!(value.is_certain, "{filter}");
            assert_eq!(value.nearest.as_deref(), nearest, "{filter}");
            assert!(value.wanted.is_some(), "{filter}");
        }
        assert_eq!(
            unknown("from == clinet")[0].to_string(),
            "`from` is `client` or `server`, not `clinet`; did you mean `client`?"
        );
    }

    #[test]
    fn misspelled_values_get_suggestions() {
        for (filter, nearest, is_certain) in [
            ("AcctLoginReply and result != Succes", "Success", true),
            ("auth.* and result == PlayerAlredyExists", "PlayerAlreadyExists", true),
            ("accountFlags has Usr", "User", true),
            ("fields.accountFlags has user", "User", true),
            ("node.NodeType == Playr", "Player", true),
            ("uru and result in {0, Pending, timeout}", "Timeout", true),
            ("connect.CliToAuth and buildType == live", "Live", true),
            ("LOGIN.* and Error == AccountBaned", "AccountBanned", true),
        ] {
            let [value] = &unknown(filter)[..] else { panic!("{filter}: {:?}", unknown(filter)) };
            assert_eq!(value.nearest.as_deref(), Some(nearest), "{filter}");
            assert_eq!(value.is_certain, is_certain, "{filter}");
        }
    }

    #[test]
    fn comparisons_with_the_wrong_shape_are_reported() {
        let mut definitions = Definitions::built_in();
        let sdl = "STATEDESC Fern { VERSION 1 VAR BOOL fernGateOpen[1] VAR INT flags[1] }";
        definitions.add([("Fern.sdl", sdl)]);
        let unknown = |filter: &str| {
            let filter = Filter::parse(filter).unwrap();
            let unknown = filter.unknown_values(&Resolver::new(&definitions));
            assert!(unknown.iter().all(|value| value.is_certain), "{unknown:?}");
            unknown.iter().map(UnknownValue::to_string).collect::<Vec<_>>()
        };
        for value in ["\"Yeesha\"", "Yeesha"] {
            let filter = format!("PropagateBuffer and buffer.message.playerId == {value}");
            let problems = unknown(&filter);
            assert!(
                problems.len() == 1 && problems[0].contains("is a number, not"),
                "{problems:?}"
            );
        }
        assert_eq!(unknown("buffer.message.playerId in {10190, \"10200\"}"), [""; 0]);
        let state = "buffer.message.stream.sdl.state.variables";
        assert_eq!(
            unknown(&format!("{state}.fernGateOpen == true")),
            [format!(
                "`{state}.fernGateOpen` is a record with its value in \
                 `{state}.fernGateOpen.value`, not `true`"
            )]
        );
        assert_eq!(unknown(&format!("{state}.fernGateOpen.value == true")), [""; 0]);
        // The flags could belong to any field.
        assert_eq!(unknown("flags == 3"), [""; 0]);
    }

    #[test]
    fn words_are_listed_with_their_fields() {
        let filter = "m_school in {Fire, Ice, 3} or fields.a.b[2].c != \"x\" and not d has E \
                      and from == client and f contains g";
        let filter = Filter::parse(filter).unwrap();
        let words = filter.compared_words();
        let school = vec!["m_school"];
        assert_eq!(words, [(school.clone(), "Fire"), (school, "Ice"), (vec!["d"], "E")]);
    }

    #[test]
    fn valid_values_are_accepted() {
        for filter in [
            "from == client and family == tera and stream == 3 and time < 1.5 and packet in {1..5}",
            "result == Success and accountFlags has Admin and node.NodeType == Player",
            "result == \"Succes\" or accountName == somebody or node.String64_1 == x",
            "result contains Succ or result matches \"^Acc\" or from startswith c",
            "files.flags has Gzip or entries.flags has Stereo or location.flags has Volatile",
            "result > Success or Error == AccountBanned or buildType in {Dev, Live}",
            "name == anything or stream != null or node.CreateAgeUuid == \
             12345678-1234-5678-1234-56781234567A",
        ] {
            assert_eq!(unknown(filter), [], "{filter}");
        }
    }
}
