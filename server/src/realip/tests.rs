//! Whom requests come from, as cases; the fixture's come from 192.0.2.1.

use crate::fixture::{admitted, variable, worker};
use crate::variables::value;

fn said(settings: &str, fields: &str) -> [String; 4] {
    let worker = worker(&format!("server {{ listen 80; {settings} }}"));
    let mut request = admitted(&worker, &format!("GET / HTTP/1.1\r\nHost: own\r\n{fields}\r\n"));
    super::take(&mut request);
    ["remote_addr", "remote_port", "realip_remote_addr", "realip_remote_port"]
        .map(|name| String::from_utf8_lossy(&value(&variable(name), &request)).into_owned())
}

#[test]
fn only_whom_set_real_ip_from_names_is_believed() {
    let fields = "X-Real-IP: 203.0.113.9\r\n";
    let own = ["192.0.2.1", "4000", "192.0.2.1", "4000"];
    assert_eq!(said("", fields), own);
    assert_eq!(said("set_real_ip_from 192.0.2.2;", fields), own);
    assert_eq!(said("set_real_ip_from unix:;", fields), own);
    assert_eq!(said("set_real_ip_from 192.0.2.1;", ""), own);
    for from in ["192.0.2.1", "192.0.2.0/24", "0.0.0.0/0"] {
        let expected = ["203.0.113.9", "", "192.0.2.1", "4000"];
        assert_eq!(said(&format!("set_real_ip_from {from};"), fields), expected, "{from}");
    }
}

#[test]
fn the_field_says_the_address_as_in_nginx() {
    let from = "set_real_ip_from 192.0.2.1; set_real_ip_from 10.0.0.0/8;";
    let xff = format!("{from} real_ip_header X-Forwarded-For;");
    let recursive = format!("{xff} real_ip_recursive on;");
    for (settings, fields, expected) in [
        (from, "X-Real-IP: 203.0.113.9:81\r\n", "203.0.113.9 81"),
        (from, "X-Real-IP: [2001:db8::1]:81\r\n", "2001:db8::1 81"),
        (from, "X-Real-IP: nonsense\r\n", "192.0.2.1 4000"),
        (from, "X-Real-IP: 203.0.113.9\r\nX-Real-IP: 203.0.113.10\r\n", "203.0.113.9 "),
        (&format!("{from} real_ip_header cf-ip;"), "CF-IP: 203.0.113.9\r\n", "203.0.113.9 "),
        (&format!("{from} real_ip_header proxy_protocol;"), "X-Real-IP: 203.0.113.9\r\n", "192.0.2.1 4000"),
        (&xff, "X-Forwarded-For: 203.0.113.8, 10.0.0.1\r\n", "10.0.0.1 "),
        (&xff, "X-Forwarded-For: 203.0.113.8\r\nX-Forwarded-For: 10.0.0.1, 10.0.0.2\r\n", "10.0.0.2 "),
        (&recursive, "X-Forwarded-For: 203.0.113.8, 10.0.0.1\r\n", "203.0.113.8 "),
        (
            &recursive,
            "X-Forwarded-For: 203.0.113.7,203.0.113.8\r\nX-Forwarded-For: 10.0.0.1\r\n",
            "203.0.113.8 ",
        ),
        (&recursive, "X-Forwarded-For: 203.0.113.8, nonsense, 10.0.0.1\r\n", "10.0.0.1 "),
        (&recursive, "X-Forwarded-For: 10.0.0.3, 10.0.0.1\r\n", "10.0.0.3 "),
        (&xff, "X-Forwarded-For: 203.0.113.8\r\nX-Forwarded-For: ,\r\n", "192.0.2.1 4000"),
    ] {
        let [address, port, ..] = said(settings, fields);
        assert_eq!(format!("{address} {port}"), expected, "{settings} {fields}");
    }
}
