//! Any bytes as what stands in a server and in a location: read as scripts, conditions and replacements are, to the last
//! instruction. Nothing may panic, and an `if` must lead on within its script.
//!
//! Beside it: `configuration`, for the words alone.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use millstream_conf::load_text;
use millstream_conf::model::Instruction;

fuzz_target!(|text: &str| {
    // Absolute includes would read this machine's files, and `/dev/stdin` would wait for ever.
    if text.contains("include") {
        return;
    }
    let text = format!("events {{}} http {{ server {{ {text}\nlocation /fuzzed {{ {text}\n}} }} }}");
    let loaded = load_text("input", &text, Path::new("/nonexistent"));
    let Some(configuration) = loaded.configuration else { return };
    for location in &configuration.http.locations {
        let script = &location.settings.rewrite.script;
        for (at, instruction) in script.iter().enumerate() {
            if let Instruction::If { otherwise, .. } = instruction {
                assert!((at + 1..=script.len()).contains(otherwise));
            }
        }
    }
});
