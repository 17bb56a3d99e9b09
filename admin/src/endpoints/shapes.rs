//! The shapes of bodies that the table of endpoints names, as lines of fields, and the JSON schemas that they become.
//!
//! A scenario compares what is answered with them, so that a field that is told and not written here is found. A `?` behind a
//! name: the field may be absent. Types are words: `[a]` a list, `{a}` an object by name, `a|b` either, a capital another line.
//! Before: `endpoints`; next: `description`.

use MadeOf::{Any, Fields, Figures};
use serde_json::{Map, Value, json};

pub(super) enum MadeOf {
    Fields(&'static [(&'static str, &'static str)]),
    /// The same, but the argument `fields` may leave any out.
    Figures(&'static [(&'static str, &'static str)]),
    Any(&'static str),
}

pub(super) const SHAPES: &[(&str, MadeOf)] = &[
    ("ApiError", Fields(&[("error", "ApiErrorText")])),
    ("ApiErrorText", Fields(&[("status", "count"), ("text", "string"), ("code", "string")])),
    ("Versions", Any("[count]")),
    ("Names", Any("[string]")),
    (
        "Nginx",
        Figures(&[
            ("version", "string"),
            ("build", "string"),
            ("address", "string"),
            ("generation", "count"),
            ("load_timestamp", "string"),
            ("timestamp", "string"),
            ("pid", "count"),
            ("ppid", "count"),
        ]),
    ),
    ("Processes", Figures(&[("respawned", "count")])),
    (
        "Connections",
        Figures(&[("accepted", "count"), ("dropped", "count"), ("active", "count"), ("idle", "count")]),
    ),
    ("Slabs", Any("{string}|Names")),
    ("Ssl", Figures(&[("handshakes", "count"), ("handshakes_failed", "count"), ("session_reuses", "count")])),
    ("Resolvers", Any("{ResolverZone}|Names")),
    ("ResolverZone", Figures(&[("requests", "LookUps"), ("responses", "{count}")])),
    ("LookUps", Fields(&[("name", "count"), ("srv", "count"), ("addr", "count")])),
    ("Workers", Any("[Worker]")),
    (
        "Worker",
        Figures(&[
            ("id", "count"),
            ("pid", "count"),
            ("connections", "Connections"),
            ("http", "WorkerRequests"),
        ]),
    ),
    ("WorkerRequests", Fields(&[("requests", "Requests")])),
    ("Requests", Figures(&[("total", "count"), ("current", "count")])),
    ("ServerZones", Any("{ServerZone}|Names")),
    (
        "ServerZone",
        Figures(&[
            ("processing", "count"),
            ("requests", "count"),
            ("responses", "Responses"),
            ("discarded", "count"),
            ("received", "count"),
            ("sent", "count"),
            ("cache", "{count}"),
            ("latency", "Latency"),
        ]),
    ),
    ("LocationZones", Any("{LocationZone}|Names")),
    (
        "LocationZone",
        Figures(&[
            ("processing", "count"),
            ("requests", "count"),
            ("responses", "Responses"),
            ("discarded", "count"),
            ("received", "count"),
            ("sent", "count"),
            ("cache", "{count}"),
            ("latency", "Latency"),
            ("origin", "OriginTimes"),
        ]),
    ),
    (
        "Responses",
        Fields(&[
            ("1xx", "count"),
            ("2xx", "count"),
            ("3xx", "count"),
            ("4xx", "count"),
            ("5xx", "count"),
            ("codes?", "{count}"),
            ("total", "count"),
        ]),
    ),
    ("Latency", Fields(&[("p50", "number|null"), ("p99", "number|null")])),
    (
        "OriginTimes",
        Fields(&[
            ("requests", "count"),
            ("time", "count"),
            ("saved_requests", "count"),
            ("saved_time", "count"),
        ]),
    ),
    ("Queue", Fields(&[("size", "count"), ("max_size", "count"), ("overflows", "count")])),
    ("Upstreams", Any("{Upstream}|Names")),
    (
        "Upstream",
        Figures(&[
            ("peers", "[Peer]"),
            ("keepalive", "count"),
            ("queue", "Queue"),
            ("zombies", "count"),
            ("zone", "string"),
        ]),
    ),
    (
        "Peer",
        Fields(&[
            ("id", "count"),
            ("server", "string"),
            ("name", "string"),
            ("backup", "boolean"),
            ("weight", "count"),
            ("state", "string"),
            ("active", "count"),
            ("max_conns?", "count"),
            ("requests", "count"),
            ("header_time?", "count"),
            ("response_time?", "count"),
            ("responses", "Responses"),
            ("sent", "count"),
            ("received", "count"),
            ("fails", "count"),
            ("unavail", "count"),
            ("health_checks", "HealthChecks"),
            ("ejections", "count"),
            ("downtime", "count"),
            ("downstart?", "string"),
            ("selected?", "string"),
        ]),
    ),
    (
        "HealthChecks",
        Fields(&[
            ("checks", "count"),
            ("fails", "count"),
            ("unhealthy", "count"),
            ("last_passed?", "boolean"),
        ]),
    ),
    ("Servers", Any("[Server]")),
    (
        "Server",
        Fields(&[
            ("id", "count"),
            ("server", "string"),
            ("weight", "count"),
            ("max_conns", "count"),
            ("max_fails", "count"),
            ("fail_timeout", "string"),
            ("slow_start", "string"),
            ("route", "string"),
            ("backup", "boolean"),
            ("down", "boolean"),
            ("drain?", "boolean"),
        ]),
    ),
    (
        "NewServer",
        Fields(&[
            ("server", "string"),
            ("weight?", "weight|null"),
            ("max_conns?", "count32|null"),
            ("max_fails?", "count32|null"),
            ("fail_timeout?", "string|null"),
            ("slow_start?", "string|null"),
            ("route?", "route|null"),
            ("backup?", "boolean|null"),
            ("down?", "boolean|null"),
            ("drain?", "boolean|null"),
        ]),
    ),
    (
        "ServerChange",
        Fields(&[
            ("server?", "string|null"),
            ("weight?", "weight|null"),
            ("max_conns?", "count32|null"),
            ("max_fails?", "count32|null"),
            ("fail_timeout?", "string|null"),
            ("slow_start?", "string|null"),
            ("route?", "route|null"),
            ("backup?", "boolean|null"),
            ("down?", "boolean|null"),
            ("drain?", "boolean|null"),
        ]),
    ),
    ("Caches", Any("{Cache}|Names")),
    (
        "Cache",
        Figures(&[
            ("size", "count"),
            ("max_size?", "count"),
            ("cold", "boolean"),
            ("hit?", "ServedCount"),
            ("miss?", "ServedCount"),
            ("bypass?", "ServedCount"),
            ("expired?", "ServedCount"),
            ("stale?", "ServedCount"),
            ("updating?", "ServedCount"),
            ("revalidated?", "ServedCount"),
            ("memory", "MemoryTier"),
            ("disk?", "DiskTier"),
        ]),
    ),
    ("ServedCount", Fields(&[("responses", "count"), ("bytes", "count")])),
    (
        "MemoryTier",
        Fields(&[("entries", "count"), ("bytes", "count"), ("max_bytes", "count"), ("evictions", "count")]),
    ),
    (
        "DiskTier",
        Fields(&[
            ("path", "string"),
            ("files", "count"),
            ("bytes", "count"),
            ("removed", "count"),
            ("index_bytes", "count"),
            ("corrupt", "count"),
            ("errors", "count"),
            ("unwritten", "count"),
        ]),
    ),
    ("RequestLimits", Any("{RequestLimit}|Names")),
    (
        "RequestLimit",
        Figures(&[
            ("passed", "count"),
            ("delayed", "count"),
            ("rejected", "count"),
            ("delayed_dry_run", "count"),
            ("rejected_dry_run", "count"),
        ]),
    ),
    ("ConnectionLimits", Any("{ConnectionLimit}|Names")),
    (
        "ConnectionLimit",
        Figures(&[("passed", "count"), ("rejected", "count"), ("rejected_dry_run", "count")]),
    ),
    (
        "PurgeBody",
        Fields(&[
            ("url?", "string|[string]"),
            ("prefix?", "string|[string]"),
            ("key?", "string|[string]"),
            ("key_prefix?", "string|[string]"),
            ("tags?", "string|[string]"),
            ("all?", "boolean"),
            ("soft?", "boolean"),
            ("wait?", "string"),
        ]),
    ),
    (
        "PurgeReport",
        Fields(&[
            ("status", "string"),
            ("soft", "boolean"),
            ("purged", "[Purged]"),
            ("notes?", "[string]"),
            ("nodes?", "[PurgedNode]"),
        ]),
    ),
    ("PurgedNode", Fields(&[("node", "string"), ("state", "string"), ("seconds?", "count")])),
    ("Clusters", Any("[ClusteredZone]")),
    (
        "ClusteredZone",
        Fields(&[
            ("cluster", "string"),
            ("zone", "string"),
            ("node", "string"),
            ("state", "string"),
            ("cut_off_seconds", "number|null"),
            ("epoch", "count"),
            ("head", "count"),
            ("sequence", "count"),
            ("lag", "count"),
            ("unpublished", "count"),
            ("carried_out", "count"),
            ("breaker_opened", "count"),
            ("failure", "string|null"),
            ("nodes", "[ClusterNode]"),
        ]),
    ),
    (
        "ClusterNode",
        Fields(&[
            ("node", "string"),
            ("state", "string"),
            ("id", "string"),
            ("sequence", "count"),
            ("lag", "count"),
            ("cut_off_seconds", "number|null"),
            ("silent_seconds", "number"),
        ]),
    ),
    (
        "Purged",
        Fields(&[
            ("zone", "string"),
            ("by", "string"),
            ("text", "string"),
            ("in_memory?", "boolean"),
            ("on_disk?", "boolean"),
        ]),
    ),
    ("Misses", Any("[LocationMisses]")),
    (
        "LocationMisses",
        Fields(&[
            ("location", "Place"),
            ("origin_time", "number"),
            ("requests", "{Cause}"),
            ("not_stored", "{Cause}"),
            ("urls", "[MissedUrl]"),
        ]),
    ),
    ("MissedUrl", Fields(&[("url", "string"), ("count", "count"), ("time", "number"), ("text", "string")])),
    ("Cause", Fields(&[("text", "string"), ("help", "string"), ("count", "count"), ("last", "integer")])),
    ("Place", Fields(&[("name", "string"), ("at", "string")])),
    (
        "ShadowReport",
        Fields(&[
            ("schema", "string"),
            ("millstream", "string"),
            ("duration_seconds", "number"),
            ("stale_budget", "number"),
            ("totals", "{number}"),
            ("locations", "[string]"),
            ("routes", "[ShadowRoute]"),
        ]),
    ),
    (
        "ShadowRoute",
        Fields(&[
            ("route", "string"),
            ("location", "count"),
            ("requests", "count"),
            ("clients", "count"),
            ("api_seconds", "number"),
            ("keep_seconds", "count|null"),
            ("reason", "string"),
            ("varies_by", "[string]"),
            ("ignores", "[string]"),
            ("bypasses", "[string]"),
            ("shares", "[string]"),
            ("served_only", "[string]"),
            ("usual", "[ShadowField]"),
            ("noise", "[string]"),
            ("changed_by", "[string]"),
            ("would_be_hits", "count"),
            ("stale", "count"),
            ("stale_age_seconds", "number|null"),
            ("leaks", "count"),
            ("hit_ratio", "[number]"),
            ("saved_seconds", "number"),
            ("needs", "ShadowNeeds|null"),
        ]),
    ),
    ("ShadowField", Fields(&[("field", "string"), ("values", "[string]|null")])),
    ("ShadowNeeds", Fields(&[("requests", "count"), ("clients", "count")])),
    (
        "Explanation",
        Fields(&[
            ("url", "string"),
            ("method", "string"),
            ("listener", "string"),
            ("server", "Place"),
            ("server_note?", "string"),
            ("location", "Place"),
            ("zone?", "string"),
            ("key?", "KeyMade"),
            ("slice?", "string"),
            ("now", "Verdict"),
            ("stored", "[Stored]"),
            ("last_refusal?", "LastRefusal"),
            ("last_purge?", "LastPurge"),
        ]),
    ),
    (
        "KeyMade",
        Fields(&[
            ("text", "string"),
            ("file", "string"),
            ("template", "string"),
            ("at?", "string"),
            ("parts", "[KeyPart]"),
        ]),
    ),
    ("KeyPart", Fields(&[("variable", "string"), ("value", "string")])),
    ("Verdict", Fields(&[("status", "string|null"), ("why", "string")])),
    (
        "Stored",
        Fields(&[
            ("chosen", "boolean"),
            ("varies_by", "[string]"),
            ("status", "count"),
            ("length", "count"),
            ("part?", "string"),
            ("tier", "string"),
            ("codings?", "[Coded]"),
            ("tags", "count"),
            ("age", "count"),
            ("fresh", "boolean"),
            ("left", "integer"),
            ("arithmetic", "[string]"),
            ("because", "string"),
            ("at?", "Place"),
        ]),
    ),
    ("Coded", Fields(&[("coding", "string"), ("length", "count")])),
    (
        "LastRefusal",
        Fields(&[
            ("reason", "string"),
            ("text", "string"),
            ("help", "string"),
            ("milliseconds_ago", "integer"),
        ]),
    ),
    (
        "LastPurge",
        Fields(&[
            ("by", "string"),
            ("prefix?", "string"),
            ("node?", "string"),
            ("soft", "boolean"),
            ("before_stored", "boolean"),
            ("milliseconds_ago", "integer"),
        ]),
    ),
];

impl MadeOf {
    pub(super) fn schema(&self) -> Value {
        let (fields, may_lack) = match self {
            Any(words) => return schema(words),
            Fields(fields) => (fields, false),
            Figures(fields) => (fields, true),
        };
        let bare = |name: &'static str| name.strip_suffix('?').unwrap_or(name);
        let properties: Map<String, Value> =
            fields.iter().map(|(name, words)| (bare(name).to_owned(), schema(words))).collect();
        let mut object = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        let required: Vec<&str> =
            fields.iter().map(|(name, _)| *name).filter(|name| !name.ends_with('?') && !may_lack).collect();
        if !required.is_empty() {
            object["required"] = json!(required);
        }
        object
    }
}

fn schema(words: &str) -> Value {
    if words.contains('|') {
        return json!({ "anyOf": words.split('|').map(schema).collect::<Vec<Value>>() });
    }
    if let Some(of) = words.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return json!({ "type": "array", "items": schema(of) });
    }
    if let Some(of) = words.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        return json!({ "type": "object", "additionalProperties": schema(of) });
    }
    match words {
        "count" => json!({ "type": "integer", "minimum": 0 }),
        "count32" => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        "weight" => json!({ "type": "integer", "minimum": 1, "maximum": 1_000_000 }),
        "route" => json!({ "type": "string", "maxLength": 32, "pattern": "^[A-Za-z0-9._~-]*$" }),
        "integer" | "number" | "string" | "boolean" | "null" => json!({ "type": words }),
        name => json!({ "$ref": format!("#/components/schemas/{name}") }),
    }
}
