//! Every path of the API and of what stands beside it on the dashboard's listener: methods, parameters, bodies, answers.
//!
//! The router asks this table which methods a path takes and which of them change something; what is not in it is not
//! answered. `docs/openapi.json` is made of the same lines, so the two cannot drift. It answers nothing itself.
//! Next: `description` (the page), `shapes` (bodies), `resource` (paths).

mod shapes;
mod description;
#[cfg(test)]
mod tests;

pub use description::openapi;

use crate::resource::Resource;
use crate::status::Subject;
use millstream_wire::Method;

pub(crate) struct Endpoint {
    /// As on the dashboard's listener; a name in braces stands for one segment.
    path: &'static str,
    operations: &'static [Operation],
}

pub(crate) struct Operation {
    method: Method,
    says: &'static str,
    /// Whether it changes something and needs `write=on`.
    pub(crate) writes: bool,
    query: &'static [(&'static str, &'static str, bool)],
    body: Option<&'static str>,
    answers: &'static [(u16, AnswerBody)],
    audience: Audience,
}

enum AnswerBody {
    Json(&'static str),
    Text(&'static [&'static str]),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    Everybody,
    /// Clients that use a name of this machine.
    Page,
    /// Clients that `api_allow` or `api_token` admits.
    Admitted,
}

const PLAIN: AnswerBody = AnswerBody::Text(&["text/plain; charset=utf-8"]);
const REFUSED: AnswerBody = AnswerBody::Json("ApiError");
const METRICS: AnswerBody = AnswerBody::Text(&[
    "text/plain; version=0.0.4; charset=utf-8",
    "application/openmetrics-text; version=1.0.0; charset=utf-8",
]);
const FIELDS: &[(&str, &str, bool)] =
    &[("fields", "Comma-separated list of the fields to return; if empty, only names are returned.", false)];
const EXPLAINED: &[(&str, &str, bool)] = &[
    ("url", "The URL, as http://host/path.", true),
    ("method", "The method of the request; the default is GET.", false),
    ("header", "A request header field, as Name:value; can be repeated.", false),
];

const SHADOWED: &[(&str, &str, bool)] = &[(
    "stale_budget",
    "The allowed share of stale hits, such as 1%; default: that of --stale-budget, or 0.1%.",
    false,
)];

const fn get(says: &'static str, answers: &'static [(u16, AnswerBody)]) -> Operation {
    Operation {
        method: Method::Get,
        says,
        writes: false,
        query: &[],
        body: None,
        answers,
        audience: Audience::Admitted,
    }
}

/// Its fields can be selected.
const fn figures(says: &'static str, answers: &'static [(u16, AnswerBody)]) -> Operation {
    Operation { query: FIELDS, ..get(says, answers) }
}

const fn change(
    method: Method,
    says: &'static str,
    body: Option<&'static str>,
    answers: &'static [(u16, AnswerBody)],
) -> Operation {
    Operation { method, writes: true, body, ..get(says, answers) }
}

const fn open(audience: Audience, says: &'static str, answers: &'static [(u16, AnswerBody)]) -> Operation {
    Operation { audience, ..get(says, answers) }
}

const PURGED: &[(u16, AnswerBody)] = &[
    (200, AnswerBody::Json("PurgeReport")),
    (202, AnswerBody::Json("PurgeReport")),
    (400, REFUSED),
    (404, REFUSED),
    (405, REFUSED),
    (413, REFUSED),
    (415, REFUSED),
    (500, REFUSED),
];
macro_rules! edited {
    ($status:literal $shape:literal) => {
        &[
            ($status, AnswerBody::Json($shape)),
            (400, REFUSED),
            (404, REFUSED),
            (405, REFUSED),
            (413, REFUSED),
            (415, REFUSED),
            (500, REFUSED),
        ]
    };
}

macro_rules! endpoints {
    ($($path:literal => [$($operation:expr),* $(,)?];)*) => {
        &[$(Endpoint { path: $path, operations: &[$($operation),*] }),*]
    };
}

