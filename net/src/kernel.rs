//! The few system calls that no library used here wraps safely; the only file of this crate with `unsafe`.
//!
//! Each function checks its arguments and turns errno into `io::Error`, so that callers need no `unsafe`.
//! Nothing is decided here. Next: `child`, `clock`, `daemon`, `privileges` and `listener`, the callers.
#![allow(unsafe_code, reason = "libc calls without a safe wrapper, each with its SAFETY comment")]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Largest scratch space for one user or group entry; a group with more members is an error.
const LARGEST_ENTRY: usize = 1 << 20;

/// Takes ownership of a descriptor the process was started with. Name each descriptor only once. Fails if it
/// is not open, and for the three standard ones.
pub(crate) fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 3 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: F_GETFD only reads the flags of a descriptor number; it is an error for one that is not open.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open (checked above) and was inherited, so that nothing in this process owns
    // it yet; `Inherited::from_environment` runs once and hands in each number once.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Per second, the unit of times in `/proc`.
pub(crate) fn clock_ticks() -> u64 {
    system_value(libc::_SC_CLK_TCK).unwrap_or(100)
}

pub(crate) fn page_size() -> u64 {
    system_value(libc::_SC_PAGESIZE).unwrap_or(4096)
}

fn system_value(name: libc::c_int) -> Option<u64> {
    // SAFETY: sysconf only reads a number that is fixed for the life of the process; an unknown name gives -1.
    u64::try_from(unsafe { libc::sysconf(name) }).ok().filter(|value| *value > 0)
}

pub(crate) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned, so that it stays the same and open until it is deregistered.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

/// TCP_DEFER_ACCEPT: the kernel reports a connection only with its first bytes, or after `seconds`.
pub(crate) fn defer_accept(socket: BorrowedFd<'_>, seconds: libc::c_int) -> io::Result<()> {
    // SAFETY: the option reads exactly one c_int, which lives on this stack for the length of the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// IP_BIND_ADDRESS_NO_PORT: an address is bound now, its port when the destination is known.
pub(crate) fn bind_without_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option reads exactly one c_int, which lives on this stack for the length of the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Seconds ahead of UTC at `seconds` since 1970; 0 if the zone is unknown.
pub(crate) fn local_offset(seconds: i64) -> i32 {
    local(seconds).and_then(|local| i32::try_from(local.tm_gmtoff).ok()).unwrap_or(0)
}

/// Such as `CET`.
pub(crate) fn local_zone(seconds: i64) -> Vec<u8> {
    let zone = local(seconds).map_or(std::ptr::null(), |local| local.tm_zone);
    if zone.is_null() {
        return b"UTC".to_vec();
    }
    // SAFETY: localtime_r points to a name that the C library keeps for as long as the environment is not changed.
    unsafe { CStr::from_ptr(zone) }.to_bytes().to_vec()
}

fn local(seconds: i64) -> Option<libc::tm> {
    let mut broken_down = MaybeUninit::<libc::tm>::zeroed();
    let time: libc::time_t = seconds;
    // SAFETY: both pointers are valid for the call, and localtime_r keeps neither. This process never changes
    // its environment, which the function reads TZ from.
    let result = unsafe { libc::localtime_r(&raw const time, broken_down.as_mut_ptr()) };
    if result.is_null() {
        return None;
    }
    // SAFETY: it was zeroed, which is a valid `tm`, and then filled.
    Some(unsafe { broken_down.assume_init() })
}

/// User id and primary group id; `None` if there is no such user.
pub(crate) fn user(name: &CStr) -> io::Result<Option<(u32, u32)>> {
    entry(|scratch| {
        let mut found = MaybeUninit::<libc::passwd>::zeroed();
        let mut result = std::ptr::null_mut();
        // SAFETY: every pointer is valid for the call, and the length is the scratch space's own.
        let code = unsafe {
            libc::getpwnam_r(
                name.as_ptr(),
                found.as_mut_ptr(),
                scratch.as_mut_ptr().cast(),
                scratch.len(),
                &raw mut result,
            )
        };
        // SAFETY: it was zeroed, which is a valid `passwd` (null pointers and zeros); only the numbers are
        // read.
        let found = unsafe { found.assume_init() };
        (code, (!result.is_null()).then_some((found.pw_uid, found.pw_gid)))
    })
}

/// `None` if there is no such group.
pub(crate) fn group(name: &CStr) -> io::Result<Option<u32>> {
    entry(|scratch| {
        let mut found = MaybeUninit::<libc::group>::zeroed();
        let mut result = std::ptr::null_mut();
        // SAFETY: every pointer is valid for the call, and the length is the scratch space's own.
        let code = unsafe {
            libc::getgrnam_r(
                name.as_ptr(),
                found.as_mut_ptr(),
                scratch.as_mut_ptr().cast(),
                scratch.len(),
                &raw mut result,
            )
        };
        // SAFETY: it was zeroed, which is a valid `group` (null pointers and zeros); only the number is read.
        let found = unsafe { found.assume_init() };
        (code, (!result.is_null()).then_some(found.gr_gid))
    })
}

/// Sets the groups of `name`, then the group, then the user, for every thread of the process (libc's own
/// wrappers do that; the bare system calls act on one thread).
pub(crate) fn become_user(name: &CStr, uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: the name is a valid C string for the call; the other two calls take numbers.
    let calls: [&dyn Fn() -> libc::c_int; 3] =
        unsafe { [&|| libc::initgroups(name.as_ptr(), gid), &|| libc::setgid(gid), &|| libc::setuid(uid)] };
    for call in calls {
        if call() != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// `gid` and all that list the name.
pub(crate) fn groups(name: &CStr, gid: u32) -> io::Result<Vec<u32>> {
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut count = libc::c_int::try_from(groups.len()).map_err(io::Error::other)?;
        // SAFETY: the name is a valid C string for the call, and `count` is the room that the vector has.
        let fits =
            unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) } >= 0;
        if fits {
            groups.truncate(usize::try_from(count).unwrap_or(0));
            return Ok(groups);
        }
        if groups.len() >= LARGEST_ENTRY {
            return Err(io::Error::other("the user is in too many groups"));
        }
        groups.resize(groups.len() * 4, 0);
    }
}

