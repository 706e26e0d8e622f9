//! Runs every conformance vector for the layers around object sections.

use worldwire_core::json::{Json, Style};
use worldwire_core::testing::{agrees, hex, render, run_vectors};
use worldwire_core::{Field as _, Reader, Side, Tree, Writer};
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::{
    AckBits, Datagram, Packet, PacketHead, Plain, Section, SequenceNumber, SequenceWord, TcpFrame,
};

type Outcome = Result<(), String>;

#[test]
fn every_case_of_the_transport() {
    let elsewhere = [
        "bitvectors",
        "malformed",
        "official",
        "pending",
        "scenarios",
        "seed",
        "server_built",
        "updates",
    ];
    run_vectors("mxo", &elsewhere, |case| match case.file {
        "transport" => vector(case.case),
        other => Err(format!("no test for {other}.json")),
    });
}

fn vector(case: &Json) -> Outcome {
    let each = |run: fn(&Json) -> Outcome| {
        let cases = case["cases"].as_array().ok_or("no cases")?;
        cases.iter().try_for_each(run)
    };
    match case["kind"].as_str() {
        Some("udp") => datagram(case),
        Some("seqword") => each(sequence_word),
        Some("ackbits") => each(ack_bits),
        Some("tcp_varlen") => each(tcp_length),
        Some("udp_hello") => hello(case),
        Some("raw") => answer(case),
        Some("mpm04") => rpc_lists(case),
        Some("rcc") => rcc(case),
        Some("twofish_block") => block(case),
        other => Err(format!("no test for {other:?}")),
    }
}

fn same<T: PartialEq + core::fmt::Debug>(found: &T, wanted: &T) -> Outcome {
    if found == wanted { Ok(()) } else { Err(format!("wanted {wanted:02x?}, found {found:02x?}")) }
}

fn number(case: &Json, key: &str) -> Result<u64, String> {
    case[key].as_u64().ok_or_else(|| format!("no {key}"))
}

fn small<N: TryFrom<u64>>(case: &Json, key: &str) -> Result<N, String> {
    N::try_from(number(case, key)?).map_err(|_| format!("{key} is too large"))
}

fn array<const N: usize>(case: &Json, key: &str) -> Result<[u8; N], String> {
    hex(case, key)?.try_into().map_err(|_| format!("{key} has another length"))
}

fn sequence(case: &Json, key: &str) -> Result<SequenceNumber, String> {
    small(case, key).map(SequenceNumber::new)
}

fn text(error: worldwire_core::Error) -> String {
    error.to_string()
}

/// Decrypts and decodes a datagram, shows it as JSON, and does the reverse of each step.
fn datagram(case: &Json) -> Outcome {
    let (key, iv) = (SessionKey::new(&array(case, "key")?), array(case, "iv")?);
    let wire = hex(case, "datagram")?;
    let sealed = match Datagram::decode(&mut Reader::new(&wire)).map_err(text)? {
        Datagram::Sealed(sealed) => sealed,
        Datagram::Plain(plain) => return Err(format!("{plain:?}")),
    };
    same(&sealed.iv, &iv)?;
    let plain = key.open(&sealed.iv, &sealed.cipher).map_err(|why| format!("{why:?}"))?;
    same(&plain, &hex(case, "plain")?)?;
    let mut reader = Reader::traced("packet", &plain, Tree::new());
    let packet = Packet::decode(&mut reader, None).map_err(text)?;
    let json = render(&reader.finish(), Style::default());
    same(&Packet::from_json(&json, None).map_err(text)?, &packet)?;
    same(&u64::from(packet.time), &number(case, "timestamp")?)?;
    let word = SequenceWord {
        acks: AckBits(small(case, "ack_bits")?),
        remote: sequence(case, "remote_seq")?,
        local: sequence(case, "local_seq")?,
    };
    same(&packet.sequence, &word)?;
    let bytes = packet.to_bytes().map_err(text)?;
    same(&bytes[14..].to_vec(), &hex(case, "payload")?)?;
    same(&key.seal_datagram(&iv, &bytes), &wire)
}

fn sequence_word(case: &Json) -> Outcome {
    let word = SequenceWord {
        acks: AckBits(small(case, "ack")?),
        remote: sequence(case, "remote")?,
        local: sequence(case, "local")?,
    };
    let bytes = array(case, "bytes")?;
    same(&word.to_bytes(), &bytes)?;
    same(&SequenceWord::decode(&mut Reader::new(&bytes), "word").map_err(text)?, &word)
}

