//! Certificates by themselves, of a real authority (Pebble): from nothing, by either challenge, in time, over faults, kills and reloads.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use millstream_tests::authority::{Authority, AuthorityPlan};
use millstream_tests::client;
use millstream_tests::origin::{Origin, answer};
use millstream_tests::prefix::Prefix;
use millstream_tests::process::{self, Running};
use millstream_tests::server::{Server, binary};
use millstream_tests::{ports, wait};
use rustix::process::Signal;

mod serve;
mod stapled;
mod state;

/// Ports that the world knows as 80 and 443.
#[derive(Clone, Copy)]
struct Ports {
    http: u16,
    tls: u16,
}

impl Ports {
    fn new() -> Ports {
        Ports { http: ports::free(), tls: ports::free() }
    }

    fn plan<'a>(self) -> AuthorityPlan<'a> {
        AuthorityPlan {
            http_port: self.http,
            tls_port: self.tls,
            validity: 3600,
            external_account: None,
            names_responder: false,
            faults: &[],
        }
    }
}

/// `@PORT@` is for the harness, which checks there whether it runs.
const BEGIN: &str = "pid @DIR@/nginx.pid; error_log @DIR@/error.log info; worker_processes 2; events {}
    http { access_log off; server { listen 127.0.0.1:@PORT@; return 200 up; }";

const ISSUED: &str = "ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key;";

fn site(ports: Ports, names: &str, issuer: &str) -> String {
    format!(
        "server {{ listen 127.0.0.1:{} ssl; server_name {names}; acme_certificate {issuer}; {ISSUED} return 200 \"hello $host\"; }}",
        ports.tls
    )
}

/// A server that redirects everyone, and admits no one.
fn elsewhere(ports: Ports) -> String {
    format!(
        "server {{ listen 127.0.0.1:{}; deny all; location / {{ deny all; return 301 https://$host$request_uri; }} }}",
        ports.http
    )
}

/// Trusts only `root`; `None` without a handshake.
fn ask(root: &str, name: &str, port: u16) -> Option<String> {
    let there = format!("{name}:{port}:127.0.0.1");
    let url = format!("https://{name}:{port}/");
    let told = Command::new("curl")
        .args(["-s", "--fail", "--max-time", "10", "--cacert", root, "--resolve", &there, &url])
        .output()
        .expect("curl is there");
    told.status.success().then(|| String::from_utf8_lossy(&told.stdout).into_owned())
}

fn is_served(root: &str, name: &str, port: u16) -> bool {
    ask(root, name, port).is_some_and(|told| told == format!("hello {name}"))
}

#[test]
fn either_challenge_shows_whose_a_name_is_before_any_rule_and_until_then_handshakes_are_refused() {
    let ports = Ports::new();
    let Some(authority) = Authority::start(&ports.plan()) else { return };
    let lines = authority.lines();
    let text = format!(
        "{BEGIN}
         acme_issuer asks {{ {lines} profile unheard-of; }}
         acme_issuer shakes {{ {lines} challenge tls-alpn; account_key rsa:2048; profile default require; }}
         {} {} {}
         server {{ listen 127.0.0.1:{tls} ssl default_server; ssl_reject_handshake on; }} }}",
        elsewhere(ports),
        site(ports, "a.test", "asks"),
        site(ports, ".b.test", "shakes .b.test 127.0.0.1 key=ecdsa:384"),
        tls = ports.tls,
    );
    let server = Server::start(&text, &[]);
    let root = authority.root(0);
    // Nobody knows the names yet.
    server.says("acme_issuer \"asks\": no certificate for a.test: the server could not validate a.test: ");
    server.says("acme_issuer \"shakes\": no certificate for www.b.test and 2 more: ");
    assert_eq!(ask(&root, "a.test", ports.tls), None);
    server.says("the certificate of this server has not been issued yet, for a.test");
    assert!(server.log().contains("/.well-known/acme-challenge/***"), "{}", server.log());
    ["a.test", "b.test", "www.b.test"].iter().for_each(|name| authority.name(name));
    // It is tried again by itself.
    for name in ["a.test", "b.test", "www.b.test"] {
        wait::until(name, || is_served(&root, name, ports.tls));
    }
    // What is not open is the configuration's.
    let other = client::get(ports.http, "/.well-known/acme-challenge/unknown");
    assert_eq!(other.status, 301);
    server.says("acme_issuer \"asks\": a certificate for a.test was issued");
}

