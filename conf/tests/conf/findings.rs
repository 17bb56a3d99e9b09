//! What is said about a configuration that is wrong: message, place and help, one row each.

use std::fs;

use millstream_conf::diagnostics::Severity;
use millstream_conf::{Options, load};

use crate::fixture::{in_http, in_location, in_server, messages, no_error, one_error, one_warning, text};

#[test]
fn a_cache_of_certificates_has_a_bound_and_known_parameters_and_a_key_log_is_warned_of() {
    for name in ["ssl_certificate_cache", "proxy_ssl_certificate_cache"] {
        no_error(&in_server(&format!("{name} max=10 inactive=20s valid=1m;")));
        no_error(&in_server(&format!("{name} off;")));
        one_error(&in_server(&format!("{name} inactive=20s;")), "must have the \"max\" parameter");
        one_error(&in_server(&format!("{name} max=10 valit=1m;")), "valid");
        one_error(&in_server(&format!("{name} max=0;")), "between 1");
        one_error(&in_server(&format!("{name} off max=10;")), "parameter \"off\"");
    }
    for name in ["ssl_key_log", "proxy_ssl_key_log", "grpc_ssl_key_log"] {
        one_warning(&in_server(&format!("{name} keys.log;")), "anyone who can read this file");
    }
}

#[test]
fn five_mistakes_in_one_file_are_five_located_errors() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = "events { }\nhttp {\n    include missing.conf;\n    server {\n        listen 8443 ssl;\n        \
                ssl_certificate missing.pem;\n        ssl_certificate_key missing.key;\n        location / {\n            \
                proxy_pas http://127.0.0.1:8000;\n            proxy_set_header X-Who $remote_adr;\n            \
                client_max_body_size 10q;\n        }\n    }\n";
    fs::write(directory.path().join("nginx.conf"), file).expect("written");
    let loaded = load(&Options {
        main_file: "nginx.conf".into(),
        prefix: directory.path().into(),
        ..Options::default()
    });
    let found: Vec<(u32, String)> = (loaded.diagnostics.sorted().iter())
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| {
            let span = finding.span.unwrap_or_else(|| panic!("without a place: {}", finding.message));
            (loaded.sources.position(span).line, format!("{} {:?}", finding.message, finding.help))
        })
        .collect();
    let wanted: [(u32, &str); 6] = [
        (3, "missing.conf"),
        (6, "missing.pem"),
        (7, "missing.key"),
        (9, "did you mean \\\"proxy_pass\\\""),
        (10, "remote_adr"),
        (11, "10q"),
    ];
    for (line, part) in wanted {
        assert!(
            found.iter().any(|(at, what)| *at == line && what.contains(part)),
            "{line} {part}: {found:#?}"
        );
    }
    // The seventh is the unclosed block, wherever the parser places it.
    assert_eq!(found.len(), wanted.len() + 1, "{found:#?}");
}

#[test]
fn directives_are_checked_for_name_place_number_and_block() {
    one_error(&in_location("proxy_pas http://api;"), "did you mean \"proxy_pass\"?");
    one_error(&in_location("image_filter test;"), "nginx knows \"image_filter\", Millstream does not (yet)");
    one_error(&in_http("keyval $a $b zone=c;"), "NGINX Plus knows \"keyval\"");
    one_error(&in_http("proxy_pass http://127.0.0.1:8000;"), "it is allowed in: location");
    one_error(
        &in_location("gzip;"),
        "invalid number of arguments in \"gzip\" directive | write gzip on | off;",
    );
    one_error(&in_location("gzip on off;"), "invalid number of arguments");
    one_error(&in_location("gzip on { }"), "is not terminated by");
    one_error(&in_server("location /;"), "has no opening");
    one_error(
        &in_location("root /a; root /b;"),
        "\"root\" directive is duplicate | it is already at test.conf:1:",
    );
    one_error("http { access_log off; }", "no \"events\" section");
    one_error(&in_http("worker_connections 10;"), "it is allowed in: events");
}

#[test]
fn a_main_file_that_cannot_be_read_is_the_one_finding() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["missing.conf", "."] {
        let options =
            Options { main_file: name.into(), prefix: directory.path().into(), ..Options::default() };
        let loaded = load(&options);
        let errors = messages(&loaded, Severity::Error);
        assert!(errors.len() == 1 && !errors[0].contains("events"), "{errors:#?}");
        assert!(loaded.configuration.is_none());
    }
}

#[test]
fn lenient_forgives_no_mistake_about_who_may_purge() {
    let errors = |directives: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        let text = in_http(&format!(
            "proxy_cache_path memory keys_zone=z:1m; server {{ listen 8080; proxy_cache z; location / {{ \
             proxy_pass http://127.0.0.1:8000; {directives} }} }}"
        ));
        fs::write(directory.path().join("nginx.conf"), text).expect("written");
        let options = Options {
            main_file: "nginx.conf".into(),
            prefix: directory.path().into(),
            lenient: true,
            ..Options::default()
        };
        messages(&load(&options), Severity::Error)
    };
    for guard in [
        "proxy_cache_purge_alow 10.0.0.1;",
        "proxy_cache_purge_allow 10.0.0.1/40;",
        "proxy_cache_purge_token \"a b\";",
        "proxy_cache_purge PURGE from 10.0.0.1 10.0.0.x;",
        "api_allow 10.0.0.1:80;",
        "api_tokn 0123456789abcdef;",
        "set_real_ip_from 10.0.0.0/40; proxy_cache_purge_allow 10.0.0.1;",
    ] {
        assert_eq!(errors(guard).len(), 1, "{guard}: {:#?}", errors(guard));
    }
}

#[test]
fn an_idle_directive_is_accepted_and_says_why() {
    let loaded = text(&in_location("sendfile on; tcp_nopush on; proxy_pass http://api;"));
    assert!(loaded.configuration.is_some());
    let idle = messages(&loaded, Severity::Idle);
    assert_eq!(idle.len(), 2);
    assert!(idle[0].starts_with("\"sendfile\" has no effect here: "), "{idle:#?}");
}

