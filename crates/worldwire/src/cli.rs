//! The command line.

mod wad;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use wad::{KiWad, KiWadPacking};

/// Reads, writes and shows the wire protocols and data formats of preserved online worlds.
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Results go to standard output, everything else to standard error.\n\
                  Exit codes: 0 fine, 1 the input had problems, 2 could not run.\n\n\
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
    /// Say nothing but results and errors
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

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what was said in a capture
    #[command(after_help = "Examples:
  worldwire dissect samples/uru-login.pcapng --keys samples/uru-keys.toml
  worldwire dissect game.pcapng --keys keys.toml --filter 'result != 0'
  tcpdump -w - port 14617 | worldwire dissect - --keys keys.toml --json")]
    Dissect(Dissect),
    /// Show both sides of one conversation of a capture, decrypted, as bytes
    #[command(after_help = "Examples:
  worldwire follow samples/uru-login.pcapng --keys samples/uru-keys.toml --stream 1
  worldwire follow game.pcapng --stream 3 --raw client > client.bin")]
    Follow(Follow),
    /// Count the conversations and messages of a capture
    #[command(after_help = "Example:
  worldwire stats samples/uru-login.pcapng --keys samples/uru-keys.toml")]
    Stats(Stats),
    /// Say what stands between a capture and its full meaning, and what to do about it
    #[command(after_help = "Example:
  worldwire doctor samples/ki-login.pcapng")]
    Doctor(Doctor),
    /// Decode one blob with one codec
    #[command(after_help = "Examples:
  worldwire decode uru.auth --hex 010096030000
  worldwire decode uru.auth --from server reply.bin --bytes
  worldwire decode uru.vault-node --json node.bin > node.json")]
    Decode(Decode),
    /// Encode what `decode --json` wrote back to bytes
    #[command(after_help = "Examples:
  worldwire decode uru.auth --hex 010096030000 --json | worldwire encode uru.auth --hex
  worldwire encode uru.vault-node node.json -o node.bin")]
    Encode(Encode),
    /// List the codecs, or the messages and fields of one
    #[command(after_help = "Examples:
  worldwire codecs
  worldwire codecs uru.auth")]
    Codecs(Codecs),
    /// Write typed Rust for messages whose layouts come from definitions
    #[command(subcommand, arg_required_else_help = true)]
    Codegen(Codegen),
    /// Wizard101 and Pirate101
    #[command(arg_required_else_help = true)]
    Ki(Ki),
    /// Myst Online: Uru Live
    #[command(arg_required_else_help = true)]
    Uru(Uru),
    /// Write a completion script for a shell
    #[command(after_help = "Example:
  worldwire completions bash > ~/.local/share/bash-completion/completions/worldwire")]
    Completions(Completions),
}

