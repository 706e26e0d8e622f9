//! `worldwire ki op guess`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use worldwire_core::Limits;
use worldwire_ki::object::{
    COMPACT, CoreTable, FLAG_NAMES, HUMAN_READABLE, MAGIC, Object, ObjectCodec, ObjectOptions,
    STATEFUL, ZLIB,
};
use worldwire_ki::schema::classes::Classes;

use super::inputs::{self, Input};
use super::stream;
use crate::cli::{Common, KiOpGuess};
use crate::command::ki::loader::Loader;
use crate::command::memory::Memory;
use crate::command::work;
use crate::output::{Failure, complain, counted, print, printable, say};
use crate::{input, types};

/// A combination of options that can decode the input.
struct Way {
    options: ObjectOptions,
    object: Object,
}

pub(super) fn run(arguments: &KiOpGuess, common: &Common) -> Result<(), Failure> {
    let classes = types::load(&arguments.types, common)?;
    let hints = stream::hints(&arguments.hints)?;
    stream::tell_unknown(&hints, &classes, common);
    let guess = Guess { classes: &classes, core: hints.core(), json: arguments.json };
    if let Some(digits) = &arguments.hex {
        return guess.one("--hex", &input::hex(digits)?);
    }
    let standard_input = [PathBuf::from("-")];
    let paths: &[PathBuf] = match &arguments.inputs[..] {
        [] => &standard_input,
        paths => paths,
    };
    inputs::with(paths, &Limits::DEFAULT, |inputs| match inputs {
        [only] if !only.is_found => guess.one(&only.subject(), &only.open(&mut Loader::alone())?),
        _ => guess.several(inputs, arguments.threads, common),
    })
}

struct Guess<'g> {
    classes: &'g Classes,
    core: &'g Arc<CoreTable>,
    json: bool,
}

impl Guess<'_> {
    /// All combinations that can decode these bytes.
    fn one(&self, subject: &str, bytes: &[u8]) -> Result<(), Failure> {
        let ways = self.ways(bytes);
        if ways.is_empty() {
            complain(
                subject,
                "no combination of flags, mask and form decodes it as an object of a class in the \
                 type list",
            );
            return Err(Failure::Input);
        }
        let mut out = String::new();
        ways.iter().for_each(|way| self.line(None, way, &mut out));
        print(&out)
    }

    /// The most likely combination for each decodable input.
    fn several(
        &self,
        inputs: &[Input<'_>],
        threads: usize,
        common: &Common,
    ) -> Result<(), Failure> {
        let bar = work::progress(inputs.len(), common);
        let memory = Memory::new();
        let need = || Loader::new(&memory, Loader::OBJECT);
        let look = |loader: &mut Loader<'_>, input: &Input<'_>| {
            let bytes = input.read(loader);
            bar.inc(1);
            Ok(match bytes? {
                None => None,
                Some(bytes) => self.ways(&bytes).into_iter().next(),
            })
        };
        let pool = work::pool(threads)?;
        let found = work::share(&pool, inputs, Input::size, need, look);
        bar.finish_and_clear();
        let mut out = String::new();
        let (mut read, mut failed) = (0_usize, 0);
        for (input, way) in inputs.iter().zip(found) {
            match way {
                Ok(Some(way)) => {
                    read += 1;
                    self.line(Some(&input.subject()), &way, &mut out);
                }
                Ok(None) => {}
                Err(fault) => {
                    let fault: String = fault;
                    failed += 1;
                    complain(&input.subject(), &fault);
                }
            }
        }
        print(&out)?;
        if !common.quiet {
            let others = inputs.len() - read - failed;
            say(format_args!("{}, {others} skipped, {failed} failed", counted(read, "object")));
        }
        if failed == 0 { Ok(()) } else { Err(Failure::Input) }
    }

    /// The combinations with distinct results, most likely first.
    fn ways(&self, bytes: &[u8]) -> Vec<Way> {
        let mut ways: Vec<Way> = Vec::new();
        for options in all(bytes, self.core) {
            let codec = ObjectCodec::new(self.classes, options.clone());
            let mut object = Object::new();
            if codec.decode_all(bytes, &mut object).is_err() {
                continue;
            }
            // The simplest combination comes first; others with the same result add nothing.
            if !ways.iter().any(|way| way.object == object) {
                ways.push(Way { options, object });
            }
        }
        // Accidental matches yield small objects.
        ways.sort_by_key(|way| core::cmp::Reverse(way.object.len()));
        ways
    }

    fn line(&self, file: Option<&str>, Way { options, object }: &Way, out: &mut String) {
        let class = object.root(self.classes).and_then(|root| root.class());
        let name = class.map_or("null", |class| &class.name);
        let values = object.len();
        if self.json {
            let mut line = json!({
                "class": name, "values": values, "bind": options.magic, "deep": options.deep,
                "flags": options.flags, "mask": options.mask, "envelope": options.envelope,
                "core": options.core.is_some(), "skip-deprecated": options.skip_deprecated,
            });
            if let (Some(file), Some(line)) = (file, line.as_object_mut()) {
                line.insert("file".to_owned(), file.into());
            }
            let _ = writeln!(out, "{line}");
        } else {
            let plural = if values == 1 { "" } else { "s" };
            let file = file.map_or_else(String::new, |file| format!("{}: ", printable(file)));
            let way = words(options);
            let _ = writeln!(out, "{values:>6} value{plural:<1}  {file}{name}: {way}");
        }
    }
}

/// Every combination, simplest first.
fn all(bytes: &[u8], core: &Arc<CoreTable>) -> Vec<ObjectOptions> {
    if bytes.starts_with(MAGIC) {
        return vec![ObjectOptions::file()];
    }
    let mut all = Vec::new();
    for envelope in [false, true] {
        for core in [None, Some(core)] {
            for deep in [false, true] {
                for flags in flags() {
                    // Deep streams are self-describing.
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

/// The flags to try. A stateful stream carries its own flags, so it is tried without others.
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
