//! Outcomes for tests: made by a fixed recipe, so that pictures and texts of them stay the same.

use crate::histogram;
use crate::outcome::{Counts, Errors, Generator, Goal, Latency, OfUrl, Outcome, SearchOutcome, Slice, Tried};
use crate::plan::{Arrivals, Expect, Mode, Plan, Target};
use std::f64::consts::TAU;
use std::time::Duration;

/// Numbers that look random and are the same each time (splitmix64).
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    /// Even in 0..1, never 0.
    pub(crate) fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((mixed ^ (mixed >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Normal, mean 0, deviation 1 (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.even().ln()).sqrt() * (TAU * self.even()).cos()
    }
}

/// A run in a closed loop as a user sees it: 10 s, a fast server, a few slow answers.
pub(crate) fn closed() -> Outcome {
    let mut noise = Noise(1);
    let mut latency = histogram::empty();
    let mut slices = Vec::new();
    for number in 0..100u32 {
        let level = 1_100.0 * (1.0 + 0.05 * noise.normal());
        let mut slice = histogram::empty();
        for _ in 0..600 {
            let slow = if noise.even() < 0.004 { 12.0 * noise.even() } else { 0.0 };
            slice.saturating_record((level * ((0.25 * noise.normal()).exp() + slow)) as u64);
        }
        slices.push(Slice {
            at: f64::from(number) / 10.0,
            seconds: 0.1,
            answers: (9_100.0 * (1.0 + 0.04 * noise.normal())) as u64,
            errors: 0,
            mean: slice.mean().round(),
            p50: slice.value_at_percentile(50.0),
            p99: slice.value_at_percentile(99.0),
            max: slice.max(),
        });
        latency.add(&slice).expect("both have the same bounds");
    }
    let answers = slices.iter().map(|slice| slice.answers).sum();
    Outcome {
        search: None,
        by_url: Vec::new(),
        urls: vec!["http://127.0.0.1:8080/api/items?page=1".to_owned()],
        mode: Mode::Closed,
        connections: 200,
        threads: 2,
        pipeline: 1,
        http2: None,
        keep_alive: true,
        tls: false,
        began_unix_milliseconds: 1_795_282_205_000,
        warm_up: 0.0,
        seconds: 10.0,
        interrupted: false,
        limit: None,
        schedule: None,
        thresholds: Vec::new(),
        counts: Counts {
            requests: answers + 200,
            answers,
            bytes_read: answers * 1_420,
            bytes_body: answers * 1_200,
            bytes_written: answers * 96,
            connections: 200,
            statuses: [(200, answers)].into(),
            ..Counts::default()
        },
        service: Latency::of(&latency),
        first_byte: Latency::of(&latency),
        latency: Latency::of(&latency),
        slices,
        generator: Generator {
            cpu_seconds: 9.31,
            cpu_per_answer: 10.234,
            busiest_thread: 0.47,
            keenest_thread: 0.47,
            cores: 2,
            machine_busy: 0.93,
            ..Generator::default()
        },
    }
}

/// An open loop against a server that stalled for a second.
pub(crate) fn open() -> Outcome {
    let (mut due, mut sent) = (histogram::empty(), histogram::empty());
    let mut outcome = closed();
    for slice in &mut outcome.slices {
        slice.answers = 200;
        let stalled = (4.0..5.0).contains(&slice.at);
        let wait = if stalled { ((5.0 - slice.at) * 1e6) as u64 } else { 0 };
        (slice.p50, slice.p99, slice.max) = (1_500 + wait, 3_000 + wait, 3_500 + wait);
        slice.mean = slice.p50 as f64;
        for number in 0..200u64 {
            sent.saturating_record(1_000 + number * 10);
            due.saturating_record(1_000 + number * 10 + wait.saturating_sub(number * 500));
        }
    }
    outcome.mode = Mode::Open { rate: 2_000.0, arrivals: Arrivals::Poisson };
    outcome.counts.answers = 20_000;
    outcome.counts.requests = 20_000;
    outcome.counts.unfinished = 37;
    outcome.counts.statuses = [(200, 20_000)].into();
    let mut waiting = histogram::empty();
    (0..37).for_each(|number| waiting.saturating_record(number * 50 + 25));
    due.add(&waiting).expect("both have the same bounds");
    outcome.latency = Latency::with_unfinished(&due, &waiting);
    outcome.service = Latency::of(&sent);
    outcome.first_byte = Latency::of(&sent);
    outcome.generator.send_lag_p99 = 74;
    outcome
}

/// A server that was killed half-way, with a rate to keep, and a user who had seen enough.
pub(crate) fn killed() -> Outcome {
    let mut outcome = open();
    let (mut due, mut waiting) = (histogram::empty(), histogram::empty());
    (0..8_000u64).for_each(|number| due.saturating_record(1_000 + number % 2_000));
    (0..10_000u64).for_each(|number| waiting.saturating_record(number * 500 + 250));
    due.add(&waiting).expect("both have the same bounds");
    outcome.mode = Mode::Open { rate: 2_000.0, arrivals: Arrivals::Constant };
    outcome.interrupted = true;
    outcome.warm_up = 2.0;
    outcome.counts.answers = 8_000;
    outcome.counts.requests = 8_050;
    outcome.counts.statuses = [(200, 8_000)].into();
    outcome.counts.unfinished = 10_000;
    outcome.counts.errors = Errors { connect: 1_950, closed: 50, ..Errors::default() };
    (outcome.counts.connections, outcome.counts.surplus, outcome.counts.resent) = (10, 3, 7);
    outcome.latency = Latency::with_unfinished(&due, &waiting);
    outcome
}

/// The best trial of a search.
pub(crate) fn searched() -> Outcome {
    let tried = |rate: f64, p99, miss: Option<&str>| Tried {
        rate,
        answered: rate * 0.998,
        p99,
        miss: miss.map(str::to_owned),
        ..Tried::default()
    };
    let search = SearchOutcome {
        goal: Goal { p99: Some(50_000), errors: 0.001 },
        found: "5,000 requests a second hold; at 5,100 only 87 % got a response in time".to_owned(),
        confirmed: None,
        trials: vec![
            tried(4_000.0, 2_100, None),
            tried(5_100.0, 431_000, Some("only 87 % got a response in time")),
        ],
    };
    Outcome { search: Some(search), ..open() }
}

/// A run with every kind of error, whose generator was the limit.
pub(crate) fn failing() -> Outcome {
    let mut outcome = closed();
    outcome.urls.push("http://127.0.0.1:8080/<script>alert('x')</script>&amp;\"".to_owned());
    outcome.counts.errors = Errors {
        connect: 12,
        tls: 1,
        timeout: 2_034,
        closed: 3,
        short_body: 4,
        malformed: 5,
        refused: 0,
        reset: 0,
        redirect: 0,
        status: 60,
        body: 7,
    };
    outcome.counts.statuses = [(200, 900_000), (404, 20), (502, 40)].into();
    let of = |url: Option<&String>, answers, errors, p50| OfUrl {
        url: url.cloned(),
        urls: if url.is_some() { 1 } else { 7 },
        answers,
        errors,
        mean: p50 as f64 * 1.3,
        p50,
        p99: p50 * 4,
        max: p50 * 30,
    };
    outcome.by_url = vec![
        of(outcome.urls.last(), 450_000, 2_060, 9_300),
        of(outcome.urls.first(), 450_000, 54, 1_200),
        of(Some(&"http://127.0.0.1:8080/none".to_owned()), 0, 9, 0),
        of(None, 12, 0, 800),
    ];
    for slice in outcome.slices.iter_mut().filter(|slice| (6.0..7.5).contains(&slice.at)) {
        (slice.errors, slice.answers) = (140, slice.answers / 4);
        slice.p99 *= 30;
        slice.max *= 30;
    }
    outcome.generator.limits = Some("the busiest thread of the generator worked 98 % of the time".to_owned());
    outcome
}

/// A run in which nothing was answered.
pub(crate) fn nothing() -> Outcome {
    let empty = Latency::of(&histogram::empty());
    let mut outcome = closed();
    outcome.counts = Counts { errors: Errors { connect: 1, ..Errors::default() }, ..Counts::default() };
    (outcome.latency, outcome.service, outcome.first_byte) = (empty.clone(), empty.clone(), empty);
    outcome.slices.clear();
    outcome.generator = Generator { cores: 2, ..Generator::default() };
    outcome
}

/// What `closed` was made by.
pub(crate) fn plan() -> Plan {
    let target = Target {
        url: "http://127.0.0.1:8080/".to_owned(),
        addresses: vec![([127, 0, 0, 1], 8080).into()],
        tls: None,
        way: Default::default(),
        request: (*b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").into(),
        http2: None,
        is_head: false,
        expect: Expect::default(),
    };
    Plan {
        targets: vec![target],
        order: Vec::new(),
        connections: 1,
        threads: 1,
        mode: Mode::Closed,
        duration: Some(Duration::from_secs(10)),
        requests: None,
        warm_up: Duration::ZERO,
        keep_alive: true,
        pipeline: 1,
        timeout: Duration::from_secs(2),
        schedule: None,
        redirects: 0,
    }
}
