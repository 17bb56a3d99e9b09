//! What is held is counted for as long as it is there, and a reader's part of it can be moved.

use super::*;

fn body(length: usize) -> Bytes {
    (0..length).map(|at| (at % 251) as u8).collect::<Vec<u8>>().into()
}

fn loans() -> (Arc<Loans>, tempfile::TempDir) {
    let (loans, folder) = (Arc::new(Loans::default()), tempfile::tempdir().expect("a directory"));
    loans.move_to(folder.path());
    (loans, folder)
}

#[test]
fn bytes_are_counted_while_they_are_there_and_no_stored_entry_pays_for_them() {
    let (loans, _folder) = loans();
    let cost = allocated(100_000);
    let held = loans.hold(body(100_000));
    let handle = held.clone();
    held.enter();
    assert_eq!(loans.held(), 0);
    held.leave();
    drop(held);
    assert_eq!(loans.held(), cost, "a handle has it");
    drop(handle);
    assert_eq!(loans.held(), 0);
    assert!(loans.hold(body(10)).lend().is_none(), "a small one is the reader's own");
}

#[tokio::test]
async fn what_slow_readers_hold_goes_to_a_file_and_reads_the_same() {
    let (loans, _folder) = loans();
    let length = 1_000_000;
    let mut readers = Vec::new();
    for _ in 0..10 {
        let held = loans.hold(body(length));
        held.enter();
        readers.push(held.lend().expect("a large one"));
        held.leave();
    }
    assert!(loans.is_pressed());
    // In a task of its own the work is done off the loop; here it is done at once.
    let worker = loans.clone();
    std::thread::spawn(move || worker.relieve()).join().expect("no panic");
    assert_eq!(loans.held(), 0, "their memory is free");
    for reader in &readers {
        assert!(matches!(reader.part(0..10), Whereabouts::File(..)));
        let mut all = Vec::new();
        while all.len() < length {
            all.extend_from_slice(&reader.read(all.len() as u64..u64::MAX).await.expect("it is there"));
        }
        assert!(all == body(length));
    }
}

#[test]
fn what_is_stored_again_or_read_by_nobody_is_not_moved() {
    let (loans, _folder) = loans();
    let stored = loans.hold(body(8_000_000));
    stored.enter();
    let reader = stored.lend().expect("a large one");
    let unread = loans.hold(body(8_000_000));
    unread.enter();
    drop(unread.lend());
    unread.leave();
    loans.relieve();
    assert!(loans.is_pressed() && matches!(reader.part(0..10), Whereabouts::Memory(_)));
}
