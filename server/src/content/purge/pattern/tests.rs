//! What each expression means, or that it is refused.

use super::*;

fn names(expected: &[&str]) -> Option<Vec<Vec<u8>>> {
    Some(expected.iter().map(|name| name.as_bytes().to_vec()).collect())
}

#[test]
fn tags_are_read_from_what_clients_write() {
    let check =
        |text: &str, expected: &[&str]| assert_eq!(tags(text.as_bytes()), Ok(names(expected)), "{text}");
    check("(^|,)(mytag|othertag)(,|$)", &["mytag", "othertag"]);
    check("(^|,)one(,|$)", &["one"]);
    check(r"(^|,)(post\-1|post_type\-3)(,|$)", &["post-1", "post_type-3"]);
    check("((^|,)cat_c_p(,|$))|((^|,)cat_p_17(,|$))", &["cat_c_p", "cat_p_17"]);
    check("((^|,)cat_p_17(,|$))", &["cat_p_17"]);
    check(r"(^|,)(a\|b)(,|$)", &["a|b"]);
    assert_eq!(tags(b".*"), Ok(None));
    assert_eq!(tags(b""), Ok(None));
}

#[test]
fn tags_that_an_expression_only_describes_are_refused() {
    for text in [
        "mytag",
        ".+",
        "(^|,)(my.*)(,|$)",
        "(^|,)(a|)(,|$)",
        "(^|,)(a|b)",
        r"(^|,)(a\d)(,|$)",
        "(a|b)",
        "(^|,)(a|b(,|$)",
    ] {
        assert_eq!(tags(text.as_bytes()), Err(TAGS), "{text}");
    }
}

#[test]
fn hosts_are_names_between_anchors() {
    let check =
        |text: &str, expected: &[&str]| assert_eq!(hosts(text.as_bytes()), Ok(names(expected)), "{text}");
    check("^(fos.lo|fos2.lo)$", &["fos.lo", "fos2.lo"]);
    check(r"^www\.example\.com$", &["www.example.com"]);
    assert_eq!(hosts(b".*"), Ok(None));
    for text in ["example.com", "^example", ".*example.com", "^(.*\\.example.com)$", "^()$"] {
        assert_eq!(hosts(text.as_bytes()), Err(HOSTS), "{text}");
    }
}

#[test]
fn urls_are_prefixes_or_one_url() {
    let prefix = |path: &str| Ok(Urls::Prefix(path.as_bytes().to_vec()));
    let check = |text: &str, expected| assert_eq!(urls(text.as_bytes()), expected, "{text}");
    check("^/articles/.*", prefix("/articles/"));
    check("^/articles/.*$", prefix("/articles/"));
    check("^/articles", prefix("/articles"));
    check(r"^/a\.html", prefix("/a.html"));
    check("^/articles$", Ok(Urls::Exact(b"/articles".to_vec())));
    check(r"^/what\?$", Ok(Urls::Exact(b"/what?".to_vec())));
    check(".*", Ok(Urls::Any));
    check("/articles/.*", Err(UNANCHORED));
    check("\\.png$", Err(UNANCHORED));
    for text in ["^articles", "^/a.html", "^/(a|b)", "^/a+", "^/a[0-9]", r"^/a\", "^/a.*b"] {
        check(text, Err(URL));
    }
}

#[test]
fn a_target_is_a_url_with_at_most_a_wildcard_behind_it() {
    assert_eq!(target_prefix(b"/blog/.*"), Some(&b"/blog/"[..]));
    assert_eq!(target_prefix(b"/blog/*"), Some(&b"/blog/"[..]));
    assert_eq!(target_prefix(b"/blog/"), None);
    assert_eq!(plain_target(b"/blog/index.php?a=1.*"), Ok(()));
    assert_eq!(plain_target(b"/(a|b)/.*"), Err(URL));
    assert_eq!(plain_target(b"/a.*b.*"), Err(URL));
}
