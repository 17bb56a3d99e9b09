//! `tracestate`: what other systems noted of a trace, which travels on unread (W3C Trace Context §3.3).
//!
//! It is checked and never changed: we note nothing of our own. What is not well-formed is left out, and the trace goes on without it.
//! Next: `context`, whose companion it is.

const MOST_MEMBERS: usize = 32;
const MOST_VALUE: usize = 256;

/// Joins the fields of a request (RFC 9110 §5.3); `None` if empty or malformed.
pub fn joined<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Option<String> {
    let mut whole: Vec<u8> = Vec::new();
    for field in fields {
        if !whole.is_empty() {
            whole.push(b',');
        }
        whole.extend_from_slice(field);
    }
    let mut members = 0;
    for member in whole.split(|byte| *byte == b',').map(strip) {
        if member.is_empty() {
            continue;
        }
        members += 1;
        if !is_member(member) || members > MOST_MEMBERS {
            return None;
        }
    }
    if members == 0 { None } else { String::from_utf8(whole).ok() }
}

fn strip(text: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = text.iter().position(|byte| !is_space(byte)) else { return b"" };
    let end = text.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

fn is_member(member: &[u8]) -> bool {
    let Some(equals) = member.iter().position(|byte| *byte == b'=') else { return false };
    let (key, value) = (&member[..equals], &member[equals + 1..]);
    is_key(key)
        && !value.is_empty()
        && value.len() <= MOST_VALUE
        && value.iter().all(|byte| is_of_value(*byte))
}

fn is_of_value(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b',' && byte != b'='
}

/// `key`, or `tenant@system`.
fn is_key(key: &[u8]) -> bool {
    let of_key = |byte: &u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'*' | b'/')
    };
    let begins = |part: &[u8], digit: bool| {
        part.first().is_some_and(|byte| byte.is_ascii_lowercase() || digit && byte.is_ascii_digit())
            && part.iter().all(of_key)
    };
    match key.iter().position(|byte| *byte == b'@') {
        None => key.len() <= 256 && begins(key, true),
        Some(at) => {
            let (tenant, system) = (&key[..at], &key[at + 1..]);
            tenant.len() <= 241 && system.len() <= 14 && begins(tenant, true) && begins(system, false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_well_formed_goes_on_as_it_is() {
        let many = (0..32).map(|number| format!("k{number}=v")).collect::<Vec<_>>().join(",");
        let too_many = format!("{many},k=v");
        let long = format!("k={}", "v".repeat(257));
        for (fields, expected) in [
            (
                vec!["congo=ucfJifl5GOE,rojo=00f067aa0ba902b7"],
                Some("congo=ucfJifl5GOE,rojo=00f067aa0ba902b7"),
            ),
            (vec!["a=1", "b=2"], Some("a=1,b=2")),
            (vec!["a=1 , ,b=2"], Some("a=1 , ,b=2")),
            (vec!["tenant@system=x y"], Some("tenant@system=x y")),
            (vec![many.as_str()], Some(many.as_str())),
            (vec![too_many.as_str()], None),
            (vec![long.as_str()], None),
            (vec![], None),
            (vec![""], None),
            (vec!["a"], None),
            (vec!["a="], None),
            (vec!["=1"], None),
            (vec!["A=1"], None),
            (vec!["a=1=2"], None),
            (vec!["a@1=2"], None),
            (vec!["a=\u{e4}"], None),
        ] {
            let found = joined(fields.iter().map(|field| field.as_bytes()));
            assert_eq!(found.as_deref(), expected, "{fields:?}");
        }
    }
}
