//! `worldwire uru files import`: creates a shard's `data` from a game client's folder.

mod find;
mod imported;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use worldwire_server::uru::{CONFIG, ShardConfig};
use worldwire_uru::file::manifest::{Manifest, ManifestEntry, ManifestFlags};
use worldwire_uru::file::secure::{self, Magic};

use super::manifest::{gzip, listed};
use crate::cli::{Common, UruFiles, UruShard};
use crate::input;
use crate::output::{Failure, complain, counted, print, shown};
use find::{ClientFile, check_client, files_of, sounds_in};
use imported::{Imported, LIST};

/// The manifests that do not belong to ages. The launcher requests all of them: its own to update
/// itself, the thin one before it starts the client, and the full one for a full installation.
const ALL: &str = "External";
const THIN: &str = "ThinExternal";
const LAUNCHER: &str = "ExternalPatcher";

/// Programs that belong to the launcher, in lower case.
const LAUNCHERS: [&str; 2] = ["urulauncher.exe", "repair.ini"];
/// Files that belong to the client alone, in lower case.
const OWN: [&str; 4] = ["server.ini", "servers.ini", "unins000.exe", "unins000.dat"];
/// Formats that gzip cannot make smaller.
const PACKED: [&str; 6] = ["ogg", "bik", "webm", "jpg", "png", "zip"];
/// The maximum size of a secure file or an age file.
const LONGEST: u64 = 64 << 20;
/// The flag of a sound that the client keeps decompressed as two files, one for each channel.
const SPLIT: u32 = 1;
/// The flag of a sound that the client keeps decompressed as one file.
const WHOLE: u32 = 4;

