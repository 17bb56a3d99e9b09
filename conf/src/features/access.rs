//! `allow` and `deny`: which addresses are let in.
//!
//! The first rule that names the client's address decides. Next: `satisfy`; `millstream-server`'s `access/addresses`.

use std::sync::Arc;

use super::context::UP_TO_EXCEPT;
use super::level::level;
use super::phases::Phases;
use super::right::networks;
use super::templates::without_templates;
use super::{Apply, Feature, Level, Place, Row, often};
use crate::network::Network;
use crate::reading::Reading;
use crate::tree::Directive;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    pub network: Network,
    pub allows: bool,
}

without_templates!(Rule);

level! {
    pub struct AccessLevel {
        rules: Vec<Rule>,
    }
}

impl Feature for AccessLevel {
    type Settings = Arc<[Rule]>;

    fn inherit(&mut self, above: &Self) {
        self.inherit_open(above);
    }

    fn resolve(&self, _: &Place<'_>, _: &mut Reading<'_>) -> Arc<[Rule]> {
        self.rules.clone().unwrap_or_default().into()
    }

    fn phases(rules: &Arc<[Rule]>) -> Phases {
        Phases::ACCESS.only_if(!rules.is_empty())
    }
}

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    often("allow", UP_TO_EXCEPT, (1, 1), "address | CIDR | unix: | all", "",
        "Allows access for these clients. The rules of a level are checked in order, and the first that matches the client's address is used. If none \
        matches, access is allowed. These directives (`allow` and `deny`) are inherited only if the current level has none.",
        Apply::Level(|l, d, r| rule(l, d, r, true))),
    often("deny", UP_TO_EXCEPT, (1, 1), "address | CIDR | unix: | all", "",
        "Denies access (403) for these clients; see `allow`.",
        Apply::Level(|l, d, r| rule(l, d, r, false))),
];

fn rule(level: &mut Level, directive: &Directive, reading: &mut Reading<'_>, allows: bool) {
    let rules = networks(&directive.args, reading).into_iter().map(|(network, _)| Rule { network, allows });
    level.access.rules.get_or_insert_default().extend(rules);
}
