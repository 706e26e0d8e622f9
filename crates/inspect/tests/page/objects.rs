//! Game objects of an archive: edited, encoded and saved in changed copies.

use std::fs::{self, File};
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use worldwire_capture::CaptureWriter;
use worldwire_dissect::{Definitions, KiObjects, Options};
use worldwire_inspect::{KiArchive, Settings};
use worldwire_ki::file::wad::{Archive, BuildOptions, Inflater, build};
use worldwire_ki::object::{Header, Object, ObjectCodec, ObjectOptions};
use worldwire_ki::schema::classes::{Classes, TypeLists};

use crate::client::{Answer, Page, sample};

/// A page on an archive, with the directory that it may save copies in.
struct Edited {
    page: Page,
    folder: TempDir,
}

/// The classes of a type list.
fn classes(list: &[u8]) -> Arc<Classes> {
    let mut lists = TypeLists::new();
    lists.add("types.json", list).unwrap();
    Arc::new(lists.compile())
}

fn samples() -> Arc<Classes> {
    classes(&fs::read(sample("ki-types.json")).unwrap())
}

impl Edited {
    async fn open(classes: Option<Arc<Classes>>, archive: Vec<u8>, may_save: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("capture");
        fs::create_dir(&elsewhere).unwrap();
        let empty = elsewhere.join("empty.pcapng");
        CaptureWriter::new(File::create(&empty).unwrap(), &[]).unwrap().flush().unwrap();
        let archive = KiArchive::open("pets.wad", archive).unwrap();
        let archive = match may_save {
            true => archive.with_copies_in(folder.path().to_owned()),
            false => archive,
        };
        let mut definitions = Definitions::built_in();
        if let Some(classes) = classes {
            definitions.edit(|objects: &mut KiObjects| objects.set_classes(classes));
        }
        let options = Options { definitions, ..Options::default() };
        let settings = Settings { archive: Some(Arc::new(archive)), ..Settings::default() };
        Self { page: Page::open_with(&empty, options, settings).await, folder }
    }

    /// A page on an archive with a pet and other files.
    async fn pets() -> Self {
        Self::open(Some(samples()), pets(), true).await
    }

    /// The JSON of an object.
    async fn object(&self, file: u64) -> String {
        let answer = self.page.get(&format!("/api/archive/files/{file}/object")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["object"].as_str().unwrap().to_owned()
    }

    async fn encode(&self, file: u64, object: &str) -> Answer {
        let body = json!({ "object": object }).to_string();
        self.page.request("POST", &format!("/api/archive/files/{file}/encode"), &body).await
    }

    async fn copy(&self, request: &Value) -> Answer {
        self.page.request("POST", "/api/archive/copies", &request.to_string()).await
    }

    fn at(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).unwrap()
    }

    /// The names of the files in the directory.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name != "capture").collect();
        names.sort();
        names
    }
}

/// An archive whose files are, in order, a sound, a pet and a text.
fn pets() -> Vec<u8> {
    let pet = fs::read(sample("ki-pet.xml")).unwrap();
    let options = BuildOptions { flags: 1, ..BuildOptions::default() };
    build(&options, [("a.ogg", &b"sound"[..]), ("pet.xml", &pet), ("z.txt", b"text")]).unwrap()
}

/// The content of a file in an archive.
fn file(archive: &[u8], name: &str) -> Vec<u8> {
    let limits = worldwire_core::Limits::DEFAULT;
    let archive = Archive::parse(archive, &limits).unwrap();
    let entry = archive.entries().iter().find(|entry| *entry.name == *name.as_bytes()).unwrap();
    archive.read(entry, &mut Inflater::new()).unwrap().unwrap().to_vec()
}

/// A file with an object.
fn bind(classes: &Classes, json: &str) -> Vec<u8> {
    let codec = ObjectCodec::new(classes, ObjectOptions::file());
    let object = Object::parse_json(classes, json).unwrap();
    codec.encode(&object, Header { is_compressed: false, ..codec.header() }).unwrap()
}

