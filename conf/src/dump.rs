//! The configuration as `-T` prints it: every file byte for byte under a line with its path.
//!
//! Scripts cut this output apart at the lines that start with `# configuration file`, so the form is nginx's
//! exactly. It must never print what was not read from a file. Before: `include`, which filled the sources.

use std::io::{self, Write};

use crate::source::Sources;

/// Writes every file once, in order of first inclusion: `# configuration file PATH:`, its bytes, a line end.
/// Text that came from no file (its path is not absolute) is left out, as nginx leaves `-g` out.
pub fn write(sources: &Sources, out: &mut impl Write) -> io::Result<()> {
    for file in sources.files().iter().filter(|file| file.path.is_absolute()) {
        out.write_all(b"# configuration file ")?;
        out.write_all(file.path.as_os_str().as_encoded_bytes())?;
        out.write_all(b":\n")?;
        out.write_all(&file.text)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stand_in_order_with_their_exact_bytes_and_text_from_no_file_is_left_out() {
        let mut sources = Sources::default();
        sources.add("command line".into(), b"daemon off;".to_vec());
        sources.add("/etc/nginx/nginx.conf".into(), b"include a;\r\n".to_vec());
        sources.add("/etc/nginx/a".into(), b"# \xff".to_vec());
        let mut out = Vec::new();
        write(&sources, &mut out).expect("a vector takes every write");
        let expected = b"# configuration file /etc/nginx/nginx.conf:\ninclude a;\r\n\n# configuration file /etc/nginx/a:\n# \xff\n";
        assert_eq!(out, expected);
    }
}
