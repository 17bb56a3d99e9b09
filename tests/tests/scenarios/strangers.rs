//! What depends on who a client is: which answers may reach another address, what the API is told of it, and who may purge.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use millstream_tests::client::{Answer, Client};
use millstream_tests::frames::Frames;
use millstream_tests::origin::{Origin, Request, answer};
use millstream_tests::ports;
use millstream_tests::process::Running;
use millstream_tests::server::Server;
use millstream_wire::FieldId;
use millstream_wire::client_address::KNOWN;
use millstream_wire::credential::is_credential;

const ADMIN: Ipv4Addr = Ipv4Addr::LOCALHOST;
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 7);

/// Those that also name another host to the API, and therefore bypass the cache.
const ENDS_HERE: [&str; 2] = ["Forwarded", "X-Forwarded"];

fn serve(origin: &Origin, options: &[&str]) -> (u16, Running) {
    let url = format!("http://{}", origin.address());
    super::serve_url::serve(&[&[url.as_str()], options].concat())
}

fn ask(from: Ipv4Addr, port: u16, path: &str, fields: &[(&str, &str)]) -> Answer {
    let mut client = Client::connect_from(from, port).expect("it listens");
    client.get_with(path, fields).expect("an answer")
}

/// Only for the administrator's machine, by one of the fields with the client's address; the path selects the
/// caching fields.
fn guarded(field: &'static str) -> Origin {
    Origin::start(move |request: &Request| {
        let address = request.field(field).unwrap_or_default();
        let caching: &[(&str, &str)] = match request.target() {
            "/max-age" => &[("Cache-Control", "max-age=60")],
            "/x-accel" => &[("X-Accel-Expires", "60")],
            "/expires" => &[("Expires", "Thu, 31 Dec 2099 23:59:59 GMT")],
            _ => &[],
        };
        match address == ADMIN.to_string() {
            true => answer(200, caching, b"for the administrator"),
            false => answer(403, caching, b"forbidden"),
        }
    })
}

#[test]
fn what_an_api_decides_by_the_clients_address_reaches_no_other_address() {
    skip_on_nginx!();
    for field in ["X-Real-IP", "X-Forwarded-For"] {
        let origin = guarded(field);
        let (port, _process) = serve(&origin, &["--microcache", "60s"]);
        for path in ["/", "/max-age", "/x-accel", "/expires"] {
            for from in [STRANGER, ADMIN, STRANGER, ADMIN] {
                let expected = if from == ADMIN { 200 } else { 403 };
                assert_eq!(ask(from, port, path, &[]).status, expected, "{field} {path} {from}");
            }
            assert_eq!(
                ask(ADMIN, port, path, &[]).cache_status(),
                "HIT",
                "{path}: it is cached for the address"
            );
        }
    }
}

