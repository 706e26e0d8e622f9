//! POI: the points of interest of all zones (`poi.dat`), such as quest goals and teleporters, and
//! the models that zones contain.
//!
//! Six lists in sequence, all always present:
//!
//! | list | elements |
//! | --- | --- |
//! | zone_names | `u32` count and UTF-8 |
//! | goals | [`Goal`], 33 bytes |
//! | interactive_goals | [`InteractiveGoals`] |
//! | teleporters | [`ZoneTeleporters`] |
//! | goal_adjectives | [`GoalAdjectives`] |
//! | zone_mobs | [`ZoneMob`]: one element for each model, so a zone occurs several times |
//!
//! Order and repetitions are kept. Newer versions of one community tool nest the last list by zone.
//! The game's files are flat; nested ones are refused with a hint.
//!
//! Unverified: which archive contains the file, and its size.

use std::collections::{HashMap, HashSet};

use worldwire_core::json::Json;
use worldwire_core::text::more_bytes;
use worldwire_core::{Error, Field, Limits, Reader, Record, Result, Step, Trace, Writer, record};

use super::primitive::{
    ByteBool, Many, Text, Vector3, ZoneKey, collect_warnings, left_over, not_utf8, refuse_warnings,
};
use crate::string_id;

record! {
    /// The location of a quest's goal.
    pub struct Goal {
        goal_id "goal_id": u64,
        /// Unverified: set if the quest helper does not lead to this point.
        no_quest_helper "no_quest_helper": ByteBool,
        /// The position of the zone in `zone_names`.
        zone_id "zone_id": u16,
        template_id "template_id": u64,
        location "location": Vector3,
        /// Whether the goal is someone to talk to.
        interactable "interactable": ByteBool,
        /// Whether the goal is something to collect.
        collectable "collectable": ByteBool,
    }
}

record! {
    /// A zone's templates that players can interact with.
    pub struct InteractiveGoals {
        zone_key "zone_key": ZoneKey,
        template_ids "template_ids": Many<u64>,
    }
}

record! {
    /// A way to another zone.
    pub struct Teleporter<'d> {
        /// The name of the target zone, which need not be in `zone_names`.
        destination "destination": Text<'d>,
        /// The location of the teleporter.
        position "position": Vector3,
    }
}

record! {
    /// The teleporters of a zone.
    pub struct ZoneTeleporters<'d> {
        zone_key "zone_key": ZoneKey,
        teleporters "list": Many<Teleporter<'d>>,
    }
}

record! {
    /// Words that describe a goal.
    pub struct GoalAdjectives {
        goal_id "goal_id": u64,
        /// Unverified: string IDs of adjectives.
        adjectives "adjectives": Many<u32>,
    }
}

record! {
    /// A model that occurs in a zone.
    pub struct ZoneMob<'d> {
        zone_key "zone_key": ZoneKey,
        /// The path of a `.nif` file.
        asset "asset": Text<'d>,
    }
}

record! {
    /// A POI file.
    pub struct PoiFile<'d> {
        zone_names "zone_names": Many<Text<'d>>,
        goals "goals": Many<Goal>,
        interactive_goals "interactive_goals": Many<InteractiveGoals>,
        teleporters "teleporters": Many<ZoneTeleporters<'d>>,
        goal_adjectives "goal_adjectives": Many<GoalAdjectives>,
        zone_mobs "zone_mobs": Many<ZoneMob<'d>>,
    }
}

