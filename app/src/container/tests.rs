//! Templates as data, and folders of them.

use super::template::fill;
use super::*;

fn environment(words: &[&str]) -> Environment {
    let pairs = words.iter().map(|word| word.split_once('=').expect("a name and a value"));
    Environment::of(pairs.map(|(name, value)| (name.into(), value.into())))
}

#[test]
fn only_variables_that_are_set_are_put_in() {
    let environment = environment(&["HOST=api", "PORT=8000", "EMPTY=", "_a1=x"]);
    let admitted = environment.admitted().expect("no filter");
    for (template, expected) in [
        ("", ""),
        ("proxy_pass http://$HOST:${PORT};", "proxy_pass http://api:8000;"),
        ("$host $request_uri ${scheme}", "$host $request_uri ${scheme}"),
        ("$HOSTS ${HOSTS} $HOST_ $HOST-", "$HOSTS ${HOSTS} $HOST_ api-"),
        ("[$EMPTY]", "[]"),
        ("$_a1$_a1", "xx"),
        ("$$HOST $${HOST}", "$api $api"),
        // What is no reference stays: no default values, as envsubst has none.
        ("${HOST ${HOST:-x} $ ${} $1 ${1} $", "${HOST ${HOST:-x} $ ${} $1 ${1} $"),
        ("location ~ ^/(\\d+)$ { }", "location ~ ^/(\\d+)$ { }"),
    ] {
        let filled = fill(template.as_bytes(), |name| admitted.get(name).copied()).expect("short");
        assert_eq!(String::from_utf8_lossy(&filled.text), expected, "{template}");
    }
}

#[test]
fn bytes_that_are_no_text_pass() {
    let filled = fill(b"\xff$A\xfe", |_| Some(b"\xfd")).expect("short");
    assert_eq!(filled.text, b"\xff\xfd\xfe");
}

#[test]
fn a_name_that_is_not_set_is_told_with_its_place() {
    let filled = fill(b"a\n  ${API_HOST} $host", |_| None).expect("short");
    let told: Vec<String> = filled.lacking.iter().map(ToString::to_string).collect();
    assert!(told.len() == 1 && told[0].starts_with("2:3 API_HOST is not set"), "{told:?}");
}

#[test]
fn values_cannot_make_a_template_grow_without_a_bound() {
    let (template, value) = (b"\n$A".repeat(100), vec![b'x'; 100_000]);
    let error = fill(&template, |_| Some(&value)).expect_err("ten million bytes");
    assert!(error.to_string().starts_with("43 the result of"), "{error}");
}

#[test]
fn a_filter_says_which_names_are_put_in() {
    let names = |words: &[&str]| {
        let environment = environment(words);
        environment.admitted().map(|admitted| admitted.keys().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(names(&["API_A=1", "B=2", "NGINX_ENVSUBST_FILTER=^API_"]), Ok(vec!["API_A".to_owned()]));
    let error = names(&["NGINX_ENVSUBST_FILTER=("]).expect_err("no expression");
    assert!(error.starts_with("NGINX_ENVSUBST_FILTER: "), "{error}");
}

fn folders(words: &[&str]) -> (tempfile::TempDir, Environment) {
    let root = tempfile::tempdir().expect("a folder");
    let (from, into) = (root.path().join("templates"), root.path().join("made"));
    fs::create_dir(&from).expect("own folder");
    let from = format!("{}={}", TEMPLATES.0, from.display());
    let into = format!("{}={}", OUTPUT.0, into.display());
    let words: Vec<&str> = words.iter().copied().chain([&*from, &*into]).collect();
    (root, environment(&words))
}

#[test]
fn every_template_is_made_where_it_stands_and_what_a_mounted_folder_has_twice_once() {
    let (root, environment) = folders(&["NAME=shop"]);
    let from = root.path().join("templates");
    for folder in ["..data", "sites"] {
        fs::create_dir(from.join(folder)).expect("own folder");
    }
    for name in
        ["..data/a.conf.template", "sites/b.conf.template", "readme", ".template", "t.stream-template"]
    {
        fs::write(from.join(name), "server_name $NAME;").expect("own folder");
    }
    std::os::unix::fs::symlink("..data/a.conf.template", from.join("a.conf.template")).expect("own folder");
    let told = render(&environment).expect("all is well");
    let made = |name: &str| fs::read_to_string(root.path().join("made").join(name)).ok();
    assert_eq!(made("a.conf").as_deref(), Some("server_name shop;"));
    assert_eq!(made("sites/b.conf").as_deref(), Some("server_name shop;"));
    assert_eq!(fs::read_dir(root.path().join("made")).expect("made").count(), 2);
    assert!(told.len() == 3 && told.iter().filter(|line| line.contains("stream")).count() == 1, "{told:?}");
}

#[test]
fn without_templates_nothing_is_made_and_what_cannot_be_written_is_an_error() {
    let (root, environment) = folders(&[]);
    assert_eq!(render(&environment), Ok(Vec::new()));
    assert!(!root.path().join("made").exists());
    fs::write(root.path().join("templates/a.conf.template"), "").expect("own folder");
    fs::write(root.path().join("made"), "a file in the way").expect("own folder");
    let error = render(&environment).expect_err("no folder");
    assert!(error.contains("made/a.conf: ") && error.contains("NGINX_ENVSUBST_OUTPUT_DIR"), "{error}");
}

#[test]
fn links_in_a_circle_and_templates_without_an_end_are_errors() {
    let (root, environment) = folders(&[]);
    let circle = root.path().join("templates/circle");
    std::os::unix::fs::symlink("../templates", &circle).expect("own folder");
    assert!(render(&environment).expect_err("a circle").contains("nested folders"));
    fs::remove_file(circle).expect("own folder");
    std::os::unix::fs::symlink("/dev/zero", root.path().join("templates/a.template")).expect("own folder");
    assert_eq!(render(&environment), Ok(Vec::new()), "a device is no file");
    let long = fs::File::create(root.path().join("templates/b.template")).expect("own folder");
    long.set_len(MAX_TEMPLATE_BYTES + 1).expect("a hole");
    assert!(render(&environment).expect_err("too long").contains("larger than 1048576 bytes"));
}
