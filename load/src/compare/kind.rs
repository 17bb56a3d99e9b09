//! Where runs are not of one kind, or not good enough to be compared: a sentence for each.

use super::RunFile;
use crate::report::quantity::seconds;
use crate::report::run::{doubts, setup};

/// Runs below this many seconds hardly see a moment that is not like the others.
const SHORT: f64 = 5.0;

/// Everything that whoever reads the comparison must know first; the sides are not empty.
pub(super) fn warnings(a: &[RunFile], b: &[RunFile]) -> Vec<String> {
    let mut warnings: Vec<String> =
        a.iter().chain(b).flat_map(|run| apart(&a[0], run).chain(weak(run))).collect();
    warnings.extend(in_turn(a, b));
    warnings
}

/// In what a run is not of the first one's kind.
fn apart<'a>(first: &'a RunFile, run: &'a RunFile) -> impl Iterator<Item = String> + use<'a> {
    let both = setup(&first.outcome).into_iter().zip(setup(&run.outcome));
    both.filter(|((_, one), (_, other))| one != other).map(|((what, one), (_, other))| {
        format!("{what} differs: {one} in {}, {other} in {}", first.name, run.name)
    })
}

/// What makes a run worth little.
fn weak(RunFile { name, outcome }: &RunFile) -> impl Iterator<Item = String> {
    let short = (outcome.seconds < SHORT)
        .then(|| ("SHORT", format!("{}; slow moments may be missing", seconds(outcome.seconds))));
    doubts(outcome).into_iter().chain(short).map(move |(what, why)| format!("{name}: {what}: {why}"))
}

/// Whether what changed on the machine meanwhile would look like a difference.
fn in_turn(a: &[RunFile], b: &[RunFile]) -> Option<String> {
    let began = |run: &RunFile| run.outcome.began_unix_milliseconds;
    let all_before =
        |one: &[RunFile], other: &[RunFile]| one.iter().map(began).max() < other.iter().map(began).min();
    ((all_before(a, b) || all_before(b, a)) && a.len() + b.len() > 2).then(|| {
        "all runs of one side came before all of the other: what changed on the machine meanwhile looks like a difference. Run them in \
         turns"
            .to_owned()
    })
}
