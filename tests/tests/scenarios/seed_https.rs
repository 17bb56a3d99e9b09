//! The site on both ports: TLS with a shared session cache; what its file asks for that is unsafe is dropped, out loud.

use std::io::Write;
use std::process::{Command, Stdio};

use millstream_tests::client;
use millstream_tests::origin::Origin;
use millstream_tests::ports;
use millstream_tests::prefix::{Prefix, seed};
use millstream_tests::server::{Server, is_nginx};

fn with_certificate() -> Prefix {
    Prefix::with_certificate("toutiao.example.com")
}

fn speak(port: u16, flags: &[&str], request: &str) -> String {
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-servername", "toutiao.example.com"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl is installed");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A refused handshake ends the client before it reads; that is for the caller to see.
    let _ = stdin.write_all(request.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("openssl ends");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn https_serves_the_same_site_on_both_ports_and_resumes_sessions() {
    let origin = Origin::fixed(200, &[], b"over both");
    let tls_port = ports::free();
    let values = [("ORIGIN", origin.address()), ("TLSPORT", tls_port.to_string())];
    let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
    let server = Server::start_in(with_certificate(), &seed("https"), &values);
    assert_eq!(server.get("/").text(), "over both");
    let request = "GET / HTTP/1.1\r\nHost: toutiao.example.com\r\nConnection: close\r\n\r\n";
    let said = speak(tls_port, &["-quiet", "-tls1_2"], request);
    assert!(said.contains("HTTP/1.1 200") && said.contains("over both"), "{said}");
    let resumed = speak(tls_port, &["-tls1_2", "-reconnect"], "");
    assert!(resumed.contains("Reused, TLSv1.2"), "{resumed}");
    let old = speak(tls_port, &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], "");
    if !is_nginx() {
        assert!(!old.contains("Cipher is ECDHE"), "TLS 1.1 is refused: {old}");
        let log = server.log();
        assert!(log.contains("TLSv1.1") && log.contains("RC4"), "what is dropped is said at load: {log}");
    }
}

#[test]
fn plain_http_on_a_port_for_tls_gets_a_page_that_says_so() {
    let origin = Origin::fixed(200, &[], b"over both");
    let tls_port = ports::free();
    let values = [("ORIGIN", origin.address()), ("TLSPORT", tls_port.to_string())];
    let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
    let _server = Server::start_in(with_certificate(), &seed("https"), &values);
    let answer = client::get(tls_port, "/");
    let page = answer.text();
    assert_eq!(answer.status, 400);
    let title = "<title>400 The plain HTTP request was sent to HTTPS port</title>";
    let heading = "<center><h1>400 Bad Request</h1></center>\r\n\
                   <center>The plain HTTP request was sent to HTTPS port</center>\r\n<hr>";
    assert!(page.contains(title) && page.contains(heading), "{page}");
}
