//! Finds names in a filter that do not exist, most likely because they are misspelt.

use std::collections::{BTreeMap, BTreeSet};

use worldwire_core::nearest;
use worldwire_dissect::filter::Filter;
use worldwire_ki::schema::classes::{Choices, Classes, Property, PropertyKind, Tuple};

use crate::output::{Failure, printable};

/// Refuses names that do not belong to any class or property: the filter would never find anything.
pub(super) fn check(filter: &Filter, classes: &Classes) -> Result<(), Failure> {
    let mut known: BTreeMap<&str, Vec<&Property>> = BTreeMap::new();
    for property in classes.all().iter().flat_map(|class| class.properties()) {
        known.entry(&property.name).or_default().push(property);
    }
    check_classes(filter, classes, &known)?;
    check_metadata(filter, &known)?;
    check_properties(filter, &known)?;
    check_options(filter, &known)
}

/// All properties by their names.
type Known<'c> = BTreeMap<&'c str, Vec<&'c Property>>;

fn refuse(problem: &str, hint: &str) -> Failure {
    Failure::Run(printable(&format!("--where: {problem}{hint}")))
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean {near}?"))
}

fn check_classes(filter: &Filter, classes: &Classes, known: &Known<'_>) -> Result<(), Failure> {
    let names = || {
        classes.all().iter().map(|class| match class.name.split_once(' ') {
            Some((_, name)) => name,
            None => &*class.name,
        })
    };
    for name in filter.class_names() {
        if classes.derived(name).next().is_none() {
            // Type lists can name base classes that they do not contain.
            let bases = classes.all().iter().flat_map(|class| &class.bases).map(|base| &**base);
            let hint = did_you_mean(nearest(name, names().chain(bases)));
            return Err(refuse(&format!("no class is named {name}"), &hint));
        }
    }
    for name in filter.message_names() {
        let bare = name.strip_prefix("class.").unwrap_or(name);
        let is_pattern = bare.contains('*') || bare == "ki";
        if is_pattern || names().any(|known| known == bare) {
            continue;
        }
        let hint = match known.contains_key(bare) {
            true => format!("; to test a property, use exists({bare})"),
            false => did_you_mean(nearest(bare, names())),
        };
        return Err(refuse(&format!("no class is named {bare}"), &hint));
    }
    Ok(())
}

/// Refuses metadata that only captured messages have.
fn check_metadata(filter: &Filter, known: &Known<'_>) -> Result<(), Failure> {
    let has_none = |name: &&str| !["name", "family", "length"].contains(name);
    let names = filter.metadata_names();
    match names.into_iter().filter(has_none).find(|name| !known.contains_key(name)) {
        None => Ok(()),
        Some(name) => Err(refuse(
            &format!("no class has a property {name}"),
            "; only captured messages have that",
        )),
    }
}

fn check_properties(filter: &Filter, known: &Known<'_>) -> Result<(), Failure> {
    // The name below a property may be part of a group of numbers.
    let parts: BTreeSet<&str> =
        Tuple::ALL.iter().flat_map(|tuple| tuple.names()).copied().collect();
    for path in filter.field_names() {
        for (depth, name) in path.into_iter().enumerate() {
            // Our own names, and fields that are not properties.
            let is_free = name.starts_with(['$', '0']);
            if is_free || known.contains_key(name) || (depth > 0 && parts.contains(name)) {
                continue;
            }
            let near = nearest(name, known.keys().copied());
            return Err(refuse(&format!("no class has a property {name}"), &did_you_mean(near)));
        }
    }
    Ok(())
}

/// Refuses option names that no property of that name has. If one of these properties holds text,
/// any value is accepted.
fn check_options(filter: &Filter, known: &Known<'_>) -> Result<(), Failure> {
    for (path, word) in filter.compared_words() {
        let Some(properties) = path.last().and_then(|name| known.get(name)) else { continue };
        let sets: Option<Vec<&Choices>> = properties.iter().map(|it| choices(it)).collect();
        let mut options = BTreeSet::new();
        for set in sets.iter().flatten() {
            options.extend(set.names().iter().map(|(_, name)| name));
            options.extend(set.texts().iter().map(|(name, _)| &**name));
        }
        if options.is_empty() || options.contains(word) {
            continue;
        }
        let problem = format!("{} has no value named {word}", path.join("."));
        return Err(refuse(&problem, &did_you_mean(nearest(word, options))));
    }
    Ok(())
}

/// The options of a property that can have no other values, or whose numbers have names.
fn choices(property: &Property) -> Option<&Choices> {
    let has_options = !matches!(
        property.kind(),
        PropertyKind::String | PropertyKind::WideString | PropertyKind::Object
    );
    property
        .choices
        .as_deref()
        .filter(|choices| has_options && choices.names().iter().next().is_some())
}
