//! The text of a configuration as its repository has it, made into plain nginx.conf.
//!
//! Pages of documentation hold it in a fenced block, snapshots of tests in a section, templates hold places to fill in.
//! Conditions of templates keep their first branch, loops run once, and places get values that fit their names.

use super::nodes;

/// The configuration inside a file; `section` names a part of a snapshot, `values` fill places in it.
pub(super) fn plain(path: &str, section: Option<&str>, text: &str, values: &[(&str, &str)]) -> String {
    let text = match section {
        Some(name) => section_of(text, name),
        None if path.ends_with(".md") => longest(fences(text)),
        None if path.ends_with(".rst") => longest(indented(text)),
        None => text.to_owned(),
    };
    filled(&values.iter().fold(text, |text, (place, value)| text.replace(place, value)))
}

/// A section of a snapshot: from `[NAME - 1]` to the line of dashes.
fn section_of(text: &str, name: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&format!("[{name} - ")));
    lines.next();
    lines.take_while(|line| *line != "---").fold(String::new(), |all, line| all + line + "\n")
}

/// The longest part of a page that is a configuration with a server in it.
fn longest(parts: Vec<String>) -> String {
    let is_one = |part: &String| {
        part.contains("server") && nodes::parse("page", part).is_ok_and(|tree| !tree.is_empty())
    };
    parts.into_iter().filter(is_one).max_by_key(String::len).unwrap_or_default()
}

fn fences(text: &str) -> Vec<String> {
    let mut fences: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            open = !open;
            fences.extend(open.then(String::new));
        } else if open && let Some(fence) = fences.last_mut() {
            fence.push_str(line);
            fence.push('\n');
        }
    }
    fences
}

fn indented(text: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    for line in text.lines() {
        match blocks.last_mut() {
            Some(block) if line.starts_with(' ') || line.is_empty() => *block += &format!("{line}\n"),
            _ => blocks.push(String::new()),
        }
    }
    blocks
}

/// How the marks of templates open and close.
const MARKS: [(&str, &str); 4] = [("{#", "#}"), ("{%", "%}"), ("{{", "}}"), ("${", "}")];

fn filled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut branches: Vec<bool> = Vec::new();
    let mut rest = text;
    while let Some((at, (open, close))) =
        MARKS.iter().filter_map(|mark| Some((rest.find(mark.0)?, *mark))).min_by_key(|(at, _)| *at)
    {
        let shown = branches.iter().all(|branch| *branch);
        let inside = &rest[at + open.len()..];
        let end = inside.find(close).filter(|end| !inside[..*end].contains('\n') || open == "{#");
        let Some(end) = end else {
            out.push_str(if shown { &rest[..at + open.len()] } else { "" });
            rest = inside;
            continue;
        };
        out.push_str(if shown { &rest[..at] } else { "" });
        let value = fill(open, inside[..end].trim_matches([' ', '-']), &mut branches);
        out.push_str(if shown { &value } else { "" });
        rest = &inside[end + close.len()..];
    }
    out.push_str(rest);
    underscored(&out)
}

fn fill(open: &str, inside: &str, branches: &mut Vec<bool>) -> String {
    let word = inside.split_whitespace().next().unwrap_or_default();
    match (open, word) {
        ("{#", _) => {}
        ("{%" | "{{", "if" | "for" | "range" | "with" | "block" | "macro") => branches.push(true),
        ("{%" | "{{", "else" | "elif") => {
            if let Some(branch) = branches.last_mut() {
                *branch = false;
            }
        }
        ("{%" | "{{", word) if word.starts_with("end") => {
            branches.pop();
        }
        // nginx's own variables are written in small letters.
        ("${", _) if inside.bytes().any(|byte| byte.is_ascii_lowercase()) => return format!("${{{inside}}}"),
        ("{%", _) => {}
        ("{{", _) if inside.contains(":=") || word.starts_with("/*") => {}
        _ => return value_of(inside).to_owned(),
    }
    String::new()
}

/// `__NAME__` in capitals is a place too.
fn underscored(text: &str) -> String {
    let mut parts = text.split("__");
    let mut out = parts.next().unwrap_or_default().to_owned();
    let is_name = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit())
    };
    while let Some(part) = parts.next() {
        match parts.next() {
            Some(after) if is_name(part) => out = out + value_of(part) + after,
            Some(after) => out = out + "__" + part + "__" + after,
            None => out = out + "__" + part,
        }
    }
    out
}

/// Values by what the place's name contains; the first match counts.
const VALUES: &[(&str, &str)] = &[
    ("dollar", "$"),
    ("port", "8080"),
    ("proto", "https"),
    ("scheme", "https"),
    ("timeout", "60s"),
    ("burst", "20"),
    ("delay", "10"),
    ("connections", "512"),
    ("size", "10m"),
    ("body", "10m"),
    ("limit", "10m"),
    ("upload", "10m"),
    ("recursive", "off"),
    ("realip_from", "10.0.0.0/8"),
    ("real_ip", "10.0.0.0/8"),
    ("network", "10.0.0.0/8"),
    ("resolver", "127.0.0.1"),
    ("url_base", "http://example.com"),
    ("ssl_protocols", "TLSv1.2 TLSv1.3"),
    ("cipher", "HIGH"),
    ("forwarded", "X-Forwarded-For"),
    ("folder", "/etc/nginx"),
    ("path", "/srv/app"),
    ("dir", "/srv/app"),
    ("root", "/srv/app"),
    ("home", "/srv/app"),
    ("user", "nobody"),
    ("worker", "2"),
    ("count", "2"),
    ("rate", "10"),
    ("host", "example.com"),
    ("domain", "example.com"),
    ("server", "example.com"),
    ("name", "example.com"),
    ("url", "example.com"),
    ("ip", "127.0.0.1"),
    ("address", "127.0.0.1"),
];

fn value_of(place: &str) -> &'static str {
    let place = place.to_ascii_lowercase();
    VALUES.iter().find(|(part, _)| place.contains(part)).map_or("value", |(_, value)| value)
}
