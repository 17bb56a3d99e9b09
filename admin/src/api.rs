//! The API: what the caches hold, purging, and why a URL is answered as it is. NGINX Plus's words where it has them.
//!
//! ```text
//! GET  …/nginx, …/connections, …/http/upstreams …     figures in NGINX Plus's form (`status`)
//! POST …/http/upstreams/NAME/servers, PATCH and DELETE …/servers/ID                 servers of a group (`servers`)
//! GET  …/caches               GET …/caches/ZONE       those of the cache zones
//! POST …/caches/ZONE/purge    POST …/purge            purges, as the JSON body says (DELETE means the same)
//! GET  …/explain?url=URL&header=Name:value            why this URL is answered as it is
//! GET  …/misses                                       why requests were not answered from the cache, by location
//! GET  …/shadow                                       what a cache could serve of the locations with `shadow on`
//! GET  …/cluster                                      the nodes of each cluster
//! GET  …/metrics                                      all that is counted, as Prometheus reads it
//! GET  …/live                                         the last hour, then a frame a second (server-sent events)
//! ```
//! A version and `http` may stand in front (`/api/9/http/caches`). Strangers are refused first; without `write=on` nothing
//! is changed. All but metrics and events is JSON, bodies are bounded. Where it is the dashboard's, all of that is below `/api/`, and beside it
//! stand its page, what that follows, and what monitors ask for, of which nobody is kept out. Next: `resource`, `dashboard`, `live`, `status`.

use crate::live::{self, tables};
use crate::refusal::{ApiRefusal, refuse};
use crate::resource::{self, Resource};
use crate::status::{self, Subject};
use crate::{cluster, dashboard, endpoints, explain, metrics, misses, purging, readiness, servers, shadow};
use millstream_conf::model::{Api, Handler, Write};
use millstream_server::client::{BodyProgress, Client, ClientFailure};
use millstream_server::content::api::Answering;
use millstream_server::content::purge::json;
use millstream_server::outcome::Outcome;
use millstream_server::request::Request;
use millstream_server::right;
use millstream_wire::{FieldId, Method};

/// Children of a version besides the figures of NGINX Plus.
const BESIDE_STATUS: [&str; 8] =
    ["http", "purge", "explain", "misses", "shadow", "cluster", "metrics", "live"];

const LONGEST_BODY: usize = 64 * 1024;

/// Responds to a request of a location with `api` or `dashboard`; 404 in any other.
pub fn answer<'a>(request: &'a mut Request, client: &'a mut Client) -> Answering<'a> {
    Box::pin(decide(request, client))
}

async fn decide(request: &mut Request, client: &mut Client) -> Outcome {
    let Handler::Api(api) = request.location().settings.content.clone() else { return Outcome::Status(404) };
    let resource = resource::of(request, api.is_dashboard);
    // Who starts and stops programs knows neither token nor name, and learns a word.
    match (request.method, &resource) {
        (Method::Get | Method::Head, Some(Resource::Health)) => {
            return readiness::alive(request, client).await;
        }
        (Method::Get | Method::Head, Some(Resource::Readiness)) => {
            return readiness::ready(request, client).await;
        }
        (Method::Get | Method::Head, Some(Resource::Asset(asset)))
            if right::sees_page(&api.right, request) =>
        {
            let asset = *asset;
            return dashboard::answer(request, client, asset).await;
        }
        _ => {}
    }
    let privilege = if api.is_dashboard { right::DASHBOARD } else { right::API };
    if !right::admits(&api.right, request, privilege, request.route.location) {
        let text = "api_allow and api_token decide who may use the API (in serve: --purge local or --purge token=FILE); the error log has the reason";
        return refuse(request, client, ApiRefusal::new(403, "Forbidden", text)).await;
    }
    let Some(resource) = resource else {
        return refuse(request, client, no_path()).await;
    };
    let Some(endpoint) = endpoints::of(&resource) else {
        return refuse(request, client, no_path()).await;
    };
    let outcome = match endpoint.operation(request.method) {
        None => {
            let text = "this path does not support the method";
            Err(ApiRefusal::new(405, "MethodNotSupported", text).allowing(endpoint.allow()))
        }
        Some(operation)
            if operation.writes
                && let Some(why) = changes_nothing(&api, request, endpoint) =>
        {
            Err(why)
        }
        Some(operation) if operation.writes => write(request, client, resource).await,
        Some(_) => read(request, client, resource).await,
    };
    match outcome {
        Ok(outcome) => outcome,
        Err(refusal) => refuse(request, client, refusal).await,
    }
}

