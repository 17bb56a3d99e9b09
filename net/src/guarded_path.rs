//! Files opened with root's rights by names that others may have a hand in.
//!
//! A folder that is not root's is its owner's: a link there leads wherever that one likes, and so does a second name of a file. So a path is walked step by
//! step. A link is followed where it and every folder on the way are root's; below any other folder nothing is, and a file with a second name is refused
//! unless it belongs to `user` or to the folder's owner. Next: `millstream`'s `opener`.

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, PROC_SUPER_MAGIC, chownat, fchown, fstat, fstatfs, ftruncate,
    mkdirat, openat, readlinkat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Links followed for one path, as many as the kernel follows (path_resolution(7)).
const MOST_LINKS: usize = 40;
/// Less the umask.
const OPEN_FOLDER: u32 = 0o755;
const OWN_FOLDER: u32 = 0o700;

/// Where a path ends: a name in a folder, never a link.
#[derive(Debug)]
struct Place {
    folder: OwnedFd,
    name: OsString,
    /// The folder and all above it are root's.
    is_roots: bool,
    /// No one else may put names there either.
    is_closed: bool,
    /// A link of the kernel's own, such as `/proc/self/fd/1`, which has no text to follow.
    is_magic: bool,
}

/// A user and its group, to whom files are given.
pub type Owner = (u32, u32);

/// Opens a file to read, for `user`. Refuses a link, or a hard link, that another user may have made; a pipe
/// or a device.
pub fn open(path: &Path, user: Option<Owner>) -> io::Result<File> {
    let place = walk(path, false)?;
    let file = place.open(OFlags::RDONLY, Mode::empty(), user)?;
    let found = fstat(&file)?;
    let kind = FileType::from_raw_mode(found.st_mode);
    if place.is_magic || path.starts_with("/dev") || kind == FileType::RegularFile {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// Opens a file to append; creates it if missing, and gives it to `owner` if it is root's. Refuses as
/// [`open`].
pub fn append(path: &Path, mode: u32, owner: Option<Owner>) -> io::Result<File> {
    let place = walk(path, false)?;
    let (flags, mode) = (OFlags::APPEND | OFlags::CREATE, Mode::from_raw_mode(mode));
    let file = match place.open(OFlags::WRONLY | flags, mode, owner) {
        // A pipe without a reader is opened for both, so that its first lines are there when one comes.
        Err(Errno::NXIO) => place.open(OFlags::RDWR | flags, mode, owner)?,
        opened => opened?,
    };
    let found = fstat(&file)?;
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if let Some((user, group)) = owner
        && is_file
        && found.st_uid == 0
        && found.st_nlink == 1
    {
        fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
    }
    Ok(file)
}

/// Opens a file to overwrite; creates it and root's folders on the way if missing. Refuses as [`open`], but
/// any kind of file.
pub fn create(path: &Path, mode: u32) -> io::Result<File> {
    let file = walk(path, true)?.open(OFlags::WRONLY | OFlags::CREATE, Mode::from_raw_mode(mode), None)?;
    // Only now is it known to be no file of somebody else's.
    if FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile {
        ftruncate(&file, 0)?;
    }
    Ok(file)
}

/// The folders are reached as by [`names`]. A link with either name is itself renamed or replaced. Refuses a
/// link on the way that another user may have made.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let ((from, old), (to, new)) = (parent(from)?, parent(to)?);
    Ok(renameat(from, old, to, new)?)
}

/// The folder is reached as by [`rename`].
pub fn remove(path: &Path) -> io::Result<()> {
    let (folder, name) = parent(path)?;
    Ok(unlinkat(folder, name, AtFlags::empty())?)
}

/// The folder is reached as by [`open`]; all names, or `one` if it exists.
pub fn names(folder: &Path, one: Option<&OsStr>) -> io::Result<Vec<OsString>> {
    let folder = open_folder(folder, if one.is_some() { OFlags::PATH } else { OFlags::RDONLY })?;
    if let Some(name) = one {
        statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        return Ok(vec![name.to_os_string()]);
    }
    let mut names = Vec::new();
    for entry in Dir::new(folder)? {
        names.push(OsStr::from_bytes(entry?.file_name().to_bytes()).to_os_string());
    }
    names.retain(|name| name != "." && name != "..");
    Ok(names)
}

/// Makes a private folder if it is missing, and gives it to `owner` if it is root's. Does nothing below a
/// folder that is not root's: its owner has to. With `deep` missing parents are made too, as open as the
/// umask allows.
pub fn make_folder(path: &Path, deep: bool, owner: Option<Owner>) -> io::Result<()> {
    let place = match walk(path, deep) {
        Err(Errno::NOENT | Errno::LOOP) => return Ok(()),
        place => place?,
    };
    if !place.is_roots {
        return Ok(());
    }
    match mkdirat(&place.folder, &place.name, Mode::from_raw_mode(OWN_FOLDER)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    place.give(owner)
}

/// Gives what is root's to `owner`; not below a folder of another user's. A missing file is no error.
pub fn give(path: &Path, owner: Option<Owner>) -> io::Result<()> {
    match walk(path, false) {
        Err(Errno::NOENT | Errno::LOOP) => Ok(()),
        place => place?.give(owner),
    }
}

/// Follows no link.
pub fn is_of_another(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) != 0)
}

