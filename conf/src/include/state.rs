//! `state` in an `upstream` block: the servers of its file are spliced in behind it, like those of an `include`.
//!
//! The file is written by the running server (`millstream-upstream`'s `group/state_file`), so it need not be there yet, and holds nothing
//! but `server` lines. Next: `features/upstream/state`.

use super::Splicer;
use crate::tree::Directive;
use std::path::Path;

impl Splicer<'_> {
    pub(super) fn restore(&mut self, block: &mut Vec<Directive>) {
        let state = block.iter().find(|directive| directive.name.text == "state");
        let Some((path, span)) = state.and_then(|state| Some((state.args.first()?, state.span))) else {
            return;
        };
        let (path, written) = (Path::new(&path.text).to_path_buf(), path.clone());
        if let Some(server) = block.iter().find(|directive| directive.name.text == "server") {
            let message =
                "both \"server\" and \"state\": the servers of this group are in its file".to_owned();
            let help = format!("move the line to {}", path.display());
            self.error(server.span, message, Some(help));
            return;
        }
        // A relative path is refused by whoever reads the directive.
        if !path.is_absolute() || !path.exists() {
            return;
        }
        let mut kept = Vec::new();
        self.file(path, &written.text, span, &mut kept);
        for directive in kept {
            if directive.name.text == "server" {
                block.push(directive);
                continue;
            }
            let message =
                format!("\"{}\" in a state file, which may contain only servers", directive.name.text);
            self.error(directive.span, message, Some("remove the line".to_owned()));
        }
    }
}