#[test]
fn a_certificate_is_renewed_while_clients_shake_hands_and_none_of_them_fails() {
    let ports = Ports::new();
    let Some(authority) = Authority::start(&AuthorityPlan { validity: 12, ..ports.plan() }) else { return };
    authority.name("a.test");
    let clients = format!(
        "server {{ listen 127.0.0.1:@PASS@; location / {{ proxy_pass https://127.0.0.1:{}; proxy_set_header Host a.test;
             proxy_ssl_verify on; proxy_ssl_trusted_certificate {}; proxy_ssl_server_name on; proxy_ssl_name a.test;
             proxy_ssl_verify_depth 3; proxy_ssl_session_reuse off; }} }}",
        ports.tls,
        authority.root(0)
    );
    let text = format!(
        "{BEGIN} acme_issuer test {{ {} }} {clients} {} {} }}",
        authority.lines(),
        elsewhere(ports),
        site(ports, "a.test", "test")
    );
    let pass = ports::free();
    let server = Server::start(&text, &[("PASS", &pass.to_string())]);
    let issued = || server.log().matches("a certificate for a.test was issued").count();
    wait::until("the first certificate is there", || issued() == 1);
    let mut asked = 0;
    wait::until("two more are there", || {
        let told = client::get(pass, "/");
        assert_eq!(
            (told.status, told.text().as_str()),
            (200, "hello a.test"),
            "after {asked}: {}",
            server.log()
        );
        asked += 1;
        issued() >= 3
    });
    assert!(asked > 20, "{asked} handshakes");
}

#[test]
fn an_authority_with_faults_is_asked_until_it_gives_in() {
    let ports = Ports::new();
    let faults =
        [("PEBBLE_WFE_NONCEREJECT", "60"), ("PEBBLE_AUTHZREUSE", "100"), ("PEBBLE_ALTERNATE_ROOTS", "1")];
    let Some(mut authority) = Authority::start(&AuthorityPlan { faults: &faults, ..ports.plan() }) else {
        return;
    };
    authority.name("a.test");
    let text = |preferred: &str| {
        format!(
            "{BEGIN} acme_issuer test {{ {} {preferred} }} {} {} }}",
            authority.lines(),
            elsewhere(ports),
            site(ports, "a.test", "test")
        )
    };
    let preferred = format!("preferred_chain \"{}\";", common_name(&authority.root(1)));
    let plain = text("");
    let server = Server::start(&text(&preferred), &[]);
    let (first, other) = (authority.root(0), authority.root(1));
    wait::until("the preferred chain is there", || is_served(&other, "a.test", ports.tls));
    assert_eq!(ask(&first, "a.test", ports.tls), None, "the certificates lead up to the other root");
    server.says("a certificate for a.test was issued");
    // A server that was made anew knows neither account nor certificate.
    authority.end();
    authority.begin();
    fs::remove_file(only_certificate(&server.prefix().join("acme_test"))).expect("it is ours");
    server.rewrite(&plain.replace("a.test", "b.test"), &[]);
    authority.name("b.test");
    server.signal(Signal::HUP);
    let root = authority.root(0);
    wait::until("a new account is made", || is_served(&root, "b.test", ports.tls));
}

