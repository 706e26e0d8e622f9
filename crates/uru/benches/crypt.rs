//! The performance of ciphers, key exchange and login hashes, compared with alternatives in the
//! same run.
//!
//! `cargo bench -p worldwire-uru --bench crypt`

use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Odd, U512};
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use num_bigint::BigUint;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use rc4::{KeyInit as _, StreamCipher as _};
use worldwire_uru::crypt::exchange::SessionKey;
use worldwire_uru::crypt::key::{PrimeKind, PrivateKey, ServerKind};
use worldwire_uru::crypt::login::{PasswordHash, PasswordHashes, login_fields, verify};
use worldwire_uru::crypt::rc4::Rc4;
use worldwire_uru::crypt::sha0::sha0;
use worldwire_uru::file::secure::{Magic, SecureFile, SecureKey, open};

fn main() {
    divan::main();
}

const KEY: [u8; 7] = *b"\x45\x87\x1a\xb1\x6f\xfb\xe6";
const SIZES: [usize; 3] = [94, 1_460, 65_536];

#[divan::bench(name = "uru/rc4/ours", args = SIZES)]
fn rc4_ours(bencher: Bencher<'_, '_>, size: usize) {
    let mut rc4 = Rc4::new(&SessionKey::new(KEY));
    let mut data = vec![0; size];
    bencher.counter(BytesCount::new(size)).bench_local(|| rc4.apply(black_box(&mut data)));
}

#[divan::bench(name = "uru/rc4/rc4", args = SIZES)]
fn rc4_crate(bencher: Bencher<'_, '_>, size: usize) {
    let mut rc4 = rc4::Rc4::new_from_slice(&KEY).ok().unwrap_or_else(|| unreachable!());
    let mut data = vec![0; size];
    bencher
        .counter(BytesCount::new(size))
        .bench_local(|| rc4.apply_keystream(black_box(&mut data)));
}

#[divan::bench(name = "uru/rc4/new")]
fn rc4_new(bencher: Bencher<'_, '_>) {
    let key = SessionKey::new(KEY);
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| Rc4::new(black_box(&key)));
}

fn server() -> PrivateKey {
    PrivateKey::generate(ServerKind::Auth, PrimeKind::Plain, &mut ChaCha8Rng::seed_from_u64(1))
}

#[divan::bench(name = "uru/exchange/server/ours")]
fn exchange_ours(bencher: Bencher<'_, '_>) {
    let server = server();
    let (y, _) = server.public().client_begin(&[0x5a; 64]).ok().unwrap_or_else(|| unreachable!());
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench_local(|| server.server_answer(black_box(y.as_bytes()), KEY));
}

#[divan::bench(name = "uru/exchange/server/num-bigint")]
fn exchange_num_bigint(bencher: Bencher<'_, '_>) {
    let server = server();
    let (y, _) = server.public().client_begin(&[0x5a; 64]).ok().unwrap_or_else(|| unreachable!());
    let n = BigUint::from_bytes_be(&server.n().to_be_bytes());
    let a = BigUint::from_bytes_be(&*server.a());
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        let s = BigUint::from_bytes_le(black_box(y.as_bytes())).modpow(&a, &n).to_bytes_le();
        let mut key = KEY;
        key.iter_mut().zip(s).for_each(|(byte, mask)| *byte ^= mask);
        key
    });
}

#[divan::bench(name = "uru/exchange/capture/ours")]
fn exchange_capture(bencher: Bencher<'_, '_>) {
    let server = server();
    let (y, _) = server.public().client_begin(&[0x5a; 64]).ok().unwrap_or_else(|| unreachable!());
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench_local(|| server.captured_key(black_box(y.as_bytes()), KEY));
}

/// The key exchanges of 64 captured connections, computed together.
#[divan::bench(name = "uru/exchange/captures/ours")]
fn exchange_captures(bencher: Bencher<'_, '_>) {
    let server = server();
    let numbers: Vec<[u8; 64]> = (2..66).map(|byte| [byte; 64]).collect();
    let numbers: Vec<&[u8]> = numbers.iter().map(|y| &y[..]).collect();
    bencher
        .counter(ItemsCount::new(numbers.len()))
        .bench_local(|| server.captured_secrets(black_box(&numbers)));
}

/// The library's variable-time power, with the modulus prepared.
#[divan::bench(name = "uru/exchange/capture/crypto-bigint")]
fn exchange_capture_library(bencher: Bencher<'_, '_>) {
    let server = server();
    let (y, _) = server.public().client_begin(&[0x5a; 64]).ok().unwrap_or_else(|| unreachable!());
    let n = Odd::new(U512::from_be_slice(&server.n().to_be_bytes())).into_option();
    let params = FixedMontyParams::new_vartime(n.unwrap_or_else(|| unreachable!()));
    let a = U512::from_be_slice(&*server.a());
    let mut number = [0; 64];
    number[..y.as_bytes().len()].copy_from_slice(y.as_bytes());
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        let y = U512::from_le_slice(black_box(&number));
        FixedMontyForm::new(&y, &params).pow_vartime(&a).retrieve()
    });
}

#[divan::bench(name = "uru/exchange/client/ours")]
fn exchange_client(bencher: Bencher<'_, '_>) {
    let server = server();
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench_local(|| server.public().client_begin(black_box(&[0x5a; 64])));
}

#[divan::bench(name = "uru/key/generate", args = [PrimeKind::Plain, PrimeKind::Safe])]
fn generate(bencher: Bencher<'_, '_>, prime: PrimeKind) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    bencher.bench_local(|| PrivateKey::generate(ServerKind::Auth, prime, &mut rng));
}

#[divan::bench(name = "uru/sha0/digest", args = [64, 65_536])]
fn sha0_digest(bencher: Bencher<'_, '_>, size: usize) {
    let data = vec![7; size];
    bencher.counter(BytesCount::new(size)).bench_local(|| sha0(black_box(&data)));
}

/// SHA-1 of the same input, computed by the crate used for the other digest. Except for the message
/// schedule, it does the same work, but it may use the processor's SHA instructions.
#[divan::bench(name = "uru/sha0/sha1-crate", args = [64, 65_536])]
fn sha1_digest(bencher: Bencher<'_, '_>, size: usize) {
    use sha1::{Digest, Sha1};
    let data = vec![7; size];
    bencher.counter(BytesCount::new(size)).bench_local(|| Sha1::digest(black_box(&data)));
}

#[divan::bench(name = "uru/login/p0")]
fn login_p0(bencher: Bencher<'_, '_>) {
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench_local(|| PasswordHash::sha0(black_box("AzureDiamond@example.com"), "hunter2"));
}

#[divan::bench(name = "uru/login/verify")]
fn login_verify(bencher: Bencher<'_, '_>) {
    let name = "AzureDiamond@example.com";
    let hashes = PasswordHashes::new(name, "hunter2");
    let fields = login_fields(name, "hunter2", 1, 2);
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench_local(|| verify(name, &hashes, 1, 2, black_box(&fields.challenge_hash)));
}

#[divan::bench(name = "uru/secure/open", args = [Magic::NotTheDroids, Magic::WhatDoYouSee])]
fn secure_open(bencher: Bencher<'_, '_>, magic: Magic) {
    let size = 65_536;
    let file = SecureFile::new(magic, vec![7; size]);
    let key = SecureKey::SETTINGS;
    let data = file.seal(&key).unwrap_or_default();
    bencher
        .counter(BytesCount::new(size))
        .bench_local(|| open(black_box(&data), Some(&key), u64::MAX));
}
