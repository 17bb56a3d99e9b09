//! Any bytes as an order of a cluster: no panic, and what is read is written as it came.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream_cluster::Order;

fuzz_target!(|input: &[u8]| {
    if let Some(order) = Order::decode(input) {
        assert_eq!(order.encode(), input);
    }
});
