//! The messages of OCSP in ASN.1, with the fields that this crate reads or writes by name (RFC 6960 §4.1.1 and §4.2.1).
//!
//! Parts that no decision depends on stay as they came (`Any`). What the fields mean, and whether the signature holds, is decided in `ocsp`.

use der::asn1::{Any, BitString, GeneralizedTime, Null, ObjectIdentifier, OctetString};
use der::{Choice, Enumerated, Sequence};
use x509_cert::certificate::Raw;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;

#[derive(Debug, Sequence)]
pub(super) struct OcspRequest {
    pub(super) tbs_request: TbsRequest,
}

/// Its version is the default, which DER leaves out.
#[derive(Debug, Sequence)]
pub(super) struct TbsRequest {
    pub(super) request_list: Vec<Request>,
}

#[derive(Debug, Sequence)]
pub(super) struct Request {
    pub(super) req_cert: CertId,
}

/// The serial number of any length and sign: it is only compared.
#[derive(Debug, Clone, PartialEq, Eq, Sequence)]
pub(super) struct CertId {
    pub(super) hash_algorithm: AlgorithmIdentifierOwned,
    pub(super) issuer_name_hash: OctetString,
    pub(super) issuer_key_hash: OctetString,
    pub(super) serial_number: SerialNumber<Raw>,
}

#[derive(Debug, Sequence)]
pub(super) struct OcspResponse {
    pub(super) response_status: OcspResponseStatus,
    #[asn1(context_specific = "0", optional = "true", tag_mode = "EXPLICIT")]
    pub(super) response_bytes: Option<ResponseBytes>,
}

/// 4 is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enumerated)]
#[repr(u32)]
pub(super) enum OcspResponseStatus {
    Successful = 0,
    MalformedRequest = 1,
    InternalError = 2,
    TryLater = 3,
    SigRequired = 5,
    Unauthorized = 6,
}

#[derive(Debug, Sequence)]
pub(super) struct ResponseBytes {
    pub(super) response_type: ObjectIdentifier,
    pub(super) response: OctetString,
}

/// `tbs_response_data` is what is signed: a [`ResponseData`], kept in the bytes that came.
#[derive(Debug, Sequence)]
pub(super) struct BasicOcspResponse {
    pub(super) tbs_response_data: Any,
    pub(super) signature_algorithm: AlgorithmIdentifierOwned,
    pub(super) signature: BitString,
    #[asn1(context_specific = "0", optional = "true", tag_mode = "EXPLICIT")]
    pub(super) certs: Option<Vec<Any>>,
}

#[derive(Debug, Sequence)]
pub(super) struct ResponseData {
    #[asn1(context_specific = "0", default = "Default::default", tag_mode = "EXPLICIT")]
    pub(super) version: Version,
    pub(super) responder_id: Any,
    pub(super) produced_at: GeneralizedTime,
    pub(super) responses: Vec<SingleResponse>,
    #[asn1(context_specific = "1", optional = "true", tag_mode = "EXPLICIT")]
    pub(super) response_extensions: Option<Any>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Enumerated)]
#[asn1(type = "INTEGER")]
#[repr(u8)]
pub(super) enum Version {
    #[default]
    V1 = 0,
}

#[derive(Debug, Sequence)]
pub(super) struct SingleResponse {
    pub(super) cert_id: CertId,
    pub(super) cert_status: CertStatus,
    pub(super) this_update: GeneralizedTime,
    #[asn1(context_specific = "0", optional = "true", tag_mode = "EXPLICIT")]
    pub(super) next_update: Option<GeneralizedTime>,
    #[asn1(context_specific = "1", optional = "true", tag_mode = "EXPLICIT")]
    pub(super) single_extensions: Option<Any>,
}

#[derive(Debug, Choice)]
pub(super) enum CertStatus {
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT")]
    Good(Null),
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", constructed = "true")]
    Revoked(RevokedInfo),
    #[asn1(context_specific = "2", tag_mode = "IMPLICIT")]
    Unknown(Null),
}

#[derive(Debug, Sequence)]
pub(super) struct RevokedInfo {
    pub(super) revocation_time: GeneralizedTime,
    #[asn1(context_specific = "0", optional = "true", tag_mode = "EXPLICIT")]
    pub(super) revocation_reason: Option<Any>,
}
