//! Directives of a server block itself: where it listens and which names it answers to.
//!
//! Addresses of several servers are put together in `listeners`. Next: `listeners`; `millstream-net`'s `listener`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::context::{Context, HTTP, SERVER};
use super::http2::quic_is_not_opened;
use super::{Apply, Level, MANY, Row, often};
use crate::address::ListenAddress;
use crate::declared::acme::AcmeOrder;
use crate::foreign::{self, Fate};
use crate::reading::{Reading, parameter};
use crate::regular_expression::Regex;
use crate::source::Span;
use crate::suggest;
use crate::tree::{Directive, Word};

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("server", HTTP, (0, 0), "{ … }", "",
        "A virtual server.",
        Apply::Block(Context::Server)),
    often("listen", SERVER, (1, MANY),
        "address[:port[-port]] | port[-port] | unix:path [default_server] [ssl] [http2] [quic] [proxy_protocol] [backlog=n] [rcvbuf=size] [sndbuf=size] [deferred] [reuseport] \
        [ipv6only=on|off] [so_keepalive=on|off|[idle]:[interval]:[count]] [bind] [fastopen=n] [multipath]", "*:80",
        "Sets the address, the port or both on which the server accepts connections. An address alone means port 80, a port alone means all IPv4 \
        addresses. Without superuser privileges, the default is `*:8000`. Requests with an unknown name are handled by the `default_server` of the \
        address, or by its first server. With `proxy_protocol`, each connection must begin with a PROXY protocol header, version 1 or 2; others are \
        closed. With `http2`, HTTP/2 is enabled at this address, as with `http2 on`. `fastopen` and `multipath` have no effect. An address with \
        `quic` is not opened, and a warning is reported.",
        Apply::Server(listen)),
    often("server_name", SERVER, (1, MANY), "name …", "\"\"",
        "Sets the names of the server: exact names, `*.example.com`, `www.example.*`, `.example.com` for a name and all names below it, or `~regex`, \
        whose named captures become variables. An exact name takes precedence, then the longest name with a leading asterisk, the longest with a \
        trailing asterisk, and the first matching regular expression.",
        Apply::Server(server_name)),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketKeepalive {
    Switch(bool),
    /// `idle:interval:count`; `None` leaves the system's value.
    Times {
        idle: Option<Duration>,
        interval: Option<Duration>,
        count: Option<u32>,
    },
}

#[derive(Debug, Clone)]
pub enum ServerName {
    /// In lower case; `""` matches a request without Host.
    Exact(String),
    /// `*.example.com`, stored as `.example.com`. (`.example.com` is this and the exact name, two entries.)
    LeadingWildcard(String),
    /// `www.example.*`, stored as `www.example.`.
    TrailingWildcard(String),
    Regex(Regex),
}

#[derive(Debug, Clone)]
pub struct ListenDraft {
    pub address: ListenAddress,
    pub span: Span,
    pub default_server: bool,
    pub ssl: bool,
    pub proxy_protocol: bool,
    pub http2: bool,
    /// Not opened, and does not conflict with the same address for TCP.
    pub quic: bool,
    /// Whether it sets a socket option; only one `listen` of an address may.
    pub sets_socket: bool,
    pub backlog: u32,
    pub reuseport: bool,
    pub deferred: bool,
    pub sndbuf: Option<usize>,
    pub rcvbuf: Option<usize>,
    pub so_keepalive: Option<SocketKeepalive>,
    pub ipv6only: bool,
}

/// A server block as far as its own directives go.
#[derive(Debug, Default)]
pub struct ServerDraft {
    pub span: Span,
    pub level: Level,
    /// The first as written, without a leading dot.
    pub name: Option<String>,
    pub names: Vec<(ServerName, Span)>,
    /// Names with a misplaced asterisk. nginx accepts them if the server is alone on its address, as names
    /// are then unused.
    pub invalid_names: Vec<(String, Span)>,
    pub listens: Vec<ListenDraft>,
    /// Whether one is for QUIC, so that nginx's default `listen` does not apply.
    pub has_quic: bool,
    pub acme: Option<AcmeOrder>,
}

impl ListenDraft {
    pub fn new(address: ListenAddress, span: Span) -> Self {
        ListenDraft {
            address,
            span,
            default_server: false,
            ssl: false,
            proxy_protocol: false,
            http2: false,
            quic: false,
            sets_socket: false,
            backlog: 511,
            reuseport: false,
            deferred: false,
            sndbuf: None,
            rcvbuf: None,
            so_keepalive: None,
            ipv6only: true,
        }
    }
}

