//! The text that the flags become is loaded as any nginx.conf is, and has what `serve` promises.

use super::*;
use crate::cli::{Domains, UpstreamFlags};
use millstream_conf::model::{
    Configuration, Credentials, Invalidation, ListenAddress, PeerAddress, StaleWhile, WorkerProcesses,
};
use std::time::Duration;

fn serve(urls: &[&str]) -> ServeUrl {
    let front = Front {
        urls: urls.iter().map(|&url| url.to_owned()).collect(),
        listen: "127.0.0.1:8080".into(),
        domains: Domains::default(),
        upstream: UpstreamFlags::default(),
        dashboard: None,
        dashboard_allow: Vec::new(),
        dashboard_token: None,
        workers: "auto".into(),
        max_body: "128m".into(),
        connections: "4096".into(),
        max_head: "64k".into(),
        connect_timeout: "5s".into(),
        read_timeout: "60s".into(),
        send_timeout: "60s".into(),
        client_timeout: "60s".into(),
        trust_proxy: Vec::new(),
        client_address: ClientAddress::Send,
        user: None,
        access_log: None,
    };
    let caching = Caching {
        microcache: None,
        ignore_args: Vec::new(),
        stale: "10s".into(),
        stale_if_error: "10m".into(),
        memory: "256m".into(),
        purge: PurgeBy::Off,
        cluster: None,
        cluster_secret: None,
    };
    ServeUrl { front, caching, print_config: false }
}

fn changed(mut flags: ServeUrl, change: impl FnOnce(&mut ServeUrl)) -> ServeUrl {
    change(&mut flags);
    flags
}

fn read(serve: &ServeUrl, urls: &[String]) -> Result<Loaded, String> {
    configuration(&serve.front, Some(&serve.caching), urls, None)
}

fn written(serve: &ServeUrl, urls: &[String]) -> Result<String, String> {
    text(&serve.front, Some(&serve.caching), urls)
}

fn load(serve: &ServeUrl) -> Configuration {
    let loaded = read(serve, &serve.front.urls).expect("the flags are good");
    let findings: String =
        loaded.diagnostics.sorted().iter().map(|finding| finding.render(&loaded.sources)).collect();
    loaded.configuration.unwrap_or_else(|| panic!("{findings}"))
}

#[test]
fn the_text_loads_without_a_warning_and_holds_what_is_promised() {
    let given = serve(&["http://127.0.0.1:8000"]);
    let loaded = read(&given, &given.front.urls).expect("the flags are good");
    assert!(loaded.diagnostics.sorted().iter().all(|finding| finding.severity < Severity::Warning));
    let configuration = load(&given);
    assert_eq!(configuration.main.worker_processes, WorkerProcesses::Auto);
    assert!(!configuration.main.daemon && configuration.main.pid.as_os_str().is_empty());
    assert!(configuration.main.user.is_none());
    let http = &configuration.http;
    let local = ListenAddress::Tcp("127.0.0.1:8080".parse().expect("an address"));
    let dashboard = ListenAddress::Tcp("127.0.0.1:8081".parse().expect("an address"));
    assert_eq!(
        http.listeners.iter().map(|listener| &listener.address).collect::<Vec<_>>(),
        [&local, &dashboard]
    );
    assert!(http.dashboard == Some(dashboard) && http.listeners[1].optional, "it starts where that is taken");
    assert_eq!((http.cache_zones[0].memory, http.cache_zones[0].path.as_ref()), (256 << 20, None));
    let proxied = http.locations.iter().find_map(|location| location.settings.pass()).expect("it proxies");
    let cache = proxied.cache.as_ref().expect("it caches");
    assert!(cache.lock && cache.background_update, "collapse, and stale while refreshing");
    assert!(cache.valid.is_empty(), "only what the API allows is cached");
    assert!(
        matches!(cache.credentials, Credentials::Public { .. }) && cache.vary.origin && !cache.vary.unlisted
    );
    assert_eq!(
        cache.stale_while_updating,
        Some(StaleWhile { percent: Some(100), longest: Duration::from_secs(10) })
    );
    assert_eq!(cache.stale_if_error, Some(Duration::from_secs(600)));
    assert_eq!(cache.invalidation, Invalidation::Every(Duration::from_secs(1)));
    assert!(http.log_files.is_empty());
}

