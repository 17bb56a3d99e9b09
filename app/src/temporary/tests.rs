//! Places in folders of the test's own; what other users may do is a scenario's part.

use super::*;
use millstream_conf::diagnostics::Severity;
use millstream_conf::load::load_text;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn settled(directives: &str, prefix: &Path, folders: &[&Path]) -> ([PathBuf; 2], Vec<(Severity, String)>) {
    let text = format!(
        "events {{}} http {{ server {{ location / {{ proxy_pass http://127.0.0.1:1; {directives} }} }} }}"
    );
    let mut configuration = load_text("nginx.conf", &text, prefix).configuration.expect("it loads");
    let mut findings = Diagnostics::default();
    let folders = folders.iter().map(|folder| folder.to_path_buf()).collect();
    settle_among(folders, &mut configuration, &mut findings);
    let own = configuration.http.locations.iter().find(|location| location.settings.pass().is_some());
    let own = &own.expect("it proxies").settings;
    let places = [
        own.client_body.temp_path.path.clone(),
        own.pass().expect("it proxies").exchange.temp_path.path.clone(),
    ];
    let said =
        |finding: &&millstream_conf::diagnostics::Diagnostic| (finding.severity, finding.message.clone());
    (places, findings.sorted().iter().map(said).collect())
}

#[test]
fn a_place_that_is_written_is_made_and_used() {
    let prefix = tempfile::tempdir().expect("a folder");
    let (places, found) =
        settled("client_body_temp_path bodies 1 2; proxy_temp_path answers;", prefix.path(), &[]);
    assert_eq!((places, found), ([prefix.path().join("bodies"), prefix.path().join("answers")], vec![]));
    let made = fs::metadata(prefix.path().join("bodies")).expect("it was made");
    assert!(made.is_dir() && made.permissions().mode() & 0o777 == 0o700);
    assert_eq!(fs::read_dir(prefix.path().join("bodies")).expect("ours").count(), 0, "nothing is left there");
}

#[test]
fn a_place_that_is_written_and_cannot_be_used_is_an_error_whatever_else_could() {
    let prefix = tempfile::tempdir().expect("a folder");
    fs::write(prefix.path().join("file"), "").expect("ours");
    for place in ["missing/bodies", "file", "file/bodies"] {
        let (_, found) = settled(&format!("client_body_temp_path {place};"), prefix.path(), &[prefix.path()]);
        let [(Severity::Error, message)] = &found[..] else { panic!("{place}: {found:?}") };
        assert!(message.starts_with("client_body_temp_path ") && message.contains(place), "{message}");
        assert!(!prefix.path().join("missing").exists(), "only the last part is made");
    }
}

#[test]
fn without_one_the_first_usable_folder_is_taken_and_none_is_made() {
    let (prefix, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let missing = prefix.path().join("missing");
    let folders: [&Path; 3] = [&missing, other.path(), prefix.path()];
    let elsewhere = other.path().to_path_buf();
    let (places, found) = settled("", prefix.path(), &folders);
    assert_eq!((places, found), ([elsewhere.clone(), elsewhere.clone()], vec![]));
    assert_eq!(fs::read_dir(prefix.path()).expect("ours").count(), 0);
    // nginx's folder below the prefix, where somebody made it.
    fs::create_dir(prefix.path().join("proxy_temp")).expect("ours");
    let (places, found) = settled("", prefix.path(), &folders);
    assert_eq!((places, found), ([elsewhere, prefix.path().join("proxy_temp")], vec![]));
}

#[test]
fn no_place_at_all_is_one_error_that_names_what_was_tried() {
    let prefix = tempfile::tempdir().expect("a folder");
    let missing = prefix.path().join("missing");
    let (_, found) = settled("", prefix.path(), &[&missing]);
    let errors = found.iter().filter(|(severity, _)| *severity == Severity::Error).count();
    assert!(errors == found.len() && errors > 0, "{found:?}");
    assert!(
        found[0].1.contains("no directory for temporary files") && found[0].1.contains("missing"),
        "{found:?}"
    );
}

#[test]
fn memory_as_the_last_resort_is_a_warning() {
    let memory = Path::new(IN_MEMORY);
    if !memory.is_dir() {
        return;
    }
    let prefix = tempfile::tempdir().expect("a folder");
    let (places, found) = settled("", prefix.path(), &[memory]);
    assert_eq!(places, [memory, memory]);
    assert!(matches!(&found[..], [(Severity::Warning, message)] if message.contains("memory")), "{found:?}");
}

#[test]
fn what_root_makes_belongs_to_the_user() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made");
    make(&path, Some(&User { name: "65432".into(), group: None })).expect("root may");
    assert_eq!(fs::metadata(&path).expect("it was made").uid(), 65432);
}
