//! What a connection costs while it idles.

use super::{h2, life};

/// An idle keep-alive connection may cost 1.5 KiB in all; its future's share is decided here.
const FUTURE: usize = 480;
/// With tables and windows an idle HTTP/2 connection may cost 3 KiB.
const HTTP_2: usize = 680;

fn size_of_output<A, B, C, D, E, F>(_: impl FnOnce(A, B, C, D, E) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn the_future_that_lives_as_long_as_a_connection_is_small() {
    let size = size_of_output(life);
    assert!((64..=FUTURE).contains(&size), "{size} bytes");
}

#[test]
fn what_http2_has_beside_it_is_small() {
    let size = std::hint::black_box(h2::SIZE);
    assert!((64..=HTTP_2).contains(&size), "{size} bytes");
}
