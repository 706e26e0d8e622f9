//! Exports for Wireshark, as read by tshark: the names and values that our dissectors show match
//! those of `dissect --json`, message by message. Without tshark, the tests print that they are
//! skipped.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;
use worldwire_uru::vault::VaultNode;

use crate::samples::samples;

/// A sample, how to read it, and its family.
const CASES: [(&str, &str, &[&str], &[&str]); 9] = [
    ("ki", "ki-login.pcapng", &["--keys", "ki-keys.toml"], &["--data", "ki-messages"]),
    ("ki", "ki-server.pcapng", &["--keys", "ki-server-keys.toml"], &[]),
    ("mxo", "mxo-world.pcapng", &["--keys", "mxo-keys.toml"], &[]),
    ("mxo", "mxo-login.pcapng", &["--keys", "mxo-login-keys.toml"], &[]),
    ("tera", "tera-login.pcapng", &[], &["--data", "tera"]),
    ("uru", "uru-login.pcapng", &["--keys", "uru-keys.toml"], &[]),
    ("uru", "uru-age.pcapng", &["--keys", "uru-keys.toml"], &[]),
    ("uru", "uru-games.pcapng", &["--keys", "uru-keys.toml"], &[]),
    ("mxo", "mxo-crowd.pcapng", &["--keys", "mxo-crowd-keys.toml"], &[]),
];

/// Fields that a dissector shows as bytes because only program code describes them. Their messages
/// are those that `export wireshark` lists.
const OPAQUE: [&str; 6] = [
    "auth.ServerCaps.caps",
    "auth.FileListReply.files",
    "file.ManifestReply.manifest",
    "auth.AuthReply.fields",
    "margin.CertConnectRequest.fields",
    "margin.LoadCharacterReply.fields",
];

fn ours(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(samples()).args(arguments).output().unwrap()
}

/// Runs tshark with the dissector in a folder; `None` if tshark is not installed.
fn tshark(folder: &Path, arguments: &[&str]) -> Option<Output> {
    let found = Command::new("tshark").arg("--version").stdout(Stdio::null()).status();
    if found.is_err() {
        println!("skipped: tshark is not installed");
        return None;
    }
    let mut command = Command::new("tshark");
    // tshark is given its own directories, so that no other dissector is loaded.
    command.env("HOME", folder).env("XDG_CONFIG_HOME", folder);
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("Lua:"), "{arguments:?}: {errors}");
    Some(output)
}

/// Writes a decrypted capture and a dissector. Returns their names.
fn export(folder: &Path, number: usize) -> [String; 2] {
    let (family, file, keys, data) = CASES[number];
    let capture = folder.join(format!("{number}.pcapng")).display().to_string();
    let script = folder.join(format!("{number}.lua")).display().to_string();
    let words = [&["export", "pcapng", file, "--decrypted", "-o", &capture][..], keys, data];
    let output = ours(&words.concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code < 2), "{file}: {errors}");
    let output = ours(&[&["export", "wireshark", family, "-o", &script][..], data].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    [capture, script]
}

/// A field of tshark's XML.
#[derive(Debug, Default)]
struct Field {
    name: String,
    /// `name: value`.
    label: String,
    show: String,
    /// The field's bytes in hexadecimal.
    value: String,
    fields: Vec<Self>,
}

impl Field {
    fn of(start: &BytesStart<'_>) -> Self {
        let text = |name: &str| {
            let found = start.try_get_attribute(name).unwrap();
            found.map(|it| unescape(&it.value).unwrap().into_owned()).unwrap_or_default()
        };
        let [name, label, show, value] = ["name", "showname", "show", "value"].map(text);
        Self { name, label, show, value, fields: Vec::new() }
    }

    /// The name of the field in messages.
    fn title(&self) -> &str {
        let label = if self.label.is_empty() { &self.show } else { &self.label };
        label.split(": ").next().unwrap().trim_end_matches(':')
    }

    /// The text of the value.
    fn text(&self) -> &str {
        self.label.split_once(": ").map_or("", |(_, text)| text)
    }

