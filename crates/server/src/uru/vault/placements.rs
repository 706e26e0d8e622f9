//! Placements, which record the process that runs each age if several processes run ages.
//!
//! A *placement* assigns an age to the process of a node. Its *fence* is higher than that of any
//! earlier placement, and every change that the age makes names the fence: the vault refuses
//! changes by ages whose placement is over. A placement is stored in the batch of the request that
//! needs it, so it survives the process with the vault.
//!
//! Ages in the process with the vault have no placement. Their changes name the fence 0.

use worldwire_uru::types::{NetError, Uuid};

use super::ConnectionId;
use super::age_states::{Owner, PlayerIdentity};
use super::ages::AgeFound;
use super::ask::{decoded, encoded, wire_struct};
use super::handle::{Connection, Vault};
use super::session::Outcome;
use super::steps::VaultState;
use crate::store::{Change, PlacementRow};

/// The first number for temporary ages with a placement. The process with the vault uses lower
/// numbers for its own temporary ages.
pub(in crate::uru) const FIRST_PLACED: u32 = 0xc000_0000;

/// The placement of an age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::uru) struct Placement {
    /// Its number among all placements.
    pub(in crate::uru) fence: u64,
    /// The name of the node.
    pub(in crate::uru) node: String,
    /// The number of the node's process.
    pub(in crate::uru) process: u64,
    /// The instance.
    pub(in crate::uru) instance: Uuid,
    /// The age's filename.
    pub(in crate::uru) filename: String,
    /// The digest that identifies the folder of the process. 0: unknown.
    pub(in crate::uru) folder: u64,
}

wire_struct! {
    Placement {
        fence: u64,
        node: String,
        process: u64,
        instance: Uuid,
        filename: String,
        folder: u64,
    }
}

impl Placement {
    /// The database row. `None` if a name is too long for a row, which never happens.
    pub(in crate::uru::vault) fn row(&self, number: u32) -> Option<PlacementRow> {
        Some(PlacementRow { number, data: encoded(self).ok()? })
    }
}

/// The process that runs new ages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::uru) struct Candidate {
    /// The name of the node.
    pub(in crate::uru) node: String,
    /// The number of the node's process.
    pub(in crate::uru) process: u64,
    /// The digest that identifies its folder.
    pub(in crate::uru) folder: u64,
}

/// An age that a session may join, and the place where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::uru) struct PlacedAge {
    /// The age.
    pub(in crate::uru) found: AgeFound,
    /// The session's player. If there is none, no process needs to run the age.
    pub(in crate::uru) identity: Option<PlayerIdentity>,
    /// The number and the placement; `None` for an age in this process.
    pub(in crate::uru) placed: Option<(u32, Placement)>,
}

/// A session's request for an age.
pub(in crate::uru) struct Wanted<'w> {
    /// The age's filename.
    pub(in crate::uru) filename: &'w str,
    /// The instance.
    pub(in crate::uru) instance: Uuid,
    /// A placement that is over, by number and fence.
    pub(in crate::uru) over: Option<(u32, u64)>,
    /// Where to run the age if it is not running yet; `None` for this process.
    pub(in crate::uru) candidate: Option<&'w Candidate>,
}

impl Connection {
    /// Lets the session's player into an age, as [`request_age`](Connection::request_age) does, and
    /// decides which process runs the age. `is_here` returns whether an age runs in this process.
    /// It is called for ages without a placement; its second argument is whether the age will run
    /// here if it is not running yet.
    pub(in crate::uru) async fn request_placed_age(
        &self,
        filename: String,
        instance: Uuid,
        over: Option<(u32, u64)>,
        candidate: Option<Candidate>,
        is_here: impl Fn(AgeFound, bool) -> bool + Send + 'static,
    ) -> Result<PlacedAge, NetError> {
        self.run(move |state, id| {
            let candidate = candidate.as_ref();
            let wanted = Wanted { filename: &filename, instance, over, candidate };
            state.place_age(id, &wanted, &is_here)
        })
        .await
    }
}

