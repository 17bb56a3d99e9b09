//! Where runs are not of one kind, or not good enough to be compared: a sentence for each.

use super::RunFile;
use crate::report::quantity::seconds;
use crate::report::run::{doubts, setup};

/// Runs below this many seconds hardly see a moment that is not like the others.
const SHORT: f64 = 5.0;

/// Everything that whoever reads the comparison must know first, each thing once; the sides are not empty.
pub(super) fn warnings(a: &[RunFile], b: &[RunFile]) -> Vec<String> {
    let runs: Vec<&RunFile> = a.iter().chain(b).collect();
    let mut found: Vec<(String, Vec<(&str, String)>)> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let again = runs[..place].iter().find(|other| other.outcome == run.outcome);
        let again =
            again.map(|other| format!("it is {} too, and a run cannot be compared with itself", other.name));
        let again = again.map(|why| ("SAME RUN".to_owned(), why));
        for (what, why) in again.into_iter().chain(apart(runs[0], run)).chain(weak(run)) {
            match found.iter_mut().find(|(other, _)| *other == what) {
                Some((_, of)) => of.push((&run.name, why)),
                None => found.push((what, vec![(&run.name, why)])),
            }
        }
    }
    let told = |(what, of): (String, Vec<(&str, String)>)| {
        let ((name, why), number) = (&of[0], of.len());
        let is_one = of.iter().all(|(_, other)| other == why);
        let (such, first) = if is_one { ("", "") } else { (", such as ", *name) };
        match number {
            1 => format!("{what} in {name}: {why}"),
            _ => format!("{what} in {number} of {} runs{such}{first}: {why}", runs.len()),
        }
    };
    found.into_iter().map(told).chain(in_turn(a, b)).collect()
}

/// In what a run is not of the first one's kind.
fn apart<'a>(first: &'a RunFile, run: &'a RunFile) -> impl Iterator<Item = (String, String)> + use<'a> {
    let both = setup(&first.outcome).into_iter().zip(setup(&run.outcome));
    both.filter(|((_, one), (_, other))| one != other).map(|((what, one), (_, other))| {
        (format!("{what} differs"), format!("{other}, and {one} in {}", first.name))
    })
}

fn weak(RunFile { outcome, .. }: &RunFile) -> impl Iterator<Item = (String, String)> {
    let short = (outcome.seconds < SHORT)
        .then(|| ("SHORT", format!("{}; slow moments may be missing", seconds(outcome.seconds))));
    doubts(outcome).into_iter().chain(short).map(|(what, why)| (what.to_owned(), why))
}

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
