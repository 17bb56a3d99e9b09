//! What the API's own answers make of a standard, of caching, and of strangers.

use super::difference::traits;
use super::*;
use crate::target::NO_ADDRESS;
use millstream_cache::Now;
use std::time::Duration;

fn answer(status: u16, fields: &[(&str, &str)], body: &str) -> Reply {
    let fields = fields.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let body = body.as_bytes().to_vec();
    let [connect, first_byte, total] = [Duration::ZERO; 3];
    Reply { address: NO_ADDRESS, status, fields, body, connect, first_byte, total }
}

/// 2026-11-21 10:00:00 UTC.
fn now() -> Now {
    Now { unix_milliseconds: 1_795_255_200_000, ..Now::read() }
}

fn said(fields: &[(&str, &str)]) -> Caching {
    caching(&answer(200, fields, "x"), b"GET", &[], now())
}

fn keeps(fields: &[(&str, &str)]) -> Keeps {
    said(fields).keeps
}

#[test]
fn two_answers_that_agree_are_the_standard_to_the_last_byte() {
    let one = answer(200, &[], "same");
    let standard = standard(&one, &one.clone()).expect("a standard");
    assert_eq!(standard.how, How::Body);
    assert_eq!(standard.expect.statuses, [200]);
    assert_eq!(standard.expect.body.as_deref(), Some(b"same".as_slice()));
    assert!(standard.words.contains("4 bytes"), "{}", standard.words);
}

