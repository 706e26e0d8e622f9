//! The bytes on the wire: datagrams of the game channel, and the framing of the TCP channels.
//!
//! | first byte of a datagram | what it is |
//! | --- | --- |
//! | 00 | [`Plain`]: hello, answer, ping |
//! | 01 | [`Sealed`]: an initialisation vector, and a [`Packet`] that is encrypted |
//!
//! Numbers are little-endian, except for the sequence word, the numbers and lengths of RPC
//! messages, and the lengths of [TCP frames](TcpFrame).

mod count;
mod datagram;
mod missing;
mod packet;
mod plain;
mod rpc;
mod section;
mod sequence;
mod tcp;
mod window;

pub use datagram::{Datagram, Sealed};
pub use packet::{Packet, PacketHead, RccFlags};
pub use plain::{ANSWERS, Hello, Plain};

pub use rpc::{CLIENT_RPCS, LEAVE, MAX_RPC_BYTES, RpcList, RpcMessage, SERVER_RPCS};
pub use section::{Measure, OBJECTS, RPC, SECTIONS, Section, ToTheEnd};
pub use sequence::{ACK_BITS, AckBits, MAX_NEWER, SEQUENCE_NUMBERS, SequenceNumber, SequenceWord};
pub use tcp::{Channel, MarginFrame, MarginText, TcpFrame};
pub use window::ReceiveWindow;

pub(crate) use missing::Missing;
pub(crate) use packet::{HEAD_BYTES, encode_head};
pub(crate) use rpc::{decode_length, decode_lists};
pub(crate) use window::MAX_ACK_AGE;
