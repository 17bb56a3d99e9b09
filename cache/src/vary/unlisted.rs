//! `proxy_cache_vary unlisted`: what a request says in fields of which nobody knows that they mean nothing to an answer.
//!
//! Which these are is in `millstream-wire`'s `unlisted`. Next: `vary`.

use millstream_wire::unlisted::{is_listed, is_mobile};
use millstream_wire::{FieldId, Fields};

/// Stands for these fields among the names that a key varies by. No field has such a name (RFC 9110 §5.1).
pub(super) const NAME: &[u8] = b":unlisted";

/// Returns whether the request has any of these fields. Neither name nor value can hold a line end.
pub(super) fn write(request: Fields<'_>, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    if request.get(FieldId::UserAgent).is_some_and(is_mobile) {
        out.extend_from_slice(b"user-agent:Mobi\n");
    }
    for (id, name, value) in request.iter() {
        if !is_listed(id, name) {
            out.extend(name.iter().map(u8::to_ascii_lowercase));
            out.push(b':');
            out.extend_from_slice(value);
            out.push(b'\n');
        }
    }
    out.len() > start
}

/// Names and values of what [`write()`] wrote. Values may be secret.
pub(super) fn read(written: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let lines = written.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| {
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        (&line[..colon], line.get(colon + 1..).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::headers;
    use millstream_wire::unlisted::leaves_out;

    fn said(lines: &[(&str, &str)]) -> String {
        let mut out = Vec::new();
        let anything = write(headers(lines).view(), &mut out);
        assert_eq!(anything, !out.is_empty());
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn fields_that_nobody_listed_are_told_and_no_others() {
        let agent = "Mozilla/5.0 (X11; Linux x86_64) Firefox/131.0";
        for (lines, expected) in [
            (&[("X-Tenant", "a")][..], "x-tenant:a\n"),
            (&[("x-tenant", ""), ("Host", "h")], "x-tenant:\n"),
            (&[("X-Tenant", "a"), ("Currency", "eur")], "x-tenant:a\ncurrency:eur\n"),
            (&[("DNT", "1"), ("Save-Data", "on")], "dnt:1\nsave-data:on\n"),
            (&[("Sec-Fetch-Dest", "empty"), ("Sec-Fetch-Site", "none")], "sec-fetch-dest:empty\n"),
            (&[("Content-Type", "application/json")], "content-type:application/json\n"),
            (&[("User-Agent", agent), ("Referer", "/a"), ("Traceparent", "00-1")], ""),
            (&[("User-Agent", "Mozilla/5.0 (iPhone) Mobile/15E148")], "user-agent:Mobi\n"),
            (&[("Cookie", "a"), ("X-Api-Key", "b"), ("Range", "bytes=0-")], ""),
        ] {
            assert_eq!(said(lines), expected);
        }
    }

    #[test]
    fn a_field_that_is_left_out_is_told_in_a_note() {
        for name in [
            "forwarded",
            "x-forwarded-host",
            "x-forwarded-port",
            "referer",
            "user-agent",
            "accept-encoding",
            "via",
            "fastly-ff",
        ] {
            assert!(leaves_out(name.as_bytes()), "{name}");
            assert_eq!(said(&[(name, "a")]), "", "{name}");
            assert_eq!(said(&[(&format!("={name}"), "a")]), format!("={name}:a\n"));
        }
        for name in ["x-tenant", "authorization", "cookie", "x-forwarded-for", "traceparent", "x-request-id"]
        {
            assert!(!leaves_out(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let written = said(&[("X-Tenant", "a:b"), ("Currency", "")]);
        let read: Vec<_> = read(written.as_bytes()).collect();
        assert_eq!(read, [(&b"x-tenant"[..], &b"a:b"[..]), (b"currency", b"")]);
    }
}
