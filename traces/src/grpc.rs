//! OTLP/gRPC: one call of `TraceService/Export` after another on a connection of HTTP/2.
//!
//! A message goes as a length-prefixed one, without compression; the call's outcome is in `grpc-status`. Before: `failure`; next:
//! `collector`, which connects.

use crate::failure::ExportFailure;
use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use millstream_net::stream::Stream;

const METHOD: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Bytes of an answer that are read: it says next to nothing.
const MOST_ANSWER: usize = 64 * 1024;

/// A connection to a collector.
pub(crate) struct GrpcConnection(SendRequest<Bytes>);

impl GrpcConnection {
    /// Opens it on a stream.
    pub(crate) async fn open(stream: Stream) -> Result<GrpcConnection, ExportFailure> {
        let (sender, connection) = h2::client::handshake(stream).await?;
        // It ends with the stream; what went wrong with it is told by the call that meets it.
        tokio::task::spawn_local(async move { _ = connection.await });
        Ok(GrpcConnection(sender))
    }

    /// Whether it can take another call. One that a collector has closed cannot.
    pub(crate) async fn is_ready(&mut self) -> bool {
        match self.0.clone().ready().await {
            Ok(sender) => {
                self.0 = sender;
                true
            }
            Err(_) => false,
        }
    }

    /// Carries a message over.
    pub(crate) async fn call(
        &mut self,
        base: &str,
        fields: &[(String, String)],
        message: &[u8],
    ) -> Result<(), ExportFailure> {
        let mut request = Request::post(format!("{base}{METHOD}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in fields {
            request = request.header(name, value);
        }
        let (response, mut body) = self.0.send_request(request.body(())?, false)?;
        body.send_data(framed(message), true)?;
        let (head, mut answer) = response.await?.into_parts();
        if head.status != 200 {
            return Err(ExportFailure::Status(head.status.as_u16()));
        }
        if let Some(outcome) = outcome(&head.headers) {
            return outcome;
        }
        let mut read = 0;
        while let Some(data) = answer.data().await {
            let length = data?.len();
            read += length;
            if read > MOST_ANSWER {
                return Err(ExportFailure::Answer);
            }
            answer.flow_control().release_capacity(length)?;
        }
        let trailers = answer.trailers().await?;
        trailers.as_ref().and_then(outcome).unwrap_or(Err(ExportFailure::Answer))
    }
}

/// A message behind its prefix: not compressed, and its length.
fn framed(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(5 + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put_slice(message);
    framed.freeze()
}

/// What `grpc-status` says, where it stands.
fn outcome(fields: &HeaderMap) -> Option<Result<(), ExportFailure>> {
    let code = fields.get("grpc-status")?;
    let Some(code) = code.to_str().ok().and_then(|code| code.parse::<u32>().ok()) else {
        return Some(Err(ExportFailure::Answer));
    };
    if code == 0 {
        return Some(Ok(()));
    }
    let message =
        fields.get("grpc-message").map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
    Some(Err(ExportFailure::Refused(code, message.unwrap_or_default())))
}
