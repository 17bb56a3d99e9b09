//! What becomes of directives that only nginx knows: what `--lenient` may leave out, what it never does, and what has no
//! effect in the first place.

use std::fs;

use millstream_conf::diagnostics::{Diagnostic, Severity};
use millstream_conf::{Loaded, Options, load};

use crate::fixture::{in_http, in_location, in_server};

fn read(text: &str, lenient: bool) -> Loaded {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("nginx.conf"), text).expect("written");
    load(&Options {
        main_file: "nginx.conf".into(),
        prefix: directory.path().into(),
        lenient,
        ..Options::default()
    })
}

fn findings(loaded: &Loaded, severity: Severity) -> Vec<Diagnostic> {
    loaded.diagnostics.sorted().into_iter().filter(|found| found.severity == severity).cloned().collect()
}

fn errors(text: &str, lenient: bool) -> Vec<Diagnostic> {
    findings(&read(text, lenient), Severity::Error)
}

#[test]
fn lenient_leaves_out_nothing_that_chooses_content_lets_in_encrypts_or_redirects() {
    let rows = [
        ("image_filter test;", "what clients receive"),
        ("auth_oidc x;", "who has access"),
        ("flv;", "what clients receive"),
        ("memcached_pass 127.0.0.1:9000;", "the files themselves"),
        ("perl a::b;", "the files themselves"),
        ("upstream_conf;", "the files themselves"),
        ("js_content a.b;", "the files themselves"),
        ("auth_jwt x;", "who has access"),
        ("js_access a.b;", "who has access"),
        ("proxy_protocol_tlv a 0x01;", "which client"),
        ("proxy_request_dynamic on;", "the upstream receives"),
        ("keyval $a $b zone=c;", "other directives"),
    ];
    for (directive, why) in rows {
        let found = errors(&in_location(directive), true);
        assert_eq!(found.len(), 1, "{directive}: {found:#?}");
        let help = found[0].help.clone().unwrap_or_default();
        assert!(help.contains(why) && help.contains("even with --lenient"), "{directive}: {help}");
        let strict = errors(&in_location(directive), false);
        assert_eq!(strict.len(), 1, "{directive}: {strict:#?}");
        let help = strict[0].help.clone().unwrap_or_default();
        assert!(!help.contains("start with --lenient"), "{directive}: it would fail: {help}");
    }
}

#[test]
fn lenient_leaves_encryption_alone() {
    for directive in ["ssl on;", "ssl_engine e;", "ssl_ech_file p;"] {
        let found = errors(&in_server(directive), true);
        assert_eq!(found.len(), 1, "{directive}: {found:#?}");
        assert!(found[0].help.as_deref().unwrap_or_default().contains("even with --lenient"), "{found:#?}");
    }
}

#[test]
fn lenient_leaves_out_what_only_logs_tunes_or_decorates() {
    for directive in ["postpone_gzipping 1k;", "gzip_no_buffer on;", "session_log l;"] {
        let text = in_location(directive);
        let strict = errors(&text, false);
        assert_eq!(strict.len(), 1, "{directive}: {strict:#?}");
        assert!(strict[0].help.as_deref().unwrap_or_default().contains("--lenient"), "{strict:#?}");
        let loaded = read(&text, true);
        assert!(loaded.configuration.is_some(), "{directive}: {:#?}", findings(&loaded, Severity::Error));
        let warnings = findings(&loaded, Severity::Warning);
        assert_eq!(warnings.len(), 1, "{directive}: {warnings:#?}");
        assert!(warnings[0].help.as_deref().unwrap_or_default().contains("it is ignored"), "{warnings:#?}");
    }
    let text = in_http("http2 on; gzip_no_buffer off; server { listen 8080 http2; }");
    assert!(read(&text, true).configuration.is_some());
    let text = in_http("upstream b { ntlm; server 127.0.0.1:1; }");
    assert_eq!(errors(&text, true).len(), 1);
}

/// With another error in the file `--lenient` would not let it start either.
#[test]
fn lenient_is_recommended_only_where_it_would_let_the_file_start() {
    let recommended = |directives: &str| {
        errors(&in_location(directives), false)
            .iter()
            .filter(|found| found.help.as_deref().is_some_and(|help| help.contains("start with --lenient")))
            .count()
    };
    assert_eq!(recommended("gzip_no_buffer on; postpone_gzipping 1k;"), 2);
    assert_eq!(recommended("gzip_no_buffer on; postpone_gzipping 1k; image_filter test;"), 0);
    assert_eq!(recommended("gzip_no_buffer on; proxy_pas http://a;"), 0);
}

#[test]
fn what_no_location_uses_does_not_stop_a_start() {
    for directives in [
        "uwsgi_request_dynamic on; scgi_bind off; js_fetch_timeout 5s;",
        "map_hash_bucket_size 64; map_hash_max_size 2048;",
        "memcached_read_timeout 5s; memcached_next_upstream off;",
        "ssl_dhparam /etc/dhparam.pem; ssl_ocsp_responder http://a/; ssl_ocsp_cache off;",
        "ssl_session_tickets on; ssl_verify_client off; ssl_stapling off; http2 off; http2_push on;",
        "image_filter off;",
    ] {
        let text = in_http(&format!("{directives} server {{ listen 8080; }}"));
        let loaded = read(&text, false);
        assert!(loaded.configuration.is_some(), "{directives}: {:#?}", findings(&loaded, Severity::Error));
        assert!(findings(&loaded, Severity::Warning).is_empty(), "{directives}");
        assert!(!findings(&loaded, Severity::Idle).is_empty(), "-v tells of {directives}");
    }
    let text = format!(
        "load_module modules/ngx_http_image_filter_module.so; {}",
        in_http("server { listen 8080; }")
    );
    assert!(read(&text, false).configuration.is_some());
    // With a location that uses it, the one error is there.
    let text = in_http(
        "memcached_read_timeout 5s; server { listen 8080; location / { memcached_pass 127.0.0.1:1; } }",
    );
    assert_eq!(errors(&text, false).len(), 1, "{:#?}", errors(&text, false));
}

