//! What the program says about a configuration that cannot be run: every mistake, where it is, and what to write.

use std::net::TcpListener;

use millstream_tests::prefix::{Prefix, fill};
use millstream_tests::server::{Server, command, is_nginx};

fn check(prefix: &Prefix, template: &str) -> (Option<i32>, String) {
    let directory = prefix.path().to_str().unwrap_or_default().to_owned();
    let file = prefix.write("nginx.conf", fill(template, &[("DIR", &directory)]));
    let output = command(prefix.path(), &file).arg("-t").output().expect("the binary runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn five_mistakes_in_one_file_give_five_located_errors_in_one_run() {
    let template = "pid @DIR@/nginx.pid;\nerror_log @DIR@/error.log;\nevents {}\nhttp {\n    include @DIR@/missing.conf;\n    \
                    server {\n        listen 127.0.0.1:8080;\n        client_max_body_size 10x;\n        location / {\n            \
                    prox_pass http://127.0.0.1:1;\n            add_header X-A $no_such_variable;\n        }\n";
    let (status, output) = check(&Prefix::new(), template);
    assert_eq!(status, Some(1), "{output}");
    skip_on_nginx!("it stops at the first");
    for (line, word) in [(5, "missing.conf"), (8, "10x"), (10, "prox_pass"), (11, "no_such_variable")] {
        let located = output.lines().any(|text| text.contains(&format!("nginx.conf:{line}:")));
        assert!(located && output.contains(word), "line {line} ({word}) is not in: {output}");
    }
    assert!(output.contains("proxy_pass"), "it says what was probably meant: {output}");
    let unclosed = [4, 6, 12, 13].iter().any(|line| output.contains(&format!("nginx.conf:{line}:")));
    assert!(unclosed, "the block that is not closed is located: {output}");
}

#[test]
fn the_check_fails_where_an_upstream_host_is_not_found_wherever_it_stands() {
    for passes in [
        "location / { proxy_pass http://no-such-host.invalid; }",
        "location / { proxy_pass http://group; }",
        "location / { fastcgi_pass no-such-host.invalid:9000; }",
    ] {
        let template = format!(
            "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {{}}\nhttp {{\n access_log off;\n \
             upstream group {{ server 127.0.0.1:1; server {}; }}\n server {{ listen 127.0.0.1:8080; {passes} }}\n}}\n",
            if passes.contains("group") { "no-such-host.invalid" } else { "127.0.0.1:2" }
        );
        let (status, output) = check(&Prefix::new(), &template);
        assert_eq!(status, Some(1), "{output}");
        assert!(output.contains("host not found in upstream \"no-such-host.invalid"), "{output}");
    }
}

/// Without its `memcached_pass` the location would serve the application's source.
#[test]
fn a_site_whose_files_are_kept_back_by_a_directive_does_not_start_without_it() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    prefix.write("app/settings.py", "SECRET = 'x'");
    let directory = prefix.path().to_str().unwrap_or_default().to_owned();
    let port = millstream_tests::ports::free().to_string();
    let template = "pid @DIR@/nginx.pid; error_log stderr; daemon off; events {} http { server { listen 127.0.0.1:@PORT@; root \
                    @DIR@/app; location / { memcached_pass 127.0.0.1:1; } } }";
    let file = prefix.write("nginx.conf", fill(template, &[("DIR", &directory), ("PORT", &port)]));
    for arguments in [&["--lenient"][..], &["--lenient", "-t"]] {
        let output = command(prefix.path(), &file).args(arguments).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("memcached_pass") && said.contains("an error even with --lenient"), "{said}");
    }
}

#[test]
fn a_location_that_shares_what_nobody_said_may_be_shared_is_warned_about_in_the_check_and_at_each_start() {
    skip_on_nginx!("it says nothing");
    let template = "pid @DIR@/nginx.pid; error_log @DIR@/error.log warn; events {} http { proxy_cache_path memory keys_zone=z:1m; \
                    server { listen 127.0.0.1:@PORT@; location / { proxy_pass http://127.0.0.1:1; proxy_set_header Host $host;\n\
                    proxy_cache z;\nproxy_cache_valid 200 1s; } } }";
    let warnings = |said: &str| {
        let found = [(2, "sent to clients with another"), (3, "sent to every client")];
        for (line, part) in found {
            let is_there = |text: &str| text.contains(&format!("nginx.conf:{line}:")) && text.contains(part);
            assert_eq!(said.lines().filter(|text| is_there(text)).count(), 1, "{part}: {said}");
        }
    };
    let (status, output) = check(&Prefix::new(), &template.replace("@PORT@", "8080"));
    assert_eq!(status, Some(0), "{output}");
    warnings(&output);
    let mut server = Server::start(template, &[]);
    for _ in 0..2 {
        warnings(&server.prefix().read("output"));
        server.stop(rustix::process::Signal::QUIT);
        server.run().expect("it starts again");
    }
    warnings(&server.prefix().read("output"));
}

#[test]
fn a_good_file_passes_the_check() {
    let (status, output) =
        check(&Prefix::new(), "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {} http {}");
    assert_eq!(status, Some(0), "{output}");
    assert!(output.contains("syntax is ok") && output.contains("test is successful"), "{output}");
}

#[test]
fn a_port_in_use_is_one_clear_line_and_a_failed_start() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let template = "pid @DIR@/nginx.pid; error_log stderr; events {} http { server { listen 127.0.0.1:@TAKEN@; } \
                    server { listen 127.0.0.1:@PORT@; } }";
    let refused =
        Server::try_start(Prefix::new(), template, &[("TAKEN", &port)]).err().expect("it may not start");
    assert!(refused.status.is_some_and(|status| status.code() == Some(1)), "{refused:?}");
    let lines: Vec<&str> = refused.output.lines().filter(|line| line.contains(&port)).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("already")), "{}", refused.output);
    if !is_nginx() {
        assert_eq!(lines.len(), 1, "{}", refused.output);
    }
}

#[test]
fn a_cache_directory_that_cannot_be_made_is_one_clear_line_and_a_failed_start() {
    let prefix = Prefix::new();
    prefix.write("file", "");
    let template = "pid @DIR@/nginx.pid; error_log stderr; events {} http { proxy_cache_path @DIR@/file/cache keys_zone=a:1m; \
                    server { listen 127.0.0.1:@PORT@; location / { proxy_pass http://127.0.0.1:1; proxy_cache a; } } }";
    let refused = Server::try_start(prefix, template, &[]).err().expect("it may not start");
    assert!(refused.status.is_some_and(|status| status.code() == Some(1)), "{refused:?}");
    assert!(refused.output.contains("file/cache"), "{}", refused.output);
}

#[test]
fn every_seed_configuration_passes_the_check() {
    let prefix = Prefix::new();
    for entry in std::fs::read_dir(millstream_tests::workspace().join("tests/seed-configs"))
        .expect("the folder")
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(".conf") else { continue };
        if name == "https" {
            continue; // Its certificate is made by its own scenario.
        }
        let text = millstream_tests::server::fit(&millstream_tests::prefix::seed(name));
        let text = text
            .replace("@ORIGIN@", "127.0.0.1:9")
            .replace("@ORIGIN2@", "127.0.0.1:9")
            .replace("@PORT@", "8080");
        let (status, output) = check(&prefix, &text);
        assert_eq!(status, Some(0), "{name}: {output}");
    }
}
