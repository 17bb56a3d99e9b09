//! Readers of a body that arrives.

use super::*;
use crate::policy::{Lifetime, Revalidation};
use millstream_wire::Headers;
use std::time::Duration;

fn progress() -> Arc<Progress> {
    let lifetime = Lifetime {
        fresh_until: 0,
        initial_age: Duration::ZERO,
        stale_while_revalidate: None,
        stale_if_error: None,
        revalidation: Revalidation::Free,
        vary: Default::default(),
        public: false,
        always_validate: false,
    };
    Progress::new(Arc::new(StoredHead::from_stored(200, Headers::new(), None, lifetime, 0)), None)
}

async fn read(mut follower: Follower) -> Result<Vec<u8>, Aborted> {
    let mut all = Vec::new();
    while let Some(piece) = follower.next().await {
        all.extend_from_slice(&piece?);
    }
    Ok(all)
}

#[tokio::test]
async fn every_reader_gets_the_whole_whenever_it_came() {
    let progress = progress();
    let early = tokio::spawn(read(progress.follow().expect("at the beginning")));
    for number in 0..50u8 {
        progress.push(Bytes::from(vec![number; 10]));
        if number % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let late = tokio::spawn(read(progress.follow().expect("all of it is kept")));
    progress.end(None);
    let whole: Vec<u8> = (0..50u8).flat_map(|number| [number; 10]).collect();
    assert_eq!(early.await.expect("no panic"), Ok(whole.clone()));
    assert_eq!(late.await.expect("no panic"), Ok(whole));
}

#[tokio::test]
async fn a_cut_is_seen_by_every_reader() {
    let progress = progress();
    let reader = tokio::spawn(read(progress.follow().expect("at the beginning")));
    progress.push(Bytes::from_static(b"half"));
    tokio::task::yield_now().await;
    progress.abort();
    assert_eq!(reader.await.expect("no panic"), Err(Aborted));
}

#[tokio::test]
async fn a_body_that_is_not_kept_waits_for_its_slowest_reader_and_no_longer() {
    let progress = progress();
    let mut fast = progress.follow().expect("at the beginning");
    let slow = progress.follow().expect("at the beginning");
    for _ in 0..10 {
        progress.push(Bytes::from(vec![0; 1000]));
    }
    for _ in 0..10 {
        assert!(fast.next().await.is_some());
    }
    let waiting = progress.clone();
    let drained = tokio::spawn(async move { waiting.drained(5000, Duration::from_secs(3600)).await });
    tokio::task::yield_now().await;
    assert!(!drained.is_finished());
    drop(slow);
    drained.await.expect("no panic");
    assert!(progress.follow().is_none(), "the beginning is forgotten");
}

#[tokio::test]
async fn a_reader_that_stands_still_is_left_behind_where_another_waits() {
    let progress = progress();
    let mut fast = progress.follow().expect("at the beginning");
    let mut slow = progress.follow().expect("at the beginning");
    for _ in 0..10 {
        progress.push(Bytes::from(vec![0; 1000]));
    }
    for _ in 0..10 {
        assert!(matches!(fast.next().await, Some(Ok(_))));
    }
    progress.drained(5000, Duration::ZERO).await;
    assert_eq!(slow.next().await, Some(Err(Aborted)));
    progress.push(Bytes::from_static(b"more"));
    assert_eq!(fast.next().await, Some(Ok(Bytes::from_static(b"more"))));
}

#[tokio::test]
async fn a_reader_that_is_alone_sets_the_pace_however_slow() {
    let progress = progress();
    let mut slow = progress.follow().expect("at the beginning");
    for _ in 0..10 {
        progress.push(Bytes::from(vec![0; 1000]));
    }
    let waiting = progress.clone();
    let drained = tokio::spawn(async move { waiting.drained(5000, Duration::ZERO).await });
    tokio::task::yield_now().await;
    assert!(!drained.is_finished());
    for _ in 0..10 {
        assert!(matches!(slow.next().await, Some(Ok(_))));
    }
    drained.await.expect("no panic");
}
