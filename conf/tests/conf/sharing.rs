//! Warnings where one user may get what was made for another, and the silence where the file has seen to it.

use millstream_conf::Loaded;
use millstream_conf::diagnostics::Severity;

use crate::fixture::{in_http, no_error, text};

const USERS: &str = "are stored and sent to every client";
const COOKIES: &str = "sent to clients with other cookies";
const BYPASS: &str = "\"proxy_cache_bypass\" alone does not keep users apart";
const HOSTS: &str = "sent to clients with another";

fn in_cached(directives: &str) -> String {
    in_http(&format!(
        "proxy_cache_path memory keys_zone=z:1m; server {{ listen 8080;\nlocation / {{ proxy_cache z; \
         proxy_pass http://127.0.0.1:8000; {directives} }} }}"
    ))
}

fn warnings(configuration: &str) -> (Loaded, Vec<String>) {
    no_error(configuration);
    let loaded = text(configuration);
    let shown = (loaded.diagnostics.sorted().into_iter())
        .filter(|found| found.severity == Severity::Warning)
        .map(|found| found.render(&loaded.sources))
        .collect();
    (loaded, shown)
}

/// Exactly one warning with `part`, located and with a help; none if `part` is empty.
fn check(directives: &str, part: &str) {
    let (_, shown) = warnings(&in_cached(directives));
    if part.is_empty() {
        assert!(shown.is_empty(), "{directives}\n{shown:#?}");
        return;
    }
    assert_eq!(shown.len(), 1, "{directives}\n{shown:#?}");
    let shown = &shown[0];
    assert!(shown.contains(part) && shown.contains("test.conf:2:") && shown.contains("help: "), "{shown}");
}

#[test]
fn a_location_that_shares_what_nobody_said_may_be_shared_is_warned_about() {
    for (directives, part) in [
        ("proxy_cache_valid 200 10s;", USERS),
        ("proxy_cache_valid 1m;", USERS),
        ("proxy_cache_valid any 1m;", USERS),
        ("proxy_cache_heuristic 10%;", USERS),
        ("proxy_cache_valid 200 1s; proxy_cache_bypass $arg_nocache; proxy_no_cache $http_pragma;", USERS),
        ("proxy_cache_valid 200 1s; proxy_cache_bypass $http_cookie;", BYPASS),
        ("proxy_cache_valid 200 1s; proxy_cache_bypass $cookie_session $http_authorization;", BYPASS),
        ("proxy_cache_valid 200 1s; proxy_cache_key $uri$http_accept;", USERS),
        ("proxy_cache_valid 200 1s; proxy_no_cache $http_authorization;", COOKIES),
        ("proxy_cache_valid 200 1s; proxy_no_cache $http_x_api_key;", COOKIES),
        ("proxy_cache_valid 200 1s; proxy_cache_key $uri$http_authorization;", COOKIES),
        ("proxy_cache_valid 200 1s; proxy_set_header Cookie $http_cookie;", USERS),
        // nginx's own example of a switch is nobody's session.
        (
            "proxy_cache_valid 200 1s; proxy_cache_bypass $cookie_nocache; proxy_no_cache $cookie_nocache;",
            USERS,
        ),
        ("proxy_cache_valid 200 1s; proxy_cache_key $uri$cookie_lang;", USERS),
    ] {
        check(directives, part);
    }
}

#[test]
fn a_location_that_knows_of_cookies_or_credentials_is_not() {
    for directives in [
        "",
        "proxy_cache_valid 404 1m; proxy_cache_valid 500 502 1s;",
        "proxy_cache_valid 200 0;",
        "proxy_cache_valid 200 1s; proxy_no_cache $http_cookie;",
        "proxy_cache_valid 200 1s; proxy_no_cache $cookie_session; proxy_cache_bypass $cookie_session;",
        "proxy_cache_valid 200 1s; proxy_no_cache $http_x_api_key $http_cookie;",
        "proxy_cache_valid 200 1s; proxy_cache_key $uri$cookie_session;",
        "proxy_cache_valid 200 1s; proxy_cache_key $uri$http_authorization$http_cookie;",
        "proxy_cache_valid 200 1s; proxy_set_header Cookie \"\";",
    ] {
        check(directives, "");
    }
}

