//! The connect packet and the setup packets, which precede all messages.

use std::borrow::Cow;

use worldwire_core::json::{self, FieldsOf, Given};
use worldwire_core::{
    Error, Field, FieldInfo, Reader, Record, Result, Sampler, Trace, Writer, record, wire_enum,
};

use crate::frame::Service;
use crate::types::{NetError, Tail, Uuid};

wire_enum! {
    /// The service that a client requests, `u8`. Clients use 10, 11, 16 and 22. 20 and 21 are
    /// defunct. Clients never used the others, and their data is unknown.
    pub enum ConnectionType(u8) {
        /// Not valid.
        Nil = 0,
        /// Debugging.
        Debug = 1,
        /// Auth.
        CliToAuth = 10,
        /// Game.
        CliToGame = 11,
        /// A server's agent.
        SrvToAgent = 12,
        /// The master control program.
        SrvToMcp = 13,
        /// The vault.
        SrvToVault = 14,
        /// The database.
        SrvToDb = 15,
        /// File.
        CliToFile = 16,
        /// State.
        SrvToState = 17,
        /// Logs.
        SrvToLog = 18,
        /// Scores.
        SrvToScore = 19,
        /// Customer support; defunct.
        CliToCsr = 20,
        /// Unreliable messages; defunct.
        SimpleNet = 21,
        /// Gatekeeper.
        CliToGateKeeper = 22,
        /// An interface for administrators, in text.
        AdminInterface = 97,
    }
}

wire_enum! {
    /// The audience that a client was built for.
    pub enum BuildType(u32) {
        /// Developers.
        Dev = 10,
        /// Quality assurance.
        QA = 20,
        /// Testers.
        Test = 30,
        /// Beta testers.
        Beta = 40,
        /// Everyone.
        Live = 50,
    }
}

/// The product ID used by all known shards.
pub const PRODUCT_ID: Uuid = Uuid([
    0x21, 0x98, 0x48, 0xea, 0x35, 0x6c, 0xd0, 0x4b, 0x9d, 0xae, 0xbb, 0x17, 0xc5, 0x85, 0xe6, 0x80,
]);

/// The build number of practically every current client.
pub const BUILD_ID: u32 = 918;

const HEADER_BYTES: u16 = 31;

/// The first bytes a client sends on every connection. The server sends no reply: it either
/// proceeds or closes the connection.
///
/// | offset | field | type | |
/// | --- | --- | --- | --- |
/// | 0 | `connType` | `u8` | [`ConnectionType`] |
/// | 1 | `headerBytes` | `u16` | 31 |
/// | 3 | `buildId` | `u32` | 0 on file connections |
/// | 7 | `buildType` | `u32` | [`BuildType`] |
/// | 11 | `branchId` | `u32` | normally 1 |
/// | 15 | `productId` | uuid | [`PRODUCT_ID`] |
/// | 31 | | | [`ConnectData`] |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectPacket {
    /// The client's build number; 0 on file connections.
    pub build_id: u32,
    /// The audience that the client was built for.
    pub build_type: BuildType,
    /// Usually 1.
    pub branch_id: u32,
    /// [`PRODUCT_ID`].
    pub product_id: Uuid,
    /// The data for the requested service.
    pub data: ConnectData,
}

record! {
    /// The data for auth and gatekeeper connections.
    pub struct TokenData {
        /// Zero, or the token of a `ServerAddr` message when reconnecting.
        token "token": Uuid,
    }
}

record! {
    /// The data for game connections. Some clients send uninitialised memory here.
    pub struct GameData {
        /// Must be ignored.
        account_id "accountId": Uuid,
        /// Must be ignored.
        age_instance_id "ageInstanceId": Uuid,
    }
}

record! {
    /// The data for file connections.
    pub struct FileData {
        /// The client's build number; 0 from the patcher.
        real_build_id "realBuildId": u32,
        /// Always 0.
        server_type "serverType": u32,
    }
}

wire_enum! {
    /// The purpose of a SimpleNet connection.
    pub enum SimpleNetChannel(u32) {
        /// Not valid.
        Nil = 0,
        /// Customer support.
        Csr = 1,
        /// 3ds Max.
        Max = 2,
    }
}

