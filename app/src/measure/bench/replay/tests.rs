//! Logs, and lines that are none.

use super::*;

fn named(replay: &Replay) -> Vec<String> {
    replay.requests.iter().map(|(request, _)| format!("{} {}", request.method, request.target)).collect()
}

#[test]
fn a_request_may_fail_as_it_did_in_the_log_unless_that_was_of_the_hour() {
    let cases: [(&str, &[u16]); 7] = [
        ("\"GET / HTTP/1.1\" 404 5\n\"GET / HTTP/1.1\" 200 5\n\"GET / HTTP/1.1\" 404 5", &[404]),
        ("\"GET / HTTP/1.1\" 404 5\n\"GET / HTTP/1.1\" 403 5", &[403, 404]),
        ("\"GET / HTTP/1.1\" 429 5\n\"GET / HTTP/1.1\" 499 0\n\"GET / HTTP/1.1\" 408 0", &[]),
        ("\"GET / HTTP/1.1\" 500 5\n\"GET / HTTP/1.1\" 304 0", &[]),
        ("\"GET / HTTP/1.1\" 4040 5", &[]),
        ("\"GET / HTTP/1.1\" - 404", &[]),
        ("\"GET / HTTP/1.1\"404", &[404]),
    ];
    for (log, statuses) in cases {
        let replay = read(log.as_bytes(), Wanted::default()).expect("it is in memory");
        let had: Vec<u16> = replay.requests.iter().flat_map(|(_, statuses)| statuses.clone()).collect();
        assert_eq!((replay.requests.len(), had.as_slice()), (1, statuses), "{log}");
    }
}

#[test]
fn a_log_becomes_its_distinct_requests_and_their_order() {
    let log = concat!(
        "127.0.0.1 - - [21/Nov/2026:10:00:00 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"curl/8\"\n",
        "127.0.0.1 - bob [21/Nov/2026:10:00:00 +0000] \"GET /b?x=\\x22y\\x22 HTTP/1.1\" 200 5 \"-\" \"a \\x22b\\x22\"\n",
        "127.0.0.1 - - [21/Nov/2026:10:00:01 +0000] \"POST /a HTTP/1.1\" 201 5 \"-\" \"-\"\n",
        "127.0.0.1 - - [21/Nov/2026:10:00:01 +0000] \"HEAD /a HTTP/1.1\" 200 0 \"-\" \"-\"\n",
        "127.0.0.1 - - [21/Nov/2026:10:00:02 +0000] \"\\x16\\x03\\x01\" 400 0 \"-\" \"-\"\n",
        "127.0.0.1 - - [21/Nov/2026:10:00:02 +0000] \"GET http://elsewhere/ HTTP/1.1\" 400 0 \"-\" \"-\"\n",
        "no log\n\n",
        "127.0.0.1 - - [21/Nov/2026:10:00:03 +0000] \"GET /a HTTP/1.0\" 200 5",
    );
    let replay = read(log.as_bytes(), Wanted::default()).expect("it is in memory");
    assert_eq!(named(&replay), ["GET /a", "GET /b?x=%22y%22", "HEAD /a"]);
    assert_eq!(replay.order, [0, 1, 2, 0]);
    assert_eq!(replay.skipped, BTreeMap::from([(Skip::Method, 1), (Skip::NoRequest, 4)]));
}

#[test]
fn a_line_without_an_end_is_one_line_that_is_skipped() {
    let long = format!("\"GET /{} HTTP/1.1\"", "x".repeat(200_000));
    let log = format!("{long}\n1 \"GET /a HTTP/1.1\"\n{long}");
    let replay = read(std::io::BufReader::with_capacity(1000, log.as_bytes()), Wanted::default())
        .expect("it is in memory");
    let skipped = BTreeMap::from([(Skip::NoRequest, 2)]);
    assert_eq!((replay.requests.len(), replay.order.len(), &replay.skipped), (1, 1, &skipped));
}

#[test]
fn escapes_that_are_none_and_spaces_make_no_request() {
    for line in ["\"GET /\\xZZ HTTP/1.1\"", "\"GET /a b HTTP/1.1\"", "\"GET\"", "\"", ""] {
        assert_eq!(
            read(line.as_bytes(), Wanted::default()).expect("it is in memory").order.len(),
            0,
            "{line}"
        );
    }
    let odd = read(&b"\"GET /\\x0d\\x0aX:\\ HTTP/1.1\""[..], Wanted::default()).expect("it is in memory");
    assert_eq!(named(&odd), ["GET /%0D%0AX:%5C"]);
}

#[test]
fn what_is_no_log_is_told_and_not_read_for_ever() {
    let why = |log: &mut dyn io::Read| {
        read(io::BufReader::new(log), Wanted::default())
            .map_err(|error| error.to_string())
            .expect_err("it is no log")
    };
    assert!(why(&mut io::repeat(0)).contains("endless line"));
    assert!(why(&mut &b"\x1f\x8b\x08\0"[..]).contains("compressed"));
    let lines = io::BufReader::new(io::Cursor::new(vec![b'\n'; LINES as usize + 5]));
    let cut = read(lines, Wanted::default()).expect("it has lines");
    assert_eq!((cut.skipped, cut.is_cut), (BTreeMap::from([(Skip::NoRequest, LINES)]), true));
}

fn line(time: &str, path: &str) -> String {
    format!("::1 - - [{time}] \"GET {path} HTTP/1.1\" 200 2\n")
}

#[test]
fn requests_come_when_they_came_and_those_of_a_second_are_spread_over_it() {
    let log = [
        line("28/Feb/2028:23:59:59 +0000", "/a"),
        line("29/Feb/2028:00:00:00 +0000", "/b"),
        // The same moment elsewhere; and one that ended late.
        line("29/Feb/2028:01:00:00 +0100", "/c"),
        line("28/Feb/2028:23:59:58 +0000", "/d"),
        line("nonsense", "/none"),
        line("01/Mar/2028:00:00:00 +0000", "/e"),
    ];
    let replay =
        super::read(log.concat().as_bytes(), Wanted { times: true, clients: false }).expect("it is a log");
    assert_eq!((replay.order.len(), &replay.skipped), (5, &BTreeMap::from([(Skip::Untimed, 1)])));
    assert_eq!(replay.times[0], 1_835_395_199);
    let seconds = |speed| replay.moments(speed).iter().map(|moment| *moment as f64 / 1e9).collect::<Vec<_>>();
    let near = |found: Vec<f64>, expected: [f64; 5]| {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
    };
    near(seconds(1.0), [0.0, 1.0, 1.0 + 1.0 / 3.0, 1.0 + 2.0 / 3.0, 86_401.0]);
    near(seconds(10.0), [0.0, 0.1, 0.1 + 1.0 / 30.0, 0.1 + 2.0 / 30.0, 8_640.1]);
}
