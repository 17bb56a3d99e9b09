//! Shadow: which routes of an API a cache could serve, proved on the API's own traffic.
//!
//! A proxy that never serves from a cache gives each request and each response to [`Shadow`], which compares what a cache
//! would have served with what the API returned, and ends with a [`report`]. This crate does no I/O, reads no clock and
//! keeps no body: only keyed hashes, within fixed bounds.
//! The order of the modules below is the order in which they may use each other, lowest first.

mod hash;
mod distinct;
mod visits;
mod statistics;
mod names;
mod shape;
mod mark;
mod json;
mod text;
mod decoding;
mod digest;
mod likeness;
mod request;
mod response;
mod network;
mod dimension;
mod seen;
mod leniency;
mod pairs;
mod credentials;
mod variance;
mod plan;
mod selection;
mod simulation;
mod segment;
mod paths;
mod usual;
mod route;
mod unusual;
mod sample;
mod shadow;
mod verdict;
mod reason;
pub mod report;
pub mod words;
pub mod configuration;
#[cfg(test)]
mod fixture;

pub use digest::LONGEST_READ;
pub use hash::Key;
pub use likeness::{Content, ContentReader, Likeness, Noise};
pub use names::is_of_the_client;
pub use report::Report;
pub use request::Request;
pub use sample::{MOST_BYTES, MOST_KEYS};
pub use shadow::{Ending, Limits, MOST_ROUTES, Sampled, Shadow};
