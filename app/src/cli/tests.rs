//! Command lines as data: nginx's letters alone, together and wrong.

use super::*;

fn command(line: &str) -> Result<Command, clap::Error> {
    read(std::iter::once("millstream").chain(line.split_whitespace()).map(OsString::from))
}

fn options_of(line: &str) -> Options {
    match command(line).expect("it is a command line") {
        Command::Run(options) | Command::Test(options, _) | Command::Signal(options, _) => options,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn letters_may_stand_alone_or_together() {
    let test = |line: &str| match command(line) {
        Ok(Command::Test(_, how)) => (how.dump, how.quiet, how.verbose),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(test("-t"), (false, false, false));
    assert_eq!(test("-T"), (true, false, false));
    assert_eq!(test("-tq"), (false, true, false));
    assert_eq!(test("-qt -c x.conf"), (false, true, false));
    assert_eq!(test("-t -v"), (false, false, true));
    assert!(matches!(command("-v"), Ok(Command::Version)));
    assert!(matches!(command("-V"), Ok(Command::Build)));
    assert!(matches!(command("--version"), Ok(Command::Version)));
    // Where the default configuration is not there, a line without arguments asks for help.
    assert!(matches!(command(""), Ok(Command::Run(_) | Command::Nothing(_))));
    assert!(matches!(command("-p /nowhere"), Ok(Command::Run(_))));
}

#[test]
fn each_signal_has_its_name_and_others_are_refused() {
    for (word, name) in [
        ("stop", SignalName::Stop),
        ("quit", SignalName::Quit),
        ("reopen", SignalName::Reopen),
        ("reload", SignalName::Reload),
    ] {
        let line = format!("-s {word} -c x.conf");
        assert!(matches!(command(&line), Ok(Command::Signal(_, found)) if found == name), "{word}");
    }
    for line in ["-s", "-s kill", "-s STOP", "-Z", "-c", "nonsense", "-t serve http://127.0.0.1:1"] {
        assert!(command(line).is_err(), "{line}");
    }
}

#[test]
fn files_and_directives_reach_the_options() {
    let options = options_of("-c /a/b.conf -p /prefix/ -e stderr --lenient");
    assert_eq!(options.main_file, PathBuf::from("/a/b.conf"));
    assert_eq!(options.prefix, PathBuf::from("/prefix/"));
    assert_eq!(options.error_log, Some(PathBuf::from("stderr")));
    assert!(options.lenient);
    let globals = read(["millstream", "-g", "daemon off; pid /x;"].map(OsString::from).into_iter());
    assert!(
        matches!(globals, Ok(Command::Run(options)) if options.globals.as_deref() == Some("daemon off; pid /x;"))
    );
}

#[test]
fn a_relative_file_hangs_on_the_prefix_unless_it_is_only_in_the_working_directory() {
    let prefix = tempfile::tempdir().expect("a directory");
    let line = |file: &str| options_of(&format!("-p {} -c {file}", prefix.path().display()));
    // Tests run in the package's directory, which has a Cargo.toml.
    assert!(line("Cargo.toml").main_file.is_absolute());
    assert_eq!(line("nowhere.conf").main_file, PathBuf::from("nowhere.conf"));
    std::fs::write(prefix.path().join("nginx.conf"), "").expect("written");
    assert_eq!(line("conf/nginx.conf").main_file, PathBuf::from("nginx.conf"), "the place of packages");
    assert_eq!(line("conf/other.conf").main_file, PathBuf::from("conf/other.conf"));
    std::fs::write(prefix.path().join("Cargo.toml"), "").expect("written");
    assert_eq!(line("Cargo.toml").main_file, PathBuf::from("Cargo.toml"));
}

#[test]
fn serve_takes_urls_and_flags() {
    let Ok(Command::ServeUrl(serve)) =
        command("serve http://a:1 unix:/b --listen 9000 --microcache 1s --workers 2")
    else {
        panic!("it is a command line")
    };
    assert_eq!(serve.front.urls, ["http://a:1", "unix:/b"]);
    assert_eq!((serve.front.listen.as_str(), serve.front.workers.as_str()), ("9000", "2"));
    assert_eq!(serve.caching.microcache.as_deref(), Some("1s"));
    assert!(matches!(command("serve --print-config"), Ok(Command::PrintConfig(_))));
    assert!(command("serve --memory").is_err());
}

#[test]
fn help_is_no_error_and_a_wrong_line_is() {
    assert!(!command("-h").expect_err("it only prints").use_stderr());
    assert!(command("-Z").expect_err("wrong").use_stderr());
}

#[test]
fn purging_and_explaining_have_files_of_their_own_and_know_what_is_asked() {
    let Ok(Command::Purge(options, purge)) =
        command("purge http://a/b http://a/c* --tag x --tag y --soft -c /a/b.conf -p /prefix/")
    else {
        panic!("it purges");
    };
    assert_eq!(options.main_file, PathBuf::from("/a/b.conf"));
    assert_eq!(options.prefix, PathBuf::from("/prefix/"));
    assert_eq!((purge.urls.len(), purge.tag.len(), purge.soft, purge.all), (2, 2, true, false));
    let Ok(Command::Explain(_, explain)) = command("explain http://a/b -H A:b -H C:d --json --api unix:/x")
    else {
        panic!("it explains");
    };
    assert_eq!((explain.header.len(), explain.json, explain.method.as_str()), (2, true, "GET"));
    assert_eq!(explain.reach.api.as_deref(), Some("unix:/x"));
    for line in ["explain", "explain a b", "purge --unknown", "-t purge http://a/"] {
        assert!(command(line).is_err(), "{line}");
    }
}

#[test]
fn top_names_a_dashboard_a_socket_or_neither() {
    let top = |line: &str| match command(line) {
        Ok(Command::Top(options, top)) => (options, top),
        other => panic!("{line}: {other:?}"),
    };
    let (options, given) = top("-c /a/b.conf top http://a:1 --once --token t");
    assert_eq!(options.main_file, PathBuf::from("/a/b.conf"));
    assert_eq!(
        (given.url.as_deref(), given.once, given.token.as_deref()),
        (Some("http://a:1"), true, Some("t"))
    );
    let (_, given) = top("top --control /x.sock");
    assert_eq!((given.url, given.control), (None, Some(PathBuf::from("/x.sock"))));
    for line in ["top a b", "top a --control /x.sock", "top --api unix:/x"] {
        assert!(command(line).is_err(), "{line}");
    }
}

#[test]
fn help_and_the_manual_tell_every_exit_status_of_what_measures() {
    let page = include_str!("../../../docs/measuring.md");
    let help = |line: &str| command(line).expect_err("it only prints").to_string().replace('\n', " ");
    let (bench, compare) = (help("bench --help"), help("bench compare --help"));
    let told = |help: &str, status: u8| {
        let statuses = help.split_once("Exit status: ").map_or("", |(_, statuses)| statuses);
        statuses.split([' ', ',']).any(|word| word == status.to_string())
    };
    for status in [0, 1, 2, 3, 4, 5, 6, 130] {
        assert!(page.contains(&format!("\n| {status} | ")), "{status} is not in the manual");
        assert!(told(&bench, status), "{status}: {bench}");
        assert!(told(&compare, status) || [2, 6, 130].contains(&status), "{status}: {compare}");
    }
}

#[test]
fn a_wrong_flag_is_told_without_advice_that_leads_nowhere() {
    let said = |line: &str| command(line).expect_err("wrong").to_string();
    let unknown = said("bench --wrong http://a/");
    assert!(unknown.starts_with("error: unexpected argument '--wrong' found\n"), "{unknown}");
    assert!(!unknown.contains("write "), "{unknown}");
    assert!(said("bench --conections 3 http://a/").contains("'--connections'"));
    let stage = said("bench --stages -1s:5 http://a/");
    assert!(stage.contains("write a time such as 200ms, 30s or 5m"), "{stage}");
    for line in ["ladder http://a/ -d 5ms", "capacity http://a/ -d 300ms"] {
        assert!(said(line).contains("write 450ms or more"), "{}", said(line));
    }
}

#[test]
fn every_argument_has_a_name_of_its_own() {
    Line::command().debug_assert();
}

#[test]
fn options_of_other_load_generators_are_explained() {
    for (line, words) in [
        ("bench -s x.lua http://127.0.0.1:1/", "scripts of wrk are not supported"),
        ("bench --latency http://127.0.0.1:1/", "every report contains the percentiles"),
        ("bench --script=x.lua http://127.0.0.1:1/", "scripts of wrk are not supported"),
        ("bench -X POST http://127.0.0.1:1/", "write -m METHOD"),
        ("bench -z 10s http://127.0.0.1:1/", "write -d TIME"),
    ] {
        let error = command(line).expect_err("it is no option of ours").to_string();
        assert!(error.contains(words), "{line}: {error}");
    }
    let unknown = command("bench --nonsense http://127.0.0.1:1/").expect_err("unknown").to_string();
    assert!(!unknown.contains("write "), "{unknown}");
    assert!(
        matches!(command("bench -R 100 http://127.0.0.1:1/"), Ok(Command::Bench(bench)) if bench.load.rate == Some(100.0))
    );
}
