//! The request for a certificate that is signed with its key (PKCS#10, RFC 8555 §7.4).
//!
//! Before: `key`; next: `order`, which sends it.

use crate::certificate::first;
use crate::failure::AcmeFailure;
use millstream_conf::model::{AcmeCertificate, AcmeIssuer};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

pub(crate) fn make(
    issuer: &AcmeIssuer,
    certificate: &AcmeCertificate,
    key: &KeyPair,
) -> Result<Vec<u8>, AcmeFailure> {
    let failed =
        |error: rcgen::Error| AcmeFailure::Key(format!("cannot create a certificate request: {error}"));
    let names: Vec<String> = certificate.identifiers.iter().map(ToString::to_string).collect();
    let mut parameters = CertificateParams::new(names).map_err(failed)?;
    parameters.distinguished_name = DistinguishedName::new();
    if issuer.common_name_in_csr {
        parameters.distinguished_name.push(DnType::CommonName, first(certificate));
    }
    Ok(parameters.serialize_request(key).map_err(failed)?.der().to_vec())
}
