//! The folder that a configuration is copied to: what is there already, a copy made beside it, and the one moment in which that takes its place.
//!
//! The copy has all that was there as well, by links of the same files, so that one exchange of names is enough, and nothing is ever half
//! done. What a name is exchanged for is gone only after that. Nothing of the configuration is understood here.

use super::MAIN_FILE;
use super::origin::Origin;
use super::original::Likeness;
use super::plan::{Entry, Plan};
use millstream_conf::load::Loaded;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown, fchown, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const MOST_ENTRIES: usize = 100_000;
const DEEPEST: usize = 64;
const MOST_KEPT: u32 = 100;

/// The packaged file, which nobody has edited, so it may be replaced.
const PACKAGED: &[u8] = include_bytes!("../../../packaging/nginx.conf");

#[derive(Debug)]
pub(super) struct Target {
    folder: PathBuf,
}

impl Target {
    pub(super) fn find(given: &Path) -> Result<Target, String> {
        let shown = |error: io::Error| format!("{}: {error}", given.display());
        let folder = std::path::absolute(given).map_err(shown)?;
        let folder = if folder.exists() { folder.canonicalize().map_err(shown)? } else { folder };
        if folder.exists() && !folder.is_dir() {
            return Err(format!("{} is not a folder", given.display()));
        }
        match folder.parent() {
            Some(parent) if parent.is_dir() => Ok(Target { folder }),
            _ => Err(format!("the parent folder of {} does not exist", given.display())),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Refuses a target that contains or is the source, or holds other things.
    pub(super) fn refuse(&self, origin: &Origin) -> Result<(), String> {
        let (shown, folder) = (self.folder.display(), &self.folder);
        if origin.real.starts_with(folder) {
            return Err(format!("{} is inside {shown}", origin.real.display()));
        }
        let is_empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
        let is_one = folder.join(MAIN_FILE).exists() || folder.ends_with("millstream");
        if is_empty || is_one {
            Ok(())
        } else {
            Err(format!("{shown} is not empty and contains no {MAIN_FILE}"))
        }
    }

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

    /// Makes the copy in a temporary directory, which is removed unless it is put in place. Until then no
    /// other user can enter it: the new owner of a file could replace it by a link.
    pub(super) fn stage(&self, plan: &Plan) -> Result<TempDir, String> {
        let parent = self.folder.parent().unwrap_or(Path::new("/"));
        let staging = tempfile::Builder::new()
            .prefix(".millstream-import-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)
            .map_err(|error| format!("{} is not writable: {error}", parent.display()))?;
        let fill = || -> io::Result<()> {
            let mut left = MOST_ENTRIES;
            if self.folder.exists() {
                link_all(&self.folder, staging.path(), (&mut left, DEEPEST))?;
            }
            plan.entries.iter().try_for_each(|(at, entry)| make(staging.path(), at, entry, &plan.folder))
        };
        fill().map_err(|error| error.to_string())?;
        Ok(staging)
    }

    /// Moves the copy into place; returns the directory of the replaced files.
    pub(super) fn put(
        &self,
        staging: TempDir,
        plan: &Plan,
        differing: &[PathBuf],
    ) -> Result<Option<PathBuf>, String> {
        let shown = |error: io::Error| format!("{} cannot be replaced: {error}", self.folder.display());
        let model = if self.folder.exists() { &self.folder } else { &plan.folder };
        let open = fs::metadata(model).and_then(|found| be_like(staging.path(), Likeness::of(&found)));
        open.map_err(shown)?;
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
            format!("{}; the previous files are in {}", shown(error), staging.keep().display())
        })
    }
}

/// Included files that existed in the target before and are not nginx's.
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

fn is_planned(file: &Path, plan: &Plan) -> bool {
    file.ancestors().any(|part| plan.entries.contains_key(part))
}

/// Atomically.
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
    let kept = free.ok_or_else(|| io::Error::other("too many folders with replaced files"))?;
    for at in differing {
        let to = kept.join(at);
        fs::create_dir_all(to.parent().unwrap_or(&kept))?;
        fs::rename(old.join(at), to)?;
    }
    Ok(Some(kept))
}

