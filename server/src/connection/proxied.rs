//! The header of the PROXY protocol before the first byte of a connection, where its listener wants one.
//!
//! Before: `millstream-net`'s `proxy_protocol`, which reads it; next: `h1`.

use crate::generation::Generation;
use crate::worker::{Awaits, ConnectionSlot};
use millstream_conf::model::Level;
use millstream_net::proxy_protocol::{self, HeaderError, Proxied};
use millstream_net::stream::Stream;
use millstream_net::timer::Deadline;
use millstream_net::{Address, clock};
use millstream_telemetry::about::About;

/// `None`: close the connection; `Some(None)`: the header names no client.
pub(super) async fn read(
    stream: &mut Stream,
    generation: &Generation,
    listener: usize,
    place: &ConnectionSlot,
    remote: &Address,
) -> Option<Option<Box<Proxied>>> {
    let now = clock::now();
    let id = generation.http().listeners[listener].default_server;
    let mut deadline = Deadline::new();
    deadline.set(now + generation.http().server(id).settings.client_header.timeout);
    let header = Box::pin(proxy_protocol::read(stream, &mut deadline));
    match place.unless_shed(Awaits::Head(now), header).await? {
        Ok(said) => Some(said.map(Box::new)),
        Err(error) => {
            let level = if matches!(error, HeaderError::Broken(_)) { Level::Error } else { Level::Info };
            let what = format_args!("{error} while reading PROXY protocol");
            generation.shared.logs.main.tell(level, what, || About::client(remote));
            None
        }
    }
}
