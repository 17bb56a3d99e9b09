//! `millstream man [COMMAND]`: the manual page, in roff. Options come from the command line itself, so that the page
//! cannot say something else; what no option says (signals, files) stands here.
//!
//! It prints and never writes a file. Directives are not its matter: docs/directives.md is their manual. A hidden command instead
//! of a task of `xtask`, so that the command line stays in one crate and a package is made with nothing but the binary.

use crate::cli;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io::{Result, Write};
use std::process::ExitCode;

/// Administration, as Debian's `/usr/sbin`.
const SECTION: &str = "8";

const SIGNALS: &[(&str, &str)] = &[
    ("HUP", "Reloads the configuration; if it has an error, the old one stays in force."),
    ("QUIT", "Finishes the requests in progress, then stops."),
    ("TERM, INT", "Stops at once."),
    ("USR1", "Reopens the log files."),
    ("USR2", "Starts the new binary with the same sockets; send QUIT to the old process afterwards."),
];

const FILES: &[(&str, &str)] = &[
    (
        "/etc/millstream/conf/nginx.conf, /etc/millstream/nginx.conf",
        "The default configuration: the first that exists. Packages use the second.",
    ),
    ("/etc/millstream/conf.d/*.conf", "Included by a package's configuration."),
    ("/var/log/millstream, /var/cache/millstream", "Logs and cached responses of a package."),
];

pub fn print(words: &[String]) -> ExitCode {
    let mut line = cli::described().disable_help_subcommand(true);
    // Otherwise a command does not know that it is `millstream serve`.
    line.build();
    let verb = words.iter().try_fold(&line, |line, word| line.find_subcommand(word));
    let Some(verb) = verb.filter(|verb| !verb.is_hide_set()) else {
        eprintln!("millstream: unknown command {}; see millstream --help", words.join(" "));
        return ExitCode::FAILURE;
    };
    match if words.is_empty() { program(verb) } else { command(verb) } {
        // A closed pipe on standard output is the reader's wish.
        Ok(page) => _ = std::io::stdout().write_all(&page),
        Err(error) => {
            eprintln!("millstream: the manual page: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn program(line: &Command) -> Result<Vec<u8>> {
    let mut page = page(line)?;
    let mut rest = Roff::new();
    rest.control("SH", ["EXAMPLES"]);
    unfilled(&mut rest, cli::EXAMPLES);
    table(&mut rest, "SIGNALS", SIGNALS);
    table(&mut rest, "FILES", FILES);
    rest.to_writer(&mut page)?;
    Ok(page)
}

fn command(line: &Command) -> Result<Vec<u8>> {
    let mut page = page(line)?;
    if let Some(notes) = line.get_after_help() {
        let mut rest = Roff::new();
        rest.control("SH", ["NOTES"]);
        rest.text([roman(notes.to_string())]);
        rest.to_writer(&mut page)?;
    }
    Ok(page)
}

fn page(line: &Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let version = concat!("millstream ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(line.clone()).section(SECTION).source(version).manual("System Administration");
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    // The generator's own synopsis names every option and leaves out what belongs to it.
    let mut synopsis = Roff::new();
    synopsis.control("SH", ["SYNOPSIS"]);
    let usage = line.clone().render_usage().to_string();
    unfilled(&mut synopsis, usage.trim_start_matches("Usage: "));
    synopsis.to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if line.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    Ok(page)
}

fn unfilled(page: &mut Roff, text: &str) {
    page.control("nf", []);
    for line in text.lines() {
        page.text([roman(line.trim_start())]);
    }
    page.control("fi", []);
}

fn table(page: &mut Roff, title: &str, rows: &[(&str, &str)]) {
    page.control("SH", [title]);
    for (name, meaning) in rows {
        page.control("TP", []);
        page.text([bold(*name)]);
        page.text([roman(*meaning)]);
    }
}
