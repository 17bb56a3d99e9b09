//! What comes of commands, by table. Subrequests are only named here; what they bring is for scenarios.

use super::{Draft, ECHOED_AT_ONCE, ENOUGH, Pause, begin};
use crate::fixture::{admitted, worker};
use crate::request::Request;
use millstream_wire::Headers;

const GET: &str = "GET /a/b.html?x=1&text=Text&tag=%3C&empty= HTTP/1.1\r\nHost: a\r\nX-Field: field\r\n\r\n";

fn request(settings: &str) -> Request {
    admitted(&worker(&format!("server {{ listen 80; ssi on; {settings} }}")), GET)
}

/// The output for a response, with `[path?query]` for each subrequest.
fn carried_out(request: &Request, answer: &[&str]) -> String {
    let mut headers = Headers::default();
    headers.push(b"Content-Type", b"text/html");
    let mut draft = Draft { status: 200, headers, length: None };
    let mut ssi = begin(request, &mut draft).expect("it has something to do");
    let mut out = Vec::new();
    for piece in answer {
        let mut rest = piece.as_bytes();
        loop {
            // What has come out is gone when it goes on.
            let mut some = Vec::new();
            let pause = ssi.next(request, &mut rest, &mut some);
            assert!(some.len() < ENOUGH + 6 * ECHOED_AT_ONCE + piece.len());
            out.append(&mut some);
            match pause {
                Pause::Used => break,
                Pause::Enough => {}
                Pause::Ask(ask) => {
                    let (path, query) =
                        (String::from_utf8_lossy(&ask.path), String::from_utf8_lossy(&ask.query));
                    let waits = if ask.waits { "!" } else { "" };
                    out.extend_from_slice(format!("[{path}?{query}{waits}]").as_bytes());
                }
            }
        }
    }
    out.extend_from_slice(ssi.end());
    String::from_utf8_lossy(&out).into_owned()
}

const ERROR: &str = "[an error occurred while processing the directive]";

#[test]
fn each_command_does_what_it_does_in_nginx() {
    for (answer, expected) in [
        ("a<!--#echo var=\"arg_text\" -->b", "aTextb"),
        ("<!--#echo var=\"ARG_TEXT\" --><!--#echo var=\"uri\" -->", "Text/a/b.html"),
        ("<!--#echo var=\"http_x_field\" -->", "field"),
        (
            "<!--#echo var=\"none\" -->,<!--#echo var=\"none\" default=\"d\" -->,<!--#echo var=\"arg_empty\" -->,",
            "(none),d,,",
        ),
        ("<!--#set var=\"A\" value=\"<&> \\\"\" --><!--#echo var=\"a\" -->", "&lt;&amp;&gt; &quot;"),
        (
            "<!--#set var='a' value='<\">%' --><!--#echo var='a' encoding='url' --> <!--#echo var='a' -->",
            "%3C%22%3E%25 %3C%22%3E%25",
        ),
        (
            "<!--#set var='a' value='<' --><!--#echo var='a' encoding='none' --><!--#echo var='a' encoding='other' -->",
            "<<",
        ),
        ("<!--#set var=\"a\" value=\"${arg_x}2\\$x\\\\\\n\" --><!--#echo var=\"a\" -->", "12$x\\\\n"),
        ("<!--#set var=\"a\" value=\"${arg_x\" -->", ERROR),
        ("<!--#set var=\"a\" value=\"$\" -->", ERROR),
        ("<!--#config errmsg=\"oops\" --><!--#what --><!--#echo -->", "oopsoops"),
        ("<!--#echo var=\"a\" var=\"b\" --><!--#echo what=\"a\" var=\"b\" -->", "~~"),
        ("<!--#config timefmt=\"at %%\" --><!--#echo var=\"date_gmt\" -->", "at %"),
        ("<!--#block name=\"b\" -->x<!--#echo var=\"arg_x\" --><!--#endblock -->y", "y"),
        ("<!--#include virtual=\"c?$arg_x\" --><!--#include virtual=\"/c%20d\" -->", "[/a/c?1][/c d?]"),
        (
            "<!--#include file=\"c\" --><!--#include virtual=\"/c\" wait=\"Yes\" --><!--#include virtual=\"/c\" wait=\"no\" -->",
            "[/a/c?!][/c?!][/c?]",
        ),
        ("<!--#include virtual=\"/c\" set=\"v\" -->", "[/c?!]"),
        (
            "<!--#include virtual=\"/c\" stub=\"none\" --><!--#include --><!--#include file=\"c\" wait=\"yes\" -->",
            "~~~",
        ),
        ("<!--#include virtual=\"/c\" file=\"c\" --><!--#include virtual=\"/c\" wait=\"x\" -->", "~~"),
        (
            "<!--#include virtual=\"../c\" --><!--#include virtual=\"/%2e%2e/c\" --><!--#include virtual=\"/c%00\" -->",
            "~~~",
        ),
        ("<!--#else --><!--#endif --><!--#elif expr=\"a\" -->", "~~~"),
        ("<!--#if expr=\"a\" --><!--#else -->b<!--#else --><!--#endif -->", "~"),
        ("<!--#if expr=\"a\" --><!--#if expr=\"a\" --><!--#endif -->", "~"),
        ("<", "<"),
    ] {
        let expected = expected.replace('~', ERROR);
        assert_eq!(carried_out(&request(""), &[answer]), expected, "{answer}");
        for cut in (0..answer.len()).filter(|&cut| answer.is_char_boundary(cut)) {
            let pieces = [&answer[..cut], &answer[cut..]];
            assert_eq!(carried_out(&request(""), &pieces), expected, "{answer} cut at {cut}");
        }
    }
}

