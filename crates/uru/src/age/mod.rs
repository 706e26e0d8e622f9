//! What a game server does with an age: the state machine of a running instance, without a socket.
//!
//! An [`Instance`] takes joins, leaves, net messages and time, and gives out messages for members
//! and [events](Event) for the server around it. It does no IO. A server has one for each age that
//! runs, and a [`SendQueue`] for each client.
//!
//! ```
//! use std::time::Duration;
//! use worldwire_uru::age::{Config, Instance, Player};
//! use worldwire_uru::file::age::AgeFile;
//! use worldwire_uru::net_message::NetMessage;
//! use worldwire_uru::types::ClassIndex;
//!
//! let (file, _) = AgeFile::parse("Lab.age", "MaxCapacity=10\nSequencePrefix=7\n");
//! let unix = Duration::from_secs(1_700_000_000);
//! let mut lab =
//!     Instance::new(Duration::ZERO, unix, "Lab", file, Default::default(), Config::default());
//! lab.join(Duration::ZERO, Player::new(5, "Yeesha"))?;
//!
//! // A plNetMsgMembersListReq of player 5: a header with flags, time and player.
//! let request = [0xad, 2, 1, 0x10, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0];
//! lab.receive(Duration::from_secs(1), 5, ClassIndex::plNetMsgMembersListReq, &request);
//!
//! let mut names = Vec::new();
//! while let Some(delivery) = lab.poll_delivery() {
//!     assert_eq!(delivery.to, 5);
//!     match delivery.packet.decode()? {
//!         NetMessage::GroupOwner(owner) => {
//!             assert!(owner.groups[0].owned.is_true());
//!             names.push("GroupOwner");
//!         }
//!         NetMessage::MembersList(list) => {
//!             assert!(list.members.is_empty());
//!             assert_eq!(list.header.time_sent.map(|time| time.seconds), Some(1_700_000_001));
//!             names.push("MembersList");
//!         }
//!         other => panic!("{other:?}"),
//!     }
//! }
//! assert_eq!(names, ["GroupOwner", "MembersList"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Driving it
//!
//! | call | kind |
//! | --- | --- |
//! | [`join`](Instance::join), [`leave`](Instance::leave), [`receive`](Instance::receive), [`mark_active`](Instance::mark_active), [`timeout`](Instance::timeout) | what happens |
//! | [`restore`](Instance::restore), [`restore_age`](Instance::restore_age), [`set_shard_state`](Instance::set_shard_state), [`edit_age`](Instance::edit_age) | what is stored elsewhere |
//! | [`deliver`](Instance::deliver), [`deliver_to_all`](Instance::deliver_to_all) | messages from other ages |
//! | [`poll_delivery`](Instance::poll_delivery), [`poll_event`](Instance::poll_event), [`poll_timeout`](Instance::poll_timeout) | what comes of it; poll until there is nothing |
//!
//! The order of deliveries to one member has to be kept. Nothing else has: events and the deliveries
//! to different members do not depend on each other.
//!
//! # What it does
//!
//! * **Forwarding.** A message goes on as the bytes that came, shared by all receivers. Time and
//!   player are patched, so are the bits that only administrators and servers may set. All that is
//!   forwarded was read to its last byte and passed [`safety::check`](crate::safety::check); states
//!   were read by their descriptor.
//! * **Joining.** Clones come before states, avatars after other clones, the count last and exact: a
//!   client waits until it has so many initial messages.
//! * **Locks.** An object has one holder. Asking again is answered with yes; a release is not answered.
//! * **Leaving.** The avatar is unloaded for the others, locks are free, other clones go to the owner,
//!   and the member who has been here longest becomes the owner if the old one left.
//! * **States.** Updates are merged as clients merge them ([`MergePolicy::OURS`](crate::sdl::MergePolicy::OURS)).
//!   What outlives the server is reported a moment after it changed, and when a member leaves.
//! * **Bounds.** A single client can neither fill the memory ([`AgeBounds`]) nor go on sending what
//!   cannot be read ([`Event::Close`]).

mod answer;
mod clones;
mod config;
mod dropped;
mod event;
mod forward;
mod instance;
mod locks;
mod member;
mod packet;
mod queue;
mod receive;
mod shares;
mod states;

pub use config::{AgeBounds, Capacity, Config};
pub use dropped::{AgeCounts, DropKind, DropReason};
pub use event::{CloseReason, Event, JoinRefused};
pub use instance::Instance;
pub use member::{Member, Player};
pub use packet::{Delivery, Importance, Packet, Position};
pub use queue::{Overflow, SendQueue};
#[cfg(feature = "fuzzing")]
pub(crate) use states::check_blob;
