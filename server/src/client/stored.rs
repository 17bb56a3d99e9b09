//! Sending a stored body piece by piece: by the kernel out of its file where that can be, else through memory.
//!
//! The kernel sends files on plain connections and as they are; TLS and compression need the bytes. Either way what is
//! held has a bound, and reading is done off the loop. Next: `sending`, which writes.

use super::{Client, ClientFailure};
use crate::request::Request;
use millstream_cache::{BodyReader, Piece};

/// Why a stored body did not go out whole.
#[derive(Debug)]
pub enum Unsent {
    /// The client.
    Client(ClientFailure),
    /// The body cannot be read as it was written: the answer must be cut, and the entry is of no use.
    Body,
}

impl Client {
    /// Sends what a reader gives, after the head and in its framing. Does not end the body.
    pub async fn send_stored(
        &mut self,
        request: &mut Request,
        reader: &mut BodyReader,
    ) -> Result<(), Unsent> {
        let takes_files = self.takes_files();
        loop {
            self.room(request).await.map_err(Unsent::Client)?;
            let piece = match takes_files {
                true => reader.next_to_send().await,
                false => reader.next().await.map(|bytes| bytes.map(Piece::Bytes)),
            };
            let sent = match piece {
                None => return Ok(()),
                Some(Err(_)) => return Err(Unsent::Body),
                Some(Ok(Piece::Bytes(bytes))) => self.send(request, bytes).await,
                Some(Ok(Piece::Span(span))) => self.send_file(request, &span, span.part()).await,
            };
            sent.map_err(Unsent::Client)?;
        }
    }
}
