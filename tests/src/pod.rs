//! A container without a container engine: a program in a root of its own, which is empty and read-only but for what is mounted, as
//! a user without rights. The network is this machine's.
//!
//! It needs root and mount namespaces; where there are none a scenario is skipped out loud.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::prefix::Prefix;

pub const USER: u32 = 65532;

pub struct Pod<'p> {
    prefix: &'p Prefix,
    program: PathBuf,
    user: u32,
    /// Whether the system's libraries are there, with `/dev` and `/proc`.
    is_furnished: bool,
    /// Outside, inside, and `rw` or `ro`.
    mounts: Vec<(PathBuf, String, &'static str)>,
}

impl<'p> Pod<'p> {
    /// With the program, its libraries, `/dev` and `/proc`; its roots and folders are below the prefix.
    pub fn new(prefix: &'p Prefix, program: &Path) -> Self {
        Pod { prefix, program: program.to_owned(), user: USER, is_furnished: true, mounts: Vec::new() }
    }

    /// A root with the program alone, started by root.
    pub fn bare(prefix: &'p Prefix, program: &Path) -> Self {
        Pod { prefix, program: program.to_owned(), user: 0, is_furnished: false, mounts: Vec::new() }
    }

    /// Read-only.
    #[must_use]
    pub fn with(mut self, outside: &Path, inside: &str) -> Self {
        self.mounts.push((outside.to_owned(), inside.to_owned(), "ro"));
        self
    }

    /// An empty folder that everyone may write to.
    #[must_use]
    pub fn with_room(mut self, inside: &str) -> Self {
        let outside = self.prefix.join(&format!("rooms{inside}"));
        fs::create_dir_all(&outside).expect("own directory");
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).expect("own directory");
        self.mounts.push((outside, inside.to_owned(), "rw"));
        self
    }

    pub fn room(prefix: &Prefix, inside: &str) -> PathBuf {
        prefix.join(&format!("rooms{inside}"))
    }

    /// Arguments to follow; it inherits no variable. `None` if the system gives no namespaces.
    pub fn command(&self) -> Option<Command> {
        let possible = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
        if !possible.is_ok_and(|status| status.success()) || !rustix::process::geteuid().is_root() {
            eprintln!("skipped: mount namespaces and root are needed");
            return None;
        }
        let root = self.prefix.join("root");
        fs::create_dir_all(&root).expect("own directory");
        let script = self.prefix.write("enter.sh", ENTER);
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh"]).arg(script).arg(root).arg(&self.program);
        command.arg(self.user.to_string()).arg(if self.is_furnished { "furnished" } else { "bare" });
        for (outside, inside, how) in &self.mounts {
            command.arg(outside).args([inside, *how]);
        }
        command.arg("--").env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").stdin(Stdio::null());
        Some(command)
    }
}

/// Root, program, user, contents; three words for each mount; `--` and the program's arguments.
const ENTER: &str = r#"set -e
root=$1 program=$2 user=$3 kind=$4
shift 4
mount -t tmpfs -o size=1m,mode=755 none "$root"
if [ "$kind" = furnished ]; then
    for folder in /usr/lib /usr/lib64 /lib /lib64; do
        if [ -h $folder ]; then
            ln -s "$(readlink $folder)" "$root$folder"
        elif [ -d $folder ]; then
            mkdir -p "$root$folder"
            mount --bind $folder "$root$folder"
        fi
    done
    for folder in /dev /proc; do
        mkdir "$root$folder"
        mount --rbind $folder "$root$folder"
    done
fi
touch "$root/millstream"
mount --bind "$program" "$root/millstream"
while [ "$1" != -- ]; do
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"
    shift 3
done
shift
mount -o remount,ro "$root"
cd /
exec chroot --userspec="$user:$user" --groups="$user" "$root" /millstream "$@"
"#;
