//! Copies a shard's database to another one while the shard is stopped.

use std::path::Path;

use super::{AdminError, Control};
use crate::admin::{Administered as _, stopped_config};
use crate::folder::blocking;
use crate::start::{locked_store, or_close};
use crate::store::copy::Target;
use crate::store::lock::{FolderLock, LOCK_FILE};
use crate::store::{CopiedRows, CopyError, StoreError};
use crate::uru::config::{Role, ShardConfig};

/// Copies the database of a shard that is not running to an empty one: to the database at a
/// `postgres://` URL or, for any other text, to a SQLite file. All rows keep their numbers, and
/// accounts keep their passwords, which the same `server.key` decrypts. Either the copy is complete
/// or the new database stays empty. The shard's configuration is not changed.
pub async fn copy_database(folder: &Path, to: &str) -> Result<CopiedRows, AdminError> {
    Control::check_folder(folder)?;
    let path = folder.to_owned();
    let lock = blocking(move || FolderLock::take(&path)).await;
    let file = folder.join(LOCK_FILE);
    let lock = lock.map_err(|source| AdminError::File { file, source })?;
    let Some(mut lock) = lock else {
        let (folder, holder) = (folder.to_owned(), FolderLock::holder(folder));
        return Err(AdminError::Running { folder, holder });
    };
    let config: ShardConfig = stopped_config(folder)?;
    if !config.cluster.has(Role::Vault) {
        return Err(AdminError::NoVault { folder: folder.to_owned(), name: Control::NAME });
    }
    let from = locked_store(folder, &config, &mut lock).await?;
    let copied = async {
        // This prevents the shard from being started on another machine.
        from.claim().await?;
        Target::open(folder, to).await?.fill(&*from).await
    };
    let copied: Result<CopiedRows, CopyError> = copied.await;
    let copied = or_close(copied, &*from).await.map_err(|error| match error {
        CopyError::Store(error) => AdminError::Store(error),
        error => AdminError::Copy(error),
    })?;
    let closed: Result<(), StoreError> = from.close().await;
    closed?;
    Ok(copied)
}
