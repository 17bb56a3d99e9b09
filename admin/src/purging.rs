//! Purging by the API: a JSON body names URLs, prefixes, keys or tags, or everything in a zone.
//!
//! All of it is worked out before any of it is done. Next: `millstream-server`'s `content/purge`, which gives the orders.

use crate::caches;
use crate::place::{self, Url};
use crate::refusal::ApiRefusal;
use millstream_server::content::purge::asked::{Hosts, PurgeScope};
use millstream_server::content::purge::nodes::WaitFor;
use millstream_server::content::purge::orders::{self, Orders, PurgeItem};
use millstream_server::content::purge::{self, PurgeReport};
use millstream_server::request::Request;
use serde::{Deserialize, Serialize};
use std::iter;

const MOST: usize = 1024;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PurgeBody {
    /// All variants; a trailing `*` makes it a prefix.
    #[serde(skip_serializing_if = "Many::is_none")]
    pub url: Many,
    #[serde(skip_serializing_if = "Many::is_none")]
    pub prefix: Many,
    #[serde(skip_serializing_if = "Many::is_none")]
    pub key: Many,
    #[serde(skip_serializing_if = "Many::is_none")]
    pub key_prefix: Many,
    #[serde(skip_serializing_if = "Many::is_none")]
    pub tags: Many,
    #[serde(skip_serializing_if = "is_false")]
    pub all: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub soft: bool,
    /// Whether to wait for the other nodes of a cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub wait: WaitFor,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_default(wait: &WaitFor) -> bool {
    *wait == WaitFor::All
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Many {
    One(String),
    Several(Vec<String>),
}

impl Default for Many {
    fn default() -> Self {
        Many::Several(Vec::new())
    }
}

impl Many {
    fn texts(&self) -> &[String] {
        match self {
            Many::One(text) => std::slice::from_ref(text),
            Many::Several(texts) => texts,
        }
    }

    fn is_none(&self) -> bool {
        self.texts().is_empty()
    }
}

pub(crate) async fn purge(
    request: &Request,
    zone: Option<&str>,
    body: &[u8],
) -> Result<(u16, PurgeReport), ApiRefusal> {
    let body: PurgeBody = serde_json::from_slice(body)
        .map_err(|error| ApiRefusal::new(400, "BodyInvalid", format!("invalid body: {error}")))?;
    let zone = zone.map(|name| caches::index(&request.generation.shared, name)).transpose()?;
    let mut orders = Orders::default();
    let mut notes = by_url(request, &body, &mut orders)?;
    notes.sort_unstable();
    notes.dedup();
    if let Some(zone) = zone {
        let named = !orders.items.is_empty();
        orders.items.retain(|(of, _)| *of as usize == zone);
        if named && orders.items.is_empty() {
            let text = "none of the URLs is cached in this zone; to purge in all zones, use /purge";
            return Err(ApiRefusal::new(404, "ZoneDiffers", text));
        }
    }
    in_zones(request, &body, zone, &mut orders)?;
    if orders.items.is_empty() {
        let text = "the body names nothing to purge: write {\"url\": …}, \"prefix\", \"key\", \"key_prefix\", \"tags\" or \"all\"";
        return Err(ApiRefusal::new(400, "NothingNamed", text));
    }
    let done = purge::carry_out(request, orders, body.soft, body.wait).await.map_err(|error| {
        let text = format!("the purge is in force, but would be lost at a restart: {error}");
        ApiRefusal::new(500, "JournalFailed", text)
    })?;
    Ok((done.status, PurgeReport::of(body.soft, done, notes)))
}

fn by_url(request: &Request, body: &PurgeBody, orders: &mut Orders) -> Result<Vec<String>, ApiRefusal> {
    let mut notes = Vec::new();
    let (urls, prefixes) = (body.url.texts(), body.prefix.texts());
    let count = [&body.url, &body.prefix, &body.key, &body.key_prefix, &body.tags]
        .iter()
        .map(|many| many.texts().len())
        .sum::<usize>();
    if count > MOST {
        return Err(ApiRefusal::new(400, "TooMany", "one request can name at most 1,024 items"));
    }
    for text in urls {
        let url = Url::parse(text.as_bytes())?;
        let wanted = match url.target.strip_suffix(b"*") {
            Some(prefix) => PurgeScope::Prefix(prefix.to_vec(), Hosts::Own),
            None => PurgeScope::Target(url.target.clone(), Hosts::Own),
        };
        notes.extend(add(request, &url, &wanted, orders)?);
    }
    for text in prefixes {
        let mut url = Url::parse(text.as_bytes())?;
        if url.target.ends_with(b"*") {
            url.target.pop();
        }
        let wanted = PurgeScope::Prefix(url.target.clone(), Hosts::Own);
        notes.extend(add(request, &url, &wanted, orders)?);
    }
    Ok(notes)
}

/// Returns a note about the URL's host.
fn add(
    request: &Request,
    url: &Url,
    wanted: &PurgeScope,
    orders: &mut Orders,
) -> Result<Option<String>, ApiRefusal> {
    let place = place::of(request, url)?;
    let like = place.imagine("GET", &url.target, &url.host, iter::empty()).map_err(|status| {
        let shown = String::from_utf8_lossy(&url.target).into_owned();
        ApiRefusal::new(
            400,
            "UrlInvalid",
            format!("a request for \"{shown}\" would be refused with {status}"),
        )
    })?;
    orders.items.extend(orders::of_request(&like, wanted)?.items);
    Ok(place::unnamed(&place, url))
}

/// Items without a URL: keys and everything in a named zone, tags in that or in all.
fn in_zones(
    request: &Request,
    body: &PurgeBody,
    zone: Option<usize>,
    orders: &mut Orders,
) -> Result<(), ApiRefusal> {
    let needs_zone = body.all || !body.key.is_none() || !body.key_prefix.is_none();
    if needs_zone && zone.is_none() {
        let text = "\"all\", \"key\" and \"key_prefix\" need a zone: use /api/9/http/caches/ZONE/purge";
        return Err(ApiRefusal::new(400, "ZoneMissing", text));
    }
    let split = |tag: &&String| tag.is_empty() || tag.contains([' ', ',', '\t']);
    if let Some(tag) = body.tags.texts().iter().find(split) {
        let text = format!(
            "invalid tag \"{tag}\": tags are split at spaces and commas, so list each one separately"
        );
        return Err(ApiRefusal::new(400, "TagInvalid", text));
    }
    let zones = match zone {
        Some(zone) => zone..zone + 1,
        None => 0..request.generation.shared.zones.stores.len(),
    };
    let bytes = |text: &String| text.as_bytes().to_vec();
    for zone in zones {
        let keys = body.key.texts().iter().map(bytes).map(PurgeItem::Text);
        let prefixes = body.key_prefix.texts().iter().map(bytes).map(PurgeItem::Prefix);
        let tags = body.tags.texts().iter().map(bytes).map(PurgeItem::Tag);
        let all = body.all.then_some(PurgeItem::All);
        let items = keys.chain(prefixes).chain(tags).chain(all);
        orders.items.extend(items.map(|item| (zone as u32, item)));
    }
    Ok(())
}