#[test]
fn what_only_follows_from_another_error_is_not_told() {
    let rows: [(String, &str); 3] = [
        (
            in_http(
                "js_set $connection_upgrade main.upgrade; server { listen 8080; location / { \
                 proxy_pass http://127.0.0.1:8000; proxy_set_header Connection $connection_upgrade; add_header A \
                 $connection_upgrade; } }",
            ),
            "\"js_set\"",
        ),
        (
            in_location("memcached_pass 127.0.0.1:9000; memcached_gzip_flag 1; memcached_read_timeout 5s;"),
            "\"memcached_pass\"",
        ),
        (
            in_http(
                "server { listen 8443 ssl; ssl_certificate missing.pem; ssl_certificate_key missing.key; }",
            ),
            "ssl_certificate",
        ),
    ];
    for (text, part) in rows {
        let loaded = read(&text, false);
        let found: Vec<_> = (loaded.diagnostics.sorted().into_iter())
            .filter(|found| found.severity > Severity::Idle)
            .map(|found| found.message.clone())
            .collect();
        let expected = if part == "ssl_certificate" { 2 } else { 1 };
        assert_eq!(found.len(), expected, "{text}\n{found:#?}");
        assert!(
            found.iter().all(|message| message.contains(part) || part == "ssl_certificate"),
            "{found:#?}"
        );
    }
}

#[test]
fn a_directive_that_stands_in_many_places_is_told_once_with_their_number() {
    let locations: String =
        (0..252).map(|number| format!("location /{number} {{\n image_filter test;\n}}\n")).collect();
    let loaded = read(&in_server(&locations), false);
    let found = findings(&loaded, Severity::Error);
    assert_eq!(found.len(), 1, "{found:#?}");
    let text = found[0].render(&loaded.sources);
    assert!(text.contains("nginx.conf:2:2") && text.contains("nginx.conf:5:2"), "{text}");
    assert!(text.contains("248 more places"), "{text}");
    // Mistakes are told each where it stands.
    let text = in_server("location /a { proxy_pas http://a; } location /b { proxy_pas http://a; }");
    assert_eq!(errors(&text, false).len(), 2);
}

#[test]
fn the_inside_of_a_limit_except_is_checked() {
    let rows = [
        ("limit_except GET { proxy_pas http://a; }", "proxy_pas"),
        ("limit_except GET { return 403; }", "\"return\" directive is not allowed here"),
        ("limit_except GET { access_log /dev/null $no_such_variable; }", "no_such_variable"),
        ("limit_except GIT { deny all; }", "invalid method \"GIT\""),
        ("limit_except GET { allow nobody; }", "nobody"),
    ];
    for (directive, part) in rows {
        let found = errors(&in_location(directive), false);
        assert_eq!(found.len(), 1, "{directive}: {found:#?}");
        assert!(found[0].message.contains(part), "{found:#?}");
    }
}

#[test]
fn a_variable_of_nginx_that_is_not_there_is_said_to_be_so() {
    let found = errors(
        &in_location(
            "add_header X $tcpinfo_rtt; add_header Y $geoip_country_code; add_header Z $geoip_city;",
        ),
        false,
    );
    assert_eq!(found.len(), 3, "{found:#?}");
    for error in found {
        assert!(error.message.starts_with("nginx knows \"$"), "{error:#?}");
    }
}

#[test]
fn a_long_line_is_cut_around_the_place() {
    let filler = "x".repeat(5000);
    let text = in_location(&format!(
        "add_header A \"{filler}\"; add_header B $no_such_variable; add_header C \"{filler}\";"
    ));
    let loaded = read(&text, false);
    let found = findings(&loaded, Severity::Error);
    let shown = found[0].render(&loaded.sources);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 160), "{shown}");
    let column = |line: &str, part: &str| line.find(part).map(|at| line[..at].chars().count());
    assert_eq!(column(lines[1], "$no_such_variable"), column(lines[2], "^"), "{shown}");
    assert_eq!(lines[2].matches('^').count(), "$no_such_variable".len(), "{shown}");
}

#[test]
fn the_caret_stands_under_the_place_after_letters_of_several_bytes() {
    let text = in_location("add_header Ä \"Überraschung für alle\"; add_header B $no_such_variable;");
    let loaded = read(&text.replace("Ä", "A"), false);
    let shown = findings(&loaded, Severity::Error)[0].render(&loaded.sources);
    let lines: Vec<&str> = shown.lines().collect();
    let column = |line: &str, part: &str| line.find(part).map(|at| line[..at].chars().count());
    assert_eq!(column(lines[1], "$no_such_variable"), column(lines[2], "^"), "{shown}");
}

/// What Debian's package installs, with includes spliced.
#[test]
fn the_configuration_of_debians_package_loads() {
    let loaded = read(include_str!("../stock/debian.conf"), false);
    assert!(loaded.configuration.is_some(), "{:#?}", findings(&loaded, Severity::Error));
}

#[test]
fn the_configuration_that_nginx_itself_comes_with_loads_without_a_word() {
    let loaded = read(include_str!("../stock/nginx.conf"), false);
    assert!(loaded.configuration.is_some(), "{:#?}", findings(&loaded, Severity::Error));
    assert!(findings(&loaded, Severity::Warning).is_empty(), "{:#?}", findings(&loaded, Severity::Warning));
}
