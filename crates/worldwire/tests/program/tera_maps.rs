//! Maps of opcodes: those that commands do not take, and those that nobody finds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(name)
}

/// A folder with the capture of TERA, and all that belongs to it.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(sample("tera-login.pcapng"), folder.path().join("a.pcapng")).unwrap();
    for part in ["definitions", "map", "integrity"] {
        fs::create_dir_all(folder.path().join("data").join(part)).unwrap();
        for file in fs::read_dir(sample("tera").join(part)).unwrap() {
            let file = file.unwrap();
            let copy = folder.path().join("data").join(part).join(file.file_name());
            fs::copy(file.path(), copy).unwrap();
        }
    }
    folder
}

/// Standard output, standard error, exit code.
fn run(folder: &TempDir, arguments: &str) -> (String, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(folder.path()).args(arguments.split(' '));
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

/// Carries a map over from a capture to the same one.
fn carry(folder: &TempDir, old_map: &str, rest: &str) -> (String, String, i32) {
    let data = "--data data/definitions";
    let of = format!("--old a.pcapng --old-map {old_map} --new a.pcapng {data}{rest}");
    run(folder, &format!("tera map carry {of}"))
}

#[test]
fn one_of_several_maps_is_written_to_a_file_first() {
    let folder = folder();
    let maps = r#"{"maps": {"7": {"S_CHAT": 1}, "8": {"S_CHAT": 2}}}"#;
    fs::write(folder.path().join("data.json"), maps).unwrap();
    fs::write(folder.path().join("x.map"), "S_CHAT = 2\n").unwrap();
    for (out, said, code) in
        [run(&folder, "tera map diff data.json x.map"), carry(&folder, "data.json", "")]
    {
        assert_eq!((&*out, code), ("", 2), "{said}");
        assert!(
            said.contains("data.json: wanted a file with one map, found those of 7, 8"),
            "{said}"
        );
        // What it says works, and then so does the command.
        let convert = said.trim_end().rsplit("worldwire ").next().unwrap();
        let convert = convert.replace("NUMBER", "7");
        assert_eq!(run(&folder, &convert), (String::new(), String::new(), 0), "{convert}");
        let diff = run(&folder, "tera map diff protocol.7.map x.map");
        assert_eq!(diff, ("S_CHAT 1 -> 2\n".to_owned(), String::new(), 0));
        fs::remove_file(folder.path().join("protocol.7.map")).unwrap();
    }
    // Where there is such an option, it is still asked for.
    let (_, said, code) = run(&folder, "tera map show data.json");
    assert_eq!((&*said, code), ("worldwire: data.json: wanted --revision with one of 7, 8\n", 2));
}

#[test]
fn a_map_of_another_build_carries_nothing_over() {
    let folder = folder();
    for name in ["protocol.385363.map", "protocol.999001.map", "old.map"] {
        // What is the same in every build proves nothing.
        let map = "C_CHECK_VERSION = 19900\nS_CHECK_VERSION = 19901\nS_CHAT = 1\n";
        fs::write(folder.path().join(name), map).unwrap();
    }
    for (name, wanted) in [
        ("protocol.385363.map", "the map is of revision 385363, the client of 999001"),
        ("protocol.999001.map", "both are of revision 999001; check what is in the map"),
        ("old.map", "check that it is of revision 999001, that of the client"),
    ] {
        let wanted =
            format!("worldwire: a.pcapng: none of its 10 opcodes is in {name}: {wanted}\n");
        let result = carry(&folder, name, " -o new.map");
        assert_eq!(result, (String::new(), wanted, 1));
        assert!(!folder.path().join("new.map").exists());
    }
}

#[test]
fn a_map_of_system_messages_is_no_map_of_opcodes() {
    let folder = folder();
    let map = folder.path().join("data/map/sysmsg.98.map");
    // Also where its name does not tell.
    fs::copy(map, folder.path().join("old.map")).unwrap();
    for name in ["data/map/sysmsg.98.map", "old.map"] {
        let wanted =
            format!("worldwire: {name}: wanted a map of opcodes, found one of system messages\n");
        assert_eq!(carry(&folder, name, " -o new.map"), (String::new(), wanted, 2));
        assert!(!folder.path().join("new.map").exists());
    }
}

#[test]
fn a_new_map_has_a_name_to_be_found_by() {
    let folder = folder();
    let told = "--data finds a map by its name: call it protocol.999001.map\n";
    let rank = "tera def rank 51042 --from a.pcapng --data data/definitions --write";
    let old = "data/map/protocol.999001.map";
    for write in ["rank.map", "rank.txt"] {
        let (_, said, code) = run(&folder, &format!("{rank} {write}"));
        assert_eq!((said, code), (format!("worldwire: {write}: {told}"), 0));
        // Whoever does not listen is told again.
        let (_, said, code) =
            run(&folder, &format!("dissect a.pcapng --data data/definitions --data {write}"));
        let wanted = format!(
            "worldwire: {write}: wanted definitions of messages, found none; maps of TERA are found \
             by the names of their files: protocol.REVISION.map, with the revision of the client, \
             and sysmsg.PATCH.map for system messages\n"
        );
        assert_eq!((said, code), (wanted, 2));
    }
    // The number of another build is no better than none.
    for write in ["carry.map", "protocol.7.map"] {
        let (_, said, code) = carry(&folder, old, &format!(" -o {write}"));
        assert_eq!((said, code), (format!("worldwire: {write}: {told}"), 0));
    }
    let write = "protocol.999001.map";
    assert_eq!(run(&folder, &format!("{rank} {write}")).1, "");
    let (_, said, code) =
        run(&folder, &format!("dissect a.pcapng --data data/definitions --data {write} --quiet"));
    assert_eq!((&*said, code), ("", 0));
    fs::remove_file(folder.path().join(write)).unwrap();
    assert_eq!(carry(&folder, old, &format!(" -o {write}")).1, "");
    // What is no map at all is not taken for one.
    fs::write(folder.path().join("notes.txt"), "nothing of TERA\n").unwrap();
    let (_, said, _) = run(&folder, "dissect a.pcapng --data notes.txt");
    assert_eq!(said, "worldwire: notes.txt: wanted definitions of messages, found none\n");
}
