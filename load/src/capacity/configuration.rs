//! The nginx.conf of the proxy in front of all servers, and of the server that answers at once. Pure text, in words that
//! nginx has too.

use std::fmt::Write;
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
        /// `host:port` of each.
        servers: &'a [String],
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
    let filling = "x".repeat(body.min(LARGEST_BODY));
    let mut out = format!(
        "worker_processes {workers};\ndaemon off;\npid capacity.pid;\nerror_log stderr warn;\n\n\
         events {{\n    worker_connections 16384;\n}}\n\nhttp {{\n    access_log off;\n    keepalive_timeout 65;\n    \
         keepalive_requests 100000000;\n    default_type text/plain;\n"
    );
    // Writing to a String cannot fail.
    if let Front::Proxy { servers, nothing, keepalive } = front {
        out += "\n    upstream apis {\n";
        for server in servers {
            _ = writeln!(out, "        server {server};");
        }
        _ = write!(
            out,
            "        keepalive {keepalive};\n        keepalive_requests 100000000;\n        # A server that is measured alone \
             must not have a worker waiting on an idle one.\n        keepalive_timeout 100ms;\n    }}\n\n    upstream nothing {{\n        \
             server {nothing};\n        keepalive 1024;\n        keepalive_requests 100000000;\n    }}\n"
        );
    }
    _ = write!(out, "\n    server {{\n        listen {listen};\n");
    match front {
        Front::Proxy { .. } => {
            _ = write!(
                out,
                "        proxy_http_version 1.1;\n        proxy_set_header Connection \"\";\n        \
                 proxy_set_header Host $http_host;\n\n        \
                 location = {CEILING} {{\n            return 200 \"{filling}\";\n        }}\n        \
                 location = {PASSING} {{\n            proxy_pass http://nothing;\n        }}\n        \
                 location / {{\n            proxy_pass http://apis;\n        }}\n"
            );
        }
        Front::Nothing => {
            _ = write!(out, "        location / {{\n            return 200 \"{filling}\";\n        }}\n");
        }
    }
    out += "    }\n}\n";
    out
}
