//! The ways to answer: a fixed page, a file, a stored answer, an upstream's.
//!
//! Each takes the request and the client and says how it went; which one is taken is `phase`'s
//! decision alone, and what follows `serve`'s.

pub mod media_type;
pub mod stored;
pub mod course;
pub mod partial;
pub mod cached;
pub mod slices;
pub mod fixed;
pub mod purge;
pub mod empty_gif;
pub mod challenge;
pub mod stub_status;
pub mod random_index;
pub mod autoindex;
pub mod precoded;
pub mod file;
pub mod dav;

use crate::client::{Client, ClientFailure};
use crate::gateway::{self, Proxied};
use crate::request::Request;
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

/// Reads the whole body, for handlers other than upstreams.
pub async fn hold_body(request: &mut Request, client: &mut Client) -> Result<(), Outcome> {
    gateway::hold(request, client).await.map_err(|failed| match failed {
        Proxied::ClientFailed(failure) => Outcome::Client(failure),
        Proxied::Failed(status) => Outcome::Status(status),
        _ => Outcome::Status(500),
    })
}
