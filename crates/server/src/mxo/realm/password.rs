//! Accounts' password hashes (Argon2id) and RSA keys, as they are stored.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use lru::LruCache;
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use worldwire_mxo::crypt::{KeyUse, PrivateKey, Random};
use zeroize::Zeroizing;

/// The cost of new hashes: the memory in KiB, and the number of passes over it.
const COST: Cost = Cost { kibibytes: 19 * 1024, passes: 2 };
/// The maximum memory, in KiB, that a stored hash can require.
const MAX_KIBIBYTES: u32 = 1 << 20;
/// The version of the stored form.
const FORM: u8 = 1;
/// The cost of recognising a remembered password: a hundredth of the cost of a new hash.
const REMEMBERED: Cost = Cost { kibibytes: 256, passes: 1 };
/// The maximum number of passwords that are remembered.
const MAX_REMEMBERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(16_383);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    kibibytes: u32,
    passes: u32,
}

/// The stored data about an account, apart from its name.
#[derive(Clone, Debug)]
pub(super) struct Credentials {
    pub(super) hash: PasswordHash,
    /// The account's RSA key, which its clients receive.
    pub(super) key: Arc<PrivateKey>,
}

/// A hash of a password.
#[derive(Clone, Copy)]
pub(super) struct PasswordHash {
    cost: Cost,
    salt: [u8; 16],
    hash: [u8; 32],
}

impl core::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

impl PasswordHash {
    /// A hash that matches no password, with the cost of new hashes. Passwords for accounts that do
    /// not exist are checked against it, so that these checks take as long as others.
    pub(super) const NONE: Self = Self { cost: COST, salt: [0; 16], hash: [0; 32] };

    fn new(password: &str, salt: [u8; 16], spare: &SpareMemory) -> Option<Self> {
        let hash = spare.hash(password, &salt, COST)?;
        Some(Self { cost: COST, salt, hash })
    }

    fn is_of(&self, password: &str, spare: &SpareMemory) -> bool {
        let found = spare.hash(password, &self.salt, self.cost);
        let is_equal = found.is_some_and(|found| found[..].ct_eq(&self.hash).into());
        // The salt of the hash for missing accounts is not random.
        is_equal && self.hash != Self::NONE.hash
    }
}

/// Hashes passwords on blocking threads, at most one per processor at a time.
///
/// Correct passwords are remembered for a while, so that returning players cost little: after a
/// network failure, all of them return at once. Only a keyed hash of each password is kept, in
/// memory, with a key that no other process has. Checking a wrong password takes as long as ever.
#[derive(Debug)]
pub(super) struct Hasher {
    turns: Semaphore,
    spare: Arc<SpareMemory>,
    remembered: Mutex<Remembered>,
    /// How long passwords are remembered; zero for never.
    lifetime: Duration,
}

/// Correct passwords.
struct Remembered {
    key: Zeroizing<[u8; 32]>,
    /// Keyed hashes, and when to forget them.
    digests: LruCache<[u8; 32], Instant>,
}

impl core::fmt::Debug for Remembered {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Remembered({})", self.digests.len())
    }
}

impl Remembered {
    /// The keyed hash of a password together with the stored hash that the password was checked
    /// against, so it changes when the account's password does.
    fn digest(key: &[u8; 32], password: &str, hash: &PasswordHash) -> Option<[u8; 32]> {
        let salt = [&hash.salt[..], &hash.hash].concat();
        let params = Params::new(REMEMBERED.kibibytes, REMEMBERED.passes, 1, None).ok()?;
        let memory = vec![Block::default(); params.block_count()];
        let argon2 =
            Argon2::new_with_secret(key, Algorithm::Argon2id, Version::V0x13, params).ok()?;
        let mut digest = [0; 32];
        let password = password.as_bytes();
        argon2.hash_password_into_with_memory(password, &salt, &mut digest, memory).ok()?;
        Some(digest)
    }
}

impl Hasher {
    /// Creates a hasher. `key` must be random.
    pub(super) fn new(key: [u8; 32], lifetime: Duration) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let digests = LruCache::new(MAX_REMEMBERED);
        let remembered = Remembered { key: Zeroizing::new(key), digests };
        let (turns, spare) = (Semaphore::new(processors), Arc::default());
        Self { turns, spare, remembered: Mutex::new(remembered), lifetime }
    }

    /// Hashes a new password; `None` if there is not enough memory.
    pub(super) async fn hash(&self, password: &str, salt: [u8; 16]) -> Option<PasswordHash> {
        let password = Zeroizing::new(password.to_owned());
        let spare = Arc::clone(&self.spare);
        self.work(move || PasswordHash::new(&password, salt, &spare)).await?
    }

    /// Whether a password is the one that was hashed.
    pub(super) async fn check(&self, password: &str, hash: PasswordHash) -> bool {
        let password = Zeroizing::new(password.to_owned());
        let spare = Arc::clone(&self.spare);
        if self.lifetime.is_zero() {
            return self.work(move || hash.is_of(&password, &spare)).await.unwrap_or(false);
        }
        let key = self.remembered().key.clone();
        let again = password.clone();
        let digest = spawn_blocking(move || Remembered::digest(&key, &again, &hash));
        let digest = digest.await.ok().flatten();
        if digest.is_some_and(|digest| self.remembers(&digest)) {
            return true;
        }
        let is_right = self.work(move || hash.is_of(&password, &spare)).await.unwrap_or(false);
        if let Some(digest) = digest.filter(|_| is_right) {
            let until = Instant::now() + self.lifetime;
            self.remembered().digests.put(digest, until);
        }
        is_right
    }

    fn remembers(&self, digest: &[u8; 32]) -> bool {
        let mut remembered = self.remembered();
        let digests = &mut remembered.digests;
        let is_known = digests.get(digest).is_some_and(|until| Instant::now() < *until);
        if !is_known {
            digests.pop(digest);
        }
        is_known
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Generates the RSA key of a new account.
    pub(super) async fn generate(&self, mut random: Random) -> Option<PrivateKey> {
        self.work(move || PrivateKey::generate(KeyUse::User, &mut random).ok()).await?
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let _turn = self.turns.acquire().await.ok()?;
        spawn_blocking(work).await.ok()
    }
}

