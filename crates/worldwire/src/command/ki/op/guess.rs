//! `worldwire ki op guess`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use worldwire_core::value::parse_hex;
use worldwire_ki::object::{
    COMPACT, CoreTable, FLAG_NAMES, HUMAN_READABLE, MAGIC, Object, ObjectCodec, ObjectOptions,
    STATEFUL, ZLIB,
};

use super::stream;
use crate::cli::Common;
use crate::output::{Failure, complain, print};
use crate::{input, types};

/// A way of reading that works.
struct Way {
    options: ObjectOptions,
    object: Object,
}

pub(super) fn run(
    file: Option<&Path>,
    hex: Option<&str>,
    lists: &[PathBuf],
    hints: &[PathBuf],
    json: bool,
    common: &Common,
) -> Result<(), Failure> {
    let (bytes, subject) = match (hex, file) {
        (Some(hex), _) => {
            let wanted = "--hex: wanted an even number of hexadecimal digits";
            let bytes = parse_hex(hex).ok_or_else(|| Failure::Run(wanted.to_owned()))?;
            (bytes, "--hex".to_owned())
        }
        (None, Some(path)) => (input::read(path)?, path.display().to_string()),
        (None, None) => (input::read(Path::new("-"))?, "standard input".to_owned()),
    };
    let classes = types::load(lists, common)?;
    let hints = stream::hints(hints)?;
    stream::tell_unknown(&hints, &classes, common);
    let mut ways: Vec<Way> = Vec::new();
    for options in all(&bytes, hints.core()) {
        let codec = ObjectCodec::new(&classes, options.clone());
        let mut object = Object::new();
        if codec.decode_all(&bytes, &mut object).is_err() {
            continue;
        }
        // The plainest way comes first; others that read the same tell nothing new.
        if !ways.iter().any(|way| way.object == object) {
            ways.push(Way { options, object });
        }
    }
    // What is read by accident is small.
    ways.sort_by_key(|way| core::cmp::Reverse(way.object.len()));
    if ways.is_empty() {
        complain(
            &subject,
            "no combination of flags, mask and form reads it as an object of the type list",
        );
        return Err(Failure::Input);
    }
    let mut out = String::new();
    for Way { options, object } in &ways {
        let class = object.root(&classes).and_then(|root| root.class());
        let name = class.map_or("null", |class| &class.name);
        let values = object.len();
        if json {
            let line = json!({
                "class": name, "values": values, "bind": options.magic, "deep": options.deep,
                "flags": options.flags, "mask": options.mask, "envelope": options.envelope,
                "core": options.core.is_some(), "skip-deprecated": options.skip_deprecated,
            });
            let _ = writeln!(out, "{line}");
        } else {
            let plural = if values == 1 { "" } else { "s" };
            let _ = writeln!(out, "{values:>6} value{plural:<1}  {name}: {}", words(options));
        }
    }
    print(&out)
}

/// Every way of reading, the plainest first.
fn all(bytes: &[u8], core: &Arc<CoreTable>) -> Vec<ObjectOptions> {
    if bytes.starts_with(MAGIC) {
        return vec![ObjectOptions::file()];
    }
    let mut all = Vec::new();
    for envelope in [false, true] {
        for core in [None, Some(core)] {
            for deep in [false, true] {
                for flags in flags() {
                    // What is deep says itself what there is.
                    let masks: &[u32] = if deep { &[0x18] } else { &[0x18, 0x1c, 1, 7, 0x1f, 0] };
                    for mask in masks {
                        for skip_deprecated in [false, true] {
                            if deep && skip_deprecated {
                                continue;
                            }
                            all.push(ObjectOptions {
                                flags,
                                mask: *mask,
                                deep,
                                envelope,
                                core: core.cloned(),
                                skip_deprecated,
                                ..ObjectOptions::default()
                            });
                        }
                    }
                }
            }
        }
    }
    all
}

/// The flags that a stream may have; those of a stateful one are its own.
fn flags() -> impl Iterator<Item = u32> {
    let plain = [0, COMPACT, HUMAN_READABLE, COMPACT | HUMAN_READABLE];
    let packed = plain.map(|flags| flags | ZLIB);
    plain.into_iter().chain([STATEFUL]).chain(packed)
}

/// The options as arguments of `ki op decode`.
fn words(options: &ObjectOptions) -> String {
    if options.magic {
        return "a BINd file".to_owned();
    }
    let mut words = vec![if options.deep { "--deep" } else { "--shallow" }.to_owned()];
    if options.flags != 0 {
        words.push(format!("--flags {}", options.flags));
    }
    if !options.deep {
        words.push(format!("--mask {:#x}", options.mask));
    }
    let marks = [
        (options.envelope, "--envelope"),
        (options.core.is_some(), "--core"),
        (options.skip_deprecated, "--skip-deprecated"),
    ];
    words.extend(marks.into_iter().filter(|mark| mark.0).map(|mark| mark.1.to_owned()));
    let (names, _) = FLAG_NAMES.flags(u64::from(options.flags));
    if !names.is_empty() {
        words.push(format!("({})", names.join(", ").to_lowercase()));
    }
    words.join(" ")
}
