//! What of this machine stands between the copy and a Millstream that serves it: ports that others hold, and what the service of a package may not
//! read or write.
//!
//! Looked at and never changed. Modes are what is judged by: nobody is asked on behalf of a user that may not be there yet.
//! Before: `rewriting`; next: `report`, which tells it.

use super::origin::Origin;
use super::original::Likeness;
use super::places::{self, OwnPlaces};
use super::plan::{Entry, Plan};
use millstream_conf::load::Loaded;
use millstream_conf::model::{Configuration, ListenAddress, PeerAddress};
use millstream_conf::parts::{Base, PathUse};
use millstream_load::party;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const MOST_NAMED: usize = 10;
const READ: u32 = 0o4;
const WRITE: u32 = 0o2;
const ENTER: u32 = 0o1;

pub(super) fn look(
    configuration: &Configuration,
    loaded: &Loaded,
    origin: &Origin,
    plan: &Plan,
    (places, target): (&OwnPlaces, &Path),
) -> Vec<String> {
    let mut found = held_ports(configuration);
    if places.is_packaged {
        found.extend(unreadable(plan, target));
        found.extend(hidden(loaded, origin));
        found.extend(sockets(configuration));
    }
    found
}

fn held_ports(configuration: &Configuration) -> Vec<String> {
    let mut held: BTreeMap<String, BTreeSet<SocketAddr>> = BTreeMap::new();
    for listener in &configuration.http.listeners {
        let ListenAddress::Tcp(address) = listener.address else { continue };
        let holder = match party::listener(address) {
            // That one is to read the copy.
            Some(holder) if holder.name == "millstream" => continue,
            Some(holder) => holder.to_string(),
            None if party::is_taken(address) => "another program".to_owned(),
            None => continue,
        };
        held.entry(holder).or_default().insert(address);
    }
    let told = |(holder, addresses): (String, BTreeSet<SocketAddr>)| {
        let all: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        let how = if holder.starts_with("nginx") {
            ", for example with sudo systemctl disable --now nginx"
        } else {
            ""
        };
        let are = if all.len() == 1 { "is" } else { "are" };
        format!("{} {are} in use by {holder}: stop it first{how}", all.join(", "))
    };
    held.into_iter().map(told).collect()
}

/// Files that the service's user cannot read.
fn unreadable(plan: &Plan, target: &Path) -> Option<String> {
    // A copy has the modes of its file and of the folders below that of nginx.
    let is_shut = |at: &Path, like: &Likeness| {
        let folders = at.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        like.mode & READ == 0
            || folders.map(|folder| plan.folder.join(folder)).any(|folder| !may(&folder, ENTER))
    };
    let copied = plan.entries.iter().filter_map(|(at, entry)| match entry {
        Entry::File { like, .. } if is_shut(at, like) => Some(target.join(at)),
        _ => None,
    });
    let stay = plan
        .stay
        .iter()
        .filter(|file| !(may(file, READ) && file.ancestors().skip(1).all(|folder| may(folder, ENTER))));
    let shut: BTreeSet<PathBuf> = copied.chain(stay.cloned()).collect();
    (!shut.is_empty()).then(|| {
        format!(
            "the service has its own user, which cannot read {}: give it access (SupplementaryGroups= or \
             LoadCredential= in the unit)",
            named(shut.iter())
        )
    })
}

fn hidden(loaded: &Loaded, origin: &Origin) -> Option<String> {
    let served = loaded.parts.paths.iter().filter(|path| path.used == PathUse::Served);
    let paths: BTreeSet<PathBuf> = served
        .map(|path| match path.base {
            Base::Prefix => origin.prefix.join(&path.written),
            Base::MainFile => origin.folder.join(&path.written),
        })
        .filter(|path| places::is_hidden(path))
        .collect();
    (!paths.is_empty()).then(|| {
        format!("the unit hides {} from the service (ProtectHome=, PrivateTmp=)", named(paths.iter()))
    })
}

fn sockets(configuration: &Configuration) -> Vec<String> {
    let http = &configuration.http;
    let servers = http.upstreams.iter().flat_map(|upstream| &upstream.servers);
    let shut: BTreeSet<&PathBuf> = servers
        .filter_map(|server| match &server.address {
            PeerAddress::Unix(path) => Some(path),
            _ => None,
        })
        .filter(|path| path.exists() && !may(path, WRITE))
        .collect();
    let own: BTreeSet<&PathBuf> = http
        .listeners
        .iter()
        .filter_map(|listener| match &listener.address {
            ListenAddress::Unix(path) if !listener.owner_only => Some(path),
            _ => None,
        })
        .filter(|path| !path.starts_with("/run/millstream"))
        .collect();
    let mut found = Vec::new();
    if !shut.is_empty() {
        let group = "add the group of the sockets to the unit (SupplementaryGroups=)";
        found.push(format!("the service cannot connect to {}: {group}", named(shut.into_iter())));
    }
    if !own.is_empty() {
        found.push(format!(
            "the service can listen only on sockets in /run/millstream, not on {}",
            named(own.into_iter())
        ));
    }
    found
}

/// Whether others have the permission; true if it cannot be found out.
fn may(path: &Path, what: u32) -> bool {
    fs::metadata(path).map_or(true, |found| found.mode() & what != 0)
}

fn named<'p>(paths: impl ExactSizeIterator<Item = &'p PathBuf>) -> String {
    let more = paths.len().saturating_sub(MOST_NAMED);
    let shown: Vec<String> = paths.take(MOST_NAMED).map(|path| path.display().to_string()).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
