//! `ssl_key_log`: the secrets of sessions in a file, as Wireshark reads them (the format SSLKEYLOGFILE).
//!
//! A line is one write to the end of the file, so that lines of several threads and processes stay whole. One that cannot be written is lost: no
//! connection ends for it. Next: `tls` and `connector`, whose configurations write here.

use super::TlsError;
use millstream_conf::files;
use rustls::KeyLog;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Opens a file for the secrets, which only its owner may read where it is new.
pub(super) fn open(path: &Path) -> Result<Arc<dyn KeyLog>, TlsError> {
    let file = files::append(path, 0o600).map_err(|error| TlsError::KeyLog(path.to_path_buf(), error))?;
    Ok(Arc::new(KeyFile(file)))
}

#[derive(Debug)]
struct KeyFile(File);

impl KeyLog for KeyFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        _ = (&self.0).write_all(line(label, client_random, secret).as_bytes());
    }
}

fn line(label: &str, client_random: &[u8], secret: &[u8]) -> String {
    let mut line = format!("{label} ");
    for (bytes, end) in [(client_random, ' '), (secret, '\n')] {
        bytes.iter().for_each(|byte| _ = write!(line, "{byte:02x}"));
        line.push(end);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_label_the_clients_random_bytes_and_the_secret() {
        assert_eq!(line("EXPORTER_SECRET", &[1, 0xab], &[0xff]), "EXPORTER_SECRET 01ab ff\n");
    }
}
