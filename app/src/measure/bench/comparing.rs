//! `millstream bench compare`: whether something changed, as text, JSON and exit status.
//!
//! Exit status: 0 no difference was found, 3 the second side is better, 4 it is worse, 5 it cannot be told, 1 a file is none of `bench`.

use crate::cli::Compare;
use crate::measure::end::End;
use crate::measure::output::Output;
use millstream_load::compare::{self, COMPARISON, Change};
use millstream_load::report::json;
use std::process::ExitCode;

pub fn compare(flags: &Compare) -> Result<ExitCode, End> {
    let (before, after) = match (flags.before.as_slice(), flags.after.as_slice()) {
        ([before, after], []) => (std::slice::from_ref(before), std::slice::from_ref(after)),
        (_, []) => return Err("specify the runs after the change with --with".to_owned().into()),
        sides => sides,
    };
    let mut output = Output::open(flags.json.as_deref(), None)?;
    let comparison = compare::compare(&compare::read(before)?, &compare::read(after)?, flags.by);
    output.put(&compare::text(&comparison, output.columns()));
    output.write(|| json::write_versioned(COMPARISON, &comparison), String::new)?;
    Ok(ExitCode::from(match comparison.verdict {
        Change::Same => 0,
        Change::Better => 3,
        Change::Worse => 4,
        Change::Unknown => 5,
    }))
}
