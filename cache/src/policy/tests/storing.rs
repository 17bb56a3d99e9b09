//! What is stored and what is not (RFC 9111 §3, §3.5, §4.2.4, §4.4), in nginx's order of who decides.

use super::*;
use crate::policy::freshness::LONGEST;
use crate::samples::conf;

#[test]
fn headers_decide_in_nginxs_order() {
    check("", Err(Reason::NoLifetime));
    check("Cache-Control: max-age=60", Ok(60));
    check("Cache-Control: max-age=60, s-maxage=10", Ok(10));
    check("Cache-Control: max-age=60\nExpires: Sat, 21 Nov 2026 11:00:00 GMT", Ok(60));
    check("Expires: Sat, 21 Nov 2026 11:00:00 GMT", Ok(3600));
    check("Expires: Sat, 21 Nov 2026 11:00:00 GMT\nDate: Sat, 21 Nov 2026 10:30:00 GMT", Ok(1800));
    check("Expires: 0", Err(Reason::Expired));
    check("Expires: Sat, 21 Nov 2026 09:00:00 GMT", Err(Reason::Expired));
    check("Cache-Control: max-age=0", Err(Reason::Expired));
    check_of(&apart(), 200, "Cache-Control: max-age=0, stale-while-revalidate=5", Ok(0));
    check("Cache-Control: max-age=0, must-revalidate, stale-while-revalidate=5", Err(Reason::Expired));
    check("X-Accel-Expires: 30\nCache-Control: no-store, max-age=60", Ok(30));
    check("X-Accel-Expires: 0\nCache-Control: max-age=60", Err(Reason::XAccelExpires));
    check("X-Accel-Expires: @1795255300", Ok(100));
    check("X-Accel-Expires: @1795255100", Err(Reason::XAccelExpires));
    check("X-Accel-Expires: soon\nCache-Control: max-age=60", Ok(60));
    for value in
        ["99999999999999999999", "@99999999999999999999", "9223372036854775808", "", "@", "+5", "5 5"]
    {
        check(&format!("X-Accel-Expires: {value}\nCache-Control: max-age=60"), Ok(60));
        check(&format!("X-Accel-Expires: {value}\nCache-Control: no-store"), Err(Reason::NoStore));
    }
    check("X-Accel-Expires: 9223372036854775807\nCache-Control: no-store", Ok(LONGEST as i64));
    check("Cache-Control: no-store, max-age=60", Err(Reason::NoStore));
    check("Cache-Control: private, max-age=60", Err(Reason::Private));
    check("Cache-Control: no-cache, max-age=60", Err(Reason::NoCache));
    check("Cache-Control: max-age=99999999999999999999", Ok(LONGEST as i64));
}

#[test]
fn cookies_and_vary_keep_an_answer_from_being_shared() {
    check("Cache-Control: max-age=60\nSet-Cookie: a=b", Err(Reason::SetCookie));
    check("Cache-Control: max-age=60\nVary: Accept, *", Err(Reason::Vary));
    check("Cache-Control: max-age=60\nVary: Accept", Ok(60));
    let ignore = IgnoreHeaders { set_cookie: true, vary: true, ..IgnoreHeaders::default() };
    let lines = "Cache-Control: max-age=60\nVary: *\nSet-Cookie: a=b";
    assert_eq!(seconds(&conf(), &ignore, get(), 200, lines), Ok(60));
}

