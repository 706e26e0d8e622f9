//! The command line of `worldwire proxy`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Data, SideArg};

#[derive(Debug, Args)]
pub(crate) struct ProxyArguments {
    #[command(subcommand)]
    pub(crate) command: ProxyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProxyCommand {
    /// Relay Uru clients to a shard
    #[command(after_help = "\
The proxy reads the shard's server.ini and writes another one for the client. The first start generates the
proxy's own keys and stores them in --folder. If you operate the shard, you can supply its private keys
with --keys instead; in that case, only the hosts in the client's server.ini change.

Examples:
  worldwire proxy uru --server-ini server.ini --client-ini uru/server.ini
  worldwire proxy uru --server-ini server.ini --client-ini uru/server.ini --client-encryption off
  worldwire proxy uru --to uru.example.org --keys shard/keys.toml --show 'auth.*'")]
    Uru(ProxyUru),
    /// Relay Wizard101 and Pirate101 clients to a login or patch server and on to zone servers
    #[command(after_help = "\
Start the client with -L 127.0.0.1 12000. Encrypted sessions are decrypted if --keys contains their secrets;
otherwise, they are forwarded unread.

Examples:
  worldwire proxy ki --to 203.0.113.5:12000
  worldwire proxy ki --to login.example.org:12000 --data messages/ --show LOGIN.*")]
    Ki(ProxyKi),
    /// Relay TERA clients to a game server
    #[command(after_help = "Examples:
  worldwire proxy tera --to 203.0.113.5:7801 --data definitions/
  worldwire proxy tera --to 203.0.113.5:7801 --data definitions/ --show S_CHAT
  worldwire proxy tera --to 203.0.113.5:7801 --data tera-data/ --mods mods/
  worldwire proxy tera --server-list serverlist.xml --data definitions/")]
    Tera(ProxyTera),
    /// Relay Matrix Online clients to an auth server, a margin server and a world
    #[command(after_help = "\
With the server's private key, or a signing key that clients trust, the proxy decrypts logins and learns
every session's key. Otherwise, you must supply the session keys with --keys.

Examples:
  worldwire proxy mxo --to 203.0.113.5:10000 --auth 203.0.113.5:11000 --server-key mxo/auth.pem
  worldwire proxy mxo --to 203.0.113.5:10000 --auth 203.0.113.5:11000 --signing-key signing.pem
  worldwire proxy mxo --to 127.0.0.1:10000 --listen 127.0.0.1:10001 --keys keys.toml")]
    Mxo(ProxyMxo),
    /// Control a running proxy: list connections, release or drop held messages, add messages
    #[command(arg_required_else_help = true)]
    Ctl(ProxyCtl),
}

#[derive(Debug, Args)]
pub(crate) struct ProxyCtl {
    /// The proxy's directory
    #[arg(long, value_name = "DIRECTORY", default_value = "proxy", global = true)]
    pub(crate) folder: PathBuf,
    /// Write JSON, one value per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: CtlCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CtlCommand {
    /// List the open connections
    #[command(after_help = "Example:\n  worldwire proxy ctl list")]
    List,
    /// List the messages that are held at breakpoints
    #[command(
        after_help = "Examples:\n  worldwire proxy ctl held\n  worldwire proxy ctl held --json"
    )]
    Held,
    /// Release a held message
    #[command(after_help = "Example:\n  worldwire proxy ctl send 0 3")]
    Send(HeldArgument),
    /// Drop a held message
    #[command(after_help = "Example:\n  worldwire proxy ctl drop 0 3")]
    Drop(HeldArgument),
    /// Edit a held message as JSON and release it
    #[command(after_help = "\
Without FIELDS, the fields are opened in the editor named by the environment variable VISUAL or EDITOR. If
the editor fails or the edited fields do not fit the message, the message stays held.

Examples:
  worldwire proxy ctl edit 0 3
  worldwire proxy ctl edit 0 3 '{\"channel\":0,\"authorName\":\"Elin\",\"message\":\"hi\"}'")]
    Edit {
        #[command(flatten)]
        held: HeldArgument,
        /// The new fields, as in a line of `dissect --json`; - reads them from standard input
        fields: Option<String>,
    },
    /// Send an additional message, before any held ones
    #[command(after_help = "Example:
  worldwire proxy ctl inject 0 client auth.KickedOff '{\"reason\":\"LoggedInElsewhere\"}'")]
    Inject {
        /// The connection's number
        connection: u64,
        /// The side that receives the message
        to: SideArg,
        /// The message's name
        name: String,
        /// Its fields, as in a line of `dissect --json`
        #[arg(default_value = "{}")]
        fields: String,
    },
    /// Reload the --rules file and print its errors and warnings
    #[command(after_help = "\
The proxy also reloads the file whenever it changes. If there are errors, the old rules stay in force and
the exit code is 1.

Example:
  worldwire proxy ctl reload")]
    Reload,
    /// List the counters of the `count` statements in the rules
    #[command(after_help = "Example:\n  worldwire proxy ctl counts")]
    Counts,
    /// Close a connection
    #[command(after_help = "Example:\n  worldwire proxy ctl close 0")]
    Close {
        /// The connection's number
        connection: u64,
    },
    /// Stop the proxy
    #[command(after_help = "Example:\n  worldwire proxy ctl stop")]
    Stop,
}

/// A message that is held at a breakpoint.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct HeldArgument {
    /// The connection's number
    pub(crate) connection: u64,
    /// The message's number within the connection
    #[arg(value_name = "NUMBER")]
    pub(crate) id: u64,
}

