//! Three nodes in this process and a real `redis-server`: each fault that must be survived is a test.

pub(crate) mod engine;
mod relay;
mod node;
mod faults;
mod outages;
mod history;

use millstream_net::clock;
use std::thread;
use std::time::Duration;

/// Asks again and again, for at most 20 seconds.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = clock::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(clock::now() < end, "in vain: {what}");
        thread::park_timeout(Duration::from_millis(2));
    }
}