pub(crate) fn run(command: &UruFiles, common: &Common) -> Result<(), Failure> {
    let UruFiles::Import { folder, shard } = command;
    check_shard(&shard.shard)?;
    let data = data_of(shard)?;
    check_client(folder)?;
    let files = files_of(folder, common)?;
    let stored = Imported::read(&data)?;
    if stored.is_unlisted() {
        let advice = format!(
            "has no {LIST}, the list of imported files: files from earlier imports are kept, even if \
             the client no longer has them"
        );
        common.note(&shown(&data), &advice);
    }
    let mut import = Import { files, stored, packed: BTreeMap::new(), problems: 0 };
    let ages = import.ages()?;
    let descriptors = import.secure("sdl", "SDL")?;
    let scripts = import.secure("pak", "Python")?;
    let manifests = import.manifests(&ages)?;
    let Import { stored, packed, problems, .. } = import;
    let swept = stored.finish()?;
    if shard.json {
        print(&format!(
            "{}\n",
            serde_json::json!({
                "data": data, "files": packed.len(),
                "manifests": manifests, "ages": ages.len(), "descriptors": descriptors,
                "scripts": scripts, "skipped": problems,
                "removed": swept.removed, "kept": swept.changed.len(),
            })
        ))?;
    }
    for (count, what) in
        [(ages.len(), "age file"), (descriptors, "descriptor file"), (scripts, "script archive")]
    {
        common.note(&shown(&data), &counted(count, what));
    }
    let text = format!("{} in {}", counted(packed.len(), "file"), counted(manifests, "manifest"));
    common.note(&shown(&data), &text);
    if swept.removed > 0 {
        let removed = counted(swept.removed, "file");
        common.note(&shown(&data), &format!("removed {removed} that the client no longer has"));
    }
    for (path, why) in swept.reasons() {
        common.note(&path, why);
    }
    if problems == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// Refuses a folder that does not exist, most likely because its name is misspelt.
fn check_shard(folder: &Path) -> Result<(), Failure> {
    if folder.is_dir() {
        return Ok(());
    }
    let folder = shown(folder);
    let advice = format!("create it, or start the shard once with `worldwire serve uru {folder}`");
    Err(Failure::Run(format!("no directory {folder}; {advice}")))
}

/// The data directory of a shard that may not have started yet.
pub(super) fn data_of(shard: &UruShard) -> Result<PathBuf, Failure> {
    let file = shard.shard.join(CONFIG);
    let config = match file.exists() {
        true => ShardConfig::parse(&input::read_text(&file)?)
            .map_err(|error| Failure::Run(format!("{}: {error}", shown(&file))))?,
        false => ShardConfig::default(),
    };
    Ok(shard.shard.join(config.data))
}

/// An import in progress.
struct Import {
    /// The client's files, by name in its folder, with backslashes and in lower case.
    files: BTreeMap<String, ClientFile>,
    /// The files in the data directory.
    stored: Imported,
    /// The entries of files that clients can download, by the keys of `files`.
    packed: BTreeMap<String, ManifestEntry<'static>>,
    problems: usize,
}

impl Import {
    /// Copies age files for the shard's own use and returns the names of the ages.
    fn ages(&mut self) -> Result<Vec<String>, Failure> {
        let mut ages = Vec::new();
        for file in self.with_extension("age") {
            let path = format!("ages/{}", file.file_name);
            if !self.store_plain(&file, &path)? {
                continue;
            }
            let name = Path::new(&file.file_name).file_stem();
            ages.extend(name.map(|name| name.to_string_lossy().into_owned()));
        }
        Ok(ages)
    }

    /// Copies files that clients download after logging in. Returns their number.
    fn secure(&mut self, extension: &str, to: &str) -> Result<usize, Failure> {
        let mut count = 0;
        for file in self.with_extension(extension) {
            let path = format!("secure/{to}/{}", file.file_name);
            count += usize::from(self.store_plain(&file, &path)?);
        }
        Ok(count)
    }

    /// Stores the other files for download and writes the manifests. Returns their number.
    fn manifests(&mut self, ages: &[String]) -> Result<usize, Failure> {
        let is_offered = |name: &str| {
            let file_name = name.rsplit('\\').next().unwrap_or_default();
            let extension = file_name.rsplit_once('.').map_or("", |(_, extension)| extension);
            !matches!(extension, "sdl" | "pak" | "log" | "dmp") && !OWN.contains(&file_name)
        };
        let offered: Vec<String> =
            self.files.keys().filter(|name| is_offered(name)).cloned().collect();
        let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for name in &offered {
            let Some(age) = age_of(name, ages) else { continue };
            owners.entry(name.clone()).or_default().insert(age.clone());
            if name.ends_with(".prp") {
                // The sounds of an age are those that its pages name.
                let bytes = input::read(&self.files[name].path)?;
                for sound in sounds_in(&bytes) {
                    let sound = format!("sfx\\{sound}");
                    if self.files.contains_key(&sound) {
                        owners.entry(sound).or_default().insert(age.clone());
                    }
                }
            }
        }
        for name in &offered {
            self.offer(name)?;
        }
        let mut manifests: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for name in &offered {
            let file_name = name.rsplit('\\').next().unwrap_or_default();
            if LAUNCHERS.contains(&file_name) {
                manifests.entry(LAUNCHER).or_default().push(name);
                continue;
            }
            manifests.entry(ALL).or_default().push(name);
            match owners.get(name) {
                None => manifests.entry(THIN).or_default().push(name),
                Some(ages) => {
                    for age in ages {
                        manifests.entry(age).or_default().push(name);
                    }
                }
            }
        }
        for (group, names) in &manifests {
            let entries = names.iter().filter_map(|name| self.packed.get(*name).cloned());
            let text = Manifest(entries.collect()).format();
            let text = text.map_err(|error| Failure::Run(error.to_string()))?;
            self.stored.store(&format!("files/{group}.mfs"), text.as_bytes())?;
        }
        Ok(manifests.len())
    }

    /// Stores a file for download.
    fn offer(&mut self, name: &str) -> Result<(), Failure> {
        let file = &self.files[name];
        let plain = input::read(&file.path)?;
        let is_packed = PACKED.iter().any(|extension| name.ends_with(&format!(".{extension}")));
        let packed = if is_packed { None } else { Some(gzip(&plain, &file.path)?) };
        let packed = packed.filter(|packed| packed.len() < plain.len());
        let mut entry = listed(&file.path, &file.client_name, &plain, packed.as_deref())?;
        let download = entry.download_name.to_text().replace('\\', "/");
        self.stored.store(&format!("files/{download}"), packed.as_deref().unwrap_or(&plain))?;
        entry.flags = ManifestFlags(entry.flags.0 | sound_flags(name, &plain));
        self.packed.insert(name.to_owned(), entry);
        Ok(())
    }

    fn with_extension(&self, extension: &str) -> Vec<ClientFile> {
        let end = format!(".{extension}");
        self.files
            .iter()
            .filter(|(name, _)| name.ends_with(&end))
            .map(|(_, it)| it.clone())
            .collect()
    }

    /// Stores the plain content of a file. Returns false for a file that only its own shard can
    /// decrypt.
    fn store_plain(&mut self, file: &ClientFile, path: &str) -> Result<bool, Failure> {
        match self.plain(file)? {
            Some(plain) => self.stored.store(path, &plain).map(|()| true),
            None => {
                self.stored.keep(path);
                Ok(false)
            }
        }
    }

    /// The plain content of a file. A file that only its own shard can decrypt is reported.
    fn plain(&mut self, file: &ClientFile) -> Result<Option<Vec<u8>>, Failure> {
        let bytes = input::read(&file.path)?;
        if Magic::detect(&bytes).is_none() {
            return Ok(Some(bytes));
        }
        match secure::open(&bytes, None, LONGEST) {
            Ok(opened) => Ok(Some(opened.into_plain())),
            Err(error) => {
                self.problems += 1;
                let problem = format!("skipped: {error}; use an unencrypted copy");
                complain(&shown(&file.path), &problem);
                Ok(None)
            }
        }
    }
}

/// The age that a file in `dat` belongs to: `dat\NAME.age`, `dat\NAME_District_PAGE.prp`.
fn age_of<'a>(name: &str, ages: &'a [String]) -> Option<&'a String> {
    let file = name.strip_prefix("dat\\")?;
    let is_own = |age: &&String| {
        let rest = file.strip_prefix(&age.to_lowercase());
        rest.is_some_and(|rest| rest.starts_with(['.', '_']))
    };
    // The name of an age can begin with another age's name, so the longest match wins.
    ages.iter().filter(is_own).max_by_key(|age| age.len())
}

