//! Folders that a configuration names, made by root for who will serve, as nginx's master makes them.
//!
//! Whether they can be used is found out by who serves. Before: `net`'s `guarded_path`, which makes and gives.

use crate::state_folder;
use millstream_acme::state::StateDirectory;
use millstream_conf::model::{Configuration, Handler, TempPath};
use millstream_net::guarded_path::{self, Owner};
use std::path::Path;

/// Creates what is missing, and gives what is root's to `owner`.
pub fn prepare(configuration: &mut Configuration, owner: Owner) {
    state_folder::settle(configuration);
    let http = &configuration.http;
    // What cannot be made is told by who cannot use it.
    let make = |path: &Path, deep: bool| _ = guarded_path::make_folder(path, deep, Some(owner));
    for location in &http.locations {
        let own = &location.settings;
        let passes = match &own.content {
            Handler::Pass(proxy) => Some(&proxy.exchange.temp_path),
            _ => None,
        };
        let written = |place: &&TempPath| place.written.is_some();
        let places = std::iter::once(&own.client_body.temp_path).chain(passes);
        places.filter(written).for_each(|place| make(&place.path, false));
    }
    http.cache_zones.iter().filter_map(|zone| zone.path.as_deref()).for_each(|path| make(path, true));
    if http.servers.iter().all(|server| server.acme.is_none()) {
        return;
    }
    for path in http.acme_issuers.iter().filter_map(|issuer| issuer.state_path.as_deref()) {
        make(path, true);
        for file in StateDirectory::files(path) {
            _ = guarded_path::give(&file, Some(owner));
        }
    }
}
