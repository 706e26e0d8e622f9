//! The encodings of the vault's own types.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use worldwire_core::{Reader, Result, Sampler, Writer};
use worldwire_uru::crypt::login::LoginForm;
use worldwire_uru::games::message::marker::{AGE_UNITS, MarkerGameType, NAME_UNITS};
use worldwire_uru::games::{GameText, Marker, MarkerAnswer, MarkerRequest, MarkerTemplate};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::sdl::ObjectKey;
use worldwire_uru::types::{NetError, Uoid, Uuid};

use super::wire::{Wire, unknown, wire_struct, wire_variants};
use crate::store::ScoreRow;
use crate::uru::vault::age_states::{AgeRecord, Owner, PlayerIdentity, StateChange};
use crate::uru::vault::{
    AgeFound, AgeNodes, InitAge, LoggedIn, Login, Notice, PlayerSummary, PublicAge,
};

wire_struct! {
    Login {
        name: String,
        client_challenge: u32,
        server_challenge: u32,
        proof: [u8; 20],
        address: Option<IpAddr>,
    }
}

wire_struct! {
    LoggedIn { account: Uuid, flags: AccountFlags, players: Vec<PlayerSummary>, form: LoginForm }
}

wire_variants! {
    LoginForm {
        0 ChallengeSha0,
        1 ChallengeSha1,
        2 Sha0,
        3 Sha1,
    }
}

wire_struct! {
    PlayerSummary { id: u32, name: String, shape: String, explorer: u32 }
}

wire_struct! {
    InitAge {
        instance: Uuid,
        parent: Uuid,
        filename: String,
        instance_name: String,
        user_name: String,
        description: String,
        sequence: i32,
        language: i32,
    }
}

wire_struct! {
    AgeNodes { age: u32, info: u32 }
}

wire_struct! {
    AgeFound { age: u32, instance: Uuid }
}

wire_struct! {
    PublicAge {
        instance: Uuid,
        filename: String,
        instance_name: String,
        user_name: String,
        description: String,
        sequence: i32,
        language: i32,
        owners: u32,
        population: u32,
    }
}

wire_struct! {
    ScoreRow { id: u32, owner: u32, name: String, kind: u32, value: i32, created: u32 }
}

wire_variants! {
    Notice {
        0 NodeChanged { node_id: u32, revision_id: Uuid },
        1 NodeAdded { parent_id: u32, child_id: u32, owner_id: u32 },
        2 NodeRemoved { parent_id: u32, child_id: u32 },
        3 KickedOff { reason: NetError },
    }
}

wire_struct! {
    AgeRecord { age: u32, instance: Uuid }
}

wire_struct! {
    Owner { number: u32, fence: u64 }
}

wire_struct! {
    PlayerIdentity { account: Uuid, player: u32, name: String, is_admin: bool }
}

/// The object, the name of the descriptor, the state, the node.
impl Wire for StateChange {
    const LEAST: usize = <Uoid<'static> as Wire>::LEAST + String::LEAST + 2;

    fn encode(&self, writer: &mut Writer) -> Result<()> {
        let Self { key: (_, descriptor), object, blob, node } = self;
        object.encode(writer).map_err(|error| error.inside("object"))?;
        descriptor.encode(writer)?;
        blob.encode(writer)?;
        node.encode(writer)
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let object: Uoid<'static> = Wire::decode(reader).map_err(|error| error.inside("object"))?;
        let descriptor = Wire::decode(reader).map_err(|error| error.inside("descriptor"))?;
        let blob = Wire::decode(reader).map_err(|error| error.inside("blob"))?;
        let node = Wire::decode(reader).map_err(|error| error.inside("node"))?;
        Ok(Self { key: (ObjectKey::of(&object), descriptor), object, blob, node })
    }

    fn sample(sampler: &mut Sampler) -> Self {
        let object: Uoid<'static> = Wire::sample(sampler);
        let key = (ObjectKey::of(&object), Wire::sample(sampler));
        Self { key, object, blob: Wire::sample(sampler), node: Wire::sample(sampler) }
    }
}

wire_struct! {
    Marker {
        position: [f64; 3],
        name: GameText<'static, NAME_UNITS>,
        age: GameText<'static, AGE_UNITS>,
    }
}

wire_struct! {
    MarkerTemplate {
        creator: u32,
        game_type: MarkerGameType,
        name: GameText<'static, NAME_UNITS>,
        time_limit: u32,
        next_marker: u32,
        markers: BTreeMap<u32, Marker>,
    }
}

wire_variants! {
    MarkerRequest {
        0 Create {
            template: Uuid,
            creator: u32,
            game_type: MarkerGameType,
            name: GameText<'static, NAME_UNITS>,
            time_limit: u32,
        },
        1 Open { template: Uuid, player: u32, game_type: MarkerGameType },
        2 Add { template: Uuid, creator: u32, marker: Box<Marker> },
        3 Delete { template: Uuid, creator: u32, marker: u32 },
        4 Rename {
            template: Uuid,
            creator: u32,
            marker: u32,
            name: GameText<'static, NAME_UNITS>,
        },
        5 RenameGame { template: Uuid, creator: u32, name: GameText<'static, NAME_UNITS> },
        6 SetTimeLimit { template: Uuid, creator: u32, time_limit: u32 },
        7 Capture { template: Uuid, player: u32, marker: u32 },
        8 Forget { template: Uuid, player: u32 },
        9 Remove { template: Uuid, creator: u32 },
    }
}

wire_variants! {
    MarkerAnswer {
        0 Opened { template: Box<MarkerTemplate>, captured: BTreeSet<u32> },
        1 Added { marker: u32 },
        2 Done,
        3 Nothing,
        4 Full,
        5 Failed,
    }
}
