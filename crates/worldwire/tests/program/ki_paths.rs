//! Paths of files in archives, archives on standard input, and messages about wrong names.

use std::fs;

use worldwire_ki::file::wad::{Archive, Inflater};

use crate::ki_home::{Home, ends, sample};

/// A folder with a type list and an archive.
fn home() -> Home {
    let home = Home::empty();
    home.put("types.json", sample("ki-types.json"));
    home.archive("pets.wad", &[("Data/Nyx.xml", &sample("ki-pet.xml")), ("Root.txt", b"text")]);
    home
}

/// Adds an archive with two graphs; the first one has zones.
fn add_graphs(home: &Home) {
    let (zones, zone) = (sample("ki-zonemap.nav"), nav_of_a_zone());
    home.archive("nav.wad", &[("Zones/W0/zone.nav", &zone), ("zonemap.nav", &zones)]);
}

fn nav_of_a_zone() -> Vec<u8> {
    let (bytes, limits) = (sample("ki-zone.wad"), worldwire_core::Limits::DEFAULT);
    let archive = Archive::parse(&bytes, &limits).unwrap();
    let entry = archive.entries().iter().find(|entry| entry.name_lossy() == "zone.nav").unwrap();
    archive.read(entry, &mut Inflater::new()).unwrap().unwrap().to_vec()
}

#[test]
fn one_file_of_an_archive_is_named_by_its_path() {
    let home = home();
    let (alone, _) = {
        fs::write(home.at("Nyx.xml"), sample("ki-pet.xml")).unwrap();
        ends(&home.run(&["op", "decode", "Nyx.xml", "-t", "types.json"]), 0)
    };
    // The path has the form in which `ki find` prints it.
    let (found, _) =
        ends(&home.run(&["find", "--where", "MadeUpPet", "pets.wad", "-t", "types.json"]), 0);
    let path = found.split_whitespace().next().unwrap();
    assert_eq!(path, "pets.wad/Data/Nyx.xml");
    let (out, err) = ends(&home.run(&["op", "decode", path, "-t", "types.json"]), 0);
    assert_eq!((out, &*err), (alone, ""));
    ends(&home.run(&["op", "decode", path, "-t", "types.json", "-o", "out/"]), 0);
    assert!(home.at("out/Nyx.xml.json").is_file());
    let (_, err) = ends(&home.run(&["find", "--where", "MadeUpPet", path, "-t", "types.json"]), 0);
    assert!(err.starts_with("1 of 1 object;"), "{err}");
    let (out, _) = ends(&home.run(&["op", "guess", path, "-t", "types.json"]), 0);
    assert!(out.contains("class MadeUpPet: a BINd file"), "{out}");
    let (out, _) = ends(&home.run(&["op", "types", "types.json", "--used-in", path]), 0);
    assert_eq!(out.lines().count(), 2, "{out}");
    // Any other file is reported as not an object.
    let (_, err) = ends(&home.run(&["op", "decode", "pets.wad/Root.txt", "-t", "types.json"]), 1);
    assert!(err.starts_with("worldwire: pets.wad/Root.txt: "), "{err}");
    let (_, err) = ends(&home.run(&["op", "decode", "pets.wad/nyx.xml", "-t", "types.json"]), 1);
    let wanted = "worldwire: pets.wad: no file nyx.xml; did you mean \"Data/Nyx.xml\"?\n";
    assert_eq!(err, wanted);
}

#[test]
fn each_of_several_files_of_a_kind_can_be_named() {
    let home = home();
    add_graphs(&home);
    let (_, err) = ends(&home.run(&["nav", "draw", "nav.wad"]), 1);
    let wanted = "worldwire: nav.wad: contains 2 files of this kind (nav.wad/Zones/W0/zone.nav, \
                  nav.wad/zonemap.nav); name one\n";
    assert_eq!(err, wanted);
    let (out, _) = ends(&home.run(&["nav", "route", "nav.wad/zonemap.nav", "MU_Hub", "OT_Hub"]), 0);
    assert!(out.ends_with("Other/OT_Hub\n"), "{out}");
    let (out, err) = ends(&home.run(&["nav", "check", "nav.wad/Zones/W0/zone.nav"]), 0);
    assert_eq!((&*out, &*err), ("", "1 NAV file, 0 with problems\n"));
    ends(&home.run(&["nav", "graphml", "nav.wad/Zones/W0/none.nav"]), 1);
    for (name, near) in [("mu_cave", "MU_Cave"), ("MadeUp/MU_Caev", "MadeUp/MU_Cave")] {
        let (_, err) = ends(&home.run(&["nav", "route", "nav.wad/zonemap.nav", "MU_Hub", name]), 1);
        let hint = format!("no node \"{name}\"; did you mean \"{near}\"?\n");
        assert!(err.ends_with(&hint), "{err}");
    }
}

