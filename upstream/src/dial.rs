//! How a connection to a peer is made: from which address of ours, and by what its TLS goes.
//!
//! An idle connection is only taken for the same of both. Next: `pool`, which compares; `exchange/connection`, which connects.

use crate::error::ExchangeError;
use crate::secured::Secured;
use millstream_net::address::Address;
use millstream_net::clock;
use millstream_net::connect::{Local, connect};
use millstream_net::outlet::Outlet;
use millstream_net::stream::Stream;
use millstream_net::timer::{Deadline, is_elapsed, with_deadline};
use millstream_net::tls::PlainHttp;
use std::io::IoSlice;
use std::rc::Rc;
use std::time::Duration;

/// How a connection is made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dial {
    pub secured: Option<Secured>,
    pub local: Option<Rc<Local>>,
    /// Sent before all else, TLS included: a header of the PROXY protocol.
    pub announced: Option<Rc<[u8]>>,
    /// Then several exchanges share one connection.
    pub http2: bool,
}

impl Dial {
    /// Includes the TLS handshake, if any. `timeout` applies to connecting and to the handshake; the deadline
    /// object is the caller's, for later use.
    pub async fn reach(
        &self,
        address: &Address,
        timeout: Duration,
        deadline: &mut Deadline,
    ) -> Result<Stream, ExchangeError> {
        let ready = match &self.secured {
            Some(secured) => Some((
                secured.ready().await.map_err(|error| ExchangeError::NoCertificate(error.to_string()))?,
                &*secured.name,
            )),
            None => None,
        };
        deadline.set(clock::now() + timeout);
        let mut stream = match with_deadline(deadline, connect(address, self.local.as_deref())).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(ExchangeError::Connect(error)),
            Err(_) => return Err(ExchangeError::ConnectTimeout),
        };
        if let Some(header) = &self.announced {
            let outlet = Outlet::new(&mut stream, deadline, timeout);
            outlet.write_all(&mut [IoSlice::new(header)]).await.map_err(|error| {
                if is_elapsed(&error) { ExchangeError::ConnectTimeout } else { ExchangeError::Connect(error) }
            })?;
        }
        let Some((connector, name)) = ready else { return Ok(stream) };
        deadline.set(clock::now() + timeout);
        let handshake = Box::pin(connector.connect(stream, name));
        match with_deadline(deadline, handshake).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) if error.get_ref().is_some_and(|within| within.is::<PlainHttp>()) => {
                Err(ExchangeError::PlainHttp(error))
            }
            Ok(Err(error)) => Err(ExchangeError::Handshake(error)),
            Err(_) => Err(ExchangeError::ConnectTimeout),
        }
    }
}
