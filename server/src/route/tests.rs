//! Which server and which location take a request, in nginx's order of preference.

use super::location::{self, PathMatch};
use crate::fixture::{admitted, answered_by, configuration, worker};

const LOCATIONS: &str = r#"server { listen 80;
    location / { return 200 "root"; }
    location = /exact { return 200 "exact"; }
    location /exact { return 200 "not the exact one"; }
    location /prefix { return 200 "prefix"; }
    location /prefix/long { return 200 "long prefix"; }
    location ^~ /caret/ { return 200 "caret"; }
    location ~ \.php$ { return 200 "php"; }
    location ~* ^/img/(?<name>.*)\.(png|gif)$ { return 200 "image $name $2"; }
    location /outer/ {
        return 200 "outer";
        location /outer/inner/ { return 200 "inner"; }
        location = /outer/exact.php { return 200 "inner exact"; }
        location ^~ /outer/caret/ { return 200 "inner caret"; }
        location ~ re$ { return 200 "inner expression"; }
    }
    location ~ ^/expression/ {
        return 200 "expression";
        location ~ (z+)$ { return 200 "expression in an expression $1"; }
    }
}"#;

#[test]
fn the_location_is_chosen_as_nginx_chooses_it() {
    let worker = worker(LOCATIONS);
    let check = |path: &str, expected: &str| {
        let request = admitted(&worker, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(answered_by(&request), expected, "{path}");
    };
    check("/", "root");
    check("/other", "root");
    check("/exact", "exact");
    check("/exact/", "not the exact one");
    check("/prefixed", "prefix");
    check("/prefix/longer", "long prefix");
    check("/prefix/long.php", "php");
    check("/caret/x.php", "caret");
    check("/img/a.PNG", "image a PNG");
    check("/img/a.jpg", "root");
    check("/%70refix", "prefix");
    check("/x/../prefix", "prefix");
}

#[test]
fn nested_locations_are_searched_before_the_expressions_of_the_level_above() {
    let worker = worker(LOCATIONS);
    let check = |path: &str, expected: &str| {
        let request = admitted(&worker, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(answered_by(&request), expected, "{path}");
    };
    check("/outer/", "outer");
    check("/outer/inner/", "inner");
    check("/outer/inner/re", "inner expression");
    check("/outer/exact.php", "inner exact");
    // A prefix found among the nested ones does not keep an expression above from being tried, `^~` or not.
    check("/outer/inner/x.php", "php");
    check("/outer/caret/re", "inner caret");
    check("/outer/caret/x.php", "php");
    check("/expression/x", "expression");
    check("/expression/xzz", "expression in an expression zz");
}

#[test]
fn a_path_that_lacks_only_the_slash_of_a_proxied_location_is_sent_there() {
    let conf = configuration(
        "server { listen 80; location /api/ { proxy_pass http://127.0.0.1:1; } location /files/ { root /r; }
         location /both/ { proxy_pass http://127.0.0.1:1; } location /both { root /r; }
         location ~ ^/api { root /r; } }",
    );
    let find = |path: &str| {
        location::find(&conf.http, &conf.http.servers[0].locations, path.as_bytes()).expect("it is decided")
    };
    assert!(matches!(find("/api"), PathMatch::Slash(_)));
    assert!(matches!(find("/api/"), PathMatch::Location(..)));
    assert!(matches!(find("/ap"), PathMatch::Server));
    assert!(matches!(find("/files"), PathMatch::Server));
    assert!(matches!(find("/both"), PathMatch::Location(..)));
    assert!(matches!(find(""), PathMatch::Server));
}

#[test]
fn the_server_is_chosen_by_name_in_nginx_s_order() {
    let worker = worker(
        r#"server { listen 80; server_name first.example; return 200 "first"; }
        server { listen 80 default_server; server_name _; return 200 "default"; }
        server { listen 80; server_name *.example; return 200 "leading"; }
        server { listen 80; server_name *.long.example; return 200 "longer leading"; }
        server { listen 80; server_name www.*; return 200 "trailing"; }
        server { listen 80; server_name www.api.*; return 200 "longer trailing"; }
        server { listen 80; server_name .dot.test; return 200 "dot"; }
        server { listen 80; server_name ~^(?<user>.+)\.users\.net$; return 200 "user $user"; }
        server { listen 80; server_name ""; return 200 "nameless"; }"#,
    );
    let check = |host: &str, expected: &str| {
        let mut request = admitted(&worker, &format!("GET / HTTP/1.0\r\n{host}\r\n"));
        request.route.location = request.server().own;
        assert_eq!(answered_by(&request), expected, "{host}");
    };
    check("Host: first.example\r\n", "first");
    check("Host: FIRST.Example.:8080\r\n", "first");
    check("Host: x.example\r\n", "leading");
    check("Host: x.y.long.example\r\n", "longer leading");
    check("Host: www.anything\r\n", "trailing");
    check("Host: www.api.org\r\n", "longer trailing");
    check("Host: www.example\r\n", "leading");
    check("Host: dot.test\r\n", "dot");
    check("Host: a.dot.test\r\n", "dot");
    check("Host: jo.users.net\r\n", "user jo");
    check("Host: unknown\r\n", "default");
    check("", "nameless");
}
