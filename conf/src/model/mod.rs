//! The typed configuration: plain data, every setting resolved (inherited, parsed, compiled) at load.
//!
//! Nothing here is looked up by name during a request, and nothing here does I/O. Each engine takes its own
//! part (`cache` takes a [`CacheZone`], `upstream` an [`Upstream`]), never the whole.
//! Before: `features/`, whose data these are; next: `configuration`, which fills these; `millstream-server`'s `route`, which reads
//! them.

pub mod location;
pub mod listen;

pub use crate::address::{HostPort, ListenAddress, PeerAddress};
pub use crate::declared::acme::{
    AccountKey, AcmeCertificate, AcmeCertificateId, AcmeChallenge, AcmeIdentifier, AcmeIssuer, AcmeIssuerId,
    AcmeProfile, ExternalAccount, KeyKind, WebUrl,
};
pub use crate::declared::cache_zone::{CacheZone, CacheZoneId, Pace};
pub use crate::declared::charset_map::{Conversion, Table};
pub use crate::declared::cluster::Cluster;
pub use crate::declared::health::{
    BeforeFirst, FieldTest, HealthCheck, HealthMatch, HealthQuestion, HealthTerms, HealthTest,
};
pub use crate::declared::limit_zone::{
    ConnectionZone, ConnectionZoneId, LimitZone, RequestZone, RequestZoneId,
};
pub use crate::declared::log::{
    Escape, KeptLogs, LogFile, LogFileId, LogFormat, LogGroupId, LogTarget, Syslog,
};
pub use crate::declared::made::geo::Geo;
pub use crate::declared::made::map::Map;
pub use crate::declared::made::split_clients::SplitClients;
pub use crate::declared::made::{self, Made, Making};
pub use crate::declared::otel::{OtelEndpoint, OtelExporter, OtelProtocol, OtelResource, UNKNOWN_SERVICE};
pub use crate::declared::outlier::OutlierEjection;
pub use crate::declared::resolver::{RESOLVER_TIMEOUT, Resolver, ResolverId};
pub use crate::declared::sticky::{CookieLife, Sticky, StickyCookie, StickyLearn, StickyWay};
pub use crate::declared::upstream::{
    Balance, BalanceMethod, KeepaliveSize, Queue, TimeTo, Upstream, UpstreamId, UpstreamKeepalive,
    UpstreamServer,
};
pub use crate::features::Handler;
pub use crate::features::access::Rule;
pub use crate::features::api::Api;
pub use crate::features::auth_basic::Basic;
pub use crate::features::auth_request::AuthRequest;
pub use crate::features::autoindex::{Autoindex, AutoindexFormat};
pub use crate::features::brotli::Brotli;
pub use crate::features::browser::{Browsers, ModernBrowser};
pub use crate::features::builtin_content::BuiltinContent;
pub use crate::features::charset::Charset;
pub use crate::features::client_body::InFileOnly;
pub use crate::features::client_certificate::{ClientCertificates, VerifyClient};
pub use crate::features::dav::DavMethod;
pub use crate::features::error_pages::{ErrorPage, ErrorPageStatus};
pub use crate::features::files::{Replaces, Root};
pub use crate::features::gzip::{Gzip, GzipHttpVersion, GzipProxied, Precoded};
pub use crate::features::headers::expires::{self, Expires};
pub use crate::features::headers::{AddHeader, ServerTokens};
pub use crate::features::health_check::LocationCheck;
pub use crate::features::keepalive::KeepaliveDisable;
pub use crate::features::limit::TooMuch;
pub use crate::features::limit_conn::{ConnectionLimit, ConnectionLimits};
pub use crate::features::limit_rate::RequestSize;
pub use crate::features::limit_req::{RequestLimit, RequestLimits};
pub use crate::features::lingering::{Lingering, LingeringClose};
pub use crate::features::listen::{ServerName, SocketKeepalive};
pub use crate::features::location::{LocationId, LocationMatch};
pub use crate::features::logs::{AccessLog, ErrorForm, ErrorLog, LogLevel as Level, LogPlace};
pub use crate::features::main::{Main, User, WorkerProcesses};
pub use crate::features::open_file_cache::{KeptFiles, OpenFileCache};
pub use crate::features::otel::{Otel, OtelContext, SpanAttribute};
pub use crate::features::pass::cache::ignored_args::IgnoredArg;
pub use crate::features::pass::cache::usage::ProxyCache;
pub use crate::features::pass::cache::verify::{CacheVerify, OnLeak};
pub use crate::features::pass::cache::{Heuristic, Valid, ValidStatus};
pub use crate::features::pass::cookie::{CookieFlags, CookieRule, Cookies, Pattern};
pub use crate::features::pass::exchange::{Bind, Exchange, IgnoreHeaders};
pub use crate::features::pass::failures::{FailureWords, NextUpstream, UseStale};
pub use crate::features::pass::fastcgi::FastCgiPass;
pub use crate::features::pass::grpc::GrpcPass;
pub use crate::features::pass::http::{HttpPass, HttpVersion, ProxyHeader, Redirect, SetHeader};
pub use crate::features::pass::params::{Param, Says};
pub use crate::features::pass::scgi::ScgiPass;
pub use crate::features::pass::secure::{PassTls, UpstreamTls};
pub use crate::features::pass::sharing::{AddressValue, CacheVary, Credentials, Invalidation, StaleWhile};
pub use crate::features::pass::store::Store;
pub use crate::features::pass::target::PassTarget;
pub use crate::features::pass::uwsgi::UwsgiPass;
pub use crate::features::pass::{Pass, Protocol};
pub use crate::features::phases::Phases;
pub use crate::features::purge_at::PurgeAt;
pub use crate::features::ranges::IfModifiedSince;
pub use crate::features::realip::{RealIp, RealIpHeader};
pub use crate::features::redirects::Redirects;
pub use crate::features::resolver::Resolving;
pub use crate::features::rewrite::{
    Condition, FileKind, Goal, Instruction, Return, ReturnBody, Rewrite, Scripted, Settable, Then,
};
pub use crate::features::right::{Allowed, ManageRight, Write};
pub use crate::features::satisfy::Satisfy;
pub use crate::features::secure_link::SecureLink;
pub use crate::features::status_zone::StatusZone;
pub use crate::features::sub_filter::{SubFilter, Substitution};
pub use crate::features::symlinks::{Refused, Symlinks};
pub use crate::features::tls::{CertificateCache, PemSource, Stapling, Tls, TlsGroup, TlsVersion};
pub use crate::features::try_files::{Candidate, Otherwise, TryFiles};
pub use crate::features::types::Types;
pub use crate::features::userid::{UserId, UserIdMode};
pub use crate::features::valid_referers::ValidReferers;
pub use crate::features::{ServerSettings, Settings};
pub use crate::network::Network;
pub use crate::reading::TempPath;
pub use crate::regular_expression::Regex;
pub use crate::template::{MadeId, Part, ProxyProtocolTlv, Template, Variable};
pub use listen::{Listener, Server, ServerId};
pub use location::{LimitExcept, Location, LocationTree};

