//! The log on standard error, for servers, and for other commands if the user asks for it.

#[cfg(feature = "network")]
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::cli::Common;
use crate::output::Log;
#[cfg(feature = "network")]
use crate::settings::Setting;
use crate::settings::log_filter;

/// Starts the log that is requested by `--log`, a variable or a settings file. A server's
/// `--verbose` overrides everything except `--log` itself.
pub(crate) fn start(common: &Common) {
    if let Some(filter) = asked(common) {
        begin(filter);
    }
}

/// Starts a server's log.
#[cfg(feature = "network")]
pub(crate) fn start_of_server(verbose: bool, common: &Common) {
    let is_explicit = !common.settings.is_used(Setting::Log);
    if asked(common).is_some() && (is_explicit || !verbose) {
        return;
    }
    let level = match (verbose, common.quiet) {
        (true, _) => LevelFilter::DEBUG,
        (false, true) => LevelFilter::WARN,
        (false, false) => LevelFilter::INFO,
    };
    let mut filter = Targets::new().with_default(level);
    if !verbose {
        // The server itself logs whatever is important in these lines, once per event.
        filter = filter.with_target("sqlx", LevelFilter::OFF);
        filter = filter.with_target("async_nats", LevelFilter::OFF);
    }
    begin(filter);
}

fn asked(common: &Common) -> Option<Targets> {
    common.log.as_deref().and_then(|text| log_filter(text).ok())
}

fn begin(filter: Targets) {
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(|| Log(std::io::stderr()))
        // A log that cannot be written, for example on a full disk, must not end a server.
        .log_internal_errors(false);
    // Fails only if the log has already been started.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
}
