//! What a process presents when it joins a cluster, and why its leader may refuse it.
//!
//! A process that does not belong to the leader's shard would harm its players: if its keys differ,
//! clients cannot connect to it; if its age files differ, ages behave differently on it. So the
//! leader compares digests before it admits the process. The keys themselves never cross the bus.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use worldwire_core::{Error, Reader, Result, Sampler, Writer};
use worldwire_uru::crypt::key::ServerKind;
use worldwire_uru::file::keys::{KeyFileFormat, KeyRing};

use super::subjects::NodeKind;
use crate::folder::blocking;
use crate::store::writer_name;
use crate::uru::game::AgeFiles;
use crate::uru::vault::ask::{Wire, decoded, encoded, unknown, wire_struct, wire_variants};

/// The maximum number of files whose digests are listed.
const MAX_FILES: usize = 2_048;
/// The maximum length of a listed file's path, in bytes.
const MAX_PATH: usize = 100;
/// The maximum number of files named in a refusal.
const MAX_NAMED: usize = 8;
/// How often to check whether files have changed.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The maximum length of a process's description, in bytes.
const MAX_PLACE: usize = 512;
/// The maximum size of an encoded passport or refusal, in bytes.
pub(super) const MAX_PASSPORT: usize = 384 << 10;

/// What a process presents when it joins.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::uru) struct Passport {
    /// A description of the process for people: `process 4242 on host, folder /srv/uru`.
    pub(in crate::uru) place: String,
    /// A digest that identifies its folder. A copied folder has another digest. 0: unknown.
    pub(in crate::uru) folder: u64,
    /// The port for clients, which use the same port for all processes. 0: any.
    pub(in crate::uru) port: u32,
    /// Whether it is a standby, waiting to take over from the leader.
    pub(in crate::uru) is_standby: bool,
    /// Its keys.
    pub(in crate::uru) keys: KeyDigests,
    /// Its age files, if it runs ages.
    pub(in crate::uru) files: Option<FileDigests>,
}

wire_struct! {
    Passport {
        place: String,
        folder: u64,
        port: u32,
        is_standby: bool,
        keys: KeyDigests,
        files: Option<FileDigests>,
    }
}

/// Digests of the keys in `keys.toml`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::uru) struct KeyDigests {
    gatekeeper: [u8; 32],
    auth: [u8; 32],
    game: [u8; 32],
    droid: [u8; 32],
}

wire_struct! {
    KeyDigests { gatekeeper: [u8; 32], auth: [u8; 32], game: [u8; 32], droid: [u8; 32] }
}

/// Digests of files, sorted by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::uru) struct FileDigests {
    /// At most [`MAX_FILES`].
    listed: Vec<FileDigest>,
    /// The digest of all files, including unlisted ones.
    all: [u8; 32],
}

wire_struct! { FileDigests { listed: Vec<FileDigest>, all: [u8; 32] } }

/// A file and the beginning of its digest.
#[derive(Clone, Debug, PartialEq)]
struct FileDigest {
    path: String,
    digest: [u8; 8],
}

wire_struct! { FileDigest { path: String, digest: [u8; 8] } }

/// How the files of a process differ from those of its leader.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::uru) struct FileDifferences {
    /// The first differing files, by path.
    named: Vec<FileDifference>,
    /// How many more files differ.
    more: u32,
}

wire_struct! { FileDifferences { named: Vec<FileDifference>, more: u32 } }

/// A file that differs.
#[derive(Clone, Debug, PartialEq)]
enum FileDifference {
    /// The process does not have it.
    Missing { path: String },
    /// The leader does not have it.
    Additional { path: String },
    /// Its contents differ.
    Changed { path: String },
}

wire_variants! {
    FileDifference {
        0 Missing { path: String },
        1 Additional { path: String },
        2 Changed { path: String },
    }
}

