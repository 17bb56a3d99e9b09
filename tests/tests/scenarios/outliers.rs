//! Outliers: a server that answers errors is out for all workers, told of everywhere, and back when its time is over.

use millstream_tests::load::Load;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

const TWO: &str = site! {
    main "worker_processes 2;" log "info"
    http "upstream api {
            server @ONE@ max_fails=0; server @TWO@ max_fails=0;
            outlier_ejection @TERMS@;
        }"
    server "status_zone off;
        location / { proxy_pass http://api; }
        location /api/ { api; }"
};

fn values<'v>(one: &'v str, two: &'v str, terms: &'v str) -> [(&'static str, &'v str); 3] {
    [("ONE", one), ("TWO", two), ("TERMS", terms)]
}

fn moody() -> (Origin, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(200));
    let told = status.clone();
    (Origin::start(move |_| answer(told.load(Ordering::SeqCst), &[], b"moody")), status)
}

fn said(server: &Server, words: &[&str]) -> usize {
    server.log().lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
}

fn second(server: &Server) -> (String, u64) {
    let told = server.get("/api/9/http/upstreams/api").json();
    let peer = &told["peers"][1];
    (peer["state"].as_str().unwrap_or_default().to_owned(), peer["ejections"].as_u64().unwrap_or_default())
}

#[test]
fn a_server_that_answers_errors_is_out_over_a_reload_and_back_when_it_is_well() {
    let (one, (two, mood)) = (Origin::fixed(200, &[], b"steady"), moody());
    let (first, other) = (one.address(), two.address());
    let terms = "consecutive_errors=3 time=3s";
    let server = Server::start(TWO, &values(&first, &other, terms));
    let load = Load::start(server.port(), "/", 4);
    wait::until("both are asked", || one.count() > 20 && two.count() > 20);
    assert_eq!(second(&server), ("up".to_owned(), 0));
    mood.store(500, Ordering::SeqCst);
    wait::until("it is out", || said(&server, &["is ejected for 3 s: ", "errors in a row", &other]) == 1);
    assert_eq!(second(&server), ("ejected".to_owned(), 1));
    let metrics = server.get("/api/9/metrics").text();
    let peer = format!("{{upstream=\"api\",server=\"{other}\"}}");
    for line in [
        format!("millstream_upstream_peer_ejections_total{peer} 1"),
        format!("millstream_upstream_peer_up{peer} 0"),
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in {metrics}");
    }
    // Requests that were on their way when it went out are over soon; from then on there is no error.
    let answered = load.answered();
    wait::until("clients go on", || load.answered() > answered + 50);
    let asked = two.count();
    for _ in 0..20 {
        assert_eq!(server.get("/").text(), "steady");
    }
    server.reload();
    if second(&server).0 == "ejected" {
        assert_eq!(two.count(), asked, "a reload brings nobody back");
    }
    mood.store(200, Ordering::SeqCst);
    wait::until("it is back", || said(&server, &["is no longer ejected", &other]) > 0);
    wait::until("it is asked", || two.count() > asked + 10 && second(&server).0 == "up");
    let report = load.finish();
    assert!(report.failures.iter().all(|failure| failure.contains("500")), "{:?}", report.failures);
    assert!(report.failures.len() <= 20, "{:?}", report.failures);
    // A configuration that looks for no outliers has none.
    mood.store(500, Ordering::SeqCst);
    wait::until("it is out again", || {
        server.get("/");
        second(&server).0 == "ejected"
    });
    let without = TWO.replace("outlier_ejection @TERMS@;", "");
    server.rewrite(&without, &values(&first, &other, terms));
    server.reload();
    wait::until("it is up", || second(&server).0 == "up");
}

#[test]
fn what_is_listed_as_an_error_counts_and_exchanges_that_fail_do() {
    let (one, (two, mood)) = (Origin::fixed(200, &[], b"steady"), moody());
    mood.store(429, Ordering::SeqCst);
    let (first, other) = (one.address(), two.address());
    let server =
        Server::start(TWO, &values(&first, &other, "consecutive_errors=2 status=429,503-504 time=1h"));
    wait::until("it is out", || {
        server.get("/");
        said(&server, &["is ejected for 3600 s: 2 errors in a row", &other]) == 1
    });
    let closed = format!("127.0.0.1:{}", millstream_tests::ports::free());
    let server = Server::start(TWO, &values(&first, &closed, "consecutive_errors=2 time=1h"));
    wait::until("who cannot be reached is out", || {
        server.get("/");
        said(&server, &["is ejected for 3600 s: 2 errors in a row", &closed]) == 1
    });
}
