//! One stored answer: what tells it from the other variants, how long it is fresh and by what arithmetic, and which field
//! or directive decided that.
//!
//! The judgement is made again from the stored fields as of the moment they arrived; what only the exchange knew (Age,
//! the way here) is taken from the entry itself.

use super::{Place, at};
use crate::request::Request;
use millstream_cache::policy::{self, Because, RequestFacts};
use millstream_cache::{Entry, Now};
use millstream_conf::model::{Proxy, ProxyCache};
use millstream_wire::Method;
use serde::{Deserialize, Serialize};

/// A stored answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// Whether the request would get this one.
    pub chosen: bool,
    /// The request fields that its variant depends on, with what the request of this one said.
    pub varies_by: Vec<String>,
    /// Its status.
    pub status: u16,
    /// Bytes of its body.
    pub length: u64,
    /// `memory` or `disk`.
    pub tier: String,
    /// How many tags it has.
    pub tags: usize,
    /// Seconds for the Age field.
    pub age: u64,
    /// Whether it is fresh.
    pub fresh: bool,
    /// Seconds of freshness left; negative once it is stale.
    pub left: i64,
    /// The arithmetic, one step each.
    pub arithmetic: Vec<String>,
    /// What decided: a field with its value, or a directive.
    pub because: String,
    /// Where the directive stands, where it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Place>,
}

/// Tells of a stored answer.
pub(super) fn told(
    request: &Request,
    proxy: &Proxy,
    cache: &ProxyCache,
    entry: &Entry,
    chosen: bool,
    now: Now,
) -> Stored {
    let head = entry.head();
    let arrived = Now { unix_milliseconds: head.stored_at, instant: now.instant };
    let facts = RequestFacts { method: Method::Get, partial: head.part.is_some(), ..RequestFacts::default() };
    let judgement =
        policy::judge(cache, &proxy.ignore_headers, &facts, head.status, head.fields(), arrived, false);
    let arithmetic = judgement.arithmetic.map(|mut numbers| {
        // Fields of the exchange are not stored; the entry keeps what came of them.
        if numbers.initial_age.is_some() {
            numbers.initial_age = Some(head.lifetime.initial_age);
            numbers.age_field = head.lifetime.initial_age;
            numbers.transit = std::time::Duration::ZERO;
        }
        numbers.fresh_until = head.lifetime.fresh_until;
        numbers
    });
    let fresh_for = head.lifetime.fresh_until.saturating_sub(head.stored_at).div_euclid(1000);
    let left = head.lifetime.fresh_until.saturating_sub(now.unix_milliseconds).div_euclid(1000);
    let mut steps: Vec<String> = match &arithmetic {
        Some(numbers) => numbers.steps().collect(),
        None => vec![format!("fresh for {fresh_for} s")],
    };
    let since = now.unix_milliseconds.saturating_sub(head.stored_at).div_euclid(1000);
    steps.push(format!("stored {since} s ago: {left} s left"));
    let is_default = matches!(judgement.because, Because::Nothing);
    let place = judgement
        .because
        .place(cache)
        .map(|span| Place { name: because(&judgement.because), at: at(request, *span) });
    Stored {
        chosen,
        varies_by: varies_by(entry),
        status: head.status,
        length: entry.length(),
        tier: if entry.body_in_file().is_none() { "memory" } else { "disk" }.to_owned(),
        tags: head.tags.len(),
        age: entry.age(now),
        fresh: entry.is_fresh(now),
        left,
        arithmetic: steps,
        because: if is_default { "nothing says anything".to_owned() } else { because(&judgement.because) },
        at: place,
    }
}

/// What decided, as people write it.
fn because(because: &Because<'_>) -> String {
    match because {
        Because::Field(id, value) => format!("{}: {}", id.name(), String::from_utf8_lossy(value)),
        Because::RequestField(id) => format!("the request's {}", id.name()),
        Because::Directive(name) => (*name).to_owned(),
        Because::Method(method) => format!("the method {}", method.name().unwrap_or("of the request")),
        Because::Status(status) => format!("the status {status}"),
        Because::Nothing => String::new(),
    }
}

/// The fields that tell variants apart and what this one's request said in them.
fn varies_by(entry: &Entry) -> Vec<String> {
    let each = entry.varies_by().into_iter();
    each.map(|(name, value)| format!("{name}: {}", value.as_deref().unwrap_or("(absent)"))).collect()
}
