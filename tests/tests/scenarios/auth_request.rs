//! Another service says who is let in: what it is asked, what its answers mean, and that it guards what is stored as well.

use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Step, answer};
use millstream_tests::server::{Server, is_nginx};
use millstream_tests::wait;
use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;

const CHECKED: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log info; events {}
    http {
        log_format short '$uri $status $who'; access_log @DIR@/access.log short;
        proxy_cache_path @DIR@/cache keys_zone=answers:1m;
        proxy_cache_valid 1h;
        limit_req_zone $scheme zone=slow:1m rate=1r/m;
        limit_conn_zone $scheme zone=few:1m;
        server {
            listen 127.0.0.1:@PORT@;
            auth_request /check;
            auth_request_set $who $upstream_http_x_user;
            add_header X-Who $who always;
            location / {
                proxy_pass http://@ORIGIN@; proxy_set_header X-User $who;
                proxy_cache answers; proxy_cache_key $uri; proxy_cache_bypass $arg_past;
            }
            location /open { auth_request off; proxy_pass http://@ORIGIN@; }
            location /either { satisfy any; deny all; auth_basic here; auth_basic_user_file @DIR@/users; proxy_pass http://@ORIGIN@; }
            location /page { error_page 401 = @page; proxy_pass http://@ORIGIN@; }
            location @page { auth_request off; return 302 /login?back=$request_uri&user=$who; }
            location /kept { auth_request /check-kept; proxy_pass http://@ORIGIN@; }
            location /limited { auth_request /check-limited; proxy_pass http://@ORIGIN@; }
            location /once { auth_request /check-limited; limit_req zone=slow burst=9 nodelay; proxy_pass http://@ORIGIN@; }
            location /down { auth_request /check-down; proxy_pass http://@ORIGIN@; }
            location /late { auth_request /check-late; proxy_pass http://@ORIGIN@; }
            location /moved { auth_request /check-moved; proxy_pass http://@ORIGIN@; }
            location /file { auth_request /check-file; proxy_pass http://@ORIGIN@; }
            location /none { auth_request /check-none; proxy_pass http://@ORIGIN@; }
            location /sets { auth_request /check-sets; add_header X-Set $set; proxy_pass http://@ORIGIN@; }
            location = /check {
                internal;
                proxy_pass http://@SERVICE@/verify;
                proxy_pass_request_body off;
                proxy_set_header Content-Length \"\";
                proxy_set_header X-Original-URI $request_uri;
                proxy_set_header X-Original-Method $request_method;
            }
            location = /check-kept {
                internal; proxy_pass http://@SERVICE@/kept; proxy_cache answers; proxy_cache_key $cookie_session;
            }
            location = /check-limited { internal; limit_req zone=slow; limit_conn few 1; proxy_pass http://@SERVICE@; }
            location = /check-down { internal; proxy_pass http://127.0.0.1:@NOBODY@; }
            location = /check-late { internal; proxy_read_timeout 200ms; proxy_pass http://@SERVICE@/late; }
            location = /check-moved { internal; error_page 418 = @elsewhere; return 418; }
            location @elsewhere { proxy_pass http://@SERVICE@; }
            location = /check-file { internal; root @DIR@; limit_rate 1; }
            location = /check-none { internal; return 404; }
            location = /check-sets { internal; log_subrequest on; set $set \"by the check\"; return 204; }
        }
    }";

/// The status is that of a client's field.
fn service(gate: &Arc<Gate>) -> Origin {
    let gate = Arc::clone(gate);
    Origin::start(move |request| {
        if request.target() == "/late" {
            return vec![Step::Pass(Arc::clone(&gate)), Step::Close];
        }
        let status = request.field("x-want").map_or(200, |want| want.parse().expect("a status"));
        let challenges =
            [("WWW-Authenticate", "Basic realm=\"a\""), ("WWW-Authenticate", "Bearer"), ("X-User", "ann")];
        let body: &[u8] = if matches!(status, 204 | 304) { b"" } else { b"not for the client" };
        answer(status, &challenges, body)
    })
}

struct Checked {
    server: Server,
    origin: Origin,
    service: Origin,
    gate: Arc<Gate>,
}

fn start() -> Checked {
    let (origin, gate) = (Origin::fixed(200, &[], b"content"), Arc::new(Gate::default()));
    let service = service(&gate);
    let nobody = millstream_tests::ports::free().to_string();
    let (at, asked) = (origin.address(), service.address());
    let server = Server::start(CHECKED, &[("ORIGIN", &at), ("SERVICE", &asked), ("NOBODY", &nobody)]);
    server.prefix().write("users", "bob:{PLAIN}secret");
    Checked { server, origin, service, gate }
}

#[test]
fn the_status_of_the_service_says_whether_a_request_is_let_in_to_what_is_stored_as_well() {
    let Checked { server, origin, service, .. } = &start();
    for (want, expected) in [
        ("200", 200),
        ("204", 200),
        ("299", 200),
        ("401", 401),
        ("403", 403),
        ("302", 500),
        ("304", 500),
        ("404", 500),
        ("503", 500),
        ("200", 200),
    ] {
        let answer = server.get_with("/", &[("X-Want", want)]);
        assert_eq!((answer.status, answer.field("x-who")), (expected, Some("ann")), "{want}");
        assert!(!answer.text().contains("not for the client"), "{want}");
    }
    assert_eq!((origin.count(), service.count()), (1, 10), "what is stored is guarded each time");
    for unexpected in ["302", "304", "404", "503"] {
        let what = format!("auth request unexpected status: {unexpected}");
        wait::until(&what, || server.log().contains(&what));
    }
    let mut client = server.client();
    let refused = client.ask("GET / HTTP/1.1\r\nHost: a\r\nX-Want: 401\r\n\r\n");
    let challenges: Vec<&str> = refused
        .fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"))
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(challenges, ["Basic realm=\"a\"", "Bearer"]);
    assert_eq!(client.get("/open").expect("the next answer").status, 200);
    assert_eq!(server.get("/check").status, 404, "it is internal");
}

#[test]
fn the_service_is_asked_what_the_client_asked_for_without_its_body_and_the_upstream_gets_that() {
    let Checked { server, origin, service, .. } = &start();
    let mut client = server.client();
    let head = "POST /a%20b?c=d&past=1 HTTP/1.1\r\nHost: a\r\nCookie: k=v\r\nIf-None-Match: *\r\nRange: bytes=0-1\r\nContent-Length: 5\r\n";
    client.send(format!("{head}Expect: 100-continue\r\n\r\n")).expect("sent");
    assert_eq!(client.head().expect("an interim answer").status, 100);
    assert_eq!(client.ask("hello").status, 200);
    let (asked, passed) = (&service.requests()[0], &origin.requests()[0]);
    assert!(asked.head.starts_with("GET /verify HTTP/1."), "{}", asked.head);
    assert_eq!(asked.field("x-original-uri"), Some("/a%20b?c=d&past=1"));
    assert_eq!(asked.field("x-original-method"), Some("POST"));
    assert_eq!((asked.field("cookie"), asked.body.len()), (Some("k=v"), 0));
    for absent in ["content-length", "transfer-encoding", "expect"] {
        assert_eq!(asked.field(absent), None, "{absent}");
    }
    if !is_nginx() {
        assert_eq!(
            (asked.field("if-none-match"), asked.field("range")),
            (None, None),
            "they are about the content"
        );
    }
    assert!(passed.head.starts_with("POST /a%20b?c=d&past=1 "), "{}", passed.head);
    assert_eq!((passed.body.as_slice(), passed.field("x-user")), (&b"hello"[..], Some("ann")));
    assert_eq!(client.get("/open").expect("the connection goes on").status, 200);
}

#[test]
fn it_is_one_of_several_checks_and_a_page_may_stand_in_for_its_refusal() {
    let Checked { server, service, .. } = &start();
    let bob = ("Authorization", "Basic Ym9iOnNlY3JldA==");
    let refused = server.get_with("/either", &[("X-Want", "401")]);
    assert_eq!((refused.status, refused.field("www-authenticate")), (401, Some("Basic realm=\"here\"")));
    let let_in = server.get_with("/either", &[]);
    assert_eq!((let_in.status, let_in.field("www-authenticate")), (200, None));
    assert_eq!(server.get_with("/either", &[("X-Want", "403")]).status, 401, "how to be let in comes first");
    let asked = service.count();
    assert_eq!(server.get_with("/either", &[("X-Want", "500"), bob]).status, 200);
    assert_eq!(service.count(), asked, "who is let in need not be asked about");
    assert_eq!(server.get_with("/either", &[("X-Want", "500")]).status, 500);
    let page = server.get_with("/page?a=b", &[("X-Want", "401")]);
    assert_eq!(page.status, 302);
    assert!(
        page.field("location").is_some_and(|to| to.ends_with("/login?back=/page?a=b&user=ann")),
        "{page:?}"
    );
}

#[test]
fn what_the_service_said_is_stored_as_any_other_answer() {
    let Checked { server, service, .. } = &start();
    for session in ["one", "one", "two", "one", "two"] {
        let answer = server.get_with("/kept", &[("Cookie", &format!("session={session}"))]);
        assert_eq!((answer.status, answer.text().as_str()), (200, "content"), "{session}");
        assert_eq!(answer.field("x-who"), Some("ann"), "what it says is stored with it");
    }
    assert_eq!(service.count(), 2);
    let other = [("Cookie", "session=three"), ("X-Want", "403")];
    assert_eq!(server.get_with("/kept", &other).status, 403);
    // With a credential that the key does not name it is asked each time (RFC 9111 §3.5).
    let asked = service.count();
    for _ in 0..2 {
        let fields = [("Cookie", "session=four"), ("Authorization", "Bearer x")];
        assert_eq!(server.get_with("/kept", &fields).status, 200);
    }
    assert_eq!(service.count() - asked, if is_nginx() { 1 } else { 2 });
}

#[test]
fn a_subrequest_goes_through_the_phases_of_its_own_location() {
    let Checked { server, .. } = &start();
    assert_eq!(server.get("/limited").status, 200);
    assert_eq!(server.get("/limited").status, 500, "its own limit refuses it");
    assert_eq!(server.get("/once").status, 200, "who was counted is not counted again");
    assert_eq!(server.get("/moved").status, 200, "its error_page answers");
    assert_eq!(server.get("/none").status, 500);
    assert_eq!(server.get("/file").status, 500, "there is no such file");
    server.prefix().write("check-file", "let them in");
    let answer = server.get("/file");
    assert_eq!((answer.status, answer.text().as_str()), (200, "content"));
    assert_eq!(server.get("/sets").field("x-set"), Some("by the check"));
    wait::until("it is logged where that is wished", || {
        let log = server.prefix().read("access.log");
        log.contains("/check-sets 204") && !log.contains("/check-limited")
    });
    wait::until("it is told of what", || server.log().contains(", subrequest: \"/check-limited\""));
}

#[test]
fn a_service_that_is_away_or_too_slow_lets_nobody_in() {
    let Checked { server, origin, gate, .. } = &start();
    assert_eq!(server.get("/down").status, 500);
    assert_eq!(server.get("/late").status, 500);
    assert_eq!(origin.count(), 0);
    for status in [502, 504] {
        let what = format!("auth request unexpected status: {status}");
        wait::until(&what, || server.log().contains(&what));
    }
    gate.open();
}

#[test]
fn a_client_that_leaves_frees_the_service() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it listens").to_string();
    let origin = Origin::fixed(200, &[], b"content");
    let values = [("ORIGIN", &*origin.address()), ("SERVICE", &*address), ("NOBODY", "1")];
    let server = Server::start(CHECKED, &values);
    let mut client = server.client();
    client.send("GET /left HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let (mut asked, _) = listener.accept().expect("it is asked");
    let mut head = [0; 16];
    asked.read_exact(&mut head).expect("a head");
    drop(client);
    asked.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("it is a socket");
    let mut rest = Vec::new();
    // A reset is an end as well.
    let ended = asked.read_to_end(&mut rest);
    assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock));
    wait::until("it is logged", || server.prefix().read("access.log").contains("/left 499"));
    assert_eq!(origin.count(), 0);
}

#[test]
fn a_client_that_leaves_takes_nothing_from_those_who_wait_for_the_same_answer_of_the_service() {
    let gate = Arc::new(Gate::default());
    let service =
        Origin::in_two(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-User: ann\r\n\r\no", &gate, b"k");
    let origin = Origin::fixed(200, &[], b"content");
    let values = [("ORIGIN", &*origin.address()), ("SERVICE", &*service.address()), ("NOBODY", "1")];
    let server = Server::start(CHECKED, &values);
    let head = "GET /kept HTTP/1.1\r\nHost: a\r\nCookie: session=one\r\n\r\n";
    let mut first = server.client();
    first.send(head).expect("sent");
    wait::until("the service is asked", || service.count() == 1);
    let mut second = server.client();
    second.send(head).expect("sent");
    drop(first);
    gate.open();
    assert_eq!(second.answer().expect("an answer").text(), "content");
    assert_eq!(server.get_with("/kept", &[("Cookie", "session=one")]).status, 200);
    assert!(service.count() <= 2, "nobody was cut");
}
