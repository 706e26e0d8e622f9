//! `uru files import`: a shard's files from a client's folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use worldwire_uru::file::manifest::Manifest;
use worldwire_uru::file::secure::{Magic, SecureFile, SecureKey};

fn import(client: &Path, shard: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(["uru", "files", "import"]).arg(client).arg("--shard").arg(shard);
    command.args(more).output().unwrap()
}

/// The names and flags in a manifest.
fn listed(shard: &Path, group: &str) -> Vec<(String, u32)> {
    let text = fs::read_to_string(shard.join(format!("data/files/{group}.mfs"))).unwrap();
    let manifest = Manifest::parse(&text).unwrap();
    let entry = |entry: &worldwire_uru::file::manifest::ManifestEntry<'_>| {
        // Every listed file exists.
        let download = entry.download_name.to_text().replace('\\', "/");
        assert!(shard.join("data/files").join(download).is_file());
        (entry.client_name.to_text(), entry.flags.0)
    };
    let mut listed: Vec<_> = manifest.0.iter().map(entry).collect();
    listed.sort();
    listed
}

#[test]
fn a_client_folder_becomes_the_data_of_a_shard() {
    let folder = tempfile::tempdir().unwrap();
    let (client, shard) = (folder.path().join("client"), folder.path().join("shard"));
    let put = |name: &str, bytes: &[u8]| {
        let file = client.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    };
    let sound = |channels: u8| {
        let mut bytes = b"OggS".to_vec();
        bytes.resize(28, 0);
        bytes.extend_from_slice(b"\x01vorbis\0\0\0\0");
        bytes.push(channels);
        bytes
    };
    fs::create_dir(&shard).unwrap();
    let page: Vec<u8> = b"Wind.ogg".iter().map(|byte| !byte).collect();
    put("dat/Fern.age", b"LingerTime=7\n");
    put("dat/Fern_District_a.prp", &[&page[..], &[0; 200]].concat());
    put("dat/GlobalUI.prp", &[7; 200]);
    put("sfx/Wind.ogg", &sound(1));
    put("sfx/Ui.ogg", &sound(2));
    put("UruExplorer.exe", &[1; 200]);
    put("UruLauncher.exe", &[2; 200]);
    put("server.ini", b"Server.Port 1\n");
    put("SDL/Fern.sdl", b"STATEDESC Fern { VERSION 1 VAR BOOL open[1] }");
    let key = SecureKey::from_words([1, 2, 3, 4]);
    let plain = SecureFile::new(Magic::WhatDoYouSee, b"# plain\n".to_vec());
    put("SDL/Known.sdl", &plain.seal(&SecureKey::SETTINGS).unwrap());
    put("Python/python.pak", b"scripts");
    // Links are followed, but no folder is read twice.
    let movies = folder.path().join("movies");
    fs::create_dir(&movies).unwrap();
    fs::write(movies.join("intro.webm"), "film").unwrap();
    symlink(&movies, client.join("avi")).unwrap();
    symlink(&client, client.join("sfx/again")).unwrap();
    symlink("nowhere", client.join("broken")).unwrap();
    fs::write(folder.path().join("note"), "outside").unwrap();
    symlink("../note", client.join("linked.txt")).unwrap();
    symlink("dat/GlobalUI.prp", client.join("inside.txt")).unwrap();

    let output = import(&client, &shard, &["--json"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("again: skipped: a link to a folder that has already been read"),
        "{said}"
    );
    assert!(said.contains("broken: skipped: a dangling link"), "{said}");
    // Links that lead out of the folder are reported.
    let base = fs::canonicalize(folder.path()).unwrap();
    for (link, target, what) in
        [("avi", "movies", "the files below it"), ("linked.txt", "note", "it")]
    {
        let (link, target) = (client.join(link), base.join(target));
        let report = format!(
            "{}: links to {}, outside the folder; imported {what} anyway\n",
            link.display(),
            target.display()
        );
        assert!(said.contains(&report), "{said}");
    }
    assert_eq!(said.matches("outside the folder").count(), 2, "{said}");
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&shown["manifests"], &shown["ages"]), (&4.into(), &1.into()), "{shown}");
    let all = [
        ("UruExplorer.exe", 8),
        ("avi\\intro.webm", 0),
        ("dat\\Fern.age", 0),
        ("dat\\Fern_District_a.prp", 8),
        ("dat\\GlobalUI.prp", 8),
        ("inside.txt", 8),
        ("linked.txt", 0),
        ("sfx\\Ui.ogg", 5),
        ("sfx\\Wind.ogg", 4),
    ];
    let owned = |names: &[(&str, u32)]| {
        names.iter().map(|(name, flags)| ((*name).to_owned(), *flags)).collect::<Vec<_>>()
    };
    assert_eq!(listed(&shard, "External"), owned(&all));
    assert_eq!(listed(&shard, "Fern"), owned(&[all[2], all[3], all[8]]));
    assert_eq!(
        listed(&shard, "ThinExternal"),
        owned(&[all[0], all[1], all[4], all[5], all[6], all[7]])
    );
    assert_eq!(listed(&shard, "ExternalPatcher"), owned(&[("UruLauncher.exe", 8)]));
    let data = shard.join("data");
    assert_eq!(fs::read(data.join("ages/Fern.age")).unwrap(), b"LingerTime=7\n");
    assert_eq!(fs::read(data.join("secure/SDL/Known.sdl")).unwrap(), b"# plain\n");
    assert!(data.join("secure/Python/python.pak").exists());

    // Another shard's secrets are left out and reported.
    let secret = SecureFile::new(Magic::NotTheDroids, b"# secret\n".to_vec());
    put("SDL/Secret.sdl", &secret.seal(&key).unwrap());
    let output = import(&client, &shard, &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("Secret.sdl: skipped: "), "{said}");
    assert!(!data.join("secure/SDL/Secret.sdl").exists());
    let output = import(&folder.path().join("none"), &shard, &[]);
    assert_eq!(output.status.code(), Some(2));

    // Files that the client no longer has are removed, but the operator's own files are not.
    fs::write(data.join("files/Own.mfs"), "").unwrap();
    fs::write(data.join("secure/SDL/Fern.sdl"), "# changed").unwrap();
    for name in ["SDL/Fern.sdl", "SDL/Secret.sdl", "sfx/Ui.ogg", "UruLauncher.exe"] {
        fs::remove_file(client.join(name)).unwrap();
    }
    let output = import(&client, &shard, &["--json"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("data: removed 3 files that the client no longer has"), "{said}");
    assert!(said.contains("SDL/Fern.sdl: kept: the client no longer has it, but"), "{said}");
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&shown["removed"], &shown["kept"]), (&3.into(), &1.into()), "{shown}");
    for (name, stays) in [
        ("files/sfx/Ui.ogg", false),
        ("files/UruLauncher.exe.gz", false),
        ("files/ExternalPatcher.mfs", false),
        ("files/Own.mfs", true),
        ("files/sfx/Wind.ogg", true),
        ("secure/SDL/Fern.sdl", true),
        ("secure/SDL/Known.sdl", true),
    ] {
        assert_eq!(data.join(name).exists(), stays, "{name}");
    }
}