impl Vault {
    /// All placements, by number.
    pub(in crate::uru) async fn placements(&self) -> Result<Vec<(u32, Placement)>, NetError> {
        let all = |state: &mut VaultState| {
            let placements = state.placements().iter();
            Ok(placements.map(|(number, placement)| (*number, placement.clone())).collect())
        };
        self.operate(None, all).await
    }

    /// Ends placements, given by number and fence.
    pub(in crate::uru) async fn end_placements(
        &self,
        over: Vec<(u32, u64)>,
    ) -> Result<(), NetError> {
        let end = move |state: &mut VaultState| {
            over.iter().for_each(|(number, fence)| state.end_placement(*number, *fence));
            Ok(())
        };
        self.operate(None, end).await
    }

    /// Ends all placements.
    pub(in crate::uru) async fn end_all_placements(&self) -> Result<(), NetError> {
        let end = |state: &mut VaultState| {
            let numbers: Vec<_> = state.placements().keys().copied().collect();
            numbers.into_iter().for_each(|number| state.put_placement(number, None));
            Ok(())
        };
        self.operate(None, end).await
    }

    /// The players in this list who are not online.
    pub(in crate::uru) async fn offline(&self, players: Vec<u32>) -> Result<Vec<u32>, NetError> {
        let offline = move |state: &mut VaultState| {
            let players = players.iter().copied();
            Ok(players.filter(|player| state.connection_of(*player).is_none()).collect())
        };
        self.operate(None, offline).await
    }
}

impl VaultState {
    /// Loads the placements that an earlier process stored.
    pub(in crate::uru::vault) fn load_placements(&mut self, rows: Vec<PlacementRow>) {
        for PlacementRow { number, data } in rows {
            // Rows of earlier versions do not have the folder.
            let placement = decoded::<Placement>(&data)
                .or_else(|error| decoded(&[&*data, &[0; 8]].concat()).map_err(|_| error));
            match placement {
                Ok(placement) => self.load_placement(number, placement),
                Err(error) => {
                    tracing::warn!(number, %error, "the placement of an age cannot be read");
                    self.stage(Change::DeletePlacement(number));
                }
            }
        }
    }

    /// Lets a session's player into an age and finds or creates the age's placement.
    pub(in crate::uru::vault) fn place_age(
        &mut self,
        connection: ConnectionId,
        wanted: &Wanted<'_>,
        is_here: &dyn Fn(AgeFound, bool) -> bool,
    ) -> Outcome<PlacedAge> {
        let &Wanted { filename, instance, over, candidate } = wanted;
        let found = self.request_age(connection, filename, instance)?;
        let identity = self.identity(connection);
        if let Some((number, fence)) = over {
            self.end_placement(number, fence);
        }
        let known = match found.age {
            0 => self.temporary_number(instance),
            age => Some(age),
        };
        let known = known.and_then(|number| Some((number, self.placement(number)?.clone())));
        let placed = match (known, candidate) {
            _ if identity.is_none() => None,
            (Some(known), _) => Some(known),
            (None, candidate) if is_here(found, candidate.is_none()) => None,
            (None, None) => None,
            (None, Some(Candidate { node, process, folder })) => {
                let (number, fence) = self.make_number(found.age)?;
                let (node, process, folder) = (node.clone(), *process, *folder);
                let filename = filename.to_owned();
                let placement = Placement { fence, node, process, instance, filename, folder };
                self.put_placement(number, Some(placement.clone()));
                Some((number, placement))
            }
        };
        Ok(PlacedAge { found, identity, placed })
    }

    /// The number and the fence of a new placement. `age` is 0 if the age is not in the vault.
    fn make_number(&mut self, age: u32) -> Outcome<(u32, u64)> {
        // A temporary age may still have the number that goes with the first of these fences.
        for _ in 0..=self.placements().len() {
            let fence = self.make_fence()?;
            let number = match age {
                0 => FIRST_PLACED | u32::try_from(fence % 0x4000_0000).unwrap_or_default(),
                age => age,
            };
            if self.placement(number).is_none() {
                return Ok((number, fence));
            }
        }
        Err(NetError::InternalError.into())
    }