#[test]
fn archives_are_read_from_standard_input() {
    let home = home();
    let pets = fs::read(home.at("pets.wad")).unwrap();
    let (out, err) =
        ends(&home.fed(&pets, &["find", "--where", "MadeUpPet", "-", "-t", "types.json"]), 0);
    assert!(out.starts_with("standard input/Data/Nyx.xml  class MadeUpPet"), "{out}");
    assert!(err.starts_with("1 of 1 object;"), "{err}");
    let (out, err) = ends(&home.fed(&pets, &["op", "types", "types.json", "--used-in", "-"]), 0);
    assert!(out.lines().count() == 2 && err.is_empty(), "{out}{err}");
    let (out, err) = ends(&home.fed(&pets, &["op", "decode", "-", "-t", "types.json"]), 0);
    assert!(out.contains("\"m_name\":\"Nyx\""), "{out}");
    assert!(err.starts_with("1 decoded, 1 skipped, 0 failed; "), "{err}");
    let (out, _) = ends(&home.fed(&pets, &["op", "guess", "-t", "types.json"]), 0);
    assert!(out.contains("standard input/Data/Nyx.xml: class MadeUpPet"), "{out}");
    // Anything else is a single file, as before.
    let pet = sample("ki-pet.xml");
    let (out, err) = ends(&home.fed(&pet, &["op", "decode", "-", "-t", "types.json"]), 0);
    assert!(out.starts_with("{\"object\":") && err.is_empty(), "{out}{err}");
}

#[test]
fn unknown_properties_are_refused_at_every_depth() {
    let home = home();
    for (filter, said) in [
        ("m_snacks.m_pints == 1", "no class has a property m_pints; did you mean m_points?"),
        ("m_position.w2 == 1", "no class has a property w2"),
        ("m_rights has CHATT", "m_rights has no value named CHATT; did you mean CHAT?"),
        ("m_rights in {CHAT, NOPE}", "m_rights has no value named NOPE"),
    ] {
        let (out, err) =
            ends(&home.run(&["find", "--where", filter, "pets.wad", "-t", "types.json"]), 2);
        assert_eq!((&*out, &*err), ("", &*format!("worldwire: --where: {said}\n")), "{filter}");
    }
    for filter in [
        "m_snacks.m_points == 25 and m_position.x > 1 and m_rights has CHAT",
        "m_name == Nyx and m_rights has HATCH and exists(m_snacks.$class)",
    ] {
        let (out, _) =
            ends(&home.run(&["find", "--where", filter, "pets.wad", "-t", "types.json"]), 0);
        assert_eq!(out.lines().count(), 1, "{filter}");
    }
    for command in [
        &["find", "--where", "MadeUpPet", "none.wad", "-t", "types.json"][..],
        &["op", "types", "types.json", "--used-in", "none.wad"],
    ] {
        let (_, err) = ends(&home.run(command), 2);
        assert_eq!(err, "worldwire: none.wad: no such file or directory\n");
    }
}

#[test]
fn an_object_takes_the_name_of_no_other_file() {
    let home = home();
    let pet = sample("ki-pet.xml");
    home.archive("both.wad", &[("a/S2.xml", &pet), ("a/s2.xml.JSON", b"{}"), ("b.xml", &pet)]);
    let decode = ["op", "decode", "both.wad", "-t", "types.json", "-o", "out"];
    let (_, err) = ends(&home.run(&decode), 1);
    let wanted = "both.wad/a/S2.xml: not decoded: the archive also contains a/S2.xml.json\n";
    assert!(err.contains(wanted), "{err}");
    assert!(!home.at("out/a").exists() && home.at("out/b.xml.json").is_file());
    // Between files with the same name, the first wins.
    home.archive("twice.wad", &[("a.xml", &pet), ("b.xml", &pet)]);
    let mut twice = fs::read(home.at("twice.wad")).unwrap();
    let at = twice.windows(5).position(|window| window == b"b.xml").unwrap();
    twice[at] = b'a';
    fs::write(home.at("twice.wad"), twice).unwrap();
    let decode = ["op", "decode", "twice.wad", "-t", "types.json", "-o", "first"];
    let (_, err) = ends(&home.run(&decode), 1);
    let wanted = "worldwire: twice.wad/a.xml: skipped: an earlier file in the archive has the \
                  same name\n1 decoded, 0 skipped, 1 failed; ";
    assert!(err.starts_with(wanted), "{err}");
    // A damaged file is reported once.
    let mut bytes = fs::read(home.at("pets.wad")).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(home.at("bad.wad"), bytes).unwrap();
    let find = ["find", "--where", "MadeUpPet", "bad.wad", "-t", "types.json"];
    let (_, err) = ends(&home.run(&find), 1);
    assert!(err.starts_with("worldwire: bad.wad/Root.txt: "), "{err}");
    assert_eq!(err.matches("Root.txt").count(), 1, "{err}");
}

