//! `worldwire ki nav`.

use std::fmt::Write as _;

use serde_json::json;
use worldwire_ki::file::nav::{Directions, NavFile, NavGraph};

use super::found::{Found, Kind, LIMITS, has_ending, only};
use super::inside::meant;
use crate::cli::{Common, KiConversion, KiNav};
use crate::output::{Failure, complain, print, printable, write_all};

static NAV: Kind = Kind {
    what: "NAV file",
    is_named: |name| has_ending(name, "nav"),
    is: |bytes| NavFile::strict(bytes, &LIMITS).is_ok_and(|nav| !nav.nodes.is_empty()),
};

pub(super) fn run(command: &KiNav, common: &Common) -> Result<(), Failure> {
    match command {
        KiNav::Check(files) => super::check(&files.paths, &NAV, common, |found| {
            let (nav, mut said) = NavFile::open(found.bytes, &LIMITS)?;
            said.extend(nav.check());
            Ok(said)
        }),
        KiNav::Draw(KiConversion { path, target }) => {
            target.ends_in("SVG", &["svg"])?;
            let only = only(path, &NAV, common)?;
            let found = only.found();
            write_all(target, open(&found)?.to_svg(&found.title).as_bytes())
        }
        KiNav::Route { path, from, to, both, json } => {
            let only = only(path, &NAV, common)?;
            let found = only.found();
            route(&found.title, &open(&found)?, (from, to), directions(*both), *json)
        }
        KiNav::Graphml { path, both, target } => {
            target.ends_in("GraphML", &["graphml", "xml"])?;
            let only = only(path, &NAV, common)?;
            write_all(target, open(&only.found())?.to_graphml(directions(*both)).as_bytes())
        }
    }
}

fn directions(both: bool) -> Directions {
    if both { Directions::Both } else { Directions::One }
}

fn open<'b>(found: &Found<'b>) -> Result<NavFile<'b>, Failure> {
    super::opened(&NAV, found, NavFile::open(found.bytes, &LIMITS))
}

/// A hint for a missing node: the most similar name, if there is one.
fn hint(nav: &NavFile<'_>, what: &str) -> String {
    let Some(names) = &nav.zone_names else {
        let is_id = what.parse::<u16>().is_ok();
        return if is_id { "" } else { "; its nodes have only IDs" }.to_owned();
    };
    let names: Vec<_> = names.iter().map(|name| name.to_lossy()).collect();
    let whole = names.iter().map(|name| &**name);
    // A zone may be given by the last part of its name.
    let near = match what.contains('/') {
        true => meant(what, whole),
        false => meant(what, whole.map(|name| name.rsplit('/').next().unwrap_or(name))),
    };
    near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"))
}

/// Prints the nodes of the path, each with its distance from the start.
fn route(
    title: &str,
    nav: &NavFile<'_>,
    (from, to): (&str, &str),
    directions: Directions,
    json: bool,
) -> Result<(), Failure> {
    let graph = NavGraph::new(nav, directions);
    let find = |what: &str| {
        graph.find(what).ok_or_else(|| {
            complain(title, &format!("no node \"{what}\"{}", hint(nav, what)));
            Failure::Input
        })
    };
    let (start, end) = (find(from)?, find(to)?);
    let Some(route) = graph.route(start, end) else {
        let hint = match directions {
            Directions::One => "; --both follows links in both directions",
            Directions::Both => "",
        };
        complain(title, &format!("no path from {from} to {to}{hint}"));
        return Err(Failure::Input);
    };
    let mut out = String::new();
    for (index, length) in route.nodes.iter().zip(&route.lengths) {
        let Some(node) = nav.nodes.get(*index) else { continue };
        let name = nav.name(node.id).map(|name| name.to_lossy());
        if json {
            let line = json!({"id": node.id, "name": name, "length": length});
            let _ = writeln!(out, "{line}");
        } else {
            let name = name.map_or_else(String::new, |name| printable(&name));
            let line = match nav.zone_names {
                Some(_) => format!("{length:>5}  {:>5}  {name}", node.id),
                None => format!("{length:>10.1}  {:>5}", node.id),
            };
            let _ = writeln!(out, "{line}");
        }
    }
    print(&out)
}