#[test]
fn ignored_headers_leave_it_to_proxy_cache_valid() {
    let mut conf = conf();
    conf.valid = vec![
        Valid { status: ValidStatus::Is(404), time: Duration::ZERO },
        Valid { status: ValidStatus::Is(200), time: Duration::from_secs(600) },
        Valid { status: ValidStatus::Any, time: Duration::from_secs(5) },
    ];
    let all =
        IgnoreHeaders { x_accel_expires: true, cache_control: true, expires: true, ..Default::default() };
    let lines = "Cache-Control: private\nExpires: 0\nX-Accel-Expires: 0";
    for (ignore, status, lines, expected) in [
        (all, 200, lines, Ok(600)),
        (all, 404, lines, Err(Reason::NoLifetime)),
        (all, 503, lines, Ok(5)),
        (IgnoreHeaders::default(), 200, "", Ok(600)),
        (IgnoreHeaders::default(), 200, "Cache-Control: max-age=7", Ok(7)),
        (IgnoreHeaders::default(), 206, "Cache-Control: max-age=7", Err(Reason::Status)),
        (IgnoreHeaders::default(), 304, "Cache-Control: max-age=7", Err(Reason::Status)),
        (IgnoreHeaders::default(), 599, "Cache-Control: max-age=7", Ok(7)),
    ] {
        assert_eq!(seconds(&conf, &ignore, get(), status, lines), expected, "{status} {lines}");
    }
}

#[test]
fn answers_to_credentials_are_shared_only_where_rfc_9111_allows() {
    let request = RequestFacts { has_authorization: true, ..get() };
    let plain = IgnoreHeaders::default();
    let ignoring = IgnoreHeaders { cache_control: true, ..plain };
    let mut valid = conf();
    valid.valid = vec![Valid { status: ValidStatus::Any, time: Duration::from_secs(9) }];
    for (control, expected) in [
        ("max-age=60", Err(Reason::Authorization)),
        ("max-age=60, public", Ok(60)),
        ("max-age=60, must-revalidate", Ok(60)),
        ("s-maxage=60", Ok(60)),
        ("max-age=60, proxy-revalidate", Err(Reason::Authorization)),
    ] {
        let lines = format!("Cache-Control: {control}");
        assert_eq!(seconds(&conf(), &plain, request, 200, &lines), expected, "{control}");
    }
    assert_eq!(seconds(&valid, &ignoring, request, 200, "Cache-Control: public"), Err(Reason::Authorization));
    assert_eq!(seconds(&valid, &plain, get(), 200, ""), Ok(9));
}

#[test]
fn an_answer_that_varies_by_a_field_made_here_is_not_stored() {
    let made = ProxyCache { made_fields: ["x-user".into()].into(), ..conf() };
    let plain = IgnoreHeaders::default();
    for (vary, expected) in
        [("X-User", Err(Reason::Vary)), ("Accept-Language, x-user", Err(Reason::Vary)), ("X-Users", Ok(60))]
    {
        let lines = format!("Cache-Control: max-age=60\nVary: {vary}");
        assert_eq!(seconds(&made, &plain, get(), 200, &lines), expected, "{vary}");
    }
    let ignoring = IgnoreHeaders { vary: true, ..plain };
    assert_eq!(seconds(&made, &ignoring, get(), 200, "Cache-Control: max-age=60\nVary: X-User"), Ok(60));
}

#[test]
fn methods_are_looked_up_stored_and_invalidate_as_they_should() {
    let post = ProxyCache { cache_post: true, ..conf() };
    let lines = "Cache-Control: max-age=60";
    assert_eq!(
        seconds(&conf(), &IgnoreHeaders::default(), of(Method::Post), 200, lines),
        Err(Reason::Method)
    );
    assert_eq!(seconds(&post, &IgnoreHeaders::default(), of(Method::Post), 200, lines), Ok(60));
    assert_eq!(seconds(&post, &IgnoreHeaders::default(), of(Method::Head), 200, lines), Err(Reason::Method));
    assert!(
        looks_up(&conf(), Method::Head) && !looks_up(&conf(), Method::Post) && !looks_up(&post, Method::Put)
    );
    assert!(
        invalidates(Method::Other, 204) && invalidates(Method::Post, 303) && invalidates(Method::Delete, 200)
    );
    assert!(
        !invalidates(Method::Post, 404) && !invalidates(Method::Get, 200) && !invalidates(Method::Query, 200)
    );
}

