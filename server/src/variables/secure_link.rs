//! `$secure_link` and `$secure_link_expires`: whether a link was made by who knows the secret.
//!
//! Compared in constant time, so that nobody learns a hash byte by byte.

use super::{Found, give, value};
use crate::request::Request;
use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use md5::{Digest, Md5};
use millstream_conf::model::Variable;
use millstream_conf::variables::Builtin;
use millstream_net::clock;

/// base64url, padded or not (RFC 4648 §5).
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

pub(super) fn append(request: &Request, out: &mut Vec<u8>) -> Found {
    // As in nginx, when it expires is read with it and stays as well.
    super::append(&Variable::Builtin(Builtin::SecureLinkExpires), request, &mut Vec::new());
    let settings = &request.location().settings.secure_link;
    match &settings.secret {
        Some(secret) => match by_secret(request.request_uri(), secret) {
            Some(link) => give(link, out),
            None => Found::Nothing,
        },
        None => match by_expression(request) {
            Some(is_valid) => give(if is_valid { b"1" } else { b"0" }, out),
            None => Found::Nothing,
        },
    }
}

/// `$secure_link_expires`.
pub(super) fn append_expires(request: &Request, out: &mut Vec<u8>) -> Found {
    let Some(link) = &request.location().settings.secure_link.link else { return Found::Nothing };
    match parts(&value(link, request)).1 {
        Some(Expiry { text, second: Some(_) }) => give(text, out),
        _ => Found::Nothing,
    }
}

struct Expiry<'l> {
    text: &'l [u8],
    second: Option<i64>,
}

fn parts(link: &[u8]) -> (&[u8], Option<Expiry<'_>>) {
    let Some(comma) = link.iter().position(|&byte| byte == b',') else { return (link, None) };
    let text = &link[comma + 1..];
    let second = millstream_wire::octets::decimal(text).and_then(|second| i64::try_from(second).ok());
    (&link[..comma], Some(Expiry { text, second: second.filter(|second| *second > 0) }))
}

/// `None` if the hash is wrong.
fn by_expression(request: &Request) -> Option<bool> {
    let settings = &request.location().settings.secure_link;
    let (link, md5) = (settings.link.as_ref()?, settings.md5.as_ref()?);
    let link = value(link, request);
    let (hash, expiry) = parts(&link);
    let is_valid = match expiry {
        Some(expiry) => expiry.second? >= clock::wall().seconds,
        None => true,
    };
    let hash = BASE64.decode(hash).ok()?;
    let right: [u8; 16] = Md5::digest(value(md5, request)).into();
    is_same(&hash, &right).then_some(is_valid)
}

fn by_secret<'u>(uri: &'u [u8], secret: &str) -> Option<&'u [u8]> {
    let mut parts = uri.get(1..)?.splitn(3, |&byte| byte == b'/');
    let (_, hash, link) = (parts.next()?, parts.next()?, parts.next()?);
    if hash.len() != 32 || link.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes: Option<Vec<u8>> =
        hash.chunks(2).map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)).collect();
    let right: [u8; 16] = Md5::new().chain_update(link).chain_update(secret).finalize().into();
    is_same(&bytes?, &right).then_some(link)
}

fn is_same(hash: &[u8], right: &[u8; 16]) -> bool {
    hash.len() == right.len() && hash.iter().zip(right).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use crate::fixture::{admitted, answered_by, worker};

    #[test]
    fn a_link_is_right_where_its_hash_is_and_until_it_expires() {
        // md5("2147483647/s/link secret") and md5("1/s/link secret"), md5("/p/link secret"), md5("linksecret").
        let worker = worker(
            "server { listen 80;
                location /s/ { secure_link $arg_h,$arg_e; secure_link_md5 \"$secure_link_expires$uri secret$secure_link\";
                    return 200 \"$secure_link|$secure_link_expires\"; }
                location /p/ { secure_link $arg_h; secure_link_md5 \"$uri secret\"; return 200 $secure_link; }
                location /old/ { secure_link_secret secret; return 200 $secure_link; } }",
        );
        for (target, expected) in CASES {
            let request = admitted(&worker, &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let told = answered_by(&request);
            assert_eq!(told, *expected, "{target}");
        }
    }

    const CASES: &[(&str, &str)] = &[
        ("/s/link?h=0Xgm37lo5nFEuHMDKl_vQg&e=2147483647", "1|2147483647"),
        ("/s/link?h=jdih8jzYhQga19CO0g9zvg&e=1", "0|1"),
        ("/s/link?h=0Xgm37lo5nFEuHMDKl_vQg&e=2147483646", "|2147483646"),
        ("/s/link?h=0Xgm37lo5nFEuHMDKl_vQg&e=x", "|"),
        ("/s/link?h=0Xgm37lo5nFEuHMDKl_vQg", "|"),
        ("/p/link?h=FqMyHxJyMFInLGPB4ID1Fg", "1"),
        ("/p/link?h=FqMyHxJyMFInLGPB4ID1Fg==", "1"),
        ("/p/link?h=AAAA", ""),
        ("/p/link?h=!", ""),
        ("/p/link", ""),
        ("/old/5e814704a28d9bc1914ff19fa0c4a00a/link", "link"),
        ("/old/5e814704a28d9bc1914ff19fa0c4a00a/link2", ""),
        ("/old/5e814704a28d9bc1914ff19fa0c4a00a/", ""),
        ("/old/x", ""),
    ];
}
