//! The line's form, its bound, and who gets it.

use super::*;
use crate::log_error;
use crate::log_writer::LogWriter;

fn read(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_message_goes_to_every_log_that_wants_its_level() {
    let directory = tempfile::tempdir().unwrap();
    let writer = LogWriter::start().unwrap();
    let (errors, all) = (directory.path().join("errors"), directory.path().join("all"));
    let log = |path, level| LeveledLog { sink: writer.open(path, None).unwrap(), level, header: None };
    let logs = ErrorLogs::new(vec![log(&errors, Level::Error), log(&all, Level::Info)]);
    log_error!(logs, Level::Error, "*{} connect() failed", 3);
    log_error!(&logs, Level::Notice, "using {} cores", 2);
    let mut evaluated = false;
    log_error!(logs, Level::Debug, "{}", {
        evaluated = true;
        "nobody reads this"
    });
    assert!(!evaluated && !logs.enabled(Level::Debug) && logs.enabled(Level::Info));
    assert!(writer.drain());
    assert_eq!(read(&errors).lines().count(), 1);
    assert_eq!(read(&all).lines().count(), 2);
    let line = read(&errors);
    assert!(line.ends_with(": *3 connect() failed\n"), "{line}");
}

#[test]
fn the_default_logs_nothing() {
    assert!(!ErrorLogs::default().enabled(Level::Emerg));
}

#[test]
fn the_line_has_nginxs_form() {
    let line = String::from_utf8(error_line::line(Level::Warn, format_args!("odd"))).unwrap();
    let (time, rest) = line.split_at(19);
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    assert_eq!(shape, "9999/99/99 99:99:99");
    let thread = rustix::thread::gettid().as_raw_nonzero();
    assert_eq!(rest, format!(" [warn] {}#{thread}: odd\n", std::process::id()));
}

#[test]
fn what_a_client_sends_can_neither_end_the_line_nor_reach_a_terminal() {
    let line = error_line::line(Level::Error, format_args!("\"{}\"", "a\r\nb\x1b[1m\u{9b}\té"));
    let line = String::from_utf8(line).unwrap();
    assert!(line.ends_with(": \"a\\x0D\\x0Ab\\x1B[1m\\x9B\té\"\n"), "{line}");
}

#[test]
fn a_long_message_is_cut_at_a_character() {
    let line = error_line::line(Level::Error, format_args!("{}", "é".repeat(4000)));
    assert!(line.len() <= error_line::LINE_BYTES && line.len() > error_line::LINE_BYTES - 3);
    assert!(String::from_utf8(line).is_ok_and(|line| line.ends_with("é\n")));
}

#[test]
fn system_errors_print_as_in_nginx() {
    let error = std::io::Error::from_raw_os_error(2);
    assert_eq!(SystemError(&error).to_string(), "(2: No such file or directory)");
    let error = std::io::Error::other("odd");
    assert_eq!(SystemError(&error).to_string(), "(odd)");
}
