//! What a fill holds is counted, and its readers go on whatever becomes of it.

use super::*;
use crate::front::Front;
use crate::samples::{begin, conf, miss, start, store, zone};
use bytes::Bytes;
use millstream_conf::model::CacheZone;
use millstream_wire::Fields;
use std::future::Future;
use std::pin::pin;
use std::task::Waker;

const PIECE: usize = 10_000;

fn fill_in(front: &mut Front) -> Fill {
    begin(miss(front.lookup(b"key", Fields::default(), &conf(), start())), &[], Fields::default(), start())
}

fn small() -> Front {
    Front::new(store(&CacheZone { memory: 1 << 20, keys_size: 1 << 20, ..zone(None) }))
}

fn piece(number: usize) -> Bytes {
    Bytes::from(vec![(number % 251) as u8; PIECE])
}

async fn read(mut follower: Follower) -> usize {
    let mut length = 0;
    while let Some(bytes) = follower.next().await {
        let bytes = bytes.expect("nobody who reads is cut");
        let starts = bytes.first().map(|&byte| byte as usize);
        assert_eq!(starts, Some(length / PIECE % 251), "at {length}");
        length += bytes.len();
    }
    length
}

#[test]
fn what_is_still_held_of_a_body_that_outgrew_memory_stays_counted_until_it_was_read() {
    let mut front = small();
    let mut filling = fill_in(&mut front);
    let follower = filling.follow().expect("at the beginning");
    let (mut held, mut pushed) = (0, 0);
    while filling.is_storing() {
        filling.push(piece(pushed));
        pushed += 1;
        held += PIECE as u64;
        let mut wait = pin!(filling.ready());
        _ = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
    assert!(front.store().stats().filling_bytes >= held - PIECE as u64, "its reader has read nothing");
    drop(follower);
    assert!(pin!(filling.ready()).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    drop(filling);
    assert_eq!(front.store().stats().filling_bytes, 0);
}

#[tokio::test]
async fn a_reader_that_is_behind_holds_up_nobody_where_there_is_a_file() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut front = small();
    let mut filling = fill_in(&mut front);
    filling.hold_to(FillBounds {
        folder: folder.path().to_path_buf(),
        in_file: 1 << 30,
        ..FillBounds::default()
    });
    let (slow, fast) = (filling.follow().expect("first"), filling.follow().expect("second"));
    let fast = tokio::spawn(read(fast));
    for number in 0..300 {
        filling.push(piece(number));
        filling.ready().await;
        // A piece and what is read along; the rest is in the file.
        let held = filling.progress.trim();
        assert!(filling.is_storing() || held <= READ_ALONG + PIECE as u64 + 64, "{held}");
    }
    assert!(filling.finish().await.is_none());
    assert_eq!(fast.await.expect("no panic"), 300 * PIECE);
    assert_eq!(front.store().stats().filling_bytes, 0, "nothing is in memory for it");
    assert_eq!(read(slow).await, 300 * PIECE);
}

#[tokio::test]
async fn beyond_its_file_a_fill_waits_for_its_readers_and_then_goes_on() {
    let folder = tempfile::tempdir().expect("a directory");
    let mut front = small();
    let mut filling = fill_in(&mut front);
    let bounds =
        FillBounds { folder: folder.path().to_path_buf(), in_file: 200_000, ..FillBounds::default() };
    filling.hold_to(bounds);
    let readers = [filling.follow().expect("first"), filling.follow().expect("second")];
    let readers: Vec<_> = readers.into_iter().map(|reader| tokio::spawn(read(reader))).collect();
    for number in 0..300 {
        filling.push(piece(number));
        filling.ready().await;
    }
    assert!(filling.finish().await.is_none());
    for reader in readers {
        assert_eq!(reader.await.expect("no panic"), 300 * PIECE);
    }
}

#[tokio::test]
async fn where_no_file_can_be_made_readers_go_at_the_pace_of_the_slowest() {
    let mut front = small();
    let mut filling = fill_in(&mut front);
    filling.hold_to(FillBounds { folder: "/nowhere".into(), in_file: 1 << 30, ..FillBounds::default() });
    let readers = [filling.follow().expect("first"), filling.follow().expect("second")];
    let readers: Vec<_> = readers.into_iter().map(|reader| tokio::spawn(read(reader))).collect();
    let mut told = 0;
    for number in 0..300 {
        filling.push(piece(number));
        filling.ready().await;
        told += usize::from(filling.take_file_error().is_some());
    }
    assert!(filling.finish().await.is_none());
    assert_eq!(told, 1, "the reason is told once");
    for reader in readers {
        assert_eq!(reader.await.expect("no panic"), 300 * PIECE);
    }
}

#[tokio::test]
async fn the_longest_body_that_memory_takes_is_kept_there_in_however_many_pieces_it_comes() {
    let mut front = small();
    let longest = front.store().largest_in_memory() as usize;
    for (key, length) in [(b"more", longest + 1), (b"fits", longest)] {
        let permit = miss(front.lookup(key, Fields::default(), &conf(), start()));
        let mut filling = begin(permit, &[], Fields::default(), start());
        let reader = tokio::spawn(read_bytes(filling.follow().expect("at the beginning")));
        for piece in vec![1; length].chunks(1000) {
            filling.push(Bytes::copy_from_slice(piece));
            filling.ready().await;
        }
        assert_eq!(filling.finish().await.is_some(), length == longest);
        assert_eq!(reader.await.expect("no panic"), length);
    }
}

async fn read_bytes(mut follower: Follower) -> usize {
    let mut length = 0;
    while let Some(bytes) = follower.next().await {
        length += bytes.expect("nobody who reads is cut").len();
    }
    length
}