#[test]
fn microcache_keeps_credentials_out_and_fields_that_nobody_listed_apart() {
    let configuration = load(&changed(serve(&["http://127.0.0.1:8000"]), |flags| {
        flags.caching.microcache = Some("1s".into())
    }));
    let proxied = configuration.http.locations.iter().find_map(|location| location.settings.pass());
    let cache = proxied.and_then(|proxy| proxy.cache.as_ref()).expect("it caches");
    assert!(cache.valid.iter().all(|valid| valid.time == Duration::from_secs(1)) && !cache.valid.is_empty());
    assert!(matches!(cache.credentials, Credentials::Public { .. }));
    assert!(cache.vary.origin && cache.vary.unlisted);
}

#[test]
fn an_api_is_a_url_a_host_and_port_or_a_socket_and_several_share_the_load() {
    let configuration = load(&serve(&[
        "http://127.0.0.1:8001/",
        "127.0.0.1:8002",
        "unix:/run/api.sock",
        "http://[::1]:8003",
    ]));
    let servers = &configuration.http.upstreams[0].servers;
    let tcp = |address: &str| PeerAddress::Tcp(address.parse().expect("an address"));
    assert_eq!(
        servers.iter().map(|server| server.address.clone()).collect::<Vec<_>>(),
        [
            tcp("127.0.0.1:8001"),
            tcp("127.0.0.1:8002"),
            PeerAddress::Unix("/run/api.sock".into()),
            tcp("[::1]:8003")
        ]
    );
}

#[test]
fn what_is_no_api_or_would_be_more_than_one_word_is_refused() {
    for url in [
        "ftp://x",
        "grpcs://x",
        "https://",
        "https://host/path",
        "https://user@host",
        "https://8443/",
        "http://",
        "http://host/path",
        "unix:relative.sock",
        "unix:",
        "",
        "http://a;b",
        "http://a b",
        "http://a{b",
        "http://$host",
        "http://a#b",
        "http://a\nb",
        "http://a\"b",
    ] {
        assert!(read(&serve(&[url]), &[url.to_owned()]).is_err(), "{url:?}");
    }
}

#[test]
fn a_url_with_more_than_a_host_is_refused_for_what_is_too_much() {
    for (url, says) in [
        ("http://user:pw@host:8000", "write http://host:port without a user and password"),
        ("http://user@host/", "write http://host:port without a user and password"),
        ("http://host:8000?x=1", "write http://host:port without a query"),
        ("http://host:8000/?x=1", "write http://host:port without a query"),
        ("host:8000/path", "write http://host:port without a path"),
        ("https://host/path@x", "write https://host:port without a path"),
        (
            "https://u:p@host/path?x",
            "write https://host:port without a user and password and a path and a query",
        ),
        ("https://8443", "write https://host:port"),
        ("http://", "write http://host:port"),
    ] {
        let refused = written(&serve(&[url]), &[url.to_owned()]).expect_err(url);
        assert!(refused.ends_with(says), "{url}: {refused}");
    }
}

#[test]
fn a_client_without_a_host_asks_for_the_first_of_the_api() {
    for (urls, host) in [
        (&["http://127.0.0.1:8000", "127.0.0.1:8001"][..], "127.0.0.1:8000"),
        (&["8000"], "127.0.0.1:8000"),
        (&["http://[::1]:8000"], "[::1]:8000"),
        (&["http://api.example/"], "api.example"),
        (&["unix:/run/api.sock", "127.0.0.1:8001"], "127.0.0.1:8001"),
        (&["unix:/run/api.sock"], "localhost"),
    ] {
        let text = written(&serve(urls), &serve(urls).front.urls).expect("the flags are good");
        let map = format!("map $http_host $api_host {{\n        \"\" {host};\n        default $http_host;");
        assert!(text.contains(&map) && text.contains("proxy_set_header Host $api_host;"), "{urls:?}: {text}");
    }
}

