//! The hot leaves of the request path as things that can be run N times, to have their instructions counted.
//!
//! Counted instructions repeat on a noisy machine where times do not: `cargo xtask instructions` runs each leaf
//! under callgrind twice with different N and divides the difference. A leaf belongs to the file of the crate it
//! exercises; to add one, put it into that file's `LEAVES`.

pub mod leaf;
pub mod wire;
pub mod h2;
pub mod cache;

pub use leaf::Leaf;

/// Every leaf, in the order in which they are listed.
pub fn leaves() -> impl Iterator<Item = &'static Leaf> {
    [wire::LEAVES, h2::LEAVES, cache::LEAVES].into_iter().flatten()
}
