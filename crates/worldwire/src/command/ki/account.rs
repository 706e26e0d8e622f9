//! `worldwire ki account` and `worldwire ki refresh`.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value as Json;
use worldwire_server::ki::admin::{Request, check_account_name};
use worldwire_server::ki::realm::Realm;

use crate::cli::{Common, KiAccount, KiRefresh, KiServerCommand};
use crate::command::administration::{loss, print_lines, text};
use crate::command::confirmation::confirm;
use crate::command::{administration, password};
use crate::output::{Failure, complain, counted, print};

pub(crate) fn run(command: &KiServerCommand, common: &Common) -> Result<(), Failure> {
    match command {
        KiServerCommand::Account(command) => accounts(command, common),
        KiServerCommand::Refresh(arguments) => refresh(arguments, common),
    }
}

fn accounts(command: &KiAccount, common: &Common) -> Result<(), Failure> {
    let (name, request, server, done) = match command {
        KiAccount::List { server } => {
            let accounts = ask(&server.server, Request::Accounts)?;
            return if server.json { print_lines(&accounts) } else { print(&table(&accounts)) };
        }
        KiAccount::Token { name, server } => {
            let token = ask(&server.server, Request::Token { name: name.clone() })?;
            return if server.json { print_lines(&token) } else { print(&arguments(&token)) };
        }
        KiAccount::Add { name, password, paying, slots, server } => {
            check_account_name(name).map_err(|problem| {
                complain(&server.server.to_string_lossy(), &problem.to_string());
                Failure::Input
            })?;
            let password = password::fresh(password)?;
            let (paying, slots) = (*paying, *slots);
            let request = Request::AddAccount { name: name.clone(), password, paying, slots };
            (name, request, server, "account created")
        }
        KiAccount::Passwd { name, password, server } => {
            let password = password::fresh(password)?;
            let request = Request::SetPassword { name: name.clone(), password };
            (name, request, server, "password changed")
        }
        KiAccount::Ban { name, lift, server } => {
            let request = Request::Ban { name: name.clone(), banned: !lift };
            (name, request, server, if *lift { "ban lifted" } else { "banned" })
        }
        KiAccount::Delete { name, confirmation, server } => {
            let accounts = ask(&server.server, Request::Accounts)?;
            // The server refuses the name of an account that does not exist.
            if let Some(loss) = loss(name, &accounts, "character") {
                confirm(*confirmation, &loss)?;
            }
            (name, Request::DeleteAccount { name: name.clone() }, server, "deleted")
        }
        KiAccount::Kick { name, server } => {
            (name, Request::Kick { name: name.clone() }, server, "disconnected")
        }
    };
    let answer = ask(&server.server, request)?;
    let connections = answer.first().and_then(|answer| answer["connections"].as_u64());
    if server.json {
        print_lines(&answer)?;
    }
    if connections == Some(0) {
        complain(name, "is not connected");
        return Err(Failure::Input);
    }
    common.note(name, done);
    Ok(())
}

fn refresh(arguments: &KiRefresh, common: &Common) -> Result<(), Failure> {
    let KiRefresh { account, server } = arguments;
    let answer = ask(&server.server, Request::Refresh { name: account.clone() })?;
    let count = answer.first().and_then(|answer| answer["connections"].as_u64()).unwrap_or(0);
    let sessions = counted(count, "session");
    common.note(account.as_deref().unwrap_or("all"), &format!("{sessions} made stale"));
    if server.json { print_lines(&answer) } else { Ok(()) }
}

/// Asks the login server in a directory and reports refusals.
fn ask(folder: &Path, request: Request) -> Result<Vec<Json>, Failure> {
    administration::ask::<Realm>(folder, request, &[])
}

/// The arguments of the graphical client.
fn arguments(token: &[Json]) -> String {
    let line =
        |one: &Json| format!("-U ..{} {} {}\n", one["user"], text(&one["ck2"]), text(&one["name"]));
    token.iter().map(line).collect()
}

fn table(accounts: &[Json]) -> String {
    let mut out = String::new();
    for account in accounts {
        let mut marks = Vec::new();
        marks.extend((account["paying"] == true).then(|| "paying".to_owned()));
        marks.extend((account["banned"] == true).then(|| "banned".to_owned()));
        let slots = account["slots"].as_u64().unwrap_or_default();
        marks.extend((slots > 0).then(|| counted(slots, "more slot")));
        let marks =
            if marks.is_empty() { String::new() } else { format!("  ({})", marks.join(", ")) };
        let _ = writeln!(out, "{}{marks}", text(&account["name"]));
        for character in account["characters"].as_array().into_iter().flatten() {
            let _ = writeln!(out, "  {}  {}", text(&character["id"]), text(&character["name"]));
        }
    }
    out
}
