//! Two Uru players walk around an age for a minute and pull a lever, and one of them keeps a journal.

use std::f32::consts::TAU;
use std::path::Path;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::Service;
use worldwire_uru::message::{NodeRef, auth, game};
use worldwire_uru::net_message::{
    GameMessage, MembersList, NetFlags, NetHeader, SdlState, SdlStateBCast, Stream,
};
use worldwire_uru::plasma_message::{BroadcastFlags, MessageHeader, PlasmaMessage, WarpMsg};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::types::{
    CloneIds, Double, Floats, Ipv4, Key, Matrix44, Nested, NetError, TermStr, TransId, Uoid, Uuid,
};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::uru::{
    ACCOUNT, INSTANCE, PLAYER, Stage, Talk, chronicle_node, info_node, player_node, state,
};
use super::uru_age::{OTHER, TIME, encoded, from_age, from_client, lever, member, object};
use super::{Outcome, Tape};

const JOURNAL: u32 = PLAYER + 3;
/// The number of the age's host on the game server.
const HOST: u32 = 8;
/// The length of a walk, in steps of one second.
const STEPS: u16 = 60;

/// Writes `uru-walk.pcapng`.
pub(super) fn write(folder: &Path, keys: KeyRing) -> Outcome<()> {
    let things = include_str!("../../../../samples/sdl/things.sdl");
    let descriptors = Descriptors::load([("things.sdl", things)]);
    let tape = Tape::new(&folder.join("uru-walk.pcapng"), Duration::from_micros(350))?;
    let mut stage = Stage::new(tape, keys, ChaCha8Rng::seed_from_u64(8));
    let mut talk = stage.connect(Service::Auth)?;
    vault(&mut stage, &mut talk)?;
    walk(&mut stage, &descriptors)?;
    save(&mut stage, &mut talk, "fifty-nine steps and a lever")?;
    stage.hang_up(talk)
}

/// The player's nodes and a new one.
fn vault(stage: &mut Stage, talk: &mut Talk) -> Outcome<()> {
    use auth::{client, client::ClientMessage, server, server::ServerMessage};
    let edge = |child_id| NodeRef { parent_id: PLAYER, child_id, owner_id: 0, seen: 0 };
    let refs = client::VaultFetchNodeRefs { trans_id: TransId(1), node_id: PLAYER };
    stage.say(talk, ClientMessage::from(refs))?;
    let refs = vec![edge(PLAYER + 1), edge(PLAYER + 2)].into();
    let (trans_id, result) = (TransId(1), NetError::Success);
    let reply = server::VaultNodeRefsFetched { trans_id, result, refs };
    stage.say(talk, ServerMessage::from(reply))?;
    let journal = VaultNode {
        node_id: Some(JOURNAL),
        node_type: Some(NodeType::TextNote),
        string64_1: Some(TermStr::from("Journal")),
        text_1: Some(TermStr::from("an empty page")),
        ..VaultNode::default()
    };
    let nodes = [player_node(), info_node(), chronicle_node(), journal];
    for (trans_id, node) in (2..).map(TransId).zip(nodes) {
        let node_id = node.node_id.unwrap_or_default();
        stage.say(talk, ClientMessage::from(client::VaultNodeFetch { trans_id, node_id }))?;
        let node = Nested::encode_from(&node)?;
        stage
            .say(talk, ServerMessage::from(server::VaultNodeFetched { trans_id, result, node }))?;
    }
    let add = client::VaultNodeAdd {
        trans_id: TransId(6),
        parent_id: PLAYER,
        child_id: JOURNAL,
        owner_id: PLAYER,
    };
    stage.say(talk, ClientMessage::from(add))?;
    let added = server::VaultAddNodeReply { trans_id: TransId(6), result };
    stage.say(talk, ServerMessage::from(added))?;
    save(stage, talk, "the lever is stuck")?;
    let travel = client::AgeRequest {
        trans_id: TransId(8),
        age_name: "Fernhollow".into(),
        age_instance_id: INSTANCE,
    };
    stage.say(talk, ClientMessage::from(travel))?;
    let host = server::AgeReply {
        trans_id: TransId(8),
        result,
        age_mcp_id: HOST,
        age_instance_id: INSTANCE,
        age_node_id: 20_002,
        game_server_address: Ipv4([192, 0, 2, 1].into()),
    };
    stage.say(talk, ServerMessage::from(host))
}

