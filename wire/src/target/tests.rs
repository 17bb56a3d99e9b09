//! Normal forms, escapes, arguments and cookies.

use proptest::prelude::*;

use super::*;

fn check(path: &str, merge_slashes: bool, expected: Result<&str, TargetError>) {
    let mut out = b"left over".to_vec();
    let found = normalise(path.as_bytes(), merge_slashes, &mut out).map(|normal| match normal {
        Normal::Unchanged => path.to_owned(),
        Normal::Written => String::from_utf8_lossy(&out).into_owned(),
    });
    assert_eq!(found.as_deref(), expected.as_deref(), "{path}");
}

#[test]
fn paths_get_nginxs_normal_form() {
    for (path, expected) in [
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("/a/./b/.", "/a/b/"),
        ("/a/../b", "/b"),
        ("/a/..", "/"),
        ("/a/b/../../c/", "/c/"),
        ("//a///b//", "/a/b/"),
        ("/a%20b%3Fc%23", "/a b?c#"),
        ("/%2e%2E/x/../%2e/", "/"),
        ("/a%2Fb%2f%2fc", "/a/b/c"),
        ("/.well-known/...", "/.well-known/..."),
        ("/a/..b/.c", "/a/..b/.c"),
        ("/a/%252e", "/a/%2e"),
        ("*", "*"),
    ] {
        let expected = if path.starts_with("/%2e%2E") { Err(TargetError::AboveRoot) } else { Ok(expected) };
        check(path, true, expected);
    }
    check("//a///../b//", false, Ok("//a//b//"));
    check("//..", false, Ok("/"));
    check("//..", true, Err(TargetError::AboveRoot));
}

#[test]
fn paths_without_a_normal_form_are_errors() {
    check("/..", true, Err(TargetError::AboveRoot));
    check("/a/../../b", true, Err(TargetError::AboveRoot));
    check("/%00", true, Err(TargetError::Nul));
    check("/%", true, Err(TargetError::BadEscape));
    check("/%2", true, Err(TargetError::BadEscape));
    check("/%zz", true, Err(TargetError::BadEscape));
    check("a", true, Err(TargetError::NoSlash));
    check("", true, Err(TargetError::NoSlash));
}

#[test]
fn a_uri_that_an_upstream_names_is_decoded_and_goes_nowhere_up() {
    for (uri, expected) in [
        ("/a", Some(("/a", ""))),
        ("/a?b=../..&c=%2e", Some(("/a", "b=../..&c=%2e"))),
        ("/a%20b%3Fc%23", Some(("/a b?c#", ""))),
        ("/e/https://host/a//b", Some(("/e/https://host/a//b", ""))),
        ("/e/https%3A%2F%2Fhost", Some(("/e/https://host", ""))),
        ("/a/./b", Some(("/a/./b", ""))),
        ("/..a/b..", Some(("/..a/b..", ""))),
        ("/a#b", Some(("/a#b", ""))),
        ("/%252e%252e/", Some(("/%2e%2e/", ""))),
        ("/%zz%4z%%41%", Some(("/zz%41", ""))),
        ("/..", None),
        ("/a/..", None),
        ("/a/../b", None),
        ("../a", None),
        ("..", None),
        ("/a/%2e%2E/b", None),
        ("/a/.%2e", None),
        ("/a%2f..%2Fb", None),
        ("/a/.%./b", None),
        ("/a%00", None),
        ("/a\0", None),
        ("?a", None),
        ("", None),
    ] {
        let found = safe(uri.as_bytes());
        let expected =
            expected.map(|(path, query): (&str, &str)| (path.as_bytes().to_vec(), query.as_bytes()));
        assert_eq!(found, expected, "{uri}");
    }
}

#[test]
fn text_is_escaped_for_the_place_it_goes_to() {
    let text = |write: fn(&[u8], &mut Vec<u8>), input: &str| {
        let mut out = Vec::new();
        write(input.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(text(escape_uri, "/a b?c#d%e\u{e4};=&+"), "/a%20b%3Fc%23d%25e%C3%A4;=&+");
    assert_eq!(text(encode_raw, "/a%20?b|\u{e4}"), "/a%20?b%7C%C3%A4");
    assert_eq!(text(escape_component, "a/b c~"), "a%2Fb%20c~");
    assert_eq!(
        text(escape_link, "/a b?c=1&d#e%f'\"<>\\^`{|}\u{e4}"),
        "/a%20b?c=1&d%23e%25f%27%22%3C%3E%5C%5E%60%7B%7C%7D%C3%A4"
    );
    assert_eq!(text(decode, "a%20b%zz%4"), "a bzz");
}

#[test]
fn arguments_and_cookies_are_found_as_nginx_finds_them() {
    assert_eq!(argument(b"a=1&ab=2&A=3&b", b"ab"), Some(&b"2"[..]));
    assert_eq!(argument(b"a=1&a=2", b"A"), Some(&b"1"[..]));
    assert_eq!(argument(b"a=", b"a"), Some(&b""[..]));
    assert_eq!(argument(b"b&xa=1", b"a"), None);
    assert_eq!(argument(b"b", b"b"), None);
    assert_eq!(cookie(b"a=1; Session=x=y ;b=2", b"session"), Some(&b"x=y"[..]));
    assert_eq!(cookie(b"a; b=1", b"a"), None);
}

#[test]
fn what_a_rewrite_captures_is_escaped_for_a_query_and_a_redirect_keeps_only_the_escapes_that_it_needs() {
    let escaped = |text: &[u8]| {
        let mut out = Vec::new();
        escape_argument(text, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    assert_eq!(escaped(b"a/b c"), "a/b%20c");
    assert_eq!(escaped(b"%&+;?#\""), "%25%26%2B%3B%3F%23%22");
    assert_eq!(escaped(b"=@:,'\xff"), "=@:,'%FF");
    let relaxed = |text: &str| {
        let mut out = Vec::new();
        relax(text.as_bytes(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    assert_eq!(relaxed("http://a/%41%2f%20%25"), "http://a/A/%20%25");
    assert_eq!(relaxed("/a?%41"), "/a?%41");
    assert_eq!(relaxed("/a%3f%41"), "/a?%41");
    assert_eq!(relaxed("/%zz%4z%"), "/zz");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_normal_form_is_its_own_after_escaping(path in "/[a-z0-9/.%2eEfF ?#]{0,40}", merge in any::<bool>()) {
        let mut normal = Vec::new();
        match normalise(path.as_bytes(), merge, &mut normal) {
            Ok(Normal::Unchanged) => normal = path.into_bytes(),
            Ok(Normal::Written) => {}
            Err(_) => return Ok(()),
        }
        let (mut escaped, mut again) = (Vec::new(), Vec::new());
        escape_uri(&normal, &mut escaped);
        prop_assert!(escaped.iter().all(|&byte| is_target_byte(byte)));
        match normalise(&escaped, merge, &mut again) {
            Ok(Normal::Unchanged) => again = escaped,
            Ok(Normal::Written) => {}
            Err(error) => prop_assert!(false, "{error:?}"),
        }
        prop_assert_eq!(again, normal);
    }
}
