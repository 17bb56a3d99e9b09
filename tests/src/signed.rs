//! A certificate authority of OpenSSL's in a directory, with what it issued and its OCSP responder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::Running;
use crate::{ports, wait};

/// An authority whose files stand in a directory: `ca.pem`, and for each name `NAME.pem` (with the authority's behind it) and `NAME.key`.
pub struct SigningAuthority {
    folder: PathBuf,
    responder_port: u16,
    issued: u32,
}

impl SigningAuthority {
    /// A new one, in that directory.
    pub fn new(folder: &Path) -> SigningAuthority {
        let authority =
            SigningAuthority { folder: folder.to_path_buf(), responder_port: ports::free(), issued: 0 };
        let mut arguments = vec!["req", "-x509", "-nodes", "-days", "30", "-subj", "/O=Tests/CN=authority"];
        arguments.extend(EC);
        arguments.extend(["-keyout", "ca.key", "-out", "ca.pem"]);
        authority.openssl(&arguments);
        authority.write("index", "");
        authority
    }

    /// One of which somebody else has the certificate and key, as PEM, and names this port as its responder's.
    pub fn with(folder: &Path, (certificate, key): (&str, &str), responder_port: u16) -> SigningAuthority {
        let authority = SigningAuthority { folder: folder.to_path_buf(), responder_port, issued: 0 };
        authority.write("ca.pem", certificate);
        authority.write("ca.key", key);
        authority.write("index", "");
        authority
    }

    /// It has issued a certificate with this serial number, in hexadecimal digits.
    pub fn has_issued(&self, serial: &str) {
        // OpenSSL takes no index with a subject twice.
        let line = format!("V\t490101000000Z\t\t{serial}\tunknown\t/CN={serial}\n");
        self.write("index", &(self.read("index") + &line));
    }

    /// Issues a certificate for `localhost` and 127.0.0.1 whose key is of that kind (`rsa` or `ec`); it names the responder of this authority.
    pub fn issue(&mut self, name: &str, kind: &str) {
        self.issued += 1;
        let serial = format!("{:02X}", 16 + self.issued);
        let extensions = format!(
            "basicConstraints=critical,CA:false\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\n\
             subjectAltName=DNS:localhost,IP:127.0.0.1\n\
             authorityInfoAccess=OCSP;URI:http://127.0.0.1:{}/\n",
            self.responder_port
        );
        self.write("extensions", &extensions);
        let (key, request) = (format!("{name}.key"), format!("{name}.csr"));
        let (alone, whole) = (format!("{name}.alone"), format!("{name}.pem"));
        let mut arguments =
            vec!["req", "-nodes", "-subj", "/CN=localhost", "-keyout", &key, "-out", &request];
        match kind {
            "rsa" => arguments.extend(["-newkey", "rsa:2048"]),
            _ => arguments.extend(EC),
        }
        self.openssl(&arguments);
        let serial_number = format!("0x{serial}");
        self.openssl(&[
            "x509",
            "-req",
            "-in",
            &request,
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-days",
            "20",
            "-extfile",
            "extensions",
            "-set_serial",
            &serial_number,
            "-sha256",
            "-out",
            &alone,
        ]);
        self.write(&whole, &(self.read(&alone) + &self.read("ca.pem")));
        self.has_issued(&serial);
    }

    /// All that was issued is revoked from now on, for a responder that is started after this.
    pub fn revoke_all(&self) {
        self.write(
            "index",
            &self.read("index").replace("V\t490101000000Z\t\t", "R\t490101000000Z\t260101000000Z\t"),
        );
    }

    /// Starts the responder that the certificates name.
    pub fn respond(&self) -> Running {
        let port = self.responder_port.to_string();
        let output =
            std::fs::File::create(self.folder.join("responder.log")).expect("own directory is writable");
        let responder = Running::start(
            Command::new("openssl")
                .args(["ocsp", "-port", &port, "-index", "index", "-CA", "ca.pem", "-rsigner", "ca.pem"])
                .args(["-rkey", "ca.key", "-ndays", "7"])
                .current_dir(&self.folder)
                .stdin(Stdio::null())
                .stdout(output.try_clone().expect("an open file"))
                .stderr(output),
        )
        .expect("openssl is installed");
        // A connection that asks nothing would keep it busy for good.
        wait::until("the responder listens", || self.read("responder.log").contains("waiting"));
        responder
    }

    /// Writes what the authority says of a certificate into a file.
    pub fn answer(&self, name: &str, file: &str) {
        let certificate = format!("{name}.alone");
        self.openssl(&[
            "ocsp",
            "-index",
            "index",
            "-CA",
            "ca.pem",
            "-issuer",
            "ca.pem",
            "-cert",
            &certificate,
            "-rsigner",
            "ca.pem",
            "-rkey",
            "ca.key",
            "-ndays",
            "7",
            "-respout",
            file,
            "-noverify",
        ]);
    }

    fn openssl(&self, arguments: &[&str]) {
        let done = Command::new("openssl").args(arguments).current_dir(&self.folder).output();
        let done = done.expect("openssl is installed");
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).expect("own directory is writable");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).expect("it is there")
    }
}

const EC: [&str; 4] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
