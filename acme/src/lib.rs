//! Certificates by themselves: an authority is asked for them by ACME (RFC 8555), shown whose the names are, and asked again in time.
//!
//! Floor 4: it knows no request. Its one door is [`setup`]: what a configuration wants of whom, with the values by which handshakes and
//! requests see what came of it; one thread carries it out ([`issuer`]). Nothing of a key is ever told. Modules stand lowest floor first.
//! Next: `order`, the way to one certificate.

#![forbid(unsafe_code)]

mod chance;
mod failure;
mod key;
mod jws;
mod transport;
mod directory;
mod session;
mod account;
mod challenge;
mod rfc3339;
pub mod certificate;
pub mod state;
mod request;
mod renewal;
mod order;
mod schedule;
pub mod setup;
pub mod issuer;
mod ocsp;
pub mod stapling;

pub use setup::Acme;