use crate::slots::Slot;
use crate::source::Sources;

#[derive(Debug, Default)]
pub struct Configuration {
    pub sources: Sources,
    pub main: Main,
    /// Empty lists if the file has no http block.
    pub http: Http,
}

/// The http block, each kind in one arena that the ids index.
#[derive(Debug, Default)]
pub struct Http {
    /// Every address once, with the servers that share it.
    pub listeners: Vec<Listener>,
    /// The one of `listeners` that is the `dashboard`'s.
    pub dashboard: Option<ListenAddress>,
    /// In file order.
    pub servers: Vec<Server>,
    /// Of every server, the servers' own level included.
    pub locations: Vec<Location>,
    /// `upstream` blocks, then one implicit upstream per distinct `proxy_pass host:port`.
    pub upstreams: Vec<Upstream>,
    pub resolvers: Vec<Resolver>,
    pub cache_zones: Vec<CacheZone>,
    /// Every path once with its buffering.
    pub log_files: Vec<LogFile>,
    /// Groups of access-log files with variable names, each with its `open_log_file_cache`.
    pub log_groups: Vec<Option<KeptLogs>>,
    pub request_zones: Vec<RequestZone>,
    pub connection_zones: Vec<ConnectionZone>,
    pub slots: Vec<Slot>,
    pub made: Vec<Made>,
    pub charsets: Vec<Box<str>>,
    pub conversions: Vec<Conversion>,
    pub otel_exporter: Option<OtelExporter>,
    pub otel_resource: OtelResource,
    pub clusters: Vec<Cluster>,
    pub acme_issuers: Vec<AcmeIssuer>,
    /// Each once.
    pub acme_certificates: Vec<AcmeCertificate>,
}

impl Http {
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.0 as usize]
    }
    pub fn server(&self, id: ServerId) -> &Server {
        &self.servers[id.0 as usize]
    }
    /// Its own level, those at any depth, and their faces.
    pub fn locations_of(&self, server: &Server) -> Vec<LocationId> {
        let (mut trees, mut ids) = (vec![&server.locations], vec![server.own]);
        while let Some(tree) = trees.pop() {
            let paths = tree.exact.iter().chain(&tree.prefixes).chain(&tree.named).map(|(_, id)| *id);
            for id in paths.chain(tree.regexes.iter().copied()) {
                ids.push(id);
                ids.extend(&self.location(id).faces);
                trees.push(&self.location(id).nested);
            }
        }
        ids
    }
    pub fn upstream(&self, id: UpstreamId) -> &Upstream {
        &self.upstreams[id.0 as usize]
    }
    pub fn cache_zone(&self, id: CacheZoneId) -> &CacheZone {
        &self.cache_zones[id.0 as usize]
    }
}