/// Why a leader does not admit a process.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::uru) enum Refusal {
    /// Its passport cannot be read.
    Unreadable,
    /// Some of its keys differ from the leader's.
    Keys {
        /// The names of those keys.
        keys: Vec<String>,
    },
    /// Its age files differ from the leader's.
    Files {
        /// The differences.
        differences: FileDifferences,
    },
    /// Another member already has its name.
    NameTaken {
        /// The name.
        node: String,
        /// The member's description.
        place: String,
        /// How many seconds it has been a member.
        joined: u32,
        /// How many milliseconds ago it was last heard from.
        heard: u32,
    },
    /// The leader has the same name.
    LeadersName {
        /// The name.
        node: String,
        /// The leader's description.
        place: String,
    },
    /// The cluster already has the maximum number of nodes.
    Full,
    /// Its port differs from the leader's.
    Port {
        /// Its port.
        own: u32,
        /// The leader's port.
        leaders: u32,
    },
    /// A process under this name has just sent too many items.
    Excess,
}

wire_variants! {
    Refusal {
        0 Unreadable,
        1 Keys { keys: Vec<String> },
        2 Files { differences: FileDifferences },
        3 NameTaken { node: String, place: String, joined: u32, heard: u32 },
        4 LeadersName { node: String, place: String },
        5 Full,
        6 Port { own: u32, leaders: u32 },
        7 Excess,
    }
}

impl Passport {
    /// The passport of the process that uses this folder, without file digests.
    pub(in crate::uru) fn of_process(folder: &Path, keys: &KeyRing) -> Self {
        let place = writer_name(folder);
        let most = place.floor_char_boundary(MAX_PLACE);
        Self {
            place: place.get(..most).unwrap_or_default().to_owned(),
            folder: folder_digest(folder),
            keys: KeyDigests::of(keys),
            ..Self::default()
        }
    }

    /// The passport as presented by this kind of process: only some kinds can be standbys.
    pub(super) fn of(self, kind: NodeKind) -> Self {
        Self { is_standby: self.is_standby && kind.can_lead(), ..self }
    }

    /// Checks that the process belongs to the same shard as a leader with this passport.
    pub(super) fn fits(&self, leaders: &Self) -> std::result::Result<(), Refusal> {
        let keys = self.keys.differences(&leaders.keys);
        if !keys.is_empty() {
            return Err(Refusal::Keys { keys });
        }
        let (own, leaders_port) = (self.port, leaders.port);
        if own != leaders_port && own != 0 && leaders_port != 0 {
            return Err(Refusal::Port { own, leaders: leaders_port });
        }
        match self.file_differences(leaders) {
            // A standby runs no ages until it takes over.
            Some(differences) if !self.is_standby => Err(Refusal::Files { differences }),
            _ => Ok(()),
        }
    }

    /// How its files differ from the leader's, if the process needs any.
    pub(super) fn file_differences(&self, leaders: &Self) -> Option<FileDifferences> {
        let (own, leaders) = (self.files.as_ref()?, leaders.files.as_ref()?);
        own.differences(leaders)
    }

    /// Encodes it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // Its size is bounded.
        encoded(self).unwrap_or_default()
    }

    /// Reads the passport of another process.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        bounded(bytes)?;
        let passport: Self = decoded(bytes)?;
        let longest = passport.files.iter().flat_map(|files| &files.listed);
        let longest = longest.map(|file| file.path.len()).max().unwrap_or_default();
        for (what, most, found) in [
            ("bytes of a place", MAX_PLACE, passport.place.len()),
            ("bytes of a path", MAX_PATH, longest),
        ] {
            if found > most {
                return Err(Error::limit(what, most as u64, found as u64));
            }
        }
        Ok(passport)
    }
}

/// Identifies a folder by its machine and its location there, so that copies differ. Never 0.
fn folder_digest(folder: &Path) -> u64 {
    let mut digest = Sha256::new();
    digest.update(whoami::hostname().unwrap_or_default());
    let path = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    digest.update([0]);
    digest.update(path.as_os_str().as_encoded_bytes());
    // Containers can have identical paths, and even identical host names.
    #[cfg(unix)]
    if let Ok(about) = std::fs::metadata(&path) {
        use std::os::unix::fs::MetadataExt as _;
        digest.update(about.dev().to_le_bytes());
        digest.update(about.ino().to_le_bytes());
    }
    first_word(&digest.finalize().into()).max(1)
}

