//! What a `plNotifyMsg` tells.

use std::borrow::Cow;

use worldwire_core::json::Given;
use worldwire_core::{Classes, Error, Field, Reader, Result, Sampler, Trace, Writer, wire_enum};

use crate::types::{Bool8, Float, Floats, Key, SafeString};
use crate::walk::{Guard, Walk, WalkClasses, WalkResult, walk_plain, walked_classes};

wire_enum! {
    /// What an event of the kind "variable" holds.
    pub enum VariableKind(i32) {
        /// A number of single precision.
        Float = 1,
        /// A key.
        Key = 2,
        /// A signed number.
        Int = 3,
        /// Nothing.
        Null = 4,
    }
}

impl VariableKind {
    /// Whether it is this one.
    #[must_use]
    pub fn is(self, other: Self) -> bool {
        self == other
    }

    /// Whether the event holds a number.
    #[must_use]
    pub fn is_number(self) -> bool {
        self == Self::Float || self == Self::Int
    }
}

wire_enum! {
    /// What happened to a stage.
    pub enum MultiStageEventKind(i32) {
        /// It began.
        Enter = 1,
        /// It begins again.
        Loop = 2,
        /// It leads on.
        Advance = 3,
        /// It leads back.
        Regress = 4,
    }
}

wire_enum! {
    /// What became of an offer to share a book.
    pub enum OfferBookKind(i32) {
        /// It is over.
        Finish = 0,
        /// It is made.
        Offer = 999,
        /// It is taken back.
        Rescind = -999,
    }
}

walk_plain! {
    VariableKind;
    MultiStageEventKind;
    OfferBookKind;
}

walked_classes! {
    /// What happened, of which a `plNotifyMsg` tells: `i32` type, then the event.
    pub enum NotifyEvent<'a>: u32;
    named {
        12 "clickDrag" in "event"
    }

    /// Something hit something.
    1 CollisionEvent<'a> "collision" in "event" {
        /// Whether it began or ended.
        enter "enter": Bool8,
        /// What hit.
        hitter "hitter": Key<'a>,
        /// What was hit.
        hittee "hittee": Key<'a>,
    }

    /// Something was clicked.
    2 PickedEvent<'a> "picked" in "event" {
        /// Who clicked.
        picker "picker": Key<'a>,
        /// What was clicked.
        picked "picked": Key<'a>,
        /// Whether the button went down.
        enabled "enabled": Bool8,
        /// Where.
        hit_point "hitPoint": Floats<3>,
    }

    /// A key of the keyboard.
    3 ControlKeyEvent "controlKey" in "event" {
        /// What it stands for.
        control_key "controlKey": i32,
        /// Whether it went down.
        down "down": Bool8,
    }

    /// A variable.
    4 VariableEvent<'a> "variable" in "event" {
        /// Its name.
        name "name": SafeString<'a>,
        /// What it holds.
        data_type "dataType": VariableKind,
        /// The number, if it is one of single precision.
        float "float": Float where data_type.is(VariableKind::Float),
        /// The number, if it is a signed one.
        int "int": i32 where data_type.is(VariableKind::Int),
        /// Zero, if it is no number.
        unused "unused": u32
            where !data_type.is_number(),
        /// The key, if it is one.
        key "key": Key<'a>,
    }

    /// Somebody looks at something.
    5 FacingEvent<'a> "facing" in "event" {
        /// Who looks.
        facer "facer": Key<'a>,
        /// What is looked at.
        facee "facee": Key<'a>,
        /// How directly: the cosine of the angle.
        dot "dot": Float,
        /// Whether it began or ended.
        enabled "enabled": Bool8,
    }

    /// Something is inside something.
    6 ContainedEvent<'a> "contained" in "event" {
        /// What is inside.
        contained "contained": Key<'a>,
        /// In what.
        container "container": Key<'a>,
        /// Whether it came or left.
        entering "entering": Bool8,
    }

    /// Something became active.
    7 ActivateEvent "activate" in "event" {
        /// Whether it is active.
        active "active": Bool8,
        /// Whether it is activated.
        activate "activate": Bool8,
    }

    /// What was asked for has come.
    8 CallbackEvent "callback" in "event" {
        /// What was asked for.
        callback_type "callbackType": i32,
    }

    /// A responder has another state.
    9 ResponderStateEvent "responderState" in "event" {
        /// The state.
        state "state": i32,
    }

    /// A stage of an animation.
    10 MultiStageEvent<'a> "multiStage" in "event" {
        /// The stage.
        stage "stage": i32,
        /// What happened to it.
        event "event": MultiStageEventKind,
        /// Whose animation it is.
        avatar "avatar": Key<'a>,
    }

    /// Something was made.
    11 SpawnedEvent<'a> "spawned" in "event" {
        /// Who made it.
        spawner "spawner": Key<'a>,
        /// What was made.
        spawnee "spawnee": Key<'a>,
    }

    /// Two avatars do something together.
    13 CoopEvent "coop" in "event" {
        /// The player who began it.
        initiator "initiator": u32,
        /// Which of that player's it is.
        serial "serial": u16,
    }

    /// A book is shared.
    14 OfferBookEvent<'a> "offerBook" in "event" {
        /// Who offers it.
        offerer "offerer": Key<'a>,
        /// What became of the offer.
        event "event": OfferBookKind,
        /// To which player.
        offeree "offeree": u32,
    }

    /// Somebody uses a book.
    15 BookEvent "book" in "event" {
        /// What happened.
        event "event": u32,
        /// Which link.
        link_id "linkId": u32,
    }

    /// The way up is blocked.
    16 ClimbBlockerEvent<'a> "climbBlocker" in "event" {
        /// What blocks it.
        blocker "blocker": Key<'a>,
    }
}

