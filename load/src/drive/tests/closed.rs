//! Closed loops: every answer and every failure in its count.

use super::*;
use crate::plan::Expect;
use crate::timed::{in_time, timed, work_on};
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

#[test]
fn every_answer_of_a_counted_run_is_counted_once() {
    let outcome =
        outcome_of(&Plan { threads: 2, connections: 3, ..counted(target(answering(FINE, false)), 100) });
    let counts = &outcome.counts;
    assert_eq!((counts.answers, counts.requests, counts.errors.total()), (100, 100, 0));
    assert_eq!((counts.bytes_body, counts.connections), (500, 3));
    assert_eq!(counts.bytes_read, 100 * FINE.len() as u64);
    assert_eq!(counts.statuses.get(&200), Some(&100));
    assert_eq!(outcome.slices.iter().map(|slice| slice.answers).sum::<u64>(), 100);
    assert!(outcome.latency.min >= 1 && outcome.latency.max >= outcome.latency.percentile(50.0));
    assert!(outcome.seconds > 0.0 && outcome.seconds < 30.0);
    assert!(outcome.generator.cpu_seconds > 0.0);
    assert_eq!(outcome.latency, outcome.service);
    assert!(!outcome.interrupted && outcome.latency.is_known(100.0));
}

/// One answer for every request: which count it must end in, of ten requests.
fn check(bytes: &'static [u8], closes: bool, expected: impl Fn(&mut Errors) -> Option<&mut u64>) {
    let (errors, all) = errors_of(&counted(target(answering(bytes, closes)), 10));
    let mut wanted = Errors::default();
    if let Some(count) = expected(&mut wanted) {
        *count = 10;
    }
    assert_eq!((errors, all), (wanted, 10), "{:?}", String::from_utf8_lossy(bytes));
}

