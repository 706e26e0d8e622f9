//! Checks the text formats.

use worldwire_core::json::{Json, Object};
use worldwire_tera::file::{CodeMap, MapKind, Rule};
use worldwire_tera::schema::parse::{Line, Type};
use worldwire_tera::schema::version::NotADefinition;
use worldwire_tera::schema::{
    Definition, FileName, ParseOptions, Platform, Problem, ProblemKind, Set,
};
use worldwire_tera::sysmsg::SystemMessage;

use super::{Outcome, check, error_of, expect, number, text};

fn kinds(problems: &[Problem]) -> Vec<&'static str> {
    problems.iter().map(|problem| problem.kind.name()).collect()
}

pub(crate) fn syntax(case: &Json) -> Outcome {
    let (text, expect) = (text(case, "text")?, expect(case)?);
    let file = FileName::parse("S_CASE.1.def").map_err(|_| "no file name")?;
    let outcome = Definition::parse(&file, text, &ParseOptions::default());
    match (outcome, error_of(expect)) {
        (Ok(definition), None) => {
            let wanted = expect.get("ast").ok_or("no ast")?;
            let fields: Vec<_> = definition
                .lines()
                .iter()
                .filter(|line| !matches!(line.kind, Type::Meta(_)))
                .collect();
            let found = tree(&fields, &mut 0, 0);
            check(found == *wanted, format!("read as {found}"))
        }
        (Err(problems), Some(wanted)) => {
            let found = kinds(&problems);
            check(found.contains(&wanted), format!("wanted {wanted}, found {found:?}"))
        }
        (Ok(_), Some(wanted)) => Err(format!("read, though {wanted} was wanted")),
        (Err(problems), None) => Err(format!("not read: {problems:?}")),
    }
}

/// The lines from a depth down, in the form of the vectors.
fn tree(lines: &[&Line], at: &mut usize, depth: usize) -> Json {
    let mut fields: Vec<Json> = Vec::new();
    while let Some(line) = lines.get(*at).filter(|line| line.depth >= depth) {
        *at += 1;
        let mut field = Object::new();
        field.insert("name", (*line.name).into());
        match &line.kind {
            Type::Array(element) => {
                field.insert("type", "array".into());
                if **element != Type::Object {
                    field.insert("subtype", element.to_string().into());
                }
            }
            other => {
                field.insert("type", other.to_string().into());
            }
        }
        if line.interleaved {
            field.insert("flags", vec!["interleaved"].into());
        }
        if lines.get(*at).is_some_and(|next| next.depth > depth) {
            field.insert("fields", tree(lines, at, depth + 1));
        }
        fields.push(field.into());
    }
    fields.into()
}

pub(crate) fn file_name(case: &Json) -> Outcome {
    let (file, expect) = (text(case, "file")?, expect(case)?);
    let set = Set::load([(file, "")], ParseOptions::default());
    let remarks: Vec<_> = set.problems().map(|problem| problem.kind).collect();
    if let Some(wanted) = expect.get("diagnostic").and_then(Json::as_str) {
        let found = remarks.iter().any(|kind| kind.name() == wanted);
        check(found, format!("wanted {wanted}, found {remarks:?}"))?;
    }
    match FileName::parse(file) {
        Ok(name) => {
            check(text(expect, "name")? == &*name.name, "another name")?;
            check(number(expect, "version")? == u64::from(name.version), "another version")?;
            let platform = expect.get("platform").and_then(Json::as_str);
            check(platform == name.platform.as_ref().map(Platform::name), "another platform")
        }
        Err(NotADefinition::BadName) => {
            check(error_of(expect) == Some("bad_file_name"), "a bad name")?;
            check(remarks == [ProblemKind::BadFileName], format!("{remarks:?}"))
        }
        Err(_) => check(expect.get("ignored") == Some(&Json::Bool(true)), "ignored"),
    }
}

pub(crate) fn deprecated(case: &Json) -> Outcome {
    let rule = case.get("rule").and_then(Rule::from_json).ok_or("no rule")?;
    let patch = u16::try_from(number(case, "patch")?).map_err(|_| "no patch")?;
    let expect = expect(case)?;
    let flag = |key: &str| expect.get(key).and_then(Json::as_bool);
    check(flag("readable") == Some(rule.may_read(patch)), "readable")?;
    check(flag("writeable") == Some(rule.may_write(patch)), "writeable")
}

