//! MxO's views at any time of a capture.

use serde_json::{Value, json};
use worldwire_dissect::Options;

use crate::client::{Page, sample, with_keys};

async fn crowd() -> Page {
    let page = Page::open(&sample("mxo-crowd.pcapng"), with_keys("mxo-crowd-keys.toml")).await;
    page.complete().await;
    page
}

/// The object with this name.
fn named<'v>(views: &'v Value, name: &str) -> &'v Value {
    let all = views["objects"].as_array().unwrap();
    all.iter().find(|object| object["name"] == name).unwrap_or_else(|| panic!("{name}: {views}"))
}

#[tokio::test]
async fn objects_are_where_their_last_messages_put_them() {
    let page = crowd().await;
    assert_eq!(page.get("/api/capture").await.json()["views"], json!(["mxo"]));
    let found = page.get("/api/mxo/views").await.json();
    assert_eq!((&found["total"], &found["limited"]), (&json!(2), &json!(false)));
    let names: Vec<_> =
        found["conversations"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["Visitor 191", "Visitor 192"]);
    // The state that `mxo views` prints.
    let end = page.get("/api/mxo/views/0").await.json();
    assert_eq!(end["total"], 4);
    let own = named(&end, "Visitor 191");
    assert_eq!(
        (&own["kind"], &own["view"], &own["yaw"]),
        (&json!("character"), &json!(2), &json!(76))
    );
    let near = |object: &Value, wanted: [f64; 3]| {
        let at: Vec<f64> =
            object["at"].as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
        let is_near = at.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 0.001);
        assert!(is_near, "{at:?} {wanted:?}");
    };
    near(own, [-140.94212, 0.0, 21.909325]);
    let npc = named(&end, "Passer-by");
    near(npc, [5.4524, 0.0, 200.0]);
    assert_eq!(npc["kind"], "npc");
    let door = named(&end, "Door SL Push Knob Graymetal01texvar");
    assert_eq!((&door["kind"], &door["state"]), (&json!("door"), &json!(0x838)));
    // The row is that of the message that moved it.
    let row = own["row"].as_u64().unwrap();
    let message = page.get(&format!("/api/messages/{row}")).await.json();
    assert_eq!((&message["from"], &message["name"]), (&json!("client"), &json!("game.Objects")));
    assert!(message["line"].as_str().unwrap().contains("-140.94212"), "{message}");
    page.end().await;
}

#[tokio::test]
async fn earlier_times_show_earlier_positions() {
    let page = crowd().await;
    let found = page.get("/api/mxo/views").await.json();
    let of = &found["conversations"][0];
    let time = |key: &str| of[key].as_str().unwrap().parse::<i64>().unwrap();
    let (first, last) = (time("first"), time("last"));
    let at = async |time: i64| page.get(&format!("/api/mxo/views/0?time={time}")).await.json();
    assert_eq!(at(first - 1).await["total"], 0);
    assert_eq!(at(i64::MIN).await["total"], 0);
    let mut positions = Vec::new();
    for step in 1..=8 {
        let views = at(first + (last - first) * step / 8).await;
        if views["total"] != 0 {
            let own = named(&views, "Visitor 191");
            assert!(own["since"].as_str().unwrap().parse::<i64>().unwrap() <= last);
            assert!(own["trail"].as_array().unwrap().len() <= 24);
            positions.push(own["at"].clone());
        }
    }
    positions.dedup();
    assert!(positions.len() > 4, "it moves: {positions:?}");
    let area = &of["area"];
    for object in at(last).await["objects"].as_array().unwrap() {
        for (part, index) in [(0, 0), (2, 1)] {
            let own = object["at"][part].as_f64().unwrap();
            let [from, to] = ["from", "to"].map(|side| area[side][index].as_f64().unwrap());
            assert!((from..=to).contains(&own), "{object} {area}");
        }
    }
    page.end().await;
}

#[tokio::test]
async fn encrypted_and_other_conversations_have_no_views() {
    let page = Page::open(&sample("mxo-crowd.pcapng"), Options::default()).await;
    page.complete().await;
    let found = page.get("/api/mxo/views").await.json();
    assert_eq!(found["conversations"], json!([]), "{found}");
    page.end().await;
    let page = Page::open(&sample("uru-login.pcapng"), with_keys("uru-keys.toml")).await;
    page.complete().await;
    assert_eq!(page.get("/api/mxo/views").await.json()["total"], 0);
    for path in ["/api/mxo/views/0", "/api/mxo/views/99"] {
        assert_eq!(page.get(path).await.status, 404);
    }
    for path in ["/api/mxo/views/x", "/api/mxo/views/0?time=x"] {
        let answer = page.get(path).await;
        assert_eq!(answer.status, 400);
        assert!(answer.json()["error"].is_string());
    }
    page.end().await;
}
