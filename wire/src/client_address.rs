//! Whether a request field says from which address its client asks.
//!
//! X-Real-IP and X-Forwarded-For are two of a large family: every CDN and load balancer has a field of its own, and applications
//! believe many of them. They are told by the words in their names, as credentials are. Where there is doubt it is none of them: one
//! that is taken for an address does not reach the upstream. Next: `credential`, the other fields that say who asks.

/// The longest name that is looked at; no proxy sends a longer one.
const LONGEST_NAME: usize = 64;

/// Fields of the family that no rule tells.
const NAMES: [&[u8]; 10] = [
    b"forwarded",
    b"x-forwarded",
    b"x-ip",
    b"x-client-addr",
    b"x-client-address",
    b"x-envoy-external-address",
    b"cloudfront-viewer-address",
    b"x-coming-from",
    b"coming-from",
    b"rlnclientipaddr",
];

/// What stands for an address between hyphens: `X-Client-IP`, `CF-Connecting-IPv6`.
const ADDRESSES: [&[u8]; 3] = [b"ip", b"ipv4", b"ipv6"];

/// Whose address it is, in the same name.
const WHOSE: [&[u8]; 15] = [
    b"client",
    b"clients",
    b"cluster",
    b"connecting",
    b"connection",
    b"external",
    b"forwarded",
    b"origin",
    b"original",
    b"originating",
    b"peer",
    b"real",
    b"remote",
    b"source",
    b"user",
];

/// The same in one word.
const BOTH: [&[u8]; 8] = [
    b"clientip",
    b"realip",
    b"remoteip",
    b"socketip",
    b"userip",
    b"sourceip",
    b"connectingip",
    b"pseudo-ipv4",
];

/// Whether a field with this name says the client's address. `_` and `-` are the same, as they are behind CGI.
pub fn is_client_address(name: &[u8]) -> bool {
    if name.len() > LONGEST_NAME {
        return false;
    }
    let mut buffer = [0; LONGEST_NAME];
    let name = {
        let lower = &mut buffer[..name.len()];
        for (to, from) in lower.iter_mut().zip(name) {
            *to = if *from == b'_' { b'-' } else { from.to_ascii_lowercase() };
        }
        &*lower
    };
    let has = |word: &[u8]| name.windows(word.len()).any(|part| part == word);
    let segment = |of: &[&[u8]]| name.split(|&byte| byte == b'-').any(|segment| of.contains(&segment));
    NAMES.contains(&name)
        || has(b"forwarded-for")
        || has(b"proxied-for")
        || has(b"remote-addr")
        || BOTH.iter().any(|word| has(word))
        || segment(&ADDRESSES) && segment(&WHOSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proxies_say_of_their_clients_addresses_is_told_by_name() {
        for name in [
            "X-Forwarded-For",
            "x_forwarded_for",
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
        ] {
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
