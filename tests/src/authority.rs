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

/// What an authority is to be.
pub struct AuthorityPlan<'a> {
    /// Where it asks over HTTP, in place of port 80.
    pub http_port: u16,
    /// Where it shakes hands, in place of port 443.
    pub tls_port: u16,
    /// Seconds that a certificate holds.
    pub validity: u32,
    /// Id and key of the one account that it knows elsewhere, where it takes no others.
    pub external_account: Option<(&'a str, &'a str)>,
    /// Its faults, as environment.
    pub faults: &'a [(&'a str, &'a str)],
    /// Whether its certificates name a responder.
    pub names_responder: bool,
}

/// An authority that runs.
pub struct Authority {
    port: u16,
    management: u16,
    folder: Prefix,
    names: NameServer,
    /// The one that its certificates name, where they do.
    pub responder: Option<Responder>,
    process: Option<Running>,
    faults: Vec<(String, String)>,
}

impl Authority {
    /// One that knows no name yet; `None`, and a word of it, where it cannot be had.
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
        folder.write("pebble.json", &configuration.to_string());
        let faults =
            plan.faults.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let names = NameServer::start();
        let mut authority = Authority { port, management, folder, names, responder, process: None, faults };
        authority.begin();
        Some(authority)
    }

    /// Starts it anew, with nothing of what it knew.
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
                self.folder.write(file, &self.manage(&format!("{path}/0")));
            }
        }
    }

    /// Ends it.
    pub fn end(&mut self) {
        self.process = None;
    }

    /// From now on a name is this machine's.
    pub fn name(&self, name: &str) {
        self.names.say(name, &["127.0.0.1"], 1);
    }

    /// How often it has asked for a name.
    pub fn asked_for(&self, name: &str) -> usize {
        self.names.count(name)
    }

    /// `uri`.
    pub fn uri(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    /// A file with the certificate of its server.
    pub fn trusted(&self) -> String {
        self.folder.join("server.pem").display().to_string()
    }

    /// A file with one of the roots that its certificates lead up to; others than the first only where its faults say so.
    pub fn root(&self, number: usize) -> String {
        let pem = self.manage(&format!("roots/{number}"));
        self.folder.write(&format!("root-{number}.pem"), &pem).display().to_string()
    }

    /// What its interface for tests has there.
    fn manage(&self, path: &str) -> String {
        let url = format!("https://127.0.0.1:{}/{path}", self.management);
        let told = Command::new("curl").args(["-ks", "--fail", &url]).output().expect("curl is there");
        assert!(told.status.success(), "{url}");
        String::from_utf8(told.stdout).expect("it is PEM")
    }

    /// The lines of its block that every issuer here has.
    pub fn lines(&self) -> String {
        format!("uri {}; ssl_trusted_certificate {}; accept_terms_of_service;", self.uri(), self.trusted())
    }

    /// What it has said.
    pub fn log(&self) -> String {
        self.folder.read("log")
    }
}

/// The program; `None`, and a word of it, where it cannot be had.
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

/// Builds it into a folder; Go itself remembers what it has built.
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
