//! The chance by which not all wait alike; `schedule` and `stapling` get it from outside.

use aws_lc_rs::rand;

/// In 0..1.
pub(crate) fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without random bytes there is no key either.
    _ = rand::fill(&mut bytes);
    f64::from(u32::from_be_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}
