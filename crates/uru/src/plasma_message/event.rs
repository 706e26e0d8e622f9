//! The events in a `plNotifyMsg`.

use worldwire_core::wire_enum;

use super::Known;
use crate::types::{Bool8, Float, Floats, Key, SafeString};
use crate::walk::{walk_plain, walked_classes};

wire_enum! {
    /// The type of the value in a variable event.
    pub enum VariableKind(i32) {
        /// A single-precision float.
        Float = 1,
        /// A key.
        Key = 2,
        /// A signed integer.
        Int = 3,
        /// Nothing.
        Null = 4,
    }
}

impl VariableKind {
    /// Whether the type is this one.
    #[must_use]
    pub fn is(self, other: Self) -> bool {
        self == other
    }

    /// Whether the value is a number.
    #[must_use]
    pub fn is_number(self) -> bool {
        self == Self::Float || self == Self::Int
    }
}

wire_enum! {
    /// What happened at a stage.
    pub enum MultiStageEventKind(i32) {
        /// The stage began.
        Enter = 1,
        /// The stage repeats.
        Loop = 2,
        /// Advancing to the next stage.
        Advance = 3,
        /// Returning to the previous stage.
        Regress = 4,
    }
}

wire_enum! {
    /// What happened to a shared book.
    pub enum OfferBookKind(i32) {
        /// The offer has ended.
        Finish = 0,
        /// The book was offered.
        Offer = 999,
        /// The offer was withdrawn.
        Rescind = -999,
    }
}

walk_plain! {
    VariableKind;
    MultiStageEventKind;
    OfferBookKind;
}

walked_classes! {
    /// An event in a `plNotifyMsg`: `i32` type, then its fields.
    pub enum NotifyEvent<'a>: u32;
    named {
        12 "clickDrag" in "event"
    }

    /// Two objects collided or separated.
    1 CollisionEvent<'a> "collision" in "event" {
        /// Whether the contact began.
        enter "enter": Bool8,
        /// The object that hit.
        hitter "hitter": Key<'a>,
        /// The object that was hit.
        hittee "hittee": Key<'a>,
    }

    /// An object was clicked.
    2 PickedEvent<'a> "picked" in "event" {
        /// The avatar that clicked.
        picker "picker": Key<'a>,
        /// The object clicked.
        picked "picked": Key<'a>,
        /// Whether the button was pressed rather than released.
        enabled "enabled": Bool8,
        /// The position of the click.
        hit_point "hitPoint": Floats<3>,
    }

    /// A control key was pressed or released.
    3 ControlKeyEvent "controlKey" in "event" {
        /// The control.
        control_key "controlKey": i32,
        /// Whether the key was pressed.
        down "down": Bool8,
    }

    /// The value of a variable.
    4 VariableEvent<'a> "variable" in "event" {
        /// The name.
        name "name": SafeString<'a>,
        /// The type of the value.
        data_type "dataType": VariableKind,
        /// The value, if it is a float.
        float "float": Float where data_type.is(VariableKind::Float),
        /// The value, if it is an integer.
        int "int": i32 where data_type.is(VariableKind::Int),
        /// Zero, if the value is not a number.
        unused "unused": u32
            where !data_type.is_number(),
        /// The value, if it is a key.
        key "key": Key<'a>,
    }

    /// An avatar turned to an object or away from it.
    5 FacingEvent<'a> "facing" in "event" {
        /// The avatar.
        facer "facer": Key<'a>,
        /// The object faced.
        facee "facee": Key<'a>,
        /// The cosine of the angle between them.
        dot "dot": Float,
        /// Whether facing began.
        enabled "enabled": Bool8,
    }

    /// An object entered or left a region.
    6 ContainedEvent<'a> "contained" in "event" {
        /// The object.
        contained "contained": Key<'a>,
        /// The region.
        container "container": Key<'a>,
        /// Whether the object entered.
        entering "entering": Bool8,
    }

    /// An activator changed.
    7 ActivateEvent "activate" in "event" {
        /// Whether it is active.
        active "active": Bool8,
        /// Whether it is activated.
        activate "activate": Bool8,
    }

    /// A requested callback.
    8 CallbackEvent "callback" in "event" {
        /// The kind of callback.
        callback_type "callbackType": i32,
    }

    /// The state of a responder changed.
    9 ResponderStateEvent "responderState" in "event" {
        /// The new state.
        state "state": i32,
    }

    /// An event of a multi-stage animation.
    10 MultiStageEvent<'a> "multiStage" in "event" {
        /// The stage.
        stage "stage": i32,
        /// What happened at the stage.
        event "event": MultiStageEventKind,
        /// The animated avatar.
        avatar "avatar": Key<'a>,
    }

    /// An object was spawned.
    11 SpawnedEvent<'a> "spawned" in "event" {
        /// The object that spawned it.
        spawner "spawner": Key<'a>,
        /// The spawned object.
        spawnee "spawnee": Key<'a>,
    }

    /// An interaction of two avatars.
    13 CoopEvent "coop" in "event" {
        /// The player who started the interaction.
        initiator "initiator": u32,
        /// The serial number of the interaction, assigned by that player.
        serial "serial": u16,
    }

    /// A book was offered to another player.
    14 OfferBookEvent<'a> "offerBook" in "event" {
        /// The offering avatar.
        offerer "offerer": Key<'a>,
        /// What happened to the offer.
        event "event": OfferBookKind,
        /// The player to whom it is offered.
        offeree "offeree": u32,
    }

    /// A book was used.
    15 BookEvent "book" in "event" {
        /// What happened.
        event "event": u32,
        /// The number of the link.
        link_id "linkId": u32,
    }

    /// The way is blocked for a climber.
    16 ClimbBlockerEvent<'a> "climbBlocker" in "event" {
        /// The blocking object.
        blocker "blocker": Key<'a>,
    }
}

/// An event in the list of a `plNotifyMsg`.
pub type Event<'d> = Known<NotifyEvent<'d>>;