fn ack_bits(case: &Json) -> Outcome {
    let acks = AckBits(small(case, "ack")?);
    let acked: Vec<u64> = acks.acked(sequence(case, "remote")?).map(|n| n.get().into()).collect();
    let wanted = case["acked"].as_array().ok_or("no acked")?;
    same(&acked, &wanted.iter().filter_map(Json::as_u64).collect())?;
    same(&(acks.0 & AckBits::REQUEST_MORE != 0), &(case["request_more"] == true))
}

fn tcp_length(case: &Json) -> Outcome {
    let body = vec![7; small(case, "len")?];
    let mut writer = Writer::new();
    TcpFrame::of(&body).encode(&mut writer).map_err(text)?;
    let wire = [&hex(case, "prefix")?[..], &body].concat();
    same(&writer.into_bytes(), &wire)?;
    let frame = TcpFrame::decode(&mut Reader::new(&wire)).map_err(text)?;
    same(&frame, &TcpFrame::of(&body))
}

/// Decodes a plain packet, shows it as JSON, and encodes the JSON again.
fn plain(input: &[u8]) -> Result<Plain<'_>, String> {
    let mut reader = Reader::traced("datagram", input, Tree::new());
    let packet = Plain::decode(&mut reader).map_err(text)?;
    let json = render(&reader.finish(), Style::default());
    same(&Plain::from_json(&json).map_err(text)?, &packet.clone())?;
    same(&packet.to_bytes().map_err(text)?, &input.to_vec())?;
    Ok(packet)
}

fn hello(case: &Json) -> Outcome {
    let (input, expect) = (hex(case, "input")?, &case["expect"]);
    same(&(input.len() as u64), &number(expect, "length")?)?;
    let Plain::Hello(hello) = plain(&input)? else { return Err("not a hello".into()) };
    same(&hello.character_uid, &number(expect, "character_uid")?)?;
    same(&hello.encrypted_session, &array(expect, "encrypted_session")?)
}

fn answer(case: &Json) -> Outcome {
    same(&plain(&hex(case, "input")?)?, &Plain::Answer)
}

/// A packet around sections, for cases that state only the sections.
fn around(payload: &[u8]) -> Vec<u8> {
    let mut counted = Writer::new();
    counted.u16(u16::try_from(payload.len() + 4).unwrap());
    counted.u32(1_248_965_312);
    counted.bytes(&SequenceWord::default().to_bytes());
    counted.bytes(payload);
    [&crc32fast::hash(counted.as_bytes()).to_le_bytes(), counted.as_bytes()].concat()
}

fn rpc_lists(case: &Json) -> Outcome {
    let (input, expect) = (hex(case, "input")?, &case["expect"]);
    same(&(input.len() as u64), &number(expect, "consumed")?)?;
    let bytes = around(&[&[2], &input[..]].concat());
    let mut reader = Reader::traced("packet", &bytes, Tree::new());
    let packet = Packet::decode(&mut reader, Some(Side::Server)).map_err(text)?;
    let tree = reader.finish();
    let json = render(&tree, Style::default());
    same(&Packet::from_json(&json, Some(Side::Server)).map_err(text)?, &packet)?;
    same(&packet.to_bytes().map_err(text)?, &bytes)?;
    let [Section::Rpc(lists)] = &packet.sections[..] else { return Err("no RPC lists".into()) };
    let wanted = expect["lists"].as_array().ok_or("no lists")?;
    same(&lists.len(), &wanted.len())?;
    for (list, wanted) in lists.iter().zip(wanted) {
        same(&u64::from(list.first), &number(wanted, "first_seq")?)?;
        let bodies: Vec<String> = list
            .messages
            .iter()
            .map(|message| message.body.iter().map(|byte| format!("{byte:02x}")).collect())
            .collect();
        same(&Json::from(bodies), &wanted["messages"])?;
    }
    Ok(())
}

fn rcc(case: &Json) -> Outcome {
    let (input, expect) = (hex(case, "input")?, &case["expect"]);
    let bytes = around(&input);
    let mut reader = Reader::traced("packet", &bytes, Tree::new());
    let head = PacketHead::decode(&mut reader).map_err(text)?;
    same(&((reader.position() - 14) as u64), &number(expect, "consumed")?)?;
    let tree = reader.finish();
    agrees(tree.find("simTime").ok_or("no time")?, &expect["sim_time"])?;
    same(&u64::from(head.flags.0), &number(expect, "flags")?)
}

fn block(case: &Json) -> Outcome {
    let key = SessionKey::new(&array(case, "key")?);
    same(&array(case, "iv")?, &[0; 16])?;
    let (plain, cipher) = (array(case, "plain")?, array(case, "cipher")?);
    same(&key.seal_block(&plain), &cipher)?;
    same(&key.open_block(&cipher), &plain)
}
