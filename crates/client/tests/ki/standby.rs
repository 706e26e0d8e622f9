//! Two processes share a PostgreSQL database: one serves logins, and the other is a standby for it.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;
use worldwire_client::ki::{Client, ClientError, Settings};
use worldwire_ki::character::Character;
use worldwire_ki::crypt::login::password_hash;
use worldwire_server::ki::realm::{AccountSummary, Privileges, Realm};
use worldwire_server::ki::{Standby, Start};

use crate::child::{say, write_key};
use crate::database::Database;
use crate::processes::{
    GONE, Kind, Numbers, check, cut_off, delay_an_answer, is_quiet, now, obey, take_turns,
    with_database,
};
use crate::sockets::Running;

const WORKERS: usize = 4;
/// The number of characters that an account keeps.
const KEPT: usize = 12;
const SERVER: Kind = Kind { child: "standby::process", prepare };

fn prepare(folder: &Path, url: &str) {
    let settings = format!("listen = \"127.0.0.1:0\"\nstatus = \"\"\ndatabase = \"{url}\"\n");
    std::fs::write(folder.join("ki.toml"), settings).unwrap();
}

#[tokio::test]
async fn a_standby_takes_over_without_loss() {
    let tested = with_database(|database| take_turns(SERVER, database)).await;
    let Some((database, (saved, times))) = tested else { return };
    check_stored(&database, &saved).await;
    println!("{} acknowledged characters, as they should be; {times:?}", saved.len());
}

#[tokio::test]
async fn nothing_is_lost_in_a_partition() {
    let tested = with_database(|database| cut_off(SERVER, database)).await;
    let Some((database, (saved, times))) = tested else { return };
    check_stored(&database, &saved).await;
    println!("{} acknowledged characters, as they should be; {times:?}", saved.len());
}

#[tokio::test]
async fn a_late_answer_does_not_extend_the_lease() {
    let tested = with_database(|database| delay_an_answer(SERVER, database)).await;
    let Some((database, saved)) = tested else { return };
    check_stored(&database, &saved).await;
}

async fn check_stored(database: &Database, saved: &Numbers) {
    let url = database.url.clone().unwrap();
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path(), &url);
    write_key(folder.path());
    let server = Running::start(folder.path(), |_| (), None).await;
    check(saved, &numbers(&server.realm), "in the database");
    server.end().await;
}

/// The names of all characters.
fn numbers(realm: &Realm) -> Numbers {
    let names = |account: AccountSummary| account.characters.into_iter().map(|one| one.name);
    realm.accounts().into_iter().flat_map(names).map(|name| (name, 1)).collect()
}

/// The child process: a standby, whose clients write once it serves.
#[test]
fn process() {
    obey(async |folder, signal| {
        let standby = Standby::open(folder, Start::default()).await.unwrap();
        // The test harness has already started a line.
        say("\nwaits");
        let Some(server) = standby.lead(signal.clone()).await.unwrap() else { return };
        say("serves");
        let (address, realm) = (server.address().unwrap().to_string(), server.realm().clone());
        for (name, number) in numbers(&realm) {
            say(&format!("holds {name} {number}"));
        }
        say("ready");
        for number in 0..WORKERS {
            tokio::spawn(work(address.clone(), realm.clone(), number));
        }
        let error = server.serve(signal).await.err();
        say(&format!("ended {}", error.map(|error| error.to_string()).unwrap_or_default()));
    });
}

/// A client that starts over with another account whenever a request fails.
async fn work(address: String, realm: Realm, number: usize) {
    for attempt in 0.. {
        while is_quiet() {
            sleep(Duration::from_millis(5)).await;
        }
        let account = format!("w{}x{number}x{attempt}", std::process::id());
        let privileges = Privileges { paying: true, slots: 255 };
        if realm.add_account(&account, "hunter2", privileges).await.is_ok() {
            // The first client mostly reads.
            let _ = write(&address, &account, number == 0).await;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Creates characters, reads them back, and deletes the oldest ones.
async fn write(address: &str, account: &str, only_reads: bool) -> Result<(), ClientError> {
    let mut client = Client::connect(address, &Settings::default()).await?;
    client.log_in(account, &password_hash("hunter2")).await?;
    let mut own = VecDeque::new();
    for number in 0.. {
        let name = format!("{account}n{number}");
        let began = now();
        client.create(Character::plain(&name, "Fire", 1).as_bytes()).await?;
        say(&format!("saved {name} 1 {began}"));
        own.push_back(name);
        read(&mut client, &own).await?;
        if own.len() > KEPT
            && let Some(oldest) = own.pop_front()
        {
            let list = client.characters().await?.list;
            let Some(oldest_entry) = list.first() else { continue };
            say(&format!("leaves {oldest}"));
            let began = now();
            client.delete(oldest_entry.global_id()).await?;
            say(&format!("saved {oldest} {GONE} {began}"));
        }
        while is_quiet() || only_reads {
            read(&mut client, &own).await?;
            sleep(Duration::from_millis(5)).await;
        }
    }
    Ok(())
}

/// Reads the characters of an account. Nobody else changes them.
async fn read(client: &mut Client, own: &VecDeque<String>) -> Result<(), ClientError> {
    let began = now();
    let list = client.characters().await?.list;
    say(&format!("read {began}"));
    let names = list.iter().map(|one| String::from_utf8_lossy(one.name()).into_owned());
    let names: Vec<_> = names.collect();
    if *own != names {
        say(&format!("wrong {names:?} instead of {own:?}"));
    }
    Ok(())
}
