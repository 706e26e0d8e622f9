//! `worldwire encode`.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use worldwire_core::Limits;
use worldwire_core::json::{self, Parser};
use worldwire_core::value::push_hex;
use worldwire_dissect::{Codec, CodecOptions, Line, TeraDefinitions};
use worldwire_tera::message::Leniency;

use super::decode::{note_unused_keys, side};
use crate::cli::{Common, Encode};
use crate::output::{Failure, complain, write_all};
use crate::{definitions, input};

pub(crate) fn run(arguments: &Encode, common: &Common) -> Result<(), Failure> {
    let (codec, path) = match &arguments.lines {
        Some(lines) => (None, lines_of(arguments.codec.as_deref(), lines)?),
        None => {
            let file = arguments.file.as_deref();
            (arguments.codec.as_deref(), file.unwrap_or_else(|| Path::new("-")))
        }
    };
    let codec = codec.map(Codec::named).transpose();
    let codec = codec.map_err(|error| Failure::Run(error.to_string()))?;
    let subject = match path.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => path.display().to_string(),
    };
    let keys = input::keys(&arguments.context.keys, common)?;
    let limits = Limits::DEFAULT;
    let mut definitions = definitions::load(&arguments.context.data, common)?;
    if arguments.lenient {
        definitions.edit(|tera: &mut TeraDefinitions| tera.set_leniency(Leniency::Lenient));
    }
    let options = CodecOptions {
        from: side(arguments.context.from),
        keys: &keys,
        definitions: &definitions,
        limits: &limits,
    };
    let mut said = BTreeSet::new();
    let mut encoded = Encoded { bytes: Vec::new(), is_hex: arguments.hex };
    match codec {
        Some(codec) => {
            note_unused_keys(codec, &arguments.context.keys, common);
            let text = input::read_text(path)?;
            encoded.push(one(codec, text, &subject, &options, &mut said)?);
        }
        None => lines(path, &subject, &options, &mut said, &mut encoded)?,
    }
    for text in said {
        common.note(&subject, &text);
    }
    write_all(&arguments.target, &encoded.bytes)
}

/// The file of lines, which may be given as the first argument, in place of a codec, instead of
/// after `--lines`.
fn lines_of<'p>(word: Option<&'p str>, lines: &'p Path) -> Result<&'p Path, Failure> {
    let Some(word) = word else { return Ok(lines) };
    let path = Path::new(word);
    if lines == Path::new("-") && (path.exists() || Codec::named(word).is_err()) {
        return Ok(path);
    }
    let problem = format!("--lines takes messages of any codec from one file; omit {word}");
    Err(Failure::Run(problem))
}

/// The messages encoded so far.
struct Encoded {
    bytes: Vec<u8>,
    /// Whether each message is a line of digits.
    is_hex: bool,
}

impl Encoded {
    fn push(&mut self, message: Vec<u8>) {
        if self.is_hex {
            let mut line = String::with_capacity(2 * message.len() + 1);
            push_hex(&mut line, &message);
            line.push('\n');
            self.bytes.extend_from_slice(line.as_bytes());
        } else if self.bytes.is_empty() {
            // A single message may be large.
            self.bytes = message;
        } else {
            self.bytes.extend_from_slice(&message);
        }
    }
}

/// The bytes of one JSON document.
fn one(
    codec: &Codec,
    text: String,
    subject: &str,
    options: &CodecOptions<'_>,
    said: &mut BTreeSet<String>,
) -> Result<Vec<u8>, Failure> {
    let json = json::parse(&text).map_err(|error| {
        complain(subject, &format!("invalid JSON: {error}"));
        Failure::Input
    })?;
    drop(text);
    if codec.name == "tera.packet" {
        said.extend(options.definitions.part::<TeraDefinitions>().remarks_to_encode(&json));
    }
    // A line of a dissection has keys that no codec uses.
    let is_line = ["family", "name", "stream"].iter().all(|key| json.get(key).is_some());
    codec.encode(json, options).map_err(|error| {
        let hint = if is_line { "; for lines of `dissect --json`, use --lines" } else { "" };
        complain(subject, &format!("{error}{hint}"));
        Failure::Input
    })
}

/// The bytes of each message of a dissection, one line at a time. Nothing is written unless all of
/// them can be encoded.
fn lines(
    path: &Path,
    subject: &str,
    options: &CodecOptions<'_>,
    said: &mut BTreeSet<String>,
    encoded: &mut Encoded,
) -> Result<(), Failure> {
    let most = options.limits.file_bytes;
    let mut input = BufReader::new(input::open(path)?);
    let (mut line, mut is_whole) = (Vec::new(), true);
    let (mut parser, mut counters) = (Parser::default(), HashMap::new());
    for number in 1_u64.. {
        line.clear();
        let read = input.by_ref().take(most + 1).read_until(b'\n', &mut line);
        if read.map_err(|error| Failure::io(path, &error))? == 0 {
            break;
        }
        if line.len() as u64 > most {
            let problem = format!("line {number}: longer than {most} bytes (file bytes)");
            return Err(Failure::Run(format!("{subject}: {problem}")));
        }
        match encoded_line(&line, &mut parser, options, said, &mut counters) {
            Ok(message) => message.into_iter().for_each(|message| encoded.push(message)),
            Err(problem) => {
                complain(subject, &format!("line {number}: {problem}"));
                is_whole = false;
            }
        }
    }
    if is_whole { Ok(()) } else { Err(Failure::Input) }
}

/// The bytes of the message on a line; `None` for notes and blank lines.
fn encoded_line(
    line: &[u8],
    parser: &mut Parser,
    options: &CodecOptions<'_>,
    said: &mut BTreeSet<String>,
    counters: &mut HashMap<u16, u32>,
) -> Result<Option<Vec<u8>>, String> {
    let line = str::from_utf8(line)
        .map_err(|error| format!("at byte {}: not UTF-8 text", error.valid_up_to()))?;
    if line.trim().is_empty() {
        return Ok(None);
    }
    let json = parser.parse(line.trim_end()).map_err(|error| format!("invalid JSON: {error}"))?;
    let tera = options.definitions.part::<TeraDefinitions>();
    let is_tera = json.get("family").is_some_and(|family| family == "tera");
    if is_tera {
        said.extend(tera.remarks_to_encode(&json));
    }
    let message = Line::parse(&json)
        .and_then(|line| Ok(line.map(|line| line.encode(options)).transpose()?.flatten()));
    let mut message = message.map_err(|error| error.to_string())?;
    if let Some(message) = message.as_mut().filter(|_| is_tera) {
        tera.number(&json, message, counters);
    }
    Ok(message)
}
