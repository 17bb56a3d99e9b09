//! Pebble, the ACME server that Let's Encrypt has for tests, with a name server of its own.
//!
//! `tests/pebble/` pins it; Go builds it, from the module proxy the first time. Where there is no Go, or it cannot have the modules, a scenario says that
//! it is skipped: not every machine that tests has one. Dropped, it is gone.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::json;

use crate::name_server::NameServer;
use crate::prefix::Prefix;
use crate::process::Running;
use crate::responder::Responder;
use crate::{made, ports, target_directory, wait, workspace};

const MODULE: &str = "github.com/letsencrypt/pebble/v2/cmd/pebble";

pub struct AuthorityPlan<'a> {
    /// Used instead of port 80.
    pub http_port: u16,
    /// Used instead of port 443.
    pub tls_port: u16,
    /// Lifetime of certificates in seconds.
    pub validity: u32,
    /// Id and key of the only account it accepts.
    pub external_account: Option<(&'a str, &'a str)>,
    pub faults: &'a [(&'a str, &'a str)],
    pub names_responder: bool,
}

pub struct Authority {
    port: u16,
    management: u16,
    folder: Prefix,
    names: NameServer,
    pub responder: Option<Responder>,
    process: Option<Running>,
    faults: Vec<(String, String)>,
}

impl Authority {
    /// It knows no name yet; `None`, with a message, if the program is unavailable.
    pub fn start(plan: &AuthorityPlan<'_>) -> Option<Authority> {
        program()?;
        let folder = Prefix::with_certificate("localhost");
        let (port, management) = (ports::free(), ports::free());
        let responder = plan.names_responder.then(|| Responder::new(folder.path()));
        let keys = plan.external_account.map(|(id, key)| json!({ id: key })).unwrap_or_default();
        let configuration = json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": folder.join("server.pem"),
            "privateKey": folder.join("server.key"),
            "httpPort": plan.http_port,
            "tlsPort": plan.tls_port,
            "externalAccountBindingRequired": plan.external_account.is_some(),
            "externalAccountMACKeys": keys,
            "retryAfter": { "authz": 1, "order": 1 },
            // It gives away no other key than one of RSA.
            "keyAlgorithm": if plan.names_responder { "rsa" } else { "ecdsa" },
            "ocspResponderURL": responder.as_ref().map(Responder::url).unwrap_or_default(),
            // Of several it chooses by chance where none is asked for.
            "profiles": { "default": { "description": "for tests", "validityPeriod": plan.validity } },
        }});
        folder.write("pebble.json", configuration.to_string());
        let faults =
            plan.faults.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let names = NameServer::start();
        let mut authority = Authority { port, management, folder, names, responder, process: None, faults };
        authority.begin();
        Some(authority)
    }

    /// Restarts it without its state.
    pub fn begin(&mut self) {
        let log = File::create(self.folder.join("log")).expect("own directory is writable");
        let mut command = Command::new(program().expect("it was there before"));
        command
            .arg("-config")
            .arg(self.folder.join("pebble.json"))
            .args(["-dnsserver", &self.names.address()]);
        command.env("PEBBLE_VA_NOSLEEP", "1").envs(self.faults.iter().cloned());
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("an open file")).stderr(log);
        self.process = Some(Running::start(&mut command).expect("it runs"));
        let listens = |port| TcpStream::connect(("127.0.0.1", port)).is_ok();
        wait::until("the authority listens", || listens(self.port) && listens(self.management));
        if self.responder.is_some() {
            // In its name the responder speaks.
            for (path, file) in [("intermediates", "ca.pem"), ("intermediate-keys", "ca.key")] {
                self.folder.write(file, self.manage(&format!("{path}/0")));
            }
        }
    }

    pub fn end(&mut self) {
        self.process = None;
    }

    pub fn name(&self, name: &str) {
        self.names.say(name, &["127.0.0.1"], 1);
    }

    pub fn asked_for(&self, name: &str) -> usize {
        self.names.count(name)
    }

    pub fn uri(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    pub fn trusted(&self) -> String {
        self.folder.join("server.pem").display().to_string()
    }

    /// Other roots than the first exist only if its faults say so.
    pub fn root(&self, number: usize) -> String {
        let pem = self.manage(&format!("roots/{number}"));
        self.folder.write(&format!("root-{number}.pem"), &pem).display().to_string()
    }

    fn manage(&self, path: &str) -> String {
        let url = format!("https://127.0.0.1:{}/{path}", self.management);
        let told = Command::new("curl").args(["-ks", "--fail", &url]).output().expect("curl is there");
        assert!(told.status.success(), "{url}");
        String::from_utf8(told.stdout).expect("it is PEM")
    }

    pub fn lines(&self) -> String {
        format!("uri {}; ssl_trusted_certificate {}; accept_terms_of_service;", self.uri(), self.trusted())
    }

    pub fn log(&self) -> String {
        self.folder.read("log")
    }
}

/// `None`, with a message, if it is unavailable.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match PROGRAM.get_or_init(|| build(&target_directory().join("pebble"))) {
        Ok(program) => Some(program),
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            None
        }
    }
}

fn build(folder: &Path) -> Result<PathBuf, String> {
    let _alone = made::alone(folder);
    let go = |arguments: &[&str]| {
        let mut go = Command::new("go");
        go.args(arguments).current_dir(workspace().join("tests/pebble")).stdin(Stdio::null()).output()
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    match go(&["mod", "download"]) {
        Err(error) => return Err(format!("no Go here ({error}): its packages are in tests/pebble/go.mod")),
        Ok(had) if !had.status.success() => {
            return Err(format!("Go cannot have the modules of tests/pebble: {}", said(&had)));
        }
        Ok(_) => {}
    }
    let place = format!("{}/", folder.display());
    let built = go(&["build", "-o", &place, MODULE]).expect("it ran a moment ago");
    assert!(built.status.success(), "tests/pebble: {}", said(&built));
    Ok(folder.join("pebble"))
}
