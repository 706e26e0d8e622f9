//! Reading and reassembly, in bytes of the capture file per second.

use divan::counter::{BytesCount, ItemsCount};
use worldwire_capture::{
    CaptureReader, ClassicWriter, Conversations, LinkType, Record, SyntheticTcp, Timestamp,
};
use worldwire_core::{Limits, Side};

fn main() {
    divan::main();
}

/// A capture of about 32 MB with interleaved conversations.
fn capture(conversations: u16, payload: usize, reorder: bool) -> (Vec<u8>, u64) {
    const SIZE: usize = 32 << 20;
    let mut talks: Vec<SyntheticTcp> = (0..conversations)
        .map(|number| {
            let client = std::net::SocketAddrV4::new([10, 0, 0, 1].into(), 20_000 + number);
            SyntheticTcp::new(client, std::net::SocketAddrV4::new([10, 0, 0, 2].into(), 5000))
        })
        .collect();
    let mut file = Vec::with_capacity(SIZE + (1 << 20));
    let mut writer = ClassicWriter::new(&mut file, LinkType::ETHERNET).expect("a valid capture");
    let payload = vec![0x5A; payload];
    let (mut count, mut bytes) = (0, 24);
    let mut write = |packet: &[u8]| {
        count += 1;
        bytes += packet.len() + 16;
        let length = u32::try_from(packet.len()).expect("a valid capture");
        writer
            .packet(Timestamp::from_nanos(1000 * count), packet, length)
            .expect("a valid capture");
        bytes
    };
    for talk in &mut talks {
        for packet in talk.open() {
            write(&packet);
        }
    }
    let mut written = 0;
    while written < SIZE {
        for talk in &mut talks {
            for side in Side::BOTH {
                let mut packets = talk.data(side, &payload);
                let last = packets.len() - 1;
                if reorder && last > 1 {
                    packets.swap(0, 1);
                }
                for packet in packets {
                    written = write(&packet);
                }
            }
        }
    }
    let packets = u64::try_from(count).expect("a valid capture");
    (file, packets)
}

fn reassemble(file: &[u8]) -> u64 {
    let mut reader = CaptureReader::new(file, &Limits::DEFAULT).expect("a valid capture");
    let mut conversations = Conversations::new(&Limits::DEFAULT);
    let mut events = 0;
    while let Some(record) = reader.next().expect("a valid capture") {
        if let Record::Packet(packet) = record {
            conversations.push(&packet, &mut |_| events += 1);
        }
    }
    conversations.finish(&mut |_| events += 1);
    events
}

fn run(bencher: divan::Bencher<'_, '_>, (file, packets): &(Vec<u8>, u64)) {
    bencher
        .counter(BytesCount::new(file.len()))
        .counter(ItemsCount::new(*packets))
        .bench(|| reassemble(divan::black_box(file)));
}

/// Only reads the file format, without reassembly.
#[divan::bench(name = "read/1460 bytes/32 MB", sample_count = 20)]
fn read(bencher: divan::Bencher<'_, '_>) {
    let (file, packets) = capture(4, 1460 * 4, false);
    bencher.counter(BytesCount::new(file.len())).counter(ItemsCount::new(packets)).bench(|| {
        let mut reader =
            CaptureReader::new(file.as_slice(), &Limits::DEFAULT).expect("a valid capture");
        while let Some(record) = reader.next().expect("a valid capture") {
            divan::black_box(&record);
        }
    });
}

/// Downloads: full segments.
#[divan::bench(name = "reassemble/1460 bytes/32 MB", sample_count = 20)]
fn large(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &capture(4, 1460 * 4, false));
}

/// A game: 100 bytes each way, with acknowledgements.
#[divan::bench(name = "reassemble/100 bytes/32 MB", sample_count = 20)]
fn small(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &capture(4, 100, false));
}

/// A server: 10,000 interleaved connections.
#[divan::bench(name = "reassemble/10,000 conversations/32 MB", sample_count = 20)]
fn many(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &capture(10_000, 1000, false));
}

/// Every other pair of segments is swapped.
#[divan::bench(name = "reassemble/reordered/32 MB", sample_count = 20)]
fn reordered(bencher: divan::Bencher<'_, '_>) {
    run(bencher, &capture(4, 1460 * 4, true));
}
