//! The name and the password that a client sends by the Basic scheme (RFC 7617).
//!
//! Next: `variables`, for `$remote_user`; `access/auth_basic`, which asks whether they are right.

use crate::request::Request;
use millstream_wire::FieldId;

/// The name is not empty; the password may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BasicCredential {
    pub user: Vec<u8>,
    pub password: Vec<u8>,
}

pub fn of(request: &Request) -> Option<BasicCredential> {
    let (scheme, coded) = request.field(FieldId::Authorization)?.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let mut user = base64(coded.trim_ascii())?;
    let colon = user.iter().position(|&byte| byte == b':').filter(|&at| at > 0)?;
    let password = user.split_off(colon + 1);
    user.truncate(colon);
    Some(BasicCredential { user, password })
}

/// RFC 4648 §4.
pub fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let (mut out, mut bits, mut count) = (Vec::with_capacity(text.len() * 3 / 4), 0u32, 0);
    for &byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}