#[test]
fn bodies_that_differ_leave_status_and_length_and_it_says_so() {
    let standard =
        standard(&answer(200, &[], "0123456789"), &answer(200, &[], "012345678901")).expect("a standard");
    assert_eq!(standard.how, How::StatusAndLength);
    assert_eq!((standard.expect.statuses.as_slice(), standard.expect.body.is_none()), (&[200][..], true));
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
fn a_moment_an_age_and_a_missing_date_are_read_as_a_cache_reads_them() {
    assert_eq!(keeps(&[("X-Accel-Expires", "@1795258800")]), Keeps::Seconds(3600));
    assert_eq!(keeps(&[("X-Accel-Expires", "off"), ("Cache-Control", "max-age=9")]), Keeps::Seconds(9));
    assert_eq!(keeps(&[("Expires", "Sat, 21 Nov 2026 11:00:00 GMT")]), Keeps::Seconds(3600));
    let aged = said(&[("Cache-Control", "max-age=60"), ("Age", "20")]);
    assert_eq!(aged.keeps, Keeps::Seconds(40));
    assert!(aged.words.contains("20 seconds old when they arrive (Age), which leaves 40"), "{}", aged.words);
    let whole = caching(&answer(200, &[("Cache-Control", "max-age=60")], ""), b"HEAD", &[], now());
    assert_eq!(whole.keeps, Keeps::Seconds(60), "a HEAD is asked as GET");
}

#[test]
fn who_asks_with_credentials_is_told_that_nobody_shares_the_answers() {
    let fields = [("Authorization".to_owned(), "Bearer x".to_owned())];
    let said = caching(&answer(200, &[("Cache-Control", "max-age=60")], ""), b"GET", &fields, now());
    assert_eq!(said.keeps, Keeps::Seconds(60));
    assert!(said.words.contains("each user has separate responses"), "{}", said.words);
}

#[test]
fn what_would_help_fits_the_reason() {
    for (status, fields, why, advice) in [
        (200, &[("Cache-Control", "no-store")][..], "it sends Cache-Control: no-store", "The API forbids it"),
        (200, &[("Cache-Control", "max-age=0")], "max-age=0, so it is stale immediately", "a longer time"),
        (200, &[("Expires", "0")], "it sends Expires: 0, so it is stale", "a longer time"),
        (200, &[("X-Accel-Expires", "0")], "X-Accel-Expires: 0, which has passed", "The API forbids it"),
        (
            200,
            &[("Cache-Control", "max-age=60"), ("Age", "100")],
            "already 100 seconds old",
            "measure the API itself",
        ),
        (206, &[("Cache-Control", "max-age=60")], "206 is not a complete response", "without Range"),
        (200, &[("Cache-Control", "private")], "it sends Cache-Control: private", "The API forbids it"),
        (200, &[("Set-Cookie", "a=b")], "sets a cookie", "belongs to one client"),
        (200, &[("Vary", "*")], "it sends Vary: *", "names only what"),
        (201, &[], "only responses with 200", "the same for every client"),
        (404, &[], "an error is stored only if", "with status 200"),
        (401, &[], "its status is 401", "with status 200"),
        (500, &[], "its status is 500", "with status 200"),
    ] {
        let said = caching(&answer(status, fields, ""), b"GET", &[], now());
        assert_eq!(said.keeps, Keeps::No, "{fields:?}");
        assert!(said.why.as_ref().is_some_and(|words| words.contains(why)), "{fields:?}: {said:?}");
        assert!(said.advice.as_ref().is_some_and(|words| words.contains(advice)), "{fields:?}: {said:?}");
        let repeated = said.words.matches("would help").count();
        assert!(repeated <= 1, "{}", said.words);
    }
}

#[test]
fn what_the_api_sets_private_beside_a_lifetime_still_counts() {
    let said = said(&[("Cache-Control", "max-age=9"), ("Set-Cookie", "a=b")]);
    assert_eq!(said.keeps, Keeps::No);
    assert!(said.words.contains("about 1x") && said.words.contains("Set-Cookie"), "{}", said.words);
}

#[test]
fn a_post_and_a_session_of_a_silent_api_are_not_kept() {
    assert_eq!(caching(&answer(200, &[], ""), b"POST", &[], now()).keeps, Keeps::No);
    let cookie = [("Cookie".to_owned(), "session=1".to_owned())];
    assert_eq!(caching(&answer(200, &[], ""), b"GET", &cookie, now()).keeps, Keeps::No);
    let said = answer(200, &[("Cache-Control", "max-age=3600")], "");
    let said = caching(&said, b"GET", &cookie, now());
    assert_eq!(said.keeps, Keeps::Seconds(3600));
    assert!(said.words.contains("1 hour."), "{}", said.words);
}

#[test]
fn what_helps_requests_with_a_credential_is_what_serve_shares() {
    let said = |control: &str, field: &str| {
        let answer = answer(200, &[("Cache-Control", control)][..usize::from(!control.is_empty())], "");
        caching(&answer, b"GET", &[(field.to_owned(), "x".to_owned())], now())
    };
    let silent = said("", "Cookie");
    assert!(silent.words.contains("\"Cache-Control: public, max-age=…\" would help"), "{}", silent.words);
    for (control, field, is_passed_on) in [
        ("max-age=60", "Cookie", true),
        ("max-age=60", "X-Api-Key", true),
        ("max-age=60", "Authorization", true),
        ("", "X-Api-Key", true),
        ("public, max-age=60", "Cookie", false),
        ("s-maxage=60", "Authorization", false),
        ("max-age=60", "Accept", false),
        ("no-store", "Cookie", false),
    ] {
        let words = said(control, field).words;
        let says = words.contains("\"millstream serve\" sends requests with a credential to the API");
        assert_eq!(says, is_passed_on, "{control} {field}: {words}");
    }
}

#[test]
fn strangers_differ_in_one_field_each_and_leave_out_the_users_own() {
    let fields = [
        ("Host".to_owned(), "api".to_owned()),
        ("X-Tenant".to_owned(), "7".to_owned()),
        ("Cookie".to_owned(), "a=b".to_owned()),
    ];
    let all = strangers(&fields);
    let named: Vec<&str> = all.iter().map(|(field, _)| field.as_str()).collect();
    let expected = [
        "Accept",
        "Accept-Language",
        "Authorization",
        "X-Api-Key",
        "Origin",
        "User-Agent",
        "X-Tenant",
        "Cookie",
    ];
    assert_eq!(named, expected);
    assert!(all[6].1.iter().all(|(name, _)| name != "X-Tenant"));
    assert_eq!(all[0].1.len(), 4);
}

/// An API that answers whoever asks by the number of the question.
fn asked(own: &Reply, how: How, mut api: impl FnMut(Who, u32) -> Reply) -> Option<Apart> {
    let mut number = 0;
    tell_apart(how, own, &mut |who| {
        number += 1;
        Some(api(who, number))
    })
}

/// What `asked` found of a stranger in `Accept-Language`.
fn told(found: Option<Apart>) -> Telling {
    match found {
        Some(Apart::Yes(answer, difference)) => {
            Telling { field: "Accept-Language".into(), answer, difference }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stranger_who_gets_what_another_one_got_is_told_by_the_field() {
    let own = answer(200, &[], "hello");
    let same = asked(&own, How::Body, |_, _| own.clone());
    assert_eq!(same, Some(Apart::No), "the field means nothing to the API");
    let told = told(asked(&own, How::Body, |who, _| match who {
        Who::User => own.clone(),
        Who::Stranger => answer(200, &[], "nuqneH"),
    }));
    let wrong = |given: &Reply| mixed_up(How::Body, None, &told, given);
    assert_eq!(wrong(&answer(200, &[], "nuqneH")), None);
    let words = wrong(&own).expect("wrong");
    assert!(words.contains("Accept-Language") && words.contains("another client"), "{words}");
    assert!(wrong(&answer(502, &[], "")).is_some_and(|words| words.contains("502")));
}

#[test]
fn header_fields_tell_strangers_apart_as_bodies_do() {
    // The Origin is echoed, and Vary is not there.
    let said = |who: Who, number: u32, body: &str| match who {
        Who::User => answer(200, &[("Date", &number.to_string())], body),
        Who::Stranger => answer(200, &[("Access-Control-Allow-Origin", "https://ladder.invalid")], body),
    };
    for how in [How::Body, How::StatusAndLength] {
        let body = |number: u32| if how == How::Body { "same".to_owned() } else { format!("at {number}") };
        let own = said(Who::User, 0, &body(0));
        let told = told(asked(&own, how, |who, number| said(who, number, &body(number))));
        let wrong = |given: &Reply| mixed_up(how, Some(&own), &told, given);
        assert_eq!(wrong(&said(Who::Stranger, 99, &told_body(&told))), None, "{how:?}");
        let words = wrong(&said(Who::User, 99, &told_body(&told))).expect("somebody else's");
        assert!(words.contains("the Access-Control-Allow-Origin of another client"), "{words}");
    }
    // A value that changes by itself, and a cookie of each client's own, tell nobody apart.
    let own = answer(200, &[("Link", "0"), ("Set-Cookie", "sid=0")], "same");
    let found = asked(&own, How::Body, |_, number| {
        answer(200, &[("Link", &number.to_string()), ("Set-Cookie", &format!("sid={number}"))], "same")
    });
    assert_eq!(found, Some(Apart::No));
}

#[test]
fn answers_that_differ_and_do_not_say_so_are_not_to_be_cached_with_the_reason() {
    let own = answer(200, &[("Vary", "Accept-Encoding, X-Tenant")], "same");
    let telling = |field: &str, answer: Reply| {
        let difference = Difference::between(&traits(&own, How::Body), &traits(&answer, How::Body));
        Telling { field: field.to_owned(), answer, difference }.unnamed(&own)
    };
    let vary = ("Vary", "Accept-Encoding, X-Tenant");
    let echoed = answer(200, &[vary, ("Access-Control-Allow-Origin", "https://ladder.invalid")], "same");
    let cors = telling("Origin", echoed).expect("unnamed");
    assert!(cors.contains("differ by Origin (Access-Control-Allow-Origin differs)"), "{cors}");
    assert!(cors.ends_with("\"Vary: Origin\" would help."), "{cors}");
    let hers = answer(200, &[vary], "hers");
    let personal = telling("Cookie", hers.clone()).expect("unnamed");
    assert!(
        personal.starts_with("The API's responses are personal and must not be cached as they are"),
        "{personal}"
    );
    assert_eq!(telling("x-tenant", hers), None);
    let says = answer(200, &[("Vary", "Origin")], "hers");
    assert_eq!(telling("Origin", says), None, "the stranger's answer says so");
}

#[test]
fn only_fields_whose_values_have_responses_of_their_own_are_said_to_be_kept_apart() {
    let (own, other) = (answer(200, &[], "one"), answer(200, &[], "other"));
    for (field, is_kept) in [
        ("Accept-Language", true),
        ("Accept", true),
        ("X-Tenant", true),
        // A phone is told from the others, and no two other programs from each other.
        ("User-Agent", false),
        ("user-agent", false),
        ("Cookie", false),
        ("X-Api-Key", false),
    ] {
        let difference = Difference::between(&traits(&own, How::Body), &traits(&other, How::Body));
        let telling = Telling { field: field.to_owned(), answer: other.clone(), difference };
        assert_eq!(telling.is_kept_apart(), is_kept, "{field}");
        let words = telling.unnamed(&own).expect("no Vary names it");
        assert!(words.contains(&format!("Vary: {field}")), "{words}");
    }
}

#[test]
fn a_step_that_changes_a_field_that_the_api_does_not_change_is_told_by_it() {
    let own =
        answer(200, &[("Access-Control-Allow-Origin", "*"), ("Expires", "1"), ("Set-Cookie", "a=1")], "x");
    let again =
        answer(200, &[("Access-Control-Allow-Origin", "*"), ("Expires", "2"), ("Set-Cookie", "a=2")], "x");
    let given = |fields: &[(&str, &str)]| changed([&own, &again], &answer(200, fields, "x"));
    assert_eq!(given(&[("Access-Control-Allow-Origin", "*"), ("Expires", "3"), ("Set-Cookie", "a=3")]), None);
    assert_eq!(given(&[("Set-Cookie", "a=3")]), Some("Access-Control-Allow-Origin"));
    assert_eq!(given(&[("Access-Control-Allow-Origin", "*")]), Some("Set-Cookie"));
    let more = [("Access-Control-Allow-Origin", "*"), ("Set-Cookie", "a=1"), ("Vary", "Accept-Encoding")];
    assert_eq!(given(&more), None, "compression is the proxy's own");
}

fn told_body(told: &Telling) -> String {
    String::from_utf8_lossy(&told.answer.body).into_owned()
}

#[test]
fn a_stream_of_events_is_not_to_be_kept_whatever_its_fields_allow() {
    for kind in
        ["text/event-stream", "Text/Event-Stream; charset=utf-8", "multipart/x-mixed-replace;boundary=a"]
    {
        for control in ["max-age=60", ""] {
            let told = said(&[("Content-Type", kind), ("Cache-Control", control)]);
            assert_eq!(told.keeps, Keeps::No, "{kind} {control}");
            assert!(told.words.contains("stream"), "{}", told.words);
        }
    }
    assert_eq!(keeps(&[("Content-Type", "text/events")]), Keeps::Silent);
}

#[test]
fn a_body_that_changed_meanwhile_tells_nobody_apart() {
    let own = answer(200, &[], "12:00");
    let found = asked(&own, How::Body, |_, _| answer(200, &[], "12:01"));
    assert_eq!(found, Some(Apart::Changed));
}

#[test]
fn clients_are_told_apart_by_the_words_that_stay_where_bodies_have_a_counter() {
    let said = |who: Who, number: u32| match who {
        Who::User => answer(200, &[], &format!("{{\"user\":null,\"at\":{number}}}")),
        Who::Stranger => answer(200, &[], &format!("{{\"user\":\"ladder-1\",\"at\":{number}}}")),
    };
    let own = said(Who::User, 0);
    let told = told(asked(&own, How::StatusAndLength, said));
    let wrong =
        |meanwhile: &Reply, given: &Reply| mixed_up(How::StatusAndLength, Some(meanwhile), &told, given);
    let kept = said(Who::User, 99);
    assert_eq!(wrong(&kept, &said(Who::Stranger, 100)), None);
    assert!(wrong(&kept, &kept).is_some_and(|words| words.contains("byte for byte")));
    assert!(wrong(&said(Who::User, 100), &kept).is_some_and(|words| words.contains("another client")));
}

#[test]
fn bytes_that_both_got_are_one_answer_where_the_api_tells_them_apart() {
    let own = answer(200, &[], "\u{1f}packed");
    let told = told(asked(&own, How::StatusAndLength, |who, _| match who {
        Who::User => own.clone(),
        Who::Stranger => answer(200, &[], "\u{1f}geteilt"),
    }));
    let wrong =
        |meanwhile: &Reply, given: &Reply| mixed_up(How::StatusAndLength, Some(meanwhile), &told, given);
    // Packed anew by the proxy, neither has a word of the API's.
    let (one, other) = (answer(200, &[], "abc"), answer(200, &[], "xyz"));
    assert_eq!(wrong(&one, &other), None);
    assert!(wrong(&one, &one).is_some());
}

#[test]
fn a_stranger_whose_bodies_differ_among_themselves_is_held_to_none_of_them() {
    let own = answer(200, &[], "everybody's");
    let told = told(asked(&own, How::Body, |who, number| match who {
        Who::User => own.clone(),
        Who::Stranger => answer(200, &[], &format!("hers, at {number}")),
    }));
    let wrong = |given: &Reply| mixed_up(How::Body, None, &told, given);
    assert_eq!(wrong(&answer(200, &[], "hers, at 99")), None);
    assert!(wrong(&own).is_some_and(|words| words.contains("another client")));
    assert!(wrong(&answer(502, &[], "")).is_some_and(|words| words.contains("502")));
}

#[test]
fn a_status_tells_clients_apart_whatever_the_body_does() {
    let own = answer(200, &[], "1");
    let told = told(asked(&own, How::StatusAndLength, |who, number| match who {
        Who::User => answer(200, &[], &number.to_string()),
        Who::Stranger => answer(401, &[], &number.to_string()),
    }));
    let wrong = |given: Reply| mixed_up(How::StatusAndLength, None, &told, &given);
    assert_eq!(wrong(answer(401, &[], "77")), None);
    assert!(wrong(answer(200, &[], "77")).is_some_and(|words| words.contains("another client")));
}

#[test]
fn what_changes_by_itself_tells_nobody_apart() {
    let own = answer(200, &[], "worker 0 second 10 value 1");
    let by_worker = |workers: u32| {
        asked(&own, How::StatusAndLength, |_, number| {
            answer(200, &[], &format!("worker {} second {}", number % workers, 10 + number / 3))
        })
    };
    for workers in 1..=8 {
        assert_eq!(by_worker(workers), Some(Apart::No), "{workers} workers in turn, and a clock");
    }
    let found = tell_apart(How::StatusAndLength, &own, &mut |_| None);
    assert_eq!(found, None, "no answer is no finding");
}

#[test]
fn an_api_that_fails_now_and_then_tells_nobody_apart() {
    let own = answer(200, &[], "a page");
    for how in [How::Body, How::StatusAndLength] {
        // Of four answers one is a failure, whoever asks.
        for phase in 0..4 {
            let found = asked(&own, how, |_, number| match (number + phase) % 4 {
                0 => answer(500, &[], "oh"),
                _ => own.clone(),
            });
            assert_eq!(found, Some(Apart::No), "{how:?} {phase}");
        }
        // Who always gets one is told apart.
        let found = asked(&own, how, |who, _| match who {
            Who::User => own.clone(),
            Who::Stranger => answer(500, &[], "oh"),
        });
        assert_eq!(told(found).answer.status, 500, "{how:?}");
    }
}