#[test]
fn values_are_checked_where_they_stand() {
    one_error(&in_location("gzip maybe;"), "maybe");
    one_error(&in_location("gzip_comp_level 10;"), "must be between 1 and 9");
    one_error(&in_location("brotli_comp_level 12;"), "must be between 0 and 11");
    one_error(&in_location("zstd_comp_level 0;"), "must be between 1 and 22");
    for size in ["512", "500k", "32m"] {
        one_error(&in_location(&format!("brotli_window {size};")), "write a power of two from 1k to 16m");
    }
    one_error(&in_location("proxy_read_timeout 5x;"), "5x");
    one_error(&in_location("proxy_buffers 1 4k;"), "must be between 2");
    one_error(&in_location("proxy_next_upstream eror;"), "did you mean \"error\"?");
    one_error(&in_location("lingering_close sometimes;"), "write one of: off, on, always");
    one_warning(&in_location("add_header X: y;"), "becomes part of the value");
    one_error(&in_location("add_header \"X Y\" y;"), "is not a field name");
    no_error(&in_location("proxy_set_header X-By: \"\";"));
    one_warning(&in_location("proxy_set_header X-By: $server_addr;"), "becomes part of the value");
    one_error(&in_location("proxy_set_header \"X By\" a;"), "is not a field name");
    one_error(&in_location("proxy_set_header Host $htp_host;"), "htp_host");
    one_error(&in_location("proxy_cache_valid 99 1m;"), "must be between 100 and 599");
    one_error(&in_location("error_page 200 /x;"), "must be between 300 and 599");
    one_error(&in_location("error_page 499 /x;"), "499");
    one_error(&in_location("return nothing;"), "invalid return code");
    one_error(&in_location("proxy_http_version 3;"), "3");
    one_error(&in_location("proxy_protocol v3;"), "v3");
    one_error(&in_location("grpc_pass grpc://127.0.0.1:9000/path;"), "cannot have URI part");
    one_error(&in_location("grpc_pass http://127.0.0.1:9000;"), "invalid URL prefix");
    one_error(
        &in_location("grpc_pass grpcs://127.0.0.1:9000; grpc_ssl_verify on;"),
        "no grpc_ssl_trusted_certificate",
    );
    one_error(&in_location("grpc_pass 127.0.0.1:9000; grpc_cache off;"), "grpc_cache");
    one_error(
        &in_location("proxy_pass http://api; proxy_max_temp_file_size 1k;"),
        "proxy_max_temp_file_size",
    );
    one_error("worker_processes 0; events { }", "must be between 1");
}

#[test]
fn listening_and_names_follow_nginx() {
    one_error(&in_server("listen 8080;"), "a duplicate listen 8080");
    one_error(
        &in_http("server { listen 80 default_server; } server { listen *:80 default_server; }"),
        "a duplicate default server for 0.0.0.0:80",
    );
    one_error(
        &in_http("server { listen 80 backlog=1; } server { listen 80 backlog=2; }"),
        "duplicate listen options",
    );
    one_error(&in_server("listen example.org:80x;"), "is not an address");
    for address in ["0", "127.0.0.1:0", "[::1]:0", "*:0", "localhost:00"] {
        let says =
            format!("invalid port in \"{address}\": port 0 means any free port, which clients cannot know");
        one_error(&in_server(&format!("listen {address};")), &says);
    }
    one_error(&in_server("listen 81 defalt_server;"), "did you mean \"default_server\"?");
    // QUIC is told of once, however often it is asked for; its address is not opened.
    one_warning(
        &in_http("server { listen 80; listen 80 quic reuseport; } server { listen 81 quic; }"),
        "\"quic\"",
    );
    no_error(&in_http(
        "http2 on; http3 on; http2_max_concurrent_streams 9; server { listen 80 http2; http2_chunk_size 8k; }",
    ));
    one_error(&in_http("http2_max_concurrent_streams 0;"), "between 1 and 65535");
    one_error(&in_http("http2_body_preread_size 2048m;"), "the largest window of HTTP/2");
    // Of the two servers of one address each may name a protocol; only options of the socket are the address's.
    no_error(&in_http("server { listen 80 proxy_protocol; } server { listen 80 proxy_protocol; }"));
    no_error(&in_server("listen 81 fastopen=256; listen 82 multipath;"));
    one_error(
        &in_http("server { listen 80 fastopen=1; } server { listen 80 fastopen=2; }"),
        "duplicate listen options",
    );
    one_error(&in_http("server { server_name a*b.example; } server { server_name c; }"), "is invalid on");
    one_warning(&in_server("server_name a*b.example;"), "is invalid on 0.0.0.0:8080");
    one_warning(
        &in_http("server { listen 80; server_name a; } server { listen 80; server_name A; }"),
        "conflicting server name \"a\" on 0.0.0.0:80, ignored",
    );
    one_error(&in_server("server_name *a;"), "is invalid");
    no_error(&in_server(
        "listen [::1]:81; listen unix:/run/m.sock; server_name .example.com *.a.b c.* \"\" _ ~^(?<who>.+)$; return 200 $who;",
    ));
    one_error(&in_server("listen 8443 ssl;"), "no \"ssl_certificate\" is defined");
}

#[test]
fn locations_nest_as_in_nginx() {
    one_error(&in_server("location /a { } location ^~ /a { }"), "duplicate location \"/a\"");
    no_error(&in_server("location /a { } location = /a { } location ~ a { } location ~ a { }"));
    one_error(&in_server("location /a { location /b { } }"), "is outside location \"/a\"");
    one_error(&in_server("location = /a { location /a/b { } }"), "cannot be inside the exact location");
    one_error(&in_server("location /a { location @b { } }"), "can only be on the server level");
    one_error(&in_server("location ! /a { }"), "invalid location modifier");
    no_error(&in_server(
        "location /a { location /a/b { } location = /a/c { } location ~ x { location ~ y { } } }",
    ));
}