pub(crate) fn map(case: &Json) -> Outcome {
    let (text, expect) = (text(case, "text")?, expect(case)?);
    let (map, problems) = CodeMap::parse(MapKind::Protocol, "case.map", text);
    let found = kinds(&problems);
    if let Some(wanted) = error_of(expect) {
        let errors = problems.iter().filter(|problem| problem.is_error()).count();
        return check(errors == 1 && found == [wanted], format!("found {found:?}"));
    }
    let wanted: Vec<_> = expect.get("diagnostic").and_then(Json::as_str).into_iter().collect();
    check(found == wanted, format!("found {found:?}"))?;
    let entries: Vec<Json> =
        map.iter().map(|(name, code)| (vec![Json::from(name), code.into()]).into()).collect();
    check(expect.get("entries") == Some(&entries.into()), "other entries")?;
    for pair in expect.get("code_to_name").and_then(Json::as_array).into_iter().flatten() {
        let code = pair.get(0).and_then(Json::as_u64).and_then(|code| u32::try_from(code).ok());
        let name = code.and_then(|code| map.name(code));
        check(name == pair.get(1).and_then(Json::as_str), "another name")?;
    }
    let (again, _) = CodeMap::parse(MapKind::Protocol, "case.map", &map.format());
    let same = map.iter().all(|(name, code)| again.code(name) == Some(code));
    check(same && again.len() == map.len(), "written otherwise")
}

pub(crate) fn system_message(case: &Json, whole: &Json) -> Outcome {
    let pairs = whole.get("map").and_then(Json::as_array).ok_or("no map")?;
    let pairs = pairs.iter().filter_map(|pair| {
        Some((pair.get(0)?.as_str()?, u32::try_from(pair.get(1)?.as_u64()?).ok()?))
    });
    let (map, expect) = (CodeMap::from_pairs(pairs), expect(case)?);
    if text(case, "kind")? == "build" {
        let tokens = case.get("tokens").and_then(Json::as_object).into_iter().flatten();
        let pair = |(key, value): (&str, &Json)| {
            Some((key.to_owned().into(), value.as_str()?.to_owned().into()))
        };
        let pairs = tokens.map(pair).collect::<Option<_>>().ok_or("a token that is not a text")?;
        let message = SystemMessage { name: text(case, "name")?.into(), pairs, odd: None };
        // Objects lose the order of their keys; the text has the vector's order.
        return match (message.format(&map), error_of(expect)) {
            (Ok(found), None) => {
                let wanted = text(expect, "message")?;
                let (found, wanted) = (read(&found)?, read(wanted)?);
                check(found == wanted, format!("built {found:?}"))
            }
            (Err(error), Some(wanted)) => check(error.name() == wanted, error.to_string()),
            (outcome, _) => Err(format!("{outcome:?}")),
        };
    }
    let message = text(case, "message")?;
    match (SystemMessage::parse(message, &map), error_of(expect)) {
        (Ok(found), None) => {
            let result = expect.get("result").ok_or("no result")?;
            check(text(result, "id")? == found.name, "another name")?;
            let tokens = result.get("tokens").and_then(Json::as_object).ok_or("no tokens")?;
            for (key, value) in tokens {
                check(found.get(key) == value.as_str(), format!("another {key}"))?;
            }
            check(found.pairs.iter().all(|pair| tokens.contains_key(&pair.0)), "more tokens")?;
            match expect.get("diagnostic").and_then(Json::as_str) {
                Some("odd_token") => check(found.odd.is_some(), "no odd token")?,
                Some("duplicate_key") => check(has_duplicate_key(&found), "no duplicate")?,
                Some(other) => return Err(format!("unknown diagnostic {other}")),
                None => check(found.odd.is_none() && !has_duplicate_key(&found), "odd")?,
            }
            let again = found.format(&map).map_err(|error| error.to_string())?;
            check(again == message, format!("built again as {again:?}"))
        }
        (Err(error), Some(wanted)) => {
            check(error.name() == wanted, error.to_string())?;
            if let Some(lenient) = expect.get("lenient") {
                let raw = SystemMessage::parse_raw(message).map_err(|error| error.to_string())?;
                check(text(lenient, "id")? == raw.name, "another id")?;
            }
            Ok(())
        }
        (outcome, _) => Err(format!("{outcome:?}")),
    }
}

/// The name and sorted tokens of a text.
fn read(text: &str) -> Result<(String, Vec<(String, String)>), String> {
    let message = SystemMessage::parse_raw(text).map_err(|error| error.to_string())?;
    let pairs = message.pairs.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort();
    Ok((message.name.into_owned(), pairs))
}

fn has_duplicate_key(message: &SystemMessage<'_>) -> bool {
    let mut seen = std::collections::HashSet::new();
    message.pairs.iter().any(|(key, _)| !seen.insert(key))
}
