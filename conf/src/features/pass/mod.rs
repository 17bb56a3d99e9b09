//! Passing requests on: what every family of prefixes (`proxy_` …) has, and the list of the families.
//!
//! The rows, the model and the manual of what they share are made once per prefix; a protocol's own part is a file of its own. A
//! new family is that file and a line in `families!`. Next: `target`, `exchange`, `store`, `cache`, `sharing` and `purge`, which they
//! share; the protocols `http`, `fastcgi`, `uwsgi`, `scgi` and `grpc`; `millstream-server`'s `exchange`.

pub mod failures;
pub mod target;
pub mod exchange;
pub mod store;
pub mod sharing;
pub mod secure;
pub mod cookie;
pub mod http;
pub mod params;
pub mod fastcgi;
pub mod uwsgi;
pub mod scgi;
pub mod grpc;
mod made;
pub mod cache;
pub mod purge;

use std::sync::Arc;
use std::time::Duration;

use super::cache_zone;
use super::context::{HTTP, HTTP_SERVER_LOCATION};
use super::level::Placed;
use super::location::LocationMatch;
use super::right::token;
use super::templates::{Templates, record};
use super::{Apply, Feature, MANY, Need, Place, Row, idle, often, once};
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::Directive;

use cache::usage::{self, Of, ProxyCache};
use cache::{CacheLevel, ZoneChoice};
use exchange::{Exchange, ExchangeLevel};
use fastcgi::FastCgiPass;
use grpc::GrpcPass;
use http::{HttpPass, HttpVersion, SetHeader};
use purge::PurgeLevel;
use secure::PassTls;
use sharing::SharingLevel;
use store::{Store, StoreLevel, Storing};
use target::{PassDraft, PassTarget};

#[derive(Debug, Clone, Default)]
pub struct Sent<'a> {
    pub fields: &'a [SetHeader],
    pub params: &'a [params::Param],
    /// A target with variables.
    pub target: Option<&'a Template>,
    /// Everything else that is sent: method, replaced body, source address and certificate.
    pub values: Vec<&'a Template>,
    /// Whether connections begin with a PROXY header.
    pub announces: bool,
}

trait Spoken: Clone + Default {
    type Settings;

    fn inherit(&mut self, above: &Self);

    /// What the level sends upstream, without defaults.
    fn sent(&self) -> Sent<'_>;

    /// Changes the common defaults for this family.
    fn adjust(_: &mut Exchange) {}

    fn resolve(
        &self,
        draft: &PassDraft,
        matches: &LocationMatch,
        reading: &mut Reading<'_>,
    ) -> Self::Settings;
}

#[derive(Debug, Clone, Default)]
pub struct FamilyLevel<P> {
    pub common: CommonLevel,
    pub protocol: P,
}

#[derive(Debug, Clone, Default)]
pub struct CommonLevel {
    pub exchange: ExchangeLevel,
    pub store: StoreLevel,
    pub cache: CacheLevel,
    pub sharing: SharingLevel,
    pub purge: PurgeLevel,
}

/// The rows for caching and storing responses, for families that do.
macro_rules! kept_rows {
    (streamed, $prefix:literal, $title:literal, $family:expr) => {
        &[]
    };
    (kept, $prefix:literal, $title:literal, $family:expr) => {
        &[
            ($title, &exchange::held_rows!($prefix, $family)),
            ("Cache zones", &cache_zone::rows!($prefix)),
            ("Cache", &deciding(cache::rows!($prefix, $family))),
            ("Cache sharing", &deciding(sharing::rows!($prefix, $family))),
            ("Purging", &deciding(purge::rows!($prefix, $family))),
            ("Storing responses as files", &store::rows!($prefix, $family)),
        ]
    };
}

