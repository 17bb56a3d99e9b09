//! `proxy_pass`: speaking HTTP to the upstream.
//!
//! Here is only what no other protocol has. Before: `target`, whom a location passes to; next: `millstream-server`'s
//! `exchange/request_head` and `answer_head`.

use super::cookie::{self, CookieFlags, CookieRule, Cookies};
use super::secure::{self, PassTls, SecureLevel};
use super::target::{self, PassDraft};
use super::{Family, Sent, Spoken};
use crate::features::context::{Context, Contexts, HTTP_SERVER_LOCATION, LOCATION_IF};
use crate::features::headers::field;
use crate::features::level::level;
use crate::features::location::LocationMatch;
use crate::features::templates::{Templates, record, without_templates};
use crate::features::{Apply, Level, MANY, Row, idle, often, once};
use crate::reading::Reading;
use crate::regular_expression::Regex;
use crate::source::Span;
use crate::template::{Part, Template, Variable};
use crate::tree::Directive;
use crate::variables::Builtin;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVersion {
    Http10,
    Http11,
    Http2,
}

record! {
    pub struct SetHeader {
        pub name: String,
        /// The field is not sent if it evaluates to empty.
        pub value: Template,
    }
}

#[derive(Debug, Clone)]
pub enum Redirect {
    Prefix { from: Template, to: Template },
    Regex { from: Regex, to: Template },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyHeader {
    V1,
    V2,
}

without_templates!(HttpVersion, ProxyHeader);

impl Templates for Redirect {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        match self {
            Redirect::Prefix { from, to } => all.extend([from, to]),
            Redirect::Regex { from: _, to } => all.push(to),
        }
    }
}

record! {
    pub struct HttpPass {
        /// `$proxy_host`: the host as written, with the port unless it is the scheme's.
        pub host: String,
        pub port: u16,
        /// The URI part, which replaces what the location's prefix matched of the normalised URI. `None`
        /// passes the request's URI on as it came.
        pub uri: Option<String>,
        pub http_version: HttpVersion,
        /// The `proxy_set_header`s in force and, unless they name them, the defaults `Host $proxy_host` and
        /// `Connection ""`.
        pub set_headers: Vec<SetHeader>,
        /// In order; `default` is already written out, `off` is empty.
        pub redirects: Vec<Redirect>,
        pub cookies: Cookies,
        pub method: Option<Template>,
        pub announces: Option<ProxyHeader>,
        pub upgrade: bool,
        pub passes_trailers: bool,
        pub body: Option<Template>,
        /// Present if the URL is, or may be, `https://`.
        pub tls: Option<PassTls>,
    }
}

#[derive(Debug, Clone)]
pub enum RedirectRule {
    /// Becomes a rule once the location is known.
    Default(Span),
    Pair(Box<Redirect>),
}

level! {
    pub struct HttpLevel {
        http_version: HttpVersion,
        set_headers: Vec<SetHeader>,
        /// Empty = `off`.
        redirects: Vec<RedirectRule>,
        /// Empty = `off`, as with the other two.
        cookie_domains: Vec<CookieRule>,
        cookie_paths: Vec<CookieRule>,
        cookie_flags: Vec<CookieFlags>,
        method: Template,
        announces: Option<ProxyHeader>,
        upgrade: bool,
        passes_trailers: bool,
        body: Template,
        secure: SecureLevel,
    }
}

impl Spoken for HttpLevel {
    type Settings = HttpPass;

    fn inherit(&mut self, above: &Self) {
        if let (Some(own), Some(outer)) = (&mut self.secure, &above.secure) {
            own.inherit_open(outer);
        }
        self.inherit_open(above);
    }

