//! Replays game connections of real clients into worldwire's own age. Every client receives the
//! messages that the recorded server sent it; each difference has a documented reason.
//!
//! `WORLDWIRE_URU_AGES` names a directory with captures (`NAME.pcapng`), the age files and SDL
//! files of the age (`ages/NAME.age`, `sdl/*.sdl`), and the shard's keys (`server-keys.ini`, or the
//! file that `WORLDWIRE_URU_KEYS` names). All game connections of a capture are in the age that
//! `WORLDWIRE_URU_AGE` names, by default Fernbrook. Captures are replayed in the order of their
//! first packets, and stored states carry over from one to the next. If a file with expectations
//! exists (`NAME.pcapng.expected.json`), it is compared field by field.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod replay;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use replay::{Recording, Stage, paths};
use worldwire_uru::age::{Config, Event, Instance, Player};
use worldwire_uru::file::age::AgeFile;
use worldwire_uru::schema::Descriptors;
use worldwire_uru::types::{ClassIndex, Uoid};

#[test]
fn our_age_gives_recorded_clients_what_they_need() {
    let Some(recording) = Recording::of_environment() else { return };
    let (folder, name) = (&recording.folder, &recording.name);
    let text = std::fs::read_to_string(folder.join(format!("ages/{name}.age"))).unwrap();
    let (file, problems) = AgeFile::parse(name, &text);
    assert!(problems.is_empty(), "{problems:?}");
    let texts = paths(&folder.join("sdl"))
        .into_iter()
        .map(|path| (path.to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap()));
    let descriptors = Arc::new(Descriptors::load(texts.collect::<Vec<_>>()));
    assert!(descriptors.problems().is_empty());
    let age = instance(Duration::ZERO, name, &file, &descriptors);
    let (kept, name) = (Kept::default(), name.clone());
    let players = recording.players();
    recording.play(&mut Virtual { name, file, descriptors, kept, age, players });
}

/// The states that a server stores.
#[derive(Default)]
struct Kept {
    age: Option<Vec<u8>>,
    states: Vec<(Uoid<'static>, String, Vec<u8>)>,
}

/// An instance in virtual time.
struct Virtual {
    name: String,
    file: AgeFile,
    descriptors: Arc<Descriptors>,
    kept: Kept,
    age: Instance,
    /// The names of players.
    players: BTreeMap<u32, String>,
}

fn instance(
    unix: Duration,
    name: &str,
    file: &AgeFile,
    descriptors: &Arc<Descriptors>,
) -> Instance {
    let (set, config) = (Arc::clone(descriptors), Config::default());
    Instance::new(Duration::ZERO, unix, name, file.clone(), set, config)
}

impl Stage for Virtual {
    fn start(&mut self, unix: Duration) {
        self.age = instance(unix, &self.name, &self.file, &self.descriptors);
        if let Some(blob) = &self.kept.age {
            self.age.restore_age(blob).unwrap();
        }
        for (object, _, blob) in &self.kept.states {
            self.age.restore(object.clone(), blob).unwrap();
        }
    }

    fn join(&mut self, now: Duration, player: u32) {
        self.age.join(now, Player::new(player, &self.players[&player])).unwrap();
    }

    fn receive(&mut self, now: Duration, player: u32, class: ClassIndex, buffer: &[u8]) {
        self.age.receive(now, player, class, buffer);
    }

    fn leave(&mut self, now: Duration, player: u32) {
        self.age.leave(now, player);
    }

    fn take(&mut self) -> Vec<(u32, Vec<u8>)> {
        while let Some(event) = self.age.poll_event() {
            match event {
                Event::StoreAge { blob } => self.kept.age = Some(blob),
                Event::StoreState { object, descriptor, blob } => {
                    let states = &mut self.kept.states;
                    states.retain(|(old, name, _)| (old, name) != (&object, &descriptor));
                    states.extend(blob.map(|blob| (object, descriptor, blob)));
                }
                _ => {}
            }
        }
        let deliveries = std::iter::from_fn(|| self.age.poll_delivery());
        deliveries.map(|delivery| (delivery.to, delivery.packet.bytes().to_vec())).collect()
    }

    fn end(&mut self, now: Duration) -> Vec<(u32, Vec<u8>)> {
        let deliveries = self.take();
        let members: Vec<u32> = self.age.members().map(|member| member.player().id).collect();
        members.into_iter().for_each(|player| self.age.leave(now, player));
        // No player is left to receive further messages.
        self.take();
        deliveries
    }
}
