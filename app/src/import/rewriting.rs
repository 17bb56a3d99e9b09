//! From the files of nginx to those of the target: which are copied, and which of their words change on the way.
//!
//! What a directive is and what a path is for comes from `millstream-conf`, which has read the files. Includes hang on the main file's folder
//! anew; what nginx writes gets a place of Millstream's own; all else goes on naming what it named. Before: `plan`, `edits`, `places`; next: `target`.

use super::MAIN_FILE;
use super::edits::{self, Edit};
use super::origin::{Origin, straight};
use super::original::{self, Likeness};
use super::places::{self, Names, OwnPlaces};
use super::plan::{Difference, Plan};
use millstream_conf::load::Loaded;
use millstream_conf::model::Configuration;
use millstream_conf::parts::{Base, NamedPath, PathUse};
use millstream_conf::source::{FileId, Span};
use millstream_conf::tree::Directive;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::Path;

#[cfg(test)]
mod tests;

const STOCK: [&str; 6] =
    ["fastcgi_params", "fastcgi.conf", "uwsgi_params", "scgi_params", "proxy_params", "mime.types"];
const MOST_SNIPPETS: usize = 1_000;

pub(super) fn plan(
    origin: &Origin,
    loaded: &Loaded,
    places: &OwnPlaces,
) -> Result<(Plan, Vec<Difference>), String> {
    let mut rewriting = Rewriting {
        origin,
        loaded,
        places,
        names: Names::default(),
        seen: HashSet::new(),
        edits: HashMap::new(),
        copied: BTreeSet::new(),
        plan: Plan::new(&origin.real),
        differences: Vec::new(),
    };
    rewriting.copied.insert(rewriting.main());
    rewriting.includes();
    for path in &loaded.parts.paths {
        rewriting.path(path)?;
    }
    for span in &loaded.parts.left_out {
        rewriting.take_out(*span, None);
    }
    rewriting.of_the_unit();
    rewriting.spare()?;
    if let Some(configuration) = &loaded.configuration {
        rewriting.defaults(configuration);
    }
    rewriting.whole()
}

struct Rewriting<'a> {
    origin: &'a Origin,
    loaded: &'a Loaded,
    places: &'a OwnPlaces,
    names: Names,
    /// Words already handled: a file included twice yields each word twice.
    seen: HashSet<Span>,
    edits: HashMap<FileId, Vec<Edit>>,
    copied: BTreeSet<FileId>,
    plan: Plan,
    differences: Vec<Difference>,
}

