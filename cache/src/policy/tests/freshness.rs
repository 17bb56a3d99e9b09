//! Lifetimes, ages and guesses (RFC 9111 §4.2).

use super::*;
use crate::samples::conf;
use millstream_conf::model::Heuristic;

#[test]
fn age_counts_against_what_the_origin_gave() {
    check("Cache-Control: max-age=60\nAge: 20", Ok(40));
    check("Cache-Control: max-age=60\nAge: 60", Err(Reason::Expired));
    check("Expires: Sat, 21 Nov 2026 11:00:00 GMT\nAge: 600", Ok(3000));
    check("X-Accel-Expires: 60\nAge: 60", Ok(60));
}

#[test]
fn of_an_age_field_the_first_member_counts_and_what_is_no_number_is_ignored() {
    for (age, expected) in [
        ("20", Ok(40)),
        ("20, 0", Ok(40)),
        ("0, 20", Ok(60)),
        ("20\nAge: 0", Ok(40)),
        ("0\nAge: 20", Ok(60)),
        ("abc", Ok(60)),
        ("-20", Ok(60)),
        ("20.0", Ok(60)),
        ("20;a=b", Ok(60)),
        ("", Ok(60)),
        ("2147483648", Err(Reason::Expired)),
        ("99999999999999999999999999", Err(Reason::Expired)),
    ] {
        check(&format!("Cache-Control: max-age=60\nAge: {age}"), expected);
    }
}

#[test]
fn the_way_here_counts_and_the_time_to_think_does_not() {
    let slow = RequestFacts { delay: Duration::from_secs(8), ..get() };
    let plain = IgnoreHeaders::default();
    for (lines, expected) in [
        // Nobody says when it was made: it is as new as it can be.
        ("", 60),
        // Made at the end of the exchange: an application that thinks for 8 s.
        ("Date: Sat, 21 Nov 2026 10:00:00 GMT", 60),
        // Made 5 s before it came; the second in which it was made is not counted.
        ("Date: Sat, 21 Nov 2026 09:59:55 GMT", 56),
        // Outside of the exchange: a clock that is wrong makes nothing stale.
        ("Date: Sat, 21 Nov 2026 09:00:00 GMT", 60),
        ("Date: Sat, 21 Nov 2026 11:00:00 GMT", 60),
        ("Date: yesterday", 60),
        // Through another cache the whole exchange may have been the way.
        ("Age: 10", 42),
        ("Age: 10\nDate: Sat, 21 Nov 2026 09:59:50 GMT", 42),
    ] {
        let lines = format!("Cache-Control: max-age=60\n{lines}");
        assert_eq!(seconds(&conf(), &plain, slow, 200, &lines), Ok(expected), "{lines}");
    }
}

#[test]
fn an_expires_is_read_as_any_date_and_else_lies_in_the_past() {
    check("Expires: SAT, 21 NOV 2026 11:00:00 gmt", Ok(3600));
    check("Expires: Saturday, 21-Nov-26 11:00:00 GMT", Ok(3600));
    check("Expires: Sat Nov 21 11:00:00 2026", Ok(3600));
    check("Expires: Sat, 21 Nov 2026 11:00:00 UTC", Err(Reason::Expired));
    check(
        "Expires: Sat, 21 Nov 2026 11:00:00 GMT\nExpires: Sat, 21 Nov 2026 12:00:00 GMT",
        Err(Reason::Expired),
    );
    check("Expires: Sat, 21 Nov 2026 11:00:00 GMT\nDate: foo", Ok(3600));
}

#[test]
fn a_guess_is_a_part_of_the_time_since_the_last_modification() {
    let guessing = ProxyCache {
        heuristic: Some(Heuristic { percent: 10, longest: Duration::from_secs(7200) }),
        ..conf()
    };
    let hour_old = "Last-Modified: Sat, 21 Nov 2026 09:00:00 GMT";
    for (status, lines, expected) in [
        (200, hour_old, Ok(360)),
        (404, hour_old, Ok(360)),
        (201, hour_old, Err(Reason::NoLifetime)),
        (302, hour_old, Err(Reason::NoLifetime)),
        (503, hour_old, Err(Reason::ErrorStatus)),
        (599, hour_old, Err(Reason::ErrorStatus)),
        (200, "", Err(Reason::NoLifetime)),
        (200, "Last-Modified: Sat, 21 Nov 2026 11:00:00 GMT", Err(Reason::NoLifetime)),
        (200, "Last-Modified: Mon, 21 Nov 2016 09:00:00 GMT", Ok(7200)),
        (200, "Last-Modified: Sat, 21 Nov 2026 09:00:00 GMT\nAge: 60", Ok(300)),
        (200, "Last-Modified: Sat, 21 Nov 2026 09:00:00 GMT\nAge: 360", Err(Reason::NoLifetime)),
        (200, "Last-Modified: Sat, 21 Nov 2026 09:00:00 GMT\nExpires: 0", Err(Reason::Expired)),
        (200, "Last-Modified: Sat, 21 Nov 2026 09:00:00 GMT\nCache-Control: max-age=5", Ok(5)),
    ] {
        check_of(&guessing, status, lines, expected);
    }
    check_of(&guessing, 599, &format!("{hour_old}\nCache-Control: public"), Ok(360));
    check_of(&conf(), 200, hour_old, Err(Reason::NoLifetime));
    let valid = vec![Valid { status: ValidStatus::Is(200), time: Duration::from_secs(9) }];
    check_of(&ProxyCache { valid, ..guessing }, 200, hour_old, Ok(9));
}
