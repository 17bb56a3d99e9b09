//! `grpc_pass` and its family, and `proxy_http_version 2`: what they mean, and what is said where they are wrong.

use std::time::Duration;

use millstream_conf::Loaded;
use millstream_conf::diagnostics::Severity;
use millstream_conf::model::{Configuration, HttpVersion, Pass, PassTarget};

use crate::fixture::{in_http, settings, text};

/// The location has a line of its own, so that a finding shows where it stands.
fn load(http: &str, location: &str) -> Loaded {
    text(&in_http(&format!(
        "upstream greeter {{ server 127.0.0.1:8000; }} {http} server {{ listen 8080; http2 on; location / \
         {{\n{location}\n}} }}"
    )))
}

fn found(loaded: &Loaded) -> Vec<String> {
    (loaded.diagnostics.sorted().into_iter())
        .filter(|found| found.severity != Severity::Idle)
        .map(|found| found.render(&loaded.sources))
        .collect()
}

fn configuration(http: &str, location: &str) -> Configuration {
    let loaded = load(http, location);
    let said = found(&loaded);
    assert!(said.is_empty(), "{location}\n{said:#?}");
    loaded.configuration.expect("nothing was found")
}

fn pass(http: &str, location: &str) -> Pass {
    settings(&configuration(http, location), "/").pass().cloned().expect("the location passes on")
}

fn one_error(location: &str, part: &str) {
    let said = found(&load("", location));
    assert_eq!(said.len(), 1, "{location}\n{said:#?}");
    let said = &said[0];
    assert!(
        said.contains(part) && said.contains("test.conf:2:") && said.contains("help: "),
        "{location}\n{said}"
    );
}

#[test]
fn an_address_may_have_the_scheme_of_grpc_or_none() {
    for (address, host, port, encrypted) in [
        ("greeter", "greeter", 80, false),
        ("grpc://greeter", "greeter", 80, false),
        ("grpcs://greeter", "greeter", 443, true),
        ("127.0.0.1:9000", "127.0.0.1:9000", 9000, false),
        ("grpc://127.0.0.1:9000", "127.0.0.1:9000", 9000, false),
        ("grpcs://127.0.0.1:9000", "127.0.0.1:9000", 9000, true),
        ("grpcs://127.0.0.1", "127.0.0.1", 443, true),
        ("[::1]:9000", "[::1]:9000", 9000, false),
        ("unix:/run/greeter.sock", "localhost", 0, false),
        ("grpc://unix:/run/greeter.sock", "localhost", 0, false),
        ("grpcs://unix:/run/greeter.sock", "localhost", 0, true),
    ] {
        let pass = pass("", &format!("grpc_pass {address};"));
        assert!(matches!(pass.target, PassTarget::Upstream(_)), "{address}");
        assert_eq!(pass.host(), Some((host, port)), "{address}");
        assert_eq!(pass.tls().is_some(), encrypted, "{address}");
    }
}

#[test]
fn an_address_with_variables_is_encrypted_where_it_may_be() {
    for (address, may_be) in [
        ("$http_x_backend", true),
        ("grpc$http_x_s://greeter", true),
        ("grpcs://$host:9000", true),
        ("grpc://$host:9000", false),
        ("backend-$host:9000", false),
    ] {
        let pass = pass("", &format!("grpc_pass {address};"));
        assert!(matches!(pass.target, PassTarget::Variables(_)), "{address}");
        assert_eq!(pass.tls().is_some(), may_be, "{address}");
    }
}

