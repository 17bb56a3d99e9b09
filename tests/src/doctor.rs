//! A server of gRPC's health protocol: tonic's, whose services a test puts into their states, on a thread of its own.
//!
//! One may be without the protocol, as servers are that only have services of their own. Next: `collector`, another server of gRPC.

use crate::ports;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

/// It ends with the value.
pub struct Doctor {
    port: u16,
    reporter: HealthReporter,
    connections: Arc<AtomicUsize>,
    runtime: Runtime,
}

impl Doctor {
    /// SERVING as a whole, without services.
    pub fn start() -> Doctor {
        Doctor::serve(true, None)
    }

    pub fn secured(certificate: &str, key: &str) -> Doctor {
        Doctor::serve(true, Some(Identity::from_pem(certificate, key)))
    }

    pub fn without_protocol() -> Doctor {
        Doctor::serve(false, None)
    }

    fn serve(has_protocol: bool, identity: Option<Identity>) -> Doctor {
        let port = ports::free();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let (reporter, health) = tonic_health::server::health_reporter();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let guard = runtime.enter();
        let incoming = TcpIncoming::bind(SocketAddr::from(([127, 0, 0, 1], port))).expect("a free port");
        drop(guard);
        runtime.spawn(async move {
            let mut server = Server::builder();
            if let Some(identity) = identity {
                let tls = ServerTlsConfig::new().identity(identity);
                server = server.tls_config(tls).expect("a certificate and its key");
            }
            let routes = if has_protocol {
                tonic::service::Routes::new(health)
            } else {
                tonic::service::Routes::default()
            };
            let incoming = tonic::codegen::tokio_stream::StreamExt::map(incoming, move |one| {
                counted.fetch_add(1, Ordering::SeqCst);
                one
            });
            _ = server.add_routes(routes).serve_with_incoming(incoming).await;
        });
        Doctor { port, reporter, connections, runtime }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// An empty service is the server as a whole.
    pub fn put(&self, service: &str, serves: bool) {
        let state = if serves { ServingStatus::Serving } else { ServingStatus::NotServing };
        self.runtime.block_on(self.reporter.set_service_status(service, state));
    }
}
