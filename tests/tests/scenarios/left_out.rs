//! What `proxy_cache_vary unlisted` leaves out, where the configuration reads it: such requests share no response.

use crate::handed_on::{ask, start_site};
use millstream_tests::application::{self, Application};
use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::Server;

const SITE: &str = site! {
    http "proxy_cache_path memory keys_zone=answers:1m;
        map $http_accept_language $language { default $http_accept_language; }
        map $http_x_forwarded_host $of_forwarded { default $http_x_forwarded_host; }
        map $http_user_agent $is_bot { default \"\"; ~bot 1; }
        map $http_user_agent $names_app { \"~^(?<app>[a-z]+)/\" 1; }
        map $http_user_agent $groups_app { \"~^([a-z]+)/\" 1; }
        map $http_x_request_id $request_number { default $http_x_request_id; \"\" $request_id; }
        upstream api { server @UPSTREAM@; }"
    server "server_name ~^(?<tenant>[a-z]+)[.]t[.]example$ _;
        add_header X-Cache-Status $upstream_cache_status;
        proxy_cache_valid 1m; fastcgi_cache_valid 1m;
        proxy_cache_credentials public; fastcgi_cache_credentials public;
        proxy_cache_vary unlisted; fastcgi_cache_vary unlisted;
        proxy_cache_key $request_uri;
        location / { @LOCATION@ }
        location /own/ { valid_referers none a.example; if ($invalid_referer) { return 403; } @CACHED@ }
        location /other/ { proxy_set_header X-Request-Id $request_number; proxy_pass http://api; }
        location @gold { proxy_set_header X-U gold; @CACHED@ }
        location /gold { @CACHED@ }
        location /led {
            valid_referers none evil.example; if ($arg_never) { set $unused $invalid_referer; }
            proxy_cache answers; proxy_pass http://api;
        }
    }
    server { listen 127.0.0.1:@PORT@; server_name one.example;
        set $constant one; proxy_cache_vary unlisted; proxy_cache_valid 1m; proxy_cache_key $request_uri;
        location / { proxy_set_header X-U $constant; @CACHED@ add_header X-Cache-Status $upstream_cache_status; }
    }
    server { listen 127.0.0.1:@PORT@; server_name two.example;
        set $constant two; proxy_cache_vary unlisted; proxy_cache_valid 1m; proxy_cache_key $request_uri;
        location / { proxy_set_header X-U $constant; @CACHED@ add_header X-Cache-Status $upstream_cache_status; }"
};

const CACHED: &str = "proxy_cache answers; proxy_pass http://api;";

/// The response contains what the upstream was told.
fn echo() -> Origin {
    Origin::start(|request| {
        if request.target() == "/led" {
            return answer(200, &[("X-Accel-Redirect", "/own/page")], b"");
        }
        let line = request.head.lines().next().unwrap_or_default();
        let told = request.field("x-u").unwrap_or("-");
        let body = String::from_utf8_lossy(&request.body).into_owned();
        answer(200, &[("Cache-Control", "max-age=60")], format!("{line} {told} {body}").as_bytes())
    })
}

fn start(location: &str, upstream: &str) -> Server {
    start_site(SITE, CACHED, location, upstream)
}

#[test]
fn what_the_configuration_reads_of_fields_that_unlisted_leaves_out_tells_requests_apart() {
    skip_on_nginx!();
    let origin = echo();
    let gold = "rewrite ^ /gold break;";
    for (location, name, value) in [
        ("proxy_set_header X-U $http_x_forwarded_host;", "X-Forwarded-Host", "evil"),
        ("proxy_set_header X-U $of_forwarded;", "X-Forwarded-Host", "evil"),
        (&format!("if ($http_x_forwarded_host = evil) {{ {gold} }}"), "X-Forwarded-Host", "evil"),
        (
            &format!("valid_referers none a.example; if ($invalid_referer) {{ {gold} }}"),
            "Referer",
            "http://b.example/",
        ),
        (
            "valid_referers none a.example; proxy_set_header X-U $invalid_referer;",
            "Referer",
            "http://b.example/",
        ),
        ("if ($http_user_agent ~ bot) { set $q bot; } proxy_set_header X-U $q;", "User-Agent", "a bot"),
        ("if ($is_bot) { set $q bot; } proxy_set_header X-U $q;", "User-Agent", "a bot"),
        (
            "modern_browser unlisted; ancient_browser Mozilla/4; if ($ancient_browser) { error_page 418 = @gold; return 418; }",
            "User-Agent",
            "Mozilla/4.0",
        ),
        ("proxy_set_header X-U $http_via;", "Via", "1.1 edge"),
        ("proxy_set_header X-U $http_fastly_ff;", "Fastly-FF", "x"),
        ("proxy_set_header X-U $http_accept_encoding;", "Accept-Encoding", "x-none, gzip;q=0"),
        ("proxy_set_header X-U $language;", "Accept-Language", "de"),
        ("proxy_set_header X-U $http_accept;", "Accept", "*/*"),
        (&format!("if ($http_cache_control = no-cache) {{ {gold} }}"), "Cache-Control", "no-cache"),
        ("proxy_set_header X-U $http_sec_fetch_site;", "Sec-Fetch-Site", "cross-site"),
        ("proxy_set_header X-U $host;", "Host", "b.example"),
        (&format!("if ($host = b.example) {{ {gold} }}"), "Host", "b.example"),
        ("proxy_set_header X-U $tenant;", "Host", "b.t.example"),
        ("proxy_set_body $tenant;", "Host", "b.t.example"),
        ("proxy_set_header X-U $1;", "Host", "b.t.example"),
        ("if ($tenant = b) { set $q b; } proxy_set_header X-U $q;", "Host", "b.t.example"),
        ("if ($names_app) { set $q 1; } proxy_set_header X-U $app;", "User-Agent", "app/1"),
        ("if ($groups_app) { set $q 1; } proxy_set_header X-U $1;", "User-Agent", "app/1"),
    ] {
        let server = start(location, &origin.address());
        let other = ask(&server, "/page", &[(name, value)]);
        let got = [(); 2].map(|()| ask(&server, "/page", &[]));
        assert!(other.1 != got[0].1 && got[1].0 == "HIT", "{location}: {other:?} {got:?}");
    }
}

#[test]
fn a_field_that_unlisted_leaves_out_tells_no_requests_apart_by_a_log_by_the_cache_or_beyond_its_map() {
    skip_on_nginx!();
    let origin = echo();
    for location in [
        "access_log logs/agents.log combined if=$http_user_agent;",
        "add_header X-Agent $http_user_agent; add_header X-Cache-Status $upstream_cache_status;",
        "proxy_cache_bypass $http_pragma;",
        "proxy_cache_key $request_uri$is_bot;",
        "if ($is_bot) { return 403; }",
        "proxy_set_header X-U $is_bot;",
        "proxy_set_header Upgrade $http_upgrade;",
        "proxy_set_header X-Request-Id $request_number;",
        "proxy_set_header X-Request-Id $http_x_request_id;",
        "proxy_set_header X-Request-Id $request_id;",
        "if ($groups_app) { set $q 1; }",
    ] {
        let server = start(location, &origin.address());
        let got = ["a", "b"].map(|agent| ask(&server, "/page", &[("User-Agent", agent)]).0);
        assert_eq!(got, ["MISS", "HIT"], "{location}");
    }
}

#[test]
fn what_decides_behind_a_redirect_decides_by_its_own_location() {
    skip_on_nginx!();
    let origin = echo();
    let server = start("", &origin.address());
    for _ in 0..2 {
        assert_eq!(server.get_with("/led", &[("Referer", "http://evil.example/")]).status, 403);
        assert_eq!(server.get_with("/led", &[]).status, 200);
    }
}

#[test]
fn servers_that_set_other_constants_share_nothing() {
    skip_on_nginx!();
    let origin = echo();
    let server = start("", &origin.address());
    for _ in 0..2 {
        for host in ["one", "two"] {
            let (_, told) = ask(&server, "/page", &[("Host", &format!("{host}.example"))]);
            assert!(told.contains(host), "{host}: {told}");
        }
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn the_port_that_an_application_is_told_is_in_its_key() {
    skip_on_nginx!();
    let application = Application::start(|asked| {
        let host = asked.param("HTTP_HOST");
        application::answer(&format!("Content-Type: text/plain\r\nCache-Control: max-age=60\r\n\r\n{host}"))
    });
    let location = "fastcgi_param SCRIPT_NAME $uri; fastcgi_cache answers; fastcgi_pass api;";
    let server = start(location, &format!("127.0.0.1:{}", application.port()));
    for host in ["shop.example:666", "shop.example", "shop.example:666"] {
        assert_eq!(server.get_with("/page", &[("Host", host)]).text(), host);
    }
}