#[test]
fn an_https_api_is_verified_by_its_name_which_it_gets_as_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, "").expect("written");
    let flags = |name: Option<&str>| UpstreamFlags {
        upstream_name: name.map(str::to_owned),
        upstream_ca: Some(ca.clone()),
        insecure_upstream: false,
    };
    // URLs, --upstream-name, and the servers, the Host and the name in TLS that follow.
    type Case<'a> = (&'a [&'a str], Option<&'a str>, &'a [&'a str], &'a str, &'a str);
    let cases: [Case<'_>; 8] = [
        (&["https://api.example"], None, &["api.example:443"], "api.example", "api.example"),
        (&["HTTPS://api.example/"], None, &["api.example:443"], "api.example", "api.example"),
        (&["https://api.example:8443"], None, &["api.example:8443"], "api.example:8443", "api.example"),
        (&["https://api"], Some("a.example"), &["api:443"], "a.example", "a.example"),
        (&["https://localhost:8443"], None, &["localhost:8443"], "$api_host", "localhost"),
        (&["https://10.0.0.5"], None, &["10.0.0.5:443"], "$api_host", "10.0.0.5"),
        (&["https://[::1]"], None, &["[::1]:443"], "$api_host", "[::1]"),
        (
            &["https://10.0.0.5", "https://10.0.0.6:8443"],
            Some("a.example"),
            &["10.0.0.5:443", "10.0.0.6:8443"],
            "a.example",
            "a.example",
        ),
    ];
    for (urls, name, servers, host, tls_name) in cases {
        let given = changed(serve(urls), |given| given.front.upstream = flags(name));
        let text = written(&given, &given.front.urls).expect("the flags are good");
        let has = |line: &str| assert!(text.contains(line), "{urls:?}: {line} in {text}");
        servers.iter().for_each(|server| has(&format!("server {server} fail_timeout=1s;")));
        has("proxy_pass https://api;");
        has(&format!("proxy_set_header Host {host};"));
        has(&format!("proxy_ssl_name {tls_name};"));
        has("proxy_ssl_server_name on;");
        has("proxy_ssl_verify on;");
        has(&format!("proxy_ssl_trusted_certificate {};", ca.display()));
        let is_own = host != "$api_host";
        assert!(!is_own || text.contains(&format!("proxy_redirect https://{host}/ /;")), "{urls:?}");
        for url in urls {
            has(&format!("proxy_redirect {}/ /;", url.trim_end_matches('/').to_ascii_lowercase()));
        }
        assert_eq!(text.contains("X-Forwarded-Host $http_host;"), is_own, "{urls:?}");
    }
    let insecure = UpstreamFlags { insecure_upstream: true, ..UpstreamFlags::default() };
    let given = changed(serve(&["https://api.example"]), |flags| flags.front.upstream = insecure);
    let text = written(&given, &given.front.urls).expect("the flags are good");
    assert!(text.contains("proxy_ssl_verify off;") && !text.contains("trusted_certificate"), "{text}");
}

