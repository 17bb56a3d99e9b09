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
        assert!(regex.is_match(text.as_bytes()).expect("within the limit"), "{source} should match {text}");
    }
    for text in others {
        assert!(
            !regex.is_match(text.as_bytes()).expect("within the limit"),
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
}

#[track_caller]
fn check_bytes(source: &str, matching: &[&[u8]], others: &[&[u8]]) {
    let regex = compiled(source, false).unwrap_or_else(|message| panic!("{message}"));
    let matches = |text: &[u8]| regex.compiled.is_match(text).expect("within the limit");
    for text in matching {
        assert!(matches(text), "{source} should match {}", text.escape_ascii());
    }
    for text in others {
        assert!(!matches(text), "{source} should not match {}", text.escape_ascii());
    }
}

#[test]
fn an_expression_is_of_bytes_also_where_it_is_written_with_other_letters() {
    check_bytes("^/é+$", &["/é".as_bytes(), b"/\xc3\xa9\xa9"], &["/éé".as_bytes()]);
    check_bytes("^/[é]$", &[b"/\xc3", b"/\xa9"], &["/é".as_bytes(), b"/e"]);
    check_bytes("^/[à-ü]$", &[b"/\xc3", b"/\xa0", b"/\xb5", b"/\xbc"], &[b"/\x9f", b"/\xc4", b"/a"]);
    check_bytes(r"^/\é$", &["/é".as_bytes()], &[b"/e"]);
    check_bytes("(*UTF8)^/[é]$", &["/é".as_bytes()], &[b"/e"]);
}

#[test]
fn escapes_mean_what_they_mean_in_pcre() {
    check_bytes(r"^\v$", &[b"\n", b"\x0b", b"\x0c", b"\r", b"\x85"], &[b"a", b" "]);
    check_bytes(r"^[\v]\V$", &[b"\na"], &[b"\n\n", b"aa"]);
    check_bytes(r"^\h\H$", &[b"\xa0a", b"\tb"], &[b"a ", b"aa"]);
    check_bytes(r"^\cA\ca\c[$", &[b"\x01\x01\x1b"], &[b"cAcac["]);
    check_bytes(r"^\101\60\0$", &[b"A0\0"], &[b"101"]);
    check_bytes(r"^\o{101}\x41\x{42}\x$", &[b"AAB\0"], &[b"101"]);
    check_bytes(r"^[\101-\103]$", &[b"B"], &[b"D", b"1"]);
    check_bytes(r"^(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\10$", &[b"abcdefghijj"], &[b"abcdefghij\x08"]);
    check_bytes(r"^(a)\10$", &[b"a\x08"], &[b"aa0"]);
    check_bytes(r"^\R$", &[b"\r\n", b"\n", b"\x85"], &[b"a", b"\n\n"]);
    check_bytes(r"^\X\C$", &[b"\r\n\n", b"\xe9\xe9"], &[b"\r\n", b"a"]);
    check_bytes(r"^\p{L}\pN\P{L}$", &[b"\xe97\xd7", b"x1-"], &[b"\xd7x-", b"x1x"]);
    check_bytes(r"^[\p{Lu}_]+\p{^L}$", &[b"A_1"], &[b"a1", b"Ax"]);
    check_bytes(r"^\p{Greek}?$", &[b""], &[b"a"]);
}

#[test]
fn groups_are_referred_to_and_called_as_in_pcre() {
    check(r"^(a|b)\g1$", &["aa", "bb"], &["ab"]);
    check(r"^(a|b)\g{-1}\g{1}$", &["aaa"], &["aab"]);
    check(r"^(?<n>a|b)\k{n}\g{n}\k'n'(?P=n)$", &["aaaaa"], &["aaaab"]);
    check(r"^(a|b)(?1)\g<1>\g'1'$", &["abab"], &["abac"]);
    check(r"^(?<n>a|b)(?&n)(?P>n)(?-1)$", &["abab"], &["abac"]);
    check(r"^a(?#one (not a group)b$", &["ab"], &["a"]);
    let called = compiled(r"^(?<n>a|(b))(?&n)$", false).expect("it compiles");
    let captures = called.captures(b"ab".as_slice()).expect("within the limit").expect("it matches");
    assert_eq!(captures.get(1).map(|group| group.range()), Some(0..1), "what the group itself captured");
    assert!(captures.get(2).is_none());
    let dup = compiled(r"(?J)^(?:(?<v>a)|(?<v>b))$", false).expect("it compiles");
    assert_eq!(dup.names, [("v".into(), 1), ("v".into(), 2)]);
}

#[test]
fn what_the_engine_would_take_for_something_else_is_refused() {
    for source in [
        r"^(\((?:[^()]|(?1))*\))$",
        r"^(?R)?$",
        r"(?<a>(?&b))(?<b>(?&a))",
        r"(?+1)(a)",
        r"(?|a|b)",
        r"(?u)a",
        r"(?^i)a",
        r"(?C1)a",
        r"\j",
        r"\x{100}",
        r"\o{400}",
        r"\p{Nothing}",
        r"[\N]",
        "(?i",
    ] {
        let message = compiled(source, false).expect_err(source);
        assert!(message.starts_with("invalid regular expression"), "{message}");
    }
}

#[test]
fn calls_of_calls_have_a_bound() {
    let doubled: String = (1..=40).map(|group| format!("((?{group})(?{group}))")).collect();
    assert!(compiled(&format!("(a){doubled}"), false).expect_err("too large").contains("too large"));
}

#[test]
fn an_expression_that_needs_no_backtracking_has_no_limit_to_reach() {
    let text = [vec![b'a'; 60_000], b"b".to_vec()].concat();
    for source in ["^(a+)+$", r"^(?:a|a?)+\.php$", r"\.(?:a+)*$", "^(a*)*(a*)*c"] {
        let regex = compiled(source, false).expect("it compiles");
        assert_eq!(regex.is_match(text.as_slice()).ok(), Some(false), "{source}");
    }
}

#[test]
fn a_dollar_does_not_match_before_a_final_line_feed() {
    check(r"\.php$", &["/a.php"], &["/a.php\n"]);
}

#[test]
fn case_is_ignored_where_it_is_asked_for() {
    let regex = compiled(r"\.JPG$", true).expect("it compiles");
    assert!(regex.ignore_case && regex.is_match(b"a.jpg").expect("within the limit"));
    assert_eq!(regex.source, r"\.JPG$");
}

#[test]
fn named_groups_are_listed_in_all_three_spellings_with_their_numbers() {
    let regex = compiled(r"^(?<one>a)(b)(?P<two>c)(?'three'd)$", false).expect("it compiles");
    assert_eq!(regex.names, [("one".into(), 1), ("two".into(), 3), ("three".into(), 4)]);
    let captures = regex.captures(b"abcd".as_slice()).expect("within the limit").expect("it matches");
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

#[test]
fn what_a_looser_expression_rules_out_is_decided_at_once() {
    let deep = b"/products/garden/furniture/tables/oak-and-other-kinds-of-wood/round".as_slice();
    for (source, text) in [
        (r"(?:[\w-]+/?)+/\.(?!well-known)", deep),
        (r"^/(?:[\w-]+/?)+(?<!/old)\.php$", deep),
        (r"^(?=/p)(?:\w+|/)*-$", deep),
        (r"^((?:[\w-]+/?|/)+)=\1$", deep),
        (r"^(?>/?)(?:\w+/?)+(?:=)(?!b)", deep),
    ] {
        let regex = compiled(source, false).expect("it compiles");
        assert_eq!(regex.is_match(text), Ok(false), "{source}");
        assert!(regex.captures(text).is_ok_and(|captures| captures.is_none()), "{source}");
    }
    let regex = compiled(r"^(?:a|aa)+(?![bc])c?$", false).expect("it compiles");
    assert_eq!(regex.is_match(&[b"a".repeat(80), b"c".to_vec()].concat()), Err(Exhausted));
    check(r"(?:[\w-]+/?)+/\.(?!well-known)", &["/a/.git"], &["/a/.well-known", "/a/git"]);
    assert!(compiled(r"^/a.*\.php$", false).expect("it compiles").loose.is_none(), "it is linear");
}

const TOKENS: &[&str] = &[
    "a",
    "b",
    ".",
    "/",
    "ab",
    "[^a]",
    r"\xe9",
    r"\w",
    r"\b",
    r"\B",
    r"\K",
    r"\1",
    "^",
    "$",
    "(",
    "(",
    ")",
    ")",
    ")",
    "(?:",
    "(?=",
    "(?!",
    "(?<=",
    "(?<!",
    "(?>",
    "(?i)",
    "|",
    "*",
    "+",
    "?",
    "*+",
    "++",
    "{2}",
    "{0,2}?",
    "(?(1)a|b)",
    "(a)",
    r"(?<!a)",
    "(?!b)",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn any_expression_compiles_or_is_refused(source in "[a\\\\\\[\\](){}?*+^$|<>=!:PQE,1-9&é-]{0,24}|\\PC{0,24}", ignore_case: bool) {
        if let Ok(regex) = compiled(&source, ignore_case) {
            let _ = regex.is_match(b"/a\xffb-\xc3\xa9".as_slice());
        }
    }

    #[test]
    fn what_an_expression_matches_its_looser_form_matches_too(
        source in proptest::collection::vec(proptest::sample::select(TOKENS), 1..14).prop_map(|tokens| tokens.concat()),
        ignore_case: bool,
        texts in proptest::collection::vec("[abAB./\n]{0,6}", 8),
    ) {
        if let Ok(regex) = compiled(&source, ignore_case) {
            for text in texts.iter().map(String::as_bytes).chain([&b"a\xe9\xe9b"[..]]) {
                if let (Ok(true), Some(loose)) = (regex.compiled.is_match(text), &regex.loose) {
                    prop_assert!(loose.is_match(text).expect("it is linear"), "{} on {:?}", source, text);
                }
            }
        }
    }
}
