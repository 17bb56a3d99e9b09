//! `user`: from root to an ordinary user. The main thread keeps what a reload needs, every other thread nothing.
//!
//! Where nginx has a master process that stays root, here is one thread that never sees a byte of a request: it
//! keeps three capabilities, so that a later `HUP` can read a key that only root may read and open port 443, and
//! `USR1` can make a file in a log directory of root's. As ambient ones they survive the exec of a binary upgrade.
//! libc changes the ids of all threads, but capabilities belong to the calling thread and are passed on to those it
//! starts: so a worker begins with [`renounce`].

use crate::child::Tie;
use crate::kernel;
use millstream_conf::model::User;
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set, set_capabilities,
    set_keep_capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use std::ffi::CString;
use std::fmt;
use std::io;

#[cfg(test)]
mod tests;

/// What the calling thread of [`drop_to`] keeps: ports below 1024, files whatever their mode, giving files away.
const KEPT: CapabilitySet =
    CapabilitySet::NET_BIND_SERVICE.union(CapabilitySet::DAC_OVERRIDE).union(CapabilitySet::CHOWN);

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

/// The ids of a `user` directive; may ask the network where the system's users live there. A number that is nobody's name
/// is an id, of a system that has no list of users (a container made from scratch); its group has the same number.
pub fn find(user: &User) -> Result<Account, PrivilegeError> {
    let no_user = || PrivilegeError::NoUser(user.name.clone());
    let name = CString::new(user.name.as_str()).map_err(|_| no_user())?;
    let known = kernel::user(&name).map_err(|error| PrivilegeError::System("looking up the user", error))?;
    let (uid, own_gid) = known.or_else(|| number(&user.name).map(|id| (id, id))).ok_or_else(no_user)?;
    let gid = match &user.group {
        None => own_gid,
        Some(group) => {
            let no_group = || PrivilegeError::NoGroup(group.clone());
            let name = CString::new(group.as_str()).map_err(|_| no_group())?;
            let known = kernel::group(&name)
                .map_err(|error| PrivilegeError::System("looking up the group", error))?;
            known.or_else(|| number(group)).ok_or_else(no_group)?
        }
    };
    Ok(Account { name: user.name.clone(), uid, gid })
}

/// An id written as a number. The largest one means "none" to the kernel.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&id| id != u32::MAX && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Does something with the rights that those who serve will have: `user`'s where root starts the process, else its own
/// less the capabilities that only the main thread keeps. It is done in a thread that ends with it; nothing else changes.
///
/// # Errors
/// Where there is no such user, or the system refuses.
pub fn as_served<T: Send>(user: Option<&User>, work: impl FnOnce() -> T + Send) -> Result<T, PrivilegeError> {
    let account = match user {
        Some(user) if geteuid().is_root() => Some(find(user)?),
        _ => None,
    };
    let as_account = move || {
        if let Some(account) = account.filter(|account| account.uid != 0) {
            take_on(&account)?;
        }
        renounce()?;
        Ok(work())
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, as_account);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(PrivilegeError::System("starting a thread", error)),
        }
    })
}

/// Whether the process could become another user. A container may run as root without that right; then there is little
/// left to be given away.
pub fn may_change_user() -> bool {
    let needed = CapabilitySet::SETUID.union(CapabilitySet::SETGID);
    geteuid().is_root() && capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Makes the calling thread alone that account. The bare system calls act on one thread; leaving root takes its
/// capabilities along.
fn take_on(account: &Account) -> Result<(), PrivilegeError> {
    let no_user = |_| PrivilegeError::NoUser(account.name.clone());
    let name = CString::new(account.name.as_str()).map_err(no_user)?;
    let groups = kernel::groups(&name, account.gid)
        .map_err(|error| PrivilegeError::System("looking up the user's groups", error))?;
    let groups: Vec<Gid> = groups.into_iter().map(Gid::from_raw).collect();
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    set_thread_groups(&groups).map_err(system("changing to the user's groups"))?;
    set_thread_res_gid(gid, gid, gid).map_err(system("changing to the group"))?;
    set_thread_res_uid(uid, uid, uid).map_err(system("changing to the user"))
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
    // A container may run as root without some of the rights; then these are not there to be kept.
    let kept = capabilities(None).map_err(system("reading the capabilities"))?.permitted & KEPT;
    if !kept.is_empty() {
        set_keep_capabilities(true).map_err(system("keeping capabilities over setuid"))?;
    }
    let tie = Tie::present();
    kernel::become_user(&name, account.uid, account.gid)
        .map_err(|error| PrivilegeError::System("changing to the user", error))?;
    // The kernel unties whoever becomes somebody else.
    tie.renew();
    if !kept.is_empty() {
        keep_only(kept)?;
    }
    Ok(Dropped::To(account))
}

/// Gives up every capability of the calling thread, for good. A thread of root's, which `user root` asked for, keeps
/// its own. Every thread that serves calls it first.
pub fn renounce() -> Result<(), PrivilegeError> {
    if geteuid().is_root() {
        return Ok(());
    }
    let none = CapabilitySet::empty();
    // What is neither permitted nor inheritable leaves the ambient set by itself.
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(system("giving up capabilities"))
}

fn keep_only(kept: CapabilitySet) -> Result<(), PrivilegeError> {
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: kept })
        .map_err(system("keeping what a reload needs"))?;
    for capability in kept.iter() {
        // Kernels before 4.3 have no ambient set; then only a binary upgrade loses the rights.
        let _ = configure_capability_in_ambient_set(capability, true);
    }
    set_keep_capabilities(false).map_err(system("ending the keeping of capabilities"))
}

fn system(what: &'static str) -> impl Fn(rustix::io::Errno) -> PrivilegeError {
    move |errno| PrivilegeError::System(what, errno.into())
}