record! {
    /// The data for SimpleNet connections, without a byte count; defunct.
    pub struct SimpleNetData {
        /// The purpose of the connection.
        channel "channel": SimpleNetChannel,
    }
}

/// The part of a connect packet that depends on its type. Except for SimpleNet, it begins with a
/// `u32` byte count that includes itself.
#[derive(Clone, Debug, PartialEq)]
pub enum ConnectData {
    /// Auth, 20 bytes.
    Auth(TokenData),
    /// Game, 36 bytes.
    Game(GameData),
    /// File, 12 bytes.
    File(FileData),
    /// Customer support, 4 bytes; defunct.
    Csr,
    /// SimpleNet, 4 bytes; defunct.
    SimpleNet(SimpleNetData),
    /// Gatekeeper, 20 bytes.
    Gatekeeper(TokenData),
}

impl Eq for ConnectData {}

impl ConnectPacket {
    /// The packet that current H'uru clients send to a service.
    #[must_use]
    pub fn new(service: Service) -> Self {
        let token = TokenData { token: Uuid::ZERO };
        Self {
            build_id: if service == Service::File { 0 } else { BUILD_ID },
            build_type: BuildType::Live,
            branch_id: 1,
            product_id: PRODUCT_ID,
            data: match service {
                Service::Gatekeeper => ConnectData::Gatekeeper(token),
                Service::Auth => ConnectData::Auth(token),
                Service::Game => ConnectData::Game(GameData {
                    account_id: Uuid::ZERO,
                    age_instance_id: Uuid::ZERO,
                }),
                Service::File => {
                    ConnectData::File(FileData { real_build_id: BUILD_ID, server_type: 0 })
                }
            },
        }
    }

    /// The requested connection type.
    #[must_use]
    pub fn connection_type(&self) -> ConnectionType {
        match self.data {
            ConnectData::Auth(_) => ConnectionType::CliToAuth,
            ConnectData::Game(_) => ConnectionType::CliToGame,
            ConnectData::File(_) => ConnectionType::CliToFile,
            ConnectData::Csr => ConnectionType::CliToCsr,
            ConnectData::SimpleNet(_) => ConnectionType::SimpleNet,
            ConnectData::Gatekeeper(_) => ConnectionType::CliToGateKeeper,
        }
    }

    /// The requested service; `None` for defunct types.
    #[must_use]
    pub fn service(&self) -> Option<Service> {
        match self.data {
            ConnectData::Auth(_) => Some(Service::Auth),
            ConnectData::Game(_) => Some(Service::Game),
            ConnectData::File(_) => Some(Service::File),
            ConnectData::Gatekeeper(_) => Some(Service::Gatekeeper),
            ConnectData::Csr | ConnectData::SimpleNet(_) => None,
        }
    }

    /// The fields of a packet of this type; `None` if the type is unknown.
    #[must_use]
    pub fn fields_of(connection: ConnectionType) -> Option<Vec<FieldInfo>> {
        data_bytes(connection)?;
        let mut fields = vec![
            FieldInfo::of::<ConnectionType>("connType", ""),
            FieldInfo::of::<u16>("headerBytes", ""),
            FieldInfo::of::<u32>("buildId", ""),
            FieldInfo::of::<BuildType>("buildType", ""),
            FieldInfo::of::<u32>("branchId", ""),
            FieldInfo::of::<Uuid>("productId", ""),
        ];
        if connection != ConnectionType::SimpleNet {
            fields.push(FieldInfo::of::<u32>("dataBytes", ""));
        }
        fields.extend(match connection {
            ConnectionType::CliToGame => GameData::fields(),
            ConnectionType::CliToFile => FileData::fields(),
            ConnectionType::CliToCsr => Vec::new(),
            ConnectionType::SimpleNet => SimpleNetData::fields(),
            _ => TokenData::fields(),
        });
        Some(fields)
    }