impl Credentials {
    /// The stored form, to be sealed.
    ///
    /// | bytes | |
    /// | --- | --- |
    /// | 1 | version, 1 |
    /// | 4, 4 | memory in KiB and passes, little-endian |
    /// | 16, 32 | salt, hash |
    /// | 96, 96 | modulus, private exponent |
    pub(super) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let PasswordHash { cost, salt, hash } = &self.hash;
        let modulus = self.key.public().modulus();
        let parts: [&[u8]; 7] = [
            &[FORM],
            &cost.kibibytes.to_le_bytes(),
            &cost.passes.to_le_bytes(),
            salt,
            hash,
            &modulus,
            &self.key.exponent(),
        ];
        Zeroizing::new(parts.concat())
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&[FORM])?;
        let (kibibytes, rest) = rest.split_first_chunk()?;
        let (passes, rest) = rest.split_first_chunk()?;
        let (salt, rest) = rest.split_first_chunk()?;
        let (hash, rest) = rest.split_first_chunk()?;
        let (modulus, exponent) = rest.split_at_checked(KeyUse::User.bytes())?;
        let cost =
            Cost { kibibytes: u32::from_le_bytes(*kibibytes), passes: u32::from_le_bytes(*passes) };
        let key = PrivateKey::from_exponent(KeyUse::User, modulus, exponent).ok()?;
        let hash = PasswordHash { cost, salt: *salt, hash: *hash };
        Some(Self { hash, key: Arc::new(key) })
    }
}

/// Memory that is reused between hashes, enough for all concurrent hashes. If each hash allocated
/// its own memory, the allocator would keep that memory for every thread.
#[derive(Default)]
struct SpareMemory(Mutex<Vec<Vec<Block>>>);

impl core::fmt::Debug for SpareMemory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SpareMemory(..)")
    }
}

impl SpareMemory {
    /// Hashes a password; `None` if the cost is out of range or there is not enough memory.
    fn hash(&self, password: &str, salt: &[u8; 16], cost: Cost) -> Option<[u8; 32]> {
        let Cost { kibibytes, passes } = cost;
        if kibibytes > MAX_KIBIBYTES {
            return None;
        }
        let params = Params::new(kibibytes, passes, 1, None).ok()?;
        let blocks = params.block_count();
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut memory = self.lock().pop().unwrap_or_default();
        memory.try_reserve_exact(blocks.saturating_sub(memory.len())).ok()?;
        memory.resize(blocks, Block::default());
        let mut hash = [0; 32];
        let password = password.as_bytes();
        let hashed =
            argon2.hash_password_into_with_memory(password, salt, &mut hash, &mut memory[..]);
        // Hashes with another cost, from older versions of the settings, are rare, so their memory
        // is not kept.
        if cost == COST {
            self.lock().push(memory);
        }
        hashed.ok().map(|()| hash)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Block>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn credentials_read_back() {
        let hasher = Hasher::new([8; 32], Duration::ZERO);
        let hash = hasher.hash("zion", [7; 16]).await.unwrap();
        let key = hasher.generate(Random::new([1; 32])).await.unwrap();
        let stored = Credentials { hash, key: Arc::new(key) }.to_bytes();
        assert_eq!(stored.len(), 249);
        let read = Credentials::from_bytes(&stored).unwrap();
        assert_eq!(read.to_bytes(), stored);
        assert!(hasher.check("zion", read.hash).await);
        for wrong in ["", "Zion", "zion "] {
            assert!(!hasher.check(wrong, read.hash).await, "{wrong:?}");
        }
        assert!(!hasher.check("", PasswordHash::NONE).await);
        for damaged in [&stored[1..], &stored[..248], b""] {
            assert!(Credentials::from_bytes(damaged).is_none());
        }
        let cost = Cost { kibibytes: u32::MAX, passes: 1 };
        assert_eq!(hasher.spare.hash("zion", &[0; 16], cost), None);
        // Hashes that run one after another use the same memory.
        assert_eq!(hasher.spare.lock().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn only_right_passwords_are_remembered_and_not_for_ever() {
        let hasher = Hasher::new([8; 32], Duration::from_secs(60));
        let hash = hasher.hash("zion", [7; 16]).await.unwrap();
        let other = hasher.hash("zion", [9; 16]).await.unwrap();
        let known = |hasher: &Hasher, password: &str, hash| {
            let key = hasher.remembered().key.clone();
            hasher.remembers(&Remembered::digest(&key, password, hash).unwrap())
        };
        assert!(!hasher.check("Zion", hash).await && !hasher.check("", PasswordHash::NONE).await);
        assert!(!known(&hasher, "zion", &hash) && !known(&hasher, "Zion", &hash));
        for _ in 0..2 {
            assert!(hasher.check("zion", hash).await);
            assert!(known(&hasher, "zion", &hash));
            assert!(!hasher.check("Zion", hash).await);
        }
        assert!(!known(&hasher, "Zion", &hash) && !known(&hasher, "", &PasswordHash::NONE));
        // Another hash, like the one after a change to the same password.
        assert!(!known(&hasher, "zion", &other));
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(!known(&hasher, "zion", &hash));
        assert!(hasher.check("zion", hash).await);
    }
}
