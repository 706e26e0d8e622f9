//! Game objects in folders and archives, and the cache of a type list.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(name)
}

/// Runs the program. Returns its exit code and its output on both streams.
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
fn a_folder_round_trips_through_json() {
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
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(err.starts_with("2 decoded, 1 skipped, 0 failed; "), "{err}");
    let json = fs::read_to_string(decoded.join("Pets/Old/Nyx.xml.json")).unwrap();
    assert!(json.contains("\"m_name\":\"Nyx\""), "{json}");
    let (code, _, err) = run(&[&"ki", &"op", &"encode", &decoded, &"-t", &types, &"-o", &again]);
    assert!(code == 0 && err.starts_with("2 encoded, 0 skipped, 0 failed; "), "{err}");
    for name in ["Pets/Nyx.xml", "Pets/Old/Nyx.xml"] {
        assert_eq!(fs::read(again.join(name)).unwrap(), pet);
    }
    // Existing files are kept.
    let (code, _, err) = run(&[&"ki", &"op", &"encode", &decoded, &"-t", &types, &"-o", &again]);
    assert!(code == 2 && err.contains("use --force to overwrite it"), "{err}");
}

#[test]
fn extraction_decodes_objects() {
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
    // Files that cannot be decoded, or are not objects, are written unchanged.
    assert!(fs::read(out.join("Broken.xml")).unwrap().starts_with(b"BINd"));
    assert_eq!(fs::read(out.join("Readme.txt")).unwrap(), b"no object");
    assert!(!out.join("Nyx.xml").exists());
}

/// Objects of many megabytes are written while they are read.
#[test]
fn a_large_object_round_trips_through_json() {
    let (types, folder) = (sample("ki-types.json"), tempfile::tempdir().unwrap());
    let [json, file, again] =
        ["pet.json", "pet.xml", "again.json"].map(|name| folder.path().join(name));
    // Text that zlib cannot compress well.
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
    // A truncated object leaves no output file.
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
    let [list, caches] = ["types.json", "caches"].map(|name| folder.path().join(name));
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
    let explain = |hash: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(["ki", "op", "types"]).arg(&list).args([hash, "--quiet", "--log", "debug"]);
        let output = command.env("XDG_CACHE_HOME", &caches).output().unwrap();
        assert!(output.status.success());
        let is_cached = String::from_utf8_lossy(&output.stderr).contains("from the cache");
        (String::from_utf8(output.stdout).unwrap(), is_cached)
    };
    let cached = || {
        let entries = fs::read_dir(caches.join("worldwire")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    write(5000);
    assert!(!explain("5000").1);
    let made = cached();
    assert_eq!(made.len(), 1);
    let (text, is_cached) = explain("4999");
    assert!(is_cached && text.contains("class Made4999x"));
    // The list changes, and the cache is damaged and then deleted.
    write(5001);
    let (text, is_cached) = explain("5001");
    assert!(!is_cached && text.contains("class Made5001x"));
    assert_eq!(cached().len(), 2);
    for path in cached() {
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    }
    assert!(!explain("5001").1 && explain("5001").1);
    fs::remove_dir_all(&caches).unwrap();
    assert!(!explain("5001").1);
    assert_eq!(cached().len(), 1);
    // Nothing is written beside the list.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
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
    // Unchanged parts are preserved; the last bits of the object's last byte have no meaning.
    let mut odd = first.clone();
    *odd.last_mut().unwrap() |= 0x80;
    fs::write(&bytes, &odd).unwrap();
    let told = decode();
    assert_eq!(encode(&told).0, 0);
    assert_eq!(fs::read(&bytes).unwrap(), odd);
    // Changes are written.
    assert_eq!(encode(&told.replace("\"m_points\":5", "\"m_points\":6")).0, 0);
    assert!(decode().contains(&snack(6)));
    // A value out of range and an object that cannot be written without a type list.
    let (code, _, err) = encode(&told.replace("\"m_points\":5", "\"m_points\":32"));
    assert!(code == 1 && err.contains("CharacterInfo.object.m_points"), "{err}");
    fs::write(&json, &told).unwrap();
    let (code, _, err) = run(&[&"encode", &"ki.dml", &json]);
    assert!(code == 1 && err.contains("supply one with --data"), "{err}");
    // The object may be null.
    assert_eq!(encode(&message("{\"object\":null}")).0, 0);
    assert!(decode().contains("\"object\":null"));
}

/// The sample as a file whose flags word lacks the bit for a flags word.
fn odd_pet() -> Vec<u8> {
    let json = "{\"object\":{\"$class\":\"class MadeUpSnack\",\"m_points\":5},\
                \"stream\":{\"bind\":true,\"flags\":6}}";
    let types = sample("ki-types.json");
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["a.json", "a.bin"].map(|name| folder.path().join(name));
    fs::write(&from, json).unwrap();
    let (code, _, err) = run(&[&"ki", &"op", &"encode", &from, &"-t", &types, &"-o", &to]);
    assert_eq!((code, err.as_str()), (0, ""));
    fs::read(to).unwrap()
}

#[test]
fn files_bring_their_flags_whatever_these_say() {
    let (types, folder) = (sample("ki-types.json"), tempfile::tempdir().unwrap());
    let [file, json] = ["pet.bin", "pet.json"].map(|name| folder.path().join(name));
    let bytes = odd_pet();
    assert_eq!(&bytes[..8], b"BINd\x06\0\0\0");
    fs::write(&file, &bytes).unwrap();
    let (code, out, _) = run(&[&"ki", &"op", &"decode", &file, &"-t", &types]);
    assert!(code == 0 && out.contains("\"m_points\":5"), "{out}");
    fs::write(&json, &out).unwrap();
    let (_, hex, _) = run(&[&"ki", &"op", &"encode", &json, &"-t", &types, &"--hex"]);
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex.trim(), digits);
    // The flags on the command line differ from those in the file.
    let (code, again, _) = run(&[&"ki", &"op", &"decode", &file, &"-t", &types, &"--flags", &"2"]);
    assert_eq!((code, again), (0, out));
}

