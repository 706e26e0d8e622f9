//! Records inside messages.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{
    Field, Reader, Record, Rest, Result, Sampler, Trace, Value, Writer, record, wire_flags,
};

use crate::types::{BitVector, Inner, InnerFamily, TermStr, Uuid, WFix};

wire_flags! {
    /// What an account may do.
    pub struct AccountFlags(u32) {
        /// An administrator.
        Admin = 1,
        /// A developer.
        Developer = 2,
        /// A beta tester.
        BetaTester = 4,
        /// A user.
        User = 8,
        /// For a special event.
        SpecialEvent = 16,
        /// Not let in.
        Banned = 0x1_0000,
    }
}

record! {
    /// A reference of the vault's graph, 13 bytes.
    pub struct NodeRef {
        /// The node above.
        parent_id "parentId": u32,
        /// The node below.
        child_id "childId": u32,
        /// Whose reference it is.
        owner_id "ownerId": u32,
        /// Servers send 0, clients ignore it.
        seen "seen": u8,
    }
}

record! {
    /// A public age instance, 2464 bytes.
    pub struct NetAgeInfo<'a> {
        /// The instance.
        instance_id "instanceId": Uuid,
        /// The age's name in files.
        filename "filename": WFix<'a, 64>,
        /// The instance's name.
        instance_name "instanceName": WFix<'a, 64>,
        /// The name its owner gave it.
        user_name "userName": WFix<'a, 64>,
        /// Its description.
        description "description": WFix<'a, 1024>,
        /// Its number among its like.
        sequence_number "sequenceNumber": i32,
        /// Its language; -1 is none.
        language "language": i32,
        /// How many own it ("population" in the client).
        owner_count "ownerCount": u32,
        /// How many are in it.
        current_population "currentPopulation": u32,
    }
}

record! {
    /// A score of an owner.
    pub struct Score<'a> {
        /// The score.
        score_id "scoreId": u32,
        /// Whose it is.
        owner_id "ownerId": u32,
        /// When it was made, Unix seconds.
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
    /// A place in a ranking.
    pub struct Rank<'a> {
        /// The place.
        rank "rank": u32,
        /// The points.
        score "score": i32,
        /// Who has it.
        name "name": TermStr<'a>,
    }
}

/// The score records of a reply, one behind the other to the end of the buffer.
pub type Scores<'a> = Rest<Score<'a>>;

/// The rank records of a reply, one behind the other to the end of the buffer.
pub type Ranks<'a> = Rest<Rank<'a>>;

impl<'d, R: Record<'d>> Inner<'d> for Rest<R> {
    const NAME: &'static str = R::NAME;
    const UNIT: usize = 1;
    const ONE_FORM: bool = true;
    const SHAPE: Value<'static> = Value::List;

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

/// What a server says it can do: a bit vector, and whatever follows it.
///
/// A form that older clients can stomach hides two messages of theirs behind the vector, so bytes
/// behind it are normal; see [`Caps::compatible`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Caps {
    /// The bits.
    pub bits: BitVector,
    /// What follows; readers ignore it.
    pub trailing: Vec<u8>,
}

impl Caps {
    /// Score leaderboards.
    pub const SCORE_LEADER_BOARDS: u32 = 0;
    /// Game manager: Blue Spiral.
    pub const BLUE_SPIRAL: u32 = 1;
    /// Game manager: climbing wall.
    pub const CLIMBING_WALL: u32 = 2;
    /// Game manager: Heek.
    pub const HEEK: u32 = 3;
    /// Game manager: marker games.
    pub const MARKER: u32 = 4;
    /// Game manager: tic-tac-toe.
    pub const TIC_TAC_TOE: u32 = 5;
    /// Game manager: VarSync.
    pub const VAR_SYNC: u32 = 6;

    /// Only what is known, in the fewest words.
    #[must_use]
    pub fn new(bits: &[u32]) -> Self {
        Self { bits: BitVector::from_bits(bits), trailing: Vec::new() }
    }

    /// The form that OpenUru clients, which do not know the message, survive: exactly one word of
    /// bits, and behind it what makes such a client see two messages that it drops (the second one
    /// an unmatched chunk of a download). Bits from 32 up are left out.
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
        let bits = BitVector::decode_fields(reader)?;
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
        let bits = BitVector::take_json(&mut fields)?;
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
