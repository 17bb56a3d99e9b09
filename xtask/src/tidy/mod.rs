//! `cargo xtask tidy`: the rules of the house that a machine can check, every breach in one run.
//!
//! Each rule is a file; this one only gathers. A rule that needs an exception gets it in `xtask/tidy-reasons.toml`, with
//! the reason, never here.

mod reasons;
mod crates;
mod dependencies;
mod modules;
mod names;
mod sizes;
mod types;
mod words;
mod wording;
mod pages;
mod doors;
mod metrics;
mod features;

use crate::{manuals, tree};

pub(crate) fn run() -> Result<(), String> {
    let files = tree::files();
    let reasons = reasons::read()?;
    let mut breaches = crates::check(&files);
    breaches.extend(dependencies::check(&files));
    breaches.extend(modules::check(&files));
    breaches.extend(names::check(&files));
    breaches.extend(sizes::check(&files, &reasons));
    breaches.extend(types::check(&files));
    breaches.extend(words::check(&files));
    breaches.extend(wording::check(&files));
    breaches.extend(pages::check(&files));
    breaches.extend(doors::check(&files));
    breaches.extend(metrics::check(&files));
    breaches.extend(features::check(&files));
    breaches.extend(manuals::check());
    if breaches.is_empty() {
        eprintln!("tidy: {} files, nothing to say", files.len());
        return Ok(());
    }
    Err(format!("{}\ntidy: {} breaches", breaches.join("\n"), breaches.len()))
}
