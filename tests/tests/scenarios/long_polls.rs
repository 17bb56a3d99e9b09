//! Responses that take long and are for one client: no other client waits for them for long, nor again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millstream_tests::application::{self, Application};
use millstream_tests::client::Client;
use millstream_tests::frames::Frames;
use millstream_tests::gate::Gate;
use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::server::Server;
use millstream_tests::wait;
use rustix::process::Signal;

const SITE: &str = site! {
    main "worker_processes 2;"
    http "proxy_cache_path memory keys_zone=z:1m memory=16m;
        proxy_cache_lock on;"
    server "http2 on;
        location / { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_valid 200 1h; }
        location /own/ { proxy_pass http://@ORIGIN@; proxy_cache z; proxy_cache_key $uri$http_authorization; }
        location /php/ {
            fastcgi_pass 127.0.0.1:@APP@; fastcgi_param REQUEST_METHOD GET; fastcgi_param URI $uri;
            fastcgi_cache z; fastcgi_cache_key $uri; fastcgi_cache_valid 200 1h;
        }
        location = /version { return 200 @VERSION@; }"
};

/// How a poll is requested, and why its response is not stored.
const POLLS: [(&str, Way, (&str, &str)); 9] = [
    ("/no-store", Way::Get, ("Cache-Control", "no-store")),
    ("/private", Way::Get, ("Cache-Control", "private")),
    ("/no-cache", Way::Get, ("Cache-Control", "no-cache")),
    ("/cookie", Way::Get, ("Set-Cookie", "a=b")),
    ("/vary", Way::Get, ("Vary", "*")),
    ("/own/key", Way::Get, ("Cache-Control", "no-store")),
    ("/head", Way::Head, ("Cache-Control", "no-store")),
    ("/stream", Way::Http2, ("Cache-Control", "no-store")),
    ("/php/page", Way::Get, ("Cache-Control", "no-store")),
];

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Get,
    Head,
    Http2,
}

enum Asking {
    Text(Client, &'static str),
    Stream(Box<Frames>, u32),
}

impl Asking {
    fn ask(server: &Server, path: &str, way: Way) -> Asking {
        let fields = [("authorization", "Bearer one")];
        let fields = if path.starts_with("/own/") { &fields[..] } else { &[] };
        if way == Way::Http2 {
            let mut frames = Frames::connect(server.port());
            let stream = frames.get_with(path, fields);
            return Asking::Stream(Box::new(frames), stream);
        }
        let method = if way == Way::Head { "HEAD" } else { "GET" };
        let mut client = server.client();
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n")).expect("sent");
        Asking::Text(client, method)
    }

    fn status(self) -> u16 {
        match self {
            Asking::Text(mut client, method) => client.answer_to(method).expect("an answer").status,
            Asking::Stream(mut frames, stream) => frames.answer(stream).status,
        }
    }
}

struct Api {
    origin: Origin,
    application: Application,
}

impl Api {
    /// `hold` runs before each response.
    fn start(hold: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static) -> Api {
        let hold = Arc::new(hold);
        let of_application = Arc::clone(&hold);
        let origin = Origin::start(move |request: &Request| {
            let kind = POLLS.iter().find(|(path, ..)| *path == request.target());
            let field = kind.map_or(("Cache-Control", "max-age=60"), |(.., field)| *field);
            let mut steps = hold(request.target());
            steps.extend(answer(200, &[field], b"event"));
            steps
        });
        let application = Application::start(move |asked| {
            of_application(asked.param("URI")).iter().for_each(Step::wait);
            application::answer("Status: 200 OK\r\nCache-Control: no-store\r\n\r\nevent")
        });
        Api { origin, application }
    }

    fn serve(&self) -> Server {
        let app = self.application.port().to_string();
        Server::start(SITE, &[("ORIGIN", &self.origin.address()), ("APP", &app), ("VERSION", "one")])
    }

    fn asked(&self, path: &str) -> usize {
        let application = self.application.asked();
        let requests = self.origin.requests();
        requests.iter().filter(|request| request.target() == path).count()
            + application.iter().filter(|asked| asked.param("URI") == path).count()
    }
}

#[test]
fn a_few_clients_of_a_poll_do_not_wait_for_each_other_for_long_and_a_crowd_is_one_request() {
    skip_on_nginx!();
    let gate = Arc::new(Gate::default());
    let held = Arc::clone(&gate);
    let api = Api::start(move |_| vec![Step::Pass(Arc::clone(&held))]);
    let server = api.serve();
    // First, so that whatever is done by time is done for it first.
    let mut asking: Vec<Asking> = (0..40).map(|_| Asking::ask(&server, "/crowd", Way::Get)).collect();
    wait::until("one of the crowd is asked for", || api.asked("/crowd") == 1);
    for (path, way, _) in POLLS {
        asking.extend((0..3).map(|_| Asking::ask(&server, path, way)));
    }
    let all = wait::within(Duration::from_secs(10), || {
        POLLS.iter().all(|(path, ..)| api.asked(path) == 3).then_some(())
    });
    let asked = POLLS.map(|(path, ..)| (path, api.asked(path)));
    assert!(all.is_some() && gate.open(), "{asked:?}");
    assert_eq!(api.asked("/crowd"), 1, "the crowd has not waited for as long as it may: {asked:?}");
    assert!(asking.into_iter().all(|asking| asking.status() == 200));
    assert_eq!(api.asked("/crowd"), 1);
}

#[test]
fn clients_of_a_poll_do_not_wait_for_each_other_when_the_last_one_took_long_and_is_long_ago() {
    skip_on_nginx!();
    const LONG_AGO: Duration = Duration::from_millis(10_500);
    let gate = Arc::new(Gate::default());
    let (held, is_held) = (Arc::clone(&gate), Arc::new(AtomicBool::new(false)));
    let holds = Arc::clone(&is_held);
    let api = Api::start(move |path| match path {
        "/later" => vec![Step::Pause(LONG_AGO)],
        _ if holds.load(Ordering::SeqCst) => vec![Step::Pass(Arc::clone(&held))],
        _ => vec![Step::Pause(Duration::from_millis(1200))],
    });
    let server = api.serve();
    let first: Vec<Asking> = POLLS.iter().map(|(path, way, _)| Asking::ask(&server, path, *way)).collect();
    assert!(first.into_iter().all(|asking| asking.status() == 200));
    let app = api.application.port().to_string();
    server.rewrite(SITE, &[("ORIGIN", &api.origin.address()), ("APP", &app), ("VERSION", "two")]);
    server.signal(Signal::HUP);
    wait::until("the reload", || server.get("/version").text() == "two");
    assert_eq!(server.get("/later").status, 200);

    is_held.store(true, Ordering::SeqCst);
    // Twelve are a crowd: of an unknown key they wait for one of them, for as long as they may.
    let mut asking: Vec<Asking> = (0..12).map(|_| Asking::ask(&server, "/unknown", Way::Get)).collect();
    wait::until("it is asked for", || api.asked("/unknown") == 1);
    for (path, way, _) in POLLS {
        asking.extend((0..12).map(|_| Asking::ask(&server, path, way)));
    }
    let all = wait::within(Duration::from_secs(10), || {
        POLLS.iter().all(|(path, ..)| api.asked(path) == 13).then_some(())
    });
    let asked = POLLS.map(|(path, ..)| (path, api.asked(path)));
    assert_eq!((all.is_some(), api.asked("/unknown")), (true, 1), "{asked:?}");
    assert!(gate.open());
    assert!(asking.into_iter().all(|asking| asking.status() == 200));
}
