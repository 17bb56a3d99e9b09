//! Commands of OpenSSL (`ssl_conf_command`, `proxy_ssl_conf_command` …) as a handshake shows them. The clients are locations that pass on over TLS.

use millstream_tests::ports;
use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::wait;

/// `server` and `other` are certificates of `api.example` and `other.example`, with RSA keys.
fn prefix() -> Prefix {
    let prefix = Prefix::with_certificate("api.example");
    let other = Prefix::with_certificate("other.example");
    for (kind, file) in [("pem", "server.pem"), ("key", "server.key")] {
        let text = std::fs::read_to_string(other.join(file)).expect("a file");
        prefix.write(&format!("other.{kind}"), &text);
    }
    prefix
}

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; worker_processes 1; events {}
    http {
        access_log off; proxy_ssl_session_reuse off;
        ssl_verify_client optional_no_ca; add_header X-Shown $ssl_client_s_dn always;
        ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
        server { listen 127.0.0.1:@PORT@; proxy_ssl_server_name on; proxy_ssl_name $arg_name; proxy_set_header Host $arg_name;
            grpc_set_header Host asking.example; uwsgi_ssl_session_reuse off;
            location /any { proxy_pass https://127.0.0.1:@TLSPORT@; }
            location /old { proxy_pass https://127.0.0.1:@TLSPORT@; proxy_ssl_conf_command MaxProtocol TLSv1.2;
                @OLD@ }
            location /new { proxy_pass https://127.0.0.1:@TLSPORT@; proxy_ssl_conf_command Protocol -TLSv1.2;
                proxy_ssl_conf_command Groups prime256v1; @NEW@ }
            location /other { proxy_pass https://127.0.0.1:@TLSPORT@; proxy_ssl_verify on;
                proxy_ssl_trusted_certificate @DIR@/other.pem; }
            location /shown { proxy_pass https://127.0.0.1:@TLSPORT@; @SHOWN@ }
            location /grpc { grpc_pass grpcs://127.0.0.1:@TLSPORT@; grpc_ssl_server_name on; grpc_ssl_name asking.example; @GRPC@ }
            location /uwsgi { uwsgi_pass suwsgi://127.0.0.1:@TLSPORT@; uwsgi_ssl_server_name on; uwsgi_ssl_name asking.example; @UWSGI@ }
        }
        server { listen 127.0.0.1:@TLSPORT@ ssl; server_name _; @TOLD@ }
        server { listen 127.0.0.1:@TLSPORT@ ssl; server_name min.example; ssl_conf_command MinProtocol TLSv1.3; @TOLD@ }
        server { listen 127.0.0.1:@TLSPORT@ ssl; server_name less.example; ssl_conf_command Protocol -TLSv1.3; @TOLD@ }
        server { listen 127.0.0.1:@TLSPORT@ ssl; server_name suites.example; ssl_conf_command Ciphersuites TLS_CHACHA20_POLY1305_SHA256;
            ssl_conf_command CipherString ECDHE-RSA-AES128-GCM-SHA256; ssl_conf_command Curves secp384r1; @TOLD@ }
        server { listen 127.0.0.1:@TLSPORT@ ssl; server_name server.example; ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305;
            ssl_conf_command Options ServerPreference; @TOLD@ }
        server { listen 127.0.0.1:@TLSPORT@ ssl; server_name chacha.example; ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305;
            ssl_conf_command Options ServerPreference,PrioritizeChaCha; @TOLD@ }
        server { listen 127.0.0.1:@TLSPORT@ ssl; server_name other.example; ssl_conf_command Certificate @DIR@/other.pem;
            ssl_conf_command PrivateKey @DIR@/other.key; @TOLD@ }
        server { listen 127.0.0.1:@TLSPORT@ ssl; server_name asking.example; http2 on; @TOLD@ }
    }";

const TOLD: &str = "return 200 \"$ssl_protocol $ssl_cipher $ssl_curve\";";

fn start() -> Server {
    let shown = |prefix: &str| {
        format!(
            "{prefix}_ssl_certificate @DIR@/server.pem; {prefix}_ssl_certificate_key @DIR@/server.key;
             {prefix}_ssl_conf_command Certificate @DIR@/other.pem; {prefix}_ssl_conf_command PrivateKey @DIR@/other.key;"
        )
    };
    let site = SITE
        .replace("@TOLD@", TOLD)
        .replace("@SHOWN@", &shown("proxy"))
        .replace("@GRPC@", &shown("grpc"))
        .replace("@UWSGI@", &shown("uwsgi"))
        .replace("@OLD@", "proxy_ssl_conf_command CipherString CHACHA20:AESGCM;")
        .replace("@NEW@", "proxy_ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;");
    Server::start_in(prefix(), &site, &[("TLSPORT", &ports::free().to_string())])
}

#[test]
fn a_handshake_is_as_the_commands_of_both_sides_leave_it() {
    let server = start();
    for (path, told) in [
        ("/any?name=_", "TLSv1.3 TLS_AES_256_GCM_SHA384 X25519"),
        ("/any?name=min.example", "TLSv1.3 TLS_AES_256_GCM_SHA384 X25519"),
        ("/old?name=min.example", ""),
        ("/new?name=min.example", "TLSv1.3 TLS_AES_128_GCM_SHA256 prime256v1"),
        ("/any?name=less.example", "TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384 X25519"),
        ("/new?name=less.example", ""),
        ("/any?name=suites.example", "TLSv1.3 TLS_CHACHA20_POLY1305_SHA256 secp384r1"),
        ("/old?name=suites.example", "TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256 secp384r1"),
        ("/new?name=suites.example", ""),
        // The client has ChaCha20 first.
        ("/old?name=server.example", "TLSv1.2 ECDHE-RSA-AES256-GCM-SHA384 X25519"),
        ("/old?name=chacha.example", "TLSv1.2 ECDHE-RSA-CHACHA20-POLY1305 X25519"),
        ("/any?name=chacha.example", "TLSv1.3 TLS_AES_256_GCM_SHA384 X25519"),
        ("/other?name=other.example", "TLSv1.3 TLS_AES_256_GCM_SHA384 X25519"),
        ("/other?name=less.example", ""),
    ] {
        let got = server.get(path);
        let expected = if told.is_empty() { (502, None) } else { (200, Some(told.to_owned())) };
        let text = (got.status == 200).then(|| got.text());
        assert_eq!((got.status, text), expected, "{path}");
    }
}

/// The application's stand-in speaks HTTP: it refuses its input and may be gone before it is read.
fn is_shown_by_uwsgi(server: &Server, path: &str) {
    wait::until("the application is shown the certificate", || {
        server.get(path).field("x-shown") == Some("CN=other.example")
    });
}

#[test]
fn a_certificate_of_a_command_is_the_one_that_an_upstream_is_shown() {
    let server = start();
    for path in ["/shown?name=asking.example", "/grpc"] {
        assert_eq!(server.get(path).field("x-shown"), Some("CN=other.example"), "{path}");
    }
    is_shown_by_uwsgi(&server, "/uwsgi");
}

const OWN: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; worker_processes 1; events {}
    http {
        access_log off;
        ssl_certificate @DIR@/server.pem; ssl_certificate_key @DIR@/server.key;
        map $arg_text $pem { other 'data:@OTHERPEM@'; } map $arg_text $key { other 'data:@OTHERKEY@'; }
        server { listen 127.0.0.1:@PORT@;
            proxy_ssl_certificate @DIR@/$arg_who.pem; proxy_ssl_certificate_key @DIR@/$arg_who.key;
            uwsgi_ssl_certificate @DIR@/$arg_who.pem; uwsgi_ssl_certificate_key @DIR@/$arg_who.key;
            grpc_ssl_certificate @DIR@/$arg_who.pem; grpc_ssl_certificate_key @DIR@/$arg_who.key;
            location /proxy { proxy_pass https://kept; }
            location /cached { proxy_pass https://127.0.0.1:@TLSPORT@; proxy_ssl_certificate_cache max=8 valid=1h; }
            location /text { proxy_pass https://127.0.0.1:@TLSPORT@; proxy_ssl_certificate $pem; proxy_ssl_certificate_key $key; }
            location /fixed { proxy_pass https://127.0.0.1:@TLSPORT@; proxy_ssl_certificate 'data:@OTHERPEM@';
                proxy_ssl_certificate_key 'data:@OTHERKEY@'; }
            location /none { proxy_pass https://127.0.0.1:@TLSPORT@; proxy_ssl_certificate ''; proxy_ssl_certificate_key ''; }
            location /uwsgi { uwsgi_pass suwsgi://$arg_whom:@TLSPORT@; }
            location /grpc { grpc_pass grpcs://127.0.0.1:@TLSPORT@; }
        }
        upstream kept { server 127.0.0.1:@TLSPORT@; }
        server { listen 127.0.0.1:@TLSPORT@ ssl; http2 on; ssl_verify_client optional_no_ca; add_header X-Shown $ssl_client_s_dn always;
            return 200 $connection_requests; }
    }";

#[test]
fn a_certificate_whose_name_has_variables_is_that_of_each_request() {
    let prefix = prefix();
    let text = |name: &str| std::fs::read_to_string(prefix.join(name)).expect("a file");
    let site = OWN.replace("@OTHERPEM@", &text("other.pem")).replace("@OTHERKEY@", &text("other.key"));
    let server = Server::start_in(prefix, &site, &[("TLSPORT", &ports::free().to_string())]);
    let (api, other) = (Some("CN=api.example"), Some("CN=other.example"));
    for (path, status, shown) in [
        ("/proxy?who=server", 200, api),
        ("/proxy?who=other", 200, other),
        ("/proxy?who=nobody", 500, None),
        ("/cached?who=other", 200, other),
        ("/text?text=other", 200, other),
        ("/text", 200, None),
        ("/fixed", 200, other),
        ("/none?who=other", 200, None),
        ("/grpc?who=server", 200, api),
        ("/grpc?who=other", 200, other),
        ("/grpc?who=nobody", 500, None),
    ] {
        let got = server.get(path);
        assert_eq!((got.status, got.field("x-shown")), (status, shown), "{path}");
    }
    is_shown_by_uwsgi(&server, "/uwsgi?who=other&whom=127.0.0.1");
    // A kept connection is used again for the same certificate and for no other.
    let (first, again) = (server.get("/proxy?who=other"), server.get("/proxy?who=server"));
    assert_eq!((first.text().as_str(), again.text().as_str()), ("2", "2"));
    assert_eq!((first.field("x-shown"), again.field("x-shown")), (other, api));
    // Where it is kept its files are not looked at.
    for file in ["other.pem", "other.key"] {
        std::fs::remove_file(server.prefix().join(file)).expect("removed");
    }
    assert_eq!(server.get("/cached?who=other").status, 200);
    assert_eq!(server.get("/grpc?who=server").status, 200);
}
