//! The vocabulary of OpenSSL's SSL_CONF_cmd, as configuration files write it: each command and each option once, with what becomes of it.
//!
//! Nothing is read here. Next: `conf_command`, which reads.

pub(super) enum CommandKind {
    Protocol,
    Least,
    Most,
    Ciphers,
    Suites,
    Groups,
    Certificate,
    Key,
    Tickets,
    Options,
    Padding,
    /// Has no effect; the text says why.
    Idle(&'static str),
    /// Cannot be obeyed: why, and what to write instead (`verify`: the directives that verify certificates).
    Refused(&'static str, &'static str),
}

pub(super) const COMMANDS: &[(&str, CommandKind)] = &[
    ("Protocol", CommandKind::Protocol),
    ("MinProtocol", CommandKind::Least),
    ("MaxProtocol", CommandKind::Most),
    ("CipherString", CommandKind::Ciphers),
    ("Ciphersuites", CommandKind::Suites),
    ("Groups", CommandKind::Groups),
    ("Curves", CommandKind::Groups),
    ("ECDHParameters", CommandKind::Groups),
    ("Certificate", CommandKind::Certificate),
    ("PrivateKey", CommandKind::Key),
    ("NumTickets", CommandKind::Tickets),
    ("Options", CommandKind::Options),
    ("RecordPadding", CommandKind::Padding),
    ("DHParameters", CommandKind::Idle("DHE suites are not supported; ECDHE suites need no parameters")),
    ("SignatureAlgorithms", CommandKind::Refused(SCHEMES, SCHEMES_INSTEAD)),
    ("ClientSignatureAlgorithms", CommandKind::Refused(SCHEMES, SCHEMES_INSTEAD)),
    ("VerifyMode", CommandKind::Refused(VERIFIES, "verify")),
    ("VerifyCAFile", CommandKind::Refused(VERIFIES, "verify")),
    ("VerifyCAPath", CommandKind::Refused(VERIFIES, "verify")),
    ("VerifyCAStore", CommandKind::Refused(VERIFIES, "verify")),
    ("ClientCAFile", CommandKind::Refused(VERIFIES, "verify")),
    ("ClientCAPath", CommandKind::Refused(VERIFIES, "verify")),
    ("ClientCAStore", CommandKind::Refused(VERIFIES, "verify")),
    ("RequestCAFile", CommandKind::Refused(VERIFIES, "verify")),
    ("RequestCAPath", CommandKind::Refused(VERIFIES, "verify")),
    ("RequestCAStore", CommandKind::Refused(VERIFIES, "verify")),
    ("ChainCAFile", CommandKind::Refused(CHAIN, CHAIN_INSTEAD)),
    ("ChainCAPath", CommandKind::Refused(CHAIN, CHAIN_INSTEAD)),
    ("ChainCAStore", CommandKind::Refused(CHAIN, CHAIN_INSTEAD)),
    ("ServerInfoFile", CommandKind::Refused("custom extensions are not sent", "leave it out")),
];

const VERIFIES: &str = "peer certificates are verified only as directives specify";
const SCHEMES: &str = "signature schemes depend on the key and on what the peer accepts";
const SCHEMES_INSTEAD: &str = "remove it; schemes with SHA-1 are never used";
const CHAIN: &str = "the chain that is sent is the one in the file of the certificate";
const CHAIN_INSTEAD: &str = "put the intermediate certificates after the certificate in its file";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionSwitch {
    SessionTicket,
    ServerPreference,
    PrioritizeChaCha,
    CertificateCompression,
}

pub(super) struct Fixed(pub(super) bool, pub(super) &'static str);

pub(super) enum OptionKind {
    Switch(OptionSwitch),
    /// On or off makes no difference that a client could see.
    Either(&'static str),
    Always(Fixed),
}

pub(super) const OPTIONS: &[(&str, OptionKind)] = &[
    ("SessionTicket", OptionKind::Switch(OptionSwitch::SessionTicket)),
    ("ServerPreference", OptionKind::Switch(OptionSwitch::ServerPreference)),
    ("PrioritizeChaCha", OptionKind::Switch(OptionSwitch::PrioritizeChaCha)),
    ("TxCertificateCompression", OptionKind::Switch(OptionSwitch::CertificateCompression)),
    ("RxCertificateCompression", OptionKind::Either("a certificate is the same, compressed or not")),
    ("EmptyFragments", OptionKind::Either(NO_CBC)),
    ("EncryptThenMac", OptionKind::Either(NO_CBC)),
    ("Bugs", OptionKind::Either("there are no such workarounds")),
    ("Compression", OptionKind::Always(Fixed(false, "records are never compressed (RFC 9325 §3.3)"))),
    ("NoRenegotiation", OptionKind::Always(Fixed(true, ONCE))),
    ("ClientRenegotiation", OptionKind::Always(Fixed(false, ONCE))),
    ("UnsafeLegacyRenegotiation", OptionKind::Always(Fixed(false, ONCE))),
    ("UnsafeLegacyServerConnect", OptionKind::Either(ONCE)),
    ("NoResumptionOnRenegotiation", OptionKind::Either(ONCE)),
    ("DHSingle", OptionKind::Either("suites with DHE are not offered")),
    ("ECDHSingle", OptionKind::Always(Fixed(true, "each handshake has separate keys"))),
    ("AllowNoDHEKEX", OptionKind::Always(Fixed(false, EXCHANGE))),
    ("PreferNoDHEKEX", OptionKind::Always(Fixed(false, EXCHANGE))),
    ("MiddleboxCompat", OptionKind::Always(Fixed(true, "handshakes look like those of TLS 1.2"))),
    ("AntiReplay", OptionKind::Either("early data is not accepted")),
    (
        "ExtendedMasterSecret",
        OptionKind::Always(Fixed(true, "it is used with each client and server that knows it")),
    ),
    (
        "CANames",
        OptionKind::Always(Fixed(
            true,
            "the names of the authorities in ssl_client_certificate are sent to clients",
        )),
    ),
    (
        "StrictCertCheck",
        OptionKind::Always(Fixed(false, "the server's own certificates are not checked like this")),
    ),
    ("KTLS", OptionKind::Either("records are made in the process")),
    ("KTLSTxZerocopySendfile", OptionKind::Either("records are made in the process")),
    (
        "IgnoreUnexpectedEOF",
        OptionKind::Always(Fixed(false, "data that ends without an alert may be truncated (RFC 9112 §9.8)")),
    ),
];

const ONCE: &str = "a connection has one handshake";
const NO_CBC: &str = "suites with CBC are not offered";
const EXCHANGE: &str = "each session has a separate key exchange";
