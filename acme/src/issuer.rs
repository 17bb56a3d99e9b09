//! An issuer's course: which certificate is asked for when, what comes of it, and what of that is told.
//!
//! One task does it for each issuer, one certificate after the other, with clock and chance; `schedule` decides. What was issued is in use with the next
//! handshake, then on the disk. Before: `order`, `setup`; next: `millstream`'s `app/src/issuing.rs`, the thread.

use crate::account::register;
use crate::certificate::{Issuance, names};
use crate::chance::chance;
use crate::failure::{AcmeFailure, Retry};
use crate::key::{self, SigningKey};
use crate::order::{self, obtain};
use crate::renewal;
use crate::schedule;
use crate::session::Session;
use crate::setup::{IssuerSetup, Wanted, lock};
use crate::state::{KnownAccount, StateLock};
use crate::transport::Transport;
use millstream_conf::model::{AccountKey, KeyKind, Level};
use millstream_net::clock;
use millstream_net::resolver::Resolver;
use millstream_net::timer::{pause, within};
use millstream_net::tls::Challenges;
use millstream_telemetry::error_log::ErrorLogs;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Longest time between two looks at the clock, which may be set, or the machine may sleep.
const LONGEST_WAIT: Duration = Duration::from_secs(60 * 60);
const LOCK_WAIT: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// Shortest pause between two requests for a certificate, in seconds, however short its life.
const LEAST_REST: i64 = 5;
/// First questions for renewal information spread over this many seconds; also the pause after a failed one.
const FIRST_LOOK: i64 = 6 * 60 * 60;

pub struct Around {
    pub log: ErrorLogs,
    pub resolver: Option<Arc<Resolver>>,
    pub renewed: Arc<Notify>,
}

struct Issuer {
    setup: Arc<IssuerSetup>,
    challenges: Arc<Challenges>,
    around: Rc<RefCell<Around>>,
    courses: Vec<Course>,
}

/// Times are seconds since 1970.
#[derive(Debug, Clone, Copy, Default)]
struct Course {
    /// `i64::MAX`: never.
    ask_at: i64,
    /// When to ask for renewal information.
    look_at: Option<i64>,
    failures: u32,
}

pub async fn run(setup: Arc<IssuerSetup>, challenges: Arc<Challenges>, around: Rc<RefCell<Around>>) {
    let mut issuer = Issuer { setup, challenges, around, courses: Vec::new() };
    let _lock = issuer.lock().await;
    issuer.begin();
    loop {
        let now = clock::wall().seconds;
        let due: Vec<usize> =
            (0..issuer.courses.len()).filter(|at| issuer.courses[*at].next() <= now).collect();
        if !due.is_empty() {
            issuer.work(&due).await;
            continue;
        }
        let next = issuer.courses.iter().map(|course| course.next()).min().unwrap_or(i64::MAX);
        let wait = Duration::from_secs(u64::try_from(next.saturating_sub(now)).unwrap_or(0));
        pause(wait.min(LONGEST_WAIT)).await;
    }
}

impl Course {
    fn next(&self) -> i64 {
        self.ask_at.min(self.look_at.unwrap_or(i64::MAX))
    }
}

impl Issuer {
    fn tell(&self, level: Level, what: std::fmt::Arguments<'_>) {
        let name = &self.setup.settings.name;
        self.around.borrow().log.write(level, format_args!("acme_issuer \"{name}\": {what}"));
    }

    /// Locks the state directory; waits while another process holds it, such as the one before an upgrade.
    async fn lock(&self) -> Option<StateLock> {
        let state = self.setup.state.as_ref()?;
        let mut is_told = false;
        loop {
            match state.lock() {
                Ok(Some(lock)) => return Some(lock),
                Ok(None) if !is_told => {
                    self.tell(
                        Level::Notice,
                        format_args!("another process has locked the state_path, waiting for it"),
                    );
                    is_told = true;
                }
                Ok(None) => {}
                Err(error) => {
                    self.tell(Level::Error, format_args!("the state_path cannot be locked: {error}"));
                    return None;
                }
            }
            pause(LOCK_WAIT).await;
            // What that process gets is used meanwhile.
            let taken = self.setup.wanted.iter().filter(|wanted| wanted.restore(state));
            if taken.count() > 0 {
                self.around.borrow().renewed.notify_one();
            }
        }
    }

