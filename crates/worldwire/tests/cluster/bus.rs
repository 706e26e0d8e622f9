//! The bus as the documentation describes it: with TLS, and with a key and permissions for each
//! process, which `worldwire uru cluster nats-config` writes.

use std::fs;
use std::path::Path;
use std::process::Command;

use nkeys::KeyPair;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa};

use crate::nats::NatsServer;

/// The name of the shard on the bus.
pub(crate) const SHARD: &str = "chaos";
/// The certificate of the authority that certifies the server, and each process's own key, in the
/// process's folder.
pub(crate) const ROOTS: &str = "bus-ca.pem";
pub(crate) const KEY: &str = "bus.nk";

/// Starts the server for processes with these names, which begin with their roles, and writes the
/// files that each process needs to its folder. `None` if there is no `nats-server`.
pub(crate) fn start(folder: &Path, names: &[&str]) -> Option<NatsServer> {
    let [config, users] = ["nats.conf", "users.conf"].map(|name| folder.join(name));
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(["uru", "cluster", "nats-config", "--name", SHARD, "-o"]).arg(&users);
    for name in names {
        let pair = KeyPair::new_user();
        fs::create_dir(folder.join(name)).unwrap();
        let file = folder.join(name).join(KEY);
        fs::write(&file, pair.seed().unwrap()).unwrap();
        make_private(&file);
        let role = match name.split_once('-') {
            Some((role, _)) => format!("--{role}"),
            None => "--leader".to_owned(),
        };
        command.arg(role).arg(format!("{name}={}", pair.public_key()));
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tls = certify(folder, names);
    fs::write(&config, format!("{tls}\ninclude users.conf\n")).unwrap();
    NatsServer::start(Some(config))
}

/// Creates a certificate for the server and returns the part of the configuration that uses it.
fn certify(folder: &Path, names: &[&str]) -> String {
    let key = || rcgen::KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, key()).unwrap();
    for name in names {
        fs::write(folder.join(name).join(ROOTS), authority.pem()).unwrap();
    }
    let server = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let server_key = key();
    let certificate = server.signed_by(&server_key, &authority).unwrap();
    let [cert_file, key_file] = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    fs::write(&cert_file, certificate.pem()).unwrap();
    fs::write(&key_file, server_key.serialize_pem()).unwrap();
    format!("tls {{ cert_file: {cert_file:?}, key_file: {key_file:?} }}")
}

/// Restricts reading a file to its owner.
pub(crate) fn make_private(file: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    #[cfg(not(unix))]
    let _ = file;
}
