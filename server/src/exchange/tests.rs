//! The pure parts of passing an answer on: which fields go to the client, whether it is buffered, what can be sent twice.

use super::answer_head::{announced, buffering, visible, with_lines};
use super::request_body::RequestBody;
use super::request_head::RequestFraming;
use millstream_conf::model::{Exchange, IgnoreHeaders, NextUpstream, RequestSize, TempPath};
use millstream_wire::Headers;
use std::time::Duration;

fn exchange() -> Exchange {
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
        next_upstream: NextUpstream::default(),
        next_upstream_tries: 0,
        next_upstream_timeout: Duration::ZERO,
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

fn headers(lines: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in lines {
        headers.push(name.as_bytes(), value.as_bytes());
    }
    headers
}

#[test]
fn fields_of_the_connection_and_hidden_ones_do_not_reach_the_client() {
    let headers = headers(&[
        ("Content-Type", "text/plain"),
        ("Date", "today"),
        ("SERVER", "origin"),
        ("Connection", "close, X-Hop"),
        ("Keep-Alive", "timeout=5"),
        ("x-hop", "secret"),
        ("Transfer-Encoding", "chunked"),
        ("Content-Length", "5"),
        ("Set-Cookie", "a=1"),
        ("Expires", "first"),
        ("Set-Cookie", "b=2"),
        ("expires", "second"),
        ("content-type", "text/html"),
        ("X-Own", "a"),
        ("X-Own", "b"),
    ]);
    let view = headers.view();
    let names: Vec<_> = visible(&exchange(), view)
        .iter()
        .map(|field| String::from_utf8_lossy(field.name(view.bytes())).into_owned())
        .collect();
    assert_eq!(names, ["Content-Type", "Set-Cookie", "Expires", "Set-Cookie", "X-Own", "X-Own"]);
    assert_eq!(announced(view), Some(5));
}

#[test]
fn lines_that_are_rewritten_stay_where_they_are() {
    let headers = headers(&[("Location", "a"), ("X-A", "b"), ("Location", "c"), ("Refresh", "d")]);
    let changed = [(2, "new".into()), (3, "newer".into())].to_vec();
    let rewritten = with_lines(headers.view(), changed);
    let values: Vec<_> = rewritten.view().iter().map(|(_, _, value)| value).collect();
    assert_eq!(values, [&b"a"[..], b"b", b"new", b"newer"]);
}

#[test]
fn x_accel_buffering_wins_over_the_directive_unless_it_is_ignored() {
    let mut conf = exchange();
    let no = headers(&[("X-Accel-Buffering", "no")]);
    assert!(buffering(&conf, headers(&[]).view()));
    assert!(!buffering(&conf, no.view()));
    conf.ignore_headers.x_accel_buffering = true;
    assert!(buffering(&conf, no.view()));
    conf.ignore_headers.x_accel_buffering = false;
    conf.buffering = false;
    assert!(buffering(&conf, headers(&[("X-Accel-Buffering", "yes")]).view()));
}

#[test]
fn a_body_that_is_passed_on_as_it_comes_can_be_sent_only_once() {
    let check = |body: RequestBody, framed, replayable| {
        assert_eq!((body.framed(), body.is_replayable()), (framed, replayable));
    };
    check(RequestBody::None, RequestFraming::None, true);
    check(RequestBody::Memory(Vec::new().into()), RequestFraming::Length(0), true);
    check(RequestBody::Memory(b"abc".to_vec().into()), RequestFraming::Length(3), true);
    check(
        RequestBody::Stream { length: Some(7), first: b"abc".to_vec(), begun: false },
        RequestFraming::Length(7),
        true,
    );
    check(
        RequestBody::Stream { length: None, first: Vec::new(), begun: true },
        RequestFraming::Chunked,
        false,
    );
}

#[test]
fn every_reason_not_to_store_is_counted() {
    use millstream_cache::policy::Reason;
    use millstream_telemetry::metrics::Cause;
    for reason in Reason::ALL {
        assert!(Cause::not_stored(reason.name()).is_some(), "{}", reason.name());
    }
}
