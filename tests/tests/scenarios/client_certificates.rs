//! Certificates of clients: who is let in, what is told of them, and what the cache shares with them. The clients are locations
//! that pass on over TLS.

use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;

/// `known` and `stranger` are two clients' certificates; the servers trust only the first.
fn prefix() -> Prefix {
    let prefix = Prefix::with_certificate("api.example");
    for name in ["known", "stranger"] {
        let other = Prefix::with_certificate(&format!("{name}.example"));
        for (kind, file) in [("pem", "server.pem"), ("key", "server.key")] {
            let text = std::fs::read_to_string(other.join(file)).expect("a file");
            prefix.write(&format!("{name}.{kind}"), &text);
        }
    }
    prefix
}

fn start(servers: &str) -> Server {
    let clients: String = ["none", "known", "stranger"]
        .iter()
        .map(|who| {
            let shown = match *who {
                "none" => String::new(),
                who => format!(
                    "proxy_ssl_certificate @DIR@/{who}.pem; proxy_ssl_certificate_key @DIR@/{who}.key;"
                ),
            };
            format!(
                "location /{who}/ {{ proxy_pass https://127.0.0.1:@TLSPORT@/; proxy_ssl_server_name on;
                     proxy_ssl_name $arg_name; proxy_set_header Host $arg_host; {shown} }}"
            )
        })
        .collect();
    let site = format!(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; worker_processes 1; events {{}}
        http {{
            access_log off;
            proxy_cache_path @DIR@/cache keys_zone=zone:1m;
            ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
            ssl_client_certificate @DIR@/known.pem;
            server {{ listen 127.0.0.1:@PORT@; {clients} }}
            {servers}
        }}"
    );
    Server::start_in(prefix(), &site, &[("TLSPORT", &ports::free().to_string())])
}

const TOLD: &str = "return 200 \"$ssl_client_verify [$ssl_client_s_dn]\";";

#[test]
fn a_certificate_is_asked_for_and_judged_as_the_server_has_it() {
    let server = start(&format!(
        "server {{ listen 127.0.0.1:@TLSPORT@ ssl; server_name on.example; ssl_verify_client on; {TOLD} }}
         server {{ listen 127.0.0.1:@TLSPORT@ ssl; server_name optional.example; ssl_verify_client optional; {TOLD} }}
         server {{ listen 127.0.0.1:@TLSPORT@ ssl; server_name any.example; ssl_verify_client optional_no_ca; {TOLD} }}
         server {{ listen 127.0.0.1:@TLSPORT@ ssl; server_name off.example; {TOLD} }}
         server {{ listen 127.0.0.1:@TLSPORT@ ssl; server_name pages.example; ssl_verify_client on;
             error_page 495 496 =403 /refused; location / {{ {TOLD} }} location /refused {{ return 200 \"refused $status\"; }} }}"
    ));
    for (who, name, host, status, told) in [
        ("none", "on.example", "on.example", 400, "No required SSL certificate was sent"),
        ("known", "on.example", "on.example", 200, "SUCCESS [CN=known.example]"),
        // Resumed sessions are judged anew.
        ("known", "on.example", "on.example", 200, "SUCCESS [CN=known.example]"),
        ("stranger", "on.example", "on.example", 400, "The SSL certificate error"),
        ("none", "optional.example", "optional.example", 200, "NONE []"),
        ("known", "optional.example", "optional.example", 200, "SUCCESS"),
        ("stranger", "optional.example", "optional.example", 400, "The SSL certificate error"),
        ("none", "any.example", "any.example", 200, "NONE []"),
        (
            "stranger",
            "any.example",
            "any.example",
            200,
            "FAILED:self-signed certificate [CN=stranger.example]",
        ),
        ("known", "off.example", "off.example", 200, "NONE []"),
        ("none", "pages.example", "pages.example", 403, "refused"),
        ("stranger", "pages.example", "pages.example", 403, "refused"),
        // Another server than the one that was negotiated.
        ("known", "optional.example", "on.example", 421, "Misdirected"),
        ("known", "on.example", "off.example", 200, "NONE []"),
        ("none", "off.example", "on.example", 421, "Misdirected"),
        ("none", "nobody.example", "on.example", 400, "No required SSL certificate was sent"),
        ("stranger", "nobody.example", "any.example", 200, "FAILED:self-signed certificate"),
    ] {
        let answer = server.get(&format!("/{who}/?name={name}&host={host}"));
        assert_eq!(answer.status, status, "{who} {name} {host}: {}", answer.text());
        assert!(answer.text().contains(told), "{who} {name} {host}: {}", answer.text());
    }
}

#[test]
fn what_a_certificate_opens_is_shared_only_where_the_configuration_leaves_credentials_to_nginx() {
    let origin = millstream_tests::origin::Origin::start(|_| {
        millstream_tests::origin::answer(200, &[("Cache-Control", "max-age=60")], b"answer")
    });
    let cached = |name: &str, more: &str| {
        format!(
            "server {{ listen 127.0.0.1:@TLSPORT@ ssl; server_name {name}; ssl_verify_client optional;
                 location / {{ proxy_pass http://{}; proxy_cache zone; proxy_cache_key $host{more};
                     add_header X-Cache $upstream_cache_status; }} }}",
            origin.address()
        )
    };
    let servers = [
        cached("nginx.example", ""),
        cached("public.example", "; proxy_cache_credentials public"),
        cached("keyed.example", "$ssl_client_s_dn; proxy_cache_credentials public"),
    ];
    let server = start(&servers.concat());
    for (who, name, expected) in [
        ("none", "nginx.example", "MISS"),
        ("known", "nginx.example", "HIT"),
        ("known", "public.example", "MISS"),
        ("known", "public.example", "MISS"),
        ("none", "public.example", "MISS"),
        ("none", "public.example", "HIT"),
        ("known", "public.example", "MISS"),
        ("none", "keyed.example", "MISS"),
        ("known", "keyed.example", "MISS"),
        ("known", "keyed.example", "HIT"),
    ] {
        let answer = server.get(&format!("/{who}/?name={name}&host={name}"));
        let told = answer.field("x-cache");
        let is_shared = told == Some("HIT");
        assert_eq!(is_shared, expected == "HIT", "{who} {name}: {told:?}");
    }
}
