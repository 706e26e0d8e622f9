//! `worldwire uru account`.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value as Json;
use worldwire_server::uru::admin::{Control, Request, check_account_name};
use worldwire_uru::crypt::login::PASSWORD_UNITS;
use worldwire_uru::message::AccountFlags;

use crate::cli::{AccountRole, Common, UruAccount, UruShard};
use crate::command::administration::{loss, print_lines, text};
use crate::command::confirmation::confirm;
use crate::command::{administration, password};
use crate::output::{Failure, complain, print};

pub(crate) fn run(command: &UruAccount, shard: &UruShard, common: &Common) -> Result<(), Failure> {
    let (name, request, done) = match command {
        UruAccount::List => {
            let accounts = ask(&shard.shard, Request::Accounts, Vec::new())?;
            return if shard.json { print_lines(&accounts) } else { print(&table(&accounts)) };
        }
        UruAccount::Add { name, password, role } => {
            check_account_name(name).map_err(|problem| {
                complain(&shard.shard.to_string_lossy(), &problem.to_string());
                Failure::Input
            })?;
            let password = known_to_clients(name, password::fresh(password)?, common);
            let flags = flags(role);
            (name, Request::AddAccount { name: name.clone(), password, flags }, "account created")
        }
        UruAccount::Passwd { name, password } => {
            let password = known_to_clients(name, password::fresh(password)?, common);
            (name, Request::SetPassword { name: name.clone(), password }, "password changed")
        }
        UruAccount::Ban { name, lift } => {
            let done = if *lift { "ban lifted" } else { "banned" };
            (name, Request::Ban { name: name.clone(), banned: !lift }, done)
        }
        UruAccount::Role { name, role } => {
            (name, Request::SetRoles { name: name.clone(), flags: flags(role) }, "roles changed")
        }
        UruAccount::Delete { name, confirmation } => {
            let accounts = ask(&shard.shard, Request::Accounts, Vec::new())?;
            // The server refuses the name of an account that does not exist.
            if let Some(loss) = loss(name, &accounts, "player") {
                confirm(*confirmation, &loss)?;
            }
            (name, Request::DeleteAccount { name: name.clone() }, "deleted")
        }
    };
    let answer = ask(&shard.shard, request, Vec::new())?;
    if answer.iter().any(|answer| answer["allClients"] == false) {
        let advice =
            "the name or password ends with a non-ASCII character; H'uru clients cannot log in";
        common.note(name, advice);
    }
    common.note(name, done);
    if shard.json { print_lines(&answer) } else { Ok(()) }
}

/// Kicks a player, or every player logged in to an account.
pub(crate) fn kick(who: &str, shard: &UruShard, common: &Common) -> Result<(), Failure> {
    let kicked = ask(&shard.shard, Request::Kick { who: who.to_owned() }, Vec::new())?;
    kicked_shown(&kicked, common);
    if shard.json { print_lines(&kicked) } else { Ok(()) }
}

/// Reports sessions that were ended.
pub(super) fn kicked_shown(kicked: &[Json], common: &Common) {
    for one in kicked {
        let player = match &one["player"] {
            Json::Null => "without a player".to_owned(),
            player => format!("player {} ({})", player["id"], text(&player["name"])),
        };
        common.note(&text(&one["account"]), &format!("kicked, {player}"));
    }
}

/// Asks the shard in a directory and reports refusals.
pub(crate) fn ask(
    folder: &Path,
    request: Request,
    lines: Vec<String>,
) -> Result<Vec<Json>, Failure> {
    administration::ask::<Control>(folder, request, &lines)
}

/// Asks the shard in a directory. The inner result is its answer.
pub(crate) fn answer(
    folder: &Path,
    request: Request,
    lines: &[String],
) -> Result<Result<Vec<Json>, String>, Failure> {
    administration::answer::<Control>(folder, request, lines)
}

/// Warns about a new password that is longer than what clients send.
fn known_to_clients(name: &str, password: String, common: &Common) -> String {
    if password.encode_utf16().count() > PASSWORD_UNITS {
        let advice = format!(
            "clients that truncate passwords send only the first {PASSWORD_UNITS} characters of \
             this one"
        );
        common.note(name, &advice);
    }
    password
}

fn flags(roles: &[AccountRole]) -> u32 {
    let flag = |role: &AccountRole| match role {
        AccountRole::User => AccountFlags::User.0,
        AccountRole::Admin => AccountFlags::Admin.0,
        AccountRole::Developer => AccountFlags::Developer.0,
        AccountRole::BetaTester => AccountFlags::BetaTester.0,
    };
    roles.iter().map(flag).fold(0, |all, one| all | one)
}

fn table(accounts: &[Json]) -> String {
    let mut out = String::new();
    for account in accounts {
        let mut marks = Vec::new();
        let flags = account["flags"].as_u64().unwrap_or_default();
        let roles = [
            (AccountFlags::Admin, "admin"),
            (AccountFlags::Developer, "developer"),
            (AccountFlags::BetaTester, "beta tester"),
            (AccountFlags::Banned, "banned"),
        ];
        marks.extend(
            roles.iter().filter(|(flag, _)| flags & u64::from(flag.0) != 0).map(|one| one.1),
        );
        if account["hasPassword"] == false {
            marks.push("no password");
        }
        let marks =
            if marks.is_empty() { String::new() } else { format!("  ({})", marks.join(", ")) };
        let _ = writeln!(out, "{}{marks}", text(&account["name"]));
        for player in account["players"].as_array().into_iter().flatten() {
            let _ = writeln!(out, "  {}  {}", player["id"], text(&player["name"]));
        }
    }
    out
}