    /// Decodes the fields into the current scope.
    ///
    /// # Errors
    /// `Malformed` for an unknown connection type or a wrong byte count, reported as soon as that
    /// field has been read.
    pub fn decode_fields<'d, 'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let at = reader.position() as u64;
        let connection = ConnectionType::decode(reader, "connType")?;
        let Some(data_bytes) = data_bytes(connection) else {
            let wanted = "a connection type (10, 11, 16, 20, 21 or 22)";
            let error = Error::malformed(wanted, connection.to_string());
            return Err(error.at(at).inside("connType"));
        };
        exactly(reader, "headerBytes", u64::from(HEADER_BYTES), |reader, name| {
            reader.u16(name).map(u64::from)
        })?;
        let build_id = reader.u32("buildId")?;
        let build_type = BuildType::decode(reader, "buildType")?;
        let branch_id = reader.u32("branchId")?;
        let product_id = Uuid::decode(reader, "productId")?;
        if connection != ConnectionType::SimpleNet {
            exactly(reader, "dataBytes", data_bytes, |reader, name| {
                reader.u32(name).map(u64::from)
            })?;
        }
        let data = match connection {
            ConnectionType::CliToAuth => ConnectData::Auth(Record::decode_fields(reader)?),
            ConnectionType::CliToGame => ConnectData::Game(Record::decode_fields(reader)?),
            ConnectionType::CliToFile => ConnectData::File(Record::decode_fields(reader)?),
            ConnectionType::CliToCsr => ConnectData::Csr,
            ConnectionType::SimpleNet => ConnectData::SimpleNet(Record::decode_fields(reader)?),
            _ => ConnectData::Gatekeeper(Record::decode_fields(reader)?),
        };
        Ok(Self { build_id, build_type, branch_id, product_id, data })
    }
}

/// The correct byte count of the data; `None` for unknown types.
fn data_bytes(connection: ConnectionType) -> Option<u64> {
    Some(match connection {
        ConnectionType::CliToAuth | ConnectionType::CliToGateKeeper => 20,
        ConnectionType::CliToGame => 36,
        ConnectionType::CliToFile => 12,
        ConnectionType::CliToCsr | ConnectionType::SimpleNet => 4,
        _ => return None,
    })
}

/// Reads a number that has only one valid value.
fn exactly<'d, 'n, T: Trace<'n>>(
    reader: &mut Reader<'d, T>,
    name: &'n str,
    wanted: u64,
    read: impl FnOnce(&mut Reader<'d, T>, &'n str) -> Result<u64>,
) -> Result<()> {
    let at = reader.position() as u64;
    let found = read(reader, name)?;
    if found == wanted {
        return Ok(());
    }
    Err(Error::malformed(wanted.to_string(), found.to_string()).at(at).inside(name))
}