#[test]
fn https_urls_that_do_not_go_together_are_refused_with_what_to_write() {
    let flags = |change: fn(&mut UpstreamFlags)| {
        let mut flags = UpstreamFlags::default();
        change(&mut flags);
        flags
    };
    let ca: fn(&mut UpstreamFlags) = |flags| flags.upstream_ca = Some("/nowhere/ca.pem".into());
    let insecure: fn(&mut UpstreamFlags) = |flags| flags.insecure_upstream = true;
    for (urls, upstream, expected) in [
        (
            &["https://a.example", "http://b.example"][..],
            flags(insecure),
            "all URLs must have the same scheme",
        ),
        (&["unix:/run/a.sock", "https://b.example"], flags(insecure), "all URLs must have the same scheme"),
        (&["https://a.example", "https://b.example"], flags(insecure), "--upstream-name"),
        (&["http://a.example"], flags(insecure), "--insecure-upstream is for an https API"),
        (&["http://a.example"], flags(ca), "--upstream-ca is for an https API"),
        (&["https://a.example"], flags(ca), "--upstream-ca /nowhere/ca.pem: No such file"),
    ] {
        let given = changed(serve(urls), |flags| flags.front.upstream = upstream);
        let Err(told) = written(&given, &given.front.urls) else { panic!("{urls:?} are taken") };
        assert!(told.contains(expected), "{urls:?}: {told}");
    }
}

