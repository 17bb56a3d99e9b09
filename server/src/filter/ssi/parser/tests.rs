//! Texts in whatever pieces they come, what is found in them, and what is wrong with commands.

use super::{Fragment, Parser};

/// The fragments of a text in pieces: a command as `{name key=value}`, a malformed one as `{?}`.
fn found(pieces: &[&str]) -> String {
    let mut parser = Parser::new(12);
    let mut out = String::new();
    for piece in pieces {
        let mut rest = piece.as_bytes();
        while let Some(found) = parser.next(&mut rest) {
            match found {
                Fragment::Text(text) => out += std::str::from_utf8(text).expect("it is text"),
                Fragment::Wrong(_) => out += "{?}",
                Fragment::Command(written) => {
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it is text");
                    out += &format!("{{{}", text(&written.name));
                    for (name, value) in &written.parameters {
                        out += &format!(" {}={}", text(name), text(value));
                    }
                    out += "}";
                }
            }
        }
        assert!(rest.is_empty(), "a piece is used up");
    }
    out + std::str::from_utf8(parser.end()).expect("it is text")
}

#[test]
fn commands_are_found_wherever_the_text_is_cut() {
    for (text, expected) in [
        ("plain", "plain"),
        ("a<!--#echo var=\"x\" -->b", "a{echo var=x}b"),
        ("<!--# echo\n var = 'x'\tdefault=\"\"-->", "{echo var=x default=}"),
        ("<!--#endif-->", "{endif}"),
        ("<!--#set var='a' value='\"' -->", "{set var=a value=\"}"),
        ("<!--#set value=\"a\\\"b\" -->", "{set value=a\\\"b}"),
        ("<!-- comment --><b><<!--#else -->", "<!-- comment --><b><{else}"),
        ("<!-<!--<!--#else --><!--", "<!-<!--{else}<!--"),
        ("x<!--#else", "x"),
        ("x<", "x<"),
        ("<!--#else --->y", ""),
        ("<!--#else --->y-->z", "{?}z"),
        ("<!--#echo var -->z", "{?}z"),
        ("<!--#echo var=x -->z", "{?}z"),
        ("<!--#echo var=\"x\"y -->z", "{?}z"),
        ("<!--#echo var=-->z", "{?}z"),
        ("<!--#echo var-->z", "{?}z"),
        ("<!--#echo-var=\"x\"-->z", "{?}z"),
        ("<!--#echo var=\"123456789012\" -->", "{echo var=123456789012}"),
        ("<!--#echo var=\"1234567890123\" -->z", "{?}z"),
        ("<!--#abcdefghijklmnop -->", "{abcdefghijklmnop}"),
        ("<!--#abcdefghijklmnopq -->z", "{?}z"),
        ("<!--#a abcdefghijklmnopq='' -->z", "{?}z"),
        ("<!--# -->z", ""),
    ] {
        assert_eq!(found(&[text]), expected, "{text}");
        for cut in (0..=text.len()).filter(|&cut| text.is_char_boundary(cut)) {
            assert_eq!(found(&[&text[..cut], &text[cut..]]), expected, "{text} cut at {cut}");
        }
        let bytes: Vec<String> = text.chars().map(String::from).collect();
        let bytes: Vec<&str> = bytes.iter().map(String::as_str).collect();
        assert_eq!(found(&bytes), expected, "{text} byte by byte");
    }
}

#[test]
fn a_command_has_so_many_parameters_at_the_most() {
    let with = |count: usize| format!("<!--#a {}-->", "b='' ".repeat(count));
    assert_eq!(found(&[&with(16)]).matches("b=").count(), 16);
    assert_eq!(found(&[&with(17)]), "{?}");
}

#[test]
fn lines_are_counted_within_commands_as_well() {
    let mut parser = Parser::new(255);
    let mut rest = &b"a\nb<!--#else\n -->\n"[..];
    while parser.next(&mut rest).is_some() {}
    assert_eq!(parser.line(), 4);
}
