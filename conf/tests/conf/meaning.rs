//! What a right configuration means: defaults, inheritance and the model of each family.

use std::time::Duration;

use millstream_conf::model::{
    BalanceMethod, BuiltinContent, Configuration, CookieLife, ErrorPageStatus, Handler, HttpVersion,
    Instruction, KeepaliveSize, Level, ListenAddress, LocationMatch, LogTarget, Pass, PassTarget,
    PeerAddress, Queue, Redirect, ResolverId, Return, ReturnBody, Server, ServerName, Settings, StatusZone,
    StickyWay, Template, TimeTo, WorkerProcesses,
};
use millstream_conf::{Options, load, manual};

use crate::fixture::{model, settings};

fn with_http(directives: &str) -> Configuration {
    model(&format!("events {{ }} http {{ {directives} }}"))
}

fn server(configuration: &Configuration) -> &Server {
    &configuration.http.servers[0]
}

fn proxy(configuration: &Configuration, path: &str) -> Pass {
    settings(configuration, path).pass().cloned().expect("the location proxies")
}

#[test]
fn the_pool_named_default_says_how_many_threads_block() {
    let threads = |pools: &str| model(&format!("{pools} events {{}} http {{}}")).main.blocking_threads;
    assert_eq!(threads(""), None);
    assert_eq!(threads("thread_pool default threads=32 max_queue=65536;"), Some(32));
    assert_eq!(threads("thread_pool disk threads=8; thread_pool default threads=3;"), Some(3));
    assert_eq!(threads("thread_pool disk threads=8;"), None);
}

#[test]
fn defaults_are_nginxs() {
    let configuration = with_http("server { location / { proxy_pass http://127.0.0.1:8000; } }");
    let main = &configuration.main;
    assert_eq!(main.worker_processes, WorkerProcesses::Number(1));
    assert_eq!((main.worker_connections, main.daemon), (512, true));
    assert_eq!(main.pid, std::path::Path::new("/prefix/logs/nginx.pid"));
    assert_eq!(main.error_logs[0].target, LogTarget::File("/prefix/logs/error.log".into()));
    assert_eq!(main.error_logs[0].level, Level::Error);
    let server = server(&configuration);
    assert_eq!(server.settings.client_header.timeout, Duration::from_secs(60));
    assert_eq!(server.settings.client_header.large_buffers, (4, 8192));
    assert!(server.settings.client_header.merge_slashes && server.name.is_empty());
    assert!(matches!(&server.names[..], [ServerName::Exact(name)] if name.is_empty()));
    let settings = settings(&configuration, "/");
    assert_eq!((settings.keepalive.timeout.as_secs(), settings.keepalive.requests), (75, 1000));
    assert_eq!((settings.keepalive.time.as_secs(), settings.client_body.max_size), (3600, 1 << 20));
    assert_eq!(settings.files.root.path.as_literal(), Some("/prefix/html"));
    assert_eq!(settings.files.index[0].as_literal(), Some("index.html"));
    assert_eq!((&*settings.types.default, settings.types.by_extension.len()), ("text/plain", 3));
    assert_eq!(settings.logs.access[0].format.name, "combined");
    assert_eq!(configuration.http.log_files[0].target, LogTarget::File("/prefix/logs/access.log".into()));
    assert_eq!(settings.logs.error[0].target, LogTarget::File("/prefix/logs/error.log".into()));
    assert!(!settings.gzip.enabled && settings.gzip.min_length == 20);
}

#[test]
fn every_coding_has_settings_of_its_own_with_the_defaults_of_its_module() {
    let configuration = with_http(
        "brotli on; zstd on; gzip_types text/css;
         server { location / { brotli_window 16k; brotli_types text/css; zstd_comp_level 7; gzip_disable msie6 ^curl; } }",
    );
    let settings = settings(&configuration, "/");
    let (brotli, zstd) = (&settings.brotli, &settings.zstd);
    assert_eq!((brotli.enabled, brotli.level, brotli.min_length, brotli.window), (true, 6, 20, 14));
    assert_eq!((zstd.enabled, zstd.level, zstd.min_length), (true, 7, 20));
    assert_eq!(
        (&*brotli.types, zstd.types.is_empty(), settings.gzip.enabled),
        (&["text/css".to_owned()][..], true, false)
    );
    assert_eq!((settings.gzip.disable.len(), with_http("server { }").http.servers.len()), (2, 1));
}