#[test]
fn no_result_takes_the_place_of_another() {
    let (types, folder) = (sample("ki-types.json"), tempfile::tempdir().unwrap());
    let [one, two, out] = ["in/1", "in/2", "out"].map(|name| folder.path().join(name));
    for folder in [&one, &two] {
        fs::create_dir_all(folder).unwrap();
        fs::copy(sample("ki-pet.xml"), folder.join("pet.xml")).unwrap();
    }
    let [a, b] = [&one, &two].map(|folder| folder.join("pet.xml"));
    let (code, _, err) = run(&[&"ki", &"op", &"decode", &a, &b, &"-t", &types, &"-o", &out]);
    assert!(code == 2 && err.contains("both be written to") && !out.exists(), "{err}");
    // Matching files keep their folders below the part without wildcards.
    let pattern = folder.path().join("in/**/*.xml");
    let (code, _, err) = run(&[&"ki", &"op", &"decode", &pattern, &"-t", &types, &"-o", &out]);
    assert!(code == 0 && err.starts_with("2 decoded, 0 skipped, 0 failed; "), "{err}");
    assert!(out.join("1/pet.xml.json").is_file() && out.join("2/pet.xml.json").is_file());
    fs::copy(out.join("1/pet.xml.json"), out.join("1/pet.xml")).unwrap();
    let again = folder.path().join("again");
    let (code, _, err) = run(&[&"ki", &"op", &"encode", &out, &"-t", &types, &"-o", &again]);
    assert!(code == 2 && err.contains("both be written to") && !again.exists(), "{err}");
}

