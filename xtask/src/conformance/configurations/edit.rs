//! The mechanical edits: what ties a configuration to the machine it was written for is tied to a folder here.
//!
//! Ports become free ones on loopback, certificates a self-signed one, paths go under the folder, names of servers that
//! do not exist become loopback. Nothing that says how requests are answered is touched.

use super::nodes::{Node, Word};
use millstream_tests::ports;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Directives whose first argument is a file or folder of the original machine.
const PATHS: &[&str] = &[
    "access_log",
    "alias",
    "auth_basic_user_file",
    "client_body_temp_path",
    "error_log",
    "fastcgi_cache_path",
    "fastcgi_temp_path",
    "lock_file",
    "pid",
    "proxy_cache_path",
    "proxy_store",
    "proxy_temp_path",
    "root",
    "scgi_cache_path",
    "scgi_temp_path",
    "ssl_password_file",
    "ssl_session_ticket_key",
    "ssl_dhparam",
    "ssl_crl",
    "uwsgi_cache_path",
    "uwsgi_temp_path",
];

const CERTIFICATES: &[&str] = &[
    "ssl_certificate",
    "ssl_client_certificate",
    "ssl_trusted_certificate",
    "proxy_ssl_certificate",
    "proxy_ssl_trusted_certificate",
    "grpc_ssl_certificate",
    "grpc_ssl_trusted_certificate",
];
const KEYS: &[&str] = &["ssl_certificate_key", "proxy_ssl_certificate_key", "grpc_ssl_certificate_key"];

const PASSES: &[&str] =
    &["proxy_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "grpc_pass", "memcached_pass"];

/// Directives about how a process runs, not what it responds.
const PROCESS: &[&str] = &["load_module", "user", "daemon", "master_process"];

pub(super) struct Edit<'a> {
    /// Stands for the root of the original machine.
    home: &'a Path,
    /// Port of the origin that stands for every upstream.
    origin: u16,
    /// Directives of modules that nginx does not ship.
    foreign: &'a [&'a str],
    upstreams: BTreeSet<String>,
    /// The new port for each port in a `listen`.
    listening: BTreeMap<String, u16>,
}

pub(super) fn certificate(home: &Path) -> (PathBuf, PathBuf) {
    (home.join("certificate.pem"), home.join("key.pem"))
}

