//! Why a replay stopped.

use core::fmt;
use core::time::Duration;

use worldwire_core::Side;
use worldwire_core::json::Json;

use super::event::Place;

/// Where the live side differs from the recording, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// The recorded message that the replay had reached.
    pub place: Place,
    /// Its sender.
    pub from: Side,
    /// Whether the replay was to send it; otherwise it was expected.
    pub is_own: bool,
    /// Its fields.
    pub expected: Json,
    /// The number of messages in the recording.
    pub total: u64,
    /// What happened.
    pub cause: Cause,
    /// Problems noticed shortly before, such as faults in streams.
    pub problems: Vec<String>,
    /// What the user can do.
    pub advice: &'static str,
}

/// How the live side differs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cause {
    /// A different message arrived.
    Other {
        /// Its name.
        name: String,
        /// Its fields.
        fields: Json,
    },
    /// The peer refused what was accepted in the recording, or the other way round.
    Refused {
        /// The reason in the live message, if it is a refusal.
        live: Option<String>,
        /// The reason in the recorded message, if it is a refusal.
        recorded: Option<String>,
        /// The fields of the live message.
        fields: Json,
    },
    /// The connection ended, for this reason.
    Closed(String),
    /// Nothing arrived for this long.
    Silence(Duration),
    /// Setup was not completed in this time.
    NotEstablished(Duration),
    /// The replay could not send its message.
    NotSent(String),
    /// The user stopped the replay.
    Stopped,
}

/// The maximum number of bytes of fields shown.
const MAX_SHOWN: usize = 1_000;

impl Cause {
    /// A word for it: `other-message`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Other { .. } => "other-message",
            Self::Refused { .. } => "refusal",
            Self::Closed(_) => "closed",
            Self::Silence(_) => "silence",
            Self::NotEstablished(_) => "not-established",
            Self::NotSent(_) => "not-sent",
            Self::Stopped => "stopped",
        }
    }

    /// What the user can do. Before setup is complete, the likely causes are different.
    pub(super) const fn advice(&self, is_established: bool) -> &'static str {
        match self {
            Self::Other { .. } => {
                "if the live side may send this message, ignore it with --ignore; if it answers a message \
                 that the replay sent, change that message with --rules"
            }
            Self::Refused { .. } => "change the request with --rules",
            Self::Closed(_) | Self::NotEstablished(_) if !is_established => {
                "check the address, and whether the live side needs keys: supply them with --live-keys"
            }
            Self::Closed(_) | Self::NotEstablished(_) => {
                "the live side's log may explain why the connection was closed"
            }
            Self::Silence(_) => {
                "wait longer with --patience; if the live side need not send this message, ignore it \
                 with --ignore"
            }
            Self::NotSent(_) => "change the message with --rules, or choose another recording",
            Self::Stopped => "run the replay again",
        }
    }

    /// The fields of the live message, if one arrived.
    #[must_use]
    pub const fn fields(&self) -> Option<&Json> {
        match self {
            Self::Other { fields, .. } | Self::Refused { fields, .. } => Some(fields),
            _ => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other { name, .. } => write!(f, "{name} arrived instead"),
            Self::Refused { live: Some(live), recorded: None, .. } => {
                write!(f, "refused ({live}), but accepted in the recording")
            }
            Self::Refused { live: None, recorded, .. } => {
                let recorded = recorded.as_deref().unwrap_or_default();
                write!(f, "accepted, but refused in the recording ({recorded})")
            }
            Self::Refused { live: Some(live), recorded: Some(recorded), .. } => {
                write!(
                    f,
                    "refused ({live}), but for a different reason than in the recording ({recorded})"
                )
            }
            Self::Closed(reason) => write!(f, "the connection is closed: {reason}"),
            Self::Silence(patience) => write!(f, "nothing arrived for {}", seconds(*patience)),
            Self::NotEstablished(patience) => {
                write!(f, "the connection was not established within {}", seconds(*patience))
            }
            Self::NotSent(why) => write!(f, "it could not be sent: {why}"),
            Self::Stopped => f.write_str("the replay was stopped"),
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

impl fmt::Display for Divergence {
    /// Several lines, without a line break at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, from, is_own, expected, total, cause, problems, advice } = self;
        let Place { number, since, packet, name } = place;
        write!(f, "the replay stopped at message {number} of {total}")?;
        write!(f, " (recorded at {:.6} s", since.as_secs_f64())?;
        match packet {
            Some(packet) => writeln!(f, ", packet {packet})")?,
            None => writeln!(f, ")")?,
        }
        let what = if *is_own { "to send" } else { "expected" };
        writeln!(f, "  {what}: {name} from the {from} {}", shown(expected))?;
        writeln!(f, "  but: {cause}")?;
        if let Some(fields) = cause.fields() {
            let came = if let Cause::Other { name, .. } = cause { name } else { name };
            writeln!(f, "  received: {came} {}", shown(fields))?;
        }
        for problem in problems {
            writeln!(f, "  before: {problem}")?;
        }
        write!(f, "  advice: {advice}")
    }
}

/// Fields as JSON, shortened.
fn shown(fields: &Json) -> String {
    let mut text = fields.to_string();
    if text.len() > MAX_SHOWN {
        text.truncate(text.floor_char_boundary(MAX_SHOWN));
        text.push_str("...");
    }
    text
}
