//! A connection that fails when a reply is too long: what the engine sends is not this program's alone to write.

use millstream_net::Stream;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// In bytes: more than a batch of the longest orders, and than the beats of all nodes.
const LONGEST: usize = 32 * 1024 * 1024;

/// What may still be received until the next call.
#[derive(Debug, Clone)]
pub(crate) struct Allowance(Arc<AtomicUsize>);

impl Allowance {
    pub(crate) fn renew(&self) {
        self.0.store(LONGEST, Ordering::Relaxed);
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

pub(crate) struct Metered {
    stream: Stream,
    left: Allowance,
}

impl Metered {
    pub(crate) fn new(stream: Stream) -> (Metered, Allowance) {
        let left = Allowance(Arc::new(AtomicUsize::new(LONGEST)));
        (Metered { stream, left: left.clone() }, left)
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let count = buffer.filled().len() - before;
        let left = self.left.0.load(Ordering::Relaxed);
        self.left.0.store(left.saturating_sub(count), Ordering::Relaxed);
        Poll::Ready(match left < count {
            true => Err(io::Error::new(io::ErrorKind::InvalidData, "a reply of the engine is too long")),
            false => Ok(()),
        })
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
