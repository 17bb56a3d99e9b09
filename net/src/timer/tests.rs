//! Deadlines against the real clock, a few milliseconds each; no test waits for anything but a deadline.

use super::*;
use std::future::{pending, ready};

fn on_runtime<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

#[test]
fn a_deadline_is_small_and_costs_no_allocation_while_unset() {
    assert!(size_of::<Deadline>() <= 48);
    on_runtime(async {
        let mut deadline = Deadline::new();
        assert_eq!(with_deadline(&mut deadline, ready(7)).await, Ok(7));
        assert!(deadline.armed.is_none());
    });
}

#[test]
fn a_past_deadline_elapses_but_a_ready_future_goes_first() {
    on_runtime(async {
        let mut deadline = Deadline::new();
        deadline.set(clock::now());
        assert_eq!(with_deadline(&mut deadline, ready(1)).await, Ok(1));
        assert_eq!(with_deadline(&mut deadline, pending::<()>()).await, Err(Elapsed));
        // It stays passed.
        assert_eq!(with_deadline(&mut deadline, pending::<()>()).await, Err(Elapsed));
    });
}

#[test]
fn a_deadline_moved_later_fires_at_the_later_moment_only() {
    on_runtime(async {
        let start = clock::now();
        let mut deadline = Deadline::new();
        deadline.set(start + Duration::from_millis(5));
        poll_fn(|context| {
            assert!(deadline.poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        deadline.set(start + Duration::from_millis(30));
        deadline.passed().await;
        assert!(clock::now() >= start + Duration::from_millis(30));
    });
}

#[test]
fn a_deadline_moved_earlier_fires_at_the_earlier_moment() {
    on_runtime(async {
        let start = clock::now();
        let mut deadline = Deadline::new();
        deadline.set(start + Duration::from_secs(600));
        poll_fn(|context| {
            assert!(deadline.poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        deadline.set(start + Duration::from_millis(5));
        deadline.passed().await;
        assert!(clock::now() < start + Duration::from_secs(300));
    });
}

#[test]
fn a_cleared_deadline_never_passes() {
    on_runtime(async {
        let mut deadline = Deadline::new();
        deadline.set(clock::now());
        deadline.passed().await;
        deadline.clear();
        poll_fn(|context| {
            assert!(deadline.poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        deadline.release();
        assert_eq!(deadline.at(), None);
    });
}

#[test]
fn our_timeout_is_told_from_the_kernels() {
    assert!(is_elapsed(&Elapsed.into()));
    assert!(!is_elapsed(&io::Error::from_raw_os_error(libc::ETIMEDOUT)));
}
