//! Connections: from accept to close, one task each.
//!
//! Next: `opening`, how each begins; `h1`, HTTP/1.0 and 1.1; `h2`, HTTP/2.

mod spare;
mod lingering;
mod accepted;
mod opening;
mod h2;
mod h1;
#[cfg(test)]
mod tests;

pub use spare::clear as clear_spare;

use crate::worker::{ConnectionSlot, Worker};
use millstream_conf::model::ListenAddress;
use millstream_net::Address;
use millstream_net::stream::Stream;
use std::rc::Rc;
use tokio::task::AbortHandle;

/// Serves a connection in its own task. `address` is the listener that accepted it.
/// The task is spawned here and not by the caller, because a crate compiles all code of the futures it
/// spawns. The opening and HTTP/2 have their own boxes, to keep the future for a connection's life small.
pub fn serve(
    worker: Rc<Worker>,
    place: ConnectionSlot,
    stream: Stream,
    remote: Address,
    address: Rc<ListenAddress>,
) -> AbortHandle {
    tokio::task::spawn_local(life(worker, place, stream, remote, address)).abort_handle()
}

fn life(
    worker: Rc<Worker>,
    place: ConnectionSlot,
    stream: Stream,
    remote: Address,
    address: Rc<ListenAddress>,
) -> impl Future<Output = ()> {
    // What was accepted before a reload is served with what listened then.
    let generation = worker.generation();
    let opening = Box::pin(opening::open(worker, generation, place, stream, remote, address));
    async move {
        let Some(mut connection) = opening.await.map(h1::Connection::new) else { return };
        connection.run().await;
        if let Some(rest) = connection.turned() {
            rest.await;
        }
    }
}
