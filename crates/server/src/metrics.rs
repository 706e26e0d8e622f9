//! Metrics in the Prometheus text format.

use std::fmt::Write as _;

use worldwire_net::Counts;

/// Collects the text of `/metrics`.
#[derive(Debug, Default)]
pub struct Metrics(String);

impl Metrics {
    /// Adds a metric of this kind, such as `gauge` or `counter`: one value with the label `""`, or
    /// one for each value of a label. Prefixes the metric's name with `worldwire_`.
    pub fn add(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        label: &str,
        values: &[(&str, i128)],
    ) {
        let text = &mut self.0;
        let _ = writeln!(text, "# HELP worldwire_{name} {help}");
        let _ = writeln!(text, "# TYPE worldwire_{name} {kind}");
        for (of, value) in values {
            let _ = match *of {
                "" => writeln!(text, "worldwire_{name} {value}"),
                of => {
                    let of = of.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                    writeln!(text, "worldwire_{name}{{{label}=\"{of}\"}} {value}")
                }
            };
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// The counters of a listener: name, value, help.
pub(crate) fn of_listener(counts: &Counts) -> [(&'static str, u64, &'static str); 5] {
    [
        ("connections_accepted_total", counts.accepted(), "Connections accepted."),
        ("connections_refused_total", counts.refused(), "Connections refused because of a limit."),
        (
            "connections_faults_total",
            counts.faults(),
            "Connections closed for violating the protocol.",
        ),
        (
            "connections_stalled_total",
            counts.stalled(),
            "Connections closed because the peer stopped reading.",
        ),
        ("defects_total", counts.panics(), "Connections closed by a defect in the server."),
    ]
}