    fn sent(&self) -> Sent<'_> {
        let mut values = secure::sent(self.secure.as_ref());
        values.extend(self.body.iter().chain(&self.method));
        Sent {
            fields: self.set_headers.as_deref().unwrap_or_default(),
            values,
            announces: self.announces.flatten().is_some(),
            ..Sent::default()
        }
    }

    fn resolve(&self, draft: &PassDraft, matches: &LocationMatch, reading: &mut Reading<'_>) -> HttpPass {
        check_uri(draft, matches, reading);
        HttpPass {
            host: draft.host.clone(),
            port: draft.port,
            uri: draft.uri.clone(),
            http_version: self.http_version.unwrap_or(HttpVersion::Http11),
            set_headers: set_headers(self.set_headers.as_deref()),
            redirects: redirects(self, draft, matches, reading),
            cookies: Cookies {
                domains: self.cookie_domains.clone().unwrap_or_default(),
                paths: self.cookie_paths.clone().unwrap_or_default(),
                flags: self.cookie_flags.clone().unwrap_or_default(),
            },
            method: self.method.clone(),
            announces: self.announces.unwrap_or(None),
            upgrade: self.upgrade.unwrap_or(false),
            passes_trailers: self.passes_trailers.unwrap_or(false),
            body: self.body.clone(),
            tls: draft
                .may_be_encrypted
                .then(|| self.secure.clone().unwrap_or_default().resolve(draft, reading)),
        }
    }
}

const VERSIONS: [(&str, HttpVersion); 3] =
    [("1.0", HttpVersion::Http10), ("1.1", HttpVersion::Http11), ("2", HttpVersion::Http2)];

const HEADERS: [(&str, Option<ProxyHeader>); 3] =
    [("off", None), ("on", Some(ProxyHeader::V1)), ("v2", Some(ProxyHeader::V2))];

const REUSED: &str = "requests to the upstream are written to buffers that grow as needed";

