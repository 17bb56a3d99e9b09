//! Which requests count as the same.

use super::*;
use millstream_wire::Headers;
use millstream_wire::client_address::KNOWN;

fn headers(lines: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::new();
    lines.iter().for_each(|(name, value)| headers.push(name.as_bytes(), value.as_bytes()));
    headers
}

fn fields(vary: &str) -> VaryFields {
    match read(headers(&[("Vary", vary)]).view()) {
        Vary::Fields(fields) => fields,
        other => panic!("{vary}: {other:?}"),
    }
}

fn written(vary: &str, request: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    fields(vary).write(headers(request).view(), &mut out);
    out
}

#[test]
fn an_asterisk_anywhere_means_anything() {
    for vary in ["*", "Accept, *", " * , Accept", "a,b,c,*"] {
        assert_eq!(read(headers(&[("Vary", vary)]).view()), Vary::Anything, "{vary}");
    }
    assert_eq!(read(headers(&[("Vary", "Accept"), ("Vary", "*")]).view()), Vary::Anything);
    assert_eq!(read(headers(&[("Vary", " , ")]).view()), Vary::Nothing);
}

#[test]
fn names_have_no_case_and_no_order() {
    assert_eq!(fields("Accept, X-Foo"), fields("x-foo,ACCEPT, accept"));
    let many: Vec<_> = (0..=FIELDS).map(|number| format!("x-{number}")).collect();
    assert_eq!(read(headers(&[("Vary", &many.join(","))]).view()), Vary::TooMany);
}

#[test]
fn what_varies_by_a_field_with_an_address_varies_by_what_the_upstream_is_told_of_it() {
    for name in KNOWN {
        let answer = headers(&[("Vary", name)]);
        let Vary::Fields(fields) = by_rule(answer.view(), VaryRule::default()) else { panic!("{name}") };
        let of = |told: &str| {
            let mut out = Vec::new();
            let address = std::str::from_utf8(ADDRESS).expect("text");
            fields.write(headers(&[(name, "192.0.2.1"), (address, told)]).view(), &mut out);
            out
        };
        assert_ne!(of("192.0.2.1"), of("198.51.100.1"), "{name}");
        assert_eq!(of("192.0.2.1"), of("192.0.2.1"), "{name}");
        let mut out = Vec::new();
        fields.write(headers(&[(name, "192.0.2.1")]).view(), &mut out);
        assert_eq!(fields.told(&out), [(name.to_ascii_lowercase(), Some("192.0.2.1".to_owned()))]);
        let ignored = VaryRule { ignored: true, ..VaryRule::default() };
        assert_eq!(by_rule(answer.view(), ignored), Vary::Nothing, "{name}");
    }
}

