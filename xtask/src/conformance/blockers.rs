//! What stops configurations from loading: read from the server's messages, counted over many.

use std::collections::{BTreeMap, BTreeSet};

/// What one configuration lacks, from the errors with which the server refused it.
pub(super) fn of(output: &str) -> BTreeSet<String> {
    output.lines().filter_map(|line| line.split_once("[emerg] ")).map(|(_, told)| short(told)).collect()
}

/// `FILE:LINE:COLUMN: nginx knows "X", Millstream does not (yet)` is X; other messages lose their names.
fn short(told: &str) -> String {
    let message = match told.split_once(": ") {
        Some((place, message)) if place.ends_with(|end: char| end.is_ascii_digit()) => message,
        _ => told,
    };
    let message = message
        .strip_prefix("nginx knows ")
        .or_else(|| message.strip_prefix("nginx allows "))
        .unwrap_or(message);
    let message = message.split(", Millstream does not").next().unwrap_or(message);
    // Paths are of this run only.
    let parts = message.split('"').enumerate();
    let parts = parts.map(|(at, part)| if at % 2 == 1 && part.contains('/') { "…" } else { part });
    let message = parts.collect::<Vec<_>>().join("\"");
    let named = message.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    named.map_or_else(|| without_ports(&message), str::to_owned)
}

fn without_ports(message: &str) -> String {
    let mut parts = message.split(':');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        all + ":" + if digits >= 4 { &part[digits..] } else { part }
    })
}

/// How many configurations each item stops, and how many it stops alone; most alone first.
pub(super) fn table<'a>(all: impl Iterator<Item = &'a BTreeSet<String>>) -> Vec<(String, usize, usize)> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for blockers in all {
        for blocker in blockers {
            let count = counts.entry(blocker).or_default();
            count.0 += 1;
            count.1 += usize::from(blockers.len() == 1);
        }
    }
    let mut rows: Vec<_> =
        counts.into_iter().map(|(what, (all, alone))| (what.to_owned(), all, alone)).collect();
    rows.sort_by_key(|(_, all, alone)| std::cmp::Reverse((*all, *alone)));
    rows
}

pub(super) fn print(rows: &[(String, usize, usize)]) {
    if !rows.is_empty() {
        println!("stops  alone  what is missing");
    }
    for (what, all, alone) in rows {
        println!("{all:>5}  {alone:>5}  {what}");
    }
}
