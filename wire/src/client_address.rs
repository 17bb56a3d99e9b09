//! Whether a request field says from which address its client asks.
//!
//! X-Real-IP and X-Forwarded-For are two of a large family: every CDN and load balancer has a field of its own, and applications
//! believe many of them. They are told by the words in their names, as credentials are: a stranger invents names faster than a list
//! grows. One that is taken for an address does not reach the upstream where answers vary by address, so what names another host's is
//! none of them. Next: `credential`, the other fields that say who asks.

use crate::cgi_name::folded;

/// The longest name that is examined; no proxy sends a longer one.
const LONGEST_NAME: usize = 64;

/// Fields of the family that no rule covers.
const NAMES: [&[u8]; 4] = [b"forwarded", b"x-forwarded", b"x-coming-from", b"coming-from"];

const FOR: [&[u8]; 5] = [b"forwarded-for", b"forwardedfor", b"forward-for", b"forwarder-for", b"proxied-for"];

/// IP address words between hyphens: `X-Client-IP`, `CF-Connecting-IPv6`. It is the client's, unless the name
/// says whose.
const IPS: [&[u8]; 3] = [b"ip", b"ipv4", b"ipv6"];

/// Words that make it another's, or say that it is no address but something about one.
const OTHERS: [&[u8]; 36] = [
    b"allow",
    b"allowed",
    b"backend",
    b"ban",
    b"banned",
    b"block",
    b"blocked",
    b"camera",
    b"city",
    b"country",
    b"deny",
    b"dest",
    b"destination",
    b"dns",
    b"dst",
    b"family",
    b"geo",
    b"list",
    b"local",
    b"lookup",
    b"node",
    b"pod",
    b"pool",
    b"printer",
    b"protocol",
    b"query",
    b"range",
    b"reserved",
    b"search",
    b"server",
    b"service",
    b"static",
    b"target",
    b"to",
    b"upstream",
    b"version",
];

/// An address of any kind, also postal: it is the client's if the name says so.
const ADDRESSES: [&[u8]; 2] = [b"addr", b"address"];

/// Names of the client's end of a connection.
const PEERS: [&[u8]; 16] = [
    b"client",
    b"clients",
    b"connecting",
    b"connection",
    b"external",
    b"forwarded",
    b"origin",
    b"original",
    b"originating",
    b"peer",
    b"proxyuser",
    b"real",
    b"remote",
    b"source",
    b"src",
    b"viewer",
];

const BOTH: [&[u8]; 11] = [
    b"clientip",
    b"clientaddr",
    b"realip",
    b"remoteip",
    b"remoteaddr",
    b"socketip",
    b"userip",
    b"sourceip",
    b"connectingip",
    b"trueip",
    b"proxyip",
];

/// Names that proxies and CDNs are known to use, or applications to trust; tests go through all of them.
pub const KNOWN: [&str; 54] = [
    "X-Forwarded-For",
    "Forwarded",
    "Forwarded-For",
    "X-Forwarded",
    "X-Real-IP",
    "X-Client-IP",
    "Client-IP",
    "X-Cluster-Client-IP",
    "True-Client-IP",
    "CF-Connecting-IP",
    "CF-Connecting-IPv6",
    "CF-Pseudo-IPv4",
    "Fastly-Client-IP",
    "Fly-Client-IP",
    "X-Original-Forwarded-For",
    "X-Azure-ClientIP",
    "X-Azure-SocketIP",
    "X-Envoy-External-Address",
    "CloudFront-Viewer-Address",
    "X-Remote-IP",
    "X-Remote-Addr",
    "Remote-Addr",
    "X-Originating-IP",
    "X-Source-IP",
    "WL-Proxy-Client-IP",
    "X-AppEngine-User-IP",
    "X-AppEngine-Remote-Addr",
    "X-NF-Client-Connection-IP",
    "X-Vercel-Forwarded-For",
    "X-Vercel-Proxied-For",
    "DO-Connecting-IP",
    "X-Sucuri-ClientIP",
    "Incap-Client-IP",
    "Ali-CDN-Real-IP",
    "X-Forwarded-Client-IP",
    "X-ProxyUser-Ip",
    "Cdn-Src-Ip",
    "X-True-IP",
    "X-Host-IP",
    "X-Custom-IP-Authorization",
    "X-IP",
    "X-Visitor-IP",
    "X-Edge-IPv6",
    "X-WAP-Network-Client-IP",
    "X-Forward-For",
    "X-Forwarder-For",
    "Z-Forwarded-For",
    "Forwarded-For-IP",
    "X-Original-Remote-Addr",
    "X-Client-Addr",
    "X-Client-Address",
    "X-Src-Addr",
    "RLNClientIPAddr",
    "Coming-From",
];

/// Whether a field with this name contains the client's address. `_` and `-` are the same, as in CGI.
pub fn is_client_address(name: &[u8]) -> bool {
    if name.len() > LONGEST_NAME {
        return false;
    }
    let mut buffer = [0; LONGEST_NAME];
    let name = {
        let lower = &mut buffer[..name.len()];
        for (to, from) in lower.iter_mut().zip(name) {
            *to = folded(*from);
        }
        &*lower
    };
    let has = |words: &[&[u8]]| words.iter().any(|word| name.windows(word.len()).any(|part| part == *word));
    let segment = |of: &[&[u8]]| name.split(|&byte| byte == b'-').any(|segment| of.contains(&segment));
    NAMES.contains(&name)
        || has(&FOR)
        || has(&BOTH)
        || segment(&IPS) && !segment(&OTHERS)
        || segment(&ADDRESSES) && segment(&PEERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proxies_say_of_their_clients_addresses_is_told_by_name() {
        for name in KNOWN.iter().chain(&["x_forwarded_for", "true_client_ip", "FORWARDED"]) {
            assert!(is_client_address(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn other_fields_are_none_of_them() {
        for name in [
            "",
            "Host",
            "X-Forwarded-Host",
            "X-Forwarded-Proto",
            "X-Forwarded-Port",
            "X-Real-Host",
            "X-Target-IP",
            "X-Server-IP",
            "X-Lookup-IP",
            "X-IP-Version",
            "CF-IPCountry",
            "X-Address",
            "X-User-Address",
            "X-Zip",
            "X-Skip",
            "X-Shipping-Address",
            "X-Wallet-Address",
            "X-Ship-User",
            "Origin",
            "Via",
            "User-Agent",
            "X-Client-Version",
            "X-Client-Id",
            "X-Tenant",
            "X-Recipient",
        ] {
            assert!(!is_client_address(name.as_bytes()), "{name}");
        }
        assert!(!is_client_address(&[b'i'; 65]));
    }
}