    /// Ends a placement, unless there is a later one.
    pub(in crate::uru::vault) fn end_placement(&mut self, number: u32, fence: u64) {
        if self.placement(number).is_some_and(|placement| placement.fence == fence) {
            self.put_placement(number, None);
        }
    }

    /// Checks that the placement on whose behalf an age writes is not over. Fails with
    /// [`NetError::AgeNotFound`].
    pub(in crate::uru::vault) fn check_placement(&self, owner: Owner) -> Outcome<()> {
        let fence = self.placement(owner.number).map_or(0, |placement| placement.fence);
        if owner.fence == fence { Ok(()) } else { Err(NetError::AgeNotFound.into()) }
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::Sampler;
    use worldwire_uru::message::AccountFlags;

    use super::*;
    use crate::store::seal::ServerKey;
    use crate::uru::vault::age_states::{AgeRecord, SaveObjects};
    use crate::uru::vault::ask::{Ask as _, Wire as _};
    use crate::uru::vault::config::VaultConfig;
    use crate::uru::vault::session::Session;

    const CONNECTION: ConnectionId = ConnectionId(1);

    /// A shard with a player who is online.
    fn shard() -> VaultState {
        let mut number = 0_u8;
        let random = Box::new(move |bytes: &mut [u8]| {
            number = number.wrapping_add(1);
            bytes.fill(number);
        });
        let key = ServerKey::from_bytes(&[1; 32]);
        let config = VaultConfig { any_temporary_age: true, ..VaultConfig::default() };
        let mut state = VaultState::new(config, key, random);
        state.run(VaultState::found).unwrap();
        let account =
            state.run(|state| state.add_account("ann", "secret", AccountFlags(0))).unwrap().account;
        state.connect(CONNECTION);
        state.put_session(CONNECTION, Some(Session { account, ..Session::default() }));
        let player = state.run(|state| state.create_player(CONNECTION, "Ann", "female")).unwrap();
        state.run(|state| state.set_player(CONNECTION, player.id)).unwrap();
        state
    }

    fn node(process: u64) -> Candidate {
        Candidate { node: "a".to_owned(), process, folder: 7 }
    }

    /// The placement of a temporary age that does not run in this process.
    fn place(
        state: &mut VaultState,
        instance: Uuid,
        candidate: Option<&Candidate>,
        over: Option<(u32, u64)>,
    ) -> Option<(u32, Placement)> {
        let wanted = Wanted { filename: "Garden", instance, over, candidate };
        let placed = state.run(|state| state.place_age(CONNECTION, &wanted, &|_, _| false));
        placed.unwrap().placed
    }

    #[test]
    fn an_age_stays_at_its_process_until_its_placement_is_over() {
        let mut state = shard();
        let instance = Uuid([7; 16]);
        assert_eq!(place(&mut state, instance, None, None), None);
        let (number, first) = place(&mut state, instance, Some(&node(1)), None).unwrap();
        assert!(number >= FIRST_PLACED && first.process == 1);
        let again = place(&mut state, instance, Some(&node(2)), None);
        assert_eq!(again, Some((number, first.clone())));
        let over = Some((number, first.fence));
        let (other, second) = place(&mut state, instance, Some(&node(2)), over).unwrap();
        assert!(second.process == 2 && second.fence > first.fence && other != number);
        // A placement that is already over changes nothing.
        let same = place(&mut state, instance, Some(&node(1)), over);
        assert_eq!(same, Some((other, second)));
    }

    #[test]
    fn ages_that_run_here_get_no_placement() {
        let mut state = shard();
        let instance = Uuid([7; 16]);
        let candidate = node(1);
        let candidate = Some(&candidate);
        let wanted = Wanted { filename: "Garden", instance, over: None, candidate };
        let here = |_: AgeFound, will_be: bool| !will_be;
        let placed = state.run(|state| state.place_age(CONNECTION, &wanted, &here)).unwrap();
        assert_eq!((placed.placed, placed.found.age), (None, 0));
        assert!(state.placements().is_empty());
    }

    #[test]
    fn placements_survive_the_process() {
        let mut state = shard();
        let (number, first) = place(&mut state, Uuid([7; 16]), Some(&node(1)), None).unwrap();
        let changes = state.staged().clone();
        let rows = changes.values().filter_map(|change| match change {
            Change::PutPlacement(row) => Some(row.clone()),
            _ => None,
        });
        let rows = rows.collect();
        let mut next = shard();
        next.settle();
        next.follow(&changes).unwrap();
        next.load_placements(rows);
        assert_eq!(next.placement(number), Some(&first));
        let again = place(&mut next, Uuid([7; 16]), Some(&node(2)), None);
        assert_eq!(again, Some((number, first.clone())));
        let (_, second) = place(&mut next, Uuid([8; 16]), Some(&node(2)), None).unwrap();
        assert!(second.fence > first.fence);
    }

    #[test]
    fn placements_that_cannot_be_read_are_removed() {
        let mut state = shard();
        state.settle();
        state.load_placements(vec![PlacementRow { number: 9, data: vec![1] }]);
        assert_eq!(state.staged().values().next(), Some(&Change::DeletePlacement(9)));
        for seed in 0..100 {
            let placement = Placement::sample(&mut Sampler::new(seed));
            state.load_placements(vec![placement.row(9).unwrap()]);
            assert_eq!(state.placement(9), Some(&placement));
        }
    }

    #[test]
    fn only_the_owner_writes() {
        let mut state = shard();
        let city = state.graph().ids().into_iter().find_map(|node| {
            let facts = &state.graph().get(node)?.facts;
            let is_age = matches!(facts, crate::uru::vault::content::Facts::Age { .. });
            is_age.then_some(node)
        });
        let (age, instance) = (city.unwrap(), Uuid([7; 16]));
        let save = |number, fence| {
            let record = AgeRecord { age, instance };
            let owner = Owner { number, fence };
            SaveObjects::nothing(owner, record)
        };
        let mut try_save = |number, fence, placement: Option<u64>| {
            let placement = placement.map(|fence| Placement {
                fence,
                node: "a".to_owned(),
                process: 1,
                instance,
                filename: "city".to_owned(),
                folder: 0,
            });
            state.put_placement(age, placement);
            let save = save(number, fence);
            state.run(|state| save.run(state, CONNECTION)).is_ok()
        };
        assert!(try_save(age, 0, None), "the process with the vault");
        assert!(!try_save(age, 1, None), "a placement that is over");
        assert!(try_save(age, 1, Some(1)));
        assert!(!try_save(age, 1, Some(2)), "an earlier placement");
        assert!(!try_save(age, 0, Some(2)), "the process with the vault, after the age moved");
        assert!(!try_save(age + 1, 2, Some(2)), "another age");
    }

    #[test]
    fn placements_of_earlier_versions_can_be_read() {
        let placement = Placement {
            fence: 7,
            node: "a".to_owned(),
            process: 11,
            instance: Uuid([7; 16]),
            filename: "city".to_owned(),
            folder: 0,
        };
        let PlacementRow { number, mut data } = placement.row(10_100).unwrap();
        data.truncate(data.len() - size_of::<u64>());
        let mut state = shard();
        state.settle();
        state.load_placements(vec![PlacementRow { number, data: data.clone() }]);
        assert_eq!(state.placements().get(&number), Some(&placement));
        // But not half of one.
        data.truncate(data.len() - 1);
        state.load_placements(vec![PlacementRow { number: 10_101, data }]);
        assert!(!state.placements().contains_key(&10_101));
    }
}
