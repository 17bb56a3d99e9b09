//! The score that is kept in the tree, and how a new one stands beside it.

use super::run::Test;
use super::told_of;
use serde_json::{Map, Value, json};
use std::fmt;
use std::fs;
use std::path::Path;

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    passed: usize,
    all: usize,
}

#[derive(Debug)]
pub(super) struct Score {
    required: Count,
    optimal: Count,
    check: Count,
    fails: Vec<String>,
}

impl Score {
    pub(super) fn of(tests: &[Test]) -> Score {
        let count = |kind: &str| {
            let of_kind = || tests.iter().filter(|test| test.kind == kind);
            Count { passed: of_kind().filter(|test| test.passed()).count(), all: of_kind().count() }
        };
        let mut fails: Vec<String> =
            tests.iter().filter(|test| test.counts() && !test.passed()).map(|test| test.id.clone()).collect();
        fails.sort_unstable();
        Score { required: count("required"), optimal: count("optimal"), check: count("check"), fails }
    }

    fn as_json(&self) -> Value {
        let count = |count: Count| json!({ "passed": count.passed, "of": count.all });
        json!({ "required": count(self.required), "optimal": count(self.optimal), "fails": self.fails })
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Score { required, optimal, check, .. } = self;
        write!(
            f,
            "required {}/{}, optimal {}/{}, checks that say yes {}/{}",
            required.passed, required.all, optimal.passed, optimal.all, check.passed, check.all
        )
    }
}

/// What passed in the stored score must pass. `accept` stores the new score instead.
pub(super) fn compare(path: &Path, judge: &str, score: &Score, accept: bool) -> Result<(), String> {
    let mut kept = match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Map::new(),
        Err(error) => return Err(told_of(path, &error)),
    };
    if accept {
        kept.insert(judge.to_owned(), score.as_json());
        let text = format!("{:#}\n", Value::Object(kept));
        return fs::write(path, text).map_err(|error| told_of(path, &error));
    }
    let Some(before) = kept.get(judge) else {
        return Err(format!("{} has no score of {judge}; --accept writes this one", path.display()));
    };
    let known: Vec<&str> =
        before["fails"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let lost: Vec<&str> = score.fails.iter().map(String::as_str).filter(|id| !known.contains(id)).collect();
    let won: Vec<&str> =
        known.iter().copied().filter(|id| !score.fails.iter().any(|failed| failed == id)).collect();
    if !won.is_empty() {
        println!("now passing: {}; --accept keeps it", won.join(", "));
    }
    let all = before["required"]["of"].as_u64().unwrap_or(0) + before["optimal"]["of"].as_u64().unwrap_or(0);
    let found = (score.required.all + score.optimal.all) as u64;
    if !lost.is_empty() {
        return Err(format!("passed before and does not now: {}", lost.join(", ")));
    }
    if found < all {
        return Err(format!("there are {found} tests where there were {all}: is this the same judge?"));
    }
    Ok(())
}
