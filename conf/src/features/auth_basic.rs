//! `auth_basic`: users with passwords (RFC 7617).
//!
//! Next: `millstream-server`'s `access/auth_basic`.

use super::context::UP_TO_EXCEPT;
use super::level::level;
use super::phases::Phases;
use super::templates::record;
use super::{Apply, Feature, Level, Place, Row, once};
use crate::parts::PathUse;
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::Directive;
use std::path::PathBuf;

record! {
    pub struct Basic {
        /// What the client is told; `off` disables authentication.
        pub realm: Template,
        pub users: Template,
        pub directory: PathBuf,
    }
}

level! {
    pub struct AuthBasicLevel {
        realm: Template,
        users: Template,
    }
}

impl Feature for AuthBasicLevel {
    type Settings = Option<Basic>;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    /// As in nginx, a realm without a file disables authentication.
    fn resolve(&self, _: &Place<'_>, reading: &mut Reading<'_>) -> Option<Basic> {
        let (realm, users) = (self.realm.clone()?, self.users.clone()?);
        let directory = reading.conf_prefix.resolve("");
        (realm.as_literal() != Some("off")).then_some(Basic { realm, users, directory })
    }

    fn phases(settings: &Option<Basic>) -> Phases {
        Phases::ACCESS.only_if(settings.is_some())
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    once("auth_basic", UP_TO_EXCEPT, (1, 1), "string | off", "off",
        "Requires a user name and password, and sets the realm. It needs `auth_basic_user_file`. A request without valid credentials gets 401. The \
        hash of a verified password is not computed again for a while.",
        Apply::Level(realm)),
    once("auth_basic_user_file", UP_TO_EXCEPT, (1, 1), "file", "",
        "Sets the file with user names and passwords, in lines of the form `name:password`; comments begin with `#`. Passwords are in the formats of \
        `htpasswd` or `openssl passwd`: bcrypt (`$2y$`), SHA-256 and SHA-512 (`$5$`, `$6$`), yescrypt (`$y$`), MD5 (`$apr1$`, `$1$`), `{SHA}`, \
        `{SSHA}`, `{PLAIN}` with the password itself, or DES (13 characters). Changes take effect within a second. A relative path is relative to \
        the directory of the main file.",
        Apply::Level(|l, d, r| {
            r.path_beside_main(&d.args[0], PathUse::Own);
            l.auth_basic.users = Some(r.template(&d.args[0]));
        })),
];

fn realm(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>) {
    level.auth_basic.realm = Some(reading.template(&directive.args[0]));
}
