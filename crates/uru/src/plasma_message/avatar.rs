//! What avatars do: the objects inside messages to them.

use crate::plasma_message::{Child, PlasmaMessage};
use crate::types::{Bool8, Double, Float, Key, List, SafeString};
use crate::walk::{walked_classes, walked_record};

/// A task, brain, stage or coordinator inside a message.
pub type AvatarChild<'a> = Child<AvatarObject<'a>>;

walked_record! {
    /// What all brains begin with: 21 bytes that are zero today, and more only if there is a key.
    pub struct ArmatureBrain<'a> {
        /// Reserved.
        reserved1 "reserved1": u32,
        /// Whether a key follows.
        has_key "hasKey": Bool8,
        /// Reserved.
        key "key": Key<'a> where has_key.is_true(),
        /// Reserved.
        reserved2 "reserved2": u32,
        /// Reserved.
        reserved3 "reserved3": Float,
        /// Reserved.
        reserved4 "reserved4": Double,
    }
}

walked_record! {
    /// A stage of a brain, and how far it has come.
    pub struct StageState<'a> {
        /// The stage: a `plAnimStage`.
        stage "stage": AvatarChild<'a>,
        /// How far it has come, in seconds.
        local_time "localTime": Float,
        /// How long it takes, in seconds.
        length "length": Float,
        /// Which repetition it is in.
        cur_loop "curLoop": i32,
        /// Whether its animation is attached.
        attached "attached": Bool8,
    }
}

walked_classes! {
    /// An object that messages to avatars hold.
    pub enum AvatarObject<'a>: u16;

    /// How two avatars do something together.
    0x011b CoopCoordinator<'a> "plCoopCoordinator" in "hsKeyedObject" {
        /// The avatar that offers.
        host_key "hostKey": Key<'a>,
        /// The avatar that accepts.
        guest_key "guestKey": Key<'a>,
        /// The brain of the one.
        host_brain "hostBrain": AvatarChild<'a>,
        /// The brain of the other.
        guest_brain "guestBrain": AvatarChild<'a>,
        /// The stage in which the host offers.
        host_offer_stage "hostOfferStage": u8,
        /// The stage in which the guest accepts.
        guest_accept_stage "guestAcceptStage": u8,
        /// Whether a message follows.
        has_guest_accept_msg "hasGuestAcceptMsg": Bool8,
        /// What is sent when the guest accepts.
        guest_accept_msg "guestAcceptMsg": Child<PlasmaMessage<'a>>
            where has_guest_accept_msg.is_true(),
        /// The bone at which they meet.
        synch_bone "synchBone": SafeString<'a>,
        /// Whether the guest begins by itself.
        auto_start_guest "autoStartGuest": Bool8,
    }

    /// The brain of a player.
    0x035c AvBrainHuman<'a> "plAvBrainHuman" in "plArmatureBrain" {
        ..brain: ArmatureBrain<'a>,
        /// Whether the avatar is not one of the usual two.
        custom_avatar "customAvatar": Bool8,
    }

    /// A brain that goes through stages.
    0x0360 AvBrainGeneric<'a> "plAvBrainGeneric" in "plArmatureBrain" {
        ..brain: ArmatureBrain<'a>,
        /// The stages.
        stages "stages": List<u32, StageState<'a>>,
        /// The stage it is in.
        cur_stage "curStage": i32,
        /// What it is for.
        brain_type "brainType": u32,
        /// What ends it.
        exit_flags "exitFlags": u32,
        /// Whether it is going in, at it, or going out.
        mode "mode": u8,
        /// Which way it goes through the stages.
        forward "forward": Bool8,
        /// Whether a message follows.
        has_start_msg "hasStartMsg": Bool8,
        /// What is sent when it begins.
        start_msg "startMsg": Child<PlasmaMessage<'a>> where has_start_msg.is_true(),
        /// Whether a message follows.
        has_end_msg "hasEndMsg": Bool8,
        /// What is sent when it ends.
        end_msg "endMsg": Child<PlasmaMessage<'a>> where has_end_msg.is_true(),
        /// How fast it blends in.
        fade_in "fadeIn": Float,
        /// How fast it blends out.
        fade_out "fadeOut": Float,
        /// How the avatar moves meanwhile.
        move_mode "moveMode": u8,
        /// Which part of the body it uses.
        body_usage "bodyUsage": u8,
        /// Who is told of its stages.
        recipient "recipient": Key<'a>,
    }

    /// An animation.
    0x036b AvAnimTask<'a> "plAvAnimTask" in "plAvTask" {
        /// The animation.
        anim_name "animName": SafeString<'a>,
        /// How strong it is at the beginning.
        initial_blend "initialBlend": Float,
        /// How strong it becomes.
        target_blend "targetBlend": Float,
        /// How fast.
        fade_speed "fadeSpeed": Float,
        /// Where it begins, in seconds; below 0 is where it is.
        set_time "setTime": Float,
        /// Whether it is started.
        start "start": Bool8,
        /// Whether it repeats.
        loop_ "loop": Bool8,
        /// Whether it is attached.
        attach "attach": Bool8,
    }

    /// A single animation; it has no wire form beyond its class.
    0x036e AvOneShotTask "plAvOneShotTask" in "plAvTask" {
    }

    /// Begins or ends a brain.
    0x0370 AvTaskBrain<'a> "plAvTaskBrain" in "plAvTask" {
        /// The brain.
        brain "brain": AvatarChild<'a>,
    }

    /// A stage: an animation, and what leads on and back.
    0x0371 AnimStage<'a> "plAnimStage" in "plCreatable" {
        /// The animation.
        anim "anim": SafeString<'a>,
        /// What of it is told.
        notify "notify": u8,
        /// What makes it go forward.
        forward "forward": u32,
        /// What makes it go back.
        back "back": u32,
        /// What leads to the next stage.
        advance "advance": u32,
        /// What leads to the stage before.
        regress "regress": u32,
        /// How often it repeats; below 0 is for ever.
        loops "loops": i32,
        /// Whether it leads to another stage than the next.
        do_advance "doAdvance": Bool8,
        /// Which one.
        advance_to "advanceTo": u32,
        /// Whether it leads back to another stage than the one before.
        do_regress "doRegress": Bool8,
        /// Which one.
        regress_to "regressTo": u32,
    }

    /// A single animation that links.
    0x0488 AvOneShotLinkTask<'a> "plAvOneShotLinkTask" in "plAvOneShotTask" {
        /// The animation.
        anim_name "animName": SafeString<'a>,
        /// The marker in it at which the link begins.
        marker_name "markerName": SafeString<'a>,
    }

    /// A brain that goes through stages together with another avatar.
    ///
    /// Unverified: the names of the fields behind those of [`AvBrainGeneric`]; only their types are
    /// documented.
    0x045f AvBrainCoop<'a> "plAvBrainCoop" in "plAvBrainGeneric" {
        ..generic: AvBrainGeneric<'a>,
        /// The player who began it.
        initiator_id "initiatorId": u32,
        /// Which of that player's it is.
        initiator_serial "initiatorSerial": u16,
        /// Whether a key follows.
        has_host_key "hasHostKey": Bool8,
        /// The avatar that offered.
        host_key "hostKey": Key<'a> where has_host_key.is_true(),
        /// Whether a key follows.
        has_guest_key "hasGuestKey": Bool8,
        /// The avatar that accepted.
        guest_key "guestKey": Key<'a> where has_guest_key.is_true(),
        /// Whether it waits for a click.
        waiting_for_click "waitingForClick": Bool8,
        /// Who is told.
        recipients "recipients": List<u16, Key<'a>>,
    }
}