impl<'a> Edit<'a> {
    pub(super) fn new(home: &'a Path, origin: u16, foreign: &'a [&'a str]) -> Self {
        Edit { home, origin, foreign, upstreams: BTreeSet::new(), listening: BTreeMap::new() }
    }

    pub(super) fn apply(mut self, tree: &mut Vec<Node>) -> Result<(), String> {
        self.look(tree);
        self.nodes(tree, "")
    }

    fn look(&mut self, nodes: &[Node]) {
        for node in nodes {
            match (node.name(), node.argument(1)) {
                ("upstream", Some(name)) => {
                    self.upstreams.insert(name.to_owned());
                }
                ("listen", Some(address)) if !address.starts_with("unix:") => {
                    let port = port_of(address).unwrap_or("80").to_owned();
                    self.listening.entry(port).or_insert_with(ports::free);
                }
                _ => {}
            }
            self.look(node.block.as_deref().unwrap_or_default());
        }
    }

    fn nodes(&mut self, nodes: &mut Vec<Node>, parent: &str) -> Result<(), String> {
        nodes.retain(|node| {
            let obsolete = node.name() == "ssl" && node.block.is_none();
            !obsolete && !PROCESS.contains(&node.name()) && !self.foreign.contains(&node.name())
        });
        let has_certificate = nodes.iter().any(|node| node.name() == "ssl_certificate");
        for node in nodes {
            let name = node.name().to_owned();
            self.node(node, parent)?;
            if name == "server" && parent == "http" {
                self.server(node, has_certificate);
            }
            // What stands in these is data, not directives.
            if !matches!(&*name, "types" | "map" | "geo" | "split_clients" | "charset_map")
                && let Some(block) = &mut node.block
            {
                self.nodes(block, &name)?;
            }
        }
        Ok(())
    }

    /// Adds the address a server needs, and the certificate for TLS.
    fn server(&mut self, server: &mut Node, has_certificate: bool) {
        let (certificate, key) = certificate(self.home);
        let with_tls = server.block.iter().flatten().any(|node| {
            node.name() == "listen" && node.words.iter().any(|word| matches!(&*word.text, "ssl" | "quic"))
        });
        let lacks = with_tls
            && !has_certificate
            && !server.has("ssl_certificate")
            && !server.has("ssl_reject_handshake");
        let listens = server.has("listen");
        let Some(block) = &mut server.block else { return };
        if lacks {
            block.insert(0, Node::new(&["ssl_certificate", &certificate.to_string_lossy()]));
            block.insert(1, Node::new(&["ssl_certificate_key", &key.to_string_lossy()]));
        }
        if !listens {
            self.listening.entry("80".to_owned()).or_insert_with(ports::free);
            block.insert(0, Node::new(&["listen", "80"]));
        }
    }

    fn node(&self, node: &mut Node, parent: &str) -> Result<(), String> {
        let name = node.name().to_owned();
        let Some(first) = node.argument(1).map(str::to_owned) else { return Ok(()) };
        let (certificate, key) = certificate(self.home);
        let edited = match &*name {
            "listen" => Some(self.listen(&first)?),
            "server" if parent == "upstream" => self.address(&first),
            "resolver" => {
                for word in node.words.iter_mut().skip(1).filter(|word| !word.text.contains('=')) {
                    *word = Word::new("127.0.0.1");
                }
                None
            }
            name if CERTIFICATES.contains(&name) && !first.contains('$') => {
                Some(certificate.to_string_lossy().into_owned())
            }
            name if KEYS.contains(&name) && !first.contains('$') => Some(key.to_string_lossy().into_owned()),
            name if PASSES.contains(&name) => self.address(&first),
            name if PATHS.contains(&name) => self.path(name, &first)?,
            _ => None,
        };
        if let Some(edited) = edited {
            node.words[1] = Word::new(edited);
        }
        if matches!(&*name, "access_log" | "error_log") && first.starts_with("syslog:") {
            node.words[1] = Word::new(local_syslog(&first));
        }
        Ok(())
    }

    /// `80`, `*:80`, `name:80`, `[::]:80`, `unix:/path`.
    fn listen(&self, address: &str) -> Result<String, String> {
        if let Some(path) = address.strip_prefix("unix:") {
            return Ok(self
                .path("listen", path)?
                .map_or_else(|| address.to_owned(), |path| format!("unix:{path}")));
        }
        let port = self.listening.get(port_of(address).unwrap_or("80")).copied().unwrap_or_default();
        let host = if address.starts_with('[') { "[::1]" } else { "127.0.0.1" };
        Ok(format!("{host}:{port}"))
    }

    /// Replaces an upstream, keeping scheme and path; `None` leaves it. The origin speaks no TLS.
    fn address(&self, address: &str) -> Option<String> {
        let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
        let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if self.upstreams.contains(host) {
            return (scheme == "https").then(|| format!("http://{rest}"));
        }
        if host.contains('$') || host.starts_with("unix:") {
            return None;
        }
        let local = host.starts_with("127.") || host.starts_with("localhost");
        let own = port_of(host).and_then(|port| self.listening.get(port)).filter(|_| local);
        let port = own.copied().unwrap_or(self.origin);
        let scheme = if own.is_none() && scheme == "https" { "http" } else { scheme };
        let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
        Some(format!("{scheme}127.0.0.1:{port}{path}"))
    }

    /// Moves a path under the folder, and creates what must exist there.
    fn path(&self, directive: &str, path: &str) -> Result<Option<String>, String> {
        let is_none = matches!(path, "off" | "on" | "stderr" | "/dev/null" | "/dev/stdout" | "/dev/stderr")
            || path.contains("://");
        if is_none || path.starts_with("syslog:") || path.starts_with("memory:") || path.starts_with('$') {
            return Ok(None);
        }
        let path = self.under(path);
        let fixed = path.to_string_lossy().split('$').next().map(PathBuf::from).unwrap_or_default();
        let is_folder = directive.ends_with("_path") || matches!(directive, "root" | "alias");
        let folder = if is_folder { &*fixed } else { fixed.parent().unwrap_or(self.home) };
        let made = fs::create_dir_all(folder).and_then(|()| match directive {
            "auth_basic_user_file" => fs::write(&path, "user:{PLAIN}password\n"),
            "ssl_password_file" => fs::write(&path, "password\n"),
            "ssl_session_ticket_key" => fs::write(&path, [7; 80]),
            "ssl_dhparam" => fs::copy(self.home.join("dhparam.pem"), &path).map(drop),
            _ => Ok(()),
        });
        made.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Some(path.to_string_lossy().into_owned()))
    }

    fn under(&self, path: &str) -> PathBuf {
        let mut under = self.home.as_os_str().to_owned();
        under.push("/");
        // As text: a slash at the end of an `alias` has a meaning.
        under.push(path.trim_start_matches('/'));
        under.into()
    }
}

fn port_of(address: &str) -> Option<&str> {
    let port = address.rsplit_once(':').map_or(address, |(_, port)| port);
    (!port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(port)
}

/// Moves the log's server to loopback; other parameters stay.
fn local_syslog(target: &str) -> String {
    let parts = target.trim_start_matches("syslog:").split(',').map(|part| match part.split_once('=') {
        Some(("server", _)) => "server=127.0.0.1:514",
        _ => part,
    });
    format!("syslog:{}", parts.collect::<Vec<_>>().join(","))
}
