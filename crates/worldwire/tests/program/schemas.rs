//! Checks the program's output against the JSON schemas in `docs`.

use std::path::Path;
use std::process::Command;

use worldwire_core::json::{Json, parse};
use worldwire_core::testing::schema::valid;

/// The samples, with the options that decode them.
const SAMPLES: [(&str, &[&str]); 10] = [
    ("ki-login.pcapng", &["--keys", "samples/ki-keys.toml", "--data", "samples/ki-messages"]),
    ("ki-server.pcapng", &["--keys", "samples/ki-server-keys.toml"]),
    ("mxo-crowd.pcapng", &["--keys", "samples/mxo-crowd-keys.toml"]),
    ("mxo-login.pcapng", &["--keys", "samples/mxo-login-keys.toml"]),
    ("mxo-world.pcapng", &["--keys", "samples/mxo-keys.toml"]),
    ("tera-login.pcapng", &["--data", "samples/tera"]),
    ("uru-age.pcapng", &["--keys", "samples/uru-keys.toml", "--data", "samples/sdl"]),
    ("uru-games.pcapng", &["--keys", "samples/uru-keys.toml"]),
    ("uru-login.pcapng", &["--keys", "samples/uru-wrong-keys.toml"]),
    ("uru-walk.pcapng", &["--keys", "samples/uru-keys.toml", "--data", "samples/sdl"]),
];

fn lines(arguments: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    let output = command.args(arguments).current_dir(root).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(str::to_owned).collect()
}

fn check(schema: &Json, arguments: &[&str]) {
    for line in lines(arguments) {
        let json = parse(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if let Err(why) = valid(schema, schema, &json) {
            panic!("{arguments:?}: {why}: {line}");
        }
    }
}

#[test]
fn dissected_lines_match_their_schema() {
    let schema = parse(include_str!("../../../../docs/lines.schema.json")).unwrap();
    for (name, options) in SAMPLES {
        let file = format!("samples/{name}");
        for form in ["--json", "--json-safe"] {
            let mut arguments = vec!["dissect", &file, form, "--quiet"];
            arguments.extend(options);
            check(&schema, &arguments);
            // Without keys and definitions, less can be decoded.
            check(&schema, &["dissect", &file, form, "--quiet"]);
        }
    }
    let all = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples"));
    let captures = all.unwrap().filter(|entry| {
        entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "pcapng")
    });
    assert_eq!(captures.count(), SAMPLES.len(), "list new samples here");
    let follow = ["follow", "samples/uru-login.pcapng", "--stream", "1", "--json", "--quiet"];
    check(&schema, &follow);
    for wrong in [
        r#"{"time":1,"stream":0,"family":"uru","from":"client","name":"a","fields":{}}"#,
        r#"{"time":1,"stream":0,"family":"uru","from":"me","name":"a","fields":{},"range":[0,1]}"#,
        r#"{"time":1,"stream":0,"family":"uru","from":"client","name":"a","fields":{},"range":[0]}"#,
    ] {
        assert!(valid(&schema, &schema, &parse(wrong).unwrap()).is_err(), "{wrong}");
    }
}

#[test]
fn codecs_match_their_schema() {
    let schema = parse(include_str!("../../../../docs/codecs.schema.json")).unwrap();
    check(&schema, &["codecs", "--json"]);
    check(&schema, &["codecs", "uru", "--json"]);
    for line in lines(&["codecs", "--json"]) {
        let name = parse(&line).unwrap()["codec"].as_str().unwrap().to_owned();
        check(&schema, &["codecs", &name, "--json"]);
    }
    check(&schema, &["codecs", "uru.auth", "AcctLoginRequest", "--json"]);
    check(&schema, &["codecs", "uru.net-message", "plNetMsgVoice", "--json"]);
    let auth = &lines(&["codecs", "uru.auth", "--json"])[0];
    let auth = parse(auth).unwrap();
    let named = |list: &Json, name: &str| {
        list.as_array().unwrap().iter().find(|it| it["name"].as_str() == Some(name)).cloned()
    };
    let login = named(&auth["messages"], "AcctLoginRequest").unwrap();
    assert!(named(&login["fields"], "accountName").is_some());
    assert!(named(&auth["values"]["NetError"], "Success").is_some());
}
