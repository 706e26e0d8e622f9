//! Plasma messages (`plMessage`): messages between game objects, wrapped in [net
//! messages](crate::net_message).
//!
//! A payload is a `u16` class index followed by the object. [`PlasmaMessage`] covers all classes
//! with a known layout; objects of other classes are kept as bytes with their index. Messages can
//! contain further messages, tasks and brains ([`Child`]). Those have no length field, so their
//! classes must be known.
//!
//! ```
//! use worldwire_core::{Field, Reader};
//! use worldwire_uru::plasma_message::{PlasmaMessage, ReplyType};
//!
//! let bytes = [0x6f, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 1, 0, 0, 0];
//! let message = PlasmaMessage::decode(&mut Reader::new(&bytes), "message")?;
//! let PlasmaMessage::ServerReplyMsg(reply) = message else { panic!("another class") };
//! assert_eq!(reply.reply_type, ReplyType::Affirm);
//! # Ok::<(), worldwire_core::Error>(())
//! ```

mod age_link;
mod avatar;
mod child;
mod class;
mod event;
mod header;
mod value;

pub use age_link::{AgeInfo, AgeInfoFlags, AgeLink, AgeLinkFlags, SpawnPointInfo};
pub use avatar::{
    AnimStage, ArmatureBrain, AvAnimTask, AvBrainCoop, AvBrainGeneric, AvBrainHuman,
    AvOneShotLinkTask, AvOneShotTask, AvTaskBrain, AvatarChild, AvatarObject, CoopCoordinator,
    StageState,
};
pub use child::{Child, NULL};
pub use class::*;
pub use event::*;
pub use header::{BroadcastFlags, MessageHeader};
pub use value::{
    BYTES_AFTER_KI_TEXT, CcrCommType, ChatFlags, ConsoleCommand, InputState, KiCommand, ReplyType,
};

impl<'d> PlasmaMessage<'d> {
    /// The header of the message; `None` for a class without a known layout.
    #[must_use]
    pub fn header(&self) -> Option<&MessageHeader<'d>> {
        Some(match self {
            Self::AnimCmdMsg(message) => &message.message,
            Self::InputEventMsg(message) => &message.message,
            Self::KeyEventMsg(message) => &message.stroke.input.message,
            Self::MouseEventMsg(message) => &message.input.message,
            Self::ControlEventMsg(message) => &message.input.message,
            Self::DebugKeyEventMsg(message) => &message.stroke.input.message,
            Self::LoadCloneMsg(message) => &message.message,
            Self::EnableMsg(message) => &message.message,
            Self::WarpMsg(message) => &message.message,
            Self::CcrInvisibleMsg(message) => &message.message,
            Self::ServerReplyMsg(message) => &message.message,
            Self::IMouseXEventMsg(message) => &message.input.message,
            Self::IMouseYEventMsg(message) => &message.input.message,
            Self::IMouseBEventMsg(message) => &message.input.message,
            Self::CcrPetitionMsg(message) => &message.message,
            Self::AvTaskMsg(message) => &message.message,
            Self::AvSeekMsg(message) => &message.task_msg.message,
            Self::AvOneShotMsg(message) => &message.seek.task_msg.message,
            Self::CcrCommunicationMsg(message) => &message.message,
            Self::AvTaskSeekDoneMsg(message) => &message.message,
            Self::CcrBanLinkingMsg(message) => &message.message,
            Self::CcrSilencePlayerMsg(message) => &message.message,
            Self::LinkToAgeMsg(message) => &message.message,
            Self::NotifyMsg(message) => &message.message,
            Self::LinkEffectsTriggerMsg(message) => &message.message,
            Self::ParticleTransferMsg(message) => &message.message,
            Self::ParticleKillMsg(message) => &message.message,
            Self::AvatarInputStateMsg(message) => &message.message,
            Self::LinkingMgrMsg(message) => &message.message,
            Self::ClothingMsg(message) => &message.message,
            Self::InputIfaceMgrMsg(message) => &message.message,
            Self::KiMsg(message) => &message.message,
            Self::AvPushBrainMsg(message) => &message.task_msg.message,
            Self::AvPopBrainMsg(message) => &message.task_msg.message,
            Self::AvBrainGenericMsg(message) => &message.message,
            Self::MultistageModMsg(message) => &message.message,
            Self::BulletMsg(message) => &message.message,
            Self::LoadAvatarMsg(message) => &message.clone_msg.message,
            Self::SubWorldMsg(message) => &message.message,
            Self::ClimbMsg(message) => &message.message,
            Self::AvCoopMsg(message) => &message.message,
            Self::SetNetGroupIdMsg(message) => &message.message,
            Self::BackdoorMsg(message) => &message.message,
            Self::PseudoLinkEffectMsg(message) => &message.message,
            Self::Other(_) => return None,
        })
    }
}
