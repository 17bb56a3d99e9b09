//! Text with variables, compiled: `$name`, `${name}`, `$1` to `$9`.
//!
//! Names are looked up here once, without case as nginx does, so that a request never looks one up by name. An
//! unknown one is reported at its own place in the word. It holds no values; who evaluates it brings the request. Before:
//! `variables`, the table; next: `reading`; `millstream-server`'s `variables`, which evaluates.

use crate::diagnostics::Diagnostics;
use crate::nginx_variables;
use crate::slots::{self, Slot};
use crate::source::Span;
use crate::suggest;
use crate::tree::Word;
use crate::variables::{Builtin, FAMILIES, Source, VARIABLES};

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// In order; adjacent literals are merged.
    pub parts: Box<[Part]>,
    pub source: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Literal(Box<str>),
    Variable(Variable),
}

/// A variable as the request path needs it: resolved to what it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    Builtin(Builtin),
    /// The target as it is sent upstream: only in the default `proxy_cache_key`, cannot be written.
    SentTarget,
    /// `$proxy_host` with what it lacks to name the upstream: TLS, and the path of a socket. Only in the default
    /// `proxy_cache_key`, cannot be written.
    SentOrigin,
    /// `$http_NAME`: a request field; in lower case with `-` for `_`.
    RequestHeader(Box<str>),
    /// `$sent_http_NAME`: a field of the response as sent.
    SentHeader(Box<str>),
    SentTrailer(Box<str>),
    UpstreamHeader(Box<str>),
    UpstreamTrailer(Box<str>),
    /// `$upstream_cookie_NAME`, from the upstream's Set-Cookie fields.
    UpstreamCookie(Box<str>),
    ProxyProtocolTlv(ProxyProtocolTlv),
    Cookie(Box<str>),
    /// Compared without case. An empty name stands for a bare prefix of any family, which has no value.
    Argument(Box<str>),
    /// `$1` to `$9`: of the last regular expression that matched.
    Capture(u8),
    /// A variable that the configuration sets, by its number in `Http::slots`.
    Slot(u16),
    Made(MadeId),
}

