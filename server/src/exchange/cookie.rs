//! `proxy_cookie_*`: a Set-Cookie of the upstream with another domain, another path or other flags.
//!
//! A cookie is taken apart as nginx does it, and put together anew only where something in it changes.

use super::replacement::{matched, sanitised};
use crate::request::Request;
use crate::route::{Undecided, capture};
use crate::variables::value;
use millstream_conf::model::{CookieFlags, CookieRule, Cookies, Pattern};

struct Attribute {
    name: Vec<u8>,
    value: Option<Vec<u8>>,
}

impl Attribute {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

pub(super) fn rewritten(
    request: &mut Request,
    rules: &Cookies,
    cookie: &[u8],
) -> Result<Option<Vec<u8>>, Undecided> {
    let mut parts: Vec<Attribute> = cookie.split(|&byte| byte == b';').map(attribute).collect();
    let Some((first, attributes)) = parts.split_first_mut().filter(|(first, _)| first.value.is_some()) else {
        return Ok(None);
    };
    let mut is_changed = false;
    for attribute in attributes {
        let is_domain = attribute.is("domain");
        if !is_domain && !attribute.is("path") {
            continue;
        }
        let list = if is_domain { &rules.domains } else { &rules.paths };
        let Some(old) = &attribute.value else { continue };
        if let Some(new) = replaced(request, list, old, is_domain)? {
            attribute.value = Some(sanitised(new));
            is_changed = true;
        }
    }
    if let Some(rule) = flags_for(request, &rules.flags, &first.name)? {
        let flags = Flags::of(request, rule);
        if flags.are_some() {
            flags.set(&mut parts);
            is_changed = true;
        }
    }
    Ok(is_changed.then(|| joined(&parts)))
}

fn attribute(text: &[u8]) -> Attribute {
    let spaces = |text: &[u8]| -> Vec<u8> {
        let start = text.iter().position(|&byte| byte != b' ').unwrap_or(text.len());
        let end = text.iter().rposition(|&byte| byte != b' ').map_or(start, |last| last + 1);
        text[start..end].to_vec()
    };
    match text.iter().position(|&byte| byte == b'=') {
        Some(at) => Attribute { name: spaces(&text[..at]), value: Some(spaces(&text[at + 1..])) },
        None => Attribute { name: spaces(text), value: None },
    }
}

fn joined(parts: &[Attribute]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(&part.name);
        if let Some(value) = &part.value {
            out.push(b'=');
            out.extend_from_slice(value);
        }
    }
    out
}

/// Applies the first matching rule: to a whole domain, ignoring case and a leading dot, or to a path prefix.
fn replaced(
    request: &mut Request,
    rules: &[CookieRule],
    old: &[u8],
    is_domain: bool,
) -> Result<Option<Vec<u8>>, Undecided> {
    for rule in rules {
        let from = match &rule.from {
            Pattern::Regex(from) => match matched(request, from, &rule.to, old)? {
                Some(new) => return Ok(Some(new)),
                None => continue,
            },
            Pattern::Text(from) => value(from, request),
        };
        let dot = usize::from(is_domain && old.starts_with(b"."));
        let fits = if is_domain { old[dot..].eq_ignore_ascii_case(&from) } else { old.starts_with(&from) };
        if fits {
            let to = value(&rule.to, request);
            return Ok(Some([&old[..dot], &to, &old[dot + from.len()..]].concat()));
        }
    }
    Ok(None)
}

fn flags_for<'r>(
    request: &Request,
    rules: &'r [CookieFlags],
    cookie: &[u8],
) -> Result<Option<&'r CookieFlags>, Undecided> {
    for rule in rules {
        let fits = match &rule.name {
            Pattern::Regex(name) => capture(name, cookie)?.is_some(),
            Pattern::Text(name) => cookie.eq_ignore_ascii_case(&value(name, request)),
        };
        if fits {
            return Ok(Some(rule));
        }
    }
    Ok(None)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Flags {
    secure: Option<bool>,
    http_only: Option<bool>,
    same_site: Option<Option<&'static str>>,
}

