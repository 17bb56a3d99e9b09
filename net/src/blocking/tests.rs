//! The pool from current-thread runtimes, as workers have them. Tests run beside each other: one that fills a pool, or
//! that needs a place in it at once, has a pool of its own.

use super::*;
use std::pin::Pin;
use std::sync::mpsc;

fn on_runtime<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

#[test]
fn work_runs_on_another_thread_and_gives_its_result() {
    let here = thread::current().id();
    let there = on_runtime(run(|| thread::current().id()));
    assert_ne!(here, there);
}

#[test]
fn more_work_than_places_is_all_done() {
    static POOL: Pool = Pool::new("more", THREADS);
    on_runtime(async {
        let tasks = tokio::task::LocalSet::new();
        let mut handles = Vec::new();
        for number in 0..2 * JOBS {
            handles.push(tasks.spawn_local(POOL.run(move || number)));
        }
        let sum = tasks
            .run_until(async {
                let mut sum = 0;
                for handle in handles {
                    sum += handle.await.expect("no job panics");
                }
                sum
            })
            .await;
        assert_eq!(sum, (0..2 * JOBS).sum::<usize>());
    });
}

#[test]
fn a_panic_in_work_reaches_its_caller_and_leaves_the_pool_whole() {
    let result = catch_unwind(AssertUnwindSafe(|| on_runtime(run(|| panic!("as meant")))));
    assert!(result.is_err());
    assert_eq!(on_runtime(run(|| 5)), 5);
    assert_eq!(on_runtime(run_name(|| 6)), 6);
}

/// Polls `future` once, like a caller that is dropped. It must not be ready.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) {
    std::future::poll_fn(|context| {
        assert!(future.as_mut().poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
}

#[test]
fn work_whose_caller_went_away_is_still_done() {
    static POOL: Pool = Pool::new("away", 1);
    let (go, gone) = mpsc::channel();
    let (sender, receiver) = mpsc::channel();
    on_runtime(async {
        let mut waiting = Box::pin(POOL.run(move || {
            gone.recv().expect("the caller says when it is gone");
            sender.send(1)
        }));
        poll_once(waiting.as_mut()).await;
    });
    go.send(()).expect("the work waits for it");
    assert_eq!(receiver.recv(), Ok(1));
}

#[test]
fn work_whose_caller_went_away_before_it_had_a_place_is_never_begun() {
    static POOL: Pool = Pool::new("full", 1);
    let (sender, receiver) = mpsc::channel();
    on_runtime(async {
        let all = u32::try_from(JOBS).expect("a small number");
        let places = POOL.places.acquire_many(all).await.expect("the semaphore is not closed");
        let mut waiting = Box::pin(POOL.run(move || sender.send(1)));
        poll_once(waiting.as_mut()).await;
        drop(waiting);
        drop(places);
        assert_eq!(POOL.run(|| 2).await, 2, "its place is free for others");
    });
    assert!(receiver.recv().is_err(), "the work was dropped with its caller");
}
