//! The options of `serve` whose values stand in the text that it makes, and where: so that what is wrong with one is told
//! by the name of the option, of which the user knows, and not by a line of a file that nobody wrote.

use super::domain;
use crate::cli::{Caching, Front};
use millstream_net::Address;
use millstream_net::listener::OpenError;
use std::fmt;
use std::io::ErrorKind;

pub(super) struct Given<'a> {
    pub(super) name: &'static str,
    pub(super) value: &'a str,
    directives: &'static [&'static str],
}

impl fmt::Display for Given<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.value)
    }
}

/// Without the URLs and --access-log, which are checked while reading.
pub(super) fn options<'a>(front: &'a Front, caching: Option<&'a Caching>) -> Vec<Given<'a>> {
    let always: [(&str, &String, &[&str]); 9] = [
        ("--listen", &front.listen, &["listen"]),
        ("--workers", &front.workers, &["worker_processes"]),
        ("--connections", &front.connections, &["events", "worker_connections"]),
        ("--max-body", &front.max_body, &["client_max_body_size"]),
        ("--max-head", &front.max_head, &["large_client_header_buffers", "proxy_buffer_size"]),
        ("--connect-timeout", &front.connect_timeout, &["proxy_connect_timeout"]),
        ("--read-timeout", &front.read_timeout, &["proxy_read_timeout"]),
        ("--send-timeout", &front.send_timeout, &["proxy_send_timeout"]),
        (
            "--client-timeout",
            &front.client_timeout,
            &["client_header_timeout", "client_body_timeout", "send_timeout"],
        ),
    ];
    let stored = caching.into_iter().flat_map(|caching| {
        let always: [(&str, &String, &[&str]); 3] = [
            ("--memory", &caching.memory, &["proxy_cache_path"]),
            ("--stale", &caching.stale, &["proxy_cache_stale_while_updating"]),
            ("--stale-if-error", &caching.stale_if_error, &["proxy_cache_stale_if_error"]),
        ];
        let microcache = caching.microcache.iter();
        let microcache = microcache.map(|value| ("--microcache", value, &["proxy_cache_valid"] as &[_]));
        let ignored = caching.ignore_args.iter();
        let ignored = ignored.map(|value| ("--ignore-args", value, &["proxy_cache_ignore_args"] as &[_]));
        let cluster = caching.cluster.iter();
        let cluster = cluster.map(|value| ("--cluster", value, &["server", "cluster"] as &[_]));
        always.into_iter().chain(microcache).chain(ignored).chain(cluster)
    });
    let dashboard = front.dashboard.iter().map(|value| ("--dashboard", value, &["dashboard"] as &[_]));
    let looks = front.dashboard_allow.iter();
    let looks = looks.map(|value| ("--dashboard-allow", value, &["api_allow"] as &[_]));
    let token = front.dashboard_token.iter();
    let token = token.map(|value| ("--dashboard-token", value, &["api_token"] as &[_]));
    let dashboard = dashboard.chain(looks).chain(token);
    let user = front.user.iter().map(|value| ("--user", value, &["user"] as &[_]));
    let name = front.upstream.upstream_name.iter();
    let name = name.map(|value| ("--upstream-name", value, &["proxy_ssl_name", "proxy_redirect"] as &[_]));
    let proxies = front.trust_proxy.iter().map(|value| ("--trust-proxy", value, &["trusted_proxy"] as &[_]));
    let domains = &front.domains;
    let domain = domains.domain.iter().map(|value| ("--domain", value, &["server_name"] as &[_]));
    let ports: [(&str, &String, &[&str]); 3] = [
        ("--https", &domains.https, &["listen"]),
        ("--http", &domains.http, &["listen"]),
        ("--acme-server", &domains.acme_server, &["uri"]),
    ];
    let contact = domains.contact.iter().map(|value| ("--contact", value, &["contact"] as &[_]));
    let domain = domain.chain(ports).chain(contact).filter(|_| domains.is_given());
    let always = always.into_iter().skip(usize::from(domains.is_given()));
    let given = always.chain(domain).chain(stored).chain(dashboard).chain(user).chain(name).chain(proxies);
    given.map(|(name, value, directives)| Given { name, value, directives }).collect()
}

/// Names the option to change if an address cannot be opened.
pub fn hint(front: &Front, dashboard: Option<&Address>, errors: &[OpenError]) -> Option<String> {
    let (at_dashboard, others): (Vec<_>, Vec<_>) =
        errors.iter().partition(|error| Some(&error.address) == dashboard);
    let is_taken =
        |errors: &[&OpenError]| errors.iter().any(|error| error.error.kind() == ErrorKind::AddrInUse);
    let moved = "choose another address for the dashboard with --dashboard address:port, or turn it off with --dashboard off";
    let elsewhere = match front.domains.is_given() {
        true => domain::hint(&others),
        false => {
            domain::remedy(&others).map(|remedy| format!("{remedy}, or choose another address with --listen"))
        }
    };
    let hints: Vec<String> =
        elsewhere.into_iter().chain(is_taken(&at_dashboard).then(|| moved.to_owned())).collect();
    (!hints.is_empty()).then(|| hints.join("; "))
}

pub(super) fn behind<'a>(front: &'a Front, caching: Option<&'a Caching>, line: &str) -> Option<Given<'a>> {
    let directive = line.split_whitespace().next()?;
    let of_line = |option: &Given<'_>| option.directives.contains(&directive) && line.contains(option.value);
    let mut options: Vec<_> = options(front, caching).into_iter().filter(of_line).collect();
    // Of an option that may be given several times all values stand in one line.
    if options.len() > 1 { None } else { options.pop() }
}
