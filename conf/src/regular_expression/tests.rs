//! Expressions as nginx users write them: what they match, their names, and what is refused.

use proptest::prelude::*;

use super::*;

fn compiled(source: &str, ignore_case: bool) -> Result<Regex, String> {
    let mut diagnostics = Diagnostics::default();
    let regex = compile(source, ignore_case, Span::default(), &mut diagnostics);
    regex.ok_or_else(|| diagnostics.sorted().iter().map(|finding| finding.message.clone()).collect())
}

#[track_caller]
fn check(source: &str, matching: &[&str], others: &[&str]) {
    let regex = compiled(source, false).unwrap_or_else(|message| panic!("{message}"));
    for text in matching {
        assert!(
            regex.compiled.is_match(text.as_bytes()).expect("within the limit"),
            "{source} should match {text}"
        );
    }
    for text in others {
        assert!(
            !regex.compiled.is_match(text.as_bytes()).expect("within the limit"),
            "{source} should not match {text}"
        );
    }
}

#[test]
fn expressions_of_real_configurations_match_as_in_nginx() {
    check(r"\.(jpg|jpeg|png|gif)$", &["/a.jpg"], &["/a.jpgx", "/ajpg"]);
    check(r"^/(?!admin).*\.php$", &["/index.php"], &["/admin/x.php"]);
    check(r"^~^www\d+\.example\.com$", &[], &["www1.example.com"]);
    check(
        r"^(?:(?:www\.)?)([^.]+)\.example\.com$",
        &["www.a.example.com", "a.example.com"],
        &["example.com"],
    );
    check(r"^/a{b}$", &["/a{b}"], &["/ab"]);
    check(r"^/[0-9a-f]{2,}/x{1}$", &["/af0/x"], &["/a/x"]);
    check(r"[[:digit:]]+[[]", &["12["], &["12"]);
    check(r"^[]a]$", &["]", "a"], &["b"]);
    check(r"^\/a\-b\_c\<\>\%\@\!$", &["/a-b_c<>%@!"], &["/a"]);
    check(r"^\Qa.b\E+$", &["a.bb"], &["axb"]);
    check(r"^a\hb$", &["a b", "a\tb"], &["afb"]);
    check(r"^[\w.&&-]+$", &["a.b&-"], &["a b"]);
    check(r"^\x2fa\x{2f}$", &["/a/"], &["/a"]);
    check(r"^(a+)+$", &["aaaa"], &["aaab"]);
    check(r"^(.)\1$", &["aa"], &["ab"]);
    check(r"(?i)^abc$", &["ABC"], &["x"]);
    check(r"^(?>a*)b", &["aab"], &["aac"]);
}

#[test]
fn digits_and_letters_are_those_of_ascii_and_a_dot_is_a_byte() {
    check(r"^\d$", &["1"], &["٣"]);
    check(r"^\w$", &["a"], &["é"]);
    check(r"^..$", &["é"], &["éé"]);
    check(r"(*UTF8)^.$", &["é"], &["éé"]);
    let any = compiled("^/.$", false).expect("it compiles");
    assert!(any.compiled.is_match(b"/\xff".as_slice()).expect("within the limit"));
    check("^/[é]$", &["/é"], &["/e"]);
}

#[test]
fn a_dollar_does_not_match_before_a_final_line_feed() {
    check(r"\.php$", &["/a.php"], &["/a.php\n"]);
}

#[test]
fn case_is_ignored_where_it_is_asked_for() {
    let regex = compiled(r"\.JPG$", true).expect("it compiles");
    assert!(regex.ignore_case && regex.compiled.is_match(b"a.jpg".as_slice()).expect("within the limit"));
    assert_eq!(regex.source, r"\.JPG$");
}

#[test]
fn named_groups_are_listed_in_all_three_spellings_with_their_numbers() {
    let regex = compiled(r"^(?<one>a)(b)(?P<two>c)(?'three'd)$", false).expect("it compiles");
    assert_eq!(regex.names, [("one".into(), 1), ("two".into(), 3), ("three".into(), 4)]);
    let captures =
        regex.compiled.captures(b"abcd".as_slice()).expect("within the limit").expect("it matches");
    assert_eq!(captures.get(4).map(|group| group.start()), Some(3));
}

#[test]
fn what_cannot_be_compiled_is_an_error_and_not_a_panic() {
    for source in ["(", "a)", "[a", "*a", "(?<x>", r"\", "(?<a>x)(?<a>y)", "((a{999}){999}){999}"] {
        let message = compiled(source, false).expect_err(source);
        assert!(message.starts_with("invalid regular expression"), "{message}");
    }
    assert!(compiled(&"(".repeat(5000), false).is_err());
    assert!(compiled(&"a".repeat(MAX_LENGTH + 1), false).expect_err("too long").contains("longer than"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn any_expression_compiles_or_is_refused(source in "[a\\\\\\[\\](){}?*+^$|<>=!:PQE,1-9&é-]{0,24}|\\PC{0,24}", ignore_case: bool) {
        if let Ok(regex) = compiled(&source, ignore_case) {
            let _ = regex.compiled.is_match(b"/a\xffb-\xc3\xa9".as_slice());
        }
    }
}
