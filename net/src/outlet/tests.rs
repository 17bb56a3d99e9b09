//! Writing through pairs of unix sockets and loopback TCP.

use super::*;
use crate::stream::tests::{on_runtime, tcp_pair, unix_pair};
use crate::timer::is_elapsed;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn parts_are_written_whole_through_a_small_socket_buffer() {
    on_runtime(async {
        let (mut left, mut right) = tcp_pair().await;
        let large = vec![b'x'; 8 << 20];
        let reader = async {
            let mut count = 0;
            let mut buffer = Vec::with_capacity(64 * 1024);
            let mut deadline = Deadline::new();
            loop {
                match right.read_into(&mut buffer, 64 * 1024, &mut deadline).await.expect("bytes") {
                    0 => return count,
                    read => count += read,
                }
                buffer.clear();
            }
        };
        let writer = async {
            let mut deadline = Deadline::new();
            let mut parts =
                [IoSlice::new(b""), IoSlice::new(b"head"), IoSlice::new(&large), IoSlice::new(b"tail")];
            Outlet::new(&mut left, &mut deadline, LONG).write_all(&mut parts).await.expect("it is read");
            assert_eq!(deadline.at(), None);
            left.shutdown_write().await.expect("open");
        };
        let (count, ()) = tokio::join!(reader, writer);
        assert_eq!(count, 8 + large.len());
    });
}

#[test]
fn nothing_to_write_is_no_error() {
    on_runtime(async {
        let (mut left, _right) = unix_pair();
        let mut deadline = Deadline::new();
        Outlet::new(&mut left, &mut deadline, LONG).write_all(&mut []).await.expect("nothing");
        Outlet::new(&mut left, &mut deadline, LONG)
            .write_all(&mut [IoSlice::new(b"")])
            .await
            .expect("nothing");
    });
}

#[test]
fn a_reader_that_takes_nothing_times_the_writer_out() {
    on_runtime(async {
        let (mut left, _right) = unix_pair();
        let large = vec![b'x'; 8 << 20];
        let mut deadline = Deadline::new();
        let write = Outlet::new(&mut left, &mut deadline, Duration::from_millis(5))
            .write_all(&mut [IoSlice::new(&large)])
            .await;
        assert!(is_elapsed(&write.expect_err("nobody reads")));
    });
}
