//! `proxy_next_upstream` as a table.

use super::{Attempt, Condition, Decision, decide, is_peer_failure};
use millstream_conf::model::{Exchange, IgnoreHeaders, NextUpstream, RequestSize, TempPath};
use millstream_wire::Method;
use std::time::Duration;

fn exchange(next_upstream: NextUpstream, timeout: u64) -> Exchange {
    let second = Duration::from_secs(1);
    Exchange {
        hide_headers: Vec::new(),
        pass_headers: Vec::new(),
        ignore_headers: IgnoreHeaders::default(),
        buffering: true,
        request_buffering: true,
        buffer_size: 4096,
        buffers: (8, 4096),
        max_temp_file_size: 0,
        temp_path: TempPath { path: "proxy_temp".into(), written: None },
        connect_timeout: second,
        send_timeout: second,
        read_timeout: second,
        next_upstream,
        next_upstream_tries: 0,
        next_upstream_timeout: Duration::from_secs(timeout),
        intercept_errors: false,
        ignore_client_abort: false,
        passes_fields: true,
        passes_address: true,
        passes_body: true,
        limit_rate: RequestSize::Fixed(0),
        bind: None,
        socket_keepalive: false,
        force_ranges: false,
    }
}

fn default_words() -> NextUpstream {
    NextUpstream { error: true, timeout: true, ..NextUpstream::default() }
}

fn attempt(condition: Condition) -> Attempt {
    Attempt {
        condition,
        method: Method::Get,
        request_sent: true,
        body_replayable: true,
        stale: false,
        tries_left: 1,
        elapsed: Duration::from_secs(1),
    }
}

#[test]
fn the_default_words_retry_errors_and_timeouts_of_idempotent_requests() {
    let get = attempt;
    let post = |condition| Attempt { method: Method::Post, ..attempt(condition) };
    let cases = [
        (get(Condition::Error), Decision::Next),
        (get(Condition::Timeout), Decision::Next),
        (get(Condition::InvalidHeader), Decision::GiveUp(502)),
        (get(Condition::Status(503)), Decision::GiveUp(503)),
        (post(Condition::Error), Decision::GiveUp(502)),
        (post(Condition::Timeout), Decision::GiveUp(504)),
        (Attempt { request_sent: false, ..post(Condition::Error) }, Decision::Next),
        (Attempt { tries_left: 0, ..get(Condition::Error) }, Decision::GiveUp(502)),
        (Attempt { tries_left: 0, ..get(Condition::Timeout) }, Decision::GiveUp(504)),
        (Attempt { body_replayable: false, ..get(Condition::Error) }, Decision::GiveUp(502)),
        // Refused, once a body that is not kept was on its way.
        (
            Attempt { body_replayable: false, request_sent: false, ..get(Condition::Error) },
            Decision::GiveUp(502),
        ),
    ];
    let conf = exchange(default_words(), 0);
    for (attempt, expected) in cases {
        assert_eq!(decide(&conf, &attempt), expected, "{attempt:?}");
    }
}

#[test]
fn non_idempotent_and_status_words_widen_it() {
    let conf = exchange(NextUpstream { non_idempotent: true, http_503: true, ..default_words() }, 0);
    let post = Attempt { method: Method::Post, ..attempt(Condition::Status(503)) };
    assert_eq!(decide(&conf, &post), Decision::Next);
    assert_eq!(decide(&conf, &attempt(Condition::Status(500))), Decision::GiveUp(500));
}

#[test]
fn a_stale_connection_costs_no_try_and_is_tried_again_even_with_off() {
    let off = exchange(NextUpstream::default(), 0);
    let stale = Attempt { stale: true, tries_left: 0, ..attempt(Condition::Error) };
    assert_eq!(decide(&off, &stale), Decision::Fresh);
    let sent = Attempt { method: Method::Post, ..stale };
    assert_eq!(decide(&off, &sent), Decision::GiveUp(502), "the upstream may have acted on it");
    assert_eq!(decide(&off, &Attempt { request_sent: false, ..sent }), Decision::Fresh);
}

#[test]
fn no_server_is_asked_after_next_upstream_timeout() {
    let conf = exchange(default_words(), 1);
    assert_eq!(decide(&conf, &attempt(Condition::Error)), Decision::GiveUp(502));
    let soon = Attempt { elapsed: Duration::from_millis(900), ..attempt(Condition::Error) };
    assert_eq!(decide(&conf, &soon), Decision::Next);
}

#[test]
fn answers_of_403_and_404_are_not_held_against_their_server() {
    let words = NextUpstream { http_403: true, http_404: true, http_500: true, ..default_words() };
    assert!(is_peer_failure(&words, 500));
    assert!(!is_peer_failure(&words, 404) && !is_peer_failure(&words, 403) && !is_peer_failure(&words, 502));
}
