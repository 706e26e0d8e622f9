//! `worldwire mxo objects`.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;
use worldwire_core::{Severity, nearest};
use worldwire_dissect::MxoObjects;
use worldwire_mxo::schema::{Class, Order, Updates};

use crate::cli::{Common, Target};
use crate::input::{files, read};
use crate::output::{Failure, print, write_all};
use crate::report;

pub(super) fn check(paths: &[PathBuf], common: &Common) -> Result<(), Failure> {
    let mut objects = MxoObjects::built_in();
    let built_in = counts(&objects);
    let clean = add(&mut objects, paths, common)?;
    let known = counts(&objects);
    // A table may also take the class of a built-in goobj away.
    let [classes, goobjs, names] = [0, 1, 2].map(|at| known[at].saturating_sub(built_in[at]));
    print(&format!(
        "{classes} classes, {goobjs} goobjs with a class and {names} names beyond those that are \
         built in\n"
    ))?;
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
    let (goid, class) = match object.parse::<u16>() {
        Ok(goid) => (Some(goid), known.class_of(goid).map(|(_, class)| class)),
        Err(_) => (None, known.class_named(object).map(|(_, class)| class)),
    };
    let Some(class) = class else {
        let names = known.classes().map(|(_, class)| class.name());
        let hint = match (goid, nearest(object, names)) {
            (None, Some(near)) => format!("; did you mean {near}?"),
            _ => "; give its table with --data".to_owned(),
        };
        let wanted = if goid.is_some() { "a goobj whose class is known" } else { "a class" };
        return Err(Failure::Run(format!("{object}: wanted {wanted}{hint}")));
    };
    let name = goid.and_then(|goid| known.name_of(goid));
    print(&if json { to_json(goid, name, class) } else { to_text(goid, name, class) })?;
    if clean { Ok(()) } else { Err(Failure::Input) }
}

pub(super) fn convert(
    paths: &[PathBuf],
    built_in: bool,
    target: &Target,
    common: &Common,
) -> Result<(), Failure> {
    let mut objects = if built_in { MxoObjects::built_in() } else { MxoObjects::default() };
    let clean = add(&mut objects, paths, common)?;
    write_all(target, objects.tables().print().as_bytes())?;
    if clean { Ok(()) } else { Err(Failure::Input) }
}

/// Reads tables over what is known; what is wrong with them is reported. False when there were
/// errors.
fn add(objects: &mut MxoObjects, paths: &[PathBuf], common: &Common) -> Result<bool, Failure> {
    let mut texts = Vec::new();
    for path in paths {
        for file in files(path)? {
            texts.push((file.display().to_string(), read(&file)?));
        }
    }
    if texts.is_empty() {
        return Ok(true);
    }
    let named: Vec<(&str, &[u8])> =
        texts.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let Some(said) = objects.add(&named) else {
        let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
        let message = format!("{}: wanted tables of game objects, found none", names.join(", "));
        return Err(Failure::Run(message));
    };
    report::diagnostics(
        said.iter().filter(|one| !common.quiet || one.severity() == Severity::Error),
    );
    Ok(said.iter().all(|one| one.severity() != Severity::Error))
}

/// How many classes, goobjs with a class, and names there are.
fn counts(objects: &MxoObjects) -> [usize; 3] {
    let tables = objects.tables();
    let with_class = tables.goobjs().filter(|(_, goobj)| goobj.class.is_some()).count();
    let with_name = tables.goobjs().filter(|(_, goobj)| goobj.name.is_some()).count();
    [tables.classes().len(), with_class, with_name]
}

fn to_text(goid: Option<u16>, name: Option<&str>, class: &Class) -> String {
    let mut out = String::new();
    if let Some(goid) = goid {
        let _ = writeln!(out, "goobj {goid}: {}", name.unwrap_or("without a name"));
    }
    let _ = writeln!(out, "class {}", class.name());
    if let Some(source) = class.source() {
        let _ = writeln!(out, "source: {source}");
    }
    orders(class, |title, order| {
        let _ = writeln!(out, "{title}:");
        for (index, slot) in order.slots().iter().enumerate() {
            let size = slot.fixed_size().map_or_else(|| "counted".into(), |size| size.to_string());
            let _ = writeln!(out, "{index:>5} {size:>7}  {} {}", slot.name(), slot.kind());
        }
    });
    out
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

/// The orders of a class, with what each is for.
fn orders(class: &Class, mut each: impl FnMut(&str, &Order)) {
    each("create", class.create());
    match class.updates() {
        Updates::Unknown => {}
        Updates::Plain(order) | Updates::Npc(order) => each("update", order),
        Updates::Player { own, other } => {
            own.iter().for_each(|order| each("update of the own view", order));
            other.iter().for_each(|order| each("update of other views", order));
        }
    }
}
