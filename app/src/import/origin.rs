//! Where a configuration of nginx is: its main file, the folder around that, and what relative paths hang on.
//!
//! The prefix is built into nginx and stands in none of its files, so nginx is asked (`nginx -V`), where it is there and this folder is its own.
//! Nothing is written. Next: `rewriting`, which takes paths from here to the target.

use super::{MAIN_FILE, options};
use millstream_conf::load::{Loaded, load};
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug)]
pub(super) struct Origin {
    pub(super) main: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) real: PathBuf,
    /// Base of relative paths that are not part of the configuration.
    pub(super) prefix: PathBuf,
}

impl Origin {
    pub(super) fn find(given: &Path, prefix: Option<&Path>) -> Result<Origin, String> {
        let given = std::path::absolute(given).map_err(|error| error.to_string())?;
        let main = match given.is_dir() {
            true => [given.join(MAIN_FILE), given.join("conf").join(MAIN_FILE)]
                .into_iter()
                .find(|file| file.exists())
                .ok_or_else(|| format!("{} contains no {MAIN_FILE}", given.display()))?,
            false if !given.exists() => return Err(format!("{} does not exist", given.display())),
            false => given,
        };
        let folder = main.parent().unwrap_or(Path::new("/")).to_path_buf();
        let real = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        let prefix = match prefix {
            Some(prefix) => std::path::absolute(prefix).map_err(|error| error.to_string())?,
            None => built_in(&real).unwrap_or_else(|| match folder.file_name() {
                Some(name) if name == "conf" => folder.parent().unwrap_or(&folder).to_path_buf(),
                _ => folder.clone(),
            }),
        };
        Ok(Origin { main, folder, real, prefix })
    }

    pub(super) fn load(&self) -> Loaded {
        load(&options(&self.prefix, &self.main, None, true))
    }

    /// The path relative to the directory; `None` outside it.
    pub(super) fn below(&self, path: &Path) -> Option<PathBuf> {
        let path = straight(&self.folder.join(path));
        let inside = path.strip_prefix(straight(&self.folder)).or_else(|_| path.strip_prefix(&self.real));
        inside.ok().map(Path::to_path_buf)
    }
}

/// Removes `.` and `..` without looking at the disk.
pub(super) fn straight(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = straight.pop(),
            part => straight.push(part),
        }
    }
    straight
}

/// The prefix of the installed nginx, if this is its directory.
fn built_in(folder: &Path) -> Option<PathBuf> {
    let asked = |program: &OsStr| {
        Command::new(program).arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).output().ok()
    };
    // Users other than root often have no sbin on their path.
    let said = asked("nginx".as_ref()).or_else(|| asked("/usr/sbin/nginx".as_ref()))?;
    let (prefix, file) = of_build(&String::from_utf8_lossy(&said.stderr))?;
    let own = fs::canonicalize(prefix.join(file).parent()?).ok()?;
    (own == folder).then_some(prefix)
}

fn of_build(said: &str) -> Option<(PathBuf, PathBuf)> {
    let option = |name: &str| said.split_whitespace().find_map(|word| word.strip_prefix(name));
    let prefix = option("--prefix=").unwrap_or("/usr/local/nginx");
    let file = option("--conf-path=").unwrap_or("conf/nginx.conf");
    said.contains("nginx version").then(|| (prefix.into(), file.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_read_from_what_nginx_says_of_its_build() {
        let of = |said: &str| {
            of_build(said).map(|(prefix, file)| format!("{} {}", prefix.display(), file.display()))
        };
        let debian = "nginx version: nginx/1.22.1\nconfigure arguments: --with-cc-opt='-g -O2' \
                      --prefix=/usr/share/nginx --conf-path=/etc/nginx/nginx.conf --http-log-path=/var/log/nginx/access.log";
        assert_eq!(of(debian).as_deref(), Some("/usr/share/nginx /etc/nginx/nginx.conf"));
        assert_eq!(of("nginx version: nginx/1.31.5").as_deref(), Some("/usr/local/nginx conf/nginx.conf"));
        assert_eq!(of("no such option"), None);
    }

    #[test]
    fn a_path_is_below_the_folder_by_either_of_its_names_and_not_by_going_up() {
        let place = tempfile::tempdir().expect("a directory");
        let real = place.path().canonicalize().expect("it is there").join("real");
        fs::create_dir(&real).expect("made");
        fs::write(real.join(MAIN_FILE), "").expect("written");
        let link = real.with_file_name("link");
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        let origin = Origin::find(&link, Some(Path::new("/p"))).expect("it is there");
        let below = |path: &Path| origin.below(path);
        assert_eq!(below(&real.join("a/b")), Some("a/b".into()));
        assert_eq!(below(&link.join("a/../b")), Some("b".into()));
        assert_eq!(below(Path::new("a")), Some("a".into()));
        assert_eq!(below(Path::new("../a")), None);
        assert_eq!(below(Path::new("/elsewhere")), None);
        assert!(Origin::find(&real.join("none"), None).is_err());
    }
}
