//! A vault for simulations of the parts around it. Its batches always succeed.

use std::fmt;

use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};

use super::ConnectionId;
use super::age_states::{AgeRecord, Owner, SaveObjects};
use super::ask::Ask as _;
use super::config::{AgeNames, StaticAge, VaultConfig};
use super::placements::{Candidate, PlacedAge, Placement, Wanted};
use super::session::{Session, Stop};
use super::steps::VaultState;
use crate::store::seal::ServerKey;

/// The vault.
pub(in crate::uru) struct TestVault(VaultState);

impl fmt::Debug for TestVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestVault")
    }
}

/// The filename of all ages.
const FILENAME: &str = "Garden";

impl TestVault {
    /// A vault with public ages of these instances, and players whose sessions are numbered from 1.
    pub(in crate::uru) fn new(instances: &[Uuid], players: u64) -> Self {
        let mut number = 0_u64;
        let random = Box::new(move |bytes: &mut [u8]| {
            number += 1;
            bytes.iter_mut().zip(number.to_le_bytes().into_iter().cycle()).for_each(
                |(to, from)| {
                    *to = from;
                },
            );
        });
        let age = |(index, instance): (usize, &Uuid)| StaticAge {
            names: AgeNames {
                filename: FILENAME.to_owned(),
                instance_name: format!("Garden {index}"),
                ..AgeNames::default()
            },
            instance: Some(*instance),
        };
        let static_ages = instances.iter().enumerate().map(age).collect();
        let config = VaultConfig { static_ages, ..VaultConfig::default() };
        let mut state = VaultState::new(config, ServerKey::from_bytes(&[1; 32]), random);
        state.run(VaultState::found).unwrap();
        for number in 1..=players {
            let (connection, name) = (ConnectionId(number), format!("Player {number}"));
            let made = state.run(|state| state.add_account(&name, "secret", AccountFlags(0)));
            let account = made.unwrap().account;
            state.connect(connection);
            state.put_session(connection, Some(Session { account, ..Session::default() }));
            let player = state.run(|state| state.create_player(connection, &name, "female"));
            state.run(|state| state.set_player(connection, player.clone().unwrap().id)).unwrap();
        }
        state.settle();
        Self(state)
    }

    /// A vault like one from [`new`](Self::new), with these placements.
    pub(in crate::uru) fn restored(
        instances: &[Uuid],
        players: u64,
        placements: &[(u32, Placement)],
    ) -> Self {
        let mut vault = Self::new(instances, players);
        for (number, placement) in placements {
            vault.0.load_placement(*number, placement.clone());
        }
        vault
    }

    /// Lets the player of a session into an age.
    pub(in crate::uru) fn place(
        &mut self,
        session: u64,
        instance: Uuid,
        over: Option<(u32, u64)>,
        candidate: Option<&Candidate>,
    ) -> PlacedAge {
        let wanted = Wanted { filename: FILENAME, instance, over, candidate };
        let place =
            |state: &mut VaultState| state.place_age(ConnectionId(session), &wanted, &|_, _| false);
        let placed = self.0.run(place).unwrap();
        self.0.settle();
        placed
    }

    /// Ends placements.
    pub(in crate::uru) fn end(&mut self, over: &[(u32, u64)]) {
        over.iter().for_each(|(number, fence)| self.0.end_placement(*number, *fence));
        self.0.settle();
    }

    /// All placements.
    pub(in crate::uru) fn placements(&self) -> Vec<(u32, Placement)> {
        let placements = self.0.placements().iter();
        placements.map(|(number, placement)| (*number, placement.clone())).collect()
    }

    /// Saves the states of an age. Returns whether they were accepted.
    pub(in crate::uru) fn save(&mut self, owner: Owner) -> bool {
        let record = AgeRecord { age: owner.number, instance: Uuid::ZERO };
        let save = SaveObjects::nothing(owner, record);
        match self.0.run(|state| save.run(state, ConnectionId::NONE)) {
            Ok(_) => true,
            Err(Stop::Refused(NetError::AgeNotFound)) => false,
            Err(error) => panic!("{error:?}"),
        }
    }
}
