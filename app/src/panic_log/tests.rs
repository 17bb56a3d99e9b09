//! The hook is the process's, so one test looks at everything.

use super::*;
use millstream_conf::model::ErrorForm;
use millstream_telemetry::error_log::LeveledLog;
use millstream_telemetry::log_writer::LogWriter;

#[test]
fn a_panic_is_a_line_in_the_error_log_and_a_count_of_its_thread() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("error.log");
    let writer = LogWriter::start().expect("a thread");
    let sink = writer.open(&path, None).expect("a file");
    let log =
        ErrorLogs::new(vec![LeveledLog { sink, level: Level::Error, form: ErrorForm::Text, header: None }]);
    let registry = Registry::new();
    install(&registry);
    tell(&log);
    let own = registry.worker();
    let counted = own.clone();
    let ended = std::thread::Builder::new().name("worker 7".into()).spawn(move || {
        count_in(counted);
        panic!("a bug of {}", "ours");
    });
    ended.expect("a thread").join().expect_err("it panicked");
    std::thread::spawn(|| panic!("without cells")).join().expect_err("it panicked");
    LOG.store(None);
    assert!(writer.drain());

    assert_eq!(own.counter(Counter::Panics), 1);
    assert_eq!(registry.snapshot().counter(Counter::Panics), 2);
    let text = std::fs::read_to_string(&path).expect("the log");
    let line = text.lines().next().expect("a line");
    assert!(
        line.contains("[alert]") && line.contains("\"worker 7\"") && line.contains("a bug of ours"),
        "{line}"
    );
    assert!(line.contains("panic_log/tests.rs:"), "{line}");
    assert_eq!(text.lines().count(), 2);
}