impl<'d> Field<'d> for ConnectPacket {
    type Owned = Self;
    const LEAST: usize = 35;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("connect packet")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.record(name, Self::decode_fields)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let connection = self.connection_type();
        connection.encode(writer)?;
        writer.u16(HEADER_BYTES);
        writer.u32(self.build_id);
        self.build_type.encode(writer)?;
        writer.u32(self.branch_id);
        self.product_id.encode(writer)?;
        if connection != ConnectionType::SimpleNet
            && let Some(count) = data_bytes(connection).and_then(|n| u32::try_from(n).ok())
        {
            writer.u32(count);
        }
        match &self.data {
            ConnectData::Auth(data) | ConnectData::Gatekeeper(data) => data.encode(writer),
            ConnectData::Game(data) => data.encode(writer),
            ConnectData::File(data) => data.encode(writer),
            ConnectData::Csr => Ok(()),
            ConnectData::SimpleNet(data) => data.encode(writer),
        }
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let connection: ConnectionType = fields.value("connType")?;
        let Some(data_bytes) = data_bytes(connection) else {
            let error = Error::value("a known connection type", connection.to_string());
            return Err(error.inside("connType"));
        };
        // Only one value is valid for each count, so JSON may omit the counts.
        let mut counted = vec![("headerBytes", u64::from(HEADER_BYTES))];
        if connection != ConnectionType::SimpleNet {
            counted.push(("dataBytes", data_bytes));
        }
        for (name, wanted) in counted {
            if let Some(found) = fields.take_optional(name)
                && json::unsigned(found).map_err(|error| error.inside(name))? != wanted
            {
                return Err(json::expected(wanted.to_string(), found).inside(name));
            }
        }
        let packet = Self {
            build_id: fields.value("buildId")?,
            build_type: fields.value("buildType")?,
            branch_id: fields.value("branchId")?,
            product_id: fields.value("productId")?,
            data: match connection {
                ConnectionType::CliToAuth => ConnectData::Auth(Record::from_fields(&mut fields)?),
                ConnectionType::CliToGame => ConnectData::Game(Record::from_fields(&mut fields)?),
                ConnectionType::CliToFile => ConnectData::File(Record::from_fields(&mut fields)?),
                ConnectionType::CliToCsr => ConnectData::Csr,
                ConnectionType::SimpleNet => {
                    ConnectData::SimpleNet(Record::from_fields(&mut fields)?)
                }
                _ => ConnectData::Gatekeeper(Record::from_fields(&mut fields)?),
            },
        };
        fields.end()?;
        Ok(packet)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        Self {
            build_id: Field::sample(sampler),
            build_type: Field::sample(sampler),
            branch_id: Field::sample(sampler),
            product_id: Field::sample(sampler),
            data: match sampler.below(6) {
                0 => ConnectData::Auth(Field::sample(sampler)),
                1 => ConnectData::Game(Field::sample(sampler)),
                2 => ConnectData::File(Field::sample(sampler)),
                3 => ConnectData::Csr,
                4 => ConnectData::SimpleNet(Field::sample(sampler)),
                _ => ConnectData::Gatekeeper(Field::sample(sampler)),
            },
        }
    }

    fn into_owned(self) -> Self {
        self
    }
}

wire_enum! {
    /// The type of a setup packet.
    pub enum SetupType(u8) {
        /// From the client: its public number.
        Connect = 0,
        /// From the server: the seed.
        Encrypt = 1,
        /// From the server: an error. Clients ignore it, so servers close the connection instead.
        Error = 2,
    }
}

/// The maximum size of the client's public number in bytes.
const MAX_Y_BYTES: usize = 64;

/// A packet of the key exchange: `u8` type, `u8` byte count of the whole packet, data. Each side
/// sends one right after the connect packet, except on file connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupPacket<'d> {
    /// The client's public number y, little-endian. Its most significant zero bytes, which would
    /// come last, are omitted: the number has at most 64 bytes, and in about one in 256
    /// connections, it is at least a byte shorter. An empty number requests an unencrypted
    /// connection.
    Connect(Cow<'d, [u8]>),
    /// The server's seed; an empty one grants an unencrypted connection.
    Encrypt(Option<[u8; 7]>),
    /// An error.
    Error(NetError),
}

impl<'d> SetupPacket<'d> {
    /// The fields of a packet of this type. The byte count includes all of them.
    #[must_use]
    pub fn fields_of(kind: SetupType) -> Vec<FieldInfo> {
        let data = match kind {
            SetupType::Connect => FieldInfo::of::<Tail<'_>>("y", ""),
            SetupType::Encrypt => FieldInfo::of::<Tail<'_>>("seed", ""),
            _ => FieldInfo::of::<NetError>("error", ""),
        };
        vec![FieldInfo::of::<SetupType>("type", ""), FieldInfo::of::<u8>("byteCount", ""), data]
    }

