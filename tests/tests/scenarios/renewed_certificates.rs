//! Certificates are replaced while the server runs, in the ways in which people and programs do it, and nobody says so.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use millstream_tests::prefix::Prefix;
use millstream_tests::server::Server;
use millstream_tests::signed::SigningAuthority;
use millstream_tests::wait;

fn serial(port: u16) -> String {
    let shown = Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-servername", "localhost"])
        .stdin(Stdio::null())
        .output()
        .expect("openssl is installed")
        .stdout;
    let text = String::from_utf8_lossy(&shown).into_owned();
    let begin = text.find("-----BEGIN CERTIFICATE-----").expect("a certificate is shown");
    let mut read = Command::new("openssl")
        .args(["x509", "-noout", "-serial"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl is installed");
    use std::io::Write;
    read.stdin.take().expect("a pipe").write_all(&text.as_bytes()[begin..]).expect("it reads");
    let said = read.wait_with_output().expect("it ends").stdout;
    String::from_utf8_lossy(&said).trim().trim_start_matches("serial=").to_owned()
}

fn site(folder: &str) -> String {
    format!(
        "pid @DIR@/nginx.pid; error_log @DIR@/error.log notice; events {{}}
        http {{ access_log off; server {{ listen 127.0.0.1:@PORT@ ssl; server_name localhost;
            ssl_certificate @DIR@/{folder}/cert.pem; ssl_certificate_key @DIR@/{folder}/cert.key; return 200 hello; }} }}"
    )
}

/// Three pairs, of which the first is in `live/`.
fn prepared() -> Prefix {
    let prefix = Prefix::new();
    let mut authority = SigningAuthority::new(prefix.path());
    for name in ["one", "two", "three"] {
        authority.issue(name, "ec");
    }
    fs::create_dir(prefix.join("live")).expect("made");
    prefix
}

fn copy(prefix: &Prefix, name: &str, kind: &str) {
    fs::copy(prefix.join(&format!("{name}.{kind}")), prefix.join(&format!("live/cert.{kind}")))
        .expect("copied");
}

#[test]
fn a_pair_that_is_written_over_is_in_use_when_it_is_whole_and_a_broken_one_is_told() {
    let prefix = prepared();
    ["pem", "key"].iter().for_each(|kind| copy(&prefix, "one", kind));
    let server = Server::start_in(prefix, &site("live"), &[]);
    assert_eq!(serial(server.port()), "11");
    // One after the other, with as much time between as it takes to see that they do not belong together.
    copy(server.prefix(), "two", "pem");
    server.says("does not match the certificate in");
    assert!(
        server.log().contains("live/cert.pem\"; the previous certificate stays in use"),
        "{}",
        server.log()
    );
    assert_eq!(serial(server.port()), "11");
    copy(server.prefix(), "two", "key");
    server.says("live/cert.pem\" has changed, the new certificate is in use");
    assert_eq!(serial(server.port()), "12");
    server.prefix().write("live/cert.pem", "no certificate");
    server.says("contains no certificate");
    assert_eq!(serial(server.port()), "12");
    // By a rename, as editors and programs do that want no half of a file to be seen.
    for kind in ["key", "pem"] {
        fs::copy(server.prefix().join(&format!("three.{kind}")), server.prefix().join("live/next"))
            .expect("copied");
        let target = server.prefix().join(&format!("live/cert.{kind}"));
        fs::rename(server.prefix().join("live/next"), target).expect("renamed");
    }
    wait::until("the third is in use", || serial(server.port()) == "13");
}

#[test]
fn links_that_come_to_lead_elsewhere_are_followed() {
    let prefix = prepared();
    // As certbot keeps them: each name is a link into the archive, and is replaced by another one.
    let link = |prefix: &Prefix, name: &str| {
        for kind in ["pem", "key"] {
            let at = prefix.join(&format!("live/cert.{kind}"));
            _ = fs::remove_file(&at);
            symlink(format!("../{name}.{kind}"), at).expect("linked");
        }
    };
    link(&prefix, "one");
    let server = Server::start_in(prefix, &site("live"), &[]);
    assert_eq!(serial(server.port()), "11");
    link(server.prefix(), "two");
    wait::until("the second is in use", || serial(server.port()) == "12");
    // What the links lead to is written over.
    for kind in ["pem", "key"] {
        let (from, to) = (format!("three.{kind}"), format!("two.{kind}"));
        fs::copy(server.prefix().join(&from), server.prefix().join(&to)).expect("copied");
    }
    wait::until("the third is in use", || serial(server.port()) == "13");
    assert!(!server.log().contains("stays in use"), "{}", server.log());
}

#[test]
fn a_mounted_secret_changes_by_one_link() {
    let prefix = prepared();
    for (folder, name) in [("..1", "one"), ("..2", "two")] {
        fs::create_dir(prefix.join(&format!("live/{folder}"))).expect("made");
        for kind in ["pem", "key"] {
            let to = prefix.join(&format!("live/{folder}/cert.{kind}"));
            fs::copy(prefix.join(&format!("{name}.{kind}")), to).expect("copied");
        }
    }
    symlink("..1", prefix.join("live/..data")).expect("linked");
    for kind in ["pem", "key"] {
        symlink(format!("..data/cert.{kind}"), prefix.join(&format!("live/cert.{kind}"))).expect("linked");
    }
    let server = Server::start_in(prefix, &site("live"), &[]);
    assert_eq!(serial(server.port()), "11");
    symlink("..2", server.prefix().join("live/..next")).expect("linked");
    fs::rename(server.prefix().join("live/..next"), server.prefix().join("live/..data")).expect("renamed");
    wait::until("the second is in use", || serial(server.port()) == "12");
}

#[test]
fn a_certificate_that_has_expired_is_served_with_a_warning() {
    skip_on_nginx!();
    let prefix = Prefix::new();
    let mut authority = SigningAuthority::new(prefix.path());
    authority.issue("one", "ec");
    authority.expire("one");
    fs::create_dir(prefix.join("live")).expect("made");
    ["pem", "key"].iter().for_each(|kind| copy(&prefix, "one", kind));
    let server = Server::start_in(prefix, &site("live"), &[]);
    server.says("live/cert.pem\" expired on ");
    assert!(!serial(server.port()).is_empty());
}
