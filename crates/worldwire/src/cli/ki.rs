//! The command line of `worldwire ki`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Target;

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
