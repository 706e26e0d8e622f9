//! The files in a game client's folder, and the sounds named in its pages.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use worldwire_core::path::{PathRules, SafePath};

use crate::cli::Common;
use crate::output::{Failure, shown, unfinished};

/// A client's file.
#[derive(Clone, Debug)]
pub(super) struct ClientFile {
    pub(super) path: PathBuf,
    /// The file's own name, without folders.
    pub(super) file_name: String,
    /// The file's name in manifests: relative to the folder, with backslashes.
    pub(super) client_name: String,
}

/// The maximum depth of folders; a client's are never deeper.
const DEEPEST: usize = 16;
/// The maximum number of files. The game has about ten thousand.
const MAX_FILES: usize = 200_000;
/// The maximum number of folders that an error suggests.
const MAX_NAMED: usize = 3;
/// The maximum length of a sound's name.
const LONGEST_NAME: usize = 200;

/// The number of entries of a folder that are searched for a client's folder.
const MAX_SEARCHED: usize = 1_000;

/// Refuses a folder that is not a client's, and names folders nearby that are.
pub(super) fn check_client(folder: &Path) -> Result<(), Failure> {
    fs::read_dir(folder).map_err(|error| Failure::io(folder, &error))?;
    if is_client(folder) {
        return Ok(());
    }
    let found: Vec<_> = clients_near(folder).iter().map(|path| shown(path)).collect();
    let advice = match &found[..] {
        [] => "choose the folder that contains dat and sfx".to_owned(),
        [one] => format!("did you mean {one}?"),
        several => format!("did you mean one of these: {}?", several.join(", ")),
    };
    let problem = "not a game client's folder, because it has no age files (dat/NAME.age)";
    Err(Failure::Run(format!("{}: {problem}; {advice}", shown(folder))))
}

/// Whether a folder has a `dat` with age files.
fn is_client(folder: &Path) -> bool {
    let is_age =
        |path: &PathBuf| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("age"));
    let is_dat = |path: &PathBuf| path.file_name().is_some_and(|it| it.eq_ignore_ascii_case("dat"));
    entries(folder).filter(is_dat).any(|dat| entries(&dat).any(|path| is_age(&path)))
}

/// Clients' folders around a folder: above it, and up to two levels below it.
fn clients_near(folder: &Path) -> Vec<PathBuf> {
    let parent = match folder.parent() {
        Some(parent) if folder.file_name().is_some() && !parent.as_os_str().is_empty() => {
            parent.to_owned()
        }
        _ => folder.join(".."),
    };
    let below = |folder: &Path| entries(folder).take(MAX_SEARCHED).filter(|path| path.is_dir());
    let children: Vec<_> = below(folder).collect();
    let deeper = children.iter().flat_map(|child| below(child)).take(MAX_SEARCHED);
    let all = [parent].into_iter().chain(children.iter().cloned()).chain(deeper);
    let mut found: Vec<_> = all.filter(|path| is_client(path)).take(MAX_NAMED).collect();
    found.sort();
    found
}

/// The entries of a folder; none if it cannot be read.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// All files below a folder, by their names in manifests in lower case. Symbolic links are
/// followed, but every folder is read only once, however many links lead to it. Each link that
/// leads out of the folder is reported, because clients can download the files at its target.
pub(super) fn files_of(
    folder: &Path,
    common: &Common,
) -> Result<BTreeMap<String, ClientFile>, Failure> {
    let home = fs::canonicalize(folder).map_err(|error| Failure::io(folder, &error))?;
    let mut files = BTreeMap::new();
    let mut read = HashSet::new();
    let mut folders = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((next, below, depth)) = folders.pop() {
        let failed = |error| Failure::io(&next, &error);
        if !read.insert(fs::canonicalize(&next).map_err(failed)?) {
            common.note(&shown(&next), "skipped: a link to a folder that has already been read");
            continue;
        }
        if depth > DEEPEST {
            return Err(Failure::Run(format!("{}: folders are nested too deeply", shown(&next))));
        }
        for entry in fs::read_dir(&next).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default();
            // The target of a link. A dangling link has none.
            let Ok(metadata) = fs::metadata(&path) else {
                common.note(&shown(&path), "skipped: a dangling link");
                continue;
            };
            let name = match (unfinished(name, metadata.is_dir()), name.to_str()) {
                (None, Some(name)) if SafePath::parse_str(name, PathRules::DOWNLOAD).is_ok() => {
                    name
                }
                _ => {
                    common.note(&shown(&path), "skipped: clients cannot request this name");
                    continue;
                }
            };
            let client_name = format!("{below}{name}");
            if fs::symlink_metadata(&path).is_ok_and(|own| own.is_symlink())
                && let Ok(target) = fs::canonicalize(&path)
                && !target.starts_with(&home)
            {
                let what = if metadata.is_dir() { "the files below it" } else { "it" };
                let target = shown(&target);
                let text = format!("links to {target}, outside the folder; imported {what} anyway");
                common.note(&shown(&path), &text);
            }
            if metadata.is_dir() {
                folders.push((path.clone(), format!("{client_name}\\"), depth + 1));
            } else if metadata.is_file() {
                let file_name = name.to_owned();
                let file = ClientFile { path: path.clone(), file_name, client_name };
                files.insert(file.client_name.to_lowercase(), file);
                if files.len() > MAX_FILES {
                    let problem = format!("more than {MAX_FILES} files");
                    return Err(Failure::Run(format!("{}: {problem}", shown(folder))));
                }
            }
        }
    }
    if files.is_empty() {
        return Err(Failure::Run(format!("{}: contains no client files", shown(folder))));
    }
    Ok(files)
}

/// The names of sounds in a page, in lower case. Pages hold strings with all bits inverted or, in
/// old versions, unchanged.
pub(super) fn sounds_in(page: &[u8]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for mask in [0xff, 0] {
        let end: Vec<u8> = b".ogg".iter().map(|byte| byte ^ mask).collect();
        let mut from = 0;
        while let Some(at) = page[from..].windows(end.len()).position(|part| part == end) {
            let at = from + at;
            let is_part = |byte: &&u8| {
                let byte = **byte ^ mask;
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ' | b'.' | b'\'')
            };
            let begin = page[..at].iter().rev().take(LONGEST_NAME).take_while(is_part).count();
            let name: Vec<u8> =
                page[at - begin..at + end.len()].iter().map(|byte| byte ^ mask).collect();
            found.extend(String::from_utf8(name).ok().map(|name| name.to_ascii_lowercase()));
            from = at + end.len();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sounds_are_found_in_pages() {
        let inverted: Vec<u8> = b"Door-Open.ogg".iter().map(|byte| !byte).collect();
        let page = [&[13, 0xf0][..], &inverted, &[0, 1], b"Wind_Loop.ogg\0Rain.ogg\0"].concat();
        let found: Vec<_> = sounds_in(&page).into_iter().collect();
        assert_eq!(found, ["door-open.ogg", "rain.ogg", "wind_loop.ogg"]);
        assert!(sounds_in(b".og").is_empty());
    }
}