#[test]
fn at_once_too_each_address_gets_what_was_made_for_it() {
    skip_on_nginx!();
    let origin = Origin::start(|request| {
        let said = request.field("x-real-ip").unwrap_or_default().to_owned();
        let mut steps = vec![millstream_tests::origin::Step::Pause(std::time::Duration::from_millis(100))];
        steps.extend(answer(200, &[("Cache-Control", "max-age=60")], said.as_bytes()));
        steps
    });
    let (port, _process) = serve(&origin, &["--microcache", "60s"]);
    let threads = (0..24).map(|number| {
        let from = Ipv4Addr::new(127, 0, 0, 1 + number % 6);
        std::thread::spawn(move || assert_eq!(ask(from, port, "/", &[]).text(), from.to_string()))
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().expect("its own answer"));
}

#[test]
fn what_says_that_it_is_for_everybody_is_shared_by_all_addresses() {
    skip_on_nginx!();
    for caching in ["public, max-age=60", "s-maxage=60", "max-age=60, public"] {
        let origin = Origin::fixed(200, &[("Cache-Control", caching)], b"news");
        let (port, _process) = serve(&origin, &["--microcache", "60s"]);
        for from in [STRANGER, ADMIN, Ipv4Addr::new(127, 1, 2, 3)] {
            assert_eq!(ask(from, port, "/", &[]).text(), "news");
        }
        assert_eq!(origin.count(), 1, "{caching}");
    }
}

#[test]
fn with_hidden_addresses_the_api_is_told_nobodys_and_answers_are_shared() {
    skip_on_nginx!();
    for proxy in [&[][..], &["--trust-proxy", "127.0.0.0/8"]] {
        let origin = guarded("X-Real-IP");
        let (port, _process) =
            serve(&origin, &[&["--microcache", "60s", "--client-address", "hide"], proxy].concat());
        for (at, from) in [STRANGER, ADMIN, Ipv4Addr::new(127, 1, 2, 3)].into_iter().enumerate() {
            let said = from.to_string();
            let fields = [("X-Forwarded-For", said.as_str()), ("CF-Connecting-IP", "192.0.2.1")];
            let told = ask(from, port, "/max-age", if at == 2 { &[] } else { &fields });
            assert_eq!(told.text(), "forbidden", "no list of addresses has it");
        }
        assert_eq!(origin.count(), 1);
        let head = origin.requests()[0].head.to_ascii_lowercase();
        assert!(!head.contains("127.0.0.7") && !head.contains("192.0.2.1"), "{head}");
    }
}

#[test]
fn the_address_that_a_client_writes_itself_does_not_reach_the_api_and_chooses_no_answer() {
    skip_on_nginx!();
    for options in [&[][..], &["--microcache", "60s"]] {
        let origin = Origin::start(|request| {
            answer(200, &[("Cache-Control", "max-age=60")], request.head.to_ascii_lowercase().as_bytes())
        });
        let (port, _process) = serve(&origin, options);
        for field in KNOWN {
            let path = format!("/{field}");
            let forged = ask(ADMIN, port, &path, &[(field, "for=198.51.100.66")]).text();
            assert!(!forged.contains("198.51.100.66"), "{field}: {forged}");
            let post = Client::connect(port)
                .expect("it listens")
                .request("POST", &path, &[(field, "198.51.100.66"), ("Content-Length", "0")])
                .expect("an answer");
            assert!(!post.text().contains("198.51.100.66"), "{field}: {}", post.text());
        }
    }
}

#[test]
fn what_a_trusted_proxy_says_of_the_client_reaches_the_api_and_keeps_answers_apart() {
    skip_on_nginx!();
    for options in [&[][..], &["--microcache", "60s"]] {
        // The path names the field that it answers by.
        let origin = Origin::start(|request| {
            let told = request.field(&request.target()[1..]).unwrap_or("-");
            answer(200, &[("Cache-Control", "max-age=60")], told.as_bytes())
        });
        let (port, _process) = serve(&origin, &[&["--trust-proxy", "127.0.0.1"], options].concat());
        for field in KNOWN.iter().filter(|field| !ENDS_HERE.contains(field)) {
            let path = format!("/{field}");
            let of = |from, client| ask(from, port, &path, &[(field, client)]);
            for client in ["192.0.2.1", "192.0.2.2"] {
                let told = of(ADMIN, client).text();
                assert!(told.starts_with(client), "{field}: {told}");
            }
            let bytes = field.as_bytes();
            let expected = if is_credential(FieldId::of(bytes), bytes) { "BYPASS" } else { "HIT" };
            assert_eq!(of(ADMIN, "192.0.2.2").cache_status(), expected, "{field}");
            let stranger = of(STRANGER, "192.0.2.1").text();
            assert!(!stranger.contains("192.0.2.1"), "{field}: {stranger}");
        }
    }
}

#[test]
fn who_writes_the_field_of_a_trusted_proxy_itself_is_given_nothing_that_was_made_for_it() {
    skip_on_nginx!();
    for caching in ["public, max-age=60", "s-maxage=60", "max-age=60"] {
        let origin = Origin::start(move |request| {
            let field = &request.target()[1..];
            let told = request.field(field).unwrap_or("-");
            answer(200, &[("Cache-Control", caching), ("Vary", field)], told.as_bytes())
        });
        let (port, _process) = serve(&origin, &["--trust-proxy", "127.0.0.1"]);
        for field in KNOWN {
            let path = format!("/{field}");
            let told = |from| ask(from, port, &path, &[(field, "192.0.2.1")]).text();
            told(ADMIN);
            assert!(!told(STRANGER).contains("192.0.2.1"), "{field} {caching}");
        }
    }
}

#[test]
fn with_hidden_addresses_no_field_of_a_trusted_proxy_names_one_to_the_api() {
    skip_on_nginx!();
    let hide = ["--client-address", "hide", "--trust-proxy", "127.0.0.1"];
    for options in [&[][..], &["--microcache", "60s"]] {
        let origin = Origin::start(|request| {
            answer(200, &[("Cache-Control", "max-age=60")], request.head.to_ascii_lowercase().as_bytes())
        });
        let (port, _process) = serve(&origin, &[&hide[..], options].concat());
        for field in KNOWN {
            let path = format!("/{field}");
            for client in ["192.0.2.1", "192.0.2.2"] {
                let sent = [(field, client), ("Content-Length", "0"), ("X-Forwarded-Proto", "https")];
                for method in ["GET", "POST"] {
                    let fields = if method == "GET" { &sent[..1] } else { &sent[..] };
                    let mut proxy = Client::connect(port).expect("it listens");
                    let told = proxy.request(method, &path, fields).expect("an answer").text();
                    assert!(!told.contains("192.0.2."), "{field}: {told}");
                    assert!(told.contains("x-real-ip: 192.0.0.8"), "{field}: {told}");
                }
            }
        }
        let reads = origin.requests().iter().filter(|request| request.head.starts_with("GET")).count();
        let shared =
            KNOWN.iter().filter(|field| !is_credential(FieldId::of(field.as_bytes()), field.as_bytes()));
        let apart = KNOWN.len() - shared.count();
        assert_eq!(reads, KNOWN.len() + apart, "all clients share what does not know them: {options:?}");
    }
}

#[test]
fn in_a_file_too_the_clients_address_can_be_kept_from_the_upstream() {
    skip_on_nginx!();
    let origin = Origin::start(|request| answer(200, &[], request.head.to_ascii_lowercase().as_bytes()));
    let template = site! {
        main "worker_processes 1;"
        http "proxy_pass_client_address off;"
        server "listen 127.0.0.1:@PLAIN@ http2;
            location / { proxy_pass http://@ORIGIN@; }
            location /set { proxy_pass http://@ORIGIN@; proxy_set_header X-Real-IP $remote_addr; }
            location /shown { proxy_pass http://@ORIGIN@; proxy_pass_client_address on; }"
    };
    let plain = ports::free();
    let values = [("ORIGIN", origin.address()), ("PLAIN", plain.to_string())];
    let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
    let server = Server::start(template, &values);
    for field in KNOWN {
        let fields = [(field, "192.0.2.1"), ("X-Forwarded-Host", "a.example")];
        let told = server.get_with("/", &fields).text();
        assert!(
            !told.contains("192.0.2.1") && told.contains("x-forwarded-host: a.example"),
            "{field}: {told}"
        );
        let mut frames = Frames::connect(plain);
        let told = frames.ask("/", &[(&field.to_ascii_lowercase(), "192.0.2.1")]).text();
        assert!(!told.contains("192.0.2.1"), "{field} over HTTP/2: {told}");
        assert!(server.get_with("/shown", &fields).text().contains("192.0.2.1"), "{field}");
        let told = server.get_with("/set", &fields).text();
        assert!(!told.contains("192.0.2.1") && told.contains("x-real-ip: 127.0.0.1"), "{field}: {told}");
    }
}

#[test]
fn a_field_that_a_trusted_proxy_adds_keeps_answers_apart() {
    skip_on_nginx!();
    for field in
        ["X-ARR-ClientCert", "X-Forwarded-Client-Cert", "X-SSL-Client-Subject", "X-Country", "X-Remote-User"]
    {
        let origin = Origin::start(move |request| {
            answer(200, &[("Cache-Control", "max-age=60")], request.field(field).unwrap_or("-").as_bytes())
        });
        let (port, _process) = serve(&origin, &["--trust-proxy", "127.0.0.1"]);
        for value in ["one", "two", "one"] {
            assert_eq!(ask(ADMIN, port, "/", &[(field, value)]).text(), value, "{field}");
        }
    }
}

#[test]
fn in_a_file_too_answers_vary_by_what_the_upstream_is_told_of_the_address() {
    skip_on_nginx!();
    let origin = Origin::start(|request| {
        let said =
            ["x-real-ip", "x-forwarded-for", "x-address"].map(|name| request.field(name).unwrap_or("-"));
        let body = String::from_utf8_lossy(&request.body);
        let said = [said.join(" ").as_str(), request.target().trim_start_matches('/'), &body].concat();
        answer(200, &[("Cache-Control", "max-age=60")], said.as_bytes())
    });
    for set in [
        "proxy_set_header X-Real-IP $remote_addr;",
        "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        "proxy_set_header X-Address $mapped;",
        "set $told $remote_addr; proxy_set_header X-Address $told;",
        "if ($remote_addr = 127.0.0.7) { set $office yes; } proxy_set_header X-Address $office;",
        "if ($remote_addr ~ ([0-9]+)$) { set $last $1; } proxy_set_header X-Address of$last;",
        "if ($remote_addr ~ (?<part>[0-9]+)$) { } proxy_set_header X-Address $part;",
        "auth_request /who; auth_request_set $who $sent_http_x_who; proxy_set_header X-Address $who;",
        "set $told $remote_addr; proxy_cache_key $uri; proxy_pass http://@ORIGIN@/?$told;",
        "rewrite ^ /$remote_addr break; proxy_cache_key $request_uri;",
        "proxy_set_body \"of $remote_addr\";",
    ] {
        let template = site! {
            main "worker_processes 1;"
            http "map $remote_addr $mapped { 127.0.0.7 seven; default other; }
                proxy_cache_path memory keys_zone=answers:1m;"
            server "location / {
                    @SET@ proxy_cache answers; proxy_cache_vary address;
                    add_header X-Cache-Status $upstream_cache_status;
                }
                location = /who { add_header X-Who $remote_addr; return 204; }"
        };
        let passed = if set.contains("proxy_pass") { "" } else { "proxy_pass http://@ORIGIN@;" };
        let set = [set, passed].concat().replace("@ORIGIN@", &origin.address());
        let server = Server::start(template, &[("SET", &set)]);
        let (one, other) = (ask(STRANGER, server.port(), "/", &[]), ask(ADMIN, server.port(), "/", &[]));
        assert_ne!(one.text(), other.text(), "{set}");
        for (from, first) in [(STRANGER, &one), (ADMIN, &other)] {
            let again = ask(from, server.port(), "/", &[]);
            assert_eq!((again.cache_status(), again.text()), ("HIT", first.text()), "{set}");
        }
    }
    // Where it is told nothing, all share.
    let server = Server::start(
        "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http { access_log off; proxy_cache_path memory keys_zone=answers:1m; server { listen 127.0.0.1:@PORT@;
            location / { proxy_pass http://@ORIGIN@; proxy_cache answers; proxy_cache_vary address; } } }",
        &[("ORIGIN", &origin.address())],
    );
    let before = origin.count();
    for from in [STRANGER, ADMIN] {
        assert_eq!(ask(from, server.port(), "/", &[]).text(), "- - -");
    }
    assert_eq!(origin.count(), before + 1);
}

/// Purging requests: method, path and further lines, and whether `/page` is purged.
const PURGES: [(&str, &str, &str); 5] = [
    ("PURGE", "/page", ""),
    ("PURGE", "/*", ""),
    ("BAN", "/", "X-Url: .*\r\nX-Host: .*\r\n"),
    ("PURGEKEYS", "/", "xkey-purge: tag\r\n"),
    ("GET", "/purge/page", ""),
];

/// The upstream is not told the address: which page a client gets depends on the choice alone.
#[test]
fn what_a_configuration_chooses_by_the_address_reaches_no_other_address() {
    skip_on_nginx!();
    // What the upstream says is for everybody, it says of the choice.
    for control in ["max-age=60", "public, max-age=60"] {
        what_is_chosen_by_the_address_is_kept_apart(control);
    }
}

fn what_is_chosen_by_the_address_is_kept_apart(control: &'static str) {
    let [inside, outside] = ["inside", "outside"].map(|page| {
        Origin::start(move |request| {
            let page = if request.target().starts_with("/in/") { "inside" } else { page };
            answer(200, &[("Cache-Control", control)], page.as_bytes())
        })
    });
    const SITE: &str = site! {
        main "worker_processes 1;"
        http "proxy_cache_path memory keys_zone=answers:1m;
            geo $inside { 127.0.0.1 1; default 0; }
            map $remote_addr $side { 127.0.0.1 in; default out; }
            map $side $half { default $side; }
            map $inside $pool { 1 @INSIDE@; default @OUTSIDE@; }"
        server "add_header X-Cache-Status $upstream_cache_status;
            proxy_cache answers; proxy_cache_key $request_uri;
            proxy_cache_credentials public; proxy_cache_vary origin unlisted address;
            location / { @LOCATION@ }
            location @1 { proxy_pass http://@INSIDE@; }
            location @0 { proxy_pass http://@OUTSIDE@; }"
    };
    for location in [
        "if ($inside) { proxy_pass http://@INSIDE@; } proxy_pass http://@OUTSIDE@;",
        "if ($remote_addr = 127.0.0.1) { proxy_pass http://@INSIDE@; } proxy_pass http://@OUTSIDE@;",
        "if ($realip_remote_addr != 127.0.0.1) { proxy_pass http://@OUTSIDE@; } proxy_pass http://@INSIDE@;",
        "if ($http_x_real_ip = 127.0.0.1) { proxy_pass http://@INSIDE@; } proxy_pass http://@OUTSIDE@;",
        "set $q out; if ($inside) { set $q in; } if ($q = out) { proxy_pass http://@OUTSIDE@; } proxy_pass http://@INSIDE@;",
        "error_page 418 = @0; if ($inside = 0) { return 418; } proxy_pass http://@INSIDE@;",
        "error_page 418 = @$inside; return 418;",
        "error_page 418 =200 @$inside; return 418;",
        "try_files /$inside.html @$inside;",
        "if ($side = in) { rewrite ^ /in/ break; } proxy_pass http://@OUTSIDE@;",
        "rewrite ^ /$side/ break; proxy_pass http://@OUTSIDE@;",
        "rewrite ^ /$half/ break; proxy_pass http://@OUTSIDE@;",
        "allow 127.0.0.1; deny all; error_page 403 = @0; proxy_pass http://@INSIDE@;",
        "deny 127.0.0.1; allow all; error_page 403 =200 @1; proxy_pass http://@OUTSIDE@;",
        "proxy_pass http://$pool/;",
    ] {
        // Who is let in shares what is public; -t warns that the page for who is not has the same key.
        if control.contains("public") && location.contains("deny") {
            continue;
        }
        let upstreams = [("INSIDE", inside.address()), ("OUTSIDE", outside.address())];
        let location = upstreams
            .iter()
            .fold(location.to_owned(), |text, (name, address)| text.replace(&format!("@{name}@"), address));
        let [(_, inside), (_, outside)] = &upstreams;
        let server =
            Server::start(SITE, &[("LOCATION", &location), ("INSIDE", inside), ("OUTSIDE", outside)]);
        for cached in ["MISS", "HIT"] {
            for (from, page) in [(ADMIN, "inside"), (STRANGER, "outside")] {
                let address = from.to_string();
                let got = ask(from, server.port(), "/page", &[("X-Real-IP", &address)]);
                assert_eq!((got.text().as_str(), got.cache_status()), (page, cached), "{location} {from}");
            }
        }
    }
}

/// As stock nginx passes it on; returns the status.
fn as_nginx_passes_it(port: u16, (method, path, lines): (&str, &str, &str), body: &str) -> u16 {
    let mut client = Client::connect(port).expect("it listens");
    let length = if body.is_empty() {
        String::new()
    } else {
        format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())
    };
    let head = format!(
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n{lines}{length}\r\n{body}"
    );
    client.ask(head).status
}

#[test]
fn behind_a_proxy_on_this_machine_that_says_nothing_of_its_clients_nobody_purges() {
    skip_on_nginx!();
    let origin =
        Origin::fixed(200, &[("Cache-Control", "public, max-age=600"), ("Surrogate-Key", "tag")], b"page");
    let site = |rights: &str| {
        let template = site! {
            main "worker_processes 1;"
            http "@RIGHTS@
                proxy_cache_path memory keys_zone=answers:1m;"
            server "location / { proxy_pass http://@ORIGIN@; proxy_cache answers; proxy_cache_key $uri; }
                location ~ ^/purge(/.*) { proxy_cache_purge answers $1; }
                location /plus { proxy_pass http://@ORIGIN@; proxy_cache answers; proxy_cache_key $uri; proxy_cache_purge $arg_purge; }
                location /api/ { api write=on; }"
        };
        Server::start(template, &[("ORIGIN", &origin.address()), ("RIGHTS", rights)])
    };
    let all = "{\"all\": true}";
    let asked = |server: &Server| {
        let port = server.port();
        let mut told: Vec<u16> = PURGES.iter().map(|purge| as_nginx_passes_it(port, *purge, "")).collect();
        told.push(as_nginx_passes_it(port, ("GET", "/plus?purge=1", ""), ""));
        told.push(as_nginx_passes_it(port, ("POST", "/api/caches/answers/purge", ""), all));
        told.push(as_nginx_passes_it(port, ("DELETE", "/api/caches/answers/purge", ""), all));
        told
    };
    let server = site("");
    server.get("/page");
    assert_eq!(asked(&server), [403; 8]);
    assert_eq!(
        as_nginx_passes_it(server.port(), ("GET", "/api/caches", ""), ""),
        200,
        "this machine may read"
    );
    assert_eq!(origin.count(), 1);
    server.get("/page");
    assert_eq!(origin.count(), 1, "it is still there");
    // Said in so many words, this machine may, and what says that it was passed on still may not. Nothing is stored there.
    let local = site("proxy_cache_purge_allow local; api_allow local;");
    assert_eq!(asked(&local), [404, 200, 200, 200, 404, 404, 200, 200]);
    for field in ["X-Forwarded-For", "X-Real-IP", "Via", "CF-Connecting-IP", "X-Forwarded-Proto"] {
        let lines = format!("{field}: 127.0.0.1\r\n");
        for (method, path, more) in PURGES {
            let told = as_nginx_passes_it(local.port(), (method, path, &format!("{lines}{more}")), "");
            assert_eq!(told, 403, "{field} {method} {path}");
        }
        let api = ("POST", "/api/caches/answers/purge", lines.as_str());
        assert_eq!(as_nginx_passes_it(local.port(), api, all), 403, "{field}");
    }
    // A peer that is named as a proxy is one whatever it says.
    for named in ["trusted_proxy 127.0.0.1;", "set_real_ip_from 127.0.0.1;"] {
        let behind = site(&format!("proxy_cache_purge_allow local; api_allow local; {named}"));
        assert_eq!(asked(&behind)[..4], [403; 4], "{named}");
    }
}

#[test]
fn serve_purges_by_its_command_alone_unless_an_option_says_who_else_may() {
    skip_on_nginx!();
    let token = "0123456789abcdef0123456789abcdef";
    let folder = millstream_tests::prefix::Prefix::new();
    let file = folder.write("token", format!("{token}\n"));
    let by_token = format!("--purge=token={}", file.display());
    let authorization = format!("Authorization: Bearer {token}\r\n");
    let count = Arc::new(AtomicUsize::new(0));
    for (options, plain, passed_on, shown) in [
        (&[][..], 403, 403, 403),
        (&["--purge", "off"], 403, 403, 403),
        (&["--purge", "local"], 200, 403, 200),
        (&["--purge", "local", "--trust-proxy", "127.0.0.1"], 403, 403, 403),
        (&[by_token.as_str()], 403, 403, 200),
    ] {
        let count = Arc::clone(&count);
        let origin = Origin::start(move |_| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            answer(200, &[("Cache-Control", "public, max-age=600")], number.to_string().as_bytes())
        });
        let (port, _process) = serve(&origin, options);
        for purge in &PURGES[..3] {
            let with = |lines: &str| {
                // So that there is something to purge.
                let host = format!("127.0.0.1:{port}");
                assert_eq!(ask(ADMIN, port, "/page", &[("Host", &host)]).status, 200);
                let lines = format!("{lines}{}", purge.2);
                as_nginx_passes_it(port, (purge.0, purge.1, &lines), "")
            };
            assert_eq!(with(""), plain, "{options:?} {purge:?}");
            assert_eq!(with("X-Forwarded-For: 127.0.0.1\r\n"), passed_on, "{options:?} {purge:?}");
            assert_eq!(with(&authorization), shown, "{options:?} {purge:?}");
        }
    }
}

#[test]
fn behind_the_proxy_protocol_who_purges_is_whom_the_proxy_names() {
    skip_on_nginx!();
    let origin = Origin::fixed(200, &[("Cache-Control", "max-age=600")], b"page");
    let template = site! {
        main "worker_processes 1;"
        http "proxy_cache_purge_allow @ALLOW@; api_allow @ALLOW@;
            proxy_cache_path memory keys_zone=answers:1m;"
        server "listen 127.0.0.1:@BEHIND@ proxy_protocol;
            location / { proxy_pass http://@ORIGIN@; proxy_cache answers; }
            location /api/ { api write=on; }"
    };
    for allow in ["local", "127.0.0.0/8 ::1"] {
        let behind = ports::free();
        let text = behind.to_string();
        let server =
            Server::start(template, &[("ORIGIN", &origin.address()), ("ALLOW", allow), ("BEHIND", &text)]);
        for (header, expected) in [
            ("PROXY TCP4 127.0.0.1 127.0.0.1 4000 80\r\n", 200),
            ("PROXY TCP6 ::1 ::1 4000 80\r\n", 200),
            ("PROXY TCP4 192.0.2.1 127.0.0.1 4000 80\r\n", 403),
            ("PROXY TCP6 2001:db8::1 ::1 4000 80\r\n", 403),
            ("PROXY UNKNOWN\r\n", 403),
            // Version 2: LOCAL.
            ("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", 403),
        ] {
            let ask = |request: &str| {
                let mut client = Client::connect(behind).expect("it listens");
                client.ask(format!("{header}{request}")).status
            };
            assert_eq!(ask("PURGE /* HTTP/1.1\r\nHost: localhost\r\n\r\n"), expected, "{allow} {header:?}");
            let body = "{\"all\": true}";
            let post = format!(
                "POST /api/caches/answers/purge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            assert_eq!(ask(&post), expected, "{allow} {header:?}");
        }
        drop(server);
    }
}