#[test]
fn proxy_pass_says_what_it_cannot_be() {
    one_error(&in_location("proxy_pass api;"), "write proxy_pass http://api;");
    no_error(&in_location("proxy_pass https://api; proxy_ssl_server_name on;"));
    no_error(&in_location("proxy_pass https://$host;"));
    one_error(
        &in_location("proxy_pass https://api; proxy_ssl_verify on;"),
        "no proxy_ssl_trusted_certificate",
    );
    one_error(&in_location("proxy_pass ftp://api;"), "invalid URL prefix");
    one_error(&in_location("proxy_pass //$host;"), "invalid URL prefix");
    no_error(&in_location("proxy_pass $scheme://$host;"));
    no_error(&in_location("proxy_pass http://$host;"));
    one_error(&in_location("proxy_pass http://api:81;"), "may not have port 81");
    one_error(&in_location("proxy_pass http://127.0.0.1:99999;"), "invalid host or port");
    one_error(
        &in_server("location ~ x { proxy_pass http://127.0.0.1:81/y; }"),
        "write proxy_pass http://127.0.0.1:81;",
    );
    one_error(
        &in_server("location @x { proxy_pass http://unix:/s:/y; }"),
        "write proxy_pass http://unix:/s;",
    );
    one_error(&in_location("proxy_pass http://$host; proxy_redirect default;"), "cannot be used with");
    one_warning(&in_location("proxy_pass http://apj;"), "did you mean \"api\"?");
}

#[test]
fn an_outlier_ejection_is_checked() {
    let group = |words: &str| {
        in_http(&format!(
            "upstream some {{ server 127.0.0.1:1; server 127.0.0.1:2; outlier_ejection {words}; }}"
        ))
    };
    no_error(&group(""));
    no_error(&group("consecutive_errors=3 interval=5s time=1m max=10% status=429,500-504,5xx requests=0"));
    for (words, part) in [
        ("consecutive_error=3", "did you mean \"consecutive_errors\"?"),
        ("interval=0", "the time is zero"),
        ("time=0", "the time is zero"),
        ("max=0%", "write a percentage of the group between 1% and 100%"),
        ("max=101%", "invalid share \"101%\""),
        ("max=50", "invalid share \"50\""),
        ("status=6xx", "invalid status \"6xx\""),
        ("status=500,", "invalid status \"\""),
        ("status=504-500", "invalid status \"504-500\""),
        ("consecutive_errors=0 requests=0", "ejects no server"),
        ("sometimes", "invalid parameter \"sometimes\""),
    ] {
        one_error(&group(words), part);
    }
    one_error(&group("; outlier_ejection"), "is duplicate");
    one_error(&in_server("outlier_ejection;"), "it is allowed in: upstream");
}

#[test]
fn metrics_are_exported_to_an_endpoint_that_has_a_place_for_them() {
    let exporter = |lines: &str| in_http(&format!("otel_exporter {{ {lines} }}"));
    no_error(&exporter("endpoint 127.0.0.1:4317; metrics_interval 10s;"));
    no_error(&exporter("endpoint http://127.0.0.1:4318/v1/traces; metrics_interval 10s;"));
    one_error(
        &exporter("endpoint http://127.0.0.1:4318/spans; metrics_interval 10s;"),
        "path ends in /v1/traces",
    );
    one_error(&exporter("endpoint 127.0.0.1:4317; metrics_interval 0;"), "the interval is zero");
}

#[test]
fn a_cluster_names_an_engine_and_a_secret_and_zones_name_one_that_exists() {
    let cluster = |lines: &str| in_http(&format!("cluster main {{ {lines} }}"));
    let whole = "server 10.0.0.5; server unix:/run/redis.sock; secret key; user u; password file; tls on; node a; \
                 timeout 5ms; cut_off 10s serve;";
    no_error(&cluster(whole));
    no_error(&cluster("sentinel mymaster 10.0.0.6; sentinel mymaster 10.0.0.7:26380; secret key;"));
    for (lines, finding) in [
        ("secret key;", "requires \"server\" or \"sentinel\""),
        ("server 10.0.0.5;", "requires \"secret\""),
        ("server 10.0.0.5; secret key; secret other;", "is duplicate"),
        ("server 10.0.0.5:x; secret key;", "invalid address"),
        ("server 10.0.0.5; secret key; cut_off 10ms;", "is too short"),
        ("server 10.0.0.5; secret key; cut_off 10s never;", "invalid value \"never\""),
        ("server 10.0.0.5; secret key; sekret other;", "unknown directive \"sekret\""),
        ("server 10.0.0.5; secret key; node a b;", "invalid number of arguments"),
        ("sentinel one 10.0.0.6; sentinel two 10.0.0.7; secret key;", "already called \"one\""),
    ] {
        one_error(&cluster(lines), finding);
    }
    let zone = |name: &str| {
        in_http(&format!(
            "cluster main {{ server 10.0.0.5; secret key; }} proxy_cache_path memory keys_zone=one:1m cluster={name};"
        ))
    };
    no_error(&zone("main"));
    one_error(&zone("mian"), "unknown cluster \"mian\"");
    one_warning(&cluster("server 10.0.0.5; secret key;"), "no zone uses the cluster \"main\"");
    let in_clear = "limit_conn_zone $uri zone=a:1m sync; cluster main { server 10.0.0.5; secret key; trusted_certificate ca; }";
    one_warning(&in_http(in_clear), "\"trusted_certificate\" has no effect");
}

