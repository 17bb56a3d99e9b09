//! The manual's pages that are made from tables: `docs/directives.md` and `docs/variables.md`.
//!
//! Nothing is said here that is not in a row; to change the manual, change the row. Before: `features`, `variables`.

use std::fmt::Write;

use crate::features::context::EVERYWHERE;
use crate::features::{Apply, Repeat, Row, rows, sections};
use crate::nginx_names;
use crate::variables::{FAMILIES as VARIABLE_FAMILIES, VARIABLES};

/// `docs/directives.md`.
pub fn directives_markdown() -> String {
    let mut page = String::from(
        "# Directives\n\nGenerated from the rows in `conf/src/features`; change them there.\n\n\
         Names, contexts, arguments and defaults are nginx's unless stated otherwise. Sizes are in bytes, or with `k` and `m` \
         (file sizes also `g`); times are in seconds, or with `ms`, `s`, `m`, `h`, `d`, `w`, `M`, `y`. A directive of nginx that \
         is not listed here is an error. `--lenient` ignores it with a warning if it only affects logs, speed or looks; if it \
         decides what a client gets, it stays an error. A directive that belongs to another has no effect without that one.\n",
    );
    let own: Vec<String> = rows()
        .filter(|row| is_own(row) && !matches!(row.apply, Apply::Idle(_)))
        .map(|row| format!("[`{0}`](#{0})", row.name))
        .collect();
    let _ = writeln!(page, "\nMillstream's own, unknown to nginx and NGINX Plus: {}.", own.join(", "));
    for (heading, rows) in sections() {
        let _ = write!(page, "\n## {heading}\n");
        let (idle, real): (Vec<&Row>, Vec<&Row>) =
            rows.into_iter().partition(|row| matches!(row.apply, Apply::Idle(_)));
        for row in real {
            page += &directive(row);
        }
        if !idle.is_empty() {
            page += "\n### Accepted without effect\n\n| directive | in nginx | why it has no effect here |\n| --- | --- | --- |\n";
        }
        for row in idle {
            if let Apply::Idle(why) = row.apply {
                let _ = writeln!(page, "| `{}` | {} | {} |", row.name, cell(row.doc), cell(why));
            }
        }
    }
    page + &not_there_yet()
}

/// Directives of nginx 1.31 or NGINX Plus that Millstream lacks, by module.
fn not_there_yet() -> String {
    let mut text = String::from(
        "\n## Not there yet\n\nnginx or NGINX Plus has these directives, Millstream does not. Each is an error that names it; \
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

fn directive(row: &Row) -> String {
    let end = if row.takes_block() { "" } else { ";" };
    let space = if row.syntax.is_empty() { "" } else { " " };
    let mut text = format!("\n### {}\n\n{}\n\n", row.name, row.doc);
    let _ = writeln!(text, "- Syntax: `{}{space}{}{end}`", row.name, row.syntax);
    if !row.default.is_empty() {
        let _ = writeln!(text, "- Default: `{}`", row.default);
    }
    let contexts: Vec<&str> = row.contexts.names().collect();
    let places = if row.contexts == EVERYWHERE { "everywhere".to_owned() } else { contexts.join(", ") };
    let repeat = if row.repeat == Repeat::Often { "; may be repeated" } else { "" };
    let _ = writeln!(text, "- Context: {places}{repeat}");
    if is_own(row) {
        text += "- Millstream's own\n";
    }
    text
}

/// A bar would end a table's cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
