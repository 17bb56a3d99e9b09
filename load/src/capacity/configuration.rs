//! The nginx.conf of the proxy in front of all servers, and of the server that answers at once. Pure text, in words that
//! nginx has too.

use std::net::SocketAddr;

/// Where the proxy answers by itself.
pub(super) const CEILING: &str = "/.millstream-capacity/returned";
/// Where it passes on what a server answers at once.
pub(super) const PASSING: &str = "/.millstream-capacity/passed";
/// The most bytes of an answer that is made up.
const LARGEST_BODY: usize = 4_096;

/// What a process of this measurement is.
#[derive(Debug, Clone, Copy)]
pub enum Front<'a> {
    /// The proxy: in front of these servers, with a way to the one that answers at once.
    Proxy {
        /// Where they listen.
        servers: &'a [SocketAddr],
        /// That which answers at once.
        nothing: SocketAddr,
        /// Idle connections to the servers that each worker keeps.
        keepalive: u32,
    },
    /// The server that answers at once.
    Nothing,
}

/// The text for a process that listens on `listen` with so many workers; made-up answers have `body` bytes, at most 4096.
pub fn configuration(front: Front<'_>, listen: SocketAddr, workers: &str, body: usize) -> String {
    let answers = format!("{{ return 200 \"{}\"; }}", "x".repeat(body.min(LARGEST_BODY)));
    let (upstreams, locations) = match front {
        Front::Nothing => (String::new(), format!("location / {answers}")),
        Front::Proxy { servers, nothing, keepalive } => {
            let servers: String = servers.iter().map(|server| format!("server {server};\n")).collect();
            // A server that is measured alone must not have a worker waiting on an idle connection.
            let upstreams = format!(
                "upstream apis {{\n{servers}keepalive {keepalive};\nkeepalive_requests 100000000;\nkeepalive_timeout 100ms;\n}}\n\
                 upstream nothing {{\nserver {nothing};\nkeepalive 1024;\nkeepalive_requests 100000000;\n}}\n"
            );
            let locations = format!(
                "proxy_http_version 1.1;\nproxy_set_header Connection \"\";\nproxy_set_header Host $http_host;\n\
                 location = {CEILING} {answers}\nlocation = {PASSING} {{ proxy_pass http://nothing; }}\n\
                 location / {{ proxy_pass http://apis; }}"
            );
            (upstreams, locations)
        }
    };
    format!(
        "worker_processes {workers};\ndaemon off;\npid capacity.pid;\nerror_log stderr warn;\n\
         events {{ worker_connections 16384; }}\nhttp {{\naccess_log off;\nkeepalive_timeout 65;\n\
         keepalive_requests 100000000;\ndefault_type text/plain;\n{upstreams}server {{\nlisten {listen};\n{locations}\n}}\n}}\n"
    )
}
