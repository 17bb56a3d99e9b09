//! How answering a request went, for whoever carries it on.
//!
//! Before: `content`, `cached` and `access`, which answer; next: `drive`, which does what follows.

use crate::client::ClientFailure;
use crate::restart::Restart;

#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The client has its response, or as much as could be sent.
    Done,
    /// Nothing was sent: respond with an `error_page` or the built-in page.
    Status(u16),
    /// Nothing was sent: the same, with this URL as Location.
    Redirect(u16, Vec<u8>),
    /// Nothing was sent: the request continues elsewhere.
    Restart(Restart),
    Client(ClientFailure),
}

impl From<Result<(), ClientFailure>> for Outcome {
    fn from(sent: Result<(), ClientFailure>) -> Outcome {
        sent.map_or_else(Outcome::Client, |()| Outcome::Done)
    }
}
