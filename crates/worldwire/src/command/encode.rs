//! `worldwire encode`.

use std::collections::BTreeSet;
use std::path::Path;

use worldwire_core::Limits;
use worldwire_core::json;
use worldwire_core::value::push_hex;
use worldwire_dissect::{Codec, CodecOptions, Line, TeraDefinitions};
use worldwire_tera::message::Leniency;

use super::decode::side;
use crate::cli::{Common, Encode};
use crate::output::{Failure, complain, write_all};
use crate::{definitions, input};

pub(crate) fn run(arguments: &Encode, common: &Common) -> Result<(), Failure> {
    let codec = arguments.codec.as_deref().map(Codec::named).transpose();
    let codec = codec.map_err(|error| Failure::Run(error.to_string()))?;
    let path = arguments.lines.as_deref().or(arguments.file.as_deref());
    let path = path.unwrap_or_else(|| Path::new("-"));
    let subject = match path.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => path.display().to_string(),
    };
    let text = input::read_text(path)?;
    let keys = input::keys(arguments.keys.as_deref())?;
    let limits = Limits::DEFAULT;
    let mut definitions = definitions::load(&arguments.data, common)?;
    if arguments.lenient {
        definitions.edit(|tera: &mut TeraDefinitions| tera.set_leniency(Leniency::Lenient));
    }
    let options = CodecOptions {
        from: side(arguments.from),
        keys: &keys,
        definitions: &definitions,
        limits: &limits,
    };
    let mut said = BTreeSet::new();
    let messages = match codec {
        Some(codec) => vec![one(codec, &text, &subject, &options, &mut said)?],
        None => lines(&text, &subject, &options, &mut said)?,
    };
    for text in said {
        common.note(&subject, &text);
    }
    if !arguments.hex {
        return write_all(&arguments.target, &messages.concat());
    }
    let mut out = String::new();
    for bytes in &messages {
        push_hex(&mut out, bytes);
        out.push('\n');
    }
    write_all(&arguments.target, out.as_bytes())
}

/// The bytes of one JSON document.
fn one(
    codec: &Codec,
    text: &str,
    subject: &str,
    options: &CodecOptions<'_>,
    said: &mut BTreeSet<String>,
) -> Result<Vec<u8>, Failure> {
    let json = json::parse(text).map_err(|error| {
        complain(subject, &format!("invalid JSON: {error}"));
        Failure::Input
    })?;
    if codec.name == "tera.packet" {
        said.extend(options.definitions.part::<TeraDefinitions>().deprecation(&json));
    }
    codec.encode(&json, options).map_err(|error| {
        // Such a line has keys that no codec has.
        let is_line = ["family", "name", "stream"].iter().all(|key| json.get(key).is_some());
        let hint = if is_line { "; for lines of `dissect --json` there is --lines" } else { "" };
        complain(subject, &format!("{error}{hint}"));
        Failure::Input
    })
}

/// The bytes of each message of a dissection. Nothing is written unless all of them can be encoded.
fn lines(
    text: &str,
    subject: &str,
    options: &CodecOptions<'_>,
    said: &mut BTreeSet<String>,
) -> Result<Vec<Vec<u8>>, Failure> {
    let tera = options.definitions.part::<TeraDefinitions>();
    let mut messages = Vec::new();
    let mut is_whole = true;
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let mut problem = |problem: String| {
            complain(subject, &format!("line {number}: {problem}"));
            is_whole = false;
        };
        let json = match json::parse(line) {
            Ok(json) => json,
            Err(error) => {
                problem(format!("invalid JSON: {error}"));
                continue;
            }
        };
        if json.get("family").is_some_and(|family| family == "tera") {
            said.extend(tera.deprecation(&json));
        }
        match Line::parse(&json)
            .and_then(|line| Ok(line.map(|line| line.encode(options)).transpose()?.flatten()))
        {
            Ok(message) => messages.extend(message),
            Err(error) => problem(error.to_string()),
        }
    }
    if is_whole { Ok(messages) } else { Err(Failure::Input) }
}
