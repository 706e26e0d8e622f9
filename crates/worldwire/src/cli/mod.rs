//! The command line.

mod capture;
#[cfg(feature = "network")]
mod client;
mod codec;
mod conformance;
mod defaults;
mod diff;
mod extcap;
mod filter;
mod groups;
mod help;
#[cfg(feature = "network")]
mod inspect;
mod ki;
mod ki_files;
#[cfg(feature = "network")]
mod ki_server;
#[cfg(feature = "network")]
mod mods;
mod mxo;
#[cfg(feature = "network")]
mod mxo_server;
#[cfg(feature = "network")]
mod proxy;
mod quantity;
#[cfg(feature = "network")]
mod replay;
mod sanitize;
#[cfg(feature = "network")]
mod serve;
mod settings;
mod tera;
#[cfg(feature = "network")]
mod uru;
#[cfg(feature = "network")]
mod uru_cluster;
#[cfg(feature = "network")]
mod uru_files;
mod wad;

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use worldwire_tera::schema::Patch;

use crate::settings::{Settings, log_filter};

pub(crate) use capture::*;
#[cfg(feature = "network")]
pub(crate) use client::*;
pub(crate) use codec::*;
pub(crate) use conformance::*;
pub(crate) use diff::*;
pub(crate) use extcap::*;
pub(crate) use filter::*;
pub(crate) use help::{for_pages, parse};
#[cfg(feature = "network")]
pub(crate) use inspect::*;
pub(crate) use ki::*;
pub(crate) use ki_files::*;
#[cfg(feature = "network")]
pub(crate) use ki_server::*;
#[cfg(feature = "network")]
pub(crate) use mods::*;
pub(crate) use mxo::*;
#[cfg(feature = "network")]
pub(crate) use mxo_server::*;
#[cfg(feature = "network")]
pub(crate) use proxy::*;
pub(crate) use quantity::StopAfter;
#[cfg(feature = "network")]
pub(crate) use replay::*;
pub(crate) use sanitize::*;
#[cfg(feature = "network")]
pub(crate) use serve::*;
pub(crate) use settings::*;
pub(crate) use tera::*;
#[cfg(feature = "network")]
pub(crate) use uru::*;
#[cfg(feature = "network")]
pub(crate) use uru_cluster::*;
#[cfg(feature = "network")]
pub(crate) use uru_files::*;
pub(crate) use wad::*;

/// Decode, encode and serve the network protocols and data formats of preserved online worlds
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Results go to standard output, everything else to standard error.\n\
                  Exit codes: 0 success; 1 problems in the input, or a name or number that does not \
                  exist; 2 failure to run; 130 interrupted.\n\n\
                  Example:\n  worldwire dissect samples/uru-login.pcapng --keys samples/uru-keys.toml"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that all commands share.
#[derive(Debug, Default, Args)]
pub(crate) struct Common {
    /// Colour the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// Print only results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Use this profile from worldwire.toml instead of the profiles that match the traffic
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Ignore all settings: worldwire.toml files, and environment variables such as WORLDWIRE_KEYS
    #[arg(long, global = true, conflicts_with = "profile")]
    pub(crate) no_settings: bool,
    /// Log to standard error at this level (error to trace), or at different levels for parts of the
    /// program: warn,worldwire_net=debug
    #[arg(long, global = true, value_name = "LEVEL", value_parser = log_level)]
    pub(crate) log: Option<String>,
    /// The settings from environment variables and files.
    #[arg(skip)]
    pub(crate) settings: Settings,
}