    fn named(&self, name: &str) -> Option<&Self> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// The elements of a protocol in all packets.
fn protocols(xml: &[u8], protocol: &str) -> Vec<Field> {
    let mut reader = Reader::from_str(str::from_utf8(xml).unwrap());
    let (mut open, mut found) = (vec![Field::default()], Vec::new());
    loop {
        match &reader.read_event().unwrap() {
            Event::Start(start) => open.push(Field::of(start)),
            Event::Empty(start) => open.last_mut().unwrap().fields.push(Field::of(start)),
            Event::End(_) => {
                let field = open.pop().unwrap();
                match field.name == protocol {
                    true => found.push(field),
                    false => open.last_mut().unwrap().fields.push(field),
                }
            }
            Event::Eof => return found,
            _ => {}
        }
    }
}

/// Compares a value in our JSON with a tshark field, and adds any differences.
fn compare(path: &str, ours: &Value, theirs: &Field, differences: &mut Vec<String>) {
    let mut differs = |why: &dyn std::fmt::Debug| {
        differences.push(format!("{path}: {ours} and {why:?}"));
    };
    match ours {
        Value::Object(object) if object.contains_key("$hex") => {
            if object["$hex"] != *theirs.value {
                differs(theirs);
            }
        }
        // Contents in another format, which only our program decodes.
        Value::Object(object) if object.contains_key("bytes") && theirs.fields.is_empty() => {
            compare(path, &object["bytes"], theirs, differences);
        }
        _ if OPAQUE.contains(&path) => {
            // The rest of the bytes follows the fields before the opaque one.
            let rest = theirs.fields.iter().find(|field| field.title() == "rest");
            if rest.unwrap_or(theirs).value.is_empty() {
                differs(theirs);
            }
        }
        Value::Object(object) => {
            let fields: Vec<&Field> = theirs.fields.iter().collect();
            compare_fields(path, object, &fields, differences);
        }
        Value::Array(names) if theirs.fields.is_empty() && theirs.label.contains(": ") => {
            let shown = theirs.text().split(", ").filter(|name| !name.is_empty());
            if !shown.eq(names.iter().map(|name| name.as_str().unwrap_or("?"))) {
                differs(theirs);
            }
        }
        Value::Array(items) => {
            if items.len() != theirs.fields.len() {
                return differs(theirs);
            }
            for (index, (item, field)) in items.iter().zip(&theirs.fields).enumerate() {
                compare(&format!("{path}[{index}]"), item, field, differences);
            }
        }
        Value::Bool(truth) => {
            if theirs.show != u8::from(*truth).to_string() {
                differs(theirs);
            }
        }
        Value::Number(number) if number.is_f64() => {
            if theirs.text().parse() != Ok(number.as_f64().unwrap()) {
                differs(theirs);
            }
        }
        Value::Number(number) => {
            let shown = match theirs.show.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).unwrap().to_string(),
                None => theirs.show.clone(),
            };
            if shown != number.to_string() {
                differs(theirs);
            }
        }
        Value::String(text) => {
            // tshark escapes control characters and backslashes in labels.
            let label = theirs.text().replace("\\v", "\u{b}").replace("\\\\", "\\");
            let named = theirs.text().rsplit_once(" (").map_or("", |(name, _)| name);
            if theirs.show != *text && label != *text && named != text {
                differs(theirs);
            }
        }
        Value::Null => {}
    }
}

fn compare_fields(
    path: &str,
    ours: &serde_json::Map<String, Value>,
    theirs: &[&Field],
    differences: &mut Vec<String>,
) {
    let mut seen = Vec::new();
    for (name, value) in ours {
        match theirs.iter().find(|field| field.title() == name) {
            Some(field) => compare(&format!("{path}.{name}"), value, field, differences),
            None if value.is_null() => {}
            // In a message without a definition, the header contains these.
            None if ours.contains_key("payload") && matches!(&**name, "length" | "opcode") => {}
            // The game's second name for a field of a vault node, which depends on the node's type.
            None if path.ends_with(".node") && !is_node_field(name) => {}
            None => differences.push(format!("{path}.{name}: {value} is missing")),
        }
        seen.push(name.as_str());
    }
    let more = theirs.iter().map(|field| field.title()).filter(|title| !seen.contains(title));
    differences.extend(more.map(|title| format!("{path}.{title}: only tshark shows it")));
}

fn is_node_field(name: &str) -> bool {
    VaultNode::FIELDS.iter().any(|(_, known)| *known == name)
}

