//! `auth_basic`: a name and a password (RFC 7617) that a file knows.
//!
//! The file is read and the password computed on a thread that may take its time. What takes long there is done for a few at a
//! time over the whole process, so that wrong ones cannot take all cores; nothing else waits for that. What was right is
//! `remembered`. Next: `password_line`, who waits for whom; `users`, the files; `password`, which knows the formats.

use super::password::{self, Unreadable};
use super::password_line::{LINE, TooMany};
use super::remembered::{self, Memory, Token};
use super::users::{FileState, Users};
use super::{Opinion, Question, challenge};
use crate::basic_credential::{self, BasicCredential};
use crate::failure;
use crate::request::Request;
use crate::variables::value;
use millstream_conf::model::{Level, Settings};
use millstream_net::{blocking, clock};
use millstream_telemetry::error_log::SystemError;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct PasswordQuestion {
    realm: Vec<u8>,
    file: PathBuf,
    sent: BasicCredential,
    token: Token,
    /// The state of the file for which they were right before.
    right_for: Option<FileState>,
}

enum Finding {
    Right(FileState, bool),
    Wrong,
    NoUser,
    Unreadable,
    NoFile(io::Error),
}

pub(super) fn judge(request: &mut Request, settings: &Settings) -> Result<Opinion, Question> {
    let Some(basic) = &settings.auth_basic else { return Ok(Opinion::None) };
    let realm = value(&basic.realm, request);
    if realm == b"off" {
        return Ok(Opinion::None);
    }
    let Some(sent) = basic_credential::of(request) else {
        let what = format_args!("no user/password was provided for basic authentication");
        failure::log(request, Level::Info, what);
        return Ok(refused(request, &realm));
    };
    let file = value(&basic.users, request);
    let file = basic.directory.join(Path::new(OsStr::from_bytes(&file)));
    let token = Token::of(&file, &sent);
    let right_for = match remembered::look(&token, clock::now()) {
        Memory::Right => return Ok(Opinion::LetsIn),
        Memory::RightFor(state) => Some(state),
        Memory::Nothing => None,
    };
    Err(Question::Password(Box::new(PasswordQuestion { realm, file, sent, token, right_for })))
}

fn refused(request: &mut Request, realm: &[u8]) -> Opinion {
    let mut text = b"Basic realm=\"".to_vec();
    // A variable may hold line ends, which must not become a field of their own.
    text.extend(realm.iter().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)));
    text.push(b'"');
    challenge(request, &text);
    Opinion::Refuses(401)
}

impl PasswordQuestion {
    pub async fn answer(self, request: &mut Request) -> Opinion {
        let question = Arc::new(self);
        let mut turn = None;
        let finding = loop {
            let asked = question.clone();
            // The work is done to its end also where the client has left, and so is its turn kept.
            if let Some(finding) = blocking::run(move || asked.find(turn.is_some())).await {
                break finding;
            }
            turn = match LINE.turn(request.client()).await {
                Ok(turn) => Some(turn),
                Err(TooMany) => {
                    let what = format_args!("too many passwords from this address are waiting to be checked");
                    failure::log(request, Level::Error, what);
                    return Opinion::Refuses(503);
                }
            };
        };
        let PasswordQuestion { realm, file, sent, token, .. } = &*question;
        let (user, file) = (String::from_utf8_lossy(&sent.user), file.display());
        let log = |level, what: std::fmt::Arguments<'_>| failure::log(request, level, what);
        match finding {
            Finding::Right(state, is_computed) => {
                remembered::remember(*token, state, is_computed, clock::now());
                Opinion::LetsIn
            }
            Finding::Wrong => {
                log(Level::Error, format_args!("user \"{user}\": password mismatch"));
                refused(request, realm)
            }
            Finding::NoUser => {
                log(Level::Error, format_args!("user \"{user}\" was not found in \"{file}\""));
                refused(request, realm)
            }
            Finding::Unreadable => {
                let format = "has an unsupported hash format";
                log(Level::Error, format_args!("the password of user \"{user}\" in \"{file}\" {format}"));
                // As crypt(3) has it: such a line is nobody's password.
                refused(request, realm)
            }
            Finding::NoFile(error) => {
                let is_gone = error.kind() == io::ErrorKind::NotFound;
                let level = if is_gone { Level::Error } else { Level::Crit };
                log(level, format_args!("open() \"{file}\" failed {}", SystemError(&error)));
                Opinion::Refuses(if is_gone { 403 } else { 500 })
            }
        }
    }

    /// `None` if comparing is slow and `at_length` is false. Blocks.
    fn find(&self, at_length: bool) -> Option<Finding> {
        let users = match Users::open(&self.file) {
            Ok(users) => users,
            Err(error) => return Some(Finding::NoFile(error)),
        };
        let state = users.state;
        if self.right_for == Some(state) {
            return Some(Finding::Right(state, false));
        }
        if users.is_long() && !at_length {
            return None;
        }
        let stored = match users.password_of(&self.sent.user) {
            Ok(Some(stored)) => stored,
            Ok(None) => return Some(Finding::NoUser),
            Err(error) => return Some(Finding::NoFile(error)),
        };
        if password::is_slow(&self.sent.password, &stored) && !at_length {
            return None;
        }
        Some(match password::is_right(&self.sent.password, &stored) {
            Ok(true) => Finding::Right(state, true),
            Ok(false) => Finding::Wrong,
            Err(Unreadable) => Finding::Unreadable,
        })
    }
}
