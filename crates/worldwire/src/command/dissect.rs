//! `worldwire dissect`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use worldwire_core::json::Style;
use worldwire_core::text::TextStyle;
use worldwire_core::{Limits, Tree};
use worldwire_dissect::filter::{Filter, Subject, UnknownField};
use worldwire_dissect::{Definitions, Format, Item, NoteKind, Scratch};

use super::capture;
use crate::cli::{Common, Dissect};
use crate::definitions;
use crate::output::{Failure, Output, say};

pub(crate) fn run(arguments: &Dissect, common: &Common) -> Result<(), Failure> {
    if arguments.threads > 0 {
        // Fails only when the threads are running already.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(arguments.threads).build_global();
    }
    let definitions = definitions::load(&arguments.capture.data, common)?;
    let filter = arguments.filter.as_deref();
    let filter = filter.map(|text| read_filter(text, &definitions, common)).transpose()?;
    let format = format(arguments, common);
    let limits = Limits::DEFAULT;
    if let Some(output) = &arguments.target.output
        && is_same_file(output, &arguments.capture.file)
    {
        let output = output.display();
        return Err(Failure::Run(format!("-o {output}: this is the capture itself")));
    }
    let needs_fields = filter.is_some() || !matches!(format, Format::Text { brief: true, .. });
    let mut output = Output::open(&arguments.target)?;
    // What would show more, and of how many messages.
    let advice: Mutex<BTreeMap<Cow<'static, str>, u64>> = Mutex::default();
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut String| {
        if arguments.stream.is_some_and(|stream| stream != item.stamp.stream) {
            return;
        }
        let name = &mut scratch.name;
        name.clear();
        item.push_name(name);
        let tree: Tree<'_> = core::mem::take(&mut scratch.tree).recycle();
        // Only fields are shown, and asked for, from it.
        let tree = if needs_fields { item.tree(tree, &limits) } else { tree };
        let subject = Subject {
            name,
            family: item.family,
            from: item.from.name(),
            stream: item.stamp.stream,
            packet: item.stamp.packet.unwrap_or(0),
            time: item.stamp.since.as_secs_f64(),
            length: item.bytes().len() as u64,
            tree: &tree,
        };
        // What cannot be read is never filtered away.
        let problem = item.note().is_some_and(|note| note.kind == NoteKind::Problem);
        if problem || filter.as_ref().is_none_or(|filter| filter.matches(&subject)) {
            format.write(item, name, &tree, out);
            if let Some(text) = item.advice()
                && let Ok(mut advice) = advice.lock()
            {
                // A hostile capture names as many descriptors as it has messages.
                if advice.len() < MOST_ADVICE || advice.contains_key(&text) {
                    *advice.entry(text).or_default() += 1;
                }
            }
        }
        scratch.tree = tree.recycle();
    };
    let (dissection, clean) =
        capture::read(&arguments.capture, common, definitions, show, |text: &String| {
            output.write(text.as_bytes())?;
            output.flush()
        })?;
    if let Some(stream) = arguments.stream {
        capture::conversation(&dissection, stream)?;
    }
    output.finish()?;
    let summary = dissection.summary();
    if !common.quiet {
        say(summary);
        for (text, messages) in advice.into_inner().unwrap_or_default() {
            say(format_args!("{messages} message{} {text}", if messages == 1 { "" } else { "s" }));
        }
    }
    if clean && summary.problems == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// So many kinds of advice are given.
const MOST_ADVICE: usize = 40;

/// Whether two paths lead to one regular file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| path.canonicalize().ok().filter(|path| path.is_file());
    file(one).is_some_and(|one| file(other) == Some(one))
}

/// Reads a filter, and reports names that no message and no field has.
fn read_filter(text: &str, definitions: &Definitions, common: &Common) -> Result<Filter, Failure> {
    let filter = Filter::parse(text).map_err(|error| Failure::Run(error.to_string()))?;
    if let Some((name, near)) = filter.unknown_names(definitions).into_iter().next() {
        let hint = match near {
            _ if Filter::is_field(name, definitions) => {
                let problem = format!(
                    "filter: `{name}` is a field: write `exists({name})` or `fields.{name}`"
                );
                return Err(Failure::Run(problem));
            }
            Some(near) => format!("; did you mean `{near}`?"),
            None => "; `worldwire codecs NAME` lists messages, a `*` matches anything".to_owned(),
        };
        return Err(Failure::Run(format!("filter: no message is called `{name}`{hint}")));
    }
    for (pattern, near) in filter.unknown_patterns(definitions) {
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        common.note("filter", &format!("no known message fits `{pattern}`{hint}"));
    }
    for field in filter.unknown_fields(definitions) {
        let UnknownField { name, nearest, is_certain } = field;
        let hint = nearest.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        if is_certain {
            let problem = format!("filter: no message asked for has a field `{name}`{hint}");
            return Err(Failure::Run(problem));
        }
        common.note("filter", &format!("the field `{name}` is not known{hint}"));
    }
    for value in filter.unknown_values(definitions) {
        if value.is_certain {
            return Err(Failure::Run(format!("filter: {value}")));
        }
        common.note("filter", &value.to_string());
    }
    Ok(filter)
}

fn format(arguments: &Dissect, common: &Common) -> Format {
    if arguments.json || arguments.json_safe {
        return Format::Json(Style { safe: arguments.json_safe });
    }
    let style = TextStyle {
        ranges: arguments.bytes,
        colour: common.colour(Some(&arguments.target)),
        longest: if arguments.full { 0 } else { TextStyle::default().longest },
        ..TextStyle::default()
    };
    Format::Text { brief: arguments.brief, style }
}
