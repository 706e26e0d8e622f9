//! The classes of Plasma messages, each declared once.

use super::{
    AgeLink, AvatarChild, BYTES_AFTER_KI_TEXT, CcrCommType, ChatFlags, Child, ConsoleCommand,
    Event, InputState, KiCommand, MessageHeader, ReplyType,
};
use crate::types::{
    BitVector, Bool8, Bool32, CountedString, Float, Floats, Key, List, Matrix44, NetGroupId,
    SafeString, SafeWString, Tail,
};
use crate::walk::{header_of, walked_classes, walked_record};

walked_record! {
    /// A keyboard key that was pressed or released.
    pub struct KeyStroke<'a> {
        ..input: InputEventMsg<'a>,
        /// The key.
        key_code "keyCode": i32,
        /// Whether the key was pressed.
        key_down "keyDown": Bool32,
        /// Whether caps lock is on.
        caps "caps": Bool32,
        /// Whether shift is held.
        shift "shift": Bool32,
        /// Whether control is held.
        ctrl "ctrl": Bool32,
    }
}

header_of! { MessageHeader<'a>, KeyStroke ['a] { ..input: InputEventMsg<'a>, } }

walked_classes! {
    /// A Plasma message.
    pub enum PlasmaMessage<'a>: u16, header MessageHeader<'a>;
    named {
        0x0200 "plObjRefMsg" in "plGenRefMsg"
        0x0201 "plNodeRefMsg" in "plGenRefMsg"
        0x0202 "plMessage" in "plCreatable"
        0x0203 "plRefMsg" in "plMessage"
        0x0204 "plGenRefMsg" in "plRefMsg"
        0x0208 "plLayRefMsg" in "plRefMsg"
        0x0209 "plMatRefMsg" in "plRefMsg"
    }

    /// Controls an animation.
    0x0206 AnimCmdMsg<'a> "plAnimCmdMsg" in "plMessageWithCallbacks" {
        ..message: MessageHeader<'a>,
        /// Messages to send when the animation reaches certain points.
        callbacks "callbacks": List<u32, Child<PlasmaMessage<'a>>>,
        /// The commands, as bit numbers.
        commands "commands": BitVector,
        /// The start of the animation in seconds.
        begin "begin": Float,
        /// The end of the animation in seconds.
        end "end": Float,
        /// The end of the loop. This field precedes the loop's beginning, although one document
        /// says otherwise.
        loop_end "loopEnd": Float,
        /// The beginning of the loop.
        loop_begin "loopBegin": Float,
        /// The playback speed.
        speed "speed": Float,
        /// How fast the speed changes.
        speed_change_rate "speedChangeRate": Float,
        /// The time to seek to.
        time "time": Float,
        /// The animation.
        anim_name "animName": SafeString<'a>,
        /// The name of the loop.
        loop_name "loopName": SafeString<'a>,
    }

    /// Input from a device.
    0x020b InputEventMsg<'a> "plInputEventMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The kind of input; -1 for none.
        event "event": i32,
    }

    /// A keyboard event.
    0x020c KeyEventMsg<'a> "plKeyEventMsg" in "plInputEventMsg" {
        ..stroke: KeyStroke<'a>,
        /// Whether the key repeats automatically.
        repeat "repeat": Bool32,
    }

    /// A mouse event.
    0x020d MouseEventMsg<'a> "plMouseEventMsg" in "plInputEventMsg" {
        ..input: InputEventMsg<'a>,
        /// The horizontal position, from 0 to 1.
        x "x": Float,
        /// The vertical position, from 0 to 1.
        y "y": Float,
        /// The horizontal movement.
        dx "dx": Float,
        /// The vertical movement.
        dy "dy": Float,
        /// The button states.
        button "button": u16,
        /// How far the wheel turned.
        wheel "wheel": Float,
    }

    /// A control command, triggered by a key for example.
    0x0210 ControlEventMsg<'a> "plControlEventMsg" in "plInputEventMsg" {
        ..input: InputEventMsg<'a>,
        /// The command.
        control_code "controlCode": i32,
        /// Whether the control is activated or released.
        activated "activated": Bool32,
        /// The strength of the control.
        percent "percent": Float,
        /// The point to turn to.
        turn_to "turnTo": Floats<3>,
        /// The console command to run, if any.
        command "command": ConsoleCommand<'a>,
    }

    /// A keyboard event for debugging.
    0x024a DebugKeyEventMsg<'a> "plDebugKeyEventMsg" in "plInputEventMsg" {
        ..stroke: KeyStroke<'a>,
    }

    /// Loads or unloads a clone.
    0x0253 LoadCloneMsg<'a> "plLoadCloneMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The clone.
        clone "clone": Key<'a>,
        /// The object that requested it.
        requestor "requestor": Key<'a>,
        /// The player whose client created the clone. Clients ignore clones of players who are not
        /// in their member list.
        originating_player_id "originatingPlayerId": u32,
        /// Arbitrary data of the requestor.
        user_data "userData": u32,
        /// Whether the clone was given a valid key.
        valid "valid": Bool8,
        /// True to load, false to unload.
        loading "loading": Bool8,
        /// The message to send after loading.
        trigger "trigger": Child<PlasmaMessage<'a>>,
    }

    /// Enables or disables parts of an object.
    0x0254 EnableMsg<'a> "plEnableMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The commands, as bit numbers.
        commands "commands": BitVector,
        /// The parts, as bit numbers.
        types "types": BitVector,
    }

    /// Moves an object instantly.
    0x0255 WarpMsg<'a> "plWarpMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The new position and orientation.
        matrix "matrix": Matrix44,
        /// Options of the move.
        warp_flags "warpFlags": u32,
    }

    /// Makes a customer service avatar invisible.
    0x0269 CcrInvisibleMsg<'a> "plCCRInvisibleMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The avatar.
        avatar "avatar": Key<'a>,
        /// The level below which players cannot see it.
        level "level": u8,
    }

    /// A server's reply to a lock request.
    0x026f ServerReplyMsg<'a> "plServerReplyMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The reply. Clients treat everything but a denial as a grant.
        reply_type "replyType": ReplyType,
    }

    /// Horizontal mouse movement.
    0x0273 IMouseXEventMsg<'a> "plIMouseXEventMsg" in "plInputEventMsg" {
        ..input: InputEventMsg<'a>,
        /// The position, from 0 to 1.
        x "x": Float,
        /// The position in pixels.
        wx "wx": i32,
    }

    /// Vertical mouse movement.
    0x0274 IMouseYEventMsg<'a> "plIMouseYEventMsg" in "plInputEventMsg" {
        ..input: InputEventMsg<'a>,
        /// The position, from 0 to 1.
        y "y": Float,
        /// The position in pixels.
        wy "wy": i32,
    }

    /// A mouse button event.
    0x0275 IMouseBEventMsg<'a> "plIMouseBEventMsg" in "plInputEventMsg" {
        ..input: InputEventMsg<'a>,
        /// The button states.
        button "button": u16,
    }

    /// A player's request for help from customer service.
    0x0287 CcrPetitionMsg<'a> "plCCRPetitionMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The text.
        note "note": CountedString<'a>,
        /// The subject.
        title "title": CountedString<'a>,
        /// The category of the problem.
        petition_type "petitionType": u8,
    }

    /// Assigns a task to an avatar.
    0x0298 AvTaskMsg<'a> "plAvTaskMsg" in "plAvatarMsg" {
        ..message: MessageHeader<'a>,
        /// Whether a task follows.
        has_task "hasTask": Bool8,
        /// The task.
        task "task": AvatarChild<'a> where has_task.is_true(),
    }

    /// Makes an avatar go to a point.
    0x0299 AvSeekMsg<'a> "plAvSeekMsg" in "plAvTaskMsg" {
        ..task_msg: AvTaskMsg<'a>,
        /// The object to go to.
        seek_point "seekPoint": Key<'a>,
        /// The position to go to, if there is no object.
        target_pos "targetPos": Floats<3> where seek_point.is_none(),
        /// The position to look at, if there is no object.
        target_look_at "targetLookAt": Floats<3> where seek_point.is_none(),
        /// The duration in seconds.
        duration "duration": Float,
        /// Whether the avatar walks there.
        smart_seek "smartSeek": Bool8,
        /// An animation that starts at the point.
        anim_name "animName": SafeString<'a>,
        /// How the avatar is aligned with it.
        align_type "alignType": u16,
        /// Whether the avatar stays where it is.
        no_seek "noSeek": Bool8,
        /// Further options.
        flags "flags": u8,
        /// The object to notify at the end.
        finish_key "finishKey": Key<'a>,
    }

    /// Makes an avatar go to a point and play an animation.
    0x029a AvOneShotMsg<'a> "plAvOneShotMsg" in "plAvSeekMsg" {
        ..seek: AvSeekMsg<'a>,
        /// The animation.
        one_shot_anim "oneShotAnim": SafeString<'a>,
        /// Whether the player controls the animation.
        drivable "drivable": Bool8,
        /// Whether the animation can be reversed.
        reversible "reversible": Bool8,
    }

    /// Communication between customer service and a player.
    0x02b7 CcrCommunicationMsg<'a> "plCCRCommunicationMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The text.
        text "text": CountedString<'a>,
        /// The kind of communication.
        comm_type "commType": CcrCommType,
        /// The representative's player number.
        ccr_player_id "ccrPlayerId": u32,
    }

    /// An avatar has reached its target.
    0x02c0 AvTaskSeekDoneMsg<'a> "plAvTaskSeekDoneMsg" in "plAvatarMsg" {
        ..message: MessageHeader<'a>,
        /// Whether it gave up.
        aborted "aborted": Bool8,
    }

    /// Forbids a player to link, or lifts the ban; from customer service.
    0x02cf CcrBanLinkingMsg<'a> "plCCRBanLinkingMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// True to forbid.
        ban "ban": Bool8,
    }

    /// Silences a player, or lets the player speak again; from customer service.
    0x02d0 CcrSilencePlayerMsg<'a> "plCCRSilencePlayerMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// True to silence.
        silence "silence": Bool8,
    }

    /// Links a player to an age.
    0x02e6 LinkToAgeMsg<'a> "plLinkToAgeMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// Options of the link.
        flags "flags": u8,
        /// The destination.
        age_link "ageLink": AgeLink<'a>,
        /// The link animation.
        anim "anim": SafeString<'a>,
    }

    /// Reports events, for example to responders.
    0x02ed NotifyMsg<'a> "plNotifyMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The kind of notification; 0 for an activator.
        notify_type "notifyType": i32,
        /// The state of the sender.
        state "state": Float,
        /// The responder it is meant for.
        id "id": i32,
        /// The events.
        events "events": List<u32, Event<'a>>,
    }

    /// Shows or hides an avatar with link effects.
    0x0300 LinkEffectsTriggerMsg<'a> "plLinkEffectsTriggerMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The invisibility level of the avatar.
        invis_level "invisLevel": i32,
        /// Whether the avatar is leaving.
        leaving "leaving": Bool8,
        /// The avatar.
        link_key "linkKey": Key<'a>,
        /// The effects to play.
        effects "effects": u32,
        /// The link animation.
        anim "anim": Key<'a>,
    }

    /// Transfers particles to an object.
    0x0333 ParticleTransferMsg<'a> "plParticleTransferMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The particle system they come from.
        particle_system "particleSystem": Key<'a>,
        /// The number of particles.
        count "count": u16,
    }

    /// Removes particles.
    0x0334 ParticleKillMsg<'a> "plParticleKillMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The number or fraction of particles.
        num_to_kill "numToKill": Float,
        /// The remaining time in seconds.
        time_left "timeLeft": Float,
        /// Options of the removal.
        flags "flags": u8,
    }

    /// The input state of an avatar.
    0x0347 AvatarInputStateMsg<'a> "plAvatarInputStateMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The active inputs.
        state "state": InputState,
    }

    /// A command for the linking manager.
    0x034b LinkingMgrMsg<'a> "plLinkingMgrMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// Which fields follow.
        contents "contents": BitVector,
        /// The command.
        command "command": u8 where contents.contains(0),
        /// A list of creatables. Unverified: its layout; all remaining bytes are kept.
        list "list": Tail<'a> where contents.contains(1),
    }

    /// Changes an avatar's clothes.
    0x0357 ClothingMsg<'a> "plClothingMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The commands.
        commands "commands": u32,
        /// Whether a key follows.
        has_item "hasItem": Bool8,
        /// The item of clothing; may be null.
        item "item": Key<'a> where has_item.is_true(),
        /// The item's colour.
        color "color": Floats<4>,
        /// The colour layer.
        layer "layer": u8,
        /// The amount of change.
        delta "delta": u8,
        /// The weight of a body morph.
        weight "weight": Float,
    }

    /// A command for the input interface; used when players offer links to each other.
    0x0363 InputIfaceMgrMsg<'a> "plInputIfaceMgrMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The command.
        command "command": u8,
        /// A page, or the player who receives the offer.
        page_id "pageId": u32,
        /// The age.
        age_name "ageName": SafeString<'a>,
        /// The age's file name.
        age_file_name "ageFileName": SafeString<'a>,
        /// The arrival point in the age.
        spawn_point "spawnPoint": SafeString<'a>,
        /// The offering avatar.
        avatar "avatar": Key<'a>,
    }

    /// A KI command, usually chat.
    0x0364 KiMsg<'a> "pfKIMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The command. Servers only forward chat.
        command "command": KiCommand,
        /// The name of the sender.
        user "user": SafeString<'a>,
        /// The sender's KI number.
        player_id "playerId": u32,
        /// The text.
        text "text": SafeWString<'a, BYTES_AFTER_KI_TEXT>,
        /// The kind of chat.
        flags "flags": ChatFlags,
        /// The delay in seconds.
        delay "delay": Float,
        /// An additional value for some commands.
        value "value": i32,
    }

    /// Gives an avatar a brain.
    0x0367 AvPushBrainMsg<'a> "plAvPushBrainMsg" in "plAvTaskMsg" {
        ..task_msg: AvTaskMsg<'a>,
        /// The brain.
        brain "brain": AvatarChild<'a>,
    }

    /// Removes an avatar's topmost brain.
    0x0368 AvPopBrainMsg<'a> "plAvPopBrainMsg" in "plAvTaskMsg" {
        ..task_msg: AvTaskMsg<'a>,
    }

    /// Controls a brain that runs through stages.
    0x038f AvBrainGenericMsg<'a> "plAvBrainGenericMsg" in "plAvatarMsg" {
        ..message: MessageHeader<'a>,
        /// The command.
        brain_msg_type "brainMsgType": u32,
        /// The stage to go to.
        stage "stage": i32,
        /// Whether to set the time.
        set_time "setTime": Bool8,
        /// The time to set.
        new_time "newTime": Float,
        /// Whether to set the direction.
        set_direction "setDirection": Bool8,
        /// The direction: true is forward.
        new_direction "newDirection": Bool8,
        /// The transition time in seconds.
        transition_time "transitionTime": Float,
    }

    /// Controls a multi-stage animation.
    0x03a3 MultistageModMsg<'a> "plMultistageModMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The commands, as bit numbers.
        commands "commands": BitVector,
        /// The stage to go to.
        stage "stage": u8,
        /// The number of repetitions.
        loops "loops": u8,
    }

    /// Leaves a mark where a shot hits.
    0x03a6 BulletMsg<'a> "plBulletMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The command.
        command "command": u8,
        /// The origin of the shot.
        from_pos "fromPos": Floats<3>,
        /// The direction of the shot.
        direction "direction": Floats<3>,
        /// The range.
        range "range": Float,
        /// The radius.
        radius "radius": Float,
        /// How long the mark stays.
        party_time "partyTime": Float,
    }

    /// Loads or unloads an avatar.
    0x03b1 LoadAvatarMsg<'a> "plLoadAvatarMsg" in "plLoadCloneMsg" {
        ..clone_msg: LoadCloneMsg<'a>,
        /// Whether it is the avatar of a player.
        is_player "isPlayer": Bool8,
        /// The arrival point.
        spawn_point "spawnPoint": Key<'a>,
        /// Whether a task follows.
        has_initial_task "hasInitialTask": Bool8,
        /// The avatar's first task.
        initial_task "initialTask": AvatarChild<'a> where has_initial_task.is_true(),
        /// Additional text.
        user_string "userString": SafeString<'a>,
    }

    /// Moves an avatar to another physical world, such as a ship.
    0x03bf SubWorldMsg<'a> "plSubWorldMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The new world.
        world "world": Key<'a>,
    }

    /// Makes an avatar climb.
    0x0451 ClimbMsg<'a> "plClimbMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The command.
        command "command": u32,
        /// The direction.
        direction "direction": u32,
        /// Whether that direction is open.
        status "status": Bool8,
        /// The object to climb.
        target "target": Key<'a>,
    }

    /// Coordinates two avatars.
    0x045e AvCoopMsg<'a> "plAvCoopMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// Whether a coordinator follows.
        has_coordinator "hasCoordinator": Bool8,
        /// The coordinator: a `plCoopCoordinator`.
        coordinator "coordinator": AvatarChild<'a> where has_coordinator.is_true(),
        /// The player who started the interaction.
        initiator_id "initiatorId": u32,
        /// The serial number of the interaction, assigned by that player.
        initiator_serial "initiatorSerial": u16,
        /// The command.
        command "command": u16,
    }

    /// Moves an object to another net group.
    0x0464 SetNetGroupIdMsg<'a> "plSetNetGroupIDMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The group.
        group "group": NetGroupId,
    }

    /// A message to scripts, for testing. Servers never forward it.
    0x0465 BackdoorMsg<'a> "pfBackdoorMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The script it is for.
        target "target": SafeString<'a>,
        /// The text.
        string "string": SafeString<'a>,
    }

    /// Moves an avatar within an age with link effects.
    0x0494 PseudoLinkEffectMsg<'a> "plPseudoLinkEffectMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The destination.
        link_object "linkObject": Key<'a>,
        /// The avatar.
        avatar "avatar": Key<'a>,
    }
}
