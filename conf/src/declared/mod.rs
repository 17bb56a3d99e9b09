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
pub mod cluster;

use std::collections::HashMap;
use std::sync::Arc;

use crate::source::Span;
use crate::template::Variable;

use acme::{AcmeCertificate, AcmeIssuer};
use cache_zone::CacheZone;
use charset_map::Conversion;
use cluster::Cluster;
use health::HealthMatch;
use limit_zone::{ConnectionZone, RequestZone};
use log::{KeptLogs, LogFile, LogFormat};
use made::Made;
use otel::{OtelExporter, OtelResource};
use resolver::Resolver;
use upstream::Upstream;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Upstream,
    /// `keys_zone=` of a `proxy_cache_path`.
    CacheZone,
    /// The directory of a `proxy_cache_path`.
    CacheDirectory,
    LogFormat,
    RequestZone,
    ConnectionZone,
    /// `charset_map`: both charsets.
    CharsetMap,
    HealthMatch,
    /// `zone=` of a `sticky learn`.
    StickyZone,
    AcmeIssuer,
    /// `zone=` of `acme_shared_zone`.
    AcmeZone,
    Cluster,
}

/// Everything that was declared, each kind in a list that its ids index.
#[derive(Debug, Default)]
pub struct Declared {
    /// `upstream` blocks, then one implicit upstream per distinct `proxy_pass host:port`.
    pub upstreams: Vec<Upstream>,
    pub resolvers: Vec<Resolver>,
    pub cache_zones: Vec<CacheZone>,
    /// `log_format`s, `combined` first.
    pub log_formats: Vec<Arc<LogFormat>>,
    /// Index of each `log_format` among the directives of the http block.
    pub log_format_places: HashMap<Box<str>, usize>,
    /// Each path once with its buffering.
    pub log_files: Vec<LogFile>,
    /// Groups of access-log files with variable names, created on first use, one per `open_log_file_cache`.
    pub log_groups: Vec<Option<KeptLogs>>,
    pub request_zones: Vec<RequestZone>,
    pub connection_zones: Vec<ConnectionZone>,
    /// In lower case, in the order of their ids.
    pub made_names: Vec<Box<str>>,
    pub made: Vec<Made>,
    pub charsets: Vec<Box<str>>,
    /// Each direction of a `charset_map` is one entry.
    pub conversions: Vec<Conversion>,
    pub health_matches: Vec<Arc<HealthMatch>>,
    pub otel_exporter: Option<OtelExporter>,
    pub otel_service_name: Option<String>,
    pub otel_resource: OtelResource,
    pub clusters: Vec<Cluster>,
    pub acme_issuers: Vec<AcmeIssuer>,
    /// Each once.
    pub acme_certificates: Vec<AcmeCertificate>,
    places: HashMap<(Kind, Box<str>), Span>,
}

impl Declared {
    /// If it was declared before, fails with that place.
    pub fn declare(&mut self, kind: Kind, name: &str, span: Span) -> Result<(), Span> {
        match self.places.get(&(kind, name.into())) {
            Some(first) => Err(*first),
            None => {
                self.places.insert((kind, name.into()), span);
                Ok(())
            }
        }
    }

    pub fn made_of<'t>(&'t self, variable: &'t Variable) -> Vec<&'t Variable> {
        made::made_of(&self.made, variable)
    }
}
