//! Bytes that changed while nobody looked: whichever it is, none is handed out.

use super::*;
use crate::body::{Body, Piece};
use std::os::fd::AsFd;

/// What a reader that leaves pieces in their file returns, read as the kernel would.
async fn sent(body: &Body) -> (Vec<u8>, bool) {
    let mut read = Vec::new();
    let Ok(mut reader) = body.open(0..u64::MAX).await else { return (read, false) };
    while let Some(piece) = reader.next_to_send().await {
        match piece {
            Err(_) => return (read, false),
            Ok(Piece::Bytes(bytes)) => read.extend_from_slice(&bytes),
            Ok(Piece::Span(span)) => {
                let part = span.part();
                let mut bytes = vec![0; (part.end - part.start) as usize];
                let read_whole = rustix::io::pread(span.as_fd(), &mut bytes, part.start);
                assert_eq!(read_whole, Ok(bytes.len()));
                read.extend_from_slice(&bytes);
            }
        }
    }
    (read, true)
}

fn body(length: u32) -> Vec<u8> {
    (0..length).map(|number| (number.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

#[test]
fn thousands_of_flipped_bits_anywhere_in_a_file_are_each_a_miss() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let wanted = body(70_000);
    let key = Key::new(b"key", 1);
    runtime().block_on(async {
        let store = store(&zone);
        put(&store, "key", &Headers::new(), &[("X-A", "1"), ("ETag", "\"e\"")], &wanted).await;
        let disk = store.tier.as_ref().expect("a disk").disk.clone();
        let path = only_file(directory.path());
        let good = fs::read(&path).expect("the file");
        let mut bits: Vec<usize> = (0..800 * 8).collect();
        bits.extend((0..4000).map(|step| (800 + step * 17) * 8 + step % 8));
        bits.extend(((good.len() - 8) * 8)..(good.len() * 8));
        for bit in bits {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).expect("written");
            assert!(disk.read(&key::md5(b"key"), &key, 1 << 20, start()).is_none(), "bit {bit}");
            assert!(!path.exists(), "bit {bit}");
        }
        fs::write(&path, &good).expect("written");
        let loaded = disk.read(&key::md5(b"key"), &key, 1 << 20, start()).expect("as it was");
        assert_eq!(loaded.body.memory().map(|bytes| &bytes[..]), Some(&wanted[..]));
    });
}

#[test]
fn a_flipped_bit_in_a_large_body_ends_it_before_its_block_whoever_sends_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let wanted = body(2_000_003);
    let key = Key::new(b"key", 1);
    runtime().block_on(async {
        put(&store(&zone), "key", &Headers::new(), &[], &wanted).await;
        let path = only_file(directory.path());
        let file = fs::File::options().read(true).write(true).open(&path).expect("the file");
        let length = file.metadata().expect("open").len();
        let first = length - 2_000_003 - 31 * 4;
        for step in 0..150 {
            let at = first + step * 13_331;
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).expect("within");
            file.write_all_at(&[byte[0] ^ 1 << (step % 8)], at).expect("written");
            let store = store(&zone);
            let disk = store.tier.as_ref().expect("a disk").disk.clone();
            let loaded = disk.read(&key::md5(b"key"), &key, 1 << 20, start()).expect("its head is good");
            let (read, whole) = sent(&loaded.body).await;
            assert!(!whole && read.len() as u64 <= at - first && wanted.starts_with(&read), "byte {at}");
            file.write_all_at(&byte, at).expect("written");
            let (read, whole) = sent(&loaded.body).await;
            assert!(whole && read == wanted, "as it was");
        }
    });
}

#[test]
fn a_body_once_found_good_is_looked_at_again_when_its_file_was_written_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let wanted = body(2_000_000);
    runtime().block_on(async {
        let store = store(&zone);
        put(&store, "key", &Headers::new(), &[], &wanted).await;
        let Lookup::Fresh(hit) =
            Front::new(store.clone()).lookup(b"key", Fields::default(), &conf(), start())
        else {
            panic!("it is in memory that it is on disk")
        };
        for _ in 0..2 {
            assert!(sent(&hit.entry.body()).await == (wanted.clone(), true));
        }
        let path = only_file(directory.path());
        let file = fs::File::options().write(true).open(&path).expect("the file");
        file.write_all_at(b"rotten", 1_500_000).expect("written");
        let (read, whole) = sent(&hit.entry.body()).await;
        assert!(!whole && wanted.starts_with(&read) && read.len() < 1_500_000);
        store.damaged(&hit.entry);
        settled(&store).await;
        while path.exists() {
            blocking::run(|| ()).await;
        }
        assert_eq!((store.stats().corrupt, found(&store, "key", &Headers::new()).await), (1, None));
    });
}

#[test]
fn parts_of_a_body_are_sent_from_their_first_to_their_last_byte() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let wanted = body(1_500_000);
    runtime().block_on(async {
        let store = store(&zone);
        put(&store, "key", &Headers::new(), &[], &wanted).await;
        let Lookup::Fresh(hit) = Front::new(store).lookup(b"key", Fields::default(), &conf(), start()) else {
            panic!("it is there")
        };
        for part in [0..1, 65_535..65_537, 524_280..1_100_000, 1_499_999..1_500_000, 7..7] {
            let mut reader = hit.entry.body().open(part.clone()).await.expect("there");
            let mut spans = Vec::new();
            while let Some(piece) = reader.next_to_send().await {
                let Ok(Piece::Span(span)) = piece else { panic!("it is in a file") };
                spans.push(span.part());
            }
            let length: u64 = spans.iter().map(|span| span.end - span.start).sum();
            assert_eq!(length, part.end - part.start);
            assert!(spans.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    });
}
