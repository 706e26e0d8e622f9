//! `worldwire codegen`.

use worldwire_dissect::Definitions;

use crate::cli::{Codegen, Common};
use crate::input;
use crate::output::{Failure, write_all};

pub(crate) fn run(arguments: &Codegen, common: &Common) -> Result<(), Failure> {
    match arguments {
        Codegen::Ki { paths, select, target } => {
            let mut definitions = match paths[..] {
                [] => Definitions::built_in(),
                _ => Definitions::none(),
            };
            input::add_definitions(&mut definitions, paths, common)?;
            let source = worldwire_ki::codegen::rust(&definitions.ki, select)
                .map_err(|error| Failure::Run(error.to_string()))?;
            write_all(target, source.as_bytes())
        }
    }
}