#[test]
fn a_zone_that_counts_with_other_nodes_needs_one_cluster_or_the_name_of_one() {
    let clusters = |names: &[&str], zone: &str| {
        let blocks: String =
            names.iter().map(|name| format!("cluster {name} {{ server 10.0.0.5; secret key; }} ")).collect();
        in_http(&format!("{zone} {blocks}"))
    };
    for (zone, parameters) in [
        ("limit_req_zone $uri zone=a:1m rate=1r/s", "are zone=, rate=, sync, sync=exact, cluster="),
        ("limit_conn_zone $uri zone=a:1m", "are zone=, sync, sync=exact, cluster="),
    ] {
        let zone = |words: &str| format!("{zone} {words};");
        no_error(&clusters(&["main"], &zone("sync")));
        no_error(&clusters(&["main"], &zone("sync=exact")));
        no_error(&clusters(&["main", "other"], &zone("sync=exact cluster=other")));
        one_error(&clusters(&[], &zone("sync")), "\"sync\" requires a \"cluster\" block");
        one_error(
            &clusters(&["main", "other"], &zone("sync")),
            "does not specify which of several clusters to use",
        );
        one_error(&clusters(&["main"], &zone("sync cluster=mian")), "unknown cluster \"mian\"");
        one_error(&clusters(&["main"], &zone("cluster=main")), "\"cluster\" requires \"sync\"");
        one_error(&clusters(&["main"], &zone("sync=exactly")), "exactly");
        one_error(&clusters(&["main"], &zone("snyc")), "invalid parameter \"snyc\"");
        one_error(&clusters(&["main"], &zone("everywhere=1")), parameters);
    }
}

#[test]
fn health_checks_and_what_they_match_are_checked() {
    let check = |words: &str| in_location(&format!("proxy_pass http://api; health_check {words};"));
    no_error(&check(
        "interval=1s jitter=100ms fails=3 passes=2 uri=/well?a=b port=81 mandatory persistent keepalive_time=1m",
    ));
    no_error(&in_location("fastcgi_pass api; health_check;"));
    no_error(&check("mandatory type=grpc"));
    no_error(&check("keepalive_time=1m port=81 type=grpc grpc_service=shop.Orders grpc_status=12"));
    for (words, part) in [
        ("intervall=1s", "did you mean \"interval\"?"),
        ("interval=0", "write a time such as interval=5s"),
        ("interval=x", "x"),
        ("fails=0", "must be between 1"),
        ("port=70000", "must be between 1 and 65535"),
        ("uri=well", "write a path that begins with a slash"),
        ("\"uri=/a b\"", "invalid URI"),
        ("match=well", "match \"well\" not found"),
        ("persistent", "requires \"mandatory\""),
        ("type=http", "invalid type \"http\""),
        ("type=grpc uri=/well", "\"uri\" cannot be combined with \"type=grpc\""),
        ("grpc_status=12", "\"grpc_status\" requires \"type=grpc\""),
        ("grpc_service=x", "\"grpc_service\" requires \"type=grpc\""),
        ("type=grpc grpc_status=17", "must be between 0 and 16"),
        ("type=grpc grpc_status=UNIMPLEMENTED", "UNIMPLEMENTED"),
        ("type=grpc grpc_servce=x", "did you mean \"grpc_service\"?"),
    ] {
        one_error(&check(words), part);
    }
    one_error(&in_location("health_check;"), "has no upstream to check");
    one_error(
        &in_location("proxy_pass http://$host; health_check;"),
        "cannot be used where the upstream has variables",
    );
    one_error(&in_location("proxy_pass http://api; health_check; health_check;"), "is duplicate");
    one_error(&in_server("health_check;"), "it is allowed in: location");
    for (tests, part) in [
        ("", "tests nothing"),
        ("statsu 200;", "did you mean \"status\"?"),
        ("status;", "write status 200;"),
        ("status 20;", "invalid status \"20\""),
        ("status 300-200;", "invalid status \"300-200\""),
        ("header;", "write header Name;"),
        ("header X = ;", "write header Name;"),
        ("header X like y;", "invalid value \"like\""),
        ("body well;", "write body ~ expression;"),
        ("body = well;", "invalid value \"=\""),
        ("require;", "write require $variable;"),
        ("require x;", "with a dollar sign"),
        ("status { }", "cannot have a block here"),
    ] {
        one_error(&in_http(&format!("match well {{ {tests} }}")), part);
    }
    one_error(&in_http("match a { status 200; } match a { status 201; }"), "duplicate match \"a\"");
}

#[test]
fn upstreams_and_zones_are_checked() {
    one_error(&in_http("upstream a { }"), "no servers are inside upstream");
    one_error(&in_http("upstream a { server 127.0.0.1:1 backup; }"), "has only backup servers");
    one_error(&in_http("upstream a { server 127.0.0.1:1 wieght=2; }"), "did you mean \"weight\"?");
    for (server, message) in [
        ("api.example service=http", "service upstream \"api.example\" requires \"resolve\" parameter"),
        ("127.0.0.1 service=http", "service upstream \"127.0.0.1\" requires \"resolve\" parameter"),
        ("api.example:81 service=http resolve", "service upstream \"api.example:81\" may not have port"),
        ("127.0.0.1:81 resolve service=http", "service upstream \"127.0.0.1:81\" may not have port"),
        ("127.0.0.1 resolve service=http", "service upstream \"127.0.0.1\" requires domain name"),
        ("[::1] resolve service=http", "service upstream \"[::1]\" requires domain name"),
        ("unix:/a service=http resolve", "service upstream \"unix:/a\" requires domain name"),
        ("api.example service= resolve", "service is empty"),
    ] {
        one_error(&in_http(&format!("resolver 127.0.0.1; upstream a {{ server {server}; }}")), message);
    }
    one_error(
        &in_http("upstream a { server api.example service=http resolve; }"),
        "no resolver defined to resolve names at run time in upstream \"a\"",
    );
    no_error(&in_http("resolver 127.0.0.1; upstream a { server api.example service=http resolve; }"));
    one_error(&in_http("upstream a { server http://127.0.0.1:1; }"), "the scheme is set in proxy_pass");
    one_error(
        &in_http("upstream a { server 127.0.0.1:1; } upstream a { server 127.0.0.1:2; }"),
        "duplicate upstream \"a\"",
    );
    one_error(&in_http("upstream a { zone z 1k; server 127.0.0.1:1; }"), "is too small");
    one_error(&in_http("proxy_cache_path /c levels=1:2;"), "must have \"keys_zone\"");
    one_error(&in_http("proxy_cache_path /c keys_zone=a:10m levels=3; proxy_cache a;"), "invalid \"levels\"");
    one_error(
        &in_http("proxy_cache_path /c keys_zone=pages:10m; proxy_cache page;"),
        "did you mean \"pages\"?",
    );
    one_error(
        &in_http("proxy_cache_path /c keys_zone=a:1m; proxy_cache_path /d keys_zone=a:1m; proxy_cache a;"),
        "duplicate zone \"a\"",
    );
    one_error(
        &in_http("proxy_cache_path /c keys_zone=a:1m inactiv=1d; proxy_cache a;"),
        "did you mean \"inactive\"?",
    );
    one_warning(&in_http("proxy_cache_path /c keys_zone=a:1m;"), "no \"proxy_cache\" uses the zone \"a\"");
}

