//! What is printed: the answer as the first line, then what differs, what is to be done, what was copied.
//!
//! Sentences about directives are those of the check (`-t -v`). Nothing is decided here.

use super::of;
use super::places::OwnPlaces;
use super::plan::{Difference, Entry, Plan};
use millstream_conf::diagnostics::Severity;
use millstream_conf::load::Loaded;
use millstream_conf::source::Sources;
use std::path::{Path, PathBuf};

const MOST_LISTED: usize = 200;

pub(super) struct ImportReport {
    from: String,
    to: PathBuf,
    count: (usize, usize),
    copied: Vec<String>,
    differences: Vec<String>,
    before: Vec<String>,
    stay: Vec<String>,
    is_dry: bool,
}

impl ImportReport {
    pub(super) fn new(
        from: &str,
        to: &Path,
        plan: &Plan,
        mut differences: Vec<Difference>,
        sources: &Sources,
    ) -> ImportReport {
        // What decides who gets what comes first.
        differences.sort_by_key(|difference| (difference.is_idle, difference.span));
        let placed = |difference: &Difference| match difference.span {
            Some(span) => format!("{}: {}", sources.locate(span), difference.text),
            None => difference.text.clone(),
        };
        let shown = |(at, entry): (&PathBuf, &Entry)| match entry {
            Entry::File { .. } => at.display().to_string(),
            Entry::Link(to) => format!("{} -> {}", at.display(), to.display()),
        };
        ImportReport {
            from: from.to_owned(),
            to: to.to_owned(),
            count: plan.count(),
            copied: plan.entries.iter().map(shown).collect(),
            differences: differences.iter().map(placed).collect(),
            before: Vec::new(),
            stay: plan.stay.iter().map(|at| at.display().to_string()).collect(),
            is_dry: false,
        }
    }

    pub(super) fn is_dry(&mut self) {
        self.is_dry = true;
    }

    pub(super) fn before(&mut self, sentences: Vec<String>) {
        self.before.extend(sentences);
    }

    pub(super) fn strangers(&mut self, files: &[PathBuf]) {
        let told = |file: &PathBuf| {
            let at = self.to.join(file);
            format!(
                "remove {} if its site no longer exists: the file was there before, and is still included",
                at.display()
            )
        };
        self.before.extend(files.iter().map(told));
    }

    pub(super) fn kept(&mut self, folder: Option<PathBuf>) {
        if let Some(folder) = folder {
            self.before.push(format!("the replaced files are in {}", folder.display()));
        }
    }

    pub(super) fn text(&self, places: &OwnPlaces) -> String {
        let to = self.to.display();
        let files = match self.count {
            (files, 0) => counted(files, "file"),
            (files, links) => format!("{} and {}", counted(files, "file"), counted(links, "link")),
        };
        let copied = if self.is_dry { "would be copied" } else { "copied" };
        let differ = match self.differences.len() {
            0 => "nothing differs".to_owned(),
            1 => "1 thing differs".to_owned(),
            more => format!("{more} things differ"),
        };
        let mut text = format!("{} can run on Millstream: {files} {copied} to {to}, {differ}.\n", self.from);
        list(&mut text, "Differences", &self.differences);
        list(&mut text, "To do before the start", &self.before);
        list(&mut text, "Not copied, and read from their present place", &self.stay);
        list(&mut text, if self.is_dry { "Would be copied" } else { "Copied" }, &self.copied);
        if !self.is_dry {
            let next = match places.is_packaged {
                true if places.has_logs() => {
                    "sudo millstream -t && sudo systemctl reload-or-restart millstream".to_owned()
                }
                // The package, which has the service, was not installed.
                true => {
                    let logs = places.log("");
                    format!("sudo install -d {logs} && sudo millstream -t && sudo millstream")
                }
                false => format!("millstream -p {to} -c nginx.conf"),
            };
            text += &format!("\nNext: {next}\n");
        }
        text
    }
}

pub(super) fn refused(from: &str, to: &Path, differing: &[PathBuf]) -> String {
    let files = counted(differing.len(), "file");
    let mut text = format!(
        "{from} can run on Millstream, but {files} in {} would be replaced. Nothing was copied.\n",
        to.display()
    );
    let shown: Vec<String> = differing.iter().map(|at| at.display().to_string()).collect();
    list(&mut text, "Different files", &shown);
    text += "\n--force replaces them, and keeps the old ones next to the folder; --to FOLDER copies to another folder.\n";
    text
}

/// Warnings of the check: what means something else here, is left out, or has no effect.
pub(super) fn findings(loaded: &Loaded) -> Vec<Difference> {
    let all = of(&loaded.diagnostics, Severity::Warning).chain(of(&loaded.diagnostics, Severity::Idle));
    all.map(|finding| {
        let elsewhere = match finding.elsewhere(&loaded.sources) {
            none if none.is_empty() => none,
            others => format!(" (also in {others})"),
        };
        let help = finding.help.as_ref().map_or_else(String::new, |help| format!(": {help}"));
        let text = format!("{}{elsewhere}{help}", finding.message);
        Difference { span: finding.span, text, is_idle: finding.severity == Severity::Idle }
    })
    .collect()
}

pub(super) fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn list(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    *text += &format!("\n{title}:\n");
    for line in lines.iter().take(MOST_LISTED) {
        *text += &format!("  {line}\n");
    }
    if let Some(more) = lines.len().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
        *text += &format!("  and {more} more\n");
    }
}
