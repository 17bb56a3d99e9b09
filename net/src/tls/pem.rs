//! PEM files and texts: certificates with their keys, and whatever else stands in them.
//!
//! Reading blocks; whoever does it while the process runs does it off the loop. Before: `keys`; next: `held`.

use super::TlsError;
use super::keys::{self, KeyError};
use millstream_conf::files;
use millstream_conf::model::PemSource;
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::borrow::Cow;
use std::io::{self, Read};
use std::path::Path;

/// A certificate with those that lead up to its authority, and its key, which belong together.
pub(super) fn pair(
    certificate: &PemSource,
    key: &PemSource,
    passwords: &[Vec<u8>],
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    read_pair(certificate, key, passwords, provider).map(|(pair, _)| pair)
}

/// The same, with whether a password keeps the key.
pub(super) fn read_pair(
    certificate: &PemSource,
    key: &PemSource,
    passwords: &[Vec<u8>],
    provider: &CryptoProvider,
) -> Result<(CertifiedKey, bool), TlsError> {
    let chain: Vec<CertificateDer<'static>> = items_of(&text(certificate)?, &certificate.name())?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate(certificate.name()));
    }
    let file = || key.name();
    let key_text = text(key)?;
    let is_sealed = keys::is_sealed(&key_text);
    let private = keys::private(&key_text, passwords).map_err(|error| match error {
        KeyError::None => TlsError::NoKey(file()),
        KeyError::Broken(error) => TlsError::Pem(file(), error),
        KeyError::NeedsPassword => TlsError::NeedsPassword(file()),
        KeyError::WrongPassword => TlsError::WrongPassword(file()),
        KeyError::UnknownCipher(cipher) => TlsError::UnknownCipher(file(), cipher),
    })?;
    let signing = provider
        .key_provider
        .load_private_key(private)
        .map_err(|error| TlsError::BadKey(key.name(), error))?;
    let certified = CertifiedKey::new(chain, signing);
    match certified.keys_match() {
        // A key that cannot tell its public half is used unchecked; a handshake would show it.
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
            Ok((certified, is_sealed))
        }
        // What the library does not take, such as version 1, is the clients' to judge; it is enough that the key is in it.
        Err(rustls::Error::InvalidCertificate(_)) if holds_key(&certified) => Ok((certified, is_sealed)),
        Err(error) => Err(TlsError::Mismatch(certificate.name(), key.name(), error)),
    }
}

/// Whether the certificate has the public half of its key, as it stands in every certificate (RFC 5280 §4.1.2.7).
fn holds_key(certified: &CertifiedKey) -> bool {
    let (Some(public), Some(certificate)) = (certified.key.public_key(), certified.cert.first()) else {
        return false;
    };
    let public: &[u8] = public.as_ref();
    certificate.windows(public.len()).any(|part| part == public)
}

/// The passwords of a file, where one is named.
pub(super) fn passwords(file: Option<&Path>) -> Result<Vec<Vec<u8>>, TlsError> {
    Ok(file.map(read).transpose()?.map(|text| keys::passwords(&text)).unwrap_or_default())
}

/// All items of a kind in a PEM file.
pub(super) fn items<T: PemObject>(file: &Path) -> Result<Vec<T>, TlsError> {
    items_of(&read(file)?, file)
}

fn items_of<T: PemObject>(text: &[u8], file: &Path) -> Result<Vec<T>, TlsError> {
    let items: Result<Vec<T>, _> = T::pem_slice_iter(text).collect();
    items.map_err(|error| TlsError::Pem(file.to_path_buf(), error.to_string()))
}

fn text(source: &PemSource) -> Result<Cow<'_, [u8]>, TlsError> {
    match source {
        PemSource::File(file) => read(file).map(Cow::Owned),
        PemSource::Data(text) => Ok(Cow::Borrowed(text.as_bytes())),
        // Nobody knows what it comes to here.
        PemSource::Variable(..) | PemSource::Issued => Err(TlsError::NoCertificate(source.name())),
    }
}

/// Octets of the largest file that is read: a list of revoked certificates may be large, and none is this large.
const LARGEST: u64 = 64 << 20;

/// Reads a file. Nobody is waited for (a FIFO without a writer), and nothing is read that does not end (a device).
pub(super) fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    let read = || {
        let opened = files::open(file)?;
        if !opened.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        opened.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "larger than 64 MiB"));
        }
        Ok(bytes)
    };
    read().map_err(|error| TlsError::Read(file.to_path_buf(), error))
}
