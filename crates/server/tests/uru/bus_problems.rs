//! Mistakes in the bus settings. A real `nats-server` refuses connections, and the log tells
//! operators what to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nkeys::KeyPair;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use worldwire_server::uru::config::{Cluster, Role};
use worldwire_server::uru::{BusUser, Shard, ShardConfig, nats_config};
use worldwire_uru::crypt::key::PrimeKind;

use crate::client::PATIENCE;
use crate::log::{Log, run_alone};
use crate::nats::NatsServer;

const UNTRUSTED: &str =
    "the server's certificate is not from an authority that this process trusts";

#[test]
fn mistakes_are_explained_once() {
    run_alone("bus_problems::mistakes_alone");
}

#[tokio::test]
async fn mistakes_alone() {
    let Some(log) = Log::alone() else { return };
    let home = tempfile::tempdir().unwrap();
    let Some(certificates) = Certificates::make(home.path()) else { return };
    let Some(plain) = NatsServer::start(None) else { return };
    let good = certificates.server(home.path(), "good");
    let expired = certificates.server(home.path(), "expired");
    let (own, other) = (KeyPair::new_user(), KeyPair::new_user());
    let users = |node: &str| {
        let file = home.path().join(format!("{node}.conf"));
        let (node, key, roles) = (node.to_owned(), own.public_key(), vec![Role::Front]);
        let config = nats_config("shard", &[BusUser { node, key, roles }]).unwrap();
        fs::write(&file, config).unwrap();
        NatsServer::start(Some(file)).unwrap()
    };
    let [knows, knows_another] = ["front", "another-front"].map(users);
    let key = |name: &str, pair: &KeyPair| {
        let file = home.path().join(name);
        fs::write(&file, pair.seed().unwrap()).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        file
    };
    let (own_key, other_key) = (key("own.nk", &own), key("other.nk", &other));
    let bus = |address: &str, server: &NatsServer| vec![format!("{address}:{}", server.port)];
    let (ca, other_ca) = (home.path().join("ca.pem"), home.path().join("other.pem"));
    let of = |bus, bus_ca: &Path, bus_key: &Path| Cluster {
        bus,
        bus_ca: bus_ca.to_owned(),
        bus_key: bus_key.to_owned(),
        ..Cluster::default()
    };
    let none = Path::new("");
    let nobody = vec!["nats://127.0.0.1:1".to_owned()];
    let mut shards = Vec::new();
    let mut cases = Vec::new();
    for (cluster, wanted) in [
        (of(bus("tls://127.0.0.1", &good), &other_ca, none), UNTRUSTED),
        (of(bus("nats://127.0.0.1", &good), &other_ca, none), UNTRUSTED),
        (of(bus("tls://127.0.0.1", &expired), &ca, none), "the server's certificate has expired"),
        (
            of(bus("tls://localhost", &good), &ca, none),
            "the server's certificate does not contain the host name or address",
        ),
        (of(bus("tls://127.0.0.1", &plain), &ca, none), "the server does not use TLS"),
        (of(bus("nats://127.0.0.1", &knows), none, none), "the server does not know the key"),
        (of(bus("nats://localhost", &knows), none, &other_key), "the server does not know the key"),
        (
            of(bus("nats://127.0.0.1", &knows_another), none, &own_key),
            "the server does not allow what this process needs",
        ),
        (of(nobody, none, none), "no server listens at this address"),
    ] {
        let server = cluster.bus[0].clone();
        shards.push(front(cluster).await);
        let count = || {
            let text = log.text();
            let of_server = text.lines().filter(|line| line.contains(&server));
            of_server.filter(|line| line.contains(" WARN ") && line.contains(wanted)).count()
        };
        let said = async {
            while count() == 0 {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let said = timeout(PATIENCE, said).await;
        said.unwrap_or_else(|_| panic!("{server}: nothing about {wanted:?}:\n{}", log.text()));
        cases.push((server, wanted));
    }
    // By now, all processes have tried again many times.
    for (server, wanted) in cases {
        let text = log.text();
        let lines = text.lines().filter(|line| line.contains(&server) && line.contains(wanted));
        let lines: Vec<_> = lines.collect();
        let forbidden = usize::from(wanted.contains("allow")) * 3;
        assert!((1..=1 + forbidden).contains(&lines.len()), "{lines:#?}");
    }
    // A file without certificates is neither ignored nor replaced by the system's authorities.
    let no_certificates = of(bus("tls://127.0.0.1", &good), &own_key, none);
    let error = try_front(no_certificates).await.unwrap_err();
    assert!(error.contains("own.nk: contains no certificates in PEM format"), "{error}");
}

/// A front and its directory.
async fn front(cluster: Cluster) -> (TempDir, Shard) {
    try_front(cluster).await.unwrap()
}

async fn try_front(cluster: Cluster) -> Result<(TempDir, Shard), String> {
    let folder = tempfile::tempdir().unwrap();
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/uru-keys.toml");
    fs::copy(keys, folder.path().join("keys.toml")).unwrap();
    let change = |config: &mut ShardConfig| {
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.status = String::new();
        config.cluster = Cluster { node: "front".to_owned(), roles: vec![Role::Front], ..cluster };
    };
    let shard = Shard::open_with(folder.path(), PrimeKind::Safe, change).await;
    shard.map(|shard| (folder, shard)).map_err(|error| error.to_string())
}

/// Two authorities. One of them has certified two servers at 127.0.0.1: `good` and `expired`.
struct Certificates;

impl Certificates {
    /// `None` if OpenSSL is not installed, which is a failure in CI.
    fn make(folder: &Path) -> Option<Self> {
        if Command::new("openssl").arg("version").output().is_err() {
            let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
            assert!(!is_ci, "the tests of TLS cannot run, because there is no openssl");
            eprintln!("SKIPPED: the tests of TLS, because there is no openssl");
            return None;
        }
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        fs::write(folder.join("name.cnf"), "subjectAltName=IP:127.0.0.1\n").unwrap();
        for name in ["ca", "other"] {
            let files = format!("-keyout {name}.key -out {name}.pem");
            run(folder, &format!("req -x509 {key} {files} -subj /CN={name} -days 2"));
        }
        for (name, days) in [("good", 2), ("expired", -1)] {
            let files = format!("-keyout {name}.key -out {name}.csr");
            run(folder, &format!("req {key} {files} -subj /CN={name}"));
            let signed = format!("-CA ca.pem -CAkey ca.key -extfile name.cnf -days {days}");
            run(folder, &format!("x509 -req -in {name}.csr {signed} -out {name}.pem"));
        }
        Some(Self)
    }

    /// A NATS server with one of the certificates.
    fn server(&self, folder: &Path, name: &str) -> NatsServer {
        let file = |suffix| -> PathBuf { folder.join(format!("{name}.{suffix}")) };
        let (certificate, key) = (file("pem"), file("key"));
        let settings = format!(
            "tls {{ cert_file: \"{}\", key_file: \"{}\" }}\n",
            certificate.display(),
            key.display()
        );
        fs::write(file("conf"), settings).unwrap();
        NatsServer::start(Some(file("conf"))).unwrap()
    }
}

fn run(folder: &Path, arguments: &str) {
    let mut command = Command::new("openssl");
    command.args(arguments.split(' ')).current_dir(folder).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}
