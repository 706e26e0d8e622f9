//! Interaction between players: chat, emotes, and the scripts of their characters.

use worldwire_core::{Error, Result, Side, Writer};
use worldwire_mxo::frame::RpcMessage;
use worldwire_mxo::message::{Animation, Movement, Operation, Script, Section, Update};
use worldwire_mxo::replicator::{ClientId, ObjectId, Point, ViewState};
use worldwire_mxo::rpc::{ChatMessage, ChatScope, ServerRpc};
use worldwire_mxo::types::Str;

use super::world::{CHARACTER, World};

/// The maximum number of messages that wait for a client. Further messages are dropped.
const MAX_MESSAGES: usize = 64;
/// The property that shows that a character is leaving.
const ABANDONED: &str = "AbandonedState";
/// The maximum number of additional sections that wait for a client.
const MAX_SECTIONS: usize = 64;

impl World {
    /// Says something to everyone near a client's character. Returns the number of players who hear
    /// it.
    pub(super) fn say(&mut self, client: ClientId, text: &str) -> Result<usize> {
        let message = self.words_of(client, ChatScope::Area, text)?;
        let from = self.place_of(client)?;
        let within = self.reach;
        let near: Vec<ClientId> = self
            .players
            .keys()
            .copied()
            .filter(|other| *other != client)
            .filter(|other| self.place_of(*other).is_ok_and(|at| distance(&from, &at) <= within))
            .collect();
        for other in &near {
            self.tell(*other, message.clone());
        }
        Ok(near.len())
    }

    /// The message that a player hears when a client whispers something.
    pub(super) fn whispered(&self, client: ClientId, text: &str) -> Result<RpcMessage<'static>> {
        self.words_of(client, ChatScope::Whisper, text)
    }

    /// Delivers a message to the player with this handle. Returns false if no player in this world
    /// has it.
    pub(super) fn deliver(&mut self, handle: &str, message: &RpcMessage<'static>) -> bool {
        let is_meant = |handle_of: &str| handle_of.eq_ignore_ascii_case(handle);
        let found = self.players.iter().find(|(_, player)| is_meant(&player.handle));
        let Some(receiver) = found.map(|(receiver, _)| *receiver) else { return false };
        self.tell(receiver, message.clone());
        true
    }

    /// Plays an emote, given by its number in scripts, for everyone who sees a client's character,
    /// including the client. Returns the number of players who see it.
    pub(super) fn emote(&mut self, client: ClientId, number: u8) -> Result<usize> {
        let audience = self.viewers(client)?;
        self.play(client, Script::emote(number), &audience)
    }

    /// Shows that a client's character is leaving, or that it stays after all.
    pub(super) fn show_leaving(&mut self, client: ClientId, is_leaving: bool) -> Result<()> {
        let character = self.character_of(client)?;
        if let Some(state) = self.replicator.property(CHARACTER, ABANDONED) {
            self.replicator.set(character, state, &[u8::from(is_leaving)])?;
        }
        if !is_leaving {
            return Ok(());
        }
        let own = self.viewers(client)?.into_iter().filter(|(viewer, _)| *viewer == client);
        let own: Vec<_> = own.collect();
        self.play(client, Script::JackOut { unknown1: 0x1000 }, &own).map(drop)
    }

    /// Starts or ends an animation, or changes the mood, for everyone else who sees a client's
    /// character.
    pub(super) fn animate(
        &mut self,
        client: ClientId,
        change: impl FnOnce(&mut Animation),
    ) -> Result<()> {
        let character = self.character_of(client)?;
        let movement = self.replicator.movement(character);
        let mut animation = movement.and_then(|it| it.animation).unwrap_or_default();
        change(&mut animation);
        let movement = Movement { animation: Some(animation), ..Movement::default() };
        self.replicator.follow(client, &movement)
    }

    /// The position and direction of a client's character.
    pub(super) fn stand(&self, client: ClientId) -> Result<(Point, u8)> {
        let movement = self.replicator.movement(self.character_of(client)?);
        let yaw = movement.and_then(|it| it.yaw).unwrap_or(0);
        self.place_of(client).map(|place| (place, yaw))
    }

    /// Plays a script for these views of a client's character.
    fn play(
        &mut self,
        client: ClientId,
        script: Script,
        audience: &[(ClientId, u16)],
    ) -> Result<usize> {
        let character = self.character_of(client)?;
        let position = self.replicator.movement(character).and_then(|it| it.position);
        let Some(player) = self.players.get_mut(&client) else { return Err(gone()) };
        player.script_counter = player.script_counter.wrapping_add(1);
        let movement = Movement {
            script_counter: Some(player.script_counter),
            script: Some(script),
            position,
            // Unverified: whether this is the server's clock in milliseconds.
            time: position.map(|_| u32::try_from(self.now.as_millis()).unwrap_or(u32::MAX)),
            ..Movement::default()
        };
        let objects = std::sync::Arc::clone(self.replicator.objects());
        let Some((class, _)) = objects.class_of(CHARACTER) else {
            return Err(gone());
        };
        for (viewer, view) in audience {
            let update = Update {
                view: *view,
                class,
                guess: false,
                block1: None,
                movement: Some(movement),
                properties: None,
            };
            let operations = vec![Operation::Update(update)];
            let section = Section { operations, unterminated: false };
            let mut writer = Writer::new();
            section.encode(&objects, Side::Server, &mut writer)?;
            if let Some(player) = self.players.get_mut(viewer)
                && player.sections.len() < MAX_SECTIONS
            {
                player.sections.push_back(writer.into_bytes());
            }
        }
        Ok(audience.len())
    }

    /// The clients that see a client's character, and their views of it.
    fn viewers(&self, client: ClientId) -> Result<Vec<(ClientId, u16)>> {
        let character = self.character_of(client)?;
        let viewers = self.replicator.viewers(character)?;
        // Until a view's create is acknowledged, an update could arrive before it.
        let live = viewers.filter(|(_, view)| view.state == ViewState::Live);
        Ok(live.map(|(viewer, view)| (viewer, view.id)).collect())
    }

    fn words_of(
        &self,
        client: ClientId,
        scope: ChatScope,
        text: &str,
    ) -> Result<RpcMessage<'static>> {
        let player = self.players.get(&client).ok_or_else(gone)?;
        let [a, b, c, d, ..] = player.uid.to_le_bytes();
        let message = ChatMessage {
            scope,
            character_id: u32::from_le_bytes([a, b, c, d]),
            handle: Some(Str::new(&player.handle)?),
            ..ChatMessage::system(Str::new(text)?)
        };
        ServerRpc::from(message).encode()
    }

    fn tell(&mut self, client: ClientId, message: RpcMessage<'static>) {
        if let Some(player) = self.players.get_mut(&client)
            && player.messages.len() < MAX_MESSAGES
        {
            player.messages.push_back(message);
        }
    }

    fn character_of(&self, client: ClientId) -> Result<ObjectId> {
        self.players.get(&client).map(|player| player.character).ok_or_else(gone)
    }

    fn place_of(&self, client: ClientId) -> Result<Point> {
        let movement = self.replicator.movement(self.character_of(client)?);
        let position = movement.and_then(|it| it.position);
        position.map(|position| position.map(f64::from)).ok_or_else(gone)
    }
}

fn gone() -> Error {
    Error::value("a client in the world", "one that has left")
}

fn distance(from: &Point, to: &Point) -> f64 {
    from.iter().zip(to).map(|(from, to)| (to - from).powi(2)).sum::<f64>().sqrt()
}
