//! Browsers by their User-Agent field: which `keepalive_disable` names, and which are modern (`modern_browser`).
//!
//! Next: `request`, which asks when a location is entered; `variables`, which tells.

use memchr::memmem;
use millstream_conf::features::browser;
use millstream_conf::model::{Browsers, KeepaliveDisable};
use millstream_wire::{Fields, Method};

/// `keepalive_disable`. Most requests are decided without their fields.
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

/// `None`: a request without User-Agent.
pub fn is_modern(browsers: &Browsers, agent: Option<&[u8]>) -> bool {
    let Some(agent) = agent else { return browsers.unlisted };
    for modern in &browsers.modern {
        let (from, mark, to_version) = modern.browser.mark();
        let rest = agent.get(from..).unwrap_or_default();
        let version = memmem::find(rest, mark.as_bytes()).and_then(|at| rest.get(at + to_version..));
        if let Some(version) = version.filter(|version| !version.is_empty()) {
            return browser::version(version).0 >= modern.since;
        }
    }
    if !browsers.unlisted {
        return false;
    }
    let is_netscape4 = agent.len() > "Mozilla/4.72 ".len()
        && agent.strip_prefix(b"Mozilla/").is_some_and(|rest| matches!(rest[0], b'1'..=b'4'));
    let is_ancient =
        browsers.netscape4 && is_netscape4 || browsers.ancient.iter().any(|text| has(agent, text));
    !is_ancient
}

pub fn is_msie(agent: &[u8]) -> bool {
    let at = memmem::find(agent, b"MSIE ");
    at.is_some_and(|at| agent.len() > at + 7) && !has(agent, "Opera")
}

/// Versions 4 to 6; version 6 without its second service pack.
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
