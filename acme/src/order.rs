//! The way to one certificate (RFC 8555 §7.4): an order, whose each name is shown to be ours, a request, and the chain.
//!
//! ```text
//! newOrder → pending ─(each authorization: challenge → valid)→ ready ─(finalize)→ processing → valid → certificate
//! ```
//! Answers to challenges are open for as long as the authority looks, and no longer. Before: `session`, `challenge`, `request`; next: `issuer`.

use crate::certificate::leads_up_to;
use crate::challenge;
use crate::failure::{AcmeFailure, Problem};
use crate::key;
use crate::request;
use crate::session::{Session, read};
use crate::transport::Reply;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use millstream_conf::model::{AcmeCertificate, AcmeIdentifier, AcmeIssuer};
use millstream_net::timer::pause;
use millstream_net::tls::{Challenges, OpenChallenge};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// First pause between polls, if the server names none.
const FIRST_WAIT: Duration = Duration::from_millis(300);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Polls of one resource at most: with the pauses above, twenty minutes.
const MOST_LOOKS: usize = 45;
const MOST_CHAINS: usize = 4;

const JSON: &str = "application/json";
const CHAIN: &str = "application/pem-certificate-chain";

pub(crate) struct OrderTerms<'a> {
    pub(crate) issuer: &'a AcmeIssuer,
    pub(crate) certificate: &'a AcmeCertificate,
    pub(crate) challenges: &'a Arc<Challenges>,
    /// The certificate that this one replaces (RFC 9773 §5).
    pub(crate) replaces: Option<&'a str>,
}

#[derive(Deserialize)]
struct OrderState {
    status: Status,
    #[serde(default)]
    authorizations: Vec<String>,
    finalize: String,
    certificate: Option<String>,
    error: Option<Problem>,
}

#[derive(Deserialize)]
struct Authorization {
    status: Status,
    identifier: Identifier,
    #[serde(default)]
    challenges: Vec<Challenge>,
}

#[derive(Deserialize)]
struct Identifier {
    value: String,
}

#[derive(Deserialize)]
struct Challenge {
    #[serde(rename = "type")]
    kind: String,
    url: String,
    #[serde(default)]
    token: String,
    error: Option<Problem>,
}

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Status {
    Pending,
    Ready,
    Processing,
    Valid,
    Invalid,
    Deactivated,
    Expired,
    Revoked,
}

/// Returns the chain and its key as PEM in one text.
pub(crate) async fn obtain(session: &mut Session, terms: &OrderTerms<'_>) -> Result<String, AcmeFailure> {
    let (url, order) = begin(session, terms).await?;
    if order.status == Status::Pending {
        prove(session, terms, &order.authorizations).await?;
    }
    let ready = settled(session, &url, |order: &OrderState| order.status != Status::Pending).await?;
    if ready.status != Status::Ready {
        return Err(refused(ready));
    }
    let key = key::make(terms.certificate.key)?;
    let request = request::make(terms.issuer, terms.certificate, &key)?;
    session.post(&ready.finalize, &json!({ "csr": URL_SAFE_NO_PAD.encode(request) })).await?;
    let done = |order: &OrderState| !matches!(order.status, Status::Processing | Status::Ready);
    let issued = settled(session, &url, done).await?;
    match &issued.certificate {
        Some(certificate) if issued.status == Status::Valid => {
            let chain = chain(session, certificate, terms.issuer.preferred_chain.as_deref()).await?;
            Ok(format!("{}\n{}", chain.trim_end(), key.serialize_pem()))
        }
        _ => Err(refused(issued)),
    }
}

/// The order, new or pending, and its URL.
async fn begin(session: &mut Session, terms: &OrderTerms<'_>) -> Result<(String, OrderState), AcmeFailure> {
    let identifiers: Vec<_> = terms
        .certificate
        .identifiers
        .iter()
        .map(|one| match one {
            AcmeIdentifier::Dns(name) => json!({ "type": "dns", "value": name }),
            AcmeIdentifier::Ip(address) => json!({ "type": "ip", "value": address.to_string() }),
        })
        .collect();
    let mut payload = json!({ "identifiers": identifiers });
    if let Some(profile) = &terms.issuer.profile {
        match session.directory.meta.profiles.contains_key(&profile.name) {
            true => payload["profile"] = json!(profile.name),
            false if profile.required => return Err(AcmeFailure::NoProfile(profile.name.clone())),
            false => {}
        }
    }
    let url = session.directory.new_order.clone();
    let reply = match terms.replaces.filter(|_| session.directory.renewal_info.is_some()) {
        None => session.post(&url, &payload).await?,
        Some(replaces) => {
            let mut replacing = payload.clone();
            replacing["replaces"] = json!(replaces);
            match session.post(&url, &replacing).await {
                // It was replaced, or the server has forgotten it: it is only a courtesy.
                Err(AcmeFailure::Refused(problem, _)) if problem.name() != "rateLimited" => {
                    session.post(&url, &payload).await?
                }
                outcome => outcome?,
            }
        }
    };
    let place = reply.field("location").ok_or(AcmeFailure::Answer("contains no order URL"))?.to_owned();
    let order: OrderState = read(&reply)?;
    if order.authorizations.len() > terms.certificate.identifiers.len() {
        return Err(AcmeFailure::Answer("contains more authorizations than the order has names"));
    }
    Ok((place, order))
}

