//! The migrations of the database's tables.

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr as _};

/// A migration: its version, its name, and its statements, with placeholders for the words that
/// depend on the dialect.
type Step = (i64, &'static str, &'static str);

/// The migrations for both dialects. A released migration never changes; further changes to the
/// tables need another migration.
const MIGRATIONS: [Step; 3] = [
    (1, "shard", include_str!("migrations/0001_shard.sql")),
    (2, "writer epoch", include_str!("migrations/0002_writer_epoch.sql")),
    (7, "placements", include_str!("migrations/0007_placements.sql")),
];

/// The migrations for PostgreSQL only. No version occurs twice in the two lists.
const POSTGRES_MIGRATIONS: [Step; 4] = [
    (3, "commit", include_str!("migrations/0003_commit.sql")),
    (4, "lease", include_str!("migrations/0004_lease.sql")),
    (5, "batch log", include_str!("migrations/0005_batch_log.sql")),
    (6, "sessions", include_str!("migrations/0006_sessions.sql")),
];

/// A dialect's words, and its own migrations. SQLite has one integer type, and only `INTEGER` makes
/// a primary key the row ID.
pub(super) struct Dialect {
    words: [(&'static str, &'static str); 4],
    migrations: &'static [Step],
}

pub(super) const SQLITE: Dialect = Dialect {
    words: [
        ("{small}", "INTEGER"),
        ("{int}", "INTEGER"),
        ("{bytes}", "BLOB"),
        ("{clustered}", " WITHOUT ROWID"),
    ],
    migrations: &[],
};
pub(super) const POSTGRES: Dialect = Dialect {
    words: [
        ("{small}", "SMALLINT"),
        ("{int}", "BIGINT"),
        ("{bytes}", "BYTEA"),
        ("{clustered}", ""),
    ],
    migrations: &POSTGRES_MIGRATIONS,
};

/// All migrations for a dialect.
pub(super) fn migrations(dialect: &Dialect) -> Migrator {
    let migration = |&(version, about, sql): &Step| {
        let words = dialect.words.iter();
        let sql = words.fold(sql.to_owned(), |sql, (open, word)| sql.replace(open, word));
        // The statements are built from constants only.
        let sql = AssertSqlSafe(sql).into_sql_str();
        Migration::new(version, about.into(), MigrationType::Simple, sql, false)
    };
    let all = MIGRATIONS.iter().chain(dialect.migrations);
    Migrator::with_migrations(all.map(migration).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database stores the checksums of its migrations, and it cannot be opened if they differ.
    #[test]
    fn migrations_never_change() {
        let sqlite = [
            "45aacaa6f99a7287d465913b9d5adc30",
            "06ed9f4b2e5ba23142accd4226798c23",
            "2d8fd7039293d279d5a6bc8a719835a9",
        ];
        let postgres = [
            "e352b8f6b77e3b71e56620cfdea3e062",
            "f8a3771724da94bff497284dbbf4c1d5",
            "433982a665137ae9ba5dcaa5db4b9f0f",
            "4c182bd1bd9406cf3dbf02886d5e3470",
            "b69566395beae7e3262ea8412ca916b5",
            "52167b447a50d457cc95d67f695be6da",
            "f1d0b92fe5d3e7bdb65bac9e9dc236ad",
        ];
        for (dialect, sums) in [(SQLITE, &sqlite[..]), (POSTGRES, &postgres)] {
            let found = migrations(&dialect);
            let found = found.iter().map(|one| {
                one.checksum.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>()
            });
            assert_eq!(found.collect::<Vec<_>>(), sums);
        }
    }
}
