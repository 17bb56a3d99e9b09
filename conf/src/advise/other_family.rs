//! A directive of another family than the location's `…_pass`: `proxy_read_timeout 1h;` beside `grpc_pass`.

use crate::features::Level;
use crate::features::pass::{FAMILIES, Family};
use crate::reading::Reading;
use crate::tree::Directive;

/// Notes directives in a location's own block for a protocol it does not use. Those of outer levels may be
/// for others.
pub fn advise<'d>(level: &Level, written: impl Iterator<Item = &'d Directive>, reading: &mut Reading<'_>) {
    let Some(draft) = &level.pass.draft else { return };
    let pass = draft.family.directive("pass");
    for directive in written {
        let name = directive.name.text.as_str();
        if family_of(name).is_none_or(|family| family == draft.family) {
            continue;
        }
        let own = draft.family.directive("");
        reading
            .diagnostics
            .idle(directive.span, format!("\"{name}\" has no effect here: \"{pass}\" does not use it"))
            .help(format!("directives for {pass} begin with {own}"));
    }
}

fn family_of(name: &str) -> Option<Family> {
    FAMILIES.iter().copied().find(|family| name.starts_with(&family.directive("")))
}