#[test]
fn a_location_that_shares_what_was_made_for_a_certificate_is_warned_about_unless_it_keeps_them_apart() {
    const CERTIFICATES: &str = "receives the client's certificate";
    let key = "proxy_cache_valid 200 1s; proxy_cache_key $uri$http_cookie$http_authorization";
    let told = "proxy_set_header X-Client $ssl_client_s_dn;";
    check(&format!("{key}; {told}"), CERTIFICATES);
    check(&format!("{key}; proxy_set_header X-Client \"a $ssl_client_fingerprint\";"), CERTIFICATES);
    check(&format!("{key}$ssl_client_fingerprint; {told}"), "");
    check(&format!("{key}; proxy_no_cache $ssl_client_serial; {told}"), "");
    check(&format!("{key}; proxy_cache_credentials public; {told}"), "");
    check(&format!("{key}; proxy_set_header X-Verified $ssl_client_verify;"), "");
}

#[test]
fn a_location_that_stores_the_cookie_of_whoever_asked_first_is_warned_about() {
    const COOKIE: &str = "a cookie that is set for one client";
    for (directives, part) in [
        ("proxy_ignore_headers Set-Cookie;", COOKIE),
        ("proxy_ignore_headers Cache-Control Set-Cookie; proxy_hide_header X-Powered-By;", COOKIE),
        ("proxy_ignore_headers Set-Cookie; proxy_hide_header Set-Cookie;", ""),
        ("proxy_ignore_headers Cache-Control;", ""),
    ] {
        check(directives, part);
    }
}

#[test]
fn a_location_that_stores_answers_to_post_without_their_body_in_the_key_is_warned_about() {
    const BODY: &str = "sent to clients with another body";
    for (directives, part) in [
        ("proxy_cache_methods POST;", BODY),
        ("proxy_cache_methods GET HEAD POST; proxy_cache_key $uri$http_authorization$content_length;", BODY),
        ("proxy_cache_methods POST; proxy_cache_key $uri$http_content_digest;", ""),
        ("proxy_cache_methods GET QUERY;", ""),
    ] {
        check(directives, part);
    }
}

#[test]
fn a_cache_behind_passwords_that_the_upstream_gets_is_said_to_keep_nothing() {
    const PASSWORDS: &str = "every request has a credential";
    for (directives, part) in [
        ("auth_basic closed; auth_basic_user_file users;", PASSWORDS),
        ("auth_basic closed; auth_basic_user_file users; proxy_set_header Authorization \"\";", ""),
        ("auth_basic closed; auth_basic_user_file users; proxy_cache_key $uri$http_authorization;", ""),
        ("auth_basic closed; auth_basic_user_file users; proxy_cache_credentials public;", ""),
        ("auth_basic off; auth_basic_user_file users;", ""),
    ] {
        check(directives, part);
    }
}

#[test]
fn an_upstream_that_is_told_a_host_which_the_key_lacks_is_warned_about() {
    for (directives, part) in [
        ("proxy_set_header Host $host;", HOSTS),
        ("proxy_set_header Host $http_host;", HOSTS),
        ("proxy_set_header Host $host:$server_port;", HOSTS),
        ("proxy_set_header X-Forwarded-Host $host;", HOSTS),
        ("proxy_set_header Host $host; proxy_cache_key $server_name$uri;", HOSTS),
        (
            "proxy_set_header Host $http_host; proxy_cache_key $host$uri;",
            "write proxy_cache_key \"$http_host$host$uri\";",
        ),
        ("proxy_set_header Host $host;", "write proxy_cache_key \"$host$scheme$proxy_host$request_uri\";"),
        ("proxy_set_header Host $host; proxy_cache_key $host$uri;", ""),
        ("proxy_set_header Host $host; proxy_cache_key $http_host$uri;", ""),
        ("proxy_set_header Host $http_host; proxy_cache_key $http_host$uri;", ""),
        ("proxy_set_header Host api.example;", ""),
        ("proxy_set_header Host $proxy_host;", ""),
    ] {
        check(directives, part);
    }
}

