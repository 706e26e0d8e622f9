//! Operators' requests, to a running and to a stopped shard.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use worldwire_server::operators::Listener;
use worldwire_server::store::lock::FolderLock;
use worldwire_server::store::seal::{KEY_FILE, ServerKey};
use worldwire_server::store::{Change, CharacterRow};
use worldwire_server::uru::admin::{Admin, AdminError, Control, Request};
use worldwire_server::uru::vault::{
    AgeNames, Dump, DumpError, RemoveError, StaticAge, Vault, VaultConfig,
};
use worldwire_server::uru::{Shard, ShardConfig};
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::types::{NetError, Uuid};

use crate::support::{Database, login, play};

async fn open(database: &Database) -> Vault {
    let key = ServerKey::load_or_create(&database.folder.path().join(KEY_FILE)).unwrap();
    Vault::open(database.store().await, key, VaultConfig::default()).await.unwrap()
}

async fn ask(admin: &Admin, request: Json, lines: &[String]) -> Result<Vec<Json>, String> {
    let request: Request = serde_json::from_value(request).unwrap();
    admin.ask_with_lines(request, lines).await.map_err(|error| error.to_string())
}

/// Makes every request, whether or not the shard is running.
async fn everything(admin: &Admin) {
    let secret =
        json!({"request": "add-account", "name": "ann", "password": "hunter2", "flags": 8});
    let shown: Request = serde_json::from_value(secret.clone()).unwrap();
    assert_eq!(format!("{shown:?}"), "Request(\"add-account\")");
    let added = ask(admin, secret.clone(), &[]).await.unwrap();
    assert_eq!(added[0]["allClients"], true);
    let again = ask(admin, secret, &[]).await;
    assert_eq!(again, Err("account \"ann\" already exists".to_owned()));
    let accounts = ask(admin, json!({"request": "accounts"}), &[]).await.unwrap();
    let ann = accounts.iter().find(|account| account["name"] == "ann").unwrap();
    assert_eq!((&ann["banned"], &ann["hasPassword"]), (&json!(false), &json!(true)));
    let request = json!({"request": "ban", "name": "ANN", "banned": true});
    ask(admin, request, &[]).await.unwrap();
    let request = json!({"request": "set-password", "name": "ann", "password": "é"});
    assert_eq!(ask(admin, request, &[]).await.unwrap()[0]["allClients"], false);
    ask(admin, json!({"request": "delete-account", "name": "ann"}), &[]).await.unwrap();
    let gone = ask(admin, json!({"request": "delete-account", "name": "ann"}), &[]).await;
    assert_eq!(gone, Err("account \"ann\" does not exist".to_owned()));

    let tree = ask(admin, json!({"request": "tree", "node": null, "depth": 9}), &[]).await.unwrap();
    assert_eq!((&tree[0]["type"], &tree[1]["title"]), (&json!("System"), &json!("GlobalInbox")));
    let fields = json!({"NodeType": "AgeInfo", "String64_2": "city"});
    let find = json!({"request": "find", "fields": fields});
    let city = ask(admin, find.clone(), &[]).await.unwrap();
    let node = city[0].as_u64().unwrap();
    let set = async |fields: Json| {
        ask(admin, json!({"request": "set", "node": node, "fields": fields}), &[]).await
    };
    set(json!({"String64_4": "The"})).await.unwrap();
    let shown = ask(admin, json!({"request": "show", "node": node}), &[]).await.unwrap();
    assert_eq!(shown[0]["String64_4"], json!("The"));
    // Changes without effect, and forbidden ones, are refused.
    for fields in [json!({"NodeId": 5}), json!({"UInt32_1": 5, "Int32_2": 0})] {
        let refused = set(fields).await.unwrap_err();
        assert!(refused.contains("are fixed"), "{refused}");
    }
    let again = ask(admin, json!({"request": "show", "node": node}), &[]).await.unwrap();
    assert_eq!(again, shown);
    let unknown = ask(admin, json!({"request": "find", "fields": {"Int32_9": 1}}), &[]).await;
    assert!(unknown.unwrap_err().contains("Int32_9"));
    let missing = ask(admin, json!({"request": "show", "node": 5}), &[]).await;
    assert_eq!(missing, Err("node 5 does not exist".to_owned()));
    assert_eq!(ask(admin, json!({"request": "check"}), &[]).await, Ok(Vec::new()));

    let export = json!({"request": "export"});
    let lines = ask(admin, export.clone(), &[]).await.unwrap();
    let lines: Vec<_> = lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect();
    assert!(!lines.iter().any(|line| line.contains("secret")));
    let import = |replace| json!({"request": "import", "replace": replace});
    let refused = ask(admin, import(false), &lines).await.unwrap_err();
    assert_eq!(refused, "the vault already has players; --replace removes them");
    let imported = ask(admin, import(true), &lines).await.unwrap();
    assert!(imported[0]["nodes"].as_u64().unwrap() > 40);
    let again = ask(admin, export, &[]).await.unwrap();
    assert_eq!(again, lines);
    let broken = ask(admin, import(true), &lines[1..]).await.unwrap_err();
    assert!(broken.starts_with("line 1: "), "{broken}");
}

