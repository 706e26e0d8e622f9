//! Files and standard input.

mod growing_keys;
pub(crate) mod guard;
mod live;
pub(crate) mod map;
pub(crate) mod merged;
pub(crate) mod packets;
mod tcpdump;
mod walk;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use worldwire_capture::{CaptureReader, MORE_KEYS, Record, SecretsKind};
use worldwire_core::Limits;
use worldwire_core::value::parse_hex;
use worldwire_dissect::Keys;

use crate::cli::Common;
use crate::output::{Failure, complain, shown};
pub(crate) use growing_keys::GrowingKeys;
pub(crate) use walk::{all, files};

/// The name of an input in messages.
pub(crate) fn title(path: &Path) -> String {
    match path.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => shown(path),
    }
}

/// The bytes that follow `--hex`, possibly with colons between them, as in filters.
pub(crate) fn hex(digits: &str) -> Result<Vec<u8>, Failure> {
    let is_joined = |text: &str| text.split(':').all(|byte| byte.trim().len() == 2);
    let plain = is_joined(digits).then(|| digits.replace(':', ""));
    parse_hex(plain.as_deref().unwrap_or(digits)).ok_or_else(|| {
        let other =
            digits.chars().enumerate().find(|(_, c)| !c.is_whitespace() && !c.is_ascii_hexdigit());
        Failure::Run(match other {
            Some((index, other)) => {
                format!("--hex: character {} is {other:?}, not a hexadecimal digit", index + 1)
            }
            None => "--hex: needs an even number of hexadecimal digits".to_owned(),
        })
    })
}

/// Opens a file, or standard input for `-`.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read + Send>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    if path.is_dir() {
        return Err(Failure::Run(format!("{}: is a directory, not a file", shown(path))));
    }
    let file = File::open(path).map_err(|error| Failure::io(path, &error))?;
    Ok(Box::new(file))
}

/// Reads a whole file of bounded size.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    read_if(path, |_| true, |_| ()).map(Option::unwrap_or_default)
}

/// Like [`read`], but only if `is_wanted` accepts the first 64 KiB (fewer in shorter files);
/// otherwise `None`. Before reading more, calls `make_room` with the size.
pub(crate) fn read_if(
    path: &Path,
    is_wanted: impl Fn(&[u8]) -> bool,
    make_room: impl FnOnce(u64),
) -> Result<Option<Vec<u8>>, Failure> {
    /// Most files are smaller, so one read suffices.
    const FIRST: u64 = 64 << 10;
    let most = Limits::DEFAULT.file_bytes;
    let fail = |error| Failure::io(path, &error);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().take(most + 1).read_to_end(&mut bytes).map_err(fail)?;
    } else {
        let mut file = File::open(path).map_err(fail)?;
        let about = file.metadata().map_err(fail)?;
        if about.is_dir() {
            return Err(Failure::Run(format!("{}: is a directory, not a file", shown(path))));
        }
        // The reported size is usually right. Reading one extra byte confirms that the file ends
        // there.
        let size = if about.is_file() { about.len().min(most) } else { 0 };
        let mut make_room = Some(make_room);
        for part in [size.min(FIRST), size] {
            let part = usize::try_from(part).unwrap_or(0);
            let more = (part + 1).saturating_sub(bytes.len());
            bytes.try_reserve_exact(more).map_err(|_| {
                Failure::Run(format!("{}: not enough memory for {size} bytes", shown(path)))
            })?;
            if file.by_ref().take(more as u64).read_to_end(&mut bytes).map_err(fail)? < more {
                return Ok(Some(bytes).filter(|bytes| is_wanted(bytes)));
            }
            if !is_wanted(&bytes) {
                return Ok(None);
            }
            if let Some(make_room) = make_room.take() {
                make_room(size);
            }
        }
        let rest = (most + 1).saturating_sub(bytes.len() as u64);
        file.take(rest).read_to_end(&mut bytes).map_err(fail)?;
    }
    if bytes.len() as u64 > most {
        let message = format!("{}: larger than {most} bytes (file bytes)", shown(path));
        return Err(Failure::Run(message));
    }
    Ok(Some(bytes).filter(|bytes| is_wanted(bytes)))
}

/// Reads a whole text file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    text_of(read(path)?, path)
}

/// The text in a file.
fn text_of(bytes: Vec<u8>, path: &Path) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        complain(&shown(path), &format!("at byte {at}: not UTF-8 text"));
        Failure::Input
    })
}

/// The beginning of the comment on captures of decrypted messages.
pub(crate) const DECRYPTED: &str = "Decrypted by worldwire:";

/// Adds the keys contained in the captures themselves: before their packets and, in a proxy's
/// recording, also between them.
///
/// # Errors
/// If a file is a capture of decrypted messages, from `export pcapng`. Its streams begin without
/// the handshakes that recognition needs, and would look like encrypted ones.
pub(crate) fn add_keys_inside<'p>(
    keys: &mut Keys,
    paths: impl Iterator<Item = &'p Path>,
) -> Result<(), Failure> {
    for path in paths {
        let (text, comment) = inside(path);
        if comment.is_some_and(|comment| comment.starts_with(DECRYPTED)) {
            let what = "decrypted messages for Wireshark, from `worldwire export pcapng`";
            complain(&shown(path), &format!("{what}; read the original capture instead"));
            return Err(Failure::Input);
        }
        // Recordings of unencrypted conversations contain no keys.
        if !text.replace(MORE_KEYS, "").trim().is_empty()
            && let Err(error) = keys.add(&text)
        {
            complain(&shown(path), &format!("keys in the capture: {error}"));
        }
    }
    Ok(())
}

/// The key file inside a capture, as text.
pub(crate) fn text_inside(path: &Path) -> String {
    inside(path).0
}

/// The key file inside a capture, as text, and the comment on its last section.
fn inside(path: &Path) -> (String, Option<String>) {
    let (mut text, mut comment) = (String::new(), None);
    if path.is_file()
        && let Ok(file) = File::open(path)
        && let Ok(mut capture) = CaptureReader::new(file, &Limits::DEFAULT)
    {
        // Problems in the capture are reported when it is read.
        while let Ok(Some(record)) = capture.next() {
            match record {
                Record::Secrets { kind: SecretsKind::WORLDWIRE, data, .. } => {
                    text.push_str(&String::from_utf8_lossy(data));
                }
                Record::Packet(_) if !text.contains(MORE_KEYS) => break,
                _ => {}
            }
        }
        comment = capture.comment().map(str::to_owned);
    }
    (text, comment)
}

/// Reads key files, if any. An empty file is accepted: a server that was started with `--secrets`
/// appends the first key when somebody logs in.
pub(crate) fn keys(paths: &[PathBuf], common: &Common) -> Result<Keys, Failure> {
    let mut keys = Keys::none();
    for path in paths {
        tracing::debug!(path = %path.display(), "keys");
        let bytes = read(path)?;
        if CaptureReader::new(&*bytes, &Limits::DEFAULT).is_ok() {
            let hint = "keys stored in a capture are used automatically";
            let problem = format!("{}: a capture, not a key file; {hint}", shown(path));
            return Err(Failure::Run(problem));
        }
        let text = text_of(bytes, path)?;
        if text.trim().is_empty() {
            common.note(&shown(path), "has no keys yet");
            continue;
        }
        keys.add(&text).map_err(|error| {
            let text = error.to_string();
            let mut lines: Vec<&str> = text.lines().collect();
            let last = lines.pop().unwrap_or_default();
            for line in lines {
                complain(&shown(path), line);
            }
            Failure::Run(format!("{}: {last}", shown(path)))
        })?;
    }
    Ok(keys)
}
