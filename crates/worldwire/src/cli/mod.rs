//! The command line.

mod client;
mod help;
mod ki;
mod ki_files;
mod ki_server;
mod mxo;
mod serve;
mod tera;
mod uru;
mod wad;

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use worldwire_tera::schema::Patch;

pub(crate) use client::*;
pub(crate) use help::parse;
pub(crate) use ki::*;
pub(crate) use ki_files::*;
pub(crate) use ki_server::*;
pub(crate) use mxo::*;
pub(crate) use serve::*;
pub(crate) use tera::*;
pub(crate) use uru::*;
pub(crate) use wad::*;

/// Reads, writes and shows the wire protocols and data formats of preserved online worlds.
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Results go to standard output, everything else to standard error.\n\
                  Exit codes: 0 fine, 1 the input had problems, 2 could not run, 130 interrupted.\n\n\
                  Example:\n  worldwire dissect samples/uru-login.pcapng --keys samples/uru-keys.toml"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Colour the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// Print only results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What filters look like.
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
  tcpdump -w - port 14617 | worldwire dissect - --keys keys.toml --json

`worldwire filter` explains filters.")]
    Dissect(Dissect),
    /// Dump both sides of one conversation: every byte, decrypted where that is possible
    #[command(after_help = "Examples:
  worldwire follow samples/uru-login.pcapng --keys samples/uru-keys.toml --stream 1
  worldwire follow game.pcapng --stream 3 --raw client > client.bin
  worldwire follow game.pcapng --stream 3 --raw client --wire > encrypted.bin")]
    Follow(Follow),
    /// Capture packets of an interface, and show the messages in them
    #[command(after_help = "Examples:
  worldwire capture eth0 port 14617 --keys keys.toml
  worldwire capture any --write evening.pcapng --brief host 192.0.2.1 and tcp

tcpdump captures, so whoever may run that may run this; give what tcpdump takes as a filter.")]
    Capture(LiveCapture),
    /// Write what conversations carried as files
    #[command(subcommand, arg_required_else_help = true)]
    Export(Export),
    /// Explain the filters of `dissect`
    #[command(long_about = FILTERS)]
    Filter,
    /// Count the conversations and messages of a capture
    #[command(after_help = "Examples:
  worldwire stats samples/uru-login.pcapng --keys samples/uru-keys.toml
  worldwire stats game.pcapng --conversations --sort rate")]
    Stats(Stats),
    /// Keys of conversations
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
    /// Encode JSON, as `decode --json` and `dissect --json` write it, back to bytes
    #[command(after_help = "Examples:
  worldwire decode uru.auth --hex 010096030000 --json | worldwire encode uru.auth --hex
  worldwire encode uru.vault-node node.json -o node.bin
  worldwire dissect game.pcapng --keys keys.toml --json | worldwire encode --lines --hex")]
    Encode(Encode),
    /// List all codecs or those of a family, or the messages, classes and fields of one codec
    #[command(after_help = "Examples:
  worldwire codecs
  worldwire codecs tera
  worldwire codecs uru.auth
  worldwire codecs uru.net-message plNetMsgVoice")]
    Codecs(Codecs),
    /// Generate typed Rust for messages from their definitions
    #[command(subcommand, arg_required_else_help = true)]
    Codegen(Codegen),
    /// Run a server
    #[command(arg_required_else_help = true)]
    Serve(Serve),
    /// Run a client without a game, for a look, downloads or load
    #[command(arg_required_else_help = true)]
    Client(Client),
    /// Wizard101 and Pirate101
    #[command(arg_required_else_help = true)]
    Ki(Ki),
    /// The Matrix Online
    #[command(arg_required_else_help = true)]
    Mxo(Mxo),
    /// TERA
    #[command(arg_required_else_help = true)]
    Tera(Tera),
    /// Myst Online: Uru Live
    #[command(arg_required_else_help = true)]
    Uru(Uru),
    /// Write a completion script for a shell
    #[command(after_help = "Example:
  worldwire completions bash > ~/.local/share/bash-completion/completions/worldwire")]
    Completions(Completions),
}

/// What people know of messages.
#[derive(Clone, Debug, Args)]
pub(crate) struct Data {
    /// Definitions of messages: files or directories (KI: message XML, also in archives, type lists, hints;
    /// MxO: tables of game objects; TERA: .def and .map, data.json, and the lists beside them; Uru:
    /// .sdl)
    #[arg(id = "data", short, long = "data", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// TERA: the revision of the client, which selects the map of opcodes
    #[arg(long, value_name = "NUMBER")]
    pub(crate) revision: Option<u32>,
    /// TERA: the version of the game, such as 92.04, if no revisions.json has it
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
        let wanted = "wanted a form like S_LOGIN.13";
        let (name, version) = text.rsplit_once('.').ok_or(wanted)?;
        let version = version.parse().map_err(|_| wanted)?;
        Ok(Self { name: name.to_owned(), version })
    }
}

