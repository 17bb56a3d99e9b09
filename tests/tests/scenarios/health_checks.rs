//! Health checks: a server that fails is out for everybody with its first failed check and back once it has passed.

use millstream_tests::application::{self, Application};
use millstream_tests::doctor::Doctor;
use millstream_tests::gate::Gate;
use millstream_tests::load::Load;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;
use rustix::process::Signal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// Two servers behind a check. `max_fails=0` disables passive checks.
const TWO: &str = site! {
    main "worker_processes 2;" log "info"
    http "match well { status 200; header X-Mood != bad; }
        upstream api { server @ONE@ max_fails=0; server @TWO@ max_fails=0; }"
    server "server_name api.example;
        add_header X-Addr $upstream_addr always;
        location / {
            proxy_pass http://api; proxy_next_upstream error timeout http_500; proxy_read_timeout 2s;
            proxy_set_header Host $host; proxy_set_header X-Asks check;
            @CHECK@
        }"
};

fn start(check: &str, one: &Origin, two: &Origin) -> Server {
    Server::start(TWO, &[("ONE", &one.address()), ("TWO", &two.address()), ("CHECK", check)])
}

fn moody() -> (Origin, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(200));
    let told = status.clone();
    (Origin::start(move |_| answer(told.load(Ordering::SeqCst), &[], b"moody")), status)
}

fn count(origin: &Origin, path: &str) -> usize {
    origin.requests().iter().filter(|request| request.target() == path).count()
}

fn said(server: &Server, words: &[&str]) -> usize {
    server.log().lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
}

#[test]
fn a_server_that_fails_one_check_is_out_for_all_workers_and_back_after_passes_and_no_client_sees_it() {
    let (one, (two, mood)) = (Origin::fixed(200, &[], b"steady"), moody());
    let server = start("health_check interval=100ms passes=3 uri=/well match=well;", &one, &two);
    let load = Load::start(server.port(), "/", 4);
    wait::until("both are asked", || count(&one, "/") > 20 && count(&two, "/") > 20);
    let checks = count(&two, "/well");
    mood.store(500, Ordering::SeqCst);
    wait::until("it is out", || said(&server, &["is unhealthy", &two.address()]) == 1);
    // The check that was under way may still have seen it well; the next one has not.
    assert!(count(&two, "/well") <= checks + 2, "one failed check is enough");
    let asked = count(&two, "/");
    let answered = load.answered();
    wait::until("clients go on", || load.answered() > answered + 50);
    // Requests that were on their way when it went out are the last.
    assert!(count(&two, "/") <= asked + 4, "{} and {asked}", count(&two, "/"));
    wait::until("it is checked on", || count(&two, "/well") > checks + 5);
    mood.store(200, Ordering::SeqCst);
    let (checks, asked) = (count(&two, "/well"), count(&two, "/"));
    wait::until("it is back", || count(&two, "/") > asked + 10);
    assert!(count(&two, "/well") >= checks + 3, "after three checks that it passed");
    let report = load.finish();
    assert_eq!(report.failures, Vec::<String>::new());
    assert_eq!(
        said(&server, &["is unhealthy: the status is 500", "health check \"well\"", "upstream \"api\""]),
        1
    );
    assert_eq!(said(&server, &["is healthy", &two.address()]), 1);
}

#[test]
fn checks_go_out_as_requests_of_their_location_do() {
    let (one, two) = (Origin::fixed(200, &[], b"here"), Origin::fixed(200, &[], b"here"));
    let server = start("health_check interval=50ms uri=/well?deep=1;", &one, &two);
    wait::until("each is checked", || count(&one, "/well?deep=1") > 1 && count(&two, "/well?deep=1") > 1);
    let check = one.requests().remove(0);
    assert!(check.head.starts_with("GET /well?deep=1 HTTP/1.1\r\n"), "{}", check.head);
    assert_eq!([check.field("host"), check.field("x-asks")], [Some("api.example"), Some("check")]);
    assert_eq!([check.field("connection"), check.field("content-length")], [None, None]);
    assert!(one.connections() > 1, "each has a connection of its own");
    assert_eq!(server.get("/").text(), "here");
}

#[test]
fn another_port_may_be_asked_over_one_connection() {
    let (one, two, doctor) =
        (Origin::fixed(200, &[], b""), Origin::fixed(200, &[], b""), Origin::fixed(200, &[], b"body"));
    let check = format!("health_check interval=20ms port={} keepalive_time=1h;", doctor.port());
    let server = start(&check, &one, &two);
    wait::until("it is asked for both", || doctor.count() > 10);
    assert_eq!((doctor.connections(), one.connections(), two.connections()), (2, 0, 0));
    assert_eq!(server.get("/").status, 200);
}

