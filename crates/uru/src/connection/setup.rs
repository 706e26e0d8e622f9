//! Setup: the connect packet and the key exchange, in each role.

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::connection::{CloseReason, Event, Lane, Role as _, Timer};
use worldwire_core::{Error, Result, Side};

use super::Connection;
use super::config::{Encryption, key_kind, private_key, refused};
use super::event::News;
use super::sender::Role;
use super::stream::Phase;
use crate::connect::{ConnectPacket, SetupPacket};
use crate::crypt::exchange::SessionKey;
use crate::crypt::rc4::Rc4;
use crate::frame::Service;

/// No keys: neither hop is encrypted.
pub(super) const PLAIN: [Option<&SessionKey>; 2] = [None, None];

impl Connection {
    /// Handles the client's connect packet.
    pub(super) fn connected(&mut self, side: Side, packet: ConnectPacket) -> Result<()> {
        let refuse = |wanted: &'static str, found: String| Err(Error::malformed(wanted, found));
        let Some(service) = packet.service() else {
            let found = packet.connection_type().to_string();
            return refuse("a connection type that this server accepts", found);
        };
        if let Role::Server { config, .. } = &self.sender.half.role {
            if !config.services.contains(&service) {
                return refuse("a service that this server offers", service.name().to_owned());
            }
            if service != Service::File && !config.builds.admits(packet.build_id) {
                return refuse("a build that this server admits", packet.build_id.to_string());
            }
            if config.product.is_some_and(|product| product != packet.product_id) {
                return refuse("the shard's product id", packet.product_id.to_string());
            }
        }
        self.sender.service = Some(service);
        if let Role::Relay(relay) = &mut self.sender.half.role {
            relay.service = Some(service);
        }
        if service.is_encrypted() {
            self.streams[side.index()].set_phase(Phase::Setup);
        } else {
            self.establish(service, PLAIN);
        }
        Ok(())
    }

    pub(super) fn set_up(&mut self, side: Side, packet: SetupPacket<'static>) -> Result<()> {
        if matches!(self.sender.half.role, Role::Observer { .. }) {
            return self.observe_setup(side, packet);
        }
        let Some(service) = self.service() else {
            return Ok(());
        };
        let wrong =
            |wanted: &'static str, found: &'static str| Err(Error::malformed(wanted, found));
        match (&mut self.sender.half.role, packet) {
            (Role::Server { config, seed }, SetupPacket::Connect(y)) => {
                let (config, seed) = (Arc::clone(config), *seed);
                if y.is_empty() {
                    if config.encryption != Encryption::AllowPlain {
                        return wrong("an encrypted connection", "a request for a plain one");
                    }
                    self.sender.transmit(side, &SetupPacket::Encrypt(None))?;
                    self.establish(service, PLAIN);
                    return Ok(());
                }
                let key = private_key(&config.keys, service)?;
                let key = key.server_answer(&y, seed).map_err(refused)?;
                self.sender.transmit(side, &SetupPacket::Encrypt(Some(seed)))?;
                let plain = config.encryption == Encryption::OpenUruPlain;
                self.establish(service, [(!plain).then_some(&key); 2]);
            }
            (Role::Client { config, shared }, SetupPacket::Encrypt(seed)) => {
                let encrypts = config.key.is_some();
                match (shared.take(), seed) {
                    (Some(shared), Some(seed)) => {
                        let key = shared.session_key(seed);
                        self.establish(service, [Some(&key); 2]);
                    }
                    (None, None) if !encrypts => self.establish(service, PLAIN),
                    (Some(_), None) => return wrong("a seed of 7 bytes", "no seed"),
                    _ => return wrong("no seed", "a seed of 7 bytes"),
                }
            }
            (Role::Relay(_), packet) => return self.relay_set_up(service, side, packet),
            (_, SetupPacket::Error(error)) => {
                return Err(Error::malformed("a seed", format!("the error {error}")));
            }
            _ => return wrong("this side's setup packet", "the other side's"),
        }
        Ok(())
    }

    /// Relays: handles a setup packet.
    fn relay_set_up(
        &mut self,
        service: Service,
        side: Side,
        packet: SetupPacket<'static>,
    ) -> Result<()> {
        let Role::Relay(relay) = &mut self.sender.half.role else { return Ok(()) };
        match (side, packet) {
            (Side::Client, SetupPacket::Connect(y)) => {
                self.streams[side.index()].set_phase(Phase::Waiting);
                let begun = relay.begin(service, y.into_owned());
                if begun.is_err() {
                    self.sender.half.close_for(CloseReason::Fault);
                }
                begun
            }
            (Side::Server, SetupPacket::Encrypt(seed)) => {
                let keys = match relay.agree(service, seed) {
                    Ok(keys) => keys,
                    Err(error) => {
                        if relay.is_committed() {
                            self.sender.half.close_for(CloseReason::Fault);
                        }
                        return Err(error);
                    }
                };
                self.establish(service, keys.each_ref().map(Option::as_ref));
                Ok(())
            }
            (_, SetupPacket::Error(error)) => {
                Err(Error::malformed("a seed", format!("the error {error}")))
            }
            _ => Err(Error::malformed("this side's setup packet", "the other side's")),
        }
    }