impl Place {
    fn open(&self, flags: OFlags, mode: Mode, user: Option<Owner>) -> Result<File, Errno> {
        let follow = if self.is_magic { OFlags::empty() } else { OFlags::NOFOLLOW };
        let all = flags | follow | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = openat(&self.folder, &self.name, all, mode)?;
        let found = fstat(&file)?;
        // A second name may be made by somebody else than the file's owner.
        if !self.is_closed && found.st_nlink > 1 {
            let allowed = [user.map(|(user, _)| user), Some(fstat(&self.folder)?.st_uid)];
            if found.st_uid == 0 || !allowed.contains(&Some(found.st_uid)) {
                return Err(Errno::LOOP);
            }
        }
        Ok(file.into())
    }

    fn give(&self, owner: Option<Owner>) -> io::Result<()> {
        let Some((user, group)) = owner else { return Ok(()) };
        if !self.is_roots {
            return Ok(());
        }
        let found = match statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            found => found?,
        };
        let kind = FileType::from_raw_mode(found.st_mode);
        let is_alone = kind == FileType::Directory || (kind == FileType::RegularFile && found.st_nlink == 1);
        if found.st_uid != 0 || !is_alone {
            return Ok(());
        }
        let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        Ok(chownat(&self.folder, &self.name, user, group, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// The folder of a path's last name, and that name.
fn parent(path: &Path) -> Result<(OwnedFd, OsString), Errno> {
    let path = std::path::absolute(path).map_err(|_| Errno::NOENT)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Err(Errno::ISDIR) };
    Ok((open_folder(folder, OFlags::PATH)?, name.to_os_string()))
}

fn open_folder(path: &Path, access: OFlags) -> Result<OwnedFd, Errno> {
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match walk(path, false) {
        Ok(place) => openat(&place.folder, &place.name, flags, Mode::empty()),
        Err(Errno::ISDIR) => openat(CWD, "/", flags, Mode::empty()),
        Err(error) => Err(error),
    }
}

/// Missing folders of root's are made on the way with `make`.
fn walk(path: &Path, make: bool) -> Result<Place, Errno> {
    let path = std::path::absolute(path).map_err(|_| Errno::NOENT)?;
    let mut rest: VecDeque<OsString> = names_of(&path).collect();
    let top = || openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let mut folder = top()?;
    let (mut is_roots, mut is_closed, mut links) = (true, true, 0);
    while let Some(name) = rest.pop_front() {
        let found = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW);
        let is_last = rest.is_empty();
        match found {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => {
                links += 1;
                if !is_roots || found.st_uid != 0 || links > MOST_LINKS {
                    return Err(Errno::LOOP);
                }
                if is_last && fstatfs(&folder).is_ok_and(|of| of.f_type == PROC_SUPER_MAGIC) {
                    return Ok(Place { folder, name, is_roots, is_closed, is_magic: true });
                }
                let target = readlinkat(&folder, &name, Vec::new())?;
                let target = Path::new(OsStr::from_bytes(target.to_bytes())).to_path_buf();
                if target.is_absolute() {
                    folder = top()?;
                }
                let steps: Vec<OsString> = names_of(&target).collect();
                steps.into_iter().rev().for_each(|step| rest.push_front(step));
                continue;
            }
            Ok(_) | Err(Errno::NOENT) if is_last => {
                return Ok(Place { folder, name, is_roots, is_closed, is_magic: false });
            }
            Err(Errno::NOENT) if make && is_roots => {
                mkdirat(&folder, &name, Mode::from_raw_mode(OPEN_FOLDER))?;
            }
            found => _ = found?,
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        folder = openat(&folder, &name, flags, Mode::empty())?;
        let found = fstat(&folder)?;
        is_roots &= found.st_uid == 0;
        is_closed &= is_roots && found.st_mode & 0o022 == 0;
    }
    // The path is `/` itself.
    Err(Errno::ISDIR)
}

/// `..` included: a link on the way may change where that leads.
pub(crate) fn names_of(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};

    const STRANGER: u32 = 65_432;

    /// A folder of root's, and one in it of another user; `None` if this is not root.
    fn folders() -> Option<tempfile::TempDir> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give files away");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("theirs")).expect("made");
        chown(folder.path().join("theirs"), Some(STRANGER), Some(STRANGER)).expect("given");
        fs::write(folder.path().join("secret"), "secret").expect("written");
        Some(folder)
    }

