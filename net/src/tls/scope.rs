//! Which of an authority's certificates a list of what is revoked is of: its issuing distribution point (RFC 5280 §5.2.5), and the
//! distribution points that a certificate names (§4.2.1.13).
//!
//! Read strictly: what is not understood of a scope would make it wider than it is. Next: `revocation`, which asks.

use crate::certificate::extension::Extension;
use crate::element::{Element, SEQUENCE};

/// The certificates that a list is of; all of them by default.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// The names of the distribution points, each as it stands there.
    names: Option<Vec<Vec<u8>>>,
    /// Those of authorities, or those of all others.
    of_authorities: Option<bool>,
    /// Revocations for other reasons are in other lists.
    pub(super) is_of_some_reasons: bool,
}

impl Scope {
    /// Reads an issuing distribution point; none where a list with it is of no certificate whose authority signed the list.
    pub(super) fn read(point: &Extension<'_>) -> Option<Self> {
        let mut scope = Scope::default();
        for Element { tag, content, .. } in point.parts()? {
            match (tag, content) {
                (0xa0, names) => {
                    scope.names = Some(read_names(names)?.into_iter().map(<[u8]>::to_vec).collect())
                }
                // False is the default, which DER leaves out.
                (0x81 | 0x82 | 0x84 | 0x85, [0]) => {}
                (0x81 | 0x82, [0xff]) if scope.of_authorities.is_none() => {
                    scope.of_authorities = Some(tag == 0x82);
                }
                (0x83, _) => scope.is_of_some_reasons = true,
                _ => return None,
            }
        }
        Some(scope)
    }

    /// Whether a certificate with these names of distribution points is among those.
    pub(super) fn has(&self, is_authority: bool, points: &[&[u8]]) -> bool {
        let is_of_kind = self.of_authorities.is_none_or(|of_authorities| of_authorities == is_authority);
        let is_named = |names: &Vec<Vec<u8>>| names.iter().any(|name| points.contains(&name.as_slice()));
        is_of_kind && self.names.as_ref().is_none_or(is_named)
    }
}

/// The names of the distribution points of a certificate. Those for some reasons, or with lists of other authorities, are left out.
pub(super) fn points<'a>(extension: Option<&Extension<'a>>) -> Vec<&'a [u8]> {
    let all = extension.and_then(Extension::parts).unwrap_or_default();
    all.into_iter()
        .filter_map(|point| match point.parts(SEQUENCE)?[..] {
            [names] => read_names(names.tagged(0xa0)?),
            _ => None,
        })
        .flatten()
        .collect()
}

/// The names of one distribution point: full names, or one that is relative to the authority's. Tags are kept with them.
fn read_names(point: &[u8]) -> Option<Vec<&[u8]>> {
    match Element::read(point)? {
        Element { tag: 0xa0, content, .. } => {
            Some(Element::all(content)?.into_iter().map(|name| name.whole).collect())
        }
        Element { tag: 0xa1, .. } => Some(vec![point]),
        _ => None,
    }
}
