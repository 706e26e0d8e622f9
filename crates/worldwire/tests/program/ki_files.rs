//! The client's files, found by name and by content, in archives and directories.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use worldwire_ki::file::wad::{Archive, BuildOptions, Inflater, build};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(name)
}

/// Runs the program. Returns its exit code and its output on both streams.
fn run(arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.arg("ki");
    arguments.iter().for_each(|argument| {
        command.arg(argument);
    });
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The files of the sample.
fn files() -> Vec<(String, Vec<u8>)> {
    let bytes = fs::read(sample("ki-zone.wad")).unwrap();
    let limits = worldwire_core::Limits::DEFAULT;
    let archive = Archive::parse(&bytes, &limits).unwrap();
    let mut inflater = Inflater::new();
    let entries = archive.entries().iter();
    let read = entries.map(|entry| {
        let file = archive.read(entry, &mut inflater).unwrap().unwrap().to_vec();
        (entry.name_lossy().into_owned(), file)
    });
    read.collect()
}

#[test]
fn files_without_a_known_name_are_found_by_content() {
    let folder = tempfile::tempdir().unwrap();
    let mut renamed = files();
    for (index, (name, bytes)) in renamed.iter_mut().enumerate() {
        *name = format!("{index}.bin");
        fs::write(folder.path().join(&*name), bytes).unwrap();
    }
    let archive = folder.path().join("other.wad");
    let entries = renamed.iter().map(|(name, bytes)| (&**name, &bytes[..]));
    fs::write(&archive, build(&BuildOptions::default(), entries).unwrap()).unwrap();
    for (noun, what, index) in [("nav", "NAV", 3), ("bcd", "BCD", 1), ("poi", "POI", 2)] {
        let (code, out, err) = run(&[&noun, &"check", &archive]);
        assert_eq!((code, &*out), (0, ""), "{noun}: {err}");
        assert_eq!(err.trim(), format!("1 {what} file, 0 with problems"));
        // In the folder, it exists twice, since it is in the archive, too.
        let (code, _, err) = run(&[&noun, &"check", &folder.path()]);
        assert_eq!(code, 0, "{err}");
        let wanted = format!("{index}.bin");
        let (_, _, err) = run(&[&noun, &"graphml", &folder.path()]);
        assert!(noun == "bcd" || err.is_empty() || err.contains(&wanted), "{err}");
    }
    let (code, out, _) = run(&[&"lang", &"find", &"hub", &archive]);
    assert_eq!((code, &*out), (0, "0_00000000  The Hub\n"));
}

#[test]
fn damaged_files_are_reported_and_others_processed() {
    let folder = tempfile::tempdir().unwrap();
    let nav = files().pop().unwrap().1;
    fs::write(folder.path().join("good.nav"), &nav).unwrap();
    fs::write(folder.path().join("cut.nav"), &nav[..nav.len() - 1]).unwrap();
    fs::write(folder.path().join("long.nav"), [&nav[..], &[1]].concat()).unwrap();
    let (code, _, err) = run(&[&"nav", &"check", &folder.path()]);
    assert_eq!(code, 1);
    assert!(err.contains("cut.nav: links at byte 66: wanted 24 bytes, found 23"), "{err}");
    assert!(err.contains("long.nav: 1 byte follows the end, at byte 90"), "{err}");
    assert!(err.ends_with("3 NAV files, 2 with problems\n"), "{err}");
    let (code, _, err) = run(&[&"nav", &"draw", &folder.path()]);
    assert!(code == 1 && err.contains("contains 3 files of this kind"), "{err}");
    let (code, _, err) = run(&[&"bcd", &"check", &folder.path()]);
    assert!(code == 1 && err.contains("contains no BCD file"), "{err}");
}

#[test]
fn files_that_a_folder_has_are_not_listed() {
    let folder = tempfile::tempdir().unwrap();
    let crc = worldwire_ki::file::wad::crc(b"123456789");
    let list = folder.path().join("list.csv");
    let rows = format!(
        "SrcFileName:STR,Size:UINT,CRC:UINT\r\na/good.bin,9,{crc}\r\nb.bin,9,{crc}\r\nc.bin,9,1\r\n"
    );
    fs::write(&list, rows).unwrap();
    fs::create_dir(folder.path().join("a")).unwrap();
    fs::write(folder.path().join("a/good.bin"), "123456789").unwrap();
    fs::write(folder.path().join("c.bin"), "123456789").unwrap();
    let arguments: [&dyn AsRef<std::ffi::OsStr>; 6] =
        [&"files", &"urls", &list, &"--prefix=http://a.example", &"--folder", &folder.path()];
    let (code, out, err) = run(&arguments);
    assert_eq!((code, &*err), (0, ""));
    assert_eq!(out, "http://a.example/b.bin\nhttp://a.example/c.bin\n");
    let (_, out, _) = run(&[&"files", &"list", &list, &"--folder", &folder.path()]);
    assert!(out.contains("current               9  2dfd2d88  a/good.bin\n"), "{out}");
    assert!(out.contains("missing               9  2dfd2d88  b.bin\n"), "{out}");
    assert!(out.contains("different             9  00000001  c.bin\n"), "{out}");
    assert!(out.contains("3 files, 27 bytes\n2 to download for "), "{out}");
    // Nothing outside the folder is read.
    fs::write(&list, "SrcFileName:STR,Size:UINT\r\n../x,9\r\n").unwrap();
    let (code, _, err) = run(&[&"files", &"list", &list, &"--folder", &folder.path()]);
    assert!(code == 1 && err.contains("../x: its name contains a `..` component"), "{err}");
}

#[test]
fn exports_have_the_requested_form() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("zone.gltf");
    let (code, _, err) = run(&[&"bcd", &"export", &sample("ki-zone.wad"), &"-o", &target]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("1 ray or plane was skipped"), "{err}");
    let gltf: serde_json::Value = serde_json::from_slice(&fs::read(target).unwrap()).unwrap();
    assert_eq!(gltf["nodes"].as_array().unwrap().len(), 4);
    let (code, svg, _) = run(&[&"bcd", &"draw", &sample("ki-zone.wad")]);
    assert!(code == 0 && svg.contains(">Pond</text>"), "{svg}");
    let (code, svg, _) = run(&[&"nav", &"draw", &sample("ki-zonemap.nav")]);
    assert!(code == 0 && svg.contains(">MadeUp/MU_Cave</text>"), "{svg}");
}

#[test]
fn an_output_name_with_a_wrong_extension_is_refused() {
    let (zone, map) = (sample("ki-zone.wad"), sample("ki-zonemap.nav"));
    let folder = tempfile::tempdir().unwrap();
    for (noun, verb, input, name, wanted) in [
        (
            "bcd",
            "export",
            &zone,
            "z.fbx",
            "glTF or OBJ needs the extension .gltf or .obj, not .fbx",
        ),
        ("bcd", "draw", &zone, "z.png", "SVG needs the extension .svg, not .png"),
        ("nav", "draw", &map, "n.png", "SVG needs the extension .svg, not .png"),
        ("nav", "graphml", &map, "n.svg", "GraphML needs the extension .graphml or .xml, not .svg"),
    ] {
        let output = folder.path().join(name);
        let (code, _, err) = run(&[&noun, &verb, input, &"-o", &output]);
        assert!(code == 2 && err.contains(wanted) && !output.exists(), "{err}");
        let output = folder.path().join(verb);
        let (code, _, err) = run(&[&noun, &verb, input, &"-o", &output, &"--force"]);
        assert!(code == 0 && output.exists(), "{err}");
    }
}
