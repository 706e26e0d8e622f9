//! The cipher of a connection, and the setup of its keys.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use worldwire_tera::crypt::exchange::{Keys, SessionCiphers, Variant};
use worldwire_tera::crypt::pike::Pike;

fn main() {
    divan::main();
}

#[divan::bench(name = "tera/pike", args = [64, 1460, 65_536])]
fn pike(bencher: Bencher<'_, '_>, size: usize) {
    let mut pike = Pike::new(&[7; 128]);
    let mut data = vec![0; size];
    bencher.counter(BytesCount::new(size)).bench_local(|| pike.apply(black_box(&mut data)));
}

#[divan::bench(name = "tera/session")]
fn session() -> SessionCiphers {
    let keys = Keys { client: [[1; 128], [2; 128]], server: [[3; 128], [4; 128]] };
    SessionCiphers::new(black_box(&keys), Variant::From45)
}
