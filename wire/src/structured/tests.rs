//! Dictionaries, one case per rule of RFC 9651 §4.2.

use super::*;

fn read(text: &str) -> Option<String> {
    let members = dictionary(text.as_bytes()).ok()?;
    let lines: Vec<String> = members
        .iter()
        .map(|(key, value)| {
            let key = String::from_utf8_lossy(key);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            match value {
                Value::List(inside) => format!("{key}=({})", text(inside)),
                Value::Item(BareItem::Integer(number)) => format!("{key}={number}"),
                Value::Item(BareItem::Boolean(flag)) => format!("{key}=?{}", u8::from(*flag)),
                Value::Item(BareItem::String(inside)) => format!("{key}=\"{}\"", text(inside)),
                Value::Item(BareItem::Token(token)) => format!("{key}={}", text(token)),
                Value::Item(BareItem::Decimal(number)) => format!("{key}={}", text(number)),
                Value::Item(BareItem::Bytes(inside)) => format!("{key}=:{}:", text(inside)),
                Value::Item(BareItem::Date(seconds)) => format!("{key}=@{seconds}"),
                Value::Item(BareItem::Display(inside)) => format!("{key}=%\"{}\"", text(inside)),
            }
        })
        .collect();
    Some(lines.join(" "))
}

#[test]
fn dictionaries_are_read_by_the_letter_of_the_rfc() {
    for (text, expected) in [
        ("", Some("")),
        ("   ", Some("")),
        ("max-age=60", Some("max-age=60")),
        (" a , b ", Some("a=?1 b=?1")),
        ("a=1,b=2", Some("a=1 b=2")),
        ("a=1\t,\tb=2", Some("a=1 b=2")),
        ("a=1, a=2", Some("a=2")),
        ("a=1, b, a=2, c, b=3", Some("a=2 b=3 c=?1")),
        ("a;x=1;y, b", Some("a=?1 b=?1")),
        ("a=?0, b=?1", Some("a=?0 b=?1")),
        ("a=-42, b=1.5, c=-0.125", Some("a=-42 b=1.5 c=-0.125")),
        ("a=999999999999999", Some("a=999999999999999")),
        ("a=\"x \\\" \\\\ y\"", Some("a=\"x \\\" \\\\ y\"")),
        ("a=foo/bar:*", Some("a=foo/bar:*")),
        ("a=:aGk=:", Some("a=:aGk=:")),
        ("a=(1 2;x \"s\")", Some("a=(1 2;x \"s\")")),
        ("a=()", Some("a=()")),
        ("a=@1659578233", Some("a=@1659578233")),
        ("a=%\"f%c3%bc\"", Some("a=%\"f%c3%bc\"")),
        ("*x_1.-*=tok", Some("*x_1.-*=tok")),
        ("max-age=60, &&&&&", None),
        ("max-age =60", None),
        ("max-age= 60", None),
        ("MaX-aGe=60", None),
        ("a,", None),
        (",a", None),
        ("a,,b", None),
        ("a b", None),
        ("\ta", None),
        ("a=", None),
        ("a=1000000000000000", None),
        ("a=1.", None),
        ("a=1.2345", None),
        ("a=--1", None),
        ("a=\"open", None),
        ("a=\"bad \\x escape\"", None),
        ("a=\"\u{fc}\"", None),
        ("a=?2", None),
        ("a=?10", None),
        ("a=(1", None),
        ("a=(1,2)", None),
        ("a=:x", None),
        ("a=@1.5", None),
        ("a=%\"%C3\"", None),
        ("a=%\"%c\"", None),
        ("1a=2", None),
        ("a;=1", None),
    ] {
        assert_eq!(read(text).as_deref(), expected, "{text:?}");
    }
}

#[test]
fn members_are_bounded() {
    let many: Vec<String> = (0..=MOST_MEMBERS).map(|number| format!("k{number}")).collect();
    assert!(dictionary(many[..MOST_MEMBERS].join(",").as_bytes()).is_ok());
    assert_eq!(dictionary(many.join(",").as_bytes()), Err(NotStructured));
}

#[test]
fn strings_are_written_with_what_they_can_hold() {
    let mut out = Vec::new();
    append_string(&mut out, b"a\"b\\c\n\xff");
    assert_eq!(out, b"\"a\\\"b\\\\c??\"");
    assert!(
        is_token(b"HIT") && is_token(b"*x:/y") && !is_token(b"1x") && !is_token(b"a b") && !is_token(b"")
    );
}