#[test]
fn logs_are_checked() {
    one_error(&in_location("access_log a.log combind;"), "did you mean \"combined\"?");
    one_error(&in_location("access_log a.log buffer=1k;"), "the name of a format comes before it");
    one_error(&in_location("access_log a.log combined flush=1s;"), "no buffer is defined");
    one_error(
        &in_location("access_log a.log combined buffer=8k; access_log a.log combined buffer=4k;"),
        "conflicting parameters",
    );
    one_error(&in_http("log_format combined x;"), "duplicate \"log_format\"");
    one_error(&in_location("error_log e.log warning;"), "did you mean \"warn\"?");
    for (syslog, message) in [
        ("tag=x", "no syslog server specified"),
        ("server=", "invalid syslog server"),
        ("server=a:b:c", "invalid syslog server"),
        ("server=x,facility=loca1", "did you mean \"local1\"?"),
        ("server=x,severity=warning", "did you mean \"warn\"?"),
        ("server=x,tag=a-b", "only allows alphanumeric characters and underscore"),
        ("server=x,tag=a23456789012345678901234567890123", "length exceeds 32"),
        ("server=x,nohost", "write one of: server=, facility=, severity=, tag=, nohostname"),
    ] {
        one_error(&in_location(&format!("error_log syslog:{syslog};")), message);
    }
    one_error(
        &in_location("access_log syslog:server=x combined buffer=4k;"),
        "logs to syslog cannot be buffered",
    );
    one_error(&in_location("error_log memory:1m;"), "memory:");
    no_error(&in_location("error_log syslog:server=unix:/dev/log,nohostname,tag=a_1,facility=cron debug;"));
    no_error(
        &in_http("log_format own escape=json '{' '\"a\":\"$uri\"}'; access_log x.log own if=$arg_a;")
            .replace("access_log off; ", ""),
    );
}

#[test]
fn a_log_format_is_known_behind_its_definition_alone_as_in_nginx() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::write(path.join("format.conf"), "log_format f x;").expect("written");
    fs::write(path.join("server.conf"), "server { listen 8080; access_log a.log f; }").expect("written");
    let refused = "events { } http { access_log a.log f; log_format f x; }";
    one_error(refused, "move log_format f before this line");
    for (http, is_known) in [
        ("log_format f x; access_log a.log f;", true),
        ("access_log a.log f; log_format f x;", false),
        ("log_format f x; server { listen 8080; access_log a.log f; }", true),
        ("server { listen 8080; access_log a.log f; } log_format f x;", false),
        ("server { listen 8080; location / { access_log a.log f; } } log_format f x;", false),
        ("server { listen 8080; location / { if ($arg_a) { access_log a.log f; } } } log_format f x;", false),
        ("server { listen 8080; access_log syslog:server=127.0.0.1 f; } log_format f x;", false),
        ("server { listen 8080; access_log off; access_log a.log f; } log_format f x;", false),
        ("include server.conf; log_format f x;", false),
        ("include server.conf; include format.conf;", false),
        ("include format.conf; include server.conf;", true),
        ("log_format f x; include server.conf;", true),
        // Those that are always there.
        ("access_log a.log combined; access_log b.log json; log_format f x;", true),
        // One's own `json` is nginx's to know, and there it is not known yet.
        ("access_log a.log json; log_format json x;", false),
        ("log_format json x; access_log a.log json;", true),
    ] {
        let main = path.join("nginx.conf");
        fs::write(&main, format!("events {{ }} http {{ {http} }}")).expect("written");
        let loaded = load(&Options { prefix: path.into(), main_file: main, ..Options::default() });
        let errors = messages(&loaded, Severity::Error);
        assert_eq!(errors.is_empty(), is_known, "{http}: {errors:#?}");
        assert!(errors.iter().all(|error| error.starts_with("unknown log format")), "{http}: {errors:#?}");
    }
}

#[test]
fn tls_drops_what_is_unsafe_and_refuses_when_nothing_is_left() {
    one_warning(&in_http("ssl_protocols TLSv1 TLSv1.2;"), "TLSv1 is not offered");
    one_warning(&in_http("ssl_protocols TLSv1 TLSv1.1 TLSv1.2;"), "TLSv1, TLSv1.1 are not offered");
    one_error(&in_http("ssl_protocols SSLv3 TLSv1.1;"), "leaves no secure version");
    one_error(&in_http("ssl_protocols TLSv1.2 TLSv1.4;"), "did you mean");
    one_warning(&in_http("ssl_ciphers HIGH:!aNULL:!MD5;"), "CBC");
    one_error(&in_http("ssl_ciphers NONSENSE;").replace("NONSENSE", "!ALL"), "leaves no cipher suite");
    no_error(&in_http("ssl_ciphers ECDH+AESGCM;"));
    for (list, part) in [
        ("ECDHE+AESGCM:@SECLEVEL=0", "\"@SECLEVEL=0\" has no effect"),
        ("@SECLEVEL=3:ECDHE+AESGCM", "\"@SECLEVEL=3\" has no effect"),
        ("ECDHE+AESGCM@SECLEVEL=2", "\"@SECLEVEL=2\" has no effect"),
        ("ECDHE+AESGCM:@SECLEVEL=6", "called \"@SECLEVEL=6\""),
        ("ECDHE+AESGCM:@SECLEVEL", "called \"@SECLEVEL\""),
        ("ECDHE+AESGCM:@LEVEL", "called \"@LEVEL\""),
    ] {
        for directive in
            ["ssl_ciphers", "proxy_ssl_ciphers", "grpc_ssl_ciphers", "ssl_conf_command CipherString"]
        {
            one_warning(&in_http(&format!("{directive} {list};")), part);
        }
    }
    let sorted = text(&in_http("ssl_ciphers ECDHE+AESGCM:@STRENGTH;"));
    assert_eq!(messages(&sorted, Severity::Warning), [""; 0]);
    one_error(&in_http("ssl_session_cache shared:SSL;"), "invalid session cache");
}

