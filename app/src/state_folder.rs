//! Where what outlives a restart is kept where nobody says: in the directory that a service manager has for that.
//!
//! nginx's own place is below the prefix, which a service often may not write. Next: `assemble`, which settles it; `serve_url/domain`.

use millstream_conf::model::Configuration;
use std::env;
use std::path::PathBuf;

/// `None` if the service manager names several.
pub fn of_service() -> Option<PathBuf> {
    let path = env::var_os("STATE_DIRECTORY").map(PathBuf::from).filter(|path| path.is_absolute());
    path.filter(|path| !path.to_string_lossy().contains(':'))
}

/// Sets the `state_path` of every issuer without one.
pub fn settle(configuration: &mut Configuration) {
    let Some(folder) = of_service() else { return };
    for issuer in configuration.http.acme_issuers.iter_mut().filter(|issuer| issuer.has_default_state) {
        issuer.state_path = Some(folder.join(format!("acme_{}", issuer.name)));
    }
}
