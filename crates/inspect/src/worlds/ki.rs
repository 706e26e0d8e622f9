//! KI: the files of an archive, as trees of fields, text, bytes and pictures.

use std::io::Write as _;
use std::sync::Arc;

use axum::extract::{Path, Query, State as Extracted};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use worldwire_core::{Error, Limits, Side, Tree};
use worldwire_dissect::CodecOptions;
use worldwire_ki::file::bcd::BcdFile;
use worldwire_ki::file::nav::NavFile;
use worldwire_ki::file::wad::Inflater;
use worldwire_ki::object::MAGIC;

use super::archive::{ArchivedFile, KiArchive, Listed};
use super::{classes, object};
use crate::detail::{self, LayerDetail, Node};
use crate::error::Refusal;
use crate::export::download;
use crate::state::State;

type Shared = Extracted<Arc<State>>;
type Outcome<T> = Result<T, Refusal>;

/// The maximum number of files and directories that one request lists.
const MAX_LISTED: usize = 1000;
/// Only the first bytes of larger files are shown, undecoded.
pub(super) const MAX_DECODED: u32 = 8 << 20;
/// The maximum number of a file's bytes shown as bytes and as text.
const MAX_HEAD: usize = 1 << 20;
/// The maximum size of a picture. Browsers draw larger ones too slowly.
const MAX_PICTURE: usize = 16 << 20;

pub(super) static LIMITS: Limits = Limits::DEFAULT;

/// What a file is, judging by its first bytes or its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FileKind {
    Object,
    Graph,
    Collisions,
    Points,
    Texts,
    Text,
    Bytes,
}

/// The archive in the status of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ArchiveSummary {
    files: usize,
    /// Its size in bytes.
    size: usize,
    /// Whether objects can be edited and changed copies can be saved.
    editable: bool,
}

/// A file with its content.
#[derive(Debug, Serialize)]
struct FileDetail<'d> {
    file: usize,
    path: &'d str,
    kind: FileKind,
    size: usize,
    stored: u32,
    /// Whether an edited object differs from the one in the archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<bool>,
    /// Whether only the beginning is shown.
    cut: bool,
    /// Whether there is a picture of it.
    picture: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    codec: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    node_count: usize,
    nodes: Vec<Node<'d>>,
    layers: Vec<LayerDetail<'d>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    remarks: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

pub(super) fn router() -> Router<Arc<State>> {
    Router::new()
        .route("/api/archive/files", get(list))
        .route("/api/archive/files/{number}", get(one_file))
        .route("/api/archive/files/{number}/content", get(content))
        .route("/api/archive/files/{number}/picture", get(picture))
        .merge(classes::router())
        .merge(object::router())
}

impl ArchiveSummary {
    pub(crate) fn of(archive: &KiArchive) -> Self {
        let editable = archive.copies().is_some();
        Self { files: archive.files().len(), size: archive.size(), editable }
    }
}

impl FileKind {
    fn of(path: &str, content: &[u8]) -> Self {
        let path = path.to_lowercase();
        let is = |ending: &str| path.ends_with(ending);
        match () {
            () if content.starts_with(MAGIC) => Self::Object,
            () if is(".nav") => Self::Graph,
            () if is(".bcd") => Self::Collisions,
            () if is("poi.dat") => Self::Points,
            () if is(".lang") => Self::Texts,
            () if text(content).is_some() => Self::Text,
            () => Self::Bytes,
        }
    }

    fn codec(self) -> Option<&'static str> {
        match self {
            Self::Object => Some("ki.object-property"),
            Self::Graph => Some("ki.nav"),
            Self::Collisions => Some("ki.bcd"),
            Self::Points => Some("ki.poi"),
            Self::Texts => Some("ki.lang"),
            Self::Text | Self::Bytes => None,
        }
    }

    fn has_picture(self) -> bool {
        matches!(self, Self::Graph | Self::Collisions)
    }
}

pub(super) fn archive(state: &State) -> Outcome<&KiArchive> {
    state.archive.as_deref().ok_or_else(|| Refusal::missing("the page does not show an archive"))
}

pub(super) fn file(archive: &KiArchive, number: usize) -> Outcome<&ArchivedFile> {
    archive.files().get(number).ok_or_else(|| {
        let count = archive.files().len();
        Refusal::missing(format!(
            "there is no file {number}; the {count} files are numbered from 0"
        ))
    })
}

/// The refusal of a file that cannot be read.
pub(super) fn unreadable(error: &Error) -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
}

