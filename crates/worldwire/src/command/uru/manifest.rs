//! `worldwire uru manifest`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::path::{Component, Path, PathBuf};

use indicatif::ProgressBar;
use md5::{Digest, Md5};
use worldwire_core::json::Style;
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::value::push_hex;
use worldwire_core::{Field, Limits, Reader, Side, Tree, Writer};
use worldwire_dissect::{Codec, CodecOptions, Definitions, Keys};
use worldwire_uru::file::manifest::{Manifest, ManifestEntry, ManifestFlags};
use worldwire_uru::types::{HiLo, ZStr};

use crate::cli::{Common, Target, UruManifest};
use crate::input;
use crate::output::{Failure, Output, WholeFile, complain, print, printable, shown, unfinished};

pub(crate) fn run(command: &UruManifest, common: &Common) -> Result<(), Failure> {
    match command {
        UruManifest::Make { folder, prefix, gzip_to, target } => {
            make(folder, prefix.as_deref(), gzip_to.as_deref(), target, common)
        }
        UruManifest::Check { file, folder, prefix } => check(file, folder, prefix.as_deref()),
        UruManifest::Show { file, json } => show(file, *json, common),
    }
}

fn make(
    folder: &Path,
    prefix: Option<&str>,
    gzip_to: Option<&Path>,
    target: &Target,
    common: &Common,
) -> Result<(), Failure> {
    let mut files = files_below(folder)?;
    // Skip files created by this command.
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let own = [target.output.as_deref(), gzip_to].into_iter().flatten().filter_map(real);
    let own: Vec<PathBuf> = own.filter(|own| Some(own) != real(folder).as_ref()).collect();
    files.retain(|_, path| {
        real(path).is_none_or(|path| !own.iter().any(|own| path.starts_with(own)))
    });
    let mut output = Output::open(target)?;
    let progress = if common.quiet || !std::io::stderr().is_terminal() {
        ProgressBar::hidden()
    } else {
        ProgressBar::new(files.len() as u64)
    };
    let mut manifest = Manifest::default();
    for (name, path) in files {
        let plain = input::read(&path)?;
        let client = client_name(prefix, &name);
        let packed = match gzip_to {
            None => None,
            Some(into) => {
                let packed = gzip(&plain, &path)?;
                store(&into.join(format!("{client}.gz").replace('\\', "/")), &packed)?;
                Some(packed)
            }
        };
        manifest.0.push(listed(&path, &client, &plain, packed.as_deref())?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let text = manifest.format().map_err(|error| Failure::Run(error.to_string()))?;
    output.write(text.as_bytes())?;
    output.finish()
}

fn check(file: &Path, folder: &Path, prefix: Option<&str>) -> Result<(), Failure> {
    let manifest = load(file)?;
    let files = files_below(folder)?;
    let mut unlisted: BTreeMap<String, PathBuf> =
        files.into_iter().map(|(name, path)| (client_name(prefix, &name), path)).collect();
    let mut problems = 0;
    let mut out = String::new();
    let mut tell = |name: &str, what: &str| {
        problems += 1;
        let _ = writeln!(out, "{}: {}", printable(name), printable(what));
    };
    for entry in &manifest.0 {
        let client = entry.client_name.to_text();
        let download = entry.download_name.to_text();
        let (plain, sent) = (unlisted.remove(&client), unlisted.remove(&download));
        if plain.is_none() && sent.is_none() {
            tell(&client, "missing");
            continue;
        }
        let found = [
            (plain, &entry.md5, entry.file_size),
            (sent, &entry.md5_compressed, entry.compressed_size),
        ];
        for (path, wanted, size) in found {
            let Some(path) = path else {
                continue;
            };
            let bytes = input::read(&path)?;
            if size.0 != 0 && bytes.len() as u64 != u64::from(size.0) {
                tell(&client, &format!("wanted {} bytes, found {}", size.0, bytes.len()));
            } else if md5(&bytes) != wanted.to_text().to_ascii_lowercase() {
                tell(&client, &format!("wanted MD5 {}, found {}", wanted.to_text(), md5(&bytes)));
            }
        }
    }
    for name in unlisted.keys() {
        tell(name, "not in the manifest");
    }
    print(&out)?;
    if problems == 0 { Ok(()) } else { Err(Failure::Input) }
}

fn show(file: &Path, json: bool, common: &Common) -> Result<(), Failure> {
    let manifest = load(file)?;
    let mut writer = Writer::new();
    manifest.encode(&mut writer).map_err(|error| Failure::Run(error.to_string()))?;
    let codec = Codec::named("uru.manifest").map_err(|error| Failure::Run(error.to_string()))?;
    let (keys, limits) = (Keys::none(), Limits::DEFAULT);
    let definitions = Definitions::built_in();
    let options = CodecOptions {
        from: Side::Server,
        keys: &keys,
        definitions: &definitions,
        limits: &limits,
    };
    let tree: Tree<'_> = codec.decode(writer.as_bytes(), &options);
    let mut out = String::new();
    if json {
        codec.write_json(&tree, Side::Server, Style::default(), &mut out);
        out.push('\n');
    } else {
        let style = TextStyle { colour: common.colour(None), longest: 0, ..TextStyle::default() };
        write_tree(&tree, style, &mut out);
    }
    print(&out)
}

/// Reads a manifest in either form: text or the wire format.
fn load(file: &Path) -> Result<Manifest<'static>, Failure> {
    let bytes = input::read(file)?;
    let subject = file.display().to_string();
    if bytes.contains(&0) {
        let mut reader = Reader::new(&bytes);
        let manifest = Manifest::decode(&mut reader, "files")
            .map(Field::into_owned)
            .and_then(|manifest| reader.end().map(|()| manifest));
        return manifest.map_err(|error| {
            complain(&subject, &error.closed().to_string());
            Failure::Input
        });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        complain(&subject, &format!("at byte {at}: not UTF-8 text"));
        Failure::Input
    })?;
    Manifest::parse(&text).map_err(|errors| {
        errors.iter().for_each(|error| complain(&subject, &error.to_string()));
        Failure::Input
    })
}