async fn prove(session: &mut Session, terms: &OrderTerms<'_>, urls: &[String]) -> Result<(), AcmeFailure> {
    let mut open: Vec<(&String, OpenChallenge)> = Vec::new();
    let mut begun = Vec::new();
    for url in urls {
        let authorization: Authorization = read(&session.look(url, JSON).await?)?;
        if authorization.status == Status::Pending {
            let (challenge, opened) = open_one(session, terms, &authorization)?;
            open.push((url, opened));
            begun.push(challenge);
        }
    }
    // All are open before the authority is told of the first.
    for url in begun {
        session.post(&url, &json!({})).await?;
    }
    for (url, opened) in open {
        let is_over = |authorization: &Authorization| authorization.status != Status::Pending;
        let seen = settled(session, url, is_over).await?;
        drop(opened);
        if seen.status != Status::Valid {
            return Err(unproven(seen, &session.key.thumbprint()));
        }
    }
    Ok(())
}

/// Why a name was not proven. Its key authorization is blanked.
fn unproven(mut seen: Authorization, thumbprint: &str) -> AcmeFailure {
    let why = seen.challenges.iter_mut().find_map(|challenge| challenge.error.take()).unwrap_or_default();
    let tokens = seen.challenges.iter().map(|challenge| challenge.token.as_str());
    let secrets: Vec<&str> = tokens.chain([thumbprint]).collect();
    AcmeFailure::Unproven(seen.identifier.value, Box::new(why.without(&secrets)))
}

/// Responds to the challenge of an authorization; returns the challenge's URL.
fn open_one(
    session: &Session,
    terms: &OrderTerms<'_>,
    authorization: &Authorization,
) -> Result<(String, OpenChallenge), AcmeFailure> {
    let name = &authorization.identifier.value;
    let ours = terms.certificate.identifiers.iter().find(|one| one.to_string() == *name);
    let ours =
        ours.ok_or(AcmeFailure::Answer("contains an authorization for a name that is not in the order"))?;
    let way = terms.issuer.challenge;
    let offered = authorization.challenges.iter().find(|challenge| challenge.kind == way.name());
    let offered = offered.ok_or_else(|| AcmeFailure::NoChallenge(name.clone(), way.name()))?;
    let thumbprint = session.key.thumbprint();
    let opened = challenge::open(terms.challenges, way, ours, &offered.token, &thumbprint)?;
    Ok((offered.url.clone(), opened))
}

/// Polls a resource until `is_over`.
async fn settled<T: serde::de::DeserializeOwned>(
    session: &mut Session,
    url: &str,
    is_over: impl Fn(&T) -> bool,
) -> Result<T, AcmeFailure> {
    let mut wait = FIRST_WAIT;
    for look in 0..MOST_LOOKS {
        let reply = session.look(url, JSON).await?;
        let state: T = read(&reply)?;
        if is_over(&state) {
            return Ok(state);
        }
        let said = reply.retry_after().filter(|_| look > 0).unwrap_or_default();
        pause(wait.max(said).min(LONGEST_WAIT)).await;
        wait *= 2;
    }
    Err(AcmeFailure::TimedOut("complete the order"))
}

fn refused(order: OrderState) -> AcmeFailure {
    match order.error {
        Some(problem) => AcmeFailure::Refused(Box::new(problem), None),
        None => AcmeFailure::Answer("reports that the order is not valid"),
    }
}

async fn chain(session: &mut Session, url: &str, preferred: Option<&str>) -> Result<String, AcmeFailure> {
    let first = session.look(url, CHAIN).await?;
    let text = chain_of(&first)?;
    let Some(name) = preferred.filter(|name| !leads_up_to(&text, name)) else { return Ok(text) };
    for other in first.links("alternate").iter().take(MOST_CHAINS) {
        let other = chain_of(&session.look(other, CHAIN).await?)?;
        if leads_up_to(&other, name) {
            return Ok(other);
        }
    }
    Ok(text)
}

fn chain_of(reply: &Reply) -> Result<String, AcmeFailure> {
    String::from_utf8(reply.body.clone())
        .map_err(|_| AcmeFailure::Answer("is not a certificate chain in PEM"))
}
