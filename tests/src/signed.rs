//! A certificate authority of OpenSSL's in a directory, with what it issued and its OCSP responder.

use std::path::{Path, PathBuf};

use crate::responder::{Responder, Signing, Word, openssl, respond};

/// Files of its directory: `ca.pem`, and for each name `NAME.pem` (followed by the authority's) and
/// `NAME.key`.
pub struct SigningAuthority {
    folder: PathBuf,
    pub responder: Responder,
    issued: u32,
}

impl SigningAuthority {
    pub fn new(folder: &Path) -> SigningAuthority {
        let authority =
            SigningAuthority { folder: folder.to_path_buf(), responder: Responder::new(folder), issued: 0 };
        authority.stand_alone("ca");
        authority
    }

    pub fn stand_alone(&self, name: &str) {
        let (key, certificate, subject) =
            (format!("{name}.key"), format!("{name}.pem"), format!("/O=Tests/CN={name}"));
        let mut arguments = vec!["req", "-x509", "-nodes", "-days", "30", "-subj", &subject];
        arguments.extend(EC);
        arguments.extend(["-keyout", &key, "-out", &certificate]);
        self.openssl(&arguments);
    }

    /// For `localhost` and 127.0.0.1, with a key of that kind (`rsa` or `ec`); it names this authority's
    /// responder.
    pub fn issue(&mut self, name: &str, kind: &str) {
        let url = self.responder.url();
        self.issue_with(
            name,
            kind,
            &format!("extendedKeyUsage=serverAuth\nauthorityInfoAccess=OCSP;URI:{url}\n"),
        );
    }

    /// `extensions` in OpenSSL's syntax.
    pub fn issue_with(&mut self, name: &str, kind: &str, extensions: &str) {
        self.issued += 1;
        let always = "basicConstraints=critical,CA:false\nkeyUsage=critical,digitalSignature\n\
                      subjectAltName=DNS:localhost,IP:127.0.0.1\n";
        self.write("extensions", &format!("{always}{extensions}"));
        let (key, request) = (format!("{name}.key"), format!("{name}.csr"));
        let (alone, whole) = (format!("{name}.alone"), format!("{name}.pem"));
        let mut arguments =
            vec!["req", "-nodes", "-subj", "/CN=localhost", "-keyout", &key, "-out", &request];
        match kind {
            "rsa" => arguments.extend(["-newkey", "rsa:2048"]),
            _ => arguments.extend(EC),
        }
        self.openssl(&arguments);
        let number = (16 + self.issued).to_string();
        let mut arguments = vec!["x509", "-req", "-in", &request, "-CA", "ca.pem", "-CAkey", "ca.key"];
        arguments.extend(["-days", "20", "-extfile", "extensions", "-set_serial", &number, "-sha256"]);
        arguments.extend(["-out", &alone]);
        self.openssl(&arguments);
        self.write(&whole, &(self.read(&alone) + &self.read("ca.pem")));
    }

    /// Records an issued certificate as ended yesterday.
    pub fn expire(&self, name: &str) {
        let (request, whole) = (format!("{name}.csr"), format!("{name}.pem"));
        let mut arguments = vec!["x509", "-req", "-in", &request, "-CA", "ca.pem", "-CAkey", "ca.key"];
        arguments.extend(["-days", "-1", "-sha256", "-out", &whole]);
        self.openssl(&arguments);
    }

    pub fn respond(&self, question: &[u8], word: Word, signing: &Signing<'_>) -> Vec<u8> {
        respond(&self.folder, question, word, signing)
    }

    pub fn question(&self, name: &str) -> Vec<u8> {
        let (certificate, file) = (format!("{name}.pem"), format!("{name}.question"));
        self.openssl(&["ocsp", "-issuer", "ca.pem", "-cert", &certificate, "-no_nonce", "-reqout", &file]);
        std::fs::read(self.folder.join(file)).expect("it was written")
    }

    fn openssl(&self, arguments: &[&str]) {
        openssl(&self.folder, arguments);
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).expect("own directory is writable");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).expect("it is there")
    }
}

const EC: [&str; 4] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