    fn begin(&mut self) {
        let now = clock::wall().seconds;
        let course = |wanted: &Wanted| match &*lock(&wanted.held) {
            None => {
                let names = names(&wanted.certificate);
                self.tell(
                    Level::Notice,
                    format_args!(
                        "no certificate for {names} yet, TLS handshakes are refused until it is issued"
                    ),
                );
                Course::default()
            }
            Some(held) => Course {
                ask_at: schedule::renewal(held.validity, chance()),
                look_at: Some(now + (FIRST_LOOK as f64 * chance()) as i64),
                failures: 0,
            },
        };
        self.courses = self.setup.wanted.iter().map(course).collect();
    }

    async fn work(&mut self, due: &[usize]) {
        let mut session = match self.open().await {
            Ok(session) => session,
            Err(failure) => return self.fail_all(due, &failure),
        };
        for at in due {
            let is_asked = self.courses[*at].ask_at <= clock::wall().seconds;
            if !is_asked {
                self.look(&session, *at).await;
                continue;
            }
            let asking = Box::pin(self.ask(&mut session, *at));
            let outcome = within(PATIENCE, asking).await;
            match outcome.unwrap_or(Err(AcmeFailure::TimedOut("issue the certificate"))) {
                Ok(issuance) => {
                    self.succeed(*at, &issuance);
                    self.look(&session, *at).await;
                    self.tell_success(*at, &issuance);
                }
                Err(failure) => {
                    let until = self.fail(&[*at], &failure);
                    let names = names(&self.setup.wanted[*at].certificate);
                    self.tell(Level::Error, format_args!("no certificate for {names}: {failure}{until}"));
                }
            }
        }
    }

    fn fail_all(&mut self, due: &[usize], failure: &AcmeFailure) {
        let now = clock::wall().seconds;
        let (asked, looked): (Vec<usize>, Vec<usize>) =
            due.iter().partition(|at| self.courses[**at].ask_at <= now);
        for at in looked {
            self.courses[at].look_at = Some(now + FIRST_LOOK);
        }
        if !asked.is_empty() {
            let until = self.fail(&asked, failure);
            self.tell(Level::Error, format_args!("{failure}{until}"));
        }
    }

    fn fail(&mut self, due: &[usize], failure: &AcmeFailure) -> String {
        let now = clock::wall().seconds;
        let mut rest = None;
        for at in due {
            let course = &mut self.courses[*at];
            rest = schedule::rest(failure.retry(), course.failures, chance());
            course.failures = course.failures.saturating_add(1);
            course.look_at = None;
            let later =
                rest.map(|rest| now.saturating_add(i64::try_from(rest.as_secs()).unwrap_or(i64::MAX)));
            course.ask_at = later.unwrap_or(i64::MAX).max(now + 1);
        }
        let server = &self.setup.settings.uri.text;
        match rest {
            Some(rest) => format!("; retrying in {} s, server {server}", rest.as_secs().max(1)),
            None => format!("; no retry until the configuration is reloaded, server {server}"),
        }
    }

    async fn open(&self) -> Result<Session, AcmeFailure> {
        let settings = &self.setup.settings;
        let key = self.key()?;
        let transport = Transport {
            tls: self.setup.tls.clone(),
            resolver: self.around.borrow().resolver.clone(),
            resolver_timeout: settings.resolver_timeout,
        };
        let mut session = Session::open(transport, &settings.uri.text, key).await?;
        let known = self.setup.state.as_ref().and_then(|state| state.account());
        let thumbprint = session.key.thumbprint();
        session.account = known
            .filter(|known| known.server == settings.uri.text && known.key == thumbprint)
            .map(|known| known.url);
        Ok(session)
    }

    /// The account's key: the configured one, the stored one, or a new one, stored before the server learns
    /// of it.
    fn key(&self) -> Result<SigningKey, AcmeFailure> {
        let mut known = lock(&self.setup.account_key);
        let state = self.setup.state.as_ref();
        let kept = || state.and_then(|state| state.account_key()).filter(|pem| SigningKey::read(pem).is_ok());
        let pem = match known.clone().or_else(kept) {
            Some(pem) => pem,
            None => {
                let kind = match self.setup.settings.account_key {
                    AccountKey::Made(kind) => kind,
                    AccountKey::File(_) => KeyKind::default(),
                };
                let pem = key::make(kind)?.serialize_pem();
                if let Some(Err(error)) = state.map(|state| state.keep_account_key(&pem)) {
                    self.tell(Level::Error, format_args!("the account key cannot be saved: {error}"));
                }
                pem
            }
        };
        SigningKey::read(known.insert(pem))
    }

