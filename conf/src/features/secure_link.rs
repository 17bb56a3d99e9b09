//! `secure_link`: links that carry a hash, which only who knows a secret can make.
//!
//! A level takes `secure_link` and `secure_link_md5` from above one by one. Next: `millstream-server`'s `variables/secure_link`,
//! which compares.

use super::context::HTTP_SERVER_LOCATION;
use super::level::level;
use super::templates::record;
use super::{Apply, Feature, Place, Row, once};
use crate::reading::Reading;
use crate::template::Template;

record! {
    pub struct SecureLink {
        /// The hash, and after a comma when the link expires.
        pub link: Option<Template>,
        pub md5: Option<Template>,
        pub secret: Option<String>,
    }
}

level! {
    pub struct SecureLinkLevel {
        link: Template,
        md5: Template,
        secret: String,
    }
}

impl Feature for SecureLinkLevel {
    type Settings = SecureLink;

    fn inherit(&mut self, above: &Self) {
        if self.secret.is_some() {
            return;
        }
        if self.link.is_some() || self.md5.is_some() {
            self.link = self.link.take().or_else(|| above.link.clone());
            self.md5 = self.md5.take().or_else(|| above.md5.clone());
            return;
        }
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> SecureLink {
        SecureLink { link: self.link.clone(), md5: self.md5.clone(), secret: self.secret.clone() }
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("secure_link", HTTP_SERVER_LOCATION, (1, 1), "expression", "",
        "Sets the value that contains the hash of a link, in base64url, and optionally after a comma its expiration time in seconds since 1970. \
        `$secure_link` is `1` if the hash is correct, `0` if it is correct and the link has expired, otherwise empty.",
        Apply::Level(|l, d, r| l.secure_link.link = Some(r.template(&d.args[0])))),
    once("secure_link_md5", HTTP_SERVER_LOCATION, (1, 1), "expression", "",
        "Sets the string whose MD5 is the hash of the link. It should contain a secret.",
        Apply::Level(|l, d, r| l.secure_link.md5 = Some(r.template(&d.args[0])))),
    once("secure_link_secret", HTTP_SERVER_LOCATION, (1, 1), "word", "",
        "Sets the secret of links such as `/prefix/hash/link`, whose hash is the MD5 of the link and this word, in hexadecimal digits. `$secure_link` \
        is the link if the hash is correct, otherwise empty.",
        Apply::Level(|l, d, r| {
            if r.without_variables(&d.args[0], "secure_link_secret") {
                l.secure_link.secret = Some(d.args[0].text.clone());
            }
        })),
];
