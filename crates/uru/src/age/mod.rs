//! An age as a game server runs it: the state machine of one instance, without sockets.
//!
//! An [`Instance`] takes joins, leaves, net messages and time, and returns messages for members and
//! [events](Event) for its server. It does no I/O. A server has one instance for each running age,
//! and a [`SendQueue`] for each client.
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
//! # How to drive an instance
//!
//! | calls | purpose |
//! | --- | --- |
//! | [`join`](Instance::join), [`leave`](Instance::leave), [`receive`](Instance::receive), [`mark_active`](Instance::mark_active), [`count_game_message`](Instance::count_game_message), [`count_malformed`](Instance::count_malformed), [`timeout`](Instance::timeout) | input |
//! | [`restore`](Instance::restore), [`restore_age`](Instance::restore_age), [`set_shard_state`](Instance::set_shard_state), [`edit_age`](Instance::edit_age) | stored state |
//! | [`deliver`](Instance::deliver), [`deliver_to_all`](Instance::deliver_to_all) | messages from other ages |
//! | [`poll_delivery`](Instance::poll_delivery), [`poll_event`](Instance::poll_event), [`poll_timeout`](Instance::poll_timeout) | output; poll until `None` |
//!
//! Deliveries to the same member must be sent in order. Events, and deliveries to different
//! members, are independent of each other.
//!
//! # Behaviour
//!
//! * **Forwarding.** A message is forwarded as the bytes received, shared by all receivers. The
//!   time, the player, and the bits reserved for administrators and servers are patched. Everything
//!   forwarded has been decoded completely and has passed [`safety::check`](crate::safety::check);
//!   states have been decoded with their descriptors.
//! * **Joining.** Clones are sent before states, and avatars after other clones. An exact count
//!   comes last, because a client waits for that many initial messages.
//! * **Locks.** An object has one holder. A holder who asks again gets "yes"; releases get no
//!   reply.
//! * **Leaving.** The member's avatar is unloaded, its locks are released, and its other clones go
//!   to the owner. If the owner leaves, the longest-standing member becomes the owner.
//! * **States.** Updates are merged the way clients merge them
//!   ([`MergePolicy::OURS`](crate::sdl::MergePolicy::OURS)). States that outlive the server are
//!   reported shortly after a change and when a member leaves.
//! * **Bounds.** A single client can neither exhaust memory ([`AgeBounds`]) nor keep sending
//!   malformed messages ([`Event::Close`]).

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
