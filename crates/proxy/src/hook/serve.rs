//! Exchanges lines with one hook over its streams.

use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout};
use worldwire_core::json::Parser;
use worldwire_net::Signal;

use super::frames;
use super::hub::{Event, Hub};
use super::link::Link;
use super::protocol::{Form, FromHook, LineError, LogLevel, MAX_LINE_BYTES, error};
use crate::log_text::push_safe;

/// How long a hook may take to send its hello.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// The time limit for telling a hook why it is disconnected, and for writing queued lines.
const FLUSH_TIME: Duration = Duration::from_secs(1);
/// After this many faulty lines in a row, a hook is disconnected.
const MAX_FAULTS: u32 = 100;
/// After this many lines, the task yields to others.
const LINES_AT_ONCE: u64 = 64;
/// The maximum number of a hook's lines that are logged per second.
const MAX_LOG_LINES: u32 = 100;
/// The maximum number of bytes of a line that are logged.
const MAX_LOG_BYTES: usize = 1_000;

/// Why a hook has ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It closed its output.
    Closed,
    /// Its streams failed.
    Failed(io::Error),
    /// It did not send a valid hello.
    Unknown(String),
    /// It sent too many faulty lines in a row.
    Faulty,
    /// The proxy is stopping.
    Stopped,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("it closed its output"),
            Self::Failed(error) => f.write_str(&worldwire_net::reason(error)),
            Self::Unknown(why) => write!(f, "it did not send a valid hello: {why}"),
            Self::Faulty => write!(f, "it sent {MAX_FAULTS} faulty lines in a row"),
            Self::Stopped => f.write_str("the proxy is stopping"),
        }
    }
}

/// Exchanges lines with a hook until it ends.
pub(crate) async fn serve<R, W>(
    hub: &Arc<Hub>,
    source: usize,
    (reader, mut writer): (R, W),
    signal: &mut Signal,
) -> Ended
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut lines = LineReader::new(reader);
    let link = tokio::select! {
        hello = timeout(HELLO_TIME, introduce(hub, source, &mut lines)) => hello,
        () = signal.stopping() => return Ended::Stopped,
    };
    let link = match link {
        Ok(Ok(link)) => link,
        Ok(Err(ended)) => {
            if let Ended::Unknown(why) = &ended {
                let line = error(None, why);
                let _ = timeout(FLUSH_TIME, writer.write_all(line.as_bytes())).await;
            }
            return ended;
        }
        Err(_) => return Ended::Unknown(format!("no line arrived within {HELLO_TIME:?}")),
    };
    tracing::info!("hook {} is running", link.name);
    let ended = {
        let writing = write(&link, &mut writer);
        tokio::pin!(writing);
        let ended = tokio::select! {
            ended = read(hub, &link, &mut lines) => ended,
            outcome = &mut writing => outcome.map_or_else(Ended::Failed, |()| Ended::Closed),
            () = signal.stopping() => Ended::Stopped,
        };
        if matches!(ended, Ended::Stopped | Ended::Faulty) {
            link.close();
            let _ = timeout(FLUSH_TIME, writing).await;
        }
        ended
    };
    hub.leave(&link).await;
    ended
}

/// Reads the first line.
async fn introduce<R: AsyncRead + Unpin>(
    hub: &Hub,
    source: usize,
    lines: &mut LineReader<R>,
) -> Result<Arc<Link>, Ended> {
    let line = match lines.next().await {
        Ok(Some(Ok(line))) => line,
        Ok(Some(Err(why))) => return Err(Ended::Unknown(why)),
        Ok(None) => return Err(Ended::Closed),
        Err(error) => return Err(Ended::Failed(error)),
    };
    match FromHook::parse(line, &mut Parser::default()) {
        Ok(FromHook::Hello(hello)) => hub.enter(source, hello).map_err(Ended::Unknown),
        Ok(_) => Err(Ended::Unknown("the first line must be a hello".to_owned())),
        Err(error) => Err(Ended::Unknown(error.text)),
    }
}

/// Writes queued lines to a hook, until the link is closed.
async fn write<W: AsyncWrite + Unpin>(link: &Link, writer: &mut W) -> io::Result<()> {
    while link.filled().await {
        writer.write_all(&link.take()).await?;
        writer.flush().await?;
    }
    Ok(())
}

