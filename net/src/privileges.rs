//! `user`: from root, or from a user with some capabilities, to an ordinary user without any right, for good.
//!
//! Who serves holds no capability, gains none by any program that it runs, and is closed to other processes of its user: they can neither read nor write its
//! memory. What needs rights is the opener's (`millstream`'s `opener`).

use crate::child;
use crate::kernel;
use millstream_conf::model::User;
use rustix::process::{DumpableBehavior, Gid, Pid, Uid, getegid, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use std::ffi::CString;
use std::fmt;
use std::io;

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user's other groups are joined too.
    pub name: String,
    pub uid: u32,
    /// The named group's, else the user's own.
    pub gid: u32,
}

impl Account {
    pub fn own() -> Account {
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        Account { name: uid.to_string(), uid, gid }
    }
}

#[derive(Debug)]
pub enum PrivilegeError {
    NoUser(String),
    NoGroup(String),
    System(&'static str, io::Error),
}

impl fmt::Display for PrivilegeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrivilegeError::NoUser(name) => write!(f, "user \"{name}\" not found"),
            PrivilegeError::NoGroup(name) => write!(f, "group \"{name}\" not found"),
            PrivilegeError::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for PrivilegeError {}

/// May use the network if users are kept there. A number that is no user's name is an id (a container from
/// scratch has no list of users); its group has the same number.
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

/// The largest number means "none" to the kernel.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&id| id != u32::MAX && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Runs `work` with the rights of the serving processes: `user`'s if root starts the process, else its own
/// without capabilities. Runs in a temporary thread; nothing else changes.
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

/// A container may run as root without that right; then there is little to give up.
pub fn may_change_user() -> bool {
    let needed = CapabilitySet::SETUID.union(CapabilitySet::SETGID);
    geteuid().is_root() && capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// It may become another user, or has capabilities without being root, who has root's files even without any.
pub fn has_rights_to_give_up() -> bool {
    may_change_user() || (!geteuid().is_root() && has_capabilities())
}

fn has_capabilities() -> bool {
    capabilities(None).is_ok_and(|sets| !sets.permitted.is_empty())
}

/// Affects the calling thread only: the bare system calls act on one thread; leaving root drops its
/// capabilities.
fn take_on(account: &Account) -> Result<(), PrivilegeError> {
    let no_user = |_| PrivilegeError::NoUser(account.name.clone());
    let name = CString::new(account.name.as_str()).map_err(no_user)?;
    let groups = kernel::groups(&name, account.gid)
        .map_err(|error| PrivilegeError::System("looking up the user's groups", error))?;
    let groups: Vec<Gid> = groups.into_iter().map(Gid::from_raw).collect();
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    set_thread_groups(&groups).map_err(system("switching to the user's groups"))?;
    set_thread_res_gid(gid, gid, gid).map_err(system("switching to the group"))?;
    set_thread_res_uid(uid, uid, uid).map_err(system("switching to the user"))
}

/// Other processes of its user can neither trace it nor read or write its memory (ptrace(2),
/// proc_pid_mem(5)). An exec undoes this, so it is the first thing a program with rights does. A process
/// without any stays as it is, for debuggers.
pub fn close_to_others() {
    if geteuid().is_root() || has_capabilities() {
        // The kernel refuses no valid value.
        _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Makes this process, forked from `parent`, that user for good, without any right, and closes it to others
/// of that user. It ends with its parent.
pub fn become_powerless(account: &Account, parent: Pid) -> Result<(), PrivilegeError> {
    for capability in CapabilitySet::all().iter() {
        // One that this kernel does not know, or a container has taken away, cannot come back either.
        _ = remove_capability_from_bounding_set(capability);
    }
    // Who has capabilities alone is that user already, and has the groups that a service manager gave it.
    if account.uid != geteuid().as_raw() {
        let name =
            CString::new(account.name.as_str()).map_err(|_| PrivilegeError::NoUser(account.name.clone()))?;
        kernel::become_user(&name, account.uid, account.gid)
            .map_err(|error| PrivilegeError::System("switching to the user", error))?;
    }
    renounce()?;
    set_no_new_privs(true).map_err(system("setting no_new_privs"))?;
    // A change of the user opens the process or closes it, as the system is set up (`fs.suid_dumpable`).
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(system("setting PR_SET_DUMPABLE"))?;
    child::end_with(parent).map_err(|error| PrivilegeError::System("setting the parent death signal", error))
}

/// Of the calling thread, for good. A thread of root's, which `user root` asked for, keeps its own.
fn renounce() -> Result<(), PrivilegeError> {
    if geteuid().is_root() {
        return Ok(());
    }
    let none = CapabilitySet::empty();
    // What is neither permitted nor inheritable leaves the ambient set by itself.
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(system("dropping capabilities"))
}

fn system(what: &'static str) -> impl Fn(rustix::io::Errno) -> PrivilegeError {
    move |errno| PrivilegeError::System(what, errno.into())
}
