//! Where a certificate or a key is: in a file, in the configuration itself (`data:`), or where variables say at each handshake.
//!
//! Files are looked at (are they there, may they be read), never understood. Next: `tls`; `millstream-net`'s `tls/certificates`.

use std::path::{Path, PathBuf};

use super::pem_file;
use crate::features::templates::Templates;
use crate::parts::PathUse;
use crate::reading::Reading;
use crate::template::Template;
use crate::tree::Word;

const DATA: &str = "data:";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PemSource {
    File(PathBuf),
    Data(Box<str>),
    /// What the server's `acme_certificate` obtains.
    Issued,
    /// The evaluated text, and the base of a relative name.
    Variable(Template, PathBuf),
}

impl PemSource {
    pub fn named(text: &str, directory: &Path) -> Self {
        match text.strip_prefix(DATA) {
            Some(data) => PemSource::Data(data.into()),
            None => PemSource::File(directory.join(text)),
        }
    }

    pub fn evaluated(&self, say: impl Fn(&Template) -> Vec<u8>) -> Self {
        match self {
            PemSource::Variable(text, directory) => {
                PemSource::named(&String::from_utf8_lossy(&say(text)), directory)
            }
            known => known.clone(),
        }
    }

    pub fn is_variable(&self) -> bool {
        matches!(self, PemSource::Variable(..))
    }

    /// For messages; reveals nothing of a key.
    pub fn name(&self) -> PathBuf {
        match self {
            PemSource::File(path) => path.clone(),
            PemSource::Data(_) => DATA.into(),
            PemSource::Issued => "$acme_certificate".into(),
            PemSource::Variable(text, _) => (*text.source).into(),
        }
    }

    /// `issued` is the variable that stands here for an issued certificate, if any.
    pub(in crate::features) fn read(
        word: &Word,
        what: &str,
        issued: Option<&str>,
        reading: &mut Reading<'_>,
    ) -> Self {
        let name = word.text.strip_prefix('$').map(|name| name.trim_start_matches('{').trim_end_matches('}'));
        if name.zip(issued).is_some_and(|(name, issued)| name.eq_ignore_ascii_case(issued)) {
            return PemSource::Issued;
        }
        let directory = reading.conf_prefix.resolve("");
        if word.text.contains('$') {
            if !word.text.starts_with(DATA) {
                reading.path_beside_main(word, PathUse::Certificate);
            }
            return PemSource::Variable(reading.template(word), directory);
        }
        match PemSource::named(&word.text, &directory) {
            PemSource::File(_) => PemSource::File(pem_file(word, what, reading).0),
            data => data,
        }
    }
}

impl Templates for PemSource {
    fn templates<'t>(&'t self, all: &mut Vec<&'t Template>) {
        if let PemSource::Variable(text, _) = self {
            all.push(text);
        }
    }
}

impl From<PathBuf> for PemSource {
    fn from(path: PathBuf) -> Self {
        PemSource::File(path)
    }
}
