//! Every name that nginx knows is decided about, and the table says nothing of what is not there.

use super::*;
use crate::{features, nginx_names};

fn entries() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|(_, entries)| entries.split_whitespace())
}

#[test]
fn of_every_directive_that_only_nginx_knows_it_is_decided_whether_it_may_be_left_out() {
    for name in nginx_names::all() {
        if features::rows().any(|row| row.name == name) {
            continue;
        }
        let exact = entries().filter(|entry| *entry == name).count();
        let begun =
            entries().filter(|entry| entry.strip_suffix('*').is_some_and(|start| name.starts_with(start)));
        assert!(
            exact == 1 || exact == 0 && begun.count() == 1,
            "\"{name}\": may it be left out without changing who gets what? Put it into one row of TABLE"
        );
    }
}

#[test]
fn the_table_names_only_what_nginx_knows_and_has_no_row_of_its_own() {
    for entry in entries() {
        match entry.strip_suffix('*') {
            Some(start) => assert!(nginx_names::all().any(|name| name.starts_with(start)), "{entry}"),
            None => {
                assert!(nginx_names::module_of(entry).is_some(), "nginx has no \"{entry}\"");
                let has_row = features::rows().any(|row| row.name == entry);
                assert!(!has_row, "\"{entry}\" has a row in directives/ now: take it out of TABLE");
            }
        }
    }
    for (name, _) in DEFAULTS {
        assert!(entries().any(|entry| entry == *name), "{name}");
    }
}

#[test]
fn what_a_directive_belongs_to_is_itself_decided() {
    let owners = TABLE.iter().filter_map(|(fate, _)| match fate {
        BelongsTo(owners) => Some(*owners),
        _ => None,
    });
    for owner in owners.flatten().filter(|owner| !owner.contains(' ')) {
        let decided = entries().any(|entry| entry == *owner) || fate(owner, &[]) != Kept(CONTENT);
        assert!(decided || features::rows().any(|row| row.name == *owner), "{owner}");
    }
}

/// The longest prefix counts: `js_fetch_*` has no entry that it shares.
#[test]
fn what_is_never_left_out_stays_so_in_every_family() {
    for name in ["memcached_pass", "auth_jwt", "ssl_ocsp", "image_filter", "ssl"] {
        assert!(matches!(fate(name, &[]), Kept(_)), "{name}");
    }
    assert_eq!(fate("a_directive_to_come", &[]), Kept(CONTENT));
}
