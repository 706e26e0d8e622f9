//! What a client sees, and where its character walks. It does no IO.

use std::sync::Arc;

use worldwire_core::connection::SendError;
use worldwire_core::{Error, Result, Sampler, Side, Writer};
use worldwire_mxo::connection::{News, PacketNumber, Sender};
use worldwire_mxo::message::{MPM_ID, Movement, OWN_VIEW, Operation, Rules, Section, Update};
use worldwire_mxo::replica::{Notice, Replica};
use worldwire_mxo::schema::Objects;

/// How far a character goes from where it began.
const ROAM: f32 = 3_000.0;
/// How far it goes in a step.
const STRIDE: f32 = 18.0;
/// The chance, one in so many, that it turns at a step.
const TURNS: u64 = 12;
/// The action of one who stands and of one who walks.
const ACTIONS: [u8; 2] = [0, 2];

/// The views of a client, and its character.
#[derive(Debug)]
pub struct Eyes {
    replica: Replica,
    sampler: Sampler,
    walks: bool,
    /// Where the character began, once it is there.
    home: Option<[f32; 3]>,
    yaw: u8,
    /// What the server was told last, and what it is to be told.
    movement: Movement,
    is_untold: bool,
    /// The packet that told it.
    told_in: Option<PacketNumber>,
    sections: u64,
    bytes: u64,
    notices: u64,
    unread: u64,
    why: Option<Error>,
}

impl Eyes {
    /// A client that has seen nothing yet. `seed` is where chance begins.
    #[must_use]
    pub fn new(objects: Arc<Objects>, seed: u64) -> Self {
        Self {
            replica: Replica::new(objects),
            sampler: Sampler::new(seed),
            walks: true,
            home: None,
            yaw: 0,
            movement: Movement::default(),
            is_untold: false,
            told_in: None,
            sections: 0,
            bytes: 0,
            notices: 0,
            unread: 0,
            why: None,
        }
    }

    /// The views.
    #[must_use]
    pub const fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Whether the character walks. It stands still once this is false.
    pub const fn walk(&mut self, walks: bool) {
        self.walks = walks;
    }

    /// Whether the server knows for certain where the character is.
    #[must_use]
    pub const fn is_told(&self) -> bool {
        !self.is_untold && self.told_in.is_none()
    }

    /// Sections and bytes that were received.
    #[must_use]
    pub const fn received(&self) -> (u64, u64) {
        (self.sections, self.bytes)
    }

    /// What was odd in them: updates of views that are not there, and the like. A server that does
    /// it right gives no reason for any.
    #[must_use]
    pub const fn notices(&self) -> u64 {
        self.notices
    }

    /// How many sections could not be read, and why the first one could not: most often because the
    /// client lacks a table that the server has.
    #[must_use]
    pub fn unread(&self) -> Option<(u64, &Error)> {
        self.why.as_ref().map(|why| (self.unread, why))
    }

    /// An object section of the server, from its id on.
    ///
    /// # Errors
    /// Those of [`Replica::receive`]; nothing has changed then but what [`unread`](Self::unread)
    /// says.
    pub fn hear(&mut self, section: &[u8]) -> Result<()> {
        self.take(section).inspect_err(|error| {
            self.unread += 1;
            self.why.get_or_insert_with(|| error.clone());
        })
    }

    fn take(&mut self, section: &[u8]) -> Result<()> {
        let (_, notices) = self.replica.receive(section, Side::Server, Rules::STRICT)?;
        self.sections += 1;
        self.bytes += section.len() as u64;
        self.notices += notices.iter().filter(|notice| is_odd(notice)).count() as u64;
        if self.home.is_none()
            && let Some(own) = self.replica.view(OWN_VIEW)
            && let Some(position) = own.movement().position
        {
            self.home = Some(position);
            self.movement = Movement { time: None, ..*own.movement() };
        }
        Ok(())
    }

    /// What the connection reports.
    pub fn news(&mut self, news: &News) {
        match news {
            News::Delivered(number) if self.told_in == Some(*number) => self.told_in = None,
            News::Lost(number) if self.told_in == Some(*number) => {
                (self.told_in, self.is_untold) = (None, true);
            }
            News::Reset => {
                self.replica.reset();
                (self.home, self.told_in, self.is_untold) = (None, None, false);
            }
            _ => {}
        }
    }

    /// Time for a step.
    ///
    /// # Errors
    /// What cannot be sent; it is tried again with the next step.
    pub fn step(&mut self, sender: &mut Sender) -> Result<()> {
        let Some(home) = self.home else { return Ok(()) };
        if self.walks {
            self.stride(home);
        } else if self.movement.action == Some(ACTIONS[1]) {
            self.movement.action = Some(ACTIONS[0]);
            self.is_untold = true;
        }
        if !self.is_untold {
            return Ok(());
        }
        let section = self.section()?;
        let mut writer = Writer::new();
        section.encode(self.replica.objects(), Side::Client, &mut writer)?;
        let bytes = writer.into_bytes();
        debug_assert_eq!(bytes.first(), Some(&MPM_ID));
        let number = sender
            .send_objects(bytes.get(1..).unwrap_or_default(), None)
            .map_err(SendError::into_error)?;
        (self.told_in, self.is_untold) = (Some(number), false);
        // What the character does is seen at once.
        self.replica.apply(&section, Side::Client)?;
        Ok(())
    }

    fn stride(&mut self, home: [f32; 3]) {
        let from = self.movement.position.unwrap_or(home);
        let gone = |at: usize| from[at] - home[at];
        if gone(0).hypot(gone(2)) > ROAM {
            // Back home.
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
        self.is_untold = true;
    }

    fn section(&self) -> Result<Section<'static>> {
        let Some(own) = self.replica.view(OWN_VIEW) else {
            return Err(Error::value("a character", "none"));
        };
        let Movement { action, yaw, position, .. } = self.movement;
        let update = Update {
            view: OWN_VIEW,
            class: own.class(),
            guess: false,
            movement: Some(Movement { action, yaw, position, ..Movement::default() }),
            properties: None,
        };
        Ok(Section { operations: vec![Operation::Update(update)], unterminated: false })
    }
}

/// Repetitions are no news where packets get lost.
const fn is_odd(notice: &Notice) -> bool {
    matches!(
        notice,
        Notice::Replaced(_)
            | Notice::BadPending { .. }
            | Notice::UnknownCreate { .. }
            | Notice::Undecoded { .. }
    )
}

/// The direction as a part of a full turn.
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
