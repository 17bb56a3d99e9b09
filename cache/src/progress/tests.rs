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
async fn a_body_that_is_kept_nowhere_waits_for_its_slowest_reader_until_that_has_read_or_leaves() {
    for leaves in [true, false] {
        let progress = progress();
        let mut fast = progress.follow().expect("at the beginning");
        let mut slow = progress.follow().expect("at the beginning");
        for _ in 0..10 {
            progress.push(Bytes::from(vec![0; 1000]));
        }
        for _ in 0..10 {
            assert!(matches!(fast.next().await, Some(Ok(_))));
        }
        let waiting = progress.clone();
        let drained = tokio::spawn(async move { waiting.drained(5000).await });
        tokio::task::yield_now().await;
        assert!(!drained.is_finished());
        if leaves {
            drop(slow);
        } else {
            for _ in 0..10 {
                assert!(matches!(slow.next().await, Some(Ok(_))), "nobody who reads is cut");
            }
        }
        drained.await.expect("no panic");
        assert!(progress.follow().is_none(), "the beginning is forgotten");
    }
}

#[tokio::test]
async fn a_reader_goes_on_in_files_where_it_is_behind() {
    let progress = progress();
    let mut slow = progress.follow().expect("at the beginning");
    let file = Arc::new(tempfile::tempfile().expect("a file"));
    let whole: Vec<u8> = (0..200_000u32).map(|at| (at % 251) as u8).collect();
    for piece in whole.chunks(1000) {
        progress.push(Bytes::copy_from_slice(piece));
        if progress.trim() > 20_000 {
            let (from, pieces) = progress.unwritten();
            let bytes = pieces.concat();
            std::os::unix::fs::FileExt::write_all_at(&*file, &bytes, from).expect("written");
            progress.written(&file, from, (from, from + bytes.len() as u64));
        }
    }
    assert!(progress.trim() <= 20_000 + 1064);
    assert_eq!(slow.next().await.map(|piece| piece.map(|piece| piece.len())), Some(Ok(32 * 1024)));
    progress.end(None);
    let rest = read(slow).await.expect("whole");
    assert!(rest[..] == whole[32 * 1024..]);
}

#[test]
fn what_was_read_and_is_read_by_nobody_any_more_is_told_at_once() {
    use counting::Woken;
    let progress = progress();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut context = Context::from_waker(&waker);
    assert!(progress.poll_left(&mut context).is_pending(), "nobody has come yet");
    let reader = progress.follow().expect("at the beginning");
    assert!(progress.poll_left(&mut context).is_pending());
    drop(reader);
    assert!(woken.count() == 1 && progress.poll_left(&mut context).is_ready());
    let _another = progress.follow().expect("at the beginning");
    assert!(progress.poll_left(&mut context).is_pending());
}

mod counting {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    pub(super) struct Woken(AtomicUsize);

    impl Woken {
        pub(super) fn count(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}
