//! The classes of Plasma messages, each declared once.

use super::{
    AgeLink, AvatarChild, BYTES_AFTER_KI_TEXT, CcrCommType, ChatFlags, Child, ConsoleCommand,
    Event, InputState, KiCommand, MessageHeader, ReplyType,
};
use crate::types::{
    BitVector, Bool8, Bool32, CountedString, Float, Floats, Key, List, Matrix44, NetGroupId,
    SafeString, SafeWString, Tail,
};
use crate::walk::{walked_classes, walked_record};

walked_record! {
    /// A key of the keyboard that went down or up.
    pub struct KeyStroke<'a> {
        ..input: InputEventMsg<'a>,
        /// The key.
        key_code "keyCode": i32,
        /// Whether it went down.
        key_down "keyDown": Bool32,
        /// Whether capitals are locked.
        caps "caps": Bool32,
        /// Whether the shift key is down.
        shift "shift": Bool32,
        /// Whether the control key is down.
        ctrl "ctrl": Bool32,
    }
}

walked_classes! {
    /// A Plasma message.
    pub enum PlasmaMessage<'a>: u16;
    named {
        0x0200 "plObjRefMsg" in "plGenRefMsg"
        0x0201 "plNodeRefMsg" in "plGenRefMsg"
        0x0202 "plMessage" in "plCreatable"
        0x0203 "plRefMsg" in "plMessage"
        0x0204 "plGenRefMsg" in "plRefMsg"
        0x0208 "plLayRefMsg" in "plRefMsg"
        0x0209 "plMatRefMsg" in "plRefMsg"
    }

    /// Commands to an animation.
    0x0206 AnimCmdMsg<'a> "plAnimCmdMsg" in "plMessageWithCallbacks" {
        ..message: MessageHeader<'a>,
        /// What is sent when the animation comes to certain places.
        callbacks "callbacks": List<u32, Child<PlasmaMessage<'a>>>,
        /// The commands, by their numbers.
        commands "commands": BitVector,
        /// Where the animation begins, in seconds.
        begin "begin": Float,
        /// Where it ends.
        end "end": Float,
        /// Where a repetition ends; it stands before the beginning, though one document says
        /// otherwise.
        loop_end "loopEnd": Float,
        /// Where a repetition begins.
        loop_begin "loopBegin": Float,
        /// How fast it runs.
        speed "speed": Float,
        /// How fast it comes to that speed.
        speed_change_rate "speedChangeRate": Float,
        /// Where it is put.
        time "time": Float,
        /// The animation.
        anim_name "animName": SafeString<'a>,
        /// The part of it that repeats.
        loop_name "loopName": SafeString<'a>,
    }

    /// Something came from an input device.
    0x020b InputEventMsg<'a> "plInputEventMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// What it was; -1 is nothing.
        event "event": i32,
    }

    /// A key of the keyboard.
    0x020c KeyEventMsg<'a> "plKeyEventMsg" in "plInputEventMsg" {
        ..stroke: KeyStroke<'a>,
        /// Whether the key repeats.
        repeat "repeat": Bool32,
    }

    /// The mouse.
    0x020d MouseEventMsg<'a> "plMouseEventMsg" in "plInputEventMsg" {
        ..input: InputEventMsg<'a>,
        /// Where it is, from 0 to 1.
        x "x": Float,
        /// Where it is, from 0 to 1.
        y "y": Float,
        /// How far it moved.
        dx "dx": Float,
        /// How far it moved.
        dy "dy": Float,
        /// The buttons.
        button "button": u16,
        /// How far the wheel turned.
        wheel "wheel": Float,
    }

    /// A command that a key, or something else, stands for.
    0x0210 ControlEventMsg<'a> "plControlEventMsg" in "plInputEventMsg" {
        ..input: InputEventMsg<'a>,
        /// The command.
        control_code "controlCode": i32,
        /// Whether it begins or ends.
        activated "activated": Bool32,
        /// How much of it.
        percent "percent": Float,
        /// Where to turn.
        turn_to "turnTo": Floats<3>,
        /// A console command, if it stands for one.
        command "command": ConsoleCommand<'a>,
    }

    /// A key of the keyboard, for debugging.
    0x024a DebugKeyEventMsg<'a> "plDebugKeyEventMsg" in "plInputEventMsg" {
        ..stroke: KeyStroke<'a>,
    }

    /// A copy of an object is loaded or unloaded.
    0x0253 LoadCloneMsg<'a> "plLoadCloneMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The copy.
        clone "clone": Key<'a>,
        /// Who wants it.
        requestor "requestor": Key<'a>,
        /// The player whose client made it. A client ignores a copy that is loaded for a player
        /// who is not in its member list.
        originating_player_id "originatingPlayerId": u32,
        /// The requestor's own.
        user_data "userData": u32,
        /// Whether the copy could be named.
        valid "valid": Bool8,
        /// Whether it is loaded or unloaded.
        loading "loading": Bool8,
        /// What is sent when it is loaded.
        trigger "trigger": Child<PlasmaMessage<'a>>,
    }

    /// Switches parts of an object on or off.
    0x0254 EnableMsg<'a> "plEnableMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The commands, by their numbers.
        commands "commands": BitVector,
        /// Which parts.
        types "types": BitVector,
    }

    /// Puts an object somewhere else.
    0x0255 WarpMsg<'a> "plWarpMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// Where.
        matrix "matrix": Matrix44,
        /// How.
        warp_flags "warpFlags": u32,
    }

    /// Makes an avatar of customer service invisible.
    0x0269 CcrInvisibleMsg<'a> "plCCRInvisibleMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The avatar.
        avatar "avatar": Key<'a>,
        /// To whom below which level.
        level "level": u8,
    }

    /// The answer of a server to a request for a lock.
    0x026f ServerReplyMsg<'a> "plServerReplyMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The answer. Clients take everything but a no as a yes.
        reply_type "replyType": ReplyType,
    }

    /// The mouse moved sideways.
    0x0273 IMouseXEventMsg<'a> "plIMouseXEventMsg" in "plInputEventMsg" {
        ..input: InputEventMsg<'a>,
        /// Where it is, from 0 to 1.
        x "x": Float,
        /// Where it is, in pixels.
        wx "wx": i32,
    }

    /// The mouse moved up or down.
    0x0274 IMouseYEventMsg<'a> "plIMouseYEventMsg" in "plInputEventMsg" {
        ..input: InputEventMsg<'a>,
        /// Where it is, from 0 to 1.
        y "y": Float,
        /// Where it is, in pixels.
        wy "wy": i32,
    }

    /// Buttons of the mouse.
    0x0275 IMouseBEventMsg<'a> "plIMouseBEventMsg" in "plInputEventMsg" {
        ..input: InputEventMsg<'a>,
        /// The buttons.
        button "button": u16,
    }

    /// A player asks customer service for help.
    0x0287 CcrPetitionMsg<'a> "plCCRPetitionMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The text.
        note "note": CountedString<'a>,
        /// What it is about.
        title "title": CountedString<'a>,
        /// What kind of trouble it is.
        petition_type "petitionType": u8,
    }

    /// A task for an avatar.
    0x0298 AvTaskMsg<'a> "plAvTaskMsg" in "plAvatarMsg" {
        ..message: MessageHeader<'a>,
        /// Whether a task follows.
        has_task "hasTask": Bool8,
        /// The task.
        task "task": AvatarChild<'a> where has_task.is_true(),
    }

    /// An avatar goes somewhere.
    0x0299 AvSeekMsg<'a> "plAvSeekMsg" in "plAvTaskMsg" {
        ..task_msg: AvTaskMsg<'a>,
        /// The object to go to.
        seek_point "seekPoint": Key<'a>,
        /// Where to go, if to no object.
        target_pos "targetPos": Floats<3> where seek_point.0.is_none(),
        /// Where to look, if to no object.
        target_look_at "targetLookAt": Floats<3> where seek_point.0.is_none(),
        /// In how many seconds.
        duration "duration": Float,
        /// Whether it walks there.
        smart_seek "smartSeek": Bool8,
        /// An animation that should begin at the point.
        anim_name "animName": SafeString<'a>,
        /// How it is aligned.
        align_type "alignType": u16,
        /// Whether it stays where it is.
        no_seek "noSeek": Bool8,
        /// More of how.
        flags "flags": u8,
        /// Who is told of the end.
        finish_key "finishKey": Key<'a>,
    }

    /// An avatar goes somewhere and plays an animation.
    0x029a AvOneShotMsg<'a> "plAvOneShotMsg" in "plAvSeekMsg" {
        ..seek: AvSeekMsg<'a>,
        /// The animation.
        one_shot_anim "oneShotAnim": SafeString<'a>,
        /// Whether the player can drive it.
        drivable "drivable": Bool8,
        /// Whether it can go back.
        reversible "reversible": Bool8,
    }

    /// Customer service talks with a player.
    0x02b7 CcrCommunicationMsg<'a> "plCCRCommunicationMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The text.
        text "text": CountedString<'a>,
        /// What it says.
        comm_type "commType": CcrCommType,
        /// The player number of the representative.
        ccr_player_id "ccrPlayerId": u32,
    }

    /// An avatar has come where it went.
    0x02c0 AvTaskSeekDoneMsg<'a> "plAvTaskSeekDoneMsg" in "plAvatarMsg" {
        ..message: MessageHeader<'a>,
        /// Whether it gave up.
        aborted "aborted": Bool8,
    }

    /// Customer service forbids a player to link.
    0x02cf CcrBanLinkingMsg<'a> "plCCRBanLinkingMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// Whether it is forbidden.
        ban "ban": Bool8,
    }

    /// Customer service forbids a player to talk.
    0x02d0 CcrSilencePlayerMsg<'a> "plCCRSilencePlayerMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// Whether it is forbidden.
        silence "silence": Bool8,
    }

    /// A player links to an age.
    0x02e6 LinkToAgeMsg<'a> "plLinkToAgeMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// How.
        flags "flags": u8,
        /// Where to.
        age_link "ageLink": AgeLink<'a>,
        /// The animation of the link.
        anim "anim": SafeString<'a>,
    }

    /// Something happened.
    0x02ed NotifyMsg<'a> "plNotifyMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// Who tells of it: 0 an activator.
        notify_type "notifyType": i32,
        /// How much of it happened.
        state "state": Float,
        /// Which responder it is for.
        id "id": i32,
        /// What happened.
        events "events": List<u32, Event<'a>>,
    }

    /// An avatar appears or vanishes with the effects of a link.
    0x0300 LinkEffectsTriggerMsg<'a> "plLinkEffectsTriggerMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// How invisible the avatar is.
        invis_level "invisLevel": i32,
        /// Whether it vanishes.
        leaving "leaving": Bool8,
        /// The avatar.
        link_key "linkKey": Key<'a>,
        /// Which effects.
        effects "effects": u32,
        /// The animation of the link.
        anim "anim": Key<'a>,
    }

    /// Particles go over to an object.
    0x0333 ParticleTransferMsg<'a> "plParticleTransferMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// Where they come from.
        particle_system "particleSystem": Key<'a>,
        /// How many.
        count "count": u16,
    }

    /// Particles vanish.
    0x0334 ParticleKillMsg<'a> "plParticleKillMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// How many, or which part of them.
        num_to_kill "numToKill": Float,
        /// In how many seconds.
        time_left "timeLeft": Float,
        /// How.
        flags "flags": u8,
    }

    /// Which keys move an avatar.
    0x0347 AvatarInputStateMsg<'a> "plAvatarInputStateMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// What they stand for.
        state "state": InputState,
    }

    /// A command to the linking manager.
    0x034b LinkingMgrMsg<'a> "plLinkingMgrMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// Which fields follow.
        contents "contents": BitVector,
        /// The command.
        command "command": u8 where contents.contains(0),
        /// A list of creatables. Unverified: its layout; all that is left is kept.
        list "list": Tail<'a> where contents.contains(1),
    }

    /// An avatar changes its clothes.
    0x0357 ClothingMsg<'a> "plClothingMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The commands.
        commands "commands": u32,
        /// Whether a key follows.
        has_item "hasItem": Bool8,
        /// The piece of clothing, which may be none even so.
        item "item": Key<'a> where has_item.is_true(),
        /// Its colour.
        color "color": Floats<4>,
        /// Which of its colours.
        layer "layer": u8,
        /// By how much.
        delta "delta": u8,
        /// How strong.
        weight "weight": Float,
    }

    /// A command to the interface: players offer each other links.
    0x0363 InputIfaceMgrMsg<'a> "plInputIfaceMgrMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The command.
        command "command": u8,
        /// A page, or the player it is offered to.
        page_id "pageId": u32,
        /// The age.
        age_name "ageName": SafeString<'a>,
        /// The age's name in files.
        age_file_name "ageFileName": SafeString<'a>,
        /// Where in the age it leads.
        spawn_point "spawnPoint": SafeString<'a>,
        /// Who offers.
        avatar "avatar": Key<'a>,
    }

    /// A command to the KI: mostly chat.
    0x0364 KiMsg<'a> "pfKIMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The command. Servers forward chat only.
        command "command": KiCommand,
        /// The name of the player who talks.
        user "user": SafeString<'a>,
        /// The number of that player.
        player_id "playerId": u32,
        /// The text.
        text "text": SafeWString<'a, BYTES_AFTER_KI_TEXT>,
        /// What kind of text it is.
        flags "flags": ChatFlags,
        /// When, in seconds.
        delay "delay": Float,
        /// What else the command needs.
        value "value": i32,
    }

    /// An avatar gets a brain.
    0x0367 AvPushBrainMsg<'a> "plAvPushBrainMsg" in "plAvTaskMsg" {
        ..task_msg: AvTaskMsg<'a>,
        /// The brain.
        brain "brain": AvatarChild<'a>,
    }

    /// An avatar loses its uppermost brain.
    0x0368 AvPopBrainMsg<'a> "plAvPopBrainMsg" in "plAvTaskMsg" {
        ..task_msg: AvTaskMsg<'a>,
    }

    /// A command to a brain that goes through stages.
    0x038f AvBrainGenericMsg<'a> "plAvBrainGenericMsg" in "plAvatarMsg" {
        ..message: MessageHeader<'a>,
        /// The command.
        brain_msg_type "brainMsgType": u32,
        /// To which stage.
        stage "stage": i32,
        /// Whether the time counts.
        set_time "setTime": Bool8,
        /// Where the animation is put.
        new_time "newTime": Float,
        /// Whether the direction counts.
        set_direction "setDirection": Bool8,
        /// Which way: true is forward.
        new_direction "newDirection": Bool8,
        /// In how many seconds.
        transition_time "transitionTime": Float,
    }

    /// A command to an animation with stages.
    0x03a3 MultistageModMsg<'a> "plMultistageModMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The commands, by their numbers.
        commands "commands": BitVector,
        /// To which stage.
        stage "stage": u8,
        /// How often it repeats.
        loops "loops": u8,
    }

    /// Something leaves a mark where it hits.
    0x03a6 BulletMsg<'a> "plBulletMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The command.
        command "command": u8,
        /// Where it comes from.
        from_pos "fromPos": Floats<3>,
        /// Where it goes.
        direction "direction": Floats<3>,
        /// How far.
        range "range": Float,
        /// How wide.
        radius "radius": Float,
        /// How long the mark stays.
        party_time "partyTime": Float,
    }

    /// An avatar is loaded or unloaded.
    0x03b1 LoadAvatarMsg<'a> "plLoadAvatarMsg" in "plLoadCloneMsg" {
        ..clone_msg: LoadCloneMsg<'a>,
        /// Whether it is the avatar of a player.
        is_player "isPlayer": Bool8,
        /// Where it appears.
        spawn_point "spawnPoint": Key<'a>,
        /// Whether a task follows.
        has_initial_task "hasInitialTask": Bool8,
        /// What it does first.
        initial_task "initialTask": AvatarChild<'a> where has_initial_task.is_true(),
        /// What else is known of it.
        user_string "userString": SafeString<'a>,
    }

    /// An avatar changes the world that it moves in, such as a ship.
    0x03bf SubWorldMsg<'a> "plSubWorldMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The world.
        world "world": Key<'a>,
    }

    /// An avatar climbs.
    0x0451 ClimbMsg<'a> "plClimbMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The command.
        command "command": u32,
        /// Which way.
        direction "direction": u32,
        /// Whether that way is open.
        status "status": Bool8,
        /// What it climbs.
        target "target": Key<'a>,
    }

    /// Two avatars do something together.
    0x045e AvCoopMsg<'a> "plAvCoopMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// Whether a coordinator follows.
        has_coordinator "hasCoordinator": Bool8,
        /// How they do it: a `plCoopCoordinator`.
        coordinator "coordinator": AvatarChild<'a> where has_coordinator.is_true(),
        /// The player who began it.
        initiator_id "initiatorId": u32,
        /// Which of that player's it is.
        initiator_serial "initiatorSerial": u16,
        /// The command.
        command "command": u16,
    }

    /// An object comes to another group.
    0x0464 SetNetGroupIdMsg<'a> "plSetNetGroupIDMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The group.
        group "group": NetGroupId,
    }

    /// A word to scripts, for testing. Servers never forward it.
    0x0465 BackdoorMsg<'a> "pfBackdoorMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// For what.
        target "target": SafeString<'a>,
        /// The word.
        string "string": SafeString<'a>,
    }

    /// An avatar moves to another place with the effects of a link.
    0x0494 PseudoLinkEffectMsg<'a> "plPseudoLinkEffectMsg" in "plMessage" {
        ..message: MessageHeader<'a>,
        /// The place.
        link_object "linkObject": Key<'a>,
        /// The avatar.
        avatar "avatar": Key<'a>,
    }
}