    /// Decodes the fields into the current scope.
    ///
    /// # Errors
    /// `Malformed` for an unknown type or a byte count that does not match it.
    pub fn decode_fields<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let at = reader.position() as u64;
        let kind = SetupType::decode(reader, "type")?;
        let count = reader.u8("byteCount")?;
        let wanted = match (kind, count) {
            (SetupType::Connect, 2..=66) => {
                let y = reader.bytes("y", usize::from(count - 2))?;
                return Ok(Self::Connect(Cow::Borrowed(y)));
            }
            (SetupType::Encrypt, 2) => return Ok(Self::Encrypt(None)),
            (SetupType::Encrypt, 9) => {
                return Field::decode(reader, "seed").map(Some).map(Self::Encrypt);
            }
            (SetupType::Error, 6) => {
                return NetError::decode(reader, "error").map(Self::Error);
            }
            (SetupType::Connect, _) => "2 to 66",
            (SetupType::Encrypt, _) => "2 or 9",
            (SetupType::Error, _) => "6",
            _ => {
                let error = Error::malformed("a setup packet (0, 1 or 2)", kind.0.to_string());
                return Err(error.at(at).inside("type"));
            }
        };
        Err(Error::malformed(wanted, count.to_string()).at(at + 1).inside("byteCount"))
    }

    /// Copies borrowed parts.
    #[must_use]
    pub fn into_owned(self) -> SetupPacket<'static> {
        match self {
            Self::Connect(y) => SetupPacket::Connect(Cow::Owned(y.into_owned())),
            Self::Encrypt(seed) => SetupPacket::Encrypt(seed),
            Self::Error(error) => SetupPacket::Error(error),
        }
    }
}

impl<'d> Field<'d> for SetupPacket<'d> {
    type Owned = SetupPacket<'static>;
    const LEAST: usize = 2;

    fn layout() -> Cow<'static, str> {
        Cow::Borrowed("setup packet")
    }

    fn decode<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>, name: &'n str) -> Result<Self> {
        reader.record(name, Self::decode_fields)
    }

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let (kind, data): (_, &[u8]) = match self {
            Self::Connect(y) => (SetupType::Connect, y),
            Self::Encrypt(seed) => {
                (SetupType::Encrypt, seed.as_ref().map_or(&[], |seed| seed.as_slice()))
            }
            Self::Error(error) => (SetupType::Error, &error.0.to_le_bytes()),
        };
        let count = match u8::try_from(data.len() + 2) {
            Ok(count) if data.len() <= MAX_Y_BYTES => count,
            _ => return Err(Error::limit("bytes of y", MAX_Y_BYTES as u64, data.len() as u64)),
        };
        writer.u8(kind.0);
        writer.u8(count);
        writer.bytes(data);
        Ok(())
    }

    fn from_json(json: Given<'_>) -> Result<Self> {
        let mut fields = FieldsOf::new(json)?;
        let kind: SetupType = fields.value("type")?;
        // The count follows from the data.
        fields.take_optional("byteCount");
        let packet = match kind {
            SetupType::Connect => {
                let y = json::bytes(fields.take("y")?).map_err(|error| error.inside("y"))?;
                Self::Connect(Cow::Owned(y))
            }
            SetupType::Encrypt => {
                let seed = fields.given_optional("seed").map(Field::from_json);
                Self::Encrypt(seed.transpose().map_err(|error| error.inside("seed"))?)
            }
            SetupType::Error => Self::Error(fields.value("error")?),
            _ => {
                let error = Error::value("Connect, Encrypt or Error", kind.to_string());
                return Err(error.inside("type"));
            }
        };
        fields.end()?;
        Ok(packet)
    }

    fn sample(sampler: &mut Sampler) -> Self {
        match sampler.below(4) {
            0 => Self::Encrypt((sampler.below(4) != 0).then(|| Field::sample(sampler))),
            1 => Self::Error(Field::sample(sampler)),
            _ => {
                let length = sampler.length(64);
                Self::Connect(Cow::Owned(sampler.bytes(length)))
            }
        }
    }

    fn into_owned(self) -> Self::Owned {
        self.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_in_the_json_of_a_setup_packet_have_a_path() {
        let wrong = |text: &str| {
            let json: json::Json = serde_json::from_str(text).unwrap();
            SetupPacket::from_json((&json).into()).unwrap_err().to_string()
        };
        let cases = [
            (r#"{"type": 256, "y": {"$hex": ""}}"#, "type: wanted a u8, found 256"),
            (r#"{"type": 9}"#, "type: wanted Connect, Encrypt or Error, found 9"),
            (r#"{"type": "Error", "error": []}"#, "error: wanted "),
            (r#"{"type": "Encrypt", "seed": []}"#, "seed: wanted "),
        ];
        for (text, wanted) in cases {
            let found = wrong(text);
            assert!(found.starts_with(wanted), "{text}: {found}");
        }
    }
}
