//! `worldwire codecs`.

use std::fmt::Write as _;

use worldwire_core::MessageInfo;
use worldwire_dissect::Codec;

use crate::cli::{Codecs, Common};
use crate::output::{Failure, print};

pub(crate) fn run(arguments: &Codecs, _: &Common) -> Result<(), Failure> {
    let mut out = String::new();
    match &arguments.name {
        None => {
            for codec in Codec::all() {
                let _ = writeln!(out, "{:<18} {}", codec.name, codec.about);
            }
        }
        Some(name) => {
            let codec = Codec::named(name).map_err(|error| Failure::Run(error.to_string()))?;
            let _ = writeln!(out, "{}: {}", codec.name, codec.about);
            for messages in codec.tables() {
                messages.iter().for_each(|message| describe(message, &mut out));
            }
        }
    }
    print(&out)
}

fn describe(message: &MessageInfo, out: &mut String) {
    let _ = writeln!(out, "\n{} {} ({})", message.number, message.name, message.sender);
    for line in message.doc.lines() {
        let _ = writeln!(out, "    {}", line.trim());
    }
    for field in (message.fields)() {
        let _ = writeln!(out, "  {:<24} {:<34} {}", field.name, field.layout, field.doc.trim());
    }
}