/// Carries out a hook's lines.
async fn read<R: AsyncRead + Unpin>(
    hub: &Hub,
    link: &Arc<Link>,
    lines: &mut LineReader<R>,
) -> Ended {
    let mut parser = Parser::default();
    let mut budget = LogBudget::new();
    let mut faults = 0;
    let mut count = 0_u64;
    loop {
        // A flood must not keep other tasks from running.
        count += 1;
        if count.is_multiple_of(LINES_AT_ONCE) {
            tokio::task::yield_now().await;
        }
        let parsed = match link.form {
            Form::Lines => match lines.next().await {
                Ok(Some(Ok(line))) => FromHook::parse(line, &mut parser),
                Ok(Some(Err(text))) => Err(LineError { id: None, text }),
                Ok(None) => return Ended::Closed,
                Err(error) => return Ended::Failed(error),
            },
            Form::Binary => match lines.next_frame().await {
                Ok(Some(frame)) => frames::parse(frame, &mut parser),
                Ok(None) => return Ended::Closed,
                Err(error) => return Ended::Failed(error),
            },
        };
        // A valid line that arrives too late, for example because the conversation has just ended,
        // is not a fault.
        faults = if parsed.is_ok() { 0 } else { faults + 1 };
        let outcome = match parsed {
            Ok(line) => carry_out(hub, link, line, &mut budget).await,
            Err(error) => Err(error),
        };
        if let Err(LineError { id, text }) = outcome {
            // A hook that does not read its input misses the error, too.
            let _ = link.send(&error(id.as_deref(), &text));
        }
        if faults >= MAX_FAULTS {
            return Ended::Faulty;
        }
    }
}

async fn carry_out(
    hub: &Hub,
    link: &Arc<Link>,
    line: FromHook,
    budget: &mut LogBudget,
) -> Result<(), LineError> {
    let fault = |id: Option<String>| |text: String| LineError { id, text };
    match line {
        FromHook::Hello(_) => Err(fault(None)("only the first line can be a hello".to_owned())),
        FromHook::Subscribe(wanted) => hub.subscribe(link, wanted).map_err(fault(None)),
        FromHook::Unsubscribe(ids) => hub.unsubscribe(link, &ids).map_err(fault(None)),
        FromHook::Answer(id, reply) => {
            let event = Event::Answer(Arc::clone(link), id.number, reply);
            hub.pass(id.conversation, event).await.map_err(fault(Some(id.to_string())))
        }
        FromHook::Add(conversation, messages) => {
            let event = Event::Add(Arc::clone(link), messages);
            hub.pass(conversation, event).await.map_err(fault(None))
        }
        FromHook::Sync(conversation, id) => {
            let event = Event::Sync(Arc::clone(link), id.clone());
            hub.pass(conversation, event).await.map_err(fault(Some(id)))
        }
        FromHook::Log(level, text) => {
            budget.log(level, &link.name, &text);
            Ok(())
        }
        FromHook::Query(query) => {
            // Finding the answer takes time, so let other tasks run first.
            tokio::task::yield_now().await;
            if link.is_filling() {
                let text = "read the answers to earlier queries first".to_owned();
                return Err(fault(query.id)(text));
            }
            let answer = hub.look_up(&query).map_err(fault(query.id.clone()))?;
            link.send(&answer).map_err(|why| fault(query.id)(why.to_string()))
        }
    }
}

/// Logs a hook's lines, at a limited rate.
#[derive(Debug)]
pub(crate) struct LogBudget {
    since: Instant,
    lines: u32,
}

impl LogBudget {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), lines: 0 }
    }

    pub(crate) fn log(&mut self, level: LogLevel, name: &str, text: &str) {
        if self.since.elapsed() >= Duration::from_secs(1) {
            if self.lines > MAX_LOG_LINES {
                let lost = self.lines - MAX_LOG_LINES;
                tracing::warn!("hook {name}: {lost} more lines were not logged");
            }
            *self = Self::new();
        }
        self.lines = self.lines.saturating_add(1);
        if self.lines <= MAX_LOG_LINES {
            let text = text.get(..text.floor_char_boundary(MAX_LOG_BYTES)).unwrap_or_default();
            let mut safe = String::new();
            push_safe(&mut safe, text.trim_end());
            match level {
                LogLevel::Info => tracing::info!("hook {name}: {safe}"),
                LogLevel::Warning => tracing::warn!("hook {name}: {safe}"),
                LogLevel::Error => tracing::error!("hook {name}: {safe}"),
            }
        }
    }
}

