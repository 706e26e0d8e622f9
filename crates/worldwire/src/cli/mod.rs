//! The command line.

mod client;
mod help;
mod ki;
mod ki_files;
mod ki_server;
mod mxo;
mod proxy;
mod replay;
mod serve;
mod tera;
mod uru;
mod uru_files;
mod wad;

use std::path::{Path, PathBuf};

use clap::builder::RangedU64ValueParser;
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use worldwire_core::json::Style;
use worldwire_tera::schema::Patch;

pub(crate) use client::*;
pub(crate) use help::parse;
pub(crate) use ki::*;
pub(crate) use ki_files::*;
pub(crate) use ki_server::*;
pub(crate) use mxo::*;
pub(crate) use proxy::*;
pub(crate) use replay::*;
pub(crate) use serve::*;
pub(crate) use tera::*;
pub(crate) use uru::*;
pub(crate) use uru_files::*;
pub(crate) use wad::*;

/// Decode, encode and serve the network protocols and data formats of preserved online worlds
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Results go to standard output, everything else to standard error.\n\
                  Exit codes: 0 success, 1 problems in the input, 2 failure to run, 130 interrupted.\n\n\
                  Example:\n  worldwire dissect samples/uru-login.pcapng --keys samples/uru-keys.toml"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Colour the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// Print only results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The help of the filter language.
pub(crate) const FILTERS: &str = include_str!("filter.txt");

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the messages of a capture
    #[command(after_help = "Examples:
  worldwire dissect samples/uru-login.pcapng --keys samples/uru-keys.toml
  worldwire dissect game.pcapng --keys keys.toml --filter 'result != 0'
  worldwire dissect game.pcapng --keys keys.toml --filter auth.VaultNodeFetched --first > reply.bin
  worldwire dissect game.pcapng --keys keys.toml --filter 'result != 0' -o failed.pcapng
  worldwire dissect game.pcapng --keys keys.toml --fields date,auth.AcctLoginRequest.accountName --csv
  tcpdump --immediate-mode -U -w - port 14617 | worldwire dissect - --keys keys.toml --json

`worldwire filter` explains filters.")]
    Dissect(Dissect),
    /// Dump every byte of one conversation, both sides, decrypted where possible
    #[command(after_help = "Examples:
  worldwire follow samples/uru-login.pcapng --keys samples/uru-keys.toml --stream 1
  worldwire follow game.pcapng --stream 3 --raw client > client.bin
  worldwire follow game.pcapng --stream 3 --raw client --wire > encrypted.bin")]
    Follow(Follow),
    /// Capture packets on an interface and show the messages in them
    #[command(after_help = "Examples:
  worldwire capture eth0 port 14617 --keys keys.toml
  worldwire capture any --write evening.pcapng --brief host 192.0.2.1 and tcp

This command runs tcpdump, or Wireshark's dumpcap if tcpdump is not installed. You need the \
privileges to run it. PACKETS is a filter in tcpdump's language.")]
    Capture(LiveCapture),
    /// Extract downloaded files from a capture
    #[command(subcommand, arg_required_else_help = true)]
    Export(Export),
    /// Explain the filter language of `dissect`
    #[command(long_about = FILTERS)]
    Filter,
    /// Count the conversations and messages of a capture
    #[command(after_help = "Examples:
  worldwire stats samples/uru-login.pcapng --keys samples/uru-keys.toml
  worldwire stats game.pcapng --conversations --sort rate")]
    Stats(Stats),
    /// Export session keys
    #[command(subcommand, arg_required_else_help = true)]
    Secrets(Secrets),
    /// Explain what could not be decoded, and how to fix it
    #[command(after_help = "Example:
  worldwire doctor samples/ki-login.pcapng")]
    Doctor(Doctor),
    /// Decode one blob with one codec
    #[command(after_help = "Examples:
  worldwire decode uru.auth --hex 010096030000
  worldwire decode uru.auth --from server reply.bin --bytes
  worldwire decode uru.vault-node --json node.bin > node.json")]
    Decode(Decode),
    /// Encode JSON from `decode --json` or `dissect --json` back to bytes
    #[command(after_help = "Examples:
  worldwire decode uru.auth --hex 010096030000 --json | worldwire encode uru.auth --hex
  worldwire encode uru.vault-node node.json -o node.bin
  worldwire dissect game.pcapng --keys keys.toml --json | worldwire encode --lines --hex")]
    Encode(Encode),
    /// List codecs, or describe the messages, classes and fields of one codec
    #[command(after_help = "Examples:
  worldwire codecs
  worldwire codecs tera
  worldwire codecs uru.auth
  worldwire codecs uru.net-message plNetMsgVoice")]
    Codecs(Codecs),
    /// Generate typed Rust from message definitions
    #[command(subcommand, arg_required_else_help = true)]
    Codegen(Codegen),
    /// Run a server
    #[command(arg_required_else_help = true)]
    Serve(Serve),
    /// Run a headless client: explore, download files, or generate load
    #[command(arg_required_else_help = true)]
    Client(Client),
    /// Relay clients to a server, and show, record, hold or change their messages
    #[command(arg_required_else_help = true)]
    Proxy(ProxyArguments),
    /// Play one side of a recorded conversation to a live peer
    #[command(after_help = "\
