//! The pool from current-thread runtimes, as workers have them.

use super::*;

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
    on_runtime(async {
        let tasks = tokio::task::LocalSet::new();
        let mut handles = Vec::new();
        for number in 0..2 * JOBS {
            handles.push(tasks.spawn_local(run(move || number)));
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

#[test]
fn work_whose_caller_went_away_is_still_done() {
    let (sender, receiver) = std::sync::mpsc::channel();
    on_runtime(async {
        let mut waiting = Box::pin(run(move || sender.send(1)));
        std::future::poll_fn(|context| {
            let _started = waiting.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
        drop(waiting);
    });
    assert_eq!(receiver.recv(), Ok(1));
}