    #[test]
    fn a_link_is_followed_where_it_and_its_folder_are_roots() {
        let Some(folder) = folders() else { return };
        let at = |name: &str| folder.path().join(name);
        for name in ["link", "theirs/link", "another"] {
            symlink("../".repeat(name.matches('/').count()) + "secret", at(name)).expect("a link");
        }
        lchown(at("another"), Some(STRANGER), None).expect("given");
        symlink("theirs", at("folder")).expect("a link");
        fs::write(at("theirs/own"), "").expect("written");
        let refused = Some(Errno::LOOP.raw_os_error());
        for (name, wanted) in [
            ("secret", None),
            ("link", None),
            ("theirs/link", refused),
            ("another", refused),
            ("folder/own", None),
            ("folder/link", refused),
            ("folder/../secret", None),
        ] {
            assert_eq!(open(&at(name), None).err().and_then(|error| error.raw_os_error()), wanted, "{name}");
            let written = append(&at(name), 0o644, None).err().and_then(|error| error.raw_os_error());
            assert_eq!(written, wanted, "{name}");
        }
        fs::hard_link(at("secret"), at("theirs/name")).expect("a second name");
        assert!(open(&at("theirs/name"), None).is_err() && append(&at("theirs/name"), 0o644, None).is_err());
        assert!(open(Path::new("/proc/self/fd/0"), None).is_ok());
    }

