//! `proxy_intercept_errors` in front of a cache: an answer in whose place a page goes out is stored, and what is stored gets the page too.

use std::sync::Arc;
use std::time::Duration;

use millstream_tests::application::{self, Application};
use millstream_tests::client::Answer;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::{ports, wait};

/// Pages for 404 and 503, and another location with the same cache and without pages.
fn start(origin: &Origin, directives: &str) -> Server {
    let template = site! {
        main "worker_processes 1;"
        http "proxy_cache_path @DIR@/cache keys_zone=answers:1m;
            proxy_cache answers;
            proxy_cache_key $arg_key;
            proxy_cache_bypass $arg_bypass;
            add_header X-Cache-Status $upstream_cache_status always;"
        server "location / {
                proxy_pass http://@ORIGIN@;
                proxy_intercept_errors on;
                error_page 404 =410 @page;
                error_page 503 @page;
                @DIRECTIVES@
            }
            location /plain { proxy_pass http://@ORIGIN@; }
            location @page { return 404 \"the page\"; }"
    };
    Server::start(template, &[("ORIGIN", &origin.address()), ("DIRECTIVES", directives)])
}

fn told(answer: &Answer) -> (u16, String, &str) {
    (answer.status, answer.text(), answer.cache_status())
}

fn page(status: u16, cache: &str) -> (u16, String, &str) {
    (status, "the page".to_owned(), cache)
}

#[test]
fn an_error_that_gets_a_page_is_stored_and_hits_get_the_page_too() {
    let origin = Origin::start(|request| {
        if request.target().contains("bypass") {
            return answer(200, &[("Cache-Control", "max-age=60")], b"found");
        }
        answer(404, &[("Cache-Control", "max-age=60")], b"not here")
    });
    let server = start(&origin, "");
    assert_eq!(told(&server.get("/?key=a")), page(410, "MISS"));
    wait::until("it is stored", || told(&server.get("/?key=a")) == page(410, "HIT"));
    assert_eq!(told(&server.get("/?key=a")), page(410, "HIT"));
    let asked = origin.count();
    // Where nobody puts a page in its place it is what the upstream said.
    assert_eq!(told(&server.get("/plain?key=a")), (404, "not here".to_owned(), "HIT"));
    assert_eq!(told(&server.get("/?key=a")), page(410, "HIT"));
    assert_eq!(origin.count(), asked);
    // What goes past it takes its place.
    assert_eq!(told(&server.get("/?key=a&bypass=1")), (200, "found".to_owned(), "BYPASS"));
    assert_eq!(told(&server.get("/?key=a")), (200, "found".to_owned(), "HIT"));
}

#[test]
fn an_error_that_may_not_be_stored_is_asked_for_again_each_time() {
    let origin = Origin::start(|request| match request.target().contains("busy") {
        true => answer(503, &[], b"busy"),
        false => answer(404, &[("Cache-Control", "no-store")], b"not here"),
    });
    let server = start(&origin, "proxy_cache_valid 200 404 1m;");
    for asked in 1..4 {
        assert_eq!(told(&server.get("/?key=a")), page(410, "MISS"));
        assert_eq!(origin.count(), asked);
    }
    for asked in 4..7 {
        assert_eq!(server.get("/busy?key=b").status, 503);
        assert_eq!(origin.count(), asked);
    }
}

#[test]
fn nobody_waits_for_the_body_of_an_error_that_gets_a_page() {
    let gate = Arc::new(Gate::default());
    let origin = Origin::start({
        let gate = gate.clone();
        move |_| {
            vec![
                Step::Send(
                    b"HTTP/1.1 404 Not Found\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\n\r\nnot"
                        .to_vec(),
                ),
                Step::Pass(gate.clone()),
                Step::Send(b" here".to_vec()),
            ]
        }
    });
    let server = start(&origin, "proxy_cache_unread_timeout 60s;");
    let first = server.get("/?key=a");
    assert_eq!(told(&first), page(410, "MISS"));
    // It is still arriving.
    assert_eq!(told(&server.get("/?key=a")), page(410, "HIT"));
    assert_eq!(origin.count(), 1);
    gate.open();
    wait::within(Duration::from_secs(20), || {
        (told(&server.get("/plain?key=a")) == (404, "not here".to_owned(), "HIT")).then_some(())
    })
    .expect("the whole of it was stored");
    assert_eq!(origin.count(), 1);
}

#[test]
fn clients_that_ask_at_once_for_an_error_that_gets_a_page_are_one_request_to_the_api() {
    let origin = Origin::start(|_| {
        let mut steps = vec![Step::Pause(Duration::from_millis(300))];
        steps.extend(answer(404, &[("Cache-Control", "max-age=60")], b"not here"));
        steps
    });
    let server = start(&origin, "proxy_cache_lock on;");
    std::thread::scope(|scope| {
        let ask = || scope.spawn(|| server.get("/?key=a"));
        let clients: Vec<_> = (0..8).map(|_| ask()).collect();
        for client in clients {
            let answer = client.join().expect("no panic");
            assert_eq!((answer.status, answer.text().as_str()), (410, "the page"));
        }
    });
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_fallback_with_the_key_of_the_location_that_led_to_it_is_not_told_of_that_ones_failures() {
    let broken = Origin::start(|_| {
        let mut steps = vec![Step::Pause(Duration::from_millis(50))];
        steps.extend(answer(503, &[], b"broken"));
        steps
    });
    let sound = Origin::fixed(200, &[], b"fallback");
    let server = Server::start(
        "worker_processes 2; pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; proxy_cache_path @DIR@/cache keys_zone=answers:1m;
            proxy_cache answers; proxy_cache_key $request_uri; proxy_cache_valid 200 1s; proxy_intercept_errors on;
            server { listen 127.0.0.1:@PORT@;
                location / { proxy_pass http://@BROKEN@; error_page 502 503 504 = @fallback; }
                location @fallback { proxy_pass http://@SOUND@; } } }",
        &[("BROKEN", &broken.address()), ("SOUND", &sound.address())],
    );
    for round in 0..5 {
        std::thread::scope(|scope| {
            let ask = || scope.spawn(|| server.get(&format!("/{round}")));
            let clients: Vec<_> = (0..20).map(|_| ask()).collect();
            for client in clients {
                let answer = client.join().expect("no panic");
                assert_eq!((answer.status, answer.text().as_str()), (200, "fallback"));
            }
        });
    }
}

const FAILING_PAGES: &str = site! {
    main "worker_processes 1;"
    http "proxy_cache_path @DIR@/cache keys_zone=answers:1m;
        proxy_intercept_errors on;
        fastcgi_intercept_errors on;"
    server "error_page 404 500 502 503 /errors/500;
        location / { proxy_pass http://@ORIGIN@; }
        location /errors/ { proxy_pass http://@ORIGIN@; }
        location /cached/ {
            error_page 404 500 /cached/500;
            proxy_cache answers; proxy_cache_valid any 1m; proxy_ignore_headers Set-Cookie; proxy_pass http://@ORIGIN@;
        }
        location /named/ { error_page 404 = @named; proxy_pass http://@ORIGIN@; }
        location @named { error_page 404 = @other; proxy_pass http://@ORIGIN@; }
        location @other { return 200 other; }
        location /denied/ { deny all; error_page 403 = @named; }
        location /sent-to-php/ { error_page 404 /php/500; proxy_pass http://@ORIGIN@; }
        location /php/ { error_page 500 /other; fastcgi_pass 127.0.0.1:@APP@; }
        location /nested/ { recursive_error_pages on; error_page 404 = @nested; proxy_pass http://@ORIGIN@; }
        location @nested { error_page 404 = @other; proxy_pass http://@ORIGIN@; }
        location /raw/ { error_page 404 = @raw; proxy_pass http://@ORIGIN@; }
        location @raw { proxy_intercept_errors off; proxy_pass http://@ORIGIN@; }
        location /unnamed/ { error_page 404 /php-without-page/500; proxy_pass http://@ORIGIN@; }
        location /php-without-page/ { error_page 404 /other; fastcgi_pass 127.0.0.1:@APP@; }"
};

#[test]
fn an_error_of_an_error_page_is_the_built_in_page_and_nothing_that_the_upstream_said() {
    let origin = Origin::start(|request| {
        let status = if request.target().ends_with("/500") { 500 } else { 404 };
        answer(status, &[("X-Stack", "trace"), ("Set-Cookie", "s=1")], b"stack trace")
    });
    let application = Application::start(|_| {
        application::answer("Status: 500 Oops\r\nX-Stack: trace\r\nSet-Cookie: s=1\r\n\r\nstack trace")
    });
    let server = Server::start(
        FAILING_PAGES,
        &[("ORIGIN", &origin.address()), ("APP", &application.port().to_string())],
    );
    for (path, status, text) in [
        ("/missing", 500, "<h1>500 Internal"),
        // The page itself, which has itself as its page.
        ("/errors/500", 500, "<h1>500 Internal"),
        ("/cached/missing", 500, "<h1>500 Internal"),
        ("/named/missing", 404, "<h1>404 Not Found"),
        ("/denied/missing", 404, "<h1>404 Not Found"),
        ("/sent-to-php/missing", 500, "<h1>500 Internal"),
        ("/nested/missing", 200, "other"),
        // What is not intercepted is the upstream's.
        ("/raw/missing", 404, "stack trace"),
        ("/unnamed/missing", 404, "stack trace"),
    ] {
        // The second one is a hit where there is a cache.
        for _ in 0..2 {
            let got = server.get(path);
            assert_eq!(got.status, status, "{path}");
            assert!(got.text().contains(text), "{path}: {}", got.text());
            let is_upstreams = text == "stack trace";
            assert_eq!(got.field("x-stack").is_some(), is_upstreams, "{path}");
            assert_eq!(got.field("set-cookie").is_some(), is_upstreams, "{path}");
        }
    }
}

const TRIED: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        log_format tried '$request_uri [$upstream_status] [$upstream_addr]';
        access_log @DIR@/access.log tried;
        proxy_cache_path @DIR@/cache keys_zone=z:1m;
        upstream two { server 127.0.0.1:@CLOSED@ max_fails=0; server @LEADS@ backup; }
        server { listen 127.0.0.1:@PORT@; proxy_intercept_errors on;
            location /one { error_page 307 = @second; proxy_pass http://@LEADS@; }
            location /two { error_page 307 = @second; proxy_pass http://two; }
            location /path { error_page 307 =200 /second; proxy_pass http://@LEADS@; }
            location /accel { proxy_pass http://@LEADS@/accel; }
            location /text { error_page 307 = @text; proxy_pass http://@LEADS@; }
            location /stored { error_page 307 = @stored; proxy_pass http://@LEADS@; }
            location = /second { proxy_pass http://@SECOND@; }
            location @second { proxy_pass http://@SECOND@; }
            location @text { return 200 text; }
            location @stored { proxy_pass http://@SECOND@; proxy_cache z; proxy_cache_key k; proxy_cache_valid any 1h; }
        }
    }";

#[test]
fn a_colon_parts_the_tries_of_one_location_from_those_of_the_one_that_it_led_to() {
    let leads = Origin::start(|request| match request.target() {
        "/accel" => answer(200, &[("X-Accel-Redirect", "/second")], b""),
        _ => answer(307, &[("Location", "/x")], b""),
    });
    let second = Origin::fixed(200, &[], b"second");
    let (one, two, closed) = (leads.address(), second.address(), ports::free());
    let values = [("LEADS", one.as_str()), ("SECOND", two.as_str()), ("CLOSED", &closed.to_string())];
    let server = Server::start(TRIED, &values);
    let closed = format!("127.0.0.1:{closed}");
    for (path, statuses, addresses) in [
        ("/one", "307 : 200", format!("{one} : {two}")),
        ("/two", "502, 307 : 200", format!("{closed}, {one} : {two}")),
        ("/path", "307 : 200", format!("{one} : {two}")),
        ("/accel", "200 : 200", format!("{one} : {two}")),
        ("/text", "307", one.clone()),
        // What is stored takes no try.
        ("/stored?first", "307 : 200", format!("{one} : {two}")),
        ("/stored?again", "307", one.clone()),
    ] {
        assert_eq!(server.get(path).status, 200, "{path}");
        let line = format!("{path} [{statuses}] [{addresses}]\n");
        wait::until(&format!("the log has {line}"), || server.prefix().read("access.log").contains(&line));
    }
}
