//! What an authority says of a certificate (OCSP, RFC 6960): the question, and what an answer is worth.
//!
//! Pure: bytes and a moment in, a judgement out. The answer is from the network, and nothing of it counts before its signature. Next: `messages`, the
//! ASN.1; `stapling`, which asks.

mod messages;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use der::asn1::{Any, GeneralizedTime, ObjectIdentifier, OctetString};
use der::{AnyRef, Decode, Encode};
use messages::{
    BasicOcspResponse, CertId, CertStatus, OcspRequest, OcspResponse, OcspResponseStatus, Request,
    ResponseData, TbsRequest,
};
use millstream_net::tls::{CertificateDer, CertificateIssuer};
use std::fmt;
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::ext::pkix::AuthorityInfoAccessSyntax;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::spki::AlgorithmIdentifierOwned;

/// id-sha1: by its hashes every responder knows its certificates (RFC 5019 §2.1.1).
const SHA1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");
/// id-pkix-ocsp-basic (RFC 6960 §4.2.1).
const BASIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.1");
/// id-ad-ocsp (RFC 6960 §3.1).
const RESPONDER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1");
/// Clocks may differ by so many seconds, as nginx has it.
const SKEW: i64 = 300;
/// Certificates of delegates that are looked at.
const MOST_DELEGATES: usize = 8;

/// Why nothing is said that can be sent along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OcspFailure {
    /// It cannot be understood.
    Malformed,
    /// The responder does not answer the question.
    Refused(&'static str),
    /// It speaks of other certificates.
    OfAnother,
    /// Neither the authority nor one whom it lets speak has signed it.
    Unsigned,
    /// It does not hold yet, or no longer.
    OutOfTime,
    /// The certificate is revoked.
    Revoked,
    /// The responder does not know the certificate.
    Unknown,
}

impl fmt::Display for OcspFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OcspFailure::Malformed => f.write_str("the response is not an OCSP response"),
            OcspFailure::Refused(why) => write!(f, "the responder returned an error: {why}"),
            OcspFailure::OfAnother => f.write_str("the response is for another certificate"),
            OcspFailure::Unsigned => {
                f.write_str("the response is not signed by the issuer of the certificate")
            }
            OcspFailure::OutOfTime => f.write_str("the response is expired or not yet valid"),
            OcspFailure::Revoked => f.write_str("the certificate status is \"revoked\""),
            OcspFailure::Unknown => f.write_str("the certificate status is \"unknown\""),
        }
    }
}

/// What is asked about a certificate.
#[derive(Debug)]
pub(crate) struct OcspQuestion {
    id: CertId,
    /// The question in DER.
    pub(crate) request: Vec<u8>,
}

impl OcspQuestion {
    /// About this certificate of that authority's; nothing where it cannot be read.
    pub(crate) fn about(leaf: &CertificateDer<'_>, issuer: &CertificateIssuer) -> Option<OcspQuestion> {
        let (name, key) = issuer.hashed()?;
        let hash = |bytes: &[u8]| OctetString::new(digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref()).ok();
        let id = CertId {
            hash_algorithm: AlgorithmIdentifierOwned { oid: SHA1, parameters: Some(AnyRef::NULL.into()) },
            issuer_name_hash: hash(&name)?,
            issuer_key_hash: hash(&key)?,
            serial_number: parse(leaf)?.tbs_certificate().serial_number().clone(),
        };
        let tbs_request = TbsRequest { request_list: vec![Request { req_cert: id.clone() }] };
        let request = OcspRequest { tbs_request }.to_der().ok()?;
        Some(OcspQuestion { id, request })
    }

