//! `cargo xtask instructions`: instructions per iteration of the hot leaves, which repeat where times do not.
//!
//! The program of `millstream-benches` runs a leaf N times (`instructions NAME N`; without arguments it lists the names).
//! Valgrind counts it with two Ns; the difference per iteration has no start-up in it. `benches/baseline.json` holds
//! what was accepted: more than 5 % worse fails. `--accept` writes it anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::tree;

const BASELINE: &str = "benches/baseline.json";
/// Iterations of the two runs, whose difference is measured.
const COUNTS: (u64, u64) = (1_000, 3_000);
/// Allowed ratio to the baseline.
const TOLERANCE: f64 = 1.05;

type Counts = BTreeMap<String, f64>;

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let accept = arguments.iter().any(|argument| argument == "--accept");
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Err("valgrind is not installed: apt-get install valgrind".into());
    }
    let program = build()?;
    let names = output(Command::new(&program).arg("list"))?;
    let baseline = read_baseline();
    let (mut counts, mut worse) = (baseline.clone(), Vec::new());
    for name in names
        .split_whitespace()
        .filter(|name| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name))
    {
        let count = measure(&program, name)?;
        let before = baseline.get(name).copied();
        let change =
            before.map_or(String::new(), |before| format!("{:+.1} %", (count / before - 1.0) * 100.0));
        println!("{name:<32} {count:>10.1} instructions {change}");
        if before.is_some_and(|before| count > before * TOLERANCE) {
            worse.push(format!(
                "{name}: {count:.1} instructions, {:.1} were accepted",
                before.unwrap_or_default()
            ));
        }
        counts.insert(name.to_owned(), count);
    }
    if accept {
        let text = serde_json::to_string_pretty(&counts).map_err(|error| error.to_string())? + "\n";
        return fs::write(tree::root().join(BASELINE), text).map_err(|error| format!("{BASELINE}: {error}"));
    }
    if worse.is_empty() { Ok(()) } else { Err(worse.join("\n")) }
}

fn build() -> Result<std::path::PathBuf, String> {
    Ok(millstream_bench::build_to_measure(&["-p", "millstream-benches"])?.join("instructions"))
}

fn read_baseline() -> Counts {
    let text = fs::read_to_string(tree::root().join(BASELINE)).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let entries = value.as_object().into_iter().flatten();
    entries.filter_map(|(name, count)| Some((name.clone(), count.as_f64()?))).collect()
}

fn measure(program: &Path, name: &str) -> Result<f64, String> {
    let (few, many) = (instructions(program, name, COUNTS.0)?, instructions(program, name, COUNTS.1)?);
    Ok(many.saturating_sub(few) as f64 / (COUNTS.1 - COUNTS.0) as f64)
}

fn instructions(program: &Path, name: &str, count: u64) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([name, &count.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines()
        .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
        .ok_or_else(|| format!("valgrind counted nothing for {name}: {text}"))
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
