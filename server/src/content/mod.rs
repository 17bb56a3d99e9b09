//! What a location responds with: one file for each handler.
//!
//! A handler's file has its response and the sentence by which `explain` tells of it; the lists that name all handlers are here: which one
//! a location has, its response, its sentence. Next: `cached`, for upstreams; `drive`, for what follows.

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
use crate::chosen_zone;
use crate::client::Client;
use crate::exchange::Begun;
use crate::outcome::Outcome;
use crate::request::Request;
use millstream_cache::Lookup;
use millstream_conf::model::{BuiltinContent, DavMethod, Handler, LocationId, Pass, Settings};
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
    Builtin(BuiltinContent),
    /// Upstream and cache, piece by piece (`slice`).
    Slices,
    Purge(Purging),
    Api,
    Pass(Option<(Vec<u8>, Lookup)>),
    Begun(Box<Begun>),
    Status(u16),
}

/// Handlers without settings, by the name in `conf` and the module.
macro_rules! builtin {
    ($($content:ident $handler:ident,)*) => {
        async fn builtin(content: BuiltinContent, request: &mut Request, client: &mut Client) -> Outcome {
            match content {
                $(BuiltinContent::$content => Box::pin($handler::answer(request, client)).await,)*
            }
        }

        fn builtin_explanation(content: BuiltinContent) -> &'static str {
            match content { $(BuiltinContent::$content => $handler::EXPLANATION,)* }
        }
    };
}

builtin! {
    StubStatus stub_status,
    EmptyGif empty_gif,
}

impl Content {
    /// That of the request's location, with the zone that the request chooses. `None` for what a look-up or the upstream
    /// has; nothing is looked up yet.
    #[inline]
    pub fn of(request: &mut Request, settings: &Settings) -> Option<Content> {
        Some(match &settings.content {
            Handler::Pass(proxy) => return passed(request, proxy),
            // What is made here speaks no other protocol, and a success would say that it does (RFC 8441 §5).
            _ if request.is_extended_connect() => Content::Status(501),
            Handler::Api(_) => Content::Api,
            Handler::Builtin(content) => Content::Builtin(*content),
            Handler::Purge(_) => Content::Purge(Purging::Location),
            Handler::Files => dav::asked(request, settings).map_or(Content::File, Content::Dav),
        })
    }

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
            Content::Builtin(content) => builtin(content, request, client).await,
            Content::Slices => Box::pin(slices::answer(request, client)).await,
            Content::Purge(purging) => Box::pin(purge::answer(request, client, purging)).await,
            Content::Challenge(text) => Box::pin(challenge::answer(request, client, &text)).await,
            Content::Api => Box::pin(api::answer(request, client)).await,
            Content::Pass(found) => Box::pin(cached::answer(request, client, found)).await,
            Content::Begun(begun) => Box::pin(cached::go_on(request, client, *begun)).await,
            Content::Status(status) => Outcome::Status(status),
        }
    }

    /// Why the response does not come from a cache; `None` if a cache decides, or if no imagined request gets it.
    pub fn explanation(&self, request: &Request) -> Option<&'static str> {
        match self {
            Content::Return(level, _) => Some(fixed::explanation(request, *level)),
            Content::Redirect(..) => Some(fixed::REDIRECT),
            Content::Slash => Some(fixed::SLASH),
            Content::File => Some(file::EXPLANATION),
            Content::Dav(_) => Some(dav::EXPLANATION),
            Content::Builtin(content) => Some(builtin_explanation(*content)),
            Content::Purge(purging) => Some(purging.explanation()),
            Content::Api => Some(api::EXPLANATION),
            Content::Slices | Content::Pass(_) => cached::explanation(request),
            Content::Challenge(_) | Content::Begun(_) | Content::Status(_) => None,
        }
    }
}

#[inline]
fn passed(request: &mut Request, proxy: &Pass) -> Option<Content> {
    let purging = match &proxy.cache {
        Some(cache) => purge::in_cached_location(request, cache),
        None if proxy.chosen_zone.is_some() => return in_chosen_zone(request),
        None => None,
    };
    match purging {
        Some(purging) => Some(Content::Purge(purging)),
        None => in_slices(request),
    }
}

#[inline]
fn in_slices(request: &Request) -> Option<Content> {
    slices::applies(request).then_some(Content::Slices)
}

/// The same location with the zone that the request chooses; without a choice the upstream.
fn in_chosen_zone(request: &mut Request) -> Option<Content> {
    // A request that purges means what is stored in any of the zones.
    if let Some((face, cache)) = chosen_zone::any(request)
        && let Some(purging) = purge::in_cached_location(request, cache)
    {
        request.route.location = face;
        return Some(Content::Purge(purging));
    }
    match chosen_zone::chosen(request) {
        Ok(face) => {
            request.route.location = face.unwrap_or(request.route.location);
            in_slices(request)
        }
        Err(status) => Some(Content::Status(status)),
    }
}