/// Why an admitted request may change nothing here; `None`: it may.
fn changes_nothing(api: &Api, request: &Request, endpoint: &endpoints::Endpoint) -> Option<ApiRefusal> {
    match api.write {
        Write::Off => {
            let text = "this API is read-only: add \"write=on\" to its directive";
            Some(ApiRefusal::new(405, "MethodDisabled", text).allowing(endpoint.allow_reading()))
        }
        Write::Token if !right::may_change(&api.right, request) => Some(ApiRefusal::new(
            403,
            "Forbidden",
            "changes need the token of api_token, or api_allow local on this machine",
        )),
        Write::Token | Write::On => None,
    }
}

fn no_path() -> ApiRefusal {
    ApiRefusal::new(404, "PathNotFound", "path not found: the API is at /api/9/")
}

async fn write(
    request: &mut Request,
    client: &mut Client,
    resource: Resource,
) -> Result<Outcome, ApiRefusal> {
    let body = match body(request, client).await? {
        Ok(body) => body,
        Err(failure) => return Ok(Outcome::Client(failure)),
    };
    match resource {
        Resource::Purge(zone) => {
            let (status, report) = purging::purge(request, zone.as_deref(), &body).await?;
            Ok(json(request, client, status, &report).await)
        }
        Resource::Status(_, path) => {
            Ok(servers::answer(request, client, (request.method, &path, &body)).await)
        }
        _ => Err(no_path()),
    }
}

async fn read(request: &mut Request, client: &mut Client, resource: Resource) -> Result<Outcome, ApiRefusal> {
    match resource {
        Resource::Versions => Ok(json(request, client, 200, &[status::VERSION]).await),
        Resource::Root => {
            let names: Vec<&str> = Subject::names(false).chain(BESIDE_STATUS).collect();
            Ok(json(request, client, 200, &names).await)
        }
        Resource::Http => {
            let names: Vec<&str> = Subject::names(true).collect();
            Ok(json(request, client, 200, &names).await)
        }
        Resource::Status(subject, path) => {
            let arguments = resource::arguments(request.query().unwrap_or_default());
            let fields =
                arguments.iter().find(|(name, _)| name == "fields").map(|(_, value)| value.as_slice());
            let told = status::of(request, subject, &path, fields)?;
            Ok(json(request, client, 200, &told).await)
        }
        Resource::Live => {
            let tables = tables(&request.generation.shared);
            live::answer(request, client, tables).await
        }
        Resource::Asset(_) | Resource::Health | Resource::Readiness | Resource::Purge(_) => Err(no_path()),
        Resource::Misses => Ok(json(request, client, 200, &misses::all(&request.generation.shared)).await),
        Resource::Shadow => {
            let report = shadow::report(request).await?;
            Ok(json(request, client, 200, &report).await)
        }
        Resource::Cluster => Ok(json(request, client, 200, &cluster::all(&request.generation.shared)).await),
        Resource::Metrics => Ok(metrics::answer(request, client).await),
        Resource::Explain => {
            let explanation = explain::answer(request).await?;
            Ok(json(request, client, 200, &explanation).await)
        }
    }
}

async fn body(
    request: &mut Request,
    client: &mut Client,
) -> Result<Result<Vec<u8>, ClientFailure>, ApiRefusal> {
    // A web page can make a browser POST any text, but JSON only after asking, and it asks in vain. It has to ask for every PATCH
    // and DELETE; programs send those without a type.
    let is_json = match request.field(FieldId::ContentType) {
        Some(kind) => kind.to_ascii_lowercase().starts_with(b"application/json"),
        None => request.method != Method::Post,
    };
    let mut body = Vec::new();
    loop {
        let progress = match client.read_body(request, &mut body).await {
            Ok(progress) => progress,
            Err(failure) => return Ok(Err(failure)),
        };
        if body.len() > LONGEST_BODY {
            return Err(ApiRefusal::new(413, "BodyTooLarge", "the body is larger than 64 KiB"));
        }
        if progress == BodyProgress::End {
            break;
        }
    }
    if !body.is_empty() && !is_json {
        return Err(ApiRefusal::new(415, "NoJson", "the body must be application/json"));
    }
    Ok(Ok(body))
}