#[test]
fn only_a_client_folder_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    for name in ["Uru/Dat/Fern.AGE", "Uru/sfx/a.ogg", "other/dat/x.prp"] {
        let file = games.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    let shard = folder.path().join("shard");
    fs::create_dir(&shard).unwrap();
    let uru = games.join("Uru").to_string_lossy().into_owned();
    for (wrong, advice) in [
        (games.join("Uru/Dat"), format!("did you mean {uru}?")),
        (games.clone(), format!("did you mean {uru}?")),
        (folder.path().to_owned(), format!("did you mean {uru}?")),
        (games.join("other"), "choose the folder that contains dat and sfx".to_owned()),
    ] {
        let output = import(&wrong, &shard, &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        let problem = "not a game client's folder, because it has no age files (dat/NAME.age)";
        assert!(said.contains(&format!("{problem}; {advice}")), "{said}");
        assert_eq!(fs::read_dir(&shard).unwrap().count(), 0);
    }
    // A folder that does not exist is usually misspelled.
    let nosuch = folder.path().join("nosuch");
    let output = import(&games.join("Uru"), &nosuch, &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), nosuch.exists()), (Some(2), false), "{said}");
    let problem = format!("no directory {}; create it", nosuch.display());
    assert!(said.contains(&problem), "{said}");
    assert_eq!(import(&games.join("Uru"), &shard, &[]).status.code(), Some(0));
}
