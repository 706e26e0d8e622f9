//! Prints the chat of a captured Uru session. The sample is encrypted, so it needs a key file:
//!
//! ```sh
//! cargo run -p worldwire-dissect --example chat samples/uru-age.pcapng samples/uru-keys.toml
//! ```

use std::error::Error;
use std::fs::{File, read_to_string};
use std::io::BufReader;
use std::process::ExitCode;

use worldwire_capture::{CaptureReader, Record};
use worldwire_core::Limits;
use worldwire_dissect::{Dissection, Item, Keys, Options, Scratch};

/// The path of the chat inside a `PropagateBuffer` message, as `worldwire dissect` prints it.
const CHAT: &str = "fields.buffer.message.stream.payload";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(capture) = arguments.next() else {
        eprintln!("usage: chat CAPTURE [KEYS]");
        return ExitCode::from(2);
    };
    match print_chat(&capture, arguments.next().as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chat: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_chat(capture: &str, keys: Option<&str>) -> Result<(), Box<dyn Error>> {
    let keys = match keys {
        Some(path) => Keys::parse(&read_to_string(path)?)?,
        None => Keys::none(),
    };
    let mut capture = CaptureReader::new(BufReader::new(File::open(capture)?), &Limits::DEFAULT)?;
    let mut dissection = Dissection::new(Options { keys, ..Options::default() });
    let mut lines = String::new();
    while let Some(record) = capture.next()? {
        if let Record::Packet(packet) = record
            && dissection.push(&packet)
        {
            // A batch is full. Decode it and print its lines before reading on.
            dissection.run(&show, &mut lines, |_| ());
            print!("{lines}");
            lines.clear();
        }
    }
    // No more packets follow: decode the rest.
    dissection.end();
    dissection.run(&show, &mut lines, |_| ());
    print!("{lines}");
    Ok(())
}

/// Appends a line if the item is a chat message. Clients send chat and servers forward it, so a
/// capture can hold the same line twice.
fn show(item: &Item<'_>, scratch: &mut Scratch, lines: &mut String) {
    if scratch.name != "game.PropagateBuffer" {
        return;
    }
    let tree = item.tree(std::mem::take(&mut scratch.tree), &Limits::DEFAULT);
    let field = |name| Some(tree.find(&format!("{CHAT}.{name}"))?.text()?.into_owned());
    if let (Some(user), Some(text)) = (field("user"), field("text")) {
        *lines += &format!("{} {} {user}: {text}\n", item.stamp.time, item.from);
    }
    // The next tree reuses this one's memory.
    scratch.tree = tree.recycle();
}