pub(super) fn present(content: Option<&[u8]>) -> Outcome<&[u8]> {
    content.ok_or_else(|| {
        let text = "the file has not been downloaded yet: the archive stores zeros in its place";
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, text)
    })
}

#[derive(Debug, Deserialize)]
struct Wanted {
    #[serde(default)]
    folder: String,
    #[serde(default)]
    search: String,
    #[serde(default)]
    start: usize,
    count: Option<usize>,
}

async fn list(Extracted(state): Shared, Query(wanted): Query<Wanted>) -> Outcome<Json<Value>> {
    let list = move |state: &Arc<State>| {
        let archive = archive(state)?;
        let found = match wanted.search.trim() {
            "" => archive.folder(&wanted.folder),
            text => archive.search(text),
        };
        let count = wanted.count.unwrap_or(MAX_LISTED).min(MAX_LISTED);
        let rows: Vec<Value> = found.iter().skip(wanted.start).take(count).map(row).collect();
        Ok(json!({ "total": found.len(), "start": wanted.start, "rows": rows }))
    };
    Ok(Json(state.busy(list).await?))
}

fn row(listed: &Listed<'_>) -> Value {
    match *listed {
        Listed::Folder(path, files) => json!({ "path": path, "files": files }),
        Listed::File(number, file) => json!({
            "path": file.path,
            "file": number,
            "size": file.size,
            "stored": file.stored_size(),
        }),
    }
}

async fn one_file(Extracted(state): Shared, Path(number): Path<usize>) -> Outcome<Response> {
    let json = state.busy(move |state| shown(state, number)).await?;
    Ok(([(CONTENT_TYPE, "application/json")], json).into_response())
}

/// A file as JSON.
fn shown(state: &State, number: usize) -> Outcome<String> {
    let archive = archive(state)?;
    let file = file(archive, number)?;
    let mut inflater = Inflater::new();
    let content = match file.size > MAX_DECODED {
        true => archive.head(file, MAX_HEAD, &mut inflater),
        false => archive.read(file, &mut inflater),
    };
    let content = present(content.map_err(|error| unreadable(&error))?)?;
    described(state, (number, file), content, None)
}

/// An object as it would be after an edit.
pub(super) struct Edited {
    /// Whether it differs from the object in the archive.
    pub(super) is_changed: bool,
    /// What the user should know about it.
    pub(super) warnings: Vec<String>,
}

/// A file with this content, or its beginning, as JSON.
pub(super) fn described(
    state: &State,
    (number, file): (usize, &ArchivedFile),
    content: &[u8],
    edited: Option<Edited>,
) -> Outcome<String> {
    let size = if edited.is_some() { content.len() } else { file.size as usize };
    let is_large = size > MAX_DECODED as usize;
    let kind = FileKind::of(&file.path, content);
    let codec = kind.codec().filter(|_| !is_large);
    let definitions = state.recording.definitions();
    let options = state.recording.options();
    let options =
        CodecOptions { from: Side::Server, keys: &options.keys, definitions, limits: &LIMITS };
    let codec = codec.and_then(|codec| definitions.families().codec(codec).ok());
    let tree = codec.map_or_else(Tree::new, |codec| codec.decode(content, &options));
    let remarks = codec.map(|codec| codec.remarks(content, &options)).unwrap_or_default();
    let mut layers = detail::layers(tree.layers());
    if layers.is_empty() {
        layers.push(LayerDetail::plain("file", content, size));
    }
    let mut error = tree.error().map(ToString::to_string);
    if is_large && kind.codec().is_some() {
        error = Some(format!("files larger than {MAX_DECODED} bytes are not decoded here"));
    }
    let head = content.get(..MAX_HEAD).unwrap_or(content);
    let text = matches!(kind, FileKind::Text | FileKind::Texts).then(|| text(head)).flatten();
    let (changed, warnings) = edited.map(|it| (it.is_changed, it.warnings)).unzip();
    let detail = FileDetail {
        file: number,
        path: &file.path,
        kind,
        size,
        stored: file.stored_size(),
        changed,
        cut: head.len() < size,
        picture: kind.has_picture() && !is_large,
        codec: codec.map(|codec| codec.name),
        text,
        node_count: tree.len(),
        nodes: detail::nodes(&tree),
        layers,
        error,
        remarks: remarks.into_iter().map(|remark| remark.text).collect(),
        warnings: warnings.unwrap_or_default(),
    };
    serde_json::to_string(&detail).map_err(|error| Refusal::failed(error.to_string()))
}

