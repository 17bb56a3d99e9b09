//! Browsers that `keepalive_disable` names, by their User-Agent field.
//!
//! Next: `request`, which asks when a location is entered.

use memchr::memmem;
use millstream_conf::model::KeepaliveDisable;
use millstream_wire::{Fields, Method};

/// Whether a connection is not to be kept with the browser that asks. Of most requests no field is looked at.
pub fn is_excluded(disable: KeepaliveDisable, method: Method, fields: Fields<'_>) -> bool {
    let after_post = disable.msie6 && method == Method::Post;
    if !after_post && !disable.safari {
        return false;
    }
    let Some(agent) = fields.named(b"user-agent") else { return false };
    after_post && is_msie6(agent) || disable.safari && is_safari(agent)
}

fn has(agent: &[u8], word: &str) -> bool {
    memmem::find(agent, word.as_bytes()).is_some()
}

/// Versions 4 to 6 of Microsoft's browser; 6 not with its second service pack.
fn is_msie6(agent: &[u8]) -> bool {
    let Some(at) = memmem::find(agent, b"MSIE ") else { return false };
    match agent.get(at + 5..) {
        Some([b'4' | b'5', b'.', _, ..]) => !has(agent, "Opera"),
        Some([b'6', b'.', _, rest @ ..]) => !has(rest, "SV1") && !has(agent, "Opera"),
        _ => false,
    }
}

fn is_safari(agent: &[u8]) -> bool {
    let is_another = ["MSIE ", "Opera", "Gecko/", "Chrome/"].iter().any(|other| has(agent, other));
    !is_another && has(agent, "Safari/") && has(agent, "Mac OS X")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_known_by_what_they_say_of_themselves() {
        let cases: &[(&str, bool, bool)] = &[
            ("Mozilla/4.0 (compatible; MSIE 5.0; Windows 98)", true, false),
            ("MSIE 5.0", true, false),
            ("MSIE 5.", false, false),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", true, false),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)", false, false),
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1) Opera 7", false, false),
            ("MSIE 7.0", false, false),
            ("Mac OS X Safari/7534.48.3", false, true),
            ("Mac OS X Chrome/1 Safari/7534.48.3", false, false),
            ("Windows Safari/7534.48.3", false, false),
            ("", false, false),
        ];
        for (agent, msie6, safari) in cases {
            assert_eq!(is_msie6(agent.as_bytes()), *msie6, "{agent}");
            assert_eq!(is_safari(agent.as_bytes()), *safari, "{agent}");
        }
    }
}