#[test]
fn whoever_does_not_answer_in_time_or_otherwise_than_wanted_is_out() {
    let gate = Arc::new(Gate::default());
    let held = gate.clone();
    let silent = Origin::start(move |_| [vec![Step::Pass(held.clone())], answer(200, &[], b"late")].concat());
    let bad = Origin::fixed(200, &[("X-Mood", "bad")], b"wrong");
    let server = start("proxy_connect_timeout 1s; health_check interval=50ms match=well;", &silent, &bad);
    wait::until("both are out", || said(&server, &["is unhealthy"]) == 2);
    assert_eq!(said(&server, &["upstream timed out", "while reading response header", &silent.address()]), 1);
    assert_eq!(said(&server, &["header \"X-Mood\" is \"bad\"", &bad.address()]), 1);
    let refused = server.get("/");
    assert_eq!((refused.status, refused.field("x-addr")), (502, Some("api")), "nobody is asked");
    gate.open();
    wait::until("the first one is back", || server.get("/").text() == "late");
}

#[test]
fn a_mandatory_server_waits_for_its_first_pass_and_after_a_reload_unless_it_is_persistent() {
    // Checks wait for a gate of their own; requests do not.
    let gates: Vec<Arc<Gate>> = (0..4).map(|_| Arc::default()).collect();
    let at = Arc::new(AtomicU16::new(0));
    let (known, now) = (gates.clone(), at.clone());
    let script = move |request: &Request| match request.target() {
        "/well" => {
            let gate = known[usize::from(now.load(Ordering::SeqCst))].clone();
            [vec![Step::Pass(gate)], answer(200, &[], b"")].concat()
        }
        _ => answer(200, &[], b"here"),
    };
    let origin = Origin::start(script);
    let template = site! {
        log "notice"
        http "upstream api { server @ONE@; }"
        server "location / { proxy_pass http://api; health_check interval=10s uri=/well mandatory @ALSO@; }"
    };
    let address = origin.address();
    let server = Server::start(template, &[("ONE", &address), ("ALSO", "")]);
    let reload = |also: &str, number: u16| {
        at.store(number - 1, Ordering::SeqCst);
        server.rewrite(template, &[("ONE", &address), ("ALSO", also)]);
        server.signal(Signal::HUP);
        let line = format!("configuration {number} is in force");
        wait::until("the reload", || server.log().contains(&line));
        wait::until("the check of it", || count(&origin, "/well") >= usize::from(number));
    };
    wait::until("it is checked", || count(&origin, "/well") == 1);
    assert_eq!(server.get("/").status, 502, "not used before");
    gates[0].open();
    wait::until("it passes", || server.get("/").status == 200);
    reload("", 2);
    wait::until("it waits once more", || server.get("/").status == 502);
    gates[1].open();
    wait::until("it passes", || server.get("/").status == 200);
    reload("persistent", 3);
    assert_eq!(server.get("/").status, 200, "remembered");
    assert!(gates[2].open(), "its check had not ended");
}

#[test]
fn a_reload_keeps_who_is_unhealthy() {
    let (one, (two, mood)) = (Origin::fixed(200, &[], b"steady"), moody());
    mood.store(503, Ordering::SeqCst);
    let server = start("health_check interval=1h;", &one, &two);
    wait::until("it is out", || said(&server, &["is unhealthy", &two.address()]) == 1);
    // One pass, of the first check, is not enough; the second comes in an hour.
    mood.store(200, Ordering::SeqCst);
    let check = "health_check interval=1h passes=2;";
    server.rewrite(TWO, &[("ONE", &one.address()), ("TWO", &two.address()), ("CHECK", check)]);
    server.reload();
    for _ in 0..10 {
        assert_eq!(server.get("/").text(), "steady");
    }
    assert_eq!(said(&server, &["is healthy", &two.address()]), 0);
}

#[test]
fn an_application_is_checked_in_its_own_protocol() {
    let application = Application::start(|asked| match asked.param("SCRIPT_NAME") {
        "/well.php" => application::answer("Content-Type: text/plain\r\n\r\nall well"),
        _ => application::answer("Status: 500 Broken\r\n\r\n"),
    });
    let template = site! {
        log "info"
        http "match well { status 200; body ~ \"^all well$\"; }
            fastcgi_param SCRIPT_NAME $fastcgi_script_name;
            upstream php { server 127.0.0.1:@APP@; }"
        server "location / { fastcgi_pass php; health_check interval=50ms uri=/well.php match=well mandatory; }
            location /ill/ { fastcgi_pass 127.0.0.1:@APP@; health_check interval=50ms; }"
    };
    let server = Server::start(template, &[("APP", &application.port().to_string())]);
    wait::until("it passes", || server.get("/well.php").text() == "all well");
    wait::until("the other one fails", || said(&server, &["is unhealthy: the status is 500"]) == 1);
    assert_eq!(server.get("/ill/").status, 502, "one server alone is out as well");
}

