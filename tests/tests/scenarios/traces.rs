//! OpenTelemetry traces: spans of requests and how they nest, contexts that travel, and a collector that is slow, gone or refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use millstream_tests::collector::{Collector, attribute, digits, spans_of, value};
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::ports;
use millstream_tests::server::Server;
use millstream_tests::wait;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use rustix::process::Signal;

const TEMPLATE: &str = "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
http {
    access_log off;
    proxy_cache_path @DIR@/cache keys_zone=c:1m;
    otel_exporter { endpoint @COLLECTOR@; @EXPORTER@ }
    @HTTP@
    upstream api { server @ORIGIN@; }
    upstream half { server 127.0.0.1:@CLOSED@ max_fails=0; server @ORIGIN@; }
    proxy_http_version 1.1;
    proxy_set_header Connection \"\";
    server {
        listen 127.0.0.1:@PORT@;
        server_name site.test;
        @SERVER@
    }
    server {
        listen 127.0.0.1:@PORT@;
        server_name figures;
        otel_trace off;
        location /api/ { api; }
    }
}";

#[derive(Default)]
struct Written<'a> {
    exporter: &'a str,
    http: &'a str,
    server: &'a str,
}

impl Written<'_> {
    fn start(&self, collector: &str, origin: &Origin) -> Server {
        let closed = ports::free().to_string();
        let exporter = if self.exporter.is_empty() { "interval 10ms;" } else { self.exporter };
        Server::start(
            TEMPLATE,
            &[
                ("COLLECTOR", collector),
                ("EXPORTER", exporter),
                ("HTTP", self.http),
                ("SERVER", self.server),
                ("ORIGIN", &origin.address()),
                ("CLOSED", &closed),
            ],
        )
    }
}

/// Every span but the first is below another of the trace, and inside its time.
fn assert_nests(trace: &[Span]) {
    let own = &trace[0];
    assert_eq!(own.kind, i32::from(SpanKind::Server), "{own:#?}");
    for span in trace {
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8), "{span:#?}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:#?}");
        let twins = trace.iter().filter(|other| other.span_id == span.span_id).count();
        assert_eq!(twins, 1, "{trace:#?}");
    }
    for span in &trace[1..] {
        let parent = trace.iter().find(|other| other.span_id == span.parent_span_id);
        let parent = parent.unwrap_or_else(|| panic!("{} has no parent: {trace:#?}", span.name));
        assert!(
            parent.start_time_unix_nano <= span.start_time_unix_nano
                && span.end_time_unix_nano <= parent.end_time_unix_nano,
            "{} is not inside {}: {trace:#?}",
            span.name,
            parent.name
        );
    }
}

fn below<'a>(trace: &'a [Span], parent: &Span) -> Vec<&'a str> {
    let children = trace.iter().filter(|span| span.parent_span_id == parent.span_id);
    children.map(|span| span.name.as_str()).collect()
}

fn figure(server: &Server, line: &str) -> u64 {
    let text = server.get_with("/api/9/metrics", &[("Host", "figures")]).text();
    let found = text.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("no {line} in {text}"))
}

const CACHED: &str =
    "location /cached/ { proxy_pass http://api; proxy_cache c; proxy_cache_valid 1h; proxy_cache_lock on; }";

