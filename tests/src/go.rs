//! Programs in Go that tests need: modules below `tests/` pin them, Go builds them, from the module proxy the first time.
//!
//! Where there is no Go, or it cannot have the modules, a scenario says that it is skipped: not every machine that tests has one.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::{made, target_directory, workspace};

/// Builds packages of `tests/MODULE` into the returned folder; Go itself caches builds. Fails without Go or
/// the modules.
pub fn build(module: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let folder = target_directory().join(module);
    let _alone = made::alone(&folder);
    let go = |arguments: &[&str]| {
        let mut go = Command::new("go");
        go.args(arguments).current_dir(workspace().join("tests").join(module)).stdin(Stdio::null()).output()
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    match go(&["mod", "download"]) {
        Err(error) => {
            return Err(format!("no Go here ({error}): its packages are in tests/{module}/go.mod"));
        }
        Ok(had) if !had.status.success() => {
            return Err(format!("Go cannot have the modules of tests/{module}: {}", said(&had)));
        }
        Ok(_) => {}
    }
    let place = format!("{}/", folder.display());
    let built = go(&[&["build", "-o", &place][..], packages].concat()).expect("it ran a moment ago");
    assert!(built.status.success(), "tests/{module}: {}", said(&built));
    Ok(folder)
}
