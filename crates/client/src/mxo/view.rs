//! What a client sees, and where its character walks, without I/O.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use worldwire_core::connection::SendError;
use worldwire_core::{Error, Reader, Result, Sampler, Side, Writer};
use worldwire_mxo::connection::{News, PacketNumber, Sender};
use worldwire_mxo::message::{
    Context, Movement, OWN_VIEW, Operation, Rules, Script, Section, Update,
};
use worldwire_mxo::replica::{Notice, Replica, View};
use worldwire_mxo::rpc::{ChatScope, ServerRpc};
use worldwire_mxo::schema::Objects;
use worldwire_mxo::types::Value;

/// How far a character strays from its starting point.
const ROAM: f32 = 3_000.0;
/// The length of a step.
const STRIDE: f32 = 18.0;
/// The average number of steps between two turns.
const TURNS: u64 = 12;
/// The action codes of a standing and of a walking character.
const ACTIONS: [u8; 2] = [0, 2];

/// The goobj of players' characters.
const CHARACTER: u16 = 12;

/// The maximum number of events that are kept until the caller takes them.
const MAX_HAPPENINGS: usize = 256;

/// Something that a client hears or sees once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// A text.
    Said {
        /// How the text is displayed.
        scope: ChatScope,
        /// The name of the character that said it; empty for the server.
        handle: String,
        /// The text; empty for a message whose text the game's client contains.
        text: String,
        /// The number of that message, or 0.
        message: u32,
    },
    /// A character plays a script, such as an emote.
    Played {
        /// The view of the character.
        view: u16,
        /// The name of the character; empty if it has none.
        name: String,
        /// The script.
        script: Script,
    },
    /// Another player's character has come into view.
    Appeared {
        /// The view of the character.
        view: u16,
        /// The name of the character; empty if it has none.
        name: String,
    },
    /// Another player's character is no longer in view: it has left the world, or is too far away.
    Disappeared {
        /// The view that the character had.
        view: u16,
        /// The name of the character; empty if it has none.
        name: String,
    },
    /// The client loads a world.
    LoadsWorld {
        /// The district.
        district: u32,
        /// The weather.
        sky: String,
    },
    /// The server has set an option of the client, such as the weather (`WR_RezEvents`).
    Option {
        /// The option.
        name: String,
        /// Its value, as text.
        value: String,
    },
}

/// The client's view of the world and its character.
#[derive(Debug)]
pub struct ClientView {
    replica: Replica,
    /// The district whose world was loaded last. `None` after the character has left it.
    district: Option<u32>,
    /// The last text from the server itself, until it is taken.
    answer: Option<String>,
    sampler: Sampler,
    walks: bool,
    /// Where the character appeared.
    home: Option<[f32; 3]>,
    yaw: u8,
    /// The character's newest movement, sent or to be sent.
    movement: Movement,
    has_unsent: bool,
    /// The packet that carried it, until it is acknowledged.
    unacknowledged: Option<PacketNumber>,
    sections: u64,
    bytes: u64,
    notices: u64,
    unread: u64,
    why: Option<Error>,
    happenings: VecDeque<Happening>,
}

impl ClientView {
    /// A view of a world that has not been received yet. `seed` seeds the random walk.
    #[must_use]
    pub fn new(objects: Arc<Objects>, seed: u64) -> Self {
        Self {
            replica: Replica::new(objects),
            district: None,
            answer: None,
            sampler: Sampler::new(seed),
            walks: true,
            home: None,
            yaw: 0,
            movement: Movement::default(),
            has_unsent: false,
            unacknowledged: None,
            sections: 0,
            bytes: 0,
            notices: 0,
            unread: 0,
            why: None,
            happenings: VecDeque::new(),
        }
    }

    /// The objects' views.
    #[must_use]
    pub const fn replica(&self) -> &Replica {
        &self.replica
    }

    /// The district that the character is in, once it has arrived there.
    #[must_use]
    pub fn district(&self) -> Option<u32> {
        self.district.filter(|_| self.replica.view(OWN_VIEW).is_some())
    }

    /// Records that the character leaves its district for another one, whose world it then loads.
    pub(super) fn depart(&mut self) {
        self.district = None;
    }

    /// Takes the last text that the server itself has sent since the last call.
    pub(super) fn take_answer(&mut self) -> Option<String> {
        self.answer.take()
    }

    /// Makes the character walk or stop.
    pub const fn set_walking(&mut self, walks: bool) {
        self.walks = walks;
    }

