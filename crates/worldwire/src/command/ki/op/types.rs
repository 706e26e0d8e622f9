//! `worldwire ki op types`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use worldwire_ki::schema::classes::{Class, Classes, Property};

use crate::cli::Common;
use crate::output::{Failure, complain, print, printable, say};
use crate::types;

pub(super) fn run(
    list: &Path,
    class: Option<&str>,
    merge: &[PathBuf],
    json: bool,
    common: &Common,
) -> Result<(), Failure> {
    let lists: Vec<PathBuf> = [list.to_owned()].into_iter().chain(merge.iter().cloned()).collect();
    let classes = types::read(&lists)?;
    if !common.quiet {
        for note in classes.notes() {
            say(format_args!("worldwire: {}", printable(&note.to_string())));
        }
        if classes.notes().len() == Classes::MOST_NOTES {
            say(format_args!("worldwire: only the first {} are listed", Classes::MOST_NOTES));
        }
    }
    let mut out = String::new();
    match class {
        Some(word) => {
            let Some(class) = classes.find(word) else {
                let near = classes.nearest(word);
                let hint =
                    near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
                complain(word, &format!("no such class{hint}"));
                return Err(Failure::Input);
            };
            if json {
                let _ = writeln!(out, "{}", described(&classes, class));
            } else {
                for line in classes.explain(class).to_string().lines() {
                    let _ = writeln!(out, "{}", printable(line));
                }
            }
        }
        None => {
            for class in classes.all() {
                let count = class.properties().len();
                if json {
                    let line =
                        json!({ "name": *class.name, "hash": class.hash, "properties": count });
                    let _ = writeln!(out, "{line}");
                } else {
                    let name = printable(&class.name);
                    let _ = writeln!(out, "{:>10}  {:>3}  {name}", class.hash, count);
                }
            }
        }
    }
    print(&out)
}

fn described(classes: &Classes, class: &Class) -> Value {
    let properties: Vec<Value> = class
        .properties()
        .iter()
        .map(|property| {
            let (flags, rest) = Property::flag_names().flags(u64::from(property.flags));
            let mut flags: Vec<String> = flags.into_iter().map(str::to_owned).collect();
            if rest != 0 {
                flags.push(format!("{rest:#x}"));
            }
            let options = property.choices.as_ref().map(|choices| {
                let pairs = choices.names().iter().map(|(number, name)| (name.to_owned(), number));
                pairs.collect::<std::collections::BTreeMap<String, i64>>()
            });
            let target = property.class().and_then(|index| classes.get(index));
            json!({
                "name": *property.name, "id": property.id, "type": *property.type_name,
                "container": property.container.name(), "flags": flags, "hash": property.hash,
                "class": target.map(|class| &*class.name), "options": options,
                "default": property.choices.as_ref().and_then(|it| it.default.as_deref()),
                "base_class": property.choices.as_ref().and_then(|it| it.base_class.as_deref()),
            })
        })
        .collect();
    let bases: Vec<&str> = class.bases.iter().map(|base| &**base).collect();
    json!({ "name": *class.name, "hash": class.hash, "bases": bases, "properties": properties })
}
