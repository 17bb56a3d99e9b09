//! `state`: the file in which the API's changes to a group outlast a restart.
//!
//! What it holds was spliced into the block before (`include/state`). Next: `millstream-upstream`'s `group/state_file`, which writes it.

use crate::declared::upstream::Upstream;
use crate::reading::Reading;
use crate::tree::Directive;
use std::path::PathBuf;

pub(super) fn read(upstream: &mut Upstream, directive: &Directive, reading: &mut Reading<'_>) {
    let word = &directive.args[0];
    let path = PathBuf::from(&word.text);
    if path.is_absolute() && path.file_name().is_some() {
        upstream.state = Some(path);
    } else {
        reading.error(word.span, "a state file needs an absolute path").help(
            "write state /var/lib/millstream/NAME.conf; the workers' user must be able to write to the directory",
        );
    }
}
