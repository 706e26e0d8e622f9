//! Imports of shards from other servers, and exports to them.
//!
//! `WORLDWIRE_URU_DUMPS` names a directory with `dirtsand.sql`, `moulars-vault.db`, and their
//! expected content in `expected.json`; `WORLDWIRE_URU_SDL` names a directory with the state
//! descriptors.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use worldwire_core::Field as _;
use worldwire_server::store::seal::{KEY_FILE, ServerKey};
use worldwire_server::uru::admin::{Admin, Request};
use worldwire_server::uru::migration::{self, Counts, Import};
use worldwire_server::uru::vault::{Dump, Login, Vault, VaultConfig};
use worldwire_server::uru::{CONFIG, ShardConfig};
use worldwire_uru::crypt::login::PasswordHash;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::ObjectState;
use worldwire_uru::types::{NetError, TermStr, Uuid};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use crate::support::{Database, encoded, login, play};

/// The password digest of a name that is not an e-mail address, as both servers store it.
fn sha1(password: &str) -> String {
    let mut digest = *PasswordHash::sha1(password).as_bytes();
    digest.as_chunks_mut::<4>().0.iter_mut().for_each(|group| group.reverse());
    hex(&digest)
}

fn sha0(name: &str, password: &str) -> String {
    hex(PasswordHash::sha0(name, password).as_bytes())
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A vault with the imported shard.
async fn moved_in(database: &Database, house: &Import) -> Vault {
    let vault = database.vault().await;
    let dump = Dump::read(house.lines.iter().map(String::as_str)).unwrap();
    assert_eq!(dump.lines().collect::<Vec<_>>().len(), house.lines.len());
    vault.import(dump, false).await.unwrap();
    let problems = vault.check().await.unwrap();
    assert!(problems.iter().all(|finding| !finding.problem), "{problems:?}");
    vault
}

/// Logs in and returns the names of the players.
async fn players(vault: &Vault, name: &str, password: &str) -> Result<Vec<String>, NetError> {
    let (connection, _notices) = vault.connect().await.unwrap();
    let logged_in = connection.log_in(login(name, password)).await?;
    Ok(logged_in.players.into_iter().map(|player| player.name).collect())
}

const A: &str = "12345678-1234-5678-1234-567812345678";
const B: &str = "00000000-0000-0000-0000-00000000000b";

#[tokio::test]
async fn a_dirtsand_shard_can_be_imported() {
    let node = |columns: &str, values: &str| {
        format!(
            "INSERT INTO vault.\"Nodes\" (idx, \"CreateTime\", \"ModifyTime\", \"CreatorUuid\", \
             \"CreatorIdx\", \"NodeType\"{columns}) VALUES ({values});\n"
        )
    };
    let dump = [
        format!(
            "INSERT INTO auth.\"Accounts\" (idx, \"Login\", \"PassHash\", \"AcctUuid\", \
             \"AcctFlags\", \"BillingType\") VALUES (1, 'rowan', '{}', '{A}', 4, 1);\n\
             INSERT INTO auth.\"Accounts\" (idx, \"Login\", \"PassHash\", \"AcctUuid\", \
             \"AcctFlags\") VALUES (2, 'fern@example.com', '{}', '{B}', 65536);\n",
            sha1("pw-rowan"),
            sha0("fern@example.com", "pw-fern"),
        ),
        format!(
            "INSERT INTO auth.\"Players\" (idx, \"AcctUuid\", \"PlayerIdx\", \"PlayerName\", \
             \"AvatarShape\", \"Explorer\") VALUES (1, '{A}', 10002, 'Rowan', 'female', 1);\n\
             INSERT INTO auth.\"Players\" (idx, \"AcctUuid\", \"PlayerIdx\", \"PlayerName\") \
             VALUES (2, '{A}', 10009, 'Ghost');\n"
        ),
        node("", &format!("10001, 1, 1, '{A}', 0, 24")),
        node(", \"IString64_1\", \"Uuid_1\"", &format!("10002, 7, 8, '{A}', 0, 2, 'Rowan', '{A}'")),
        node(
            ", \"Int32_1\", \"Uint32_1\", \"String64_1\"",
            &format!("10003, 7, 8, '{A}', 10002, 23, 1, 10002, 'Lobby'"),
        ),
        // The database stores unsigned numbers as signed ones.
        node(
            ", \"Uint32_1\", \"Int32_1\", \"Text_1\", \"Blob_1\"",
            &format!("10004, 1, 1, '{A}', 0, 26, -2, NULL, 'it''s\na note', 'AQID'"),
        ),
        "INSERT INTO vault.\"NodeRefs\" (idx, \"ParentIdx\", \"ChildIdx\", \"OwnerIdx\") VALUES \
         (1, 10002, 10003, 0);\n"
            .to_owned()
            .repeat(2),
        "INSERT INTO vault.\"NodeRefs\" (idx, \"ParentIdx\", \"ChildIdx\", \"OwnerIdx\") VALUES \
         (3, 10002, 99, 0);\n\
         INSERT INTO auth.\"Scores\" (idx, \"CreateTime\", \"OwnerIdx\", \"Type\", \"Name\", \
         \"Points\") VALUES (3, 5, 10003, 2, 'Debt', -42);\n\
         INSERT INTO vault.\"GlobalStates\" (idx, \"Descriptor\", \"SdlBlob\") VALUES \
         (1, 'city', 'AAAA');\n\
         INSERT INTO game.\"Servers\" (idx, \"AgeUuid\", \"AgeIdx\") VALUES (1, NULL, 0);\n\
         INSERT INTO game.\"AgeStates\" (idx, \"ServerIdx\", \"Descriptor\") VALUES (7, 1, 'x');\n"
            .to_owned(),
    ];
    let house = migration::import_dirtsand(&dump.concat(), &Descriptors::default()).unwrap();
    assert_eq!(
        house.skipped,
        [
            "the reference from 10002 to 10003: a duplicate",
            "the reference from 10002 to 99: a node is missing",
            "player 10009 (Ghost): it has no node",
            "state 7 of an object (x): its age is missing",
            "shard-wide settings of city: flags at byte 0: wanted the flag AddedVarLengthIO \
             (0x8000), found 0x0000",
        ]
    );
    let database = Database::sqlite();
    let vault = moved_in(&database, &house).await;
    assert_eq!(players(&vault, "Rowan", "pw-rowan").await, Ok(vec!["Rowan".to_owned()]));
    assert_eq!(players(&vault, "rowan", "pw-fern").await, Err(NetError::AuthenticationFailed));
    let banned = players(&vault, "fern@example.com", "pw-fern").await;
    assert_eq!(banned, Err(NetError::AccountBanned));
    let note = vault.show(10_004).await.unwrap();
    assert_eq!((&note["UInt32_1"], note.get("Int32_1")), (&4_294_967_294_u32.into(), None));
    assert_eq!(
        (&note["Text_1"], &note["Blob_1"]),
        (&"it's\na note".into(), &json!({"$hex": "010203"}))
    );
    let info = vault.show(10_003).await.unwrap();
    assert_eq!((&info["Int32_1"], &info["String64_1"]), (&0.into(), &"".into()));
    // New nodes get new numbers.
    let dump: Vec<_> = vault.export().await.unwrap().lines().collect();
    assert!(dump[0].contains("\"next_node\":10005,\"next_score\":4"), "{}", dump[0]);
    assert!(dump.iter().all(|line| !line.contains("password")), "exports are not secret");
    assert!(dump.iter().any(|line| line.contains("\"flags\":4,")));

    for (bad, said) in [
        ("COPY x FROM stdin;", "line 1: COPY is not supported"),
        ("SELECT 1;", "has no table of nodes"),
        (
            "INSERT INTO vault.\"Nodes\" (idx, \"NodeType\", \"Uuid_1\") VALUES (7, 2, 'x');",
            "nodes 7: uuid1: must be a UUID",
        ),
    ] {
        let error =
            migration::import_dirtsand(bad, &Descriptors::default()).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

async fn run(connection: &mut SqliteConnection, statement: String) {
    sqlx::query(sqlx::AssertSqlSafe(statement)).execute(connection).await.unwrap();
}

#[tokio::test]
async fn a_moulars_shard_can_be_imported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vault.db");
    let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
    let mut database = options.connect().await.unwrap();
    let id = A.replace('-', "");
    for table in [
        "meta (name TEXT, value TEXT)",
        "accounts (idx INTEGER, account_name TEXT, pass_hash TEXT, account_id BLOB, account_flags \
         INTEGER)",
        "nodes (idx INTEGER, create_time INTEGER, node_type INTEGER, int32_2 INTEGER, uint32_1 \
         INTEGER, uuid_1 BLOB, string64_1 TEXT, istring64_1 TEXT, blob_1 BLOB)",
        "node_refs (idx INTEGER, parent_idx INTEGER, child_idx INTEGER, owner_idx INTEGER)",
        "scores (idx INTEGER)",
        "servers (idx INTEGER)",
        "global_states (idx INTEGER)",
        "age_states (idx INTEGER)",
        "api_tokens (idx INTEGER)",
    ] {
        run(&mut database, format!("CREATE TABLE {table}")).await;
    }
    for row in [
        "meta VALUES ('schema_version', '1')".to_owned(),
        format!("accounts VALUES (1, 'tansy', '{}', X'{id}', 2)", sha1("pw-tansy")),
        "nodes (idx, create_time, node_type) VALUES (1, 1, 24)".to_owned(),
        format!("nodes VALUES (2, 1, 2, 1, NULL, X'{id}', 'male', 'Tansy', NULL)"),
        "nodes VALUES (3, 1, 25, NULL, 7, NULL, NULL, NULL, X'0102')".to_owned(),
        "nodes (idx, create_time, node_type, uint32_1, istring64_1) VALUES (4, 1, 23, 2, 'Tansy')"
            .to_owned(),
        "node_refs VALUES (1, 2, 1, 0)".to_owned(),
        "node_refs VALUES (2, 2, 4, 0)".to_owned(),
        "api_tokens VALUES (1)".to_owned(),
    ] {
        run(&mut database, format!("INSERT INTO {row}")).await;
    }
    database.close().await.unwrap();
    let house = migration::import_moulars(&file, &Descriptors::default()).await.unwrap();
    assert_eq!(house.skipped, ["1 API token"]);
    assert!(house.lines[1].contains(&format!("\"id\":\"{A}\"")), "{}", house.lines[1]);
    assert!(house.lines[1].contains("\"flags\":4"), "{}", house.lines[1]);
    let database = Database::sqlite();
    let vault = moved_in(&database, &house).await;
    assert_eq!(players(&vault, "tansy", "pw-tansy").await, Ok(vec!["Tansy".to_owned()]));
    assert_eq!(vault.show(3).await.unwrap()["Blob_1"], json!({"$hex": "0102"}));
    let missing =
        migration::import_moulars(&folder.path().join("none.db"), &Descriptors::default()).await;
    assert!(missing.is_err());
}

/// Dumps of real servers.
#[tokio::test]
async fn real_shards_can_be_imported() {
    let Some(folder) = std::env::var_os("WORLDWIRE_URU_DUMPS").map(PathBuf::from) else {
        println!("skipped: WORLDWIRE_URU_DUMPS is not set to a folder");
        return;
    };
    let read = |name| std::fs::read_to_string(folder.join(name)).unwrap();
    let expected: Json = serde_json::from_str(&read("expected.json")).unwrap();
    let descriptors = descriptors_of(std::env::var_os("WORLDWIRE_URU_SDL").map(PathBuf::from));
    let houses = [
        ("dirtsand", migration::import_dirtsand(&read("dirtsand.sql"), &descriptors).unwrap()),
        (
            "moulars",
            migration::import_moulars(&folder.join("moulars-vault.db"), &descriptors)
                .await
                .unwrap(),
        ),
    ];
    for (server, house) in houses {
        println!("{server}: left: {:#?}", house.skipped);
        let expected = &expected[server];
        let lines: Vec<Json> =
            house.lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |name: &'static str| lines.iter().filter_map(move |line| line.get(name));
        let rows = |name: &str| expected[name].as_array().unwrap().iter();
        for row in rows("accounts") {
            let text =
                |names: [&str; 2]| names.iter().find_map(|name| row[*name].as_str()).unwrap();
            let id = text(["AcctUuid", "uuid"]);
            let account = of("account").find(|account| account["id"] == id).unwrap();
            assert_eq!(account["name"], text(["Login", "name"]));
            assert!(of("password").any(|password| password["account"] == id));
        }
        assert_eq!(of("account").count(), rows("accounts").count());
        for row in rows("players") {
            let id = row.get("PlayerIdx").or_else(|| row.get("ki")).unwrap();
            let player = of("player").find(|player| &player["id"] == id).unwrap();
            let text =
                |names: [&str; 2]| names.iter().find_map(|name| row[*name].as_str()).unwrap();
            assert_eq!(player["name"], text(["PlayerName", "name"]));
            assert_eq!(player["shape"], text(["AvatarShape", "shape"]));
            assert_eq!(player["account"], text(["AcctUuid", "account"]));
        }
        assert_eq!(of("player").count(), rows("players").count());
        for row in expected.get("scores").and_then(Json::as_array).into_iter().flatten() {
            let score = of("score").find(|score| score["id"] == row["idx"]).unwrap();
            for (ours, theirs) in
                [("owner", "OwnerIdx"), ("kind", "Type"), ("name", "Name"), ("value", "Points")]
            {
                assert_eq!(score[ours], row[theirs]);
            }
        }
        let mut kinds = BTreeMap::<u32, u64>::new();
        let database = Database::sqlite();
        let vault = moved_in(&database, &house).await;
        for line in of("node") {
            let kind = worldwire_core::json::Json::from(&line["NodeType"]);
            let kind = NodeType::from_json((&kind).into()).unwrap();
            *kinds.entry(kind.0).or_default() += 1;
        }
        for (kind, count) in expected["nodes_by_type"].as_object().unwrap() {
            assert_eq!(kinds.get(&kind.parse().unwrap()), count.as_u64().as_ref(), "type {kind}");
        }
        let refs = u64::try_from(of("ref").count()).unwrap();
        assert_eq!(Some(refs), expected["refs"].as_u64());
        // Clients log in with the passwords that the other server stored.
        for row in rows("accounts") {
            let text =
                |names: [&str; 2]| names.iter().find_map(|name| row[*name].as_str()).unwrap();
            let name = text(["Login", "name"]);
            let hex = text(["PassHash", "pass_hash"]);
            let digits = |at: usize| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap();
            let mut digest: [u8; 20] = std::array::from_fn(digits);
            let proof = if name.contains('@') {
                PasswordHash::from_bytes(digest).challenge(5, 6)
            } else {
                digest.as_chunks_mut::<4>().0.iter_mut().for_each(|group| group.reverse());
                digest
            };
            let (connection, _notices) = vault.connect().await.unwrap();
            let login = Login { proof, ..login(name, "") };
            let found = connection.log_in(login).await.unwrap();
            let account = of("account").find(|account| account["name"] == name).unwrap();
            assert_eq!(account["id"], found.account.to_string());
            let own = of("player").filter(|player| player["account"] == account["id"]);
            assert_eq!(found.players.len(), own.count(), "{server}: {name}");
        }
        // All states are imported except those that cannot be decoded.
        let states = rows_of(expected, "age_states");
        let readable =
            |state: &&Json| descriptors.is_empty() || state["state"].get("unreadable").is_none();
        let readable = u64::try_from(states.iter().filter(readable).count()).unwrap();
        assert_eq!(kinds.get(&0x7577_0001).copied().unwrap_or(0), readable, "{server}");
        let settings = u64::try_from(rows_of(expected, "global_states").len()).unwrap();
        assert_eq!(kinds.get(&0x7577_0002).copied().unwrap_or(0), settings, "{server}");
        // The export produces equivalent rows.
        let dump = offline(&vault).await;
        let departure = migration::export_dirtsand(&dump).unwrap();
        println!("{server}: left on the way back: {:#?}", departure.skipped);
        for row in rows_of(expected, "servers") {
            let of = |names: [&str; 2]| names.iter().find_map(|name| row.get(*name)).unwrap();
            let text = |names| of(names).as_str().unwrap().replace('\'', "''");
            let values = format!(
                ", '{}', '{}', '{}', {}, {}, false);",
                text(["AgeUuid", "uuid"]),
                text(["AgeFilename", "file"]),
                text(["DisplayName", "display"]),
                of(["AgeIdx", "age"]),
                of(["SdlIdx", "sdl"]),
            );
            assert!(departure.statements.contains(&values), "{server}: {values}");
        }
        let back = migration::import_dirtsand(&departure.statements, &descriptors).unwrap();
        assert_eq!(back.skipped, Vec::<String>::new());
        assert!(read_again(&back) == dump, "{server}, by way of dirtsand");
        let file = tempfile::tempdir().unwrap();
        let file = file.path().join("vault.db");
        let left = migration::export_moulars(&dump, &file).await.unwrap();
        assert_eq!(left, departure.skipped);
        let back = migration::import_moulars(&file, &descriptors).await.unwrap();
        assert!(read_again(&back) == dump, "{server}, by way of moulars");
    }
}

fn read_again(house: &Import) -> Dump {
    Dump::read(house.lines.iter().map(String::as_str)).unwrap()
}

fn rows_of<'j>(expected: &'j Json, name: &str) -> &'j [Json] {
    expected.get(name).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

fn descriptors_of(folder: Option<PathBuf>) -> Descriptors {
    let files = folder.into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let texts: Vec<_> = texts.map(|text| ("some.sdl".to_owned(), text)).collect();
    Descriptors::load(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())))
}

