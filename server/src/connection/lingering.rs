//! Closing so that the client can still read its answer.
//!
//! Closing a socket with unread bytes in it makes the kernel send a reset, which may overtake the answer. So what the
//! client still sends is read and dropped for a while (`lingering_*`; RFC 9112 §9.6).

use millstream_conf::model::{Lingering, LingeringClose};
use millstream_net::stream::Stream;
use millstream_net::timer::{Deadline, with_deadline};
use millstream_net::{buffers, clock};

/// For a client that was too slow or has left: does not wait for TLS.
pub(super) async fn close_now(stream: &mut Stream) {
    let mut deadline = Deadline::new();
    deadline.set(clock::now());
    _ = with_deadline(&mut deadline, stream.shutdown_write()).await;
}

pub(super) async fn close(stream: &mut Stream, settings: &Lingering, unread: bool) {
    let lingers = match settings.close {
        LingeringClose::Off => false,
        LingeringClose::On => unread,
        LingeringClose::Always => true,
    };
    let mut deadline = Deadline::new();
    deadline.set(clock::now() + settings.timeout);
    if !matches!(with_deadline(&mut deadline, stream.shutdown_write()).await, Ok(Ok(()))) || !lingers {
        return;
    }
    let until = clock::now() + settings.time;
    while clock::now() < until {
        deadline.set((clock::now() + settings.timeout).min(until));
        match stream.read_buffer(&mut deadline).await {
            Ok(dropped) if !dropped.is_empty() => buffers::give(dropped),
            _ => break,
        }
    }
}
