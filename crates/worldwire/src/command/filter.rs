//! `worldwire filter`.

use crate::cli::FILTERS;
use crate::output::{Failure, print};

pub(crate) fn run() -> Result<(), Failure> {
    print(FILTERS)
}
