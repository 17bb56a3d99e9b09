//! The grammar in its odd corners, each as nginx 1.31 reads it, and that no bytes break it.

use proptest::prelude::*;

use super::*;

/// Words as they are (quoted ones in `«»`), then the findings.
fn lex(text: impl AsRef<[u8]>) -> (String, Vec<String>) {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add("nginx.conf".into(), text.as_ref().to_vec());
    let tokens = tokens(file, &sources, &mut diagnostics);
    let shown = tokens.list.iter().map(|token| match token {
        Token::Word(word) if word.quoted => format!("«{}»", word.text),
        Token::Word(word) => word.text.clone(),
        Token::Semicolon(_) => ";".to_string(),
        Token::Open(_) => "{".to_string(),
        Token::Close(_) => "}".to_string(),
    });
    let shown = shown.collect::<Vec<_>>().join(" ");
    let findings = diagnostics.sorted().into_iter();
    let findings = findings.map(|finding| {
        let at = sources.position(finding.span.expect("every lexical error has a place"));
        format!("{}:{} {}", at.line, at.column, finding.message)
    });
    (shown, findings.collect())
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(lex(text), (expected.to_string(), vec![]), "{text:?}");
}

#[test]
fn words_end_at_blanks_semicolons_and_opening_braces() {
    check("a b\tc\r\nd;", "a b c d ;");
    check("location /a{return 200;}", "location /a { return 200 ; }");
    check("a};", "a} ;");
    check("events{}", "events { }");
    check("a;}", "a ; }");
}

#[test]
fn a_comment_starts_only_where_a_word_may() {
    check("a # b ; {\nc;", "a c ;");
    check("a#b c;", "a#b c ;");
    check("a;#b", "a ;");
    check("'a' # b", "«a»");
}

#[test]
fn quotes_hold_blanks_braces_and_lines() {
    check("a \"b c;{}\" 'd \"e\" # f';", "a «b c;{}» «d \"e\" # f» ;");
    check("a \"\" '';", "a «» «» ;");
    check("a 'one\n two';", "a «one\n two» ;");
    check("a b\"c d\"e;", "a b\"c d\"e ;");
    check("if ($a = \"b\"){}", "if ($a = «b» ) { }");
}

#[test]
fn escapes_are_undone_alike_in_and_out_of_quotes() {
    check(r#"a "x\"y" 'x\'y' x\"y;"#, r#"a «x"y» «x'y» x"y ;"#);
    check(r"a \\ \t \r \n;", "a \\ \t \r \n ;");
    check(r"location ~ \.php$ ^/\d+\;x\{2\ y;", r"location ~ \.php$ ^/\d+\;x\{2\ y ;");
    check(r"a '\.' \'b;", r"a «\.» 'b ;");
    check(r"a \\\\;", r"a \\ ;");
}

#[test]
fn a_brace_after_a_dollar_belongs_to_the_word() {
    check("return 200 ${uri}x;", "return 200 ${uri}x ;");
    check("a $b{c;", "a $b { c ;");
    check("a x${{b;", "a x${{b ;");
    check(r"a \${b;", r"a \$ { b ;");
}

#[test]
fn only_a_blank_a_semicolon_a_brace_or_a_parenthesis_follows_a_closing_quote() {
    let (words, findings) = lex("a \"b\"c 'd'\"e\";");
    assert_eq!(words, "a «b» c «d» «e» ;");
    assert_eq!(
        findings,
        ["1:6 unexpected \"c\" after the closing quote", "1:11 unexpected \"\"\" after the closing quote"]
    );
    let (words, findings) = lex("a 'it's';");
    assert_eq!((&*words, findings.len()), ("a «it» s' ;", 1));
    assert_eq!(lex("a 'b'ü;").1, ["1:6 unexpected \"ü\" after the closing quote"]);
}

#[test]
fn a_quote_without_its_partner_is_reported_where_it_opens_and_the_rest_is_read() {
    let (words, findings) = lex("a \"b;\nc \"d\";\ne;\n");
    assert_eq!(words, "a «b» ; c «d» ; e ;");
    assert_eq!(findings, ["1:3 this quote is not closed"]);
    let (words, findings) = lex("a 'b {\n  c;\n}\n");
    assert_eq!(words, "a «b» { c ; }");
    assert_eq!(findings, ["1:3 this quote is not closed"]);
    assert_eq!(lex("'").0, "«»");
    assert_eq!(lex("\"a\\").1.len(), 1);
}

#[test]
fn bytes_that_are_not_utf8_are_errors_in_words_and_nothing_in_comments() {
    assert_eq!(
        lex(b"# \xff\na b\xffc;"),
        ("a b\u{fffd}c ;".to_string(), vec!["2:4 the byte 0xff here is not UTF-8".to_string()])
    );
    assert_eq!(lex(b"\xef\xbb\xbfa;").1, ["1:1 the file starts with a byte order mark"]);
    check("a äöü;", "a äöü ;");
}

#[test]
fn a_file_of_nothing_but_errors_is_given_up() {
    let (_, findings) = lex("''x ".repeat(1000));
    assert_eq!(findings.len(), MAX_ERRORS + 1);
    assert!(findings.iter().any(|finding| finding.contains("too many errors")));
}

proptest! {
    #[test]
    fn any_bytes_give_tokens_in_order_and_inside_the_file(
        text in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "[a$\\\\{}'\";# \n)]{0,80}".prop_map(String::into_bytes),
        ]
    ) {
        let mut sources = Sources::default();
        let mut diagnostics = Diagnostics::default();
        let length = text.len() as u32;
        let file = sources.add("x".into(), text);
        let tokens = tokens(file, &sources, &mut diagnostics);
        let mut last = 0;
        for token in &tokens.list {
            let span = token.span();
            prop_assert!(last <= span.start && span.start < span.end && span.end <= length);
            last = span.end;
        }
        for finding in diagnostics.sorted() {
            let span = finding.span.expect("every lexical error has a place");
            prop_assert!(span.start <= span.end && span.end <= length);
            prop_assert!(!finding.render(&sources).is_empty());
        }
    }
}

#[test]
fn a_word_is_quoted_where_it_has_to_be() {
    for (word, expected) in [
        ("sites-enabled/*", "sites-enabled/*"),
        ("/srv/$host.log", "/srv/$host.log"),
        ("", "\"\""),
        ("a b", "\"a b\""),
        ("a\"b\\c", "\"a\\\"b\\\\c\""),
        ("/x/${host}y", "\"/x/${host}y\""),
    ] {
        assert_eq!(quoted(word), expected);
    }
}
