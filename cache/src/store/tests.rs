//! The disk beneath: warm after a restart, never wrong, never in the way.

use super::*;
use crate::front::{DiskProbe, Front, Lookup};
use crate::permit::Woken;
use crate::samples::{begin, conf, head, headers, miss, start, store, zone};
use bytes::Bytes;
use millstream_wire::{Fields, Headers};
use std::fs;
use std::os::unix::fs::FileExt;

mod background;
mod coded;
mod kept;
mod pieces;
mod purging;
mod removed;
mod rot;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

async fn settled(store: &Store) {
    let pending = || store.tier.as_ref().map_or(0, |tier| tier.pending.load(Ordering::Relaxed));
    while pending() > 0 || store.tidying.load(Ordering::Relaxed) {
        blocking::run(|| ()).await;
        tokio::task::yield_now().await;
    }
}

async fn listed(store: &Store) {
    while !store.stats().index_loaded {
        blocking::run(std::thread::yield_now).await;
    }
}

async fn put(store: &Arc<Store>, key: &str, request: &Headers, lines: &[(&str, &str)], body: &[u8]) {
    let mut front = Front::new(store.clone());
    let permit = match front.lookup(key.as_bytes(), request.view(), &conf(), start()) {
        Lookup::Disk(probe) => miss(load(probe, request).await),
        other => miss(other),
    };
    let mut fill = begin(permit, lines, request.view(), start());
    for piece in body.chunks(50_000) {
        fill.push(Bytes::copy_from_slice(piece));
        fill.ready().await;
    }
    assert!(fill.finish().await.is_some());
    settled(store).await;
}

async fn load(probe: DiskProbe, request: &Headers) -> Lookup {
    probe.load(request.view(), &conf(), start()).await
}

/// What a newly started zone has for a key: the whole body, read as the server would.
async fn found(store: &Arc<Store>, key: &str, request: &Headers) -> Option<Vec<u8>> {
    let lookup = Front::new(store.clone()).lookup(key.as_bytes(), request.view(), &conf(), start());
    let lookup = match lookup {
        Lookup::Disk(probe) => load(probe, request).await,
        other => other,
    };
    let Lookup::Fresh(hit) = lookup else { return None };
    let mut reader = hit.entry.body().open(0..u64::MAX).await.ok()?;
    let mut body = Vec::new();
    while let Some(piece) = reader.next().await {
        body.extend_from_slice(&piece.ok()?);
    }
    Some(body)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            if entry.path().is_dir() { open.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found
}

fn only_file(directory: &Path) -> PathBuf {
    let mut found = files(directory);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn an_entry_is_found_again_after_a_restart_under_nginxs_name() {
    let directory = tempfile::tempdir().expect("a directory");
    runtime().block_on(async {
        let zone = zone(Some(directory.path()));
        put(&store(&zone), "key", &Headers::new(), &[("ETag", "\"a\"")], b"body").await;
        // The MD5 of "key"; levels=1:2 takes its last digit and the two before that.
        let expected = directory.path().join("d/31/3c6e0b8a9c15224a8228b9a98ca1531d");
        assert_eq!(only_file(directory.path()), expected);
        let restarted = store(&zone);
        let Lookup::Disk(probe) =
            Front::new(restarted.clone()).lookup(b"key", Fields::default(), &conf(), start())
        else {
            panic!("it is on disk")
        };
        let Lookup::Fresh(hit) = load(probe, &Headers::new()).await else { panic!("it is fresh") };
        assert_eq!((hit.head().etag(), hit.length()), (Some(&b"\"a\""[..]), 4));
        listed(&restarted).await;
        assert_eq!(restarted.stats().files, 1);
        assert!(
            matches!(
                Front::new(restarted).lookup(b"other", Fields::default(), &conf(), start()),
                Lookup::Miss(_)
            ),
            "with the index whole nobody looks for a file that is not there"
        );
    });
}

#[test]
fn a_damaged_file_is_a_miss_and_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    runtime().block_on(async {
        put(&store(&zone), "key", &Headers::new(), &[("X-A", "1")], &[7; 500]).await;
        let path = only_file(directory.path());
        let good = fs::read(&path).expect("the file");
        let flips = (0..good.len()).step_by(9).map(|at| {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << (at % 8);
            bytes
        });
        let cuts = (0..good.len()).step_by(37).map(|length| good[..length].to_vec());
        let longer = std::iter::once([&good[..], b"x"].concat());
        for bytes in flips.chain(cuts).chain(longer) {
            fs::write(&path, &bytes).expect("written");
            let store = store(&zone);
            assert_eq!(found(&store, "key", &Headers::new()).await, None);
            assert_eq!(store.stats().corrupt, 1);
            assert!(!path.exists());
        }
        fs::write(&path, &good).expect("written");
        assert_eq!(found(&store(&zone), "key", &Headers::new()).await, Some(vec![7; 500]));
    });
}

#[test]
fn a_large_body_goes_through_the_disk_and_a_rotten_block_is_never_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let body: Vec<u8> = (0..3_000_000u32).map(|number| (number >> 4) as u8).collect();
    runtime().block_on(async {
        let store = store(&zone);
        let mut front = Front::new(store.clone());
        listed(&store).await;
        let permit = miss(front.lookup(b"key", Fields::default(), &conf(), start()));
        let Lookup::Busy(waiter, _) = front.lookup(b"key", Fields::default(), &conf(), start()) else {
            panic!("must wait")
        };
        let mut fill = permit.begin(head(&[], Some(3_000_000), 60, start()), Fields::default(), start());
        let Woken::Streaming(mut follower) = waiter.wait(Fields::default(), &conf(), start()).await else {
            panic!("must stream")
        };
        for piece in body.chunks(60_000) {
            fill.push(Bytes::copy_from_slice(piece));
            fill.ready().await;
        }
        let entry = fill.finish().await.expect("stored");
        assert!(entry.body_in_memory().is_none() && store.stats().memory_bytes < 100_000);
        let mut read = Vec::new();
        while let Some(piece) = follower.next().await {
            read.extend_from_slice(&piece.expect("not cut"));
        }
        assert!(read == body, "a follower that came late reads from the file");
        drop(follower);
        assert!(found(&store, "key", &Headers::new()).await == Some(body.clone()));
        let mut part = entry.body().open(65_530..65_540).await.expect("there");
        let (one, two) = (part.next().await.expect("6"), part.next().await.expect("4"));
        assert_eq!([one.expect("good"), two.expect("good")].concat(), body[65_530..65_540]);
        assert!(part.next().await.is_none());

        let path = only_file(directory.path());
        let file = fs::File::options().write(true).open(&path).expect("the file");
        file.write_all_at(b"rotten", 2_000_000).expect("written");
        let mut reader = entry.body().open(0..u64::MAX).await.expect("its head is good");
        let mut read = Vec::new();
        while let Some(Ok(piece)) = reader.next().await {
            read.extend_from_slice(&piece);
        }
        assert!(read.len() < 2_000_000 && body.starts_with(&read));
        fs::remove_file(&path).expect("removed");
        assert!(entry.body().open(0..1).await.is_err());
    });
}

