//! One run of `millstream bench`, and its report read back.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The result as in `docs/bench.schema.json`, and the text for people.
pub(crate) struct Told {
    pub(crate) report: Value,
    pub(crate) text: String,
}

/// Loads a loopback port.
pub(crate) fn bench(millstream: &Path, flags: &[&str], port: u16) -> Result<Told, String> {
    let mut command = Command::new(millstream);
    command.args(["bench", "-q", "--json", "-"]).args(flags).arg(format!("http://127.0.0.1:{port}/"));
    let output = command.output().map_err(|error| format!("{}: {error}", millstream.display()))?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    match serde_json::from_slice(&output.stdout) {
        Ok(report) => Ok(Told { report, text }),
        Err(error) => Err(format!("{command:?}: {error}\n{text}")),
    }
}

impl Told {
    /// In milliseconds.
    pub(crate) fn latency(&self, percentile: f64) -> Option<f64> {
        let name = format!("p{}_us", percentile.to_string().replace('.', "_"));
        Some(self.report["latency"][name].as_f64()? / 1000.0)
    }
}
