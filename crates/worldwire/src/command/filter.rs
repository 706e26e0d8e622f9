//! `worldwire filter`.

use worldwire_dissect::filter::{Filter, Resolver};

use crate::cli::{Common, FILTERS, FilterArguments};
use crate::definitions;
use crate::output::{Failure, complain, print, printable, say};

/// Explains the language or checks a filter.
pub(crate) fn run(arguments: &FilterArguments, common: &Common) -> Result<(), Failure> {
    let Some(text) = &arguments.filter else { return print(FILTERS) };
    let definitions = definitions::load(&arguments.data, common)?;
    let filter = Filter::parse(text).map_err(|error| {
        // The following lines show where the error is.
        let lines: Vec<String> = error.to_string().lines().map(printable).collect();
        say(format_args!("worldwire: {}", lines.join("\n")));
        Failure::Input
    })?;
    let resolver = Resolver::new(&definitions);
    let filter = filter.resolve(&resolver);
    let mut is_clean = true;
    let checked = filter.check(&resolver, &mut |remark| {
        is_clean = false;
        complain("filter", remark);
    });
    if let Err(problem) = checked {
        complain("filter", &problem.to_string());
        return Err(Failure::Input);
    }
    if !is_clean {
        return Err(Failure::Input);
    }
    print("valid\n")
}
