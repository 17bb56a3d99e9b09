//! The conditions of a location with a cache, as variables that are 1 if one holds.
//!
//! Before: `key_values`; next: `configuration`.

use super::{
    flag, flag_of_others, flag_of_unlisted, flag_of_value, has_flag, key_values, known, open, passed,
};
use crate::dimension::Sort;
use crate::report::RouteReport;

/// Which requests do not use the cache, and which do not fill it.
pub(super) fn write(line: &mut impl FnMut(String, &str), route: &RouteReport) {
    let others = |of: fn(&RouteReport, Sort) -> Vec<&str>| {
        let of = |what: &str, sort| flag_of_others(what, &of(route, sort));
        vec![of("$has_cookie", Sort::Cookie), of("$has_credential", Sort::Field)]
    };
    let mut flags = others(known);
    flags.extend(passed(route).iter().map(flag));
    flags.push(flag_of_unlisted(route));
    flags.extend(route.usual.iter().filter_map(flag_of_value).map(|(flag, _)| flag));
    flags.extend(key_values::flag(route).map(|(flag, _)| flag));
    let credentials =
        if route.bypasses.is_empty() { "other credentials".to_owned() } else { route.bypasses.join(", ") };
    let evidence =
        format!("not enough evidence to cache requests with {credentials}, unknown fields or rare values");
    line(format!("proxy_cache_bypass {}", flags.join(" ")), &evidence);
    if route.unstored.is_empty() {
        line(format!("proxy_no_cache {}", flags.join(" ")), &evidence);
        return;
    }
    flags.splice(..2, others(open));
    flags.extend(route.unstored.iter().filter(|of| has_flag(of)).map(flag));
    let evidence = format!("responses to requests with {} are not stored", route.served_only.join(", "));
    line(format!("proxy_no_cache {}", flags.join(" ")), &evidence);
}
