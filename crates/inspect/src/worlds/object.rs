//! KI: the game objects of an archive as JSON, encoded again after edits, and saved in changed copies.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, State as Extracted};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use worldwire_core::json::Style;
use worldwire_core::{Error, Limits};
use worldwire_ki::file::wad::Inflater;
use worldwire_ki::object::{Header, JsonWriter, MAGIC, Object, ObjectCodec};

use super::archive::ArchivedFile;
use super::classes;
use super::copy::NewFile;
use super::ki::{Edited, MAX_DECODED, archive, described, file, present, unreadable};
use crate::api;
use crate::error::Refusal;
use crate::state::State;

type Shared = Extracted<Arc<State>>;
type Outcome<T> = Result<T, Refusal>;

/// The maximum length of an object's JSON in bytes.
const MAX_JSON: usize = 4 << 20;
/// The maximum length of a request that encodes one object, and of one that saves several. Requests
/// contain the JSON as strings, with quotes escaped.
const MAX_ENCODE: usize = 2 * MAX_JSON + 1024;
const MAX_COPY: usize = 16 << 20;
/// The maximum number of changed files in a copy.
const MAX_CHANGED: usize = 256;

/// Objects with more values are not edited here.
static LIMITS: Limits = Limits { nodes: 1 << 18, ..Limits::DEFAULT };

pub(super) fn router() -> Router<Arc<State>> {
    let encode = post(encode).layer(DefaultBodyLimit::max(MAX_ENCODE));
    let copy = post(copy).layer(DefaultBodyLimit::max(MAX_COPY));
    Router::new()
        .route("/api/archive/files/{number}/object", get(show))
        .route("/api/archive/files/{number}/encode", encode)
        .route("/api/archive/copies", copy)
}

/// An object in the archive that can be edited.
struct Original<'s> {
    file: &'s ArchivedFile,
    codec: ObjectCodec<'s>,
    content: Vec<u8>,
    header: Header,
    object: Object,
}

impl<'s> Original<'s> {
    /// Reads an object.
    ///
    /// # Errors
    /// The file is not an object, or a part of it cannot be decoded or is too large.
    fn read(state: &'s State, number: usize) -> Outcome<Self> {
        let archive = archive(state)?;
        let file = file(archive, number)?;
        if file.size > MAX_DECODED {
            return Err(fixed(format!(
                "files larger than {MAX_DECODED} bytes cannot be edited here"
            )));
        }
        let mut inflater = Inflater::new();
        let content = archive.read(file, &mut inflater).map_err(|error| unreadable(&error))?;
        let content = present(content)?.to_vec();
        if !content.starts_with(MAGIC) {
            return Err(fixed("only game objects can be edited; this file is not one".to_owned()));
        }
        let classes = classes::known(state)?;
        let codec = classes::codec(classes);
        let mut object = Object::within(&LIMITS);
        let decoded = codec.decode_all_within(&content, &LIMITS, &mut object);
        let decoded = decoded.map_err(|error| {
            fixed(format!("the object cannot be edited because it cannot be decoded: {error}"))
        })?;
        if object.root(classes).and_then(|root| root.class()).is_none() {
            return Err(fixed("this file contains no object".to_owned()));
        }
        Ok(Self { file, codec, content, header: decoded.header, object })
    }

    /// The object as JSON that reads back as exactly the same object, even after passing through
    /// programs that keep each member of a JSON object only once and in any order.
    fn json(&self) -> Outcome<String> {
        let classes = self.codec.classes();
        let mut json = JsonWriter::new(Bounded(Vec::new()), Style::default());
        let written = self.object.visit(classes, &mut json).and_then(|()| json.finish());
        let too_long = |_| {
            let text = format!(
                "objects whose JSON is larger than {MAX_JSON} bytes cannot be edited here; use \
                 `worldwire ki wad extract` and `ki wad update`"
            );
            fixed(text)
        };
        let text = String::from_utf8(written.map_err(too_long)?.0)
            .map_err(|error| Refusal::failed(error.to_string()))?;
        let ordered = Object::parse_json(classes, &text);
        let plain = worldwire_core::json::parse(&text).ok();
        let plain = plain.and_then(|json| Object::from_json(classes, &json).ok());
        let sorted = self.object.in_class_order(classes).ok();
        if ordered.as_ref() != Ok(&self.object) || plain.is_none() || plain != sorted {
            let text =
                "the object cannot be edited because JSON does not preserve all of its values";
            return Err(fixed(text.to_owned()));
        }
        Ok(text)
    }