#[test]
fn one_bad_input_ends_no_other() {
    let (types, folder) = (sample("ki-types.json"), tempfile::tempdir().unwrap());
    let [pet, none, broken, out] =
        ["pet.xml", "none.xml", "broken.xml", "out"].map(|name| folder.path().join(name));
    fs::copy(sample("ki-pet.xml"), &pet).unwrap();
    fs::write(&broken, &odd_pet()[..20]).unwrap();
    let (code, _, err) =
        run(&[&"ki", &"op", &"decode", &none, &broken, &pet, &"-t", &types, &"-o", &out]);
    assert_eq!(code, 1);
    assert!(err.contains("none.xml: no such file") && err.contains("broken.xml: object"), "{err}");
    assert!(err.contains("\n1 decoded, 0 skipped, 2 failed; "), "{err}");
    assert!(out.join("pet.xml.json").is_file());
    // Text shows the part that could be read, and the error.
    let (code, text, _) =
        run(&[&"ki", &"op", &"decode", &broken, &pet, &"-t", &types, &"--to", &"text"]);
    assert!(code == 1 && text.contains("wanted") && text.contains("Nyx"), "{text}");
    let json = out.join("pet.xml.json");
    let (code, _, err) =
        run(&[&"ki", &"op", &"encode", &none, &json, &"-t", &types, &"-o", &folder.path()]);
    assert!(code == 2 && err.contains("pet.xml: already exists"), "{err}");
}

