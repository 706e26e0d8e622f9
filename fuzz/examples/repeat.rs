//! Runs a target once on each input given: a file, or `hex:` followed by hexadecimal digits.
//! It needs neither libFuzzer nor a C++ compiler.

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        eprintln!("usage: repeat TARGET (FILE | hex:DIGITS)...");
        return ExitCode::from(2);
    };
    let target = match worldwire_fuzz::find(&name) {
        Ok(target) => target,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    for input in arguments {
        let bytes = match input.strip_prefix("hex:") {
            Some(digits) => worldwire_core::value::parse_hex(digits)
                .ok_or_else(|| "not hexadecimal digits".to_owned()),
            None => std::fs::read(&input).map_err(|error| format!("{input}: {error}")),
        };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(why) => {
                eprintln!("{why}");
                return ExitCode::from(2);
            }
        };
        let start = Instant::now();
        (target.run)(&bytes);
        println!("{} bytes: passed in {:?}", bytes.len(), start.elapsed());
    }
    ExitCode::SUCCESS
}
