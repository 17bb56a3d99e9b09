//! What is in use is on the disk when the process starts again, and is answered although memory has no room for it.

use super::*;
use crate::store::tier::PENDING;

/// Fills a key without waiting for its file.
async fn fill(store: &Arc<Store>, key: &str) {
    let mut front = Front::new(store.clone());
    let mut fill = begin(
        miss(front.lookup(key.as_bytes(), Fields::default(), &conf(), start())),
        &[],
        Fields::default(),
        start(),
    );
    fill.push(Bytes::from_static(b"body"));
    assert!(fill.finish().await.is_some());
}

#[test]
fn the_file_that_variants_count_beside_is_as_much_in_use_as_they_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let (de, en) = (headers(&[("Accept-Language", "de")]), headers(&[("Accept-Language", "en")]));
    let vary = [("Vary", "Accept-Language")];
    runtime().block_on(async {
        let store = store(&zone);
        put(&store, "key", &de, &vary, b"hallo").await;
        put(&store, "key", &en, &vary, b"hello").await;
        put(&store, "other", &Headers::new(), &[], b"body").await;
        let later = start().after(Duration::from_secs(30));
        assert!(matches!(
            Front::new(store.clone()).lookup(b"key", en.view(), &conf(), later),
            Lookup::Fresh(_)
        ));
        store.maintain(later);
        settled(&store).await;
        let disk = store.tier.as_ref().expect("a disk").disk.clone();
        assert_eq!(disk.unused(later, 20), [key::md5(b"other")], "only that one is unused");
    });
}

#[test]
fn what_memory_has_no_room_for_is_answered_from_its_file_again_and_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = CacheZone { keys_size: 3 * 128, ..zone(Some(directory.path())) };
    runtime().block_on(async {
        put(&store(&zone), "key", &Headers::new(), &[], b"body").await;
        let restarted = store(&zone);
        listed(&restarted).await;
        let mut front = Front::new(restarted.clone());
        let mut ask = |key: &str| front.lookup(key.as_bytes(), Fields::default(), &conf(), start());
        let permits = [miss(ask("slow")), miss(ask("slower"))];
        for _ in 0..3 {
            assert_eq!(found(&restarted, "key", &Headers::new()).await, Some(b"body".to_vec()));
        }
        drop(permits);
        assert_eq!(found(&restarted, "key", &Headers::new()).await, Some(b"body".to_vec()));
        assert!(matches!(ask("key"), Lookup::Fresh(_)), "and is in memory once there is room");
    });
}

#[test]
fn what_came_while_too_much_waited_is_written_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    runtime().block_on(async {
        let store = store(&zone);
        listed(&store).await;
        store.tier.as_ref().expect("a disk").pending.fetch_add(PENDING, Ordering::Relaxed);
        fill(&store, "key").await;
        assert_eq!((store.stats().unwritten, files(directory.path()).len()), (1, 0));
        store.maintain(start());
        while store.tidying.load(Ordering::Relaxed) {
            blocking::run(std::thread::yield_now).await;
        }
        assert_eq!(files(directory.path()).len(), 0, "there is no room yet");
        store.tier.as_ref().expect("a disk").pending.fetch_sub(PENDING, Ordering::Relaxed);
        store.maintain(start());
        settled(&store).await;
        assert!(files(directory.path()).len() == 1 && store.stats().files == 1);
    });
}

#[test]
fn however_many_purges_wait_for_the_disk_files_are_read_meanwhile() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    let (restarted, gates) = runtime().block_on(async {
        put(&store(&zone), "key", &Headers::new(), &[], b"body").await;
        let restarted = store(&zone);
        let (gates, held): (Vec<_>, Vec<_>) = (0..8).map(|_| std::sync::mpsc::channel::<()>()).unzip();
        // Each ends when its gate is dropped.
        held.into_iter()
            .for_each(|gate| restarted.tier.as_ref().expect("a disk").purging.push(move || _ = gate.recv()));
        assert_eq!(found(&restarted, "key", &Headers::new()).await, Some(b"body".to_vec()));
        (restarted, gates)
    });
    drop(gates);
    // After the loop has ended, as in the process: it blocks the thread, so no loop could hand work on meanwhile.
    assert!(restarted.flush(Duration::from_secs(30)));
}

#[test]
fn a_purge_leaves_what_was_asked_for_after_it_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let zone = zone(Some(directory.path()));
    runtime().block_on(async {
        let store = store(&zone);
        listed(&store).await;
        put(&store, "key", &Headers::new(), &[], b"old").await;
        let disk = store.tier.as_ref().expect("a disk").disk.clone();
        let own = key::md5(b"key");
        let before = disk.order(&own) + 1;
        assert!(disk.has_older(&own, before));
        store.invalidate(b"key");
        put(&store, "key", &Headers::new(), &[], b"new").await;
        assert!(disk.path(&own).exists() && !disk.has_older(&own, before));
    });
}