/// The first start finds only a configuration that names the database.
#[tokio::test]
async fn a_prepared_configuration_starts_the_first_time() {
    for database in Database::all() {
        let folder = database.folder.path();
        let url = database.url.as_deref().unwrap_or_default();
        let text = format!("listen = \"127.0.0.1:0\"\nstatus = \"\"\ndatabase = \"{url}\"\n");
        let file = folder.join("shard.toml");
        std::fs::write(&file, &text).unwrap();
        for is_first in [true, false] {
            let shard = Shard::open_with(folder, PrimeKind::Plain, |_| ()).await.unwrap();
            assert_eq!(shard.is_new(), is_first);
            shard.vault().close().await;
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        // From now on, the keys are not generated again.
        std::fs::remove_file(folder.join("keys.toml")).unwrap();
        let error = Shard::open_with(folder, PrimeKind::Plain, |_| ()).await.unwrap_err();
        assert!(error.to_string().contains("keys.toml: file is missing"), "{error}");
    }
}

#[tokio::test]
async fn operators_reach_running_and_stopped_shards() {
    for database in Database::all() {
        let folder = database.folder.path();
        assert!(matches!(Admin::open(folder).await, Err(AdminError::NoServer { .. })));
        if let Some(url) = &database.url {
            std::fs::write(folder.join("shard.toml"), format!("database = \"{url}\"\n")).unwrap();
        }
        let vault = open(&database).await;
        let (connection, _notices, _) = play(&vault, "Bob").await;
        let lock = FolderLock::take(folder).unwrap().unwrap();
        let admin = Admin::open(folder).await.unwrap();
        // The server has locked the directory but does not listen yet.
        let silent = admin.ask(Request::Check).await.unwrap_err();
        assert!(matches!(silent, AdminError::NotServing { .. }), "{silent}");
        let control = Control::stopped(folder, vault.clone());
        let listener = Listener::bind(folder, control).await.unwrap();
        let running = tokio::spawn(listener.run());
        let lines = ask(&admin, json!({"request": "export"}), &[]).await.unwrap();
        let lines: Vec<_> = lines.iter().map(|line| line.as_str().unwrap().to_owned()).collect();
        let import = json!({"request": "import", "replace": true});
        let busy = ask(&admin, import, &lines).await;
        assert!(busy.unwrap_err().starts_with("a player is logged in, or an age is still running"));
        drop(connection);
        everything(&admin).await;
        admin.close().await;
        running.abort();
        let _ = running.await;
        vault.close().await;
        drop(lock);

        let admin = Admin::open(folder).await.unwrap();
        everything(&admin).await;
        // In the meantime, no other process can lock it.
        assert!(FolderLock::take(folder).unwrap().is_none());
        admin.close().await;
        assert!(FolderLock::take(folder).unwrap().is_some());
    }
}

/// An age can be removed if no later start would create it again.
#[tokio::test]
async fn only_the_last_age_with_configured_names_stays() {
    let database = Database::sqlite();
    let key = ServerKey::load_or_create(&database.folder.path().join(KEY_FILE)).unwrap();
    let config = ShardConfig::default().vault();
    let names = config.city.names.clone();
    let vault = Vault::open(database.store().await, key, config).await.unwrap();
    let find = async |filename: &str| {
        let ages = vault.ages(true).await.unwrap().into_iter();
        ages.filter(|age| age.age.filename == filename).map(|age| age.id).collect::<Vec<_>>()
    };
    let first = find("city").await;
    assert_eq!(first.len(), 1);
    for (instance_name, instance) in
        [("Second".to_owned(), None), (names.instance_name.clone(), Some(Uuid([7; 16])))]
    {
        let names = AgeNames { instance_name, ..names.clone() };
        let (added, is_new) = vault.add_age(StaticAge { names, instance }).await.unwrap();
        assert!(is_new);
        assert_eq!(vault.remove_age(added.id).await, Ok(()));
        assert_eq!(find("city").await, first);
    }
    assert_eq!(vault.remove_age(first[0]).await, Err(RemoveError::Configured));
    let pub_ages = find("GuildPub-Writers").await;
    let refused = vault.remove_age(pub_ages[0]).await.unwrap_err();
    assert_eq!(refused, RemoveError::Standard);
    assert!(refused.to_string().contains("set standard = false in [ages]"), "{refused}");
    vault.close().await;
}

/// Opening a vault for administration uses the configured ages, too.
#[tokio::test]
async fn own_ages_have_their_configured_names() {
    let database = Database::sqlite();
    let folder = database.folder.path();
    let text = "[ages]\ncity = { filename = \"Town\", instance_name = \"Town\" }\n\
                fixed = [{ filename = \"Fern\", instance_name = \"Fern\" }]\n";
    std::fs::write(folder.join("shard.toml"), text).unwrap();
    let key = ServerKey::load_or_create(&folder.join(KEY_FILE)).unwrap();
    let config = ShardConfig::parse(text).unwrap().vault();
    let vault = Vault::open(database.store().await, key, config).await.unwrap();
    let (ann, _notices, _) = play(&vault, "Ann").await;
    assert_eq!(ann.public_ages("Fern".to_owned()).await.unwrap().len(), 1);
    drop(ann);
    vault.close().await;
    let admin = Admin::open(folder).await.unwrap();
    for (name, wanted) in [("city", 0), ("Town", 1), ("Fern", 1), ("Neighborhood", 1)] {
        let fields = json!({"NodeType": "AgeInfo", "String64_2": name});
        let found = ask(&admin, json!({"request": "find", "fields": fields}), &[]).await.unwrap();
        assert_eq!(found.len(), wanted, "{name}");
    }
    admin.close().await;
}

#[tokio::test]
async fn a_vault_moves_to_another_shard_exactly() {
    let [from, to] = [Database::sqlite(), Database::sqlite()];
    let (old, new) = (open(&from).await, open(&to).await);
    let (ann, _notices, player) = play(&old, "Ann").await;
    ann.create_score(player, "points".to_owned(), 2, -7).await.unwrap();
    drop(ann);
    let dump = loop {
        // Once she is offline, the import is allowed.
        let dump = old.export().await.unwrap();
        if !dump.lines().any(|line| line.contains("\"Lobby\"")) {
            break dump;
        }
    };
    let lines: Vec<_> = dump.lines().collect();
    let read = Dump::read(lines.iter().map(String::as_str)).unwrap();
    assert_eq!(read, dump);
    new.import(read, false).await.unwrap();
    assert_eq!(new.export().await.unwrap().lines().collect::<Vec<_>>(), lines);
    new.close().await;
    let new = open(&to).await;
    assert_eq!(new.export().await.unwrap().lines().collect::<Vec<_>>(), lines);
    assert_eq!(new.check().await.unwrap(), []);
    // Passwords are not imported.
    let (ann, _notices) = new.connect().await.unwrap();
    let refused = ann.log_in(login("Ann", "Ann")).await;
    assert_eq!(refused.unwrap_err(), NetError::AuthenticationFailed);
    new.set_password("Ann", "Ann").await.unwrap();
    ann.log_in(login("Ann", "Ann")).await.unwrap();
    ann.set_player(player).await.unwrap();
}

/// Unique names work like numbers. Two players with the same name can still be found.
#[tokio::test]
async fn nodes_can_be_given_by_name() {
    let database = Database::sqlite();
    let vault = open(&database).await;
    let (_, _notices, ann) = play(&vault, "Ann").await;
    let (_, _notices, bob) = play(&vault, "Bob").await;
    vault.close().await;
    let tree = async |admin: &Admin, node: Json| {
        ask(admin, json!({"request": "tree", "node": node, "depth": 1}), &[]).await
    };
    let admin = Admin::open(database.folder.path()).await.unwrap();
    let by_name = tree(&admin, json!("aNN")).await.unwrap();
    assert_eq!(by_name, tree(&admin, json!(ann.to_string())).await.unwrap());
    assert_eq!((&by_name[0]["id"], &by_name[0]["type"]), (&json!(ann), &json!("Player")));
    // An age by its filename, by its instance, and by the name that players see.
    let city = tree(&admin, json!("city")).await.unwrap();
    assert_eq!(city[0]["type"], "Age");
    let shown = json!({"request": "show", "node": city[0]["id"]});
    let shown = ask(&admin, shown, &[]).await.unwrap();
    let same = tree(&admin, shown[0]["Uuid_1"].clone()).await.unwrap();
    assert_eq!(same, city);
    let relto = tree(&admin, json!("ann's relto")).await.unwrap();
    assert_eq!(relto[0]["type"], "Age");
    let several = tree(&admin, json!("Personal")).await.unwrap_err();
    let wanted = [
        "2 nodes are named \"Personal\"; specify one by its number: ",
        "(age Personal, Ann's Relto)",
    ];
    assert!(wanted.iter().all(|part| several.contains(part)), "{several}");
    let unknown = tree(&admin, json!("Gehn")).await;
    assert_eq!(unknown, Err("there is no player or age named \"Gehn\"".to_owned()));
    assert_eq!(tree(&admin, json!("5")).await, Err("node 5 does not exist".to_owned()));
    admin.close().await;

    // Only a direct write to the database can do this.
    let store = database.store().await;
    let players = store.characters().await.unwrap();
    let row = players.into_iter().find(|player| player.id == bob).unwrap();
    let change = Change::PutCharacter(CharacterRow { name: "ANN".to_owned(), ..row });
    let position = store.claim().await.unwrap();
    let changes = [(change.key(), change)].into_iter().collect();
    store.commit(position, Arc::new(changes)).await.unwrap();
    drop(store);
    let admin = Admin::open(database.folder.path()).await.unwrap();
    let found = ask(&admin, json!({"request": "check"}), &[]).await.unwrap();
    let text = format!("is called \"ANN\", as is player {ann}");
    let finding = json!({"problem": true, "kind": "same-name", "id": bob, "text": text});
    assert_eq!(found, [finding]);
    let several = tree(&admin, json!("Ann")).await.unwrap_err();
    let wanted = format!("{ann} (player Ann), {bob} (player ANN)");
    assert!(several.ends_with(&wanted), "{several}");
    admin.close().await;
}

/// Invalid input on the socket ends only its own connection.
#[cfg(unix)]
#[tokio::test]
async fn the_socket_is_bounded() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use worldwire_server::operators::MAX_LINE;

    let database = Database::sqlite();
    let vault = open(&database).await;
    let folder = database.folder.path();
    let _lock = FolderLock::take(folder).unwrap().unwrap();
    let control = Control::stopped(folder, vault);
    let listener = tokio::spawn(Listener::bind(folder, control).await.unwrap().run());
    let socket = folder.join("admin.sock");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&socket).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let say = async |said: &[u8]| {
        let mut stream = tokio::net::UnixStream::connect(&socket).await.unwrap();
        // The server may close the connection before everything is written.
        let _ = stream.write_all(said).await;
        let _ = stream.shutdown().await;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    };
    assert!(say(b"{\"request\":\"dance\"}\n").await.starts_with("{\"error\":\"not a request: "));
    assert!(say(b"\xff\n").await.is_empty());
    assert!(say(b"").await.starts_with("{\"error\""));
    assert!(say(b"{\"request\":\"check\"}").await.is_empty(), "half a line");
    assert!(say(&vec![b' '; MAX_LINE + 2]).await.is_empty());
    let import = b"{\"request\":\"import\",\"replace\":true}\n{\"vault\":1,\"next_node\":1,\"next_score\":1}\n";
    let half = say(import).await;
    assert_eq!(half, "{\"error\":\"the lines after the request must end with an empty line\"}\n");
    let admin = Admin::open(folder).await.unwrap();
    // Idle connections lose their slots and so do not block others.
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(tokio::net::UnixStream::connect(&socket).await.unwrap());
    }
    let start = std::time::Instant::now();
    assert_eq!(ask(&admin, json!({"request": "check"}), &[]).await, Ok(Vec::new()));
    let mut answer = String::new();
    for stream in &mut silent[..150] {
        stream.read_to_string(&mut answer).await.unwrap();
    }
    assert_eq!(answer, "");
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    listener.abort();
}