#[test]
fn dissectors_show_the_same_names_and_values() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (family, file, keys, data)) in CASES.into_iter().enumerate() {
        let [capture, script] = export(folder.path(), number);
        let load = format!("lua_script:{script}");
        let Some(output) = tshark(folder.path(), &["-X", &load, "-r", &capture, "-T", "pdml"])
        else {
            return;
        };
        let found = protocols(&output.stdout, &format!("worldwire_{family}"));
        let lines = ours(&[&["dissect", file, "--json", "--quiet"][..], keys, data].concat());
        let lines = String::from_utf8(lines.stdout).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        // Notes are not messages.
        let messages: Vec<Value> = lines.filter(|line| line["fields"]["what"].is_null()).collect();
        assert_eq!(found.len(), messages.len(), "{file}");
        assert!(messages.len() > 10, "{file}");
        let mut differences = Vec::new();
        for (message, proto) in messages.iter().zip(&found) {
            let name = message["name"].as_str().unwrap();
            let shown = proto.named(&format!("{family}.message.name")).unwrap();
            assert_eq!(shown.show, name, "{file}");
            let unread = proto.named("_ws.expert");
            assert!(unread.is_none(), "{file}: {name}: {unread:?}");
            let fields = message["fields"].as_object().unwrap();
            let is_ours = |field: &Field| !field.name.starts_with(&format!("{family}.message."));
            // JSON lines have the trailer beside the fields.
            let shown = proto.fields.iter().filter(|it| is_ours(it) && it.name != "ki.trailer");
            compare_fields(name, fields, &shown.collect::<Vec<_>>(), &mut differences);
        }
        assert!(differences.is_empty(), "{file}:\n{}", differences.join("\n"));
    }
}

#[test]
fn streams_are_followed_and_comments_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let [capture, _] = export(folder.path(), 5);
    let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.comment"];
    let read = [&["-r", &capture, "-Y", "frame.comment"][..], &fields].concat();
    let Some(output) = tshark(folder.path(), &read) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    let login = text.lines().find(|line| line.contains("auth.AcctLoginRequest")).unwrap();
    assert!(login.starts_with("1767225600.383100000\t"), "{login}");
    assert!(login.contains("accountName=\"shorah@example.org\" os="), "{login}");
    assert!(!text.contains("a9132248bb2c6ebbf356556aa8020c33f7f6a3db"), "a digest is shown");
    // There are no errors in the layers below our dissectors.
    let warnings = ["-r", &capture, "-Y", "_ws.expert.severity >= \"Warning\" or _ws.malformed"];
    let output = tshark(folder.path(), &warnings).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let output = tshark(folder.path(), &["-r", &capture, "-q", "-z", "follow,tcp,raw,2"]).unwrap();
    let followed = String::from_utf8(output.stdout).unwrap();
    // The account name in AcctLoginRequest, as UTF-16.
    assert!(followed.contains("730068006f0072006100680040"), "{followed}");
}

/// Without a command, as in Wireshark's extcap directory.
#[test]
fn interfaces_are_described_as_wireshark_asks() {
    let text = |arguments: &[&str]| {
        let output = ours(arguments);
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let interfaces = text(&["--extcap-interfaces", "--extcap-version=4.0"]);
    assert_eq!(interfaces, text(&["extcap", "--extcap-interfaces"]));
    assert!(interfaces.contains("interface {value=worldwire-recording}"), "{interfaces}");
    for interface in ["worldwire-live", "worldwire-recording"] {
        let dlts = text(&["--extcap-dlts", "--extcap-interface", interface]);
        assert_eq!(dlts, "dlt {number=1}{name=EN10MB}{display=Ethernet}\n");
        let options = text(&["--extcap-config", "--extcap-interface", interface]);
        assert!(options.contains("{call=--keys}"), "{options}");
    }
    let refused = ours(&["--extcap-dlts", "--extcap-interface", "eth0"]);
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(errors.contains("unknown interface \"eth0\"; use worldwire-live"), "{errors}");
}

/// Wireshark is told that nothing can be delivered. Problems inside a capture are reported as
/// comments on packets.
#[test]
fn a_refused_key_file_or_capture_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let [latin, out] = ["latin.toml", "out"].map(|name| folder.path().join(name));
    fs::write(&latin, [b'a', 0xe9]).unwrap();
    let (latin, out) = (latin.to_str().unwrap(), out.to_str().unwrap());
    let plain = folder.path().join("plain.pcapng").display().to_string();
    let export = ["export", "pcapng", "uru-login.pcapng", "--keys", "uru-keys.toml"];
    let output = ours(&[&export[..], &["--decrypted", "-o", &plain]].concat());
    assert!(output.status.code().is_some_and(|code| code < 2));
    for (file, keys, wanted) in [
        ("uru-login.pcapng", latin, "not UTF-8 text"),
        ("uru-login.pcapng", "tera/revisions.json", "worldwire: tera/revisions.json: "),
        ("uru-keys.toml", "uru-keys.toml", "not a pcap or pcapng capture"),
        (
            &plain,
            "uru-keys.toml",
            "decrypted messages for Wireshark, from `worldwire export pcapng`",
        ),
    ] {
        let interface = ["--capture", "--extcap-interface", "worldwire-recording"];
        let more = ["--fifo", out, "--file", file, "--keys", keys];
        let output = ours(&[&interface[..], &more].concat());
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{file} {keys}: {errors}");
        assert!(errors.contains(wanted), "{errors}");
    }
}