#[rustfmt::skip]
pub const TLS_ROWS: &[Row] = secure::rows!("proxy", secure_of, "$proxy_host");

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("proxy_pass", LOCATION_IF.or(Contexts::only(Context::LimitExcept)), (1, 1), "URL", "",
        "Passes requests to an upstream group, `host:port` or `unix:/path`, each preceded by `http://` or `https://`. A URI in the parameter replaces the \
        part of the request URI that matches the location's prefix; without one, the request URI is passed unchanged. If the parameter contains \
        variables, its value is the whole URL.",
        Apply::Level(|l, d, r| target::read(Family::Proxy, l, d, r))),
    once("proxy_http_version", HTTP_SERVER_LOCATION, (1, 1), "1.0 | 1.1 | 2", "1.1",
        "Sets the HTTP version for the upstream. With `2`, requests share connections. Over TLS, the server must negotiate it (ALPN); without TLS, it \
        is used at once.",
        Apply::Level(|l, d, r| of(l).http_version = r.choice(&d.args[0], &VERSIONS))),
    often("proxy_set_header", HTTP_SERVER_LOCATION, (2, 2), "field value", "Host $proxy_host; Connection \"\"",
        "Sets a field of requests to the upstream. An empty value removes it. These directives are inherited only if the current level has none. The \
        defaults apply unless the same field is set. For gRPC, `Host` sets `:authority`.",
        Apply::Level(|l, d, r| set_header(of(l).set_headers.get_or_insert_default(), d, r))),
    often("proxy_redirect", HTTP_SERVER_LOCATION, (1, 2), "default | off | redirect replacement", "default",
        "Replaces a part of the Location and Refresh fields of responses: a prefix or, with `~` and `~*`, the match of a regular expression. \
        `default` replaces the URL of `proxy_pass` with the location's prefix.",
        Apply::Level(|l, d, r| redirect(of(l), d, r))),
    often("proxy_cookie_domain", HTTP_SERVER_LOCATION, (1, 2), "off | domain replacement", "off",
        "Replaces the `domain` in cookies that the upstream sets. With `~`, the domain is a case-insensitive regular expression. The first match is \
        used; a leading dot in the domain is ignored.",
        Apply::Level(|l, d, r| of(l).cookie_domains = cookie::domain(of(l).cookie_domains.take(), d, r))),
    often("proxy_cookie_path", HTTP_SERVER_LOCATION, (1, 2), "off | path replacement", "off",
        "Replaces the beginning of the `path` in cookies that the upstream sets; with `~` and `~*`, the whole path if it matches the regular \
        expression. The first match is used.",
        Apply::Level(|l, d, r| of(l).cookie_paths = cookie::path(of(l).cookie_paths.take(), d, r))),
    often("proxy_cookie_flags", HTTP_SERVER_LOCATION, (1, MANY), "off | cookie [flag …]", "off",
        "Adds or removes flags of cookies that the upstream sets: secure, httponly, samesite=strict, samesite=lax, samesite=none, nosecure, \
        nohttponly, nosamesite. With `~`, the name of the cookie is a case-insensitive regular expression. The first match is used.",
        Apply::Level(|l, d, r| of(l).cookie_flags = cookie::flags(of(l).cookie_flags.take(), d, r))),
    once("proxy_method", HTTP_SERVER_LOCATION, (1, 1), "method", "",
        "Sets the method of requests to the upstream, instead of the client's.",
        Apply::Level(|l, d, r| of(l).method = Some(r.template(&d.args[0])))),
    once("proxy_set_body", HTTP_SERVER_LOCATION, (1, 1), "value", "",
        "Sets the body of requests to the upstream, instead of the client's, which is read first.",
        Apply::Level(|l, d, r| of(l).body = Some(r.template(&d.args[0])))),
    once("proxy_protocol", HTTP_SERVER_LOCATION, (1, 1), "on | v2 | off", "off",
        "Starts connections to the upstream with a PROXY protocol header, version 1 or 2, with the addresses and ports of the client's connection. \
        Such a connection serves only one client connection.",
        Apply::Level(|l, d, r| of(l).announces = r.choice(&d.args[0], &HEADERS))),
    once("proxy_upgrade", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Passes a client's request for another protocol (`Upgrade`), such as WebSocket, to the upstream. If the upstream agrees, data is passed in \
        both directions. Such a request bypasses the cache. Other requests are not affected, so the directive can be set for all locations. `h2c` is \
        not passed, because its requests could not be processed. After a 101, a connection without traffic for `proxy_read_timeout` is closed.",
        Apply::Level(|l, d, r| of(l).upgrade = r.flag(&d.args[0]))),
    once("proxy_pass_trailers", HTTP_SERVER_LOCATION, (1, 1), "on | off", "off",
        "Passes trailer fields of upstream responses to the client if its response is chunked. A cache does not store them. Many servers send trailers only on request: \
        `proxy_set_header TE trailers;` with `proxy_set_header Connection te;`.",
        Apply::Level(|l, d, r| of(l).passes_trailers = r.flag(&d.args[0]))),
    idle("proxy_headers_hash_max_size", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The maximum size of the hash table of request fields.",
        REUSED),
    idle("proxy_headers_hash_bucket_size", HTTP_SERVER_LOCATION, (1, 1), "size",
        "The bucket size of the hash table of request fields.",
        REUSED),
];

fn secure_of(level: &mut Level) -> &mut SecureLevel {
    of(level).secure.get_or_insert_default()
}

fn of(level: &mut Level) -> &mut HttpLevel {
    &mut level.pass.proxy.protocol
}

pub(super) fn set_header(
    // The level has one, whatever becomes of it.
    headers: &mut Vec<SetHeader>,
    directive: &Directive,
    reading: &mut Reading<'_>,
) {
    let [name, word] = &directive.args[..] else { return };
    // nginx takes the colon for the beginning of the value, and without a value there is no field to send.
    if name.text.ends_with(':') && word.text.is_empty() {
        reading.diagnostics.idle(
            name.span,
            format!(
                "\"{}\" has no effect here: no field name contains a colon, so there is nothing to remove",
                directive.name.text
            ),
        );
        return;
    }
    let field = field(name, word, reading);
    let value = reading.template(field.as_ref().map_or(word, |(_, value)| value));
    if let Some((name, _)) = field {
        headers.push(SetHeader { name, value });
    }
}

