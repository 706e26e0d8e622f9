//! Plasma messages (`plMessage`): messages between game objects, wrapped in [net
//! messages](crate::net_message).
//!
//! A payload is a `u16` class index followed by the object. [`PlasmaMessage`] covers all classes
//! with a known layout; objects of other classes are kept as bytes with their class index. Messages
//! can contain further messages, tasks and brains ([`Child`]). Those have no length field, so their
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
pub use child::{Child, Known, NULL};
pub use class::*;
pub use event::*;
pub use header::{BroadcastFlags, MessageHeader};
pub use value::{
    BYTES_AFTER_KI_TEXT, CcrCommType, ChatFlags, ConsoleCommand, InputState, KiCommand, ReplyType,
};
