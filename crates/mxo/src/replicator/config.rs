//! The configuration of a replicator: radii, budgets, timeouts, limits.

use std::time::Duration;

use worldwire_core::{Error, Result};

/// The minimum of [`Config::packet_bytes`], at which any single property fits.
const LEAST_PACKET: usize = 512;
/// The maximum of [`Config::packet_bytes`]: lengths inside a section have 16 bits.
const MAX_PACKET: usize = 60_000;
/// The maximum of [`Config::views`]: IDs have 16 bits, and 0, 1 and 2 are taken.
const MAX_VIEWS: usize = 65_533;
/// The maximum number of objects or clients.
const MAX_SLOTS: usize = 1 << 30;

/// The configuration of a [`Replicator`](super::Replicator).
///
/// Distances are in world units, 100 to the metre.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// A client is given a view of an object that is at most this far away. Default 10,000.
    pub enter: f64,
    /// A client loses the view beyond this distance, which must be at least [`enter`](Self::enter).
    /// The difference keeps an object at the edge from flickering. Default 12,000.
    pub leave: f64,
    /// The maximum size of a section in bytes, including its ID and end marker. Default 1,295: the
    /// 1,300 bytes of a packet, minus its flags and a simulation time. At least 512.
    pub packet_bytes: usize,
    /// The maximum number of section bytes per client and tick; at least
    /// [`packet_bytes`](Self::packet_bytes). Default twice that.
    pub tick_bytes: usize,
    /// The number of ticks after which a waiting change goes before changes to nearer objects.
    /// Default 10.
    pub patience: u32,
    /// How long a packet may still arrive after a later one was sent, or after it was considered
    /// lost. `None` if clients drop sections of overtaken packets. Default 2 seconds.
    ///
    /// Unverified: that the game's client applies packets in order of arrival, as its queue of
    /// pending updates suggests. A trace of a client on a network that reorders packets would
    /// settle this. The default is correct in either case; `None` sends less and deletes sooner.
    pub late: Option<Duration>,
    /// How long to allow for packets even later than [`late`](Self::late): the IDs in them are not
    /// reused, and a client is not settled while such a packet could still change the client's
    /// state. Default 5 seconds. The acknowledgement of such a packet is always handled, within
    /// 2,048 packets.
    pub later: Duration,
    /// How long to wait before an unacknowledged packet is considered lost. The connection has
    /// better information and should report losses sooner. Default 10 seconds.
    pub give_up: Duration,
    /// The maximum number of objects. Default 65,536.
    pub objects: usize,
    /// The maximum number of clients. Default 1,024.
    pub clients: usize,
    /// The maximum number of views per client, including those whose deletion is unacknowledged.
    /// There is always room for the client's own character. Default 4,096.
    pub views: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enter: 10_000.0,
            leave: 12_000.0,
            packet_bytes: 1_295,
            tick_bytes: 2 * 1_295,
            patience: 10,
            late: Some(Duration::from_secs(2)),
            later: Duration::from_secs(5),
            give_up: Duration::from_secs(10),
            objects: 65_536,
            clients: 1_024,
            views: 4_096,
        }
    }
}

impl Config {
    /// Checks that the values are consistent.
    pub(super) fn check(&self) -> Result<()> {
        let wrong =
            |name, wanted: String, found: String| Err(Error::value(wanted, found).inside(name));
        if !(self.enter.is_finite() && self.enter > 0.0) {
            return wrong("enter", "a distance above 0".into(), self.enter.to_string());
        }
        if !(self.leave.is_finite() && self.leave >= self.enter) {
            let wanted = format!("a distance of at least {}, the radius to enter", self.enter);
            return wrong("leave", wanted, self.leave.to_string());
        }
        let ranges = [
            ("packet_bytes", self.packet_bytes, LEAST_PACKET, MAX_PACKET),
            ("tick_bytes", self.tick_bytes, self.packet_bytes, usize::MAX),
            ("objects", self.objects, 1, MAX_SLOTS),
            ("clients", self.clients, 1, MAX_SLOTS),
            ("views", self.views, 1, MAX_VIEWS),
        ];
        for (name, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                let wanted = match most {
                    usize::MAX => format!("at least {least}"),
                    most => format!("a number from {least} to {most}"),
                };
                return wrong(name, wanted, value.to_string());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inconsistent_values_are_refused() {
        let default = Config::default();
        assert!(default.check().is_ok());
        let wrong = [
            (Config { enter: f64::NAN, ..default.clone() }, "enter: wanted a distance above 0"),
            (Config { leave: 9_999.0, ..default.clone() }, "leave: wanted a distance of at least"),
            (Config { packet_bytes: 511, ..default.clone() }, "packet_bytes: wanted a number"),
            (Config { tick_bytes: 1_000, ..default.clone() }, "tick_bytes: wanted at least 1295"),
            (Config { views: 65_534, ..default.clone() }, "views: wanted a number from 1 to"),
            (Config { clients: 0, ..default }, "clients: wanted a number from 1 to"),
        ];
        for (config, wanted) in wrong {
            let error = config.check().unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