/// Accepts any level that the log accepts.
fn log_level(text: &str) -> Result<String, String> {
    log_filter(text).map(|_| text.to_owned())
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    #[default]
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The help text for the filter language.
pub(crate) const FILTERS: &str = include_str!("filter.txt");

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the messages in a capture
    #[command(after_help = "Examples:
  worldwire dissect samples/uru-login.pcapng --keys samples/uru-keys.toml
  worldwire dissect game.pcapng --keys keys.toml --filter 'result != 0'
  worldwire dissect game.pcapng --keys keys.toml --brief --last 20
  worldwire dissect game.pcapng --keys keys.toml --filter auth.VaultNodeFetched --first > reply.bin
  worldwire dissect game.pcapng --keys keys.toml --filter 'result != 0' -o failed.pcapng
  worldwire dissect game.pcapng --keys keys.toml --fields date,auth.AcctLoginRequest.accountName --csv
  tcpdump --immediate-mode -U -w - port 14617 | worldwire dissect - --keys keys.toml --json

`worldwire filter` explains the filter language.")]
    Dissect(Dissect),
    #[cfg(feature = "network")]
    /// Show a capture, or a KI archive, in the browser
    #[command(after_help = "\
The command prints the page's address, which contains a token; a browser needs the token to open the
page. Press Ctrl-C to stop the program. Bookmarks and notes are saved next to the capture, in
FILE.worldwire-notes.json.

Examples:
  worldwire inspect game.pcapng --keys keys.toml
  worldwire inspect game.pcapng --keys keys.toml --open
  worldwire inspect game.pcapng --data definitions/ --listen 127.0.0.1:8080
  worldwire inspect Root.wad --data types.json --edit")]
    Inspect(Inspect),
    /// Show one conversation as a dialogue, or dump all its bytes
    #[command(after_help = "Examples:
  worldwire follow samples/uru-login.pcapng --keys samples/uru-keys.toml --stream 1
  worldwire follow game.pcapng --keys keys.toml --stream 3 --full --filter 'result != 0'
  worldwire follow game.pcapng --keys keys.toml --stream 3 --dump
  worldwire follow game.pcapng --stream 3 --raw client > client.bin
  worldwire follow game.pcapng --stream 3 --raw client --wire > encrypted.bin

The server's messages are indented.")]
    Follow(Follow),
    /// Capture packets on an interface and show the messages in them
    #[command(after_help = "Examples:
  worldwire capture eth0 port 14617 --keys keys.toml
  worldwire capture any --write evening.pcapng --brief host 192.0.2.1 and tcp
  worldwire capture eth0 port 14617 --keys keys.toml --filter auth.AcctLoginReply --limit 1
  worldwire capture eth0 port 14617 --write night.pcapng --ring 24 --ring-time 1h --stop-after 24h

This command runs tcpdump, or Wireshark's dumpcap if tcpdump is not installed. You need the \
privileges that they require. PACKETS is a tcpdump filter.")]
    Capture(LiveCapture),
    /// Export messages and dissectors for Wireshark, or downloaded files
    #[command(subcommand, arg_required_else_help = true)]
    Export(Export),
    /// Deliver decrypted messages to Wireshark, which runs this command itself
    #[command(after_help = "Examples:
  worldwire extcap --extcap-interfaces
  worldwire extcap --capture --extcap-interface worldwire-recording --file evening.pcapng --fifo pipe

To add live and recorded messages to Wireshark's list of interfaces, put a link to this program in one \
of its extcap directories: see docs/wireshark.md.")]
    Extcap(Extcap),
    /// Explain the filter language, or check a filter
    #[command(long_about = FILTERS, after_help = "Examples:
  worldwire filter
  worldwire filter 'auth.* and result != 0'
  worldwire filter 'S_CHAT and message contains \"hi\"' --data definitions/

With FILTER, the command checks the filter and prints \"valid\". If the filter has syntax errors or unknown \
message or field names, the command reports them instead and exits with code 1.")]
    Filter(FilterArguments),
    /// Summarise the conversations and messages in a capture
    #[command(after_help = "Examples:
  worldwire stats samples/uru-login.pcapng --keys samples/uru-keys.toml
  worldwire stats game.pcapng --keys keys.toml --filter 'auth.*' --top 20
  worldwire stats game.pcapng --conversations --sort rate
  worldwire stats game.pcapng --stream 3 --each
  worldwire stats game.pcapng --keys keys.toml --report report.html")]
    Stats(Stats),
    /// Compare two captures, messages, KI archives, type lists or sets of definitions
    #[command(after_help = "Examples:
  worldwire diff samples/uru-login.pcapng samples/uru-login.pcapng --keys samples/uru-keys.toml
  worldwire diff before.pcapng after.pcapng --keys keys.toml --ignore transId,pingTimeMs
  worldwire diff game.pcapng:17 game.pcapng:25 --keys keys.toml
  worldwire diff before.pcapng after.pcapng --filter auth.AcctLoginRequest --message 1 --json
  worldwire diff Root.old.wad Root.wad --types types.json
  worldwire diff tera-data-2020/protocol tera-data-2022/definitions