#[test]
fn streams_without_a_magic_number_need_options() {
    let (types, folder) = (sample("ki-types.json"), tempfile::tempdir().unwrap());
    let [json, blobs] = ["pet.json", "blobs"].map(|name| folder.path().join(name));
    fs::create_dir(&blobs).unwrap();
    // A text that equals one of our keys.
    let object = "{\"$class\":\"class MadeUpPet\",\"m_name\":\"\\\"stream\\\"\"}";
    fs::write(&json, object).unwrap();
    let blob = blobs.join("1.bin");
    // A shallow stream contains every property, so decoding it requires a description of the
    // properties.
    let (code, _, err) = run(&[&"ki", &"op", &"encode", &json, &"-t", &types, &"--shallow"]);
    assert!(code == 1 && err.contains("fill in missing properties"), "{err}");
    let (code, hex, _) = run(&[
        &"ki",
        &"op",
        &"encode",
        &json,
        &"-t",
        &types,
        &"--shallow",
        &"--complete",
        &"--hex",
    ]);
    let twice = "{\"object\":{\"$class\":\"A\"},\"object\":{},\"stream\":{}}";
    fs::write(folder.path().join("twice.json"), twice).unwrap();
    let wrong = folder.path().join("twice.json");
    let (_, _, err) = run(&[&"ki", &"op", &"encode", &wrong, &"-t", &types]);
    assert!(err.contains("duplicate field `object`"), "{err}");
    let (again, out, _) = run(&[&"ki", &"op", &"guess", &"--hex", &hex.trim(), &"-t", &types]);
    assert!((code, again) == (0, 0) && out.contains("class MadeUpPet: --shallow"), "{out}");
    let (code, _, err) =
        run(&[&"-q", &"ki", &"op", &"encode", &json, &"-t", &types, &"--deep", &"-o", &blob]);
    assert_eq!((code, err.as_str()), (0, ""));
    let (code, out, err) = run(&[&"ki", &"op", &"decode", &blobs, &"-t", &types, &"--deep"]);
    assert!(code == 0 && err.starts_with("1 decoded, 0 skipped, 0 failed; "), "{err}");
    assert!(out.contains(object), "{out}");
    let (code, _, err) = run(&[&"ki", &"op", &"decode", &blobs, &"-t", &types]);
    assert!(code == 0 && err.starts_with("0 decoded, 1 skipped, 0 failed; "), "{err}");
    // The user has to supply the pairs of the CoreObject form.
    let [hints, core] = ["hints.toml", "core.bin"].map(|name| folder.path().join(name));
    fs::write(&hints, "[[ki.core]]\nblock = 7\ntype = 8\nclass = \"class MadeUpPet\"\n").unwrap();
    let mut bytes = fs::read(&blob).unwrap();
    bytes.splice(..4, [7, 8, 1, 0, 0, 0]);
    fs::write(&core, bytes).unwrap();
    assert_eq!(run(&[&"ki", &"op", &"guess", &core, &"-t", &types]).0, 1);
    let (code, out, _) = run(&[&"ki", &"op", &"guess", &core, &"-t", &types, &"--hints", &hints]);
    assert!(code == 0 && out.contains("--deep") && out.contains("--core"), "{out}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_output_is_not_reported_as_an_object_error() {
    let (types, folder) = (sample("ki-types.json"), tempfile::tempdir().unwrap());
    let [json, pet] = ["pet.json", "pet.bin"].map(|name| folder.path().join(name));
    let name = "n".repeat(60_000);
    let trick = format!("\"{name}\"");
    let tricks = vec![trick.as_str(); 100].join(",");
    let object = format!("{{\"$class\":\"class MadeUpPet\",\"m_tricks\":[{tricks}]}}");
    fs::write(&json, object).unwrap();
    let (code, _, err) =
        run(&[&"-q", &"ki", &"op", &"encode", &json, &"-t", &types, &"--deep", &"-o", &pet]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(fs::metadata(&pet).unwrap().len() > 4 << 20);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(["ki", "op", "decode", "--deep", "-t"]).arg(&types).arg(&pet).stdout(full);
    let output = command.output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && err.contains("standard output: no space"), "{err}");
}

#[test]
fn unchanged_objects_in_messages_keep_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let [types, hints, json] =
        ["types.json", "hints.toml", "message.json"].map(|name| folder.path().join(name));
    // The tag of this class is text, as is the whole object.
    let list = r#"{"version":2,"classes":{"1915051854":{"name":"class Foo301","bases":[],
        "hash":1915051854,"properties":{"m_v":{"type":"unsigned int","id":0,"flags":31,
        "hash":2807682643},"m_w":{"type":"unsigned int","id":1,"flags":31,"hash":2807682644}}}}}"#;
    fs::write(&types, list).unwrap();
    fs::write(
        &hints,
        "[[ki.object]]\nmessage = \"LOGIN.MSG_CHARACTERINFO\"\nfield = \"CharacterInfo\"\n\
         deep = true\n",
    )
    .unwrap();
    // A deep object may have its properties in any order.
    let property = |hash: u32, value: u32| {
        [96_u32, hash, value].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
    };
    let properties = [property(2_807_682_644, 1), property(2_807_682_643, 2)];
    let size = u32::try_from(32 + 8 * properties.concat().len()).unwrap();
    let deep = [&1_915_051_854_u32.to_le_bytes()[..], &size.to_le_bytes(), &properties.concat()];
    let message = |object: &[u8]| {
        let length = u16::try_from(object.len()).unwrap();
        let parts = [&(length + 6).to_le_bytes()[..], &length.to_le_bytes(), object];
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        format!("0701{}", hex(&parts.concat()))
    };
    let shallow = message(b"N_%rA\0\0\0B\0\0\0");
    // Files that should be objects but are not are reported.
    let (code, out, err) =
        run(&[&"decode", &"ki.dml", &"--hex", &shallow, &"--data", &types, &"--data", &hints]);
    assert!(code == 0 && !out.contains("Foo301"), "{out}");
    assert!(err.contains("LOGIN.MSG_CHARACTERINFO.CharacterInfo is shown as bytes"), "{err}");
    for (digits, data) in [(shallow, vec![&types]), (message(&deep.concat()), vec![&types, &hints])]
    {
        let mut decode: Vec<&dyn AsRef<std::ffi::OsStr>> =
            vec![&"decode", &"ki.dml", &"--json", &"--hex", &digits];
        let mut encode: Vec<&dyn AsRef<std::ffi::OsStr>> =
            vec![&"encode", &"ki.dml", &"--hex", &json];
        for file in &data {
            decode.extend([&"--data" as &dyn AsRef<std::ffi::OsStr>, *file]);
            encode.extend([&"--data" as &dyn AsRef<std::ffi::OsStr>, *file]);
        }
        let (code, out, err) = run(&decode);
        assert!(code == 0 && out.contains("\"object\":{\"$class\":\"class Foo301\""), "{out}{err}");
        fs::write(&json, &out).unwrap();
        let (code, hex, err) = run(&encode);
        assert_eq!((code, hex.trim()), (0, &*digits), "{err}");
        // Neither value of a duplicate property is lost silently.
        fs::write(&json, out.replace("\"object\":{", "\"object\":{\"m_v\":1,")).unwrap();
        let (code, _, err) = run(&encode);
        assert!(code == 1 && err.contains("the key \"m_v\" occurs twice"), "{err}");
        // Keys of absent layers are ignored with a warning.
        fs::write(&json, out.replace("\"object\":", "\"flags\":2,\"object\":")).unwrap();
        let (code, _, err) = run(&encode);
        assert!(code == 1 && err.contains("flags"), "{err}");
    }
}