/// A dump with passwords, once everybody is offline.
async fn offline(vault: &Vault) -> Dump {
    loop {
        let dump = vault.export_with_passwords().await.unwrap();
        if !dump.lines().any(|line| line.contains("\"Lobby\"")) {
            return dump;
        }
        tokio::task::yield_now().await;
    }
}

/// All lines except those of accounts and settings: other servers do not store their creation
/// times.
fn without_times(dump: &Dump) -> Vec<String> {
    let is_timed =
        |line: &String| line.starts_with("{\"account\"") || line.contains(":1970733058,");
    dump.lines().filter(|line| !is_timed(line)).collect()
}

#[tokio::test]
async fn a_shard_can_be_exported_and_imported_again() {
    let source = "STATEDESC Lever { VERSION 1 VAR INT place[1] DEFAULT=0 }";
    let descriptors = Descriptors::load([("x.sdl", source)]);
    let lever = ObjectState::new(descriptors.newest("Lever").unwrap());
    let lever = lever.to_blob().to_bytes().unwrap();

    let database = Database::sqlite();
    let vault = database.vault().await;
    let (ann, _notices, a) = play(&vault, "Ann").await;
    let (bob, _to_bob, b) = play(&vault, "bob@example.org").await;
    ann.create_score(a, "it's".to_owned(), 2, -7).await.unwrap();
    for node in [
        VaultNode {
            node_type: Some(NodeType::TextNote),
            uint32_1: Some(u32::MAX),
            int32_1: Some(i32::MIN),
            string64_1: Some(TermStr::from("it's\n\"that\" \\")),
            string64_2: Some(TermStr::from("")),
            uuid_3: Some(Uuid([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])),
            ..VaultNode::default()
        },
        VaultNode {
            node_type: Some(NodeType::Image),
            blob_1: Some(NodeBlob::new(vec![0, 255, 39])),
            blob_2: Some(NodeBlob::new(Vec::new())),
            ..VaultNode::default()
        },
    ] {
        bob.create(encoded(&node)).await.unwrap();
    }
    vault.set_age_settings("city", lever.clone()).await.unwrap();
    vault.add_account("carol", "x", AccountFlags(5)).await.unwrap();
    drop((ann, bob));

    let dump = offline(&vault).await;
    let departure = migration::export_dirtsand(&dump).unwrap();
    let wanted = ["2 accounts: flags 0x8", "3 accounts: the creation time"];
    assert_eq!(departure.skipped, wanted);
    // Other dirtsand data: objects' states, and unused rows.
    let relto =
        departure.statements.lines().find(|line| line.contains("'Personal', 'Ann''s Relto'"));
    let (_, relto) = relto.unwrap().split_once("VALUES (").unwrap();
    let server: u32 = relto.split_once(',').unwrap().0.parse().unwrap();
    let mut object = vec![0, 0x22, 0, 0x78, 0, 0, 0, 1, 0, 44, 0, 0, 0, 5, 0xf0];
    object.extend(b"Lever".map(|byte| !byte));
    let object = STANDARD.encode(object);
    let other = [0, 128, 1, 240, !b'x', 1, 0, 0, 0, 6, 0, 0];
    let mut states = String::new();
    for (number, server, object, state) in [
        (4, server, "AAAA".to_owned(), lever.clone()),
        (3, server, object.clone(), lever[..lever.len() - 1].to_vec()),
        (1, server, object.clone(), lever.clone()),
        (2, server, object.clone(), lever.clone()),
        (5, 99, object.clone(), lever.clone()),
        // A state with an unknown descriptor.
        (6, server + 1, object.clone(), other.to_vec()),
    ] {
        states.push_str(&format!(
            "INSERT INTO game.\"AgeStates\" (idx, \"ServerIdx\", \"Descriptor\", \"ObjectKey\", \
             \"SdlBlob\") VALUES ({number}, {server}, 'Lever', '{object}', '{}');\n",
            STANDARD.encode(state),
        ));
    }
    let house = migration::import_dirtsand(&(departure.statements.clone() + &states), &descriptors)
        .unwrap();
    let numbers: Vec<_> = house.skipped.iter().map(|left| &left[..20]).collect();
    assert_eq!(
        numbers,
        [
            "state 2 of an object",
            "state 3 of an object",
            "state 4 of an object",
            "state 5 of an object"
        ],
        "{:?}",
        house.skipped
    );
    let kept = house.lines.iter().filter(|line| line.contains("\"NodeType\":1970733057")).count();
    assert_eq!(kept, 2);

    // Without this data, the vault is unchanged.
    let house = migration::import_dirtsand(&departure.statements, &descriptors).unwrap();
    assert_eq!(house.skipped, Vec::<String>::new());
    let other = Database::sqlite();
    let second = moved_in(&other, &house).await;
    let again = second.export_with_passwords().await.unwrap();
    assert_eq!(without_times(&again), without_times(&dump));
    assert_eq!(players(&second, "ann", "Ann").await, Ok(vec!["Ann".to_owned()]));
    let e_mail = players(&second, "bob@example.org", "bob@example.org").await;
    assert_eq!(e_mail, Ok(vec!["bob@example.org".to_owned()]));
    assert_eq!(second.age_settings("city").await.unwrap(), Some(lever));
    let flags = second.accounts().await.unwrap().into_iter().map(|account| account.flags.0);
    assert_eq!(flags.collect::<Vec<_>>(), [0, 0, 5]);
    assert_ne!(b, 0);

    // The same holds for the other server's file.
    let file = other.folder.path().join("vault.db");
    assert_eq!(migration::export_moulars(&again, &file).await.unwrap(), Vec::<String>::new());
    let house = migration::import_moulars(&file, &descriptors).await.unwrap();
    assert_eq!(house.skipped, Vec::<String>::new());
    assert!(read_again(&house) == again);
    assert!(migration::export_moulars(&again, &file).await.is_err(), "it is there already");
}

