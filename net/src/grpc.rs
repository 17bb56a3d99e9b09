//! gRPC as its client: one unary call after another on a connection of HTTP/2, far from requests.
//!
//! A message goes as a length-prefixed one, without compression; how the call went is in `grpc-status`. No timeout of its own: the caller
//! holds the deadline and drops the future. Before: `stream`, which it is spoken over; next: who calls (`millstream-traces`'s
//! `collector`, `millstream-server`'s `exchange/probe/grpc`).

use crate::clock;
use crate::stream::Stream;
use crate::timer::within;
use bytes::{BufMut, Bytes, BytesMut};
use h2::Reason;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use std::fmt;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Bytes of a response's body that are read.
const MOST_BODY: usize = 64 * 1024;
const MOST_FIELDS: u32 = 16 * 1024;
/// Characters of `grpc-message` that are kept.
const MOST_MESSAGE: usize = 256;
/// Before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// How long a dropped connection may take to close.
const GOODBYE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct GrpcConnection {
    sender: SendRequest<Bytes>,
    opened: Instant,
    _open: oneshot::Sender<()>,
}

#[derive(Debug, Clone, Copy)]
pub struct GrpcCall<'a> {
    /// Scheme and authority, as in `http://127.0.0.1:4317`.
    pub base: &'a str,
    pub path: &'a str,
    pub fields: &'a [(String, String)],
    pub message: &'a [u8],
}

#[derive(Debug)]
pub struct GrpcReply {
    pub code: u32,
    pub reason: String,
    body: Vec<u8>,
}

#[derive(Debug)]
pub enum GrpcError {
    Http2(h2::Error),
    Request(http::Error),
    /// The HTTP status was not 200.
    Status(u16),
    /// Missing, or no number.
    NoStatus,
    TooLarge,
}

impl fmt::Display for GrpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GrpcError::Http2(error) => error.fmt(f),
            GrpcError::Request(error) => error.fmt(f),
            GrpcError::Status(status) => write!(f, "the response has status {status}"),
            GrpcError::NoStatus => f.write_str("the response has no grpc-status"),
            GrpcError::TooLarge => f.write_str("the response is too large"),
        }
    }
}

impl From<h2::Error> for GrpcError {
    fn from(error: h2::Error) -> Self {
        GrpcError::Http2(error)
    }
}

impl From<http::Error> for GrpcError {
    fn from(error: http::Error) -> Self {
        GrpcError::Request(error)
    }
}

impl GrpcError {
    /// Whether a kept connection may be to blame: its server closed it, or did not accept the call.
    pub fn is_stale(&self) -> bool {
        match self {
            GrpcError::Http2(error) => {
                error.is_io() || error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM)
            }
            _ => false,
        }
    }
}

impl GrpcConnection {
    /// With prior knowledge, or as ALPN has agreed (RFC 9113 §3). Call it in a local set or runtime.
    pub async fn open(stream: Stream) -> Result<GrpcConnection, GrpcError> {
        let mut settings = h2::client::Builder::new();
        settings.enable_push(false).max_header_list_size(MOST_FIELDS);
        let (sender, connection) = settings.handshake(stream).await?;
        let (open, closed) = oneshot::channel();
        // What goes wrong with it is told by the call that meets it.
        tokio::task::spawn_local(async move {
            let mut connection = pin!(connection);
            tokio::select! {
                _ = &mut connection => return,
                _ = closed => {}
            }
            _ = within(GOODBYE, connection).await;
        });
        Ok(GrpcConnection { sender, opened: clock::now(), _open: open })
    }

    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// A connection that the server has closed is not.
    pub async fn is_ready(&mut self) -> bool {
        match self.sender.clone().ready().await {
            Ok(sender) => {
                self.sender = sender;
                true
            }
            Err(_) => false,
        }
    }

    pub async fn call(&mut self, call: &GrpcCall<'_>) -> Result<GrpcReply, GrpcError> {
        let mut request = Request::post(format!("{}{}", call.base, call.path))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in call.fields {
            request = request.header(name, value);
        }
        let (response, mut out) = self.sender.send_request(request.body(())?, false)?;
        out.send_data(framed(call.message), true)?;
        let (head, mut answer) = response.await?.into_parts();
        if head.status != 200 {
            return Err(GrpcError::Status(head.status.as_u16()));
        }
        // A server with nothing to say answers with trailers alone, which are the head.
        if head.headers.contains_key("grpc-status") {
            return reply(&head.headers, Vec::new());
        }
        let mut body = Vec::new();
        while let Some(data) = answer.data().await {
            let data = data?;
            if body.len() + data.len() > MOST_BODY {
                return Err(GrpcError::TooLarge);
            }
            body.extend_from_slice(&data);
            answer.flow_control().release_capacity(data.len())?;
        }
        let trailers = answer.trailers().await?;
        reply(&trailers.unwrap_or_default(), body)
    }
}

impl GrpcReply {
    /// `None` if it is missing, incomplete, or compressed, which was not requested.
    pub fn message(&self) -> Option<&[u8]> {
        let (prefix, rest) = self.body.split_first_chunk::<PREFIX>()?;
        let [0, length @ ..] = prefix else { return None };
        rest.get(..u32::from_be_bytes(*length) as usize)
    }
}

fn framed(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(PREFIX + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put_slice(message);
    framed.freeze()
}

fn reply(fields: &HeaderMap, body: Vec<u8>) -> Result<GrpcReply, GrpcError> {
    let code = fields.get("grpc-status").and_then(|code| code.to_str().ok()?.parse().ok());
    let code = code.ok_or(GrpcError::NoStatus)?;
    let reason = fields.get("grpc-message").map(|text| String::from_utf8_lossy(text.as_bytes()));
    let reason = reason.unwrap_or_default().chars().take(MOST_MESSAGE).collect();
    Ok(GrpcReply { code, reason, body })
}

#[cfg(test)]
mod tests;