impl<'d> PoiFile<'d> {
    /// Decodes a file.
    pub fn read<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let bytes = reader.rest();
        let hinted = |error: Error| match is_nested(bytes) {
            true => error.hint("the list is nested by zone, as katsuba has written it since 2026"),
            false => error,
        };
        let poi = Self::decode_fields(reader).map_err(Error::closed).map_err(|error| {
            let last = Step::Field("zone_mobs".into());
            if error.path().next() == Some(&last) { hinted(error) } else { error }
        })?;
        // A nested list may decode as a flat one that ends too early.
        if reader.remaining() > 0 && is_nested(bytes) {
            let found = more_bytes(reader.remaining() as u64);
            let error = reader.place_error(Error::malformed("the end of a flat list", found));
            return Err(hinted(error.inside("zone_mobs")));
        }
        Ok(poi)
    }

    /// Decodes a file for tools, with warnings instead of errors where possible. Bytes left at the
    /// end are skipped.
    pub fn open(bytes: &'d [u8], limits: &'d Limits) -> Result<(Self, Vec<String>)> {
        let mut reader = Reader::within(bytes, limits);
        let poi = Self::read(&mut reader)?;
        let goals = poi.goals.iter().enumerate().flat_map(|(index, goal)| {
            let flags = [
                ("no_quest_helper", goal.no_quest_helper),
                ("interactable", goal.interactable),
                ("collectable", goal.collectable),
            ];
            let warnings = flags.into_iter().filter(|(_, flag)| !flag.is_plain());
            warnings.map(move |(name, flag)| {
                format!("goal {index}: {name} is {}, read as true", flag.0)
            })
        });
        let names = poi.zone_names.iter().enumerate();
        let names = names
            .filter_map(|(index, name)| not_utf8(format_args!("the name of zone {index}"), name));
        let teleporters = poi.teleporters.iter().flat_map(|zone| zone.teleporters.iter());
        let teleporters = teleporters.filter_map(|teleporter| {
            not_utf8("the destination of a teleporter", &teleporter.destination)
        });
        let mobs = poi.zone_mobs.iter().enumerate();
        let mobs = mobs.filter_map(|(index, mob)| {
            not_utf8(format_args!("the asset of mob {index}"), &mob.asset)
        });
        let warnings = goals.chain(names).chain(teleporters).chain(mobs);
        let warnings = collect_warnings(left_over(&reader).into_iter().chain(warnings));
        Ok((poi, warnings))
    }

    /// Decodes a file, refusing it if there are any warnings. Used to recognise POI files.
    pub fn strict(bytes: &'d [u8], limits: &'d Limits) -> Result<Self> {
        let (poi, warnings) = Self::open(bytes, limits)?;
        refuse_warnings(warnings.into_iter()).map(|()| poi)
    }

    /// Encodes the file to bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer).map(|()| writer.into_bytes())
    }

    /// Reads a file from the JSON of a traced decode.
    pub fn read_json(json: &Json) -> Result<PoiFile<'static>> {
        <PoiFile<'static> as Field<'static>>::from_json(json.into())
    }

    /// The zones by key: those of `zone_names`, and the destinations of teleporters.
    #[must_use]
    pub fn zones(&self) -> HashMap<ZoneKey, &Text<'d>> {
        let teleporters = self.teleporters.iter().flat_map(|zone| zone.teleporters.iter());
        let names =
            teleporters.map(|teleporter| &teleporter.destination).chain(self.zone_names.iter());
        names.map(|name| (ZoneKey(string_id(name.as_bytes())), name)).collect()
    }

    /// Reports problems that do not prevent decoding: goals in missing zones, keys that do not
    /// match any name, repeated goals, and locations that are not finite. Each text is built on
    /// demand.
    pub fn check(&self) -> impl Iterator<Item = String> {
        let zones = self.zones();
        let unknown = move |list: &'static str, index: usize, key: ZoneKey| {
            (!zones.contains_key(&key))
                .then(|| format!("{list} {index}: no zone has the key {:#010x}", key.0))
        };
        let mut seen = HashMap::new();
        let goals = self.goals.iter().enumerate().flat_map(move |(index, goal)| {
            let count = self.zone_names.len();
            let zone = (usize::from(goal.zone_id) >= count).then(|| {
                format!(
                    "goal {index}: zone {} is missing (zones in the file: {count})",
                    goal.zone_id
                )
            });
            let first = *seen.entry(goal.goal_id).or_insert(index);
            let again = (first != index)
                .then(|| format!("goal {index} has the same ID as goal {first}: {}", goal.goal_id));
            let location = (!goal.location.is_finite())
                .then(|| format!("goal {index}: its location is not finite"));
            zone.into_iter().chain(again).chain(location)
        });
        let lists = self.interactive_goals.iter().map(|it| ("interactive_goals", it.zone_key));
        let teleporters = self.teleporters.iter().map(|it| ("teleporters", it.zone_key));
        let keys = lists.enumerate().chain(teleporters.enumerate());
        let mut seen = HashSet::new();
        let mobs = self.zone_mobs.iter().map(|it| ("zone_mobs", it.zone_key)).enumerate();
        let mobs = mobs.filter(move |(_, (_, key))| seen.insert(*key));
        goals.chain(
            keys.chain(mobs).filter_map(move |(index, (list, key))| unknown(list, index, key)),
        )
    }

    /// The name of a zone, by its position in `zone_names`.
    #[must_use]
    pub fn zone(&self, id: u16) -> Option<&Text<'d>> {
        self.zone_names.get(usize::from(id))
    }

    /// Writes the goals as comma-separated values: zone, location, IDs and flags.
    ///
    /// # Errors
    /// `Value` if the table cannot be written; a limit error for too many goals in zones with long
    /// names.
    pub fn to_csv(&self) -> Result<String> {
        let zones = self.goals.iter().map(|goal| self.zone(goal.zone_id).map_or(0, Text::len));
        let bytes = zones.fold(0, |sum: u64, zone| sum.saturating_add(zone as u64));
        let max = Limits::DEFAULT.text_ratio * (Goal::LEAST * self.goals.len()) as u64;
        if bytes > max {
            return Err(Error::limit("bytes of zone names", max, bytes));
        }
        let mut rows = vec![
            [
                "zone",
                "x",
                "y",
                "z",
                "goal_id",
                "template_id",
                "no_quest_helper",
                "interactable",
                "collectable",
            ]
            .map(str::to_owned)
            .to_vec(),
        ];
        for goal in self.goals.iter() {
            let zone = self.zone(goal.zone_id);
            let zone =
                zone.map_or_else(|| goal.zone_id.to_string(), |name| name.to_lossy().into_owned());
            let [x, y, z] = goal.location.0.map(|part| part.to_string());
            let flags = [goal.no_quest_helper, goal.interactable, goal.collectable];
            let [helper, interactable, collectable] = flags.map(|it| it.is_true().to_string());
            let (goal, template) = (goal.goal_id.to_string(), goal.template_id.to_string());
            rows.push(vec![zone, x, y, z, goal, template, helper, interactable, collectable]);
        }
        super::csv::written(&rows)
    }

    /// Exports the teleporters as GraphML, with zones as nodes.
    #[must_use]
    pub fn to_graphml(&self) -> String {
        use super::svg::push_escaped;
        use std::fmt::Write as _;

        let zones = self.zones();
        let mut out = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n\
             <key id=\"label\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>\n\
             <graph id=\"teleporters\" edgedefault=\"directed\">\n",
        );
        let mut known = HashSet::new();
        let mut edges = String::new();
        let mut node = |key: ZoneKey, out: &mut String| {
            if known.insert(key) {
                let _ = write!(out, "<node id=\"z{}\"><data key=\"label\">", key.0);
                match zones.get(&key) {
                    Some(name) => push_escaped(&name.to_lossy(), out),
                    None => push_escaped(&format!("{:#010x}", key.0), out),
                }
                out.push_str("</data></node>\n");
            }
        };
        for zone in self.teleporters.iter() {
            node(zone.zone_key, &mut out);
            for teleporter in zone.teleporters.iter() {
                let target = ZoneKey(string_id(teleporter.destination.as_bytes()));
                node(target, &mut out);
                let (source, target) = (zone.zone_key.0, target.0);
                let _ = writeln!(edges, "<edge source=\"z{source}\" target=\"z{target}\"/>");
            }
        }
        out.push_str(&edges);
        out.push_str("</graph>\n</graphml>\n");
        out
    }
}