#[test]
fn stale_answers_are_used_where_answer_and_configuration_allow() {
    let all = UseStale { error: true, updating: true, http_500: true, http_404: true, ..UseStale::default() };
    let none = UseStale::default();
    let at = |seconds| now().after(Duration::from_secs(seconds));
    for (control, use_stale, cause, seconds, expected) in [
        ("max-age=10", &all, StaleCause::Updating, 1000, true),
        ("max-age=10", &none, StaleCause::Updating, 11, false),
        ("max-age=10, stale-while-revalidate=5", &none, StaleCause::Updating, 14, true),
        ("max-age=10, stale-while-revalidate=5", &none, StaleCause::Updating, 15, false),
        ("max-age=10, stale-while-revalidate=5", &none, StaleCause::Error, 14, false),
        ("max-age=10, stale-if-error=5", &none, StaleCause::Error, 14, true),
        ("max-age=10, stale-if-error=5", &none, StaleCause::Status(503), 14, true),
        ("max-age=10, stale-if-error=5", &none, StaleCause::Status(404), 14, false),
        ("max-age=10, must-revalidate, stale-if-error=5", &all, StaleCause::Error, 14, false),
        ("max-age=10, proxy-revalidate", &all, StaleCause::Error, 14, false),
        ("s-maxage=10", &all, StaleCause::Error, 14, false),
        ("s-maxage=10, stale-while-revalidate=5", &none, StaleCause::Updating, 14, true),
        ("max-age=10", &all, StaleCause::Status(404), 14, true),
        ("max-age=10", &all, StaleCause::Status(403), 14, false),
        ("max-age=10", &all, StaleCause::Timeout, 14, false),
    ] {
        let fields = headers(&format!("Cache-Control: {control}"));
        let Storable::Yes(lifetime) =
            storable(&conf(), &IgnoreHeaders::default(), &get(), 200, fields.view(), now(), false)
        else {
            panic!("{control} is not stored")
        };
        let conf = ProxyCache { use_stale: *use_stale, ..conf() };
        let may = lifetime.may_serve_stale(cause, &conf, NOW * 1000, at(seconds));
        assert_eq!(may, expected, "{control} {cause:?}");
    }
}

#[test]
fn a_part_is_stored_where_parts_are_kept() {
    let part = RequestFacts { partial: true, ..get() };
    let plain = IgnoreHeaders::default();
    let lines = "Cache-Control: max-age=60";
    assert_eq!(seconds(&conf(), &plain, part, 206, lines), Ok(60));
    assert_eq!(seconds(&conf(), &plain, part, 304, lines), Err(Reason::Status));
    assert_eq!(seconds(&conf(), &plain, part, 101, lines), Err(Reason::Status));
}

#[test]
fn an_answer_to_post_stands_for_a_get_where_it_says_so() {
    let post = RequestFacts { is_of_target: true, ..of(Method::Post) };
    let plain = IgnoreHeaders::default();
    let valid = vec![Valid { status: ValidStatus::Any, time: Duration::from_secs(9) }];
    let valid = ProxyCache { valid, ..apart() };
    for (conf, status, lines, expected) in [
        (&apart(), 200, "Cache-Control: max-age=60", Ok(60)),
        (&apart(), 200, "Expires: Sat, 21 Nov 2026 11:00:00 GMT", Ok(3600)),
        (&apart(), 404, "Cache-Control: max-age=60", Err(Reason::Method)),
        (&valid, 200, "", Err(Reason::NoLifetime)),
    ] {
        assert_eq!(seconds(conf, &plain, post, status, lines), expected, "{status} {lines}");
    }
    assert_eq!(
        seconds(&apart(), &plain, of(Method::Post), 200, "Cache-Control: max-age=60"),
        Err(Reason::Method)
    );
    let put = RequestFacts { is_of_target: true, ..of(Method::Put) };
    assert_eq!(seconds(&apart(), &plain, put, 200, "Cache-Control: max-age=60"), Err(Reason::Method));
}

