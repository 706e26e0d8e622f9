//! Requests about an account's characters, and entering a zone.

use worldwire_core::text::is_hostile;
use worldwire_ki::character::{Character, MAX_NAME_INDICES};
use worldwire_ki::object::{Object, ObjectCodec, ObjectOptions};
use worldwire_ki::schema::classes::Classes;

use super::{Login, Pending, Phase, Query, QueuePosition, Reply, Request, Selected, Zone};
use crate::ki::refusal::Refusal;

/// The maximum size of a character's blob, in bytes; real blobs have about a hundred.
const MAX_BLOB: usize = 16 << 10;
/// The longest name, in bytes.
const MAX_NAME: usize = 64;

impl Login {
    /// Handles a request that requires admission.
    pub(super) fn request(&mut self, request: Request) {
        let user = match self.phase {
            Phase::User { user, place: Some(QueuePosition::In) } => user,
            // This is a standalone client's first request.
            Phase::User { place: None, .. } => {
                return self.ask(Query::Enter, Pending::QueuePosition(Some(request)));
            }
            _ => return self.refuse(&request, Refusal::NotAdmitted),
        };
        match request {
            Request::ListCharacters => self.ask(Query::Characters(user), Pending::Characters),
            Request::CreateCharacter(blob) => match character(&blob, self.rules.classes.as_deref())
            {
                Ok(character) => self.ask(Query::Create { user, character }, Pending::Create),
                Err(refusal) => self.send(Reply::Created(Some(refusal))),
            },
            Request::DeleteCharacter(character) => {
                self.ask(Query::Delete { user, character }, Pending::Delete);
            }
            Request::SelectCharacter(character) => {
                self.ask(Query::Select { user, character }, Pending::Select);
            }
            _ => {}
        }
    }

    fn refuse(&mut self, request: &Request, why: Refusal) {
        match request {
            Request::CreateCharacter(_) => self.send(Reply::Created(Some(why))),
            Request::DeleteCharacter(_) => self.send(Reply::Deleted(Some(why))),
            Request::SelectCharacter(_) => self.send(Reply::Selected(Err(why))),
            _ => self.send(Reply::EndList(Some(why))),
        }
    }

    pub(super) fn list(&mut self, blobs: Vec<Vec<u8>>, purchased: u32) {
        self.send(Reply::StartList { server: self.rules.server.clone(), purchased });
        for blob in blobs {
            self.send(Reply::Character(blob));
        }
        self.send(Reply::EndList(None));
    }

    /// Replies to the choice of a character. The client then connects to the character's zone.
    pub(super) fn selected(&mut self, outcome: Result<Box<Selected>, Refusal>) {
        let is_done = outcome.is_ok();
        self.send(Reply::Selected(outcome));
        if is_done {
            self.close();
        }
    }

    pub(super) fn attached(&mut self, outcome: Result<Zone, Refusal>) {
        match outcome {
            Ok(Zone { id, name }) => {
                self.phase = Phase::Zone;
                self.send(Reply::InZone { zone: name, zone_id: id, time: self.time() });
            }
            Err(refusal) => {
                self.send(Reply::AttachFailed(refusal));
                self.failures += 1;
                if self.failures >= self.rules.attempts {
                    self.close();
                }
            }
        }
    }
}

/// Decodes and checks a new character.
fn character(blob: &[u8], classes: Option<&Classes>) -> Result<Character, Refusal> {
    if blob.len() > MAX_BLOB {
        return Err(Refusal::MalformedCharacter);
    }
    let character = Character::read(blob).map_err(|_| Refusal::MalformedCharacter)?;
    if let Some(classes) = classes {
        let options = ObjectOptions { max_objects: 64, ..ObjectOptions::default() };
        let decoded = ObjectCodec::new(classes, options).decode_all(blob, &mut Object::new());
        decoded.map_err(|_| Refusal::MalformedCharacter)?;
    }
    let is_plain = |name: &str| !name.contains(is_hostile) && name.trim() == name;
    let name = core::str::from_utf8(character.name()).ok().filter(|name| is_plain(name));
    let fits = name.is_some_and(|name| name.len() <= MAX_NAME);
    match fits && character.name_indices() <= MAX_NAME_INDICES {
        true => Ok(character),
        false => Err(Refusal::InvalidName),
    }
}
