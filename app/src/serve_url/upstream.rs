//! The URLs of `serve`: the servers of the upstream group, the name under which the API is asked, and TLS to it.
//!
//! An https API is verified by its name. A name gets its own `Host`, because it is a site of its own; an address, this machine and
//! plain http get the client's. Before: `serve_url`, whose text these lines are in.

use super::plain;
use crate::cli::UpstreamFlags;
use millstream_net::tls::system_authorities;
use std::fs::File;
use std::net::IpAddr;
use std::path::PathBuf;

pub(super) struct Upstream {
    pub(super) servers: Vec<String>,
    host: Option<String>,
    /// `host:port` as an API writes it when it redirects to itself.
    addresses: Vec<String>,
    tls: Option<Tls>,
}

struct Tls {
    /// The SNI, and the name that the certificate must have.
    name: String,
    /// File of authorities; `None`: any certificate is accepted.
    trusted: Option<String>,
}

struct Parts<'a> {
    is_https: bool,
    server: String,
    authority: &'a str,
}

impl Upstream {
    /// Fails for a URL that cannot be served, or contradicts another one or a flag.
    pub(super) fn read(urls: &[String], flags: &UpstreamFlags) -> Result<Upstream, String> {
        let parts = urls.iter().map(|url| parts(url)).collect::<Result<Vec<_>, _>>()?;
        let servers = parts.iter().map(|part| part.server.clone()).collect();
        let named = parts.iter().filter(|part| !part.authority.is_empty());
        let addresses =
            named.map(|part| if part.is_https { part.authority } else { &part.server }.to_owned());
        let addresses: Vec<String> = addresses.collect();
        let mut host = flags.upstream_name.clone();
        let Some(first) = parts.iter().position(|part| part.is_https) else {
            return match (&flags.upstream_ca, flags.insecure_upstream) {
                (Some(_), _) => Err("--upstream-ca is for an https API".to_owned()),
                (_, true) => Err("--insecure-upstream is for an https API".to_owned()),
                _ => Ok(Upstream { servers, host, addresses, tls: None }),
            };
        };
        if let Some(other) = parts.iter().position(|part| !part.is_https) {
            return Err(format!(
                "\"{}\" and \"{}\": all URLs must have the same scheme, https or http",
                urls[first], urls[other]
            ));
        }
        let name = match &flags.upstream_name {
            Some(name) => host_of(name),
            None => {
                let name = host_of(parts[0].authority);
                if let Some(other) = parts.iter().position(|part| host_of(part.authority) != name) {
                    return Err(format!(
                        "\"{}\" and \"{}\" have different names: specify the name in both certificates with --upstream-name",
                        urls[0], urls[other]
                    ));
                }
                if has_name(name) {
                    host = Some(parts[0].authority.to_owned());
                }
                name
            }
        };
        let trusted = if flags.insecure_upstream { None } else { Some(authorities(flags)?) };
        Ok(Upstream { servers, host, addresses, tls: Some(Tls { name: name.to_owned(), trusted }) })
    }

    /// The lines that define `$api_host`, if `pass` uses it.
    pub(super) fn host_map(&self) -> String {
        if self.host.is_some() {
            return String::new();
        }
        // What is sent where the client sends none (HTTP/1.0): the API's own, never the group's name.
        let own = self.addresses.first().map_or("localhost", String::as_str);
        format!(
            "    map $http_host $api_host {{\n        \"\" {own};\n        default $http_host;\n    }}\n\n"
        )
    }

    /// The argument of `proxy_pass`, and the lines that belong to it. `is_behind`: a trusted proxy writes
    /// X-Forwarded-Host.
    pub(super) fn pass(&self, is_behind: bool) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let host = self.host.as_deref().unwrap_or("$api_host");
        let mut lines = vec![format!("proxy_pass {scheme}://api"), "proxy_upgrade on".to_owned()];
        lines.push(format!("proxy_set_header Host {host}"));
        // The API's redirects to itself lead back here.
        let mut own: Vec<&str> = self.host.iter().chain(&self.addresses).map(String::as_str).collect();
        own.dedup();
        lines.extend(own.iter().map(|own| format!("proxy_redirect {scheme}://{own}/ /")));
        // A proxy in front may have another scheme, name or port.
        lines.push("absolute_redirect off".to_owned());
        if !is_behind {
            // Whoever is no trusted proxy does not say which host, port or path was asked for.
            let host = if self.host.is_some() { "$http_host" } else { "\"\"" };
            lines.push(format!("proxy_set_header X-Forwarded-Host {host}"));
            let untold = ["Forwarded", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server"];
            lines.extend(untold.map(|name| format!("proxy_set_header {name} \"\"")));
        }
        if let Some(Tls { name, trusted }) = &self.tls {
            lines.push("proxy_ssl_server_name on".to_owned());
            lines.push(format!("proxy_ssl_name {name}"));
            match trusted {
                Some(file) => {
                    lines.push("proxy_ssl_verify on".to_owned());
                    // nginx's default of one stops at chains that public authorities use.
                    lines.push("proxy_ssl_verify_depth 9".to_owned());
                    lines.push(format!("proxy_ssl_trusted_certificate {file}"));
                }
                None => lines.push("proxy_ssl_verify off".to_owned()),
            }
        }
        lines.iter().map(|line| format!("            {line};\n")).collect()
    }
}