pub fn listen_address(text: &str) -> Option<ListenAddress> {
    const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    const PORT: u16 = 80;
    if let Some(path) = text.strip_prefix("unix:") {
        return (!path.is_empty()).then(|| ListenAddress::Unix(path.into()));
    }
    if let Ok(port) = text.parse::<u16>() {
        return (port != 0).then_some(ListenAddress::Tcp(SocketAddr::new(ANY, port)));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (ip, port) = rest.split_once(']')?;
        let ip = IpAddr::V6(ip.parse::<Ipv6Addr>().ok()?);
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|port| *port != 0)?,
            None if port.is_empty() => PORT,
            None => return None,
        };
        return Some(ListenAddress::Tcp(SocketAddr::new(ip, port)));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, port.parse().ok().filter(|port| *port != 0)?),
        None => (text, PORT),
    };
    let ip = match host {
        "*" => ANY,
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        literal => IpAddr::V4(literal.parse().ok()?),
    };
    Some(ListenAddress::Tcp(SocketAddr::new(ip, port)))
}

fn listen(server: &mut ServerDraft, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    let Some(addresses) = listen_addresses(&word.text) else {
        let port = word.text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
        if port == Some(0) {
            let why = "port 0 means any free port, which clients cannot know";
            let error = reading.error(word.span, format!("invalid port in \"{}\": {why}", word.text));
            error.help("write a port from 1 to 65535");
            return;
        }
        reading
            .error(word.span, format!("\"{}\" is not an address to listen on", word.text))
            .help("write a port, an address such as 127.0.0.1:8080, [::1]:8080 or *:8080, or unix:/path; names are not resolved here");
        return;
    };
    let mut options = ListenDraft::new(addresses[0].clone(), directive.span);
    for word in &directive.args[1..] {
        listen_parameter(&mut options, word, reading);
    }
    if options.quic {
        server.has_quic = true;
        return;
    }
    for address in addresses {
        if let Some(first) = server.listens.iter().find(|other| other.address == address) {
            let first = first.span;
            reading.duplicate(directive.span, format!("a duplicate listen {}", word.text), first);
            return;
        }
        server.listens.push(ListenDraft { address, ..options.clone() });
    }
}

/// Most ports of one `listen` with a range.
const MOST_PORTS: u16 = 1024;

/// One port, or a range such as `8080-8083`; never empty.
fn listen_addresses(text: &str) -> Option<Vec<ListenAddress>> {
    if let Some(address) = listen_address(text) {
        return Some(vec![address]);
    }
    let (first, last) = text.rsplit_once('-')?;
    let last: u16 = last.parse().ok()?;
    let ListenAddress::Tcp(first) = listen_address(first)? else { return None };
    let sensible = first.port() <= last && last - first.port() < MOST_PORTS;
    let all = (first.port()..=last).map(|port| ListenAddress::Tcp(SocketAddr::new(first.ip(), port)));
    sensible.then(|| all.collect())
}

fn listen_parameter(draft: &mut ListenDraft, word: &Word, reading: &mut Reading<'_>) {
    match word.text.as_str() {
        "default_server" | "default" => return draft.default_server = true,
        "ssl" => return draft.ssl = true,
        "proxy_protocol" => return draft.proxy_protocol = true,
        "http2" => return draft.http2 = true,
        "quic" => {
            quic_is_not_opened(word.span, reading);
            return draft.quic = true;
        }
        _ => {}
    }
    let name = word.text.split('=').next().unwrap_or_default();
    if let Some(fate) = foreign::listen_parameter(name) {
        // Those of BSD are options of the socket, the protocols are none.
        draft.sets_socket |= matches!(name, "setfib" | "accept_filter");
        return only_nginx_knows(name, fate, word, reading);
    }
    draft.sets_socket = true;
    match parameter(word) {
        None if word.text == "bind" => {}
        None if word.text == "reuseport" => draft.reuseport = true,
        None if word.text == "deferred" => draft.deferred = true,
        None if word.text == "multipath" => {
            idle_parameter("multipath", "clients speak TCP over one path", word, reading);
        }
        Some(("fastopen", value)) => {
            let _ = reading.number(&value, 0, 1 << 20);
            idle_parameter("fastopen", "every connection begins with a whole handshake", word, reading);
        }
        Some(("backlog", value)) => {
            draft.backlog = reading.number(&value, 1, 1 << 20).map_or(draft.backlog, |number| number as u32);
        }
        Some(("sndbuf", value)) => draft.sndbuf = reading.memory_size(&value),
        Some(("rcvbuf", value)) => draft.rcvbuf = reading.memory_size(&value),
        Some(("ipv6only", value)) => draft.ipv6only = reading.flag(&value).unwrap_or(true),
        Some(("so_keepalive", value)) => draft.so_keepalive = so_keepalive(&value, reading),
        other => unknown_parameter(other.map_or(&word.text, |(name, _)| name), word, reading),
    }
}

fn idle_parameter(name: &str, why: &str, word: &Word, reading: &mut Reading<'_>) {
    reading.diagnostics.idle(word.span, format!("\"{name}\" of listen has no effect here: {why}"));
}

