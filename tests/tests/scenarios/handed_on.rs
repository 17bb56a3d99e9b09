//! Who asks, where the upstream learns it otherwise than by the client's own fields: what is made for one reaches no other.

use millstream_tests::application::{self, Application};
use millstream_tests::client::Answer;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;

const SITE: &str = site! {
    main "worker_processes 1;"
    http "proxy_cache_path memory keys_zone=answers:1m;
        map $http_cookie $mapped { \"~s=(?<captured>[a-z]+)\" $captured; }
        map $mapped $twice { default \"$mapped again\"; \"\" \"\"; }
        map $http_accept_language $language { default $http_accept_language; }
        map $args $mapped_query { default $args; }
        map $http_x_zed $zed { default $http_x_zed; }
        map $arg_token $of_argument { default user-$arg_token; }
        map $host $of_host { default of-$host; }
        limit_req_zone $http_cookie zone=none:1m rate=1r/m;
        map $cookie_lang $tongue { default en; de de; }
        upstream api { server @UPSTREAM@; }
        upstream other { server @UPSTREAM@; }"
    server "add_header X-Cache-Status $upstream_cache_status;
        proxy_cache_valid 1m; fastcgi_cache_valid 1m;
        proxy_cache_credentials public; fastcgi_cache_credentials public;
        proxy_cache_key $request_uri; fastcgi_cache_key $request_uri;
        location / { @LOCATION@ }
        location = /known { internal; if ($http_authorization = \"\") { return 401; } return 204; }
        location = /name { internal; add_header X-Who $remote_user; return 204; }
        location = /who { internal; add_header X-Who $cookie_s; return 204; }
        location /store/ { internal; @CACHED@ }
        location /one/ { internal; proxy_cache_key one; @CACHED@ }
        location @gold { proxy_set_header X-U gold; @CACHED@ }
        location @ann { proxy_set_header X-U ann; @CACHED@ }
        location @bob { proxy_set_header X-U bob; @CACHED@ }
        location /gold { @CACHED@ }
        location /led/ { proxy_pass http://api; }
        location /page.html { ssi on; proxy_pass http://api; }"
};

const CACHED: &str = "proxy_cache answers; proxy_set_header Cookie \"\"; proxy_pass http://api;";

fn echo() -> Origin {
    echo_saying("max-age=60")
}

/// The response contains everything the upstream was told.
fn echo_saying(control: &'static str) -> Origin {
    Origin::start(move |request| {
        let of_cookie =
            || request.field("cookie").and_then(|cookie| cookie.strip_prefix("s=")).unwrap_or("-");
        if request.target().starts_with("/led/") {
            return answer(200, &[("X-Accel-Redirect", &format!("/store/{}", of_cookie()))], b"");
        }
        if request.target() == "/page.html" {
            let part = format!("<!--#include virtual=\"/one/{}\" -->", of_cookie());
            return answer(200, &[("Content-Type", "text/html")], part.as_bytes());
        }
        if request.target() == "/forbidden" && request.field("x-u").is_none() {
            return answer(403, &[], b"");
        }
        let line = request.head.lines().next().unwrap_or_default();
        let fields = ["x-u", "x-api-key", "authorization"];
        let told = fields.iter().find_map(|name| request.field(name)).unwrap_or("-");
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let host = request.field("host").unwrap_or("-");
        // A response to POST that names its own URL stands for one to GET.
        let fields = [("Cache-Control", control), ("Content-Location", "/page")];
        answer(200, &fields, format!("{line} {told} {body} {host}").as_bytes())
    })
}

fn start(location: &str, upstream: &str) -> Server {
    start_site(SITE, CACHED, location, upstream)
}

/// Where the location passes nothing on, it does so as `cached` says.
pub(super) fn start_site(site: &str, cached: &str, location: &str, upstream: &str) -> Server {
    let location =
        if location.contains("_pass") { location.to_owned() } else { format!("{location} {cached}") };
    Server::start(site, &[("LOCATION", &location), ("UPSTREAM", upstream), ("CACHED", cached)])
}

pub(super) fn ask(server: &Server, path: &str, fields: &[(&str, &str)]) -> (String, String) {
    let got: Answer = server.get_with(path, fields);
    (got.field("x-cache-status").unwrap_or("none").to_owned(), got.text())
}

/// Asks in turn for ann, bob and ann again: each gets its own response, and nothing is stored.
fn each_gets_the_own(about: &str, ask: impl Fn(&str) -> (String, String)) {
    for user in ["ann", "bob", "ann"] {
        let got = ask(user);
        assert!(got.0 != "HIT" && got.1.contains(user), "{about}: {got:?}");
    }
}

const ANN: &[(&str, &str)] = &[("Cookie", "s=ann")];
const BOB: &[(&str, &str)] = &[("Cookie", "s=bob")];

#[test]
fn what_was_set_captured_or_rewritten_of_a_credential_is_shared_with_nobody() {
    skip_on_nginx!();
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
        "set $args \"u=$cookie_s\"; set $args \"$args&v=2\";",
        "set $args \"u=$cookie_s\"; set $args \"$query_string&v=2\";",
        "set $args \"u=$cookie_s\"; set $q $arg_u; set $args \"\"; proxy_set_header X-U $q;",
        "set $args \"u=$cookie_s\"; if ($args ~ \"u=(.+)\") { set $q $1; } set $args \"\"; proxy_set_header X-U $q;",
        "set $args \"u=$cookie_s\"; set $q $mapped_query; set $args \"\"; proxy_set_header X-U $mapped_query;",
        "set $args \"u=$cookie_s\"; rewrite ^ /y/$arg_u? break;",
        "rewrite ^ /y/$cookie_s break; set $q $uri; proxy_set_header X-U $q;",
        "rewrite ^ /y/$cookie_s; rewrite ^/y/(.*)$ /z?q=$1 break;",
        "root /srv/$cookie_s; proxy_set_header X-U $document_root;",
        "root /srv/$cookie_s; proxy_set_header X-U $request_filename;",
        "root /srv/$cookie_s; set $q $document_root; proxy_set_header X-U $q;",
        "proxy_method $cookie_s;",
        "try_files /nothing /store/$cookie_s;",
        "try_files /nothing /store/?u=$cookie_s;",
        "error_page 404 /store/$cookie_s; return 404;",
        "error_page 418 = /store/?u=$cookie_s; return 418;",
        "error_page 418 = @$cookie_s; return 418;",
        "try_files /nothing @$cookie_s;",
        "root /; rewrite ^ / break; index /store/$cookie_s; #_pass\n",
        "rewrite ^ /led/ last;",
        "rewrite ^ /page.html last;",
    ] {
        let server = start(location, &origin.address());
        let anybody = |who: &(String, String)| who.1.contains("ann") || who.1.contains("bob");
        each_gets_the_own(location, |user| ask(&server, "/page", if user == "ann" { ANN } else { BOB }));
        // What Connection takes away from the upstream, the configuration has read before.
        ask(&server, "/page", &[ANN[0], ("Connection", "Cookie")]);
        assert!(!anybody(&ask(&server, "/page", &[])), "{location}");
    }
}

#[test]
fn what_is_public_at_a_url_that_a_credential_determines_is_shared_with_nobody() {
    skip_on_nginx!();
    let origin = echo_saying("public, max-age=60");
    for location in [
        "rewrite ^ /r/$cookie_s break;",
        "set $args s=$cookie_s;",
        "try_files /nothing /store/$cookie_s;",
        "error_page 418 = /store/?u=$cookie_s; return 418;",
        "error_page 418 = @$cookie_s; return 418;",
        "rewrite ^ /led/ last;",
        "proxy_cache answers; proxy_set_header Cookie \"\"; proxy_pass http://api/u/$cookie_s;",
        "set $q $mapped; proxy_cache answers; proxy_set_header Cookie \"\"; proxy_pass http://api/$q;",
        "proxy_set_header Host $cookie_s;",
        "proxy_set_header Host $mapped.example;",
        "proxy_cache_key $scheme$proxy_host$request_uri; error_page 418 = @$cookie_s; return 418;",
        "error_page 403 = @$cookie_s; proxy_intercept_errors on; rewrite ^ /forbidden break;",
        "error_page 429 = @$cookie_s; limit_req zone=none burst=1 nodelay; limit_req_status 429;",
        "error_page 502 = @gold; proxy_cache answers; proxy_set_header Cookie \"\"; proxy_pass http://127.0.0.1:1/$cookie_s;",
    ] {
        let server = start(location, &origin.address());
        if location.contains("@gold") {
            let got = [(); 2].map(|()| ask(&server, "/page", ANN));
            assert!(got[1].0 != "HIT" && got[1].1.contains("gold"), "{location}: {got:?}");
            continue;
        }
        // The first two of a client are let in.
        if location.contains("limit_req") {
            for who in [ANN, ANN, BOB, BOB] {
                ask(&server, "/limited", who);
            }
        }
        let post = "POST /page HTTP/1.1\r\nHost: localhost\r\nCookie: s=ann\r\nContent-Length: 0\r\n\r\n";
        server.ask(post);
        each_gets_the_own(location, |user| ask(&server, "/page", if user == "ann" { ANN } else { BOB }));
    }
    // The key contains that URL.
    for location in [
        "proxy_cache_key $uri; rewrite ^ /r/$cookie_s break;",
        "proxy_cache_key $proxy_host$cookie_s; proxy_cache answers; proxy_pass http://api/u/$cookie_s;",
        "proxy_set_header X-U $cookie_s;",
    ] {
        let server = start(location, &origin.address());
        assert_eq!([(); 2].map(|()| ask(&server, "/page", ANN).0)[1], "HIT", "{location}");
    }
}

#[test]
fn who_is_named_in_place_of_authorization_is_no_less_known() {
    skip_on_nginx!();
    let origin = echo();
    for (told, expected) in [
        ("proxy_set_header X-U $remote_user;", ["MISS", "MISS"]),
        ("proxy_set_header X-U $http_authorization;", ["MISS", "MISS"]),
        ("set $q $remote_user; proxy_set_header X-U $q;", ["MISS", "MISS"]),
        (
            "auth_request /name; auth_request_set $q $sent_http_x_who; proxy_set_header X-U $q;",
            ["MISS", "MISS"],
        ),
        ("rewrite ^ /r/$remote_user break;", ["MISS", "MISS"]),
        ("proxy_set_header X-U staging;", ["MISS", "HIT"]),
        ("proxy_cache_key $http_authorization; proxy_set_header X-U $remote_user;", ["MISS", "HIT"]),
    ] {
        let location = format!("proxy_cache_credentials any; proxy_set_header Authorization \"\"; {told}");
        let server = start(&location, &origin.address());
        let known = |user: &str| match user {
            "ann" => [("Authorization", "Basic YW5uOng=")],
            _ => [("Authorization", "Basic Ym9iOng=")],
        };
        let got = [(); 2].map(|()| ask(&server, "/page", &known("ann")));
        assert_eq!([&*got[0].0, &*got[1].0], expected, "{told}");
        let got = ask(&server, "/page", &known("bob"));
        assert!(!got.1.contains("ann") && !got.1.contains("YW5u"), "{told}: {got:?}");
    }
}

#[test]
fn a_response_to_authorization_is_stored_where_the_key_names_it() {
    skip_on_nginx!();
    let origin = echo();
    for (key, expected) in
        [("$request_uri", ["MISS", "MISS", "MISS"]), ("$http_authorization", ["MISS", "HIT", "MISS"])]
    {
        let server =
            start(&format!("proxy_cache_credentials any; proxy_cache_key {key};"), &origin.address());
        let got = ["Basic YW5uOng=", "Basic YW5uOng=", "Basic Ym9iOng="]
            .map(|credential| ask(&server, "/page", &[("Authorization", credential)]).0);
        assert_eq!(got, expected, "{key}");
    }
}

#[test]
fn the_parameters_of_an_application_count_as_fields_do() {
    skip_on_nginx!();
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
        "root /srv/$cookie_s; fastcgi_param U $document_root$fastcgi_script_name;",
    ] {
        let location =
            format!("{told} fastcgi_param HTTP_COOKIE \"\"; fastcgi_cache answers; fastcgi_pass api;");
        let server = start(&location, &format!("127.0.0.1:{}", application.port()));
        each_gets_the_own(told, |user| {
            let cookie = format!("s={user}");
            let fields = [("Cookie", cookie.as_str()), ("Authorization", basic(user))];
            ask(&server, "/page", if told.contains("remote_user") { &fields[1..] } else { &fields[..1] })
        });
    }
}

#[test]
fn a_credential_that_is_made_of_anything_of_the_client_s_is_shared_with_nobody() {
    skip_on_nginx!();
    let origin = echo();
    for made in [
        "proxy_set_header X-Api-Key $http_x_zed;",
        "set $q $http_x_zed; proxy_set_header X-Api-Key $q;",
        "proxy_set_header X-Api-Key $zed;",
        "if ($http_x_zed ~ \"(.+)\") { set $q $1; } proxy_set_header X-Api-Key $q;",
        "proxy_set_header X-Api-Key $arg_token;",
        "set $q $arg_token; proxy_set_header Authorization \"Bearer $q\";",
        "proxy_set_header X-Api-Key $of_argument;",
    ] {
        let server = start(&format!("proxy_cache_key $uri; {made}"), &origin.address());
        each_gets_the_own(made, |user| ask(&server, &format!("/page?token={user}"), &[("X-Zed", user)]));
    }
}

#[test]
fn what_a_condition_on_a_credential_decides_is_shared_with_nobody() {
    skip_on_nginx!();
    let origin = echo();
    for location in [
        "set $q free; if ($cookie_s = ann) { set $q gold; } proxy_set_header X-U $q;",
        "if ($cookie_s = ann) { set $q gold; } proxy_set_header X-U $q;",
        "set $q gold; if ($cookie_s != ann) { set $q free; } proxy_set_header X-U $q;",
        "if ($cookie_s != ann) { set $q free; } proxy_set_header X-U $q;",
        "if ($cookie_s ~ ann) { set $flag 1; } if ($flag) { set $q gold; } proxy_set_header X-U $q;",
        "if ($cookie_s = ann) { set $args tier=gold; }",
        "if ($cookie_s = ann) { rewrite ^ /gold break; }",
        "if ($cookie_s = ann) { rewrite ^ /gold last; }",
        "if ($cookie_s = ann) { break; } set $q free; proxy_set_header X-U $q;",
        "error_page 418 = @gold; if ($cookie_s = ann) { return 418; }",
        "if ($cookie_s = ann) { proxy_pass http://other; } proxy_set_header X-U $proxy_host;",
    ] {
        for first in [ANN, &[]] {
            let server = start(location, &origin.address());
            let got = [first, if first.is_empty() { ANN } else { &[] }].map(|who| ask(&server, "/page", who));
            assert!(got[1].0 != "HIT" && got[0].1 != got[1].1, "{location}: {got:?}");
        }
    }
}

#[test]
fn what_those_get_who_were_refused_is_not_what_those_get_who_were_let_in() {
    skip_on_nginx!();
    let origin = echo();
    for location in [
        "auth_basic own; auth_basic_user_file users; error_page 401 = @gold; proxy_set_header Authorization \"\";",
        "auth_basic own; auth_basic_user_file users; error_page 401 =200 @gold; proxy_set_header Authorization \"\";",
        "auth_request /known; error_page 401 = @gold; proxy_set_header Authorization \"\";",
    ] {
        let prefix = Prefix::new();
        prefix.write("users", "ann:{PLAIN}secret\n");
        let users = prefix.join("users").display().to_string();
        let location = format!("{location} {CACHED}").replace("_file users;", &format!("_file {users};"));
        let parts = [("LOCATION", location.as_str()), ("UPSTREAM", &origin.address()), ("CACHED", CACHED)];
        let server = Server::start_in(prefix, SITE, &parts);
        let known = [("Authorization", "Basic YW5uOnNlY3JldA==")];
        for (fields, page) in [(&known[..], " -"), (&[], "gold"), (&known, " -"), (&[], "gold")] {
            let (_, text) = ask(&server, "/page", fields);
            assert_eq!(text.contains("gold"), page == "gold", "{location}: {text}");
        }
    }
}

#[test]
fn who_is_let_in_by_a_credential_shares_what_is_stored_for_all_who_are() {
    skip_on_nginx!();
    let origin = echo();
    for condition in
        ["if ($http_x_api_key != known) { return 403; }", "if ($http_x_api_key) { set $skip 0; }"]
    {
        let location =
            format!("set $skip \"\"; {condition} proxy_cache_bypass $skip; proxy_set_header X-Api-Key \"\";");
        let server = start(&location, &origin.address());
        let got = [(); 2].map(|()| ask(&server, "/page", &[("X-Api-Key", "known")]).0);
        assert_eq!(got, ["MISS", "HIT"], "{condition}");
    }
}

#[test]
fn the_certificate_by_which_an_upstream_knows_us_shows_who_asks() {
    skip_on_nginx!();
    let prefix = Prefix::with_certificate("api.example");
    for name in ["ann", "bob"] {
        let own = Prefix::with_certificate(name);
        for (kind, file) in [("pem", "server.pem"), ("key", "server.key")] {
            prefix.write(&format!("{name}.{kind}"), std::fs::read_to_string(own.join(file)).expect("a file"));
        }
    }
    let site = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http {
            access_log off;
            proxy_cache_path memory keys_zone=answers:1m;
            map $cookie_s $who { default ann; bob bob; }
            server {
                listen 127.0.0.1:@TLSPORT@ ssl;
                ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
                ssl_verify_client optional_no_ca;
                return 200 \"for $ssl_client_s_dn\";
            }
            server {
                listen 127.0.0.1:@PORT@;
                add_header X-Cache-Status $upstream_cache_status;
                proxy_cache answers; proxy_cache_valid 1m; proxy_cache_credentials public;
                proxy_set_header Cookie \"\";
                proxy_ssl_certificate @DIR@/$who.pem; proxy_ssl_certificate_key @DIR@/$who.key;
                location / { proxy_pass https://127.0.0.1:@TLSPORT@; }
            }
        }";
    let server = Server::start_in(prefix, site, &[("TLSPORT", &ports::free().to_string())]);
    each_gets_the_own("a certificate", |user| {
        let got = ask(&server, "/page", if user == "ann" { ANN } else { BOB });
        assert_eq!(got, ("BYPASS".to_owned(), format!("for CN={user}")));
        got
    });
}

#[test]
fn what_shows_nobody_is_stored_however_it_was_made() {
    skip_on_nginx!();
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
        "proxy_set_header X-Api-Key $of_host;",
        // Without the cookie all have the same.
        "proxy_set_header X-U $tongue;",
        "if ($cookie_s) { set $q member; } proxy_set_header X-U $q;",
        "set $token \"for $host\"; proxy_set_header X-Api-Key $token;",
        // The key names the URL.
        "proxy_set_header X-Api-Key $arg_token; proxy_set_header X-Auth-Path $uri;",
        "location ~ ^/(?<part>pa)ge$ { proxy_cache answers; proxy_set_header X-Auth-Path $part; proxy_pass http://api; }",
        "try_files /nothing /store/$http_accept_language;",
        "rewrite ^ /led/ last;",
    ] {
        let server = start(location, &origin.address());
        let fields = [("User-Agent", "bot"), ("Accept-Language", "de")];
        let got = [ask(&server, "/page", &fields), ask(&server, "/page", &fields)];
        assert_eq!(got.map(|(status, _)| status), ["MISS", "HIT"], "{location}");
    }
}

#[test]
fn the_default_key_tells_sockets_and_schemes_apart() {
    skip_on_nginx!();
    let prefix = Prefix::with_certificate("api.example");
    let site = "worker_processes 1; pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {}
        http {
            access_log off; proxy_cache_path memory keys_zone=answers:1m;
            proxy_cache answers; proxy_cache_valid 1m;
            server { listen unix:@DIR@/one.sock; return 200 one; }
            server { listen unix:@DIR@/two.sock; return 200 two; }
            server { listen 127.0.0.1:@PLAIN@; return 200 plain; }
            server {
                listen 127.0.0.1:@SECURE@ ssl; return 200 secure;
                ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
            }
            map $host $of_api { plain.example http://127.0.0.1:@PLAIN@; default https://127.0.0.1:@SECURE@; }
            map $host $socket { variable1.example one; default two; }
            server {
                listen 127.0.0.1:@PORT@;
                server_name one.example; location / { proxy_pass http://unix:@DIR@/one.sock; }
            }
            server { listen 127.0.0.1:@PORT@; server_name two.example; location / { proxy_pass http://unix:@DIR@/two.sock; } }
            server {
                listen 127.0.0.1:@PORT@;
                server_name variable1.example variable2.example;
                location / { proxy_pass http://unix:@DIR@/$socket.sock:$request_uri; }
            }
            server {
                listen 127.0.0.1:@PORT@;
                server_name plain.example secure.example; location / { proxy_pass $of_api; }
            }
        }";
    let [plain, secure] = [(); 2].map(|()| ports::free().to_string());
    let server = Server::start_in(prefix, site, &[("PLAIN", &plain), ("SECURE", &secure)]);
    for (host, expected) in [
        ("one.example", "one"),
        ("two.example", "two"),
        ("variable1.example", "one"),
        ("variable2.example", "two"),
        ("plain.example", "plain"),
        ("secure.example", "secure"),
    ] {
        let got = [(); 2].map(|()| server.get_with("/page", &[("Host", host)]).text());
        assert_eq!(got, [expected, expected], "{host}");
    }
}
