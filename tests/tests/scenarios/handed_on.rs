//! Who asks, where the upstream learns it otherwise than by the client's own fields: what is made for one reaches no other.

use millstream_tests::application::{self, Application};
use millstream_tests::client::Answer;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::server::{Server, is_nginx};

const SITE: &str = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
    http {
        access_log off;
        proxy_cache_path memory keys_zone=answers:1m;
        map $http_cookie $mapped { \"~s=(?<captured>[a-z]+)\" $captured; }
        map $mapped $twice { default \"$mapped again\"; \"\" \"\"; }
        map $http_accept_language $language { default $http_accept_language; }
        upstream api { server @UPSTREAM@; }
        server {
            listen 127.0.0.1:@PORT@;
            add_header X-Cache-Status $upstream_cache_status;
            proxy_cache_valid 1m; fastcgi_cache_valid 1m;
            proxy_cache_credentials public; fastcgi_cache_credentials public;
            proxy_cache_key $request_uri; fastcgi_cache_key $request_uri;
            location / { @LOCATION@ }
            location = /who { internal; add_header X-Who $cookie_s; return 204; }
        }
    }";

/// A response that is made of all that the upstream was told.
fn echo() -> Origin {
    Origin::start(|request| {
        let told = request.field("x-u").or(request.field("authorization")).unwrap_or("-");
        let body = String::from_utf8_lossy(&request.body).into_owned();
        answer(200, &[], format!("{} {told} {body}", request.target()).as_bytes())
    })
}

fn start(location: &str, upstream: &str) -> Server {
    let location = if location.contains("_pass") {
        location.to_owned()
    } else {
        format!("{location} proxy_cache answers; proxy_set_header Cookie \"\"; proxy_pass http://api;")
    };
    Server::start(SITE, &[("LOCATION", &location), ("UPSTREAM", upstream)])
}

fn ask(server: &Server, path: &str, fields: &[(&str, &str)]) -> (String, String) {
    let got: Answer = server.get_with(path, fields);
    (got.field("x-cache-status").unwrap_or("none").to_owned(), got.text())
}

const ANN: &[(&str, &str)] = &[("Cookie", "s=ann")];
const BOB: &[(&str, &str)] = &[("Cookie", "s=bob")];

#[test]
fn what_was_set_captured_or_rewritten_of_a_credential_is_shared_with_nobody() {
    if is_nginx() {
        return;
    }
    let origin = echo();
    for location in [
        "proxy_set_header X-U $cookie_s;",
        "set $q $cookie_s; proxy_set_header X-U $q;",
        "set $q $cookie_s; set $r \"of $q\"; proxy_set_header X-U $r;",
        "if ($http_cookie ~ \"s=([a-z]+)\") { set $q $1; } proxy_set_header X-U $q;",
        "if ($http_cookie ~ \"s=(?<own>[a-z]+)\") { } proxy_set_header X-U $own;",
        "proxy_set_header X-U $mapped;",
        "proxy_set_header X-U $twice;",
        "set $q $mapped; proxy_set_header X-U $captured;",
        "auth_request /who; auth_request_set $q $sent_http_x_who; proxy_set_header X-U $q;",
        "proxy_set_body s=$cookie_s;",
        "rewrite ^ /r/$cookie_s break;",
        "set $q $cookie_s; rewrite ^ /r?q=$q break;",
        "set $args s=$cookie_s;",
        "proxy_cache answers; proxy_set_header Cookie \"\"; proxy_pass http://api/?x=$cookie_s;",
        "userid on; userid_name s; proxy_set_header X-U $uid_got$cookie_s;",
    ] {
        let server = start(location, &origin.address());
        let anybody = |who: &(String, String)| who.1.contains("ann") || who.1.contains("bob");
        for (fields, own) in [(ANN, "ann"), (BOB, "bob"), (ANN, "ann")] {
            let got = ask(&server, "/page", fields);
            assert!(got.0 != "HIT" && got.1.contains(own), "{location}: {got:?}");
        }
        assert!(!anybody(&ask(&server, "/page", &[])), "{location}");
    }
}

#[test]
fn the_parameters_of_an_application_count_as_fields_do() {
    if is_nginx() {
        return;
    }
    let application = Application::start(|asked| {
        let told = format!("{} {}", asked.param("U"), asked.param("QUERY_STRING"));
        application::answer(&format!("Content-Type: text/plain\r\n\r\n{told}"))
    });
    let basic = |user: &str| if user == "ann" { "Basic YW5uOng=" } else { "Basic Ym9iOng=" };
    for told in [
        "fastcgi_param U $cookie_s;",
        "set $q $cookie_s; fastcgi_param U $q;",
        "fastcgi_param HTTP_AUTHORIZATION \"\"; fastcgi_param U $remote_user;",
        "set $args s=$cookie_s; fastcgi_param QUERY_STRING $args;",
    ] {
        let location =
            format!("{told} fastcgi_param HTTP_COOKIE \"\"; fastcgi_cache answers; fastcgi_pass api;");
        let server = start(&location, &format!("127.0.0.1:{}", application.port()));
        for user in ["ann", "bob", "ann"] {
            let cookie = format!("s={user}");
            let fields = [("Cookie", cookie.as_str()), ("Authorization", basic(user))];
            let fields = if told.contains("remote_user") { &fields[1..] } else { &fields[..1] };
            let got = ask(&server, "/page", fields);
            assert!(got.0 != "HIT" && got.1.contains(user), "{told}: {got:?}");
        }
    }
}

#[test]
fn what_shows_nobody_is_stored_however_it_was_made() {
    if is_nginx() {
        return;
    }
    let origin = echo();
    for location in [
        "set $q constant; proxy_set_header X-U $q;",
        "set $token secret; proxy_set_header X-Api-Key $token;",
        "set $backend api; proxy_cache answers; proxy_pass http://$backend;",
        "location ~ ^/(pa)ge$ { proxy_cache answers; proxy_pass http://api/$1; }",
        "location ~ ^/(?<part>pa)ge$ { proxy_cache answers; proxy_set_header X-U $part; proxy_pass http://api; }",
        "rewrite ^/(.*)$ /r/$1 break;",
        "set $args a=b;",
        "proxy_set_header X-U $language;",
        "if ($http_user_agent ~ (bot)) { set $q $1; } proxy_set_header X-U $q;",
        // Of the credentials that are asked for this client has none.
        "set $q $cookie_s; proxy_set_header X-U $q; proxy_set_header Authorization $http_authorization;",
    ] {
        let server = start(location, &origin.address());
        let fields = [("User-Agent", "bot"), ("Accept-Language", "de")];
        let got = [ask(&server, "/page", &fields), ask(&server, "/page", &fields)];
        assert_eq!(got.map(|(status, _)| status), ["MISS", "HIT"], "{location}");
    }
}
