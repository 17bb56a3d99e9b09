//! `examples/flask/` as its README says: supervisor starts Gunicorn and the server, and the answers are as promised.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

use millstream_tests::prefix::Prefix;
use millstream_tests::process::{self, Running};
use millstream_tests::server::binary;
use millstream_tests::{client, gunicorn, ports, wait, workspace};
use rustix::process::Signal;

#[test]
fn the_flask_example_starts_under_supervisor_and_answers_from_the_cache() {
    let prefix = Prefix::new();
    let port = ports::free();
    let folder = workspace().join("examples/flask");
    let run = prefix.path().to_str().expect("a plain path").to_owned();
    let conf = std::fs::read_to_string(folder.join("millstream.conf")).expect("the example's configuration");
    let conf = conf
        .replace("unix:api.sock", &format!("unix:{run}/api.sock"))
        .replace("127.0.0.1:8080", &format!("127.0.0.1:{port}"));
    prefix.write("millstream.conf", &conf);
    let output = File::create(prefix.join("output")).expect("own directory");
    let mut supervisor = Running::start(
        Command::new(gunicorn::programs().join("supervisord"))
            .args(["-c", "supervisord.conf"])
            .current_dir(&folder)
            .env("RUN", &run)
            .env("PYTHON", gunicorn::programs())
            .env("MILLSTREAM", binary())
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("an open file"))
            .stderr(output),
    )
    .expect("supervisord starts");
    let ready = wait::within(Duration::from_secs(40), || {
        let mut client = client::Client::connect(port).ok()?;
        client.get("/").ok().filter(|answer| answer.status == 200)
    });
    let said = || {
        prefix.read("output")
            + &prefix.read("api.log")
            + &prefix.read("millstream.out")
            + &prefix.read("error.log")
    };
    assert!(ready.is_some(), "{}", said());

    let status = |path: &str| client::get(port, path).field("x-cache-status").unwrap_or("none").to_owned();
    assert_eq!(status("/"), "HIT");
    assert_eq!((status("/items/7"), status("/items/7")), ("MISS".to_owned(), "HIT".to_owned()));
    assert_eq!((status("/private"), status("/private")), ("MISS".to_owned(), "MISS".to_owned()));
    for user in ["alice", "bob"] {
        let cookie = format!("session={user}");
        let mine = client::get_with(port, "/me", &[("Cookie", &cookie)]);
        assert!(mine.text().contains(user), "{user}: {}", mine.text());
    }
    let zipped = client::get_with(port, "/", &[("Accept-Encoding", "gzip")]);
    assert_eq!(zipped.field("content-encoding"), Some("gzip"));

    let expected = std::thread::available_parallelism().map_or(1, usize::from) * 2 + 1;
    wait::until("Gunicorn has CPUs × 2 + 1 workers", || supervisor.tree().len() > expected);
    let workers = supervisor.tree();
    supervisor.signal(Signal::TERM);
    assert!(
        supervisor.wait(Duration::from_secs(30)).is_some(),
        "supervisor ends what it started: {}",
        said()
    );
    wait::until("nothing is left", || workers.iter().all(|&id| !process::is_alive(id)));
}
