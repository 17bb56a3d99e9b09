//! One block's directives against the table: which may stand there, with how many words, and how often.
//!
//! What is wrong is reported here, once for every directive; what remains can be applied. Next: `locations` and
//! `configuration`, which apply it.

use std::collections::HashMap;

use crate::directives::{self, Apply, Context, MANY, Repeat, Row};
use crate::inherit::Level;
use crate::nginx_names;
use crate::reading::Reading;
use crate::source::Span;
use crate::suggest;
use crate::tree::Directive;

/// The directives of a block that may stand there, each with its row; everything else is reported.
pub fn checked<'t>(
    block: &'t [Directive],
    context: Context,
    reading: &mut Reading<'_>,
) -> Vec<(&'static Row, &'t Directive)> {
    let mut seen: HashMap<&'static str, Span> = HashMap::new();
    let mut rows = Vec::new();
    for directive in block {
        let Some(row) = directives::find(&directive.name.text, context) else {
            not_here(directive, context, reading);
            continue;
        };
        if !well_formed(row, directive, reading) {
            continue;
        }
        if row.repeat == Repeat::Once {
            if let Some(first) = seen.get(row.name) {
                reading.duplicate(directive.span, format!("\"{}\" directive is duplicate", row.name), *first);
                continue;
            }
            seen.insert(row.name, directive.span);
        }
        if let Apply::Idle(why) = row.apply {
            if row.syntax == "on | off" {
                let _ = reading.flag(&directive.args[0]);
            }
            reading.diagnostics.idle(directive.span, format!("\"{}\" has no effect here: {why}", row.name));
        }
        rows.push((row, directive));
    }
    rows
}

/// Applies a directive to the level it stands in; one that decides about the cache is noted with its place.
pub fn set(level: &mut Level, row: &Row, directive: &Directive, reading: &mut Reading<'_>) {
    let Apply::Level(apply) = row.apply else { return };
    apply(level, directive, reading);
    if is_dependent(row.name) {
        reading.dependent.push((row.name, directive.span));
    }
    let decides = row.name.starts_with("proxy_cache")
        || matches!(row.name, "proxy_no_cache" | "proxy_ignore_headers" | "expires");
    if decides {
        level.written.push((row.name, directive.span));
    }
}

/// Directives that nobody writes who has no cache or no API in mind; those that are nginx's own are often written for
/// locations to come, and nobody wants to be told.
fn is_dependent(name: &str) -> bool {
    const OF_THE_CACHE: [&str; 5] = [
        "proxy_cache_client_control",
        "proxy_cache_explain",
        "proxy_cache_heuristic",
        "proxy_cache_refresh_ahead",
        "proxy_cache_tag",
    ];
    const OF_THE_API: [&str; 2] = ["api_allow", "api_token"];
    name.starts_with("proxy_cache_purge") || OF_THE_CACHE.contains(&name) || OF_THE_API.contains(&name)
}

/// The directives in a directive's braces.
pub fn inside(directive: &Directive) -> &[Directive] {
    directive.block.as_deref().unwrap_or_default()
}

/// Checks the number of words and whether a block is there.
fn well_formed(row: &Row, directive: &Directive, reading: &mut Reading<'_>) -> bool {
    let given = directive.args.len();
    if given < row.words.least || (row.words.most != MANY && given > row.words.most) {
        reading
            .error(directive.span, format!("invalid number of arguments in \"{}\" directive", row.name))
            .help(format!("write {} {}{}", row.name, row.syntax, if row.takes_block() { "" } else { ";" }));
        return false;
    }
    match (row.takes_block(), directive.block.is_some()) {
        (true, false) => {
            reading
                .error(directive.span, format!("directive \"{}\" has no opening \"{{\"", row.name))
                .help(format!("write {} {}", row.name, row.syntax));
            false
        }
        (false, true) => {
            reading
                .error(directive.span, format!("directive \"{}\" is not terminated by \";\"", row.name))
                .help(format!("write {} {};", row.name, row.syntax));
            false
        }
        _ => true,
    }
}

/// Reports a directive that the table does not have in this context: misplaced, only nginx's, or misspelt.
fn not_here(directive: &Directive, context: Context, reading: &mut Reading<'_>) {
    let name = directive.name.text.as_str();
    let span = directive.name.span;
    let elsewhere =
        directives::rows().filter(|row| row.name == name).fold(0, |sum, row| sum | row.contexts.0);
    if elsewhere != 0 {
        let places: Vec<&str> = directives::Contexts(elsewhere).names().collect();
        reading
            .error(span, format!("\"{name}\" directive is not allowed here"))
            .help(format!("it may stand in: {}", places.join(", ")));
        return;
    }
    if let Some(module) = nginx_names::module_of(name) {
        let whose = if module.plus { "NGINX Plus" } else { "nginx" };
        let message = format!("{whose} knows \"{name}\", Millstream does not (yet)");
        if let Some(why) = never_left_out(name) {
            reading.error(span, message).help(format!("{why}, so it is not left out even with --lenient"));
        } else if reading.lenient {
            reading.diagnostics.warning(span, message).help("it is left out");
            if moves_client_address(name) {
                reading.unknown_clients.push((name.to_owned(), span));
            }
        } else {
            reading.error(span, message).help("remove it, or start with --lenient to have it left out");
        }
        return;
    }
    let here = directives::rows().filter(|row| row.contexts.has(context)).map(|row| row.name);
    let help = suggest::did_you_mean(name, here)
        .or_else(|| suggest::did_you_mean(name, directives::rows().map(|row| row.name)))
        .or_else(|| suggest::did_you_mean(name, nginx_names::all()))
        .unwrap_or_else(|| "docs/directives.md lists every directive".to_owned());
    reading.error(span, format!("unknown directive \"{name}\"")).help(help);
}

/// Why a directive is never left out; `None` where it may be.
fn never_left_out(name: &str) -> Option<&'static str> {
    if guards_access(name) {
        return Some("it keeps somebody out");
    }
    if answers_itself(name) {
        return Some(
            "without it the location would show the files themselves, programs and passwords in them included",
        );
    }
    None
}

/// Directives that keep somebody out, and blocks that may hold such: leaving them out would open what they protect.
fn guards_access(name: &str) -> bool {
    const GUARDS: &[&str] = &[
        "allow",
        "deny",
        "disable_symlinks",
        "if",
        "internal",
        "js_access",
        "limit_conn",
        "limit_except",
        "limit_req",
        "satisfy",
        "ssl_client_certificate",
        "ssl_crl",
        "ssl_ocsp",
        "ssl_reject_handshake",
        "ssl_trusted_certificate",
        "ssl_verify_client",
        "valid_referers",
    ];
    GUARDS.contains(&name) || name.starts_with("auth_") || name.starts_with("secure_link")
}

/// Directives that make a location's answers: what is left of such a location serves files.
fn answers_itself(name: &str) -> bool {
    const HANDLERS: &[&str] =
        &["fastcgi_pass", "grpc_pass", "js_content", "memcached_pass", "perl", "scgi_pass", "uwsgi_pass"];
    HANDLERS.contains(&name)
}

/// Directives that say who the client is where another proxy stands in front.
fn moves_client_address(name: &str) -> bool {
    matches!(name, "set_real_ip_from" | "real_ip_header")
}
