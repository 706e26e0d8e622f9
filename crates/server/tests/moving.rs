//! Shards of other servers move in.
//!
//! `WORLDWIRE_URU_DUMPS` names a directory with `dirtsand.sql`, `moulars-vault.db` and what is to be
//! found in them, `expected.json`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use support::{Database, login};
use worldwire_core::Field as _;
use worldwire_server::uru::accounts::Login;
use worldwire_server::uru::moving::{self, House};
use worldwire_server::uru::vault::{Dump, Vault};
use worldwire_uru::crypt::login::PasswordHash;
use worldwire_uru::types::NetError;
use worldwire_uru::vault::NodeType;

/// The digest of a password of a plain name, as both servers keep it.
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

/// A vault with the house in it.
async fn moved_in(database: &Database, house: &House) -> Vault {
    let vault = database.vault().await;
    let dump = Dump::read(house.lines.iter().map(String::as_str)).unwrap();
    assert_eq!(dump.lines().collect::<Vec<_>>().len(), house.lines.len());
    vault.import(dump, false).await.unwrap();
    let problems = vault.check().await.unwrap();
    assert!(problems.iter().all(|finding| !finding.problem), "{problems:?}");
    vault
}

/// Logs in; the names of the players.
async fn players(vault: &Vault, name: &str, password: &str) -> Result<Vec<String>, NetError> {
    let (connection, _notices) = vault.connect().await.unwrap();
    let logged_in = connection.log_in(login(name, password)).await?;
    Ok(logged_in.players.into_iter().map(|player| player.name).collect())
}

const A: &str = "12345678-1234-5678-1234-567812345678";
const B: &str = "00000000-0000-0000-0000-00000000000b";

#[tokio::test]
async fn a_shard_of_dirtsand_moves_in() {
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
        // Numbers without a sign are kept with one.
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
         (1, 'city', 'AAAA');\n"
            .to_owned(),
    ];
    let house = moving::dirtsand(&dump.concat()).unwrap();
    assert_eq!(
        house.left,
        [
            "the reference from 10002 to 10003, a second time",
            "the reference from 10002 to 99: one is missing",
            "player 10009 (Ghost): it has no node",
            "1 shard-wide settings",
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
    // What is made from now on has new numbers.
    let dump: Vec<_> = vault.export().await.unwrap().lines().collect();
    assert!(dump[0].contains("\"next_node\":10005,\"next_score\":4"), "{}", dump[0]);
    assert!(dump.iter().all(|line| !line.contains("password")), "an export is no secret");
    assert!(dump.iter().any(|line| line.contains("\"flags\":4,")));

    for (bad, said) in [
        ("COPY x FROM stdin;", "line 1: wanted a dump made with --column-inserts"),
        ("SELECT 1;", "wanted a table of nodes, found none"),
        (
            "INSERT INTO vault.\"Nodes\" (idx, \"NodeType\", \"Uuid_1\") VALUES (7, 2, 'x');",
            "nodes 7: uuid1: wanted a UUID",
        ),
    ] {
        let error = moving::dirtsand(bad).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

async fn run(connection: &mut SqliteConnection, statement: String) {
    sqlx::query(sqlx::AssertSqlSafe(statement)).execute(connection).await.unwrap();
}

#[tokio::test]
async fn a_shard_of_moulars_moves_in() {
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
    let house = moving::moulars(&file).await.unwrap();
    assert_eq!(house.left, ["1 tokens of its API"]);
    assert!(house.lines[1].contains(&format!("\"id\":\"{A}\"")), "{}", house.lines[1]);
    assert!(house.lines[1].contains("\"flags\":4"), "{}", house.lines[1]);
    let database = Database::sqlite();
    let vault = moved_in(&database, &house).await;
    assert_eq!(players(&vault, "tansy", "pw-tansy").await, Ok(vec!["Tansy".to_owned()]));
    assert_eq!(vault.show(3).await.unwrap()["Blob_1"], json!({"$hex": "0102"}));
    let missing = moving::moulars(&folder.path().join("none.db")).await;
    assert!(missing.is_err());
}

/// What real servers left behind.
#[tokio::test]
async fn real_shards_move_in() {
    let Some(folder) = std::env::var_os("WORLDWIRE_URU_DUMPS").map(PathBuf::from) else {
        println!("WORLDWIRE_URU_DUMPS names no folder: nobody moves in");
        return;
    };
    let read = |name| std::fs::read_to_string(folder.join(name)).unwrap();
    let expected: Json = serde_json::from_str(&read("expected.json")).unwrap();
    let houses = [
        ("dirtsand", moving::dirtsand(&read("dirtsand.sql")).unwrap()),
        ("moulars", moving::moulars(&folder.join("moulars-vault.db")).await.unwrap()),
    ];
    for (server, house) in houses {
        println!("{server}: left: {:#?}", house.left);
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
            let kind = NodeType::from_json((&line["NodeType"]).into()).unwrap();
            *kinds.entry(kind.0).or_default() += 1;
        }
        for (kind, count) in expected["nodes_by_type"].as_object().unwrap() {
            assert_eq!(kinds.get(&kind.parse().unwrap()), count.as_u64().as_ref(), "type {kind}");
        }
        let refs = u64::try_from(of("ref").count()).unwrap();
        assert_eq!(Some(refs), expected["refs"].as_u64());
        // Clients prove that they know what the other server kept.
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
    }
}
