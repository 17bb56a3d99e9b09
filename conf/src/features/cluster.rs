//! The block `cluster`: through which engine the nodes of a cluster reach each other.
//!
//! Whether the engine is there is not asked. Before: `cache_zone`, whose zones take part; next: `declared/cluster`, what comes of it.

use super::context::HTTP;
use super::{Apply, Row, often};
use crate::address::{EngineUrl, PeerAddress};
use crate::declared::Kind;
use crate::declared::cluster::Cluster;
use crate::features::made::lines;
use crate::parts::PathUse;
use crate::reading::Reading;
use crate::suggest;
use crate::tree::{Directive, Word};
use std::time::Duration;

/// Each with the least and the greatest number of its words.
const LINES: [(&str, (usize, usize)); 10] = [
    ("server", (1, 1)),
    ("sentinel", (2, 2)),
    ("user", (1, 1)),
    ("password", (1, 1)),
    ("tls", (1, 1)),
    ("trusted_certificate", (1, 1)),
    ("secret", (1, 1)),
    ("node", (1, 1)),
    ("timeout", (1, 1)),
    ("cut_off", (1, 2)),
];
const REPEATED: [&str; 2] = ["server", "sentinel"];

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;
/// In bytes; what names a node or a zone is bound to it.
const LONGEST_NAME: usize = 255;
const TIMEOUT: Duration = Duration::from_millis(5);
const CUT_OFF: Duration = Duration::from_secs(10);
const LEAST_CUT_OFF: Duration = Duration::from_secs(1);

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("cluster", HTTP, (1, 1), "name { … }", "",
        "Defines a cluster: purges and invalidations of one node take effect on all nodes, through a Redis or Valkey server (the engine). Cache zones \
        take part with `cluster=name`, zones of `limit_req` and `limit_conn` with `sync`. `server address;` is the engine's address (port 6379), also as `redis://user:password@host:port`, or `rediss://` for TLS; with several, the first that \
        is a primary is used. \
        `sentinel name address;` asks Redis Sentinel for the primary instead. `secret file;` names a file with the cluster's shared secret: \
        what is stored in the engine is encrypted and authenticated with it, except the counters of `sync=exact` limits, whose keys are hashed. `user name;` and `password file;` \
        authenticate to the engine; `tls on;` encrypts the connection, with `trusted_certificate file;` instead of the system's CA \
        certificates. `node name;` is the name of this node (the host name). A request waits for the engine for at most `timeout` (5ms). After \
        `cut_off` (10s) without confirmation that it knows all purges, a node revalidates stored responses; with `cut_off time serve;` it \
        keeps serving them.",
        Apply::DeclareLines(declare)),
];

fn declare(directive: &Directive, reading: &mut Reading<'_>) {
    let name = &directive.args[0];
    if !reading.without_variables(name, "cluster") {
        return;
    }
    let mut cluster = Cluster {
        name: name.text.clone(),
        span: directive.span,
        servers: Vec::new(),
        sentinel: None,
        user: None,
        password: None,
        password_text: None,
        secured: false,
        trusted: None,
        secret: Default::default(),
        node: None,
        timeout: TIMEOUT,
        cut_off: CUT_OFF,
        serves: false,
    };
    let mut seen: Vec<&str> = Vec::new();
    for (key, words) in lines(directive, reading) {
        if !is_line(key, words, reading) {
            continue;
        }
        if !REPEATED.contains(&key.text.as_str()) && seen.contains(&key.text.as_str()) {
            reading.error(key.span, format!("\"{}\" is duplicate", key.text)).help("keep one of them");
            continue;
        }
        seen.push(&key.text);
        line(&mut cluster, key, words, reading);
    }
    if !seen.contains(&"server") && !seen.contains(&"sentinel") {
        reading
            .error(directive.span, "\"cluster\" requires \"server\" or \"sentinel\"")
            .help("write where the engine is, as in server 127.0.0.1:6379;");
    }
    if !seen.contains(&"secret") {
        reading
            .error(directive.span, "\"cluster\" requires \"secret\"")
            .help("name a file with at least 16 random bytes, as in secret /etc/millstream/cluster.key;");
    }
    if cluster.trusted.is_some() && !cluster.secured {
        reading
            .diagnostics
            .warning(
                directive.span,
                "\"trusted_certificate\" has no effect, because the connection is not encrypted",
            )
            .help("add tls on;");
    }
    let message = format!("duplicate cluster \"{}\"", cluster.name);
    if reading.declare(Kind::Cluster, &cluster.name, directive.span, message) {
        reading.declared.clusters.push(cluster);
    }
}

fn is_line(key: &Word, words: &[Word], reading: &mut Reading<'_>) -> bool {
    let Some((_, (least, most))) = LINES.into_iter().find(|(name, _)| *name == key.text) else {
        let names = LINES.map(|(name, _)| name);
        let help = suggest::did_you_mean(&key.text, names)
            .unwrap_or_else(|| format!("write one of: {}", names.join(", ")));
        reading.error(key.span, format!("unknown directive \"{}\" in \"cluster\"", key.text)).help(help);
        return false;
    };
    if !(least..=most).contains(&words.len()) {
        let message = format!("invalid number of arguments in \"{}\" directive of \"cluster\"", key.text);
        let takes = if least == most { least.to_string() } else { format!("{least} or {most}") };
        reading.error(key.span, message).help(format!("it takes {takes}"));
        return false;
    }
    words.iter().all(|word| reading.without_variables(word, "cluster"))
}

