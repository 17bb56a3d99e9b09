//! Open loops: the rate that was asked for, and latency from when requests should have started.

use super::*;
use crate::timed::{in_time, timed, work_on};

fn open(address: SocketAddr, rate: f64, duration: Duration) -> Plan {
    let mode = Mode::Open { rate, arrivals: Arrivals::Constant };
    Plan { mode, ..Plan::closed(target(address), 8, 2, duration) }
}

#[test]
fn the_rate_is_the_one_that_was_asked_for() {
    timed(|| {
        let outcome = outcome_of(&open(answering(FINE, false), 500.0, Duration::from_secs(1)));
        let all = outcome.counts.answers + outcome.counts.unfinished;
        assert_eq!((all, outcome.counts.errors.total()), (500, 0));
        assert!(outcome.generator.send_lag_p99 > 0);
        in_time(outcome.counts.unfinished < 20, format_args!("{} unfinished", outcome.counts.unfinished))
    });
}

#[test]
fn waiting_for_a_connection_is_latency_and_no_lag_of_the_generator() {
    timed(|| {
        // Two connections, each taken for 50 ms: 40 answers a second, of 80 that should be.
        let address = serve(|mut stream| {
            while request(&mut stream).is_some() {
                work_on(&stream, Duration::from_millis(50));
                _ = stream.write_all(FINE);
            }
        });
        let outcome = outcome_of(&Plan { connections: 2, ..open(address, 80.0, Duration::from_secs(1)) });
        let counts = &outcome.counts;
        assert!(counts.answers <= 40, "{}", counts.answers);
        assert_eq!(counts.answers + counts.unfinished, 80);
        assert!(counts.ran_out, "both connections were taken when the next was due");
        let told = crate::report::text::results(&outcome, 100);
        assert!(
            told.contains("all 2 connections were busy, and they carry ") && told.contains("(-c)"),
            "{told}"
        );
        assert!(outcome.latency.max > 300_000, "the last ones waited half the time: {}", outcome.latency.max);
        in_time(counts.answers >= 30, counts.answers)?;
        in_time(outcome.service.percentile(50.0) < 100_000, format_args!("{:?}", outcome.service.percentiles))
    });
}

#[test]
fn without_keep_alive_each_request_connects_when_it_is_due() {
    let plan = Plan { keep_alive: false, ..open(answering(FINE, true), 100.0, Duration::from_millis(500)) };
    let outcome = outcome_of(&plan);
    assert_eq!(outcome.counts.answers + outcome.counts.unfinished, 50);
    assert!(outcome.counts.connections.abs_diff(outcome.counts.answers) <= 8);
}

#[test]
fn a_server_that_is_not_there_fails_what_is_due_and_no_more() {
    let gone =
        TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port");
    let outcome = outcome_of(&open(gone, 20.0, Duration::from_millis(500)));
    let counts = &outcome.counts;
    assert_eq!(counts.answers, 0);
    assert_eq!(counts.errors.connect + counts.unfinished, 10);
}

#[test]
fn a_warm_up_of_an_open_loop_counts_by_when_requests_should_have_started() {
    let plan = Plan {
        warm_up: Duration::from_millis(230),
        ..open(answering(FINE, false), 200.0, Duration::from_millis(500))
    };
    let outcome = outcome_of(&plan);
    assert_eq!(outcome.counts.answers + outcome.counts.unfinished, 100);
}

#[test]
fn the_first_slice_after_a_warm_up_has_its_answers() {
    timed(|| {
        // The last tick of the warm-up is a short one.
        let warm_up = Duration::from_millis(230);
        let plan = Plan { warm_up, ..open(answering(FINE, false), 500.0, Duration::from_millis(300)) };
        let answers: Vec<u64> = outcome_of(&plan).slices.iter().map(|slice| slice.answers).collect();
        assert_eq!(answers.len(), 3);
        in_time(answers.iter().all(|answers| (30..70).contains(answers)), format_args!("{answers:?}"))
    });
}

#[test]
fn an_open_loop_has_as_many_connections_as_its_rate_takes() {
    timed(|| {
        // 200 a second that take 100 ms each are twenty on their way.
        let plan = open(slow(Duration::from_millis(100)), 200.0, Duration::from_secs(1));
        let outcome = outcome_of(&Plan { connections: 1_000, ..plan });
        let counts = &outcome.counts;
        assert!(!counts.ran_out);
        assert_eq!(counts.answers + counts.unfinished, 200);
        in_time(outcome.kept_up() > 0.99, format_args!("{counts:?}"))?;
        in_time((15..100).contains(&counts.connections), counts.connections)?;
        in_time(outcome.latency.percentile(50.0) < 150_000, format_args!("{:?}", outcome.latency.percentiles))
    });
}

