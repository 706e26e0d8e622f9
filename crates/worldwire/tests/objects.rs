//! Game objects in folders and archives, and the cache of a type list.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(name)
}

/// Runs the program; its exit code, and what it says on both streams.
fn run(arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    arguments.iter().for_each(|argument| {
        command.arg(argument);
    });
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_folder_goes_to_json_and_back() {
    let (types, folder) = (sample("ki-types.json"), tempfile::tempdir().unwrap());
    let [objects, decoded, again] =
        ["objects", "decoded", "again"].map(|name| folder.path().join(name));
    let pet = fs::read(sample("ki-pet.xml")).unwrap();
    fs::create_dir_all(objects.join("Pets/Old")).unwrap();
    for name in ["Pets/Nyx.xml", "Pets/Old/Nyx.xml"] {
        fs::write(objects.join(name), &pet).unwrap();
    }
    fs::write(objects.join("Readme.txt"), "no object").unwrap();
    let (code, out, err) =
        run(&[&"ki", &"op", &"decode", &objects, &"-t", &types, &"-o", &decoded]);
    assert_eq!((code, out.as_str(), err.trim()), (0, "", "2 decoded, 1 passed over, 0 failed"));
    let json = fs::read_to_string(decoded.join("Pets/Old/Nyx.xml.json")).unwrap();
    assert!(json.contains("\"m_name\":\"Nyx\""), "{json}");
    let (code, _, err) = run(&[&"ki", &"op", &"encode", &decoded, &"-t", &types, &"-o", &again]);
    assert_eq!((code, err.trim()), (0, "2 encoded, 0 failed"));
    for name in ["Pets/Nyx.xml", "Pets/Old/Nyx.xml"] {
        assert_eq!(fs::read(again.join(name)).unwrap(), pet);
    }
    // What is there stays.
    let (code, _, err) = run(&[&"ki", &"op", &"encode", &decoded, &"-t", &types, &"-o", &again]);
    assert!(code == 2 && err.contains("--force overwrites it"), "{err}");
}

#[test]
fn an_archive_is_decoded_on_its_way_out() {
    let (types, folder) = (sample("ki-types.json"), tempfile::tempdir().unwrap());
    let [files, archive, out] = ["files", "Test.wad", "out"].map(|name| folder.path().join(name));
    fs::create_dir(&files).unwrap();
    fs::write(files.join("Nyx.xml"), fs::read(sample("ki-pet.xml")).unwrap()).unwrap();
    fs::write(files.join("Broken.xml"), b"BINd\x0f\0\0\0\0\x01\0\0\0").unwrap();
    fs::write(files.join("Readme.txt"), "no object").unwrap();
    let (code, _, err) = run(&[&"ki", &"wad", &"create", &files, &"-o", &archive]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = run(&[
        &"ki",
        &"wad",
        &"extract",
        &archive,
        &"-C",
        &out,
        &"--decode",
        &"json",
        &"-t",
        &types,
    ]);
    assert!(code == 1 && err.contains("Broken.xml: object"), "{err}");
    let json = fs::read_to_string(out.join("Nyx.xml.json")).unwrap();
    assert!(json.contains("\"m_name\":\"Nyx\""), "{json}");
    // What cannot be read, and what is no object, is there as it is.
    assert!(fs::read(out.join("Broken.xml")).unwrap().starts_with(b"BINd"));
    assert_eq!(fs::read(out.join("Readme.txt")).unwrap(), b"no object");
    assert!(!out.join("Nyx.xml").exists());
}

/// Objects of many megabytes are written while they are read.
#[test]
fn a_large_object_goes_to_json_and_back() {
    let (types, folder) = (sample("ki-types.json"), tempfile::tempdir().unwrap());
    let [json, file, again] =
        ["pet.json", "pet.xml", "again.json"].map(|name| folder.path().join(name));
    // Text that zlib cannot make small.
    let mut state = 1_u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:016x}", state)
    };
    let tricks: Vec<String> = (0..120)
        .map(|_| format!("\"{}\"", (0..6000).map(|_| word()).collect::<String>()))
        .collect();
    let object = format!(
        "{{\"$class\":\"class MadeUpPet\",\"m_name\":\"Nyx\",\"m_tricks\":[{}]}}",
        tricks.join(",")
    );
    fs::write(&json, &object).unwrap();
    let (code, _, err) = run(&[&"ki", &"op", &"encode", &json, &"-t", &types, &"-o", &file]);
    assert_eq!(code, 0, "{err}");
    assert!(fs::metadata(&file).unwrap().len() > 5 << 20);
    let (code, _, err) = run(&[&"ki", &"op", &"decode", &file, &"-t", &types, &"-o", &again]);
    assert_eq!(code, 0, "{err}");
    let text = fs::read_to_string(&again).unwrap();
    assert!(text.starts_with(&format!("{{\"object\":{object},\"stream\":{{")));
    // Cut off, it leaves no file.
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    fs::remove_file(&again).unwrap();
    let (code, _, err) = run(&[&"ki", &"op", &"decode", &file, &"-t", &types, &"-o", &again]);
    assert!(code == 1 && err.contains("zlib"), "{code} {err}");
    assert!(!again.exists());
}