Own messages are sent in order, each after the peer has sent what was recorded before it. Keys, session
and transaction IDs and logins are adapted as the protocol defines; --rules changes other values. The
replay stops where the live side differs, with exit code 1, and explains how.

The password comes from --password-file or the variable WORLDWIRE_PASSWORD; otherwise the program asks
for it.

Examples:
  worldwire replay evening.pcapng --stream 2 --as client --to 127.0.0.1 --account ann
  worldwire replay evening.pcapng --stream 2 --as server --listen 127.0.0.1:14617
  worldwire replay game.pcapng --data definitions/ --as client --to 203.0.113.5:7801 --rules new.rules")]
    Replay(Replay),
    /// Work with Wizard101 and Pirate101: archives, objects, definitions, accounts
    #[command(arg_required_else_help = true)]
    Ki(Ki),
    /// Work with The Matrix Online: views, tables of game objects
    #[command(arg_required_else_help = true)]
    Mxo(Mxo),
    /// Work with TERA: definitions, opcode maps
    #[command(arg_required_else_help = true)]
    Tera(Tera),
    /// Work with Myst Online: Uru Live: accounts, vault, keys, manifests, SDL
    #[command(arg_required_else_help = true)]
    Uru(Uru),
    /// Write a shell completion script
    #[command(after_help = "Example:
  worldwire completions bash > ~/.local/share/bash-completion/completions/worldwire")]
    Completions(Completions),
}

/// The definitions that the user supplies.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Data {
    /// Message definitions: files or directories (KI: message XML, also in archives, type lists,
    /// hints; MxO: tables of game objects; TERA: .def, .map, data.json and the lists beside them;
    /// Uru: .sdl)
    #[arg(id = "data", short, long = "data", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// TERA: client revision, which selects the opcode map
    #[arg(long, value_name = "NUMBER")]
    pub(crate) revision: Option<u32>,
    /// TERA: game version, such as 92.04, if revisions.json does not list the revision
    #[arg(long, value_name = "VERSION")]
    pub(crate) patch: Option<Patch>,
    /// TERA: use this version of a definition, such as S_LOGIN.13
    #[arg(long, value_name = "NAME.VERSION")]
    pub(crate) pin: Vec<Pin>,
}

/// A definition and its version.
#[derive(Clone, Debug)]
pub(crate) struct Pin {
    pub(crate) name: String,
    pub(crate) version: u32,
}

impl core::str::FromStr for Pin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = "needs the form NAME.VERSION, such as S_LOGIN.13";
        let (name, version) = text.rsplit_once('.').ok_or(wanted)?;
        let version = version.parse().map_err(|_| wanted)?;
        Ok(Self { name: name.to_owned(), version })
    }
}

/// What is known about the conversations of a capture.
#[derive(Clone, Debug, Args)]
pub(crate) struct Knowledge {
    /// Key file; can be repeated. Uru server keys in any format (worldwire, dirtsand, moulars,
    /// NAGUS, server.ini); in worldwire's format also KI accounts and stream keys, MxO and TERA
    /// sessions, and the output of `secrets export`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Read all conversations, or those of one server port (12000=ki), as this family, instead of
    /// recognising them by content
    #[arg(id = "as", long = "as", value_name = "[PORT=]FAMILY")]
    pub(crate) families: Vec<String>,
}

