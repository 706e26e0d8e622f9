//! Writes every target's seeds to `FOLDER/TARGET/` and its dictionary to `FOLDER/TARGET.dict`, and
//! prints the names of the targets. Names after the folder select targets.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        eprintln!("usage: seeds FOLDER [TARGET...]");
        return ExitCode::from(2);
    };
    let names: Vec<String> = arguments.collect();
    let selected =
        names.iter().map(|name| worldwire_fuzz::find(name)).collect::<Result<Vec<_>, _>>();
    let targets = match selected {
        Ok(selected) if selected.is_empty() => worldwire_fuzz::targets().collect(),
        Ok(selected) => selected,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    for target in targets {
        if let Err(error) = worldwire_fuzz::export(target, Path::new(&folder)) {
            eprintln!("{folder}: {error}");
            return ExitCode::FAILURE;
        }
        println!("{}", target.name);
    }
    ExitCode::SUCCESS
}
