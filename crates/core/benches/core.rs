//! Measures the speed of the core's building blocks: reading, tracing, writing and displaying.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use worldwire_core::json::{Style, write_children};
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::{Error, Form, Reader, Result, Trace, Tree, Value, Writer};

fn main() {
    divan::main();
}

const FIELDS: usize = 1000;

/// A thousand small records: a number, flags, a signed number, and a name of six letters.
const RECORD_BYTES: usize = 4 + 2 + 4 + 6;

fn data() -> Vec<u8> {
    let record = [5, 0, 0, 0, 1, 2, 0xfe, 0xff, 0xff, 0xff, b's', b'h', b'o', b'r', b'a', b'h'];
    record.repeat(FIELDS)
}

#[inline]
fn records<'n, T: Trace<'n>>(reader: &mut Reader<'_, T>) -> Result<u32> {
    let mut sum = 0_u32;
    reader.list("records", |reader| {
        for index in 0..FIELDS {
            let number = reader.item(index, |reader| {
                reader.record("", |reader| {
                    let number = reader.u32("number")?;
                    reader.u16("flags")?;
                    reader.i32("change")?;
                    reader.span("name", 6, Form::Utf8)?;
                    Ok(number)
                })
            })?;
            sum = sum.wrapping_add(number);
        }
        Ok(sum)
    })
}

/// The same records, read from a slice by handwritten code, as a lower bound.
#[divan::bench]
fn records_by_hand(bencher: Bencher<'_, '_>) {
    let data = data();
    counted(bencher, data.len()).bench_local(|| {
        let (records, _) = black_box(&data).as_chunks::<RECORD_BYTES>();
        let mut sum = 0_u32;
        for record in records {
            let number = u32::from_le_bytes([record[0], record[1], record[2], record[3]]);
            black_box(&record[10..]);
            sum = sum.wrapping_add(number);
        }
        black_box(sum)
    });
}

#[divan::bench]
fn records_typed(bencher: Bencher<'_, '_>) {
    let data = data();
    counted(bencher, data.len())
        .bench_local(|| black_box(records(&mut Reader::new(black_box(&data)))).is_ok());
}

/// The same records, read into a tree that reuses the memory of the previous one.
#[divan::bench]
fn records_traced(bencher: Bencher<'_, '_>) {
    let data = data();
    let mut tree = Tree::new();
    counted(bencher, data.len()).bench_local(|| {
        let old = std::mem::take(&mut tree);
        let mut reader = Reader::traced("records", black_box(&data), old);
        black_box(records(&mut reader).is_ok());
        tree = black_box(reader.finish());
    });
}

/// The same records, read into a tree with fresh memory each time.
#[divan::bench]
fn records_traced_afresh(bencher: Bencher<'_, '_>) {
    let data = data();
    counted(bencher, data.len()).bench_local(|| {
        let mut reader = Reader::traced("records", black_box(&data), Tree::new());
        black_box(records(&mut reader).is_ok());
        reader.finish()
    });
}

#[divan::bench(args = [1, 4, 8])]
fn numbers(bencher: Bencher<'_, '_>, width: usize) {
    let data = vec![7; FIELDS * width];
    counted(bencher, data.len()).bench_local(|| {
        let mut reader = Reader::new(black_box(&data));
        let mut sum = 0_u64;
        for _ in 0..FIELDS {
            let number = match width {
                1 => reader.u8("x").map(u64::from),
                4 => reader.u32("x").map(u64::from),
                _ => reader.u64("x"),
            };
            sum = sum.wrapping_add(number.unwrap_or(0));
        }
        black_box(sum)
    });
}

#[divan::bench(args = [1, 5, 13, 32])]
fn bits(bencher: Bencher<'_, '_>, width: u8) {
    let data = vec![0x5a; (FIELDS * usize::from(width)).div_ceil(8)];
    counted(bencher, data.len()).bench_local(|| {
        let mut reader = Reader::new(black_box(&data));
        let mut sum = 0_u64;
        for _ in 0..FIELDS {
            sum = sum.wrapping_add(reader.bits("x", width).unwrap_or(0));
        }
        black_box(sum)
    });
}

/// The common "incomplete" result of a stream: an error that is created and dropped.
#[divan::bench]
fn incomplete(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        let outcome: Result<()> = Reader::new(black_box(&[1, 2]))
            .record("fields", |reader| reader.u32("transId").map(|_| ()));
        black_box(outcome.err().and_then(|error: Error| error.needed()))
    });
}

/// A tree as users read it.
#[divan::bench]
fn text(bencher: Bencher<'_, '_>) {
    let data = data();
    let mut reader = Reader::traced("records", &data, Tree::new());
    black_box(records(&mut reader).is_ok());
    let tree = reader.finish();
    let style = TextStyle { ranges: true, ..TextStyle::default() };
    let mut out = String::new();
    counted(bencher, data.len()).bench_local(|| {
        out.clear();
        write_tree(black_box(&tree), style, &mut out);
        black_box(out.len())
    });
}

#[divan::bench]
fn json(bencher: Bencher<'_, '_>) {
    let data = data();
    let mut reader = Reader::traced("records", &data, Tree::new());
    black_box(records(&mut reader).is_ok());
    let tree = reader.finish();
    let mut out = String::new();
    counted(bencher, data.len()).bench_local(|| {
        out.clear();
        write_children(Value::Record, black_box(&tree).roots(), Style::default(), &mut out);
        black_box(out.len())
    });
}

#[divan::bench]
fn write(bencher: Bencher<'_, '_>) {
    let mut out = Vec::new();
    counted(bencher, FIELDS * RECORD_BYTES).bench_local(|| {
        out.clear();
        let mut writer = Writer::append_to(std::mem::take(&mut out));
        for _ in 0..FIELDS {
            writer.u32(black_box(5));
            writer.u16(black_box(0x201));
            writer.i32(black_box(-2));
            writer.bytes(black_box(b"shorah"));
        }
        out = writer.into_bytes();
        black_box(out.len())
    });
}

/// Counts this many bytes, and a thousand records or values.
fn counted<'a, 'b>(bencher: Bencher<'a, 'b>, bytes: usize) -> Bencher<'a, 'b> {
    bencher.counter(BytesCount::new(bytes)).counter(ItemsCount::new(FIELDS))
}