#[test]
fn a_filter_that_finds_a_text_finds_it_with_a_type_list_too() {
    let (types, capture) = (sample("ki-types.json"), sample("ki-login.pcapng"));
    let filter = "CharacterInfo contains \"Merle\"";
    let plain = run(&[&"dissect", &capture, &"--filter", &filter, &"--quiet"]);
    assert!(plain.0 == 0 && plain.1.contains("MSG_CHARACTERINFO"), "{plain:?}");
    let data = run(&[&"dissect", &capture, &"--filter", &filter, &"--quiet", &"--data", &types]);
    assert!(data.0 == 0 && data.1.contains("MSG_CHARACTERINFO"), "{data:?}");
    let inside = "CharacterInfo.object.m_name contains \"Merle\"";
    let data = run(&[&"dissect", &capture, &"--filter", &inside, &"--quiet", &"--data", &types]);
    assert!(data.0 == 0 && data.1.contains("MSG_CHARACTERINFO"), "{data:?}");
}

#[test]
fn hints_without_a_target_are_reported() {
    let (types, folder) = (sample("ki-types.json"), tempfile::tempdir().unwrap());
    let hints = folder.path().join("hints.toml");
    let text = "\u{feff}[[ki.object]]\nmessage = \"LOGIN.MSG_CHARACTERINFOO\"\nfield = \"CharacterInfo\"\n\
                [[ki.object]]\nmessage = \"LOGIN.MSG_CHARACTERINFO\"\nfield = \"CharacterInf\"\n\
                [[ki.core]]\nblock = 1\ntype = 2\nclass = \"MadeUpPett\"\n";
    fs::write(&hints, text).unwrap();
    let decode = |data: &[&dyn AsRef<std::ffi::OsStr>]| {
        let mut all: Vec<&dyn AsRef<std::ffi::OsStr>> =
            vec![&"decode", &"ki.dml", &"--hex", &"070106000000", &"--data", &hints];
        all.extend(data);
        run(&all)
    };
    let (code, _, err) = decode(&[&"--data", &types]);
    assert_eq!(code, 0, "{err}");
    for told in [
        "did you mean LOGIN.MSG_CHARACTERINFO?",
        "the message has no STR field of this name",
        "did you mean class MadeUpPet?",
    ] {
        assert!(err.contains(told), "{told}: {err}");
    }
    assert_eq!(decode(&[&"--quiet"]).2, "");
    // Misspelt hints are reported, too.
    fs::write(&hints, "[ki.object]\nmessage = \"LOGIN.MSG_CHARACTERINFO\"\n").unwrap();
    let (code, _, err) = decode(&[]);
    assert!(code == 1 && err.contains("in double brackets, [[ki.object]]"), "{err}");
}

#[test]
fn values_per_byte_are_limited_by_an_option() {
    let folder = tempfile::tempdir().unwrap();
    let [types, object] = ["types.json", "object"].map(|name| folder.path().join(name));
    let list = r#"{"class L": {"bases": [], "hash": 8, "properties": {
        "m_l": {"type": "bool", "id": 0, "flags": 24, "container": "List"}}}}"#;
    fs::write(&types, list).unwrap();
    let mut plain = [8, 0, 0, 0, 0x40, 0x9c, 0, 0].to_vec();
    plain.resize(8 + 5_000, 0);
    fs::write(&object, worldwire_ki::object::seal_envelope(&plain, true).unwrap()).unwrap();
    for form in ["json", "xml", "text"] {
        let decode = |most: &str| {
            run(&[
                &"ki",
                &"op",
                &"decode",
                &object,
                &"-t",
                &types,
                &"--envelope",
                &"--to",
                &form,
                &"--values-per-byte",
                &most,
            ])
        };
        let (code, out, err) = decode("32");
        let said = format!("{out}{err}");
        assert!(code == 1 && said.contains("--values-per-byte allows more"), "{said}");
        let (code, out, err) = decode("10000");
        assert!(code == 0 && out.len() > 40_000 * 5, "{err}");
    }
}
