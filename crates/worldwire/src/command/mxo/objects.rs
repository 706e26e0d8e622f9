//! `worldwire mxo objects`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;
use worldwire_core::{Severity, nearest};
use worldwire_dissect::MxoObjects;
use worldwire_mxo::schema::{Class, Goobj, Order, Updates};

use crate::cli::{Common, Target};
use crate::input::{files, read};
use crate::output::{Failure, complain, print, write_all};
use crate::report;

pub(super) fn check(paths: &[PathBuf], common: &Common) -> Result<(), Failure> {
    let built_in = MxoObjects::built_in();
    let mut objects = built_in.clone();
    let clean = add(&mut objects, paths, common)?;
    let (before, known) = (counts(&built_in), counts(&objects));
    // A table may also remove the class of a built-in goobj.
    let [classes, goobjs, names] = [0, 1, 2].map(|at| known[at].saturating_sub(before[at]));
    let mut out = format!(
        "{}, {} with a class and {} in addition to the built-in ones\n",
        counted(classes, "class", "classes"),
        counted(goobjs, "goobj", "goobjs"),
        counted(names, "name", "names"),
    );
    let [classes, goobjs] = replaced(&built_in, &objects);
    if classes + goobjs > 0 {
        let classes = counted(classes, "built-in class", "built-in classes");
        let _ = writeln!(
            out,
            "{classes} and {} replaced",
            counted(goobjs, "built-in goobj", "built-in goobjs")
        );
    }
    print(&out)?;
    if clean { Ok(()) } else { Err(Failure::Input) }
}

pub(super) fn show(
    object: &str,
    data: &[PathBuf],
    json: bool,
    common: &Common,
) -> Result<(), Failure> {
    let mut objects = MxoObjects::built_in();
    let clean = add(&mut objects, data, common)?;
    let known = objects.objects();
    // Classes from numbered tables are named by numbers.
    let named = known.class_named(object).map(|(_, class)| class);
    let number = match number_of(object) {
        Some(number) => Some(number),
        None if named.is_none() => goobj_named(object, &objects)?,
        None => None,
    };
    let of_goobj = number.and_then(|goid| Some((goid, known.class_of(goid)?.1)));
    if named.is_none() && of_goobj.is_none() {
        let names = known.classes().map(|(_, class)| class.name());
        let names = names.chain(objects.tables().goobjs().filter_map(|(_, it)| it.name.as_deref()));
        let hint = match (number, nearest(object, names)) {
            (None, Some(near)) => format!("; did you mean {near}?"),
            _ => "; supply its table with --data".to_owned(),
        };
        let wanted = match number.is_some() {
            true => "a goobj whose class is known, or a class",
            false => "a goobj or a class",
        };
        complain(object, &format!("not {wanted}{hint}"));
        return Err(Failure::Input);
    }
    let goid = of_goobj.map(|(goid, _)| goid);
    if json {
        let other = named.filter(|named| of_goobj.is_none_or(|(_, class)| class != *named));
        let first = of_goobj.map(|(goid, class)| to_json(Some(goid), known.name_of(goid), class));
        let second = other.map(|class| to_json(None, None, class));
        print(&first.into_iter().chain(second).collect::<String>())?;
    } else {
        let names: Vec<&str> = named.iter().map(|class| class.name()).collect();
        print(&objects.tables().print_some(goid, &names))?;
    }
    if clean { Ok(()) } else { Err(Failure::Input) }
}

/// The number of a goobj, decimal or hexadecimal.
fn number_of(object: &str) -> Option<u16> {
    match object.strip_prefix("0x").or_else(|| object.strip_prefix("0X")) {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => object.parse().ok(),
    }
}

/// The goobj with a name, ignoring case.
fn goobj_named(object: &str, objects: &MxoObjects) -> Result<Option<u16>, Failure> {
    const MAX_LISTED: usize = 10;
    let wanted = object.to_lowercase();
    let is_it = |name: &str| name.to_lowercase() == wanted;
    let goobjs =
        objects.tables().goobjs().filter(|(_, goobj)| goobj.name.as_deref().is_some_and(is_it));
    let numbers: Vec<u16> = goobjs.map(|(number, _)| number).collect();
    if numbers.len() < 2 {
        return Ok(numbers.first().copied());
    }
    let mut listed: Vec<String> =
        numbers.iter().take(MAX_LISTED).map(ToString::to_string).collect();
    if numbers.len() > MAX_LISTED {
        listed.push("...".to_owned());
    }
    let problem = format!("{} goobjs have this name: {}", numbers.len(), listed.join(", "));
    Err(Failure::Run(format!("{object}: {problem}")))
}