impl Variable {
    /// A made variable comes from all it is made of: see [`made_of`](crate::declared::made::made_of).
    pub fn source(&self) -> Source {
        match self {
            Variable::Builtin(builtin) => builtin.source(),
            // Which host is asked for says nothing of who asks.
            Variable::RequestHeader(name) if &**name == "host" => Source::Connection,
            Variable::RequestHeader(_) => Source::Field,
            Variable::Cookie(_)
            | Variable::SentHeader(_)
            | Variable::SentTrailer(_)
            | Variable::UpstreamHeader(_)
            | Variable::UpstreamTrailer(_)
            | Variable::UpstreamCookie(_) => Source::Who,
            Variable::ProxyProtocolTlv(tlv) => tlv.source(),
            Variable::SentTarget => Source::Target,
            Variable::Argument(_) => Source::Query,
            Variable::Capture(_) | Variable::Slot(_) => Source::Kept,
            Variable::Made(_) | Variable::SentOrigin => Source::Common,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocolTlv {
    /// By type.
    Value(u8),
    OfTls(u8),
    /// Whether the client's certificate is valid, as a number.
    TlsVerify,
}

impl ProxyProtocolTlv {
    /// The protocol, the host and the TLS parameters say nothing about the client; anything else may.
    fn source(self) -> Source {
        match self {
            ProxyProtocolTlv::Value(1 | 2 | 0x30)
            | ProxyProtocolTlv::OfTls(0x21 | 0x23..=0x25)
            | ProxyProtocolTlv::TlsVerify => Source::Connection,
            ProxyProtocolTlv::Value(_) | ProxyProtocolTlv::OfTls(_) => Source::Who,
        }
    }

    /// By nginx's name, or by type in hexadecimal digits.
    fn named(name: &str) -> Option<Self> {
        const NAMES: [(&str, u8); 5] =
            [("alpn", 1), ("authority", 2), ("unique_id", 5), ("ssl", 0x20), ("netns", 0x30)];
        const OF_TLS: [(&str, u8); 5] =
            [("version", 0x21), ("cn", 0x22), ("cipher", 0x23), ("sig_alg", 0x24), ("key_alg", 0x25)];
        let kind = |names: &[(&str, u8)], name: &str| match name.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16).ok(),
            None => names.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind),
        };
        match name.strip_prefix("ssl_") {
            Some("verify") => Some(ProxyProtocolTlv::TlsVerify),
            Some(name) => kind(&OF_TLS, name).map(ProxyProtocolTlv::OfTls),
            None => kind(&NAMES, name).map(ProxyProtocolTlv::Value),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MadeId(pub u16);

impl Template {
    pub fn literal(text: &str) -> Self {
        let parts = if text.is_empty() { vec![] } else { vec![Part::Literal(text.into())] };
        Template { parts: parts.into(), source: text.into() }
    }

    /// `None` if it has variables.
    pub fn as_literal(&self) -> Option<&str> {
        match &*self.parts {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    pub fn variables(&self) -> impl Iterator<Item = &Variable> + Clone {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(variable) => Some(variable),
            Part::Literal(_) => None,
        })
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Scope<'a> {
    pub slots: &'a [Slot],
    /// Names of made variables in the order of their ids.
    pub made: &'a [Box<str>],
    /// Variables of unsupported directives, which have their own error.
    pub defined_elsewhere: &'a [Box<str>],
}

/// Every wrong or unknown variable is reported, and is empty in the result.
pub fn compile(word: &Word, scope: &Scope<'_>, diagnostics: &mut Diagnostics) -> Template {
    let text = word.text.as_str();
    let mut parts = Vec::new();
    let mut rest = 0;
    while let Some(dollar) = text[rest..].find('$').map(|i| rest + i) {
        literal(&mut parts, &text[rest..dollar]);
        let (end, name) = reference(text, dollar);
        match name {
            Ok(name) => match variable(name, scope) {
                Some(variable) => {
                    warn_of_bare(name, place(word, dollar, end), &variable, diagnostics);
                    parts.push(Part::Variable(variable));
                }
                None => unknown(name, place(word, dollar, end), scope, diagnostics),
            },
            Err(wrong) => {
                let message = format!("invalid variable name: {wrong}");
                diagnostics
                    .error(place(word, dollar, end), message)
                    .help("a variable is written $name or ${name}");
            }
        }
        rest = end;
    }
    literal(&mut parts, &text[rest..]);
    Template { parts: parts.into(), source: text.into() }
}

/// A bare prefix has no value, which is hardly intended.
fn warn_of_bare(name: &str, span: Span, variable: &Variable, diagnostics: &mut Diagnostics) {
    let lower = name.to_ascii_lowercase();
    if matches!(variable, Variable::Argument(member) if member.is_empty())
        && let Some((prefix, doc)) = FAMILIES.iter().find(|(prefix, _)| lower == *prefix)
    {
        diagnostics
            .warning(span, format!("\"{name}\" variable has no name and is always empty"))
            .help(format!("write a name after \"${prefix}\": {doc}"));
    }
}

fn unknown(name: &str, span: Span, scope: &Scope<'_>, diagnostics: &mut Diagnostics) {
    if scope.defined_elsewhere.iter().any(|defined| defined.eq_ignore_ascii_case(name)) {
        return;
    }
    if ["acme_certificate", "acme_certificate_key"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
        let help =
            "write \"ssl_certificate $acme_certificate;\" and \"ssl_certificate_key $acme_certificate_key;\"";
        diagnostics
            .error(
                span,
                format!(
                    "\"${name}\" is allowed only as the whole value of ssl_certificate and ssl_certificate_key"
                ),
            )
            .help(help);
        return;
    }
    if nginx_variables::is_known(name) {
        diagnostics
            .error(span, format!("nginx knows \"${name}\", Millstream does not (yet)"))
            .help("docs/variables.md lists every variable")
            .once();
        return;
    }
    diagnostics.error(span, format!("unknown \"{name}\" variable")).help = help(name, scope);
}

/// Whether the text has no variable in it, so that it means itself.
pub fn is_literal(text: &str) -> bool {
    !text.contains('$')
}

/// Takes the name without its dollar.
pub fn variable(name: &str, scope: &Scope<'_>) -> Option<Variable> {
    if let [digit @ b'1'..=b'9'] = name.as_bytes() {
        return Some(Variable::Capture(digit - b'0'));
    }
    if let Some(number) = slots::number(scope.slots, name) {
        return Some(Variable::Slot(number));
    }
    if let Some(id) = made(name, scope.made) {
        return Some(Variable::Made(id));
    }
    let name = name.to_ascii_lowercase();
    if let Some(&(builtin, ..)) = VARIABLES.iter().find(|(_, known, _)| *known == name) {
        return Some(Variable::Builtin(builtin));
    }
    let (prefix, member) =
        FAMILIES.iter().find_map(|(prefix, _)| Some((*prefix, name.strip_prefix(prefix)?)))?;
    if member.is_empty() {
        // As in nginx it may be written, and never has a value.
        return Some(Variable::Argument(member.into()));
    }
    // Field names are compared with `-` where the variable can only be written with `_`.
    let field = || member.replace('_', "-").into_boxed_str();
    Some(match prefix {
        "arg_" => Variable::Argument(member.into()),
        "cookie_" => Variable::Cookie(member.into()),
        "http_" => Variable::RequestHeader(field()),
        "proxy_protocol_tlv_" => Variable::ProxyProtocolTlv(ProxyProtocolTlv::named(member)?),
        "sent_http_" => Variable::SentHeader(field()),
        "sent_trailer_" => Variable::SentTrailer(field()),
        "upstream_cookie_" => Variable::UpstreamCookie(member.into()),
        "upstream_http_" => Variable::UpstreamHeader(field()),
        "upstream_trailer_" => Variable::UpstreamTrailer(field()),
        _ => return None,
    })
}

/// The name may be in any case, as in nginx.
pub fn made(name: &str, names: &[Box<str>]) -> Option<MadeId> {
    let at = names.iter().position(|known| known.eq_ignore_ascii_case(name))?;
    u16::try_from(at).ok().map(MadeId)
}

/// `dollar` is the index of the dollar; returns the end of the reference, and its name or what is wrong with
/// it.
fn reference(text: &str, dollar: usize) -> (usize, Result<&str, &'static str>) {
    let bytes = text.as_bytes();
    let start = dollar + 1;
    match bytes.get(start) {
        // One digit and no more, as in nginx: `$10` is the first capture and a `0`.
        Some(b'1'..=b'9') => (start + 1, Ok(&text[start..start + 1])),
        Some(b'{') => {
            let end = name_end(bytes, start + 1);
            match bytes.get(end) {
                Some(b'}') if end == start + 1 => (end + 1, Err("there is nothing between the braces")),
                Some(b'}') => (end + 1, Ok(&text[start + 1..end])),
                _ => (end, Err("its closing brace is missing")),
            }
        }
        _ => match name_end(bytes, start) {
            end if end == start => (end, Err("no name follows the dollar sign")),
            end => (end, Ok(&text[start..end])),
        },
    }
}

fn name_end(bytes: &[u8], from: usize) -> usize {
    let name = bytes[from..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_');
    from + name.count()
}

fn literal(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        // Two literals meet where a wrong reference between them was left out.
        Some(Part::Literal(before)) => *before = format!("{before}{text}").into(),
        _ => parts.push(Part::Literal(text.into())),
    }
}

/// A part of the word's text in the file. If escapes were undone, offsets do not carry over and it is the
/// whole word.
fn place(word: &Word, start: usize, end: usize) -> Span {
    let quote = usize::from(word.quoted);
    let written = (word.span.end - word.span.start) as usize;
    if written != word.text.len() + 2 * quote {
        return word.span;
    }
    let offset = |at: usize| word.span.start + (quote + at) as u32;
    Span { file: word.span.file, start: offset(start), end: offset(end) }
}

fn help(name: &str, scope: &Scope<'_>) -> Option<String> {
    let slots = scope.slots.iter().map(|slot| &*slot.name);
    let made = scope.made.iter().map(|made| &**made);
    let known = VARIABLES.iter().map(|(_, known, _)| *known).chain(slots).chain(made);
    if let Some(found) = suggest::nearest(name, known) {
        return Some(format!("did you mean \"${found}\"?"));
    }
    // A misspelt family: the prefix is near, what follows it is the user's.
    FAMILIES.iter().find_map(|(prefix, _)| {
        let underscores = prefix.matches('_').count();
        let (at, _) = name.match_indices('_').nth(underscores - 1)?;
        let (start, member) = name.split_at(at + 1);
        (!member.is_empty() && suggest::nearest(start, [*prefix]).is_some())
            .then(|| format!("did you mean \"${prefix}{member}\"?"))
    })
}