    /// Whether the server has acknowledged the character's newest movement.
    #[must_use]
    pub const fn is_acknowledged(&self) -> bool {
        !self.has_unsent && self.unacknowledged.is_none()
    }

    /// The number of sections received, and the number of bytes in them.
    #[must_use]
    pub const fn received(&self) -> (u64, u64) {
        (self.sections, self.bytes)
    }

    /// The number of irregularities in these sections, such as updates of unknown views. A correct
    /// server causes none.
    #[must_use]
    pub const fn notices(&self) -> u64 {
        self.notices
    }

    /// The number of unreadable sections, and the error of the first one. The usual cause is a
    /// table that the server has and the client lacks.
    #[must_use]
    pub fn unread(&self) -> Option<(u64, &Error)> {
        self.why.as_ref().map(|why| (self.unread, why))
    }

    /// Takes the events since the last call, at most the newest 256.
    pub fn take_happenings(&mut self) -> impl Iterator<Item = Happening> + use<> {
        core::mem::take(&mut self.happenings).into_iter()
    }

    /// Handles an RPC message from the server. Only messages that a player would notice have an
    /// effect.
    pub fn hear(&mut self, message: &ServerRpc<'_>) {
        let happening = match message {
            ServerRpc::ChatMessage(chat) => {
                let text = |text: &Option<worldwire_mxo::types::Str<'_>>| {
                    text.as_ref().map(worldwire_mxo::types::Str::text).unwrap_or_default()
                };
                let (handle, text) = (text(&chat.handle), text(&chat.text));
                if handle.is_empty() && chat.scope == ChatScope::System {
                    self.answer = Some(text.clone());
                }
                Happening::Said { scope: chat.scope, handle, text, message: chat.message_id }
            }
            ServerRpc::LoadWorld(world) => {
                self.district = Some(world.district);
                Happening::LoadsWorld { district: world.district, sky: world.sky.text() }
            }
            ServerRpc::ServerOption(option) => {
                let value = &option.value;
                let number = || value.number().map(|number| number.to_string());
                let value = value.text().or_else(number).unwrap_or_default();
                Happening::Option { name: option.name.text(), value }
            }
            _ => return,
        };
        self.note(happening);
    }

    fn note(&mut self, happening: Happening) {
        if self.happenings.len() >= MAX_HAPPENINGS {
            self.happenings.pop_front();
        }
        self.happenings.push_back(happening);
    }

    /// Handles an object section from the server. The section starts with its ID.
    ///
    /// # Errors
    /// Those of [`Replica::receive`]. The views are then unchanged; [`unread`](Self::unread) counts
    /// the section.
    pub fn receive(&mut self, section: &[u8]) -> Result<()> {
        self.take(section).inspect_err(|error| {
            self.unread += 1;
            self.why.get_or_insert_with(|| error.clone());
        })
    }

    fn take(&mut self, section: &[u8]) -> Result<()> {
        let objects = Arc::clone(self.replica.objects());
        let views = &self.replica;
        let context =
            Context { objects: &objects, views, from: Side::Server, rules: Rules::STRICT };
        let read = Section::decode(&mut Reader::new(section), &context)?;
        let before = self.others(&read.operations);
        let notices = self.replica.apply(&read, Side::Server)?;
        let after = self.others(&read.operations);
        for (view, name) in before.difference(&after).cloned() {
            self.note(Happening::Disappeared { view, name });
        }
        for (view, name) in after.difference(&before).cloned() {
            self.note(Happening::Appeared { view, name });
        }
        for operation in &read.operations {
            if let Operation::Update(Update { view, movement: Some(movement), .. }) = operation
                && let Some(script) = movement.script
            {
                let name = self.replica.view(*view).map(name_of).unwrap_or_default();
                self.note(Happening::Played { view: *view, name, script });
            }
        }
        self.sections += 1;
        self.bytes += section.len() as u64;
        self.notices += notices.iter().filter(|notice| is_odd(notice)).count() as u64;
        if self.home.is_none()
            && let Some(own) = self.replica.view(OWN_VIEW)
            && let Some(position) = own.position()
        {
            #[expect(clippy::cast_possible_truncation, reason = "movements have no more digits")]
            let position = position.map(|part| part as f32);
            self.home = Some(position);
            self.movement = Movement { position: Some(position), time: None, ..*own.movement() };
        } else if read.operations.iter().any(creates_own) {
            // When the server repeats a create operation, it has the original position, from before
            // the client's movement.
            self.has_unsent = true;
        }
        Ok(())
    }

    /// The other players' characters that these operations may create or delete, with their names.
    fn others(&self, operations: &[Operation<'_>]) -> BTreeSet<(u16, String)> {
        let mut views = BTreeSet::new();
        for operation in operations {
            match operation {
                Operation::Create(create) => views.extend([create.new_view]),
                Operation::Delete(delete) => views.extend(&delete.views),
                _ => {}
            }
        }
        let other = |id: u16| {
            let view = self.replica.view(id).filter(|view| view.goid() == CHARACTER)?;
            (id != OWN_VIEW).then(|| (id, name_of(view)))
        };
        views.into_iter().filter_map(other).collect()
    }

    /// Handles a report from the connection.
    pub fn handle_news(&mut self, news: &News) {
        match news {
            News::Delivered(number) if self.unacknowledged == Some(*number) => {
                self.unacknowledged = None
            }
            News::Lost(number) if self.unacknowledged == Some(*number) => {
                (self.unacknowledged, self.has_unsent) = (None, true);
            }
            News::Reset => {
                self.replica.reset();
                (self.home, self.unacknowledged, self.has_unsent) = (None, None, false);
            }
            _ => {}
        }
    }

    /// Lets the character take a step.
    ///
    /// # Errors
    /// Those of [`Sender::send_objects`]. The movement is then sent with the next step instead.
    pub fn step(&mut self, sender: &mut Sender) -> Result<()> {
        let Some(home) = self.home else { return Ok(()) };
        if self.walks {
            self.stride(home);
        } else if self.movement.action == Some(ACTIONS[1]) {
            self.movement.action = Some(ACTIONS[0]);
            self.has_unsent = true;
        }
        if !self.has_unsent {
            return Ok(());
        }
        let section = self.section()?;
        let mut writer = Writer::new();
        section.encode(self.replica.objects(), Side::Client, &mut writer)?;
        let number = sender.send_objects(writer.as_bytes(), None).map_err(SendError::into_error)?;
        (self.unacknowledged, self.has_unsent) = (Some(number), false);
        // The client sees its own movement immediately.
        self.replica.apply(&section, Side::Client)?;
        Ok(())
    }

    fn stride(&mut self, home: [f32; 3]) {
        let from = self.movement.position.unwrap_or(home);
        let gone = |at: usize| from[at] - home[at];
        if gone(0).hypot(gone(2)) > ROAM {
            // Walk back towards the start.
            self.yaw = turn(-gone(0), -gone(2));
        } else if self.sampler.below(TURNS) == 0 {
            self.yaw = self.sampler.bits().to_le_bytes()[0];
        }
        let angle = f32::from(self.yaw) / 256.0 * core::f32::consts::TAU;
        let to =
            [angle.sin().mul_add(STRIDE, from[0]), from[1], angle.cos().mul_add(STRIDE, from[2])];
        self.movement.position = Some(to);
        self.movement.yaw = Some(self.yaw);
        self.movement.action = Some(ACTIONS[1]);
        self.has_unsent = true;
    }

    fn section(&self) -> Result<Section<'static>> {
        let Some(own) = self.replica.view(OWN_VIEW) else {
            return Err(Error::invalid("the client has no character"));
        };
        let Movement { action, yaw, position, .. } = self.movement;
        let update = Update {
            view: OWN_VIEW,
            class: own.class(),
            guess: false,
            block1: None,
            movement: Some(Movement { action, yaw, position, ..Movement::default() }),
            properties: None,
        };
        Ok(Section { operations: vec![Operation::Update(update)], unterminated: false })
    }
}

/// The name of a character in the game.
fn name_of(view: &View) -> String {
    match view.value("CharacterName") {
        Some(Value::Text(name)) => name,
        _ => String::new(),
    }
}

fn creates_own(operation: &Operation<'_>) -> bool {
    matches!(operation, Operation::Create(create) if create.new_view == OWN_VIEW)
}

/// Repetitions are normal when packets are lost.
const fn is_odd(notice: &Notice) -> bool {
    matches!(
        notice,
        Notice::Replaced(_)
            | Notice::BadPending { .. }
            | Notice::UnknownCreate { .. }
            | Notice::Undecoded { .. }
    )
}

/// A direction in 256ths of a full turn.
fn turn(x: f32, z: f32) -> u8 {
    let part = x.atan2(z) / core::f32::consts::TAU * 256.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is from 0 to 255"
    )]
    let turn = part.round().rem_euclid(256.0) as u8;
    turn
}
