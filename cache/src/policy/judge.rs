//! The judgement about an answer: stored for how long, or not and why, and which field or directive said so.
//!
//! Every rule that forbids is one small function; the first that speaks is the reason. Next: `freshness` for the
//! numbers, `control` for the directives, `request` for what requests may ask of the result.

use super::arithmetic::{Arithmetic, Source};
use super::control::{Governing, governing};
use super::freshness;
use super::lifetime::{Asker, Lifetime, Revalidation};
use super::media;
use super::reason::Reason;
use crate::now::{Now, milliseconds};
use crate::vary::{self, Vary, VaryRule};
use millstream_conf::model::{CacheVary, Credentials, IgnoreHeaders, ProxyCache};
use millstream_conf::source::Span;
use millstream_wire::{FieldId, Fields, Method};
use std::time::Duration;

/// What decides whether a response may be stored, of the request and its exchange.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestFacts {
    /// As it was sent to the upstream.
    pub method: Method,
    /// Whether the upstream gets a credential from Authorization that the key does not contain.
    pub has_authorization: bool,
    pub asker: Asker,
    /// Whether the configuration has chosen what is asked for by the client's address: the upstream's `public`
    /// is said of that choice alone.
    pub chosen_by_address: bool,
    pub delay: Duration,
    /// Whether a 206 may be stored: its Content-Range was read, and parts are kept.
    pub partial: bool,
    /// Whether Content-Location names the request's own target: a response to POST then stands for a GET's
    /// (RFC 9110 §9.3.3).
    pub is_of_target: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storable {
    Yes(Lifetime),
    No(Reason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because<'a> {
    /// A field of the response, with the value or line that counted.
    Field(FieldId, &'a [u8]),
    /// A field of the request; its value may be secret.
    RequestField(FieldId),
    Directive(&'static str),
    Method(Method),
    Status(u16),
    Nothing,
}

impl Because<'_> {
    pub fn place<'c>(&self, conf: &'c ProxyCache) -> Option<&'c Span> {
        let Because::Directive(name) = self else { return None };
        conf.written.iter().find(|(written, _)| written == name).map(|(_, span)| span)
    }

    /// As [`Self::place`], for a response of this status: of several `proxy_cache_valid` the matching one.
    pub fn place_for<'c>(&self, conf: &'c ProxyCache, status: u16) -> Option<&'c Span> {
        let place = self.place(conf);
        if *self != Because::Directive("proxy_cache_valid") {
            return place;
        }
        let index = conf.valid.iter().position(|valid| freshness::is_for(valid, status));
        index.and_then(|index| conf.valid_spans.get(index)).or(place)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Judgement<'a> {
    pub outcome: Storable,
    pub because: Because<'a>,
    /// `None` if it did not come to them.
    pub arithmetic: Option<Arithmetic>,
}

/// GET and HEAD; POST and QUERY if `proxy_cache_methods` names them.
pub fn looks_up(conf: &ProxyCache, method: Method) -> bool {
    match method {
        Method::Get | Method::Head => true,
        Method::Post => conf.cache_post,
        Method::Query => conf.cache_query,
        _ => false,
    }
}

/// Whether this response invalidates what is stored for the target (RFC 9111 §4.4): an unsafe method, unknown
/// ones included, and no error.
pub fn invalidates(method: Method, status: u16) -> bool {
    !method.is_safe() && (200..400).contains(&status)
}

/// `no_cache` is the outcome of `proxy_no_cache`.
pub fn storable(
    conf: &ProxyCache,
    ignore: &IgnoreHeaders,
    request: &RequestFacts,
    status: u16,
    answer: Fields<'_>,
    now: Now,
    no_cache: bool,
) -> Storable {
    judge(conf, ignore, request, status, answer, now, no_cache).outcome
}

/// As [`storable`], with the grounds.
pub fn judge<'a>(
    conf: &ProxyCache,
    ignore: &IgnoreHeaders,
    request: &RequestFacts,
    status: u16,
    answer: Fields<'a>,
    now: Now,
    no_cache: bool,
) -> Judgement<'a> {
    let governing = governing(ignore, answer);
    let case = Case { conf, ignore, request, status, answer, governing, now };
    if no_cache {
        return against(Reason::NoCacheDirective, Because::Directive("proxy_no_cache"));
    }
    match case.forbidden() {
        Some((reason, because)) => against(reason, because),
        None => case.lifetime(),
    }
}