#[test]
fn proxy_defaults_are_those_of_nginx_1_29_7() {
    let configuration = with_http("server { location / { proxy_pass http://127.0.0.1:8000; } }");
    let proxy = proxy(&configuration, "/");
    assert_eq!(proxy.http().expect("HTTP is spoken").http_version, HttpVersion::Http11);
    let fields: Vec<_> = proxy
        .http()
        .expect("HTTP is spoken")
        .set_headers
        .iter()
        .map(|field| (&*field.name, &*field.value.source))
        .collect();
    assert_eq!(fields, [("Host", "$proxy_host"), ("Connection", "")]);
    for hidden in [
        "Date",
        "Server",
        "X-Pad",
        "X-Accel-Expires",
        "X-Accel-Redirect",
        "X-Accel-Limit-Rate",
        "X-Accel-Buffering",
        "X-Accel-Charset",
    ] {
        assert!(proxy.exchange.hides(hidden.as_bytes()), "{hidden}");
    }
    assert!(!proxy.exchange.hides(b"Content-Type"));
    assert_eq!(
        (proxy.http().expect("HTTP is spoken").host.as_str(), proxy.http().expect("HTTP is spoken").port),
        ("127.0.0.1:8000", 8000)
    );
    assert_eq!(
        (proxy.exchange.buffer_size, proxy.exchange.buffers, proxy.exchange.max_temp_file_size),
        (4096, (8, 4096), 1 << 30)
    );
    assert!(
        proxy.exchange.next_upstream.error
            && proxy.exchange.next_upstream.timeout
            && !proxy.exchange.next_upstream.http_500
    );
    let [Redirect::Prefix { from, to }] = &proxy.http().expect("HTTP is spoken").redirects[..] else {
        panic!("{:?}", proxy.http().expect("HTTP is spoken").redirects)
    };
    assert_eq!((from.as_literal(), to.as_literal()), (Some("http://127.0.0.1:8000/"), Some("/")));
    let PassTarget::Upstream(id) = proxy.target else { panic!("a known target") };
    let group = configuration.http.upstream(id);
    assert!(group.implicit);
    assert_eq!((group.name.as_str(), group.keepalive.size), ("127.0.0.1:8000", KeepaliveSize::Fixed(32)));
}

#[test]
fn an_access_log_that_is_off_is_off_whatever_stands_beside_it() {
    let configuration = with_http(
        "access_log a.log; server {
             location /after { access_log off; access_log b.log; }
             location /before { access_log b.log; access_log off; }
             location /two { access_log b.log; access_log c.log; }
             location /none { }
         }",
    );
    let logs =
        ["/after", "/before", "/two", "/none"].map(|path| settings(&configuration, path).logs.access.len());
    assert_eq!(logs, [0, 0, 2, 1]);
}

#[test]
fn the_two_times_of_keepalive_timeout_are_inherited_apart() {
    let configuration = with_http(
        "keepalive_timeout 75s 60s; server {
             location /one { keepalive_timeout 10s; }
             location /both { keepalive_timeout 10s 0; }
             location /none { }
         }",
    );
    let times = ["/one", "/both", "/none"].map(|path| {
        let settings = settings(&configuration, path);
        (settings.keepalive.timeout.as_secs(), settings.keepalive.header.map(|header| header.as_secs()))
    });
    assert_eq!(times, [(10, Some(60)), (10, None), (75, Some(60))]);
}