    /// Handles a setup packet as an observer. After the server's, no more information about the key
    /// can arrive.
    fn observe_setup(&mut self, side: Side, packet: SetupPacket<'static>) -> Result<()> {
        let service = self.service();
        let Role::Observer { keys, y, exchange, .. } = &mut self.sender.half.role else {
            return Ok(());
        };
        let seed = match (side, packet) {
            (Side::Client, SetupPacket::Connect(number)) => {
                *y = Some(number.into_owned());
                self.streams[side.index()].set_phase(Phase::Waiting);
                return Ok(());
            }
            (Side::Server, SetupPacket::Encrypt(seed)) => seed,
            (_, SetupPacket::Error(error)) => {
                return Err(Error::malformed("a seed", format!("the error {error}")));
            }
            _ => {
                let wanted = "this side's setup packet";
                return Err(Error::malformed(wanted, "the other side's"));
            }
        };
        let (keys, y, exchange) = (Arc::clone(keys), y.take(), exchange.take());
        self.streams[side.index()].set_phase(Phase::Waiting);
        if let Some((known, key)) = seed.and_then(|seed| keys.session(seed)) {
            self.establish_known(service.unwrap_or(known), seed, key);
            return Ok(());
        }
        let Some(service) = service else { return self.observe_late_setup(&keys, y, seed) };
        let Some(seed) = seed else {
            self.establish(service, PLAIN);
            return Ok(());
        };
        let Some(y) = y else {
            return Err(Error::malformed("the client's number before the seed", "no number"));
        };
        let Some(private) = key_kind(service).and_then(|kind| keys.private(kind)) else {
            self.give_up_without_key(Some(service));
            return Ok(());
        };
        let computed = exchange.and_then(|exchange| exchange.session_key(private, &y, seed));
        let key = match computed {
            Some(key) => key,
            None => private.captured_key(&y, seed).map_err(refused)?,
        };
        self.establish_known(service, Some(seed), &key);
        Ok(())
    }

    /// Establishes an observed connection whose key is known.
    pub(super) fn establish_known(
        &mut self,
        service: Service,
        seed: Option<[u8; 7]>,
        key: &SessionKey,
    ) {
        if let Role::Observer { session, .. } = &mut self.sender.half.role {
            *session = seed.map(|seed| (seed, key.clone()));
        }
        self.establish(service, [Some(key); 2]);
    }

    /// Gives up an encrypted connection whose key is missing.
    pub(super) fn give_up_without_key(&mut self, service: Option<Service>) {
        self.events.push_back(Event::News(News::KeysNeeded { service }));
        self.streams.iter_mut().for_each(|stream| stream.set_phase(Phase::Lost));
    }

    /// Completes setup. Messages follow, encrypted on the hop to each side that has a key. The hops
    /// differ only in a relay with separate keys.
    pub(super) fn establish(&mut self, service: Service, keys: [Option<&SessionKey>; 2]) {
        let own = self.sender.half.role.side();
        self.sender.service = Some(service);
        for side in Side::BOTH.into_iter().filter(|side| Some(*side) != own) {
            let stream = &mut self.streams[side.index()];
            stream.set_phase(Phase::Messages(service));
            if let Some(key) = keys[side.index()] {
                stream.decrypt_with(key);
                // Observers send no messages.
                if !matches!(self.sender.half.role, Role::Observer { .. }) {
                    self.sender.half.lanes[side.index()].cipher = Some(Rc4::new(key));
                }
            }
        }
        self.sender.is_established = true;
        self.sender.half.timers.stop(Timer::Setup);
        let encrypted = keys.iter().any(Option::is_some);
        self.events.push_back(Event::News(News::Established { service, encrypted }));
        self.sender.note_message(service);
        if let Role::Client { config, .. } = &self.sender.half.role
            && config.ping_every.is_some()
        {
            self.sender.half.timers.start(Timer::Beat, Duration::ZERO);
        }
        // There was room for these messages when they were deferred.
        self.sender.half.lanes.iter_mut().for_each(Lane::release_deferred);
    }
}
