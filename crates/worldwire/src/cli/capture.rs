//! The arguments of the commands that read captures.

#[cfg(feature = "network")]
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use worldwire_core::json::Style;

use super::quantity::{StopAfter, parse_size, parse_time};
use super::{Data, SideArg, Target, threads};

/// What is known about the conversations of a capture.
#[derive(Clone, Debug, Args)]
pub(crate) struct Knowledge {
    /// Key file; can be repeated. Uru server keys can be in any supported format (worldwire,
    /// dirtsand, moulars, NAGUS, server.ini). KI accounts and stream keys, MxO and TERA sessions, and
    /// the output of `secrets export` are in worldwire's format
    #[arg(short, long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Read all conversations, or those on one server port (12000=ki), as this family instead of
    /// recognising them by content
    #[arg(id = "as", long = "as", value_name = "[PORT=]FAMILY")]
    pub(crate) families: Vec<String>,
}

/// A capture, and how to read it.
#[derive(Clone, Debug, Args)]
pub(crate) struct Capture {
    /// A pcap or pcapng capture, optionally gzipped; - is standard input
    pub(crate) file: PathBuf,
    /// More captures; their packets are merged by time
    #[arg(value_name = "FILE")]
    pub(crate) more: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) knowledge: Knowledge,
    /// At the end of the file, wait for more data until Ctrl-C
    #[arg(id = "growing", long = "growing", alias = "follow", conflicts_with = "more")]
    pub(crate) is_growing: bool,
    /// The tcpdump that supplies packets instead of a file.
    #[arg(skip)]
    pub(crate) tcpdump: Option<Tcpdump>,
}

impl Capture {
    /// A capture that needs no keys and whose families are recognised by content.
    pub(crate) fn plain(file: &Path, data: Data) -> Self {
        let knowledge = Knowledge { keys: Vec::new(), data, families: Vec::new() };
        let file = file.to_owned();
        Self { file, more: Vec::new(), knowledge, is_growing: false, tcpdump: None }
    }

    /// The files of the capture; at least one.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let files = core::iter::once(&self.file).chain(&self.more);
        files.map(PathBuf::as_path)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Dissect {
    #[command(flatten)]
    pub(crate) capture: Capture,
    #[command(flatten)]
    pub(crate) view: View,
    /// With -o NAME.pcapng, also store the keys of the written conversations; anyone who has the file
    /// can then decrypt the conversations
    #[arg(long, requires = "output")]
    pub(crate) secrets: bool,
    /// Number of threads, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// Which messages to show, and how.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct View {
    /// Show only messages that match this filter, such as 'auth.* and result != 0'
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Show only the conversation with this number
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    /// Stop after this many matching messages and notes
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["last", "message", "first"],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// Show only the last NUMBER matching messages and notes; at most 1000000
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["message", "first"],
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) last: Option<u64>,
    /// Time format: since the first packet, UTC, local, or since the previous line; in tables, UTC and
    /// local apply to `date`
    #[arg(long, value_name = "FORM", default_value = "relative",
          conflicts_with_all = ["json", "json_safe"])]
    pub(crate) time: TimeForm,
    /// Prefix each message with its number, as used by --message and `diff`
    #[arg(long, conflicts_with_all = ["json", "json_safe", "fields", "table", "message", "first"])]
    pub(crate) numbers: bool,
    /// Extract the bytes (with --json, the line) of the matching message with this number, counted
    /// from 1
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["brief", "names", "bytes", "full"],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) message: Option<u64>,
    /// Same as --message 1
    #[arg(long, conflicts_with_all = ["message", "brief", "names", "bytes", "full"])]
    pub(crate) first: bool,
    /// Write a tab-separated table of these fields: auth.AcctLoginRequest.accountName,elapsed
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',',
          conflicts_with_all = ["json", "json_safe", "brief", "names", "bytes", "full", "message",
                                "first"])]
    #[arg(group = "table_fields")]
    pub(crate) fields: Vec<String>,
    /// Write a table of the fields listed under `columns` in the settings
    #[arg(long, group = "table_fields",
          conflicts_with_all = ["fields", "json", "json_safe", "brief", "names", "bytes", "full",
                                "message", "first"])]
    pub(crate) table: bool,
    /// Write the table as CSV
    #[arg(long, requires = "table_fields")]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) json: JsonForm,
    /// Print one line per message, with its most informative values
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) brief: bool,
    /// Print one line per message, without values (faster)
    #[arg(long, conflicts_with_all = ["json", "json_safe", "brief"])]
    pub(crate) names: bool,
    /// Truncate --brief lines to this width [default: the terminal's width]
    #[arg(long, value_name = "COLUMNS", requires = "brief",
          value_parser = clap::value_parser!(u16).range(20..))]
    pub(crate) width: Option<u16>,
    /// Show the position of every field in the stream
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) bytes: bool,
    /// Show long text and blobs in full
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) full: bool,
}