In captures, message names, senders and fields are compared; times and addresses are ignored. \
Conversations are paired by their contents, then by family, first message and server. Exit codes: 0 no \
differences, 1 differences or unreadable parts, 2 failure to run.")]
    Diff(DiffArguments),
    /// Replace names, text, secrets and addresses in a capture before you share it
    #[command(after_help = "Examples:
  worldwire sanitize samples/uru-login.pcapng --keys samples/uru-keys.toml -o shared.pcapng
  worldwire sanitize game.pcapng --keys keys.toml --data definitions/ -o shared.pcapng --seed 7

The new capture contains new keys, so you can read it without --keys. Messages that cannot be decoded \
completely are omitted and reported, and the exit code is then 1. Times and numbers are kept, except for \
the IDs of accounts, players, characters, vault nodes and computers.")]
    Sanitize(SanitizeArguments),
    /// Export session keys
    #[command(subcommand, arg_required_else_help = true)]
    Secrets(Secrets),
    /// Explain what could not be decoded and how to fix it
    #[command(after_help = "Examples:
  worldwire doctor samples/ki-login.pcapng
  worldwire doctor game.pcapng --keys keys.toml --stream 3 --json")]
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
  worldwire codecs uru.net-message plNetMsgVoice
  worldwire codecs uru.auth --json")]
    Codecs(Codecs),
    /// Test your own decoder against the conformance vectors
    #[command(after_help = "Examples:
  worldwire conformance --vectors vectors/uru ./my-codec
  worldwire conformance --vectors vectors/ki/frames.json python3 docs/examples/conformance.py worldwire

Your program reads requests from standard input and writes responses to standard output, as JSON lines: see \
docs/conformance.md. The exit code is 1 if a vector fails.")]
    Conformance(ConformanceArguments),
    /// Generate typed Rust or Python from message definitions
    #[command(subcommand, arg_required_else_help = true)]
    Codegen(Codegen),
    #[cfg(feature = "network")]
    /// Run a server
    #[command(arg_required_else_help = true)]
    Serve(Serve),
    #[cfg(feature = "network")]
    /// Run a headless client: explore, download files, or generate load
    #[command(arg_required_else_help = true)]
    Client(Client),
    #[cfg(feature = "network")]
    /// Relay clients to a server and show, record, hold or change their messages
    #[command(arg_required_else_help = true)]
    Proxy(ProxyArguments),
    #[cfg(feature = "network")]
    /// Play one side of a recorded conversation to a live peer
    #[command(after_help = "\
The messages of the side that you choose with --as are sent in order, each as soon as the peer has sent
everything that was recorded before it. Keys, logins, session IDs and transaction IDs are adapted as the
protocol requires; to change other values, use --rules. If the live peer behaves differently, the replay
stops with exit code 1 and reports the difference.

The password comes from --password-file or the environment variable WORLDWIRE_PASSWORD; otherwise, the
program prompts for it.

Examples:
  worldwire replay evening.pcapng --stream 2 --as client --to 127.0.0.1 --account ann
  worldwire replay evening.pcapng --stream 2 --as server --listen 127.0.0.1:14617
  worldwire replay game.pcapng --data definitions/ --as client --to 203.0.113.5:7801 --rules new.rules")]
    Replay(Replay),
    /// Work with Wizard101 and Pirate101: archives, objects, definitions, accounts
    #[command(arg_required_else_help = true)]
    Ki(Ki),
    #[cfg(feature = "network")]
    /// Check TERA toolbox mods
    #[command(arg_required_else_help = true)]
    Mods(Mods),
    /// Work with The Matrix Online: accounts, characters, views, tables of game objects
    #[command(arg_required_else_help = true)]
    Mxo(Mxo),
    /// Work with TERA: definitions, opcode maps
    #[command(arg_required_else_help = true)]
    Tera(Tera),
    #[cfg(feature = "network")]
    /// Work with Myst Online: Uru Live: accounts, vault, keys, manifests, SDL
    #[command(arg_required_else_help = true)]
    Uru(Uru),
    /// Show settings and where each value comes from
    #[command(subcommand, arg_required_else_help = true)]
    Settings(SettingsCommand),
    /// Write a shell completion script
    #[command(after_help = "Examples:
  worldwire completions bash > ~/.local/share/bash-completion/completions/worldwire
  worldwire completions zsh > ~/.zfunc/_worldwire
  worldwire completions fish > ~/.config/fish/completions/worldwire.fish")]
    Completions(Completions),
    /// Write manual pages for the program and for each command
    #[command(after_help = "Examples:
  worldwire man -o man1/
  worldwire man -o ~/.local/share/man/man1 --force