fn redirect(level: &mut HttpLevel, directive: &Directive, reading: &mut Reading<'_>) {
    let first = &directive.args[0];
    let written = level.redirects.as_ref();
    let off = directive.args.len() == 1 && first.text == "off";
    // An empty list is an `off`, which stands alone.
    if written.is_some_and(|rules| off || rules.is_empty()) {
        reading
            .error(directive.span, "\"proxy_redirect\" directive is duplicate")
            .help("proxy_redirect off cannot be combined with others in its block; keep it or the others");
        return;
    }
    let rules = level.redirects.get_or_insert_default();
    let Some(second) = directive.args.get(1) else {
        if reading.one_of(first, &["default", "off"]) == Some(0) {
            rules.push(RedirectRule::Default(directive.span));
        }
        return;
    };
    let to = reading.template(second);
    if let Some(source) = first.text.strip_prefix('~') {
        let (source, ignore_case) = match source.strip_prefix('*') {
            Some(source) => (source, true),
            None => (source, false),
        };
        if let Some(from) = reading.regex(first, source, ignore_case) {
            rules.push(RedirectRule::Pair(Box::new(Redirect::Regex { from, to })));
        }
    } else {
        let from = reading.template(first);
        rules.push(RedirectRule::Pair(Box::new(Redirect::Prefix { from, to })));
    }
}

fn check_uri(draft: &PassDraft, matches: &LocationMatch, reading: &mut Reading<'_>) {
    match matches {
        LocationMatch::Regex(_) => draft.refuse_uri("a location with an expression", reading),
        LocationMatch::Named(_) => draft.refuse_uri("a named location", reading),
        LocationMatch::Server | LocationMatch::Exact(_) | LocationMatch::Prefix { .. } => {}
    }
}

pub(super) fn set_headers(written: Option<&[SetHeader]>) -> Vec<SetHeader> {
    let mut fields = written.unwrap_or_default().to_vec();
    let host = Template {
        parts: [Part::Variable(Variable::Builtin(Builtin::ProxyHost))].into(),
        source: "$proxy_host".into(),
    };
    for (name, value) in [("Host", host), ("Connection", Template::literal(""))] {
        if !fields.iter().any(|field| field.name.eq_ignore_ascii_case(name)) {
            fields.push(SetHeader { name: name.to_owned(), value });
        }
    }
    fields
}

fn redirects(
    level: &HttpLevel,
    draft: &PassDraft,
    matches: &LocationMatch,
    reading: &mut Reading<'_>,
) -> Vec<Redirect> {
    let Some(rules) = &level.redirects else {
        return default_redirect(draft, matches).into_iter().collect();
    };
    let mut redirects = Vec::new();
    for rule in rules {
        match rule {
            RedirectRule::Pair(redirect) => redirects.push(Redirect::clone(redirect)),
            RedirectRule::Default(span) => {
                match default_redirect(draft, matches) {
                    Some(redirect) => redirects.push(redirect),
                    None => {
                        reading
                        .error(*span, "\"proxy_redirect default\" cannot be used with a \"proxy_pass\" with variables")
                        .help("write proxy_redirect off; or the prefix and its replacement");
                    }
                }
            }
        }
    }
    redirects
}

/// The URL of the `proxy_pass` becomes the location's path; without a URI part its host is left out.
fn default_redirect(draft: &PassDraft, matches: &LocationMatch) -> Option<Redirect> {
    let url = draft.url.as_deref()?;
    let (from, to) = match (&draft.uri, matches) {
        (Some(_), LocationMatch::Exact(path) | LocationMatch::Prefix { path, .. }) => {
            (url.to_owned(), path.as_str())
        }
        _ => (format!("{url}/"), "/"),
    };
    Some(Redirect::Prefix { from: Template::literal(&from), to: Template::literal(to) })
}
