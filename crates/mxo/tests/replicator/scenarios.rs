//! The vectors' scenarios: what a server sends to one client, step by step.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::json::Json;
use worldwire_core::testing::{hex, run_vectors};
use worldwire_core::value::parse_hex;
use worldwire_mxo::message::Properties;
use worldwire_mxo::replicator::{ClientId, Config, ObjectId, Replicator, Spawn, ViewState};
use worldwire_mxo::schema::Objects;
use worldwire_mxo::types::Value;

type Outcome<T = ()> = Result<T, String>;

const FILES: [&str; 8] = [
    "bitvectors",
    "malformed",
    "official",
    "pending",
    "seed",
    "server_built",
    "transport",
    "updates",
];

#[test]
fn every_scenario() {
    // For clients that drop overtaken packets and for those that do not.
    for late in [None, Some(Duration::from_secs(2))] {
        run_vectors("mxo", &FILES, |case| match case.file {
            "scenarios" => Run::new(case.case, late)?.steps(),
            other => Err(format!("no test for {other}.json")),
        });
    }
}

struct Run<'j> {
    case: &'j Json,
    server: Replicator,
    client: ClientId,
    object: Option<ObjectId>,
    now: Duration,
    config: Config,
}

fn text<E: core::fmt::Display>(error: E) -> String {
    error.to_string()
}

fn number(json: &Json, key: &str) -> Outcome<u64> {
    json.get(key).and_then(Json::as_u64).ok_or_else(|| format!("no {key}"))
}

impl<'j> Run<'j> {
    fn new(case: &'j Json, late: Option<Duration>) -> Outcome<Self> {
        let config = Config { late, ..Config::default() };
        let objects = Arc::new(Objects::built_in());
        let mut server = Replicator::new(objects, config.clone()).map_err(text)?;
        let client = server.join().map_err(text)?;
        server.look_from(client, [1.0, 2.0, 3.0]).map_err(text)?;
        Ok(Self { case, server, client, object: None, now: Duration::ZERO, config })
    }

    fn steps(mut self) -> Outcome {
        let steps = self.case.get("steps").and_then(Json::as_array).ok_or("no steps")?;
        for (index, step) in steps.iter().enumerate() {
            self.step(step).map_err(|why| format!("step {index}: {why}"))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Json) -> Outcome {
        match step.get("do").and_then(Json::as_str) {
            Some("spawn") => return self.spawn(step),
            Some("set") => {
                let name = step.get("prop").and_then(Json::as_str).ok_or("no prop")?;
                let value = u32::try_from(number(step, "value")?).map_err(text)?;
                let object = self.object.ok_or("no object")?;
                return self.server.set_value(object, name, &Value::Unsigned(value)).map_err(text);
            }
            Some("despawn") => {
                return self.server.despawn(self.object.ok_or("no object")?).map_err(text);
            }
            Some(other) => return Err(format!("cannot {other}")),
            None => {}
        }
        if let Some(packet) = step.get("flush_as").and_then(Json::as_u64) {
            let found = self.flush(packet)?;
            return same(&found, &hex(step, "expect_section")?);
        }
        if let Some(acked) = step.get("ack").and_then(Json::as_array) {
            for packet in acked {
                let packet = packet.as_u64().ok_or("no number")?;
                self.server.delivered(self.client, packet).map_err(text)?;
            }
            return Ok(());
        }
        if step.get("timeout").and_then(Json::as_bool) == Some(true) {
            self.now += self.config.give_up;
            return Ok(());
        }
        if let Some(wanted) = step.get("expect_unacked").and_then(Json::as_u64) {
            let found = self.server.unacknowledged(self.client).map_err(text)? as u64;
            let all_live = self.server.views(self.client).all(|v| v.state == ViewState::Live);
            return if (found, all_live) == (wanted, true) {
                Ok(())
            } else {
                Err(format!("wanted {wanted} unacknowledged sections, found {found}"))
            };
        }
        if let Some(free) = step.get("expect_free_views").and_then(Json::as_array) {
            return free.iter().try_for_each(|view| self.is_free(view.as_u64().ok_or("no view")?));
        }
        Err(format!("no test for {step}"))
    }

    fn spawn(&mut self, step: &Json) -> Outcome {
        let object = self.case.get("object").ok_or("no object")?;
        let goid = u16::try_from(number(object, "goid")?).map_err(text)?;
        let world = u32::try_from(number(object, "world_id")?).map_err(text)?;
        let objects = Arc::clone(self.server.objects());
        let (_, class) = objects.class_of(goid).ok_or("no class")?;
        let mut properties = Properties::new();
        for (name, value) in object.get("props").and_then(Json::as_object).ok_or("no props")? {
            let index = class.create().index_of(name).ok_or("no such property")?;
            let bytes = match value {
                Json::String(digits) => parse_hex(digits).ok_or("no hex")?,
                value => {
                    let number = value.as_u64().ok_or("no number")?;
                    u32::try_from(number).map_err(text)?.to_le_bytes().to_vec()
                }
            };
            properties.set(u16::try_from(index).map_err(text)?, bytes);
        }
        let spawn = Spawn { world_id: Some(world), properties, ..Spawn::new(goid) };
        self.object = Some(self.server.spawn(spawn).map_err(text)?);
        // Both are in the bytes of the create.
        let names = (number(step, "view")?, number(step, "spawn_seq")?);
        if names == (3, 1) { Ok(()) } else { Err(format!("{names:?}")) }
    }

    fn flush(&mut self, packet: u64) -> Outcome<Vec<u8>> {
        self.now += Duration::from_millis(50);
        self.server.tick(self.now);
        let mut section = Vec::new();
        if self.server.poll(self.client, &mut section).map_err(text)? {
            self.server.sent(self.client, packet).map_err(text)?;
            if self.server.poll(self.client, &mut Vec::new()).map_err(text)? {
                return Err("a second section".into());
            }
        }
        Ok(section)
    }

    fn is_taken(&self, view: u64) -> bool {
        self.server.views(self.client).any(|one| u64::from(one.id) == view)
    }

    fn is_free(&mut self, view: u64) -> Outcome {
        if self.config.late.is_some() {
            // The create can still arrive after the deletion. Once it cannot, another deletion
            // ensures that the view is gone.
            if !self.is_taken(view) {
                return Err(format!("view {view} is free while its create may arrive"));
            }
            self.now += self.config.give_up;
            same(&self.flush(100)?, &[])?;
            self.now += Duration::from_secs(2);
            same(&self.flush(101)?, &[3, 1, 0, 1, 1, 0, 3, 0, 0, 0])?;
            self.server.delivered(self.client, 101).map_err(text)?;
        }
        if self.is_taken(view) { Err(format!("view {view} is not free")) } else { Ok(()) }
    }
}

fn same(found: &[u8], wanted: &[u8]) -> Outcome {
    if found == wanted { Ok(()) } else { Err(format!("wanted {wanted:02x?}, found {found:02x?}")) }
}