#[test]
fn several_lines_of_objects_are_refused() {
    let home = home();
    let pet = sample("ki-pet.xml");
    home.archive("two.wad", &[("a.xml", &pet), ("b.xml", &pet)]);
    let (lines, _) = ends(&home.run(&["op", "decode", "two.wad", "-t", "types.json"]), 0);
    let (_, err) = ends(&home.fed(lines.as_bytes(), &["op", "encode", "-", "-t", "types.json"]), 1);
    let wanted = "worldwire: standard input: contains several lines of JSON, not one object; \
                  `ki op decode -o FOLDER` writes files that `ki op encode FOLDER` reads\n";
    assert_eq!(err, wanted);
    let (_, err) =
        ends(&home.fed(b"{\"$class\":,}", &["op", "encode", "-", "-t", "types.json"]), 1);
    assert!(!err.contains("found expected"), "{err}");
}

#[test]
fn names_with_the_characters_of_patterns_are_names() {
    let home = home();
    let odd = "a/we ird ü [1]{a}.xml";
    home.archive("odd.wad", &[(odd, b"odd"), ("b[1].xml", b"b"), ("b1.xml", b"1"), ("c{", b"c")]);
    for name in [odd, "c{"] {
        let (out, _) = ends(&home.run(&["wad", "list", "odd.wad", name, "--json"]), 0);
        assert_eq!(out.lines().count(), 2, "{out}");
        assert!(out.contains(name), "{out}");
    }
    // A name takes precedence over the pattern.
    let (out, _) =
        ends(&home.run(&["wad", "update", "odd.wad", "--remove", "b[1].xml", "-o", "n.wad"]), 0);
    assert_eq!(out, "- b[1].xml\n");
    let (_, err) = ends(&home.run(&["wad", "list", "odd.wad", "d{"]), 2);
    assert!(err.contains("d{"), "{err}");
    let (out, _) = ends(
        &home.run(&["find", "--where", "ki", &format!("odd.wad/{odd}"), "-t", "types.json"]),
        0,
    );
    assert_eq!(out, "");
}

#[test]
fn patterns_that_match_nothing_say_what_would() {
    let home = home();
    for (pattern, hint) in [
        ("Data\\Nyx.xml", "; Data/Nyx.xml does"),
        ("data/nyx.xml", "; did you mean \"Data/Nyx.xml\"?"),
        ("data/*.XML", "; did you mean \"Data/Nyx.xml\"?"),
        ("Data/", "; Data/** does"),
        ("Data/Nix.xml", "; did you mean \"Data/Nyx.xml\"?"),
        ("none.wad", "; no such archive exists either"),
        ("*.dds", ""),
    ] {
        for command in ["list", "test", "extract"] {
            let (_, err) = ends(&home.run(&["wad", command, "pets.wad", pattern]), 1);
            let wanted = format!("worldwire: {pattern}: matches no file in the archive{hint}\n");
            assert_eq!(err, wanted, "{command}");
        }
    }
    // Some shells do not expand patterns.
    home.archive("more.wad", &[("x", b"x")]);
    let (out, _) = ends(&home.run(&["wad", "list", "*.wad"]), 0);
    assert!(out.contains("more.wad:\n") && out.contains("pets.wad:\n"), "{out}");
    ends(&home.run(&["wad", "list", "none*.wad"]), 2);
}

