//! `worldwire codegen`.

use std::path::PathBuf;

use worldwire_core::listed;
use worldwire_dissect::Definitions;
use worldwire_ki::schema::Protocols;
use worldwire_tera::schema::{Definition, Problem};

use super::tera::folder;
use crate::cli::{Codegen, CodegenBuiltIn, CodegenKi, CodegenPython, CodegenTera, Common};
use crate::definitions;
use crate::output::{Failure, shown, write_all};

pub(crate) fn run(arguments: &Codegen, common: &Common) -> Result<(), Failure> {
    match arguments {
        Codegen::Ki(arguments) => ki(arguments, worldwire_ki::codegen::rust, common),
        Codegen::Python(CodegenPython::Ki(arguments)) => {
            ki(arguments, worldwire_ki::codegen::python, common)
        }
        Codegen::Tera(arguments) => tera(arguments, Language::Rust, common),
        Codegen::Python(CodegenPython::Tera(arguments)) => {
            tera(arguments, Language::Python, common)
        }
        Codegen::Python(CodegenPython::Uru(arguments)) => {
            built_in(arguments, worldwire_uru::codegen::python)
        }
        Codegen::Python(CodegenPython::Mxo(arguments)) => {
            built_in(arguments, worldwire_mxo::codegen::python)
        }
    }
}

/// The language of the generated code.
enum Language {
    Rust,
    Python,
}

fn ki(
    CodegenKi { paths, select, target }: &CodegenKi,
    generate: fn(&Protocols, &[String]) -> worldwire_core::Result<String>,
    common: &Common,
) -> Result<(), Failure> {
    let mut definitions = match paths[..] {
        [] => Definitions::built_in(),
        _ => Definitions::none(),
    };
    let clean = definitions::add(&mut definitions, paths, common)?;
    let protocols = definitions.part::<Protocols>();
    if !clean {
        return Err(Failure::Input);
    }
    if protocols.iter().next().is_none() {
        return Err(none_in(paths, "KI message definitions"));
    }
    let source = generate(&protocols, select).map_err(|error| Failure::Run(error.to_string()))?;
    write_all(target, source.as_bytes())
}

fn tera(
    CodegenTera { paths, select, reading, target }: &CodegenTera,
    language: Language,
    common: &Common,
) -> Result<(), Failure> {
    let (set, clean) = folder::checked_set(paths, reading.options(), common)?;
    let is_empty = set.definitions().next().is_none();
    // A module without the faulty definitions would look complete.
    if set.problems().any(Problem::is_error) || (!clean && !is_empty) {
        return Err(Failure::Input);
    }
    if is_empty {
        return Err(none_in(paths, "TERA definitions"));
    }
    let chosen: Vec<&Definition> = match select[..] {
        [] => set.definitions().collect(),
        _ => select.iter().map(|word| folder::named(&set, word)).collect::<Result<_, _>>()?,
    };
    let parts = chosen.iter().map(|one| (one.name(), one.version(), one.plan()));
    let source = match language {
        Language::Rust => worldwire_tera::codegen::rust(parts),
        Language::Python => worldwire_tera::codegen::python(parts),
    };
    write_all(target, source.as_bytes())
}

/// Messages that need no definitions from the user.
fn built_in(
    CodegenBuiltIn { select, target }: &CodegenBuiltIn,
    generate: fn(&[String]) -> worldwire_core::Result<String>,
) -> Result<(), Failure> {
    let source = generate(select).map_err(|error| Failure::Run(error.to_string()))?;
    write_all(target, source.as_bytes())
}

/// The failure for paths that contain none of the required definitions.
fn none_in(paths: &[PathBuf], kind: &str) -> Failure {
    let paths = listed(paths.iter().map(|path| shown(path)));
    Failure::Run(format!("{paths}: contains no {kind}"))
}
