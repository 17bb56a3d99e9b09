//! What a location answers with: one file for each handler.
//!
//! Each takes the request and the client and says how it went; which one is taken is `phase`'s
//! decision alone, and what follows `drive`'s.

pub mod media_type;
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
pub mod api;

use crate::cached::{self, slices};
use crate::client::Client;
use crate::exchange::Begun;
use crate::outcome::Outcome;
use crate::request::Request;
use millstream_cache::Lookup;
use millstream_conf::model::{DavMethod, LocationId};
use purge::Purging;
use std::sync::Arc;

pub enum Content {
    /// The level of a `return`, and its position in the script.
    Return(LocationId, usize),
    /// `rewrite` with 301 or 302.
    Redirect(u16, Vec<u8>),
    /// Redirects to the path with a slash, a location's name.
    Slash,
    /// The response to an ACME challenge.
    Challenge(Arc<str>),
    File,
    Dav(DavMethod),
    /// Upstream and cache, piece by piece (`slice`).
    Slices,
    Purge(Purging),
    StubStatus,
    EmptyGif,
    Api,
    Pass(Option<(Vec<u8>, Lookup)>),
    Begun(Box<Begun>),
    Status(u16),
}

impl Content {
    pub async fn answer(self, request: &mut Request, client: &mut Client) -> Outcome {
        match self {
            Content::Return(level, at) => {
                let generation = request.generation.clone();
                match fixed::rule(generation.http(), level, at) {
                    Some(rule) => Box::pin(fixed::returned(request, client, rule)).await,
                    None => Outcome::Status(500),
                }
            }
            Content::Redirect(status, url) => Outcome::Redirect(status, url),
            Content::Slash => fixed::redirect_with_slash(request),
            Content::File => Box::pin(file::answer(request, client)).await,
            Content::Dav(method) => Box::pin(dav::answer(request, client, method)).await,
            Content::Slices => Box::pin(slices::answer(request, client)).await,
            Content::Purge(purging) => Box::pin(purge::answer(request, client, purging)).await,
            Content::StubStatus => Box::pin(stub_status::answer(request, client)).await,
            Content::Challenge(text) => Box::pin(challenge::answer(request, client, &text)).await,
            Content::EmptyGif => Box::pin(empty_gif::answer(request, client)).await,
            Content::Api => api::answer(request, client).await,
            Content::Pass(found) => cached::answer(request, client, found).await,
            Content::Begun(begun) => cached::go_on(request, client, *begun).await,
            Content::Status(status) => Outcome::Status(status),
        }
    }
}