fn line(cluster: &mut Cluster, key: &Word, words: &[Word], reading: &mut Reading<'_>) {
    let word = &words[0];
    match key.text.as_str() {
        "server" => server(cluster, word, reading),
        "sentinel" => {
            let Some(address) = address(&words[1], SENTINEL_PORT, reading) else { return };
            let (name, servers) = cluster.sentinel.get_or_insert_with(|| (word.text.clone(), Vec::new()));
            if *name != word.text {
                reading
                    .error(word.span, format!("the primary is already called \"{name}\""))
                    .help("write the same name in each \"sentinel\"");
                return;
            }
            servers.push(address);
        }
        "user" => cluster.user = Some(word.text.clone()),
        "password" => cluster.password = Some(reading.named_path(word, &word.text, PathUse::Secret)),
        "tls" => cluster.secured |= reading.flag(word).unwrap_or(false),
        "trusted_certificate" => {
            cluster.trusted = Some(reading.named_path(word, &word.text, PathUse::Certificate));
        }
        "secret" => cluster.secret = reading.named_path(word, &word.text, PathUse::Secret),
        "node" => cluster.node = node(word, reading),
        "timeout" => cluster.timeout = reading.duration(word).unwrap_or(TIMEOUT),
        _ => cut_off(cluster, words, reading),
    }
}

/// An address, or a URL, which may have what other lines have otherwise.
fn server(cluster: &mut Cluster, word: &Word, reading: &mut Reading<'_>) {
    let Some(url) = EngineUrl::parse(&word.text, PORT) else {
        reading.error(word.span, format!("invalid address \"{}\"", word.text)).help(
            "write host:port, unix:/path/of/a.sock, or redis://user:password@host:port (rediss for TLS)",
        );
        return;
    };
    cluster.servers.push(url.address);
    cluster.secured |= url.is_secured;
    cluster.user = url.user.or(cluster.user.take());
    cluster.password_text = url.password.or(cluster.password_text.take());
}

fn address(word: &Word, port: u16, reading: &mut Reading<'_>) -> Option<PeerAddress> {
    let address = PeerAddress::parse(&word.text, port);
    if address.is_none() {
        reading
            .error(word.span, format!("invalid address \"{}\"", word.text))
            .help("write host:port, or unix:/path/of/a.sock");
    }
    address
}

fn node(word: &Word, reading: &mut Reading<'_>) -> Option<String> {
    let is_name = !word.text.is_empty() && word.text.len() <= LONGEST_NAME;
    if !is_name || word.text.chars().any(char::is_control) {
        reading.error(word.span, "invalid name of a node").help("write 1 to 255 characters");
        return None;
    }
    Some(word.text.clone())
}

fn cut_off(cluster: &mut Cluster, words: &[Word], reading: &mut Reading<'_>) {
    let Some(time) = reading.duration(&words[0]) else { return };
    if time < LEAST_CUT_OFF {
        reading.error(words[0].span, "\"cut_off\" is too short").help("write at least 1s");
        return;
    }
    cluster.cut_off = time;
    match words.get(1).map(|word| (word.text.as_str(), word.span)) {
        None | Some(("revalidate", _)) => {}
        Some(("serve", _)) => cluster.serves = true,
        Some((other, span)) => {
            reading
                .error(span, format!("invalid value \"{other}\" in \"cut_off\""))
                .help("write revalidate or serve");
        }
    }
}

/// Whether each zone's cluster exists. Zones of limits that name none take part in the only one.
pub(crate) fn settle(reading: &mut Reading<'_>) {
    let clusters: Vec<String> =
        reading.declared.clusters.iter().map(|cluster| cluster.name.clone()).collect();
    let declared = &mut reading.declared;
    let requests = declared.request_zones.iter_mut().map(|zone| &mut zone.zone);
    let limits = requests.chain(declared.connection_zones.iter_mut().map(|zone| &mut zone.zone));
    let (mut named, mut nameless) = (Vec::new(), Vec::new());
    for sync in limits.filter_map(|zone| zone.sync.as_mut()) {
        match (sync.cluster.is_empty(), clusters.as_slice()) {
            (false, _) => named.push((sync.cluster.clone(), sync.span)),
            (true, [only]) => sync.cluster.clone_from(only),
            (true, _) => nameless.push(sync.span),
        }
    }
    for span in nameless {
        match clusters.is_empty() {
            true => reading
                .error(span, "\"sync\" requires a \"cluster\" block")
                .help("define it in the http block, as in cluster main { server 127.0.0.1:6379; secret cluster.key; }"),
            false => reading
                .error(span, "\"sync\" does not specify which of several clusters to use")
                .help(format!("add cluster=NAME, with one of: {}", clusters.join(", "))),
        };
    }
    let unknown = |(name, _): &(String, _)| !clusters.contains(name);
    let zones = reading.declared.cache_zones.iter().filter_map(|zone| zone.cluster.clone());
    let unknown: Vec<_> = zones.chain(named).filter(unknown).collect();
    for (name, span) in unknown {
        let help = suggest::did_you_mean(&name, clusters.iter().map(String::as_str))
            .unwrap_or_else(|| format!("define it in the http block: cluster {name} {{ … }}"));
        reading.error(span, format!("unknown cluster \"{name}\"")).help(help);
    }
}