fn first_word(&[a, b, c, d, e, f, g, h, ..]: &[u8; 32]) -> u64 {
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

impl KeyDigests {
    /// The digests of a shard's keys.
    pub(in crate::uru) fn of(keys: &KeyRing) -> Self {
        let private = |kind| {
            let mut ring = KeyRing::new();
            if let Some(key) = keys.private(kind) {
                ring.insert_private(key.clone());
            }
            digest(&ring)
        };
        let mut droid = KeyRing::new();
        if let Some(key) = keys.droid() {
            droid.set_droid(key.clone());
        }
        Self {
            gatekeeper: private(ServerKind::Gatekeeper),
            auth: private(ServerKind::Auth),
            game: private(ServerKind::Game),
            droid: digest(&droid),
        }
    }

    /// A digest of these digests, for comparing all keys in one step. Never 0.
    pub(in crate::uru) fn short(&self) -> u64 {
        let mut digest = Sha256::new();
        [self.gatekeeper, self.auth, self.game, self.droid].iter().for_each(|it| digest.update(it));
        first_word(&digest.finalize().into()).max(1)
    }

    /// The names of the keys that differ.
    fn differences(&self, other: &Self) -> Vec<String> {
        let pairs = [
            ("gatekeeper", self.gatekeeper, other.gatekeeper),
            ("auth", self.auth, other.auth),
            ("game", self.game, other.game),
            ("droid", self.droid, other.droid),
        ];
        let differ = pairs.into_iter().filter(|(_, own, other)| own != other);
        differ.map(|(name, ..)| name.to_owned()).collect()
    }
}

/// The digest of keys. Keys are long and random, so they cannot be guessed from it.
fn digest(keys: &KeyRing) -> [u8; 32] {
    let mut digest = Sha256::new_with_prefix("worldwire keys of a shard\0");
    digest.update(keys.format(KeyFileFormat::Toml).as_bytes());
    digest.finalize().into()
}

impl FileDigests {
    /// The digests of files, which must be given in path order.
    pub(in crate::uru) fn of(files: impl IntoIterator<Item = (String, [u8; 32])>) -> Self {
        let (mut listed, mut all) = (Vec::new(), Sha256::new());
        for (path, digest) in files {
            all.update((path.len() as u64).to_le_bytes());
            all.update(&path);
            all.update(digest);
            if listed.len() < MAX_FILES && path.len() <= MAX_PATH {
                let [a, b, c, d, e, f, g, h, ..] = digest;
                listed.push(FileDigest { path, digest: [a, b, c, d, e, f, g, h] });
            }
        }
        Self { listed, all: all.finalize().into() }
    }

    /// How these files differ from the leader's.
    fn differences(&self, leaders: &Self) -> Option<FileDifferences> {
        if self.all == leaders.all {
            return None;
        }
        let mut differences = FileDifferences::default();
        let (mut own, mut other) =
            (self.listed.iter().peekable(), leaders.listed.iter().peekable());
        loop {
            let order = match (own.peek(), other.peek()) {
                (None, None) => return Some(differences),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(own), Some(other)) => own.path.cmp(&other.path),
            };
            let here = own.next_if(|_| order.is_le());
            let there = other.next_if(|_| order.is_ge());
            let difference = match (here, there) {
                (Some(here), Some(there)) if here.digest == there.digest => continue,
                (Some(here), Some(_)) => FileDifference::Changed { path: here.path.clone() },
                (Some(here), None) => FileDifference::Additional { path: here.path.clone() },
                (None, Some(there)) => FileDifference::Missing { path: there.path.clone() },
                (None, None) => continue,
            };
            match differences.named.len() < MAX_NAMED {
                true => differences.named.push(difference),
                false => differences.more = differences.more.saturating_add(1),
            }
        }
    }
}