/// Reads lines or frames of limited length.
pub(crate) struct LineReader<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The offset at which the next line begins.
    start: usize,
    /// The offset up to which no line end was found.
    searched: usize,
    /// Whether the rest of a line that is too long is being skipped.
    is_skipping: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), start: 0, searched: 0, is_skipping: false }
    }

    /// The next line that is not blank, or why it cannot be read. `None` at the end. Dropping the
    /// future loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Result<&str, String>>> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(at) = unsearched.iter().position(|byte| *byte == b'\n') {
                let line = self.start..self.searched + at;
                self.start = line.end + 1;
                self.searched = self.start;
                if core::mem::take(&mut self.is_skipping) {
                    continue;
                }
                let bytes = &self.buffer[line.clone()];
                if bytes.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                let line = core::str::from_utf8(&self.buffer[line]);
                return Ok(Some(line.map_err(|error| format!("not UTF-8: {error}"))));
            }
            self.searched = self.buffer.len();
            if self.is_skipping {
                self.buffer.clear();
                (self.start, self.searched) = (0, 0);
            } else if self.buffer.len() - self.start > MAX_LINE_BYTES {
                self.buffer = Vec::new();
                (self.start, self.searched) = (0, 0);
                self.is_skipping = true;
                return Ok(Some(Err(format!("a line has more than {MAX_LINE_BYTES} bytes"))));
            } else if self.start > 0 {
                self.buffer.drain(..self.start);
                self.searched -= self.start;
                self.start = 0;
            }
            self.buffer.reserve(READ_BYTES);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// The next frame, without its length. `None` at the end. Dropping the future loses nothing.
    ///
    /// # Errors
    /// If a frame is empty or too long, because the next one cannot be found.
    pub(crate) async fn next_frame(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            let unread = self.buffer.get(self.start..).unwrap_or_default();
            if let Some((length, rest)) = unread.split_first_chunk() {
                let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
                if length == 0 || length > MAX_LINE_BYTES {
                    let problem =
                        format!("a frame has {length} bytes; the limit is {MAX_LINE_BYTES}");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
                }
                if rest.len() >= length {
                    let from = self.start + 4;
                    self.start = from + length;
                    return Ok(self.buffer.get(from..from + length));
                }
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            self.buffer.reserve(READ_BYTES);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// The number of bytes read at a time.
const READ_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8]) -> Vec<Result<String, String>> {
        let mut reader = LineReader::new(input);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            lines.push(line.map(str::to_owned));
        }
        lines
    }

    #[tokio::test]
    async fn lines_are_bounded() {
        let mut input = b"one\n \r\n\ntwo\r\n".to_vec();
        input.extend(vec![b'x'; MAX_LINE_BYTES * 3]);
        input.extend(b"\nthree\n\xff\nunfinished");
        let [one, two, long, three, wrong] = &lines(&input).await[..] else { panic!() };
        assert_eq!((one, two), (&Ok("one".to_owned()), &Ok("two\r".to_owned())));
        assert!(long.as_ref().is_err_and(|why| why.contains("8388608")), "{long:?}");
        assert_eq!(three, &Ok("three".to_owned()));
        assert!(wrong.as_ref().is_err_and(|why| why.starts_with("not UTF-8")), "{wrong:?}");
    }

    #[tokio::test]
    async fn frames_follow_a_line_and_are_bounded() {
        let input = b"{}\n\x01\0\0\0a\x02\0\0\0bc\xff\xff\xff\xffd";
        let mut reader = LineReader::new(&input[..]);
        assert_eq!(reader.next().await.unwrap(), Some(Ok("{}")));
        assert_eq!(reader.next_frame().await.unwrap(), Some(&b"a"[..]));
        assert_eq!(reader.next_frame().await.unwrap(), Some(&b"bc"[..]));
        let error = reader.next_frame().await.unwrap_err().to_string();
        assert_eq!(error, "a frame has 4294967295 bytes; the limit is 8388608");
        let mut cut = LineReader::new(&b"\x05\0\0\0ab"[..]);
        assert_eq!(cut.next_frame().await.unwrap(), None);
    }
}
