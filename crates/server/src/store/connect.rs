//! Connections to PostgreSQL without a pool. A pool retries until it times out and then does not
//! report why it could not connect.

use std::io;
use std::time::Duration;

use sqlx::migrate::MigrateError;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use super::StoreError;
use crate::folder::reason;

/// How long PostgreSQL may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Opens a connection.
///
/// # Errors
/// [`StoreError::Connect`], with the address.
pub(super) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, StoreError> {
    let problem = match timeout(CONNECT_WITHIN, options.connect()).await {
        Ok(Ok(connection)) => return Ok(connection),
        Ok(Err(error)) => described(&error),
        Err(_) => format!("no response within {} s", CONNECT_WITHIN.as_secs()),
    };
    Err(StoreError::Connect { place: place(options), problem })
}

/// The location of a database: its socket, or its host and port.
fn place(options: &PgConnectOptions) -> String {
    let (host, port) = (options.get_host(), options.get_port());
    match options.get_socket() {
        Some(folder) => folder.join(format!(".s.PGSQL.{port}")).display().to_string(),
        // An IPv6 address. If it comes from a URL, it already has brackets.
        None if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
        None => format!("{host}:{port}"),
    }
}

/// The text of a database error for operators, without positions in PostgreSQL's source code.
pub(super) fn described(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        sqlx::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the connection was closed".to_owned()
        }
        sqlx::Error::Io(error) => reason(error),
        error => error.to_string(),
    }
}

/// The text of a failed migration for operators.
pub(super) fn described_migration(error: &MigrateError) -> String {
    match error {
        MigrateError::Execute(error) => described(error),
        MigrateError::ExecuteMigration(error, number) => {
            format!("migration {number}: {}", described(error))
        }
        error => error.to_string(),
    }
}

/// A connection that is opened on demand, and again after it breaks. Its users take turns.
#[derive(Debug)]
pub(super) struct Single {
    options: PgConnectOptions,
    settings: &'static str,
    idle: Mutex<Option<PgConnection>>,
}

impl Single {
    /// A connection that will use these settings.
    pub(super) fn new(options: PgConnectOptions, settings: &'static str) -> Self {
        Self { options, settings, idle: Mutex::new(None) }
    }

    /// Waits for a turn and connects if necessary.
    pub(super) async fn lend(&self) -> Result<LentSingle<'_>, StoreError> {
        let mut place = self.idle.lock().await;
        let connection = match place.take() {
            Some(connection) => connection,
            None => {
                let mut connection = connect(&self.options).await?;
                // Older versions of PostgreSQL lack some of these settings. The settings only
                // matter when something fails.
                let _ = sqlx::raw_sql(self.settings).execute(&mut connection).await;
                connection
            }
        };
        Ok(LentSingle { place, connection })
    }

    /// Closes the connection.
    pub(super) async fn close(&self) {
        if let Some(connection) = self.idle.lock().await.take() {
            // The connection may have broken.
            let _ = connection.close().await;
        }
    }
}

/// The connection of a [`Single`], during a turn. It is closed unless it is returned: after an
/// error, its state is uncertain.
pub(super) struct LentSingle<'s> {
    place: MutexGuard<'s, Option<PgConnection>>,
    connection: PgConnection,
}

impl LentSingle<'_> {
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    pub(super) fn give_back(self) {
        let Self { mut place, connection } = self;
        *place = Some(connection);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Instant;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::store::PostgresStore;

    async fn refused(url: &str) -> String {
        PostgresStore::open(url, "test".to_owned()).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn errors_say_at_once_why_and_where() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let start = Instant::now();
        let said = refused(&format!("postgres://uru:secret@{address}/shard")).await;
        assert_eq!(
            said,
            format!("cannot connect to the database at {address}: connection refused")
        );
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        let said = refused("postgres://uru@%2Fnone/shard").await;
        assert!(said.contains(" at /none/.s.PGSQL.5432: no such file or directory"), "{said}");
    }

    /// A fake server that refuses the password as PostgreSQL does.
    async fn refuse_password(listener: TcpListener) {
        let mut stream = listener.accept().await.unwrap().0;
        let length = stream.read_u32().await.unwrap();
        let mut startup = vec![0; usize::try_from(length).unwrap() - 4];
        stream.read_exact(&mut startup).await.unwrap();
        let fields = b"SFATAL\0VFATAL\0C28P01\0\
            Mpassword authentication failed for user \"uru\"\0\
            Fauth.c\0L334\0Rauth_failed\0\0";
        stream.write_u8(b'E').await.unwrap();
        stream.write_u32(u32::try_from(fields.len() + 4).unwrap()).await.unwrap();
        stream.write_all(fields).await.unwrap();
    }

    #[tokio::test]
    async fn errors_have_no_positions_in_source_code() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let server = tokio::spawn(refuse_password(listener));
        let url = format!("postgres://uru:secret@{address}/shard?sslmode=disable");
        assert_eq!(
            refused(&url).await,
            format!(
                "cannot connect to the database at {address}: password authentication failed for \
                 user \"uru\""
            )
        );
        server.await.unwrap();
    }

    #[test]
    fn places_are_addresses() {
        let place = |url: &str| place(&url.parse().unwrap());
        assert_eq!(place("postgres://uru:secret@db.example.org/shard"), "db.example.org:5432");
        assert_eq!(place("postgres://[::1]:7/shard"), "[::1]:7");
        assert_eq!(place("postgres://uru@%2Frun%2Fpg/shard"), "/run/pg/.s.PGSQL.5432");
    }
}