#[test]
fn spans_of_a_miss_and_a_hit_nest() {
    let (collector, origin) = (Collector::start(), Origin::fixed(200, &[], b"hello"));
    let server = Written { http: "otel_trace on;", server: CACHED, ..Written::default() }
        .start(&collector.address(), &origin);
    assert_eq!(server.get("/cached/a?miss").text(), "hello");
    let miss = collector.trace_of("/cached/a?miss");
    assert_nests(&miss);
    assert_eq!(below(&miss, &miss[0]), ["cache look-up", "GET"]);
    let asked = miss.iter().find(|span| span.kind == i32::from(SpanKind::Client)).expect("the API was asked");
    assert_eq!(below(&miss, asked), ["connect", "header", "body"]);
    assert_eq!(attribute(asked, "net.peer.name"), Some(origin.address()));
    assert_eq!(attribute(&miss[0], "millstream.cache.status").as_deref(), Some("MISS"));
    let again = server.client().get_with("/cached/a?miss", &[("User-Agent", "again")]).expect("an answer");
    assert_eq!(again.text(), "hello");
    let by_agent = || {
        collector
            .spans()
            .into_iter()
            .find(|span| attribute(span, "http.user_agent").as_deref() == Some("again"))
    };
    wait::until("the hit's spans", || by_agent().is_some());
    let own = by_agent().expect("it is there");
    let hit: Vec<Span> = collector.spans().into_iter().filter(|span| span.trace_id == own.trace_id).collect();
    assert_nests(&hit);
    assert_eq!(below(&hit, &hit[0]), ["cache look-up"]);
    assert_eq!(attribute(&hit[0], "millstream.cache.status").as_deref(), Some("HIT"));
    assert_ne!(own.trace_id, miss[0].trace_id);
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_request_that_waits_for_anothers_answer_has_a_span_of_its_wait() {
    let gate = Arc::new(Gate::default());
    let held = gate.clone();
    let origin = Origin::start(move |_| {
        let mut steps = vec![Step::Pass(held.clone())];
        steps.extend(answer(200, &[], b"late"));
        steps
    });
    let collector = Collector::start();
    let server = Written { http: "otel_trace on;", server: CACHED, ..Written::default() }
        .start(&collector.address(), &origin);
    let ask = |name: &str| {
        let mut client = server.client();
        client
            .send(format!("GET /cached/x HTTP/1.1\r\nHost: site.test\r\nUser-Agent: {name}\r\n\r\n"))
            .expect("sent");
        client
    };
    let mut first = ask("first");
    wait::until("the API is asked", || origin.count() == 1);
    let mut second = ask("second");
    wait::until("both are being answered", || {
        figure(&server, "millstream_client_connections{state=\"writing\"}") >= 2
    });
    gate.open();
    assert_eq!(
        (first.answer().expect("whole").text(), second.answer().expect("whole").text()),
        ("late".into(), "late".into())
    );
    let of = |name: &str| -> Vec<Span> {
        let all = collector.spans();
        let own = all.iter().find(|span| attribute(span, "http.user_agent").as_deref() == Some(name));
        own.map_or_else(Vec::new, |own| {
            all.iter().filter(|span| span.trace_id == own.trace_id).cloned().collect()
        })
    };
    wait::until("both traces", || !of("first").is_empty() && !of("second").is_empty());
    let (first, second) = (of("first"), of("second"));
    assert_nests(&first);
    assert_nests(&second);
    assert_eq!(below(&first, &first[0]), ["cache look-up", "GET"]);
    assert_eq!(below(&second, &second[0]), ["cache look-up", "cache lock"]);
    let lock = second.iter().find(|span| span.name == "cache lock").expect("it waited");
    assert_eq!(attribute(lock, "millstream.cache.lock").as_deref(), Some("follow"));
    assert_eq!(origin.count(), 1);
}

#[test]
fn each_server_that_is_asked_has_a_span_and_is_told_of_its_own() {
    let (collector, origin) = (Collector::start(), Origin::fixed(200, &[], b"hello"));
    let server = Written {
        http: "otel_trace on; otel_trace_context inject;",
        server: "location /half { proxy_pass http://half; }",
        ..Written::default()
    }
    .start(&collector.address(), &origin);
    // Turns: of two requests one at least meets the server that is not there first.
    for number in 0..2 {
        assert_eq!(server.get(&format!("/half?{number}")).status, 200);
    }
    let traces = [0, 1].map(|number| collector.trace_of(&format!("/half?{number}")));
    traces.iter().for_each(|trace| assert_nests(trace));
    let asked = |trace: &[Span]| -> Vec<Span> {
        trace.iter().filter(|span| span.kind == i32::from(SpanKind::Client)).cloned().collect()
    };
    let retried = traces.iter().find(|trace| asked(trace).len() == 2).expect("one met both");
    let asked = asked(retried);
    assert_eq!(attribute(&asked[0], "http.status_code").as_deref(), Some("502"));
    assert_eq!(asked[0].status.as_ref().map(|status| status.code), Some(2), "the first failed");
    assert_eq!(attribute(&asked[1], "http.resend_count").as_deref(), Some("1"));
    assert_eq!(attribute(&asked[1], "http.status_code").as_deref(), Some("200"));
    let told: Vec<String> = origin
        .requests()
        .iter()
        .filter_map(|request| request.field("traceparent").map(str::to_owned))
        .collect();
    let expected = format!("00-{}-{}-01", digits(&asked[1].trace_id), digits(&asked[1].span_id));
    assert!(told.contains(&expected), "{expected} is not in {told:?}");
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b9c7c989f97918e1";

#[derive(Debug, PartialEq)]
enum Told {
    Same,
    /// The client's trace, below a span of ours.
    Continued,
    New,
    Nothing,
}

#[test]
fn contexts_travel_as_the_configuration_says() {
    let (collector, origin) = (Collector::start(), Origin::fixed(200, &[], b"hello"));
    let locations: String = ["ignore", "extract", "inject", "propagate"]
        .map(|word| {
            format!(
                "location /{word} {{ otel_trace_context {word}; proxy_pass http://api; add_header X-Trace \
                 \"$otel_trace_id $otel_span_id $otel_parent_id $otel_parent_sampled\"; }}"
            )
        })
        .concat();
    let server = Written { http: "otel_trace on;", server: &locations, ..Written::default() }
        .start(&collector.address(), &origin);
    let state = "congo=t61rcWkgMzE";
    let cases: &[(&str, &str, Told, bool)] = &[
        ("ignore", "-01", Told::Same, false),
        ("extract", "-01", Told::Same, true),
        ("inject", "-01", Told::New, false),
        ("propagate", "-01", Told::Continued, true),
        ("propagate", "-00", Told::Continued, true),
        // Without flags it is none.
        ("propagate", "-", Told::New, false),
        ("extract", "-", Told::Same, false),
        ("ignore", "", Told::Nothing, false),
        ("extract", "", Told::Nothing, false),
        ("inject", "", Told::New, false),
        ("propagate", "", Told::New, false),
    ];
    for (number, (word, flags, told, is_parent)) in cases.iter().enumerate() {
        let target = format!("/{word}?{number}");
        let came_trace = format!("{:032x}", number + 1);
        let came = format!("00-{came_trace}-{PARENT}{flags}");
        let fields: &[(&str, &str)] =
            if flags.is_empty() { &[] } else { &[("Traceparent", &came), ("tracestate", state)] };
        let answered = server.get_with(&target, fields);
        let asked = origin.requests().pop().expect("the API was asked");
        let trace = collector.trace_of(&target);
        assert_nests(&trace);
        let own = &trace[0];
        let sent = asked.field("traceparent");
        let below =
            trace.iter().find(|span| span.kind == i32::from(SpanKind::Client)).expect("the API was asked");
        let ours = format!("00-{}-{}-01", digits(&own.trace_id), digits(&below.span_id));
        let case = format!("{target} {came}: {sent:?}");
        match told {
            Told::Same => assert_eq!(sent, Some(came.as_str()), "{case}"),
            Told::Continued | Told::New => assert_eq!(sent, Some(ours.as_str()), "{case}"),
            Told::Nothing => assert_eq!(sent, None, "{case}"),
        }
        let keeps_state = matches!(told, Told::Same | Told::Continued);
        assert_eq!(asked.field("tracestate"), keeps_state.then_some(state), "{case}");
        assert_eq!(digits(&own.trace_id) == came_trace, *is_parent, "{case}");
        assert_eq!(digits(&own.parent_span_id), if *is_parent { PARENT } else { "" }, "{case}");
        assert_eq!(own.trace_state, if *is_parent { state } else { "" }, "{case}");
        let parent = if *is_parent { PARENT } else { "" };
        let sampled = u8::from(*is_parent && *flags == "-01");
        let variables = format!("{} {} {parent} {sampled}", digits(&own.trace_id), digits(&own.span_id));
        assert_eq!(answered.field("x-trace"), Some(variables.as_str()), "{case}");
    }
}

#[test]
fn a_request_is_traced_where_its_sender_traces_it_or_its_share_is_up() {
    let (collector, origin) = (Collector::start(), Origin::fixed(200, &[], b"hello"));
    let server = Written {
        http: "split_clients $otel_trace_id $ratio { 50% on; * off; }
               split_clients $otel_trace_id $none { 100% off; * on; }",
        server: "location /parent { otel_trace $otel_parent_sampled; otel_trace_context propagate; proxy_pass http://api; }
                 location /ratio { otel_trace $ratio; otel_trace_context inject; proxy_pass http://api; }
                 location /none { otel_trace $none; otel_trace_context inject; proxy_pass http://api; }
                 location /off { proxy_pass http://api; }
                 location /last { otel_trace on; return 204; }",
        ..Written::default()
    }
    .start(&collector.address(), &origin);
    let mut client = server.client();
    for flags in ["00", "01"] {
        let context = format!("00-{TRACE}-{PARENT}-{flags}");
        client.get_with(&format!("/parent?{flags}"), &[("traceparent", &context)]).expect("an answer");
        let sent = origin.requests().pop().expect("the API was asked");
        let sent = sent.field("traceparent").expect("it is told").to_owned();
        assert!(sent.starts_with(&format!("00-{TRACE}-")) && sent.ends_with(&format!("-{flags}")), "{sent}");
        assert!(!sent.contains(PARENT), "{sent}");
    }
    for number in 0..100 {
        client.get(&format!("/ratio?{number}")).expect("an answer");
    }
    client.get("/none").expect("an answer");
    client.get("/off").expect("an answer");
    let sampled = |name: &str| {
        let is_of = |target: &str| target.starts_with(name);
        let requests = origin.requests();
        let of = requests.iter().filter(|request| is_of(request.target()));
        of.filter(|request| request.field("traceparent").is_some_and(|sent| sent.ends_with("-01"))).count()
    };
    client.get("/last").expect("an answer");
    collector.trace_of("/last");
    let exported = |name: &str| {
        let spans = collector.spans();
        spans
            .iter()
            .filter_map(|span| attribute(span, "http.target"))
            .filter(|target| target.starts_with(name))
            .count()
    };
    assert_eq!((exported("/parent?00"), exported("/parent?01")), (0, 1));
    assert_eq!((exported("/none"), exported("/off"), sampled("/none")), (0, 0, 0));
    // What the upstream is told is what is done. Half of 100: five standard deviations to either side.
    let ratio = exported("/ratio");
    assert!((25..=75).contains(&ratio), "{ratio}");
    assert_eq!(ratio, sampled("/ratio"));
}

#[test]
fn a_span_says_what_nginx_says_and_what_the_configuration_adds() {
    let (collector, origin) = (Collector::start(), Origin::fixed(200, &[("X-Kind", "fruit")], b"hello"));
    let server = Written {
        exporter: "interval 10ms; header X-Api-Token secret; header authorization \"Bearer t\";",
        http: "otel_trace on; otel_service_name shop; otel_resource_attr deployment.environment test;
               otel_resource_attr service.name other; otel_span_attr outer x;",
        server: "location /plain/ { proxy_pass http://api; }
                 location ~ ^/broken { return 503; }
                 location /named { otel_span_name \"order $arg_n\"; otel_span_attr shop.order $arg_n;
                                   otel_span_attr http.response.header.x.kind $sent_http_x_kind; proxy_pass http://api; }",
    }
    .start(&collector.address(), &origin);
    let request =
        "POST /plain/a?b=c HTTP/1.1\r\nHost: site.test\r\nUser-Agent: tester\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(server.ask(request).text(), "hello");
    let trace = collector.trace_of("/plain/a?b=c");
    let own = &trace[0];
    assert_eq!(own.name, "/plain/");
    let port = server.port().to_string();
    for (name, expected) in [
        ("http.method", Some("POST")),
        ("http.target", Some("/plain/a?b=c")),
        ("http.route", Some("/plain/")),
        ("http.scheme", Some("http")),
        ("http.flavor", Some("1.1")),
        ("http.user_agent", Some("tester")),
        ("http.request_content_length", Some("3")),
        ("http.response_content_length", Some("5")),
        ("http.status_code", Some("200")),
        ("net.host.name", Some("site.test")),
        ("net.host.port", Some(port.as_str())),
        ("net.sock.peer.addr", Some("127.0.0.1")),
        ("outer", Some("x")),
        ("millstream.cache.status", None),
    ] {
        assert_eq!(attribute(own, name).as_deref(), expected, "{name}");
    }
    assert!(attribute(own, "net.sock.peer.port").is_some_and(|port| port.parse::<u16>().is_ok()));
    assert!(own.status.is_none() && own.parent_span_id.is_empty());
    server.get("/named?n=7");
    let named = &collector.trace_of("/named?n=7")[0];
    assert_eq!(named.name, "order 7");
    assert_eq!(attribute(named, "shop.order").as_deref(), Some("7"));
    assert_eq!(attribute(named, "http.response.header.x.kind").as_deref(), Some("[fruit]"));
    assert_eq!(attribute(named, "outer"), None, "a level that writes one has none of the level above");
    server.get("/broken");
    let broken = &collector.trace_of("/broken")[0];
    assert_eq!(
        (broken.name.as_str(), attribute(broken, "http.status_code").as_deref()),
        ("^/broken", Some("503"))
    );
    assert_eq!(broken.status.as_ref().map(|status| status.code), Some(2));
    let export = collector.exports().remove(0);
    for (name, expected) in
        [("x-api-token", "secret"), ("authorization", "Bearer t"), ("content-type", "application/grpc")]
    {
        assert!(
            export.fields.iter().any(|(known, value)| known == name && value == expected),
            "{:?}",
            export.fields
        );
    }
    let resource = export.request.resource_spans[0].resource.clone().expect("it says whose spans these are");
    assert_eq!(value(&resource.attributes, "service.name").as_deref(), Some("shop"));
    assert_eq!(value(&resource.attributes, "deployment.environment").as_deref(), Some("test"));
}

#[test]
fn a_collector_that_is_gone_costs_requests_nothing_and_the_log_two_lines() {
    let port = ports::free();
    let origin = Origin::fixed(200, &[], b"hello");
    let server = Written {
        exporter: "interval 1ms; batch_size 1; batch_count 64;",
        http: "otel_trace on;",
        server: "location / { proxy_pass http://api; }",
    }
    .start(&format!("127.0.0.1:{port}"), &origin);
    let failed = "millstream_trace_spans_total{outcome=\"failed\"}";
    for number in 0..20 {
        assert_eq!(server.get(&format!("/{number}")).status, 200);
    }
    wait::until("several batches have failed", || figure(&server, failed) >= 20);
    assert_eq!(server.log().matches("spans cannot be exported to").count(), 1, "{}", server.log());
    // It comes back.
    let collector = Collector::start_at(port);
    server.get("/after");
    wait::until("spans arrive again", || !collector.spans().is_empty());
    wait::until("the log says so", || server.log().contains("spans are exported to"));
    // And goes again.
    drop(collector);
    wait::until("another outage is told", || {
        server.get("/more");
        server.log().matches("spans cannot be exported to").count() == 2
    });
}

#[test]
fn spans_for_which_there_is_no_room_are_dropped_and_counted() {
    let gate = Arc::new(Gate::default());
    let (collector, origin) = (Collector::behind(&gate), Origin::fixed(200, &[], b"hello"));
    let server = Written {
        exporter: "interval 1ms; batch_size 2; batch_count 2;",
        http: "otel_trace on;",
        server: "location /made { return 204; }",
    }
    .start(&collector.address(), &origin);
    let mut client = server.client();
    client.get("/made").expect("an answer");
    wait::until("an export is on its way", || !collector.exports().is_empty());
    // One is under way; four fit the queue.
    for _ in 0..10 {
        assert_eq!(client.get("/made").expect("an answer").status, 204);
    }
    wait::until("six are dropped", || {
        figure(&server, "millstream_trace_spans_total{outcome=\"dropped\"}") == 6
    });
    gate.open();
    wait::until("the others arrive", || {
        figure(&server, "millstream_trace_spans_total{outcome=\"exported\"}") == 5
    });
    assert_eq!(collector.spans().len(), 5);
    assert!(collector.exports().iter().all(|export| export.spans().len() <= 2));
}

#[test]
fn what_waits_is_exported_before_the_process_ends_and_over_reloads() {
    let (collector, origin) = (Collector::start(), Origin::fixed(200, &[], b"hello"));
    let written = Written {
        exporter: "interval 1h;",
        http: "otel_trace on;",
        server: "location /made { return 204; }",
    };
    let mut server = written.start(&collector.address(), &origin);
    server.get("/made?1");
    server.reload();
    server.get("/made?2");
    assert!(collector.spans().is_empty());
    assert!(server.stop(Signal::TERM).is_some_and(|status| status.success()));
    let mut targets: Vec<_> =
        collector.spans().iter().filter_map(|span| attribute(span, "http.target")).collect();
    targets.sort();
    assert_eq!(targets, ["/made?1", "/made?2"]);
    assert_eq!(collector.exports().len(), 1, "one queue for both configurations");
}

#[test]
fn a_collector_over_http_gets_protobuf() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    // The first export is refused.
    let collector = Origin::start(move |_| {
        let refuses = counted.fetch_add(1, Ordering::SeqCst) == 0;
        answer(if refuses { 503 } else { 200 }, &[("Content-Type", "application/x-protobuf")], b"")
    });
    let origin = Origin::fixed(200, &[], b"hello");
    let server = Written {
        exporter: "interval 1ms; header X-Token t;",
        http: "otel_trace on;",
        server: "location /made { return 204; }",
    }
    .start(&format!("http://{}/v1/traces", collector.address()), &origin);
    server.get("/made?1");
    wait::until("it was refused", || server.log().contains("the collector responded with 503"));
    server.get("/made?2");
    wait::until("the second arrives", || server.log().contains("spans are exported to"));
    let request = collector.requests().pop().expect("it came");
    assert!(request.head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{}", request.head);
    assert_eq!(request.field("content-type"), Some("application/x-protobuf"));
    assert_eq!(request.field("x-token"), Some("t"));
    let spans = spans_of(&request.body);
    assert_eq!(
        spans.iter().filter_map(|span| attribute(span, "http.target")).collect::<Vec<_>>(),
        ["/made?2"]
    );
}
