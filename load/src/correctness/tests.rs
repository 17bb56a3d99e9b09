//! What the API's own answers make of a standard, of caching, and of strangers.

use super::*;

fn answer(status: u16, fields: &[(&str, &str)], body: &str) -> Direct {
    let fields = fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    Direct { status, fields, body: body.as_bytes().to_vec() }
}

fn keeps(fields: &[(&str, &str)]) -> Keeps {
    caching(&answer(200, fields, "x"), "GET", &[]).keeps
}

#[test]
fn two_answers_that_agree_are_the_standard_to_the_last_byte() {
    let one = answer(200, &[], "same");
    let standard = standard(&one, &one.clone()).expect("a standard");
    assert_eq!(standard.how, How::Body);
    assert_eq!(standard.expect.status, Some(200));
    assert_eq!(standard.expect.body.as_deref(), Some(b"same".as_slice()));
    assert!(standard.words.contains("4 bytes"), "{}", standard.words);
}

#[test]
fn bodies_that_differ_leave_status_and_length_and_it_says_so() {
    let standard =
        standard(&answer(200, &[], "0123456789"), &answer(200, &[], "012345678901")).expect("a standard");
    assert_eq!(standard.how, How::StatusAndLength);
    assert_eq!((standard.expect.status, standard.expect.body.is_none()), (Some(200), true));
    assert_eq!(standard.wrong_length(11.0), None);
    assert!(standard.wrong_length(2.0).is_some(), "an empty page is not the API's");
    assert!(standard.wrong_length(400.0).is_some());
    assert!(standard.words.contains("cannot be compared"), "{}", standard.words);
}

#[test]
fn an_api_that_fails_is_not_measured_and_told_what_to_do() {
    let failing = answer(500, &[], "");
    let words = standard(&answer(200, &[], ""), &failing).expect_err("nothing to compare with");
    assert!(words.contains("500"), "{words}");
    let words = standard(&answer(401, &[], ""), &failing).expect_err("nothing to compare with");
    assert!(words.contains("-H"), "{words}");
}

#[test]
fn what_the_api_says_of_caching_is_read_as_a_cache_reads_it() {
    assert_eq!(keeps(&[("Cache-Control", "public, max-age=60")]), Keeps::Seconds(60));
    assert_eq!(keeps(&[("cache-control", "max-age=60, s-maxage=5")]), Keeps::Seconds(5));
    assert_eq!(keeps(&[("X-Accel-Expires", "7"), ("Cache-Control", "max-age=60")]), Keeps::Seconds(7));
    assert_eq!(keeps(&[("Content-Type", "text/plain")]), Keeps::Silent);
    let dated = [("Date", "Thu, 01 Jan 1970 00:01:00 GMT"), ("Expires", "Thu, 01 Jan 1970 00:03:00 GMT")];
    assert_eq!(keeps(&dated), Keeps::Seconds(120));
    for forbidding in [
        ("Cache-Control", "no-store"),
        ("Cache-Control", "private, max-age=60"),
        ("Cache-Control", "no-cache"),
        ("Cache-Control", "max-age=0"),
        ("Set-Cookie", "a=b"),
        ("Vary", "Accept, *"),
        ("Expires", "0"),
    ] {
        assert_eq!(keeps(&[forbidding]), Keeps::No, "{forbidding:?}");
    }
}

#[test]
fn what_the_api_sets_private_beside_a_lifetime_still_counts() {
    let said =
        caching(&answer(200, &[("Cache-Control", "max-age=9"), ("Set-Cookie", "a=b")], ""), "GET", &[]);
    assert_eq!(said.keeps, Keeps::No);
    assert!(said.words.contains("about 1x") && said.words.contains("Set-Cookie"), "{}", said.words);
}

#[test]
fn a_post_and_a_session_of_a_silent_api_are_not_kept() {
    assert_eq!(caching(&answer(200, &[], ""), "POST", &[]).keeps, Keeps::No);
    let cookie = [("Cookie".to_owned(), "session=1".to_owned())];
    assert_eq!(caching(&answer(200, &[], ""), "GET", &cookie).keeps, Keeps::No);
    let said = answer(200, &[("Cache-Control", "max-age=3600")], "");
    let said = caching(&said, "GET", &cookie);
    assert_eq!(said.keeps, Keeps::Seconds(3600));
    assert!(said.words.contains("1 hour."), "{}", said.words);
}

#[test]
fn strangers_differ_in_one_field_each_and_leave_out_the_users_own() {
    let fields = [
        ("Host".to_owned(), "api".to_owned()),
        ("X-Tenant".to_owned(), "7".to_owned()),
        ("Cookie".to_owned(), "a=b".to_owned()),
    ];
    let all = strangers(&fields);
    let named: Vec<&str> = all.iter().map(|stranger| stranger.field.as_str()).collect();
    assert_eq!(named, ["Accept-Language", "Authorization", "Origin", "User-Agent", "X-Tenant", "Cookie"]);
    assert!(all[4].fields.iter().all(|(name, _)| name != "X-Tenant"));
    assert_eq!(all[0].fields.len(), 4);
}

#[test]
fn a_stranger_who_gets_what_another_one_got_is_told_by_the_field() {
    let own = answer(200, &[], "hello");
    let standard = standard(&own, &own.clone()).expect("a standard");
    let stranger = strangers(&[]).remove(0);
    assert!(
        telling(&standard, &own, stranger.clone(), own.clone()).is_none(),
        "the field means nothing to the API"
    );
    let told = telling(&standard, &own, stranger, answer(200, &[], "nuqneH")).expect("another answer");
    assert_eq!(mixed_up(&own, &told, &answer(200, &[], "nuqneH")), None);
    let words = mixed_up(&own, &told, &own).expect("wrong");
    assert!(words.contains("Accept-Language") && words.contains("somebody else"), "{words}");
    assert!(mixed_up(&own, &told, &answer(502, &[], "")).is_some_and(|words| words.contains("502")));
}
