//! What users ask for, and the targets and requests that come of it.

use super::*;

fn url(text: &str) -> Result<Url, &'static str> {
    Url::parse(text)
}

fn ask(url: &str) -> Ask {
    Ask { url: url.into(), keep_alive: true, ..Ask::default() }
}

fn sent(ask: &Ask) -> String {
    let target = resolve(ask, Permission::default()).unwrap_or_else(|error| panic!("{error}"));
    String::from_utf8(target.request.to_vec()).expect("ASCII")
}

#[test]
fn a_url_is_taken_apart() {
    let check = |text: &str, https, host: &str, port, authority: &str, target: &str| {
        let expected = Url {
            is_https: https,
            host: host.into(),
            port,
            authority: authority.into(),
            target: target.into(),
        };
        assert_eq!(url(text), Ok(expected), "{text}");
    };
    check("http://127.0.0.1", false, "127.0.0.1", 80, "127.0.0.1", "/");
    check("HTTPS://a.example:8443/x?y#z", true, "a.example", 8443, "a.example:8443", "/x?y");
    check("http://[::1]:8080?q=1", false, "::1", 8080, "[::1]:8080", "/?q=1");
    check("http://a/ü", false, "a", 80, "a", "/%C3%BC");
    check("127.0.0.1:8000/pub?a=://b", false, "127.0.0.1", 8000, "127.0.0.1:8000", "/pub?a=://b");
    check("localhost", false, "localhost", 80, "localhost", "/");
    check("[::1]:8080", false, "::1", 8080, "[::1]:8080", "/");
    check("https://a:/", true, "a", 443, "a:", "/");
}

#[test]
fn what_is_no_url_is_told_with_what_to_write() {
    for (text, words) in [
        ("/pub", "begins with http://"),
        ("", "no host"),
        ("127.0.0.1:port/", "port"),
        ("ftp://a/", "only http://"),
        ("http://", "no host"),
        ("http:///x", "no host"),
        ("http://a:0/", "port"),
        ("http://a:65536/", "port"),
        ("http://a:+80/", "port"),
        ("http://u:p@a/", "Authorization"),
        ("http://a/x y", "%20"),
        ("http://a/x\r\nEvil: 1", "control"),
        ("http://a b/", "host"),
        ("http://[::1/", "bracket"),
        ("http://[1.2.3.4]/", "IPv6"),
        ("http://[::1]x/", "bracket"),
    ] {
        let said = url(text).expect_err(text);
        assert!(said.contains(words), "{text}: {said}");
    }
}

#[test]
fn the_request_is_written_out_once() {
    assert_eq!(sent(&ask("http://127.0.0.1:81/a?b")), "GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:81\r\n\r\n");
    let close = Ask { keep_alive: false, method: "HEAD".into(), ..ask("http://127.0.0.1/") };
    assert_eq!(sent(&close), "HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    let fields = vec![("Host".to_owned(), "other".to_owned()), ("X-A".to_owned(), " 1 ".to_owned())];
    let post = Ask { fields, body: b"abc".to_vec(), ..ask("http://127.0.0.1/") };
    assert_eq!(sent(&post), "POST / HTTP/1.1\r\nHost: other\r\nX-A: 1\r\nContent-Length: 3\r\n\r\nabc");
}

#[test]
fn a_request_that_would_be_two_is_refused() {
    let refused = |ask: Ask| resolve(&ask, Permission::default()).expect_err("refused").to_string();
    let field = |name: &str, value: &str| Ask {
        fields: vec![(name.to_owned(), value.to_owned())],
        ..ask("http://127.0.0.1/")
    };
    assert!(refused(field("X", "a\r\nEvil: 1")).contains("control"));
    assert!(refused(field("X Y", "a")).contains("name is invalid"));
    assert!(refused(field("content-LENGTH", "5")).contains("length"));
    assert!(refused(field("Transfer-Encoding", "chunked")).contains("length"));
    assert!(refused(Ask { method: "GET /".into(), ..ask("http://127.0.0.1/") }).contains("method"));
    assert!(refused(Ask { method: "CONNECT".into(), ..ask("http://127.0.0.1/") }).contains("method"));
}

#[test]
fn a_public_address_asks_for_a_second_word() {
    let public = |text: &str| is_public(text.parse().expect(text));
    for here in
        ["127.0.0.1", "127.9.9.9", "10.1.2.3", "172.31.0.1", "192.168.0.1", "169.254.0.1", "100.64.0.1"]
    {
        assert!(!public(here), "{here}");
    }
    for here in ["0.0.0.0", "::1", "fd00::1", "fe80::1", "::ffff:10.0.0.1"] {
        assert!(!public(here), "{here}");
    }
    for there in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1", "::ffff:8.8.8.8"] {
        assert!(public(there), "{there}");
    }
    let said = resolve(&ask("http://192.0.2.1/"), Permission::default()).expect_err("public").to_string();
    assert!(
        said.contains("192.0.2.1 is an address of the public internet") && said.contains("--yes"),
        "{said}"
    );
    assert!(resolve(&ask("http://192.0.2.1/"), Permission { public: true }).is_ok());
}

#[test]
fn a_name_without_an_address_is_told_as_such() {
    let said = resolve(&ask("http://no-such-host.invalid/"), Permission::default()).expect_err("none");
    assert!(said.to_string().starts_with("no such host: \"no-such-host.invalid\""), "{said}");
}