impl Rewriting<'_> {
    fn main(&self) -> FileId {
        FileId(0)
    }

    fn file(&self, id: FileId) -> &Path {
        &self.loaded.sources.file(id).path
    }

    fn text(&self, id: FileId) -> &[u8] {
        &self.loaded.sources.file(id).text
    }

    fn differs(&mut self, span: Option<Span>, text: String) {
        self.differences.push(Difference { span, text, is_idle: false });
    }

    /// Edits a file if it is copied; otherwise reports `told` as a difference.
    fn change(&mut self, span: Span, edit: Edit, told: Option<String>) {
        if self.origin.below(self.file(span.file)).is_some() {
            self.edits.entry(span.file).or_default().push(edit);
            if let Some(told) = told {
                self.differs(Some(span), told);
            }
        } else if let Some(told) = told {
            self.differs(Some(span), format!("change this by hand, because the file is not copied: {told}"));
        }
    }

    fn take_out(&mut self, span: Span, told: Option<String>) {
        let edit = Edit::take_out(self.text(span.file), span);
        self.change(span, edit, told);
    }

    fn includes(&mut self) {
        for inclusion in self.loaded.sources.inclusions() {
            self.copied.extend(&inclusion.files);
            if !self.seen.insert(inclusion.span) {
                continue;
            }
            let written = &inclusion.written;
            let anew = match self.origin.below(Path::new(written)) {
                Some(below) => places::text(below),
                None => places::text(straight(&self.origin.folder.join(written))),
            };
            if anew != *written {
                self.change(inclusion.span, Edit::word(inclusion.span, &anew), None);
            }
        }
    }

    fn path(&mut self, path: &NamedPath) -> Result<(), String> {
        if !self.seen.insert(path.span) || path.written.is_empty() {
            return Ok(());
        }
        let (written, has_variables) = (path.written.as_str(), path.written.contains('$'));
        if written.starts_with('$') {
            let base = match path.base {
                Base::Prefix => &self.origin.prefix,
                Base::MainFile => &self.origin.folder,
            };
            let what =
                format!("if {written} is a relative path, it is no longer relative to {}", base.display());
            self.differs(Some(path.span), what);
            return Ok(());
        }
        let whole = match path.base {
            Base::Prefix => self.origin.prefix.join(written),
            Base::MainFile => self.origin.folder.join(written),
        };
        match path.used {
            PathUse::Own if !has_variables && self.own(path, &whole)? => {}
            PathUse::Own | PathUse::Certificate | PathUse::Secret | PathUse::Served => {
                if path.used != PathUse::Served && !has_variables {
                    self.plan.stay.push(whole.clone());
                }
                self.settle(path, &whole, None);
            }
            PathUse::Stored => {
                let told = format!(
                    "nginx also stores responses in {written}, and the service must be allowed to write there"
                );
                self.settle(path, &whole, None);
                self.differs(Some(path.span), told);
            }
            PathUse::Log | PathUse::Cache | PathUse::State | PathUse::Temporary | PathUse::Pid => {
                self.moved(path, &whole);
            }
        }
        Ok(())
    }

    /// Adds a file of the configuration; false if it stays outside.
    fn own(&mut self, path: &NamedPath, whole: &Path) -> Result<bool, String> {
        let Some(below) = self.origin.below(whole) else { return Ok(false) };
        let read = match original::read(whole) {
            Ok(read) => read,
            // As in nginx, that is found out when it is asked for.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(format!("{}: {error}", whole.display())),
        };
        self.plan.add(self.origin, &below, read)?;
        let anew = places::text(below);
        if anew != path.written {
            self.change(path.span, Edit::word(path.span, &anew), None);
        }
        Ok(true)
    }

    /// Writes out a path that would change its meaning with the configuration's place.
    fn settle(&mut self, path: &NamedPath, whole: &Path, told: Option<String>) {
        if Path::new(&path.written) != whole {
            // With the slash at its end, which an `alias` means something by.
            let word = places::text(whole.to_path_buf());
            self.change(path.span, Edit::word(path.span, &word), told);
        }
    }

    fn moved(&mut self, path: &NamedPath, whole: &Path) {
        if places::is_device(whole) {
            return;
        }
        let named = places::text(straight(whole));
        let (word, anew) = match path.used {
            PathUse::Pid => ("pid file", self.places.pid()),
            PathUse::Log => ("log", self.names.log(&named, self.places)),
            PathUse::Cache => ("cache", self.names.cache(&named, self.places)),
            PathUse::State => ("state", self.names.state(&named, self.places)),
            _ => ("directory for temporary files", self.names.cache(&named, self.places)),
        };
        let more =
            if matches!(path.used, PathUse::Cache | PathUse::State) { "; it is empty at first" } else { "" };
        let told =
            format!("the {word} {named} is replaced by {anew}, because nginx writes to the original{more}");
        self.change(path.span, Edit::word(path.span, &anew), Some(told));
    }

    /// Removes directives that the unit's command line sets.
    fn of_the_unit(&mut self) {
        if !self.places.is_packaged {
            return;
        }
        for directive in &self.loaded.parts.tree {
            match (directive.name.text.as_str(), &*directive.args) {
                ("user", [user, ..]) => {
                    let told = format!(
                        "user {0} is omitted: the service has its own user, which needs access to everything that \
                         only {0} can read or write",
                        user.text
                    );
                    self.take_out(directive.span, Some(told));
                }
                ("daemon", _) => self.take_out(
                    directive.span,
                    Some("daemon is omitted: systemd starts the process".to_owned()),
                ),
                _ => {}
            }
        }
    }

    /// Adds nginx's built-in values that the files leave out.
    fn defaults(&mut self, configuration: &Configuration) {
        let tree = &self.loaded.parts.tree;
        let is_written = |block: &[Directive], name: &str| block.iter().any(|one| one.name.text == name);
        let mut added = Vec::new();
        for (name, place) in [("pid", self.places.pid()), ("error_log", self.places.log("error.log"))] {
            if !is_written(tree, name) {
                added.push(format!("{name} {place};"));
            }
        }
        if !added.is_empty() {
            let text = format!(
                "\n# Added by millstream import, because nginx has other defaults.\n{}\n",
                added.join("\n")
            );
            let edit = Edit::end(self.text(self.main()), &text);
            self.edits.entry(self.main()).or_default().push(edit);
        }
        if let Some((span, block)) = tree
            .iter()
            .find_map(|one| Some((one.span, one.block.as_deref()?)).filter(|_| one.name.text == "http"))
        {
            let mut inside = Vec::new();
            if !is_written(block, "access_log") {
                inside.push(format!("access_log {};", self.places.log("access.log")));
            }
            if self.places.is_packaged && !is_written(block, "dashboard") {
                inside.push("dashboard 127.0.0.1:8081 optional;".to_owned());
            }
            added.extend_from_slice(&inside);
            // Files come from where they came from, so that is nothing to tell.
            if !is_written(block, "root") && serves_default_root(configuration, &self.origin.prefix) {
                inside.push(format!("root {};", self.origin.prefix.join("html").display()));
            }
            if !inside.is_empty() {
                self.change(span, Edit::inside(span, &inside.join(" ")), None);
            }
        }
        for line in added {
            self.differs(None, format!("{line} is added, because no file contains it"));
        }
    }

    fn likeness(&self, id: FileId) -> io::Result<Likeness> {
        let (text, like) = original::read(self.file(id))?;
        match text == self.text(id) {
            true => Ok(like),
            false => Err(io::Error::other("the file was changed during the import")),
        }
    }

    /// Adds files of nginx's packages for `include` that nothing includes yet: the next site may.
    fn spare(&mut self) -> Result<(), String> {
        let snippets = std::fs::read_dir(self.origin.folder.join("snippets")).into_iter().flatten().flatten();
        let mut spare: Vec<_> = snippets.map(|entry| Path::new("snippets").join(entry.file_name())).collect();
        spare.sort();
        spare.truncate(MOST_SNIPPETS);
        for place in STOCK.iter().map(|name| Path::new(name).to_path_buf()).chain(spare) {
            let path = self.origin.folder.join(&place);
            let is_it = |file: &Path| self.origin.below(file).as_ref() == Some(&place);
            let known = self.copied.iter().any(|id| is_it(self.file(*id)))
                || self.plan.stay.iter().any(|file| is_it(file));
            // One that cannot be read is missed by nothing that is there.
            if !known && let Ok(read) = original::read(&path) {
                self.plan.add(self.origin, &place, read)?;
            }
        }
        Ok(())
    }

    fn whole(mut self) -> Result<(Plan, Vec<Difference>), String> {
        for id in std::mem::take(&mut self.copied) {
            let path = self.file(id).to_path_buf();
            let below = self.origin.below(&path);
            if below.is_none() && id != self.main() {
                self.plan.stay.push(path);
                continue;
            }
            let like = self.likeness(id).map_err(|why| format!("{}: {why}", path.display()))?;
            let text = edits::apply(self.text(id), self.edits.get(&id).map_or(&[], Vec::as_slice));
            match below {
                Some(below) if id != self.main() => self.plan.add(self.origin, &below, (text, like))?,
                _ => self.plan.add_main(Path::new(MAIN_FILE), (text, like))?,
            }
        }
        self.plan.stay.sort();
        self.plan.stay.dedup();
        Ok((self.plan, self.differences))
    }
}

/// Whether a server uses the default root. The control socket's server, which is in no file, has none.
fn serves_default_root(configuration: &Configuration, prefix: &Path) -> bool {
    let (http, default) = (&configuration.http, prefix.join("html"));
    let listeners = http.listeners.iter().filter(|listener| !listener.owner_only);
    listeners.flat_map(|listener| &listener.servers).any(|server| {
        let settings = &http.location(http.server(*server).own).settings;
        settings.files.root.path.as_literal() == default.to_str()
    })
}
