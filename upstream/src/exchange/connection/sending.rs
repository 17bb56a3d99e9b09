//! The request on its way out: a head, and behind it the body, framed by the speaker.

use super::Connection;
use crate::error::ExchangeError;
use millstream_net::outlet::Outlet;
use millstream_net::timer::is_elapsed;
use std::io::IoSlice;
use std::task::{Context, Poll};
use std::time::Duration;

impl Connection {
    /// Sends a head, as it is, and behind it a piece of the request's body, framed; each may be empty. `last` ends the body.
    ///
    /// # Errors
    /// [`ExchangeError::Write`], and [`ExchangeError::SendTimeout`] where nothing could be written for `timeout`.
    pub async fn send(
        &mut self,
        mut head: &[u8],
        mut piece: &[u8],
        last: bool,
        timeout: Duration,
    ) -> Result<(), ExchangeError> {
        let mut before = Vec::new();
        loop {
            let (framed, rest) = piece.split_at(piece.len().min(self.speaker.most()));
            before.clear();
            let behind = self.speaker.frame(framed.len(), last && rest.is_empty(), &mut before);
            let mut parts = [IoSlice::new(&[]); 4];
            let filled = [head, &before, framed, behind].into_iter().filter(|part| !part.is_empty());
            let count = parts.iter_mut().zip(filled).map(|(place, part)| *place = IoSlice::new(part)).count();
            self.write_all(&mut parts[..count], timeout).await?;
            if rest.is_empty() {
                return Ok(());
            }
            (head, piece) = (&[], rest);
        }
    }

    /// Sends what the socket takes at once of bytes that need no framing. The error is how many it took; whoever is told
    /// goes on with [`Connection::send`], which meets what is wrong again.
    pub fn send_at_once(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
        timeout: Duration,
    ) -> Result<(), usize> {
        let mut outlet = Outlet::new(&mut self.stream, &mut self.deadline, timeout);
        let Poll::Ready(Ok(sent)) = outlet.poll_write(context, bytes) else { return Err(0) };
        let flushed = sent == bytes.len() && matches!(outlet.poll_flush(context), Poll::Ready(Ok(())));
        self.written += sent as u64;
        if flushed { Ok(()) } else { Err(sent) }
    }

    /// Writes all of some pieces, by one call where the kernel takes them.
    async fn write_all(
        &mut self,
        pieces: &mut [IoSlice<'_>],
        timeout: Duration,
    ) -> Result<(), ExchangeError> {
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        match Outlet::new(&mut self.stream, &mut self.deadline, timeout).write_all(pieces).await {
            Ok(()) => {
                self.written += total as u64;
                Ok(())
            }
            Err(error) if is_elapsed(&error) => Err(ExchangeError::SendTimeout),
            Err(error) => Err(ExchangeError::Write(error)),
        }
    }

    /// Notes that the request, body included, is out. A connection where it is not is never used again.
    pub fn sent_whole(&mut self) {
        self.sent = true;
    }
}