#[test]
fn a_query_is_stored_where_proxy_cache_methods_names_it() {
    let plain = IgnoreHeaders::default();
    let lines = "Cache-Control: max-age=60";
    let query = ProxyCache { cache_query: true, ..conf() };
    assert_eq!(seconds(&query, &plain, of(Method::Query), 200, lines), Ok(60));
    assert_eq!(seconds(&conf(), &plain, of(Method::Query), 200, lines), Err(Reason::Method));
}

#[test]
fn must_understand_is_for_statuses_that_are_known() {
    for (status, control, expected) in [
        (200, "max-age=60, no-store, must-understand", Ok(60)),
        (404, "max-age=60, must-understand", Ok(60)),
        (599, "max-age=60, no-store, must-understand", Err(Reason::MustUnderstand)),
        (599, "max-age=60, must-understand", Err(Reason::MustUnderstand)),
        (599, "max-age=60", Ok(60)),
        (200, "max-age=60, no-store", Err(Reason::NoStore)),
    ] {
        check_of(&apart(), status, &format!("Cache-Control: {control}"), expected);
    }
}

#[test]
fn fields_that_are_named_stay_out_and_the_rest_is_stored() {
    for (lines, expected) in [
        ("private=\"x-a\", max-age=60", Ok(60)),
        ("no-cache=\"x-a\", max-age=60", Ok(60)),
        ("no-cache=\"Set-Cookie\", max-age=60\nSet-Cookie: a=b", Ok(60)),
        ("private=\"x-a, SET-COOKIE\", max-age=60\nSet-Cookie: a=b", Ok(60)),
        ("private=\"x-a\", max-age=60\nSet-Cookie: a=b", Err(Reason::SetCookie)),
        ("private=\"x-a\", private, max-age=60", Err(Reason::Private)),
    ] {
        check_of(&apart(), 200, &format!("Cache-Control: {lines}"), expected);
    }
}

#[test]
fn what_nginx_never_stores_takes_a_word_on_who_may_share_or_a_response_for_everybody() {
    let nginx = ProxyCache { revalidate: true, ..conf() };
    for (lines, expected) in [
        ("Cache-Control: no-cache\nETag: \"a\"", Reason::NoCache),
        (
            "Cache-Control: no-cache, must-revalidate, max-age=0\nLast-Modified: Sat, 21 Nov 2026 09:00:00 GMT",
            Reason::NoCache,
        ),
        ("Cache-Control: max-age=0, stale-while-revalidate=60", Reason::Expired),
        ("Cache-Control: max-age=0\nETag: \"a\"", Reason::Expired),
        ("Expires: 0\nETag: \"a\"", Reason::Expired),
        ("Cache-Control: private=\"x-a\", max-age=60", Reason::Private),
        ("Cache-Control: no-cache=\"x-a\", max-age=60", Reason::NoCache),
        ("Cache-Control: no-cache=\"Set-Cookie\", max-age=60\nSet-Cookie: a=b", Reason::SetCookie),
        ("Cache-Control: max-age=60, no-store, must-understand", Reason::NoStore),
        ("Cache-Control: private\nCDN-Cache-Control: max-age=60", Reason::Private),
        ("Expires: 0\nCDN-Cache-Control: max-age=60", Reason::Expired),
    ] {
        check_of(&nginx, 200, lines, Err(expected));
        let stored = |conf: &ProxyCache, lines: &str| {
            terms(conf, &IgnoreHeaders::default(), get(), 200, lines).is_ok()
        };
        assert!(stored(&revalidating(), lines), "{lines}");
        let public = lines.replace("Cache-Control: ", "Cache-Control: public, ");
        assert_eq!(stored(&nginx, &public), public != lines, "{public}");
    }
    let post = RequestFacts { is_of_target: true, ..of(Method::Post) };
    let of_post = |conf: &ProxyCache| {
        terms(conf, &IgnoreHeaders::default(), post, 200, "Cache-Control: max-age=60").map(|_| ())
    };
    assert_eq!((of_post(&conf()), of_post(&apart())), (Err(Reason::Method), Ok(())));
}
