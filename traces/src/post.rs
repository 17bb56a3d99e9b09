//! OTLP/HTTP: one POST of protobuf per batch, over a connection of its own.
//!
//! An export every few seconds is worth no kept connection. Before: `failure`; next: `collector`, which connects.

use crate::failure::ExportFailure;
use millstream_net::stream::Stream;
use millstream_wire::h1::head::{HeadLimits, Progress, ResponseHead};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MOST_HEAD: usize = 16 * 1024;

/// Sends a message. Only the status of the response counts.
pub(crate) async fn post(
    mut stream: Stream,
    (authority, path): (&str, &str),
    fields: &[(String, String)],
    message: &[u8],
) -> Result<(), ExportFailure> {
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\nConnection: close\r\n",
        message.len()
    );
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(message).await?;
    stream.flush().await?;
    match status(&mut stream).await? {
        200..300 => Ok(()),
        status => Err(ExportFailure::Status(status)),
    }
}

/// Skips interim responses.
async fn status(stream: &mut Stream) -> Result<u16, ExportFailure> {
    let mut bytes = Vec::with_capacity(1024);
    loop {
        let mut head = ResponseHead::default();
        match head.parse(&bytes, &HeadLimits::default()) {
            Err(_) => return Err(ExportFailure::Answer),
            Ok(Progress::Complete) if head.is_interim() => {
                bytes.drain(..head.length);
                continue;
            }
            Ok(Progress::Complete) => return Ok(head.status),
            Ok(Progress::Partial) => {}
        }
        if bytes.len() > MOST_HEAD || stream.read_buf(&mut bytes).await? == 0 {
            return Err(ExportFailure::Answer);
        }
    }
}
