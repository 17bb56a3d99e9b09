//! `user`: from root to an ordinary user, keeping only the right to bind ports below 1024.
//!
//! Called once, after the listeners are open and before any thread starts: libc changes the ids of all
//! threads, but capabilities belong to the calling thread and are passed on to those it starts. The kept
//! right lets a later `HUP` open port 443, and as an ambient one it survives the exec of a binary upgrade.

use crate::kernel;
use millstream_conf::model::User;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
    set_keep_capabilities,
};
use std::ffi::CString;
use std::fmt;
use std::io;

#[cfg(test)]
mod tests;

/// A user and group of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user's name, whose other groups are joined too.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Group id: the named group's, else the user's own.
    pub gid: u32,
}

/// What [`drop_to`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dropped {
    /// The process is this user now.
    To(Account),
    /// The process was not root: `user` has no effect, as in nginx, which says so in a warning.
    NotRoot,
}

/// Why privileges were not dropped.
#[derive(Debug)]
pub enum PrivilegeError {
    /// No user has this name.
    NoUser(String),
    /// No group has this name.
    NoGroup(String),
    /// A system call failed: what it was for, and its error.
    System(&'static str, io::Error),
}

impl fmt::Display for PrivilegeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrivilegeError::NoUser(name) => write!(f, "there is no user \"{name}\""),
            PrivilegeError::NoGroup(name) => write!(f, "there is no group \"{name}\""),
            PrivilegeError::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for PrivilegeError {}

/// The ids of a `user` directive; may ask the network where the system's users live there.
pub fn find(user: &User) -> Result<Account, PrivilegeError> {
    let no_user = || PrivilegeError::NoUser(user.name.clone());
    let name = CString::new(user.name.as_str()).map_err(|_| no_user())?;
    let (uid, own_gid) = kernel::user(&name)
        .map_err(|error| PrivilegeError::System("looking up the user", error))?
        .ok_or_else(no_user)?;
    let gid = match &user.group {
        None => own_gid,
        Some(group) => {
            let no_group = || PrivilegeError::NoGroup(group.clone());
            let name = CString::new(group.as_str()).map_err(|_| no_group())?;
            kernel::group(&name)
                .map_err(|error| PrivilegeError::System("looking up the group", error))?
                .ok_or_else(no_group)?
        }
    };
    Ok(Account { name: user.name.clone(), uid, gid })
}

/// Makes the process that user for good. `user root` keeps everything.
pub fn drop_to(user: &User) -> Result<Dropped, PrivilegeError> {
    if !geteuid().is_root() {
        return Ok(Dropped::NotRoot);
    }
    let account = find(user)?;
    let name =
        CString::new(account.name.as_str()).map_err(|_| PrivilegeError::NoUser(account.name.clone()))?;
    if account.uid == 0 {
        return Ok(Dropped::To(account));
    }
    // A container may run as root without the right; then there is none to keep.
    let may_bind = capabilities(None)
        .map_err(system("reading the capabilities"))?
        .permitted
        .contains(CapabilitySet::NET_BIND_SERVICE);
    if may_bind {
        set_keep_capabilities(true).map_err(system("keeping capabilities over setuid"))?;
    }
    kernel::become_user(&name, account.uid, account.gid)
        .map_err(|error| PrivilegeError::System("changing to the user", error))?;
    if may_bind {
        keep_bind_only()?;
    }
    Ok(Dropped::To(account))
}

fn keep_bind_only() -> Result<(), PrivilegeError> {
    let kept = CapabilitySet::NET_BIND_SERVICE;
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: kept })
        .map_err(system("keeping the right to bind low ports"))?;
    // Kernels before 4.3 have no ambient set; then only a binary upgrade loses the right.
    let _ = configure_capability_in_ambient_set(kept, true);
    set_keep_capabilities(false).map_err(system("ending the keeping of capabilities"))
}

fn system(what: &'static str) -> impl Fn(rustix::io::Errno) -> PrivilegeError {
    move |errno| PrivilegeError::System(what, errno.into())
}