/// Whether to write JSON, and how.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct JsonForm {
    /// Write JSON that `worldwire encode` can read, one object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Same as --json, but with integers of more than 53 bits as strings
    #[arg(long)]
    pub(crate) json_safe: bool,
}

impl JsonForm {
    /// The style, if JSON is requested.
    pub(crate) fn style(self) -> Option<Style> {
        (self.json || self.json_safe).then_some(Style { safe: self.json_safe })
    }
}

/// Packets from tcpdump.
#[derive(Clone, Debug, Args)]
pub(crate) struct Tcpdump {
    /// Interface, as tcpdump names it, such as eth0 or any
    pub(crate) interface: String,
    /// Packets to capture, as a tcpdump filter: port 14617 and host 192.0.2.1
    #[arg(value_name = "PACKETS")]
    pub(crate) packets: Vec<String>,
    /// Write all packets to this file as they arrive: .pcapng or .pcap
    #[arg(short, long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Write to a ring of this many files (FILE-00001.pcapng and so on), deleting the oldest
    #[arg(long, value_name = "NUMBER", requires_all = ["write", "ring_limits"],
          value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(crate) ring: Option<u32>,
    /// Maximum size of each file in the ring, not counting the copies of earlier packets at its
    /// beginning: 500kB, 100MB, 2GB
    #[arg(long, value_name = "SIZE", requires = "ring", group = "ring_limits",
          value_parser = parse_size)]
    pub(crate) ring_size: Option<u64>,
    /// Time span of each file in the ring: 30s, 10m, 24h
    #[arg(long, value_name = "TIME", requires = "ring", group = "ring_limits",
          value_parser = parse_time)]
    pub(crate) ring_time: Option<Duration>,
    /// Stop after a number of packets (1000), a size (100MB) or a time (10m); can be repeated
    #[arg(long, value_name = "LIMIT")]
    pub(crate) stop_after: Vec<StopAfter>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("files").args(["write", "output"]).multiple(true)))]
pub(crate) struct LiveCapture {
    #[command(flatten)]
    pub(crate) tcpdump: Tcpdump,
    #[command(flatten)]
    pub(crate) knowledge: Knowledge,
    #[command(flatten)]
    pub(crate) view: View,
    /// Write the messages to this file as they arrive, in the format that its extension specifies;
    /// with .pcapng or .pcap, write all packets
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, requires = "files")]
    pub(crate) force: bool,
    /// Also show the packets on a page in the browser (see docs/inspect.md) [default address: a free
    /// port on 127.0.0.1]
    #[cfg(feature = "network")]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "127.0.0.1:0")]
    pub(crate) inspect: Option<SocketAddr>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// Extract downloads from Uru file and auth connections, exactly as they were sent
    #[command(after_help = "Examples:
  worldwire export files samples/uru-login.pcapng --keys samples/uru-keys.toml -o downloads
  worldwire export files game.pcapng --filter 'filename contains \"sdl\"' -o downloads")]
    Files(ExportFiles),
    /// Write a capture's messages as a decrypted capture for Wireshark
    #[command(after_help = "Examples:
  worldwire export pcapng samples/uru-login.pcapng --keys samples/uru-keys.toml --decrypted -o plain.pcapng
  worldwire export pcapng game.pcapng --filter 'auth.*' --decrypted -o - | wireshark -k -i -

Each message becomes a packet with the original time and addresses; the packet's comment contains the \
message's name and values. Bytes that could not be decrypted are missing from the streams. \
docs/wireshark.md explains how to use the file. To write packets as they were captured instead, use \
`dissect -o NAME.pcapng`.")]
    Pcapng(ExportPcapng),
    /// Write a Wireshark dissector in Lua for a family's messages
    #[command(after_help = "Examples:
  worldwire export wireshark uru -o uru.lua
  worldwire export wireshark tera --data samples/tera -o tera.lua
  tshark -X lua_script:uru.lua -r plain.pcapng -Y 'uru.message.name == \"auth.AcctLoginRequest\"' -V

The dissector is generated from the definitions that worldwire itself uses. It reads captures from \
`export pcapng` and, with \"Decode As\", unencrypted streams. The command lists the messages that \
the dissector shows partly as bytes. Definitions with errors are reported and left out, and the exit \
code is then 1. docs/wireshark.md explains the names of the dissector's fields.")]
    Wireshark(ExportWireshark),
}

