//! The manual's pages that are made from tables: `docs/directives.md` and `docs/variables.md`.
//!
//! Its texts are those of the rows; to change the manual, change the row. Before: `features`, `variables`. Next: `shared`, which finds
//! directives of several families with one text.

mod shared;

use std::fmt::Write;
use std::iter;

use crate::features::context::EVERYWHERE;
use crate::features::pass::Family;
use crate::features::{Apply, Repeat, Row, rows, sections};
use crate::nginx_names;
use crate::variables::{FAMILIES, VARIABLES};

use shared::{SharedRows, with_differences};

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
    let shared = SharedRows::new();
    let own: Vec<String> = rows()
        .filter(|row| is_own(row) && !matches!(row.apply, Apply::Idle(_)) && shared.first(row).is_none())
        .map(|row| format!("[`{0}`](#{0})", row.name))
        .collect();
    let _ = writeln!(page, "\nDirectives that neither nginx nor NGINX Plus has: {}.", own.join(", "));
    for (heading, rows) in sections() {
        page += &section(heading, &rows, &shared);
    }
    page + &unsupported()
}

fn section(heading: &str, rows: &[&'static Row], shared: &SharedRows) -> String {
    let mut text = format!("\n## {heading}\n");
    let is_here = |name: &str| rows.iter().any(|row| row.name == name);
    let elsewhere = rows.iter().find(|row| shared.first(row).is_some_and(|first| !is_here(first.name)));
    if let Some((family, _)) = elsewhere.and_then(|row| Family::of(row.name)) {
        let prefix = family.directive("");
        let _ = writeln!(
            text,
            "\nThe other `{prefix}` directives are described in the sections above, mostly under their `proxy_` names."
        );
    }
    let here = rows.iter().copied().filter(|row| shared.first(row).is_none());
    let (idle, real): (Vec<&Row>, Vec<&Row>) = here.partition(|row| matches!(row.apply, Apply::Idle(_)));
    for row in real {
        text += &directive(row, shared.others(row));
    }
    if !idle.is_empty() {
        text += "\n### Accepted without effect\n\n| directive | in nginx | why it has no effect here |\n| --- | --- | --- |\n";
    }
    for row in idle {
        if let Apply::Idle(why) = row.apply {
            let names = names(iter::once(row).chain(shared.others(row).iter().copied()));
            let _ = writeln!(text, "| {names} | {} | {} |", cell(row.doc), cell(why));
        }
    }
    text
}

/// Directives of nginx 1.31 or NGINX Plus that Millstream lacks, by module.
fn unsupported() -> String {
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
    for (prefix, doc) in FAMILIES {
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

/// `others`: the rows that this one describes too.
fn directive(row: &Row, others: &[&Row]) -> String {
    let mut text = format!("\n### {}\n\n{}\n\n", row.name, row.doc);
    let _ = writeln!(text, "- Syntax: {}", with_differences(row, others, syntax));
    if !row.default.is_empty() {
        let _ = writeln!(text, "- Default: {}", with_differences(row, others, |row| code(row.default)));
    }
    let _ = writeln!(text, "- Context: {}", with_differences(row, others, context));
    if !others.is_empty() {
        let _ = writeln!(text, "- Same for: {}", names(others.iter().copied()));
    }
    let own: Vec<&Row> = iter::once(row).chain(others.iter().copied()).filter(|row| is_own(row)).collect();
    if own.len() > others.len() {
        text += "- Not in nginx\n";
    } else if !own.is_empty() {
        let _ = writeln!(text, "- Not in nginx: {}", names(own.into_iter()));
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

fn names<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let names: Vec<String> = rows.map(|row| code(row.name)).collect();
    names.join(", ")
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// A bar would end a table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