/// Writes a text into the journal.
fn save(stage: &mut Stage, talk: &mut Talk, text: &'static str) -> Outcome<()> {
    use auth::{client, client::ClientMessage, server, server::ServerMessage};
    let trans_id = TransId(7);
    let node = VaultNode { text_1: Some(TermStr::from(text)), ..VaultNode::default() };
    let node = Nested::encode_from(&node)?;
    let save = client::VaultNodeSave { trans_id, node_id: JOURNAL, revision_id: Uuid::ZERO, node };
    stage.say(talk, ClientMessage::from(save))?;
    let saved = server::VaultSaveNodeReply { trans_id, result: NetError::Success };
    stage.say(talk, ServerMessage::from(saved))
}

fn walk(stage: &mut Stage, descriptors: &Descriptors) -> Outcome<()> {
    use game::{client, client::ClientMessage, server, server::ServerMessage};
    let mut talk = stage.connect(Service::Game)?;
    let t = &mut talk;
    let (trans_id, player_id) = (TransId(9), PLAYER);
    let join =
        client::JoinAgeRequest { trans_id, age_mcp_id: HOST, account_id: ACCOUNT, player_id };
    stage.say(t, ClientMessage::from(join))?;
    let joined = server::JoinAgeReply { trans_id, result: NetError::Success };
    stage.say(t, ServerMessage::from(joined))?;
    let header = NetHeader::from_server(TIME, NetFlags::IsSystemMessage);
    let members = vec![member(OTHER, "Atrus")].into();
    from_age(stage, t, MembersList { header, members })?;
    for step in 0..STEPS {
        stage.pause(Duration::from_secs(1));
        let turn = f32::from(step) / f32::from(STEPS);
        let (sin, cos) = (TAU * turn).sin_cos();
        let own = body([40.0 * cos, 25.0 * sin, 3.0]);
        let moved = state(descriptors, &own)?;
        let header = NetHeader::from_client(TIME, PLAYER, NetFlags(0));
        from_client(stage, t, SdlStateBCast { state: sent(header, avatar(PLAYER), moved) })?;
        let other = body([120.0 * turn - 60.0, -10.0, 2.0]);
        let moved = state(descriptors, &other)?;
        let header = NetHeader::from_client(TIME, OTHER, NetFlags(0));
        from_age(stage, t, SdlStateBCast { state: sent(header, avatar(OTHER), moved) })?;
        if step % 20 == 10 {
            let pulled = state(descriptors, &pulled(step))?;
            let header = NetHeader::from_client(TIME, PLAYER, NetFlags(0));
            from_client(stage, t, SdlStateBCast { state: sent(header, lever(), pulled) })?;
        }
    }
    stage.pause(Duration::from_secs(1));
    let game = GameMessage {
        header: NetHeader::from_client(TIME, PLAYER, NetFlags(0)),
        stream: Stream::new(encoded(&linked())?),
        has_delivery_time: false.into(),
        delivery_time: None,
    };
    from_client(stage, t, game)?;
    stage.hang_up(talk)
}

/// Puts the player back at the start.
fn linked() -> PlasmaMessage<'static> {
    let mut rows = [0.0; 16];
    for (at, value) in [(0, 1.0), (5, 1.0), (10, 1.0), (15, 1.0), (3, 40.0), (11, 3.0)] {
        rows[at] = value;
    }
    WarpMsg {
        message: MessageHeader {
            sender: Key::NONE,
            receivers: vec![Key::from(avatar(PLAYER))].into(),
            timestamp: Double(0.0),
            bcast_flags: BroadcastFlags::NetPropagate,
        },
        matrix: Matrix44 { has_data: true.into(), rows: Some(Floats::from(rows)) },
        warp_flags: 0,
    }
    .into()
}

fn avatar(player_id: u32) -> Uoid<'static> {
    object(1, "Male", Some(CloneIds { id: 1, filler: 0, player_id }))
}

fn sent(header: NetHeader, object: Uoid<'static>, blob: Vec<u8>) -> SdlState<'static> {
    SdlState {
        header,
        object,
        stream: Stream::new(blob),
        is_initial_state: false.into(),
        persist_on_server: false.into(),
        is_avatar_state: false.into(),
    }
}

fn body([x, y, z]: [f32; 3]) -> String {
    let position = format!(r#"{{"hint": "", "flags": ["Dirty"], "value": [{x:?}, {y:?}, {z:?}]}}"#);
    format!(
        r#"{{"flags": ["AddedVarLengthIO"], "descriptor": "fhBody", "version": 1,
            "variables": {{"position": {position}}}}}"#
    )
}

fn pulled(step: u16) -> String {
    format!(
        r#"{{"flags": ["AddedVarLengthIO"], "descriptor": "fhLever", "version": 1, "variables": {{
            "place": {{"hint": "", "flags": ["Dirty"], "value": {}}},
            "label": {{"hint": "", "flags": ["Dirty"], "value": "pulled at {step} s"}}}}}}"#,
        step / 20
    )
}