/// A capture, and how to read it.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// A pcap or pcapng capture, optionally gzipped; - is standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) knowledge: Knowledge,
    /// At the end of the file, wait for more data until Ctrl-C
    #[arg(id = "growing", long = "follow")]
    pub(crate) is_growing: bool,
    /// The tcpdump that supplies packets instead of a file.
    #[arg(skip)]
    pub(crate) tcpdump: Option<Tcpdump>,
}

impl Capture {
    /// A capture that needs no keys and is read by content.
    pub(crate) fn plain(file: &Path, data: Data) -> Self {
        let knowledge = Knowledge { keys: Vec::new(), data, families: Vec::new() };
        Self { file: file.to_owned(), knowledge, is_growing: false, tcpdump: None }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Dissect {
    #[command(flatten)]
    pub(crate) capture: Capture,
    #[command(flatten)]
    pub(crate) view: View,
    /// With -o NAME.pcapng, store the keys of these conversations in the capture; anyone who has
    /// the file can then decrypt them
    #[arg(long, requires = "output")]
    pub(crate) secrets: bool,
    /// Number of threads, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// Which messages to show, and how.
#[derive(Clone, Debug, Args)]
pub(crate) struct View {
    /// Show only matching messages, such as 'auth.* and result != 0'
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Show only the conversation with this number
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    /// Time format: since the first packet, UTC, local, or since the previous line
    #[arg(long, value_name = "FORM", default_value = "relative",
          conflicts_with_all = ["json", "json_safe"])]
    pub(crate) time: TimeForm,
    /// Extract the bytes (with --json, the line) of the matching message with this number, from 1
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["brief", "bytes", "full"],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) message: Option<u64>,
    /// Same as --message 1
    #[arg(long, conflicts_with_all = ["message", "brief", "bytes", "full"])]
    pub(crate) first: bool,
    /// Write a tab-separated table of these fields: auth.AcctLoginRequest.accountName,time
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',',
          conflicts_with_all = ["json", "json_safe", "brief", "bytes", "full", "message", "first"])]
    pub(crate) fields: Vec<String>,
    /// Write the table as CSV
    #[arg(long, requires = "fields")]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) json: JsonForm,
    /// Print one line per message
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) brief: bool,
    /// Show the position of every field in the stream
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) bytes: bool,
    /// Show long texts and blobs in full
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) full: bool,
}

/// Whether to write JSON, and how.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct JsonForm {
    /// Write JSON that `worldwire encode` reads, one object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Same as --json, with integers of more than 53 bits as strings
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
    /// Interface, as tcpdump names it: eth0, or any
    pub(crate) interface: String,
    /// Packets to capture, as a tcpdump filter: port 14617 and host 192.0.2.1
    #[arg(value_name = "PACKETS")]
    pub(crate) packets: Vec<String>,
    /// Write all packets to this file as they arrive: .pcapng or .pcap
    #[arg(short, long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
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
    /// Write the messages to this file as they arrive, in the format of its extension; with
    /// .pcapng or .pcap, all packets
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, requires = "files")]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// Extract downloads from Uru's file and auth connections, as they were sent
    #[command(after_help = "Examples:
  worldwire export files samples/uru-login.pcapng --keys samples/uru-keys.toml -o downloads
  worldwire export files game.pcapng --filter 'filename contains \"sdl\"' -o downloads")]
    Files(ExportFiles),
}