#[test]
fn one_branch_is_taken() {
    for (condition, expected) in [
        ("$arg_x", "yes"),
        ("$arg_none", "no"),
        ("$arg_text = Text", "yes"),
        ("$arg_text=text", "no"),
        ("$arg_text != Text", "no"),
        ("TEXT = text", "yes"),
        ("$arg_text = /^T(e)(?<rest>.*)/", "yes"),
        ("$arg_text = /t$/", "E"),
        ("$arg_text != /^t/", "yes"),
        ("$arg_text = \\/x", "no"),
        ("$arg_text = $arg_text", "yes"),
        ("$arg_text = /x", "E"),
        ("$arg_text = /(/", "E"),
        ("$arg_text ? x", "E"),
    ] {
        let answer = format!("<!--#if expr=\"{condition}\" -->yes<!--#else -->no<!--#endif -->");
        let taken = carried_out(&request(""), &[&answer]);
        if expected == "E" {
            assert!(taken.starts_with(ERROR), "{condition}: {taken}");
        } else {
            assert_eq!(taken, expected, "{condition}");
        }
    }
    let captured = "<!--#if expr=\"$arg_text = /T(?<Inner>ex)(t)/\" --><!--#echo var=\"2\" --><!--#echo var=\"inner\" --><!--#endif -->";
    assert_eq!(carried_out(&request(""), &[captured]), "tex");
    let several = "<!--#if expr=\"$arg_none\" -->a<!--#elif expr=\"$arg_x\" -->b<!--#elif expr=\"$arg_x\" -->c<!--#else -->d<!--#endif -->e";
    assert_eq!(carried_out(&request(""), &[several]), "be");
}

#[test]
fn errors_are_silent_where_they_are_to_be_and_values_are_bounded() {
    let request = request("ssi_silent_errors on; ssi_value_length 4;");
    assert_eq!(carried_out(&request, &["a<!--#what -->b<!--#echo var=\"12345\" -->c"]), "abc");
}

#[test]
fn what_is_in_a_block_is_carried_out_where_it_stands_in() {
    let request = request("");
    let answer = "<!--#block name='b' -->x<!--#echo var='a' default='\"' --><!--#endblock -->";
    assert_eq!(carried_out(&request, &[answer]), "");
    let block = request.sheet().page.block(b"b").expect("it is there");
    assert_eq!(block.as_slice(), b"x<!--#echo var=\"a\" default='\"' -->");
    let text = String::from_utf8(block.to_vec()).expect("it is text");
    assert_eq!(carried_out(&request, &[&text]), "x&quot;");
}

#[test]
fn captures_that_are_put_together_again_and_again_are_an_error_before_they_are_large() {
    let all = "<!--# if expr=\"$a=/(.*)/\" --><!--# endif -->";
    let again = format!("<!--# if expr=\"{}=/(.*)/\" --><!--# endif -->", "$1".repeat(110));
    let answer = ["<!--# set var=\"a\" value=\"0123456789abcdef0123456789abcdef\" -->", all, &again];
    let request = request("");
    assert_eq!(carried_out(&request, &answer), "");
    assert_eq!(request.sheet().page.value(b"1").map(|value| value.len()), Some(32 * 110));
    // A condition that fails is none, and its end is out of place.
    assert_eq!(carried_out(&request, &[&again]), ERROR.repeat(2));
    assert_eq!(carried_out(&request, &["<!--# echo var=\"1\" -->"]).len(), 32 * 110);
    let doubled = "<!--# set var=\"a\" value=\"$a$a\" -->".repeat(20);
    assert_eq!(carried_out(&request, &[&doubled]), ERROR.repeat(7));
    assert_eq!(request.sheet().page.value(b"a").map(|value| value.len()), Some(256 * 1024));
}

#[test]
fn a_value_goes_out_in_parts_however_long_it_is() {
    let request = request("");
    request.sheet().page.set(b"a", "<é>".repeat(50_000).into_bytes()).expect("there is room");
    let all = carried_out(&request, &["-<!--# echo var=\"a\" -->-"]);
    assert!(all == format!("-{}-", "&lt;é&gt;".repeat(50_000)));
}

#[test]
fn expressions_of_a_page_are_bounded_one_by_one_and_together() {
    let page = request("");
    page.sheet().page.set(b"a", b"a".repeat(200)).expect("there is room");
    let slow = r#"<!--# if expr="$a=/(?=a)(a|a|a)*\1[bc]7/" -->yes<!--# endif -->"#;
    assert_eq!(carried_out(&page, &[slow]), format!("{ERROR}yes{ERROR}"));
    let looked_ahead = r#"<!--# if expr="$arg_text=/^(?!x)T(.)/" --><!--# echo var="1" --><!--# endif -->"#;
    assert_eq!(carried_out(&page, &[looked_ahead]), "e");
    let quick = "<!--# if expr=\"$arg_x=/1/\" -->y<!--# endif -->";
    let ordinary = carried_out(&page, &[&quick.repeat(500)]);
    assert_eq!(ordinary, "y".repeat(500));
    let all = carried_out(&page, &[&quick.repeat(1000)]);
    assert!(all.contains(ERROR), "a thousand are too many");
    // It stops for others after some of them.
    let (another, mut out) = (request(""), Vec::new());
    let mut headers = Headers::default();
    headers.push(b"Content-Type", b"text/html");
    let mut ssi =
        begin(&another, &mut Draft { status: 200, headers, length: None }).expect("it has commands");
    let text = quick.repeat(100);
    let mut rest = text.as_bytes();
    assert_eq!(ssi.next(&another, &mut rest, &mut out), Pause::Enough);
    assert!(out.len() < 10);
}
