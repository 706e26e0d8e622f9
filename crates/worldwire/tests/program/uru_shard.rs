//! `uru account` and `uru vault` on a shard's folder, while the shard runs and while it does not.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use worldwire_server::operators::Listener;
use worldwire_server::store;
use worldwire_server::store::lock::{FolderLock, LOCK_FILE};
use worldwire_server::store::seal::{KEY_FILE, ServerKey};
use worldwire_server::uru::admin::Control;
use worldwire_server::uru::vault::{Vault, VaultConfig};
use worldwire_server::uru::{CONFIG, SQLITE_FILE};

/// Runs a command on the shard in a folder: exit code, standard output, standard error.
fn worldwire(folder: &Path, arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_worldwire"))
        .arg("uru")
        .args(arguments)
        .arg("--shard")
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

async fn open(folder: &Path) -> Vault {
    let key = ServerKey::load_or_create(&folder.join(KEY_FILE)).unwrap();
    let store = store::open(folder.join(SQLITE_FILE), None).await.unwrap();
    Vault::open(store, key, VaultConfig::default()).await.unwrap()
}

fn everything(folder: &Path, running: bool) {
    let run = |arguments: &[&str], input: &str| worldwire(folder, arguments, input);
    let done = |arguments: &[&str], input: &str| {
        let (code, out, err) = run(arguments, input);
        assert_eq!(code, 0, "{arguments:?}: {err}");
        out
    };
    done(&["account", "add", "ann@example.org", "--role", "admin"], "secret\n");
    let (code, out, err) = run(&["account", "add", "ANN@example.org"], "secret\n");
    assert_eq!((code, &*out), (1, ""));
    assert!(err.ends_with(": account \"ANN@example.org\" already exists\n"), "{err}");
    let (code, _, err) = run(&["account", "add", "bob"], "");
    let wanted = "worldwire: the password is empty; use --password-file, the variable \
                  WORLDWIRE_PASSWORD, or the first line of standard input\n";
    assert_eq!((code, &*err), (2, wanted));
    let (code, out, err) = run(&["account", "passwd", "ann@example.org", "--json"], "é\n");
    assert_eq!(code, 0);
    assert!(err.contains("H'uru clients cannot log in"), "{err}");
    assert!(out.contains("\"allClients\":false"), "{out}");
    done(&["account", "ban", "ann@example.org"], "");
    assert_eq!(done(&["account", "list"], ""), "ann@example.org  (admin, banned)\n");
    done(&["account", "ban", "ann@example.org", "--lift"], "");
    let listed = done(&["account", "list", "--json"], "");
    assert!(listed.contains("\"banned\":false") && !listed.contains("secret"), "{listed}");
    let (code, _, err) = run(&["account", "passwd", "ann@example.org"], "0123456789abcdef\n");
    assert!(code == 0 && err.contains("only the first 15 characters of this one"), "{err}");
    done(&["account", "role", "ann@example.org", "developer", "beta-tester"], "");
    assert_eq!(done(&["account", "list"], ""), "ann@example.org  (developer, beta tester)\n");
    let (code, _, err) = run(&["account", "role", "bob", "user"], "");
    assert!(code == 1 && err.ends_with(": account \"bob\" does not exist\n"), "{err}");
    let kick = |who: &str| {
        let (code, out, err) = run(&["kick", who], "");
        assert_eq!((code, &*out), (1, ""));
        err
    };
    assert!(kick("ann@example.org").ends_with(": \"ann@example.org\" is not logged in\n"));
    assert!(kick("Yeesha").ends_with(": there is no account or player named \"Yeesha\"\n"));
    let (code, _, err) = run(&["account", "delete", "ann@example.org"], "yes\n");
    let wanted = "worldwire: this deletes account ann@example.org; use --yes to confirm it without a \
                  terminal\n";
    assert_eq!((code, &*err), (2, wanted));
    let (code, _, err) = run(&["account", "delete", "bob"], "");
    assert!(code == 1 && err.ends_with(": account \"bob\" does not exist\n"), "{err}");
    done(&["account", "delete", "ann@example.org", "--yes"], "");
    assert_eq!(done(&["account", "list"], ""), "");

    assert_eq!(
        done(&["vault", "tree", "--depth", "1"], ""),
        "10001 System\n  10002 Folder GlobalInbox\n"
    );
    let city_tree = done(&["vault", "tree", "CITY", "--depth", "1"], "");
    assert!(city_tree.contains(" Age city\n  "), "{city_tree}");
    let (code, _, err) = run(&["vault", "tree", "Yeesha"], "");
    assert!(code == 1 && err.ends_with(": there is no player or age named \"Yeesha\"\n"), "{err}");
    let (code, out, err) = run(&["clear-states", "city", "--with-age"], "");
    assert_eq!((code, &*out), (0, ""));
    let wanted = "): 0 object states cleared; the age itself had no state\n";
    assert!(err.ends_with(wanted), "{err}");
    let (code, _, err) = run(&["clear-states", "city"], "");
    assert!(code == 0 && err.ends_with("): 0 object states cleared\n"), "{err}");
    let cleared = done(&["clear-states", "city", "--json"], "");
    assert!(cleared.contains("\"filename\":\"city\"") && cleared.contains("\"states\":0"));
    let (code, _, err) = run(&["clear-states", "Yeesha"], "");
    assert!(code == 1 && err.ends_with(": there is no age named \"Yeesha\"\n"), "{err}");
    let (code, _, err) = run(&["clear-states", "10002"], "");
    let wanted = ": 10002 is a node of type Folder (GlobalInbox), not an age\n";
    assert!(code == 1 && err.ends_with(wanted), "{err}");
    let (code, _, err) = run(&["clear-states", "7"], "");
    assert!(code == 1 && err.ends_with(": there is no age named \"7\"\n"), "{err}");
    let city = done(&["vault", "find", "NodeType=AgeInfo", "String64_2=city"], "");
    let city = city.trim();
    // The number of an AgeInfo node identifies its age.
    assert_eq!(done(&["clear-states", city, "--json"], ""), cleared);
    done(&["vault", "set", city, "String64_5=1", "Int32_1=3"], "");
    let shown = done(&["vault", "show", city], "");
    assert!(shown.contains("\nString64_5: 1\n") && shown.contains("\nInt32_1: 3\n"), "{shown}");
    assert!(shown.contains("\nInt32_1: 3\nAgeSequenceNumber: 3\n"), "{shown}");
    let shown = done(&["vault", "show", city, "--json"], "");
    assert!(shown.contains("\"AgeFilename\":\"city\""), "{shown}");
    let named = done(&["vault", "find", "NodeType=AgeInfo", "AgeFilename=city"], "");
    assert_eq!(named.trim(), city);
    let (code, _, err) = run(&["vault", "find", "AgeFilename=city"], "");
    assert!(code == 2 && err.contains("give NodeType=AgeInfo as well"), "{err}");
    maintenance(folder);
    let (code, _, err) = run(&["vault", "find", "NodeTyp=AgeInfo"], "");
    let wanted = "worldwire: NodeTyp=AgeInfo: no such field; did you mean NodeType?\n";
    assert_eq!((code, &*err), (2, wanted));
    assert_eq!(done(&["vault", "check"], ""), "0 problems\n");
    assert_eq!(done(&["vault", "prune"], ""), "0 nodes would be removed\n");
    assert_eq!(done(&["vault", "prune", "--apply"], ""), "0 nodes removed\n");
    let (code, out, err) = run(&["player", "rename", "Yeesha", "Atrus"], "");
    assert_eq!((code, &*out), (1, ""));
    assert!(err.ends_with(": there is no player with the number or name \"Yeesha\"\n"), "{err}");

    let dump = done(&["vault", "export"], "");
    let (code, _, err) = run(&["vault", "import", "-"], &dump);
    assert_eq!(code, 0, "{err}");
    assert_eq!(done(&["vault", "export"], ""), dump);
    let half = &dump[..dump.len() / 2];
    // Another server's vault is imported and exported again. Data that is lost is listed.
    let moving = "INSERT INTO vault.\"Nodes\" (idx, \"NodeType\") VALUES (1, 24);\n\
                  INSERT INTO vault.\"NodeRefs\" (\"ParentIdx\", \"ChildIdx\") VALUES (1, 9);";
    let (code, _, err) = run(&["vault", "import", "--from", "dirtsand", "-"], moving);
    if running {
        // A running shard would keep its own ages.
        assert!(code == 2 && err.contains(": stop the shard first: "), "{err}");
    } else {
        assert_eq!(code, 0, "{err}");
        let lost = "not converted: the reference from 1 to 9: a node is missing\n";
        assert!(err.contains(lost), "{err}");
        assert!(err.contains("0 players, 1 node, 0 scores"), "{err}");
        assert!(err.contains("uru keys convert dirtsand.ini"), "{err}");
        let (code, _, err) =
            run(&["vault", "import", "--from", "dirtsand", "-"], "COPY x FROM stdin;");
        assert_eq!(code, 1);
        let problem = "line 1: COPY is not supported; create the dump with --column-inserts";
        assert!(err.contains(problem), "{err}");
        done(&["vault", "import", "-"], &dump);
    }
    // The vault is exported for the other server.
    let (code, statements, err) = run(&["vault", "export", "--to", "dirtsand"], "");
    assert_eq!((code, &*err), (0, ""));
    let tables = ["INSERT INTO vault.\"Nodes\"", "INSERT INTO game.\"Servers\""];
    assert!(tables.iter().all(|table| statements.contains(table)), "{statements}");
    // No other server records when settings were created.
    let untimed = |dump: &str| {
        let lines = dump.lines().filter(|line| !line.contains(":1970733058,"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    if !running {
        done(&["vault", "import", "--from", "dirtsand", "-"], &statements);
        assert_eq!(untimed(&done(&["vault", "export"], "")), untimed(&dump));
        // The city of the imported shard is the shard's own.
        let config = std::fs::read_to_string(folder.join("shard.toml")).unwrap();
        let city = config.lines().find(|line| line.starts_with("city = ")).unwrap();
        assert!(city.contains("instance = \""), "{city}");
    }
    let file = folder.join("moulars.db");
    let path = file.to_str().unwrap();
    done(&["vault", "export", "--to", "moulars", "-o", path], "");
    #[cfg(unix)]
    {
        let mode = std::fs::metadata(&file).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    }
    if !running {
        done(&["vault", "import", "--from", "moulars", path], "");
        assert_eq!(untimed(&done(&["vault", "export"], "")), untimed(&dump));
    }
    if !running {
        // A damaged database is a problem of the input; a missing one is not.
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        let (code, _, err) = run(&["vault", "import", "--from", "moulars", path], "");
        assert!(code == 1 && err.starts_with(&format!("worldwire: {path}: ")), "{err}");
        let missing = format!("{path}.missing");
        let (code, _, err) = run(&["vault", "import", "--from", "moulars", &missing], "");
        assert!(code == 2 && err.contains("no such file"), "{err}");
        assert_eq!(untimed(&done(&["vault", "export"], "")), untimed(&dump));
    }
    std::fs::remove_file(&file).unwrap();
    done(&["vault", "import", "-"], &dump);
    let (code, _, err) = run(&["vault", "import", "-"], half);
    assert!(code == 1 && err.starts_with("worldwire: standard input: line "), "{err}");
    let cut = folder.join("cut.jsonl");
    std::fs::write(&cut, half).unwrap();
    let (code, _, err) = run(&["vault", "import", cut.to_str().unwrap(), "--replace"], "");
    assert!(code == 1 && err.contains("cut.jsonl: line "), "{err}");
    std::fs::remove_file(&cut).unwrap();
    assert_eq!(done(&["vault", "export"], ""), dump);

    // Values for all instances of an age, checked against the shard's own descriptors.
    let sdl = folder.join("data/secure/SDL");
    std::fs::create_dir_all(&sdl).unwrap();
    let (code, _, err) = run(&["sdl", "set", "city", "gate=true"], "");
    assert!(code == 2 && err.contains("SDL: contains no descriptors (.sdl files)"), "{err}");
    let text = "STATEDESC city { VERSION 1 VAR BOOL gate[1] VAR INT stage[1] }";
    std::fs::write(sdl.join("city.sdl"), text).unwrap();
    done(&["sdl", "set", "city", "gate=true"], "");
    let settings = || {
        let node = done(&["vault", "find", "NodeType=1970733058", "String64_2=city"], "");
        done(&["vault", "show", node.trim()], "")
    };
    let gate = settings();
    done(&["sdl", "set", "CITY", "stage=3"], "");
    let both = settings();
    assert!(gate.contains("Blob_1: ") && both != gate && both.contains("03000000"), "{both}");
    let (code, _, err) = run(&["sdl", "set", "city", "gat=true"], "");
    assert!(code == 2 && err.contains("gat"), "{err}");
    for gate in ["gate=7", "gate=TRUE", "GATE=2"] {
        let (code, _, err) = run(&["sdl", "set", "city", gate], "");
        assert!(code == 2 && err.contains("wanted true, false, 1 or 0 for a BOOL"), "{err}");
    }
    let (code, _, err) = run(&["sdl", "set", "citty", "gate=true"], "");
    assert!(code == 1 && err.contains("did you mean city?"), "{err}");
    assert_eq!(done(&["vault", "check"], ""), "0 problems\n");
    // The second round begins without the file.
    std::fs::remove_file(sdl.join("city.sdl")).unwrap();
}

/// Ages are added, imported, listed and removed.
fn ages(folder: &Path) {
    let run = |arguments: &[&str], input: &str| worldwire(folder, arguments, input);
    let instance = "12345678-1234-5678-1234-567812345678";
    let (code, out, err) =
        run(&["age", "add", "Garden", "--instance", instance, "--name", "The Garden"], "");
    assert!(code == 0 && out.is_empty(), "{err}");
    assert_eq!(err, format!("worldwire: Garden {instance} (The Garden): added\n"));
    let (code, out, _) = run(&["age", "list"], "");
    let line = format!("{instance}  Garden  The Garden  (public)\n");
    assert!(code == 0 && out.contains(&line) && out.contains("  GuildPub-Writers  "), "{out}");
    let (code, out, _) = run(&["age", "list", "--running", "--json"], "");
    assert_eq!((code, &*out), (0, ""));
    // A second city is refused; the same one is not added again.
    let (code, out, err) = run(&["age", "add", "city", "--name", "Second"], "");
    assert!(code == 1 && out.is_empty(), "{err}");
    assert!(err.contains(": the shard already has a public instance of city: "), "{err}");
    assert!(err.ends_with("or use --another to add one more\n"), "{err}");
    let (code, _, err) = run(&["age", "add", "city", "--name", "Second", "--another"], "");
    assert!(code == 0 && err.ends_with("(Second): added\n"), "{err}");
    let (code, _, err) = run(&["age", "add", "city", "--name", "Second"], "");
    assert!(code == 0 && err.ends_with("(Second): exists already\n"), "{err}");
    assert_eq!(run(&["age", "remove", "Second"], "").0, 0);
    let (code, _, err) = run(&["age", "add", "Shed", "--instance", "x"], "");
    assert!(code == 1 && err.ends_with(": the age instance must be a UUID, not \"x\"\n"), "{err}");

    let file = format!("[{instance}]\nFilename = Garden\n[{}]\nFilename = Shed\n", "9".repeat(8))
        .replace("99999999", "99999999-1234-5678-1234-567812345678");
    let (code, out, err) = run(&["age", "import", "-", "--json"], &file);
    assert!(code == 0 && err.contains("(The Garden): exists already\n"), "{err}");
    assert_eq!(out.matches("\"added\":").count(), 2, "{out}");
    let (code, _, err) = run(&["age", "import", "-"], "Filename = x\n");
    assert!(code == 2 && err.contains("line 1: comes before the first [INSTANCE]"), "{err}");
    // Names are compared with the age files, if there are any.
    let ages = folder.join("data/ages");
    std::fs::create_dir_all(&ages).unwrap();
    std::fs::write(ages.join("Garden.age"), "").unwrap();
    for (name, advice) in
        [("garden", "; did you mean Garden? Use"), ("Pier", ". Use --no-check to add it anyway\n")]
    {
        let (code, out, err) = run(&["age", "add", name], "");
        assert!(code == 1 && out.is_empty() && err.contains(advice), "{err}");
        assert!(err.starts_with(&format!("worldwire: {name}: has no age file in ")), "{err}");
    }
    assert_eq!(run(&["age", "add", "Garden", "--instance", instance], "").0, 0);
    let (code, _, err) = run(&["age", "import", "-"], &file);
    assert!(code == 0 && err.contains("worldwire: Shed: has no age file in "), "{err}");
    assert_eq!(run(&["age", "add", "Pier", "--no-check"], "").0, 0);
    assert_eq!(run(&["age", "remove", "Pier"], "").0, 0);
    std::fs::remove_file(ages.join("Garden.age")).unwrap();
    for age in [instance, "Shed"] {
        let (code, _, err) = run(&["age", "remove", age], "");
        assert!(code == 0 && err.ends_with("): removed\n"), "{err}");
    }
    let (code, _, err) = run(&["age", "remove", "city"], "");
    assert!(code == 1 && err.contains("is in [ages] of shard.toml"), "{err}");
}

/// The shard is closed and opened, and its welcome message changes.
fn maintenance(folder: &Path) {
    let run = |arguments: &[&str]| worldwire(folder, arguments, "");
    std::fs::write(folder.join(CONFIG), "# Ours.\nwelcome = \"Hello\"\n").unwrap();
    assert_eq!(run(&["welcome"]), (0, "Hello\n".to_owned(), String::new()));
    assert_eq!(run(&["welcome", "Shorah!"]).0, 0);
    assert_eq!(run(&["welcome", "--json"]).1, "{\"welcome\":\"Shorah!\"}\n");
    let (code, out, err) = run(&["close", "--kick", "--json"]);
    assert!(code == 0 && err.contains("only administrators"), "{err}");
    assert_eq!(out, "{\"closed\":true,\"kicked\":[]}\n");
    let text = || std::fs::read_to_string(folder.join(CONFIG)).unwrap();
    let wanted = "# Ours.\nwelcome = \"Shorah!\"\n\n[auth]\nrestricted = true\n";
    assert_eq!(text(), wanted);
    assert_eq!(run(&["open"]).0, 0);
    assert_eq!(text(), wanted.replace("true", "false"));
    std::fs::remove_file(folder.join(CONFIG)).unwrap();
}

#[test]
fn commands_work_on_a_stopped_and_a_running_shard() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (code, _, err) = worldwire(folder, &["account", "list"], "");
    assert_eq!(code, 2);
    assert!(
        err.ends_with(": not the directory of a shard; `worldwire serve uru` creates one\n"),
        "{err}"
    );

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { open(folder).await.close().await });
    everything(folder, false);
    runtime.block_on(async {
        let lock = FolderLock::take(folder).unwrap().unwrap();
        let vault = open(folder).await;
        let control = Control::stopped(folder, vault.clone());
        let listener = tokio::spawn(Listener::bind(folder, control).await.unwrap().run());
        let folder = folder.to_owned();
        let commands = move || {
            everything(&folder, true);
            ages(&folder);
        };
        tokio::task::spawn_blocking(commands).await.unwrap();
        listener.abort();
        vault.close().await;
        drop(lock);
    });
    // The ages come last, because they leave gaps in the numbers of nodes.
    ages(folder);
}

#[test]
fn an_unlockable_folder_is_not_a_running_shard() {
    let folder = tempfile::tempdir().unwrap();
    for file in [KEY_FILE, "ki.toml"] {
        std::fs::write(folder.path().join(file), "").unwrap();
    }
    // Simulates a user without permission to write there.
    std::fs::create_dir(folder.path().join(LOCK_FILE)).unwrap();
    for (family, option) in [("uru", "--shard"), ("ki", "--server")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args([family, "account", "list", option]).arg(folder.path());
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let names = said.contains("server.lock: ") && !said.contains("already running");
        assert!(output.status.code() == Some(2) && names, "{said}");
    }
}

#[test]
fn public_keys_are_not_converted_for_servers() {
    let folder = tempfile::tempdir().unwrap();
    let convert = |file: &Path, format: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(["uru", "keys", "convert", "--to", format]).arg(file);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/uru-keys.toml");
    let (code, ini, _) = convert(&keys, "server-ini");
    assert!(code == 0 && ini.contains("Server.Auth.X "), "{ini}");
    let file = folder.path().join("server.ini");
    std::fs::write(&file, ini).unwrap();
    for format in ["toml", "dirtsand", "moulars", "nagus"] {
        let (code, out, err) = convert(&file, format);
        assert!(code == 2 && out.is_empty(), "{out}");
        let wanted = "server.ini: contains only public keys, like every client's server.ini. ";
        assert!(err.contains(wanted) && err.contains("--to toml-public"), "{err}");
    }
    let (code, public, err) = convert(&file, "toml-public");
    assert!(code == 0 && public.contains("[uru.auth]") && err.is_empty(), "{err}");

    // One secret is missing.
    let (_, all, _) = convert(&keys, "toml");
    let secrets = |text: &str| text.lines().filter(|line| line.starts_with("a = ")).count();
    let count = secrets(&all);
    let first = all.lines().find(|line| line.starts_with("a = ")).unwrap();
    std::fs::write(&file, all.replacen(&format!("{first}\n"), "", 1)).unwrap();
    let (code, out, err) = convert(&file, "toml");
    assert!(code == 0 && secrets(&out) == count - 1, "{out}");
    assert!(err.contains(": there is only a public key; the secret is missing\n"), "{err}");
}

/// Clients can also read their passwords from there.
#[test]
fn new_passwords_come_from_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { open(folder.path()).await.close().await });
    for (name, password, wanted) in [("ann", "secret", 0), ("bob", "", 2)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(["uru", "account", "add", name, "--shard"]).arg(folder.path());
        command.env("WORLDWIRE_PASSWORD", password).stdin(Stdio::null());
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(wanted), "{said}");
    }
    let (_, listed, _) = worldwire(folder.path(), &["account", "list"], "");
    assert_eq!(listed, "ann\n");
}