impl fmt::Display for FileDifferences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, difference) in self.named.iter().take(MAX_NAMED).enumerate() {
            let (path, how) = match difference {
                FileDifference::Missing { path } => (path, "missing on the node"),
                FileDifference::Additional { path } => (path, "missing on the leader"),
                FileDifference::Changed { path } => (path, "different"),
            };
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{} ({how})", shown(path))?;
        }
        match (self.named.is_empty(), self.more) {
            (true, _) => f.write_str("unlisted files, because there are too many to list"),
            (false, 0) => Ok(()),
            (false, more) => write!(f, " and {more} more"),
        }
    }
}

impl Refusal {
    /// The same refusal with its times zeroed.
    pub(super) fn without_times(self) -> Self {
        match self {
            Self::NameTaken { node, place, .. } => {
                Self::NameTaken { node, place, joined: 0, heard: 0 }
            }
            refusal => refusal,
        }
    }

    /// Encodes it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // Its size is bounded.
        encoded(self).unwrap_or_default()
    }

    /// Reads a leader's refusal.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        bounded(bytes)?;
        decoded(bytes)
    }
}

/// Replaces control characters, because operators see text from other processes.
fn shown(text: &str) -> impl fmt::Display {
    let most = text.floor_char_boundary(MAX_PLACE);
    text.get(..most).unwrap_or_default().replace(char::is_control, "?")
}

/// Used in the logs of both processes.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => f.write_str(
                "the node's passport cannot be read; run the same version of worldwire everywhere",
            ),
            Self::Keys { keys } => {
                let keys: Vec<_> = keys.iter().take(4).map(|key| shown(key).to_string()).collect();
                write!(
                    f,
                    "the keys in keys.toml differ ({}); copy keys.toml from the leader's folder, and \
                     restart the node",
                    keys.join(", ")
                )
            }
            Self::Files { differences } => write!(
                f,
                "files in data differ: {differences}; copy data/ages and data/secure/SDL from the \
                 leader's folder"
            ),
            Self::NameTaken { node, place, joined, heard } => write!(
                f,
                "another process named `{}` ({}) joined {joined} s ago and was last heard from {}.{} s \
                 ago; give each process its own name with `node` in [cluster]",
                shown(node),
                shown(place),
                heard / 1_000,
                heard % 1_000 / 100
            ),
            Self::LeadersName { node, place } => write!(
                f,
                "`{}` is also the name of the leader ({}); give each process its own name with `node` \
                 in [cluster]",
                shown(node),
                shown(place)
            ),
            Self::Full => f.write_str("too many nodes have joined"),
            Self::Excess => f.write_str("a process under this name has just sent too many items"),
            Self::Port { own, leaders } => write!(
                f,
                "the node listens on port {own}, but the leader on port {leaders}; clients use one port \
                 for all processes, so give all the same port with `listen`"
            ),
        }
    }
}

fn bounded(bytes: &[u8]) -> Result<()> {
    match bytes.len() > MAX_PASSPORT {
        true => Err(Error::limit("bytes of this field", MAX_PASSPORT as u64, bytes.len() as u64)),
        false => Ok(()),
    }
}

/// Issues passports for this process. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(in crate::uru) struct PassportOffice {
    base: Passport,
    files: Option<Arc<AgeFiles>>,
}

impl PassportOffice {
    /// Issues passports based on `base`, with digests of these files.
    pub(in crate::uru) fn new(base: Passport, files: Option<Arc<AgeFiles>>) -> Self {
        Self { base, files }
    }

    /// How often to check whether files have changed. `None` if there are no files.
    pub(super) fn look_every(&self) -> Option<Duration> {
        self.files.as_ref().map(|_| LOOK_EVERY)
    }

    /// A passport with digests of the current files.
    pub(in crate::uru) async fn issue(&self) -> Passport {
        let files = match self.files.clone() {
            Some(files) => Some(blocking(move || files.digests()).await),
            None => None,
        };
        Passport { files, ..self.base.clone() }
    }
}