#[derive(Debug, Args)]
pub(crate) struct ExportWireshark {
    /// Family: ki, mxo, tera or uru
    pub(crate) family: String,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct ExportPcapng {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Write decrypted messages; anyone who has the file can read everything in them, including
    /// passwords
    #[arg(long, required = true)]
    pub(crate) decrypted: bool,
    /// Write only matching messages; see `worldwire filter`
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Write only messages from this conversation
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct ExportFiles {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Extract only files whose request or content messages match this filter; see `worldwire filter`
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Extract only files from this conversation
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    /// Output directory
    #[arg(short, long, value_name = "DIRECTORY")]
    pub(crate) output: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
}

/// How the time is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeForm {
    #[default]
    /// Seconds since the first packet of the capture
    Relative,
    /// Date and time in UTC
    Utc,
    /// Local date and time, with the offset from UTC
    Local,
    /// Seconds since the previous line
    Delta,
}

/// The options of `follow` that show bytes instead of messages.
const BYTES: [&str; 3] = ["dump", "wire", "raw"];

#[derive(Debug, Args)]
pub(crate) struct Follow {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Number of the conversation, as listed by `worldwire stats --conversations`
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: u64,
    /// Show only messages that match this filter, such as 'result != 0'; see `worldwire filter`
    #[arg(short, long, value_name = "FILTER", conflicts_with_all = BYTES)]
    pub(crate) filter: Option<String>,
    /// Stop after this many matching messages and notes
    #[arg(long, value_name = "NUMBER", conflicts_with_all = BYTES,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// Time format, as for `dissect`
    #[arg(long, value_name = "FORM", default_value = "relative", conflicts_with_all = BYTES,
          conflicts_with_all = ["json", "json_safe"])]
    pub(crate) time: TimeForm,
    /// Show all fields of every message
    #[arg(long, conflicts_with_all = BYTES)]
    pub(crate) full: bool,
    /// Write a tab-separated table of these fields, like `dissect --fields`
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', conflicts_with_all = BYTES,
          conflicts_with_all = ["json", "json_safe", "full"])]
    pub(crate) fields: Vec<String>,
    /// Write the messages in the format of `dissect --json`
    #[arg(long, conflicts_with_all = BYTES, conflicts_with = "full")]
    pub(crate) json: bool,
    /// Same as --json, but with integers of more than 53 bits as strings
    #[arg(long, conflicts_with_all = BYTES, conflicts_with = "full")]
    pub(crate) json_safe: bool,
    /// Dump every byte, decrypted where possible
    #[arg(long, conflicts_with = "wire")]
    pub(crate) dump: bool,
    /// Dump every byte as captured, without decryption
    #[arg(long)]
    pub(crate) wire: bool,
    /// Instead of a dump, write one side's decrypted bytes or, with --wire, its captured bytes; bytes
    /// that cannot be decrypted are written as captured
    #[arg(long, value_name = "SIDE", conflicts_with = "dump")]
    pub(crate) raw: Option<SideArg>,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// The order in which conversations are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// By number
    Number,
    /// Longest duration first
    Duration,
    /// Most bytes first
    Bytes,
    /// Most bytes per second first
    Rate,
    /// Most messages first
    Messages,
}

#[derive(Debug, Args)]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Count only messages and notes that match this filter, such as 'auth.*'; see `worldwire filter`
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Count only the conversation with this number
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    /// Number of message names and reply times to list; 0 lists all
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub(crate) top: usize,
    /// Print one line per conversation; with --json, one object per conversation
    #[arg(long)]
    pub(crate) conversations: bool,
    /// Sort order
    #[arg(
        long,
        value_name = "BY",
        default_value = "number",
        requires = "conversations",
        conflicts_with = "json"
    )]
    pub(crate) sort: Order,
    /// Count the messages of each conversation separately
    #[arg(long, conflicts_with_all = ["conversations", "json"])]
    pub(crate) each: bool,
    /// Write one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a report with plots to this HTML file instead of printing the summary
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["conversations", "each", "json", "top"])]
    pub(crate) report: Option<PathBuf>,
    /// Overwrite an existing report
    #[arg(long, requires = "report")]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Explain only messages and notes that match this filter, such as 'auth.*'; see
    /// `worldwire filter`
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Explain only the conversation with this number
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    /// Write one JSON object per finding
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Secrets {
    /// Write a key file with the keys of the decrypted conversations, but without the secrets of
    /// servers and accounts
    #[command(after_help = "Examples:
  worldwire secrets export samples/uru-login.pcapng --keys samples/uru-keys.toml -o sessions.toml
  worldwire dissect samples/uru-login.pcapng --keys sessions.toml")]
    Export(SecretsExport),
}

#[derive(Debug, Args)]
pub(crate) struct SecretsExport {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Export only the keys of conversations with a matching message; see `worldwire filter`
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Export only the keys of this conversation
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    #[command(flatten)]
    pub(crate) target: Target,
}
