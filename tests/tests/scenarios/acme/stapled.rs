//! What is said of certificates that Pebble issues: a responder signs with the key that Pebble gives away, and OpenSSL's client looks at what comes along.

use super::{AuthorityPlan, BEGIN, Ports, elsewhere, site};
use millstream_tests::authority::Authority;
use millstream_tests::responder::Word;
use millstream_tests::server::Server;
use millstream_tests::wait;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

/// The serial number of the certificate, and that of its stapled response; `None` without a handshake.
fn shake(port: u16) -> Option<(String, Option<String>)> {
    let shown = Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-servername", "a.test", "-status"])
        .stdin(Stdio::null())
        .output()
        .expect("openssl is installed");
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    // What is said has its signer's certificate with it, which is shown first.
    let own = text.find("Server certificate")?;
    let begin = own + text[own..].find("-----BEGIN CERTIFICATE-----")?;
    let end = begin + text[begin..].find("-----END CERTIFICATE-----")? + 26;
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("shown.pem");
    std::fs::write(&file, &text[begin..end]).expect("own directory is writable");
    let read = Command::new("openssl").args(["x509", "-noout", "-serial", "-in"]).arg(&file).output();
    let read = String::from_utf8(read.expect("openssl is installed").stdout).expect("it is text");
    let number = read.trim().trim_start_matches("serial=").to_owned();
    let said = text.contains("Cert Status: good").then(|| {
        let (_, rest) = text.split_once("Serial Number: ").expect("it says of which one");
        rest.lines().next().unwrap_or_default().trim().to_owned()
    });
    Some((number, said))
}

#[test]
fn each_certificate_that_is_issued_gets_its_own_staple_and_never_that_of_the_one_before() {
    let ports = Ports::new();
    let plan = AuthorityPlan { validity: 9, names_responder: true, ..ports.plan() };
    let Some(authority) = Authority::start(&plan) else { return };
    let responder = authority.responder.as_ref().expect("its certificates name one");
    responder.say(Some(Word::Good));
    authority.name("a.test");
    let begin = format!("{BEGIN} acme_issuer test {{ {} }} {}", authority.lines(), elsewhere(ports));
    let plain = format!("{begin} {} }}", site(ports, "a.test", "test"));
    let stapling = plain.replace("server_name a.test;", "server_name a.test; ssl_stapling on;");
    let server = Server::start(&stapling, &[]);
    let mut stapled = BTreeSet::new();
    wait::until("three certificates have had a staple each", || {
        if let Some((number, Some(said))) = shake(ports.tls) {
            assert_eq!(number, said, "{}", server.log());
            stapled.insert(number);
        }
        stapled.len() >= 3
    });
    server.rewrite(&plain, &[]);
    server.signal(Signal::HUP);
    wait::until("nothing is stapled any more", || matches!(shake(ports.tls), Some((_, None))));
    // What was said before would not be sent either.
    responder.say(Some(Word::Unknown));
    server.rewrite(&stapling, &[]);
    server.signal(Signal::HUP);
    server.says("the certificate status is \"unknown\"; retrying in ");
    assert!(matches!(shake(ports.tls), Some((_, None))));
}