#[cfg(test)]
mod tests {
    use worldwire_uru::crypt::key::PrimeKind;
    use worldwire_uru::file::secure::SecureKey;

    use super::*;
    use crate::uru::keys;

    fn files(count: usize, length: usize) -> FileDigests {
        let path = |index| format!("{index:0length$}");
        FileDigests::of((0..count).map(|index| (path(index), [7; 32])))
    }

    #[test]
    fn passports_and_refusals_survive() {
        for seed in 0..200 {
            let passport = Passport::sample(&mut Sampler::new(seed));
            assert_eq!(decoded::<Passport>(&passport.to_bytes()).unwrap(), passport);
            let refusal = Refusal::sample(&mut Sampler::new(seed));
            assert_eq!(Refusal::parse(&refusal.to_bytes()).unwrap(), refusal);
        }
    }

    #[test]
    fn the_largest_passport_can_be_shown() {
        let files = Some(files(MAX_FILES + 1, MAX_PATH));
        let passport = Passport { place: "x".repeat(MAX_PLACE), files, ..Passport::default() };
        assert_eq!(Passport::parse(&passport.to_bytes()).unwrap(), passport);
    }

    #[test]
    fn passports_that_are_too_large_are_refused() {
        let place = Passport { place: "x".repeat(MAX_PLACE + 1), ..Passport::default() };
        let mut long = Passport { files: Some(files(1, 1)), ..Passport::default() };
        long.files.as_mut().unwrap().listed[0].path = "x".repeat(MAX_PATH + 1);
        for (bytes, wanted) in [
            (place.to_bytes(), "bytes of a place"),
            (long.to_bytes(), "bytes of a path"),
            (vec![0; MAX_PASSPORT + 1], "bytes of this field"),
        ] {
            let error = Passport::parse(&bytes).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn each_key_is_compared() {
        let ring = keys::generate(PrimeKind::Plain);
        let mut other = ring.clone();
        other.set_droid(SecureKey::from_words([1; 4]));
        let [own, other] = [&ring, &other].map(KeyDigests::of);
        assert_eq!(own.differences(&other), ["droid"]);
        assert!(own.differences(&own).is_empty());
        assert_eq!(own.short(), KeyDigests::of(&ring).short());
        assert_ne!(own.short(), other.short());
        let all = KeyDigests::of(&keys::generate(PrimeKind::Plain)).differences(&own);
        assert_eq!(all, ["gatekeeper", "auth", "game", "droid"]);
    }

    #[test]
    fn differences_are_bounded() {
        let (none, many) = (files(0, 1), files(100, 3));
        let differences = none.differences(&many).unwrap();
        assert_eq!((differences.named.len(), differences.more), (MAX_NAMED, 92));
        let text = differences.to_string();
        assert!(text.starts_with("000 (missing on the node), 001 (missing"), "{text}");
        assert!(text.ends_with("007 (missing on the node) and 92 more"), "{text}");
        // Unlisted files are compared as well.
        let [most, more] = [MAX_FILES, MAX_FILES + 1].map(|count| files(count, 4));
        let unlisted = most.differences(&more).unwrap().to_string();
        assert!(unlisted.contains("too many"), "{unlisted}");
        assert!(many.differences(&many).is_none());
    }

    #[test]
    fn copies_of_a_folder_are_other_folders() {
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        assert_eq!(folder_digest(one.path()), folder_digest(&one.path().join(".")));
        assert_ne!(folder_digest(one.path()), folder_digest(other.path()));
    }

    #[test]
    fn operators_see_no_control_characters() {
        let name =
            |text: &str| Refusal::LeadersName { node: text.to_owned(), place: text.to_owned() };
        let text = name("a\u{1b}[31m\n").to_string();
        assert!(!text.contains(char::is_control), "{text}");
        assert!(name(&"\u{e9}".repeat(1_000)).to_string().len() < 3 * MAX_PLACE);
    }
}
