//! Templates as a table, and the places of their errors.

use proptest::prelude::*;

use super::*;
use crate::lexer::{self, Token};
use crate::source::Sources;
use crate::variables::Builtin;

/// Findings as `column message | help`.
fn compiled(text: &str, captures: &[&str]) -> (Template, Vec<String>) {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add("x".into(), text.as_bytes().to_vec());
    let tokens = lexer::tokens(file, &sources, &mut diagnostics);
    let Some(Token::Word(word)) = tokens.list.first() else { panic!("{text:?} starts with a word") };
    let slots: Vec<Slot> =
        captures.iter().map(|&name| Slot { name: name.into(), is_routed: true, is_set: false }).collect();
    let template = compile(word, &Scope { slots: &slots, ..Scope::default() }, &mut diagnostics);
    let findings = diagnostics.sorted().into_iter().map(|finding| {
        let span = finding.span.expect("it has a place");
        let shown = &text[span.start as usize..span.end as usize];
        format!("{shown}: {} | {}", finding.message, finding.help.as_deref().unwrap_or("-"))
    });
    (template, findings.collect())
}

#[track_caller]
fn check(text: &str, expected: &[Part]) {
    let (template, findings) = compiled(text, &["Name", "year"]);
    assert_eq!((&*template.parts, findings), (expected, vec![]), "{text}");
}

fn text(text: &str) -> Part {
    Part::Literal(text.into())
}

#[test]
fn variables_are_cut_out_of_the_text_and_resolved() {
    use Part::Variable as V;
    check("plain", &[text("plain")]);
    check("\"\"", &[]);
    check("$uri", &[V(Variable::Builtin(Builtin::Uri))]);
    check("$URI", &[V(Variable::Builtin(Builtin::Uri))]);
    check(
        "$scheme://${host}x$1$20;",
        &[
            V(Variable::Builtin(Builtin::Scheme)),
            text("://"),
            V(Variable::Builtin(Builtin::Host)),
            text("x"),
            V(Variable::Capture(1)),
            V(Variable::Capture(2)),
            text("0"),
        ],
    );
    check("$http_x_Forwarded_For", &[V(Variable::RequestHeader("x-forwarded-for".into()))]);
    check("$sent_http_content_type", &[V(Variable::SentHeader("content-type".into()))]);
    check("$sent_trailer_a", &[V(Variable::SentTrailer("a".into()))]);
    check("$upstream_http_x_a", &[V(Variable::UpstreamHeader("x-a".into()))]);
    check("$upstream_trailer_a", &[V(Variable::UpstreamTrailer("a".into()))]);
    check("$upstream_cookie_a_b", &[V(Variable::UpstreamCookie("a_b".into()))]);
    check("$cookie_A_b", &[V(Variable::Cookie("a_b".into()))]);
    check("$arg_page", &[V(Variable::Argument("page".into()))]);
    check("$args", &[V(Variable::Builtin(Builtin::Args))]);
    check("$name-$YEAR", &[V(Variable::Slot(0)), text("-"), V(Variable::Slot(1))]);
    check("$request_uri/", &[V(Variable::Builtin(Builtin::RequestUri)), text("/")]);
}

#[test]
fn a_wrong_variable_is_shown_at_its_own_place_with_what_was_meant() {
    for (text, expected) in [
        ("a$requst_uri", "$requst_uri: unknown \"requst_uri\" variable | did you mean \"$request_uri\"?"),
        (
            "\"a ${remote_adr} b\"",
            "${remote_adr}: unknown \"remote_adr\" variable | did you mean \"$remote_addr\"?",
        ),
        ("$htpp_accept", "$htpp_accept: unknown \"htpp_accept\" variable | did you mean \"$http_accept\"?"),
        (
            "$upstream_htp_etag",
            "$upstream_htp_etag: unknown \"upstream_htp_etag\" variable | did you mean \"$upstream_http_etag\"?",
        ),
        ("$yaer", "$yaer: unknown \"yaer\" variable | did you mean \"$year\"?"),
        ("$banana", "$banana: unknown \"banana\" variable | -"),
        ("$0", "$0: unknown \"0\" variable | -"),
        (
            "a$",
            "$: invalid variable name: no name follows the dollar sign | a variable is written $name or ${name}",
        ),
        (
            "$-x",
            "$: invalid variable name: no name follows the dollar sign | a variable is written $name or ${name}",
        ),
        (
            "${}",
            "${}: invalid variable name: there is nothing between the braces | a variable is written $name or ${name}",
        ),
        (
            "${uri",
            "${uri: invalid variable name: its closing brace is missing | a variable is written $name or ${name}",
        ),
        ("'\\'$banana'", "'\\'$banana': unknown \"banana\" variable | -"),
    ] {
        assert_eq!(compiled(text, &["year"]).1, [expected], "{text}");
    }
    assert!(compiled("$http_", &[]).1[0].contains("write a name after \"$http_\""));
}

#[test]
fn every_wrong_variable_of_a_word_is_reported_and_the_rest_stays() {
    let (template, findings) = compiled("a$x1_b$y2_c", &[]);
    assert_eq!(findings.len(), 2);
    assert_eq!(template.as_literal(), Some("a"));
    assert_eq!(&*template.source, "a$x1_b$y2_c");
    assert_eq!(compiled("a${}b", &[]).0.as_literal(), Some("ab"));
}

#[test]
fn every_variable_of_the_table_compiles_to_itself() {
    for (builtin, name, _) in VARIABLES {
        let (template, findings) = compiled(&format!("${name}"), &[]);
        assert_eq!(
            (&*template.parts, findings.len()),
            (&[Part::Variable(Variable::Builtin(*builtin))][..], 0),
            "{name}"
        );
    }
}

proptest! {
    #[test]
    fn any_word_compiles_and_its_errors_are_inside_it(content in "[a$1{}_\\\\é]{0,40}|\\PC{0,40}", quoted: bool) {
        let width = content.len() as u32 + 2 * u32::from(quoted);
        let span = Span { start: 7, end: 7 + width, ..Span::default() };
        let word = Word { text: content.clone(), span, quoted };
        let mut diagnostics = Diagnostics::default();
        let template = compile(&word, &Scope::default(), &mut diagnostics);
        for finding in diagnostics.sorted() {
            let at = finding.span.expect("it has a place");
            prop_assert!(span.start <= at.start && at.start < at.end && at.end <= span.end);
        }
        if is_literal(&content) {
            prop_assert_eq!(template.as_literal(), Some(&*content));
        }
    }
}