macro_rules! families {
    ($($(#[$doc:meta])* $family:ident $field:ident $prefix:literal $protocol:ident $level:ident $spoken:ident $settings:ident
        $title:literal $kept:ident,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Family {
            $($(#[$doc])* $family,)*
        }

        pub const FAMILIES: &[Family] = &[$(Family::$family,)*];

        impl Family {
            fn prefix(self) -> &'static str {
                match self {
                    $(Family::$family => $prefix,)*
                }
            }
        }

        #[derive(Debug, Clone)]
        pub enum Protocol {
            $($spoken($protocol::$settings),)*
        }

        impl Protocol {
            pub fn set_headers(&self) -> &[SetHeader] {
                match self {
                    $(Protocol::$spoken(settings) => &settings.set_headers,)*
                }
            }

            pub fn prefix(&self) -> &'static str {
                match self {
                    $(Protocol::$spoken(_) => $prefix,)*
                }
            }
        }

        impl Templates for Protocol {
            fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
                match self {
                    $(Protocol::$spoken(settings) => settings.templates(all),)*
                }
            }
        }

        #[derive(Debug, Clone, Default)]
        pub struct PassLevel {
            pub draft: Option<PassDraft>,
            $($(#[$doc])* pub $field: FamilyLevel<$protocol::$level>,)*
        }

        impl PassLevel {
            pub fn common(&self, family: Family) -> &CommonLevel {
                match family {
                    $(Family::$family => &self.$field.common,)*
                }
            }

            pub fn common_mut(&mut self, family: Family) -> &mut CommonLevel {
                match family {
                    $(Family::$family => &mut self.$field.common,)*
                }
            }

            pub fn sent(&self, family: Family) -> Sent<'_> {
                match family {
                    $(Family::$family => self.$field.protocol.sent(),)*
                }
            }

            fn adjust(family: Family, exchange: &mut Exchange) {
                match family {
                    $(Family::$family => $protocol::$level::adjust(exchange),)*
                }
            }

            fn inherit_families(&mut self, above: &Self) {
                $(self.$field.common.inherit(&above.$field.common);
                self.$field.protocol.inherit(&above.$field.protocol);)*
            }

            fn protocol(&self, draft: &PassDraft, matches: &LocationMatch, reading: &mut Reading<'_>) -> Protocol {
                match draft.family {
                    $(Family::$family => Protocol::$spoken(self.$field.protocol.resolve(draft, matches, reading)),)*
                }
            }
        }

        pub const SECTIONS: &[&[(&str, &[Row])]] = &[$(&[
            ($title, $protocol::ROWS),
            ("TLS to upstreams", $protocol::TLS_ROWS),
            ($title, &exchange::rows!($prefix, Family::$family)),
        ], kept_rows!($kept, $prefix, $title, Family::$family),)*];
    };
}

families! {
    Proxy proxy "proxy" http HttpLevel Http HttpPass "Proxying" kept,
    FastCgi fastcgi "fastcgi" fastcgi FastCgiLevel FastCgi FastCgiPass "FastCGI" kept,
    Uwsgi uwsgi "uwsgi" uwsgi UwsgiLevel Uwsgi UwsgiPass "uwsgi" kept,
    Scgi scgi "scgi" scgi ScgiLevel Scgi ScgiPass "SCGI" kept,
    Grpc grpc "grpc" grpc GrpcLevel Grpc GrpcPass "gRPC" streamed,
}

const fn deciding<const N: usize>(mut rows: [Row; N]) -> [Row; N] {
    let mut at = 0;
    while at < N {
        rows[at] = rows[at].deciding();
        at += 1;
    }
    rows
}

pub const ROWS: &[Row] = &[];

impl Family {
    /// `proxy_cache_key` → `Proxy` and `cache_key`.
    pub fn of(directive: &str) -> Option<(Family, &str)> {
        let (prefix, rest) = directive.split_once('_')?;
        let family = FAMILIES.iter().find(|family| family.prefix() == prefix)?;
        Some((*family, rest))
    }

    /// `cache_key` → `proxy_cache_key`.
    pub fn directive(self, rest: &str) -> String {
        format!("{}_{rest}", self.prefix())
    }
}

fn sibling(directive: &Directive, rest: &str) -> String {
    let (prefix, _) = directive.name.text.split_once('_').expect("every name of a family has its prefix");
    format!("{prefix}_{rest}")
}

record! {
    pub struct Pass {
        /// The server of a group is never decided here.
        pub target: PassTarget,
        pub protocol: Protocol,
        pub exchange: Exchange,
        pub store: Storing,
        /// `None` = off.
        pub cache: Option<ProxyCache>,
        /// The zone of `proxy_cache` if it has variables: the cache is then that of the location's face for
        /// this zone.
        pub chosen_zone: Option<Template>,
    }
}

impl Pass {
    pub fn http(&self) -> Option<&HttpPass> {
        match &self.protocol {
            Protocol::Http(http) => Some(http),
            _ => None,
        }
    }

    pub fn fastcgi(&self) -> Option<&FastCgiPass> {
        match &self.protocol {
            Protocol::FastCgi(fastcgi) => Some(fastcgi),
            _ => None,
        }
    }

    pub fn grpc(&self) -> Option<&GrpcPass> {
        match &self.protocol {
            Protocol::Grpc(grpc) => Some(grpc),
            _ => None,
        }
    }

    pub fn tls(&self) -> Option<&PassTls> {
        match &self.protocol {
            Protocol::Http(http) => http.tls.as_ref(),
            Protocol::Grpc(grpc) => grpc.tls.as_ref(),
            Protocol::Uwsgi(uwsgi) => uwsgi.tls.as_ref(),
            Protocol::FastCgi(_) | Protocol::Scgi(_) => None,
        }
    }

    /// `$proxy_host` and `$proxy_port`.
    pub fn host(&self) -> Option<(&str, u16)> {
        match &self.protocol {
            Protocol::Http(http) => Some((&http.host, http.port)),
            Protocol::Grpc(grpc) => Some((&grpc.host, grpc.port)),
            Protocol::FastCgi(_) | Protocol::Uwsgi(_) | Protocol::Scgi(_) => None,
        }
    }

    pub fn is_http2(&self) -> bool {
        match &self.protocol {
            Protocol::Http(http) => http.http_version == HttpVersion::Http2,
            Protocol::Grpc(_) => true,
            Protocol::FastCgi(_) | Protocol::Uwsgi(_) | Protocol::Scgi(_) => false,
        }
    }

    pub fn passes_trailers(&self) -> bool {
        match &self.protocol {
            Protocol::Http(http) => http.passes_trailers,
            Protocol::Grpc(_) => true,
            Protocol::FastCgi(_) | Protocol::Uwsgi(_) | Protocol::Scgi(_) => false,
        }
    }

    pub fn set_headers(&self) -> &[SetHeader] {
        self.protocol.set_headers()
    }

    /// Whether request fields go by their CGI names, so that `X-A` and `X_A` are one.
    pub fn is_cgi(&self) -> bool {
        matches!(self.protocol, Protocol::FastCgi(_) | Protocol::Uwsgi(_) | Protocol::Scgi(_))
    }

    pub fn takes_unknown_length(&self) -> bool {
        self.is_http2() || self.http().is_some_and(|http| http.http_version == HttpVersion::Http11)
    }
}

impl PassLevel {
    /// Of the directive that passes requests on here; the first family if there is none.
    fn family(&self) -> Family {
        self.draft.as_ref().map_or(FAMILIES[0], |draft| draft.family)
    }
}

impl CommonLevel {
    fn inherit(&mut self, above: &Self) {
        self.choose_store_or_cache();
        self.exchange.inherit(&above.exchange);
        self.store.inherit(&above.store);
        self.cache.inherit_open(&above.cache);
        self.sharing.inherit_open(&above.sharing);
        self.purge.inherit(&above.purge);
    }

    /// A level that stores does not inherit a cache, nor one that caches a store; both on one level was
    /// refused when it was read.
    fn choose_store_or_cache(&mut self) {
        if let Some(store) = &self.store.place
            && store.value != Store::Off
        {
            self.cache.zone.get_or_insert((ZoneChoice::Off, store.span));
        } else if let Some(span) = self.cache.zone_at() {
            self.store.place.get_or_insert(Placed { value: Store::Off, span });
        }
    }
}

impl PassLevel {
    /// What an `if` takes besides inherited settings: the target or the purge of the enclosing location.
    pub fn inherit_target(&mut self, around: &PassLevel, reading: &mut Reading<'_>) {
        if let Some(draft) = &self.draft {
            return draft.refuse_uri("an \"if\"", reading);
        }
        self.draft.clone_from(&around.draft);
        for family in FAMILIES {
            self.common_mut(*family).purge.at.clone_from(&around.common(*family).purge.at);
        }
    }
}

impl Feature for PassLevel {
    type Settings = Option<Arc<Pass>>;

    fn inherit(&mut self, above: &Self) {
        self.inherit_families(above);
    }

    fn resolve(&self, place: &Place<'_>, reading: &mut Reading<'_>) -> Option<Arc<Pass>> {
        for family in FAMILIES {
            self.common(*family).exchange.check_temp_file_size(*family, reading);
        }
        let draft = self.draft.as_ref()?;
        let (family, common) = (draft.family, self.common(draft.family));
        let mut exchange = common.exchange.resolve(place, reading);
        PassLevel::adjust(family, &mut exchange);
        let mut sent = self.sent(family);
        sent.values.extend(exchange.bind.as_ref().map(|bind| &bind.address));
        if let PassTarget::Variables(target) = &draft.target {
            sent.target = Some(target);
        }
        let of = Of { level: place.level, family, common, sent };
        let cache = usage::resolve(of, reading);
        Some(Arc::new(Pass {
            target: draft.target.clone(),
            protocol: self.protocol(draft, place.matches, reading),
            exchange,
            store: common.store.resolve(place, reading),
            cache,
            chosen_zone: match &common.cache.zone {
                Some((ZoneChoice::Chosen(zone), _)) => Some(zone.clone()),
                _ => None,
            },
        }))
    }
}
