//! Opcode maps that commands refuse, and those that they do not find.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(name)
}

/// A folder with the TERA capture and everything that it needs.
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
fn one_of_several_maps_must_be_extracted_first() {
    let folder = folder();
    let maps = r#"{"maps": {"7": {"S_CHAT": 1}, "8": {"S_CHAT": 2}}}"#;
    fs::write(folder.path().join("data.json"), maps).unwrap();
    fs::write(folder.path().join("x.map"), "S_CHAT = 2\n").unwrap();
    for (out, said, code) in
        [run(&folder, "tera map diff data.json x.map"), carry(&folder, "data.json", "")]
    {
        assert_eq!((&*out, code), ("", 2), "{said}");
        assert!(
            said.contains("data.json: contains the maps of 7, 8; to extract one of them"),
            "{said}"
        );
        // The suggested command works, and so does the original command when repeated after it.
        let convert = said.trim_end().rsplit("worldwire ").next().unwrap();
        let convert = convert.replace("NUMBER", "7");
        assert_eq!(run(&folder, &convert), (String::new(), String::new(), 0), "{convert}");
        let diff = run(&folder, "tera map diff protocol.7.map x.map");
        assert_eq!(diff, ("S_CHAT 1 -> 2\n".to_owned(), String::new(), 0));
        fs::remove_file(folder.path().join("protocol.7.map")).unwrap();
    }
    // For commands with such an option, the option is still suggested.
    let (_, said, code) = run(&folder, "tera map show data.json");
    assert_eq!((&*said, code), ("worldwire: data.json: needs --revision with one of 7, 8\n", 2));
}

#[test]
fn carrying_needs_definitions() {
    let folder = folder();
    let sdl = sample("sdl");
    let of = "--old a.pcapng --old-map data/map/protocol.999001.map --new a.pcapng -o new.map";
    let (out, said, code) =
        run(&folder, &format!("tera map carry {of} --data {}", sdl.to_str().unwrap()));
    assert_eq!((&*out, code), ("", 2), "{said}");
    assert!(said.ends_with("sdl: contains no TERA definitions\n"), "{said}");
    assert!(!folder.path().join("new.map").exists());
}

#[test]
fn a_second_map_is_not_taken_for_a_name() {
    let folder = folder();
    let map = "data/map/protocol.999001.map";
    let (_, said, code) = run(&folder, &format!("tera map show {map} {map}"));
    let advice = "is not in the map; this command reads one map, and `tera map diff OLD NEW` \
                  compares two\n";
    assert_eq!((said, code), (format!("worldwire: {map}: {advice}"), 1));
}

#[test]
fn a_map_of_another_build_is_refused() {
    let folder = folder();
    for name in ["protocol.385363.map", "protocol.999001.map", "old.map"] {
        // Opcodes that are the same in every build prove nothing.
        let map = "C_CHECK_VERSION = 19900\nS_CHECK_VERSION = 19901\nS_CHAT = 1\n";
        fs::write(folder.path().join(name), map).unwrap();
    }
    for (name, wanted) in [
        (
            "protocol.385363.map",
            "the map is for revision 385363, but the client is revision 999001",
        ),
        ("protocol.999001.map", "both are for revision 999001; check the map's entries"),
        ("old.map", "check that it is for the client's revision 999001"),
    ] {
        let wanted =
            format!("worldwire: a.pcapng: none of its 10 opcodes are in {name}: {wanted}\n");
        let result = carry(&folder, name, " -o new.map");
        assert_eq!(result, (String::new(), wanted, 1));
        assert!(!folder.path().join("new.map").exists());
    }
}

#[test]
fn a_map_of_system_messages_is_no_map_of_opcodes() {
    let folder = folder();
    let map = folder.path().join("data/map/sysmsg.98.map");
    // A copy whose name does not show what it contains is refused, too.
    fs::copy(map, folder.path().join("old.map")).unwrap();
    for name in ["data/map/sysmsg.98.map", "old.map"] {
        let wanted = format!("worldwire: {name}: is a system message map, not an opcode map\n");
        assert_eq!(carry(&folder, name, " -o new.map"), (String::new(), wanted, 2));
        assert!(!folder.path().join("new.map").exists());
    }
}