#[test]
fn hostile_flag_values_never_become_directives() {
    let good = ["http://127.0.0.1:8000".to_owned()];
    for value in
        ["1;user root", "8080; }", "x y", "$a", "a\\", "'a'", "\"a\"", "#", "", "a\u{0}b", "a\u{a0}b"]
    {
        let with = |change: fn(&mut ServeUrl, String)| {
            let mut flags = serve(&[]);
            change(&mut flags, value.to_owned());
            read(&flags, &good).is_err()
        };
        assert!(with(|flags, value| flags.front.listen = value), "--listen {value:?}");
        assert!(with(|flags, value| flags.caching.memory = value), "--memory {value:?}");
        assert!(with(|flags, value| flags.front.workers = value), "--workers {value:?}");
        assert!(with(|flags, value| flags.front.max_body = value), "--max-body {value:?}");
        assert!(with(|flags, value| flags.front.max_head = value), "--max-head {value:?}");
        assert!(with(|flags, value| flags.front.read_timeout = value), "--read-timeout {value:?}");
        assert!(with(|flags, value| flags.front.client_timeout = value), "--client-timeout {value:?}");
        assert!(with(|flags, value| flags.front.trust_proxy = vec![value]), "--trust-proxy {value:?}");
        assert!(with(|flags, value| flags.front.user = Some(value)), "--user {value:?}");
        assert!(with(|flags, value| flags.caching.microcache = Some(value)), "--microcache {value:?}");
        assert!(with(|flags, value| flags.caching.stale = value), "--stale {value:?}");
        assert!(with(|flags, value| flags.caching.stale_if_error = value), "--stale-if-error {value:?}");
        assert!(
            with(|flags, value| flags.front.upstream.upstream_name = Some(value)),
            "--upstream-name {value:?}"
        );
        assert!(with(|flags, value| flags.front.access_log = Some(value.into())), "--access-log {value:?}");
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_an_error_of_the_configuration() {
    for (memory, workers, microcache) in [("much", "auto", "1s"), ("1m", "many", "1s"), ("1m", "1", "soon")] {
        let flags = changed(serve(&["http://127.0.0.1:8000"]), |flags| {
            flags.caching.memory = memory.into();
            flags.front.workers = workers.into();
            flags.caching.microcache = Some(microcache.into());
        });
        let loaded = read(&flags, &flags.front.urls).expect("each is one word");
        assert!(loaded.configuration.is_none(), "{memory} {workers} {microcache}");
    }
}

#[test]
fn what_is_wrong_with_a_value_is_told_by_the_name_of_its_option() {
    type Change = fn(&mut ServeUrl);
    let cases: [(Change, &str); 12] = [
        (|flags| flags.front.listen = "abc".into(), "--listen abc: "),
        (|flags| flags.front.workers = "many".into(), "--workers many: "),
        (|flags| flags.caching.memory = "much".into(), "--memory much: "),
        (|flags| flags.front.max_body = "1x".into(), "--max-body 1x: "),
        (|flags| flags.front.max_head = "1x".into(), "--max-head 1x: "),
        (|flags| flags.front.connect_timeout = "5q".into(), "--connect-timeout 5q: "),
        (|flags| flags.front.client_timeout = "5q".into(), "--client-timeout 5q: "),
        (|flags| flags.caching.microcache = Some("soon".into()), "--microcache soon: "),
        (|flags| flags.caching.stale = "1z".into(), "--stale 1z: "),
        (|flags| flags.caching.stale_if_error = "1z".into(), "--stale-if-error 1z: "),
        (|flags| flags.front.trust_proxy = vec!["abc".into()], "--trust-proxy abc: "),
        (|flags| flags.front.urls = vec!["http://127.0.0.1:99999".into()], "127.0.0.1:99999"),
    ];
    for (change, expected) in cases {
        let mut flags = serve(&["http://127.0.0.1:8000"]);
        change(&mut flags);
        let loaded = read(&flags, &flags.front.urls).expect("each is one word");
        let told = refusal(&flags.front, Some(&flags.caching), &loaded).expect("it is wrong");
        assert!(told.contains(expected) && !told.contains("serve:"), "{told}");
        assert_eq!(told.lines().count(), 1, "once: {told}");
    }
    let flags = changed(serve(&["http://127.0.0.1:8000"]), |flags| flags.front.listen = "a;b".into());
    let Err(told) = read(&flags, &flags.front.urls) else { panic!("it is no word") };
    assert!(told.starts_with("--listen: "), "{told}");
}

#[test]
fn an_api_that_is_where_serve_listens_itself_is_told_before_it_is_asked() {
    for (listen, url, is_itself) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8080", true),
        ("8080", "http://localhost:8080", true),
        ("0.0.0.0:8080", "http://127.0.0.1:8080", true),
        ("[::]:8080", "http://[::1]:8080", true),
        ("unix:/run/a.sock", "unix:/run/a.sock", true),
        ("127.0.0.1:8080", "http://127.0.0.1:8081", false),
        ("127.0.0.1:8080", "http://127.0.0.2:8080", false),
        ("0.0.0.0:8080", "http://192.0.2.1:8080", false),
        ("unix:/run/a.sock", "unix:/run/b.sock", false),
    ] {
        let flags = changed(serve(&["http://127.0.0.9:1", url]), |flags| flags.front.listen = listen.into());
        let told = api::is_itself(&flags.front, &load(&flags));
        assert_eq!(told.is_some(), is_itself, "{listen} {url}");
        assert!(told.is_none_or(|told| told.starts_with(url) && told.contains("--listen")));
    }
}

#[test]
fn bounds_that_nobody_has_to_think_of_are_in_the_text() {
    let text = written(&serve(&[]), &["http://127.0.0.1:8000".into()]).expect("the flags are good");
    for directive in ["max_ranges 16;", "server 127.0.0.1:8000 fail_timeout=1s;"] {
        assert!(text.contains(directive), "{directive} in {text}");
    }
}

#[test]
fn an_access_log_is_buffered() {
    let flags = changed(serve(&["http://127.0.0.1:8000"]), |flags| {
        flags.front.access_log = Some("/tmp/access.log".into())
    });
    let configuration = load(&flags);
    let file = &configuration.http.log_files[0];
    assert_eq!((file.target.file(), file.buffer), (Some(Path::new("/tmp/access.log")), Some(64 << 10)));
}

#[test]
fn the_dashboard_is_where_nobody_else_is() {
    let check = |serve: ServeUrl, expected: Option<&str>| {
        let expected = expected.map(|address| ListenAddress::Tcp(address.parse().expect("an address")));
        assert_eq!(load(&serve).http.dashboard, expected, "{serve:?}");
    };
    let plain = || serve(&["http://127.0.0.1:8000"]);
    check(plain(), Some("127.0.0.1:8081"));
    check(changed(plain(), |flags| flags.front.dashboard = Some("9000".into())), Some("127.0.0.1:9000"));
    check(changed(plain(), |flags| flags.front.dashboard = Some("off".into())), None);
    check(changed(plain(), |flags| flags.front.listen = "8081".into()), None);
    check(changed(plain(), |flags| flags.front.listen = "0.0.0.0:8081".into()), None);
    check(serve(&["http://127.0.0.1:8081/"]), None);
    let open = changed(plain(), |flags| flags.front.dashboard = Some("0.0.0.0:9000".into()));
    let loaded = read(&open, &open.front.urls).expect("the flags can be read");
    assert!(
        refusal(&open.front, Some(&open.caching), &loaded)
            .is_some_and(|said| said.contains("--dashboard 0.0.0.0:9000"))
    );
}

#[test]
fn a_domain_is_tls_with_a_certificate_that_is_issued_and_whoever_speaks_plainly_is_led_there() {
    let state = tempfile::tempdir().expect("a folder");
    let domains = Domains {
        domain: vec!["a.example".into(), "b.example".into()],
        https: "127.0.0.1:8443".into(),
        http: "127.0.0.1:8080".into(),
        acme_state: Some(state.path().to_owned()),
        contact: Some("me@a.example".into()),
        ..Domains::default()
    };
    let given = changed(serve(&["http://127.0.0.1:8000"]), |flags| flags.front.domains = domains);
    let loaded = read(&given, &given.front.urls).expect("the flags are good");
    assert!(loaded.diagnostics.sorted().iter().all(|finding| finding.severity < Severity::Warning));
    let http = load(&given).http;
    let issuer = &http.acme_issuers[0];
    assert_eq!(issuer.uri.text, "https://acme-v02.api.letsencrypt.org/directory");
    assert!(issuer.accepts_terms && issuer.contacts == ["mailto:me@a.example"]);
    assert_eq!(issuer.state_path.as_deref(), Some(state.path()));
    let names: Vec<_> = http.acme_certificates[0].identifiers.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["a.example", "b.example"]);
    let at = |port: u16| {
        let is_it =
            |address: &ListenAddress| matches!(address, ListenAddress::Tcp(tcp) if tcp.port() == port);
        http.listeners.iter().find(|listener| is_it(&listener.address)).expect("it listens there")
    };
    assert!(at(8443).ssl && !at(8080).ssl);
    assert_eq!(at(8080).servers.len(), 2, "one for the names, one for all others");
    // A port alone is one of every address.
    let everywhere = Domains { https: "8443".into(), http: "8080".into(), ..given.front.domains.clone() };
    let http = load(&changed(given.clone(), |flags| flags.front.domains = everywhere)).http;
    let any: ListenAddress = ListenAddress::Tcp("0.0.0.0:8443".parse().expect("an address"));
    assert!(http.listeners.iter().any(|listener| listener.address == any && listener.ssl));
}

