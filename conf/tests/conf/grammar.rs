//! The cases of `cases/grammar`: a configuration, then the findings as a person sees them.
//!
//! A case is a file whose part before the line `#### expected` is the input and whose part after it is what is
//! printed. `UPDATE_CASES=1 cargo test -p millstream-conf grammar` writes what is printed now into the files:
//! read the difference before it is kept.

use std::path::{Path, PathBuf};

use millstream_conf::diagnostics::Diagnostics;
use millstream_conf::include::{self, ConfPrefix};
use millstream_conf::parser;
use millstream_conf::source::Sources;
use millstream_conf::template::{self, Scope};
use millstream_conf::tree::Directive;

const MARK: &str = "#### expected\n";

const NAMES: &[&str] = &[
    "events",
    "http",
    "server",
    "location",
    "listen",
    "root",
    "index",
    "server_name",
    "proxy_pass",
    "return",
    "worker_processes",
    "upstream",
];

fn findings(input: &str) -> String {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let prefix = ConfPrefix::of(Path::new("/nonexistent/nginx.conf"));
    let mut tree = include::parse_text("nginx.conf", input, &prefix, &mut sources, &mut diagnostics);
    parser::split_unterminated(&mut tree, &sources, &mut diagnostics, &|name| NAMES.contains(&name));
    templates(&tree, &mut diagnostics);
    diagnostics.sorted().into_iter().map(|finding| finding.render(&sources)).collect()
}

fn templates(tree: &[Directive], diagnostics: &mut Diagnostics) {
    for directive in tree {
        if matches!(&*directive.name.text, "return" | "log_format" | "add_header" | "proxy_cache_key") {
            for word in &directive.args {
                template::compile(word, &Scope::default(), diagnostics);
            }
        }
        templates(directive.block.as_deref().unwrap_or_default(), diagnostics);
    }
}

#[test]
fn every_case_prints_what_its_file_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/grammar");
    let entries = std::fs::read_dir(&folder).expect("the folder of cases");
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    cases.sort();
    assert!(cases.len() >= 10, "the cases are missing");
    let update = std::env::var_os("UPDATE_CASES").is_some();
    let mut wrong = Vec::new();
    for case in cases {
        let text = std::fs::read_to_string(&case).expect("a case is UTF-8");
        let (input, expected) = text.split_once(MARK).unwrap_or((&text, ""));
        let found = findings(input);
        if update {
            std::fs::write(&case, format!("{input}{MARK}{found}")).expect("the case can be written");
        } else if found != expected {
            wrong.push(format!("{}:\nexpected:\n{expected}\nfound:\n{found}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
