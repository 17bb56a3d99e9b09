//! Includes against real files in a temporary directory.

use super::*;

struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let files_here = Files(tempfile::tempdir().expect("a temporary directory"));
        for (name, text) in files {
            let path = files_here.path(name);
            std::fs::create_dir_all(path.parent().expect("it is below the directory")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        }
        files_here
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Names of the directives, and `file:line:col message | help` with the directory cut off.
    fn read(&self) -> (String, Vec<String>, Sources) {
        let main = self.path("nginx.conf");
        let mut sources = Sources::default();
        let mut diagnostics = Diagnostics::default();
        let tree = read(&main, &ConfPrefix::of(&main), &mut sources, &mut diagnostics).unwrap_or_default();
        let findings = diagnostics.sorted().into_iter().map(|finding| {
            let place = finding.span.map_or("-".to_string(), |span| sources.locate(span));
            let text = format!("{place} {} | {}", finding.message, finding.help.as_deref().unwrap_or("-"));
            text.replace(&format!("{}/", self.0.path().display()), "")
        });
        let findings = findings.collect();
        (names(&tree), findings, sources)
    }
}

fn names(tree: &[Directive]) -> String {
    let one = |directive: &Directive| match &directive.block {
        Some(block) => format!("{} {{{}}}", directive.name.text, names(block)),
        None => directive.name.text.clone(),
    };
    tree.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn includes_are_spliced_in_place_at_any_level_and_relative_to_the_main_file() {
    let files = Files::new(&[
        ("nginx.conf", "a; include one; b { include deep/two; c; }"),
        ("one", "one1; one2;"),
        ("deep/two", "two { include deep/three; }"),
        ("deep/three", "three;"),
    ]);
    let (tree, findings, _) = files.read();
    assert_eq!((&*tree, findings), ("a one1 one2 b {two {three} c}", vec![]));
}

#[test]
fn a_pattern_includes_in_byte_order_without_dot_files_and_may_match_nothing() {
    let files = Files::new(&[
        (
            "nginx.conf",
            "include conf.d/*.conf; include none/*.conf; include conf.d/[^b]?; include conf.d/**x;",
        ),
        ("conf.d/b.conf", "b;"),
        ("conf.d/a.conf", "a;"),
        ("conf.d/B.conf", "upper;"),
        ("conf.d/.hidden.conf", "hidden;"),
        ("conf.d/sub/c.conf", "sub;"),
        ("conf.d/c1", "c1;"),
        ("conf.d/b1", "b1;"),
        ("conf.d/yx", "yx;"),
    ]);
    let (tree, findings, _) = files.read();
    assert_eq!((&*tree, findings), ("upper a b c1 yx yx", vec![]));
}

#[test]
fn a_directory_whose_name_looks_like_a_pattern_is_taken_literally() {
    let files = Files::new(&[("s[1]/x.conf", "x;"), ("s1/x.conf", "wrong;")]);
    let prefix = ConfPrefix::new(files.path("s[1]"));
    let matches = |text: &str| pattern::matches(&prefix, text).expect("there is no opener");
    assert_eq!(matches("*.conf"), [files.path("s[1]/x.conf")]);
    assert_eq!(matches("\\x*"), [files.path("s[1]/x.conf")]);
    assert_eq!(matches("[x"), Vec::<PathBuf>::new());
}

#[test]
fn a_pattern_may_stand_for_directories_on_the_way() {
    let files = Files::new(&[
        ("a/one.conf", ""),
        ("a/two", ""),
        ("b/one.conf", ""),
        (".c/one.conf", ""),
        ("file", ""),
    ]);
    std::os::unix::fs::symlink("a", files.path("link")).expect("a link");
    std::os::unix::fs::symlink("nowhere", files.path("dangling")).expect("a link");
    let prefix = ConfPrefix::new(files.path(""));
    for (text, wanted) in [
        ("*/*.conf", &["a/one.conf", "b/one.conf", "link/one.conf"][..]),
        ("*/one.conf", &["a/one.conf", "b/one.conf", "link/one.conf"]),
        ("./[a]/../a//*", &["./a/../a/one.conf", "./a/../a/two"]),
        (".c/*", &[".c/one.conf"]),
        (".*/*", &[".c/one.conf"]),
        ("*/none", &[]),
        ("none/*", &[]),
        ("[b-a]*", &[]),
        ("f*/", &[]),
        ("[!f]*/", &["a/.", "b/.", "link/."]),
        ("d*", &["dangling"]),
    ] {
        let found = pattern::matches(&prefix, text).expect("there is no opener");
        let root = format!("{}/", files.path("").display()).replace("//", "/");
        let found: Vec<_> = found.iter().filter_map(|path| path.to_str()?.strip_prefix(&root)).collect();
        assert_eq!(found, wanted, "{text}");
    }
}

#[test]
fn a_missing_file_is_an_error_at_the_name_and_the_rest_is_read() {
    let files = Files::new(&[
        ("nginx.conf", "a;\nb {\n  include mine.types;\n  include nowhere/x;\n}\ninclude;\ninclude .;\nc;"),
        ("mime.types", "types {}"),
    ]);
    let (tree, findings, _) = files.read();
    assert_eq!(tree, "a b {} c");
    let directory = files.0.path().display();
    assert_eq!(
        findings,
        [
            "nginx.conf:3:11 open() \"mine.types\" failed (2: No such file or directory) | did you mean \"mime.types\"?".to_string(),
            format!("nginx.conf:4:11 open() \"nowhere/x\" failed (2: No such file or directory) | relative names are resolved in \"{directory}\""),
            "nginx.conf:6:1 invalid number of arguments in \"include\" directive | write one file name or pattern: include FILE;".to_string(),
            "nginx.conf:7:9 open() \".\" failed (21: Is a directory) | -".to_string(),
        ]
    );
}

#[test]
fn a_main_file_that_cannot_be_read_is_the_one_finding() {
    let (tree, findings, _) = Files::new(&[]).read();
    assert_eq!(tree, "");
    assert_eq!(findings, ["- open() \"nginx.conf\" failed (2: No such file or directory) | -"]);
}

#[test]
fn a_circle_is_an_error_where_it_closes() {
    let files = Files::new(&[("nginx.conf", "a; include b;"), ("b", "b;\ninclude nginx.conf;\ninclude b;")]);
    let (tree, findings, _) = files.read();
    assert_eq!(tree, "a b");
    assert_eq!(findings.len(), 2);
    assert!(findings[0].starts_with("b:2:9 \"nginx.conf\" is included recursively"), "{findings:?}");
}

#[test]
fn a_long_chain_of_files_is_an_error() {
    let files: Vec<(String, String)> =
        (0..100).map(|i| (format!("f{i}"), format!("d{i}; include f{};", i + 1))).collect();
    let mut files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    files.push(("nginx.conf", "include f0;"));
    let (tree, findings, _) = Files::new(&files).read();
    assert_eq!(findings, ["f62:1:14 files are included deeper than 64 | -"]);
    assert!(tree.ends_with("d62"));
}

#[test]
fn files_that_multiply_are_bounded_in_bytes() {
    let many = "include b;".repeat(1000);
    let large = format!("include c;\n{}", "#".repeat(1 << 20)).repeat(2);
    let files = Files::new(&[("nginx.conf", &many), ("b", &large), ("c", "c;")]);
    let (_, findings, sources) = files.read();
    assert!(findings[0].contains("greater than 67108864 bytes"), "{findings:?}");
    assert_eq!(sources.files().len(), 3);
}

#[test]
fn a_file_that_is_included_twice_is_read_and_dumped_once_and_reports_once() {
    let files = Files::new(&[("nginx.conf", "a { include p; } b { include p; }"), ("p", "x; include none;")]);
    let (tree, findings, sources) = files.read();
    assert_eq!((&*tree, findings.len()), ("a {x} b {x}", 1));
    let mut dump = Vec::new();
    crate::dump::write(&sources, &mut dump).expect("a vector takes every write");
    let dump =
        String::from_utf8(dump).expect("it is text").replace(&files.0.path().display().to_string(), "");
    assert_eq!(
        dump,
        "# configuration file /nginx.conf:\na { include p; } b { include p; }\n# configuration file /p:\nx; include none;\n"
    );
}

#[test]
fn text_from_no_file_is_spliced_and_named() {
    let files = Files::new(&[("one", "one;")]);
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let prefix = ConfPrefix::new(files.0.path());
    let tree =
        parse_text("command line", "daemon off; include one; user", &prefix, &mut sources, &mut diagnostics);
    assert_eq!(names(&tree), "daemon one user");
    let shown = diagnostics.sorted()[0].render(&sources);
    assert!(
        shown.starts_with("millstream: [emerg] command line:1:30: directive \"user\" is not terminated"),
        "{shown}"
    );
}

#[test]
fn a_state_file_brings_servers_alone_into_its_group_and_may_be_missing() {
    let files = Files::new(&[("kept", "server a; keepalive 4;\nserver b;"), ("nginx.conf", "")]);
    let check = |block: &str, expected: &str, findings: &[&str]| {
        let block = block.replace("KEPT", files.path("kept").to_str().expect("a name"));
        std::fs::write(files.path("nginx.conf"), block).expect("a file");
        let (tree, found, _) = files.read();
        assert_eq!(
            (&*tree, found.iter().map(String::as_str).collect::<Vec<_>>()),
            (expected, findings.to_vec())
        );
    };
    let other = "kept:1:11 \"keepalive\" in a state file, which may contain only servers | remove the line";
    check("upstream u { state KEPT; }", "upstream {state server server}", &[other]);
    check("upstream u { state /none/kept; }", "upstream {state}", &[]);
    check("map a b { state KEPT; }", "map {state}", &[]);
    let beside = "nginx.conf:1:14 both \"server\" and \"state\": the servers of this group are in its file | move the line to kept";
    check("upstream u { server c; state KEPT; }", "upstream {server state}", &[beside]);
}
