//! `worldwire mxo account`, `character`, `keys` and `sky`.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value as Json;
use worldwire_server::mxo::admin::{Request, check_account_name};
use worldwire_server::mxo::keys::{PUBLIC_KEY_FILE, public_bytes, read_public};
use worldwire_server::mxo::realm::Realm;

use crate::cli::{Common, MxoAccount, MxoCharacter, MxoKeys, MxoServerCommand, MxoServerFolder};
use crate::command::administration::{loss, print_lines, text};
use crate::command::confirmation::confirm;
use crate::command::{administration, password};
use crate::output::{Failure, complain, print, write_all};

pub(crate) fn run(command: &MxoServerCommand, common: &Common) -> Result<(), Failure> {
    match command {
        MxoServerCommand::Account(command) => accounts(command, common),
        MxoServerCommand::Character(command) => characters(command, common),
        MxoServerCommand::Keys(command) => keys(command),
        MxoServerCommand::Sky { sky, server } => self::sky(sky, server, common),
    }
}

fn accounts(command: &MxoAccount, common: &Common) -> Result<(), Failure> {
    let (name, request, server, done) = match command {
        MxoAccount::List { server } => {
            let accounts = ask(&server.server, Request::Accounts)?;
            return if server.json { print_lines(&accounts) } else { print(&table(&accounts)) };
        }
        MxoAccount::Add { name, password, inactive, server } => {
            check_account_name(name).map_err(|problem| {
                complain(&server.server.to_string_lossy(), &problem.to_string());
                Failure::Input
            })?;
            let (password, inactive) = (password::fresh(password)?, *inactive);
            let request = Request::AddAccount { name: name.clone(), password, inactive };
            (name, request, server, "account created")
        }
        MxoAccount::Passwd { name, password, server } => {
            let password = password::fresh(password)?;
            let request = Request::SetPassword { name: name.clone(), password };
            (name, request, server, "password changed")
        }
        MxoAccount::Ban { name, lift, server } => {
            let request = Request::Ban { name: name.clone(), banned: !lift };
            (name, request, server, if *lift { "ban lifted" } else { "banned" })
        }
        MxoAccount::Activate { name, undo, server } => {
            let request = Request::Deactivate { name: name.clone(), inactive: *undo };
            (name, request, server, if *undo { "deactivated" } else { "activated" })
        }
        MxoAccount::Delete { name, confirmation, server } => {
            let accounts = ask(&server.server, Request::Accounts)?;
            // The server refuses the name of an account that does not exist.
            if let Some(loss) = loss(name, &accounts, "character") {
                confirm(*confirmation, &loss)?;
            }
            (name, Request::DeleteAccount { name: name.clone() }, server, "deleted")
        }
        MxoAccount::Kick { name, server } => {
            (name, Request::Kick { name: name.clone() }, server, "disconnected")
        }
    };
    let answer = ask(&server.server, request)?;
    if server.json {
        print_lines(&answer)?;
    }
    if answer.first().is_some_and(|answer| answer["connections"] == 0) {
        complain(name, "is not connected");
        return Err(Failure::Input);
    }
    common.note(name, done);
    Ok(())
}

fn characters(command: &MxoCharacter, common: &Common) -> Result<(), Failure> {
    match command {
        MxoCharacter::List { server } => {
            let characters = of_accounts(&ask(&server.server, Request::Accounts)?);
            if server.json {
                return print_lines(&characters);
            }
            let mut out = String::new();
            for character in &characters {
                let (handle, account) = (text(&character["name"]), text(&character["account"]));
                let _ = writeln!(out, "{}  {handle}  ({account})", text(&character["id"]));
            }
            print(&out)
        }
        MxoCharacter::Delete { handle, confirmation, server } => {
            confirm(*confirmation, &format!("character {handle}"))?;
            let answer = ask(&server.server, Request::DeleteCharacter { handle: handle.clone() })?;
            if server.json {
                print_lines(&answer)?;
            }
            common.note(handle, "deleted");
            Ok(())
        }
    }
}

fn sky(sky: &str, server: &MxoServerFolder, common: &Common) -> Result<(), Failure> {
    let answer = ask(&server.server, Request::SetSky { sky: sky.to_owned() })?;
    if server.json {
        print_lines(&answer)?;
    }
    common.note(sky, "set as the weather");
    Ok(())
}

fn keys(command: &MxoKeys) -> Result<(), Failure> {
    let MxoKeys::Pubkey { server, target } = command;
    let file = server.join(PUBLIC_KEY_FILE);
    let public_key = read_public(&file).map_err(|error| Failure::Run(error.to_string()))?;
    let Some(public_key) = public_key else {
        let problem = "no public key; `worldwire serve mxo` creates one";
        return Err(Failure::Run(format!("{}: {problem}", file.display())));
    };
    write_all(target, &public_bytes(&public_key))
}

/// The characters of all accounts.
fn of_accounts(accounts: &[Json]) -> Vec<Json> {
    let mut all = Vec::new();
    for account in accounts {
        for character in account["characters"].as_array().into_iter().flatten() {
            let mut character = character.clone();
            character["account"] = account["name"].clone();
            all.push(character);
        }
    }
    all
}

/// Asks the server in a directory and reports refusals.
fn ask(folder: &Path, request: Request) -> Result<Vec<Json>, Failure> {
    administration::ask::<Realm>(folder, request, &[])
}

fn table(accounts: &[Json]) -> String {
    let mut out = String::new();
    for account in accounts {
        let mark = |name: &'static str| (account[name] == true).then_some(name);
        let marks: Vec<_> = ["banned", "inactive"].into_iter().filter_map(mark).collect();
        let marks =
            if marks.is_empty() { String::new() } else { format!("  ({})", marks.join(", ")) };
        let _ = writeln!(out, "{}{marks}", text(&account["name"]));
        for character in account["characters"].as_array().into_iter().flatten() {
            let mark = if character["loaded"] == true { "  (loaded)" } else { "" };
            let (id, name) = (text(&character["id"]), text(&character["name"]));
            let _ = writeln!(out, "  {id}  {name}{mark}");
        }
    }
    out
}