impl Flags {
    /// As in nginx a flag precedes its opposite, and the strictest SameSite counts.
    fn of(request: &Request, rule: &CookieFlags) -> Flags {
        let words: Vec<Vec<u8>> = rule.flags.iter().map(|flag| value(flag, request)).collect();
        let has = |flag: &str| words.iter().any(|word| word.eq_ignore_ascii_case(flag.as_bytes()));
        let either = |on: &str, off: &str| if has(on) { Some(true) } else { has(off).then_some(false) };
        let same_site = [("samesite=strict", "Strict"), ("samesite=lax", "Lax"), ("samesite=none", "None")]
            .into_iter()
            .find(|(flag, _)| has(flag));
        Flags {
            secure: either("secure", "nosecure"),
            http_only: either("httponly", "nohttponly"),
            same_site: match same_site {
                Some((_, site)) => Some(Some(site)),
                None => has("nosamesite").then_some(None),
            },
        }
    }

    fn are_some(&self) -> bool {
        *self != Flags::default()
    }

    fn set(&self, parts: &mut Vec<Attribute>) {
        let (secure, http_only) =
            (self.secure.map(|on| on.then_some(None)), self.http_only.map(|on| on.then_some(None)));
        let same_site = self.same_site.map(|site| site.map(Some));
        for (name, wanted) in [("Secure", secure), ("HttpOnly", http_only), ("SameSite", same_site)] {
            match wanted {
                None => {}
                Some(None) => take_out(parts, name),
                Some(Some(value)) => put(parts, name, value),
            }
        }
    }
}

fn take_out(parts: &mut Vec<Attribute>, name: &str) {
    let mut at = 0;
    parts.retain(|part| {
        at += 1;
        at == 1 || !part.is(name)
    });
}

/// Keeps an existing attribute's place, and its spelling if the value is the same.
fn put(parts: &mut Vec<Attribute>, name: &str, value: Option<&str>) {
    let new = || Attribute { name: name.into(), value: value.map(Into::into) };
    match parts.iter_mut().skip(1).find(|part| part.is(name)) {
        Some(part) => match (&part.value, value) {
            (Some(old), Some(value)) if old.eq_ignore_ascii_case(value.as_bytes()) => {}
            (_, None) => {}
            _ => *part = new(),
        },
        None => parts.push(new()),
    }
}

#[cfg(test)]
mod tests {
    use super::rewritten;
    use crate::fixture::{admitted, worker};

    #[test]
    fn domain_path_and_flags_of_a_cookie_are_changed_as_nginx_does_it() {
        let worker = worker(
            "upstream u { server 127.0.0.1:9; }
             server { listen 80;
                location / { proxy_pass http://u;
                    proxy_cookie_domain a.example .b.example;
                    proxy_cookie_domain ~^.*\\.(deep)\\.example$ $1.$arg_d;
                    proxy_cookie_path /one/ /two/;
                    proxy_cookie_path ~*^/up/(.+)$ /$1/up;
                    proxy_cookie_path $arg_p /v/;
                    proxy_cookie_path /t \"/; HttpOnly\";
                    proxy_cookie_flags plain nosecure nosamesite;
                    proxy_cookie_flags ~^s httponly samesite=$arg_s $arg_f; } }",
        );
        for (cookie, expected) in [
            ("c=1; Domain=A.example; Path=/one/two/one/", Some("c=1; Domain=b.example; Path=/two/two/one/")),
            ("c=1;domain=.a.example", Some("c=1; domain=.b.example")),
            ("c=1; domain=x.deep.example", Some("c=1; domain=deep.net")),
            ("c=1; domain=xa.example; path=/One/", None),
            ("c=1; path=/UP/x", Some("c=1; path=/x/up")),
            ("c=1; path=/var/x", Some("c=1; path=/v/x")),
            ("c=1; path=/t", Some("c=1; path=/; HttpOnly")),
            ("c; path=/one/", None),
            ("path=/one/", None),
            ("plain=1; Secure; SameSite=Lax; Max-Age=3", Some("plain=1; Max-Age=3")),
            ("s=1", Some("s=1; HttpOnly; SameSite=Lax")),
            ("session = 1 ; httponly ; samesite=none", Some("session=1; httponly; SameSite=Lax")),
            ("s=1; samesite=LAX", Some("s=1; samesite=LAX; HttpOnly")),
        ] {
            let mut request = admitted(&worker, "GET /?d=net&p=/var/&s=lax HTTP/1.1\r\nHost: a\r\n\r\n");
            let generation = request.generation.clone();
            let pass = generation
                .http()
                .location(request.route.location)
                .settings
                .pass()
                .cloned()
                .expect("it passes");
            let http = pass.http().expect("HTTP");
            let made = rewritten(&mut request, &http.cookies, cookie.as_bytes()).expect("decided");
            let made = made.map(|made| String::from_utf8_lossy(&made).into_owned());
            assert_eq!(made.as_deref(), expected, "{cookie}");
        }
    }
}
