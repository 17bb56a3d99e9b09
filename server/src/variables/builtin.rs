//! The variables with fixed names, one arm each.

use super::connections::Connections;
use super::upstream::{self, each, number, seconds as optional_seconds};
use super::{
    Found, client_certificate, file_path, give, give_some, referer, seconds, secure_link, userid, value,
};
use crate::basic_credential;
use crate::browser;
use crate::date_format;
use crate::forwarded;
use crate::request::{ConnectionFacts, KeptBody, Request};
use crate::route::capture;
use crate::sent_target;
use crate::time_text::with_now;
use millstream_cache::is_note;
use millstream_conf::model::PassTarget;
use millstream_conf::variables::Builtin;
use millstream_net::Address;
use millstream_net::clock;
use millstream_net::proxy_protocol::Proxied;
use millstream_wire::{FieldId, Version, credential, host, unlisted};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The emulated version of nginx.
pub const NGINX_VERSION: &str = "1.31.5";

pub(super) fn append(variable: Builtin, request: &Request, out: &mut Vec<u8>) -> Found {
    use Builtin as B;
    let connection = &*request.connection;
    match variable {
        B::Args | B::QueryString => give_some(request.query(), out),
        B::DateGmt => date(request, |_| (0, b"GMT".to_vec()), out),
        B::DateLocal => date(request, |now| (clock::utc_offset(now), clock::zone_name(now)), out),
        B::IsArgs => {
            give(if request.query().is_some_and(|query| !query.is_empty()) { b"?" } else { b"" }, out)
        }
        // Of a path that leads out of the root nothing is left, and yet it was one.
        B::Uri | B::DocumentUri if request.received.head.length > 0 => give(&request.route.uri, out),
        B::Uri | B::DocumentUri => give_known(&request.route.uri, out),
        B::RequestUri => give_known(request.request_uri(), out),
        B::Request => give(request_line(request), out),
        // As in nginx a subrequest shows the method of the request that asks by it.
        B::RequestMethod if request.descent.wanted.is_some() => {
            give_known(request.received.head.method_text.of(&request.received.bytes), out)
        }
        B::RequestMethod => give_known(request.method_text(), out),
        B::RequestLength => {
            decimal(request.received.head.length as u64 + request.received.body_received, out)
        }
        B::RequestPort => give_some(request_port(request), out),
        B::IsRequestPort => give(if request_port(request).is_some() { b":" } else { b"" }, out),
        B::RequestTime => elapsed(clock::now().saturating_duration_since(request.received.started), out),
        B::RequestBody => match &request.received.body {
            KeptBody::Memory(body) => give_known(body, out),
            _ => Found::Nothing,
        },
        B::RequestBodyFile => {
            give_some(request.received.body_file.as_ref().map(|file| file.path.as_os_str().as_bytes()), out)
        }
        B::RequestCompletion => give(if request.sent.complete { b"OK" } else { b"" }, out),
        B::CredentialFields => names_of_fields(
            request,
            |id, name| id != FieldId::Cookie && credential::is_credential(id, name),
            out,
        ),
        B::UnlistedFields => {
            names_of_fields(request, |id, name| !unlisted::is_listed(id, name) && !is_note(name), out)
        }
        B::RequestId => give(request.id(), out),
        B::OtelTraceId => {
            request.trace().id.write(out);
            Found::Value
        }
        B::OtelSpanId => {
            request.trace().span.write(out);
            Found::Value
        }
        B::OtelParentId => request.trace().parent.map_or(Found::Nothing, |parent| {
            parent.span.write(out);
            Found::Value
        }),
        B::OtelParentSampled => {
            give(if request.trace().parent.is_some_and(|parent| parent.sampled) { b"1" } else { b"0" }, out)
        }
        B::ServerProtocol => give(request.received.head.version.as_str().as_bytes(), out),
        B::Http2 => match (request.received.head.version, &connection.tls) {
            (Version::Http2, Some(_)) => give(b"h2", out),
            (Version::Http2, None) => give(b"h2c", out),
            _ => Found::Nothing,
        },
        B::Scheme => give(if connection.tls.is_some() { b"https" } else { b"http" }, out),
        B::Https => give(if connection.tls.is_some() { b"on" } else { b"" }, out),
        B::Host if request.route.host.is_empty() => give(request.server().name.as_bytes(), out),
        B::Host => give(&request.route.host, out),
        B::ServerName => give(request.server().name.as_bytes(), out),
        B::ContentLength => content_length(request, out),
        B::ContentType => super::join(request.fields(), "content-type", out),
        B::RemoteUser => remote_user(request, out),
        B::RemoteAddr => give(request.client_text().as_bytes(), out),
        B::BinaryRemoteAddr => binary_address(request.client(), out),
        B::RemotePort => port(request.client(), out),
        B::RealipRemoteAddr => give(connection.remote_text.as_bytes(), out),
        B::RealipRemotePort => port(&connection.remote, out),
        B::ProxyProtocolAddr => proxied(request, out, |said, out| ip(said.source.ip(), out)),
        B::ProxyProtocolPort => proxied(request, out, |said, out| decimal(said.source.port().into(), out)),
        B::ProxyProtocolServerAddr => proxied(request, out, |said, out| ip(said.destination.ip(), out)),
        B::ProxyProtocolServerPort => {
            proxied(request, out, |said, out| decimal(said.destination.port().into(), out))
        }
        B::ServerAddr => server_address(&connection.local, out),
        B::ServerPort => port(&connection.local, out),
        B::ProxyAddXForwardedFor => forwarded_for(request, out),
        B::ForwardedFor => {
            forwarded::append_for(request, out);
            Found::Value
        }
        B::ForwardedAddr => {
            forwarded::append_addr(request, out);
            Found::Value
        }
        B::ForwardedProto => match forwarded::proto(request) {
            Some(proto) => give(&proto, out),
            None => append(B::Scheme, request, out),
        },
        B::ForwardedHost => match forwarded::host(request) {
            Some(host) => give(host, out),
            None => give_some(request.field(FieldId::Host), out),
        },
        B::LimitRate => decimal(request.reply.limit_rate.unwrap_or(0), out),
        B::LimitReqStatus => give_some(request.limited.requests.map(|made| made.name().as_bytes()), out),
        B::LimitConnStatus => give_some(request.limited.connections.map(|made| made.name().as_bytes()), out),
        B::ProxyHost => proxy_pass(request, out, |(host, _), out| give(host, out)),
        B::ProxyPort => proxy_pass(request, out, |(_, port), out| decimal(u64::from(port), out)),
        B::FastcgiScriptName | B::FastcgiPathInfo => script(variable, request, out),
        B::Connection => decimal(connection.serial, out),
        B::ConnectionRequests => decimal(connection.requests.get(), out),
        B::ConnectionsActive => decimal(Connections::of(request).active, out),
        B::ConnectionsReading => decimal(Connections::of(request).reading, out),
        B::ConnectionsWaiting => decimal(Connections::of(request).waiting, out),
        B::ConnectionsWriting => decimal(Connections::of(request).writing, out),
        B::ConnectionTime => elapsed(clock::now().saturating_duration_since(connection.opened), out),
        B::Pipe => give(if request.received.pipelined { b"p" } else { b"." }, out),
        B::Pid => decimal(u64::from(std::process::id()), out),
        B::Hostname => give(rustix::system::uname().nodename().to_bytes(), out),
        B::NginxVersion => give(NGINX_VERSION.as_bytes(), out),
        B::Msec => milliseconds(out),
        B::TimeLocal => with_now(|now| give(&now.local, out)),
        B::TimeIso8601 => with_now(|now| give(&now.iso8601, out)),
        B::Status => status(request.descent.error_status.unwrap_or(request.sent.status), out),
        B::BytesSent => decimal(request.sent.bytes, out),
        B::BodyBytesSent => decimal(request.sent.body_bytes, out),
        B::GzipRatio => gzip_ratio(request, out),
        B::DocumentRoot => give(&file_path::root(request), out),
        B::RealpathRoot => realpath(request, out),
        B::RequestFilename => give_some(file_path::of(request).ok().as_deref(), out),
        B::ModernBrowser | B::AncientBrowser => {
            let browsers = &request.location().settings.browser;
            let (wanted, value) = match variable {
                B::ModernBrowser => (true, &browsers.modern_value),
                _ => (false, &browsers.ancient_value),
            };
            let is_wanted = browser::is_modern(browsers, request.field(FieldId::UserAgent)) == wanted;
            give(if is_wanted { value.as_bytes() } else { b"" }, out)
        }
        B::Msie => {
            let is_msie = request.field(FieldId::UserAgent).is_some_and(browser::is_msie);
            give(if is_msie { b"1" } else { b"" }, out)
        }
        B::UidGot => userid::append_got(request, out),
        B::UidSet => userid::append_set(request, out),
        // What gives it a value comes before.
        B::UidReset => Found::Value,
        B::InvalidReferer => referer::append(request, out),
        B::SecureLink => secure_link::append(request, out),
        B::SecureLinkExpires => secure_link::append_expires(request, out),
        B::SslCipher
        | B::SslProtocol
        | B::SslServerName
        | B::SslSessionReused
        | B::SslSessionId
        | B::SslCiphers
        | B::SslAlpnProtocol
        | B::SslCurve
        | B::SslCurves
        | B::SslSigalg
        | B::SslSigalgs
        | B::SslClientSigalg => tls(variable, connection, out),
        // Of early data nothing is taken, so no request is of it.
        B::SslEarlyData => Found::Nothing,
        B::SslClientVerify => client_certificate::append_judgement(request, out),
        B::SslClientCert
        | B::SslClientEscapedCert
        | B::SslClientFingerprint
        | B::SslClientIDn
        | B::SslClientIDnLegacy
        | B::SslClientRawCert
        | B::SslClientSDn
        | B::SslClientSDnLegacy
        | B::SslClientSerial
        | B::SslClientVEnd
        | B::SslClientVRemain
        | B::SslClientVStart => client_certificate::append(variable, request, out),
        B::UpstreamCacheStatus => match request.cache.status {
            Some(status) => give(status.name().as_bytes(), out),
            None => Found::Nothing,
        },
        B::UpstreamCacheKey => cache_key(request, out),
        B::UpstreamCacheAge | B::UpstreamCacheLastModified | B::UpstreamCacheEtag => {
            upstream::of_entry(variable, request, out)
        }
        B::SliceRange => upstream::slice_range(request, out),
        B::UpstreamAddr => each(request, out, |one, out| out.extend_from_slice(one.peer.as_bytes())),
        B::UpstreamStatus => each(request, out, |one, out| match one.status {
            0 => out.push(b'-'),
            status => number(u64::from(status), out),
        }),
        B::UpstreamConnectTime => each(request, out, |one, out| optional_seconds(one.connect_time, out)),
        B::UpstreamHeaderTime => each(request, out, |one, out| optional_seconds(one.header_time, out)),
        B::UpstreamResponseTime => each(request, out, |one, out| optional_seconds(one.response_time, out)),
        B::UpstreamResponseLength => each(request, out, |one, out| number(one.response_length, out)),
        B::UpstreamBytesSent => each(request, out, |one, out| number(one.bytes_sent, out)),
        B::UpstreamBytesReceived => each(request, out, |one, out| number(one.bytes_received, out)),
    }
}

