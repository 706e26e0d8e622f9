//! `worldwire dissect`.

use worldwire_core::json::Style;
use worldwire_core::text::TextStyle;
use worldwire_core::{Limits, Tree};
use worldwire_dissect::{Format, Item, Scratch};

use super::capture;
use crate::cli::{Common, Dissect};
use crate::output::{Failure, Output};

pub(crate) fn run(arguments: &Dissect, common: &Common) -> Result<(), Failure> {
    if arguments.threads > 0 {
        // Fails only when the threads are running already.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(arguments.threads).build_global();
    }
    let format = format(arguments, common);
    let limits = Limits::DEFAULT;
    let mut output = Output::open(&arguments.target)?;
    let start = std::sync::OnceLock::new();
    let show = |item: &Item<'_>, scratch: &mut Scratch, out: &mut String| {
        if arguments.stream.is_some_and(|stream| stream != item.stamp.stream) {
            return;
        }
        let name = &mut scratch.name;
        name.clear();
        item.push_name(name);
        let tree: Tree<'_> = core::mem::take(&mut scratch.tree).recycle();
        let tree = item.tree(tree, &limits);
        let start = *start.get_or_init(|| item.stamp.time);
        format.write(item, name, &tree, start, out);
        scratch.tree = tree.recycle();
    };
    let (dissection, clean) = capture::read(&arguments.capture, common, show, |text| {
        output.write(text.as_bytes())?;
        output.flush()
    })?;
    output.finish()?;
    let summary = dissection.summary();
    if !common.quiet {
        anstream::eprintln!("{summary}");
    }
    if clean && summary.problems == 0 { Ok(()) } else { Err(Failure::Input) }
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
