//! What an authority says of a certificate that it has issued goes with that one.

use super::*;
use millstream_tests::signed::SigningAuthority;
use std::process::Stdio;

/// What OpenSSL's client is given: the certificate, and what is said of it.
fn shake(port: u16) -> String {
    let output = Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-servername", "a.test", "-status"])
        .stdin(Stdio::null())
        .output()
        .expect("openssl is installed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The serial number of the certificate that a server has.
fn serial(prefix: &Prefix, port: u16) -> String {
    let said = shake(port);
    let begin = said.find("-----BEGIN CERTIFICATE-----").expect("there is a certificate");
    let file = prefix.write("leaf.pem", &said[begin..]);
    let output = Command::new("openssl").args(["x509", "-noout", "-serial", "-in"]).arg(file).output();
    let output = output.expect("openssl is installed");
    String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("serial=").to_owned()
}

#[test]
fn what_the_responder_says_of_an_issued_certificate_is_stapled_without_a_reload() {
    let (ports, responder_port) = (Ports::new(), ports::free());
    let plan = AuthorityPlan { responder_port: Some(responder_port), ..ports.plan() };
    let Some(authority) = Authority::start(&plan) else { return };
    authority.name("a.test");
    let folder = Prefix::new();
    let (certificate, key) = authority.intermediate();
    let signing = SigningAuthority::with(folder.path(), (&certificate, &key), responder_port);
    let text = format!(
        "{BEGIN} ssl_stapling on; acme_issuer test {{ {} }} {} {} }}",
        authority.lines(),
        elsewhere(ports),
        site(ports, "a.test", "test")
    );
    let server = Server::start(&text, &[]);
    server.says("a certificate for a.test was issued");
    // Nobody answers yet: it is asked again by itself.
    server.says("ssl_stapling: ");
    assert!(shake(ports.tls).contains("OCSP response: no response sent"));
    signing.has_issued(&serial(&folder, ports.tls));
    let _responder = signing.respond();
    wait::until("what is said of it is stapled", || shake(ports.tls).contains("Cert Status: good"));
}