#[test]
fn whole_answers_of_every_framing_are_answers() {
    check(FINE, false, |_| None);
    check(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", false, |_| None);
    check(b"HTTP/1.1 200 OK\r\n\r\nup to the end", true, |_| None);
    check(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", true, |_| None);
    check(b"HTTP/1.1 204 No Content\r\n\r\n", false, |_| None);
    check(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 900\r\n\r\n", false, |_| None);
    check(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        false,
        |_| None,
    );
    check(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", true, |_| None);
}

#[test]
fn each_way_to_fail_has_its_count() {
    check(b"", true, |errors| Some(&mut errors.closed));
    check(b"HTTP/1.1 200 OK\r\nContent-", true, |errors| Some(&mut errors.closed));
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", true, |errors| Some(&mut errors.short_body));
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    check(chunked, true, |errors| Some(&mut errors.short_body));
    check(b"SSH-2.0-OpenSSH_9.2\r\n", true, |errors| Some(&mut errors.malformed));
    check(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", false, |errors| Some(&mut errors.status));
    check(b"HTTP/1.1 101 Go\r\n\r\n\0\0", true, |_| None);
}

#[test]
fn a_head_request_has_no_body_whatever_is_announced() {
    let mut target = target(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", false));
    target.is_head = true;
    assert_eq!(errors_of(&counted(target, 10)), (Errors::default(), 10));
}

#[test]
fn answers_are_held_against_what_was_expected() {
    let address = answering(FINE, false);
    let check = |status: Option<u16>, body: Option<&[u8]>, wrong_status, wrong_body| {
        let expect =
            Expect { statuses: status.into_iter().collect(), body: body.map(Arc::from), ..Expect::default() };
        let (errors, all) = errors_of(&counted(Target { expect, ..target(address) }, 10));
        let expected = Errors { status: wrong_status, body: wrong_body, ..Errors::default() };
        assert_eq!((errors, all), (expected, 10));
    };
    check(Some(200), Some(b"hello"), 0, 0);
    check(Some(404), Some(b"hello"), 10, 0);
    check(None, Some(b"hellO"), 0, 10);
    check(None, Some(b"hell"), 0, 10);
    check(None, Some(b"hello!"), 0, 10);
    check(Some(404), Some(b"no"), 10, 0);
}

#[test]
fn a_server_that_is_not_there_is_asked_and_not_flooded() {
    let gone =
        TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port");
    let (errors, all) = errors_of(&counted(target(gone), 6));
    assert_eq!((errors.connect, all), (6, 6));
    let began = clock::now();
    let outcome = outcome_of(&Plan::closed(target(gone), 2, 1, Duration::from_millis(350)));
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!((2..=10).contains(&outcome.counts.errors.connect), "{}", outcome.counts.errors.connect);
}

#[test]
fn silence_and_bodies_without_an_end_are_timeouts() {
    let silent = serve(|mut stream| while request(&mut stream).is_some() {});
    let patience = Duration::from_millis(50);
    let (errors, all) = errors_of(&Plan { timeout: patience, ..counted(target(silent), 4) });
    assert_eq!((errors.timeout, all), (4, 4));
    let endless = serve(|mut stream| {
        request(&mut stream);
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    });
    let outcome = outcome_of(&Plan { timeout: patience, ..counted(target(endless), 4) });
    assert_eq!((outcome.counts.errors.timeout, outcome.counts.answers), (4, 0));
    // What was given up would have taken longer still.
    let given = u64::try_from(patience.as_micros()).expect("a short time");
    let least = outcome.latency.decoded().min();
    assert!(least + least / 100 >= given, "{:?}", outcome.latency.percentiles);
    assert_eq!(outcome.latency.min, 0, "there is no answer");
    assert!(!outcome.latency.is_known(50.0));
    assert!(outcome.counts.bytes_read > 0);
}

#[test]
fn without_keep_alive_every_request_has_a_connection_of_its_own() {
    let plan = Plan { keep_alive: false, ..counted(target(answering(FINE, true)), 20) };
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.counts.answers, outcome.counts.connections), (20, 20));
    assert!(outcome.latency.mean >= outcome.service.mean, "connecting belongs to the latency");
}

#[test]
fn a_server_that_ends_connections_is_connected_to_again() {
    let served = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&served);
    let address = serve(move |mut stream| {
        for left in (0..3).rev() {
            if request(&mut stream).is_none() {
                return;
            }
            count.fetch_add(1, Ordering::Relaxed);
            let answer: &[u8] = if left == 0 {
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            } else {
                FINE
            };
            _ = stream.write_all(answer);
        }
    });
    let outcome = outcome_of(&Plan { connections: 1, ..counted(target(address), 30) });
    assert_eq!((outcome.counts.answers, outcome.counts.connections), (30, 10));
    assert_eq!(served.load(Ordering::Relaxed), 30);
}

#[test]
fn pipelined_requests_are_on_their_way_at_once_and_answered_in_order() {
    let address = serve(|mut stream| {
        // Nothing is answered before four have come.
        while (0..4).all(|_| request(&mut stream).is_some()) {
            _ = stream.write_all(&FINE.repeat(4));
        }
    });
    let plan = Plan { connections: 1, pipeline: 4, ..counted(target(address), 40) };
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.counts.answers, outcome.counts.connections), (40, 1));
}

#[test]
fn a_large_request_goes_out_in_parts() {
    let body = vec![b'x'; 3 << 20];
    let length = body.len();
    let address = serve(move |mut stream| {
        while request(&mut stream).is_some() {
            let mut body = vec![0; length];
            if stream.read_exact(&mut body).is_err() || body.iter().any(|byte| *byte != b'x') {
                return;
            }
            _ = stream.write_all(FINE);
        }
    });
    let ask = Ask { url: format!("http://{address}/"), keep_alive: true, body, ..Ask::default() };
    let target = resolve(&ask, Permission::default()).expect("an address of this machine");
    let outcome = outcome_of(&counted(target.clone(), 4));
    assert_eq!((outcome.counts.answers, outcome.counts.requests), (4, 4));
    assert_eq!(outcome.counts.bytes_written, 4 * target.request.len() as u64);
}

#[test]
fn an_answer_to_half_a_request_ends_the_connection() {
    let address = serve(|mut stream| {
        request(&mut stream);
        _ = stream.write_all(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        _ = stream.shutdown(std::net::Shutdown::Write);
        _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let ask =
        Ask { url: format!("http://{address}/"), keep_alive: true, body: vec![0; 8 << 20], ..Ask::default() };
    let target = resolve(&ask, Permission::default()).expect("an address of this machine");
    let (errors, all) = errors_of(&counted(target, 4));
    assert_eq!((errors.status, all), (4, 4));
}

#[test]
fn several_targets_come_in_their_order_and_several_servers_share_the_connections() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let address = serve(move |mut stream| {
        while let Some(head) = request(&mut stream) {
            kept.lock().expect("nobody panics").push(head[5]);
            _ = stream.write_all(FINE);
        }
    });
    let of = |address: SocketAddr, path: &str| {
        let ask = Ask { url: format!("http://{address}/{path}"), keep_alive: true, ..Ask::default() };
        resolve(&ask, Permission::default()).expect("an address of this machine")
    };
    let mut plan = Plan { connections: 1, ..counted(of(address, "a"), 8) };
    plan.targets.push(of(address, "b"));
    plan.order = vec![0, 0, 1, 0];
    outcome_of(&plan);
    assert_eq!(*seen.lock().expect("nobody panics"), b"aabaaaba");
    let other = answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", false);
    let plan =
        Plan { targets: vec![of(address, "a"), of(other, "c")], threads: 2, ..counted(target(other), 40) };
    let outcome = outcome_of(&plan);
    assert_eq!((outcome.counts.answers, outcome.counts.errors.status), (20, 20));
    let each: Vec<(u64, u64)> = outcome.by_url.iter().map(|of| (of.answers, of.errors)).collect();
    assert_eq!(each, [(20, 0), (0, 20)], "each URL has its own, the most time first");
    assert!(
        outcome.by_url[0].p50 >= 1 && outcome.by_url[0].url.as_deref().is_some_and(|url| url.ends_with("/a"))
    );
}

#[test]
fn a_warm_up_is_not_counted() {
    let plan = Plan {
        warm_up: Duration::from_millis(150),
        ..Plan::closed(target(answering(FINE, false)), 2, 1, Duration::from_millis(250))
    };
    let mut was_warming = false;
    let outcome = run(&plan, &AtomicBool::new(false), &mut |progress| was_warming |= progress.warming)
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(was_warming);
    assert!((outcome.seconds - 0.25).abs() < 1e-9, "{}", outcome.seconds);
    assert!(outcome.counts.answers > 0);
    assert_eq!(outcome.counts.answers, outcome.slices.iter().map(|slice| slice.answers).sum::<u64>());
    assert_eq!(outcome.counts.connections, 0, "they were opened before");
    assert_eq!(outcome.slices.len(), 3);
}

#[test]
fn stop_ends_a_run_early_with_what_there_is() {
    let stop = AtomicBool::new(false);
    let plan = Plan::closed(target(answering(FINE, false)), 2, 2, Duration::from_secs(600));
    let outcome = run(&plan, &stop, &mut |progress| {
        if progress.answers > 0 {
            stop.store(true, Ordering::Relaxed);
        }
    })
    .unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.counts.answers > 0 && outcome.seconds < 60.0 && outcome.interrupted);
}

#[test]
fn a_plan_that_makes_no_sense_starts_nothing() {
    let plan = Plan { threads: 0, ..counted(target(answering(FINE, false)), 10) };
    assert!(run(&plan, &AtomicBool::new(false), &mut |_| {}).is_err());
}

/// Reads a request with a body of so many bytes; whether it came whole.
fn large_request(stream: &mut TcpStream, length: usize) -> bool {
    request(stream).is_some() && stream.read_exact(&mut vec![0; length]).is_ok()
}

#[test]
fn pipelined_requests_that_do_not_fit_the_socket_are_answered_each() {
    for length in [100_000, 1_000] {
        let address = serve(move |mut stream| {
            while large_request(&mut stream, length) {
                if stream.write_all(FINE).is_err() {
                    return;
                }
            }
        });
        let body = vec![b'x'; length];
        let ask = Ask { url: format!("http://{address}/"), keep_alive: true, body, ..Ask::default() };
        let target = resolve(&ask, Permission::default()).expect("an address of this machine");
        let plan = Plan { connections: 1, pipeline: 64, ..counted(target.clone(), 200) };
        let outcome = outcome_of(&plan);
        let counts = &outcome.counts;
        assert_eq!(
            (counts.answers, counts.requests, counts.connections),
            (200, 200, 1),
            "{:?}",
            counts.errors
        );
        assert_eq!(counts.bytes_written, 200 * target.request.len() as u64);
    }
}

#[test]
fn a_server_is_reached_by_whichever_of_its_addresses_takes_connections() {
    let gone =
        TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port");
    let mut target = target(answering(FINE, false));
    target.addresses.insert(0, gone);
    target.addresses.insert(0, gone);
    for keep_alive in [true, false] {
        let plan = Plan { keep_alive, connections: 8, ..counted(target.clone(), 100) };
        let outcome = outcome_of(&plan);
        assert_eq!((outcome.counts.answers, outcome.counts.errors.total()), (100, 0));
        assert_eq!(outcome.counts.connections, if keep_alive { 8 } else { 100 });
    }
    target.addresses.truncate(2);
    let (errors, all) = errors_of(&counted(target, 6));
    assert_eq!((errors.connect, all), (6, 6), "a request fails once, whatever was tried for it");
}

#[test]
fn more_than_was_asked_for_ends_the_connection_and_is_told() {
    let address = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more", false);
    let outcome = outcome_of(&counted(target(address), 20));
    let counts = &outcome.counts;
    assert_eq!((counts.answers, counts.errors.total(), counts.surplus), (20, 0, 20));
}

#[test]
fn the_first_byte_is_that_of_the_answer_and_not_of_an_interim_one() {
    let address = serve(|mut stream| {
        while request(&mut stream).is_some() {
            // In two parts, so that the interim one is whole only with the second.
            _ = stream.write_all(b"HTTP/1.1 103 Early");
            work_on(&stream, Duration::from_millis(20));
            _ = stream.write_all(b" Hints\r\nLink: </a>\r\n\r\n");
            work_on(&stream, Duration::from_millis(20));
            _ = stream.write_all(FINE);
        }
    });
    let outcome = outcome_of(&counted(target(address), 10));
    assert_eq!(outcome.counts.answers, 10);
    assert!(outcome.first_byte.min > 35_000, "{}", outcome.first_byte.min);
}

#[test]
fn of_a_number_of_requests_what_is_on_its_way_when_measuring_begins_is_not_counted() {
    let each = Duration::from_millis(40);
    let slow = serve(move |mut stream| {
        while request(&mut stream).is_some() {
            work_on(&stream, each);
            _ = stream.write_all(FINE);
        }
    });
    for (warm_up, connections, number) in [(0, 3, 3), (60, 3, 3), (60, 2, 7), (120, 10, 50)] {
        let warm_up = Duration::from_millis(warm_up);
        let outcome = outcome_of(&Plan { warm_up, connections, ..counted(target(slow), number) });
        let counts = &outcome.counts;
        assert_eq!((counts.answers, counts.requests), (number, number));
        assert_eq!(counts.bytes_read, number * FINE.len() as u64);
        assert!(counts.bytes_written > 0 && (outcome.warm_up - warm_up.as_secs_f64()).abs() < 1e-9);
        // From the first that starts to the last answer: no answer takes longer than all, and the first one nothing to wait for.
        let (least, most) = (outcome.latency.min as f64 / 1e6, outcome.latency.max as f64 / 1e6);
        assert!(outcome.seconds >= least && least >= each.as_secs_f64() - 0.001, "{outcome:?}");
        let rounds = number.div_ceil(u64::from(connections)) as f64;
        assert!(outcome.seconds <= rounds * most + most, "{} of {rounds} times {most}", outcome.seconds);
    }
}

#[test]
fn what_was_pipelined_behind_a_last_answer_is_sent_again_and_no_error() {
    let address = serve(|mut stream| {
        for left in (0..10).rev() {
            if request(&mut stream).is_none() {
                return;
            }
            let last: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
            _ = stream.write_all(if left == 0 { last } else { FINE });
        }
        _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let closed = Plan { pipeline: 8, ..counted(target(address), 200) };
    let rate = Mode::Open { rate: 2_000.0, arrivals: Arrivals::Constant };
    for mode in [Mode::Closed, rate] {
        let counts = outcome_of(&Plan { mode, ..closed.clone() }).counts;
        assert_eq!((counts.answers, counts.errors.total(), counts.unfinished), (200, 0, 0), "{mode:?}");
        assert_eq!(counts.requests, 200 + counts.resent, "{mode:?}");
        assert!(mode != Mode::Closed || counts.resent > 0);
    }
}

#[test]
fn connections_that_nobody_answers_are_told() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    // One after the other, as a server with a single worker does it.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            while request(&mut stream).is_some() {
                if stream.write_all(FINE).is_err() {
                    break;
                }
            }
        }
    });
    let plan = Plan::closed(target(address), 5, 1, Duration::from_millis(400));
    let outcome = outcome_of(&plan);
    assert!(outcome.counts.answers > 0 && outcome.counts.errors.total() == 0, "{:?}", outcome.counts);
    assert_eq!(outcome.counts.silent, 4);
    assert!(crate::report::text::report(&outcome, 100).contains("4 of 5 connections had no response"));
    assert_eq!(crate::verdict::Run::of(&outcome).connections, 1, "the others are no part of Little's law");
    let served = outcome_of(&Plan { connections: 1, ..plan });
    assert_eq!(served.counts.silent, 0);
}

