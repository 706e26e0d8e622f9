//! The age Fern: its files, its objects and their states.

use std::path::Path;
use std::sync::Arc;

use worldwire_core::Reader;
use worldwire_uru::net_message::NetMessage;
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{Blob, ObjectState, Scalar};
use worldwire_uru::types::{Location, LocationFlags, SequenceNumber, UnifiedTime, Uoid, Uuid};

pub(crate) const PREFIX: i32 = 120;
pub(crate) const FERN: Uuid = Uuid([7; 16]);
const SDL: &str = "
STATEDESC Fern { VERSION 1 VAR BOOL open[1] }
STATEDESC lever { VERSION 1 VAR INT place[1] }
";

pub(crate) fn prepare(folder: &Path) {
    let data = folder.join("data");
    std::fs::create_dir_all(data.join("ages")).unwrap();
    std::fs::create_dir_all(data.join("secure/SDL")).unwrap();
    let age = format!("MaxCapacity=5\nLingerTime=60\nSequencePrefix={PREFIX}\n");
    std::fs::write(data.join("ages/Fern.age"), age).unwrap();
    std::fs::write(data.join("secure/SDL/Fern.sdl"), SDL).unwrap();
}

fn descriptors() -> Arc<Descriptors> {
    Arc::new(Descriptors::load([("Fern.sdl", SDL)]))
}

pub(crate) fn object(class_index: u16, name: &'static str) -> Uoid<'static> {
    let sequence_number = SequenceNumber::from_page(PREFIX, 0).unwrap();
    let location = Location { sequence_number, flags: LocationFlags(0) };
    let name = name.into();
    Uoid { location, load_mask: None, class_index, object_id: 7, name, clone: None }
}

pub(crate) fn blob(descriptor: &str, variable: &str, value: Scalar<'_>) -> Vec<u8> {
    blob_at(descriptor, variable, value, 1_700_000_000)
}

/// A state in which a variable was changed at this time.
pub(crate) fn blob_at(
    descriptor: &str,
    variable: &str,
    value: Scalar<'_>,
    seconds: u32,
) -> Vec<u8> {
    let descriptors = descriptors();
    let mut state = ObjectState::new(descriptors.newest(descriptor).unwrap());
    let now = UnifiedTime { seconds, microseconds: 0 };
    state.set(variable, &[value], &now).unwrap();
    state.to_blob().to_bytes().unwrap()
}

/// The object and the value of a received state.
pub(crate) fn told(message: &NetMessage<'_>, variable: &str) -> (String, Option<String>) {
    let state = match message {
        NetMessage::SdlState(state) => state,
        NetMessage::SdlStateBCast(broadcast) => &broadcast.state,
        other => panic!("{other:?}"),
    };
    let descriptors = descriptors();
    let payload = state.stream.as_bytes().to_vec();
    let blob = Blob::decode(&descriptors, &mut Reader::new(&payload)).unwrap();
    let value = ObjectState::of(&blob).scalar(variable).map(|value| format!("{value:?}"));
    (state.object.name.to_text(), value)
}