#[test]
fn a_large_type_list_has_a_cache_that_may_be_lost() {
    let folder = tempfile::tempdir().unwrap();
    let [list, cache] =
        ["types.json", "types.json.worldwire-cache"].map(|name| folder.path().join(name));
    let write = |classes: u32| {
        let class = |number| {
            let words = "x".repeat(200);
            format!(
                "\"class Made{number}{words}\": {{\"bases\": [], \"hash\": {number}, \
                 \"properties\": {{}}}}"
            )
        };
        let classes: Vec<String> = (1..=classes).map(class).collect();
        fs::write(&list, format!("{{{}}}", classes.join(","))).unwrap();
    };
    let explain = |hash: &str| run(&[&"ki", &"op", &"types", &list, &hash, &"--quiet"]);
    write(5000);
    assert_eq!(explain("5000").0, 0);
    let made = fs::read(&cache).unwrap();
    // It is read: a cache whose content is not that of the list would not be.
    let before = fs::metadata(&cache).unwrap().modified().unwrap();
    assert!(explain("4999").1.contains("class Made4999x"));
    assert_eq!(fs::metadata(&cache).unwrap().modified().unwrap(), before);
    // The list changes, the cache breaks, the cache is gone.
    write(5001);
    assert!(explain("5001").1.contains("class Made5001x"));
    assert!(fs::read(&cache).unwrap() != made);
    fs::write(&cache, &made[..made.len() / 2]).unwrap();
    assert_eq!(explain("5001").0, 0);
    fs::remove_file(&cache).unwrap();
    assert_eq!(explain("5001").0, 0);
    assert!(cache.exists());
}

#[test]
fn an_object_in_a_message_can_be_made_and_changed() {
    let (types, folder) = (sample("ki-types.json"), tempfile::tempdir().unwrap());
    let [json, bytes] = ["message.json", "message.bin"].map(|name| folder.path().join(name));
    let message = |field: &str| {
        format!(
            "{{\"service\":\"LOGIN\",\"order\":\"MSG_CHARACTERINFO\",\"fields\":{{\"CharacterInfo\":{field}}}}}"
        )
    };
    let snack = |points: u32| {
        format!(
            "{{\"$class\":\"class MadeUpSnack\",\"m_templateID\":7,\"m_isLiked\":true,\"m_points\":{points}}}"
        )
    };
    let encode = |text: &str| {
        fs::write(&json, text).unwrap();
        run(&[&"encode", &"ki.dml", &json, &"--data", &types, &"-o", &bytes, &"--force"])
    };
    let decode = || {
        let (code, out, err) = run(&[&"decode", &"ki.dml", &bytes, &"--data", &types, &"--json"]);
        assert_eq!((code, err.as_str()), (0, ""));
        out
    };
    // The object alone is enough.
    let (code, _, err) = encode(&message(&format!("{{\"object\":{}}}", snack(5))));
    assert_eq!((code, err.as_str()), (0, ""));
    let first = fs::read(&bytes).unwrap();
    let told = decode();
    assert!(told.contains(&format!("\"object\":{}", snack(5))), "{told}");
    // What was not changed stays; the last bits of the object's last byte say nothing.
    let mut odd = first.clone();
    *odd.last_mut().unwrap() |= 0x80;
    fs::write(&bytes, &odd).unwrap();
    let told = decode();
    assert_eq!(encode(&told).0, 0);
    assert_eq!(fs::read(&bytes).unwrap(), odd);
    // What was changed is written.
    assert_eq!(encode(&told.replace("\"m_points\":5", "\"m_points\":6")).0, 0);
    assert!(decode().contains(&snack(6)));
    // A value out of range, and an object that nobody can write here.
    let (code, _, err) = encode(&told.replace("\"m_points\":5", "\"m_points\":32"));
    assert!(code == 1 && err.contains("CharacterInfo.object.m_points"), "{err}");
    fs::write(&json, &told).unwrap();
    let (code, _, err) = run(&[&"encode", &"ki.dml", &json]);
    assert!(code == 1 && err.contains("give a type list with --data"), "{err}");
    let bare = message(&format!("{{\"bytes\":{{\"$hex\":\"{}\"}}}}", "00".repeat(4)));
    assert_eq!(encode(&bare).0, 0);
}