#[test]
fn checks_speak_tls_where_the_location_does() {
    let prefix = Prefix::with_certificate("api.example");
    let template = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
        http {
            access_log off;
            ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
            upstream behind { server 127.0.0.1:@TLSPORT@; }
            server { listen 127.0.0.1:@TLSPORT@ ssl; server_name _; return 200 \"$scheme $ssl_server_name\"; }
            match named { body ~ \"https api.example\"; }
            server {
                listen 127.0.0.1:@PORT@;
                location / {
                    proxy_pass https://behind; proxy_ssl_server_name on; proxy_ssl_name api.example;
                    health_check interval=50ms match=named mandatory;
                }
            }
        }";
    let tls = ports::free().to_string();
    let server = Server::start_in(prefix, template, &[("TLSPORT", &tls)]);
    wait::until("it passes", || server.get("/").status == 200);
}

/// Requests go to one port, gRPC health calls to the doctor's.
const CALLED: &str = site! {
    log "info"
    http "upstream shop { server @ONE@; }"
    server "server_name shop.example;
        location / { proxy_pass http://shop; proxy_read_timeout 500ms; @CHECK@ }"
};

fn start_called(origin: &Origin, check: &str) -> Server {
    Server::start(CALLED, &[("ONE", &origin.address()), ("CHECK", check)])
}

#[test]
fn a_server_of_grpc_is_used_while_the_service_that_is_asked_about_is_serving() {
    let (origin, doctor) = (Origin::fixed(200, &[], b"here"), Doctor::start());
    let check = format!(
        "health_check interval=50ms mandatory keepalive_time=1h port={} type=grpc grpc_service=shop.Orders;",
        doctor.port()
    );
    let server = start_called(&origin, &check);
    wait::until("the service is not known", || said(&server, &["is unhealthy: the gRPC status is 5"]) == 1);
    assert_eq!(server.get("/").status, 502);
    doctor.put("shop.Orders", true);
    wait::until("it passes", || server.get("/").status == 200);
    assert_eq!(said(&server, &["is healthy", "grpc_service: \"shop.Orders\""]), 1);
    doctor.put("", false);
    doctor.put("shop.Orders", false);
    wait::until("it is out", || server.get("/").status == 502);
    assert_eq!(said(&server, &["is unhealthy: the service is NOT_SERVING"]), 1);
    assert_eq!(doctor.connections(), 1, "one connection serves all checks");
}

#[test]
fn without_a_service_the_server_as_a_whole_is_asked_and_one_without_the_protocol_by_its_refusal() {
    let origin = Origin::fixed(200, &[], b"here");
    let (doctor, plain) = (Doctor::start(), Doctor::without_protocol());
    for (asked, more) in [(&doctor, ""), (&plain, "grpc_status=12")] {
        let check = format!("health_check interval=50ms mandatory port={} type=grpc {more};", asked.port());
        let server = start_called(&origin, &check);
        wait::until("it passes", || server.get("/").status == 200);
    }
    for (asked, more, why) in
        [(&doctor, "grpc_status=12", "the gRPC status is 0"), (&plain, "", "the gRPC status is 12")]
    {
        let check = format!("health_check interval=50ms port={} type=grpc {more};", asked.port());
        let server = start_called(&origin, &check);
        wait::until("it is out", || said(&server, &["is unhealthy", why]) == 1);
        assert_eq!(server.get("/").status, 502);
    }
}

#[test]
fn who_does_not_speak_http2_or_does_not_answer_fails_a_check_of_grpc() {
    let origin = Origin::fixed(200, &[], b"here");
    let gate = Arc::new(Gate::default());
    let held = gate.clone();
    let silent = Origin::start(move |_| vec![Step::Pass(held.clone())]);
    for (port, why) in [
        (origin.port(), "while calling upstream"),
        (silent.port(), "is unhealthy"),
        (ports::free(), "while connecting to upstream"),
    ] {
        let check = format!(
            "proxy_connect_timeout 200ms; proxy_send_timeout 200ms; health_check interval=50ms port={port} type=grpc;"
        );
        let server = start_called(&origin, &check);
        wait::until("it is out", || said(&server, &["is unhealthy", why]) == 1);
    }
    gate.open();
}

#[test]
fn calls_of_checks_go_over_the_tls_of_their_location() {
    let prefix = Prefix::with_certificate("shop.example");
    let doctor = Doctor::secured(&prefix.read("server.pem"), &prefix.read("server.key"));
    let template = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
        http {
            access_log off;
            ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
            upstream shop { server 127.0.0.1:@TLSPORT@; }
            server { listen 127.0.0.1:@TLSPORT@ ssl; return 200 here; }
            server {
                listen 127.0.0.1:@PORT@;
                location / {
                    proxy_pass https://shop; proxy_ssl_name shop.example; proxy_ssl_server_name on;
                    proxy_ssl_verify on; proxy_ssl_trusted_certificate @DIR@/server.pem;
                    health_check interval=50ms mandatory port=@DOCTOR@ type=grpc;
                }
            }
        }";
    let (tls, port) = (ports::free().to_string(), doctor.port().to_string());
    let server = Server::start_in(prefix, template, &[("TLSPORT", &tls), ("DOCTOR", &port)]);
    wait::until("it passes", || server.get("/").text() == "here");
    doctor.put("", false);
    wait::until("it is out", || server.get("/").status == 502);
}