After you run the second example, `man worldwire-dissect` shows the page for `dissect`.")]
    Man(ManArguments),
}

/// The definitions that the user supplies.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Data {
    /// Message definitions: files or directories (KI: type lists, hints, and message XML in files or
    /// archives; MxO: tables of game objects; TERA: .def, .map, data.json and the lists next to them;
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
        let wanted = "must have the form NAME.VERSION, such as S_LOGIN.13";
        let (name, version) = text.rsplit_once('.').ok_or(wanted)?;
        let version = version.parse().map_err(|_| wanted)?;
        Ok(Self { name: name.to_owned(), version })
    }
}

/// The range of thread counts.
fn threads() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(0..=256)
}

/// The destination of a result.
#[derive(Clone, Debug, Args)]
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
    Ki(CodegenKi),
    /// Generate Rust for TERA's messages
    #[command(after_help = "Examples:
  worldwire codegen tera samples/tera -o messages.rs
  worldwire codegen tera tera-data/definitions --select S_LOGIN.14 --select C_CHAT")]
    Tera(CodegenTera),
    /// Generate Python dataclasses
    #[command(subcommand, arg_required_else_help = true)]
    Python(CodegenPython),
}

#[derive(Debug, Subcommand)]
pub(crate) enum CodegenPython {
    /// Generate Python for KI's DML messages
    #[command(after_help = "Examples:
  worldwire codegen python ki Messages/ -o messages.py
  worldwire codegen python ki --select LOGIN")]
    Ki(CodegenKi),
    /// Generate Python for TERA's messages
    #[command(after_help = "Examples:
  worldwire codegen python tera samples/tera -o messages.py
  worldwire codegen python tera tera-data/definitions --select S_LOGIN.14 --select C_CHAT")]
    Tera(CodegenTera),
    /// Generate Python for Uru's messages
    #[command(after_help = "Examples:
  worldwire codegen python uru -o messages.py
  worldwire codegen python uru --select gatekeeper --select auth.AcctLoginRequest")]
    Uru(CodegenBuiltIn),
    /// Generate Python for MxO's login and RPC messages
    #[command(after_help = "Examples:
  worldwire codegen python mxo -o messages.py
  worldwire codegen python mxo --select margin --select ChatMessage")]
    Mxo(CodegenBuiltIn),
}

#[derive(Debug, Args)]
pub(crate) struct CodegenBuiltIn {
    /// Generate only these messages: one message by its NAME, or a group such as auth, margin or rpc
    #[arg(short, long, value_name = "NAME")]
    pub(crate) select: Vec<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct CodegenKi {
    /// Message XML: files or directories [default: built-in definitions]
    pub(crate) paths: Vec<PathBuf>,
    /// Generate only these services (LOGIN, 7) and messages (LOGIN.MSG_PING, 7.27)
    #[arg(short, long, value_name = "NAME")]
    pub(crate) select: Vec<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct CodegenTera {
    /// Definitions: files or directories
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Generate only these messages: NAME for the newest version, or NAME.VERSION
    #[arg(short, long, value_name = "NAME")]
    pub(crate) select: Vec<String>,
    #[command(flatten)]
    pub(crate) reading: TeraReading,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Output directory
    #[arg(short, long, value_name = "DIRECTORY")]
    pub(crate) output: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
}
