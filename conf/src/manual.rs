//! The manual's pages that are made from tables: `docs/directives.md` and `docs/variables.md`.
//!
//! Nothing is said here that is not in a row; to change the manual, change the row. Before: `features`, `variables`.

use std::fmt::Write;
use std::iter;

use crate::features::context::EVERYWHERE;
use crate::features::pass::{FAMILIES, Family};
use crate::features::{Apply, Repeat, Row, rows, sections};
use crate::nginx_names;
use crate::variables::{FAMILIES as VARIABLE_FAMILIES, VARIABLES};

/// `docs/directives.md`.
pub fn directives_markdown() -> String {
    let mut page = String::from(
        "# Directives\n\nGenerated from the rows in `conf/src/features`; change them there.\n\n\
         Names, contexts, parameters and defaults are nginx's unless stated otherwise.\n\n\
         - Sizes are in bytes, or with a suffix `k` or `m`; file sizes also take `g`.\n\
         - Times are in seconds, or with a suffix `ms`, `s`, `m`, `h`, `d`, `w`, `M` or `y`.\n\
         - Directives of the families `proxy_`, `fastcgi_`, `uwsgi_`, `scgi_` and `grpc_` that differ only in the prefix are \
         described once. \"Same for\" lists the others.\n\
         - A directive that depends on another one has no effect without it.\n\
         - An nginx directive that is not listed here is an error. With `--lenient`, it is ignored with a warning if it affects \
         only logs, performance or appearance. It remains an error if it determines what a client receives.\n",
    );
    let own: Vec<String> = rows()
        .filter(|row| is_own(row) && !matches!(row.apply, Apply::Idle(_)) && described_at(row).is_none())
        .map(|row| format!("[`{0}`](#{0})", row.name))
        .collect();
    let _ = writeln!(page, "\nDirectives that neither nginx nor NGINX Plus has: {}.", own.join(", "));
    for (heading, rows) in sections() {
        let _ = write!(page, "\n## {heading}\n");
        let is_here = |name: &str| rows.iter().any(|row| row.name == name);
        let elsewhere = rows.iter().find(|row| described_at(row).is_some_and(|first| !is_here(first.name)));
        if let Some((family, _)) = elsewhere.and_then(|row| Family::of(row.name)) {
            let prefix = family.directive("");
            let _ = writeln!(
                page,
                "\nThe other `{prefix}` directives are described in the sections above, by their `proxy_` names."
            );
        }
        let here = rows.iter().copied().filter(|row| described_at(row).is_none());
        let (idle, real): (Vec<&'static Row>, Vec<&'static Row>) =
            here.partition(|row| matches!(row.apply, Apply::Idle(_)));
        for row in real {
            page += &directive(row);
        }
        if !idle.is_empty() {
            page += "\n### Accepted without effect\n\n| directive | in nginx | why it has no effect here |\n| --- | --- | --- |\n";
        }
        for row in idle {
            if let Apply::Idle(why) = row.apply {
                let names: Vec<String> =
                    iter::once(row).chain(same_for(row)).map(|row| code(row.name)).collect();
                let _ = writeln!(page, "| {} | {} | {} |", names.join(", "), cell(row.doc), cell(why));
            }
        }
    }
    page + &not_there_yet()
}

/// Directives of nginx 1.31 or NGINX Plus that Millstream lacks, by module.
fn not_there_yet() -> String {
    let mut text = String::from(
        "\n## Unsupported directives\n\nThese directives of nginx and NGINX Plus are not supported. Each is reported as an error; \
         for `--lenient`, see the top of this page.\n\n| module | directives |\n| --- | --- |\n",
    );
    for module in nginx_names::MODULES {
        let is_there = |name: &&str| rows().any(|row| row.name == *name);
        let names = module.directives.split_whitespace().filter(|name| !is_there(name));
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        if !names.is_empty() {
            let plus = if module.plus { " (NGINX Plus)" } else { "" };
            let _ = writeln!(text, "| {}{plus} | {} |", module.name, names.join(", "));
        }
    }
    text
}

