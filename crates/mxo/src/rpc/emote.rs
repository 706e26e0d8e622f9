//! Emotes: the IDs that clients send, and the numbers that servers write in scripts.

use worldwire_core::wire_enum;

macro_rules! emotes {
    ($($name:ident $id:literal $index:literal;)*) => {
        wire_enum! {
            /// The ID of an emote in RPC messages from clients.
            ///
            /// Unverified: all names and number pairs; only `Clap` and `RollDice` are confirmed by
            /// two sources.
            pub enum EmoteId(u32) {
                $(
                    #[doc = concat!("Number ", stringify!($index), " in scripts.")]
                    $name = $id,
                )*
            }
        }

        impl EmoteId {
            /// The emote's number in a server's script, if it is known; see
            /// [`Script::emote`](crate::message::Script::emote).
            #[must_use]
            pub const fn script_number(self) -> Option<u8> {
                match self.0 {
                    $($id => Some($index),)*
                    _ => None,
                }
            }

            /// The emote with this number in a server's script, if it is known.
            #[must_use]
            pub const fn of_script_number(number: u8) -> Option<Self> {
                match number {
                    $($index => Some(Self($id)),)*
                    _ => None,
                }
            }
        }
    };
}

emotes! {
    Beckon 0x5800_02e6 0x01;
    BigWave 0x5800_019b 0x02;
    Bow 0x5800_02e7 0x03;
    Clap 0x3a00_000d 0x04;
    CrossArms 0x3a00_0010 0x05;
    Nod 0x3a00_0011 0x06;
    Agree 0x5800_0d57 0x07;
    Yes 0x5800_0d59 0x08;
    Point 0x0400_0510 0x0a;
    Salute 0x3a00_000e 0x10;
    ShakeHead 0x3a00_0012 0x11;
    Disagree 0x5800_0d58 0x12;
    No 0x3e00_000d 0x13;
    TapFoot 0x3a00_000f 0x15;
    Wave 0x3a00_000c 0x16;
    Cheer 0x5800_0d27 0x2b;
    Kneel 0x5800_0d87 0x40;
    Laugh 0x5800_0d92 0x54;
    Okay 0x5800_0d94 0x58;
    Peace 0x5800_0d96 0x5a;
    RollDice 0x5800_0d97 0x5c;
    Shrug 0x5800_0d99 0x60;
    ThumbsUp 0x5800_0d9c 0x65;
    Yawn 0x5800_02e1 0x6d;
}
