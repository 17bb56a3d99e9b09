//! Whether every directive may stand where it may in nginx: `tests/conformance/contexts.tsv` has the facts, read from nginx's own
//! tables of commands.
//!
//! A directive that Millstream has and does not allow in one of these contexts is a breach, and so is one that neither a feature nor
//! the list of nginx's names knows. A context of ours that nginx has not is none: it is an extension.

use millstream_conf::features;
use millstream_conf::nginx_names;

/// The file of the facts, in `tests/conformance`.
pub(super) const FACTS: &str = "contexts.tsv";

/// Compares the facts with the table of directives.
pub(super) fn check(facts: &str) -> Result<(), String> {
    let lines = facts.lines().filter(|line| !line.starts_with('#')).skip(1);
    let (mut count, mut breaches) = (0, Vec::new());
    for line in lines {
        let (name, contexts) =
            line.split_once('\t').ok_or_else(|| format!("{FACTS}: not two columns: {line}"))?;
        count += 1;
        breaches.extend(breach(name, contexts));
    }
    if breaches.is_empty() {
        println!("{count} directives of nginx: each that is here may stand wherever it may there");
        return Ok(());
    }
    Err(breaches.join("\n"))
}

/// What is wrong with one directive.
fn breach(name: &str, contexts: &str) -> Option<String> {
    if nginx_names::module_of(name).is_none() {
        return Some(format!("{name}: conf/src/nginx_names.rs does not know it"));
    }
    let here: Vec<&str> =
        features::rows().filter(|row| row.name == name).flat_map(|row| row.contexts.names()).collect();
    let missing: Vec<&str> = contexts.split(", ").filter(|context| !here.contains(context)).collect();
    (!here.is_empty() && !missing.is_empty())
        .then(|| format!("{name}: not allowed in {}, where nginx has it", missing.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_context_that_is_missing_and_a_name_that_is_not_known_are_breaches() {
        let check = |lines: &str| check(&format!("# of nginx\ndirective\tcontexts\n{lines}"));
        assert_eq!(check("limit_rate\thttp, if in location\nperl\tlocation\n"), Ok(()));
        let error = check("limit_rate\thttp, upstream\nno_such\thttp\n").expect_err("both are wrong");
        assert_eq!(error.lines().count(), 2, "{error}");
        assert!(error.contains("limit_rate: not allowed in upstream"), "{error}");
    }
}