    /// Until when an answer holds, in seconds since 1970, where it says that the certificate is good; without an end where it names none.
    pub(crate) fn judge(
        &self,
        response: &[u8],
        issuer: &CertificateIssuer,
        now: i64,
    ) -> Result<Option<i64>, OcspFailure> {
        let whole = OcspResponse::from_der(response).map_err(|_| OcspFailure::Malformed)?;
        match whole.response_status {
            OcspResponseStatus::Successful => {}
            OcspResponseStatus::MalformedRequest => return Err(OcspFailure::Refused("malformed request")),
            OcspResponseStatus::InternalError => return Err(OcspFailure::Refused("internal error")),
            OcspResponseStatus::TryLater => return Err(OcspFailure::Refused("try later")),
            OcspResponseStatus::SigRequired => return Err(OcspFailure::Refused("signature required")),
            OcspResponseStatus::Unauthorized => return Err(OcspFailure::Refused("unauthorized")),
        }
        let bytes = whole.response_bytes.ok_or(OcspFailure::Malformed)?;
        if bytes.response_type != BASIC {
            return Err(OcspFailure::Malformed);
        }
        let basic = BasicOcspResponse::from_der(bytes.response.as_bytes());
        let basic = basic.map_err(|_| OcspFailure::Malformed)?;
        // DER has one form of each value: written again, it is the bytes that came.
        let message = basic.tbs_response_data.to_der().map_err(|_| OcspFailure::Malformed)?;
        let data = ResponseData::from_der(&message).map_err(|_| OcspFailure::Malformed)?;
        is_signed(&basic, &message, issuer, now)?;
        let about = |id: &CertId| {
            id.hash_algorithm.oid == SHA1
                && id.issuer_name_hash == self.id.issuer_name_hash
                && id.issuer_key_hash == self.id.issuer_key_hash
                && id.serial_number == self.id.serial_number
        };
        let mut said = data.responses.iter();
        let said = said.find(|single| about(&single.cert_id)).ok_or(OcspFailure::OfAnother)?;
        let until = said.next_update.as_ref().map(seconds);
        // RFC 6960 §4.2.2.1.
        if seconds(&said.this_update) > now + SKEW || until.is_some_and(|until| until < now - SKEW) {
            return Err(OcspFailure::OutOfTime);
        }
        match said.cert_status {
            CertStatus::Good(_) => Ok(until),
            CertStatus::Revoked(_) => Err(OcspFailure::Revoked),
            CertStatus::Unknown(_) => Err(OcspFailure::Unknown),
        }
    }
}

fn seconds(time: &GeneralizedTime) -> i64 {
    i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX)
}

/// By the authority, or by one whose certificate is in the answer and says that it may (RFC 6960 §4.2.2.2). `message` is the signed part of `basic`.
fn is_signed(
    basic: &BasicOcspResponse,
    message: &[u8],
    issuer: &CertificateIssuer,
    now: i64,
) -> Result<(), OcspFailure> {
    let signature = basic.signature.as_bytes().ok_or(OcspFailure::Malformed)?;
    if issuer.has_signed(message, signature) {
        return Ok(());
    }
    let now = u64::try_from(now).unwrap_or(0);
    let lets = |delegate: &Any| {
        let Ok(delegate) = delegate.to_der() else { return false };
        issuer.has_let_sign(&CertificateDer::from(delegate), message, signature, now)
    };
    match basic.certs.iter().flatten().take(MOST_DELEGATES).any(lets) {
        true => Ok(()),
        false => Err(OcspFailure::Unsigned),
    }
}

/// The responder that a certificate names (RFC 5280 §4.2.2.1).
pub(crate) fn responder(leaf: &CertificateDer<'_>) -> Option<String> {
    let certificate = parse(leaf)?;
    let (_, access) = certificate.tbs_certificate().get_extension::<AuthorityInfoAccessSyntax>().ok()??;
    let mut named = access.0.into_iter().filter(|one| one.access_method == RESPONDER);
    named.find_map(|one| match one.access_location {
        GeneralName::UniformResourceIdentifier(url) => Some(url.as_str().to_owned()),
        _ => None,
    })
}

/// With a serial number of any length, as OpenSSL reads one.
fn parse(certificate: &CertificateDer<'_>) -> Option<CertificateInner<Raw>> {
    CertificateInner::from_der(certificate).ok()
}

#[cfg(test)]
mod tests;
