//! Why a URL is answered as it is: the way of an imagined request through the configuration, and what the cache has.
//!
//! Nothing is asked of an upstream and nothing in the cache is touched. The result is data; `text` says it to people.
//! Next: `key` (what made the key), `verdict` (what a request would get), `stored` (each stored answer).

mod help;
mod said;
mod origin;
pub mod key;
pub mod stored;
pub mod text;
pub mod verdict;

pub(crate) use help::{help as help_of, help_against_miss};

use crate::place::{self, Url};
use crate::refusal::ApiRefusal;
use crate::resource::arguments;
use key::KeyMade;
use millstream_cache::{Entry, How, Now, Ruling, Scope, Sight};
use millstream_conf::model::ProxyCache;
use millstream_conf::source::Span;
use millstream_server::cached::slices;
use millstream_server::caching::keyed::{self, Use};
use millstream_server::content::Content;
use millstream_server::location_text::written;
use millstream_server::request::Request;
use millstream_server::rewrite::Settled;
use millstream_wire::{FieldId, masked};
use origin::Origins;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use stored::Stored;
use verdict::Verdict;

const FIELDS: usize = 100;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    pub url: String,
    pub method: String,
    pub listener: String,
    pub server: ConfigurationPlace,
    /// Why it is this server, if it is only the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_note: Option<String>,
    pub location: ConfigurationPlace,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyMade>,
    /// The slice that all of this is about; absent if it is not stored in slices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    pub now: Verdict,
    pub stored: Vec<Stored>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<LastRefusal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_purge: Option<LastPurge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationPlace {
    pub name: String,
    /// `file:line:column`.
    pub at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRefusal {
    pub reason: String,
    pub text: String,
    pub help: String,
    pub milliseconds_ago: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastPurge {
    /// `key`, `prefix`, `tag`, `all`, or `change` for a request that changed a response stored in slices.
    pub by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The other node of the cluster that it was given to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    pub soft: bool,
    /// Whether it came before the stored response, about which it then says nothing.
    pub before_stored: bool,
    pub milliseconds_ago: i64,
}

struct ExplainQuery {
    url: Vec<u8>,
    method: String,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
}

pub(crate) async fn answer(request: &Request) -> Result<Explanation, ApiRefusal> {
    let asked = read(request.query().unwrap_or_default())?;
    let url = Url::parse(&asked.url)?;
    let place = place::of(request, &url)?;
    let fields = asked.fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
    let (mut imagined, settled) =
        place.settle(&asked.method, &url.target, &url.host, fields).map_err(|status| {
            ApiRefusal::new(400, "UrlInvalid", format!("this request would be refused with {status}"))
        })?;
    let now = Now::read();
    if imagined.location().settings.cache().is_some() && slices::applies(&imagined) {
        imagined.cache.slice = Some(slices::first_start(&imagined));
    }
    let generation = imagined.generation.clone();
    let settings = &generation.http().location(imagined.route.location).settings;
    let cache = settings.cache();
    if let Some(cache) = cache {
        keyed::note(&mut imagined, cache);
    }
    imagined.cache.asker = cache.map(|cache| keyed::asker(&imagined, cache)).unwrap_or_default();
    let content = match settled {
        Settled::Return(level, at) => Content::Return(level, at),
        Settled::Redirect(status, url) => Content::Redirect(status, url),
        Settled::Slash => Content::Slash,
        _ => Content::of(&mut imagined, settings).unwrap_or(Content::Pass(None)),
    };
    let mut explanation = routed(&imagined, &content, &asked);
    explanation.server_note = place::unnamed(&place, &url);
    if explanation.now.status.is_some() {
        return Ok(explanation);
    }
    let (Some(proxy), Some(cache)) = (settings.pass(), cache) else { return Ok(explanation) };
    let usage = keyed::usage(&imagined, cache);
    let key = match &usage {
        Use::Bypass(key) | Use::Lookup(key) => Some(key.clone()),
        Use::None | Use::Past | Use::Off => keyed::key(&imagined, cache),
    };
    explanation.zone = Some(imagined.generation.shared.zones.stores[cache.zone.0 as usize].name().to_owned());
    explanation.key = Some(key::made(&imagined, cache));
    let (sight, entries, chosen) = match &key {
        Some(key) => look(&imagined, cache, key, now).await,
        None => (Sight::default(), Vec::new(), None),
    };
    let chosen_entry = chosen.and_then(|index| entries.get(index));
    let origins = Origins::of(&imagined, cache);
    explanation.now = verdict::of(&imagined, cache, &usage, (&sight, origins), chosen_entry, now);
    explanation.stored = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            let of = stored::Of { request: &imagined, proxy, cache, ruling: sight.purge.as_ref() };
            stored::told(&of, entry, chosen == Some(index), now)
        })
        .collect();
    explanation.last_refusal = sight.refused.map(|refused| LastRefusal {
        reason: refused.reason.name().to_owned(),
        text: refused.reason.text().to_owned(),
        help: help::help(refused.reason).to_owned(),
        milliseconds_ago: now.unix_milliseconds.saturating_sub(refused.at),
    });
    explanation.last_purge = sight
        .purge
        .as_ref()
        .map(|ruling| LastPurge { node: origins.of_purge(ruling), ..purged(ruling, &entries, now) });
    Ok(explanation)
}

