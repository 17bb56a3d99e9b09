//! What the first bytes of a server say that was asked in another protocol than it speaks: plain HTTP where TLS was, or TLS
//! where plain HTTP was.
//!
//! Only what proves it counts: a server that hangs up or says something else is no such server.

use memchr::memmem;

/// Texts in the 400 to plain HTTP on a TLS port: nginx and this server, Apache, Go, Tomcat.
const ASKS_FOR_TLS: [&[u8]; 4] = [
    b"plain HTTP request was sent to HTTPS port",
    b"plain HTTP to an SSL-enabled server port",
    b"HTTP request to an HTTPS server",
    b"combination of host and port requires TLS",
];

/// The start of a TLS record with an alert or a handshake (RFC 8446 §5.1).
pub fn is_tls(beginning: &[u8]) -> bool {
    matches!(beginning, [0x15 | 0x16, 3, 0..=4, ..])
}

/// The start of what a plain HTTP server sends: a status line, an HTTP/0.9 page, or the SETTINGS of HTTP/2
/// (RFC 9113 §3.4).
pub fn is_plain_http(beginning: &[u8]) -> bool {
    let begins = |with: &[u8]| {
        beginning.get(..with.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(with))
    };
    begins(b"HTTP/") || begins(b"<!DOCTYPE html") || begins(b"<html") || {
        matches!(beginning, [0, 0, length, 4, 0, 0, 0, 0, 0, ..] if length % 6 == 0)
    }
}

/// Whether a response to plain HTTP says that the port requires TLS.
pub fn asks_for_tls(status: u16, body: &[u8]) -> bool {
    status == 400 && ASKS_FOR_TLS.iter().any(|words| memmem::find(body, words).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_prove_a_protocol_or_they_do_not() {
        for (bytes, tls, plain) in [
            (&b"\x15\x03\x01\x00\x02\x02\x46"[..], true, false),
            (b"\x16\x03\x03\x00\x7a\x02", true, false),
            (b"\x15\x03", false, false),
            (b"\x17\x03\x03\x00\x02\x02", false, false),
            (b"HTTP/1.1 400 Bad Request\r\n", false, true),
            (b"HTTP/", false, true),
            (b"HTTP", false, false),
            (b"<!doctype HTML PUBLIC", false, true),
            (b"<html>", false, true),
            (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03", false, true),
            (b"\x00\x00\x00\x04\x00\x00\x00\x00\x00", false, true),
            (b"\x00\x00\x00\x04\x01\x00\x00\x00\x00", false, false),
            (b"SSH-2.0-OpenSSH_9.9\r\n", false, false),
            (b"", false, false),
        ] {
            assert_eq!((is_tls(bytes), is_plain_http(bytes)), (tls, plain), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn only_a_400_asks_for_tls() {
        let go = b"Client sent an HTTP request to an HTTPS server.\n";
        assert!(asks_for_tls(400, go));
        assert!(!asks_for_tls(200, go));
        assert!(!asks_for_tls(400, b"The parameter \"q\" is missing"));
    }
}