pub(super) fn convert(
    paths: &[PathBuf],
    built_in: bool,
    target: &Target,
    common: &Common,
) -> Result<(), Failure> {
    let mut objects = if built_in { MxoObjects::built_in() } else { MxoObjects::default() };
    // Incomplete tables would look complete.
    if !add(&mut objects, paths, common)? {
        return Err(Failure::Input);
    }
    write_all(target, objects.tables().print().as_bytes())
}

/// Adds tables to those already loaded and reports their problems. Returns false if there were
/// errors.
fn add(objects: &mut MxoObjects, paths: &[PathBuf], common: &Common) -> Result<bool, Failure> {
    let mut texts = Vec::new();
    for path in paths {
        for file in files(path, &|subject, text| common.note(subject, text))? {
            let (name, bytes) = (file.display().to_string(), read(&file)?);
            // A directory may contain unrelated files.
            if !path.is_dir() && !MxoObjects::are_in(&bytes) {
                let message = format!("{name}: contains no tables of game objects");
                return Err(Failure::Run(message));
            }
            texts.push((name, bytes));
        }
    }
    if texts.is_empty() {
        return Ok(true);
    }
    let named: Vec<(&str, &[u8])> =
        texts.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let Some(said) = objects.add(&named) else {
        let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
        let message = format!("{}: contains no tables of game objects", names.join(", "));
        return Err(Failure::Run(message));
    };
    report::diagnostics(
        said.iter().filter(|one| !common.quiet || one.severity() == Severity::Error),
    );
    Ok(said.iter().all(|one| one.severity() != Severity::Error))
}

/// The numbers of classes, goobjs with a class, and names.
fn counts(objects: &MxoObjects) -> [usize; 3] {
    let tables = objects.tables();
    let with_class = tables.goobjs().filter(|(_, goobj)| goobj.class.is_some()).count();
    let with_name = tables.goobjs().filter(|(_, goobj)| goobj.name.is_some()).count();
    [tables.classes().len(), with_class, with_name]
}

/// The numbers of built-in classes and goobjs that were changed.
fn replaced(built_in: &MxoObjects, objects: &MxoObjects) -> [usize; 2] {
    let (before, now) = (built_in.tables(), objects.tables());
    let layout = |class: &Class| (class.create().clone(), class.updates().clone());
    let is_other =
        |class: &&Class| now.class(class.name()).is_some_and(|new| layout(new) != layout(class));
    let classes = before.classes().iter().filter(is_other).count();
    let new: BTreeMap<u16, &Goobj> = now.goobjs().collect();
    let differs = |(goid, old): &(u16, &Goobj)| {
        new.get(goid).is_some_and(|new| (&new.class, &new.name) != (&old.class, &old.name))
    };
    [classes, before.goobjs().filter(differs).count()]
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn to_json(goid: Option<u16>, name: Option<&str>, class: &Class) -> String {
    let mut all = serde_json::Map::new();
    orders(class, |title, order| {
        let slots: Vec<_> = order
            .slots()
            .iter()
            .map(|slot| {
                json!({ "name": slot.name(), "type": slot.kind().to_string(),
                        "size": slot.fixed_size() })
            })
            .collect();
        all.insert(title.to_owned(), slots.into());
    });
    let line = json!({
        "goobj": goid, "name": name, "class": class.name(), "source": class.source(),
        "orders": all,
    });
    format!("{line}\n")
}

/// The property orders of a class, with the purpose of each.
fn orders(class: &Class, mut each: impl FnMut(&str, &Order)) {
    each("create", class.create());
    match class.updates() {
        Updates::Unknown => {}
        Updates::Plain(order) | Updates::Npc(order) => each("update", order),
        Updates::Player { own, other } => {
            own.iter().for_each(|order| each("update of the client's own view", order));
            other.iter().for_each(|order| each("update of other views", order));
        }
    }
}