/// As the client wrote it in the target or the Host field.
fn request_port(request: &Request) -> Option<&[u8]> {
    let written = match request.received.head.authority {
        Some(span) => span.of(&request.received.bytes),
        None => request.field(FieldId::Host)?,
    };
    let port = host::validate(written).ok()?.port?;
    (!port.is_empty()).then_some(port)
}

fn give_known(value: &[u8], out: &mut Vec<u8>) -> Found {
    if value.is_empty() { Found::Nothing } else { give(value, out) }
}

fn elapsed(time: Duration, out: &mut Vec<u8>) -> Found {
    seconds(time, out);
    Found::Value
}

fn decimal(value: u64, out: &mut Vec<u8>) -> Found {
    give(itoa::Buffer::new().format(value).as_bytes(), out)
}

fn status(status: u16, out: &mut Vec<u8>) -> Found {
    // nginx writes 000 for a request that got no status, and always three digits.
    let digit = |place: u16| b'0' + (status / place % 10) as u8;
    give(&[digit(100), digit(10), digit(1)], out)
}

fn milliseconds(out: &mut Vec<u8>) -> Found {
    let wall = clock::wall();
    seconds(Duration::new(wall.seconds.unsigned_abs(), u32::from(wall.milliseconds) * 1_000_000), out);
    Found::Value
}

