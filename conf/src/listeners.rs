//! The `listen`s of all servers put together: every address once, with the servers that share it.
//!
//! Here it shows which server answers by default, and which name two servers claim. Next: `check`.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::features::listen::{ListenDraft, ServerDraft};
use crate::model::{ListenAddress, Listener, ServerId, ServerName};
use crate::reading::Reading;

/// `drafts` are the servers in file order.
pub fn collect(drafts: &[ServerDraft], reading: &mut Reading<'_>) -> Vec<Listener> {
    let mut found: Vec<Found> = Vec::new();
    for (index, draft) in drafts.iter().enumerate() {
        let server = ServerId(index as u32);
        if draft.listens.is_empty() && !draft.has_quic {
            add(&mut found, &ListenDraft::new(default_address(), draft.span), server, reading);
        }
        for listen in &draft.listens {
            add(&mut found, listen, server, reading);
        }
    }
    for address in &found {
        invalid_names(&address.listener, drafts, reading);
        warn_of_conflicting_names(&address.listener, drafts, reading);
    }
    found.into_iter().map(|found| found.listener).collect()
}

/// A listener with what is needed only while others are still to come.
struct Found {
    listener: Listener,
    default_span: Option<crate::source::Span>,
    socket_span: Option<crate::source::Span>,
}

/// nginx's default for a server without `listen`: port 80 for the superuser, else 8000.
fn default_address() -> ListenAddress {
    let port = if is_superuser() { 80 } else { 8000 };
    ListenAddress::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port))
}

/// The owner of the process's own entry in /proc is its effective user.
fn is_superuser() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0)
}

fn add(found: &mut Vec<Found>, draft: &ListenDraft, server: ServerId, reading: &mut Reading<'_>) {
    let Some(known) = found.iter_mut().find(|known| known.listener.address == draft.address) else {
        found.push(Found {
            listener: listener(draft, server),
            default_span: draft.default_server.then_some(draft.span),
            socket_span: draft.sets_socket.then_some(draft.span),
        });
        return;
    };
    known.listener.servers.push(server);
    known.listener.ssl |= draft.ssl;
    known.listener.proxy_protocol |= draft.proxy_protocol;
    known.listener.http2 |= draft.http2;
    if draft.default_server {
        if let Some(first) = known.default_span {
            let message = format!("a duplicate default server for {}", shown(&draft.address));
            return reading.duplicate(draft.span, message, first);
        }
        known.default_span = Some(draft.span);
        known.listener.default_server = server;
    }
    if draft.sets_socket {
        if let Some(first) = known.socket_span {
            let message = format!("duplicate listen options for {}", shown(&draft.address));
            return reading.duplicate(draft.span, message, first);
        }
        known.socket_span = Some(draft.span);
        let Listener { address, span, ssl, proxy_protocol, servers, default_server, .. } =
            known.listener.clone();
        known.listener = Listener {
            address,
            span,
            ssl,
            proxy_protocol,
            servers,
            default_server,
            ..listener(draft, server)
        };
    }
}

pub fn listener(draft: &ListenDraft, server: ServerId) -> Listener {
    Listener {
        address: draft.address.clone(),
        span: draft.span,
        ssl: draft.ssl,
        proxy_protocol: draft.proxy_protocol,
        http2: draft.http2,
        backlog: draft.backlog,
        reuseport: draft.reuseport,
        deferred: draft.deferred,
        sndbuf: draft.sndbuf,
        rcvbuf: draft.rcvbuf,
        so_keepalive: draft.so_keepalive,
        ipv6only: draft.ipv6only,
        owner_only: false,
        optional: false,
        servers: vec![server],
        default_server: server,
    }
}

pub fn shown(address: &ListenAddress) -> String {
    match address {
        ListenAddress::Tcp(address) => address.to_string(),
        ListenAddress::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// A misplaced wildcard is an error if names decide, and never matches otherwise.
fn invalid_names(listener: &Listener, drafts: &[ServerDraft], reading: &mut Reading<'_>) {
    let alone = listener.servers.len() == 1;
    for (name, span) in listener.servers.iter().flat_map(|server| &drafts[server.0 as usize].invalid_names) {
        let message =
            format!("server name or wildcard \"{name}\" is invalid on {}", shown(&listener.address));
        let finding = if alone {
            reading.diagnostics.warning(*span, message)
        } else {
            reading.diagnostics.error(*span, message)
        };
        finding.help(
            "write an asterisk only at the start (*.example.com) or the end (www.example.*), or ~regex",
        );
    }
}

/// A name of two servers on one address belongs to the first; nginx warns and goes on.
fn warn_of_conflicting_names(listener: &Listener, drafts: &[ServerDraft], reading: &mut Reading<'_>) {
    let mut owners: HashMap<String, ServerId> = HashMap::new();
    for server in &listener.servers {
        for (name, span) in &drafts[server.0 as usize].names {
            let key = match name {
                ServerName::Exact(name) => name.clone(),
                ServerName::LeadingWildcard(tail) => format!("*{tail}"),
                ServerName::TrailingWildcard(head) => format!("{head}*"),
                ServerName::Regex(_) => continue,
            };
            match owners.get(&key) {
                Some(owner) if owner != server => {
                    let place = shown(&listener.address);
                    reading
                        .diagnostics
                        .warning(*span, format!("conflicting server name \"{key}\" on {place}, ignored"))
                        .help("another server of this address has this name; requests go to the first one");
                }
                Some(_) => {}
                None => {
                    owners.insert(key, *server);
                }
            }
        }
    }
}
