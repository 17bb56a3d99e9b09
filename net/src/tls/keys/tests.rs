//! Keys that OpenSSL has sealed, in each form that it writes.

use super::*;
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs OpenSSL over a text.
fn openssl(words: &[&str], input: &str) -> String {
    let mut child = Command::new("openssl")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl is there");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).expect("PEM")
}

#[test]
fn a_key_is_opened_by_its_password_and_by_no_other() {
    let plain = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let Ok(PrivateKeyDer::Pkcs8(expected)) = private(plain.as_bytes(), &[]) else { panic!("it is plain") };
    let seal = |cipher: &str| openssl(&["pkcs8", "-topk8", "-passout", "pass:secret", "-v2", cipher], &plain);
    let old = |cipher: &str| openssl(&["ec", cipher, "-passout", "pass:secret"], &plain);
    let bare = openssl(&["ec"], &plain);
    let (right, wrong) = (b"secret".to_vec(), b"sesame".to_vec());
    for sealed in [seal("aes-128-cbc"), seal("aes-256-cbc"), seal("des3")] {
        let text = format!("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n{sealed}");
        let opened = private(text.as_bytes(), &[wrong.clone(), right.clone()]).expect("it is opened");
        assert_eq!(opened.secret_der(), expected.secret_pkcs8_der());
        assert_eq!(private(sealed.as_bytes(), std::slice::from_ref(&wrong)), Err(KeyError::WrongPassword));
        assert_eq!(private(sealed.as_bytes(), &[]), Err(KeyError::NeedsPassword));
    }
    let bare = private(bare.as_bytes(), &[]).expect("it is plain");
    for sealed in [old("-aes128"), old("-aes192"), old("-aes256"), old("-des3")] {
        if sealed.contains("BEGIN EC PRIVATE KEY") {
            let opened = private(sealed.as_bytes(), &[wrong.clone(), right.clone()]).expect("it is opened");
            assert_eq!(opened.secret_der(), bare.secret_der());
        }
        assert_eq!(private(sealed.as_bytes(), std::slice::from_ref(&wrong)), Err(KeyError::WrongPassword));
        assert_eq!(private(sealed.as_bytes(), &[]), Err(KeyError::NeedsPassword));
    }
    let unknown = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: IDEA-CBC,0011223344556677\n\n\
                   AAAA\n-----END RSA PRIVATE KEY-----\n";
    assert_eq!(private(unknown.as_bytes(), &[right]), Err(KeyError::UnknownCipher("IDEA-CBC".to_owned())));
    assert_eq!(private(b"nothing", &[]), Err(KeyError::None));
}

#[test]
fn each_line_of_a_file_is_a_password() {
    let read = passwords(b"one\r\n\ntwo words\nlast");
    assert_eq!(read, [&b"one"[..], b"two words", b"last"]);
}