fn has_name(host: &str) -> bool {
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let is_here = host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    !is_address && !is_here
}

fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    }
}

fn authorities(flags: &UpstreamFlags) -> Result<String, String> {
    let named = |name: &'static str, file: PathBuf| (name, file);
    let given = flags.upstream_ca.clone().map(|file| named("--upstream-ca", file));
    let given =
        given.or_else(|| std::env::var_os("SSL_CERT_FILE").map(|file| named("SSL_CERT_FILE", file.into())));
    let given = given.or_else(|| {
        system_authorities().map(|file| named("the certificate authorities of the system", file.into()))
    });
    let (name, file) = given.ok_or(
        "no list of trusted certificate authorities was found: specify a file with --upstream-ca, or install \
         ca-certificates",
    )?;
    let wrong = |why: &dyn std::fmt::Display| format!("{name} {}: {why}", file.display());
    let file = std::path::absolute(&file).map_err(|error| wrong(&error))?;
    File::open(&file).map_err(|error| wrong(&error))?;
    let text = file.to_string_lossy();
    Ok(plain(&text).map_err(|why| wrong(&why))?.to_owned())
}

/// What a URL has behind the authority but may not have, as the end of a sentence; empty if nothing.
fn superfluous(rest: &str) -> String {
    let (before, query) = rest.split_once('?').map_or((rest, None), |(before, query)| (before, Some(query)));
    let (authority, path) = before.split_once('/').unwrap_or((before, ""));
    let all = [
        (authority.contains('@'), "a user and password"),
        (!path.is_empty(), "a path"),
        (query.is_some(), "a query"),
    ];
    let named: Vec<&str> = all.into_iter().filter_map(|(is_there, what)| is_there.then_some(what)).collect();
    if named.is_empty() { String::new() } else { format!(" without {}", named.join(" and ")) }
}

fn parts(url: &str) -> Result<Parts<'_>, String> {
    plain(url)?;
    if let Some(path) = url.strip_prefix("unix:") {
        return match path.starts_with('/') {
            true => Ok(Parts { is_https: false, server: url.to_owned(), authority: "" }),
            false => Err(format!("invalid socket \"{url}\": write unix:/path/of.sock")),
        };
    }
    let (is_https, rest) = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
        Some((scheme, _)) => {
            let pass = match &*scheme.to_ascii_lowercase() {
                "grpc" | "grpcs" => format!("grpc_pass {scheme}://…"),
                scheme @ ("fastcgi" | "uwsgi" | "scgi") => format!("{scheme}_pass host:port"),
                _ => {
                    return Err(format!(
                        "\"{url}\": serve supports only HTTP to the API: write http://host:port or https://host"
                    ));
                }
            };
            return Err(format!(
                "\"{url}\": serve supports only HTTP to the API. Write http://host:port or https://host; for \
                 {scheme}, start from the output of --print-config and use {pass} there"
            ));
        }
        None => (false, url),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    let is_port = authority.parse::<u16>().is_ok();
    if authority.is_empty() || authority.contains(['/', '?', '@']) || is_https && is_port {
        let scheme = if is_https { "https" } else { "http" };
        return Err(format!("\"{url}\": write {scheme}://host:port{}", superfluous(authority)));
    }
    let server = match host_of(authority) == authority {
        true if is_port => format!("127.0.0.1:{authority}"),
        true if is_https => format!("{authority}:443"),
        _ => authority.to_owned(),
    };
    Ok(Parts { is_https, server, authority })
}