/// Returns the child's id, and `None` in the child, where only the calling thread continues. Fails if other
/// threads run: they might hold locks that the child would wait for.
pub(crate) fn fork() -> io::Result<Option<u32>> {
    // Without /proc, as in a bare chroot, the callers' word has to do: they have started none.
    if std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "other threads run already"));
    }
    // SAFETY: no other thread exists (checked above, and only this thread could start one), so that the child
    // finds every lock and the heap as this thread left them.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(u32::try_from(child).ok().filter(|&child| child != 0)),
    }
}

pub(crate) fn replace_standard(file: BorrowedFd<'_>, standard: RawFd) -> io::Result<()> {
    if !(0..3).contains(&standard) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: both are descriptor numbers; the standard three have no owner that closes them.
    if unsafe { libc::dup2(file.as_raw_fd(), standard) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Calls a `*_r` look-up with more and more scratch space until its entry fits.
fn entry<T>(mut look_up: impl FnMut(&mut [u8]) -> (libc::c_int, Option<T>)) -> io::Result<Option<T>> {
    let mut scratch = vec![0; 1024];
    loop {
        let (code, found) = look_up(&mut scratch);
        match code {
            0 => return Ok(found),
            libc::EINTR => {}
            // POSIX lets a system say "no such entry" with any of these.
            libc::ENOENT | libc::ESRCH => return Ok(None),
            libc::ERANGE if scratch.len() < LARGEST_ENTRY => scratch.resize(scratch.len() * 4, 0),
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

/// Set up in a child before it executes its program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TieToParent {
    parent: libc::pid_t,
}

impl TieToParent {
    pub(crate) fn here() -> TieToParent {
        // SAFETY: it takes nothing, reads one number and cannot fail.
        TieToParent { parent: unsafe { libc::getpid() } }
    }

    /// TERM when the parent ends; an error if it has ended already.
    fn tie(self) -> io::Result<()> {
        // SAFETY: this option takes a signal's number and touches no memory.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM, 0, 0, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it takes nothing, reads one number and cannot fail.
        if unsafe { libc::getppid() } != self.parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    }
}

pub(crate) fn before_exec(command: &mut Command, tie: TieToParent) {
    // SAFETY: in the child of a process with threads nothing may be called that takes a lock or allocates. `tie` makes two
    // system calls; its errors are numbers.
    unsafe { command.pre_exec(move || tie.tie()) };
}

/// mimalloc's number of `purge_delay`, which only its C header has (`mi_option_e`).
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// The environment variable takes precedence.
pub(crate) fn purge_freed_memory_after(delay: Duration) {
    let milliseconds = libc::c_long::try_from(delay.as_millis()).unwrap_or(libc::c_long::MAX);
    // SAFETY: it writes one number of a static table after checking the index. It is not safe beside other threads that set
    // options, and there are none: this is called once, first thing in `main`.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, milliseconds) };
}

#[cfg(test)]
pub(crate) fn freed_memory_purged_after() -> Duration {
    // SAFETY: it reads one number of a static table after checking the index.
    let milliseconds = unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
    Duration::from_millis(milliseconds.try_into().unwrap_or_default())
}