    /// Encodes the object after edits. An unchanged object keeps its bytes.
    fn encoded(&self, json: &str) -> Outcome<(Vec<u8>, Edited)> {
        if json.len() > MAX_JSON {
            return Err(wrong(&Error::limit("bytes of JSON", MAX_JSON as u64, json.len() as u64)));
        }
        let classes = self.codec.classes();
        let object = Object::parse_json(classes, json).map_err(|error| wrong(&error))?;
        if object.root(classes).and_then(|root| root.class()).is_none() {
            return Err(wrong(&Error::value("an object", "null")));
        }
        let mut warnings = object.unrelated(classes);
        if object == self.object {
            return Ok((self.content.clone(), Edited { is_changed: false, warnings }));
        }
        let bytes = self.codec.encode(&object, self.header).map_err(|error| wrong(&error))?;
        if bytes.len() > MAX_DECODED as usize {
            let (most, found) = (u64::from(MAX_DECODED), bytes.len() as u64);
            return Err(wrong(&Error::limit("bytes of a file", most, found)));
        }
        // The archive must not receive an object that cannot be read again.
        let mut again = Object::within(&LIMITS);
        let decoded = self.codec.decode_all_within(&bytes, &LIMITS, &mut again);
        decoded.map_err(|error| wrong(&error.hint("undo the last change")))?;
        if self.codec.encode(&self.object, self.header).ok().as_ref() != Some(&self.content) {
            let text = "another program encoded this object: unchanged values stay the same, but \
                        some of their bytes change";
            warnings.push(text.to_owned());
        }
        Ok((bytes, Edited { is_changed: true, warnings }))
    }
}

/// Refuses more bytes than an object's JSON may have.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_JSON {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The refusal to edit a file.
fn fixed(text: String) -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, text)
}

/// The refusal of an edited value.
fn wrong(error: &Error) -> Refusal {
    let field = Some(error.path_text()).filter(|path| !path.is_empty());
    Refusal { field, ..Refusal::new(StatusCode::CONFLICT, error.to_string()) }
}

async fn show(Extracted(state): Shared, Path(number): Path<usize>) -> Outcome<Json<Value>> {
    let show = move |state: &Arc<State>| {
        let json = Original::read(state, number)?.json()?;
        Ok(json!({ "object": json }))
    };
    Ok(Json(state.busy(show).await?))
}

/// An object after edits, as JSON text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EncodeRequest {
    object: String,
}

async fn encode(
    Extracted(state): Shared,
    Path(number): Path<usize>,
    request: Result<Json<EncodeRequest>, JsonRejection>,
) -> Outcome<Response> {
    let Json(request) = request.map_err(|error| api::unreadable(&error))?;
    let encode = move |state: &Arc<State>| {
        let original = Original::read(state, number)?;
        let (bytes, edited) = original.encoded(&request.object)?;
        described(state, (number, original.file), &bytes, Some(edited))
    };
    let json = state.busy(encode).await?;
    Ok(([(CONTENT_TYPE, "application/json")], json).into_response())
}

/// A copy to be saved.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CopyRequest {
    /// The name of the new file.
    name: String,
    /// Save only this file, one of the changed `objects`, instead of the whole archive.
    file: Option<usize>,
    objects: Vec<ChangedObject>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangedObject {
    file: usize,
    /// The object as JSON text.
    object: String,
}

async fn copy(
    Extracted(state): Shared,
    request: Result<Json<CopyRequest>, JsonRejection>,
) -> Outcome<Response> {
    let Json(request) = request.map_err(|error| api::unreadable(&error))?;
    let saved = state.busy(move |state| saved(state, &request)).await?;
    Ok((StatusCode::CREATED, Json(saved)).into_response())
}

fn saved(state: &State, request: &CopyRequest) -> Outcome<Value> {
    let CopyRequest { name, file: only, objects } = request;
    let archive = archive(state)?;
    let Some(folder) = archive.copies() else {
        let text = "the page cannot save copies; start the inspector with --edit";
        return Err(Refusal::new(StatusCode::FORBIDDEN, text));
    };
    let new = NewFile::in_folder(folder, name)?;
    if objects.len() > MAX_CHANGED {
        return Err(Refusal::bad(format!("objects: at most {MAX_CHANGED} are allowed")));
    }
    let mut changed = BTreeMap::new();
    for ChangedObject { file: number, object } in objects {
        if only.is_some_and(|only| only != *number) {
            continue;
        }
        let original = Original::read(state, *number)?;
        let (bytes, edited) = original.encoded(object).map_err(|refusal| {
            let text = format!("{}: {}", original.file.path, refusal.text);
            Refusal { text, ..refusal }
        })?;
        if !edited.is_changed {
            continue;
        }
        if changed.insert(original.file.entry, bytes).is_some() {
            return Err(Refusal::bad(format!("objects: file {number} occurs twice")));
        }
    }
    let count = changed.len();
    let size = match (only, changed.first_key_value()) {
        (_, None) => {
            let text = "nothing has changed, so there is nothing to save";
            return Err(Refusal::new(StatusCode::CONFLICT, text));
        }
        (Some(_), Some((_, bytes))) => new.save(bytes)?,
        (None, _) => new.save_archive(archive, &changed, &|| state.is_closed())?,
    };
    Ok(json!({ "file": name, "size": size, "changed": count }))
}