/// An event in the list of a `plNotifyMsg`. It has no length, so one of an unknown type cannot be
/// skipped, and is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<'d>(pub NotifyEvent<'d>);

impl<'d, E: Into<NotifyEvent<'d>>> From<E> for Event<'d> {
    fn from(event: E) -> Self {
        Self(event.into())
    }
}

impl<'d> Event<'d> {
    /// The type that the next event has, without moving; an error if it is not known.
    fn next_kind<T>(reader: &Reader<'d, T>) -> Result<u32> {
        let Some(kind) = reader.rest().first_chunk() else {
            let error = Error::incomplete(4, reader.remaining());
            return Err(error.at(reader.position() as u64));
        };
        let kind = u32::from_le_bytes(*kind);
        if is_known(kind) {
            return Ok(kind);
        }
        let error = Error::malformed("a type of event with a known layout", kind.to_string());
        Err(reader.place_error(error).inside("class"))
    }
}

fn is_known(kind: u32) -> bool {
    NotifyEvent::info(kind).is_some_and(|info| info.fields.is_some())
}

impl<'d> Field<'d> for Event<'d> {
    type Owned = Event<'static>;
    const LEAST: usize = NotifyEvent::LEAST;

    fn layout() -> Cow<'static, str> {
        NotifyEvent::layout()
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        Self::next_kind(reader).map_err(|error| error.inside(name))?;
        NotifyEvent::decode(reader, name).map(Self)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        if is_known(self.0.class()) {
            return self.0.encode(writer);
        }
        let found = self.0.class().to_string();
        Err(Error::value("a type of event with a known layout", found).inside("class"))
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        NotifyEvent::from_json(json).map(Self)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let event = NotifyEvent::sample(sampler);
        let activate = || ActivateEvent { active: true.into(), activate: true.into() };
        if is_known(event.class()) { Self(event) } else { activate().into() }
    }

    fn into_owned(self) -> Self::Owned {
        Event(self.0.into_owned())
    }
}

impl<'d> Walk<'d> for Event<'d> {
    type Summary = ();

    fn walk<G: Guard>(reader: &mut Reader<'d>, guard: &mut G) -> WalkResult {
        let kind = Self::next_kind(reader)?;
        reader.take(4)?;
        NotifyEvent::walk_class(kind, reader, guard)
    }
}