/// Data that another server cannot store is listed, and nobody can log in to accounts without a
/// password.
#[test]
fn lost_data_is_listed() {
    let id = "00000000-0000-0000-0000-000000000001";
    let node = |id: u32, more: &str| {
        format!("{{\"node\":{{\"NodeId\":{id},\"CreateTime\":1,\"ModifyTime\":1{more}}}}}")
    };
    let made = format!(",\"CreatorAcct\":\"{id}\",\"CreatorId\":7");
    let long = "é".repeat(1025);
    let lines = [
        "{\"vault\":1,\"next_node\":20,\"next_score\":3}".to_owned(),
        format!("{{\"account\":{{\"id\":\"{id}\",\"name\":\"ann\",\"flags\":0,\"created\":0}}}}"),
        node(1, &format!("{made},\"NodeType\":\"System\"")),
        node(2, &format!("{made},\"NodeType\":\"TextNote\",\"Text_1\":\"{long}\"")),
        node(3, &format!("{made},\"NodeType\":\"TextNote\",\"String64_1\":\"a\\u0000b\"")),
        node(4, ",\"NodeType\":\"TextNote\""),
        "{\"end\":{\"accounts\":1,\"nodes\":4,\"refs\":0,\"players\":0,\"scores\":0}}".to_owned(),
    ];
    let dump = Dump::read(lines.iter().map(String::as_str)).unwrap();
    let departure = migration::export_dirtsand(&dump).unwrap();
    assert_eq!(
        departure.skipped,
        [
            "account ann: it has no password in the dump",
            "node 2: Text_1: the text after 1024 characters",
            "node 3: String64_1: the text after 1 character",
            "1 node: the fact that the creator and creation time are unknown",
        ]
    );
    // The digests are not empty, and they differ from each other.
    let hash = |text: &str| {
        let line = text.lines().find(|line| line.contains("'ann', '")).unwrap();
        line.split('\'').nth(3).unwrap().to_owned()
    };
    let other = migration::export_dirtsand(&dump).unwrap();
    assert_eq!(hash(&departure.statements).len(), 40);
    assert_ne!(hash(&departure.statements), hash(&other.statements));
    let next = "SELECT pg_catalog.setval('vault.\"Nodes_idx_seq\"', 10001, false);";
    assert!(departure.statements.contains(next));
}