#[test]
fn a_grpc_pass_says_what_it_cannot_be() {
    for (directives, part) in [
        ("grpc_pass http://127.0.0.1:9000;", "write grpc_pass grpc://127.0.0.1:9000;"),
        ("grpc_pass http://$host:9000;", "write grpc_pass grpc://$host:9000;"),
        ("grpc_pass grpc://127.0.0.1:9000/a;", "write grpc_pass grpc://127.0.0.1:9000;"),
        ("grpc_pass 127.0.0.1:9000/;", "write grpc_pass 127.0.0.1:9000;"),
        ("grpc_pass grpc://unix:/run/a.sock:/b;", "write grpc_pass grpc://unix:/run/a.sock;"),
        ("grpc_pass 127.0.0.1:99999;", "invalid host or port in grpc_pass"),
        ("grpc_pass grpc://;", "invalid host or port in grpc_pass"),
        ("grpc_pass grpc://greeter:81;", "may not have port 81"),
        ("grpc_pass greeter; grpc_pass greeter;", "duplicate"),
        ("grpc_pass greeter; proxy_pass http://greeter;", "the location has a \"grpc_pass\""),
        (
            "grpc_pass grpcs://greeter; grpc_ssl_verify on;",
            "no grpc_ssl_trusted_certificate for grpc_ssl_verify",
        ),
        ("grpc_pass greeter; grpc_next_upstream eror;", "did you mean \"error\"?"),
        ("grpc_pass greeter; grpc_read_timeout 5x;", "5x"),
        ("grpc_pass greeter; grpc_set_header \"X By\" a;", "is not a field name"),
        ("grpc_pass greeter; grpc_ignore_headers Expire;", "did you mean \"Expires\"?"),
        ("proxy_pass http://greeter; proxy_http_version 3;", "1.0, 1.1, 2"),
    ] {
        one_error(directives, part);
    }
}

#[test]
fn what_is_held_cached_or_stored_has_no_directives() {
    for rest in [
        "buffering off",
        "buffers 8 4k",
        "cache off",
        "cache_key a",
        "store off",
        "temp_path a",
        "limit_rate 0",
    ] {
        one_error(&format!("grpc_pass greeter; grpc_{rest};"), "grpc_");
    }
}

#[test]
fn a_call_is_streamed_and_never_kept() {
    let pass = pass("", "grpc_pass greeter;");
    let exchange = &pass.exchange;
    assert!(!exchange.buffering && !exchange.request_buffering && exchange.max_temp_file_size == 0);
    assert!(pass.cache.is_none() && pass.chosen_zone.is_none());
    assert!(pass.grpc().is_some() && pass.http().is_none());
    assert!(pass.is_http2() && pass.takes_unknown_length() && pass.passes_trailers());
    let minute = Duration::from_secs(60);
    assert_eq!(
        (exchange.connect_timeout, exchange.send_timeout, exchange.read_timeout),
        (minute, minute, minute)
    );
    assert_eq!((exchange.buffer_size, exchange.next_upstream_tries), (4096, 0));
}

#[test]
fn a_level_that_sets_fields_has_none_of_the_level_above_but_the_default_host() {
    let above = "grpc_set_header X-Above a; grpc_read_timeout 9s;";
    for (own, expected) in [
        ("", &[("X-Above", "a"), ("Host", "$proxy_host")][..]),
        ("grpc_set_header X-Own $uri;", &[("X-Own", "$uri"), ("Host", "$proxy_host")]),
        ("grpc_set_header host $host;", &[("host", "$host")]),
        ("proxy_set_header X-Other b;", &[("X-Above", "a"), ("Host", "$proxy_host")]),
    ] {
        let pass = pass(above, &format!("grpc_pass greeter; {own}"));
        let fields: Vec<_> = (pass.set_headers().iter())
            .filter(|field| !field.value.source.is_empty())
            .map(|field| (&*field.name, &*field.value.source))
            .collect();
        assert_eq!(fields, expected, "{own}");
        assert_eq!(pass.exchange.read_timeout, Duration::from_secs(9), "{own}");
    }
}

