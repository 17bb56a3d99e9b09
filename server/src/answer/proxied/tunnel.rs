//! After 101: bytes both ways until both sides have ended, or nothing moved for `proxy_read_timeout`.
//!
//! The bytes are nobody's business here (RFC 9110 §7.8). A side without bytes holds no buffer.

use super::answer_head::visible;
use super::{Passing, Proxied};
use crate::client::ClientFailure;
use millstream_net::stream::Stream;
use millstream_net::timer::Deadline;
use millstream_net::{buffers, clock};
use millstream_upstream::{Connection, Turn};
use millstream_wire::FieldId;
use millstream_wire::h1::encode;
use millstream_wire::h1::head::ResponseHead;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;

/// One direction.
struct Way {
    buffer: Vec<u8>,
    written: usize,
    moved: u64,
    /// The source has ended.
    ended: bool,
    /// The end was passed on.
    shut: bool,
}

impl<'a> Passing<'a> {
    /// Passes the 101 on and joins the two connections.
    pub(super) async fn tunnel(
        &mut self,
        mut connection: Box<Connection>,
        turn: Turn<'a>,
        head: &ResponseHead,
    ) -> Proxied {
        let Some(client) = self.client.take() else { return Proxied::Failed(502) };
        let mut down = Way::new(buffers::take());
        let fields = head.view(connection.head_bytes());
        encode::status_line(&mut down.buffer, 101);
        for field in visible(self.proxy, fields) {
            encode::field(&mut down.buffer, field.name(fields.bytes()), field.value.of(fields.bytes()));
        }
        for value in fields.all(FieldId::Upgrade) {
            encode::field(&mut down.buffer, b"Upgrade", value);
        }
        down.buffer.extend_from_slice(b"Connection: upgrade\r\n\r\n");
        let head_length = down.buffer.len() as u64;
        down.buffer.extend_from_slice(&connection.take_read_ahead());
        let mut up = Way::new(client.take_read_ahead());
        self.request.sent.status = 101;
        self.request.keep_alive = false;

        let timeout = self.proxy.read_timeout;
        let mut deadline = Deadline::new();
        deadline.set(clock::now() + timeout);
        let (near, far) = (client.stream(), connection.stream_mut());
        let outcome = poll_fn(|context| {
            let before = (down.moved, up.moved);
            // The order makes what one direction read go out in the same round.
            let down_done = down.poll(context, far, near);
            let up_done = up.poll(context, near, far);
            if (down.moved, up.moved) != before {
                deadline.set(clock::now() + timeout);
            }
            match (down_done, up_done) {
                (Poll::Ready(Err(_)), _) => Poll::Ready(Err(ClientFailure::Gone)),
                (_, Poll::Ready(Err(_))) => Poll::Ready(Ok(())),
                (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(Ok(())),
                _ => deadline.poll(context).map(|()| Ok(())),
            }
        })
        .await;
        self.request.sent.bytes += down.moved;
        self.request.sent.body_bytes += down.moved.saturating_sub(head_length);
        self.request.sent.complete = outcome.is_ok();
        let length = down.moved.saturating_sub(head_length);
        self.note_end(&connection, length, clock::now());
        turn.succeeded();
        Proxied::Done
    }
}

impl Way {
    fn new(buffer: Vec<u8>) -> Way {
        Way { buffer, written: 0, moved: 0, ended: false, shut: false }
    }

    /// Moves what can be moved; ready at the end of this direction.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        from: &mut Stream,
        to: &mut Stream,
    ) -> Poll<io::Result<()>> {
        loop {
            if self.written < self.buffer.len() {
                match Pin::new(&mut *to).poll_write(context, &self.buffer[self.written..]) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(count)) => {
                        self.written += count;
                        self.moved += count as u64;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
                continue;
            }
            self.buffer.clear();
            self.written = 0;
            if self.ended {
                self.rest();
                if !self.shut {
                    match Pin::new(&mut *to).poll_shutdown(context) {
                        Poll::Ready(_) => self.shut = true,
                        Poll::Pending => return Poll::Pending,
                    }
                }
                return Poll::Ready(Ok(()));
            }
            if self.buffer.capacity() == 0 {
                self.buffer = buffers::take();
            }
            match from.poll_read_into(context, &mut self.buffer, usize::MAX) {
                // A reset ends a direction as a close does.
                Poll::Ready(Ok(0) | Err(_)) => self.ended = true,
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => {
                    self.rest();
                    // A TLS stream may hold records back until it is flushed.
                    return match Pin::new(&mut *to).poll_flush(context) {
                        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                        _ => Poll::Pending,
                    };
                }
            }
        }
    }

    fn rest(&mut self) {
        if self.buffer.is_empty() && self.buffer.capacity() > 0 {
            buffers::give(std::mem::take(&mut self.buffer));
        }
    }
}
