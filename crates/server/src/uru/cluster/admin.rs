//! Operators' requests made in the folder of a process other than the leader.
//!
//! That process opens a session at the leader and sends the request as text: a line of JSON and the
//! lines that follow it, such as those of a dump. The answer is also text, in the format of the
//! [local socket](crate::operators). Both are sent in parts, each in a request of kind [`ADMIN`].

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use worldwire_uru::types::NetError;

use crate::operators::{Answer, AnswerReader, Operated as _, Rejection, answer_lines};
use crate::uru::admin::{Control, Request, RequestError};
use crate::uru::vault::Vault;
use crate::uru::vault::ask::wire_struct;

/// The kind of [`AdminPart`].
pub(super) const ADMIN: u16 = 1_040;

/// The maximum size of a request or an answer.
const MAX_TEXT: usize = 64 << 20;
/// The maximum size of a part.
const MAX_PART: usize = 512 << 10;
/// The maximum number of commands of a node that the leader carries out at the same time.
const MAX_AT_ONCE: usize = 4;
/// The number of nodes beyond which those without a command are forgotten.
const MAX_NODES: usize = 512;
/// How long a request waits for earlier ones to finish.
const PATIENCE: Duration = Duration::from_secs(10);

/// A part of a request, or an empty part that requests the next part of the answer. The reply is an
/// [`AdminAnswer`].
#[derive(Clone, PartialEq)]
pub(super) struct AdminPart {
    text: Vec<u8>,
    is_last: bool,
}

impl fmt::Debug for AdminPart {
    /// Omits the text, which may include a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminPart").field("is_last", &self.is_last).finish_non_exhaustive()
    }
}

wire_struct! { AdminPart { text: Vec<u8>, is_last: bool } }

/// A part of an answer; empty while the request is incomplete.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AdminAnswer {
    text: Vec<u8>,
    is_last: bool,
}

wire_struct! { AdminAnswer { text: Vec<u8>, is_last: bool } }

/// Sends a request to the leader and returns the answer.
pub(in crate::uru) async fn forward(
    vault: &Vault,
    request: &Request,
    lines: &[String],
) -> Result<Vec<serde_json::Value>, RequestError> {
    let mut text = serde_json::to_string(request).unwrap_or_default();
    let size = lines.iter().fold(text.len(), |size, line| size.saturating_add(line.len() + 1));
    if size > MAX_TEXT {
        return Err(RequestError::TooLarge(MAX_TEXT >> 20));
    }
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        text.push('\n');
        text.push_str(line);
    }
    let (session, _notices) = vault.connect().await.map_err(|_| RequestError::NoLeader)?;
    let mut parts = text.as_bytes().chunks(MAX_PART).peekable();
    let mut answer = Vec::new();
    loop {
        let part = parts.next().unwrap_or_default().to_vec();
        let part = AdminPart { text: part, is_last: parts.peek().is_none() };
        let is_complete = part.is_last;
        let reply: Result<AdminAnswer, _> = session.ask_leader(ADMIN, &part).await;
        let reply = reply.map_err(|error| match error {
            NetError::NotSupported => RequestError::NotTaken,
            NetError::TimeoutOdbc => RequestError::Crowded(MAX_AT_ONCE),
            _ => RequestError::Unanswered,
        })?;
        if answer.len() + reply.text.len() > MAX_TEXT + MAX_PART
            || is_complete && reply.text.is_empty()
        {
            return Err(RequestError::Unanswered);
        }
        answer.extend(reply.text);
        if reply.is_last {
            return read(&answer).ok_or(RequestError::Unanswered)?.map_err(RequestError::Elsewhere);
        }
    }
}

fn text_of(answer: Answer) -> String {
    answer_lines(answer).fold(String::new(), |text, line| text + &line + "\n")
}

fn read(answer: &[u8]) -> Option<Answer> {
    let mut reader = AnswerReader::default();
    std::str::from_utf8(answer).ok()?.lines().find_map(|line| reader.line(line).ok().flatten())
}

/// Carries out operators' requests from other processes. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::uru) struct RemoteOperators {
    control: Control,
    /// The permits of each node, by name.
    nodes: Arc<Mutex<HashMap<String, Arc<Semaphore>>>>,
}

/// Carries out operators' requests from one node.
#[derive(Clone, Debug)]
pub(super) struct NodeOperators {
    control: Control,
    permits: Arc<Semaphore>,
}

impl RemoteOperators {
    pub(in crate::uru) fn new(control: Control) -> Self {
        Self { control, nodes: Arc::default() }
    }

    /// Those of a node. It has permits of its own, so it cannot keep other nodes waiting.
    pub(super) fn of_node(&self, node: &str) -> NodeOperators {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if nodes.len() >= MAX_NODES && !nodes.contains_key(node) {
            nodes.retain(|_, permits| Arc::strong_count(permits) > 1);
        }
        let permits = nodes.entry(node.to_owned());
        let permits = permits.or_insert_with(|| Arc::new(Semaphore::new(MAX_AT_ONCE)));
        NodeOperators { control: self.control.clone(), permits: Arc::clone(permits) }
    }
}

impl NodeOperators {
    async fn perform(&self, text: &[u8]) -> Answer {
        let malformed = |problem: String| Rejection { problem, is_failure: false };
        let text = std::str::from_utf8(text).map_err(|error| malformed(error.to_string()))?;
        let mut lines = text.lines();
        let request = serde_json::from_str(lines.next().unwrap_or_default());
        let request: Request = request.map_err(|error| {
            malformed(format!(
                "the leader, which may be running another version, cannot read the request: {error}"
            ))
        })?;
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        let answer = self.control.perform(request, &lines).await;
        answer.map_err(|error| Rejection::of::<Control>(&error))
    }
}

/// A session's request and its answer.
#[derive(Default)]
pub(super) struct Dialogue {
    request: Vec<u8>,
    /// The answer, and how many of its bytes have been sent.
    answer: Option<(Vec<u8>, usize)>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Dialogue {
    /// Accepts a part of the request, and returns a part of the answer.
    pub(super) async fn take(
        &mut self,
        operators: &NodeOperators,
        part: AdminPart,
    ) -> Result<AdminAnswer, NetError> {
        if self.answer.is_none() {
            if self.permit.is_none() {
                let permit = Arc::clone(&operators.permits).acquire_owned();
                let permit = timeout(PATIENCE, permit).await.map_err(|_| NetError::TimeoutOdbc)?;
                self.permit = permit.ok();
            }
            if self.request.len() + part.text.len() > MAX_TEXT {
                return Err(NetError::InvalidParameter);
            }
            self.request.extend(part.text);
            if !part.is_last {
                return Ok(AdminAnswer { text: Vec::new(), is_last: false });
            }
            let answer = operators.perform(&std::mem::take(&mut self.request)).await;
            let mut text = text_of(answer);
            if text.len() > MAX_TEXT {
                let problem = RequestError::TooLarge(MAX_TEXT >> 20).to_string();
                text = text_of(Err(Rejection { problem, is_failure: false }));
            }
            self.answer = Some((text.into_bytes(), 0));
        }
        let (answer, sent) = self.answer.get_or_insert_default();
        let rest = answer.get(*sent..).unwrap_or_default();
        let text = rest.get(..MAX_PART).unwrap_or(rest).to_vec();
        *sent += text.len();
        let is_last = *sent >= answer.len();
        if is_last {
            // The session may make another request.
            *self = Self::default();
        }
        Ok(AdminAnswer { text, is_last })
    }
}
