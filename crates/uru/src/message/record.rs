//! Records inside messages.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{
    Field, Names, Reader, Record, Rest, Result, Sampler, Shape, Trace, Value, Writer, record,
    wire_flags,
};

use crate::types::{BitVector, Inner, InnerFamily, TermStr, Uuid, WFix};

wire_flags! {
    /// The account's privileges.
    pub struct AccountFlags(u32) {
        /// An administrator.
        Admin = 1,
        /// A developer.
        Developer = 2,
        /// A beta tester.
        BetaTester = 4,
        /// An ordinary user.
        User = 8,
        /// For a special event.
        SpecialEvent = 16,
        /// Banned.
        Banned = 0x1_0000,
    }
}

record! {
    /// A reference of the vault's graph, 13 bytes.
    pub struct NodeRef {
        /// The parent node.
        parent_id "parentId": u32,
        /// The child node.
        child_id "childId": u32,
        /// The owner of the reference.
        owner_id "ownerId": u32,
        /// Servers send 0; clients ignore it.
        seen "seen": u8,
    }
}

record! {
    /// A public age instance, 2464 bytes.
    pub struct NetAgeInfo<'a> {
        /// The instance.
        instance_id "instanceId": Uuid,
        /// The age's file name.
        filename "filename": WFix<'a, 64>,
        /// The instance's name.
        instance_name "instanceName": WFix<'a, 64>,
        /// The name given by its owner.
        user_name "userName": WFix<'a, 64>,
        /// The description.
        description "description": WFix<'a, 1024>,
        /// The number that distinguishes instances with the same name.
        sequence_number "sequenceNumber": i32,
        /// The language; -1 for none.
        language "language": i32,
        /// The number of owners ("population" in the client).
        owner_count "ownerCount": u32,
        /// The number of players in the instance.
        current_population "currentPopulation": u32,
    }
}

record! {
    /// A score.
    pub struct Score<'a> {
        /// The score's ID.
        score_id "scoreId": u32,
        /// The owner's node.
        owner_id "ownerId": u32,
        /// The time of creation in Unix seconds.
        created_time "createdTime": u32,
        /// 0 fixed, 1 accumulative, 2 accumulative with negatives.
        game_type "gameType": u32,
        /// The points.
        value "value": i32,
        /// The score's name.
        game_name "gameName": TermStr<'a>,
    }
}

record! {
    /// An entry of a ranking.
    pub struct Rank<'a> {
        /// The rank.
        rank "rank": u32,
        /// The points.
        score "score": i32,
        /// The owner's name.
        name "name": TermStr<'a>,
    }
}

/// The score records of a reply, up to the end of the buffer.
pub type Scores<'a> = Rest<Score<'a>>;

/// The rank records of a reply, up to the end of the buffer.
pub type Ranks<'a> = Rest<Rank<'a>>;

impl<'d, R: Record<'d>> Inner<'d> for Rest<R> {
    const NAME: &'static str = R::NAME;
    const UNIT: usize = 1;
    const ONE_FORM: bool = true;
    const SHAPE: Value<'static> = Value::List;

    fn inner_shape() -> Shape {
        <Self as Field<'_>>::shape()
    }

    fn decode_inner<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        Self::decode_items(reader)
    }
}

impl InnerFamily for Scores<'static> {
    type At<'d> = Scores<'d>;
}

impl InnerFamily for Ranks<'static> {
    type At<'d> = Ranks<'d>;
}

/// A server's capabilities: a bit vector, possibly followed by other bytes.
///
/// The encoding for older clients hides two messages after the vector, so such bytes are normal;
/// see [`Caps::compatible`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Caps {
    /// The bits.
    pub bits: BitVector,
    /// The bytes after the vector; readers ignore them.
    pub trailing: Vec<u8>,
}

impl Caps {
    /// Score leaderboards.
    pub const SCORE_LEADER_BOARDS: u32 = 0;

    /// The names of all bits. Bits from 1 up stand for games of the game manager.
    pub const NAMES: &'static Names = &Names::fixed(&[
        (0, "ScoreLeaderBoards"),
        (1, "BlueSpiral"),
        (2, "ClimbingWall"),
        (3, "Heek"),
        (4, "MarkerGames"),
        (5, "TicTacToe"),
        (6, "VarSync"),
    ]);

    /// A bit vector in as few words as possible, with nothing after it.
    #[must_use]
    pub fn new(bits: &[u32]) -> Self {
        Self { bits: BitVector::from_bits(bits), trailing: Vec::new() }
    }

    /// The encoding that OpenUru clients survive although they do not know the message: exactly one
    /// word of bits, then bytes that such a client reads as two further messages and drops (the
    /// second one is a chunk of an unknown download). Bits from 32 up are ignored.
    #[must_use]
    pub fn compatible(bits: &[u32]) -> Self {
        const TEXT: &[u8; 19] = b"[ServerCaps compat]";
        let word = bits.iter().filter(|bit| **bit < 32).fold(0, |word, bit| word | 1 << bit);
        let mut trailing = vec![0; 6];
        trailing.extend([19, 0, 0, 0]);
        trailing.extend(TEXT);
        Self { bits: BitVector(vec![word]), trailing }
    }
}

impl<'d> Inner<'d> for Caps {
    const NAME: &'static str = "hsBitVector";
    const UNIT: usize = 1;
    const ONE_FORM: bool = true;
    const SHAPE: Value<'static> = Value::Record;

    fn decode_inner<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let bits = BitVector::decode_fields(reader, Some(Self::NAMES))?;
        let trailing = reader.bytes("trailing", reader.remaining())?.to_vec();
        Ok(Self { bits, trailing })
    }
}

impl<'d> Field<'d> for Caps {
    type Owned = Self;
    const LEAST: usize = 4;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("hsBitVector")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.record(name, Self::decode_inner)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        self.bits.encode(writer)?;
        writer.bytes(&self.trailing);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let bits = BitVector::take_json(&mut fields, Some(Self::NAMES))?;
        let trailing =
            json::bytes(fields.take("trailing")?).map_err(|error| error.inside("trailing"))?;
        fields.end()?;
        Ok(Self { bits, trailing })
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let length = sampler.length(8);
        Self { bits: Field::sample(sampler), trailing: sampler.bytes(length) }
    }

    fn into_owned(self) -> Self {
        self
    }
}

impl InnerFamily for Caps {
    type At<'d> = Self;
}
