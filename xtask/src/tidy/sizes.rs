//! A file over 450 lines or a function over 70 wants a reason (tests do not).

use super::reasons::Reasons;
use crate::source_text::{code_only, functions, without_tests};
use crate::tree::File;

const FILE_LINES: usize = 450;
const FUNCTION_LINES: usize = 70;

pub(super) fn check(files: &[File], reasons: &Reasons) -> Vec<String> {
    let mut unused: Vec<&String> = reasons.keys().collect();
    let mut breaches = Vec::new();
    let mut too_long = |name: String, breach: String| {
        let before = unused.len();
        unused.retain(|reason| **reason != name);
        if unused.len() == before && !reasons.contains_key(&name) {
            breaches.push(breach);
        }
    };
    for file in files.iter().filter(|file| file.path.ends_with(".rs") && !file.is_test()) {
        let code = code_only(&file.text);
        let code = without_tests(&code);
        let lines = code.lines().count();
        if lines > FILE_LINES {
            too_long(file.path.clone(), format!("{}: {lines} lines; is it still one noun?", file.path));
        }
        for function in functions(code).into_iter().filter(|function| function.length > FUNCTION_LINES) {
            too_long(
                format!("{}::{}", file.path, function.name),
                format!("{}:{}: `{}` has {} lines", file.path, function.line, function.name, function.length),
            );
        }
    }
    breaches.extend(
        unused
            .into_iter()
            .map(|name| format!("xtask/tidy-reasons.toml: {name} needs no exception (any more)")),
    );
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_function_wants_a_reason_and_a_reason_wants_a_long_function() {
        let text = format!("//! x\nfn long() {{\n{}}}\n", "    step();\n".repeat(80));
        let files = [File { path: "net/src/a.rs".into(), text }];
        assert_eq!(check(&files, &Reasons::new()).len(), 1);
        let reason = |name: &str| Reasons::from([(name.to_owned(), "because it is one table".to_owned())]);
        assert!(check(&files, &reason("net/src/a.rs::long")).is_empty());
        assert_eq!(check(&files, &reason("net/src/a.rs::short")).len(), 2);
    }
}
