//! `$ssl_client_…`: what the client's certificate says, in nginx's forms.
//!
//! Next: `millstream-net`'s `certificate`, which reads it.

use super::{Found, give};
use crate::client_certificate;
use crate::request::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use millstream_conf::variables::Builtin;
use millstream_net::certificate::{Certificate, Form};
use millstream_net::clock;
use sha1::{Digest, Sha1};
use std::io::Write;

/// RFC 7468 §2.
const LINE: usize = 64;

/// `$ssl_client_verify`.
pub(super) fn append_judgement(request: &Request, out: &mut Vec<u8>) -> Found {
    if request.connection.tls.is_none() {
        return Found::Nothing;
    }
    match client_certificate::judgement(request) {
        None => give(b"NONE", out),
        Some(Ok(())) => give(b"SUCCESS", out),
        Some(Err(why)) => {
            out.extend_from_slice(b"FAILED:");
            give(why.text().as_bytes(), out)
        }
    }
}

pub(super) fn append(variable: Builtin, request: &Request, out: &mut Vec<u8>) -> Found {
    use Builtin as B;
    let Some(bytes) = client_certificate::shown(request) else { return Found::Nothing };
    match variable {
        B::SslClientRawCert => write_pem(bytes, b"\n", out),
        B::SslClientCert => {
            write_pem(bytes, b"\n\t", out);
            // The last line ends with none.
            out.truncate(out.len() - 2);
        }
        B::SslClientEscapedCert => {
            let mut pem = Vec::new();
            write_pem(bytes, b"\n", &mut pem);
            write_component(&pem, out);
        }
        B::SslClientFingerprint => Sha1::digest(bytes).iter().for_each(|byte| _ = write!(out, "{byte:02x}")),
        _ => {
            let Some(certificate) = Certificate::read(bytes) else { return Found::Nothing };
            match variable {
                B::SslClientSDn => certificate.write_subject(Form::Commas, out),
                B::SslClientSDnLegacy => certificate.write_subject(Form::Slashes, out),
                B::SslClientIDn => certificate.write_issuer(Form::Commas, out),
                B::SslClientIDnLegacy => certificate.write_issuer(Form::Slashes, out),
                B::SslClientSerial => certificate.write_serial(out),
                B::SslClientVStart => certificate.write_start(out),
                B::SslClientVEnd => certificate.write_end(out),
                _ => _ = write!(out, "{}", certificate.days_left(clock::wall().seconds)),
            }
        }
    }
    Found::Value
}

fn write_pem(bytes: &[u8], end: &[u8], out: &mut Vec<u8>) {
    let text = STANDARD.encode(bytes);
    let lines = text.as_bytes().chunks(LINE);
    let first = std::iter::once(&b"-----BEGIN CERTIFICATE-----"[..]);
    for line in first.chain(lines).chain([&b"-----END CERTIFICATE-----"[..]]) {
        out.extend_from_slice(line);
        out.extend_from_slice(end);
    }
}

/// Escapes all but unreserved characters (RFC 3986 §2.3).
fn write_component(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(*byte),
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_written_in_lines_of_64_characters_and_escaped_like_a_part_of_a_uri() {
        let mut pem = Vec::new();
        write_pem(&[0xfb; 51], b"\n", &mut pem);
        let text = String::from_utf8(pem.clone()).expect("letters");
        let lines: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lines, [27, 64, 4, 25]);
        let mut escaped = Vec::new();
        write_component(&pem[27..36], &mut escaped);
        assert_eq!(escaped.escape_ascii().to_string(), "%0A%2B%2Fv7%2B%2Fv7");
    }
}