fn read(query: &[u8]) -> Result<ExplainQuery, ApiRefusal> {
    let wrong = |text: String| ApiRefusal::new(400, "QueryInvalid", text);
    let mut asked = ExplainQuery { url: Vec::new(), method: "GET".to_owned(), fields: Vec::new() };
    for (name, value) in arguments(query) {
        match name.as_str() {
            "url" => asked.url = value,
            "method" => {
                let is_token = !value.is_empty() && value.iter().all(u8::is_ascii_alphanumeric);
                let method = String::from_utf8(value).ok().filter(|_| is_token);
                asked.method = method.ok_or_else(|| wrong("invalid method".to_owned()))?;
            }
            "header" if asked.fields.len() == FIELDS => {
                return Err(wrong(format!("at most {FIELDS} headers are allowed")));
            }
            "header" => asked.fields.push(field(&value).ok_or_else(|| {
                wrong(format!("invalid header \"{}\": write Name: value", String::from_utf8_lossy(&value)))
            })?),
            other => {
                return Err(wrong(format!(
                    "unknown argument \"{other}\": the arguments are url, method and header"
                )));
            }
        }
    }
    if asked.url.is_empty() {
        return Err(wrong("missing argument \"url\": write ?url=http://host/path".to_owned()));
    }
    Ok(asked)
}

fn field(line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let good =
        !name.is_empty() && name.iter().all(token) && !value.iter().any(|byte| b"\r\n\0".contains(byte));
    // The URL names the host.
    (good && !name.eq_ignore_ascii_case(b"host")).then(|| (name.to_vec(), value.to_vec()))
}

fn routed(request: &Request, content: &Content, asked: &ExplainQuery) -> Explanation {
    let http = request.generation.http();
    let (server, location) = (request.server(), request.location());
    let listener = http.listeners.get(request.connection.listener.get());
    Explanation {
        url: masked::text(&String::from_utf8_lossy(&asked.url)).into_owned(),
        method: asked.method.clone(),
        listener: listener
            .map(|one| millstream_net::Address::from(&one.address).to_string())
            .unwrap_or_default(),
        server: ConfigurationPlace { name: server.name.clone(), at: at(request, server.span) },
        server_note: None,
        location: ConfigurationPlace { name: written(&location.matches), at: at(request, location.span) },
        zone: None,
        key: None,
        slice: request.cache.slice.map(|start| slice(request, start)),
        now: content.explanation(request).map_or_else(Verdict::unknown, Verdict::past),
        stored: Vec::new(),
        last_refusal: None,
        last_purge: None,
    }
}

async fn look(
    request: &Request,
    cache: &ProxyCache,
    key: &[u8],
    now: Now,
) -> (Sight, Vec<Arc<Entry>>, Option<usize>) {
    let store = &request.generation.shared.zones.stores[cache.zone.0 as usize];
    let sight = Sight::of(store, key, request.fields(), cache, now);
    let (entries, chosen) = (sight.entries.clone(), sight.chosen);
    if chosen.is_some() || !sight.may_be_on_disk {
        return (sight, entries, chosen);
    }
    let (on_disk, chosen) = Sight::on_disk(store, key, request.fields(), now).await;
    // Memory may know variants that have no file yet; those of the disk come behind them.
    let mut entries = entries;
    let mut place = None;
    for (index, entry) in on_disk.into_iter().enumerate() {
        let is_chosen = chosen == Some(index);
        // What is in memory too has been told.
        if !is_chosen && entries.iter().any(|known| known.varies_by() == entry.varies_by()) {
            continue;
        }
        if is_chosen {
            place = Some(entries.len());
        }
        entries.push(entry);
    }
    (sight, entries, place)
}

fn slice(request: &Request, start: u64) -> String {
    let size = request.location().settings.slice;
    let number = start.checked_div(size).unwrap_or_default();
    let last = start.saturating_add(size).saturating_sub(1);
    let more = match request.fields().has(FieldId::Range) {
        true => "the first slice of the requested range",
        false => "each slice is stored separately; select another with -H 'Range: bytes=FIRST-LAST'",
    };
    format!("{number} of {size} bytes each, bytes={start}-{last}: {more}")
}

fn purged(ruling: &Ruling, entries: &[Arc<Entry>], now: Now) -> LastPurge {
    let before_stored = !entries.is_empty() && entries.iter().all(|entry| entry.head().stored_at > ruling.at);
    let (by, prefix) = match &ruling.scope {
        Scope::All => ("all", None),
        Scope::Prefix(prefix) => {
            ("prefix", Some(masked::text(&String::from_utf8_lossy(prefix)).into_owned()))
        }
        Scope::Tag(_) => ("tag", None),
        Scope::Key(_) => ("key", None),
        Scope::AllPieces | Scope::Pieces(_) => ("change", None),
    };
    LastPurge {
        by: by.to_owned(),
        prefix,
        node: None,
        soft: ruling.how == How::Soft,
        before_stored,
        milliseconds_ago: now.unix_milliseconds.saturating_sub(ruling.at),
    }
}

fn at(request: &Request, span: Span) -> String {
    request.generation.shared.configuration.sources.locate(span)
}
