//! The exceptions to the size rule: `xtask/tidy-reasons.toml`, lines of `"path" = "reason"` or `"path::function" = "reason"`.

use std::collections::BTreeMap;
use std::fs;

use crate::tree;

/// What may be longer, and why.
pub(super) type Reasons = BTreeMap<String, String>;

const PATH: &str = "xtask/tidy-reasons.toml";

/// An exception without a reason of at least a few words is an error.
pub(super) fn read() -> Result<Reasons, String> {
    let text = fs::read_to_string(tree::root().join(PATH)).map_err(|error| format!("{PATH}: {error}"))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Reasons, String> {
    let mut reasons = Reasons::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let parts: Vec<&str> = line.split('"').collect();
        let [_, name, between, reason, _] = parts[..] else {
            return Err(format!("{PATH}:{}: expected \"path\" = \"reason\"", number + 1));
        };
        if between.trim() != "=" || reason.split_whitespace().count() < 4 {
            return Err(format!("{PATH}:{}: an exception wants its reason in a sentence", number + 1));
        }
        reasons.insert(name.to_owned(), reason.to_owned());
    }
    Ok(reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_without_a_sentence_is_refused() {
        assert!(
            parse("# why\n\"a.rs\" = \"a table of all directives\"\n")
                .is_ok_and(|reasons| reasons.contains_key("a.rs"))
        );
        assert!(parse("\"a.rs\" = \"long\"\n").is_err());
        assert!(parse("a.rs\n").is_err());
    }
}