/// Whether the bytes are a file whose last list is nested: key, count, texts.
fn is_nested(bytes: &[u8]) -> bool {
    record! {
        /// The models of a zone.
        pub struct Nested<'d> {
            zone_key "zone_key": ZoneKey,
            assets "assets": Many<Text<'d>>,
        }
    }
    let mut reader = Reader::new(bytes);
    let read = |reader: &mut Reader<'_>| -> Result<()> {
        Many::<Text<'_>>::decode(reader, "")?;
        Many::<Goal>::decode(reader, "")?;
        Many::<InteractiveGoals>::decode(reader, "")?;
        Many::<ZoneTeleporters<'_>>::decode(reader, "")?;
        Many::<GoalAdjectives>::decode(reader, "")?;
        Many::<Nested<'_>>::decode(reader, "")?;
        reader.end()
    };
    read(&mut reader).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_file() -> PoiFile<'static> {
        let goal = |goal_id, zone_id, x| Goal {
            goal_id,
            no_quest_helper: ByteBool(0),
            zone_id,
            template_id: 7,
            location: Vector3([x, 2.5, 3.0]),
            interactable: ByteBool(1),
            collectable: ByteBool(0),
        };
        let teleporter =
            Teleporter { destination: Text::from("B, \"x\""), position: Vector3::default() };
        let key = |name: &str| ZoneKey(string_id(name.as_bytes()));
        let teleporters =
            |zone_key| ZoneTeleporters { zone_key, teleporters: vec![teleporter.clone()].into() };
        let mob = |zone_key| ZoneMob { zone_key, asset: Text::from("m.nif") };
        PoiFile {
            zone_names: vec![Text::from("A")].into(),
            goals: vec![goal(1, 0, 1.5), goal(1, 9, f32::NAN)].into(),
            interactive_goals: vec![].into(),
            teleporters: vec![teleporters(key("A")), teleporters(ZoneKey(5))].into(),
            goal_adjectives: vec![].into(),
            zone_mobs: vec![mob(key("B, \"x\"")), mob(ZoneKey(6)), mob(ZoneKey(6))].into(),
        }
    }

    #[test]
    fn every_problem_is_reported() {
        let problems: Vec<String> = sample_file().check().collect();
        insta::assert_snapshot!(problems.join("\n"), @r#"
        goal 1: zone 9 is missing (zones in the file: 1)
        goal 1 has the same ID as goal 0: 1
        goal 1: its location is not finite
        teleporters 1: no zone has the key 0x00000005
        zone_mobs 1: no zone has the key 0x00000006
        "#);
    }

    #[test]
    fn long_zone_names_do_not_become_gigabytes() {
        let mut poi = sample_file();
        poi.zone_names = vec![Text::new(vec![b'a'; 1 << 20])].into();
        poi.goals.0.truncate(1);
        poi.goals = vec![poi.goals[0].clone(); 100].into();
        let error = poi.to_csv().unwrap_err().to_string();
        assert_eq!(error, "wanted at most 844800 (bytes of zone names), found 104857600");
    }

    #[test]
    fn exports_have_names() {
        insta::assert_snapshot!(sample_file().to_csv().unwrap().replace('\r', ""), @r#"
        zone,x,y,z,goal_id,template_id,no_quest_helper,interactable,collectable
        A,1.5,2.5,3,1,7,false,true,false
        9,NaN,2.5,3,1,7,false,true,false
        "#);
        insta::assert_snapshot!(sample_file().to_graphml(), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <graphml xmlns="http://graphml.graphdrawing.org/xmlns">
        <key id="label" for="node" attr.name="label" attr.type="string"/>
        <graph id="teleporters" edgedefault="directed">
        <node id="z33"><data key="label">A</data></node>
        <node id="z25231778"><data key="label">B, &quot;x&quot;</data></node>
        <node id="z5"><data key="label">0x00000005</data></node>
        <edge source="z33" target="z25231778"/>
        <edge source="z5" target="z25231778"/>
        </graph>
        </graphml>
        "#);
    }
}
