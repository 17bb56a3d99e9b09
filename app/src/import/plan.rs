//! What the target is to hold: files with their text, and links.
//!
//! A link that leads to another place of the same folder stays one; of any other the file is taken that it leads to. Bounded in number.
//! Nothing is written. Next: `rewriting`, which fills it; `target`, which carries it out.

use super::origin::Origin;
use super::original::Likeness;
use millstream_conf::source::Span;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

const MOST_ENTRIES: usize = 20_000;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    File { text: Vec<u8>, like: Likeness },
    Link(PathBuf),
}

#[derive(Debug)]
pub(super) struct Plan {
    /// Their source; its directories are copied with their modes.
    pub(super) folder: PathBuf,
    pub(super) entries: BTreeMap<PathBuf, Entry>,
    pub(super) stay: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) span: Option<Span>,
    pub(super) text: String,
    /// Whether the only difference is that it has no effect.
    pub(super) is_idle: bool,
}

impl Plan {
    pub(super) fn new(folder: &Path) -> Plan {
        Plan { folder: folder.into(), entries: BTreeMap::new(), stay: Vec::new() }
    }

    pub(super) fn count(&self) -> (usize, usize) {
        let files = self.entries.values().filter(|entry| matches!(entry, Entry::File { .. })).count();
        (files, self.entries.len() - files)
    }

    /// Adds a file of nginx's directory at its relative path, with the links on the way.
    pub(super) fn add(
        &mut self,
        origin: &Origin,
        place: &Path,
        (text, like): (Vec<u8>, Likeness),
    ) -> Result<(), String> {
        let (at, links) = behind_links(origin, place);
        for (link, to) in links {
            self.put(link, Entry::Link(to))?;
        }
        self.put(at, Entry::File { text, like })
    }

    pub(super) fn add_main(&mut self, name: &Path, (text, like): (Vec<u8>, Likeness)) -> Result<(), String> {
        self.put(name.into(), Entry::File { text, like })
    }

    fn put(&mut self, at: PathBuf, entry: Entry) -> Result<(), String> {
        if self.entries.len() >= MOST_ENTRIES {
            return Err(format!("the configuration has more than {MOST_ENTRIES} files"));
        }
        match self.entries.get(&at) {
            Some(known) if *known != entry => {
                Err(format!("two of its files would be copied to {}", at.display()))
            }
            _ => {
                self.entries.insert(at, entry);
                Ok(())
            }
        }
    }
}

/// The path behind the links that stay links, and those links.
fn behind_links(origin: &Origin, place: &Path) -> (PathBuf, Vec<(PathBuf, PathBuf)>) {
    let mut links = Vec::new();
    let mut at = PathBuf::new();
    let mut rest: Vec<Component<'_>> = place.components().collect();
    rest.reverse();
    while let Some(part) = rest.pop() {
        at.push(part);
        let link = origin.real.join(&at);
        if !fs::symlink_metadata(&link).is_ok_and(|found| found.is_symlink()) {
            continue;
        }
        // What it leads to has no link on its way, so this comes to an end.
        let Some(to) = fs::canonicalize(&link)
            .ok()
            .and_then(|to| Some(to.strip_prefix(&origin.real).ok()?.to_path_buf()))
        else {
            // It leads out of the folder: what is behind it is taken as if it lay here.
            return (place_with(at, rest), links);
        };
        links.push((at.clone(), relative(&at, &to)));
        at = to;
    }
    (at, links)
}

fn place_with(mut at: PathBuf, rest: Vec<Component<'_>>) -> PathBuf {
    at.extend(rest.into_iter().rev());
    at
}

fn relative(link: &Path, to: &Path) -> PathBuf {
    let from: Vec<_> = link.parent().unwrap_or(Path::new("")).components().collect();
    let to: Vec<_> = to.components().collect();
    let shared = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n(Component::ParentDir, from.len() - shared);
    up.chain(to[shared..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_within_the_folder_stays_one_and_any_other_becomes_its_file() {
        let place = tempfile::tempdir().expect("a directory");
        let nginx = place.path().join("nginx");
        for folder in ["sites-available", "sites-enabled"] {
            fs::create_dir_all(nginx.join(folder)).expect("made");
        }
        for file in ["nginx/nginx.conf", "nginx/sites-available/a", "elsewhere"] {
            fs::write(place.path().join(file), "").expect("written");
        }
        symlink(nginx.join("sites-available/a"), nginx.join("sites-enabled/a")).expect("linked");
        symlink(place.path().join("elsewhere"), nginx.join("sites-enabled/b")).expect("linked");
        symlink("sites-enabled", nginx.join("enabled")).expect("linked");
        let origin = Origin::find(&nginx, Some(Path::new("/p"))).expect("it is there");
        let mut plan = Plan::new(&origin.real);
        for file in ["sites-enabled/a", "sites-enabled/b", "enabled/a"] {
            let like = Likeness { uid: 0, gid: 0, mode: 0o644 };
            plan.add(&origin, Path::new(file), (file.len().to_string().into(), like)).unwrap_or_default();
        }
        let shown: Vec<String> = plan
            .entries
            .iter()
            .map(|(at, entry)| match entry {
                Entry::File { .. } => at.display().to_string(),
                Entry::Link(to) => format!("{} -> {}", at.display(), to.display()),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "enabled -> sites-enabled",
                "sites-available/a",
                "sites-enabled/a -> ../sites-available/a",
                "sites-enabled/b",
            ]
        );
        assert_eq!(plan.count(), (2, 2));
    }
}
