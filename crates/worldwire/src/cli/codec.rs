//! The command line of `worldwire decode`, `encode` and `codecs`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Data, JsonForm, Target};

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
    /// Side that sent the blob, for codecs whose messages differ by side
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
    /// Codec, as listed by `worldwire codecs`
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
        "Side that sent the message, for codecs whose messages differ by side; used if the JSON does not \
         name the side",
    )
}))]
pub(crate) struct Encode {
    /// Codec, as listed by `worldwire codecs`
    #[arg(required_unless_present = "lines")]
    pub(crate) codec: Option<String>,
    /// File with the JSON; - is standard input [default: -]
    #[arg(conflicts_with = "lines")]
    pub(crate) file: Option<PathBuf>,
    /// Encode the lines of `dissect --json` from this file or standard input; messages are written back
    /// to back or, with --hex, one per line
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) lines: Option<PathBuf>,
    /// Write hexadecimal digits instead of bytes
    #[arg(long)]
    pub(crate) hex: bool,
    #[command(flatten)]
    pub(crate) context: BlobContext,
    /// TERA: convert values as older parsers do (truncate fractions, wrap numbers, ignore unknown
    /// fields)
    #[arg(long)]
    pub(crate) lenient: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct Codecs {
    /// Codec to describe, or a family, to list its codecs
    pub(crate) name: Option<String>,
    /// Describe only this message or class of the codec, by name or number
    pub(crate) entry: Option<String>,
    /// Write one JSON object per codec; with ENTRY, one per message or class
    #[arg(long)]
    pub(crate) json: bool,
}