#[derive(Debug, Args)]
pub(crate) struct ExportFiles {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Extract only files whose request or content messages match; see `worldwire filter`
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Extract only files of this conversation
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeForm {
    /// Seconds since the first packet of the capture
    Relative,
    /// Date and time in UTC
    Utc,
    /// Local date and time, with the offset from UTC
    Local,
    /// Seconds since the previous line
    Delta,
}

#[derive(Debug, Args)]
pub(crate) struct Follow {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Number of the conversation; `worldwire stats` lists them
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: u64,
    /// Write the decrypted bytes of one side instead of a dump; bytes that cannot be decrypted are
    /// written as captured
    #[arg(long, value_name = "SIDE")]
    pub(crate) raw: Option<SideArg>,
    /// Show the bytes as captured, without decryption
    #[arg(long)]
    pub(crate) wire: bool,
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
    /// Print one line per conversation
    #[arg(long, conflicts_with = "json")]
    pub(crate) conversations: bool,
    /// Sort order
    #[arg(long, value_name = "BY", default_value = "number", requires = "conversations")]
    pub(crate) sort: Order,
    /// Write one JSON object per conversation
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) capture: Capture,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Secrets {
    /// Write a key file with the keys of the decrypted conversations, without the secrets of
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
    /// Export only the keys of this conversation
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// The side that sent a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SideArg {
    /// The client
    Client,
    /// The server
    Server,
}

/// What a codec needs to know about a blob.
#[derive(Debug, Args)]
pub(crate) struct BlobContext {
    /// Side that sent it, for codecs whose messages differ by side
    #[arg(long, value_name = "SIDE", default_value = "client")]
    pub(crate) from: SideArg,
    /// Key file, for codecs that decrypt or encrypt; can be repeated
    #[arg(short, long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
}

#[derive(Debug, Args)]
pub(crate) struct Decode {
    /// Codec; `worldwire codecs` lists them
    pub(crate) codec: String,
    /// File with the blob; - is standard input [default: -]
    #[arg(conflicts_with = "hex")]
    pub(crate) file: Option<PathBuf>,
    /// Blob as hexadecimal digits
    #[arg(long, value_name = "STRING")]
    pub(crate) hex: Option<String>,
    #[command(flatten)]
    pub(crate) context: BlobContext,
    #[command(flatten)]
    pub(crate) json: JsonForm,
    /// Show the position of every field
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) bytes: bool,
}

#[derive(Debug, Args)]
#[command(mut_arg("from", |arg| {
    arg.help(
        "Side that sent it, for codecs whose messages differ by side, if the JSON does not name it",
    )
}))]
pub(crate) struct Encode {
    /// Codec; `worldwire codecs` lists them
    #[arg(required_unless_present = "lines")]
    pub(crate) codec: Option<String>,
    /// File with the JSON; - is standard input [default: -]
    #[arg(conflicts_with = "lines")]
    pub(crate) file: Option<PathBuf>,
    /// Encode the lines of `dissect --json` from this file or standard input: messages back to
    /// back, or with --hex one per line
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) lines: Option<PathBuf>,
    /// Write hexadecimal digits instead of bytes
    #[arg(long)]
    pub(crate) hex: bool,
    #[command(flatten)]
    pub(crate) context: BlobContext,
    /// TERA: convert values as older parsers do: truncate fractions, wrap numbers, ignore unknown
    /// fields
    #[arg(long)]
    pub(crate) lenient: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Codecs {
    /// Codec to describe, or family whose codecs to list
    pub(crate) name: Option<String>,
    /// Describe only this message or class of the codec, by name or number
    pub(crate) entry: Option<String>,
}

/// The range of thread counts.
fn threads() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(0..=256)
}

/// The destination of a result.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Output file; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Codegen {
    /// Generate Rust for KI's DML messages
    #[command(after_help = "Examples:
  worldwire codegen ki Messages/ -o messages.rs
  worldwire codegen ki --select LOGIN --select GAME.MSG_CLIENTMOVE")]
    Ki {
        /// Message XML: files or directories [default: built-in definitions]
        paths: Vec<PathBuf>,
        /// Generate only these services (LOGIN, 7) and messages (LOGIN.MSG_PING, 7.27)
        #[arg(short, long, value_name = "NAME")]
        select: Vec<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Generate Rust for TERA's messages
    #[command(after_help = "Examples:
  worldwire codegen tera samples/tera -o messages.rs
  worldwire codegen tera tera-data/definitions --select S_LOGIN.14 --select C_CHAT")]
    Tera {
        /// Definitions: files or directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Generate only these messages: NAME for the newest version, or NAME.VERSION
        #[arg(short, long, value_name = "NAME")]
        select: Vec<String>,
        #[command(flatten)]
        reading: TeraReading,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell
    pub(crate) shell: clap_complete::Shell,
}