#[test]
fn a_stall_that_is_longer_than_the_timeout_is_in_the_latency() {
    timed(|| {
        let plan = open(stalling(), 100.0, Duration::from_secs(3));
        let patience = Duration::from_millis(300);
        let outcome = outcome_of(&Plan { timeout: patience, connections: 1_000, ..plan });
        let counts = &outcome.counts;
        assert_eq!(outcome.latency.mean > 0.0, counts.answers > 0);
        in_time(counts.errors.timeout > 50, format_args!("{counts:?}"))?;
        // Of 300 requests 70 were due in the stall more than 300 ms before its end, and each waited as long.
        let p90 = outcome.latency.percentile(90.0);
        in_time((290_000..400_000).contains(&p90), format_args!("{:?}", outcome.latency.percentiles))?;
        in_time(!outcome.latency.is_known(90.0), outcome.latency.known_to)
    });
}

/// How long the server of the next test stands still.
const STALL: Duration = Duration::from_secs(1);
/// When it does, counted from its first request.
const STALLS_AT: Duration = Duration::from_millis(700);

/// A server that stands still once, for all connections, from `STALLS_AT` after its first request.
fn stalling() -> SocketAddr {
    let began = std::sync::OnceLock::new();
    serve(move |mut stream| {
        while request(&mut stream).is_some() {
            let passed = clock::now() - *began.get_or_init(clock::now);
            if passed >= STALLS_AT && passed < STALLS_AT + STALL {
                work_on(&stream, STALLS_AT + STALL - passed);
            }
            if stream.write_all(FINE).is_err() {
                return;
            }
        }
    })
}

#[test]
fn a_stall_of_a_second_shows_in_an_open_loop_as_computed_and_not_in_a_closed_one() {
    timed(|| {
        // Of 800 requests in 4 seconds, those due in the stalled second, a quarter, wait for what is left of it: between a
        // second and nothing, evenly. So the slowest tenth of all waited for 0.6 s and more, the slowest hundredth 0.96 s.
        let expected = |slower: f64| (1e6 * (1.0 - slower / 0.25)) as u64;
        let duration = Duration::from_secs(4);
        let opened = outcome_of(&open(stalling(), 200.0, duration));
        in_time(opened.counts.answers > 780, format_args!("{:?}", opened.counts))?;
        let near = |measured: u64, computed: u64| measured.abs_diff(computed) < 100_000;
        let (p90, p99) = (opened.latency.percentile(90.0), opened.latency.percentile(99.0));
        in_time(near(p90, expected(0.1)), format_args!("p90 {p90} µs, computed {}", expected(0.1)))?;
        in_time(near(p99, expected(0.01)), format_args!("p99 {p99} µs, computed {}", expected(0.01)))?;
        in_time(opened.latency.max.abs_diff(1_000_000) < 150_000, opened.latency.max)?;
        // What a closed loop would have said of the same requests: only the few on their way met the stall.
        in_time(opened.service.percentile(90.0) < 200_000, format_args!("{:?}", opened.service.percentiles))?;
        let closed = outcome_of(&Plan::closed(target(stalling()), 8, 2, duration));
        in_time(closed.counts.answers > 1_000, format_args!("{:?}", closed.counts))?;
        in_time(closed.latency.percentile(99.0) < 200_000, format_args!("{:?}", closed.latency.percentiles))?;
        in_time(closed.latency.max > 900_000, "eight met it")
    });
}

/// A server that takes so long for each answer, one after the other on each connection.
fn slow(each: Duration) -> SocketAddr {
    serve(move |mut stream| {
        while request(&mut stream).is_some() {
            work_on(&stream, each);
            if stream.write_all(FINE).is_err() {
                return;
            }
        }
    })
}

/// 400 requests a second where 100 can be answered: the warm-up leaves a queue behind.
fn behind() -> Plan {
    Plan {
        connections: 2,
        threads: 1,
        warm_up: Duration::from_millis(200),
        ..open(slow(Duration::from_millis(20)), 400.0, Duration::from_secs(30))
    }
}

