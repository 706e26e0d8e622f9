//! `worldwire ki op types`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use serde_json::{Value, json};
use worldwire_core::{Limits, Result as Read};
use worldwire_ki::object::{CoreId, ObjectCodec, ObjectOptions, Slot, Visitor};
use worldwire_ki::schema::classes::{Class, Classes, Property};

use super::inputs::{self, Input};
use crate::cli::Common;
use crate::command::ki::find::objects;
use crate::command::ki::loader::Loader;
use crate::command::memory::Memory;
use crate::command::work;
use crate::output::{Failure, complain, counted, print, printable, say};
use crate::types;

pub(super) fn run(
    list: &Path,
    class: Option<&str>,
    used_in: &[PathBuf],
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
        if classes.notes().len() == Classes::MAX_NOTES {
            say(format_args!("worldwire: only the first {} are listed", Classes::MAX_NOTES));
        }
    }
    let (counts, faults) = match used_in {
        [] => (None, 0),
        paths => {
            let (counts, faults) = count(&classes, paths, common)?;
            (Some(counts), faults)
        }
    };
    let mut out = String::new();
    if counts.is_none()
        && let Some(class) = class.and_then(|word| classes.find(word))
    {
        if json {
            let _ = writeln!(out, "{}", described(&classes, class));
        } else {
            for line in classes.explain(class).to_string().lines() {
                let _ = writeln!(out, "{}", printable(line));
            }
        }
        return print(&out);
    }
    let fits = class.map(search).transpose()?;
    let mut found = 0_usize;
    for class in classes.all() {
        if fits.as_ref().is_some_and(|fits| !fits(&class.name)) {
            continue;
        }
        let objects = counts.as_ref().map(|counts| counts.get(&class.hash).copied().unwrap_or(0));
        if objects == Some(0) {
            continue;
        }
        found += 1;
        let properties = class.properties().len();
        if json {
            let mut line =
                json!({ "name": *class.name, "hash": class.hash, "properties": properties });
            if let (Some(objects), Some(line)) = (objects, line.as_object_mut()) {
                line.insert("objects".to_owned(), objects.into());
            }
            let _ = writeln!(out, "{line}");
        } else {
            let name = printable(&class.name);
            let objects = objects.map_or_else(String::new, |count| format!("{count:>9}  "));
            let _ = writeln!(out, "{objects}{:>10}  {properties:>3}  {name}", class.hash);
        }
    }
    if let (Some(word), 0, None) = (class, found, &counts) {
        let near = classes.nearest(word);
        let hint = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
        complain(word, &format!("no such class{hint}"));
        return Err(Failure::Input);
    }
    print(&out)?;
    if faults == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// Tells whether a name matches.
type Fits = Box<dyn Fn(&str) -> bool>;

/// The names selected by a word that is not itself a name: those that match it as a pattern, or
/// else those that contain it, ignoring case.
fn search(word: &str) -> Result<Fits, Failure> {
    let lower = word.to_lowercase();
    if !word.contains(['*', '?', '[', '{']) {
        return Ok(Box::new(move |name| name.to_lowercase().contains(&lower)));
    }
    let glob = GlobBuilder::new(word).case_insensitive(true).build();
    let glob = glob.map_err(|error| Failure::Run(printable(&error.to_string())))?;
    let glob = glob.compile_matcher();
    Ok(Box::new(move |name| {
        let plain = name.strip_prefix("class ").unwrap_or(name);
        glob.is_match(name) || glob.is_match(plain)
    }))
}

/// The number of objects of each class, by hash, and the number of files that could not be read.
fn count(
    classes: &Classes,
    paths: &[PathBuf],
    common: &Common,
) -> Result<(HashMap<u32, u64>, usize), Failure> {
    /// Counts the objects of each class.
    #[derive(Default)]
    struct Count(HashMap<u32, u64>);

    impl<'c> Visitor<'c> for Count {
        fn begin_object(&mut self, _: Slot<'c>, class: &'c Class, _: CoreId) -> Read<()> {
            *self.0.entry(class.hash).or_default() += 1;
            Ok(())
        }
    }

    inputs::with(paths, &Limits::DEFAULT, |inputs| {
        let codec = ObjectCodec::new(classes, ObjectOptions::file());
        let bar = work::progress(inputs.len(), common);
        let memory = Memory::new();
        let need = || Loader::new(&memory, Loader::OBJECT);
        let look = |loader: &mut Loader<'_>, input: &Input<'_>| {
            bar.inc(1);
            let mut found = Count::default();
            for object in objects(input, loader, &codec)? {
                let outcome = codec.decode_all(&object, &mut found);
                outcome.map_err(|error| error.to_string())?;
            }
            Ok(found.0)
        };
        let found = work::share(&work::pool(0)?, inputs, Input::size, need, look);
        bar.finish_and_clear();
        let mut all: HashMap<u32, u64> = HashMap::new();
        let mut faults = 0_usize;
        for (input, found) in inputs.iter().zip(found) {
            let found: Result<HashMap<u32, u64>, String> = found;
            match found {
                Ok(found) => {
                    for (hash, count) in found {
                        *all.entry(hash).or_default() += count;
                    }
                }
                Err(fault) => {
                    faults += 1;
                    complain(&input.subject(), &fault);
                }
            }
        }
        if faults > 0 {
            complain("not counted", &counted(faults, "file"));
        }
        Ok((all, faults))
    })
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
            let mut described = json!({
                "name": *property.name, "id": property.id, "type": *property.type_name,
                "container": property.container.name(), "flags": flags, "hash": property.hash,
                "class": target.map(|class| &*class.name), "options": options,
                "default": property.choices.as_ref().and_then(|it| it.default.as_deref()),
                "base_class": property.choices.as_ref().and_then(|it| it.base_class.as_deref()),
            });
            if let Some(error) = classes.default_error(property) {
                described["default_error"] = error.to_string().into();
            }
            described
        })
        .collect();
    let bases: Vec<&str> = class.bases.iter().map(|base| &**base).collect();
    json!({ "name": *class.name, "hash": class.hash, "bases": bases, "properties": properties })
}
