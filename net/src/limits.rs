//! The limit of open files: `worker_rlimit_nofile`.
//!
//! Of the whole process, since workers are threads of it. Next: `millstream`'s `running`, which sets it at start.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// `u64::MAX` = unlimited.
pub fn nofile() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Up to the hard limit; never lowers it. Returns the resulting limit.
pub fn raise_nofile(files: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(files, |maximum| maximum.min(files));
    if limit.current.is_some_and(|current| current < wanted) {
        // No privilege is needed below the hard limit; where it fails all the same, the limit is what it was.
        _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    }
    nofile()
}

/// Raises the hard limit too if it is lower, which needs CAP_SYS_RESOURCE. On EPERM the limit is as before.
pub fn set_nofile(files: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.map(|maximum| maximum.max(files));
    setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum })?;
    Ok(())
}

/// Of the process, or of the machine.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_high_enough_stays() {
        let files = nofile();
        assert_eq!(raise_nofile(1), files);
        assert!(raise_nofile(u64::MAX) >= files);
    }

    #[test]
    fn the_limit_that_is_set_already_can_be_set_again() {
        let files = nofile();
        assert!(files > 0);
        if files != u64::MAX {
            set_nofile(files).expect("no privilege is needed for what is");
            assert_eq!(nofile(), files);
        }
    }
}
