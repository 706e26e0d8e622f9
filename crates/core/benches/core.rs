//! How fast the kernel reads.

fn main() {
    divan::main();
}
