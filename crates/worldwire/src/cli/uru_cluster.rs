//! The command line of `worldwire uru cluster`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{Target, UruShard};

#[derive(Debug, Subcommand)]
pub(crate) enum UruCluster {
    /// List a shard's processes: the leader, its standbys, and its nodes
    ///
    /// The shard must be running. Times are in UTC. A standby without a bus is visible only through its
    /// connection to the database.
    #[command(after_help = "Examples:
  worldwire uru cluster list
  worldwire uru cluster list --json --server /srv/uru-front")]
    List {
        #[command(flatten)]
        shard: UruShard,
    },
    /// Close a node's connections and give it no new ages, so that you can stop it
    ///
    /// A front's clients lose their connections and continue their sessions on another front. The
    /// front's /health returns 503, and the front accepts no clients until you run the command with
    /// --undo or restart the front. An age node's ages end when their players have left.
    #[command(after_help = "Examples:
  worldwire uru cluster drain front-1
  worldwire uru cluster drain front-1 --undo")]
    Drain {
        /// Name of the node, as `list` shows it
        node: String,
        /// Allow the node to serve clients again
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        shard: UruShard,
    },
    /// Make the active process hand the shard over to a standby and become a standby itself
    ///
    /// Clients lose their connections and continue their sessions with the new process. Run this command
    /// before you upgrade or stop the active process's machine.
    #[command(after_help = "Example:
  worldwire uru cluster lead --server /srv/uru")]
    Lead {
        #[command(flatten)]
        shard: UruShard,
    },
    /// Create a process's key for the NATS server, and print the public key
    ///
    /// The secret key is written to FILE, which must not exist. Only you can read it. Name the file as
    /// `bus_key` in the process's shard.toml, and pass the public key to `nats-config`.
    #[command(after_help = "Example:
  worldwire uru cluster nats-key /srv/uru/bus.nk")]
    NatsKey {
        /// The file for the secret key
        file: PathBuf,
    },
    /// Print the permissions of a shard's processes as nats-server configuration
    ///
    /// Each process may publish and subscribe only to the subjects that it needs. If a process is both a
    /// front and an age node, name it twice, with the same key. `nats-key` creates the keys.
    #[command(after_help = "Example:
  worldwire uru cluster nats-config --leader a=UA2G... --leader b=UB7K... --front front-1=UBQD... -o shard.conf")]
    NatsConfig {
        /// Name of the shard on the bus, as in shard.toml
        #[arg(long, default_value = "shard")]
        name: String,
        /// A leader or standby, and its public nkey; can be repeated
        #[arg(long, value_name = "NODE=KEY", required = true, value_parser = node_key)]
        leader: Vec<NodeKey>,
        /// A front and its public nkey; can be repeated
        #[arg(long, value_name = "NODE=KEY", value_parser = node_key)]
        front: Vec<NodeKey>,
        /// An age node and its public nkey; can be repeated
        #[arg(long, value_name = "NODE=KEY", value_parser = node_key)]
        age: Vec<NodeKey>,
        #[command(flatten)]
        target: Target,
    },
}

/// A process and its public key.
#[derive(Clone, Debug)]
pub(crate) struct NodeKey {
    pub(crate) node: String,
    pub(crate) key: String,
}

fn node_key(text: &str) -> Result<NodeKey, &'static str> {
    let (node, key) = text.split_once('=').ok_or("must be NODE=KEY, such as front-1=UBQD...")?;
    Ok(NodeKey { node: node.to_owned(), key: key.to_owned() })
}