#[test]
fn existing_files_are_counted() {
    let home = home();
    let names: Vec<String> = (10..35).map(|number| format!("{number}.txt")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b"x"[..])).collect();
    home.archive("many.wad", &files);
    ends(&home.run(&["wad", "extract", "many.wad", "-C", "out"]), 0);
    let (_, err) = ends(&home.run(&["wad", "extract", "many.wad", "-C", "out"]), 2);
    let first =
        "10.txt: already exists; use --force to overwrite it, or --skip-existing to keep it\n";
    assert!(err.contains(first), "{err}");
    assert!(err.contains("worldwire: out: 15 more files already there\n"), "{err}");
    assert_eq!(err.lines().count(), 13, "{err}");
}

#[test]
fn what_is_no_file_of_the_kind_is_told_so() {
    let home = home();
    for (noun, kind) in [("nav", "NAV"), ("bcd", "BCD"), ("poi", "POI")] {
        let (_, err) = ends(&home.run(&[noun, "check", "types.json"]), 1);
        let wanted = format!("worldwire: types.json: is not a {kind} file: ");
        assert!(err.starts_with(&wanted), "{err}");
    }
    let (_, err) = ends(&home.run(&["nav", "draw", "pets.wad/Root.txt"]), 1);
    assert!(err.starts_with("worldwire: pets.wad/Root.txt: is not a NAV file: "), "{err}");
    fs::write(home.at("cut.nav"), [1, 0]).unwrap();
    let (_, err) = ends(&home.run(&["nav", "draw", "cut.nav"]), 1);
    assert!(!err.contains("is not a"), "{err}");
}

#[test]
fn the_extension_selects_the_format_of_collisions() {
    let home = home();
    fs::write(home.at("zone.wad"), sample("ki-zone.wad")).unwrap();
    for (name, arguments, is_gltf) in [
        ("a.obj", &[][..], false),
        ("c.OBJ", &[], false),
        ("none", &[], true),
        ("a.gltf", &[], true),
        ("b.obj", &["--to", "gltf"], true),
    ] {
        let export = [&["bcd", "export", "zone.wad", "-o", name], arguments].concat();
        let (_, err) = ends(&home.run(&export), 0);
        assert!(err.contains("zone.wad/collision.bcd: 1 ray or plane was skipped\n"), "{err}");
        let text = fs::read_to_string(home.at(name)).unwrap();
        assert_eq!(text.starts_with('{'), is_gltf, "{name}");
    }
}

#[test]
fn a_missing_folder_lacks_nothing() {
    let home = home();
    fs::write(home.at("list.bin"), sample("ki-files.bin")).unwrap();
    for command in [
        &["files", "list", "list.bin", "--folder", "none"][..],
        &["files", "urls", "list.bin", "--prefix=http://a.example", "--folder", "none"],
    ] {
        let (out, err) = ends(&home.run(command), 2);
        assert_eq!((&*out, &*err), ("", "worldwire: none: no such file or directory\n"));
    }
    let (_, err) = ends(&home.run(&["string-id", "--find", "0xffffffffff"]), 2);
    assert!(err.contains("at most 32 bits"), "{err}");
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_links_in_the_output() {
    let home = home();
    for name in ["out", "elsewhere"] {
        fs::create_dir(home.at(name)).unwrap();
    }
    std::os::unix::fs::symlink("../elsewhere", home.at("out/Data")).unwrap();
    let decode = ["op", "decode", "pets.wad", "-t", "types.json", "-o", "out"];
    let (_, err) = ends(&home.run(&decode), 2);
    let wanted =
        "worldwire: out/Data: refused: a link or file exists at the path of this directory\n";
    assert_eq!(err, wanted);
    assert_eq!(fs::read_dir(home.at("elsewhere")).unwrap().count(), 0);
}

#[test]
fn damaged_objects_in_xml_are_told() {
    let home = home();
    fs::create_dir(home.at("in")).unwrap();
    let text =
        "<Objects><Class Name=\"class MadeUpSnack\"><m_points>3</m_points></Class></Objects>";
    fs::write(home.at("in/whole.xml"), text).unwrap();
    fs::write(home.at("in/cut.xml"), &text[..50]).unwrap();
    let find = ["find", "--where", "m_points == 3", "in", "-t", "types.json"];
    let (out, err) = ends(&home.run(&find), 1);
    assert!(out.starts_with("in/whole.xml  class MadeUpSnack"), "{out}");
    assert!(err.starts_with("worldwire: in/cut.xml: line 1: "), "{err}");
    assert!(err.contains("1 of 1 object, 1 failed; "), "{err}");
}