#[test]
fn a_quote_that_is_not_closed_is_one_finding_wherever_its_directive_ends() {
    for line in [
        "location = /a { return 200 \"ok; }",
        "location / { proxy_pass \"http://127.0.0.1:80; }",
        "location ~ \"^/c { return 200 \"x\"; }",
        "location = /d { add_header X \"a; return 200 \"x\"; }",
        "add_header X \"a;",
        "add_header X 'a b;\n        add_header Y 'c';",
        "add_header X \"a\"b c d e f;",
    ] {
        let text = format!(
            "events {{}}\nhttp {{\n    server {{\n        listen 8080;\n        {line}\n        location = /e {{ return 200 \"fine\"; }}\n    }}\n}}\n"
        );
        let loaded = millstream_conf::load_text("nginx.conf", &text, std::path::Path::new("/"));
        let found = loaded.diagnostics.sorted();
        let told: String = found.iter().map(|finding| finding.render(&loaded.sources)).collect();
        assert_eq!(found.len(), 1, "{told}");
        assert!(told.contains("quote") && told.contains("nginx.conf:5:"), "{told}");
    }
}

#[test]
fn methods_and_resolvers_refuse_what_nginx_refuses() {
    for (directives, message) in [
        (
            "upstream a { ip_hash; server 127.0.0.1; server 127.0.0.2 backup; }",
            "does not support parameter \"backup\"",
        ),
        (
            "upstream a { hash $uri; server 127.0.0.1; server 127.0.0.2 backup; }",
            "does not support parameter \"backup\"",
        ),
        (
            "upstream a { random; server 127.0.0.1; server 127.0.0.2 backup; }",
            "does not support parameter \"backup\"",
        ),
        ("upstream a { hash $uri ketama; server 127.0.0.1; }", "invalid value \"ketama\""),
        ("upstream a { random three; server 127.0.0.1; }", "invalid value \"three\""),
        ("upstream a { random two least_time; server 127.0.0.1; }", "invalid value \"least_time\""),
        ("upstream a { least_time first_byte; server 127.0.0.1; }", "invalid value \"first_byte\""),
        ("upstream a { least_time header now; server 127.0.0.1; }", "invalid value \"now\""),
        (
            "upstream a { hash $uri; server 127.0.0.1 slow_start=1s; }",
            "does not support parameter \"slow_start\"",
        ),
        (
            "upstream a { server 127.0.0.1 slow_start=1s; random two; }",
            "does not support parameter \"slow_start\"",
        ),
        ("upstream a { server 127.0.0.1 route=; }", "route is empty"),
        (
            "upstream a { server 127.0.0.1 route=abcdefghijklmnopqrstuvwxyz0123456; }",
            "route is longer than 32",
        ),
        ("upstream a { queue 9; least_conn; server 127.0.0.1; }", "\"least_conn\" comes after \"queue\""),
        ("upstream a { queue 9 time=1s; server 127.0.0.1; }", "invalid value \"time=1s\""),
        ("upstream a { server 127.0.0.1; sticky kookie a; }", "invalid value \"kookie\""),
        ("upstream a { server 127.0.0.1; sticky cookie a path=; }", "no value for \"path\""),
        (
            "upstream a { server 127.0.0.1; sticky cookie a secure secure; }",
            "parameter \"secure\" is duplicate",
        ),
        ("upstream a { server 127.0.0.1; sticky cookie a samesite=no; }", "invalid value \"no\""),
        ("upstream a { server 127.0.0.1; sticky cookie a age=1; }", "invalid value \"age=1\""),
        ("upstream a { server 127.0.0.1; sticky route id; }", "invalid variable name \"id\""),
        (
            "upstream a { server 127.0.0.1; sticky route $arg_a$arg_b; }",
            "invalid variable name \"$arg_a$arg_b\"",
        ),
        (
            "upstream a { server 127.0.0.1; sticky learn create=$arg_a zone=a:1m; }",
            "\"lookup\" parameter is not specified",
        ),
        (
            "upstream a { server 127.0.0.1; sticky learn create=$arg_a lookup=$arg_a; }",
            "\"zone\" parameter is not specified",
        ),
        (
            "upstream a { server 127.0.0.1; sticky learn create=$arg_a lookup=$arg_a zone=a:16k; }",
            "zone is too small",
        ),
        (
            "upstream a { server 127.0.0.1; sticky learn create=$arg_a lookup=$arg_a zone=a; }",
            "zone size is not specified",
        ),
        (
            "upstream a { server 127.0.0.1; sticky learn create=$arg_a lookup=$arg_a zone=a:1m sync; }",
            "\"sync\" is not supported",
        ),
        (
            "upstream a { hash $uri consistent; server 127.0.0.1 weight=100001; }",
            "too large for a consistent hash",
        ),
        ("upstream a { server a.example resolve; }", "no resolver defined to resolve names at run time"),
        ("resolver 127.0.0.1 ipv4=off ipv6=off;", "cannot both be \"off\""),
        ("resolver valid=10s;", "no name servers defined"),
        ("resolver unix:/x;", "invalid host or port in resolver"),
    ] {
        let loaded = text(&in_http(directives));
        let errors = messages(&loaded, Severity::Error);
        assert!(errors.len() == 1 && errors[0].contains(message), "{directives}: {errors:?}");
    }
    // As in nginx, a method that comes after does not see the backup, and the last method holds.
    let loaded =
        text(&in_http("upstream a { server 127.0.0.1; server 127.0.0.2 backup; ip_hash; hash $uri; }"));
    assert!(messages(&loaded, Severity::Error).is_empty());
    assert_eq!(messages(&loaded, Severity::Warning), ["load balancing method redefined | "]);
}

