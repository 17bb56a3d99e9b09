//! What NGINX Plus's API, version 9, tells of the process, its zones and its upstreams, in the same form, so that its clients work.
//!
//! What is not counted here is left out, and not shown as nothing. The sums are made for each who asks; a request that is served
//! pays nothing for it. Before: `resource`, which reads paths; next: `process`, `zones`, `upstreams`.

pub(super) mod process;
pub(super) mod upstreams;
mod zones;

use crate::caches;
use crate::refusal::ApiRefusal;
use millstream_server::generation::Shared;
use millstream_server::request::Request;
use millstream_wire::date;
use serde_json::{Map, Value, json};

pub(super) const VERSION: u32 = 9;

macro_rules! subjects {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal in_http=$in_http:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Subject { $($(#[doc = $doc])+ $variant,)* }

        impl Subject {
            const ALL: &'static [(Subject, &'static str, bool)] = &[$((Subject::$variant, $name, $in_http),)*];
        }
    };
}

subjects! {
    /// The process.
    Nginx "nginx" in_http=false;
    /// Workers that were started anew.
    Processes "processes" in_http=false;
    /// Connections of clients.
    Connections "connections" in_http=false;
    /// Memory that is shared in slabs; here there is none.
    Slabs "slabs" in_http=false;
    /// Handshakes of clients.
    Ssl "ssl" in_http=false;
    /// Name servers with a zone of their own.
    Resolvers "resolvers" in_http=false;
    /// The workers.
    Workers "workers" in_http=false;
    /// All requests.
    Requests "requests" in_http=true;
    /// By server.
    ServerZones "server_zones" in_http=true;
    /// By location.
    LocationZones "location_zones" in_http=true;
    /// By upstream server.
    Upstreams "upstreams" in_http=true;
    /// By cache zone.
    Caches "caches" in_http=true;
    /// By zone of `limit_req`.
    LimitReqs "limit_reqs" in_http=true;
    /// By zone of `limit_conn`.
    LimitConns "limit_conns" in_http=true;
}

impl Subject {
    pub(super) fn named(name: &str, in_http: bool) -> Option<Subject> {
        let mut all = Subject::ALL.iter();
        all.find(|(_, its, below)| *its == name && *below == in_http).map(|(subject, ..)| *subject)
    }

    pub(super) fn name(self) -> &'static str {
        self.row().1
    }

    pub(super) fn is_in_http(self) -> bool {
        self.row().2
    }

    fn row(self) -> &'static (Subject, &'static str, bool) {
        &Subject::ALL[self as usize]
    }

    pub(super) fn names(in_http: bool) -> impl Iterator<Item = &'static str> {
        Subject::ALL.iter().filter(move |(.., below)| *below == in_http).map(|(_, name, _)| *name)
    }
}

pub(super) fn of(
    request: &Request,
    subject: Subject,
    path: &[String],
    fields: Option<&[u8]>,
) -> Result<Value, ApiRefusal> {
    let whole = whole(request, subject)?;
    let is_list = matches!(
        subject,
        Subject::ServerZones
            | Subject::LocationZones
            | Subject::Upstreams
            | Subject::Caches
            | Subject::LimitReqs
            | Subject::LimitConns
            | Subject::Slabs
            | Subject::Resolvers
    );
    let wanted = fields.map(wanted);
    match (path, whole) {
        ([], Value::Object(all)) if is_list => Ok(match wanted {
            Some(names) if names.is_empty() => all.keys().cloned().collect(),
            Some(names) => all.into_iter().map(|(name, one)| (name, only(one, &names))).collect(),
            None => Value::Object(all),
        }),
        ([], whole) => Ok(wanted.map_or_else(|| whole.clone(), |names| only(whole.clone(), &names))),
        ([name, rest @ ..], Value::Object(mut all)) if is_list => {
            let missing = || {
                let text = format!("\"{name}\" not found");
                ApiRefusal::new(404, not_found(subject), text)
            };
            let one = all.remove(name).ok_or_else(missing)?;
            match (subject, rest) {
                (_, []) => Ok(wanted.map_or_else(|| one.clone(), |names| only(one.clone(), &names))),
                (Subject::Upstreams, [servers, which @ ..]) if servers == "servers" => {
                    upstreams::servers(&request.generation.shared, name, which)
                }
                _ => Err(no_path()),
            }
        }
        _ => Err(no_path()),
    }
}

/// Those with a `status_zone`. Only addresses are looked up, no services or reverse names.
fn resolvers(shared: &Shared) -> Value {
    let all = shared.configuration.http.resolvers.iter().zip(&shared.resolvers);
    let told = all.filter_map(|(conf, resolver)| {
        let look_ups = resolver.look_ups();
        let responses: Map<String, Value> =
            look_ups.outcomes().map(|(word, count)| (word.to_owned(), count.into())).collect();
        let requests = json!({ "name": look_ups.asked(), "srv": look_ups.asked_services(), "addr": 0 });
        Some((conf.zone.clone()?, json!({ "requests": requests, "responses": responses })))
    });
    Value::Object(told.collect())
}

