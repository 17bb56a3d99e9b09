//! Whom a request is from, with each kind of proxy before it.

use super::*;
use crate::fixture;
use crate::realip;
use millstream_net::proxy_protocol::Proxied;
use std::rc::Rc;

fn behind(configuration: &str, source: Option<&str>, fields: &str) -> Request {
    let worker = fixture::worker(configuration);
    let mut request = fixture::admitted(&worker, &format!("PURGE / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    let facts = Rc::get_mut(&mut request.connection).expect("its own");
    let socket = |text: &str| SocketAddr::new(text.parse().expect("an address"), 4000);
    facts.remote = Address::Tcp(socket("127.0.0.1"));
    facts.proxied = source.map(|source| Box::new(Proxied::new(socket(source), socket("127.0.0.1"))));
    realip::take(&mut request);
    request
}

#[test]
fn what_a_proxy_passes_on_is_from_this_machine_only_where_everything_says_so() {
    const PLAIN: &str = "server { listen 127.0.0.1:80; location / { return 200 x; } }";
    const PROXIED: &str = "server { listen 127.0.0.1:80 proxy_protocol; location / { return 200 x; } }";
    const REAL: &str = "server { listen 127.0.0.1:80 proxy_protocol; set_real_ip_from 127.0.0.1; \
        real_ip_header proxy_protocol; location / { return 200 x; } }";
    const FIELD: &str = "server { listen 127.0.0.1:80; set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP; \
        location / { return 200 x; } }";
    const TRUSTED: &str =
        "server { listen 127.0.0.1:80; trusted_proxy 127.0.0.1; location / { return 200 x; } }";
    let loopback = |address: &Address| is_local_address(address);
    for (configuration, source, fields, local, listed) in [
        (PLAIN, None, "", true, true),
        (PROXIED, Some("127.0.0.1"), "", true, true),
        (PROXIED, Some("::1"), "", true, true),
        (PROXIED, Some("192.0.2.1"), "", false, false),
        // UNKNOWN and LOCAL.
        (PROXIED, None, "", false, false),
        (REAL, Some("192.0.2.1"), "", false, false),
        // Whom a trusted proxy names counts for a list, and is nobody's own request.
        (REAL, Some("127.0.0.7"), "", false, true),
        (REAL, None, "", false, false),
        (FIELD, None, "X-Real-IP: 192.0.2.1\r\n", false, false),
        (FIELD, None, "X-Real-IP: 127.0.0.7\r\n", false, true),
        (FIELD, None, "", false, true),
        (TRUSTED, None, "", false, true),
    ] {
        let request = behind(configuration, source, fields);
        let told = format!("{configuration} {source:?} {fields:?}");
        assert_eq!(is_local(&request).is_ok(), local, "{told}");
        assert_eq!(is_of(&request, loopback).is_ok(), listed, "{told}");
    }
}
