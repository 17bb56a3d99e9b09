//! Private keys out of PEM, also those that a password keeps: PKCS#8 (RFC 5958), and the form that OpenSSL had before it.
//!
//! The text may hold other things beside. Nothing of a key or a password is ever printed. Next: `certificates`.

use crate::element::Element;
use aes::{Aes128, Aes192, Aes256};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cbc::Decryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, KeyIvInit};
use des::TdesEde3;
use md5::{Digest, Md5};
use pkcs8::EncryptedPrivateKeyInfoRef;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

#[cfg(test)]
mod tests;

/// Why there is no key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyError {
    /// None is there.
    None,
    /// The text is broken.
    Broken(String),
    /// It is kept by a password, and none is given.
    NeedsPassword,
    /// No password that is given opens it.
    WrongPassword,
    /// It is kept by a cipher that is not known.
    UnknownCipher(String),
}

/// The passwords of a file, one a line; empty lines are none.
pub(super) fn passwords(text: &[u8]) -> Vec<Vec<u8>> {
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Whether a password keeps the first private key in PEM.
pub(super) fn is_sealed(text: &[u8]) -> bool {
    std::str::from_utf8(text).ok().and_then(Kept::find).is_some()
}

/// The first private key in PEM.
pub(super) fn private(text: &[u8], passwords: &[Vec<u8>]) -> Result<PrivateKeyDer<'static>, KeyError> {
    let kept = std::str::from_utf8(text).ok().and_then(Kept::find);
    let Some(kept) = kept else {
        return PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
            pem::Error::NoItemsFound => KeyError::None,
            error => KeyError::Broken(error.to_string()),
        });
    };
    let sealed: String = kept.text.split_ascii_whitespace().collect();
    let sealed = STANDARD.decode(sealed).map_err(|error| KeyError::Broken(error.to_string()))?;
    if passwords.is_empty() {
        return Err(KeyError::NeedsPassword);
    }
    for password in passwords {
        if let Some(key) = kept.open(&sealed, password)? {
            return Ok(key);
        }
    }
    Err(KeyError::WrongPassword)
}

/// A key that a password keeps, as it stands in a text.
struct Kept<'a> {
    form: KeyForm,
    text: &'a str,
    /// Of an old form: the cipher and what it begins with, in hexadecimal digits.
    cipher: Option<(&'a str, &'a str)>,
}

#[derive(Clone, Copy)]
enum KeyForm {
    Pkcs8,
    Pkcs1,
    Sec1,
}

impl<'a> Kept<'a> {
    fn find(text: &'a str) -> Option<Self> {
        const FORMS: [(KeyForm, &str, &str); 3] = [
            (KeyForm::Pkcs8, "-----BEGIN ENCRYPTED PRIVATE KEY-----", "-----END ENCRYPTED PRIVATE KEY-----"),
            (KeyForm::Pkcs1, "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"),
            (KeyForm::Sec1, "-----BEGIN EC PRIVATE KEY-----", "-----END EC PRIVATE KEY-----"),
        ];
        FORMS.iter().find_map(|(form, begin, end)| {
            let (_, rest) = text.split_once(begin)?;
            let (inside, _) = rest.split_once(end)?;
            if let KeyForm::Pkcs8 = form {
                return Some(Kept { form: *form, text: inside, cipher: None });
            }
            // RFC 1421 §4.6: fields, an empty line, the text.
            let lines = inside.trim_start();
            let (_, rest) = lines.strip_prefix("Proc-Type: 4,ENCRYPTED")?.split_once("DEK-Info: ")?;
            let (said, text) = rest.split_once('\n')?;
            Some(Kept { form: *form, text, cipher: said.trim_end().split_once(',') })
        })
    }

    /// The key, if that is the password.
    fn open(&self, sealed: &[u8], password: &[u8]) -> Result<Option<PrivateKeyDer<'static>>, KeyError> {
        let KeyForm::Pkcs8 = self.form else {
            let (cipher, vector) =
                self.cipher.ok_or_else(|| KeyError::Broken("the cipher is missing".to_owned()))?;
            let plain = open_old(cipher, vector, sealed, password)?;
            // A wrong password may leave whole padding behind by chance.
            return Ok(plain.filter(|plain| Element::read(plain).is_some()).map(|plain| match self.form {
                KeyForm::Sec1 => PrivateSec1KeyDer::from(plain).into(),
                _ => PrivatePkcs1KeyDer::from(plain).into(),
            }));
        };
        let broken = |error: pkcs8::Error| KeyError::Broken(error.to_string());
        let info = EncryptedPrivateKeyInfoRef::try_from(sealed).map_err(broken)?;
        let plain = info.decrypt(password).ok();
        Ok(plain.map(|plain| PrivatePkcs8KeyDer::from(plain.as_bytes().to_vec()).into()))
    }
}

/// OpenSSL's old form: a key made of the password by MD5, CBC.
fn open_old(cipher: &str, vector: &str, sealed: &[u8], password: &[u8]) -> Result<Option<Vec<u8>>, KeyError> {
    let broken = || KeyError::Broken("the initialization vector is invalid".to_owned());
    let vector = hex(vector).ok_or_else(broken)?;
    let salt = vector.get(..8).ok_or_else(broken)?;
    let key = |length: usize| {
        let mut key = Vec::new();
        let mut last = Vec::new();
        while key.len() < length {
            last =
                Md5::new().chain_update(&last).chain_update(password).chain_update(salt).finalize().to_vec();
            key.extend_from_slice(&last);
        }
        key.truncate(length);
        key
    };
    match cipher {
        "AES-128-CBC" => open_with::<Decryptor<Aes128>>(&key(16), &vector, sealed),
        "AES-192-CBC" => open_with::<Decryptor<Aes192>>(&key(24), &vector, sealed),
        "AES-256-CBC" => open_with::<Decryptor<Aes256>>(&key(32), &vector, sealed),
        "DES-EDE3-CBC" => open_with::<Decryptor<TdesEde3>>(&key(24), &vector, sealed),
        other => Err(KeyError::UnknownCipher(other.to_owned())),
    }
}

fn open_with<D: KeyIvInit + BlockModeDecrypt>(
    key: &[u8],
    vector: &[u8],
    sealed: &[u8],
) -> Result<Option<Vec<u8>>, KeyError> {
    let mode = D::new_from_slices(key, vector)
        .map_err(|_| KeyError::Broken("the initialization vector has the wrong length".to_owned()))?;
    let mut buffer = sealed.to_vec();
    let length = mode.decrypt_padded::<Pkcs7>(&mut buffer).ok().map(<[u8]>::len);
    Ok(length.map(|length| {
        buffer.truncate(length);
        buffer
    }))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(pair).collect())?
}