/// All files below a directory with their relative names, sorted. Links are not followed.
fn files_below(folder: &Path) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let entries = std::fs::read_dir(&next).map_err(|error| Failure::io(&next, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| Failure::io(&next, &error))?;
            let kind = entry.file_type().map_err(|error| Failure::io(&entry.path(), &error))?;
            if let Some(why) = unfinished(&entry.file_name(), kind.is_dir()) {
                complain(&shown(&entry.path()), why);
            } else if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let path = entry.path();
                let below = path.strip_prefix(folder).unwrap_or(&path);
                let parts = below.components().filter_map(|part| match part {
                    Component::Normal(name) => Some(name.to_string_lossy()),
                    _ => None,
                });
                files.insert(parts.collect::<Vec<_>>().join("\\"), path);
            }
        }
    }
    Ok(files)
}

fn client_name(prefix: Option<&str>, name: &str) -> String {
    prefix.map_or_else(|| name.to_owned(), |prefix| format!("{prefix}\\{name}"))
}

/// The digest of a file, in hexadecimal digits.
pub(super) fn md5(bytes: &[u8]) -> String {
    let mut text = String::new();
    push_hex(&mut text, &Md5::digest(bytes));
    text
}

/// Compresses without a time or a name, so that the same file always yields the same bytes.
pub(super) fn gzip(plain: &[u8], path: &Path) -> Result<Vec<u8>, Failure> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let packed = encoder.write_all(plain).and_then(|()| encoder.finish());
    packed.map_err(|error| Failure::io(path, &error))
}

/// The entry of a file, given its content and, if clients download it in that form, its gzipped
/// content.
pub(super) fn listed(
    path: &Path,
    client: &str,
    plain: &[u8],
    packed: Option<&[u8]>,
) -> Result<ManifestEntry<'static>, Failure> {
    let size = |bytes: &[u8]| {
        u32::try_from(bytes.len())
            .map(HiLo)
            .map_err(|_| Failure::Run(format!("{}: larger than 4294967295 bytes", shown(path))))
    };
    let download = format!("{client}{}", if packed.is_some() { ".gz" } else { "" });
    Ok(ManifestEntry {
        client_name: ZStr::from(client),
        download_name: ZStr::from(&*download),
        md5: ZStr::from(&*md5(plain)),
        md5_compressed: ZStr::from(&*md5(packed.unwrap_or(plain))),
        file_size: size(plain)?,
        compressed_size: packed.map_or(Ok(HiLo(0)), size)?,
        flags: ManifestFlags(if packed.is_some() { ManifestFlags::GZIP } else { 0 }),
    })
}

/// Writes a file, replacing an existing one.
pub(super) fn store(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| Failure::io(folder, &error))?;
    }
    WholeFile::store(path, bytes, true).map_err(|error| Failure::io(path, &error))
}
