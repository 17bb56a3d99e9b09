//! `serve --domain`: the lines of the nginx.conf by which TLS is spoken, with a certificate that is issued.
//!
//! Before: `serve_url`, whose text these are in; next: `conf/src/features/acme.rs`, what they mean.

use super::plain;
use crate::cli::{Domains, Front};
use crate::state_folder;
use millstream_net::listener::{Holder, OpenError};
use std::env;
use std::fmt::Write;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::path::PathBuf;

/// The issuer, and the server that redirects to https. Empty without a domain.
pub(super) fn around(front: &Front) -> Result<String, String> {
    let domains = &front.domains;
    let Some(first) = domains.domain.first() else { return Ok(String::new()) };
    let mut out = String::from("\n    acme_issuer serve {\n");
    _ = writeln!(out, "        uri {};", domains.acme_server);
    if let Some(contact) = &domains.contact {
        _ = writeln!(out, "        contact {contact};");
    }
    if let Some(file) = &domains.acme_ca {
        let file = std::path::absolute(file).map_err(|error| format!("--acme-ca: {error}"))?;
        let file = file.to_string_lossy();
        _ = writeln!(
            out,
            "        ssl_trusted_certificate {};",
            plain(&file).map_err(|why| format!("--acme-ca: {why}"))?
        );
    }
    let state = state(domains)?.to_string_lossy().into_owned();
    let state = plain(&state).map_err(|why| format!("--acme-state: {why}"))?;
    _ = writeln!(out, "        state_path {state};\n        accept_terms_of_service;\n    }}");
    // The authority asks at the ports 80 and 443, so these are the ports of the name, whatever leads from there to here. Whoever asks
    // for another name is led to the first and never to that.
    let listens = listens(&domains.http, " default_server");
    _ = write!(out, "\n    server {{\n{listens}        return 301 https://{first}$request_uri;\n    }}\n");
    let (listens, names) = (self::listens(&domains.http, ""), domains.domain.join(" "));
    _ = write!(
        out,
        "\n    server {{\n{listens}        server_name {names};\n        return 301 https://$host$request_uri;\n    }}\n"
    );
    Ok(out)
}

/// `listen` and certificate of the server that passes requests on.
pub(super) fn of_server(domains: &Domains) -> String {
    let (listens, names) = (listens(&domains.https, " ssl"), domains.domain.join(" "));
    format!(
        "{listens}        http2 on;\n        server_name {names};\n        acme_certificate serve;\n        ssl_certificate $acme_certificate;\n        \
         ssl_certificate_key $acme_certificate_key;\n        ssl_session_cache shared:serve:1m;\n"
    )
}

/// A port alone listens on every address, with IPv6 if the machine has it.
fn listens(address: &str, parameters: &str) -> String {
    let mut out = format!("        listen {address}{parameters};\n");
    if address.parse::<u16>().is_ok() && UdpSocket::bind("[::1]:0").is_ok() {
        _ = writeln!(out, "        listen [::]:{address}{parameters};");
    }
    out
}

pub(super) fn address(domains: &Domains) -> String {
    match domains.https.contains(':') {
        true => domains.https.clone(),
        false => format!("*:{}", domains.https),
    }
}

/// The directory of account and certificates: that of the service manager or the user.
fn state(domains: &Domains) -> Result<PathBuf, String> {
    if let Some(path) = &domains.acme_state {
        return std::path::absolute(path).map_err(|error| format!("--acme-state: {error}"));
    }
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = state_folder::of_service().map(|path| path.join("acme")).or_else(|| {
        if rustix::process::geteuid().is_root() {
            return Some(PathBuf::from("/var/lib/millstream/acme"));
        }
        let of_user = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
        of_user.map(|path| path.join("millstream/acme"))
    });
    own.ok_or_else(|| "no directory for certificates was found: specify one with --acme-state".to_owned())
}

pub(super) fn hint(errors: &[&OpenError]) -> Option<String> {
    let is = |kind: ErrorKind| errors.iter().any(|error| error.error.kind() == kind);
    let elsewhere = "use --https 8443 --http 8080 and forward the public ports 443 and 80 to them";
    if is(ErrorKind::PermissionDenied) {
        return Some(format!(
            "start millstream as root (it serves as \"nobody\" once the ports are open), or permit it with setcap \
             cap_net_bind_service=+ep, or {elsewhere}"
        ));
    }
    remedy(errors).map(|remedy| format!("{remedy}, or {elsewhere}"))
}

/// How an address in use becomes free.
pub(super) fn remedy(errors: &[&OpenError]) -> Option<&'static str> {
    let holders: Vec<_> = errors.iter().filter_map(|error| error.holder).collect();
    match holders.iter().find(|holder| **holder != Holder::Connection) {
        Some(Holder::Listener) => Some("stop the process that listens there"),
        Some(_) => Some("stop the process that uses it"),
        None => (!holders.is_empty()).then_some("wait until the connection has ended"),
    }
}
