//! A generated zone archive with files of all formats, and a graph of zones.

use std::path::Path;

use worldwire_core::json::{Json, json};
use worldwire_ki::file::bcd::BcdFile;
use worldwire_ki::file::lang::LangFile;
use worldwire_ki::file::nav::NavFile;
use worldwire_ki::file::poi::PoiFile;
use worldwire_ki::file::wad::{BuildOptions, build};
use worldwire_ki::string_id;

use super::Outcome;

/// Zones that do not exist in any game.
const ZONES: [&str; 4] = ["MadeUp/MU_Hub", "MadeUp/MU_Meadow", "MadeUp/MU_Cave", "Other/OT_Hub"];

pub(super) fn write(folder: &Path) -> Outcome<()> {
    let nodes: Vec<Json> = (0..ZONES.len()).map(|id| node(id, [0.0; 3])).collect();
    let links = [[0, 1], [1, 0], [1, 2], [2, 1], [2, 3]].map(link);
    let zones = json!({"nodes": nodes, "links": links, "zone_names": ZONES});
    std::fs::write(folder.join("ki-zonemap.nav"), NavFile::from_json(&zones)?.to_bytes()?)?;
    let files = [
        ("Locale/English/MadeUp.lang", LangFile::from_json(&texts())?.to_bytes()?),
        ("collision.bcd", BcdFile::from_json(&collisions())?.to_bytes()?),
        ("poi.dat", PoiFile::read_json(&points())?.to_bytes()?),
        ("zone.nav", NavFile::from_json(&graph())?.to_bytes()?),
    ];
    let files = files.iter().map(|(name, bytes)| (*name, &bytes[..]));
    let archive = build(&BuildOptions::default(), files)?;
    std::fs::write(folder.join("ki-zone.wad"), archive)?;
    Ok(())
}

fn node(id: usize, location: [f32; 3]) -> Json {
    json!({"id": id, "location": location})
}

fn link([first, second]: [u16; 2]) -> Json {
    json!({"first": first, "second": second})
}

/// Two paths around a pond.
fn graph() -> Json {
    let places = [[0.0, 0.0, 0.0], [300.0, 0.0, 10.0], [300.0, 400.0, 40.0], [0.0, 400.0, 20.0]];
    let nodes: Vec<Json> = (0..).zip(places).map(|(id, place)| node(id, place)).collect();
    let links = [[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [0, 3]].map(link);
    json!({"nodes": nodes, "links": links})
}

fn collisions() -> Json {
    let one = |kind: &str, name: &str, place: [f32; 3], params: Json| {
        json!({
            "type": kind, "category_flags": ["OBJECT"], "collision_flags": ["LOCAL_PLAYER"],
            "name": name, "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "location": place,
            "scale": 1, "material": "Wood", "params": params,
        })
    };
    let mut ground = one("Mesh", "Ground", [0.0; 3], json!({}));
    ground["category_flags"] = json!(["WALKABLE"]);
    ground["material"] = json!("Grass");
    let face = |vertices: [u32; 3]| json!({"face": vertices, "normal": [0, 0, 1]});
    ground["mesh"] = json!({
        "vertices": [[-100, -100, 0], [400, -100, 10], [400, 500, 40], [-100, 500, 20]],
        "faces": [face([0, 1, 2]), face([0, 2, 3])],
    });
    let mut pond =
        one("Cylinder", "Pond", [150.0, 200.0, 10.0], json!({"radius": 90, "length": 5}));
    pond["category_flags"] = json!(["WATER"]);
    let mut door = one("Sphere", "Trigger_Door", [300.0, 400.0, 40.0], json!({"radius": 40}));
    door["category_flags"] = json!(["TRIGGER"]);
    let crate_ = json!({"length": 60, "width": 40, "depth": 30});
    let sky = json!({"normal": [0, 0, -1], "distance": -900});
    json!({"collisions": [
        ground,
        one("Box", "Crate", [40.0, 60.0, 15.0], crate_),
        pond,
        door,
        one("Plane", "Sky", [0.0; 3], sky),
    ]})
}

fn points() -> Json {
    let keys = ZONES.map(|zone| string_id(zone.as_bytes()));
    let goal = |id: u64, zone: u16, template: u64, place: [f32; 3], collectable: bool| {
        json!({
            "goal_id": id, "no_quest_helper": false, "zone_id": zone, "template_id": template,
            "location": place, "interactable": !collectable, "collectable": collectable,
        })
    };
    let way = |zone: usize, to: usize| {
        let position = [300, 400, 40];
        json!({"zone_key": keys[zone], "list": [{"destination": ZONES[to], "position": position}]})
    };
    json!({
        "zone_names": ZONES,
        "goals": [
            goal(144_115_188_075_856_123, 0, 80_001, [40.0, 60.0, 15.0], false),
            goal(144_115_188_075_856_124, 1, 80_002, [-5.5, 12.25, 0.0], true),
        ],
        "interactive_goals": [{"zone_key": keys[0], "template_ids": [80_001, 80_003]}],
        "teleporters": [way(0, 1), way(1, 0), way(1, 2), way(2, 3)],
        "goal_adjectives": [{"goal_id": 144_115_188_075_856_123_u64, "adjectives": [7]}],
        "zone_mobs": [{"zone_key": keys[2], "asset": "MobStuff/MadeUp.nif"}],
    })
}

fn texts() -> Json {
    json!({"number": 1, "name": "MadeUp", "entries": [
        {"key": "00000000", "text": "The Hub"},
        {"key": "00000001", "comment": "a school", "text": "Meadow of #1"},
        {"key": "Greeting", "text": "<center>Welcome to <string;MadeUp_00000000>!</center>\\n"},
        {"key": "Lost", "text": "See <string;MadeUp_00000009>"},
    ]})
}
