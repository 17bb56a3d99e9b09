//! The folder that a configuration is copied to: what is there already, a copy made beside it, and the one moment in which that takes its place.
//!
//! The copy has all that was there as well, by links of the same files, so that one exchange of names is enough, and nothing is ever half
//! done. What a name is exchanged for is gone only after that. Nothing of the configuration is understood here.

use super::MAIN_FILE;
use super::origin::Origin;
use super::plan::{Entry, Plan};
use millstream_conf::load::Loaded;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Entries of a folder that is there already at the most, and how deep they lie.
const MOST_ENTRIES: usize = 100_000;
const DEEPEST: usize = 64;
/// Folders with what was replaced at the most.
const MOST_KEPT: u32 = 100;

/// The file that a package puts there, which nobody has written and anybody may replace.
const PACKAGED: &[u8] = include_bytes!("../../../packaging/nginx.conf");

/// A folder that may be there.
#[derive(Debug)]
pub(super) struct Target {
    folder: PathBuf,
}

impl Target {
    /// The folder of this name, links followed.
    pub(super) fn find(given: &Path) -> Result<Target, String> {
        let shown = |error: io::Error| format!("{}: {error}", given.display());
        let folder = std::path::absolute(given).map_err(shown)?;
        let folder = if folder.exists() { folder.canonicalize().map_err(shown)? } else { folder };
        if folder.exists() && !folder.is_dir() {
            return Err(format!("{} is not a folder", given.display()));
        }
        match folder.parent() {
            Some(parent) if parent.is_dir() => Ok(Target { folder }),
            _ => Err(format!("the folder that {} is to lie in is not there", given.display())),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A folder that holds what is copied, or is that, is no target; neither is one that holds other things.
    pub(super) fn refuse(&self, origin: &Origin) -> Result<(), String> {
        let (shown, folder) = (self.folder.display(), &self.folder);
        if origin.real.starts_with(folder) {
            return Err(format!("{} lies in {shown}", origin.real.display()));
        }
        let is_empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
        let is_one = folder.join(MAIN_FILE).exists() || folder.ends_with("millstream");
        if is_empty || is_one {
            Ok(())
        } else {
            Err(format!("{shown} has files, and no {MAIN_FILE} among them"))
        }
    }

    /// Entries that are there and something else.
    pub(super) fn differing(&self, plan: &Plan) -> Vec<PathBuf> {
        let differs = |(at, entry): &(&PathBuf, &Entry)| {
            let path = self.folder.join(at);
            let Ok(found) = fs::symlink_metadata(&path) else { return false };
            match entry {
                Entry::Link(to) => fs::read_link(&path).ok().as_ref() != Some(to),
                Entry::File { text, .. } => {
                    let own = found.is_file().then(|| fs::read(&path).ok()).flatten();
                    !own.is_some_and(|own| {
                        own == *text || (at.as_path() == Path::new(MAIN_FILE) && own == PACKAGED)
                    })
                }
            }
        };
        plan.entries.iter().filter(differs).map(|(at, _)| at.clone()).collect()
    }

    /// Makes the copy, which goes away again unless it is put in its place.
    pub(super) fn stage(&self, plan: &Plan) -> Result<TempDir, String> {
        let parent = self.folder.parent().unwrap_or(Path::new("/"));
        let staging = tempfile::Builder::new()
            .prefix(".millstream-import-")
            .tempdir_in(parent)
            .map_err(|error| format!("nothing can be written in {}: {error}", parent.display()))?;
        let fill = || -> io::Result<()> {
            let mut left = MOST_ENTRIES;
            match fs::metadata(&self.folder) {
                Ok(found) => link_all(&self.folder, staging.path(), (&mut left, DEEPEST))
                    .and_then(|()| be_like(staging.path(), &found)),
                Err(_) => be_like(staging.path(), &fs::metadata(&plan.folder)?),
            }?;
            plan.entries.iter().try_for_each(|(at, entry)| make(staging.path(), at, entry, &plan.folder))
        };
        fill().map_err(|error| error.to_string())?;
        Ok(staging)
    }

    /// Puts the copy in its place. What differed is kept in a folder of its own, whose name comes back.
    pub(super) fn put(&self, staging: TempDir, differing: &[PathBuf]) -> Result<Option<PathBuf>, String> {
        let shown = |error: io::Error| format!("{} cannot be replaced: {error}", self.folder.display());
        if !self.folder.exists() {
            fs::rename(staging.path(), &self.folder).map_err(shown)?;
            // It has gone from where it would be removed.
            _ = staging.keep();
            return Ok(None);
        }
        exchange(staging.path(), &self.folder).map_err(shown)?;
        // From here on `staging` is what was there before.
        keep(staging.path(), &self.folder, differing).map_err(|error| {
            // Nothing of it is lost.
            format!("{}, but all that was there before is in {}", shown(error), staging.keep().display())
        })
    }
}

/// Files that the copy includes and no file of nginx brought: they were there before.
pub(super) fn strangers(copy: &Loaded, staging: &Path, plan: &Plan) -> Vec<PathBuf> {
    let files = copy.sources.inclusions().iter().flat_map(|inclusion| &inclusion.files);
    let mut strangers: Vec<PathBuf> = files
        .filter_map(|file| copy.sources.file(*file).path.strip_prefix(staging).ok())
        .filter(|file| !is_planned(file, plan))
        .map(Path::to_path_buf)
        .collect();
    strangers.sort();
    strangers.dedup();
    strangers
}

/// Whether a file, or a folder above it that is a link, is part of the plan.
fn is_planned(file: &Path, plan: &Plan) -> bool {
    file.ancestors().any(|part| plan.entries.contains_key(part))
}

/// Gives each of two folders the other's name.
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => return Ok(()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        Err(error) => return Err(error.into()),
    }
    // A filesystem that cannot do it at once.
    let aside = one.with_extension("old");
    fs::rename(other, &aside)?;
    if let Err(error) = fs::rename(one, other) {
        fs::rename(&aside, other)?;
        return Err(error);
    }
    fs::rename(&aside, one)
}

/// Moves what differed into a new folder beside the target.
fn keep(old: &Path, target: &Path, differing: &[PathBuf]) -> io::Result<Option<PathBuf>> {
    if differing.is_empty() {
        return Ok(None);
    }
    let named = |number: u32| {
        let mut name = target.as_os_str().to_owned();
        name.push(".before-import");
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    let free = (1..MOST_KEPT).map(named).find(|name| !name.exists());
    let kept = free.ok_or_else(|| io::Error::other("there are too many of them"))?;
    for at in differing {
        let to = kept.join(at);
        fs::create_dir_all(to.parent().unwrap_or(&kept))?;
        fs::rename(old.join(at), to)?;
    }
    Ok(Some(kept))
}

/// Makes the entries of one folder those of another one too: folders anew, all else by the same files.
fn link_all(from: &Path, to: &Path, (left, depth): (&mut usize, usize)) -> io::Result<()> {
    let shown = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", from.display()));
    for entry in fs::read_dir(from).map_err(shown)? {
        let entry = entry?;
        let (own, copy) = (entry.path(), to.join(entry.file_name()));
        *left = left.checked_sub(1).filter(|_| depth > 0).ok_or_else(|| {
            io::Error::other(format!(
                "{} has more than {MOST_ENTRIES} files, or too deep ones",
                from.display()
            ))
        })?;
        if entry.file_type()?.is_dir() {
            fs::create_dir(&copy)?;
            link_all(&own, &copy, (left, depth - 1))?;
            be_like(&copy, &entry.metadata()?)?;
        } else {
            fs::hard_link(&own, &copy).map_err(shown)?;
        }
    }
    Ok(())
}

/// Makes one entry in the copy.
fn make(staging: &Path, at: &Path, entry: &Entry, folder: &Path) -> io::Result<()> {
    let shown = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", at.display()));
    let mut parents: Vec<&Path> =
        at.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty()).collect();
    parents.reverse();
    for parent in parents {
        let own = staging.join(parent);
        match fs::symlink_metadata(&own) {
            Ok(found) if found.is_dir() => {}
            // A link of the target's might lead anywhere.
            Ok(_) => return Err(shown(io::Error::other("a folder is wanted where the target has none"))),
            Err(_) => {
                fs::create_dir(&own)?;
                if let Ok(like) = fs::metadata(folder.join(parent)) {
                    be_like(&own, &like)?;
                }
            }
        }
    }
    let own = staging.join(at);
    if fs::symlink_metadata(&own).is_ok() {
        fs::remove_file(&own).map_err(shown)?;
    }
    match entry {
        Entry::Link(to) => symlink(to, &own),
        Entry::File { text, like } => {
            let like = fs::metadata(like)?;
            // Nobody reads a word of it before it has its own mode.
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own)?;
            file.write_all(text)?;
            be_like(&own, &like)?;
            file.sync_all()
        }
    }
    .map_err(shown)
}

/// Owner and mode of another one. Only root can give files away.
fn be_like(path: &Path, like: &Metadata) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        chown(path, Some(like.uid()), Some(like.gid()))?;
    }
    fs::set_permissions(path, Permissions::from_mode(like.mode() & 0o777))
}
