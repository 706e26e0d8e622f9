//! Reads passwords from files, the environment, or a prompt.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use crate::cli::NewPassword;
use crate::input;
use crate::output::{Failure, reason};

/// The environment variable for a password.
const PASSWORD: &str = "WORLDWIRE_PASSWORD";

/// Reads a new password from a file, the environment, a prompt that asks twice, or standard input.
pub(crate) fn fresh(from: &NewPassword) -> Result<String, Failure> {
    let password = match (&from.password_file, std::env::var(PASSWORD)) {
        (Some(file), _) => first_line(&input::read_text(file)?),
        (None, Ok(password)) => password,
        (None, Err(_)) if io::stdin().is_terminal() => {
            let password = ask("Password: ")?;
            if ask("Again: ")? != password {
                return Err(Failure::Run("the passwords do not match".to_owned()));
            }
            password
        }
        (None, Err(_)) => first_line(&input::read_text(Path::new("-"))?),
    };
    if password.is_empty() {
        let wanted = format!(
            "the password is empty; use --password-file, the variable {PASSWORD}, or the first line \
             of standard input"
        );
        return Err(Failure::Run(wanted));
    }
    Ok(password)
}

/// Reads an account's password from a file, the environment, or a prompt.
pub(crate) fn known(file: Option<&Path>) -> Result<String, Failure> {
    let password = match (file, std::env::var(PASSWORD)) {
        (Some(file), _) => first_line(&input::read_text(file)?),
        (None, Ok(password)) => password,
        (None, Err(_)) if io::stdin().is_terminal() => ask("Password: ")?,
        (None, Err(_)) => String::new(),
    };
    if password.is_empty() {
        let wanted = format!("no password given; use --password-file or the variable {PASSWORD}");
        return Err(Failure::Run(wanted));
    }
    Ok(password)
}

fn ask(prompt: &str) -> Result<String, Failure> {
    rpassword::prompt_password(prompt)
        .map_err(|error| Failure::Run(format!("cannot read the password: {}", reason(&error))))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