/// Which capture, and how to read it.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// A pcap or pcapng capture, also compressed with gzip; - is standard input
    pub(crate) file: PathBuf,
    /// Keys: those of an Uru server in any format (worldwire, dirtsand, moulars, NAGUS, server.ini);
    /// accounts and stream keys of KI, sessions of MxO and TERA, and what `secrets export` writes,
    /// in worldwire's. Can be given more than once
    #[arg(short, long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Read every conversation as this family, or those of a server's port (12000=ki); do not
    /// recognise them by content
    #[arg(id = "as", long = "as", value_name = "[PORT=]FAMILY")]
    pub(crate) families: Vec<String>,
    /// At the end of the file, wait for more, until Ctrl-C
    #[arg(id = "growing", long = "follow")]
    pub(crate) is_growing: bool,
    /// What captures, in the place of a file.
    #[arg(skip)]
    pub(crate) tcpdump: Option<Tcpdump>,
}

#[derive(Debug, Args)]
pub(crate) struct Dissect {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Show only messages that match, such as 'auth.* and result != 0'
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Show only this conversation
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    /// How lines show the time: since the first packet, in UTC, here, or since the line before
    #[arg(long, value_name = "FORM", default_value = "relative",
          conflicts_with_all = ["json", "json_safe"])]
    pub(crate) time: TimeForm,
    /// Cut out one message, counted from 1 among those that match: its bytes, or with --json its line
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["brief", "bytes", "full"],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) message: Option<u64>,
    /// Like --message 1
    #[arg(long, conflicts_with_all = ["message", "brief", "bytes", "full"])]
    pub(crate) first: bool,
    /// Write a table of these fields, separated by tabs: auth.AcctLoginRequest.accountName,time
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',',
          conflicts_with_all = ["json", "json_safe", "brief", "bytes", "full", "message", "first"])]
    pub(crate) fields: Vec<String>,
    /// Write the table as CSV
    #[arg(long, requires = "fields")]
    pub(crate) csv: bool,
    /// Write one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Like --json, with integers of more than 53 bits as strings
    #[arg(long)]
    pub(crate) json_safe: bool,
    /// Print one line per message
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) brief: bool,
    /// Show the position of every field in the stream
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) bytes: bool,
    /// Show texts and blobs at full length
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) full: bool,
    /// With -o NAME.pcapng: put the keys of these conversations into the capture, so that whoever
    /// has it can read them
    #[arg(long, requires = "output")]
    pub(crate) secrets: bool,
    /// How many threads to use, up to 256; 0 uses all cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = threads())]
    pub(crate) threads: usize,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// What tcpdump captures.
#[derive(Clone, Debug)]
pub(crate) struct Tcpdump {
    pub(crate) interface: String,
    pub(crate) filter: Vec<String>,
    /// Where the packets are written as well.
    pub(crate) write: Option<PathBuf>,
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LiveCapture {
    /// The interface, as tcpdump knows it: eth0, or any
    pub(crate) interface: String,
    /// What to capture, in tcpdump's language: port 14617 and host 192.0.2.1
    #[arg(value_name = "PACKETS")]
    pub(crate) packets: Vec<String>,
    /// Write the packets to this pcapng file as they come
    #[arg(short, long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
    /// Keys, as for dissect; can be given more than once
    #[arg(short, long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Read every conversation as this family, or those of a server's port (12000=ki)
    #[arg(id = "as", long = "as", value_name = "[PORT=]FAMILY")]
    pub(crate) families: Vec<String>,
    /// Show only messages that match, such as 'auth.* and result != 0'; all packets are written
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// How lines show the time: since the first packet, in UTC, here, or since the line before
    #[arg(long, value_name = "FORM", default_value = "relative", conflicts_with = "json")]
    pub(crate) time: TimeForm,
    /// Write one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Print one line per message
    #[arg(long, conflicts_with = "json")]
    pub(crate) brief: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// Write the files that were downloaded on Uru's file and auth connections, as they were sent
    #[command(after_help = "Examples:
  worldwire export files samples/uru-login.pcapng --keys samples/uru-keys.toml -o downloads
  worldwire export files game.pcapng --filter 'filename contains \"sdl\"' -o downloads")]
    Files(ExportFiles),
}

#[derive(Debug, Args)]
pub(crate) struct ExportFiles {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Only files whose request, or a part of whose content, matches; `worldwire filter` explains
    #[arg(short, long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Only files of this conversation
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    /// The directory to write to
    #[arg(short, long, value_name = "DIRECTORY")]
    pub(crate) output: PathBuf,
    /// Overwrite files that exist
    #[arg(long)]
    pub(crate) force: bool,
}

/// How lines show the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeForm {
    /// Seconds since the first packet of the capture
    Relative,
    /// Date and time in UTC
    Utc,
    /// Date and time here, with the offset to UTC
    Local,
    /// Seconds since the line before
    Delta,
}

