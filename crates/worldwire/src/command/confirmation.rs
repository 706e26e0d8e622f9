//! Asks for confirmation before something is deleted.

use std::io::{self, BufRead, IsTerminal as _, Write as _};

use crate::cli::Confirmation;
use crate::output::{Failure, printable, reason};

/// Asks whether to continue, unless `--yes` is given. `loss` completes "This deletes ...".
pub(crate) fn confirm(confirmation: Confirmation, loss: &str) -> Result<(), Failure> {
    if confirmation.yes {
        return Ok(());
    }
    let loss = printable(loss);
    if !io::stdin().is_terminal() {
        let problem = format!("this deletes {loss}; use --yes to confirm it without a terminal");
        return Err(Failure::Run(problem));
    }
    eprint!("This deletes {loss}. Continue? [y/N] ");
    let read = io::stderr().flush().and_then(|()| is_yes(&mut io::stdin().lock()));
    match read {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Run("nothing was deleted".to_owned())),
        Err(error) => Err(Failure::Run(format!("cannot read the answer: {}", reason(&error)))),
    }
}

/// Whether the next line is a "yes". An empty line or the end of the input is a "no".
fn is_yes(answers: &mut impl BufRead) -> io::Result<bool> {
    let mut line = String::new();
    answers.read_line(&mut line)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_agrees() {
        for (answer, agrees) in [
            ("y\n", true),
            ("YES\n", true),
            ("", false),
            ("\n", false),
            ("n\n", false),
            ("yet", false),
        ] {
            assert_eq!(is_yes(&mut answer.as_bytes()).unwrap(), agrees, "{answer:?}");
        }
    }
}
