//! What a connection costs while it idles.

use super::serve;
use crate::worker::{ConnectionSlot, Worker};
use millstream_conf::model::ListenAddress;
use millstream_net::Address;
use millstream_net::stream::Stream;
use std::rc::Rc;

/// An idle keep-alive connection may cost 1.5 KiB in all; its future is the part that is decided here.
const FUTURE: usize = 448;

fn size_of_output<F>(
    _: impl FnOnce(Rc<Worker>, ConnectionSlot, Stream, Address, Rc<ListenAddress>) -> F,
) -> usize {
    size_of::<F>()
}

#[test]
fn the_future_that_lives_as_long_as_a_connection_is_small() {
    let size = size_of_output(serve);
    assert!(size <= FUTURE, "{size} bytes");
}
