//! The map that is 1 if a request has a key that few clients sent.
//!
//! Before: `report`; next: `configuration`, which writes it.

use super::{RARE, fingerprint, variable};
use crate::report::RouteReport;

/// Between values of one key: a value that has it is never listed, so a text stands for one combination.
const BETWEEN: char = '|';

/// The variable, and its map with `%s` in place of its name. `None` if any key will do.
pub(super) fn flag(route: &RouteReport) -> Option<(String, String)> {
    let of = route.key_values.as_ref()?;
    let listed = route.selected.iter().filter(|(_, name)| name != "accept-encoding");
    let variables: Vec<String> = listed.filter_map(variable).collect();
    let source = variables.join("|");
    let can_be_told =
        |values: &&Vec<String>| values.len() == 1 || !values.iter().any(|of| of.contains(BETWEEN));
    let mut keys: Vec<String> = of.values.iter().filter(can_be_told).map(|values| values.join("|")).collect();
    keys.sort_unstable_by_key(|key| key.to_ascii_lowercase());
    // A map compares without case.
    keys.dedup_by(|one, other| one.eq_ignore_ascii_case(other));
    let listed: String = keys.iter().map(|key| format!(" \"{key}\" \"\";")).collect();
    let mut all: Vec<&str> = vec![&source];
    all.extend(keys.iter().map(String::as_str));
    Some((
        format!("{RARE}key_{:08x}", fingerprint(&all)),
        format!("\"{source}\" %s {{{listed} default 1; }}"),
    ))
}
