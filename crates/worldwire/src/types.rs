//! KI type lists, read from JSON once and from a cache afterwards.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use worldwire_core::value::push_hex;
use worldwire_ki::schema::classes::{Classes, ContentHash, TypeLists};

use crate::cli::Common;
use crate::output::{Failure, printable, say};
use crate::{cache, input};

/// Smaller lists load too quickly to be worth a cache file.
const WORTH_A_CACHE: usize = 1 << 20;
/// The number of bytes of a file that are read to decide whether it is a type list.
const LOOK: u64 = 64 << 10;

/// Whether a file looks like a type list. A file found in a directory must also have a matching
/// name, because a directory may contain any JSON.
pub(crate) fn is_list(path: &Path, is_of_folder: bool) -> bool {
    let named = || path.extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
    let mut head = Vec::new();
    let mut is_read = || {
        path.is_file()
            && File::open(path).is_ok_and(|file| file.take(LOOK).read_to_end(&mut head).is_ok())
    };
    if (is_of_folder && !named()) || !is_read() {
        return false;
    }
    let has = |key: &[u8]| head.windows(key.len()).any(|window| window == key);
    has(b"\"hash\"") && if is_of_folder { has(b"\"bases\"") } else { has(b"\"properties\"") }
}

/// The maximum number of warnings about type lists in commands that merely use them.
const MAX_LISTED: usize = 3;

/// Reads type lists, with later ones overriding earlier ones, and reports irregularities up to a
/// limit.
pub(crate) fn load(lists: &[PathBuf], common: &Common) -> Result<Arc<Classes>, Failure> {
    let classes = read(lists)?;
    let notes = classes.notes();
    if !common.quiet {
        let listed = if notes.len() > MAX_LISTED + 1 { MAX_LISTED } else { notes.len() };
        for note in notes.iter().take(listed) {
            say(format_args!("worldwire: {}", printable(&note.to_string())));
        }
        if listed < notes.len() {
            let more = notes.len() - listed;
            say(format_args!("worldwire: {more} more warnings; list them with `ki op types LIST`"));
        }
    }
    Ok(classes)
}

/// Reads type lists. Large ones are compiled once and cached by their content.
pub(crate) fn read(lists: &[PathBuf]) -> Result<Arc<Classes>, Failure> {
    let texts: Vec<Vec<u8>> =
        lists.iter().map(|list| input::read(list)).collect::<Result<_, _>>()?;
    let total: usize = texts.iter().map(Vec::len).sum();
    let content = (total >= WORTH_A_CACHE).then(|| {
        let content = ContentHash::of(texts.iter().map(Vec::as_slice));
        let mut name = String::from("types-");
        push_hex(&mut name, &content.0);
        (content, name)
    });
    if let Some((content, name)) = &content
        && let Some(bytes) = cache::read(name)
        && let Ok(classes) = Classes::from_cache(&bytes, *content)
    {
        tracing::debug!(name, "read type lists from the cache");
        return Ok(Arc::new(classes));
    }
    let mut reader = TypeLists::new();
    for (list, text) in lists.iter().zip(&texts) {
        if let Err(error) = reader.add(&list.display().to_string(), text) {
            say(format_args!("worldwire: {}", printable(&error.to_string())));
            return Err(Failure::Input);
        }
    }
    let classes = reader.compile();
    if let Some((content, name)) = &content {
        cache::store(name, &classes.to_cache(*content));
    }
    Ok(Arc::new(classes))
}