#[test]
fn requests_that_mean_the_same_are_the_same() {
    for (vary, one, other, same) in [
        (
            "Accept-Encoding",
            vec![("Accept-Encoding", "gzip, br")],
            vec![("Accept-Encoding", "br;q=0.5,gzip")],
            true,
        ),
        (
            "Accept-Encoding",
            vec![("Accept-Encoding", "gzip, deflate, br, zstd")],
            vec![("Accept-Encoding", "br, gzip")],
            true,
        ),
        (
            "Accept-Encoding",
            vec![("Accept-Encoding", "gzip, deflate")],
            vec![("Accept-Encoding", "gzip")],
            true,
        ),
        ("Accept-Encoding", vec![("Accept-Encoding", "gzip")], vec![("Accept-Encoding", "deflate")], false),
        ("Accept-Encoding", vec![("Accept-Encoding", "gzip")], vec![("Accept-Encoding", "br")], false),
        ("Accept-Encoding", vec![], vec![("Accept-Encoding", "")], false),
        (
            "Accept-Encoding",
            vec![("Accept-Encoding", "gzip;q=0")],
            vec![("Accept-Encoding", "identity")],
            true,
        ),
        (
            "Accept-Encoding",
            vec![("Accept-Encoding", "deflate, gzip;q=0")],
            vec![("Accept-Encoding", "deflate")],
            true,
        ),
        (
            "Accept-Encoding",
            vec![("Accept-Encoding", "gzip, br;q=0, identity;q=0")],
            vec![("Accept-Encoding", "gzip, identity;q=0")],
            false,
        ),
        (
            "Accept-Encoding",
            vec![("Accept-Encoding", "gzip;q=0, *;q=0")],
            vec![("Accept-Encoding", "*;q=0")],
            false,
        ),
        (
            "Accept-Encoding",
            vec![("Accept-Encoding", "foo, gzip;q=0")],
            vec![("Accept-Encoding", "foo")],
            false,
        ),
        ("Accept-Language", vec![("Accept-Language", "de,en")], vec![("Accept-Language", "de, en")], true),
        ("X-A", vec![("X-A", "1"), ("X-A", "2")], vec![("X-A", "1, 2")], true),
        ("Accept-Language", vec![("Accept-Language", "de, en")], vec![("Accept-Language", "EN,de")], true),
        ("Accept-Language", vec![("Accept-Language", "de")], vec![("Accept-Language", "en")], false),
        ("Accept-Language", vec![("Accept-Language", "")], vec![], false),
        ("X-A", vec![("X-A", "1,2")], vec![("X-A", " 1 ,\t2 ")], true),
        ("X-A", vec![("X-A", "1,,2")], vec![("X-A", "1,2")], false),
        ("X-A", vec![("X-A", "1 2")], vec![("X-A", "12")], false),
        ("X-A", vec![("X-A", "\"1, 2\"")], vec![("X-A", "\"1,2\"")], false),
        ("X-A", vec![("X-A", "\"\\\", 2\", 3")], vec![("X-A", "\"\\\", 2\",3")], true),
        ("X-A", vec![("X-A", "1"), ("X-B", "2")], vec![("X-A", "1")], true),
        ("X-A", vec![("X-A", "")], vec![], false),
        ("Cookie", vec![("Cookie", "a=1"), ("Cookie", "b=2")], vec![("Cookie", "a=1; b=2")], true),
        ("Cookie", vec![("Cookie", "a=1"), ("Cookie", "b=2")], vec![("Cookie", "a=1,b=2")], false),
        ("Cookie", vec![("Cookie", "a=1 , b")], vec![("Cookie", "a=1,b")], false),
        ("User-Agent", vec![("User-Agent", "a, b")], vec![("User-Agent", "a,b")], false),
        ("Accept", vec![("Accept", "a/b, c/d")], vec![("Accept", "a/b,,c/d")], true),
        (
            "Accept-Encoding",
            vec![("Accept-Encoding", "compress")],
            vec![("Accept-Encoding", "identity")],
            false,
        ),
        ("Accept-Encoding", vec![("Accept-Encoding", "compress")], vec![("Accept-Encoding", "foo")], false),
        (
            "Accept-Encoding",
            vec![("Accept-Encoding", "gzip,dcb")],
            vec![("Accept-Encoding", "gzip, dcb")],
            true,
        ),
        ("Accept-Encoding", vec![("Accept-Encoding", "identity;q=0")], vec![("Accept-Encoding", "")], false),
        ("X-A, X-B", vec![("X-A", "1"), ("X-B", "")], vec![("X-A", ""), ("X-B", "1")], false),
    ] {
        assert_eq!(written(vary, &one) == written(vary, &other), same, "{vary}: {one:?} {other:?}");
    }
}

#[test]
fn a_union_keeps_apart_what_either_does() {
    let both = fields("a").union(&fields("b, a")).expect("two names");
    assert_eq!(both, fields("a, b"));
    assert!(both.covers(&fields("b")) && !fields("b").covers(&both));
}

#[test]
fn who_accepts_everything_may_say_so_or_nothing() {
    let vary = "Accept";
    assert_eq!(written(vary, &[("Accept", "*/*")]), written(vary, &[]));
    assert_eq!(written(vary, &[("Accept", "*/*"), ("Accept", "*/*")]), written(vary, &[]));
    for other in ["", "text/html", "*/*;q=0.5", "text/html, */*"] {
        assert_ne!(written(vary, &[("Accept", other)]), written(vary, &[]), "{other}");
    }
}