macro_rules! json {
    ($shape:literal) => {
        &[(200, AnswerBody::Json($shape))]
    };
    ($shape:literal or none) => {
        &[(200, AnswerBody::Json($shape)), (404, REFUSED)]
    };
}

static ENDPOINTS: &[Endpoint] = endpoints! {
    "/" => [open(Audience::Page, "The dashboard page.", &[(200, AnswerBody::Text(&["text/html; charset=utf-8"]))])];
    "/dashboard.css" => [open(Audience::Page, "The style sheet of the dashboard.", &[(200, AnswerBody::Text(&["text/css; charset=utf-8"]))])];
    "/dashboard.js" => [open(Audience::Page, "The script of the dashboard.", &[(200, AnswerBody::Text(&["text/javascript; charset=utf-8"]))])];
    "/healthz" => [open(Audience::Everybody, "Liveness probe: the process is running.", &[(200, PLAIN)])];
    "/readyz" => [open(Audience::Everybody, "Readiness probe: the process accepts requests.", &[(200, PLAIN), (503, PLAIN)])];
    "/metrics" => [get("All metrics, in Prometheus's text format or as OpenMetrics.", &[(200, METRICS)])];
    "/live" => [get("The event stream of the dashboard: the last hour in one event, then one event per second.", &[(200, AnswerBody::Text(&["text/event-stream"])), (503, REFUSED)])];
    "/api/" => [get("The versions of the API.", json!("Versions"))];
    "/api/9/" => [get("The names below the version.", json!("Names"))];
    "/api/9/http/" => [get("The names below http.", json!("Names"))];
    "/api/9/nginx" => [figures("The process and the configuration in force.", json!("Nginx"))];
    "/api/9/processes" => [figures("Workers that were restarted.", json!("Processes"))];
    "/api/9/connections" => [figures("Client connections.", json!("Connections"))];
    "/api/9/slabs" => [figures("Slab zones of shared memory; always empty.", json!("Slabs"))];
    "/api/9/ssl" => [figures("TLS handshakes with clients.", json!("Ssl"))];
    "/api/9/resolvers" => [figures("Resolvers with a status_zone.", json!("Resolvers"))];
    "/api/9/resolvers/{zone}" => [figures("Resolvers with a status_zone.", json!("ResolverZone" or none))];
    "/api/9/workers" => [figures("The workers: threads of one process, reported as one.", json!("Workers"))];
    "/api/9/http/requests" => [figures("All requests.", json!("Requests"))];
    "/api/9/http/server_zones" => [figures("Requests by server.", json!("ServerZones"))];
    "/api/9/http/server_zones/{zone}" => [figures("Requests of a server.", json!("ServerZone" or none))];
    "/api/9/http/location_zones" => [figures("Requests by location.", json!("LocationZones"))];
    "/api/9/http/location_zones/{zone}" => [figures("Requests of a location.", json!("LocationZone" or none))];
    "/api/9/http/upstreams" => [figures("Upstreams with their servers.", json!("Upstreams"))];
    "/api/9/http/upstreams/{upstream}" => [figures("An upstream with its servers.", json!("Upstream" or none))];
    "/api/9/http/upstreams/{upstream}/servers" => [
        get("The configured servers of an upstream.", json!("Servers" or none)),
        change(Method::Post, "Adds a server.", Some("NewServer"), edited!(201 "Server")),
    ];
    "/api/9/http/upstreams/{upstream}/servers/{id}" => [
        get("The configuration of a server.", json!("Server" or none)),
        change(Method::Patch, "Changes a server.", Some("ServerChange"), edited!(200 "Server")),
        change(Method::Delete, "Removes a server.", None, edited!(200 "Servers")),
    ];
    "/api/9/http/caches" => [figures("The cache zones.", json!("Caches"))];
    "/api/9/http/caches/{zone}" => [figures("A cache zone.", json!("Cache" or none))];
    "/api/9/http/limit_reqs" => [figures("The zones of limit_req.", json!("RequestLimits"))];
    "/api/9/http/limit_reqs/{zone}" => [figures("A zone of limit_req.", json!("RequestLimit" or none))];
    "/api/9/http/limit_conns" => [figures("The zones of limit_conn.", json!("ConnectionLimits"))];
    "/api/9/http/limit_conns/{zone}" => [figures("A zone of limit_conn.", json!("ConnectionLimit" or none))];
    "/api/9/http/caches/{zone}/purge" => [
        change(Method::Post, "Purges what the body names in one zone.", Some("PurgeBody"), PURGED),
        change(Method::Delete, "The same as POST.", Some("PurgeBody"), PURGED),
    ];
    "/api/9/purge" => [
        change(Method::Post, "Purges what the body names in all zones.", Some("PurgeBody"), PURGED),
        change(Method::Delete, "The same as POST.", Some("PurgeBody"), PURGED),
    ];
    "/api/9/explain" => [Operation {
        query: EXPLAINED,
        ..get("Explains how a request for a URL is handled.", &[(200, AnswerBody::Json("Explanation")), (400, REFUSED), (404, REFUSED)])
    }];
    "/api/9/misses" => [get("Why requests missed the cache, by location.", json!("Misses"))];
    "/api/9/shadow" => [Operation {
        query: SHADOWED,
        ..get("What a cache could serve of the locations with shadow on.", &[(200, AnswerBody::Json("ShadowReport")), (400, REFUSED), (404, REFUSED)])
    }];
    "/api/9/cluster" => [get("The nodes of each cluster.", json!("Clusters"))];
    "/api/9/metrics" => [get("The same as /metrics.", &[(200, METRICS)])];
};

