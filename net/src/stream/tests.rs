//! Streams over pairs of unix sockets and loopback TCP. Encrypted ones are in `tls/tests.rs`.

use super::*;
use crate::clock;
use crate::timer::is_elapsed;
use std::path::PathBuf;
use tokio::net::TcpListener;

pub(crate) fn on_runtime<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

pub(crate) fn unix_pair() -> (Stream, Stream) {
    let (left, right) = UnixStream::pair().expect("a pair");
    (left.into(), right.into())
}

pub(crate) async fn tcp_pair() -> (Stream, Stream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let client = TcpStream::connect(address).await.expect("it listens");
    let (server, peer) = listener.accept().await.expect("queued");
    (Stream::Tcp(client, address), Stream::Tcp(server, peer))
}

#[test]
fn a_plain_stream_is_small() {
    assert!(size_of::<Stream>() <= 80, "{}", size_of::<Stream>());
}

#[test]
fn bytes_are_appended_up_to_the_bound_and_the_end_is_zero() {
    on_runtime(async {
        let (mut left, mut right) = unix_pair();
        let mut deadline = Deadline::new();
        left.write_all(b"abcdef").await.expect("room");
        left.shutdown_write().await.expect("open");
        let mut buffer = Vec::with_capacity(64);
        buffer.extend_from_slice(b">");
        assert_eq!(right.read_into(&mut buffer, 4, &mut deadline).await.expect("bytes"), 4);
        assert_eq!(buffer, b">abcd");
        right.readable(&mut deadline).await.expect("two more");
        assert_eq!(right.read_into(&mut buffer, 64, &mut deadline).await.expect("bytes"), 2);
        assert_eq!(right.read_into(&mut buffer, 64, &mut deadline).await.expect("the end"), 0);
        assert_eq!(buffer, b">abcdef");
    });
}

#[test]
fn an_idle_connection_holds_no_buffer_not_even_just_after_it_was_accepted() {
    on_runtime(async {
        let (mut left, mut right) = tcp_pair().await;
        let mut deadline = Deadline::new();
        buffers::give(buffers::take());
        poll_fn(|context| {
            assert!(right.poll_read_buffer(context).is_pending());
            Poll::Ready(())
        })
        .await;
        let pooled = buffers::take();
        let place = pooled.as_ptr();
        buffers::give(pooled);
        left.write_all(b"request").await.expect("room");
        let buffer = right.read_buffer(&mut deadline).await.expect("bytes");
        assert_eq!((buffer.as_slice(), buffer.as_ptr()), (b"request".as_slice(), place));
        left.shutdown_write().await.expect("open");
        assert!(right.read_buffer(&mut deadline).await.expect("the end").is_empty());
        deadline.set(clock::now());
        assert!(is_elapsed(&left.read_buffer(&mut deadline).await.expect_err("nothing comes")));
    });
}

#[test]
fn reads_and_waits_end_with_the_deadline() {
    on_runtime(async {
        let (mut left, _right) = unix_pair();
        let mut deadline = Deadline::new();
        deadline.set(clock::now());
        assert!(is_elapsed(&left.readable(&mut deadline).await.expect_err("nothing comes")));
        let read = left.read_into(&mut Vec::with_capacity(8), 8, &mut deadline).await;
        assert!(is_elapsed(&read.expect_err("nothing comes")));
    });
}

#[test]
fn a_stream_is_quiet_until_bytes_or_the_end_come() {
    on_runtime(async {
        for close in [false, true] {
            let (mut left, right) = tcp_pair().await;
            assert!(right.is_quiet());
            if close {
                drop(left);
            } else {
                left.write_all(b"late answer").await.expect("room");
            }
            right.readable(&mut Deadline::new()).await.expect("something came");
            assert!(!right.is_quiet());
        }
    });
}

#[test]
fn a_hangup_is_seen_behind_bytes_that_nobody_reads_and_the_bytes_stay() {
    on_runtime(async {
        for (mut left, mut right) in [tcp_pair().await, unix_pair()] {
            left.write_all(b"first").await.expect("room");
            right.readable(&mut Deadline::new()).await.expect("they came");
            let mut hangup = Hangup::of(&right).expect("a descriptor");
            assert!(poll_fn(|context| Poll::Ready(hangup.poll(context).is_pending())).await);
            left.write_all(b", second").await.expect("room");
            drop(left);
            for _ in 0..2 {
                poll_fn(|context| hangup.poll(context)).await;
            }
            let mut all = Vec::new();
            right.read_to_end(&mut all).await.expect("a clean end");
            assert_eq!(all, b"first, second");
        }
    });
}

#[test]
fn a_reset_is_seen_as_one_by_the_other_end() {
    on_runtime(async {
        let (left, mut right) = tcp_pair().await;
        left.reset_on_close();
        drop(left);
        let error = right.read_into(&mut Vec::with_capacity(8), 8, &mut Deadline::new()).await;
        assert_eq!(error.expect_err("no clean end").kind(), io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn both_ends_know_their_addresses() {
    on_runtime(async {
        let (left, right) = tcp_pair().await;
        assert_eq!(left.peer(), right.local().expect("open"));
        assert_eq!(right.peer(), left.local().expect("open"));
        assert!(left.tls().is_none());
        left.set_nodelay(true).expect("TCP has it");
        let (left, _right) = unix_pair();
        assert_eq!(left.peer(), Address::Unix(None::<PathBuf>));
        left.set_nodelay(true).expect("ignored");
        assert!(left.raw_fd() > 2);
    });
}

#[test]
fn a_head_and_a_part_of_a_file_are_sent_whole_through_a_small_socket_buffer() {
    on_runtime(async {
        let (left, mut right) = tcp_pair().await;
        let content: Vec<u8> = (0..6_000_000u32).map(|number| (number >> 3) as u8).collect();
        let file = crate::memory_file::MemoryFile::holding(&content).expect("memory");
        let reader = async {
            let (mut all, mut deadline) = (Vec::new(), Deadline::new());
            while all.len() < 5_000_004 {
                let mut buffer = Vec::with_capacity(64 * 1024);
                right.read_into(&mut buffer, 64 * 1024, &mut deadline).await.expect("bytes");
                all.extend_from_slice(&buffer);
            }
            all
        };
        let writer = async {
            let (mut head, mut at) = (&b"head"[..], 1_000_000);
            while at < 6_000_000 {
                let sent = poll_fn(|context| left.poll_write_with_file(context, head, &file, at..6_000_000));
                let sent = sent.await.expect("it is read");
                let of_head = sent.min(head.len());
                head = &head[of_head..];
                at += (sent - of_head) as u64;
            }
            let beyond = 6_000_000..6_000_001;
            let end = poll_fn(|context| left.poll_write_with_file(context, b"", &file, beyond.clone())).await;
            assert_eq!(end.expect("the file ends"), 0);
        };
        let (all, ()) = tokio::join!(reader, writer);
        assert!(all.starts_with(b"head") && all[4..] == content[1_000_000..]);
    });
}