#[test]
fn what_changes_bodies_is_checked() {
    one_error(&in_location("sub_filter \"\" a;"), "empty search pattern");
    one_error(&in_location("charset utf-8; source_charset koi8-r;"), "no \"charset_map\" between");
    no_error(&in_location("charset utf-8; source_charset UTF-8; sub_filter $arg_a $arg_b; gunzip on;"));
    no_error(&in_location("charset $arg_a; source_charset koi8-r;"));
    for (map, part) in [
        ("charset_map a A { }", "same charsets"),
        ("charset_map utf-8 a { }", "second column"),
        ("charset_map a b { } charset_map b a { }", "duplicate \"charset_map\""),
        ("charset_map a b { C0; }", "invalid parameters number"),
        ("charset_map a b { C0 100; }", "invalid value \"100\""),
        ("charset_map a utf-8 { C0 D1; }", "invalid value \"D1\""),
        ("charset_map a utf-8 { C0 4142; }", "invalid value \"4142\""),
    ] {
        one_error(&in_http(&format!("{map} server {{ listen 80; }}")), part);
    }
    no_error(&in_http(
        "charset_map a utf-8 { 80 E282AC; 41 42; } server { listen 80; charset a; source_charset utf-8; }",
    ));
}

#[test]
fn rules_for_cookies_links_and_lists_are_checked() {
    one_error(&in_location("proxy_cookie_path /;"), "invalid value \"/\"");
    one_error(&in_location("proxy_cookie_path off; proxy_cookie_path / /a;"), "duplicate");
    one_error(&in_location("proxy_cookie_flags a securee;"), "did you mean \"secure\"?");
    no_error(&in_location(
        "proxy_cookie_flags a $arg_a; proxy_cookie_domain a .b; proxy_cookie_path ~*/A/ /;",
    ));
    one_error(&in_location("disable_symlinks on to=/a;"), "invalid parameter");
    one_error(&in_location("autoindex_format yaml;"), "write one of: html, xml, json, jsonp");
    one_error(&in_location("gzip_static sometimes;"), "write one of: off, on, always");
    one_error(&in_location("secure_link_secret $arg_a;"), "nginx allows variables");
}

#[test]
fn logs_whose_names_requests_give_are_neither_buffered_nor_kept_without_a_bound() {
    for (directives, part) in [
        ("access_log /l/$host.log combined buffer=4k;", "buffered logs cannot have variables in name"),
        ("access_log /l/$host.log combined gzip;", "buffered logs cannot have variables in name"),
        ("open_log_file_cache inactive=20s;", "must have the \"max\" parameter"),
        ("open_log_file_cache max=10 min_use=2;", "did you mean \"min_uses\"?"),
        ("open_log_file_cache off max=10;", "takes no parameters"),
    ] {
        one_error(&in_location(directives), part);
    }
    no_error(&in_http(
        "open_log_file_cache max=9 inactive=1s valid=1m min_uses=2; server { access_log /l/$host.log; }",
    ));
}

#[test]
fn referers_browsers_and_cookies_of_visitors_are_checked() {
    let without = "are specified in the \"valid_referers\" directive without any valid referer";
    for (directives, part) in [
        ("valid_referers none blocked;", without),
        ("valid_referers \"\";", "invalid referer"),
        ("valid_referers a.*.b;", "invalid hostname or wildcard \"a.*.b\""),
        ("valid_referers *.a/x *.a;", "conflicting parameter \"*.a\""),
        ("valid_referers ~;", "empty regex"),
        ("modern_browser listed;", "unlisted"),
        ("modern_browser netscape 4;", "invalid value \"netscape\""),
        ("modern_browser msie 5.5b;", "invalid browser version \"5.5b\""),
        ("userid v2;", "invalid value \"v2\""),
        ("userid_service -1;", "-1"),
        ("userid_expires never;", "never"),
        ("userid_mark ==;", "single letter, digit or \"=\""),
        ("userid_flags lax;", "invalid value \"lax\""),
        ("userid_name \"a\\nb\";", "a control character"),
        ("add_header_inherit all;", "invalid value \"all\""),
        ("set $uid_got a;", "the duplicate \"uid_got\" variable"),
    ] {
        one_error(&in_location(directives), part);
    }
    // Locations below inherit what is wrong above, which is told once.
    one_error(
        &in_server("valid_referers none; location /a { return 204; } location /b { return 204; }"),
        without,
    );
    one_error(&in_server("server_name a; valid_referers server_names a;"), "conflicting parameter \"a\"");
    one_warning(&in_location("valid_referers a.example:8080;"), "scheme and port are not compared");
    one_error(&in_server("random_index on;"), "not allowed here");
    no_error(&in_location(
        "valid_referers server_names ~a; set $invalid_referer 0; set $uid_reset 1; set $msie 1;",
    ));
}

fn issued(issuer: &str, server: &str) -> String {
    in_http(&format!(
        "acme_issuer ca {{ {issuer} }} server {{ listen 8443 ssl; listen 8080; {server} ssl_certificate $acme_certificate; \
         ssl_certificate_key $acme_certificate_key; }}"
    ))
}

const URI: &str = "uri https://ca.example/directory;";