/// NGINX Plus's error code.
fn not_found(subject: Subject) -> &'static str {
    match subject {
        Subject::Upstreams => "UpstreamNotFound",
        Subject::Caches => "CacheNotFound",
        Subject::ServerZones => "ServerZoneNotFound",
        Subject::LocationZones => "LocationZoneNotFound",
        Subject::LimitReqs => "LimitReqNotFound",
        Subject::LimitConns => "LimitConnNotFound",
        Subject::Resolvers => "ResolverZoneNotFound",
        _ => "PathNotFound",
    }
}

fn no_path() -> ApiRefusal {
    ApiRefusal::new(404, "PathNotFound", "path not found")
}

fn whole(request: &Request, subject: Subject) -> Result<Value, ApiRefusal> {
    let shared = &request.generation.shared;
    Ok(match subject {
        Subject::Nginx => process::nginx(request),
        Subject::Processes => json!({ "respawned": shared.registry.respawned() }),
        Subject::Connections => process::connections(request),
        Subject::Requests => process::requests(request),
        Subject::Workers => process::workers(request),
        Subject::Ssl => process::ssl(request),
        Subject::Slabs => json!({}),
        Subject::Resolvers => resolvers(shared),
        Subject::ServerZones => zones::servers(&shared.registry.snapshot()),
        Subject::LocationZones => zones::locations(&shared.registry.snapshot()),
        Subject::LimitReqs => zones::request_limits(shared, &shared.registry.snapshot()),
        Subject::LimitConns => zones::connection_limits(shared, &shared.registry.snapshot()),
        Subject::Upstreams => upstreams::all(shared),
        Subject::Caches => serde_json::to_value(caches::all(shared)).map_err(|_| failed())?,
    })
}

/// Zones in a table: those with the most requests.
const MOST_ZONES: usize = 500;

/// Zones with requests, upstreams and caches, in the API's format.
pub(super) fn tables(shared: &Shared) -> Value {
    let snapshot = shared.registry.snapshot();
    json!({
        "server_zones": busiest(zones::servers(&snapshot)),
        "location_zones": busiest(zones::locations(&snapshot)),
        "upstreams": upstreams::all(shared),
        "caches": serde_json::to_value(caches::all(shared)).unwrap_or_default(),
    })
}

fn busiest(zones: Value) -> Value {
    let Value::Object(zones) = zones else { return zones };
    let requests = |zone: &Value| zone["requests"].as_u64().unwrap_or(0);
    let mut asked: Vec<(String, Value)> = zones.into_iter().filter(|(_, zone)| requests(zone) > 0).collect();
    asked.sort_by_key(|(_, zone)| std::cmp::Reverse(requests(zone)));
    asked.truncate(MOST_ZONES);
    Value::Object(asked.into_iter().collect())
}

fn failed() -> ApiRefusal {
    ApiRefusal::new(500, "InternalError", "the response could not be generated")
}

fn wanted(fields: &[u8]) -> Vec<String> {
    let names = fields.split(|&byte| byte == b',').filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

fn only(mut value: Value, names: &[String]) -> Value {
    if let Some(object) = value.as_object_mut() {
        object.retain(|name, _| names.iter().any(|wanted| wanted == name));
    }
    value
}

/// ISO 8601 in UTC, as NGINX Plus.
fn moment(unix_milliseconds: i64) -> String {
    let text = date::format_iso8601(unix_milliseconds.div_euclid(1000), 0);
    let seconds = String::from_utf8_lossy(&text[..19]).into_owned();
    format!("{seconds}.{:03}Z", unix_milliseconds.rem_euclid(1000))
}

/// By status class, with the sum.
fn classes(responses: &[u64]) -> Value {
    let mut object = Map::new();
    for (index, count) in responses.iter().take(5).enumerate() {
        object.insert(format!("{}xx", index + 1), (*count).into());
    }
    object.insert("total".to_owned(), responses.iter().take(5).sum::<u64>().into());
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_in_utc_to_the_millisecond() {
        assert_eq!(moment(1_700_000_000_007), "2023-11-14T22:13:20.007Z");
    }

    #[test]
    fn only_the_fields_that_were_asked_for_are_told() {
        let whole = json!({ "a": 1, "b": 2, "c": 3 });
        assert_eq!(only(whole, &wanted(b"a,c,other")), json!({ "a": 1, "c": 3 }));
        assert!(wanted(b"").is_empty());
    }
}