#[test]
fn a_counted_run_ends_though_its_warm_up_left_a_queue() {
    timed(|| {
        let outcome = outcome_of(&Plan { requests: Some(40), ..behind() });
        let counts = &outcome.counts;
        assert_eq!(
            (counts.answers, counts.requests, counts.errors.total(), counts.unfinished),
            (40, 40, 0, 0)
        );
        assert!(!outcome.interrupted);
        in_time(outcome.seconds < 20.0, outcome.seconds)?;
        // Answered at 100 a second, with nothing of the warm-up before them but what was on its way.
        let first = outcome.latency.min;
        in_time(first < 100_000, format_args!("the first waits for two at the most: {first}"))
    });
}

#[test]
fn what_was_due_when_the_user_stopped_is_answered_or_unfinished() {
    let stop = AtomicBool::new(false);
    let plan = Plan { requests: Some(1_000), ..behind() };
    let outcome = run(&plan, &stop, &mut |progress| {
        if progress.answers >= 20 && !progress.warming {
            stop.store(true, Ordering::Relaxed);
        }
    })
    .unwrap_or_else(|error| panic!("{error}"));
    let counts = &outcome.counts;
    assert!(outcome.interrupted && counts.answers >= 20);
    let due = (outcome.seconds * 400.0).min(1_000.0);
    assert!((outcome.due() as f64 - due).abs() <= 1.0, "{} of {due}", outcome.due());
    assert_eq!(counts.errors.total(), 0);
}

#[test]
fn a_stall_that_reaches_the_end_is_in_the_latency() {
    timed(|| {
        let began = std::sync::OnceLock::new();
        let address = serve(move |mut stream| {
            while request(&mut stream).is_some() {
                if clock::now() - *began.get_or_init(clock::now) > Duration::from_millis(1_000) {
                    // For ever, as far as the test is concerned.
                    _ = stream.read(&mut [0; 1]);
                    return;
                }
                _ = stream.write_all(FINE);
            }
        });
        let outcome = outcome_of(&open(address, 200.0, Duration::from_secs(2)));
        let counts = &outcome.counts;
        assert_eq!(counts.answers + counts.unfinished, 400);
        assert!(outcome.error_share() == 0.0);
        in_time(counts.unfinished.abs_diff(200) < 30, counts.unfinished)?;
        // Half of all were due in the second that stood still, and wait evenly between all of it and nothing.
        for (percent, computed) in [(99.0, 980_000), (75.0, 500_000)] {
            let measured = outcome.latency.percentile(percent);
            in_time(
                measured.abs_diff(computed) < 100_000,
                format_args!("{:?}", outcome.latency.percentiles),
            )?;
        }
        in_time(
            outcome.service.percentile(99.0) < 200_000,
            format_args!("{:?}", outcome.service.percentiles),
        )?;
        in_time((outcome.lost_share() - 0.5).abs() < 0.08, outcome.lost_share())?;
        assert!(!outcome.latency.is_known(75.0) && !outcome.latency.is_known(100.0));
        let last = outcome.slices.last().expect("there are twenty");
        assert!(last.max >= outcome.latency.max / 100 * 98, "{last:?}");
        Ok(())
    });
}

#[test]
fn connections_are_opened_when_requests_are_due_and_no_more_than_they_need() {
    timed(|| {
        // It serves one connection after the other, as a worker that knows no keep-alive does: idle ones would block it.
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                if request(&mut stream).is_some() {
                    let answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
                    _ = stream.write_all(answer);
                }
            }
        });
        let plan = Plan { connections: 50, ..open(address, 20.0, Duration::from_millis(500)) };
        let counts = outcome_of(&plan).counts;
        assert_eq!(counts.answers + counts.unfinished, 10, "{counts:?}");
        assert!(counts.connections <= 10, "{}", counts.connections);
        in_time(counts.answers >= 9, format_args!("{counts:?}"))
    });
}

#[test]
fn a_number_of_requests_at_a_rate_takes_as_many_intervals_and_two_are_too_few_for_a_verdict() {
    timed(|| {
        let open = open(answering(FINE, false), 4.0, Duration::from_secs(30));
        let outcome = outcome_of(&Plan { requests: Some(2), connections: 1, threads: 1, ..open });
        assert!(outcome.generator.busiest_thread <= 1.0, "{:?}", outcome.generator);
        in_time(outcome.rate() == 4.0, format_args!("{} in {} s", outcome.rate(), outcome.seconds))
    });
}