#[test]
fn a_dump_is_checked() {
    let head = r#"{"vault":1,"next_node":9,"next_score":1}"#;
    let node = |id: u32, kind: &str| format!(r#"{{"node":{{"NodeId":{id},"NodeType":"{kind}"}}}}"#);
    let reference = |above: u32, below: u32| {
        format!(r#"{{"ref":{{"parent":{above},"child":{below},"owner":0}}}}"#)
    };
    let system = node(1, "System");
    let player = r#"{"player":{"id":2,"account":"00000000-0000-0000-0000-000000000001","name":"x","shape":"male","explorer":1,"created":0}}"#;
    let read = |lines: &[&str]| match Dump::read(lines.iter().copied()) {
        Ok(_) => String::new(),
        Err(DumpError::Line { line, problem }) => format!("{line}: {problem}"),
        Err(DumpError::Whole(problem)) => problem.to_string(),
    };
    // Each dump ends with a correct last line.
    let problem = |lines: &[&str]| {
        let count = |name: &str| {
            let start = format!("{{\"{name}\":");
            lines.iter().filter(|line| line.starts_with(&start)).count()
        };
        let end = json!({"end": {"accounts": count("account"), "nodes": count("node"),
            "refs": count("ref"), "players": count("player"), "scores": count("score")}});
        read(&[lines, &[&*end.to_string()]].concat())
    };
    let (two, three) = (node(2, "Folder"), node(3, "Folder"));
    let (down, up) = (reference(2, 3), reference(3, 2));
    assert_eq!(problem(&[head, &system, &two, &three, &down, ""]), "");
    // The dump is truncated at the end of a line.
    let cut = read(&[head, &system, &two]);
    assert!(cut.starts_with("the last line must be \"end\": "), "{cut}");
    let end = r#"{"end":{"accounts":0,"nodes":2,"refs":0,"players":0,"scores":0}}"#;
    assert_eq!(read(&[head, &system, &two, end]), "");
    let counts = read(&[head, &system, end]);
    assert!(counts.contains("\"nodes\":2") && counts.contains("\"nodes\":1"), "{counts}");
    assert!(read(&[head, &system, &two, end, &three]).starts_with("5: nothing may follow"));
    // Problems that a check of the vault would find.
    let info = node(2, "AgeInfo");
    assert_eq!(problem(&[head, &system, &info]), "node 2 is an AgeInfo that belongs to no Age");
    let age = node(2, "Age");
    assert_eq!(problem(&[head, &system, &age]), "node 2 is an Age without an AgeInfo");
    let score = |kind: u32| {
        format!(
            r#"{{"score":{{"id":1,"owner":2,"name":"x","kind":{kind},"value":0,"created":0}}}}"#
        )
    };
    assert_eq!(problem(&[head, &system, &score(2)]), "");
    assert!(problem(&[head, &system, &score(9)]).starts_with("3: score 1: kind must be"));
    let account = format!(
        r#"{{"account":{{"id":"00000000-0000-0000-0000-000000000001","name":"{}","flags":0,"created":0}}}}"#,
        "x".repeat(100)
    );
    assert!(problem(&[head, &account, &system]).contains("a name has at most"));
    let full = r#"{"vault":1,"next_node":4294967295,"next_score":1}"#;
    assert!(problem(&[full, &system]).starts_with("next_node"));
    let last = problem(&[head, &system, &node(u32::MAX, "Folder")]);
    assert_eq!(last, "node 4294967295: number must be below 4293967295");
    let long = format!(
        r#"{{"node":{{"NodeId":2,"NodeType":"Folder","String64_1":"{}"}}}}"#,
        "x".repeat(64)
    );
    assert!(problem(&[head, &system, &long]).starts_with("3: node 2: "));
    assert_eq!(read(&[]), "the first line must be \"vault\"");
    assert_eq!(problem(&[head]), "must have one System node, not 0");
    assert_eq!(problem(&[head, &system, &system]), "3: node 1 appears twice");
    let dangling = problem(&[head, &system, &two, &down]);
    assert_eq!(dangling, "node 3 does not exist, but has a reference to or from 2");
    let cycle = problem(&[head, &system, &two, &three, &down, &up]);
    assert_eq!(cycle, "node 2 is its own descendant");
    let missing = problem(&[head, &system, player]);
    assert_eq!(missing, "node 2 is a player without a Player node");
    let (root, info, part) = (node(2, "Player"), node(3, "PlayerInfo"), reference(2, 3));
    let homeless = problem(&[head, &system, &root, &info, &part, player]);
    assert_eq!(homeless, "node 2 is a player without an account");
    assert_eq!(
        problem(&[head, "{\"thing\":1}"]),
        "2: must be one of account, password, node, ref, player, score, end"
    );
    assert!(problem(&[head, r#"{"node":{"NodeId":1,"NodeId":2}}"#]).starts_with("2: "));
    assert_eq!(
        problem(&[r#"{"vault":2,"next_node":9,"next_score":1}"#]),
        "1: unsupported version 2; this server reads version 1"
    );
}
