//! `worldwire proxy --status`: the figures of a running proxy.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use worldwire_net::Signal;
use worldwire_proxy::{Control, Figures, RuleFile};
use worldwire_server::{Metrics, Reported, WebServer};

use super::control;
use crate::output::{Failure, reason};

/// The data that the page shows.
pub(super) struct Status {
    pub(super) family: &'static str,
    /// The server that the user named.
    pub(super) to: String,
    pub(super) control: Control,
    pub(super) rules: Option<Arc<RuleFile>>,
}

impl Status {
    /// Serves the page until the signal fires. Returns its address.
    pub(super) async fn serve(
        self,
        address: SocketAddr,
        signal: Signal,
    ) -> Result<SocketAddr, Failure> {
        let failed = |error| Failure::Run(format!("--status {address}: {}", reason(&error)));
        let page = WebServer::bind(address).await.map_err(failed)?;
        let at = page.address().map_err(failed)?;
        tokio::spawn(page.serve_status(Arc::new(self), signal));
        Ok(at)
    }

    fn counters(&self) -> Vec<(String, u64)> {
        self.rules.as_ref().map(|rules| rules.counts()).unwrap_or_default()
    }
}

impl Reported for Status {
    fn status(&self) -> Json {
        let Figures { open, conversations, counts } = self.control.figures();
        let counters = self.counters().into_iter();
        let counters: Map<String, Json> = counters.map(|(name, it)| (name, it.into())).collect();
        let mut status = json!({
            "family": self.family,
            "to": self.to,
            "conversations": {"open": open, "total": conversations},
            "counters": counters,
            "connections": control::list(&self.control),
        });
        control::add_counts(&mut status, counts);
        status
    }

    fn metrics(&self) -> Metrics {
        let Figures { open, conversations, counts } = self.control.figures();
        let mut metrics = Metrics::default();
        let open = i128::try_from(open).unwrap_or(i128::MAX);
        let help = "Conversations that are open.";
        metrics.add("proxy_conversations_open", "gauge", help, "", &[("", open)]);
        for (name, help, count) in [
            ("conversations", "Conversations so far.", conversations),
            ("messages", "Messages that arrived.", counts.messages),
            ("messages_changed", "Messages forwarded with changes.", counts.changed),
            ("messages_dropped", "Messages not forwarded.", counts.dropped),
            ("messages_held", "Messages held or delayed.", counts.held),
            ("messages_added", "Messages added to conversations.", counts.added),
        ] {
            let name = format!("proxy_{name}_total");
            metrics.add(&name, "counter", help, "", &[("", count.into())]);
        }
        let counters = self.counters();
        if !counters.is_empty() {
            let values: Vec<_> =
                counters.iter().map(|(name, it)| (&**name, (*it).into())).collect();
            let help = "The number of times each `count` statement in the rules has run.";
            metrics.add("proxy_rule_count_total", "counter", help, "name", &values);
        }
        metrics
    }
}