#[test]
fn the_settings_of_tls_are_those_of_the_family() {
    let http = "grpc_ssl_server_name on; proxy_ssl_session_reuse off;";
    let pass = pass(http, "grpc_pass grpcs://greeter; grpc_ssl_name a.example; grpc_ssl_protocols TLSv1.3;");
    let tls = pass.tls().expect("the address is one of TLS");
    assert!(tls.settings.sends_name && tls.settings.reuses_sessions && !tls.settings.verifies);
    assert_eq!(tls.settings.protocols.len(), 1);
    assert_eq!(tls.name.as_ref().and_then(|name| name.as_literal()), Some("a.example"));
}

#[test]
fn an_if_passes_to_where_the_location_around_it_does() {
    configuration(
        "",
        "grpc_pass greeter; if ($http_x_new) { grpc_pass grpcs://127.0.0.1:9000; } if ($http_x) { }",
    );
}

#[test]
fn a_proxy_speaks_http_2_where_it_is_told_to() {
    for (version, spoken, is_http2, unknown_length) in [
        ("", HttpVersion::Http11, false, true),
        ("proxy_http_version 1.0;", HttpVersion::Http10, false, false),
        ("proxy_http_version 1.1;", HttpVersion::Http11, false, true),
        ("proxy_http_version 2;", HttpVersion::Http2, true, true),
    ] {
        let pass = pass("", &format!("proxy_pass https://greeter; {version}"));
        assert_eq!(pass.http().map(|http| http.http_version), Some(spoken), "{version}");
        assert_eq!((pass.is_http2(), pass.takes_unknown_length()), (is_http2, unknown_length), "{version}");
        assert!(pass.exchange.buffering && pass.tls().is_some(), "{version}");
        assert_eq!(pass.host(), Some(("greeter", 443)), "{version}");
    }
}

#[test]
fn the_scheme_of_another_protocol_leads_to_the_directive_that_speaks_it_and_keeps_its_tls() {
    for (written, meant) in [
        ("grpc_pass https://greeter;", "write grpc_pass grpcs://greeter;"),
        ("grpc_pass http://greeter;", "write grpc_pass grpc://greeter;"),
        ("proxy_pass grpcs://greeter;", "write grpc_pass grpcs://greeter;"),
        ("proxy_pass grpc://greeter;", "write grpc_pass grpc://greeter;"),
        ("proxy_pass greeter;", "write proxy_pass http://greeter;"),
    ] {
        one_error(written, meant);
    }
}

#[test]
fn a_server_that_takes_no_http_2_is_warned_of_calls_that_cannot_come() {
    let warnings = |server: &str| {
        found(&text(&in_http(&format!(
            "server {{ {server} location / {{ if ($arg_a) {{ set $b 1; }} grpc_pass 127.0.0.1:9000; }} }}"
        ))))
    };
    for takes_it in ["listen 8080; http2 on;", "listen 8080 http2;"] {
        assert_eq!(warnings(takes_it), Vec::<String>::new(), "{takes_it}");
    }
    let said = warnings("listen 8080;");
    assert!(
        said.len() == 1 && said[0].contains("does not accept HTTP/2") && said[0].contains("write http2 on;"),
        "{said:?}"
    );
}

#[test]
fn what_is_written_for_another_protocol_in_the_location_itself_is_noted() {
    let noted = |http: &str, location: &str| {
        let loaded = load(http, location);
        let notes = loaded.diagnostics.sorted().into_iter().filter(|found| found.severity == Severity::Idle);
        notes.map(|found| found.render(&loaded.sources)).collect::<Vec<_>>()
    };
    let said = noted("", "grpc_pass grpcs://greeter; proxy_ssl_verify off; grpc_read_timeout 1h;");
    assert!(
        said.len() == 1
            && said[0].contains("\"proxy_ssl_verify\" has no effect here: \"grpc_pass\" does not use it")
            && said[0].contains("directives for grpc_pass begin with grpc_"),
        "{said:?}"
    );
    assert_eq!(
        noted("proxy_read_timeout 1h;", "grpc_pass greeter;"),
        Vec::<String>::new(),
        "what is above is for others"
    );
}
