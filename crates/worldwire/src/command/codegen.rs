//! `worldwire codegen`.

use worldwire_dissect::Definitions;
use worldwire_tera::schema::{Definition, Problem};

use super::tera::folder;
use crate::cli::{Codegen, Common};
use crate::definitions;
use crate::output::{Failure, write_all};

pub(crate) fn run(arguments: &Codegen, common: &Common) -> Result<(), Failure> {
    match arguments {
        Codegen::Ki { paths, select, target } => {
            let mut definitions = match paths[..] {
                [] => Definitions::built_in(),
                _ => Definitions::none(),
            };
            definitions::add(&mut definitions, paths, common)?;
            let source = worldwire_ki::codegen::rust(&definitions.part(), select)
                .map_err(|error| Failure::Run(error.to_string()))?;
            write_all(target, source.as_bytes())
        }
        Codegen::Tera { paths, select, reading, target } => {
            let set = folder::set(paths, reading.options(), common)?;
            let chosen: Vec<&Definition> = match select[..] {
                [] => set.definitions().collect(),
                _ => {
                    select.iter().map(|word| folder::named(&set, word)).collect::<Result<_, _>>()?
                }
            };
            let parts = chosen.iter().map(|one| (one.name(), one.version(), one.plan()));
            write_all(target, worldwire_tera::codegen::rust(parts).as_bytes())?;
            // Definitions with errors have been reported and are omitted.
            let clean = !set.problems().any(Problem::is_error);
            if clean { Ok(()) } else { Err(Failure::Input) }
        }
    }
}