pub(super) fn request_line(request: &Request) -> &[u8] {
    let start = request.received.head.method_text.start as usize;
    let line = &request.received.bytes[start.min(request.received.bytes.len())..];
    let end = line.iter().position(|&byte| byte == b'\n').unwrap_or(line.len());
    line[..end].strip_suffix(b"\r").unwrap_or(&line[..end])
}

/// As announced; without a length the bytes received, once complete, as in nginx.
fn content_length(request: &Request, out: &mut Vec<u8>) -> Found {
    match (request.field(FieldId::ContentLength), &request.received.body) {
        (None, KeptBody::Memory(_) | KeptBody::File(..)) => decimal(request.received.body.held(), out),
        (announced, _) => give_some(announced, out),
    }
}

fn remote_user(request: &Request, out: &mut Vec<u8>) -> Found {
    basic_credential::of(request).map_or(Found::Nothing, |sent| give(&sent.user, out))
}

fn binary_address(address: &Address, out: &mut Vec<u8>) -> Found {
    match address {
        Address::Tcp(std::net::SocketAddr::V4(v4)) => give(&v4.ip().octets(), out),
        Address::Tcp(std::net::SocketAddr::V6(v6)) => give(&v6.ip().octets(), out),
        Address::Unix(_) => give(b"unix:", out),
    }
}