#[tokio::test]
async fn an_object_is_edited_and_saved_with_everything_else_unchanged() {
    let edited = Edited::pets().await;
    assert_eq!(edited.page.get("/api/capture").await.json()["archive"]["editable"], true);
    let before = edited.object(1).await;
    let same = edited.encode(1, &before).await.json();
    assert_eq!(same["changed"], false);
    let shown = edited.page.get("/api/archive/files/1").await.json();
    assert_eq!(same["layers"], shown["layers"]);

    let after = before.replace("\"Nyx\"", "\"Nyxie ü\"");
    assert_ne!(before, after);
    let detail = edited.encode(1, &after).await.json();
    assert_eq!((&detail["changed"], &detail["error"]), (&json!(true), &Value::Null));
    let nodes = detail["nodes"].as_array().unwrap();
    let name = nodes.iter().find(|node| node["name"] == "m_name").unwrap();
    assert_eq!(name["value"], "\"Nyxie ü\"");

    let objects = json!([{ "file": 1, "object": after }]);
    let answer = edited.copy(&json!({ "name": "copy.wad", "objects": objects })).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let (old, new) = (pets(), edited.at("copy.wad"));
    assert_eq!(answer.json(), json!({ "file": "copy.wad", "size": new.len(), "changed": 1 }));
    assert_eq!(file(&old, "a.ogg"), file(&new, "a.ogg"));
    let pet = file(&new, "pet.xml");
    // The saved archive is the one that would be built from the changed file.
    let options = BuildOptions { flags: 1, ..BuildOptions::default() };
    let files = [("a.ogg", &b"sound"[..]), ("pet.xml", &pet), ("z.txt", b"text")];
    assert_eq!(new, build(&options, files).unwrap());

    // A single saved file has the same bytes.
    let answer = edited.copy(&json!({ "name": "pet.xml", "file": 1, "objects": objects })).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(edited.at("pet.xml"), pet);
    assert_eq!(edited.names(), ["copy.wad", "pet.xml"]);
    let classes = samples();
    let mut object = Object::new();
    ObjectCodec::new(&classes, ObjectOptions::file()).decode_all(&pet, &mut object).unwrap();
    assert_eq!(object.to_json(&classes).unwrap(), after);
    edited.page.end().await;
}

#[tokio::test]
async fn wrong_values_are_reported_at_their_fields() {
    let edited = Edited::pets().await;
    let before = edited.object(1).await;
    let snacks = "\"m_snacks\":[";
    let wrong = [
        ("\"m_points\":25", "\"m_points\":32", "m_snacks[0].m_points"),
        ("\"m_speed\":1.25", "\"m_speed\":\"fast\"", "m_speed"),
        ("\"m_rights\":[", "\"m_rights\":[\"FLY\",", "m_rights[0]"),
        ("\"x\":10.5", "\"x\":null", "m_position.x"),
        ("class MadeUpSnack", "class MadeUpSnake", "m_snacks[0].$class"),
        (snacks, "\"m_snacks\":[5,", "m_snacks[0]"),
        ("\"m_name\":\"Nyx\"", "\"m_name\":{\"$json\":\"\"}", "m_name"),
    ];
    for (from, to, field) in wrong {
        let after = before.replacen(from, to, 1);
        assert_ne!(before, after, "{from}");
        let answer = edited.encode(1, &after).await;
        assert_eq!((answer.status, &answer.json()["field"]), (409, &json!(field)), "{answer:?}");
        let objects = json!([{ "file": 1, "object": after }]);
        let answer = edited.copy(&json!({ "name": "a.wad", "objects": objects })).await;
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(answer.status == 409 && error.starts_with("pet.xml: "), "{answer:?}");
    }
    for (object, status) in [("null", 409), ("{", 409), ("{\"$class\":\"class MadeUpPet\"}", 200)] {
        assert_eq!(edited.encode(1, object).await.status, status, "{object}");
    }
    assert!(edited.names().is_empty());
    edited.page.end().await;
}

