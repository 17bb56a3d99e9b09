//! What a configuration wants of authorities, and the values by which handshakes and requests see what comes of it.
//!
//! Made at start and at a reload, with what is in the directories of state; what the configuration before had of the same, goes on. Nothing is asked of
//! anybody. Before: `certificate`, `state`; next: `issuer`, which carries it out.

use crate::certificate::{Issuance, name_of};
use crate::key::SigningKey;
use crate::state::StateDirectory;
use crate::transport::connector;
use millstream_conf::diagnostics::Diagnostics;
use millstream_conf::files;
use millstream_conf::model::{AccountKey, AcmeCertificate, AcmeIssuer, Http};
use millstream_conf::source::Span;
use millstream_net::clock;
use millstream_net::tls::{Challenges, Issued, TlsConnector};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub struct Acme {
    /// One per `Http::acme_issuers` that is in use.
    pub issuers: Vec<Arc<IssuerSetup>>,
    /// One per `Http::acme_certificates`.
    pub issued: Vec<Arc<Issued>>,
    /// Open challenges; they outlive a configuration.
    pub challenges: Arc<Challenges>,
}

pub struct IssuerSetup {
    pub settings: AcmeIssuer,
    /// Position in `Http::acme_issuers`.
    pub index: usize,
    pub(crate) tls: Arc<TlsConnector>,
    pub(crate) state: Option<StateDirectory>,
    pub(crate) account_key: Arc<Mutex<Option<String>>>,
    pub(crate) wanted: Vec<Wanted>,
}

impl std::fmt::Debug for IssuerSetup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IssuerSetup").field("name", &self.settings.name).finish_non_exhaustive()
    }
}

pub(crate) struct Wanted {
    pub(crate) certificate: AcmeCertificate,
    pub(crate) name: String,
    pub(crate) issued: Arc<Issued>,
    pub(crate) held: Arc<Mutex<Option<Issuance>>>,
}

const LONGEST_KEY: u64 = 64 << 10;

fn read_key(path: &Path) -> io::Result<String> {
    let mut pem = String::new();
    files::open(path)?.take(LONGEST_KEY).read_to_string(&mut pem)?;
    Ok(pem)
}

impl IssuerSetup {
    /// Whether both want the same certificates in the same way.
    pub fn is_as(&self, other: &IssuerSetup) -> bool {
        let wanted = |one: &IssuerSetup| one.wanted.iter().map(|of| of.name.clone()).collect::<Vec<_>>();
        let key = |one: &IssuerSetup| lock(&one.account_key).clone();
        self.settings == other.settings && wanted(self) == wanted(other) && key(self) == key(other)
    }
}

/// Poisoning is ignored: no value is ever left half changed.
pub(crate) fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Acme {
    /// Creates the state directories.
    pub fn of(http: &Http, previous: Option<&Acme>, findings: &mut Diagnostics) -> Acme {
        let mut acme = Acme {
            challenges: previous.map(|before| before.challenges.clone()).unwrap_or_default(),
            ..Acme::default()
        };
        let mut all = Vec::new();
        for certificate in &http.acme_certificates {
            let issuer = &http.acme_issuers[certificate.issuer.0 as usize];
            all.push(Wanted::of(issuer, certificate, previous));
        }
        acme.issued = all.iter().map(|wanted| wanted.issued.clone()).collect();
        for (index, issuer) in http.acme_issuers.iter().enumerate() {
            let is_its = |wanted: &mut Wanted| wanted.certificate.issuer.0 as usize == index;
            let wanted: Vec<Wanted> = all.extract_if(.., is_its).collect();
            let made = IssuerSetup::of(issuer, index, wanted, previous, findings);
            acme.issuers.extend(made.filter(|made| !made.wanted.is_empty()).map(Arc::new));
        }
        acme
    }
}

impl Wanted {
    fn of(issuer: &AcmeIssuer, certificate: &AcmeCertificate, previous: Option<&Acme>) -> Wanted {
        let name = name_of(issuer, certificate);
        let before = previous.into_iter().flat_map(|before| &before.issuers);
        let is_it = |of: &&Wanted| of.name == name;
        let known = before.filter(|of| of.settings.name == issuer.name).flat_map(|of| &of.wanted).find(is_it);
        let certificate = certificate.clone();
        match known {
            Some(known) => {
                Wanted { certificate, name, issued: known.issued.clone(), held: known.held.clone() }
            }
            None => Wanted { certificate, issued: Issued::new(name.as_str()), name, held: Arc::default() },
        }
    }

    /// Takes the stored certificate if it is valid and newer than the present one; returns whether it did.
    pub(crate) fn restore(&self, state: &StateDirectory) -> bool {
        let mut held = lock(&self.held);
        let kept = state.certificate(&self.name).and_then(Issuance::read);
        let holds = kept.filter(|kept| kept.validity.1 > clock::wall().seconds);
        let newer = holds.filter(|kept| held.as_ref().is_none_or(|held| held.validity.1 < kept.validity.1));
        let taken = newer.filter(|kept| self.issued.put(&kept.pem).is_ok());
        let is_taken = taken.is_some();
        *held = taken.or(held.take());
        is_taken
    }
}

impl IssuerSetup {
    fn of(
        issuer: &AcmeIssuer,
        index: usize,
        wanted: Vec<Wanted>,
        previous: Option<&Acme>,
        findings: &mut Diagnostics,
    ) -> Option<IssuerSetup> {
        let tls = connector(issuer)
            .map_err(|error| {
                _ = findings.error(issuer.span, format!("acme_issuer \"{}\": {error}", issuer.name))
            })
            .ok()?;
        let before = previous.into_iter().flat_map(|before| &before.issuers);
        let mut same = before
            .filter(|of| of.settings.name == issuer.name && of.settings.account_key == issuer.account_key);
        let account_key = match &issuer.account_key {
            AccountKey::File(path) => {
                let read = read_key(path).map_err(|error| error.to_string());
                let good = read
                    .and_then(|pem| SigningKey::read(&pem).map(|_| pem).map_err(|error| error.to_string()));
                let file = path.display();
                let told =
                    |why: String| _ = findings.error(issuer.span, format!("account_key \"{file}\": {why}"));
                Arc::new(Mutex::new(Some(good.map_err(told).ok()?)))
            }
            AccountKey::Made(_) => same.next().map(|same| same.account_key.clone()).unwrap_or_default(),
        };
        let state = match issuer.state_path.as_ref().filter(|_| !wanted.is_empty()) {
            None => None,
            Some(path) => {
                let told = |error| {
                    let what = format!("the state_path {} cannot be created: {error}", path.display());
                    findings
                        .error(issuer.span, what)
                        .help("set state_path to a directory that can be created, such as /var/lib/millstream/acme, or to off");
                };
                Some(StateDirectory::make(path).map_err(told).ok()?)
            }
        };
        if let Some(state) = &state {
            wanted.iter().for_each(|wanted| _ = wanted.restore(state));
        }
        let settings = AcmeIssuer { span: Span::default(), resolver: None, ..issuer.clone() };
        Some(IssuerSetup { settings, index, tls, state, account_key, wanted })
    }
}
