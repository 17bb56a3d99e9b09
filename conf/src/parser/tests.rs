//! What the parser makes of slips is in `conf/tests/cases`; here the shape of the tree, its bounds, and that
//! nothing breaks it.

use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> (Vec<Directive>, Vec<String>) {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add("nginx.conf".into(), text.as_bytes().to_vec());
    let tree = parse(file, &sources, &mut diagnostics);
    let findings = diagnostics.sorted().into_iter().map(|finding| {
        let at = sources.position(finding.span.expect("every grammatical error has a place"));
        format!("{}:{} {}", at.line, at.column, finding.message)
    });
    (tree, findings.collect())
}

fn shape(tree: &[Directive]) -> String {
    let one = |directive: &Directive| {
        let words: Vec<&str> =
            std::iter::once(&directive.name).chain(&directive.args).map(|word| word.text.as_str()).collect();
        let end = directive.block.as_ref().map_or(";".to_string(), |block| format!(" {{{}}}", shape(block)));
        words.join(" ") + &end
    };
    tree.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn directives_nest_and_know_their_spans() {
    let text = "user a;\nhttp {\n  server { listen 80; }\n}\n";
    let (tree, findings) = parsed(text);
    assert_eq!(findings, [""; 0]);
    assert_eq!(shape(&tree), "user a; http {server {listen 80;}}");
    let shown =
        |directive: &Directive| text[directive.span.start as usize..directive.span.end as usize].to_string();
    assert_eq!(shown(&tree[0]), "user a;");
    assert_eq!(shown(&tree[1]), "http {");
    let server = &tree[1].block.as_ref().expect("http has a block")[0];
    assert_eq!(shown(&server.block.as_ref().expect("server has a block")[0]), "listen 80;");
}

#[test]
fn a_file_with_even_braces_is_never_judged_by_its_indentation() {
    let (tree, findings) = parsed("    a {\nb {\n  c;\n        }\nd; }\n");
    assert_eq!((shape(&tree), findings.len()), ("a {b {c;} d;}".to_string(), 0));
}

#[test]
fn a_brace_that_is_missing_is_found_by_the_indentation_and_the_tree_is_mended() {
    let text = "http {\n  server {\n    location / {\n      a;\n    location /b {\n      c;\n    }\n  }\n}\n";
    let (tree, findings) = parsed(text);
    assert_eq!(shape(&tree), "http {server {location / {a;} location /b {c;}}}");
    assert_eq!(findings, ["3:16 the block \"location\" that opens here is not closed"]);
}

#[test]
fn a_brace_too_many_is_found_by_the_indentation() {
    let (tree, findings) = parsed("http {\n  server {\n    a;\n    }\n    b;\n  }\n}\n");
    assert_eq!(shape(&tree), "http {server {a; b;}}");
    assert_eq!(findings, ["4:5 unexpected \"}\""]);
}

#[test]
fn without_indentation_the_count_decides() {
    let (tree, findings) = parsed("http {\nserver {\na;\n");
    assert_eq!(shape(&tree), "http {server {a;}}");
    assert_eq!(findings.len(), 2);
    assert_eq!(parsed("a;\n}\nb;\n").1, ["2:1 unexpected \"}\""]);
}

#[test]
fn deep_nesting_is_an_error_and_not_a_deep_tree() {
    let (tree, findings) = parsed(&"a{".repeat(200_000));
    assert!(findings[0].contains("nested deeper than 64"), "{findings:?}");
    assert!(findings.len() <= MAX_ERRORS);
    let mut depth = 0;
    let mut level = &tree;
    while let Some(block) = level.first().and_then(|directive| directive.block.as_ref()) {
        depth += 1;
        level = block;
    }
    assert_eq!(depth, MAX_DEPTH);
}

#[test]
fn a_directive_that_swallowed_the_next_line_is_split() {
    let text =
        "worker_processes 1\nevents {\n}\nserver_name a\n  root\n  b;\nroot /srv\nindex a\nreturn 1;\n";
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add("nginx.conf".into(), text.as_bytes().to_vec());
    let mut tree = parse(file, &sources, &mut diagnostics);
    split_unterminated(&mut tree, &sources, &mut diagnostics, &|name| {
        ["events", "root", "index", "return"].contains(&name)
    });
    assert_eq!(
        shape(&tree),
        "worker_processes 1; events {} server_name a root b; root /srv; index a; return 1;"
    );
    let places = diagnostics.sorted().into_iter().map(|d| sources.locate(d.span.expect("it has a place")));
    assert_eq!(places.collect::<Vec<_>>(), ["nginx.conf:1:19", "nginx.conf:7:10", "nginx.conf:8:8"]);
}

proptest! {
    #[test]
    fn any_text_gives_a_tree_whose_spans_are_inside_the_file(text in "[ab\\\\{};# \n'\"$)]{0,120}|\\PC{0,80}") {
        let mut sources = Sources::default();
        let mut diagnostics = Diagnostics::default();
        let length = text.len() as u32;
        let file = sources.add("x".into(), text.into_bytes());
        let mut tree = parse(file, &sources, &mut diagnostics);
        split_unterminated(&mut tree, &sources, &mut diagnostics, &|name| name == "a");
        fn inside(tree: &[Directive], length: u32) -> bool {
            tree.iter().all(|directive| {
                directive.span.start < directive.span.end
                    && directive.span.end <= length
                    && directive.args.iter().all(|word| word.span.end <= directive.span.end)
                    && directive.block.as_ref().is_none_or(|block| inside(block, length))
            })
        }
        prop_assert!(inside(&tree, length));
        for finding in diagnostics.sorted() {
            prop_assert!(finding.span.is_some_and(|span| span.start <= span.end && span.end <= length));
            prop_assert!(!finding.render(&sources).is_empty());
        }
    }
}