#[test]
fn lists_of_a_level_replace_those_above() {
    let configuration = with_http(
        "add_header A 1; proxy_set_header X-A 1; error_page 500 /five; access_log off; gzip on;
         server {
             location /kept { proxy_pass http://127.0.0.1:8000; }
             location /own { add_header B 2 always; proxy_set_header host b; error_page 404 =200 @x; access_log b.log; gzip off;
                 proxy_pass http://127.0.0.1:8000;
                 location /own/nested { return 204; } }
             location @x { return 404; }
         }",
    );
    let kept = settings(&configuration, "/kept");
    assert_eq!((kept.headers.add.len(), kept.error_pages.len(), kept.logs.access.len()), (1, 1, 0));
    assert!(kept.gzip.enabled);
    let own = settings(&configuration, "/own");
    assert_eq!(
        own.headers.add.iter().map(|field| (&*field.name, field.always)).collect::<Vec<_>>(),
        [("B", true)]
    );
    assert_eq!((own.error_pages[0].status, own.error_pages[0].answer), (404, ErrorPageStatus::Is(200)));
    assert_eq!((own.logs.access.len(), own.gzip.enabled), (1, false));
    let names: Vec<_> = proxy(&configuration, "/own")
        .http()
        .expect("HTTP is spoken")
        .set_headers
        .iter()
        .map(|field| field.name.clone())
        .collect();
    assert_eq!(names, ["host", "Connection"], "the default Host is not added beside the file's own");
    let (_, outer) = server(&configuration).locations.prefixes[1];
    let nested = &configuration.http.location(outer).nested.prefixes[0];
    let nested = &configuration.http.location(nested.1).settings;
    assert!(nested.pass().is_none(), "proxy_pass is not inherited");
    assert_eq!(nested.headers.add[0].name, "B");
}

#[test]
fn the_names_of_a_server_and_its_addresses_are_told_apart() {
    let configuration = with_http(
        "server { listen 8080; server_name Example.com *.a.b www.* .c.d ~^(?<who>x)$; }
         server { listen 127.0.0.1:8080 default_server; listen *:8080 default_server; server_name b; }",
    );
    let names = &server(&configuration).names;
    assert!(matches!(&names[0], ServerName::Exact(name) if name == "example.com"));
    assert!(matches!(&names[1], ServerName::LeadingWildcard(name) if name == ".a.b"));
    assert!(matches!(&names[2], ServerName::TrailingWildcard(name) if name == "www."));
    assert!(matches!(&names[3], ServerName::Exact(name) if name == "c.d"));
    assert!(matches!(&names[4], ServerName::LeadingWildcard(name) if name == ".c.d"));
    assert!(matches!(&names[5], ServerName::Regex(expression) if expression.ignore_case));
    assert_eq!(server(&configuration).name, "example.com");
    let [any, local] = &configuration.http.listeners[..] else { panic!("two addresses") };
    assert_eq!(any.address, ListenAddress::Tcp("0.0.0.0:8080".parse().expect("an address")));
    assert_eq!((any.servers.len(), any.default_server.0), (2, 1));
    assert_eq!((local.servers.len(), local.default_server.0), (1, 1));
}

#[test]
fn proxy_pass_takes_names_addresses_sockets_uris_and_variables() {
    let configuration = with_http(
        "upstream api { server a.example weight=3; server [::1]; keepalive auto; }
         server {
             location /name/ { proxy_pass http://api/v1/; }
             location /socket/ { proxy_pass http://unix:/run/x.sock:/y/; }
             location /host/ { proxy_pass http://www.example; }
             location /variable/ { proxy_pass http://$http_host; }
         }",
    );
    let name = proxy(&configuration, "/name/");
    assert_eq!(
        (
            name.http().expect("HTTP is spoken").host.as_str(),
            name.http().expect("HTTP is spoken").port,
            name.http().expect("HTTP is spoken").uri.as_deref()
        ),
        ("api", 80, Some("/v1/"))
    );
    let [Redirect::Prefix { from, to }] = &name.http().expect("HTTP is spoken").redirects[..] else {
        panic!("one redirect")
    };
    assert_eq!((from.as_literal(), to.as_literal()), (Some("http://api/v1/"), Some("/name/")));
    let group = &configuration.http.upstreams[0];
    assert_eq!(group.keepalive.size, KeepaliveSize::Auto);
    assert!(
        matches!(&group.servers[0].address, PeerAddress::Name(name) if name.host == "a.example" && name.port == 80)
    );
    assert_eq!(group.servers[1].address, PeerAddress::Tcp("[::1]:80".parse().expect("an address")));
    let socket = proxy(&configuration, "/socket/");
    assert_eq!(
        (
            socket.http().expect("HTTP is spoken").host.as_str(),
            socket.http().expect("HTTP is spoken").uri.as_deref()
        ),
        ("localhost", Some("/y/"))
    );
    assert_eq!(configuration.http.upstreams[1].servers[0].address, PeerAddress::Unix("/run/x.sock".into()));
    assert_eq!(proxy(&configuration, "/host/").http().expect("HTTP is spoken").host, "www.example");
    let variable = proxy(&configuration, "/variable/");
    assert!(
        matches!(variable.target, PassTarget::Variables(_))
            && variable.http().expect("HTTP is spoken").redirects.is_empty()
    );
}

#[test]
fn of_content_without_settings_the_last_written_counts_and_an_if_has_it_too() {
    let configuration = with_http(
        "server { stub_status; location /gif { stub_status; empty_gif; if ($arg_a) { } } location /files { }
         location /status { empty_gif; stub_status on; } location /pass { empty_gif; proxy_pass http://127.0.0.1; } }",
    );
    let content = |path| settings(&configuration, path).content.clone();
    let is = |path, wanted| matches!(content(path), Handler::Builtin(found) if found == wanted);
    assert!(is("/gif", BuiltinContent::EmptyGif) && is("/status", BuiltinContent::StubStatus));
    assert!(matches!((content("/files"), content("/pass")), (Handler::Files, Handler::Pass(_))));
    let http = &configuration.http;
    let faces = http.locations.iter().flat_map(|location| &location.faces);
    let mut contents = faces.map(|face| &http.location(*face).settings.content);
    assert!(matches!(contents.next(), Some(Handler::Builtin(BuiltinContent::EmptyGif))));
    assert!(matches!(http.location(server(&configuration).own).settings.content, Handler::Builtin(_)));
}

fn first_return(settings: &Settings) -> &Return {
    let Some(Instruction::Return(rule)) = settings.rewrite.script.first() else { panic!("it returns") };
    rule
}

#[test]
fn an_upstream_has_one_method_and_what_it_goes_by() {
    let timed = |to, inflight| BalanceMethod::LeastTime { to, inflight };
    let cases = [
        ("", BalanceMethod::RoundRobin, None),
        ("least_conn;", BalanceMethod::LeastConn, None),
        ("ip_hash;", BalanceMethod::IpHash, Some("$binary_remote_addr")),
        ("hash $uri$is_args;", BalanceMethod::Hash, Some("$uri$is_args")),
        ("hash $arg_a consistent;", BalanceMethod::ConsistentHash, Some("$arg_a")),
        ("random;", BalanceMethod::Random, None),
        ("random two;", BalanceMethod::RandomTwo, None),
        ("random two least_conn;", BalanceMethod::RandomTwo, None),
        ("random two least_time=last_byte;", BalanceMethod::RandomTwoLeastTime(TimeTo::LastByte), None),
        ("least_time header;", timed(TimeTo::Header, false), None),
        ("least_time last_byte inflight;", timed(TimeTo::LastByte, true), None),
        ("ip_hash; least_conn;", BalanceMethod::LeastConn, None),
    ];
    for (text, method, key) in cases {
        let configuration = with_http(&format!("upstream api {{ {text} server a.example; }}"));
        let balance = &configuration.http.upstreams[0].balance;
        assert_eq!(balance.method, method, "{text}");
        assert_eq!(balance.key.as_ref().map(|key| &*key.source), key, "{text}");
    }
}

#[test]
fn a_server_may_drain_have_a_route_and_start_slowly() {
    let configuration = with_http(
        "upstream api { server a.example route=a slow_start=30s; server b.example drain; server c.example drain down; }",
    );
    let servers = &configuration.http.upstreams[0].servers;
    assert_eq!((servers[0].route.as_deref(), servers[0].slow_start), (Some("a"), Duration::from_secs(30)));
    let out: Vec<_> = servers.iter().map(|server| (server.drain, server.down)).collect();
    assert_eq!(out, [(false, false), (true, false), (false, true)]);
}

#[test]
fn sessions_are_kept_in_three_ways() {
    let sticky = |text: &str| {
        let configuration = with_http(&format!("upstream api {{ server a.example; sticky {text}; }}"));
        configuration.http.upstreams[0].sticky.clone().expect("it is written")
    };
    let names = |all: &[Template]| all.iter().map(|one| one.source.to_string()).collect::<Vec<_>>();
    let cookie = sticky("cookie at expires=max path=/a domain=.$host httponly samesite=$arg_s");
    assert_eq!(names(&cookie.lookup), ["$cookie_at"]);
    let StickyWay::Cookie(at) = cookie.way else { panic!("a cookie") };
    assert_eq!((at.name.as_str(), at.expires), ("at", Some(CookieLife::Max)));
    assert_eq!((at.http_only, at.secure, at.path.as_deref()), (true, false, Some("/a")));
    assert_eq!(at.domain.expect("one").source.as_ref(), ".$host");
    let route = sticky("route $cookie_a $arg_b");
    assert_eq!(names(&route.lookup), ["$cookie_a", "$arg_b"]);
    assert!(matches!(route.way, StickyWay::Route));
    let learned = sticky("learn create=$upstream_cookie_a lookup=$cookie_a lookup=$arg_a zone=z:1m header");
    assert_eq!(names(&learned.lookup), ["$cookie_a", "$arg_a"]);
    let StickyWay::Learn(learn) = learned.way else { panic!("it learns") };
    assert_eq!(names(&learn.create), ["$upstream_cookie_a"]);
    assert_eq!((learn.zone.as_str(), learn.most, learn.from_header), ("z", 8192, true));
    assert_eq!(learn.timeout, Duration::from_secs(600));
}

#[test]
fn a_queue_has_a_length_and_a_time() {
    let queue = |text: &str| {
        with_http(&format!("upstream api {{ least_conn; {text} server a.example; }}")).http.upstreams[0].queue
    };
    assert_eq!(queue(""), None);
    assert_eq!(queue("queue 100;"), Some(Queue { most: 100, timeout: Duration::from_secs(60) }));
    assert_eq!(queue("queue 1 timeout=5s;"), Some(Queue { most: 1, timeout: Duration::from_secs(5) }));
}

#[test]
fn a_resolver_holds_below_where_it_stands_and_for_upstreams_above_it() {
    let configuration = with_http(
        "upstream a { server a.example resolve; server 127.0.0.1 resolve; }
         upstream b { server b.example resolve; resolver ns.example:5353; resolver_timeout 7s; }
         resolver 127.0.0.11 [::1]:5300 valid=10s ipv6=off status_zone=x; resolver_timeout 3s;
         server {
             location /above/ { proxy_pass http://$http_host; }
             location /own/ { resolver 127.0.0.53; proxy_pass http://$http_host; }
         }",
    );
    let http = &configuration.http;
    let of = |id: Option<ResolverId>| &http.resolvers[id.expect("there is one").0 as usize];
    let tcp = |text: &str| PeerAddress::Tcp(text.parse().expect("an address"));
    let above = &settings(&configuration, "/above/").resolver;
    assert_eq!(of(above.servers).servers, [tcp("127.0.0.11:53"), tcp("[::1]:5300")]);
    assert_eq!(of(above.servers).valid, Some(Duration::from_secs(10)));
    assert!(of(above.servers).ipv4 && !of(above.servers).ipv6);
    assert_eq!(above.timeout, Duration::from_secs(3));
    assert_eq!(of(settings(&configuration, "/own/").resolver.servers).servers, [tcp("127.0.0.53:53")]);
    let [a, b] = &http.upstreams[..] else { panic!("two") };
    assert_eq!(a.resolver, above.servers);
    assert_eq!(
        (a.servers[0].resolve, a.servers[1].resolve),
        (true, false),
        "an address has nothing to resolve"
    );
    assert!(matches!(&of(b.resolver).servers[..], [PeerAddress::Name(name)] if name.port == 5353));
    assert_eq!(b.resolver_timeout, Some(Duration::from_secs(7)));
}

#[test]
fn return_and_types_have_their_forms() {
    let configuration = with_http(
        "types { text/css css; application/json json map; } default_type a/b;
         server { return 301 https://$host$request_uri; return 200 late;
             location /text { return 200 \"hi $uri\"; } location /url { return https://x.example/; } location /code { return 444; }
             location /nowhere { return 301; } location /empty { return 404 \"\"; } location /300 { return 300; } location /204 { return 204; } }",
    );
    let own = &configuration.http.location(server(&configuration).own);
    assert!(matches!(own.matches, LocationMatch::Server));
    let first = first_return(&own.settings);
    assert!(first.status == 301 && matches!(first.body, ReturnBody::Url(_)));
    let of = |path| first_return(settings(&configuration, path)).clone();
    assert!(matches!(of("/text"), r if r.status == 200 && matches!(r.body, ReturnBody::Text(_))));
    assert!(matches!(of("/url"), r if r.status == 302 && matches!(r.body, ReturnBody::Url(_))));
    assert!(matches!(of("/code"), r if r.status == 444 && matches!(r.body, ReturnBody::None)));
    assert!(matches!(of("/nowhere").body, ReturnBody::Url(url) if url.as_literal() == Some("")));
    assert!(matches!(of("/empty").body, ReturnBody::None) && matches!(of("/204").body, ReturnBody::None));
    assert!(matches!(of("/300").body, ReturnBody::Text(text) if text.as_literal() == Some("")));
    assert_eq!(settings(&configuration, "/text").types.by_extension["map"].as_ref(), "application/json");
    assert_eq!(&*settings(&configuration, "/text").types.default, "a/b");
}

#[test]
fn a_cache_zone_can_live_in_memory_alone() {
    let configuration = with_http(
        "proxy_cache_path memory keys_zone=hot:10m memory=256m;
         server { proxy_cache hot; proxy_cache_valid 5m; proxy_cache_valid any 1s; status_zone api;
             location / { proxy_pass http://127.0.0.1:1; status_zone root; proxy_hide_header X-A; proxy_pass_header Server; } }",
    );
    let zone = &configuration.http.cache_zones[0];
    assert_eq!((zone.path.clone(), zone.memory), (None, 256 << 20));
    let proxy = proxy(&configuration, "/");
    let cache = proxy.cache.as_ref().expect("inherited from the server");
    assert_eq!(&*cache.key.source, "$scheme$proxy_host$request_uri");
    assert_eq!((cache.valid.len(), cache.key_names_credential), (4, false));
    assert!(proxy.exchange.hides(b"X-A") && !proxy.exchange.hides(b"Server"));
    assert_eq!(server(&configuration).status_zone, StatusZone::Named("api".into()));
    assert_eq!(settings(&configuration, "/").status_zone, StatusZone::Named("root".into()));
}

#[test]
fn the_command_line_adds_globals_and_an_error_log() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("m.conf"), "events { }").expect("written");
    let loaded = load(&Options {
        main_file: "m.conf".into(),
        prefix: directory.path().into(),
        globals: Some("daemon off; worker_processes auto".into()),
        error_log: Some("stderr".into()),
        lenient: false,
    });
    let configuration = loaded.configuration.expect("no errors");
    assert!(!configuration.main.daemon);
    assert_eq!(configuration.main.worker_processes, WorkerProcesses::Auto);
    assert_eq!(configuration.main.error_logs[0].target, LogTarget::Stderr);
}

#[test]
fn the_manual_has_every_directive_and_variable() {
    let page = manual::directives_markdown();
    for row in millstream_conf::features::rows() {
        assert!(page.contains(row.name), "{}", row.name);
        assert!(row.doc.ends_with(['.', '…']) && !row.doc.is_empty(), "{}: {}", row.name, row.doc);
    }
    assert!(manual::variables_markdown().contains("| `$upstream_cache_status` |"));
}