/// Adds the entries of one directory to another: directories anew, files as hard links.
fn link_all(from: &Path, to: &Path, (left, depth): (&mut usize, usize)) -> io::Result<()> {
    let shown = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", from.display()));
    for entry in fs::read_dir(from).map_err(shown)? {
        let entry = entry?;
        let (own, copy) = (entry.path(), to.join(entry.file_name()));
        *left = left.checked_sub(1).filter(|_| depth > 0).ok_or_else(|| {
            io::Error::other(format!(
                "{} has more than {MOST_ENTRIES} files, or too many nested folders",
                from.display()
            ))
        })?;
        if entry.file_type()?.is_dir() {
            fs::create_dir(&copy)?;
            link_all(&own, &copy, (left, depth - 1))?;
            be_like(&copy, Likeness::of(&entry.metadata()?))?;
        } else {
            fs::hard_link(&own, &copy).map_err(shown)?;
        }
    }
    Ok(())
}

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
            Ok(_) => {
                return Err(shown(io::Error::other(
                    "a folder is needed here, but the target has another kind of file",
                )));
            }
            Err(_) => {
                fs::create_dir(&own)?;
                if let Ok(like) = fs::metadata(folder.join(parent)) {
                    be_like(&own, Likeness::of(&like))?;
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
            // Nobody reads a word of it before it has its own mode.
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own)?;
            file.write_all(text)?;
            if rustix::process::geteuid().is_root() {
                fchown(&file, Some(like.uid), Some(like.gid))?;
            }
            file.set_permissions(Permissions::from_mode(like.mode))?;
            file.sync_all()
        }
    }
    .map_err(shown)
}

/// Copies owner and mode to a directory that no other user can reach yet. Only root can change the owner.
fn be_like(path: &Path, like: Likeness) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        chown(path, Some(like.uid), Some(like.gid))?;
    }
    fs::set_permissions(path, Permissions::from_mode(like.mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn until_a_copy_is_in_its_place_nobody_else_comes_into_it() {
        let place = tempfile::tempdir().expect("a directory");
        let nginx = place.path().join("nginx");
        fs::create_dir_all(nginx.join("conf.d")).expect("made");
        fs::write(nginx.join("nginx.conf"), "").expect("written");
        let somebody = if rustix::process::geteuid().is_root() { 65534 } else { nginx_owner(&nginx) };
        for path in [nginx.clone(), nginx.join("conf.d")] {
            if rustix::process::geteuid().is_root() {
                chown(&path, Some(somebody), Some(somebody)).expect("root may");
            }
            fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("own");
        }
        let mut plan = Plan::new(&nginx);
        let like = Likeness { uid: somebody, gid: somebody, mode: 0o640 };
        let origin = Origin::find(&nginx, Some(Path::new("/p"))).expect("it is there");
        plan.add(&origin, Path::new("conf.d/site.conf"), (b"# text".to_vec(), like)).expect("room");
        let target = Target::find(&place.path().join("new")).expect("its folder is there");
        let staging = target.stage(&plan).expect("made");
        let own = fs::metadata(staging.path()).expect("it is there");
        assert_eq!((own.mode() & 0o777, own.uid()), (0o700, rustix::process::geteuid().as_raw()));
        target.put(staging, &plan, &[]).expect("put");
        let modes = ["", "conf.d", "conf.d/site.conf"].map(|at| {
            let found = fs::metadata(place.path().join("new").join(at)).expect("it is there");
            (found.mode() & 0o777, found.uid())
        });
        assert_eq!(modes, [(0o755, somebody), (0o755, somebody), (0o640, somebody)]);
    }

    fn nginx_owner(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").uid()
    }
}
