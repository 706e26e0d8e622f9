//! Exports the selected messages as packets, JSON lines, or a table.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State as Extracted};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use serde::Deserialize;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use worldwire_capture::{CaptureWriter, Conversations, LinkType, Owner, Record};
use worldwire_core::json::Style;
use worldwire_core::{Limits, Tree};
use worldwire_dissect::filter::Subject;
use worldwire_dissect::{Format, Item, Scratch};

use crate::error::Refusal;
use crate::selection::{Chosen, Selection};
use crate::state::State;

/// The size of a piece, and the number of pieces that can wait for the client.
const PIECE: usize = 64 << 10;
const MAX_WAITING: usize = 4;

#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    selection: Option<u64>,
}

/// The formats of exports.
#[derive(Clone, Copy, Debug)]
enum ExportFormat {
    /// All packets of the conversations with selected messages.
    Pcapng,
    /// The lines of `dissect --json`.
    JsonLines,
    /// The columns of the page.
    Csv,
}

/// Responds with a file.
pub(crate) async fn export(
    Extracted(state): Extracted<Arc<State>>,
    Path(format): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Refusal> {
    let (format, kind) = match format.as_str() {
        "pcapng" => (ExportFormat::Pcapng, "application/octet-stream"),
        "jsonl" => (ExportFormat::JsonLines, "application/x-ndjson"),
        "csv" => (ExportFormat::Csv, "text/csv; charset=utf-8"),
        other => {
            let text = format!("unknown format {other:?}; use pcapng, jsonl or csv");
            return Err(Refusal::missing(text));
        }
    };
    let selection = wanted.selection.map(|id| state.selections.get(id)).transpose()?;
    if selection.as_ref().is_some_and(|selection| !selection.status().is_complete()) {
        return Err(Refusal::busy("the search is still running; export when it is complete"));
    }
    if !state.index().is_complete {
        return Err(Refusal::busy("the capture is still being read; export when it is complete"));
    }
    let name = match format {
        ExportFormat::Pcapng => "selection.pcapng",
        ExportFormat::JsonLines => "selection.jsonl",
        ExportFormat::Csv => "selection.csv",
    };
    let own = Arc::clone(&state);
    download(&state, name, kind, move |out| {
        let selection = selection.as_deref();
        match format {
            ExportFormat::Pcapng => write_packets(&own, selection, out),
            ExportFormat::JsonLines => write_lines(&own, selection, out),
            ExportFormat::Csv => write_table(&own, selection, out),
        }
    })
    .await
}

/// Responds with a file of this name. A separate thread writes it while it is sent.
pub(crate) async fn download(
    state: &State,
    name: &str,
    kind: &'static str,
    write: impl FnOnce(&mut Sending) -> io::Result<()> + Send + 'static,
) -> Result<Response, Refusal> {
    let ended = |_| Refusal::failed("the program is shutting down");
    let permit = Arc::clone(&state.work).acquire_owned().await.map_err(ended)?;
    let (sender, receiver) = channel(MAX_WAITING);
    let work = move || {
        let _permit = permit;
        let mut out = Sending { sender, piece: Vec::new() };
        if let Err(error) = write(&mut out).and_then(|()| out.flush()) {
            // This makes the download fail rather than look complete.
            let _ = out.sender.blocking_send(Err(error));
        }
    };
    let thread = thread::Builder::new().name("export".to_owned()).spawn(work);
    thread.map_err(|error| {
        Refusal::failed(format!("cannot start a thread for the export: {error}"))
    })?;
    let headers = [
        (CONTENT_TYPE, kind.to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, Body::from_stream(Pieces(receiver))).into_response())
}

type Piece = io::Result<Bytes>;

/// Writes all packets of the conversations that have a selected row, and all IP fragments, which do
/// not reveal their conversation.
fn write_packets(
    state: &State,
    selection: Option<&Selection>,
    out: &mut Sending,
) -> io::Result<()> {
    let streams: Option<BTreeSet<u64>> = selection.map(|selection| {
        let (index, rows) = (state.index(), selection.rows());
        let rows = rows.iter().filter_map(|row| index.row(*row as usize));
        rows.map(|row| row.stream.into()).collect()
    });
    let mut packets = state.recording.packets(&Arc::default()).map_err(io::Error::other)?;
    let mut conversations = Conversations::new(&Limits::DEFAULT);
    let mut writer = CaptureWriter::new(out, &[]).map_err(io::Error::other)?;
    let mut interfaces: HashMap<(u32, LinkType), u32> = HashMap::new();
    // The index reports a damaged capture; everything before the damage is valid.
    while let Ok(Some(record)) = packets.next() {
        let Record::Packet(packet) = record else { continue };
        conversations.push(&packet, &mut |_| {});
        let is_wanted = match (&streams, conversations.owner()) {
            (None, _) | (_, Owner::Fragment) => true,
            (Some(streams), Owner::Conversation(stream)) => streams.contains(&stream),
            (Some(_), Owner::Nobody) => false,
        };
        if !is_wanted || packet.unusable.is_some() {
            continue;
        }
        let key = (packet.interface, packet.link);
        let interface = match interfaces.get(&key) {
            Some(interface) => *interface,
            None => {
                let interface = writer.interface(packet.link).map_err(io::Error::other)?;
                interfaces.insert(key, interface);
                interface
            }
        };
        let written = writer.packet(interface, packet.time, packet.data, packet.original_length);
        written.map_err(io::Error::other)?;
    }
    Ok(())
}

fn write_lines(state: &State, selection: Option<&Selection>, out: &mut Sending) -> io::Result<()> {
    let all = Chosen::default();
    let chosen = selection.map_or(&all, |selection| &selection.chosen);
    let show = |item: &Item<'_>, scratch: &mut Scratch, text: &mut String| {
        let limits = Limits::DEFAULT;
        if chosen.stream.is_some_and(|stream| stream != item.stamp.stream) {
            return;
        }
        let tree: Tree<'_> = item.tree(core::mem::take(&mut scratch.tree).recycle(), &limits);
        let subject = Subject::of(item, &scratch.name, &tree);
        if chosen.filter.as_ref().is_none_or(|filter| filter.matches(&subject)) {
            Format::Json(Style::default()).write(item, &scratch.name, &tree, text);
        }
        scratch.tree = tree.recycle();
    };
    let mut outcome = Ok(());
    let recording = &state.recording;
    recording.read(recording.dissection(), &Arc::default(), None, show, |text: &String, _| {
        outcome = out.write_all(text.as_bytes());
        match outcome.is_err() || state.is_closed() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    outcome
}

fn write_table(state: &State, selection: Option<&Selection>, out: &mut Sending) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let columns =
        ["row", "time", "packet", "stream", "family", "from", "name", "kind", "length", "info"];
    writer.write_record(columns)?;
    let total = state.index().len();
    let numbers: Vec<usize> = match selection {
        Some(selection) => selection.rows().iter().map(|row| *row as usize).collect(),
        None => (0..total).collect(),
    };
    for number in numbers {
        // The lock is taken for each row, because a slow client must not block the others.
        let index = state.index();
        let Some(row) = index.row(number) else { continue };
        let seconds = worldwire_dissect::Time(row.time).to_string();
        let kind = format!("{:?}", row.kind).to_lowercase();
        let cells = [
            number.to_string(),
            seconds,
            row.packet.to_string(),
            row.stream.to_string(),
            index.family(row).to_owned(),
            row.from().name().to_owned(),
            index.name(row).to_owned(),
            kind,
            row.length.to_string(),
            index.text(number),
        ];
        drop(index);
        writer.write_record(&cells)?;
    }
    writer.flush()
}

/// Sends written data in pieces.
pub(crate) struct Sending {
    sender: Sender<Piece>,
    piece: Vec<u8>,
}

impl Write for Sending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(core::mem::take(&mut self.piece));
        let gone = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the client disconnected");
        self.sender.blocking_send(Ok(piece)).map_err(gone)
    }
}

struct Pieces(Receiver<Piece>);

impl Stream for Pieces {
    type Item = Piece;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        self.0.poll_recv(context)
    }
}
