//! What a configuration declares: names that other directives use, wherever in the file they stand.
//!
//! Each name is declared once, in a pass before any level is read (`configuration`), so that order does not matter, as in
//! nginx. One registry knows the places of all of them, by kind. Next: `reading`, which holds it; `features/`, which declare.

pub mod resolver;
pub mod health;
pub mod sticky;
pub mod outlier;
pub mod upstream;
pub mod cache_zone;
pub mod log;
pub mod made;
pub mod limit_zone;
pub mod charset_map;
pub mod otel;
pub mod acme;

use std::collections::HashMap;
use std::sync::Arc;

use crate::source::Span;
use crate::template::Variable;

use acme::{AcmeCertificate, AcmeIssuer};
use cache_zone::CacheZone;
use charset_map::Conversion;
use health::HealthMatch;
use limit_zone::{ConnectionZone, RequestZone};
use log::{KeptLogs, LogFile, LogFormat};
use made::Made;
use otel::{OtelExporter, OtelResource};
use resolver::Resolver;
use upstream::Upstream;

/// What a name stands for. Two kinds may share a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `upstream`.
    Upstream,
    /// `keys_zone=` of a `proxy_cache_path`.
    CacheZone,
    /// The directory of a `proxy_cache_path`.
    CacheDirectory,
    /// `log_format`.
    LogFormat,
    /// `limit_req_zone`.
    RequestZone,
    /// `limit_conn_zone`.
    ConnectionZone,
    /// `charset_map`: both charsets.
    CharsetMap,
    /// `match`.
    HealthMatch,
    /// `zone=` of a `sticky learn`.
    StickyZone,
    /// `acme_issuer`.
    AcmeIssuer,
    /// `zone=` of `acme_shared_zone`.
    AcmeZone,
}

/// Everything that was declared, each kind in one list that its indices point into.
#[derive(Debug, Default)]
pub struct Declared {
    /// `upstream` blocks, then one implicit upstream per distinct `proxy_pass host:port`.
    pub upstreams: Vec<Upstream>,
    /// `resolver`s.
    pub resolvers: Vec<Resolver>,
    /// `proxy_cache_path` zones.
    pub cache_zones: Vec<CacheZone>,
    /// `log_format`s, `combined` first.
    pub log_formats: Vec<Arc<LogFormat>>,
    /// Which directives of the http block the `log_format`s of the file are.
    pub log_format_places: HashMap<Box<str>, usize>,
    /// Access-log files; every distinct path once with its buffering.
    pub log_files: Vec<LogFile>,
    /// Groups of access-log files whose names requests give; made by their first use, one for each `open_log_file_cache`.
    pub log_groups: Vec<Option<KeptLogs>>,
    /// `limit_req_zone`s.
    pub request_zones: Vec<RequestZone>,
    /// `limit_conn_zone`s.
    pub connection_zones: Vec<ConnectionZone>,
    /// Names of the variables that are made out of others, in lower case, in the order of their numbers.
    pub made_names: Vec<Box<str>>,
    /// The variables themselves.
    pub made: Vec<Made>,
    /// Charsets that `charset` and `source_charset` name.
    pub charsets: Vec<Box<str>>,
    /// Conversions between charsets, each way of a `charset_map` for itself.
    pub conversions: Vec<Conversion>,
    /// `match` blocks.
    pub health_matches: Vec<Arc<HealthMatch>>,
    /// `otel_exporter`.
    pub otel_exporter: Option<OtelExporter>,
    /// `otel_service_name`.
    pub otel_service_name: Option<String>,
    /// `otel_resource_attr`s.
    pub otel_resource: OtelResource,
    /// `acme_issuer`s.
    pub acme_issuers: Vec<AcmeIssuer>,
    /// What servers ask of them, each once.
    pub acme_certificates: Vec<AcmeCertificate>,
    places: HashMap<(Kind, Box<str>), Span>,
}

impl Declared {
    /// Declares a name; where it was declared before, that place.
    pub fn declare(&mut self, kind: Kind, name: &str, span: Span) -> Result<(), Span> {
        match self.places.get(&(kind, name.into())) {
            Some(first) => Err(*first),
            None => {
                self.places.insert((kind, name.into()), span);
                Ok(())
            }
        }
    }

    /// A variable, and those that it may be made of in the end.
    pub fn made_of<'t>(&'t self, variable: &'t Variable) -> Vec<&'t Variable> {
        made::made_of(&self.made, variable)
    }
}