/// The flags of a sound: clients decompress it once, when they install it.
fn sound_flags(name: &str, bytes: &[u8]) -> u32 {
    // The number of channels follows the name of the codec in the first page.
    let vorbis = bytes.get(28..40).filter(|_| name.ends_with(".ogg"));
    match vorbis.and_then(|head| head.strip_prefix(b"\x01vorbis")) {
        Some([_, _, _, _, 1]) => WHOLE,
        Some([_, _, _, _, _]) => WHOLE | SPLIT,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_the_age_with_the_longest_name() {
        let ages = ["city", "Neighborhood", "Neighborhood02"].map(str::to_owned);
        for (name, age) in [
            ("dat\\city_district_palace.prp", Some("city")),
            ("dat\\neighborhood02_district_krelkirel.prp", Some("Neighborhood02")),
            ("dat\\neighborhood.age", Some("Neighborhood")),
            ("dat\\cityofwhispers.loc", None),
            ("city.exe", None),
        ] {
            assert_eq!(age_of(name, &ages).map(String::as_str), age, "{name}");
        }
    }

    #[test]
    fn sounds_are_marked_by_their_channels() {
        let ogg = |channels: u8| {
            let mut bytes = b"OggS".to_vec();
            bytes.resize(28, 0);
            bytes.extend_from_slice(b"\x01vorbis\0\0\0\0");
            bytes.push(channels);
            bytes
        };
        assert_eq!(sound_flags("sfx\\a.ogg", &ogg(1)), WHOLE);
        assert_eq!(sound_flags("sfx\\a.ogg", &ogg(2)), WHOLE | SPLIT);
        assert_eq!(sound_flags("sfx\\a.ogg", b"OggS"), 0);
        assert_eq!(sound_flags("dat\\a.prp", &ogg(2)), 0);
    }
}
