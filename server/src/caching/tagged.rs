//! The tags that an answer is stored with: those in its own fields, and the values of `proxy_cache_tag`.
//! A piece has one that all pieces of its answer have.

use crate::request::Request;
use crate::variables;
use millstream_cache::Tags;
use millstream_conf::model::ProxyCache;
use millstream_wire::Fields;

/// `None` if there are too many to store the response.
pub fn tags(request: &Request, cache: &ProxyCache, answer: Fields<'_>) -> Option<Tags> {
    let configured: Vec<Vec<u8>> =
        cache.tags.iter().map(|template| variables::value(template, request)).collect();
    let tags = Tags::read(answer, configured.iter().map(Vec::as_slice))?;
    match request.cache.whole.as_deref() {
        Some(whole) => tags.of_piece(whole.tag()),
        None => Some(tags),
    }
}
