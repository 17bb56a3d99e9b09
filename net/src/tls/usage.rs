//! What a certificate may be used for, as its own extensions say it (RFC 5280 §4.2.1.3, §4.2.1.12).
//!
//! The library looks at extended uses alone. OpenSSL, and with it nginx, looks at all three: an authority must be one that signs
//! certificates, and whoever shows a certificate needs a key that proves it. Next: `direct` and `authorities`, which judge by it.

use super::unverified::Unverified;
use crate::certificate::Certificate;
use crate::certificate::extension::{EXTENDED_KEY_USAGE, KEY_USAGE, NETSCAPE_TYPE};
use crate::element::Element;
use der::asn1::ObjectIdentifier;

const ANY_USE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37.0");

/// What a certificate is shown as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A client's.
    Client,
    /// A server's.
    Server,
}

/// Whether an authority's key may sign certificates. One that says nothing of its key may.
pub(super) fn signs_certificates(authority: &Certificate<'_>) -> bool {
    authority.all(&KEY_USAGE).all(|usage| usage.has_bit(5))
}

/// Whether it may sign lists of what is revoked.
pub(super) fn signs_lists(authority: &Certificate<'_>) -> bool {
    authority.all(&KEY_USAGE).all(|usage| usage.has_bit(6))
}

/// Whether a certificate is for that purpose: where it says what it is for, this must be among it.
///
/// # Errors
/// [`Unverified::Purpose`].
pub(super) fn is_for(purpose: Purpose, shown: &Certificate<'_>) -> Result<(), Unverified> {
    // With RSA a server's key may also open what the client has sealed; a client's signs or agrees.
    let (own, key_bits, netscape_bit) = match purpose {
        Purpose::Client => (ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2"), &[0, 4][..], 0),
        Purpose::Server => (ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1"), &[0, 4, 2][..], 1),
    };
    let is_own = |one: &Element<'_>| [own, ANY_USE].iter().any(|id| one.identifier() == Some(id.as_bytes()));
    let fits =
        shown.all(&EXTENDED_KEY_USAGE).all(|usage| usage.parts().is_some_and(|all| all.iter().any(is_own)))
            && shown.all(&KEY_USAGE).all(|usage| key_bits.iter().any(|bit| usage.has_bit(*bit)))
            && shown.all(&NETSCAPE_TYPE).all(|kind| kind.has_bit(netscape_bit));
    if fits { Ok(()) } else { Err(Unverified::Purpose) }
}
