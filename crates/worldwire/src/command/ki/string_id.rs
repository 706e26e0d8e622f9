//! `worldwire ki string-id`.

use std::fmt::Write as _;

use worldwire_core::json::string;
use worldwire_ki::{Dictionary, string_id};

use crate::cli::{Common, KiStringId};
use crate::output::{Failure, complain, print};
use crate::{definitions, input};

pub(crate) fn run(arguments: &KiStringId, common: &Common) -> Result<(), Failure> {
    let mut out = String::new();
    if arguments.find.is_empty() {
        for text in &arguments.texts {
            line(string_id(text.as_bytes()), text, arguments.json, &mut out);
        }
        return print(&out);
    }
    let mut dictionary = Dictionary::new();
    for path in &arguments.words {
        input::read_text(path)?.lines().for_each(|word| dictionary.add(word.trim()));
    }
    let definitions = definitions::load_from(&arguments.data, common)?;
    definitions
        .part::<worldwire_ki::schema::Protocols>()
        .words()
        .for_each(|word| dictionary.add(word));
    let mut missing = false;
    for id in &arguments.find {
        let texts = dictionary.find(*id);
        if texts.is_empty() {
            missing = true;
            complain(
                &id.to_string(),
                "no known word has this id; give more with --words or --data",
            );
        }
        texts.iter().for_each(|text| line(*id, text, arguments.json, &mut out));
    }
    print(&out)?;
    if missing { Err(Failure::Input) } else { Ok(()) }
}

fn line(id: u32, text: &str, json: bool, out: &mut String) {
    if json {
        let _ = write!(out, "{{\"id\":{id},\"text\":");
        string(text, out);
        out.push_str("}\n");
    } else {
        let _ = writeln!(out, "{id:<10} {text}");
    }
}