#[test]
fn each_cause_is_told_once_with_the_number_of_further_places() {
    let locations: String = (0..9)
        .map(|number| {
            format!(
                "location /{number} {{ proxy_pass http://127.0.0.1:1; proxy_cache z; proxy_cache_valid 1s;\nproxy_set_header Host \
                 $host; }}\n"
            )
        })
        .collect();
    let text = format!(
        "events {{ }} http {{ access_log off; proxy_cache_path memory keys_zone=z:1m; server {{ listen 8080; {locations} }} }}"
    );
    let (_, shown) = warnings(&text);
    assert_eq!(shown.len(), 2, "{shown:#?}");
    assert!(shown.iter().all(|text| text.contains("and 5 more places")), "{shown:#?}");
    // What all locations inherit stands in one place.
    let (_, shown) = warnings(
        "events { } http { access_log off; proxy_cache_path memory keys_zone=z:1m; proxy_cache z; proxy_cache_valid 1s; server { \
         listen 8080; location /a { proxy_pass http://127.0.0.1:1; } location /b { proxy_pass http://127.0.0.1:1; } } }",
    );
    assert!(shown.len() == 1 && !shown[0].contains("also:"), "{shown:#?}");
}

/// A server whose members get pages of one location, and all others those of another.
fn with_members(members: &str, others: &str) -> String {
    format!(
        "events {{ }} http {{ access_log off; proxy_cache_path memory keys_zone=z:1m; proxy_cache_path memory keys_zone=y:1m; \
         upstream api {{ server 127.0.0.1:8000; }} server {{ listen 8080; proxy_cache z; location = /auth {{ return 204; }}\n\
         location /members {{ {members} }}\n{others} }} }}"
    )
}

#[test]
fn members_whose_stored_pages_the_others_are_led_to_are_warned_about() {
    const MEMBERS: &str = "auth_request /auth; proxy_pass http://api; error_page 401 403 = @guest;";
    const GUESTS: &str = "location @guest { proxy_pass http://api; proxy_set_header X-Guest 1; }";
    const BY_PATH: &str = "auth_request /auth; proxy_pass http://api; error_page 401 /guest;";
    for (members, others, is_shared) in [
        (MEMBERS, GUESTS, true),
        (
            "auth_basic x; auth_basic_user_file u; proxy_pass http://api; error_page 401 = @guest;",
            GUESTS,
            true,
        ),
        ("allow 10.0.0.0/8; deny all; proxy_pass http://api; error_page 403 = @guest;", GUESTS, true),
        (
            "proxy_cache_key $request_uri; location /members/a { auth_request /auth; proxy_pass http://api; error_page 401 = @guest; }",
            "location @guest { proxy_cache_key $request_uri; proxy_pass http://127.0.0.1:8001; }",
            true,
        ),
        (
            &BY_PATH.replace("proxy_pass", "proxy_cache_key $request_uri; proxy_pass"),
            "location = /guest { proxy_cache_key $request_uri; proxy_pass http://api; }",
            true,
        ),
        (BY_PATH, "location = /guest { proxy_pass http://api; }", false),
        ("proxy_pass http://api; error_page 401 = @guest;", GUESTS, false),
        (&MEMBERS.replace("401 403", "404"), GUESTS, false),
        (MEMBERS, "location @guest { proxy_cache off; proxy_pass http://api; }", false),
        (MEMBERS, "location @guest { proxy_cache y; proxy_pass http://api; }", false),
        (MEMBERS, "location @guest { proxy_pass http://127.0.0.1:8001; }", false),
        (MEMBERS, "location @guest { proxy_cache_key guest$request_uri; proxy_pass http://api; }", false),
        (MEMBERS, "location @guest { return 200 guest; }", false),
        (MEMBERS, "location @guest { auth_basic x; auth_basic_user_file u; proxy_pass http://api; }", false),
        (
            "proxy_cache_key $uri$cookie_session; auth_request /auth; proxy_pass http://api; error_page 401 = @guest;",
            "location @guest { proxy_cache_key $uri$cookie_session; proxy_pass http://api; }",
            false,
        ),
    ] {
        let (_, shown) = warnings(&with_members(members, others));
        let told: Vec<_> =
            shown.iter().filter(|shown| shown.contains("is redirected to the location at")).collect();
        assert_eq!(told.len(), usize::from(is_shared), "{members} {others}\n{shown:#?}");
        for told in told {
            assert!(told.contains("test.conf:2:") && told.contains("test.conf:3:1"), "both places: {told}");
        }
    }
}
