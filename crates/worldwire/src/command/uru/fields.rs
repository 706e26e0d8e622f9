//! Fields of vault nodes on the command line: by their numbered names, or by the game's names for
//! them, which depend on the type of the node.

use serde_json::{Map, Value as Json};
use worldwire_core::{Record as _, nearest};
use worldwire_uru::vault::{FIELD_NAMES, FieldName, NodeType, VaultNode};

use crate::output::{Failure, printable};

/// The fields given as FIELD=VALUE. Text is taken verbatim, anything else as JSON. With
/// `NodeType=TYPE` among them, fields can have the game's names.
pub(crate) fn fields_of(words: &[String]) -> Result<Json, Failure> {
    let known = VaultNode::fields();
    let kind = words.iter().find_map(|word| word.strip_prefix("NodeType="));
    let of_kind = |(of, _): &&(NodeType, &[FieldName])| of.name() == kind;
    let names = FIELD_NAMES.iter().find(of_kind).map_or(&[][..], |(_, names)| names);
    let mut fields = Map::new();
    for word in words {
        let failed = |problem: String| Failure::Run(format!("{}: {problem}", printable(word)));
        let Some((given, value)) = word.split_once('=') else {
            return Err(failed("must have the form FIELD=VALUE".to_owned()));
        };
        let own = names.iter().find(|(name, _)| *name == given).map(|(_, field)| *field);
        let Some(field) = known.iter().find(|field| field.name == own.unwrap_or(given)) else {
            return Err(failed(no_such_field(given, kind, names)));
        };
        let text = || Json::String(value.to_owned());
        let value = match field.layout.contains("UTF-16") {
            true => text(),
            false => serde_json::from_str(value).unwrap_or_else(|_| text()),
        };
        if fields.insert(field.name.to_owned(), value).is_some() {
            return Err(failed("is given twice".to_owned()));
        }
    }
    Ok(Json::Object(fields))
}

fn no_such_field(given: &str, kind: Option<&str>, names: &[FieldName]) -> String {
    let types: Vec<_> = FIELD_NAMES
        .iter()
        .filter(|(_, names)| names.iter().any(|(name, _)| *name == given))
        .filter_map(|(kind, _)| kind.name())
        .collect();
    if !types.is_empty() {
        let types = types.join(" or ");
        return match kind {
            Some(kind) => format!("a {kind} has no such field; nodes of type {types} do"),
            None => format!("this is a field of {types} nodes; give NodeType={types} as well"),
        };
    }
    let own = names.iter().map(|(name, _)| *name);
    let known = own.chain(VaultNode::fields().into_iter().map(|field| field.name));
    let hint = nearest(given, known).map(|near| format!("; did you mean {near}?"));
    format!("no such field{}", hint.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_have_the_names_of_the_game() {
        let fields = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            fields_of(&words).map_err(|failure| match failure {
                Failure::Run(problem) => problem,
                _ => String::new(),
            })
        };
        assert_eq!(
            fields(&["AgeFilename=city", "NodeType=AgeInfo", "IsPublic=1"]),
            Ok(json!({"String64_2": "city", "NodeType": "AgeInfo", "Int32_2": 1}))
        );
        for (words, problem) in [
            (
                &["AgeFilename=city"][..],
                "AgeFilename=city: this is a field of AgeInfo nodes; give NodeType=AgeInfo as well",
            ),
            (
                &["NodeType=Player", "AgeFilename=x"],
                "AgeFilename=x: a Player has no such field; nodes of type AgeInfo do",
            ),
            (
                &["NodeType=AgeInfo", "AgeFilname=x"],
                "AgeFilname=x: no such field; did you mean AgeFilename?",
            ),
            (
                &["NodeType=AgeInfo", "AgeFilename=x", "String64_2=y"],
                "String64_2=y: is given twice",
            ),
        ] {
            assert_eq!(fields(words).unwrap_err(), problem);
        }
    }
}