#[test]
fn what_is_wrong_with_a_domain_is_told_by_the_name_of_its_option_and_never_becomes_a_directive() {
    type Change = fn(&mut Domains, String);
    let changes: [(Change, &str); 5] = [
        (|domains, value| domains.domain = vec![value], "*.a.example"),
        (|domains, value| domains.https = value, "99999"),
        (|domains, value| domains.http = value, "abc"),
        (|domains, value| domains.acme_server = value, "http://ca.example/"),
        (|domains, value| domains.acme_state = Some(value.into()), ""),
    ];
    for (change, wrong) in changes {
        let with = |value: &str| {
            let mut domains = Domains {
                domain: vec!["a.example".into()],
                acme_state: Some("/nowhere".into()),
                ..Domains::default()
            };
            change(&mut domains, value.to_owned());
            let given = changed(serve(&["http://127.0.0.1:8000"]), |flags| flags.front.domains = domains);
            read(&given, &given.front.urls)
                .map(|loaded| refusal(&given.front, Some(&given.caching), &loaded).unwrap_or_default())
        };
        for hostile in ["1;user root", "8080; }", "x y", "$a", "'a'"] {
            assert!(with(hostile).is_err(), "{hostile}");
        }
        let told = with(wrong).unwrap_or_else(|told| told);
        assert!(told.contains("--") && told.contains(wrong), "{told}");
    }
}