#[test]
fn two_servers_share_an_issuer_and_a_reload_that_adds_a_name_leaves_theirs_alone() {
    let ports = Ports::new();
    let Some(authority) = Authority::start(&ports.plan()) else { return };
    ["a.test", "b.test", "c.test"].iter().for_each(|name| authority.name(name));
    let begin = format!("{BEGIN} acme_issuer test {{ {} }} {}", authority.lines(), elsewhere(ports));
    let two = format!("{begin} {} {}", site(ports, "a.test", "test"), site(ports, "b.test", "test"));
    let server = Server::start(&format!("{two} }}"), &[]);
    let root = authority.root(0);
    for name in ["a.test", "b.test"] {
        wait::until(name, || is_served(&root, name, ports.tls));
    }
    // It is used first, then kept, then told.
    wait::until("both are kept", || server.log().matches("was issued").count() == 2);
    let state = server.prefix().join("acme_test");
    let kept = |name: &str| fs::read(certificate(&state, name)).expect("it is kept");
    let before = [kept("a.test"), kept("b.test")];
    server.rewrite(&format!("{two} {} }}", site(ports, "c.test", "test")), &[]);
    server.signal(Signal::HUP);
    wait::until("the name that was added", || is_served(&root, "c.test", ports.tls));
    assert_eq!([kept("a.test"), kept("b.test")], before);
    wait::until("it is told", || server.log().contains("a certificate for c.test was issued"));
    assert_eq!(server.log().matches("was issued").count(), 3);
    assert_eq!(authority.log().matches("There are now 1 accounts").count(), 1, "all are of one account");
}

#[test]
fn an_account_that_the_authority_knows_elsewhere_is_bound_to_and_nothing_of_keys_is_told() {
    const KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let ports = Ports::new();
    let plan = AuthorityPlan { external_account: Some(("kid-1", KEY)), ..ports.plan() };
    let Some(authority) = Authority::start(&plan) else { return };
    authority.name("a.test");
    let text = |external: &str| {
        let site = site(ports, "a.test", "test");
        format!(
            "{BEGIN} acme_issuer test {{ {} {external} }} {} {site} }}",
            authority.lines(),
            elsewhere(ports)
        )
    };
    let server = Server::start(&text(""), &[]);
    server.says("the server requires an external account; add external_account_key");
    let wrong = KEY.replace('z', "y");
    server.rewrite(&text(&format!("external_account_key kid-1 data:{wrong};")), &[]);
    server.signal(Signal::HUP);
    server.says("acme_issuer \"test\": no certificate for a.test: the server rejected the request: ");
    server.prefix().write("mac.txt", format!("{KEY}\n"));
    server.rewrite(&text("external_account_key kid-1 @DIR@/mac.txt;"), &[]);
    server.signal(Signal::HUP);
    let root = authority.root(0);
    wait::until("it is bound", || is_served(&root, "a.test", ports.tls));
    let (log, account) = (server.log(), server.prefix().read("acme_test/account.key"));
    let inside = account.lines().nth(1).expect("a key in PEM");
    assert!(!log.contains(KEY) && !log.contains(&wrong) && !log.contains(inside), "{log}");
}

fn certificates(state: &Path) -> Vec<std::path::PathBuf> {
    let found = fs::read_dir(state).into_iter().flatten().flatten().map(|entry| entry.path());
    found.filter(|path| path.extension().is_some_and(|kind| kind == "pem")).collect()
}

fn certificate(state: &Path, name: &str) -> std::path::PathBuf {
    let is_its = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&format!("{name}-")))
    };
    certificates(state).into_iter().find(is_its).expect("it is kept")
}

fn only_certificate(state: &Path) -> std::path::PathBuf {
    let mut found = certificates(state);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn common_name(file: &str) -> String {
    let told = Command::new("openssl")
        .args(["x509", "-noout", "-subject", "-nameopt", "multiline", "-in", file])
        .output()
        .expect("openssl is there");
    let text = String::from_utf8(told.stdout).expect("it is text");
    let line = text.lines().find(|line| line.contains("commonName")).expect("it has one");
    line.split_once("= ").expect("a name and a value").1.to_owned()
}