/// Two messages are built in and have the same numbers in every build.
#[test]
fn a_dissector_without_some_definitions_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for name in ["map", "definitions"] {
        fs::create_dir_all(data.join(name)).unwrap();
    }
    let map = data.join("map/protocol.999001.map");
    fs::write(&map, "C_CHAT 5001\nS_CHAT 5002\n").unwrap();
    let script = folder.path().join("tera.lua");
    let export = || {
        let words = ["export", "wireshark", "tera", "--force", "-o", script.to_str().unwrap()];
        let output = ours(&[&words[..], &["--data", data.to_str().unwrap()]].concat());
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), errors, script.exists())
    };
    let name = "definitions/C_CHAT.1.def";
    fs::copy(samples().join("tera").join(name), data.join(name)).unwrap();
    fs::write(data.join("definitions/S_CHAT.2.def"), "strange field\n").unwrap();
    let (code, errors, is_written) = export();
    assert_eq!((code, is_written), (Some(1), true), "{errors}");
    assert!(errors.contains("S_CHAT.2.def:1:"), "{errors}");
    assert!(errors.contains("definitions with errors were skipped"), "{errors}");
    fs::remove_file(data.join("definitions/S_CHAT.2.def")).unwrap();
    assert_eq!(export(), (Some(0), "3 messages described\n".to_owned(), true));
}

/// tshark lists the interfaces, starts the program, and reads packets from it.
#[cfg(unix)]
#[test]
fn tshark_reads_from_the_interface() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::os::unix::process::CommandExt as _;

    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("extcap/worldwire");
    fs::create_dir(folder.path().join("extcap")).unwrap();
    symlink(env!("CARGO_BIN_EXE_worldwire"), &program).unwrap();
    for name in ["uru-login.pcapng", "uru-keys.toml"] {
        fs::copy(samples().join(name), folder.path().join(name)).unwrap();
    }
    // tshark looks in another directory only for users without privileges.
    let is_root = fs::metadata(folder.path()).unwrap().uid() == 0;
    let command = |program: &Path| {
        let mut command = Command::new(program);
        if is_root {
            command.uid(65_534).gid(65_534);
        }
        command.env("HOME", folder.path()).env("XDG_CONFIG_HOME", folder.path());
        command.env("WIRESHARK_EXTCAP_DIR", folder.path().join("extcap"));
        command.current_dir(folder.path());
        command
    };
    if command(&program).arg("--version").output().is_err() {
        println!("skipped: other users cannot run the program under test");
        return;
    }
    let Ok(listed) = command(Path::new("tshark")).arg("-D").output() else {
        println!("skipped: tshark is not installed");
        return;
    };
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("worldwire-recording (worldwire: decrypted messages"), "{listed}");
    let option = |name: &str, file: &str| {
        let file = folder.path().join(file);
        format!("extcap.worldwire_recording.{name}:{}", file.display())
    };
    let (file, keys) = (option("file", "uru-login.pcapng"), option("keys", "uru-keys.toml"));
    let words = ["-i", "worldwire-recording", "-o", &file, "-o", &keys, "-c", "60"];
    let fields = ["-T", "fields", "-e", "frame.comment"];
    let read = command(Path::new("tshark")).args(words).args(fields).output().unwrap();
    let comments = String::from_utf8_lossy(&read.stdout).into_owned();
    let errors = String::from_utf8_lossy(&read.stderr);
    assert!(comments.contains("auth.AcctLoginRequest"), "{comments}\n{errors}");
}