/// Options that the proxies of all families share.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProxyCommon {
    /// Key file; can be repeated; see `worldwire dissect --help`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Print matching messages as they pass, one line each; without a filter, all messages
    #[arg(long, value_name = "FILTER", num_args = 0..=1, default_missing_value = "")]
    pub(crate) show: Option<String>,
    /// Apply the rules in this file (see docs/proxy.md); changes to the file take effect immediately
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// Hold matching messages until `worldwire proxy ctl` releases or drops them; can be repeated
    #[arg(long, value_name = "FILTER")]
    pub(crate) pause: Vec<String>,
    /// Run this command or Python file as a hook (see docs/hooks.md); can be repeated
    #[arg(long, value_name = "COMMAND")]
    pub(crate) hook: Vec<String>,
    /// Listen for hooks on this Unix socket, or on this loopback ADDRESS:PORT; can be repeated
    #[arg(long, value_name = "SOCKET")]
    pub(crate) hook_socket: Vec<String>,
    /// Close conversations if a hook is missing or does not answer [default: continue without it]
    #[arg(long)]
    pub(crate) hook_required: bool,
    /// Record the traffic on both sides to this pcapng capture, with the keys that decrypt it; if the
    /// file exists, append to it
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Serve the proxy's statistics on this address, without a password: /status in JSON, /metrics for
    /// Prometheus
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) status: Option<SocketAddr>,
    /// Show the traffic on a page in the browser that can hold, edit and add messages (see
    /// docs/inspect.md) [default address: a free port on 127.0.0.1]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "127.0.0.1:0")]
    pub(crate) inspect: Option<SocketAddr>,
    /// The proxy's directory, for its keys and the socket of `worldwire proxy ctl`
    #[arg(long, value_name = "DIRECTORY", default_value = "proxy")]
    pub(crate) folder: PathBuf,
    /// Log details, such as the ports that the proxy opens
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProxyUru {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS[:PORT]", default_value = "127.0.0.1:14617",
          value_parser = worldwire_server::uru::config::parse_listen)]
    pub(crate) listen: SocketAddr,
    /// The shard, with port 14617 unless another is given [default: the hosts in --server-ini]
    #[arg(long, value_name = "HOST[:PORT]", required_unless_present = "server_ini")]
    pub(crate) to: Option<String>,
    /// IPv4 address at which clients reach the proxy [default: the address it listens on]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) public_address: Option<std::net::Ipv4Addr>,
    /// The shard's server.ini, for its hosts and public keys
    #[arg(long, value_name = "FILE")]
    pub(crate) server_ini: Option<PathBuf>,
    /// Write the server.ini for the client to this file
    #[arg(long, value_name = "FILE", requires = "server_ini")]
    pub(crate) client_ini: Option<PathBuf>,
    /// Whether clients encrypt their connections to the proxy [default: on if connections to the shard
    /// are encrypted]
    #[arg(long, value_name = "ON|OFF", requires = "client_ini", value_enum)]
    pub(crate) client_encryption: Option<Switch>,
    /// Overwrite an existing --client-ini file
    #[arg(long, requires = "client_ini")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) common: ProxyCommon,
}

/// An option that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct ProxyKi {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:12000")]
    pub(crate) listen: SocketAddr,
    /// The server
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub(crate) to: String,
    /// Address at which clients reach the proxy [default: the address it listens on]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) public_address: Option<std::net::IpAddr>,
    #[command(flatten)]
    pub(crate) common: ProxyCommon,
}

#[derive(Debug, Args)]
pub(crate) struct ProxyTera {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7801")]
    pub(crate) listen: SocketAddr,
    /// The server [default: the first one in --server-list]
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port,
          required_unless_present = "server_list")]
    pub(crate) to: Option<String>,
    /// The launcher's server list, in XML; the proxy opens a port for each server and serves the list
    /// with these ports over HTTP
    #[arg(long, value_name = "FILE")]
    pub(crate) server_list: Option<PathBuf>,
    /// Address at which to serve the list
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7800")]
    pub(crate) list_at: SocketAddr,
    /// Address at which clients reach the proxy, for use in the list [default: the address it listens
    /// on]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) public_address: Option<std::net::IpAddr>,
    /// Run the toolbox mods in this directory, under Node.js (see docs/mods.md)
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) mods: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: ProxyCommon,
}

#[derive(Debug, Args)]
pub(crate) struct ProxyMxo {
    /// Address to listen on in place of the world, over UDP, and of its margin server, over TCP
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:10000")]
    pub(crate) listen: SocketAddr,
    /// The world
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub(crate) to: String,
    /// The margin server [default: the world's host and port, over TCP]
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub(crate) margin: Option<String>,
    /// The auth server
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub(crate) auth: Option<String>,
    /// Address to listen on in place of the auth server
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:11000")]
    pub(crate) auth_at: SocketAddr,
    /// The server's private key (auth.pem in its directory), which decrypts logins
    #[arg(long, value_name = "FILE", requires = "auth")]
    pub(crate) server_key: Option<PathBuf>,
    /// Private signing key that clients trust. The proxy uses it to sign its own key, which then
    /// decrypts logins instead of the server's key. Clients need the pubkey.dat in --folder
    #[arg(long, value_name = "FILE", requires = "auth", conflicts_with = "server_key")]
    pub(crate) signing_key: Option<PathBuf>,
    /// The server's pubkey.dat [default: ask the server for the key and trust it]
    #[arg(long, value_name = "FILE", requires = "signing_key")]
    pub(crate) server_pubkey: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: ProxyCommon,
}

/// A host and a port.
fn host_and_port(text: &str) -> Result<String, &'static str> {
    let wanted = "needs a host and a port, such as 203.0.113.5:7801";
    let (host, port) = text.rsplit_once(':').ok_or(wanted)?;
    let port: u16 = port.parse().map_err(|_| wanted)?;
    match host.is_empty() || port == 0 {
        true => Err(wanted),
        false => Ok(text.to_owned()),
    }
}
