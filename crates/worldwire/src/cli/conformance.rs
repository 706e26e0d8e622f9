//! The command line of `conformance`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ConformanceArguments {
    /// Program to test, and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub(crate) program: Vec<String>,
    /// Vectors: files or directories; can be repeated
    #[arg(long, value_name = "PATH", default_value = "vectors")]
    pub(crate) vectors: Vec<PathBuf>,
    /// Time limit for each response
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
    /// Also list vectors that pass
    #[arg(long)]
    pub(crate) all: bool,
    /// Write one JSON object per vector
    #[arg(long, conflicts_with = "all")]
    pub(crate) json: bool,
}
