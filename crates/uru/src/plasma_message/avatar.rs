//! Objects inside messages to avatars.

use crate::plasma_message::{Child, PlasmaMessage};
use crate::types::{Bool8, Double, Float, Key, List, SafeString};
use crate::walk::{walked_classes, walked_record};

/// A task, brain, stage or coordinator inside a message.
pub type AvatarChild<'a> = Child<AvatarObject<'a>>;

walked_record! {
    /// The fields common to all brains: 21 bytes, zero in practice; longer only if there is a key.
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
    /// A stage of a brain, with its progress.
    pub struct StageState<'a> {
        /// The stage: a `plAnimStage`.
        stage "stage": AvatarChild<'a>,
        /// The elapsed time in seconds.
        local_time "localTime": Float,
        /// The duration in seconds.
        length "length": Float,
        /// The current repetition.
        cur_loop "curLoop": i32,
        /// Whether its animation is attached.
        attached "attached": Bool8,
    }
}

walked_classes! {
    /// An object contained in a message to an avatar.
    pub enum AvatarObject<'a>: u16;

    /// Coordinates an action of two avatars.
    0x011b CoopCoordinator<'a> "plCoopCoordinator" in "hsKeyedObject" {
        /// The avatar that offers the action.
        host_key "hostKey": Key<'a>,
        /// The avatar that accepts it.
        guest_key "guestKey": Key<'a>,
        /// The host's brain.
        host_brain "hostBrain": AvatarChild<'a>,
        /// The guest's brain.
        guest_brain "guestBrain": AvatarChild<'a>,
        /// The stage at which the host offers.
        host_offer_stage "hostOfferStage": u8,
        /// The stage at which the guest accepts.
        guest_accept_stage "guestAcceptStage": u8,
        /// Whether a message follows.
        has_guest_accept_msg "hasGuestAcceptMsg": Bool8,
        /// The message to send when the guest accepts.
        guest_accept_msg "guestAcceptMsg": Child<PlasmaMessage<'a>>
            where has_guest_accept_msg.is_true(),
        /// The bone at which the avatars meet.
        synch_bone "synchBone": SafeString<'a>,
        /// Whether the guest starts automatically.
        auto_start_guest "autoStartGuest": Bool8,
    }

    /// The default brain of a player.
    0x035c AvBrainHuman<'a> "plAvBrainHuman" in "plArmatureBrain" {
        ..brain: ArmatureBrain<'a>,
        /// Whether the avatar is not one of the two standard bodies.
        custom_avatar "customAvatar": Bool8,
    }

    /// A brain that runs through stages.
    0x0360 AvBrainGeneric<'a> "plAvBrainGeneric" in "plArmatureBrain" {
        ..brain: ArmatureBrain<'a>,
        /// The stages.
        stages "stages": List<u32, StageState<'a>>,
        /// The current stage.
        cur_stage "curStage": i32,
        /// The purpose of the brain.
        brain_type "brainType": u32,
        /// The conditions that end the brain.
        exit_flags "exitFlags": u32,
        /// Whether it is starting, running or ending.
        mode "mode": u8,
        /// Whether it runs through the stages forwards.
        forward "forward": Bool8,
        /// Whether a message follows.
        has_start_msg "hasStartMsg": Bool8,
        /// The message to send when it starts.
        start_msg "startMsg": Child<PlasmaMessage<'a>> where has_start_msg.is_true(),
        /// Whether a message follows.
        has_end_msg "hasEndMsg": Bool8,
        /// The message to send when it ends.
        end_msg "endMsg": Child<PlasmaMessage<'a>> where has_end_msg.is_true(),
        /// How fast it fades in.
        fade_in "fadeIn": Float,
        /// How fast it fades out.
        fade_out "fadeOut": Float,
        /// How the avatar moves in the meantime.
        move_mode "moveMode": u8,
        /// The part of the body it uses.
        body_usage "bodyUsage": u8,
        /// The receiver of notifications about its stages.
        recipient "recipient": Key<'a>,
    }

    /// An animation.
    0x036b AvAnimTask<'a> "plAvAnimTask" in "plAvTask" {
        /// The animation.
        anim_name "animName": SafeString<'a>,
        /// The blend strength at the start.
        initial_blend "initialBlend": Float,
        /// The blend strength to reach.
        target_blend "targetBlend": Float,
        /// How fast the strength changes.
        fade_speed "fadeSpeed": Float,
        /// Where to start, in seconds; negative to keep the current time.
        set_time "setTime": Float,
        /// Whether to start the animation.
        start "start": Bool8,
        /// Whether the animation repeats.
        loop_ "loop": Bool8,
        /// Whether to attach the animation.
        attach "attach": Bool8,
    }

    /// A one-shot animation; it has no encoded fields.
    0x036e AvOneShotTask "plAvOneShotTask" in "plAvTask" {
    }

    /// Starts or ends a brain.
    0x0370 AvTaskBrain<'a> "plAvTaskBrain" in "plAvTask" {
        /// The brain.
        brain "brain": AvatarChild<'a>,
    }

    /// A stage: an animation and the conditions for moving to other stages.
    0x0371 AnimStage<'a> "plAnimStage" in "plCreatable" {
        /// The animation.
        anim "anim": SafeString<'a>,
        /// The events to report.
        notify "notify": u8,
        /// What plays the animation forwards.
        forward "forward": u32,
        /// What plays the animation backwards.
        back "back": u32,
        /// What advances to the next stage.
        advance "advance": u32,
        /// What returns to the previous stage.
        regress "regress": u32,
        /// The number of repetitions; negative for unlimited.
        loops "loops": i32,
        /// Whether to advance to a stage other than the next.
        do_advance "doAdvance": Bool8,
        /// The stage to advance to.
        advance_to "advanceTo": u32,
        /// Whether to return to a stage other than the previous one.
        do_regress "doRegress": Bool8,
        /// The stage to return to.
        regress_to "regressTo": u32,
    }

    /// A one-shot animation that links.
    0x0488 AvOneShotLinkTask<'a> "plAvOneShotLinkTask" in "plAvOneShotTask" {
        /// The animation.
        anim_name "animName": SafeString<'a>,
        /// The marker in the animation at which the link begins.
        marker_name "markerName": SafeString<'a>,
    }

    /// A brain that runs through stages together with another avatar.
    ///
    /// Unverified: the names of the fields after those of [`AvBrainGeneric`]; only their types are
    /// documented.
    0x045f AvBrainCoop<'a> "plAvBrainCoop" in "plAvBrainGeneric" {
        ..generic: AvBrainGeneric<'a>,
        /// The player who started the interaction.
        initiator_id "initiatorId": u32,
        /// The serial number of the interaction, assigned by that player.
        initiator_serial "initiatorSerial": u16,
        /// Whether a key follows.
        has_host_key "hasHostKey": Bool8,
        /// The avatar that offered the interaction.
        host_key "hostKey": Key<'a> where has_host_key.is_true(),
        /// Whether a key follows.
        has_guest_key "hasGuestKey": Bool8,
        /// The avatar that accepted it.
        guest_key "guestKey": Key<'a> where has_guest_key.is_true(),
        /// Whether it waits for a click.
        waiting_for_click "waitingForClick": Bool8,
        /// The receivers of notifications.
        recipients "recipients": List<u16, Key<'a>>,
    }
}