/// `docs/variables.md`.
pub fn variables_markdown() -> String {
    let mut page = String::from(
        "# Variables\n\nGenerated from the table in `conf/src/variables.rs`; change it there.\n\n\
         | variable | value |\n| --- | --- |\n",
    );
    let mut rows: Vec<_> = VARIABLES.iter().map(|(_, name, doc)| (*name, *doc)).collect();
    rows.sort_unstable();
    for (name, doc) in rows {
        let _ = writeln!(page, "| `${name}` | {} |", cell(doc));
    }
    page += "\n## Families\n\n| variables | value |\n| --- | --- |\n";
    for (prefix, doc) in VARIABLE_FAMILIES {
        let _ = writeln!(page, "| `${prefix}`*name* | {} |", cell(doc));
    }
    page += "| `$1` … `$9` | The captures of the last regular expression that matched. |\n\
             | `$`*name* | A named capture of a `server_name` or `location` expression. |\n";
    page
}

/// Whether neither nginx nor NGINX Plus has a directive of this name.
fn is_own(row: &Row) -> bool {
    nginx_names::module_of(row.name).is_none()
}

fn directive(row: &'static Row) -> String {
    let others: Vec<&Row> = same_for(row).collect();
    let mut text = format!("\n### {}\n\n{}\n\n", row.name, row.doc);
    let _ = writeln!(text, "- Syntax: {}", with_differences(row, &others, syntax));
    let default = with_differences(row, &others, |row| code(row.default));
    if default != code("") {
        let _ = writeln!(text, "- Default: {default}");
    }
    let _ = writeln!(text, "- Context: {}", with_differences(row, &others, context));
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(|row| code(row.name)).collect();
        let _ = writeln!(text, "- Same for: {}", names.join(", "));
    }
    let own: Vec<String> = iter::once(row)
        .chain(others.iter().copied())
        .filter(|row| is_own(row))
        .map(|row| code(row.name))
        .collect();
    if own.len() > others.len() {
        text += "- Not in nginx\n";
    } else if !own.is_empty() {
        let _ = writeln!(text, "- Not in nginx: {}", own.join(", "));
    }
    text
}

fn syntax(row: &Row) -> String {
    let end = if row.takes_block() { "" } else { ";" };
    let space = if row.syntax.is_empty() { "" } else { " " };
    code(&format!("{}{space}{}{end}", row.name, row.syntax))
}

fn context(row: &Row) -> String {
    let contexts: Vec<&str> = row.contexts.names().collect();
    let places = if row.contexts == EVERYWHERE { "everywhere".to_owned() } else { contexts.join(", ") };
    let repeat = if row.repeat == Repeat::Often { "; may be repeated" } else { "" };
    format!("{places}{repeat}")
}

/// What `of` gives for a row, then for each of the others that differs in more than its prefix.
fn with_differences(row: &Row, others: &[&Row], of: impl Fn(&Row) -> String) -> String {
    let mut text = of(row);
    for other in others {
        let theirs = of(other);
        if theirs != of(row) && unprefixed(other, &theirs) != unprefixed(row, &of(row)) {
            let _ = write!(text, "; {}: {theirs}", code(other.name));
        }
    }
    text
}

/// The row of an earlier family whose text is also that of this one, but for the prefix.
fn described_at(row: &Row) -> Option<&'static Row> {
    let (family, rest) = Family::of(row.name)?;
    let earlier = FAMILIES.iter().take_while(|other| **other != family);
    earlier
        .flat_map(|other| rows().find(|first| first.name == other.directive(rest)))
        .find(|first| is_same_text(first, row))
}

/// The rows that have their text at this one.
fn same_for(row: &'static Row) -> impl Iterator<Item = &'static Row> {
    rows().filter(|other| described_at(other).is_some_and(|first| first.name == row.name))
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

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// A bar would end a table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