/// Which capture, and how to read it.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// A pcap or pcapng capture, packed with gzip or not; - is standard input
    pub(crate) file: PathBuf,
    /// Keys of the server, in any spelling (worldwire, dirtsand, moulars, NAGUS, server.ini)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Definitions of messages: files, or folders of them (KI: message XML)
    #[arg(short, long, value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    /// Read every conversation as this family, whatever it looks like
    #[arg(long = "as", value_name = "FAMILY")]
    pub(crate) family: Option<String>,
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
    /// Write a JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Like --json, with integers of more than 53 bits as strings
    #[arg(long)]
    pub(crate) json_safe: bool,
    /// Only a line for each message
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) brief: bool,
    /// Show where in the stream every field stands
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) bytes: bool,
    /// Show texts and blobs at full length
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) full: bool,
    /// How many threads to use; 0 is as many as there are cores
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) threads: usize,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Follow {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Which conversation; `worldwire stats` lists them
    #[arg(short, long, value_name = "NUMBER")]
    pub(crate) stream: u64,
    /// Write the plain bytes of one side instead of a dump
    #[arg(long, value_name = "SIDE")]
    pub(crate) raw: Option<From>,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) capture: Capture,
    /// Write a JSON object for each conversation
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) capture: Capture,
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
    /// The blob; - or nothing is standard input
    #[arg(conflicts_with = "hex")]
    pub(crate) file: Option<PathBuf>,
    /// The blob as hexadecimal digits
    #[arg(long, value_name = "STRING")]
    pub(crate) hex: Option<String>,
    /// Who sent it, for codecs where that matters
    #[arg(long, value_name = "SIDE", default_value = "client")]
    pub(crate) from: From,
    /// Keys, for codecs that decrypt
    #[arg(short, long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Definitions of messages: files, or folders of them (KI: message XML)
    #[arg(short, long, value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    /// Write JSON that `worldwire encode` reads
    #[arg(long)]
    pub(crate) json: bool,
    /// Like --json, with integers of more than 53 bits as strings
    #[arg(long)]
    pub(crate) json_safe: bool,
    /// Show where every field stands
    #[arg(long, conflicts_with_all = ["json", "json_safe"])]
    pub(crate) bytes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Encode {
    /// The codec; `worldwire codecs` lists them
    pub(crate) codec: String,
    /// The JSON; - or nothing is standard input
    pub(crate) file: Option<PathBuf>,
    /// Write hexadecimal digits instead of bytes
    #[arg(long)]
    pub(crate) hex: bool,
    /// Who sends it, where that matters and the JSON does not say
    #[arg(long, value_name = "SIDE", default_value = "client")]
    pub(crate) from: From,
    /// Keys, for codecs that encrypt
    #[arg(short, long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Definitions of messages: files, or folders of them (KI: message XML)
    #[arg(short, long, value_name = "PATH")]
    pub(crate) data: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Codecs {
    /// Show the messages and fields of this one
    pub(crate) name: Option<String>,
}

/// Where a result goes.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite it if it is there
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Codegen {
    /// For DML messages
    #[command(after_help = "Examples:
  worldwire codegen ki Messages/ -o messages.rs
  worldwire codegen ki --select LOGIN --select GAME.MSG_CLIENTMOVE")]
    Ki {
        /// Message XML: files, or folders of them; without any, what is built in
        paths: Vec<PathBuf>,
        /// Only these services (LOGIN, 7) and messages (LOGIN.MSG_PING, 7.27)
        #[arg(short, long, value_name = "NAME")]
        select: Vec<String>,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Ki {
    #[command(subcommand)]
    pub(crate) command: KiCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiCommand {
    /// The ids of texts, or the texts of ids
    #[command(after_help = "Examples:
  worldwire ki string-id Fire 'class Duel'
  worldwire ki string-id --find 996708736
  worldwire ki string-id --find 85019234 --words classes.txt")]
    StringId(KiStringId),
    /// Build or explain a command line of the graphical client
    #[command(after_help = "Examples:
  worldwire ki client-args --login 127.0.0.1:12000 --user 5:SECRET:Merle --patch 0
  worldwire ki client-args --explain -- -L 127.0.0.1 12000 -V

Arguments marked with * are not in the Kronos Grimoire, only in notes of servers.")]
    ClientArgs(KiClientArgs),
    /// Message definitions and tables (DML)
    #[command(subcommand, arg_required_else_help = true)]
    Dml(KiDml),
    /// Archives (KIWAD), such as Root.wad
    #[command(subcommand, arg_required_else_help = true)]
    Wad(KiWad),
}

#[derive(Debug, Args)]
pub(crate) struct KiStringId {
    /// The texts
    #[arg(value_name = "TEXT", required_unless_present = "find")]
    pub(crate) texts: Vec<String>,
    /// Find the texts that have this id, among the words that are known
    #[arg(long, value_name = "ID", num_args = 1.., conflicts_with = "texts")]
    pub(crate) find: Vec<u32>,
    /// More words, one a line
    #[arg(long, value_name = "FILE", requires = "find")]
    pub(crate) words: Vec<PathBuf>,
    /// Message definitions whose names are words too: XML files, or folders of them
    #[arg(short, long, value_name = "PATH", requires = "find")]
    pub(crate) data: Vec<PathBuf>,
    /// Write JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KiDml {
    /// List protocols and their messages
    #[command(after_help = "Examples:
  worldwire ki dml list
  worldwire ki dml list LOGIN --data Messages/")]
    List {
        /// Only this service, by name or number; all of its messages
        service: Option<String>,
        /// Message XML: files, or folders of them
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
        /// Write JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Show the fields of a message
    #[command(after_help = "Examples:
  worldwire ki dml show LOGIN.MSG_USER_AUTHEN_V3
  worldwire ki dml show 5.36 --data GameMessages.xml")]
    Show {
        /// SERVICE.MESSAGE, by names or numbers
        message: String,
        /// Message XML: files, or folders of them
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
    /// Check message XML, and say all there is to be said about it
    #[command(after_help = "Examples:
  worldwire ki dml check Messages/
  worldwire ki dml check GameMessages.xml --strict")]
    Check {
        /// Files, or folders of them
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Refuse what a client's own loader lets pass
        #[arg(long)]
        strict: bool,
    },
    /// Say how a payload fits a message, and the likely reason when it does not
    #[command(after_help = "Example:
  worldwire ki dml fit LOGIN.MSG_USER_ADMIT_IND --hex 0100000000000000")]
    Fit {
        /// SERVICE.MESSAGE, by names or numbers
        message: String,
        /// The payload, without the header; - or nothing is standard input
        #[arg(conflicts_with = "hex")]
        file: Option<PathBuf>,
        /// The payload as hexadecimal digits
        #[arg(long, value_name = "STRING")]
        hex: Option<String>,
        /// Message XML: files, or folders of them
        #[arg(short, long, value_name = "PATH")]
        data: Vec<PathBuf>,
    },
    /// Convert tables such as LatestFileList.bin
    #[command(after_help = "Examples:
  worldwire ki dml table LatestFileList.bin
  worldwire ki dml table LatestFileList.bin --to csv --table Base -o base.csv
  worldwire ki dml table files.json --to bin -o LatestFileList.bin")]
    Table {
        /// Tables in binary form, XML or JSON; - is standard input
        file: PathBuf,
        /// The form to write
        #[arg(long, value_name = "FORM", default_value = "json")]
        to: KiTableForm,
        /// Only this table, for CSV
        #[arg(long, value_name = "NAME")]
        table: Option<String>,
        #[command(flatten)]
        target: Target,
    },
}

/// Forms of DML tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KiTableForm {
    /// JSON, which holds everything
    Json,
    /// One table as comma-separated values
    Csv,
    /// The binary form
    Bin,
    /// XML
    Xml,
}

/// The arguments of the client by their long names, from the list of all of them.
#[derive(Debug)]
pub(crate) struct KiClientArgs {
    pub(crate) given: Vec<worldwire_ki::client_args::Given>,
    /// A command line to explain instead.
    pub(crate) explain: Option<Vec<String>>,
}

#[derive(Debug, Args)]
pub(crate) struct Uru {
    #[command(subcommand)]
    pub(crate) command: UruCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruCommand {
    /// Make and convert the keys of a shard
    #[command(subcommand, arg_required_else_help = true)]
    Keys(UruKeys),
    /// Make, check and show manifests
    #[command(subcommand, arg_required_else_help = true)]
    Manifest(UruManifest),
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruKeys {
    /// Make the keys of a new shard
    #[command(after_help = "Examples:
  worldwire uru keys generate -o keys.toml
  worldwire uru keys generate --format dirtsand")]
    Generate {
        /// How to write them
        #[arg(long, value_name = "FORMAT", default_value = "toml")]
        format: KeyFormat,
        #[command(flatten)]
        target: Target,
    },
    /// Write keys in another spelling
    #[command(after_help = "Examples:
  worldwire uru keys convert dirtsand.ini --to toml -o keys.toml
  worldwire uru keys convert keys.toml --to server-ini")]
    Convert {
        /// Keys in any spelling; - is standard input
        file: PathBuf,
        /// How to write them
        #[arg(long, value_name = "FORMAT")]
        to: KeyFormat,
        #[command(flatten)]
        target: Target,
    },
}

/// Spellings of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyFormat {
    /// worldwire, with the server's secrets
    Toml,
    /// worldwire, only what clients may know
    TomlPublic,
    /// dirtsand.ini, with the server's secrets
    Dirtsand,
    /// moulars, with the server's secrets
    Moulars,
    /// NAGUS, with the server's secrets
    Nagus,
    /// The client's server.ini
    ServerIni,
    /// OpenUru's source, for clients
    OpenUru,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UruManifest {
    /// Make a manifest of the files of a folder
    #[command(after_help = "Example:
  worldwire uru manifest make game/dat --prefix dat -o dat.mfs")]
    Make {
        /// The folder; files in folders below it are taken too
        folder: PathBuf,
        /// Put this folder in front of the client's names
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<String>,
        /// Pack the files with gzip into this folder, and list those
        #[arg(long, value_name = "FOLDER")]
        gzip_to: Option<PathBuf>,
        #[command(flatten)]
        target: Target,
    },
    /// Compare a manifest with the files of a folder
    #[command(after_help = "Example:
  worldwire uru manifest check dat.mfs game/dat --prefix dat")]
    Check {
        /// The manifest
        file: PathBuf,
        /// The folder with what is downloaded or with the plain files
        folder: PathBuf,
        /// This folder stands in front of the client's names
        #[arg(long, value_name = "FOLDER")]
        prefix: Option<String>,
    },
    /// Show a manifest
    #[command(after_help = "Example:
  worldwire uru manifest show dat.mfs --json")]
    Show {
        /// The manifest, as text (.mfs) or as it goes over the wire
        file: PathBuf,
        /// Write JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}
