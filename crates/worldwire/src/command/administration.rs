//! Operators' requests to the server of a directory, whether it is running or not.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value as Json;
use worldwire_core::listed;
use worldwire_server::admin::{Admin, AdminError, Administered};

use super::system;
use crate::output::{Failure, complain, counted, print, printable};

/// Asks a server and reports refusals.
pub(crate) fn ask<S: Administered>(
    folder: &Path,
    request: S::Request,
    lines: &[String],
) -> Result<Vec<Json>, Failure> {
    answer::<S>(folder, request, lines)?.map_err(|problem| {
        complain(&folder.to_string_lossy(), &problem);
        Failure::Input
    })
}

/// Asks a server. The inner result is its answer.
pub(crate) fn answer<S: Administered>(
    folder: &Path,
    request: S::Request,
    lines: &[String],
) -> Result<Result<Vec<Json>, String>, Failure> {
    let answer = system::runtime()?.block_on(async {
        let admin = Admin::<S>::open(folder).await?;
        let answer = admin.ask_with_lines(request, lines).await;
        admin.close().await;
        answer
    });
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(AdminError::Refused(problem)) => Ok(Err(problem)),
        Err(error) => Err(Failure::Run(printable(&error.to_string()))),
    }
}

/// Prints one value per line.
pub(crate) fn print_lines(values: &[Json]) -> Result<(), Failure> {
    let mut out = String::new();
    for value in values {
        let _ = writeln!(out, "{value}");
    }
    print(&out)
}

/// What is lost when an account is deleted: the account, and the players or characters in it.
pub(crate) fn loss(name: &str, accounts: &[Json], what: &str) -> Option<String> {
    let is_named = |account: &&Json| {
        account["name"].as_str().is_some_and(|own| own.to_lowercase() == name.to_lowercase())
    };
    let inside = &accounts.iter().find(is_named)?[format!("{what}s")];
    let names = inside.as_array().map_or(&[][..], Vec::as_slice);
    Some(match names {
        [] => format!("account {name}"),
        names => {
            let all = listed(names.iter().map(|one| one["name"].as_str().unwrap_or_default()));
            format!("account {name} and its {}: {all}", counted(names.len(), what))
        }
    })
}

/// A JSON text, for a terminal.
pub(crate) fn text(value: &Json) -> String {
    printable(value.as_str().unwrap_or_default())
}
