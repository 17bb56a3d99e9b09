//! What the thread in the background does: lists, lets go, takes away what was purged, and looks again where it is blind.

use super::*;
use crate::purges::{How, Purge, What};
use millstream_conf::model::Pace;

fn pace(files: u32, sleep: u64) -> Pace {
    Pace { files, threshold: Duration::from_millis(200), sleep: Duration::from_millis(sleep) }
}

async fn fill(store: &Arc<Store>, count: u32) {
    for number in 0..count {
        put(store, &format!("key {number}"), &Headers::new(), &[], b"body").await;
    }
}

#[test]
fn files_are_listed_at_the_pace_that_is_given_and_answered_before_all_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let quick = zone(Some(directory.path()));
    runtime().block_on(async {
        fill(&store(&quick), 30).await;
        let slow = CacheZone { loader_pace: pace(7, 250), ..quick };
        let began = millstream_net::clock::now();
        let store = store(&slow);
        assert_eq!(found(&store, "key 29", &Headers::new()).await, Some(b"body".to_vec()));
        assert!(!store.stats().index_loaded && store.stats().files < 30);
        listed(&store).await;
        assert_eq!(store.stats().files, 30);
        assert!(began.elapsed() >= Duration::from_millis(4 * 250), "four pauses at least");
    });
}

#[test]
fn files_unused_for_too_long_are_removed_in_the_background() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    runtime().block_on(async {
        fill(&store(&zone), 20).await;
        // By the real clock: what was there at start counts as used then, what the tests' clock says was long ago.
        let brief = CacheZone { inactive: Duration::from_secs(3600), manager_pace: pace(3, 1), ..zone };
        let store = store(&brief);
        listed(&store).await;
        assert_eq!(store.stats().files, 20);
        let disk = store.tier.as_ref().expect("a disk").disk.clone();
        (0..15).for_each(|number| disk.touch(&key::md5(format!("key {number}").as_bytes()), start()));
        store.reconfigure(&brief, ErrorLogs::default());
        while store.stats().files > 5 {
            blocking::run(std::thread::yield_now).await;
        }
        assert_eq!(files(directory.path()).len(), 5);
    });
}

#[test]
fn a_lower_bound_and_less_free_space_than_wanted_take_files_away() {
    let less = |zone: CacheZone, which| match which {
        0 => CacheZone { max_size: Some(10 * 4096), ..zone },
        1 => CacheZone { keys_size: 10 * 128, ..zone },
        _ => CacheZone { min_free: u64::MAX, ..zone },
    };
    for which in 0..3 {
        let directory = tempfile::tempdir().expect("a directory");
        let plenty = zone(Some(directory.path()));
        let less = less(plenty.clone(), which);
        runtime().block_on(async {
            let store = store(&plenty);
            fill(&store, 30).await;
            listed(&store).await;
            let left = if less.min_free > 0 { 0 } else { 10 };
            store.reconfigure(&less, ErrorLogs::default());
            while store.stats().files > left {
                blocking::run(std::thread::yield_now).await;
            }
            assert_eq!(store.stats().files_unlinked, 0);
        });
    }
}

#[test]
fn the_purger_removes_the_files_that_a_rule_goes_for_and_no_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = CacheZone { purger: true, purger_pace: pace(4, 1), ..zone(Some(directory.path())) };
    runtime().block_on(async {
        let first = store(&zone);
        fill(&first, 20).await;
        put(&first, "other", &Headers::new(), &[], b"body").await;
        drop(first);
        // In a process that has read none of them.
        let store = store(&zone);
        listed(&store).await;
        let purge = |what| Purge { what, how: How::Hard };
        store.purge(purge(What::Prefix(b"key".to_vec()))).await.expect("written down");
        while store.stats().files > 1 {
            blocking::run(std::thread::yield_now).await;
        }
        assert_eq!(found(&store, "other", &Headers::new()).await, Some(b"body".to_vec()));
        store.purge(Purge { what: What::All, how: How::Soft }).await.expect("written down");
        put(&store, "later", &Headers::new(), &[], b"body").await;
        store.purge(purge(What::Prefix(b"oth".to_vec()))).await.expect("written down");
        while store.stats().files > 1 {
            blocking::run(std::thread::yield_now).await;
        }
        assert_eq!(
            found(&store, "later", &Headers::new()).await,
            Some(b"body".to_vec()),
            "stale is not gone"
        );
    });
}

#[test]
fn a_cache_that_is_closed_takes_its_thread_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(&zone(Some(directory.path())));
    let disk = Arc::downgrade(&store.tier.as_ref().expect("a disk").disk);
    drop(store);
    // The thread holds it during a turn at most.
    while disk.strong_count() > 0 {
        std::thread::yield_now();
    }
}
