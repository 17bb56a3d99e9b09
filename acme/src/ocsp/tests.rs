//! Answers of OpenSSL's responder, and what is left of them when something is changed.

use super::*;
use std::fs;
use std::path::Path;
use std::process::Command;

/// An authority with certificates, kept by OpenSSL.
struct Authority {
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Authority {
        let authority = Authority { folder: tempfile::tempdir().expect("a directory") };
        for name in ["ca", "other"] {
            authority.run(&[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "30",
                "-subj",
                &format!("/CN={name}"),
                "-keyout",
                &format!("{name}.key"),
                "-out",
                &format!("{name}.pem"),
            ]);
        }
        authority.issue("leaf", "authorityInfoAccess=OCSP;URI:http://127.0.0.1:9/ocsp", 17);
        authority.issue("delegate", "extendedKeyUsage=OCSPSigning", 18);
        authority.issue("plain", "extendedKeyUsage=serverAuth", 19);
        authority
    }

    fn issue(&self, name: &str, extension: &str, serial: u32) {
        fs::write(self.path("ext"), format!("basicConstraints=CA:false\n{extension}\n")).expect("written");
        let (key, request, certificate) =
            (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
        let subject = format!("/CN={name}");
        self.run(&[
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            &subject,
            "-keyout",
            &key,
            "-out",
            &request,
        ]);
        self.run(&[
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
            "ext",
            "-set_serial",
            &serial.to_string(),
            "-out",
            &certificate,
        ]);
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) {
        let done = Command::new("openssl").args(arguments).current_dir(self.folder.path()).output();
        let done = done.expect("openssl is installed");
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn der(&self, name: &str) -> CertificateDer<'static> {
        use rustls_pki_types::pem::PemObject;
        CertificateDer::from_pem_file(self.path(&format!("{name}.pem"))).expect("PEM")
    }

    /// What is answered about `leaf` by this signer; `status` as it stands in an index.
    fn answer(&self, status: &str, signer: &str, more: &[&str], serial: &str) -> Vec<u8> {
        let revoked = if status == "R" { "260101000000Z" } else { "" };
        let line = format!("{status}\t490101000000Z\t{revoked}\t{serial}\tunknown\t/CN=leaf\n");
        fs::write(self.path("index"), line).expect("written");
        let (signer, key) = (format!("{signer}.pem"), format!("{signer}.key"));
        let mut arguments = vec![
            "ocsp",
            "-index",
            "index",
            "-CA",
            "ca.pem",
            "-issuer",
            "ca.pem",
            "-cert",
            "leaf.pem",
            "-rsigner",
            &signer,
            "-rkey",
            &key,
            "-respout",
            "answer.der",
            "-noverify",
        ];
        arguments.extend(more);
        self.run(&arguments);
        fs::read(self.path("answer.der")).expect("written")
    }
}

fn clock(folder: &Path) -> i64 {
    use std::os::unix::fs::MetadataExt;
    // Of the file that was just written.
    fs::metadata(folder.join("answer.der")).expect("there").mtime()
}

#[test]
fn an_answer_counts_if_the_authority_or_its_delegate_signed_it_about_this_certificate_and_it_holds() {
    let authority = Authority::new();
    let leaf = authority.der("leaf");
    assert_eq!(responder(&leaf).as_deref(), Some("http://127.0.0.1:9/ocsp"));
    let issuer = CertificateIssuer::of(&leaf, &[authority.der("other"), authority.der("ca")]).expect("there");
    assert!(CertificateIssuer::of(&leaf, &[authority.der("other"), leaf.clone()]).is_none());
    let question = OcspQuestion::about(&leaf, &issuer).expect("readable");
    let week: &[&str] = &["-ndays", "7"];
    for (status, signer, more, serial, expected) in [
        ("V", "ca", week, "11", Ok(true)),
        ("V", "ca", &[][..], "11", Ok(false)),
        ("V", "delegate", week, "11", Ok(true)),
        ("V", "ca", &["-ndays", "7", "-resp_key_id"], "11", Ok(true)),
        ("R", "ca", week, "11", Err(OcspFailure::Revoked)),
        ("V", "ca", week, "12", Err(OcspFailure::Unknown)),
        ("V", "plain", week, "11", Err(OcspFailure::Unsigned)),
        ("V", "other", week, "11", Err(OcspFailure::Unsigned)),
    ] {
        let answer = authority.answer(status, signer, more, serial);
        let now = clock(authority.folder.path());
        let judged = question.judge(&answer, &issuer, now);
        assert_eq!(
            judged.clone().map(|until| until.is_some()),
            expected,
            "{status} {signer} {more:?} {serial}"
        );
        let Ok(Some(until)) = judged else { continue };
        assert!((until - now - 7 * 24 * 60 * 60).abs() < 60);
        for then in [now - 3600, until + 3600] {
            // A delegate was not there an hour ago.
            let expected = [OcspFailure::OutOfTime, OcspFailure::Unsigned]
                [usize::from(signer == "delegate" && then < now)]
            .clone();
            assert_eq!(question.judge(&answer, &issuer, then), Err(expected));
        }
    }
    let answer = authority.answer("V", "ca", week, "11");
    let now = clock(authority.folder.path());
    for at in 0..answer.len() {
        let mut changed = answer.clone();
        changed[at] ^= 1;
        let judged = question.judge(&changed, &issuer, now);
        // Nothing signs the certificates that come along, nor how the signature was made.
        assert!(judged.is_err() || judged == question.judge(&answer, &issuer, now), "byte {at}");
        assert!(question.judge(&answer[..at], &issuer, now).is_err(), "cut at {at}");
    }
    let about_another = OcspQuestion::about(&authority.der("delegate"), &issuer).expect("readable");
    assert_eq!(about_another.judge(&answer, &issuer, now), Err(OcspFailure::OfAnother));
}