/// A file as text, if it is UTF-8 or UTF-16 without control characters.
fn text(content: &[u8]) -> Option<String> {
    let text = match content.strip_prefix(&[0xff, 0xfe]) {
        Some(units) => {
            let units = units.chunks_exact(2).filter_map(|pair| pair.try_into().ok());
            let units = units.map(u16::from_le_bytes);
            char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect()
        }
        None => match std::str::from_utf8(content) {
            Ok(text) => text.to_owned(),
            // The end may have been cut off within a character.
            Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
                let valid = content.get(..error.valid_up_to()).unwrap_or_default();
                String::from_utf8_lossy(valid).into_owned()
            }
            Err(_) => return None,
        },
    };
    let is_text = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\u{1e}');
    (!text.is_empty() && text.chars().all(is_text)).then_some(text)
}

async fn content(Extracted(state): Shared, Path(number): Path<usize>) -> Outcome<Response> {
    let own = Arc::clone(&state);
    let name = file(archive(&state)?, number)?.name();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ');
    let name: String = name.chars().map(|c| if is_plain(&c) { c } else { '_' }).take(100).collect();
    // A damaged file is refused before any of it is sent.
    let check = move |state: &Arc<State>| {
        let archive = archive(state)?;
        let mut inflater = Inflater::new();
        let content = archive.read(file(archive, number)?, &mut inflater);
        present(content.map_err(|error| unreadable(&error))?).map(|_| ())
    };
    state.busy(check).await?;
    download(&state, &name, "application/octet-stream", move |out| {
        let mut inflater = Inflater::new();
        let Ok(archive) = archive(&own) else { return Ok(()) };
        let Ok(file) = file(archive, number) else { return Ok(()) };
        let content = archive.read(file, &mut inflater).map_err(std::io::Error::other)?;
        content.unwrap_or_default().chunks(MAX_HEAD).try_for_each(|piece| out.write_all(piece))
    })
    .await
}

async fn picture(Extracted(state): Shared, Path(number): Path<usize>) -> Outcome<Response> {
    let svg = state.busy(move |state| drawn(state, number)).await?;
    Ok(([(CONTENT_TYPE, "image/svg+xml")], svg).into_response())
}

/// A graph, or collisions seen from above, as SVG.
fn drawn(state: &State, number: usize) -> Outcome<String> {
    let archive = archive(state)?;
    let file = file(archive, number)?;
    let too_large = || {
        let text = "the picture would be too large for a browser";
        Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, text)
    };
    if file.size > MAX_DECODED {
        return Err(too_large());
    }
    let mut inflater = Inflater::new();
    let content = archive.read(file, &mut inflater).map_err(|error| unreadable(&error))?;
    let content = present(content)?;
    let svg = match FileKind::of(&file.path, content) {
        FileKind::Graph => {
            NavFile::open(content, &LIMITS).map(|(graph, _)| graph.to_svg(&file.path))
        }
        FileKind::Collisions => {
            BcdFile::open(content, &LIMITS).map(|(file_, _)| file_.to_svg(&file.path))
        }
        _ => return Err(Refusal::missing("only graphs and collisions have pictures")),
    };
    let svg = svg.map_err(|error| unreadable(&error))?;
    if svg.len() > MAX_PICTURE { Err(too_large()) } else { Ok(svg) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_content_and_name() {
        let kind = |path: &str, content: &[u8]| FileKind::of(path, content);
        assert_eq!(kind("a.xml", b"BINd\x07"), FileKind::Object);
        assert_eq!(kind("a.xml", b"<a/>\r\n"), FileKind::Text);
        assert_eq!(kind("A/ZONE.NAV", b"\0"), FileKind::Graph);
        assert_eq!(kind("collision.bcd", b"\0"), FileKind::Collisions);
        assert_eq!(kind("a.txt", b"\0"), FileKind::Bytes);
        assert_eq!(kind("empty.txt", b""), FileKind::Bytes);
    }

    #[test]
    fn text_is_utf8_or_utf16() {
        assert_eq!(text(b"\xff\xfea\0\r\0").unwrap(), "a\r");
        assert_eq!(text("é".as_bytes()).unwrap(), "é");
        assert_eq!(text(b"ab\xc3").unwrap(), "ab", "cut within a character");
        assert_eq!(text(b"a\xffb"), None);
        assert_eq!(text(b"a\x00b"), None);
    }
}
