//! Free TCP ports of the loopback address.
//!
//! They are taken below the range from which the kernel gives ports to outgoing connections: a load test opens thousands
//! of those, and one of them could otherwise sit on the port between the look and the server's bind.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Linux's outgoing range begins at 32768.
const RANGE: std::ops::Range<u32> = 12_000..31_500;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Free a moment ago, and never returned twice in one process.
pub fn free() -> u16 {
    listener().1
}

/// Better than `free` if this process listens itself: a child that is just being forked may hold the probing
/// socket a moment longer.
pub fn listener() -> (TcpListener, u16) {
    let span = RANGE.end - RANGE.start;
    // Spread by process, so that two test programs at once rarely look at the same ports.
    let start = std::process::id().wrapping_mul(7_919);
    for _ in 0..span {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = (RANGE.start + start.wrapping_add(step) % span) as u16;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return (listener, port);
        }
    }
    panic!("no free port between {} and {}", RANGE.start, RANGE.end);
}