#[derive(Debug, Args)]
pub(crate) struct Follow {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Which conversation; `worldwire stats` lists them
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: u64,
    /// Write the decrypted bytes of one side instead of a dump; what cannot be decrypted as it was
    /// captured
    #[arg(long, value_name = "SIDE")]
    pub(crate) raw: Option<From>,
    /// Show the bytes as they were captured; nothing is decrypted
    #[arg(long)]
    pub(crate) wire: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// In which order conversations are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Their numbers
    Number,
    /// The longest first
    Duration,
    /// Those with the most bytes
    Bytes,
    /// Those with the most bytes a second
    Rate,
    /// Those with the most messages
    Messages,
}

#[derive(Debug, Args)]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Write one line per conversation
    #[arg(long, conflicts_with = "json")]
    pub(crate) conversations: bool,
    /// Which conversations come first
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
    /// Write the keys of conversations that could be read, as a key file that opens these alone,
    /// without the secrets of servers and accounts
    #[command(after_help = "Examples:
  worldwire secrets export samples/uru-login.pcapng --keys samples/uru-keys.toml -o sessions.toml
  worldwire dissect samples/uru-login.pcapng --keys sessions.toml")]
    Export(SecretsExport),
}

#[derive(Debug, Args)]
pub(crate) struct SecretsExport {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Only the keys of this conversation
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: Option<u64>,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// Who sent a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum From {
    /// The client
    Client,
    /// The server
    Server,
}

#[derive(Debug, Args)]
pub(crate) struct Decode {
    /// The codec; `worldwire codecs` lists them
    pub(crate) codec: String,
    /// The blob; - or no file is standard input
    #[arg(conflicts_with = "hex")]
    pub(crate) file: Option<PathBuf>,
    /// The blob as hexadecimal digits
    #[arg(long, value_name = "STRING")]
    pub(crate) hex: Option<String>,
    /// Who sent it, for codecs whose messages differ by side
    #[arg(long, value_name = "SIDE", default_value = "client")]
    pub(crate) from: From,
    /// Keys, for codecs that decrypt; can be given more than once
    #[arg(short, long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Write JSON that `worldwire encode` reads
    #[arg(long)]
    pub(crate) json: bool,
    /// Like --json, with integers of more than 53 bits as strings
    #[arg(long)]
    pub(crate) json_safe: bool,
    /// Show the position of every field
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) bytes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Encode {
    /// The codec; `worldwire codecs` lists them
    #[arg(required_unless_present = "lines")]
    pub(crate) codec: Option<String>,
    /// The JSON; - or no file is standard input
    #[arg(conflicts_with = "lines")]
    pub(crate) file: Option<PathBuf>,
    /// Encode lines of `dissect --json`, from this file or standard input: their messages one
    /// after the other, or with --hex one per line
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) lines: Option<PathBuf>,
    /// Write hexadecimal digits instead of bytes
    #[arg(long)]
    pub(crate) hex: bool,
    /// Who sends it, for codecs whose messages differ by side, if the JSON does not say
    #[arg(long, value_name = "SIDE", default_value = "client")]
    pub(crate) from: From,
    /// Keys, for codecs that encrypt; can be given more than once
    #[arg(short, long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    /// TERA: convert values as older parsers do: fractions are cut off, numbers wrap, and unknown
    /// fields are ignored
    #[arg(long)]
    pub(crate) lenient: bool,
    #[command(flatten)]
    pub(crate) data: Data,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Codecs {
    /// Show the messages and fields of this codec, or list its classes; for a family, list its codecs
    pub(crate) name: Option<String>,
    /// Show the fields of this message or class of the codec only, by name or number
    pub(crate) entry: Option<String>,
}

/// How many threads there may be.
fn threads() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(0..=256)
}

/// Where a result goes.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Write to this file instead of standard output; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Codegen {
    /// Generate DML messages of KI
    #[command(after_help = "Examples:
  worldwire codegen ki Messages/ -o messages.rs
  worldwire codegen ki --select LOGIN --select GAME.MSG_CLIENTMOVE")]
    Ki {
        /// Message XML: files or directories; without any, the built-in definitions
        paths: Vec<PathBuf>,
        /// Only these services (LOGIN, 7) and messages (LOGIN.MSG_PING, 7.27)
        #[arg(short, long, value_name = "NAME")]
        select: Vec<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Generate messages of TERA
    #[command(after_help = "Examples:
  worldwire codegen tera samples/tera -o messages.rs
  worldwire codegen tera tera-data/definitions --select S_LOGIN.14 --select C_CHAT")]
    Tera {
        /// Definitions: files or directories
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Only these messages: NAME for the newest version, or NAME.VERSION
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
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}
