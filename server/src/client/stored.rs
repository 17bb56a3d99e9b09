//! Sending a stored body piece by piece: by the kernel out of its file where that can be, else through memory.
//!
//! The kernel sends files on plain connections and as they are; TLS and compression need the bytes. Either way what is
//! held has a bound, and reading is done off the loop. Next: `sending`, which writes.

use super::{Client, ClientFailure};
use crate::request::Request;
use millstream_cache::{BodyReader, Piece};

#[derive(Debug)]
pub enum Unsent {
    Client(ClientFailure),
    /// The body cannot be read: the response must be cut and the entry dropped.
    Body,
}

pub async fn send(client: &mut Client, request: &mut Request, reader: &mut BodyReader) -> Result<(), Unsent> {
    let takes_files = client.takes_files();
    loop {
        client.room(request).await.map_err(Unsent::Client)?;
        let piece = match takes_files {
            true => reader.next_to_send().await,
            false => reader.next().await.map(|bytes| bytes.map(Piece::Bytes)),
        };
        let sent = match piece {
            None => return Ok(()),
            Some(Err(_)) => return Err(Unsent::Body),
            Some(Ok(Piece::Bytes(bytes))) => client.send(request, bytes).await,
            Some(Ok(Piece::Span(span))) => client.send_file(request, &span, span.part()).await,
        };
        sent.map_err(Unsent::Client)?;
    }
}
