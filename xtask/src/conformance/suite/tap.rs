//! What a file of the suite prints: assertions, one a line, in the Test Anything Protocol.

/// The two assertions that the suite adds to every file. They do not count, as a file that never starts
/// passes them, but they decide whether a file passes.
const ADDED: [&str; 2] = ["no alerts", "no sanitizer errors"];

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tap {
    /// Assertions that hold, neither skipped nor expected to fail.
    pub(super) held: usize,
    /// The first that does not hold.
    pub(super) broken: Option<String>,
    pub(super) skipped: Option<String>,
    planned: usize,
    seen: usize,
}

impl Tap {
    pub(super) fn read(text: &str) -> Tap {
        text.lines().fold(Tap::default(), Tap::line)
    }

    /// Whether all planned assertions were seen and none is broken.
    pub(super) fn is_whole(&self) -> bool {
        self.skipped.is_none() && self.broken.is_none() && self.planned > 0 && self.seen == self.planned
    }

    fn line(mut self, line: &str) -> Tap {
        if let Some(plan) = line.strip_prefix("1..") {
            let (number, remark) = plan.split_once(' ').unwrap_or((plan, ""));
            self.planned = number.parse().unwrap_or(0);
            self.skipped = (self.planned == 0).then(|| remark.trim_start_matches("# SKIP").trim().to_owned());
            return self;
        }
        let (holds, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok ")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return self,
        };
        self.seen += 1;
        let (number, name) = rest.split_once(" - ").unwrap_or((rest, ""));
        let excused = ["# TODO", "# todo", "# SKIP", "# skip"].iter().any(|remark| rest.contains(remark));
        if excused {
            return self;
        }
        if !holds {
            self.broken.get_or_insert_with(|| format!("{number} - {name}"));
        } else if !ADDED.contains(&name) {
            self.held += 1;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_that_are_skipped_expected_to_fail_or_added_to_every_file_do_not_count() {
        let text = "1..6\nok 1 - first\nok 2 - later # TODO not yet\nok 3 # skip no IPv6\nnot ok 4 - old # TODO\n\
                    ok 5 - no alerts\nok 6 - no sanitizer errors\n";
        let tap = Tap::read(text);
        assert_eq!((tap.held, tap.is_whole()), (1, true));
    }

    #[test]
    fn a_file_that_ends_early_or_is_skipped_is_not_whole() {
        assert!(!Tap::read("1..3\nok 1 - first\nok 2 - second\n").is_whole());
        let skipped = Tap::read("1..0 # SKIP no http_v2 available\n");
        assert_eq!((skipped.skipped.as_deref(), skipped.is_whole()), (Some("no http_v2 available"), false));
    }

    #[test]
    fn the_first_assertion_that_does_not_hold_is_told() {
        let tap = Tap::read("1..3\nok 1 - one\nnot ok 2 - two\nnot ok 3 - three\n");
        assert_eq!((tap.held, tap.broken.as_deref()), (1, Some("2 - two")));
    }
}
