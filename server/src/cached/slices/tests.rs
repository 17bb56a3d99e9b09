//! Where the first piece of a request begins.

use super::*;
use crate::admission;
use crate::fixture::{admitted, worker};

#[test]
fn the_first_piece_is_that_of_a_single_range_with_a_beginning() {
    let worker = worker("server { listen 80; slice 100; }");
    for (fields, expected) in [
        ("", 0),
        ("Range: bytes=0-5\r\n", 0),
        ("Range: bytes=99-\r\n", 0),
        ("Range: bytes=100-\r\n", 100),
        ("Range: bytes=1234-5678\r\n", 1200),
        ("Range: bytes=-5\r\n", 0),
        ("Range: bytes=500-,700-\r\n", 0),
        ("Range: lines=500-\r\n", 0),
        ("Range: bytes=500-\r\nIf-Range: \"a\"\r\n", 0),
    ] {
        let mut request = admitted(&worker, &format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        admission::route(&mut request).expect("it is decided");
        assert_eq!(first_start(&request), expected, "{fields}");
    }
}