#[test]
fn variants_are_found_again_only_with_the_file_under_the_keys_own_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let (de, en) = (headers(&[("Accept-Language", "de")]), headers(&[("Accept-Language", "en")]));
    let vary = [("Vary", "Accept-Language")];
    runtime().block_on(async {
        let first = store(&zone);
        put(&first, "key", &de, &vary, b"hallo").await;
        put(&first, "key", &en, &vary, b"hello").await;
        for (request, body) in [(&de, b"hallo"), (&en, b"hello")] {
            assert_eq!(found(&store(&zone), "key", request).await, Some(body.to_vec()));
        }
        let restarted = store(&zone);
        assert_eq!(found(&restarted, "key", &en).await, Some(b"hello".to_vec()));
        assert_eq!(found(&restarted, "key", &de).await, Some(b"hallo".to_vec()));
        assert_eq!(found(&restarted, "key", &headers(&[("Accept-Language", "fr")])).await, None);
        // As plugins do it that know the MD5 of the key.
        let disk = restarted.tier.as_ref().expect("a disk").disk.clone();
        fs::remove_file(disk.path(&key::md5(b"key"))).expect("it is there");
        for request in [&en, &de] {
            assert_eq!(found(&store(&zone), "key", request).await, None);
        }
    });
}

#[test]
fn a_purge_takes_the_file_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    runtime().block_on(async {
        let first = store(&zone);
        put(&first, "key", &Headers::new(), &[], b"body").await;
        let path = only_file(directory.path());
        assert!(first.invalidate(b"key"));
        while path.exists() {
            tokio::task::yield_now().await;
            blocking::run(|| ()).await;
        }
        assert_eq!(found(&store(&zone), "key", &Headers::new()).await, None);
    });
}

#[test]
fn the_disk_stays_within_its_size() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = CacheZone { max_size: Some(64 * 1024), ..zone(Some(directory.path())) };
    runtime().block_on(async {
        let store = store(&zone);
        for number in 0..50 {
            put(&store, &format!("key {number}"), &Headers::new(), &[], &[1; 3000]).await;
            assert!(store.stats().disk_bytes <= 64 * 1024);
        }
        assert!(store.stats().files > 8);
        assert_eq!(store.largest_body(), 64 * 1024);
    });
}

#[test]
fn a_directory_that_vanishes_is_made_again_and_one_that_cannot_be_written_costs_no_answer() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("cache");
    let zone = zone(Some(&directory));
    runtime().block_on(async {
        let store = store(&zone);
        listed(&store).await;
        fs::remove_dir_all(&directory).expect("removed");
        put(&store, "one", &Headers::new(), &[], b"body").await;
        assert_eq!((store.stats().files, store.stats().disk_errors), (1, 0));
        fs::remove_dir_all(&directory).expect("removed");
        fs::write(&directory, b"a file in its place").expect("written");
        put(&store, "two", &Headers::new(), &[], b"body").await;
        assert_eq!(found(&store, "two", &Headers::new()).await, Some(b"body".to_vec()));
        assert_eq!(store.stats().disk_errors, 1);
    });
}

#[test]
fn a_directory_that_cannot_be_used_is_an_error_that_names_it() {
    let parent = tempfile::tempdir().expect("a directory");
    let file = parent.path().join("file");
    fs::write(&file, b"").expect("written");
    let zone = zone(Some(&file.join("cache")));
    let error = Store::open(&zone, None, ErrorLogs::default()).expect_err("a file is no directory");
    assert!(
        error.to_string().contains("file/cache") && error.to_string().contains("zone \"zone\""),
        "{error}"
    );
}
