//! Directives of several prefix families with one text, which the manual prints once.
//!
//! The first family that has a directive describes it; a row whose text differs in more than its prefix stays on its own. Next:
//! `manual`, which prints them.

use std::collections::HashMap;

use crate::features::pass::{FAMILIES, Family};
use crate::features::{Apply, Row, rows};

pub(super) struct SharedRows {
    /// Rows that another row describes, by their names.
    first: HashMap<&'static str, &'static Row>,
    /// Those that a row describes too, by its name.
    others: HashMap<&'static str, Vec<&'static Row>>,
}

impl SharedRows {
    pub(super) fn new() -> SharedRows {
        let all: HashMap<&str, &'static Row> =
            rows().filter(|row| Family::of(row.name).is_some()).map(|row| (row.name, row)).collect();
        let mut shared = SharedRows { first: HashMap::new(), others: HashMap::new() };
        for row in rows() {
            let Some((family, rest)) = Family::of(row.name) else { continue };
            let earlier = FAMILIES.iter().take_while(|other| **other != family);
            let mut known = earlier.filter_map(|other| all.get(other.directive(rest).as_str()).copied());
            if let Some(first) = known.find(|first| is_same_text(first, row)) {
                shared.first.insert(row.name, first);
                shared.others.entry(first.name).or_default().push(row);
            }
        }
        shared
    }

    /// The row that describes this one, if that is another.
    pub(super) fn first(&self, row: &Row) -> Option<&'static Row> {
        self.first.get(row.name).copied()
    }

    /// The rows that this one describes too.
    pub(super) fn others(&self, row: &Row) -> &[&'static Row] {
        self.others.get(row.name).map_or(&[], Vec::as_slice)
    }
}

/// What `of` gives for a row, then for each of the others that differs in more than its prefix.
pub(super) fn with_differences(row: &Row, others: &[&Row], of: impl Fn(&Row) -> String) -> String {
    let text = of(row);
    let same = unprefixed(row, &text);
    let different = others.iter().filter_map(|other| {
        let theirs = of(other);
        let differs = theirs != text && unprefixed(other, &theirs) != same;
        differs.then(|| format!("; `{}`: {theirs}", other.name))
    });
    let different: String = different.collect();
    text + &different
}

fn is_same_text(one: &Row, other: &Row) -> bool {
    let why = |row: &Row| match row.apply {
        Apply::Idle(why) => Some(unprefixed(row, why)),
        _ => None,
    };
    unprefixed(one, one.doc) == unprefixed(other, other.doc) && why(one) == why(other)
}

/// A text of a row, with the first family's prefix in place of its own.
fn unprefixed(row: &Row, text: &str) -> String {
    match Family::of(row.name) {
        Some((family, _)) => text.replace(&family.directive(""), &FAMILIES[0].directive("")),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str) -> &'static Row {
        rows().find(|row| row.name == name).expect(name)
    }

    #[test]
    fn a_directive_of_several_families_is_described_by_the_first_that_has_it() {
        let shared = SharedRows::new();
        let names = |name| -> Vec<&str> { shared.others(row(name)).iter().map(|row| row.name).collect() };
        assert_eq!(names("proxy_buffers"), ["fastcgi_buffers", "uwsgi_buffers", "scgi_buffers"]);
        assert_eq!(names("proxy_ssl_name"), ["uwsgi_ssl_name", "grpc_ssl_name"]);
        assert_eq!(names("fastcgi_param"), ["uwsgi_param", "scgi_param"]);
        assert!(names("proxy_pass").is_empty() && names("root").is_empty());
        assert_eq!(shared.first(row("scgi_buffers")).map(|row| row.name), Some("proxy_buffers"));
        assert!(shared.first(row("proxy_buffers")).is_none());
    }

    #[test]
    fn every_directive_is_described_once() {
        let shared = SharedRows::new();
        for row in rows() {
            let first = shared.first(row).unwrap_or(row);
            assert!(shared.first(first).is_none(), "{}", row.name);
            let here =
                first.name == row.name || shared.others(first).iter().any(|other| other.name == row.name);
            assert!(here, "{}", row.name);
        }
    }

    #[test]
    fn differences_are_given_by_name_and_prefixes_are_none() {
        let (proxy, uwsgi) = (row("proxy_ssl_name"), row("uwsgi_ssl_name"));
        let shown = with_differences(proxy, &[uwsgi], |row| row.default.to_owned());
        assert_eq!(shown, "$proxy_host; `uwsgi_ssl_name`: host from uwsgi_pass");
        assert_eq!(with_differences(proxy, &[uwsgi], |row| row.name.to_owned()), "proxy_ssl_name");
        assert_eq!(Family::of("proxy_ssl_name"), Some((FAMILIES[0], "ssl_name")));
        assert_eq!(Family::of("proxies"), None);
    }
}