/// Nothing is overwritten, and nothing is written elsewhere.
#[tokio::test]
async fn copies_are_new_files_in_one_directory() {
    let edited = Edited::pets().await;
    fs::write(edited.folder.path().join("there.wad"), "old").unwrap();
    let after = edited.object(1).await.replace("Nyx", "Nyxie");
    let objects = json!([{ "file": 1, "object": after }]);
    let long = "a".repeat(256);
    for name in
        ["there.wad", "../up.wad", "/tmp/x.wad", "capture/x.wad", "", ".hidden", "a\0", &long]
    {
        let answer = edited.copy(&json!({ "name": name, "objects": objects })).await;
        assert_eq!((answer.status, &answer.json()["field"]), (409, &json!("name")), "{name}");
    }
    let wrong = [
        (json!([]), 409),
        (json!([{ "file": 0, "object": "{}" }]), 422),
        (json!([{ "file": 9, "object": "{}" }]), 404),
        (json!([objects[0], objects[0]]), 400),
        (json!([{ "file": 1 }]), 400),
        (json!((0..300).map(|_| objects[0].clone()).collect::<Vec<_>>()), 400),
    ];
    for (objects, status) in wrong {
        let answer = edited.copy(&json!({ "name": "new.wad", "objects": objects })).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    let request = json!({ "name": "new.wad", "path": "/tmp", "objects": objects });
    assert_eq!(edited.copy(&request).await.status, 400);
    let request =
        json!({ "name": "new.wad", "objects": [{ "file": 1, "object": "x".repeat(16 << 20) }] });
    assert_eq!(edited.copy(&request).await.status, 413);
    assert_eq!(edited.at("there.wad"), b"old");
    assert_eq!(edited.names(), ["there.wad"]);
    // Other sites, and requests without the token, save nothing.
    let Page { address, token, .. } = &edited.page;
    let body = json!({ "name": "new.wad", "objects": objects }).to_string();
    let head = format!(
        "POST /api/archive/copies HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    let refused = [
        (format!("Host: {address}\r\n"), 401),
        (
            format!(
                "Host: {address}\r\nAuthorization: Bearer {token}\r\nOrigin: http://evil.example\r\n"
            ),
            403,
        ),
        (format!("Host: evil.example\r\nAuthorization: Bearer {token}\r\n"), 421),
    ];
    for (headers, status) in refused {
        let answer = edited.page.send(&format!("{head}{headers}\r\n{body}")).await;
        assert_eq!(answer.status, status, "{headers}{answer:?}");
    }
    assert_eq!(edited.names(), ["there.wad"]);
    edited.page.end().await;

    let fixed = Edited::open(Some(samples()), pets(), false).await;
    assert_eq!(fixed.page.get("/api/capture").await.json()["archive"]["editable"], false);
    let answer = fixed.copy(&json!({ "name": "new.wad", "objects": objects })).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(fixed.names().is_empty());
    fixed.page.end().await;
}

#[tokio::test]
async fn what_cannot_be_edited_exactly_is_refused_with_the_reason() {
    let list = br#"{"class A": {"hash": 7, "properties": {
        "m_f": {"type": "float", "id": 0, "hash": 70}, "m_n": {"type": "int", "id": 1, "hash": 71},
        "m_s": {"type": "std::string", "id": 2, "hash": 72}}}}"#;
    let known = classes(list);
    let more = br#"{"class A": {"hash": 7, "properties": {
        "m_x": {"type": "int", "id": 0, "hash": 90}}}}"#;
    let strange = bind(&classes(more), r#"{"$class":"A","m_x":1}"#);
    let mut nan = bind(&known, r#"{"$class":"A","m_f":0.5}"#);
    let at = nan.windows(4).rposition(|four| four == 0.5_f32.to_le_bytes()).unwrap();
    nan[at..at + 4].copy_from_slice(&0x7fc0_1234_u32.to_le_bytes());
    let long = format!(r#"{{"$class":"A","m_s":"{}"}}"#, "x".repeat(5 << 20));
    let files = [
        ("a-strange.xml", strange),
        ("b-twice.xml", bind(&known, r#"{"$class":"A","m_n":1,"m_n":2}"#)),
        ("c-long.xml", bind(&known, &long)),
        ("d.txt", b"text".to_vec()),
        ("e-cut.xml", bind(&known, r#"{"$class":"A","m_n":1}"#)[..20].to_vec()),
        ("f-nan.xml", nan),
    ];
    let archive = files.iter().map(|(name, bytes)| (*name, &bytes[..]));
    let edited =
        Edited::open(Some(known), build(&BuildOptions::default(), archive).unwrap(), true).await;
    let reasons = [
        "cannot be decoded",
        "JSON does not preserve",
        "ki wad extract",
        "only game objects",
        "cannot be decoded",
    ];
    for (file, reason) in reasons.iter().enumerate() {
        let answer = edited.page.get(&format!("/api/archive/files/{file}/object")).await;
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(answer.status == 422 && error.contains(reason), "{file}: {error}");
    }
    // A NaN keeps its bits.
    let nan = edited.object(5).await;
    assert_eq!(edited.encode(5, &nan).await.json()["changed"], false);
    let more = nan.replace("\"m_f\"", "\"m_n\":3,\"m_f\"");
    let detail = edited.encode(5, &more).await.json();
    let bytes = detail["layers"][0]["bytes"].as_str().unwrap();
    assert!(detail["changed"] == true && bytes.contains("3412c07f"), "{detail}");
    edited.page.end().await;
    // Without a type list, the page says what is missing.
    let none = Edited::open(None, pets(), true).await;
    let answer = none.page.get("/api/archive/files/1/object").await;
    assert!(answer.status == 404 && answer.json()["error"].as_str().unwrap().contains("--data"));
    none.page.end().await;
}

#[tokio::test]
async fn classes_are_described_for_forms() {
    let edited = Edited::pets().await;
    let class = async |query: &str| edited.page.get(&format!("/api/archive/classes?{query}")).await;
    let pet = class("name=class%20MadeUpPet").await.json();
    let property = |name: &str| {
        let all = pet["properties"].as_array().unwrap();
        all.iter().find(|property| property["name"] == name).unwrap().clone()
    };
    let rights = property("m_rights");
    assert_eq!((&rights["kind"], rights["option_count"].as_u64()), (&json!("flags"), Some(3)));
    assert_eq!(rights["options"][0], json!(["CHAT", 1]));
    assert_eq!(
        (&property("m_color")["parts"], &property("m_color")["range"]),
        (&json!(["b", "g", "r", "a"]), &json!(["0", "255"]))
    );
    let snacks = property("m_snacks");
    assert_eq!((&snacks["list"], &snacks["base"]), (&json!(true), &json!("class MadeUpSnack")));
    let snack = class("name=class%20MadeUpSnack").await.json();
    assert_eq!(snack["properties"][2]["range"], json!(["0", "31"]));
    let default: Value = serde_json::from_str(snack["default"].as_str().unwrap()).unwrap();
    assert_eq!(default["m_isLiked"], false);
    let derived = class("base=class%20MadeUpSnack").await.json();
    assert_eq!(derived, json!({ "total": 1, "names": ["class MadeUpSnack"] }));
    let all = class("search=madeup").await.json();
    assert_eq!(all["total"], 3);
    let missing = class("name=class%20MadeUpPat").await;
    assert!(
        missing.status == 404
            && missing.json()["error"].as_str().unwrap().ends_with("\"class MadeUpPet\"?")
    );
    edited.page.end().await;
    let login = Page::login().await;
    assert_eq!(login.get("/api/archive/classes?name=A").await.status, 404);
    login.end().await;
}

/// Lists of classes, options and values come from other people's files.
#[tokio::test]
async fn large_lists_and_deep_nesting_have_limits() {
    let options: Vec<String> = (0..5000).map(|at| format!("\"O{at}\": {at}")).collect();
    let mut list: Vec<String> = (0..1000)
        .map(|at| {
            format!(
                "\"class D{at}\": {{\"hash\": {}, \"bases\": [\"A\"], \"properties\": {{}}}}",
                100 + at
            )
        })
        .collect();
    list.push(format!(
        r#""class A": {{"hash": 7, "properties": {{
        "m_a": {{"type": "class A*", "id": 0, "hash": 70}},
        "m_l": {{"type": "int", "id": 1, "hash": 71, "container": "List", "dynamic": true}},
        "m_e": {{"type": "enum E", "id": 2, "hash": 72, "enum_options": {{{}}}}}}}}}"#,
        options.join(",")
    ));
    let known = classes(format!("{{{}}}", list.join(",")).as_bytes());
    let small = bind(&known, r#"{"$class":"A","m_l":[1]}"#);
    let archive = build(&BuildOptions::default(), [("a.xml", &small[..])]).unwrap();
    let edited = Edited::open(Some(known), archive, true).await;
    let class = edited.page.get("/api/archive/classes?name=class%20A").await.json();
    let choice = &class["properties"][2];
    assert_eq!(
        (choice["options"].as_array().unwrap().len(), &choice["option_count"]),
        (4096, &json!(5000))
    );
    let derived = edited.page.get("/api/archive/classes?base=class%20A").await.json();
    assert_eq!(
        (derived["names"].as_array().unwrap().len(), &derived["total"]),
        (200, &json!(1001))
    );

    let nested = |depth: usize| {
        format!("{}null{}", r#"{"$class":"class A","m_a":"#.repeat(depth), "}".repeat(depth))
    };
    assert_eq!(edited.encode(0, &nested(100)).await.status, 200);
    for depth in [200, 100_000] {
        let answer = edited.encode(0, &nested(depth)).await;
        assert!(
            answer.status == 409 && answer.json()["error"].as_str().unwrap().contains("depth"),
            "{answer:?}"
        );
    }
    let numbers =
        |count: usize| format!(r#"{{"$class":"class A","m_l":[{}]}}"#, vec!["1"; count].join(","));
    let detail = edited.encode(0, &numbers(200_000)).await.json();
    assert_eq!(
        (&detail["changed"], detail["nodes"].as_array().unwrap().len()),
        (&json!(true), 20_000)
    );
    let answer = edited.encode(0, &numbers(300_000)).await;
    assert!(
        answer.status == 409 && answer.json()["error"].as_str().unwrap().contains("nodes"),
        "{answer:?}"
    );
    let answer = edited.encode(0, &numbers(3_000_000)).await;
    assert_eq!(answer.status, 409, "{answer:?}");
    assert_eq!(edited.encode(0, &numbers(4_200_000)).await.status, 413);
    edited.page.end().await;
}
