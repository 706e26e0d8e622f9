//! `worldwire decode`.

use std::path::{Path, PathBuf};

use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::{Limits, Side};
use worldwire_dissect::{Codec, CodecOptions, catch_defect};

use crate::cli::{Common, Decode, SideArg};
use crate::output::{Failure, complain, print};
use crate::{definitions, input};

pub(crate) fn run(arguments: &Decode, common: &Common) -> Result<(), Failure> {
    let codec = Codec::named(&arguments.codec).map_err(|error| Failure::Run(error.to_string()))?;
    let (data, subject) = match (&arguments.hex, &arguments.file) {
        (Some(digits), _) => (input::hex(digits)?, "--hex".to_owned()),
        (None, Some(path)) => (input::read(path)?, path.display().to_string()),
        (None, None) => (input::read(Path::new("-"))?, "standard input".to_owned()),
    };
    let keys = input::keys(&arguments.context.keys, common)?;
    note_unused_keys(codec, &arguments.context.keys, common);
    let limits = Limits::DEFAULT;
    let definitions = definitions::load(&arguments.context.data, common)?;
    let options = CodecOptions {
        from: side(arguments.context.from),
        keys: &keys,
        definitions: &definitions,
        limits: &limits,
    };
    guarded((codec.name, &data, &subject), || {
        show(arguments, common, codec, (&data, &subject), &options)
    })
}

/// Reports a panic in `act` as a defect, with the codec and the bytes.
fn guarded(
    (codec, data, subject): (&str, &[u8], &str),
    act: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    catch_defect(act).unwrap_or_else(|defect| {
        complain(subject, &defect.report(&format!("decode {codec}"), data));
        Err(Failure::Input)
    })
}

/// Decodes the bytes and prints the result.
fn show(
    arguments: &Decode,
    common: &Common,
    codec: &Codec,
    (data, subject): (&[u8], &str),
    options: &CodecOptions<'_>,
) -> Result<(), Failure> {
    let tree = codec.decode(data, options);
    let mut out = String::new();
    if let Some(style) = arguments.json.style() {
        codec.write_json(&tree, options.from, style, &mut out);
        out.push('\n');
    } else {
        let style = TextStyle {
            ranges: arguments.bytes,
            colour: common.colour(None),
            longest: 0,
            ..TextStyle::default()
        };
        write_tree(&tree, style, &mut out);
    }
    print(&out)?;
    let remarks = codec.remarks(data, options);
    if !common.quiet {
        // An error already implies these remarks.
        for remark in tree.remarks().iter().filter(|_| tree.error().is_none()) {
            complain(subject, &format!("shown as bytes: {remark}"));
        }
        for remark in &remarks {
            complain(subject, &remark.text);
        }
    }
    match tree.error() {
        None if remarks.iter().any(|remark| remark.is_problem) => Err(Failure::Input),
        // A codec's own remarks state whether opaque fields are a problem.
        None if remarks.is_empty() && !tree.remarks().is_empty() => Err(Failure::Input),
        None => Ok(()),
        Some(error) => {
            // Text output shows the error inline; JSON cannot.
            if arguments.json.style().is_some() {
                complain(subject, &error.to_string());
            }
            Err(Failure::Input)
        }
    }
}

/// Reports that keys have no effect on a codec that uses none.
pub(super) fn note_unused_keys(codec: &Codec, keys: &[PathBuf], common: &Common) {
    if !keys.is_empty() && !codec.keyed {
        let name = codec.name;
        common.note("--keys", &format!("{name} uses no keys; `dissect` decrypts captures"));
    }
}

/// The side named on the command line.
pub(crate) fn side(from: SideArg) -> Side {
    match from {
        SideArg::Client => Side::Client,
        SideArg::Server => Side::Server,
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, guarded};

    #[test]
    fn a_panic_is_a_problem_of_the_input() {
        worldwire_dissect::quiet_defects();
        let outcome = guarded(("uru.auth", &[1, 2], "file"), || panic!("on purpose"));
        assert!(matches!(outcome, Err(Failure::Input)), "{outcome:?}");
        assert!(guarded(("uru.auth", &[], "file"), || Ok(())).is_ok());
    }
}
