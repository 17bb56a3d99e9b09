//! What authorities say of certificates: a responder is asked, or a file has it, made by OpenSSL, whose client looks at what comes with a handshake.

use std::process::{Command, Stdio};

use millstream_tests::ports;
use millstream_tests::prefix::{Prefix, fill};
use millstream_tests::responder::{WEEK, Word};
use millstream_tests::server::{Server, command};
use millstream_tests::signed::SigningAuthority;
use millstream_tests::wait;
use rustix::process::Signal;

fn shake(port: u16, kind: &str) -> String {
    let output = Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-servername", "localhost", "-status"])
        .args(["-tls1_2", "-cipher", if kind == "rsa" { "aRSA" } else { "aECDSA" }])
        .stdin(Stdio::null())
        .output()
        .expect("openssl is installed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn is_good(said: &str) -> bool {
    said.contains("OCSP Response Status: successful") && said.contains("Cert Status: good")
}

fn has_none(said: &str) -> bool {
    said.contains("OCSP response: no response sent")
}

const SITE: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log notice; events {}
    http { access_log off; server { listen 127.0.0.1:@PORT@ ssl; server_name localhost; @STAPLING@
        ssl_certificate @DIR@/one.pem; ssl_certificate_key @DIR@/one.key;
        ssl_certificate @DIR@/two.pem; ssl_certificate_key @DIR@/two.key; return 200 hello; } }";

fn prepared() -> (Prefix, SigningAuthority) {
    let prefix = Prefix::new();
    let mut authority = SigningAuthority::new(prefix.path());
    authority.issue("one", "ec");
    authority.issue("two", "rsa");
    (prefix, authority)
}

#[test]
fn what_the_responder_says_of_each_certificate_is_stapled_and_outlives_a_reload_and_the_responder() {
    let (prefix, authority) = prepared();
    let on = [("STAPLING", "ssl_stapling on;")];
    // Nobody answers at first: handshakes are made all the same.
    let server = Server::start_in(prefix, SITE, &on);
    server.says("ssl_stapling: ");
    assert!(has_none(&shake(server.port(), "ec")));
    authority.responder.say(Some(Word::Good));
    // A failure is tried again after minutes; another configuration asks at once only about what is new in it.
    server.rewrite(SITE, &[("STAPLING", "")]);
    server.signal(Signal::HUP);
    server.says("configuration 2 is in force");
    server.rewrite(SITE, &on);
    server.signal(Signal::HUP);
    for kind in ["ec", "rsa"] {
        wait::until("what the responder says is stapled", || is_good(&shake(server.port(), kind)));
    }
    authority.responder.say(None);
    server.signal(Signal::HUP);
    server.says("configuration 4 is in force");
    for kind in ["ec", "rsa"] {
        assert!(is_good(&shake(server.port(), kind)));
    }
    server.rewrite(SITE, &[("STAPLING", "")]);
    server.signal(Signal::HUP);
    server.says("configuration 5 is in force");
    wait::until("nothing is stapled any more", || has_none(&shake(server.port(), "ec")));
}

#[test]
fn a_certificate_that_the_responder_calls_revoked_has_nothing_stapled_and_is_told() {
    let (prefix, authority) = prepared();
    authority.responder.say(Some(Word::Revoked));
    let server = Server::start_in(prefix, SITE, &[("STAPLING", "ssl_stapling on;")]);
    server.says("the certificate status is \"revoked\"; retrying in 300 s, responder http://127.0.0.1:");
    assert!(has_none(&shake(server.port(), "ec")));
}

#[test]
fn a_file_is_stapled_to_the_certificate_that_it_speaks_of_and_read_again() {
    let (prefix, authority) = prepared();
    let file = prefix.join("said.der");
    let say = |name: &str| {
        let said = authority.respond(&authority.question(name), Word::Good, &WEEK);
        std::fs::write(&file, said).expect("own directory is writable");
    };
    say("one");
    let stapling = format!("ssl_stapling on; ssl_stapling_file {};", file.display());
    let server = Server::start_in(prefix, SITE, &[("STAPLING", &stapling)]);
    assert!(is_good(&shake(server.port(), "ec")));
    assert!(has_none(&shake(server.port(), "rsa")));
    say("two");
    wait::until("the file is read again", || is_good(&shake(server.port(), "rsa")));
}

#[test]
fn what_cannot_be_asked_about_is_told_once() {
    let prefix = Prefix::with_certificate("localhost");
    let site = SITE.replace("ssl_certificate @DIR@/two.pem; ssl_certificate_key @DIR@/two.key;", "");
    let site = site.replace("one.", "server.");
    let server = Server::start_in(prefix, &site, &[("STAPLING", "ssl_stapling on;")]);
    // It is its own authority, and names nobody who is to be asked.
    server.says("\"ssl_stapling\" ignored, ");
    assert_eq!(server.log().matches("ignored").count(), 1, "{}", server.log());
    // A configuration that is read again has its own.
    server.signal(Signal::HUP);
    server.says("configuration 2 is in force");
    assert_eq!(server.log().matches("ignored").count(), 2, "{}", server.log());
}

#[test]
fn a_check_of_the_configuration_warns_of_certificates_about_which_nobody_can_be_asked_as_nginx_does() {
    let (prefix, mut authority) = prepared();
    authority.stand_alone("self");
    authority.issue_with("silent", "ec", "");
    authority.issue_with("secured", "ec", "authorityInfoAccess=OCSP;URI:https://127.0.0.1/ocsp\n");
    for name in ["one", "silent"] {
        let leaf = prefix.read(&format!("{name}.alone"));
        prefix.write(&format!("lonely-{name}.pem"), &leaf);
        let key = prefix.read(&format!("{name}.key"));
        prefix.write(&format!("lonely-{name}.key"), &key);
    }
    let no_issuer = "issuer certificate not found for certificate";
    for (name, more, warning) in [
        ("one", "", None),
        ("self", "", Some(no_issuer)),
        ("self", "ssl_stapling_responder http://127.0.0.1/;", Some(no_issuer)),
        ("lonely-one", "", Some(no_issuer)),
        ("lonely-one", "ssl_trusted_certificate @DIR@/ca.pem;", None),
        (
            "lonely-silent",
            "ssl_trusted_certificate @DIR@/ca.pem;",
            Some("no OCSP responder URL in the certificate"),
        ),
        ("silent", "", Some("no OCSP responder URL in the certificate")),
        ("silent", "ssl_stapling_responder http://127.0.0.1/;", None),
        (
            "secured",
            "",
            Some("invalid URL prefix in OCSP responder \"https://127.0.0.1/ocsp\" in the certificate"),
        ),
    ] {
        let site = "pid @DIR@/nginx.pid; error_log @DIR@/error.log; events {} http { access_log off; ssl_stapling on; @MORE@
            server { listen 127.0.0.1:@PORT@ ssl; ssl_certificate @DIR@/@NAME@.pem; ssl_certificate_key @DIR@/@NAME@.key; } }";
        let folder = prefix.path().display().to_string();
        let port = ports::free().to_string();
        let site = fill(site, &[("NAME", name), ("MORE", more), ("DIR", &folder), ("PORT", &port)]);
        let file = prefix.write("nginx.conf", &site);
        let output = command(prefix.path(), &file).arg("-t").output().expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let told: Vec<&str> = said.lines().filter(|line| line.contains("ignored")).collect();
        match warning {
            Some(warning) => {
                let whole = format!(": \"ssl_stapling\" ignored, {warning} \"{folder}/{name}.pem\"");
                let is_it = |line: &str| line.starts_with("millstream: [warn] ") && line.ends_with(&whole);
                assert!(told.len() == 1 && is_it(told[0]), "{name} {more}: {said}");
            }
            None => assert!(told.is_empty(), "{name} {more}: {said}"),
        }
    }
}
