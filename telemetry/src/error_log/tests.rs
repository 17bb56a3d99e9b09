//! The line's form, its bound, and who gets it.

use super::*;
use crate::error_line::LINE_BYTES;
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
    let log = |path, level| LeveledLog {
        sink: writer.open(path, None).unwrap(),
        level,
        form: ErrorForm::Text,
        header: None,
    };
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

fn line(message: fmt::Arguments<'_>, about: About, form: ErrorForm) -> String {
    String::from_utf8(Telling::new(Level::Error, message, about).line(form)).unwrap()
}

fn text(message: fmt::Arguments<'_>) -> String {
    line(message, About::default(), ErrorForm::Text)
}

/// A request with all parts known, and secrets.
fn request() -> About {
    let part = |text: &str| Some(text.to_owned());
    About {
        connection: Some(7),
        client: part("192.0.2.1"),
        server: part("shop.example"),
        request: part("GET /items?token=s3cret&page=2 HTTP/1.1"),
        subrequest: part("/check"),
        upstream: part("http://joe:s3cret@127.0.0.1:8000/items?token=s3cret"),
        host: part("shop.example"),
        referrer: part("https://shop.example/?api_key=s3cret"),
    }
}

#[test]
fn the_line_has_nginxs_form() {
    let line = text(format_args!("odd"));
    let (time, rest) = line.split_at(19);
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    assert_eq!(shape, "9999/99/99 99:99:99");
    let thread = rustix::thread::gettid().as_raw_nonzero();
    assert_eq!(rest, format!(" [error] {}#{thread}: odd\n", std::process::id()));
}

#[test]
fn the_parts_of_a_request_stand_as_in_nginx_and_secrets_in_none_of_them() {
    let line = line(format_args!("\"/a?sig=s3cret\" timed out"), request(), ErrorForm::Text);
    let expected = ": *7 \"/a?sig=***\" timed out, client: 192.0.2.1, server: shop.example, request: \"GET /items?token=***&page=2 \
                    HTTP/1.1\", subrequest: \"/check\", upstream: \"http://***@127.0.0.1:8000/items?token=***\", host: \"shop.example\", \
                    referrer: \"https://shop.example/?api_key=***\"\n";
    assert!(line.ends_with(expected), "{line}");
}

#[test]
fn in_json_each_part_has_a_key_of_its_own() {
    let line = line(format_args!("\"/a?sig=s3cret\" timed out"), request(), ErrorForm::Json);
    let object: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(object["time"], "1970-01-01T00:00:00.000+00:00");
    assert_eq!((&object["level"], &object["pid"]), (&"error".into(), &std::process::id().into()));
    assert_eq!(object["tid"], rustix::thread::gettid().as_raw_nonzero().get());
    for (key, expected) in [
        ("message", "\"/a?sig=***\" timed out"),
        ("client", "192.0.2.1"),
        ("server", "shop.example"),
        ("request", "GET /items?token=***&page=2 HTTP/1.1"),
        ("subrequest", "/check"),
        ("upstream", "http://***@127.0.0.1:8000/items?token=***"),
        ("host", "shop.example"),
        ("referrer", "https://shop.example/?api_key=***"),
    ] {
        assert_eq!(object[key], expected, "{key}");
    }
    assert_eq!(object["connection"], 7);
    let plain: serde_json::Value =
        serde_json::from_str(&self::line(format_args!("odd"), About::default(), ErrorForm::Json)).unwrap();
    let keys: Vec<&String> = plain.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["level", "message", "pid", "tid", "time"]);
}

#[test]
fn an_object_can_be_read_and_is_bounded_whatever_stands_in_it() {
    for odd in ["\"", "\\", "\u{0}", "\r\n", "\u{9b}", "é", "\u{2028}", "𝄞", "a\\"] {
        for count in [0, 1, 30, 340, 510, 1024, 5000] {
            let long = odd.repeat(count);
            let about = About { request: Some(long.clone()), host: Some(long.clone()), ..request() };
            for about in [about, About::default()] {
                let line = line(format_args!("{long}"), about, ErrorForm::Json);
                assert!(line.len() <= LINE_BYTES && line.ends_with("}\n"), "{odd:?} {count}: {}", line.len());
                let object: serde_json::Value = serde_json::from_str(&line).unwrap();
                assert!(!line.trim_end().contains(char::is_control), "{odd:?} {count}");
                assert!(long.starts_with(object["message"].as_str().unwrap()));
            }
        }
    }
}

#[test]
fn what_a_client_sends_can_neither_end_the_line_nor_reach_a_terminal() {
    let line = text(format_args!("\"{}\"", "a\r\nb\x1b[1m\u{9b}\té"));
    assert!(line.ends_with(": \"a\\x0D\\x0Ab\\x1B[1m\\x9B\té\"\n"), "{line}");
}

#[test]
fn a_long_message_is_cut_at_a_character() {
    let line = text(format_args!("{}", "é".repeat(40_000)));
    assert!(line.len() <= LINE_BYTES && line.len() > LINE_BYTES - 3 && line.ends_with("é\n"));
}

#[test]
fn system_errors_print_as_in_nginx() {
    let error = std::io::Error::from_raw_os_error(2);
    assert_eq!(SystemError(&error).to_string(), "(2: No such file or directory)");
    let error = std::io::Error::other("odd");
    assert_eq!(SystemError(&error).to_string(), "(odd)");
}