#[test]
fn names_are_added_to_a_map() {
    let folder = folder();
    let old = "data/map/protocol.999001.map";
    let name = "protocol.999001.map";
    assert_eq!(carry(&folder, old, &format!(" -o {name}")).2, 0);
    let file = folder.path().join(name);
    let carried = fs::read_to_string(&file).unwrap();
    // The command suggested for the unresolved opcode works verbatim and finds its name.
    let command = carried.lines().last().and_then(|line| line.strip_prefix("# worldwire "));
    let command = command.unwrap();
    assert_eq!(
        command,
        format!("tera def rank 51042 --from a.pcapng --data data/definitions --write {name} --add")
    );
    let (_, said, code) = run(&folder, command);
    assert_eq!((&*said, code), ("", 0));
    let added = "S_PARTY_MEMBER_LIST = 51042 # score 55.5, 3 messages\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{carried}{added}"));
    // The opcode now has a name, and nothing is left to identify.
    let (_, said, code) = run(&folder, command);
    let wanted = format!("worldwire: {name}: already has opcode 51042, as S_PARTY_MEMBER_LIST\n");
    assert_eq!((said, code), (wanted, 1));
    let all = format!("tera def rank --from a.pcapng --data data/definitions --write {name} --add");
    let (_, said, code) = run(&folder, &all);
    assert_eq!((&*said, code), ("worldwire: a.pcapng: all messages have a name\n", 1));
    // Without the option, the existing map is refused.
    let (_, said, code) = run(&folder, all.strip_suffix(" --add").unwrap());
    let wanted = format!(
        "worldwire: {name}: already exists; use --force to overwrite it, or --add to extend it\n"
    );
    assert_eq!((said, code), (wanted, 2));
    // A name that is in the map is not proposed for any other opcode.
    fs::write(&file, "S_PARTY_MEMBER_LIST = 1\n").unwrap();
    let (out, _, _) = run(&folder, &format!("{all} --top 1"));
    assert!(!out.contains("S_PARTY_MEMBER_LIST"), "{out}");
    let map = fs::read_to_string(&file).unwrap();
    assert!(map.starts_with("S_PARTY_MEMBER_LIST = 1\nS_CHAT = 22087 # "), "{map}");
    assert_eq!(map.matches("S_PARTY_MEMBER_LIST").count(), 1, "{map}");
}

#[test]
fn an_integrity_list_is_written_where_it_is_found() {
    let folder = folder();
    let data = "--data data/definitions --data data/map";
    let list = |rest: &str| run(&folder, &format!("tera integrity a.pcapng {data}{rest}"));
    // The list is named after the patch, which only the client's revision or an option reveals.
    let (_, said, code) = list(" -o lists/");
    let wanted = "worldwire: -o lists/: the list is named after the patch, which is unknown; use \
                  --patch or a file name\n";
    assert_eq!((&*said, code), (wanted, 2));
    assert!(!folder.path().join("lists").exists());
    assert_eq!(list(" --patch 98.02 -o lists/"), (String::new(), String::new(), 0));
    let list = fs::read_to_string(folder.path().join("lists/98.json")).unwrap();
    assert_eq!(list, "[\n  \"C_START_SKILL\"\n]\n");
}

#[test]
fn a_new_map_is_named_so_that_it_is_found() {
    let folder = folder();
    let told = "--data finds maps by name: rename it to protocol.999001.map\n";
    let rank = "tera def rank 51042 --from a.pcapng --data data/definitions --write";
    let old = "data/map/protocol.999001.map";
    for write in ["rank.map", "rank.txt"] {
        let (_, said, code) = run(&folder, &format!("{rank} {write}"));
        assert_eq!((said, code), (format!("worldwire: {write}: {told}"), 0));
        // If the note is ignored, it is repeated.
        let (_, said, code) =
            run(&folder, &format!("dissect a.pcapng --data data/definitions --data {write}"));
        let wanted = format!(
            "worldwire: {write}: contains no definitions of messages; TERA maps are found by their \
             file names: protocol.REVISION.map, with the client's revision, and sysmsg.PATCH.map for system messages\n"
        );
        assert_eq!((said, code), (wanted, 2));
        // The message names the requested revision.
        let wanted = "; TERA maps are found by their file names: protocol.7.map for \
                      revision 7, and sysmsg.PATCH.map for system messages\n";
        let (_, said, _) = run(&folder, &format!("dissect a.pcapng --data {write} --revision 7"));
        assert!(said.ends_with(wanted), "{said}");
    }
    // Another build's number does not help.
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
    // There is no hint about map names for a file that is not a map.
    fs::write(folder.path().join("notes.txt"), "nothing of TERA\n").unwrap();
    let (_, said, _) = run(&folder, "dissect a.pcapng --data notes.txt");
    assert_eq!(said, "worldwire: notes.txt: contains no definitions of messages\n");
}
