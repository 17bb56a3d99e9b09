//! A process with threads, such as a test, cannot be detached; what can be is shown by the scenarios of the
//! binary.

use super::*;

#[test]
fn a_process_with_threads_is_left_alone() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || receiver.recv().is_err());
    assert_eq!(detach().expect_err("a thread runs").kind(), io::ErrorKind::Unsupported);
    drop(sender);
    assert!(thread.join().expect("it ends"));
}