fn port(address: &Address, out: &mut Vec<u8>) -> Found {
    match address {
        // A proxy need not say the port.
        Address::Tcp(socket) if socket.port() == 0 => Found::Value,
        Address::Tcp(socket) => decimal(u64::from(socket.port()), out),
        Address::Unix(_) => Found::Nothing,
    }
}

fn proxied(request: &Request, out: &mut Vec<u8>, write: impl Fn(&Proxied, &mut Vec<u8>) -> Found) -> Found {
    request.connection.proxied.as_ref().map_or(Found::Nothing, |said| write(said, out))
}

fn ip(address: IpAddr, out: &mut Vec<u8>) -> Found {
    _ = write!(out, "{address}");
    Found::Value
}

fn server_address(address: &Address, out: &mut Vec<u8>) -> Found {
    match address {
        Address::Tcp(socket) => _ = write!(out, "{}", socket.ip()),
        Address::Unix(_) => _ = write!(out, "{address}"),
    }
    Found::Value
}

fn forwarded_for(request: &Request, out: &mut Vec<u8>) -> Found {
    for value in request.fields().all(FieldId::XForwardedFor) {
        out.extend_from_slice(value);
        out.extend_from_slice(b", ");
    }
    give(request.client_text().as_bytes(), out)
}

fn proxy_pass(
    request: &Request,
    out: &mut Vec<u8>,
    write: impl Fn((&[u8], u16), &mut Vec<u8>) -> Found,
) -> Found {
    let Some(proxy) = request.location().settings.pass() else { return Found::Nothing };
    let Some((host, port)) = proxy.host() else { return Found::Nothing };
    match &proxy.target {
        PassTarget::Upstream(_) => write((host.as_bytes(), port), out),
        PassTarget::Variables(template) => {
            let url = value(template, request);
            let Some(parts) = sent_target::parts(&url, proxy) else { return Found::Nothing };
            write(parts.host(), out)
        }
    }
}

/// By `fastcgi_split_path_info` and `fastcgi_index`.
fn script(variable: Builtin, request: &Request, out: &mut Vec<u8>) -> Found {
    let pass = request.location().settings.pass();
    let fastcgi = pass.and_then(|pass| pass.fastcgi());
    let regex = fastcgi.and_then(|fastcgi| fastcgi.split_path_info.as_ref());
    // Of an expression that cannot be decided nothing follows, and the whole URI is hardly a script.
    let parts = regex.and_then(|regex| capture(regex, &request.route.uri).ok().flatten());
    let part = |number: usize| {
        let (start, end) = *parts.as_ref()?.groups.get(number)?;
        request.route.uri.get(start as usize..end as usize)
    };
    if variable == Builtin::FastcgiPathInfo {
        return if regex.is_some() { give(part(2).unwrap_or_default(), out) } else { Found::Nothing };
    }
    let name = part(1).unwrap_or(&request.route.uri);
    out.extend_from_slice(name);
    if let Some(fastcgi) = fastcgi.filter(|_| name.ends_with(b"/")) {
        out.extend_from_slice(fastcgi.index.as_bytes());
    }
    Found::Value
}

