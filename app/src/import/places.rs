//! Where Millstream writes, so that it can stand beside an nginx with the same configuration.
//!
//! The folder of packages goes with the unit, whose service may write in folders that systemd makes for it; any other folder is whole
//! in itself. Names are chosen here and nothing is made. Next: `rewriting`, which puts them in.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

const PACKAGED: &str = "/etc/millstream";
/// nginx's own directories; a name in one says nothing about its file.
const KNOWN: [&str; 4] = ["/var/log/nginx", "/var/cache/nginx", "/var/lib/nginx", "/var/log"];
const DEVICES: [&str; 2] = ["/dev/", "/proc/"];

#[derive(Debug)]
pub(super) struct OwnPlaces {
    /// Whether the unit of packages runs the target.
    pub(super) is_packaged: bool,
    logs: &'static str,
    caches: &'static str,
    states: &'static str,
    run: &'static str,
}

impl OwnPlaces {
    pub(super) fn of(target: &Path) -> OwnPlaces {
        if target == Path::new(PACKAGED) {
            return OwnPlaces {
                is_packaged: true,
                logs: "/var/log/millstream/",
                caches: "/var/cache/millstream/",
                states: "/var/lib/millstream/",
                run: "/run/millstream/",
            };
        }
        // Relative: they hang on the prefix, and `-p` names the folder.
        OwnPlaces { is_packaged: false, logs: "logs/", caches: "cache/", states: "", run: "" }
    }

    /// Directives that the unit puts on the command line.
    pub(super) fn globals(&self) -> Option<String> {
        self.is_packaged.then(|| "daemon off;".to_owned())
    }

    pub(super) fn pid(&self) -> String {
        format!("{}nginx.pid", self.run)
    }

    pub(super) fn log(&self, name: &str) -> String {
        format!("{}{name}", self.logs)
    }

    /// Whether there is a folder for logs.
    pub(super) fn has_logs(&self) -> bool {
        Path::new(self.logs).is_dir()
    }

    /// Directories that nothing else creates.
    pub(super) fn folders(&self) -> impl Iterator<Item = &'static str> {
        let own = if self.is_packaged { None } else { Some([self.logs, self.caches]) };
        own.into_iter().flatten().map(|folder| folder.trim_end_matches('/'))
    }
}

/// Assigned names, so that no two paths share one.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, String>);

impl Names {
    pub(super) fn log(&mut self, path: &str, places: &OwnPlaces) -> String {
        self.place(path, places.logs)
    }

    pub(super) fn cache(&mut self, path: &str, places: &OwnPlaces) -> String {
        self.place(path, places.caches)
    }

    pub(super) fn state(&mut self, path: &str, places: &OwnPlaces) -> String {
        self.place(path, places.states)
    }

    /// A flat name in one directory, as subdirectories would have to be created.
    fn place(&mut self, path: &str, folder: &str) -> String {
        let known = KNOWN.iter().find_map(|known| path.strip_prefix(known)?.strip_prefix('/'));
        let short = known.or_else(|| path.rsplit('/').next()).unwrap_or(path);
        let all = path.trim_matches('/').replace('/', "-");
        let choices = [short.replace('/', "-"), all];
        for name in &choices {
            let place = format!("{folder}{name}");
            if !name.is_empty() && self.0.entry(place.clone()).or_insert_with(|| path.to_owned()) == path {
                return place;
            }
        }
        // Neither is free: `/a-b` and `/a/b`.
        format!("{folder}{}-{}", choices[1], self.0.len())
    }
}

/// Two programs can share a device.
pub(super) fn is_device(path: &Path) -> bool {
    DEVICES.iter().any(|device| path.starts_with(device))
}

/// Whether systemd shows the service this directory empty.
pub(super) fn is_hidden(path: &Path) -> bool {
    ["/home", "/root", "/run/user", "/tmp", "/var/tmp"].iter().any(|hidden| path.starts_with(hidden))
}

pub(super) fn text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_never_shared() {
        let (places, mut names) = (OwnPlaces::of(Path::new(PACKAGED)), Names::default());
        for (path, place) in [
            ("/var/log/nginx/access.log", "/var/log/millstream/access.log"),
            ("/var/log/nginx/shop/access.log", "/var/log/millstream/shop-access.log"),
            ("/srv/shop/access.log", "/var/log/millstream/srv-shop-access.log"),
            ("/srv/shop/errors", "/var/log/millstream/errors"),
            ("/var/log/nginx/$host.log", "/var/log/millstream/$host.log"),
            ("/var/log/nginx/access.log", "/var/log/millstream/access.log"),
        ] {
            assert_eq!(names.log(path, &places), place, "{path}");
        }
        assert_eq!(names.cache("/dev/shm/api", &places), "/var/cache/millstream/api");
        let own = OwnPlaces::of(Path::new("/srv/new"));
        assert_eq!((own.pid().as_str(), own.log("error.log").as_str()), ("nginx.pid", "logs/error.log"));
    }
}