    async fn sign_up(&self, session: &mut Session) -> Result<(), AcmeFailure> {
        let (url, is_new) = register(session, &self.setup.settings).await?;
        if is_new {
            self.tell(Level::Notice, format_args!("account {url} was created"));
        }
        let server = self.setup.settings.uri.text.clone();
        let account = KnownAccount { url, server, key: session.key.thumbprint() };
        if let Some(Err(error)) = self.setup.state.as_ref().map(|state| state.keep_account(&account)) {
            self.tell(Level::Error, format_args!("the account URL cannot be saved: {error}"));
        }
        Ok(())
    }

    async fn ask(&self, session: &mut Session, at: usize) -> Result<Issuance, AcmeFailure> {
        let wanted = &self.setup.wanted[at];
        let replaces = lock(&wanted.held).as_ref().and_then(|held| held.renewal_id.clone());
        let order = order::OrderTerms {
            issuer: &self.setup.settings,
            certificate: &wanted.certificate,
            challenges: &self.challenges,
            replaces: replaces.as_deref(),
        };
        let was_known = session.account.is_some();
        if !was_known {
            self.sign_up(session).await?;
        }
        let pem = match obtain(session, &order).await {
            // A server that was made anew, or has closed the account.
            Err(failure) if was_known && is_of_account(&failure) => {
                self.sign_up(session).await?;
                obtain(session, &order).await?
            }
            outcome => outcome?,
        };
        let issuance = Issuance::read(pem).ok_or(AcmeFailure::Answer("contains no certificate"))?;
        wanted.issued.put(&issuance.pem).map_err(AcmeFailure::Unusable)?;
        self.around.borrow().renewed.notify_one();
        Ok(issuance)
    }

    /// The certificate is in use already: stores it and schedules its renewal.
    fn succeed(&mut self, at: usize, issuance: &Issuance) {
        let wanted = &self.setup.wanted[at];
        let kept = self.setup.state.as_ref().map(|state| state.keep_certificate(&wanted.name, &issuance.pem));
        if let Some(Err(error)) = kept {
            let names = names(&wanted.certificate);
            self.tell(Level::Error, format_args!("the certificate for {names} cannot be saved: {error}"));
        }
        let least = clock::wall().seconds + LEAST_REST;
        let ask_at = schedule::renewal(issuance.validity, chance()).max(least);
        self.courses[at] = Course { ask_at, look_at: None, failures: 0 };
        *lock(&wanted.held) = Issuance::read(issuance.pem.clone());
    }

    fn tell_success(&self, at: usize, issuance: &Issuance) {
        let names = names(&self.setup.wanted[at].certificate);
        let now = clock::wall().seconds;
        let (ends, renewed) = (issuance.validity.1 - now, self.courses[at].ask_at - now);
        self.tell(
            Level::Notice,
            format_args!(
                "a certificate for {names} was issued; it expires in {ends} s and will be renewed in {renewed} s"
            ),
        );
    }

    async fn look(&mut self, session: &Session, at: usize) {
        let (validity, renewal_id) = match &*lock(&self.setup.wanted[at].held) {
            Some(held) => (held.validity, held.renewal_id.clone()),
            None => return,
        };
        let now = clock::wall().seconds;
        let suggestion = match renewal_id {
            Some(id) => renewal::ask(session, &id).await,
            None => Ok(None),
        };
        let course = &mut self.courses[at];
        match suggestion {
            Ok(None) => course.look_at = None,
            Ok(Some(suggestion)) => {
                course.look_at = Some(now + suggestion.rest.as_secs() as i64);
                let (first, last) = suggestion.window;
                // A moment that was chosen stays, or looking often would be renewing early.
                let is_chosen = (first..=last).contains(&course.ask_at);
                let moment = schedule::suggested(validity, suggestion.window, chance());
                if let Some(moment) = moment.filter(|_| !is_chosen) {
                    course.ask_at = moment.max(now + LEAST_REST);
                }
            }
            Err(failure) => {
                course.look_at = Some(now + FIRST_LOOK);
                let names = names(&self.setup.wanted[at].certificate);
                self.tell(
                    Level::Info,
                    format_args!("the server does not specify when to renew {names}: {failure}"),
                );
            }
        }
    }
}

fn is_of_account(failure: &AcmeFailure) -> bool {
    failure.retry() == Retry::Never && (failure.is("accountDoesNotExist") || failure.is("malformed"))
        || failure.is("unauthorized")
}
