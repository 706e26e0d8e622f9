//! The command line of `worldwire extcap`, whose options Wireshark chooses.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::Data;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("request").required(true).args([
    "interfaces", "dlts", "config", "capture",
])))]
pub(crate) struct Extcap {
    /// List the interfaces
    #[arg(id = "interfaces", long = "extcap-interfaces")]
    pub(crate) lists_interfaces: bool,
    /// List the link types of an interface
    #[arg(id = "dlts", long = "extcap-dlts", requires = "interface")]
    pub(crate) lists_dlts: bool,
    /// List the options of an interface
    #[arg(id = "config", long = "extcap-config", requires = "interface")]
    pub(crate) lists_options: bool,
    /// Write packets
    #[arg(id = "capture", long = "capture", requires_all = ["interface", "fifo"])]
    pub(crate) captures: bool,
    /// Interface: worldwire-live or worldwire-recording
    #[arg(id = "interface", long = "extcap-interface", value_name = "NAME")]
    pub(crate) interface: Option<String>,
    /// Wireshark's version
    #[arg(id = "wireshark", long = "extcap-version", value_name = "VERSION")]
    pub(crate) _version: Option<String>,
    /// Where to write the packets
    #[arg(long, value_name = "PATH")]
    pub(crate) fifo: Option<PathBuf>,
    /// Packets to capture, as a tcpdump filter
    #[arg(long = "extcap-capture-filter", value_name = "PACKETS")]
    pub(crate) packets: Option<String>,
    /// The network interface to capture on, as tcpdump names it
    #[arg(long, value_name = "NAME")]
    pub(crate) network: Option<String>,
    /// The recording to read while it grows
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Key file
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
}
