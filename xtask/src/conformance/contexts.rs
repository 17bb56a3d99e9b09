//! Whether every directive may stand where it may in nginx: `tests/conformance/contexts.tsv` has the facts, read from nginx's own
//! tables of commands.
//!
//! A directive that Millstream has and does not allow in one of these contexts is a breach, and so are one that it allows in another,
//! where nginx refuses it, and one that neither a feature nor the list of nginx's names knows. Blocks that nginx itself has not are no such others.

use millstream_conf::features;
use millstream_conf::nginx_names;

pub(super) const FACTS: &str = "contexts.tsv";

/// The block that is not nginx's.
const OWN: &str = "acme_issuer";

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
        println!(
            "{count} directives of nginx: each that is here may stand where it may there and nowhere else"
        );
        return Ok(());
    }
    Err(breaches.join("\n"))
}

fn breach(name: &str, contexts: &str) -> Option<String> {
    if nginx_names::module_of(name).is_none() {
        return Some(format!("{name}: conf/src/nginx_names.rs does not know it"));
    }
    let here: Vec<&str> =
        features::rows().filter(|row| row.name == name).flat_map(|row| row.contexts.names()).collect();
    if here.is_empty() {
        return None;
    }
    let there: Vec<&str> = contexts.split(", ").collect();
    let missing: Vec<&str> = there.iter().filter(|context| !here.contains(context)).copied().collect();
    let more: Vec<&str> =
        here.iter().filter(|context| !there.contains(context) && **context != OWN).copied().collect();
    let refused = |contexts: &[&str], what: &str| {
        (!contexts.is_empty()).then(|| format!("{name}: {what} {}", contexts.join(", ")))
    };
    let breaches: Vec<String> = refused(&missing, "not allowed, but in nginx, in")
        .into_iter()
        .chain(refused(&more, "allowed, but not in nginx, in"))
        .collect();
    (!breaches.is_empty()).then(|| breaches.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_context_that_is_missing_or_too_many_and_a_name_that_is_not_known_are_breaches() {
        let check = |lines: &str| check(&format!("# of nginx\ndirective\tcontexts\n{lines}"));
        assert_eq!(
            check("alias\tlocation\nresolver\thttp, server, location, upstream\nperl\tlocation\n"),
            Ok(())
        );
        let error = check("alias\tlocation, upstream\nno_such\thttp\n").expect_err("both are wrong");
        assert_eq!(error.lines().count(), 2, "{error}");
        let wider = check("gzip\thttp, server, location\n").expect_err("nginx's own row has it in if, too");
        assert_eq!(wider, "gzip: allowed, but not in nginx, in if in location");
        assert!(error.contains("alias: not allowed, but in nginx, in upstream"), "{error}");
    }
}