/// Without this, the next start would create a second city and neighbourhood.
#[tokio::test]
async fn imported_ages_are_not_created_again() {
    let insert = |id: u32, kind: u32, columns: &str, values: &str| {
        format!(
            "INSERT INTO vault.\"Nodes\" (idx, \"CreateTime\", \"ModifyTime\", \"CreatorUuid\", \
             \"CreatorIdx\", \"NodeType\"{columns}) VALUES ({id}, 1, 1, '{A}', 0, {kind}{values});\n"
        )
    };
    let mut dump = insert(10_001, 24, "", "");
    let ages = [
        (10_010, "city", "Town", ""),
        (10_020, "Neighborhood", "Place", "DS"),
        (10_030, "Fern", "Fern", ""),
    ];
    for (age, filename, name, user) in ages {
        let instance = format!("00000000-0000-0000-0000-0000000{age}");
        let columns = ", \"Uuid_1\", \"String64_1\"";
        dump += &insert(age, 3, columns, &format!(", '{instance}', '{filename}'"));
        let columns = ", \"Uuid_1\", \"Uint32_1\", \"Int32_1\", \"Int32_2\", \"String64_2\", \
            \"String64_3\", \"String64_4\"";
        let user = if user.is_empty() { "NULL".to_owned() } else { format!("'{user}'") };
        let info = age + 1;
        let values = format!(", '{instance}', {age}, 0, 1, '{filename}', '{name}', {user}");
        dump += &insert(info, 33, columns, &values);
        dump += &insert(age + 2, 27, ", \"Blob_1\"", ", 'AIAE8JyWi4YBAAAABgAA'");
        dump += &insert(age + 3, 30, ", \"Int32_1\"", ", 18");
        dump += &insert(age + 4, 30, ", \"Int32_1\"", ", 19");
        dump += &insert(age + 5, 34, ", \"Int32_1\"", ", 31");
        for (above, below) in
            [(age, info), (info, age + 2), (info, age + 3), (info, age + 4), (info, age + 5)]
        {
            dump += &format!(
                "INSERT INTO vault.\"NodeRefs\" (idx, \"ParentIdx\", \"ChildIdx\") VALUES \
                 ({below}, {above}, {below});\n"
            );
        }
    }
    let house = migration::import_dirtsand(&dump, &Descriptors::default()).unwrap();
    assert_eq!(house.skipped, Vec::<String>::new());
    let unchecked = [("city.1".to_owned(), 3)].into_iter().collect();
    let counts = Counts { nodes: 19, refs: 15, unchecked, ..Counts::default() };
    assert_eq!(house.counts, counts);
    assert_eq!(house.ages.fixed.len(), 1);

    let database = Database::sqlite();
    let folder = database.folder.path();
    let key = ServerKey::load_or_create(&folder.join(KEY_FILE)).unwrap();
    let config = VaultConfig::default();
    Vault::open(database.store().await, key, config).await.unwrap().close().await;
    let admin = Admin::open(folder).await.unwrap();
    admin.ask_with_lines(Request::Import { replace: false }, &house.lines).await.unwrap();
    admin.close().await;
    let config = ShardConfig::adopt_ages("# mine", &house.ages).unwrap();
    assert!(config.starts_with("# mine\n\n[ages]\n"), "{config}");
    std::fs::write(folder.join(CONFIG), config).unwrap();
    let admin = Admin::open(folder).await.unwrap();
    // The ages that scripts link to are created in addition.
    for (filename, age) in [("city", 10_011), ("Neighborhood", 10_021), ("Fern", 10_031)] {
        let fields = json!({"NodeType": "AgeInfo", "String64_2": filename});
        let found = admin.ask(Request::Find { fields }).await.unwrap();
        assert_eq!(found, [age], "{filename}");
    }
    admin.close().await;
}
