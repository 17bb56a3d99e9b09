//! Every format against lines that other programs made (crypt(3) of glibc with libxcrypt, `openssl passwd`).

use super::*;

const LINES: &[&str] = &[
    "{PLAIN}secret",
    "abNANd1rDfiNc",
    "./17m29LFAflg",
    "ZzU3r240Q6iws",
    "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
    "{SSHA}gVK8WC9YyFT1gMsQHTGCgT3sSv5zYWx0",
    "$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0",
    "$1$saltsalt$9xy1btjgzLYfb7hivXtC//",
    "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a",
    "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA",
    "$5$rounds=1400$anotherlongsalt$5y0oTZRDdf9EeBuPgkf9VoE/WDN/4ZWqUs1zWU1lTn9",
    "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1",
    "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$GmcwIgvdUC9qLWcKCi6gklUa1dM3ziD43YxYNURLKy0",
];

#[test]
fn a_password_is_right_in_every_format_and_another_is_wrong() {
    for line in LINES {
        assert_eq!(is_right(b"secret", line.as_bytes()), Ok(true), "{line}");
        for wrong in ["", "secre", "secret ", "Secret"] {
            assert_eq!(is_right(wrong.as_bytes(), line.as_bytes()), Ok(false), "{line} {wrong:?}");
        }
    }
    let long = b"a password that is longer than sixteen bytes";
    assert_eq!(is_right(long, b"u980aL/7oXd2w"), Ok(true), "eight characters count");
    assert_eq!(is_right(long, b"$apr1$x$lWAXPPpTNwmkWhArt/zPh0"), Ok(true));
}

#[test]
fn what_is_no_password_lets_nobody_in() {
    for line in [
        "",
        "secret",
        "ab",
        "abJnggxhB/yW",
        "abJnggxhB/yWI.",
        "a!Jnggxhbyyyy",
        "{SHA}",
        "{SHA}???",
        "{SSHA}AAAA",
        "$apr1$",
        "$2y$",
        "$2y$05$short",
        "$5$",
        "$6$x",
        "$y$j9T$",
        "$7$x",
    ] {
        assert_ne!(is_right(b"secret", line.as_bytes()), Ok(true), "{line}");
        assert_ne!(is_right(b"", line.as_bytes()), Ok(true), "{line}");
    }
}

#[test]
fn only_what_is_meant_to_be_slow_and_many_sums_of_a_long_password_are() {
    for line in LINES {
        let is_meant = ["$2", "$5", "$6", "$y"].iter().any(|mark| line.starts_with(mark));
        assert_eq!(is_slow(b"secret", line.as_bytes()), is_meant, "{line}");
        let is_repeated = ["$apr1$", "$1$"].iter().any(|mark| line.starts_with(mark));
        assert_eq!(is_slow(&[b'x'; 100], line.as_bytes()), is_meant || is_repeated, "{line}");
    }
    for (line, slow) in
        [("$2a$12$", true), ("{PLAIN}$2y$12$", false), ("x$6$", false), ("$", false), ("", false)]
    {
        assert_eq!(is_slow(b"", line.as_bytes()), slow, "{line}");
    }
}
