//! The behaviour of the simulated clients.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use worldwire_core::Sampler;
use worldwire_uru::types::{NetError, Uuid};

use super::{ATTEMPT, Outcome, Presumed, REPAIR, Seat, Seated, WAIT, World, require, some_time};

/// A client, with everything that it remembers.
pub(super) struct Client {
    pub(super) world: Arc<World>,
    pub(super) name: String,
    pub(super) address: IpAddr,
    pub(super) sampler: Sampler,
    pub(super) used: Vec<Uuid>,
}

impl Client {
    /// Runs until the faults end. Returns the last connection, unless the client leaves for good.
    pub(super) async fn live(mut self) -> Outcome<Option<Seated>> {
        let mut here: Option<Seated> = None;
        while Instant::now() < self.world.end {
            let Some(seat) = here.take() else {
                here = Some(self.enter().await?);
                continue;
            };
            let pause = some_time(&mut self.sampler, Duration::from_secs(2));
            seat.stays_for(pause).await;
            here = self.act(seat).await?;
        }
        let stays = self.sampler.below(2) == 0;
        match here {
            Some(seat) if stays => self.stay(seat).await.map(Some),
            None if stays => self.enter().await.map(Some),
            Some(seat) => {
                let player = seat.player;
                seat.lose().await;
                self.world.presume(player, None);
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Waits until everything works, and reconnects if necessary.
    async fn stay(&mut self, mut seat: Seated) -> Outcome<Seated> {
        let start = Instant::now();
        while start.elapsed() < REPAIR {
            if seat.stays_for(Duration::from_millis(200)).await {
                continue;
            }
            seat = match self.come_back(seat.token, seat.player).await? {
                Some(seat) => seat,
                None => self.enter().await?,
            };
        }
        Ok(seat)
    }

    async fn act(&mut self, seat: Seated) -> Outcome<Option<Seated>> {
        let (token, player) = (seat.token, seat.player);
        let choice = self.sampler.below(8);
        if seat.task.is_finished() {
            // The process has failed or has lost the leader.
            drop(seat);
            return self.come_back(token, player).await;
        }
        match choice {
            0 | 1 => {
                seat.lose().await;
                sleep(some_time(&mut self.sampler, Duration::from_millis(600))).await;
                self.come_back(token, player).await
            }
            2 => {
                // The process does not notice that the connection is lost.
                let back = self.come_back(token, player).await?;
                let is_used = back.is_some();
                require!(!(is_used && seat.is_answered().await), "{}: in two places", self.name);
                Ok(back)
            }
            3 => {
                seat.lose().await;
                self.twice(token, player).await
            }
            4 => {
                for _ in 0..3 {
                    self.try_worthless().await?;
                }
                Ok(Some(seat))
            }
            5 => {
                // The token is useless at another address.
                let thief: IpAddr = [127, 0, 1, 1].into();
                if let Some(Ok((_, is_resumed))) = self.attempt(token, thief).await {
                    require!(!is_resumed, "{}: stolen", self.name);
                }
                Ok(Some(seat))
            }
            6 => {
                // Log in again immediately.
                self.world.presume(player, None);
                seat.lose().await;
                self.used.push(token);
                Ok(None)
            }
            _ => {
                self.away(seat).await?;
                Ok(None)
            }
        }
    }

    /// Stays away too long.
    async fn away(&mut self, seat: Seated) -> Outcome {
        let (token, player) = (seat.token, seat.player);
        let epoch = self.world.leader().map(|leader| leader.vault.epoch());
        let since = Instant::now();
        seat.lose().await;
        self.world.presume(player, Some(Presumed::Until(since + WAIT)));
        // This is long enough to give up a front that is gone and to resend lost messages.
        sleep(WAIT + REPAIR).await;
        self.world.presume(player, None);
        if let Some(leader) = self.world.leader()
            && Some(leader.vault.epoch()) == epoch
            && !leader.is_dead.load(Ordering::Relaxed)
        {
            let online = leader.vault.operate(None, move |state| Ok(state.connection_of(player)));
            let online = timeout(Duration::from_secs(1), online).await;
            require!(!matches!(online, Ok(Ok(Some(_)))), "{} is still online", self.name);
        }
        self.used.push(token);
        Ok(())
    }

    /// Logs in and chooses the player. Checks that nobody is locked out for long.
    async fn enter(&mut self) -> Outcome<Seated> {
        let start = Instant::now();
        let mut last = None;
        // Leaders can fail one after the other.
        while start.elapsed() < WAIT + REPAIR * 3 {
            if let Some(place) = self.world.somewhere(&mut self.sampler) {
                let (address, bug, name) = (self.address, self.world.bug, &self.name);
                let entered = timeout(ATTEMPT, async {
                    let (mut seat, _) = Seat::take(&place, address, Uuid::ZERO, bug).await?;
                    let player = seat.log_in(name).await?;
                    seat.choose(player).await?;
                    Ok::<_, NetError>(seat)
                });
                match entered.await {
                    Ok(Ok(seat)) if !place.is_dead.load(Ordering::Relaxed) => {
                        self.world.presume(seat.identity.player, Some(Presumed::Always));
                        self.world.count(0);
                        return Ok(seat.sit());
                    }
                    other => last = Some(other.map(|result| result.err())),
                }
            }
            sleep(Duration::from_millis(500)).await;
        }
        Err(format!("{} cannot log in: {last:?}", self.name))
    }

    /// Presents a token to a process. `None` if no process listens there.
    async fn attempt(
        &mut self,
        token: Uuid,
        address: IpAddr,
    ) -> Option<Result<(Seat, bool), Option<NetError>>> {
        let place = self.world.somewhere(&mut self.sampler)?;
        let found = timeout(ATTEMPT, Seat::take(&place, address, token, self.world.bug)).await;
        Some(match found {
            Ok(Ok(found)) if !place.is_dead.load(Ordering::Relaxed) => Ok(found),
            Ok(Err(error)) => Err(Some(error)),
            // The process was killed in the meantime.
            _ => Err(None),
        })
    }

    /// Resumes the session by token. `None` if the client must log in again.
    async fn come_back(&mut self, token: Uuid, player: u32) -> Outcome<Option<Seated>> {
        let start = Instant::now();
        self.world.presume(player, Some(Presumed::Until(start + WAIT)));
        // An attempt whose reply was lost may have used up the token.
        let mut is_unsure = false;
        while start.elapsed() < WAIT {
            match self.attempt(token, self.address).await {
                Some(Ok((seat, true))) => {
                    require!(seat.identity.player == player, "{}: another session", self.name);
                    self.world.presume(player, Some(Presumed::Always));
                    self.world.count(1);
                    self.used.push(token);
                    return Ok(Some(seat.sit()));
                }
                Some(Ok((_, false))) => {
                    let is_late = start.elapsed() >= WAIT;
                    require!(is_unsure || is_late, "{}: a valid token was refused", self.name);
                    break;
                }
                Some(Err(_)) => is_unsure = true,
                None => {}
            }
            sleep(Duration::from_millis(500)).await;
        }
        self.world.presume(player, None);
        self.used.push(token);
        Ok(None)
    }

    /// Presents a token to two processes at once.
    async fn twice(&mut self, token: Uuid, player: u32) -> Outcome<Option<Seated>> {
        self.world.presume(player, None);
        let mut places = Vec::new();
        for _ in 0..2 {
            places.extend(self.world.somewhere(&mut self.sampler));
        }
        let attempts = places.iter().map(|place| {
            let (place, address, bug) = (Arc::clone(place), self.address, self.world.bug);
            tokio::spawn(
                async move { timeout(ATTEMPT, Seat::take(&place, address, token, bug)).await },
            )
        });
        let attempts: Vec<_> = attempts.collect();
        self.used.push(token);
        let mut seats = Vec::new();
        for attempt in attempts {
            if let Ok(Ok((seat, true))) = attempt.await.unwrap() {
                seats.push(seat);
            }
        }
        require!(seats.len() < 2, "{}: a token was accepted twice at once", self.name);
        let seat = seats.pop().filter(|seat| !seat.place.is_dead.load(Ordering::Relaxed));
        Ok(seat.map(|seat| {
            self.world.presume(player, Some(Presumed::Always));
            self.world.count(1);
            seat.sit()
        }))
    }

    /// Presents a token that has been used before.
    async fn try_worthless(&mut self) -> Outcome {
        let count = self.used.len() as u64;
        if count == 0 {
            return Ok(());
        }
        let index = usize::try_from(self.sampler.below(count)).unwrap();
        if let Some(Ok((_, is_resumed))) = self.attempt(self.used[index], self.address).await {
            require!(!is_resumed, "{}: a token was accepted twice", self.name);
            self.world.count(2);
        }
        Ok(())
    }
}
