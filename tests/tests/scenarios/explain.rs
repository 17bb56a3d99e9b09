//! `millstream explain`: what it says of parts, slices and refusals is what a request then finds, and it works beside a file
//! with a mistake.

use millstream_tests::origin::{Origin, Request, Step, answer};
use millstream_tests::server::{self, Server};
use millstream_tests::wait;

const TEMPLATE: &str = site! {
    main "worker_processes 1;" log "info"
    http "proxy_cache_path @DIR@/cache levels=1:2 keys_zone=answers:1m;"
    server "proxy_cache answers;
        proxy_cache_explain on;
        add_header X-Cache-Status $upstream_cache_status;
        location / { proxy_pass http://@ORIGIN@; proxy_cache_purge_allow local; }
        location /part/ {
            proxy_pass http://@ORIGIN@;
            proxy_cache_purge_allow local;
            proxy_cache_max_range_offset 10;
            proxy_cache_valid 200 206 1m;
        }
        location /sliced/ {
            proxy_cache_purge_allow local;
            slice 100;
            proxy_pass http://@ORIGIN@;
            proxy_set_header Range $slice_range;
            proxy_cache_key $uri$slice_range;
            proxy_cache_valid 200 206 1m;
        }
        location /guarded/ {
            proxy_pass http://@ORIGIN@;
            proxy_cache_purge_token a-secret-that-is-long-enough-to-be-one;
        }
        location ~ ^/away(/.*) { proxy_cache_purge answers $1; }"
};

/// 1,000 bytes, in ranges; the last word of the path selects further fields.
fn api() -> Origin {
    Origin::start(|request: &Request| {
        let path = request.head.split(' ').nth(1).unwrap_or_default();
        let field = match path {
            "/cookie" => ("Set-Cookie", "a=b"),
            "/languages" => ("Vary", "Accept-Language"),
            "/people" => ("Vary", "Accept-Language, Cookie, X-Api-Key"),
            "/credentials" => ("Cache-Control", "max-age=60"),
            _ => ("ETag", "\"v1\""),
        };
        let fields = [field, ("Expires", "Thu, 31 Dec 2099 23:55:55 GMT")];
        let body = [b'x'; 1000];
        let bounds = request.field("range").and_then(|value| value.strip_prefix("bytes=")?.split_once('-'));
        match bounds.map(|(first, last)| (first.parse::<usize>(), last.parse::<usize>())) {
            Some((Ok(first), Ok(last))) if first < 1000 => {
                let last = last.min(999);
                let range = format!("bytes {first}-{last}/1000");
                answer(206, &[field, ("Content-Range", range.as_str())], &body[first..=last])
            }
            _ => answer(200, &fields, &body),
        }
    })
}

fn run(server: &Server, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new(server::binary());
    command.args(arguments).arg("-c").arg(server.prefix().join("nginx.conf"));
    let output = command.arg("-p").arg(server.prefix().path()).output().expect("it runs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn check(server: &Server, path: &str, fields: &[&str], parts: &[&str]) {
    let url = format!("http://127.0.0.1:{}{path}", server.port());
    let mut arguments = vec!["explain", &url];
    fields.iter().for_each(|field| arguments.extend(["-H", *field]));
    let told = run(server, &arguments);
    for part in parts {
        assert!(told.contains(part), "{path} {fields:?} without \"{part}\":\n{told}");
    }
}

#[test]
fn what_it_says_of_other_users_answers_names_none_of_them() {
    skip_on_nginx!();
    let origin = api();
    let server = Server::start(TEMPLATE, &[("ORIGIN", &origin.address())]);
    for user in ["alice", "bob"] {
        let cookie = format!("session={user}");
        let fields = [("Cookie", cookie.as_str()), ("X-Api-Key", user), ("Accept-Language", "de")];
        assert_eq!(server.get_with("/people", &fields).status, 200);
    }
    let url = format!("http://127.0.0.1:{}/people", server.port());
    for json in [&[][..], &["--json"]] {
        let told = run(&server, &[&["explain", &url], json].concat());
        assert!(!told.contains("alice") && !told.contains("bob"), "{told}");
        assert!(told.contains("cookie: (set, 13 bytes, #") && told.contains("accept-language: de"), "{told}");
    }
}

#[test]
fn a_refusal_is_told_as_that_of_the_last_answer_with_what_to_change() {
    skip_on_nginx!();
    let origin = api();
    let server = Server::start(TEMPLATE, &[("ORIGIN", &origin.address())]);
    server.get_with("/credentials", &[("Authorization", "Basic eDp5")]);
    let last = "MISS: nothing is stored under this key; 0 s ago, the last response was not stored because";
    check(
        &server,
        "/credentials",
        &[],
        &[last, "credentials", "help      write proxy_cache_credentials public and proxy_cache_vary"],
    );
    server.get("/cookie");
    check(&server, "/cookie", &[], &[last, "sets a cookie", "belongs to one client"]);
    check(&server, "/away/x", &[], &["every request to this location is a purge"]);
    server.get_with("/languages", &[("Accept-Language", "de, en;q=0.5")]);
    check(
        &server,
        "/languages",
        &["Accept-Language: de, en;q=0.5"],
        &["for       accept-language: de, en;q=0.5\n"],
    );
}

#[test]
fn a_location_that_responds_by_itself_is_explained_by_what_it_has() {
    skip_on_nginx!();
    let origin = api();
    let template = site! {
        server "location /files { dav_methods DELETE; } location /status { stub_status; } location /gif { empty_gif; }
            location /api { api; } location /uncached { proxy_pass http://@ORIGIN@; } location /slash/ { proxy_pass http://@ORIGIN@; }
            location /text { return 200 a; } location /moved { rewrite ^ /text redirect; }
            if ($arg_server) { return 204; }"
    };
    let server = Server::start(template, &[("ORIGIN", &origin.address())]);
    for (path, why) in [
        ("/files", "the location serves files, which are not cached"),
        ("/status", "the location serves the status page (stub_status)"),
        ("/gif", "the location serves a one-pixel GIF (empty_gif)"),
        ("/api", "the location serves the API"),
        ("/uncached", "the location has no proxy_cache"),
        ("/slash", "the client is redirected to the same path with a trailing slash"),
        ("/text", "the location responds with \"return\""),
        ("/moved", "a \"rewrite\" redirects the client"),
        ("/text?server=1", "the server responds with \"return\""),
    ] {
        check(&server, path, &[], &[why]);
    }
    let url = format!("http://127.0.0.1:{}/files/a", server.port());
    let told = run(&server, &["explain", &url, "--method", "DELETE"]);
    assert!(told.contains("the request changes a file (dav_methods)"), "{told}");
}

#[test]
fn a_part_is_a_hit_only_for_ranges_within_it() {
    skip_on_nginx!();
    let origin = api();
    let server = Server::start(TEMPLATE, &[("ORIGIN", &origin.address())]);
    let host = format!("127.0.0.1:{}", server.port());
    let ask = |range| server.get_with("/part/a", &[("Host", &host), ("Range", range)]);
    let first = ask("bytes=200-299");
    assert_eq!(first.field("x-cache-status"), Some("MISS"));
    let said = first.field("cache-status").unwrap_or_default().to_owned();
    assert!(said.contains("fwd=miss") && !said.contains("hit"), "{said}");
    wait::until("the part is stored", || ask("bytes=200-299").field("x-cache-status") == Some("HIT"));
    let part = "part      bytes 200-299 of 1000";
    check(&server, "/part/a", &["Range: bytes=210-220"], &["now       HIT", part]);
    for fields in [&[][..], &["Range: bytes=290-310"], &["Range: bytes=500-510"]] {
        check(
            &server,
            "/part/a",
            fields,
            &["now       MISS: only a part of the response is stored (bytes 200-299 of 1000)", part],
        );
    }
    assert_eq!(ask("bytes=500-510").field("x-cache-status"), Some("MISS"));
}

#[test]
fn a_slice_is_told_by_the_range_that_is_given() {
    skip_on_nginx!();
    let origin = api();
    let server = Server::start(TEMPLATE, &[("ORIGIN", &origin.address())]);
    let ask = || server.get_with("/sliced/a", &[("Range", "bytes=250-260")]);
    wait::until("the slice is stored", || ask().field("x-cache-status") == Some("HIT"));
    let range = ["Range: bytes=250-260"];
    check(&server, "/sliced/a", &range, &["now       HIT", "slice     2 of 100 bytes each, bytes=200-299"]);
    check(
        &server,
        "/sliced/a",
        &[],
        &["now       MISS", "slice     0 of 100 bytes each, bytes=0-99", "-H 'Range: "],
    );
}

#[test]
fn the_running_process_is_asked_although_its_file_has_a_mistake_by_now() {
    skip_on_nginx!();
    let origin = api();
    let server = Server::start(TEMPLATE, &[("ORIGIN", &origin.address())]);
    let broken = TEMPLATE.replace("slice 100;", "slyce 100;");
    server.rewrite(&broken, &[("ORIGIN", &origin.address())]);
    check(&server, "/x", &[], &["MISS: nothing is stored under this key", "now has an error"]);
    let url = format!("http://127.0.0.1:{}/x", server.port());
    let told = run(&server, &["purge", &url]);
    assert!(told.contains("no responses stored in zone answers under http"), "{told}");
    let told = run(&server, &["purge", "--tag", "a,b"]);
    assert!(told.contains("invalid tag \"a,b\""), "{told}");
}

#[test]
fn who_refuses_a_purge_of_several_locations_is_named() {
    skip_on_nginx!();
    let origin = api();
    let server = Server::start(TEMPLATE, &[("ORIGIN", &origin.address())]);
    let mut client = server.client();
    let refused = client.request("PURGE", "/", &[("Surrogate-Key", "blog")]).expect("an answer");
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("location /guarded/ ("), "{}", refused.text());
    wait::until("the log names it too", || {
        let log = server.log();
        log.contains("proxy_cache_purge_token of location /guarded/ (")
            && log.contains("the request has no token")
    });
}

#[test]
fn what_a_post_took_out_and_a_failure_kept_out_is_told() {
    skip_on_nginx!();
    let origin = Origin::start(|request: &Request| match request.target() {
        "/away" => vec![Step::Close],
        _ => answer(200, &[("Cache-Control", "max-age=60")], b"x"),
    });
    let server = Server::start(TEMPLATE, &[("ORIGIN", &origin.address())]);
    let host = format!("127.0.0.1:{}", server.port());
    let ask = |method: &str, path: &str| server.request(method, path, &[("Host", &host)]);
    assert_eq!(ask("GET", "/page").status, 200);
    check(&server, "/page", &[], &["now       HIT"]);
    assert_eq!(ask("POST", "/page").status, 200);
    check(
        &server,
        "/page",
        &[],
        &["0 s ago, a request with an unsafe method (POST, PUT, DELETE …) invalidated it"],
    );
    assert_eq!(ask("GET", "/away").status, 502);
    check(
        &server,
        "/away",
        &[],
        &["MISS: nothing is stored under this key; 0 s ago, the upstream failed: 502"],
    );
}

#[test]
fn a_host_that_no_server_has_is_said_to_reach_the_default_one() {
    skip_on_nginx!();
    let origin = api();
    let server = Server::start(TEMPLATE, &[("ORIGIN", &origin.address())]);
    let note = "no server_name matches nowhere.example: the default server is used";
    let url = format!("http://nowhere.example:{}/a", server.port());
    for told in [run(&server, &["explain", &url]), run(&server, &["purge", &url])] {
        assert!(told.contains(note), "{told}");
    }
    let url = format!("http://127.0.0.1:{}/a", server.port());
    for told in [run(&server, &["explain", &url]), run(&server, &["purge", &url])] {
        assert!(!told.contains("no server_name matches"), "{told}");
    }
}
