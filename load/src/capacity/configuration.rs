//! The nginx.conf of the proxy in front of all servers, and of the server that answers at once, which has the same. Pure text, in
//! words that nginx has too.

use std::net::SocketAddr;

/// Where the proxy answers by itself.
pub(super) const CEILING: &str = "/.millstream-capacity/returned";
/// Where it passes on what a server answers at once.
pub(super) const PASSING: &str = "/.millstream-capacity/passed";
/// The most bytes of an answer that is made up.
const LARGEST_BODY: usize = 4_096;

/// The text for a process that listens on `listen` with so many workers, each of which keeps so many idle connections to the
/// `servers`; `nothing` is the process that answers at once. Made-up answers have `body` bytes, at most 4096.
pub fn configuration(
    servers: &[SocketAddr],
    nothing: SocketAddr,
    keepalive: u32,
    listen: SocketAddr,
    workers: &str,
    body: usize,
) -> String {
    let servers: String = servers.iter().map(|server| format!("server {server};\n")).collect();
    let body = "x".repeat(body.min(LARGEST_BODY));
    // A server that is measured alone must not have a worker waiting on an idle connection.
    format!(
        "worker_processes {workers};\ndaemon off;\npid capacity.pid;\nerror_log stderr warn;\n\
         events {{ worker_connections 16384; }}\nhttp {{\naccess_log off;\nkeepalive_timeout 65;\n\
         keepalive_requests 100000000;\ndefault_type text/plain;\n\
         upstream apis {{\n{servers}keepalive {keepalive};\nkeepalive_requests 100000000;\nkeepalive_timeout 100ms;\n}}\n\
         upstream nothing {{\nserver {nothing};\nkeepalive 1024;\nkeepalive_requests 100000000;\n}}\n\
         server {{\nlisten {listen};\nproxy_http_version 1.1;\nproxy_set_header Connection \"\";\n\
         proxy_set_header Host $http_host;\nlocation = {CEILING} {{ return 200 \"{body}\"; }}\n\
         location = {PASSING} {{ proxy_pass http://nothing{CEILING}; }}\n\
         location / {{ proxy_pass http://apis; }}\n}}\n}}\n"
    )
}
