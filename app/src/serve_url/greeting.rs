//! What `serve` says once it listens: where, in front of what, and how to try it.

use crate::cli::{Caching, ClientAddress, Front, PurgeBy};
use millstream_conf::model::ListenAddress;
use millstream_net::listener::Listening;
use millstream_net::terminal;
use millstream_server::generation::Shared;
use std::sync::Arc;

/// How `shadow` is used and ended.
const OBSERVING: &str = "send your API's traffic here; press Ctrl-C to stop and print the report";

pub fn greet(
    shared: &Shared,
    listenings: &[Arc<Listening>],
    (front, caching): (&Front, Option<&Caching>),
    urls: &[String],
    demo: bool,
) {
    let domains = &front.domains.domain;
    let control = shared.configuration.main.control_socket.clone().map(ListenAddress::Unix);
    let dashboard = shared.configuration.http.dashboard.as_ref();
    let is_own = |address| Some(address) == control.as_ref() || Some(address) == dashboard;
    let public = listenings.iter().filter(|listening| !is_own(listening.address()));
    let dashboard = listenings.iter().find(|listening| Some(listening.address()) == dashboard);
    let dashboard =
        dashboard.map(|listening| format!("dashboard: {}/\n", url_of(&listening.local().to_string())));
    let dashboard = dashboard.unwrap_or_default();
    let at: Vec<String> = public.map(|listening| listening.local().to_string()).collect();
    let memory = shared.configuration.http.cache_zones.first().map_or(0, |zone| zone.memory >> 20);
    let api =
        if demo { format!("an embedded demo API (simulated, {})", urls.join(", ")) } else { urls.join(", ") };
    let does = match caching {
        Some(caching) => storing(front, caching, memory),
        None => "caches nothing; observes which responses could be cached, and for how long\n".to_owned(),
    };
    if !domains.is_empty() {
        let named: Vec<String> = domains.iter().map(|name| format!("https://{name}")).collect();
        let told = format!(
            "millstream {} for {} (listening on {}) in front of {api}\nthe certificate is issued and renewed \
             automatically; the authority must be able to reach this machine at port 80 of {}\n{does}{dashboard}{quits}",
            env!("CARGO_PKG_VERSION"),
            named.join(", "),
            at.join(", "),
            domains.join(", "),
            quits = if caching.is_some() { "Ctrl-C quits" } else { OBSERVING },
        );
        return say(&told);
    }
    let urls: Vec<String> = at.iter().map(|at| url_of(at)).collect();
    let first = match at.first().and_then(|at| at.strip_prefix("unix:")) {
        Some(path) => format!("--unix-socket {path} http://localhost/"),
        None => format!("{}/", urls.first().map_or("", String::as_str)),
    };
    let end = match caching {
        Some(_) => format!("try: curl -i {first}   (X-Cache-Status is HIT or MISS; Ctrl-C quits)"),
        None => OBSERVING.to_owned(),
    };
    let version = env!("CARGO_PKG_VERSION");
    say(&format!("millstream {version} on {} in front of {api}\n{does}{dashboard}{end}", urls.join(", ")));
}

/// What is stored, and who may purge it.
fn storing(front: &Front, caching: &Caching, memory: u64) -> String {
    let also = caching.microcache.as_deref().map_or_else(
        || "add --microcache 1s to store responses without caching headers for a second".to_owned(),
        // A number alone counts seconds.
        |time| {
            let unit = if time.ends_with(|last: char| last.is_ascii_digit()) { " s" } else { "" };
            format!("and GET and HEAD without cookies or credentials for {time}{unit}")
        },
    );
    let address = match front.client_address {
        ClientAddress::Send => "responses without public or s-maxage are kept apart by client address",
        ClientAddress::Hide => "the API does not receive client addresses, so clients share responses",
    };
    let purge = match caching.purge {
        PurgeBy::Local if front.trust_proxy.is_empty() => {
            "programs on this machine may purge, and so may all clients of a local proxy that does not add \
             X-Forwarded-For\n"
        }
        PurgeBy::Local => {
            "programs on this machine may purge, but not from an address that --trust-proxy names\n"
        }
        PurgeBy::Off | PurgeBy::Token(_) => "",
    };
    format!(
        "caches in memory ({memory} MiB) what the API's Cache-Control and Expires allow; {also}\n{address}\n{purge}"
    )
}

fn say(told: &str) {
    eprintln!("{}", terminal::fitting(told, &std::io::stderr()));
}

fn url_of(address: &str) -> String {
    if address.starts_with("unix:") { address.to_owned() } else { format!("http://{address}") }
}
