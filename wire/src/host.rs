//! `host[:port]` as it stands in the Host field and in a target's authority (RFC 9110 §7.2, RFC 3986 §3.2).
//!
//! Only what is a name or an address gets through: whatever routes, keys a cache or logs can rely on it. Which
//! hosts are served is decided elsewhere.

use crate::octets::{CLASS, HOST};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadHost;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPort<'a> {
    /// A name, an IPv4 address, or an address of a later version in brackets; never empty, case and trailing
    /// dot as they came.
    pub host: &'a [u8],
    /// At most 65535; may be empty. `None` without a colon.
    pub port: Option<&'a [u8]>,
}

/// Fails if the host is empty, has a byte RFC 3986 does not allow in a name, an empty label, or brackets
/// without an address of version 6 or later; or if the port is no number up to 65535.
#[inline]
pub fn validate(text: &[u8]) -> Result<HostPort<'_>, BadHost> {
    let host = match text {
        [b'[', rest @ ..] => {
            let length = memchr::memchr(b']', rest).ok_or(BadHost)?;
            let address = std::str::from_utf8(&rest[..length]).map_err(|_| BadHost)?;
            if address.parse::<std::net::Ipv6Addr>().is_err() && !is_of_a_future_version(address) {
                return Err(BadHost);
            }
            &text[..length + 2]
        }
        _ => name(text)?,
    };
    let port = match &text[host.len()..] {
        [] => None,
        [b':', digits @ ..] => Some(port(digits)?),
        _ => return Err(BadHost),
    };
    Ok(HostPort { host, port })
}

/// A future IP version; RFC 3986 §3.2.2 specifies the syntax.
fn is_of_a_future_version(address: &str) -> bool {
    let Some((version, rest)) = address.strip_prefix(['v', 'V']).and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let is_hexadecimal = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:".contains(&byte);
    is_hexadecimal(version) && !rest.is_empty() && rest.bytes().all(is_allowed)
}

/// Everything up to a colon, checked byte by byte.
#[inline]
fn name(text: &[u8]) -> Result<&[u8], BadHost> {
    let mut length = text.len();
    for (at, &byte) in text.iter().enumerate() {
        if CLASS[byte as usize] & HOST != 0 {
            continue;
        }
        match byte {
            b'.' if at > 0 && text[at - 1] != b'.' => {}
            b'%' if matches!(text[at..], [_, a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()) => {
            }
            b':' => {
                length = at;
                break;
            }
            _ => return Err(BadHost),
        }
    }
    if length == 0 { Err(BadHost) } else { Ok(&text[..length]) }
}

fn port(digits: &[u8]) -> Result<&[u8], BadHost> {
    let mut number = 0u32;
    for &byte in digits {
        let digit = u32::from(byte.wrapping_sub(b'0'));
        number = number * 10 + digit;
        if digit > 9 || number > 65535 {
            return Err(BadHost);
        }
    }
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_ports_are_taken_apart() {
        for (text, host, port) in [
            ("t.example", "t.example", None),
            ("t.example.", "t.example.", None),
            ("my_host.example:8080", "my_host.example", Some("8080")),
            ("T.Example:", "T.Example", Some("")),
            ("127.0.0.1:1", "127.0.0.1", Some("1")),
            ("[::1]", "[::1]", None),
            ("[fe80::1]:65535", "[fe80::1]", Some("65535")),
            ("[v1.x]:80", "[v1.x]", Some("80")),
            ("[Vf0.a-._~!$&'()*+,;=:1]", "[Vf0.a-._~!$&'()*+,;=:1]", None),
            ("a%20b", "a%20b", None),
        ] {
            let expected = HostPort { host: host.as_bytes(), port: port.map(str::as_bytes) };
            assert_eq!(validate(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            ":80",
            ".",
            "..",
            "a..b",
            "../../x",
            "t.example/x",
            "t.example evil",
            "t\\x",
            "t\u{e4}",
            "u@h",
            "a,b c",
            "[::1",
            "[]",
            "[::1]x",
            "[v1.]",
            "[v.x]",
            "[vg.x]",
            "[1.x]",
            "[v1.x/]",
            "[v1.x@y]",
            "[v1.%41]",
            "[v1.[]]",
            "[fe80::1%25eth0]",
            "::1",
            "a:80:80",
            "a:65536",
            "a:+1",
            "a:0x50",
            "a%2",
            "a%zz",
            "a\0",
            "a\"",
            "<a>",
            "a?b",
            "a#b",
            "a:99999999999999999999",
        ] {
            assert_eq!(validate(text.as_bytes()), Err(BadHost), "{text}");
        }
    }
}