fn cache_key(request: &Request, out: &mut Vec<u8>) -> Found {
    let cache = request.location().settings.cache();
    match (cache, request.cache.status) {
        (Some(cache), Some(_)) => {
            super::evaluate(&cache.key, request, out);
            Found::Value
        }
        _ => Found::Nothing,
    }
}

fn gzip_ratio(request: &Request, out: &mut Vec<u8>) -> Found {
    match request.sent.compressed {
        Some((input, output)) if output > 0 => {
            _ = write!(out, "{:.2}", input as f64 / output as f64);
            Found::Value
        }
        _ => Found::Nothing,
    }
}

fn realpath(request: &Request, out: &mut Vec<u8>) -> Found {
    use std::os::unix::ffi::OsStringExt;
    let root = file_path::root(request);
    match std::fs::canonicalize(Path::new(std::ffi::OsStr::from_bytes(&root))) {
        Ok(path) => give(&path.into_os_string().into_vec(), out),
        Err(_) => Found::Nothing,
    }
}

fn tls(variable: Builtin, connection: &ConnectionFacts, out: &mut Vec<u8>) -> Found {
    let Some(tls) = &connection.tls else { return Found::Nothing };
    let offered = tls.offered.as_ref();
    match variable {
        Builtin::SslCipher => give(tls.cipher.as_bytes(), out),
        Builtin::SslProtocol => give(tls.protocol.as_bytes(), out),
        Builtin::SslAlpnProtocol => give_some((!tls.alpn.is_empty()).then_some(tls.alpn.as_bytes()), out),
        Builtin::SslCurve => give_some((!tls.group.is_empty()).then_some(tls.group.as_bytes()), out),
        Builtin::SslCiphers => give_some(offered.map(|offered| offered.ciphers.as_bytes()), out),
        Builtin::SslCurves => give_some(offered.map(|offered| offered.groups.as_bytes()), out),
        Builtin::SslSigalgs => give_some(offered.map(|offered| offered.schemes.as_bytes()), out),
        Builtin::SslSigalg => give_named(offered.map(|offered| offered.scheme), out),
        Builtin::SslClientSigalg => give_named(offered.map(|offered| offered.client_scheme), out),
        Builtin::SslSessionId => match offered {
            Some(offered) => {
                offered.session.iter().for_each(|byte| _ = write!(out, "{byte:02x}"));
                Found::Value
            }
            None => Found::Nothing,
        },
        Builtin::SslSessionReused => give(if tls.resumed { b"r" } else { b"." }, out),
        _ => give_some(tls.server_name.as_ref().map(|name| name.as_bytes()), out),
    }
}

fn give_named(name: Option<&str>, out: &mut Vec<u8>) -> Found {
    give_some(name.filter(|name| !name.is_empty()).map(str::as_bytes), out)
}

/// The present time by `config timefmt`.
fn date(request: &Request, zone: impl FnOnce(i64) -> (i32, Vec<u8>), out: &mut Vec<u8>) -> Found {
    let now = clock::wall().seconds;
    let (offset, name) = zone(now);
    let said = request.reply.sheet.get().and_then(|sheet| sheet.time_format.borrow().clone());
    let format = said.as_deref().unwrap_or(date_format::DEFAULT);
    if date_format::append(format, now, offset, &name, out) { Found::Value } else { Found::Nothing }
}

fn names_of_fields(request: &Request, is_one: impl Fn(FieldId, &[u8]) -> bool, out: &mut Vec<u8>) -> Found {
    let start = out.len();
    for (name, _) in request.fields().pairs() {
        if !is_one(FieldId::of(name), name) {
            continue;
        }
        if out.len() > start {
            out.push(b',');
        }
        out.extend(name.iter().map(u8::to_ascii_lowercase));
    }
    if out.len() > start { Found::Value } else { Found::Nothing }
}