#[test]
fn what_is_wrong_with_an_issuer_or_a_certificate_of_it_is_one_error_with_a_help() {
    const SERVER: &str = "server_name a.example; acme_certificate ca;";
    no_error(&issued(URI, SERVER));
    for (issuer, part) in [
        ("", "acme_issuer: \"uri\" is missing"),
        ("uri http://ca.example/directory;", "invalid uri \"http://ca.example/directory\""),
        (
            "uri https://ca.example/ https://other.example/;",
            "invalid number of arguments in \"uri\" directive",
        ),
        ("uri https://ca.example/; uri https://ca.example/;", "\"uri\" directive is duplicate"),
        ("uri https://ca.example/; account_key rsa:1024;", "unsupported key \"rsa:1024\""),
        ("uri https://ca.example/; account_key missing.key;", "cannot load account key"),
        ("uri https://ca.example/; challenge dns-01;", "unsupported challenge \"dns-01\""),
        ("uri https://ca.example/; contact \"\";", "invalid contact"),
        ("uri https://ca.example/; external_account_key id data:a+b;", "invalid base64url encoded value"),
        ("uri https://ca.example/; external_account_key id missing;", "cannot load external account key"),
        ("uri https://ca.example/; profile short always;", "invalid value \"always\""),
        ("uri https://ca.example/; ssl_verify yes;", "\"yes\""),
        ("uri https://ca.example/; server_name a;", "\"server_name\" directive is not allowed here"),
        ("uri https://ca.example/; accept_terms_of_service on;", "invalid number of arguments"),
        (
            "uri https://ca.example/; chalenge http;",
            "unknown directive \"chalenge\" | did you mean \"challenge\"?",
        ),
    ] {
        one_error(&issued(issuer, SERVER), part);
    }
    for (server, part) in [
        ("server_name a.example; acme_certificate cb;", "issuer \"cb\" is missing"),
        ("acme_certificate ca;", "no identifiers found in \"server_name\""),
        ("server_name *.a.example; acme_certificate ca;", "invalid server name \"*.a.example\""),
        ("server_name www.a.*; acme_certificate ca;", "invalid server name \"www.a.*\""),
        ("acme_certificate ca *.a.example;", "invalid server name \"*.a.example\""),
        ("acme_certificate ca a.example key=dsa;", "unsupported key \"dsa\""),
        (
            "acme_certificate ca a.example; acme_certificate ca b.example;",
            "\"acme_certificate\" directive is duplicate",
        ),
        (
            "server_name a.example; acme_certificate ca; return 200 $acme_certificate_key;",
            "only as the whole value",
        ),
    ] {
        one_error(&issued(URI, server), part);
    }
    let two = format!("acme_issuer ca {{ {URI} }} acme_issuer ca {{ {URI} state_path other; }}");
    one_error(&in_http(&two), "duplicate acme_issuer \"ca\"");
    let shared =
        format!("acme_issuer ca {{ {URI} state_path one; }} acme_issuer cb {{ {URI} state_path one; }}");
    one_error(&in_http(&shared), "has the same state_path");
    one_error(&in_http("acme_shared_zone zone=small:8k;"), "zone \"small\" is too small");
    one_error(&in_http("acme_shared_zone name=a:1m;"), "must have \"zone\" parameter");
    one_error(&in_location("acme_certificate ca;"), "it is allowed in: server");
    one_warning(&issued(URI, ""), "no \"acme_certificate\" is defined");
    one_warning(
        &issued(URI, "server_name a.example ~^b; acme_certificate ca;"),
        "unsupported regular expression in server_name",
    );
    let unused =
        format!("acme_issuer ca {{ {URI} }} server {{ listen 8080; acme_certificate ca a.example; }}");
    one_warning(&in_http(&unused), "this certificate is issued, but not used");
    let deaf = issued(URI, SERVER).replace("listen 8080;", "");
    one_warning(&deaf, "no server listens without TLS, which the challenge http-01 of this issuer requires");
    no_error(&deaf.replace(URI, &format!("{URI} challenge tls-alpn;")));
}

#[test]
fn servers_that_want_the_same_certificate_share_it_and_a_leading_dot_is_two_names() {
    let server = "server { listen 8080; server_name .A.example 192.0.2.1; acme_certificate ca; }";
    let other = "server { listen 8081; acme_certificate ca www.a.example a.example 192.0.2.1 key=ecdsa; }";
    let loaded =
        text(&in_http(&format!("{server} {other} acme_issuer ca {{ {URI} contact me@a.example; }}")));
    let http = loaded.configuration.expect("it loads").http;
    let [certificate] = &http.acme_certificates[..] else { panic!("{:?}", http.acme_certificates) };
    let names: Vec<String> = certificate.identifiers.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["www.a.example", "a.example", "192.0.2.1"]);
    assert_eq!(http.servers[0].acme, http.servers[1].acme);
    let issuer = &http.acme_issuers[0];
    assert_eq!(issuer.contacts, ["mailto:me@a.example"]);
    assert_eq!(issuer.state_path.as_deref(), Some("/prefix/acme_ca".as_ref()));
}

#[test]
fn quotes_blanks_and_commas_of_other_places_are_warned_of() {
    for (directive, part) in [
        ("server_name a.example, b.example;", "\"a.example,\" in \"server_name\" ends with a comma"),
        ("index index.html, index.htm;", "\"index.html,\" in \"index\" ends with a comma"),
        ("gzip_types text/css, text/xml;", "\"text/css,\" in \"gzip_types\" ends with a comma"),
        ("server_name “a.example”;", "“a.example” begins with a typographic quote"),
        ("server_name ‘a.example’;", "begins with a typographic quote"),
        ("root „/srv/www“;", "begins with a typographic quote"),
        ("root /srv/w\u{a0}ww;", "no-break space"),
    ] {
        one_warning(&in_server(directive), part);
    }
    for directive in ["server_name \"a,\" b;", "add_header X \"“a”\";", "server_name a;"] {
        let loaded = text(&in_server(directive));
        assert_eq!(messages(&loaded, Severity::Warning), Vec::<String>::new(), "{directive}");
    }
    let of_format = in_http("log_format short $remote_addr, $status;");
    assert_eq!(messages(&text(&of_format), Severity::Warning), Vec::<String>::new());
}