fn against(reason: Reason, because: Because<'_>) -> Judgement<'_> {
    Judgement { outcome: Storable::No(reason), because, arithmetic: None }
}

struct Case<'c, 'a> {
    conf: &'c ProxyCache,
    ignore: &'c IgnoreHeaders,
    request: &'c RequestFacts,
    status: u16,
    answer: Fields<'a>,
    governing: Governing<'a>,
    now: Now,
}

type Against<'a> = Option<(Reason, Because<'a>)>;

impl<'a> Case<'_, 'a> {
    fn forbidden(&self) -> Against<'a> {
        self.wrong_method()
            .or_else(|| self.wrong_status())
            .or_else(|| self.sets_cookie())
            .or_else(|| self.varies_by_anything())
            .or_else(|| self.needs_credentials())
            .or_else(|| self.is_endless())
    }

    /// A response to POST is stored for GETs of its target only if it says that it is what they would get.
    fn wrong_method(&self) -> Against<'a> {
        let method = self.request.method;
        let stands_for_get = self.stands_for_get() && (200..300).contains(&self.status);
        let fits = method != Method::Head && (looks_up(self.conf, method) || stands_for_get);
        (!fits).then_some((Reason::Method, Because::Method(method)))
    }

    fn stands_for_get(&self) -> bool {
        self.request.method == Method::Post
            && !self.conf.cache_post
            && self.request.is_of_target
            && self.goes_beyond_nginx()
    }

    fn wrong_status(&self) -> Against<'a> {
        let whole = match self.status {
            ..200 | 304 => false,
            206 => self.request.partial,
            _ => true,
        };
        (!whole).then_some((Reason::Status, Because::Status(self.status)))
    }

    fn sets_cookie(&self) -> Against<'a> {
        let value = self.answer.get(FieldId::SetCookie).filter(|_| !self.ignore.set_cookie)?;
        // A cookie that is named there is not stored, so nobody else gets it.
        let excluded = self.goes_beyond_nginx() && self.governing.excludes(b"set-cookie");
        (!excluded).then_some((Reason::SetCookie, Because::Field(FieldId::SetCookie, value)))
    }

    fn varies_by_anything(&self) -> Against<'a> {
        let cannot_be_told = match vary::by_rule(self.answer, self.vary_rule()) {
            Vary::Nothing => false,
            // RFC 9111 §4.1 compares what the origin was sent, which these clients' fields do not say.
            Vary::Fields(fields) => {
                fields.names().any(|name| self.conf.made_fields.iter().any(|made| made.as_bytes() == name))
            }
            Vary::Anything | Vary::TooMany => true,
        };
        if !cannot_be_told {
            return None;
        }
        let value = self.answer.get(FieldId::Vary).unwrap_or_default();
        Some((Reason::Vary, Because::Field(FieldId::Vary, value)))
    }

    fn vary_rule(&self) -> VaryRule {
        let CacheVary { origin, unlisted, address } = self.conf.vary;
        let address = address && (self.request.chosen_by_address || !self.is_public());
        VaryRule { ignored: self.ignore.vary, origin, unlisted, address }
    }

    fn is_public(&self) -> bool {
        self.governing.control.public || self.governing.control.s_maxage.is_some()
    }

    /// Whether a response may be stored that RFC 9111 lets a shared cache store and nginx never does: one with
    /// `no-cache` or `private` in any form, stale on arrival, or to a POST. A file written for nginx may rely on its
    /// not being shared, so it must say who may share, or the response that it is for everybody.
    fn goes_beyond_nginx(&self) -> bool {
        self.is_public() || !matches!(self.conf.credentials, Credentials::Unsaid)
    }

    /// RFC 9111 §3.5, and beyond it `proxy_cache_credentials`.
    fn needs_credentials(&self) -> Against<'a> {
        if self.request.asker == Asker::Known && !self.is_public() {
            return Some((Reason::Credentials, Because::Directive("proxy_cache_credentials")));
        }
        let control = &self.governing.control;
        let shared = control.public || control.must_revalidate || control.s_maxage.is_some();
        let alone = self.request.has_authorization && !shared;
        alone.then_some((Reason::Authorization, Because::RequestField(FieldId::Authorization)))
    }

    /// A stream that lasts as long as a client listens is useless to later clients. An API that asks for its
    /// response not to be buffered says the same (as in nginx, which stores what it buffers).
    fn is_endless(&self) -> Against<'a> {
        let unbuffered = self
            .answer
            .get(FieldId::XAccelBuffering)
            .filter(|value| !self.ignore.x_accel_buffering && value.eq_ignore_ascii_case(b"no"));
        if let Some(value) = unbuffered {
            return Some((Reason::Streaming, Because::Field(FieldId::XAccelBuffering, value)));
        }
        let value = self.answer.get(FieldId::ContentType)?;
        media::is_endless(value).then_some((Reason::Streaming, Because::Field(FieldId::ContentType, value)))
    }

    /// In order of precedence.
    fn lifetime(&self) -> Judgement<'a> {
        if let Some(judgement) = self.accelerated() {
            return judgement;
        }
        if let Some((reason, because)) = self.not_to_be_stored() {
            return against(reason, because);
        }
        let must_validate = self.governing.control.no_cache.is_whole();
        match freshness::explicit(&self.governing, self.answer, self.now) {
            Some((source, lifetime)) => self.explicit(source, lifetime, must_validate),
            None if must_validate => self.explicit(Source::NoCache, Duration::ZERO, true),
            None => self.by_configuration(),
        }
    }

    /// X-Accel-Expires comes before all else, as in nginx.
    fn accelerated(&self) -> Option<Judgement<'a>> {
        let value = self.answer.get(FieldId::XAccelExpires).filter(|_| !self.ignore.x_accel_expires)?;
        let fresh_until = freshness::x_accel_expires(value, self.now)?;
        let because = Because::Field(FieldId::XAccelExpires, value);
        if fresh_until <= self.now.unix_milliseconds {
            return Some(against(Reason::XAccelExpires, because));
        }
        let lifetime = u64::try_from(fresh_until - self.now.unix_milliseconds).unwrap_or(0);
        let lifetime = Duration::from_millis(lifetime);
        Some(self.granted(Source::XAccelExpires, lifetime, fresh_until, false, because))
    }

    /// What the directives in force forbid (RFC 9111 §3).
    fn not_to_be_stored(&self) -> Against<'a> {
        let control = &self.governing.control;
        if control.must_understand && !is_understood(self.status) {
            return Some((Reason::MustUnderstand, self.directive("must-understand")));
        }
        // must-understand is there for caches to ignore the no-store beside it (§5.2.2.3).
        if control.no_store && !control.must_understand {
            return Some((Reason::NoStore, self.directive("no-store")));
        }
        if control.private.is_whole() {
            return Some((Reason::Private, self.directive("private")));
        }
        if control.no_cache.is_whole() && !self.can_be_validated() {
            return Some((Reason::NoCache, self.directive("no-cache")));
        }
        self.objection_of_nginx()
    }

    /// What keeps nginx from storing it, which knows these directives without arguments, and no CDN-Cache-Control.
    fn objection_of_nginx(&self) -> Against<'a> {
        if self.goes_beyond_nginx() || self.ignore.cache_control {
            return None;
        }
        let plain = self.governing.plain(self.ignore);
        let (reason, directive) = match () {
            () if plain.control.no_store => (Reason::NoStore, "no-store"),
            () if plain.control.private.is_present() => (Reason::Private, "private"),
            () if plain.control.no_cache.is_present() => (Reason::NoCache, "no-cache"),
            // Its own lifetime is judged by `explicit`.
            () if plain.field == self.governing.field => return None,
            () => match freshness::explicit(&plain, self.answer, self.now)? {
                (Source::MaxAge, Duration::ZERO) => (Reason::Expired, "max-age"),
                (Source::Expires { .. }, Duration::ZERO) => {
                    return Some((Reason::Expired, self.expires()));
                }
                _ => return None,
            },
        };
        Some((reason, Because::Field(plain.field, plain.line(directive))))
    }

    /// Whether validation costs the origin less than a response: there is a validator, and it is used.
    fn can_be_validated(&self) -> bool {
        self.conf.revalidate && (self.answer.has(FieldId::ETag) || self.answer.has(FieldId::LastModified))
    }

    /// A lifetime given by the response; age counts against it (§4.2.3).
    fn explicit(&self, source: Source, lifetime: Duration, must_validate: bool) -> Judgement<'a> {
        let because = match source {
            Source::SMaxage => self.directive("s-maxage"),
            Source::MaxAge => self.directive("max-age"),
            Source::NoCache => self.directive("no-cache"),
            _ => self.expires(),
        };
        let left = milliseconds(lifetime).saturating_sub(milliseconds(self.initial_age()));
        let fresh_until = self.now.unix_milliseconds.saturating_add(left);
        let judgement = self.granted(source, lifetime, fresh_until, must_validate, because);
        let Storable::Yes(mut terms) = judgement.outcome else { return judgement };
        let outcome = if left > 0 {
            Storable::Yes(terms)
        } else if !self.goes_beyond_nginx() {
            Storable::No(Reason::Expired)
        } else if must_validate || terms.is_usable_stale(self.now) {
            Storable::Yes(terms)
        } else if self.can_be_validated() {
            // Stale from the beginning: good for asking whether it is still true, and for nothing else.
            terms.always_validate = true;
            terms.revalidation = Revalidation::Required;
            Storable::Yes(terms)
        } else {
            Storable::No(Reason::Expired)
        };
        Judgement { outcome, ..judgement }
    }

    /// Whether only its end tells how long the response is; irrelevant for a stored one.
    fn is_open_ended(&self) -> bool {
        let answer = self.answer;
        answer.has(FieldId::TransferEncoding)
            || !answer.has(FieldId::ContentLength) && answer.connection_lists("close")
    }

    /// `proxy_cache_valid`, then a guess. What stands for a GET without being one needs its own directive.
    fn by_configuration(&self) -> Judgement<'a> {
        if self.stands_for_get() {
            return against(Reason::NoLifetime, Because::Nothing);
        }
        // One record a line may go on for ever where nobody has said how long it is, nor for how long it is good.
        if let Some(value) = self.answer.get(FieldId::ContentType).filter(|value| media::is_in_records(value))
            && self.is_open_ended()
        {
            return against(Reason::Streaming, Because::Field(FieldId::ContentType, value));
        }
        // A part lives as long as the whole would.
        let status = if self.status == 206 { 200 } else { self.status };
        if let Some(valid) = freshness::valid(self.conf, status) {
            let because = Because::Directive("proxy_cache_valid");
            if valid.time.is_zero() {
                return against(Reason::NoLifetime, because);
            }
            let fresh_until = self.now.after(valid.time).unix_milliseconds;
            return self.granted(Source::Valid, valid.time, fresh_until, false, because);
        }
        let guess = self.conf.heuristic.and_then(|heuristic| {
            freshness::guess(heuristic, &self.governing, self.status, self.answer, self.now)
        });
        let Some((source, lifetime)) = guess else { return against(Reason::of(status), Because::Nothing) };
        let because = Because::Directive("proxy_cache_heuristic");
        let left = milliseconds(lifetime).saturating_sub(milliseconds(self.initial_age()));
        if left <= 0 {
            return against(Reason::NoLifetime, because);
        }
        let fresh_until = self.now.unix_milliseconds.saturating_add(left);
        self.granted(source, lifetime, fresh_until, false, because)
    }

    fn granted(
        &self,
        source: Source,
        lifetime: Duration,
        fresh_until: i64,
        must_validate: bool,
        because: Because<'a>,
    ) -> Judgement<'a> {
        let control = &self.governing.control;
        let (age_field, transit) = freshness::age(self.answer, self.request.delay, self.now);
        let terms = Lifetime {
            fresh_until,
            initial_age: age_field.saturating_add(transit),
            stale_while_revalidate: control.stale_while_revalidate.map(freshness::seconds),
            stale_if_error: control.stale_if_error.map(freshness::seconds),
            revalidation: match () {
                () if control.must_revalidate || control.proxy_revalidate || must_validate => {
                    Revalidation::Required
                }
                () if control.s_maxage.is_some() => Revalidation::Implied,
                () => Revalidation::Free,
            },
            vary: self.vary_rule(),
            public: self.is_public(),
            always_validate: must_validate,
        };
        let counts = !matches!(source, Source::XAccelExpires | Source::Valid);
        let arithmetic = Arithmetic {
            source,
            lifetime,
            age_field,
            transit,
            initial_age: counts.then_some(terms.initial_age),
            arrived: self.now.unix_milliseconds,
            fresh_until,
        };
        Judgement { outcome: Storable::Yes(terms), because, arithmetic: Some(arithmetic) }
    }

    fn initial_age(&self) -> Duration {
        let (stated, transit) = freshness::age(self.answer, self.request.delay, self.now);
        stated.saturating_add(transit)
    }

    fn expires(&self) -> Because<'a> {
        Because::Field(FieldId::Expires, self.answer.get(FieldId::Expires).unwrap_or_default())
    }

    fn directive(&self, name: &str) -> Because<'a> {
        Because::Field(self.governing.field, self.governing.line(name))
    }
}

/// Final statuses of RFC 9110 §15 and of the RFCs that extend it, whose caching rules are followed here.
fn is_understood(status: u16) -> bool {
    matches!(status, 200..=206 | 300..=305 | 307 | 308 | 400..=417 | 421 | 422 | 425 | 426 | 428 | 429 | 431 | 451
        | 500..=505 | 507 | 511)
}