    #[test]
    fn a_file_is_made_emptied_renamed_and_removed_through_no_link_of_another_users() {
        let Some(folder) = folders() else { return };
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("roots")).expect("made");
        symlink("roots", at("link")).expect("a link");
        symlink("../roots", at("theirs/link")).expect("a link");
        symlink("../secret", at("theirs/file")).expect("a link");
        symlink("../roots/made", at("theirs/missing")).expect("a link");
        fs::hard_link(at("secret"), at("theirs/name")).expect("a second name");
        for (name, wanted) in [
            ("roots/a", true),
            ("link/a", true),
            ("new/folder/a", true),
            ("theirs/a", true),
            ("theirs/new/a", false),
            ("theirs/link/a", false),
            ("theirs/file", false),
            ("theirs/missing", false),
            ("theirs/name", false),
        ] {
            for text in ["a long text", "short"] {
                let written = create(&at(name), 0o666).and_then(|mut file| file.write_all(text.as_bytes()));
                assert_eq!(written.is_ok(), wanted, "{name}: {written:?}");
                assert!(!wanted || fs::read_to_string(at(name)).is_ok_and(|found| found == text), "{name}");
            }
        }
        assert_eq!(fs::read_to_string(at("secret")).expect("it is there"), "secret");
        assert!(!at("roots/made").exists() && !at("theirs/new").exists());
        assert!(rename(&at("theirs/link/a"), &at("theirs/b")).is_err());
        assert!(rename(&at("theirs/a"), &at("theirs/link/b")).is_err());
        assert!(remove(&at("theirs/link/a")).is_err() && at("roots/a").exists());
        rename(&at("theirs/a"), &at("theirs/file")).expect("the link is replaced");
        rename(&at("link/a"), &at("roots/b")).expect("renamed");
        remove(&at("link/b")).expect("removed");
        remove(&at("theirs/missing")).expect("removed");
        assert_eq!(fs::read_to_string(at("secret")).expect("it is there"), "secret");
        assert!(fs::read_dir(at("roots")).expect("it is there").next().is_none());
    }

    #[test]
    fn a_second_name_of_a_file_is_opened_where_the_file_is_the_users_or_the_folders_owners() {
        let Some(folder) = folders() else { return };
        let at = |name: &str| folder.path().join(name);
        let (served, third) = (STRANGER + 1, STRANGER + 2);
        fs::create_dir(at("shared")).expect("made");
        fs::set_permissions(at("shared"), fs::Permissions::from_mode(0o1777)).expect("opened");
        for (number, (place, owner, names, wanted)) in [
            ("theirs", STRANGER, 2, true),
            ("theirs", served, 2, true),
            ("theirs", third, 2, false),
            ("theirs", third, 1, true),
            ("theirs", 0, 2, false),
            ("theirs", 0, 1, true),
            ("shared", third, 2, false),
            ("shared", served, 2, true),
            ("shared", 0, 2, false),
        ]
        .into_iter()
        .enumerate()
        {
            let file = at(place).join(number.to_string());
            fs::write(&file, "").expect("written");
            chown(&file, Some(owner), Some(owner)).expect("given");
            if names > 1 {
                fs::hard_link(&file, at("other").with_extension(number.to_string())).expect("a second name");
            }
            let user = Some((served, served));
            let opened = (open(&file, user).is_ok(), append(&file, 0o644, user).is_ok());
            assert_eq!(opened, (wanted, wanted), "{place}, {names} names, of {owner}");
        }
    }

    #[test]
    fn names_are_listed_through_links_that_are_followed_and_through_no_others() {
        let Some(folder) = folders() else { return };
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("roots/deep")).expect("made");
        fs::write(at("roots/a"), "").expect("written");
        symlink("roots", at("link")).expect("a link");
        symlink("../roots", at("theirs/link")).expect("a link");
        let both = Some(vec!["a".into(), "deep".into()]);
        let a = Some(vec!["a".into()]);
        for (name, one, wanted) in [
            ("roots", None, &both),
            ("link", None, &both),
            ("roots/deep/..", None, &both),
            ("theirs/link", None, &None),
            ("theirs", None, &Some(vec!["link".into()])),
            ("roots/a", None, &None),
            ("link", Some("a"), &a),
            ("link", Some("b"), &None),
            ("theirs/link", Some("a"), &None),
            ("theirs", Some("link"), &Some(vec!["link".into()])),
        ] {
            let mut found = names(&at(name), one.map(OsStr::new)).ok();
            found.iter_mut().for_each(|found| found.sort());
            assert_eq!(found, *wanted, "{name} {one:?}");
        }
        assert!(names(Path::new("/"), None).is_ok_and(|found| !found.is_empty()));
    }

    #[test]
    fn what_is_made_in_a_folder_of_roots_is_given_and_below_another_nothing_is_made() {
        let Some(folder) = folders() else { return };
        let at = |name: &str| folder.path().join(name);
        let owner = Some((STRANGER, STRANGER));
        append(&at("log"), 0o644, owner).expect("made");
        make_folder(&at("a/b"), true, owner).expect("made");
        make_folder(&at("c/d"), false, owner).expect("nothing to do");
        make_folder(&at("theirs/e"), true, owner).expect("nothing to do");
        let uid = |name: &str| fs::metadata(at(name)).map(|found| found.uid()).ok();
        let found = ["log", "a", "a/b", "c", "theirs/e"].map(uid);
        assert_eq!(found, [Some(STRANGER), Some(0), Some(STRANGER), None, None]);
        fs::write(at("theirs/roots"), "").expect("written");
        give(&at("theirs/roots"), owner).expect("nothing to do");
        assert_eq!(uid("theirs/roots"), Some(0));
    }
}
