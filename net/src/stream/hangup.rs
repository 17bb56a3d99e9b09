//! Tells that the other end has closed while bytes it sent wait unread.
//!
//! A poll for reading tells nothing here: the stream is readable and stays so. Waiting for the close alone is a future
//! that must live from poll to poll, so it owns what it waits on: a second descriptor of the same socket.

use super::Stream;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// A wait for the end of the peer's data, past whatever comes before it.
pub struct Hangup {
    /// `None` once it was seen.
    awaited: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Hangup {
    /// Watches this stream beside its reader. The socket stays open until both are dropped.
    pub fn of(stream: &Stream) -> io::Result<Self> {
        // Only its readiness is asked, which is the same for every kind of socket.
        let socket = std::net::TcpStream::from(stream.as_fd().try_clone_to_owned()?);
        let socket = TcpStream::from_std(socket)?;
        let awaited = async move {
            // The interest with which a close counts and bytes do not; an error is that of a dead runtime.
            _ = socket.ready(Interest::PRIORITY).await;
        };
        Ok(Hangup { awaited: Some(Box::pin(awaited)) })
    }

    /// Ready when the peer has closed its direction or reset the connection. Reads nothing.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(awaited) = &mut self.awaited {
            ready!(awaited.as_mut().poll(context));
            self.awaited = None;
        }
        Poll::Ready(())
    }
}
