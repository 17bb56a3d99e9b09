//! Connections that begin with a header of the PROXY protocol; the same holds for nginx.

use millstream_tests::server::Server;
use millstream_tests::wait;

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http {
        access_log off;
        server {
            listen 127.0.0.1:@PORT@ proxy_protocol;
            location / { set $said \"$proxy_protocol_addr $proxy_protocol_port\";
                return 200 \"$said $proxy_protocol_server_addr $proxy_protocol_server_port $remote_addr\"; }
            location /real { set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;
                add_header X-Said \"$remote_addr $remote_port $realip_remote_addr\" always; }
            location /more { add_header X-Said \"$proxy_protocol_tlv_authority $proxy_protocol_tlv_0xe0 \
                $proxy_protocol_tlv_ssl_cn $proxy_protocol_tlv_ssl_verify\" always; }
            location /stranger { set_real_ip_from 10.0.0.0/8; real_ip_header proxy_protocol;
                add_header X-Said $remote_addr always; }
        }
    }";

const V1: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.2 4000 443\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x09\xc6\x33\x64\x02\x0f\xa1\x01\xbb";

/// With values: authority, a custom one, and TLS.
const V2_MORE: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x2a\xc0\x00\x02\x09\xc6\x33\x64\x02\x0f\xa1\x01\xbb\
    \x02\0\x07a.local\xe0\0\x01x\x20\0\x0a\x07\0\0\0\x0c\x22\0\x02me\x04\0\0";

fn server() -> Server {
    Server::start(SITE, &[])
}

#[test]
fn a_connection_is_whose_its_header_says() {
    let server = server();
    for (header, path, expected) in [
        (V1, "/", "192.0.2.1 4000 198.51.100.2 443 127.0.0.1"),
        (V2, "/", "192.0.2.9 4001 198.51.100.2 443 127.0.0.1"),
        (b"PROXY UNKNOWN\r\n", "/", "    127.0.0.1"),
        (V1, "/real", "192.0.2.1 4000 127.0.0.1"),
        (V2, "/real", "192.0.2.9 4001 127.0.0.1"),
        (V1, "/stranger", "127.0.0.1"),
        (V1, "/more", ""),
        (V2_MORE, "/more", "a.local x me 12"),
        (V2_MORE, "/real", "192.0.2.9 4001 127.0.0.1"),
    ] {
        let mut client = server.client();
        client.send(header).expect("it is sent");
        for _ in 0..2 {
            let answer = client.get(path).expect("it is answered");
            let told = answer.field("x-said").map_or_else(|| answer.text(), str::to_owned);
            assert_eq!(told, expected, "{path}");
        }
    }
    // The header may come in pieces, and the request with its end.
    let mut client = server.client();
    let (most, last) = V1.split_at(V1.len() - 1);
    for byte in most {
        client.send([*byte]).expect("it is sent");
    }
    let answer = client.ask([last, b"GET /real HTTP/1.1\r\nHost: a\r\n\r\n"].concat());
    assert_eq!(answer.field("x-said"), Some("192.0.2.1 4000 127.0.0.1"));
}

#[test]
fn a_connection_without_a_header_is_closed() {
    let server = server();
    for broken in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PROXY TCP4 192.0.2.1 198.51.100.2 4000\r\n\r\n"] {
        let mut client = server.client();
        client.send(broken).expect("it is sent");
        assert!(client.is_closed_by_server(), "{broken}");
    }
    wait::until("the error log has it", || server.log().contains("broken header: \"GET / HTTP/1.1"));
    server.says("while reading PROXY protocol");
}

const PASSING: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events { }
    http { access_log off; set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;
        server { listen 127.0.0.1:@PORT@;
            location / { proxy_pass http://127.0.0.1:@BACK@; proxy_protocol on; }
            location /v2 { proxy_pass http://127.0.0.1:@BACK@; proxy_protocol v2; } } }";

#[test]
fn a_connection_to_an_upstream_begins_with_whom_it_is_for_and_serves_nobody_else() {
    if millstream_tests::server::is_nginx() {
        return;
    }
    let back = server();
    let front = Server::start(PASSING, &[("BACK", &back.port().to_string())]);
    for path in ["/", "/v2"] {
        for client in ["192.0.2.7", "192.0.2.8", "192.0.2.7"] {
            let mut connection = front.client();
            for _ in 0..2 {
                let answer = connection.get_with(path, &[("X-Real-IP", client)]).expect("an answer");
                let told = answer.text();
                let words: Vec<&str> = told.split(' ').collect();
                assert_eq!((words[0], words[2]), (client, "127.0.0.1"), "{path} {told}");
                assert_eq!(words[3], front.port().to_string(), "{path} {told}");
            }
        }
    }
}
