//! What tests look at: five minutes of a small shop, whose API is spared most of its work.

use super::events::Event;
use super::state::State;
use serde_json::{Value, json};

/// A server with one peer that is down and one that is drained, two errors and three kinds of misses.
pub fn shop() -> State {
    let zone = |requests: u64| {
        json!({
            "requests": requests, "responses": { "2xx": requests - 3, "3xx": 0, "4xx": 1, "5xx": 2 }, "discarded": 0,
            "sent": requests * 2048, "latency": { "p50": 0.42, "p99": 81.5 },
            "cache": { "hit": requests - 40, "miss": 40 },
            "origin": { "requests": 40, "time": 3200, "saved_time": 800_000 },
        })
    };
    let peer = |id: u64, name: &str, state: &str, requests: u64| {
        json!({
            "id": id, "server": name, "state": state, "backup": id == 2, "active": 1, "requests": requests,
            "responses": { "5xx": 0 }, "fails": id, "unavail": 0, "ejections": 0, "header_time": 78, "response_time": 80,
            "health_checks": { "checks": 0, "fails": 0 }, "downtime": 0,
        })
    };
    let tables = |requests: u64| {
        json!({
            "server_zones": { "shop.example.com": zone(requests) },
            "location_zones": { "shop.example.com /items": zone(requests), "shop.example.com /": zone(500) },
            "upstreams": { "api": { "peers": [
                peer(0, "10.0.0.1:8000", "up", requests), peer(1, "10.0.0.2:8000", "unhealthy", 7),
                peer(2, "10.0.0.3:8000", "draining", 3),
            ] } },
            "caches": { "answers": {
                "hit": { "responses": requests - 40 }, "miss": { "responses": 40 }, "bypass": { "responses": 0 },
                "memory": { "entries": 37, "bytes": 300_000, "max_bytes": 268_435_456_u64, "evictions": 0 },
            } },
            "misses": [{
                "location": { "name": "location /items", "at": "/etc/nginx.conf:12:9" }, "origin_time": 80.0,
                "requests": {
                    "absent": { "count": 30, "text": "nothing was stored that fits", "help": "the first request must miss; store responses for \
                    longer" },
                    "client": { "count": 10, "text": "the client requested a new response", "help": "write proxy_cache_client_control off" },
                },
                "urls": [{ "url": "shop.example.com/items/7", "count": 4, "time": 600.0, "text": "nothing was stored that fits" },
                    { "url": "shop.example.com/items", "count": 9, "time": 900.0, "text": "it sets a cookie" }],
                "not_stored": { "set_cookie": { "count": 2, "text": "it sets a cookie", "help": "take Set-Cookie out of what is the same for every client" } },
            }],
        })
    };
    let names = ["at", "requests", "cached", "hits", "reached", "without", "p50", "p99", "errors"];
    let row = |at: u64| {
        let load = 100 + at % 60 * 5;
        json!([
            at,
            load,
            load,
            load * 96 / 100,
            load * 4 / 100,
            load,
            400 + at % 7 * 100,
            81_000,
            at % 50 / 49
        ])
    };
    let rows: Vec<Value> = (1000..1290).map(row).collect();
    let mut state = State::default();
    let nginx = json!({ "version": "0.1.0", "pid": 4711, "generation": 2 });
    state.take(Event::History(json!({ "names": names, "rows": rows, "nginx": nginx })));
    let notes = json!([
        { "at": 1_700_000_000_000_u64, "well": false, "text": "[error] 1#1: connect() failed (111: Connection refused)" },
        { "at": 1_600_000_000_000_u64, "well": true, "text": "configuration 2 is in force" },
    ]);
    for at in [1290, 1291] {
        let frame = json!({ "second": row(at), "tables": tables(at * 10), "notes": notes });
        state.take(Event::Second(frame));
    }
    state
}
