//! The limit of open files: `worker_rlimit_nofile`.
//!
//! Of the whole process, since workers are threads of it. Next: `millstream`'s `running`, which sets it at start.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Files the process may have open at once; `u64::MAX` where there is no limit.
pub fn nofile() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Sets the limit, and the hard limit with it where that is lower, which needs CAP_SYS_RESOURCE.
///
/// Errors with EPERM where the process may not; the limit is then as before.
pub fn set_nofile(files: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum.map(|maximum| maximum.max(files));
    setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