/// A server that answers so many requests of each connection and then none.
fn falling_silent(answers: u32) -> std::net::SocketAddr {
    serve(move |mut stream| {
        let mut left = answers;
        while request(&mut stream).is_some() {
            if left > 0 && stream.write_all(FINE).is_ok() {
                left -= 1;
            }
        }
    })
}

#[test]
fn requests_that_wait_for_longer_than_any_answer_took_when_a_run_ends_are_in_its_latency() {
    let plan = Plan::closed(target(falling_silent(20)), 3, 1, Duration::from_millis(1_500));
    timed(|| {
        let outcome = outcome_of(&plan);
        let counts = &outcome.counts;
        assert_eq!((counts.answers, counts.unfinished, counts.silent, counts.errors.total()), (60, 3, 0, 0));
        let text = crate::report::text::report(&outcome, 100);
        assert!(text.contains("UNFINISHED: 3 requests had no response at the end, after up to 1."), "{text}");
        let bound = crate::threshold::Threshold {
            expression: "max>1s".to_owned(),
            metric: crate::metric::Metric::Latency(100.0),
            is_above: true,
            or_equal: false,
            limit: 1e6,
        };
        in_time(bound.judge(&outcome).verdict == crate::outcome::Kept::Failed, outcome.latency.max)
    });
}

#[test]
fn the_one_request_that_each_connection_has_on_its_way_when_a_run_ends_is_no_wait() {
    timed(|| {
        let address =
            serve(|mut stream| while request(&mut stream).is_some() && stream.write_all(FINE).is_ok() {});
        let outcome = outcome_of(&Plan::closed(target(address), 20, 1, Duration::from_millis(400)));
        let text = crate::report::text::report(&outcome, 100);
        in_time(outcome.counts.unfinished == 0 && !text.contains("UNFINISHED"), text)
    });
}
