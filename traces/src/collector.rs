//! The collector that spans and figures go to: how it is reached, and a message carried over.
//!
//! A connection of gRPC is kept, and made anew when it is gone. Before: `post`; next: `exporter`.

use crate::failure::ExportFailure;
use crate::post::post;
use millstream_conf::model::{OtelExporter, OtelProtocol, PeerAddress};
use millstream_net::address::Address;
use millstream_net::connect::connect;
use millstream_net::grpc::{GrpcCall, GrpcConnection};
use millstream_net::resolve::resolve;
use millstream_net::stream::Stream;
use millstream_net::tls::{TlsConnector, TlsError};
use std::io;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Spans,
    Figures,
}

impl Signal {
    fn method(self) -> &'static str {
        match self {
            Signal::Spans => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Signal::Figures => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        }
    }
}

/// `None` for a collector without TLS. Reads files: only at start and reload.
pub(crate) fn connector(settings: &OtelExporter) -> Result<Option<Arc<TlsConnector>>, TlsError> {
    if !settings.endpoint.secured {
        return Ok(None);
    }
    let connector = TlsConnector::own(settings.trusted.as_deref(), true)?;
    // A gRPC server may refuse who does not say that it speaks HTTP/2 (RFC 9113 §3.2).
    let offer: &[&[u8]] = if settings.endpoint.protocol == OtelProtocol::Grpc { &[b"h2"] } else { &[] };
    Ok(Some(Arc::new(connector.offering(offer))))
}

pub(crate) struct Collector {
    settings: OtelExporter,
    tls: Option<Arc<TlsConnector>>,
    signal: Signal,
    /// Scheme and authority.
    base: String,
    connection: Option<GrpcConnection>,
}

impl Collector {
    pub(crate) fn new(settings: OtelExporter, tls: Option<Arc<TlsConnector>>, signal: Signal) -> Collector {
        let scheme = if settings.endpoint.secured { "https" } else { "http" };
        let base = format!("{scheme}://{}", settings.endpoint.authority);
        Collector { settings, tls, signal, base, connection: None }
    }

    /// Sends a batch. A failure closes the connection: the next batch opens a new one.
    pub(crate) async fn export(&mut self, message: &[u8]) -> Result<(), ExportFailure> {
        if let OtelProtocol::Http(path) = &self.settings.endpoint.protocol {
            let stream = self.connect().await?;
            let authority = self.settings.endpoint.authority.as_str();
            let path = match self.signal {
                Signal::Spans => path.clone(),
                Signal::Figures => self.settings.endpoint.metrics_path().unwrap_or_default(),
            };
            return post(stream, (authority, &path), &self.settings.headers, message).await;
        }
        let kept = match self.connection.take() {
            Some(mut kept) => kept.is_ready().await.then_some(kept),
            None => None,
        };
        let mut connection = match kept {
            Some(kept) => kept,
            None => GrpcConnection::open(self.connect().await?).await?,
        };
        let headers = &self.settings.headers;
        let call = GrpcCall { base: &self.base, path: self.signal.method(), fields: headers, message };
        let reply = connection.call(&call).await?;
        if reply.code != 0 {
            return Err(ExportFailure::Refused(reply.code, reply.reason));
        }
        self.connection = Some(connection);
        Ok(())
    }

    /// Connects to the first address that accepts.
    async fn connect(&self) -> io::Result<Stream> {
        let addresses = match &self.settings.endpoint.address {
            PeerAddress::Tcp(address) => vec![Address::Tcp(*address)],
            PeerAddress::Unix(path) => vec![Address::Unix(Some(path.clone()))],
            PeerAddress::Name(name) => resolve(name).await?.into_iter().map(Address::Tcp).collect(),
        };
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for address in &addresses {
            match connect(address, None).await {
                Ok(stream) => {
                    return match &self.tls {
                        Some(tls) => tls.connect(stream, &self.settings.endpoint.authority).await,
                        None => Ok(stream),
                    };
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}
