//! The command line of `worldwire filter`.

use clap::Args;

use super::Data;

#[derive(Debug, Args)]
pub(crate) struct FilterArguments {
    /// Filter to check, instead of explaining the language
    pub(crate) filter: Option<String>,
    #[command(flatten)]
    pub(crate) data: Data,
}