pub(crate) fn of(resource: &Resource) -> Option<&'static Endpoint> {
    let path = path(resource)?;
    ENDPOINTS.iter().find(|endpoint| endpoint.path == path)
}

fn path(resource: &Resource) -> Option<String> {
    Some(match resource {
        Resource::Versions => "/api/".to_owned(),
        Resource::Root => "/api/9/".to_owned(),
        Resource::Http => "/api/9/http/".to_owned(),
        Resource::Status(subject, rest) => {
            let name = subject.name();
            let kind = if *subject == Subject::Upstreams { "upstream" } else { "zone" };
            let below = match rest.as_slice() {
                [] => String::new(),
                [_] => format!("/{{{kind}}}"),
                [_, part] => format!("/{{{kind}}}/{part}"),
                [_, part, _] => format!("/{{{kind}}}/{part}/{{id}}"),
                _ => return None,
            };
            format!("/api/9/{}{name}{below}", if subject.is_in_http() { "http/" } else { "" })
        }
        Resource::Purge(None) => "/api/9/purge".to_owned(),
        Resource::Purge(Some(_)) => "/api/9/http/caches/{zone}/purge".to_owned(),
        Resource::Explain => "/api/9/explain".to_owned(),
        Resource::Misses => "/api/9/misses".to_owned(),
        Resource::Shadow => "/api/9/shadow".to_owned(),
        Resource::Cluster => "/api/9/cluster".to_owned(),
        Resource::Metrics => "/metrics".to_owned(),
        Resource::Asset(asset) => format!("/{}", asset.name()),
        Resource::Live => "/live".to_owned(),
        Resource::Health => "/healthz".to_owned(),
        Resource::Readiness => "/readyz".to_owned(),
    })
}

impl Endpoint {
    /// HEAD is a GET without a body.
    pub(crate) fn operation(&self, method: Method) -> Option<&'static Operation> {
        let method = if method == Method::Head { Method::Get } else { method };
        self.operations.iter().find(|operation| operation.method == method)
    }

    /// As in the Allow field (RFC 9110 §10.2.1).
    pub(crate) fn allow(&self) -> String {
        names(self.operations.iter())
    }

    pub(crate) fn allow_reading(&self) -> String {
        names(self.operations.iter().filter(|operation| !operation.writes))
    }
}

fn names<'o>(operations: impl Iterator<Item = &'o Operation>) -> String {
    let names = operations.map(|operation| match operation.method {
        Method::Get => "GET, HEAD",
        method => method.name().unwrap_or_default(),
    });
    names.collect::<Vec<&str>>().join(", ")
}
