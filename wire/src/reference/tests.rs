//! References, as RFC 3986 §5.4 resolves them.

use super::*;

const BASE: Reference<'static> =
    Reference { scheme: Some(b"http"), authority: Some(b"a:8080"), path: b"/b/c/d;p", query: Some(b"q") };

fn resolve(reference: &str) -> Option<String> {
    let found = Reference::read(reference.as_bytes())?.resolved(&BASE);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    let query = found.query.map_or(String::new(), |query| format!("?{}", text(query)));
    Some(format!("{}://{}{}{query}", text(found.scheme), text(found.authority), text(found.path)))
}

#[test]
fn references_are_resolved_as_the_rfc_shows() {
    for (reference, expected) in [
        ("", "http://a:8080/b/c/d;p?q"),
        ("#s", "http://a:8080/b/c/d;p?q"),
        ("?y", "http://a:8080/b/c/d;p?y"),
        ("g", "http://a:8080/b/c/g"),
        ("./g", "http://a:8080/b/c/g"),
        ("g/", "http://a:8080/b/c/g/"),
        ("/g", "http://a:8080/g"),
        ("//h", "http://h/"),
        ("//h/x", "http://h/x"),
        ("g?y#s", "http://a:8080/b/c/g?y"),
        (".", "http://a:8080/b/c/"),
        ("./", "http://a:8080/b/c/"),
        ("..", "http://a:8080/b/"),
        ("../g", "http://a:8080/b/g"),
        ("../../g", "http://a:8080/g"),
        ("../../../../g", "http://a:8080/g"),
        ("/./g/../h", "http://a:8080/h"),
        ("https://x/y?z", "https://x/y?z"),
        ("HTTP://x", "HTTP://x/"),
        ("g/a:b", "http://a:8080/b/c/g/a:b"),
    ] {
        assert_eq!(resolve(reference).as_deref(), Some(expected), "{reference}");
    }
    for reference in ["a b", "/\r\n", "mailto:x", "1:x", "http:g", "//u@h/", "\\x", "/\u{7f}"] {
        assert_eq!(resolve(reference), None, "{reference}");
    }
}

#[test]
fn an_origin_is_scheme_host_and_port() {
    let same = |reference: &str, base: &Reference<'_>| {
        Reference::read(reference.as_bytes()).expect("it is one").resolved(base).is_same_origin(base)
    };
    assert!(same("/x", &BASE) && same("http://A:8080/x", &BASE) && same("", &BASE));
    assert!(!same("https://a:8080/", &BASE) && !same("http://a/", &BASE) && !same("//b:8080/", &BASE));
    let plain = Reference { authority: Some(b"a"), ..BASE };
    assert!(same("http://a:80/x", &plain) && same("http://a:/x", &plain) && !same("http://a:81/", &plain));
}
