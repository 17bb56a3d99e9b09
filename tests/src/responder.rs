//! An OCSP responder: what it says is made by OpenSSL, and it speaks of whatever certificate it is asked about.
//!
//! It needs no list of what was issued, so that it can stand for an authority that has its own (Pebble). The unit tests of `millstream-acme` have their answers of it
//! too. Before: `origin`, which has its socket; next: `signed`, an authority with files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::origin::{Origin, Step, answer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Good,
    Revoked,
    Unknown,
}

/// The files are `ca.pem` and `ca.key` of the directory.
pub struct Responder {
    origin: Origin,
    word: Arc<Mutex<Option<Word>>>,
}

impl Responder {
    /// Closes each connection until it has a word.
    pub fn new(folder: &Path) -> Responder {
        let word: Arc<Mutex<Option<Word>>> = Arc::default();
        let (folder, said) = (folder.to_path_buf(), Arc::clone(&word));
        let origin = Origin::start(move |request| {
            let word = *said.lock().expect("nobody panics with it");
            let Some(word) = word else { return vec![Step::Close] };
            let question = question(&folder, request.target());
            answer(
                200,
                &[("Content-Type", "application/ocsp-response")],
                &respond(&folder, &question, word, &WEEK),
            )
        });
        Responder { origin, word }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.origin.address())
    }

    pub fn count(&self) -> usize {
        self.origin.count()
    }

    pub fn say(&self, word: Option<Word>) {
        *self.word.lock().expect("nobody panics with it") = word;
    }
}

pub struct Signing<'a> {
    /// The name of a certificate and its key in the directory.
    pub signer: &'a str,
    pub arguments: &'a [&'a str],
}

/// The authority itself, for a week.
pub const WEEK: Signing<'static> = Signing { signer: "ca", arguments: &["-ndays", "7"] };

pub fn respond(folder: &Path, question: &[u8], word: Word, signing: &Signing<'_>) -> Vec<u8> {
    let own = tempfile::tempdir_in(folder).expect("own directory is writable");
    let file = |name: &str| own.path().join(name).display().to_string();
    let [asked, index, said] = ["question", "index", "answer"].map(file);
    std::fs::write(&asked, question).expect("own directory is writable");
    let read = openssl(folder, &["ocsp", "-reqin", &asked, "-req_text"]);
    let (_, rest) = read.split_once("Serial Number: ").expect("a question has a number");
    let number = rest.lines().next().unwrap_or_default();
    let line = match word {
        Word::Good => format!("V\t490101000000Z\t\t{number}\tunknown\t/CN=asked\n"),
        Word::Revoked => format!("R\t490101000000Z\t260101000000Z\t{number}\tunknown\t/CN=asked\n"),
        Word::Unknown => String::new(),
    };
    std::fs::write(&index, line).expect("own directory is writable");
    let [certificate, key] = ["pem", "key"].map(|kind| format!("{}.{kind}", signing.signer));
    let mut arguments =
        vec!["ocsp", "-reqin", &asked, "-index", &index, "-CA", "ca.pem", "-rsigner", &certificate];
    arguments.extend(["-rkey", &key, "-respout", &said, "-noverify"]);
    arguments.extend(signing.arguments);
    openssl(folder, &arguments);
    std::fs::read(said).expect("it was written")
}

/// RFC 6960 §A.1.
fn question(folder: &Path, target: &str) -> Vec<u8> {
    let own = tempfile::tempdir_in(folder).expect("own directory is writable");
    let file = own.path().join("question").display().to_string();
    let text = target.trim_start_matches('/').replace("%2B", "+").replace("%2F", "/").replace("%3D", "=");
    std::fs::write(&file, text).expect("own directory is writable");
    let whole: PathBuf = own.path().join("decoded");
    openssl(folder, &["base64", "-d", "-A", "-in", &file, "-out", &whole.display().to_string()]);
    std::fs::read(whole).expect("it was written")
}

pub(crate) fn openssl(folder: &Path, arguments: &[&str]) -> String {
    let done = Command::new("openssl").args(arguments).current_dir(folder).output();
    let done = done.expect("openssl is installed");
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}
