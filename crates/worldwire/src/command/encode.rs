//! `worldwire encode`.

use std::path::Path;

use worldwire_core::Limits;
use worldwire_core::json;
use worldwire_core::value::push_hex;
use worldwire_dissect::{Codec, CodecOptions};

use super::decode::side;
use crate::cli::{Common, Encode};
use crate::output::{Failure, complain, write_all};
use crate::{definitions, input};

pub(crate) fn run(arguments: &Encode, common: &Common) -> Result<(), Failure> {
    let codec = Codec::named(&arguments.codec).map_err(|error| Failure::Run(error.to_string()))?;
    let path = arguments.file.as_deref().unwrap_or_else(|| Path::new("-"));
    let subject = match arguments.file {
        Some(_) => path.display().to_string(),
        None => "standard input".to_owned(),
    };
    let text = input::read_text(path)?;
    let keys = input::keys(arguments.keys.as_deref())?;
    let limits = Limits::DEFAULT;
    let definitions = definitions::load(&arguments.data, common)?;
    let options = CodecOptions {
        from: side(arguments.from),
        keys: &keys,
        definitions: &definitions,
        limits: &limits,
    };
    let json = json::parse(&text).map_err(|error| {
        complain(&subject, &format!("invalid JSON: {error}"));
        Failure::Input
    })?;
    let bytes = codec.encode(&json, &options).map_err(|error| {
        complain(&subject, &error.to_string());
        Failure::Input
    })?;
    if !arguments.hex {
        return write_all(&arguments.target, &bytes);
    }
    let mut out = String::new();
    push_hex(&mut out, &bytes);
    out.push('\n');
    write_all(&arguments.target, out.as_bytes())
}
