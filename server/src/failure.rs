//! Failures as the client and the error log see them: the built-in page of a status, and what a log line tells of a request.
//!
//! Whose fault it was is the status: 4xx the client's, 502–504 the upstream's, 500 ours (RFC 9110 §15). 444 and 499
//! are nginx's: closed without an answer, and left by the client.

use crate::html;
use crate::request::Request;
use crate::variables;
use millstream_conf::model::{Level, ServerTokens, Variable};
use millstream_conf::variables::Builtin;
use millstream_telemetry::about::About;
use millstream_telemetry::error_log::ErrorLogs;
use millstream_wire::FieldId;
use millstream_wire::h1::encode;
use std::borrow::Cow;
use std::fmt::Arguments;

pub const CLOSE_WITHOUT_ANSWER: u16 = 444;
/// Another server than the negotiated one (RFC 9110 §15.5.20).
pub const MISDIRECTED: u16 = 421;
/// More fields than `max_headers`. `error_page` uses [`HEAD_TOO_LARGE`] for it, as in nginx.
pub const TOO_MANY_FIELDS: u16 = 493;
/// nginx's number, for `error_page`.
pub const HEAD_TOO_LARGE: u16 = 494;
pub const CERTIFICATE_ERROR: u16 = 495;
pub const NO_CERTIFICATE: u16 = 496;
pub const HTTP_TO_HTTPS: u16 = 497;

pub fn server_text(request: &Request) -> Cow<'static, [u8]> {
    match &request.location().settings.headers.server_tokens {
        ServerTokens::Off => Cow::Borrowed(b"millstream"),
        ServerTokens::On | ServerTokens::Build => {
            Cow::Borrowed(concat!("millstream/", env!("CARGO_PKG_VERSION")).as_bytes())
        }
        ServerTokens::Text(text) => Cow::Owned(variables::value(text, request)),
    }
}

/// The status sent to the client for nginx's own codes.
pub fn public_status(status: u16) -> u16 {
    match status {
        HEAD_TOO_LARGE => 431,
        TOO_MANY_FIELDS | 495..=497 => 400,
        _ => status,
    }
}

pub fn of_head(status: u16) -> u16 {
    if status == 431 { HEAD_TOO_LARGE } else { status }
}

/// As in nginx.
pub fn has_page(status: u16) -> bool {
    matches!(status, 301..=303 | 307 | 308 | 400..=416 | 421 | 429 | 431 | 493..=497 | 500..=505 | 507)
}

/// Empty if there is none. `server` is its last line.
pub fn page(status: u16, server: &[u8]) -> Vec<u8> {
    if !has_page(status) {
        return Vec::new();
    }
    let title = title(status);
    let heading = match (status, title.split_once(' ')) {
        (TOO_MANY_FIELDS | CERTIFICATE_ERROR..=HTTP_TO_HTTPS, Some((code, what))) => {
            format!("<h1>{code} {}</h1></center>\r\n<center>{what}", encode::reason(public_status(status)))
        }
        _ => format!("<h1>{title}</h1>"),
    };
    let mut page =
        format!("<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center>{heading}</center>\r\n")
            .into_bytes();
    if !server.is_empty() {
        page.extend_from_slice(b"<hr><center>");
        html::escape(server, &mut page);
        page.extend_from_slice(b"</center>\r\n");
    }
    page.extend_from_slice(b"</body>\r\n</html>\r\n");
    page
}

/// As problem details (RFC 9457); empty without a page, and for redirects.
pub fn problem(status: u16) -> Vec<u8> {
    if !has_page(status) || status < 400 {
        return Vec::new();
    }
    let (title, status) = (title(status), public_status(status));
    let title = title.split_once(' ').map_or("", |(_, title)| title);
    format!("{{\"type\":\"about:blank\",\"title\":\"{title}\",\"status\":{status}}}\n").into_bytes()
}

fn title(status: u16) -> String {
    match status {
        HTTP_TO_HTTPS => "400 The plain HTTP request was sent to HTTPS port".into(),
        CERTIFICATE_ERROR => "400 The SSL certificate error".into(),
        NO_CERTIFICATE => "400 No required SSL certificate was sent".into(),
        HEAD_TOO_LARGE => "431 Request Header Fields Too Large".into(),
        TOO_MANY_FIELDS => "400 Request Header Or Cookie Too Large".into(),
        302 => "302 Found".into(),
        401 => "401 Authorization Required".into(),
        _ => format!("{status} {}", encode::reason(status)),
    }
}

pub fn log(request: &Request, level: Level, what: Arguments<'_>) {
    logs(request).tell(level, what, || about(request, None));
}

pub fn logs(request: &Request) -> &ErrorLogs {
    &request.generation.shared.logs.errors[request.route.location.0 as usize]
}

pub fn about(request: &Request, upstream: Option<&str>) -> About {
    let text = |variable: Builtin| {
        let mut out = Vec::new();
        variables::append(&Variable::Builtin(variable), request, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    let field = |id| request.field(id).map(|value| String::from_utf8_lossy(value).into_owned());
    About {
        connection: Some(request.connection.serial),
        client: Some(text(Builtin::RemoteAddr)),
        server: Some(request.server().name.clone()),
        request: Some(text(Builtin::Request)),
        subrequest: request
            .descent
            .wanted
            .is_some()
            .then(|| String::from_utf8_lossy(&request.route.uri).into_owned()),
        upstream: upstream.map(str::to_owned),
        host: field(FieldId::Host),
        referrer: field(FieldId::Referer),
    }
}
