//! Prints the chat of a TERA connection and encodes a chat message to send.
//!
//! Run it with `cargo run -p worldwire-tera --example chat_printer`. It generates its own messages.
//! A real program receives them, decrypted, from a [`worldwire_tera::connection`].

use worldwire_core::Result;
use worldwire_core::json::json;
use worldwire_tera::file::library::BuildFacts;
use worldwire_tera::file::{CodeMap, Library, MapKind};
use worldwire_tera::frame::Header;
use worldwire_tera::message::{Item, View};
use worldwire_tera::packet::Packets;
use worldwire_tera::schema::{ParseOptions, Set};

/// Definitions are text files, one per message and version, that the community maintains.
/// A client's message names start with `C_`, a server's with `S_`.
const DEFINITIONS: [(&str, &str); 3] = [
    ("C_CHAT.1.def", "uint32 channel\nstring message\n"),
    ("S_CHAT.2.def", "uint32 channel\nuint64 gameId\nstring authorName\nstring message\n"),
    (
        "S_PARTY_MEMBER_LIST.1.def",
        "uint64 leaderId\narray members\n- uint64 gameId\n- string name\n- uint16 level\n",
    ),
];

/// Opcodes change with every build of the client. This map is for revision 387486.
const MAP: &str =
    "C_CHAT = 50000\nS_CHAT = 60000\nS_PARTY_MEMBER_LIST = 60001\nS_WEATHER = 60002\n";
const REVISION: u32 = 387_486;

/// Resolves the definitions and opcodes that apply to one build of the client.
fn load() -> Packets {
    let definitions = Set::load(DEFINITIONS, ParseOptions::default());
    let file = format!("protocol.{REVISION}.map");
    let (map, problems) = CodeMap::parse(MapKind::Protocol, &file, MAP);
    for problem in definitions.problems().chain(&problems) {
        eprintln!("{problem}");
    }
    let mut library = Library { definitions, ..Library::default() };
    library.add_map(&file, map);
    Packets::new(&library, BuildFacts { revision: Some(REVISION), ..BuildFacts::default() })
}

/// Prints a message's content if it is of interest.
fn print(packets: &Packets, message: &[u8]) -> Result<()> {
    let Header { opcode, length } = Header::whole(message)?;
    let Some(packet) = packets.get(opcode) else {
        println!("unknown opcode {opcode}, {length} bytes");
        return Ok(());
    };
    let Some(definition) = packet.definition else {
        println!("{}: no definition, {length} bytes", packet.name);
        return Ok(());
    };
    // A view decodes a field when asked for it, without copying.
    let view = View::new(definition.plan(), message, packet.form)?;
    let fields = view.fields();
    match packet.name {
        "S_CHAT" => {
            let text = |name| Ok(fields.get(name)?.and_then(Item::text).unwrap_or_default());
            let (author, line) = (text("authorName")?, text("message")?);
            println!("{author}: {line}");
        }
        "S_PARTY_MEMBER_LIST" => {
            let members = fields.get("members")?.and_then(Item::list);
            for member in members.into_iter().flatten() {
                let Some(member) = member?.record() else { continue };
                let name = member.get("name")?.and_then(Item::text).unwrap_or_default();
                let level = member.get("level")?.and_then(Item::unsigned).unwrap_or_default();
                println!("party member {name}, level {level}");
            }
        }
        _ => {}
    }
    Ok(())
}

/// Prints all complete messages of a stream and returns the number of bytes that they take.
fn read(packets: &Packets, stream: &[u8]) -> Result<usize> {
    let mut rest = stream;
    while let Some(header) = Header::peek(rest)?
        && let Some((message, after)) = rest.split_at_checked(header.length.into())
    {
        print(packets, message)?;
        rest = after;
    }
    Ok(stream.len() - rest.len())
}

fn main() -> Result<()> {
    let packets = load();

    // Any message can be encoded from JSON. Fields that are left out are 0 or empty.
    let mut stream = packets.encode_json(&json!({
        "opcode": "S_PARTY_MEMBER_LIST",
        "fields": {"members": [{"name": "Elin", "level": 70}, {"name": "Popori", "level": 65}]},
    }))?;
    stream.extend([8, 0, 0x62, 0xea, 1, 2, 3, 4]); // S_WEATHER, which has no definition
    stream.extend(packets.encode_json(&json!({
        "opcode": "S_CHAT",
        "fields": {"channel": 27, "authorName": "Elin", "message": "anyone for Bastion?"},
    }))?);

    // TCP delivers bytes in arbitrary pieces. Keep the rest until more arrives.
    let received = &stream[..stream.len() - 10];
    let used = read(&packets, received)?;
    println!("({} bytes of an incomplete message)", received.len() - used);
    read(&packets, &stream[used..])?;

    let answer = json!({"opcode": "C_CHAT", "fields": {"channel": 27, "message": "hi"}});
    println!("answer: {:02x?}", packets.encode_json(&answer)?);
    Ok(())
}