fn only_nginx_knows(name: &str, fate: Fate, word: &Word, reading: &mut Reading<'_>) {
    let message = format!("nginx knows the parameter \"{name}\" of listen, Millstream does not (yet)");
    match fate {
        Fate::LeftOut(change) if reading.lenient => {
            reading.diagnostics.warning(word.span, message).help(format!("it is ignored: {change}"))
        }
        Fate::LeftOut(change) => reading.error(word.span, message).left_out(change),
        Fate::Kept(why) => {
            reading.error(word.span, message).help(format!("{why}, so it is an error even with --lenient"))
        }
        Fate::BelongsTo(_) | Fate::Default => return,
    }
    .once();
}

fn unknown_parameter(name: &str, word: &Word, reading: &mut Reading<'_>) {
    const KNOWN: [&str; 15] = [
        "default_server",
        "ssl",
        "http2",
        "quic",
        "proxy_protocol",
        "backlog",
        "reuseport",
        "deferred",
        "sndbuf",
        "rcvbuf",
        "so_keepalive",
        "ipv6only",
        "bind",
        "fastopen",
        "multipath",
    ];
    let help = suggest::did_you_mean(name, KNOWN)
        .unwrap_or_else(|| format!("the parameters are {}", KNOWN.join(", ")));
    reading.error(word.span, format!("invalid parameter \"{}\"", word.text)).help(help);
}

fn so_keepalive(value: &Word, reading: &mut Reading<'_>) -> Option<SocketKeepalive> {
    match value.text.as_str() {
        "on" => return Some(SocketKeepalive::Switch(true)),
        "off" => return Some(SocketKeepalive::Switch(false)),
        _ => {}
    }
    let pieces: Vec<&str> = value.text.split(':').collect();
    if pieces.len() > 3 || pieces.iter().all(|piece| piece.is_empty()) {
        reading
            .error(value.span, format!("invalid so_keepalive value \"{}\"", value.text))
            .help("write on, off or idle:interval:count, as in so_keepalive=30m::10");
        return None;
    }
    let mut time = |index: usize| -> Option<Duration> {
        let piece = *pieces.get(index)?;
        if piece.is_empty() { None } else { reading.duration(&Reading::part(value, piece)) }
    };
    let (idle, interval) = (time(0), time(1));
    let count = match pieces.get(2) {
        None | Some(&"") => None,
        Some(piece) => reading.number(&Reading::part(value, *piece), 1, 127).map(|count| count as u32),
    };
    Some(SocketKeepalive::Times { idle, interval, count })
}

fn server_name(server: &mut ServerDraft, directive: &Directive, reading: &mut Reading<'_>) {
    for word in &directive.args {
        let text = word.text.as_str();
        server.name.get_or_insert_with(|| match text.starts_with('~') {
            true => text.to_owned(),
            false => text.strip_prefix('.').unwrap_or(text).to_ascii_lowercase(),
        });
        if let Some(source) = text.strip_prefix('~') {
            if source.is_empty() {
                reading
                    .error(word.span, "empty regex in server name \"~\"")
                    .help("write a regular expression after the tilde");
            } else if let Some(expression) = reading.regex(word, source, true) {
                server.names.push((ServerName::Regex(expression), word.span));
            }
            continue;
        }
        match plain_names(text) {
            Some(names) => server.names.extend(names.into_iter().map(|name| (name, word.span))),
            None if text.starts_with(['*', '.'])
                && (text.len() < 3 || text.starts_with('*') && !text.starts_with("*.")) =>
            {
                reading
                    .error(word.span, format!("server name \"{text}\" is invalid"))
                    .help("write *.example.com, or .example.com for a name and all names below it");
            }
            None => server.invalid_names.push((text.to_owned(), word.span)),
        }
        if text.contains('/') {
            reading
                .diagnostics
                .warning(word.span, format!("server name \"{text}\" has suspicious symbols"))
                .help("write only the name, without scheme and path");
        }
    }
}

/// `None` if its asterisk is misplaced.
fn plain_names(text: &str) -> Option<Vec<ServerName>> {
    let lower = text.to_lowercase();
    if let Some(bare) = lower.strip_prefix('.') {
        let valid = !bare.is_empty() && !bare.contains('*');
        return valid
            .then(|| vec![ServerName::Exact(bare.to_owned()), ServerName::LeadingWildcard(lower.clone())]);
    }
    if let Some(tail) = lower.strip_prefix('*') {
        let valid = tail.len() > 1 && tail.starts_with('.') && !tail.contains('*');
        return valid.then(|| vec![ServerName::LeadingWildcard(tail.to_owned())]);
    }
    if let Some(head) = lower.strip_suffix('*') {
        let valid = head.len() > 1 && head.ends_with('.') && !head.contains('*');
        return valid.then(|| vec![ServerName::TrailingWildcard(head.to_owned())]);
    }
    (!lower.contains('*')).then(|| vec![ServerName::Exact(lower)])
}
