//! Whether a request field says who asks: what must not decide unseen what others are answered. And what of a request is a secret, which
//! nobody is to read in a log.
//!
//! Fields of RFC 9110 and RFC 6265 are known by their number. APIs also have fields of their own for it, of which nobody
//! keeps a list; they are told by the words in their names. A name too many costs an answer from the cache, a name too
//! few gives one user's answer to another, so where there is doubt it is a credential. What follows from it is decided by
//! the cache's policy.
//!
//! A secret is less than that: who reads a log wants to know whose request it was (`user=7`), and not what lets them in (`token=…`). Next:
//! `masked`, which writes something else in its place.

use crate::cgi_name;
use crate::field_id::FieldId;

/// A name is a credential with one of these anywhere in it, by the first letter: X-Api-Key, X-Auth-Token,
/// Authentication, X-Session-Id, Client-Secret, Cookie2 … A name is searched from each of its letters on, so
/// only the words of that letter cost anything.
const fn words_from(letter: u8) -> &'static [&'static [u8]] {
    match letter {
        b'a' => &[b"account", b"act-as", b"auth"],
        b'b' => &[b"bearer"],
        b'c' => &[b"cert", b"consumer", b"cookie", b"credential", b"customer"],
        b'i' => &[b"identity", b"impersonat"],
        b'j' => &[b"jwt"],
        b'k' => &[b"key"],
        b'l' => &[b"login"],
        b'm' => &[b"member"],
        b'o' => &[b"oidc", b"on-behalf"],
        b'p' => &[b"passcode", b"passphrase", b"passport", b"passw", b"principal"],
        b's' => &[b"secret", b"sessid", b"session", b"signature", b"subscriber"],
        b't' => &[b"ticket", b"token"],
        b'u' => &[b"user"],
        _ => &[],
    }
}

/// A name is a credential with one of these between its hyphens, by the first letter: a person in any role
/// (X-Actor, X-Guest, X-Whoami), what login proxies say of them (X-Forwarded-Groups, X-SSL-Client-S-DN),
/// their company or team (X-Org), and what grants access: DPoP (RFC 9449), X-WP-Nonce, X-WSSE, API-Sign.
/// Words of other lengths are told apart by length alone.
const fn segments_from(letter: u8) -> &'static [&'static [u8]] {
    match letter {
        b'a' => &[b"actor", b"admin", b"assertion"],
        b'c' => &[b"caller", b"claims", b"company", b"csrf"],
        b'd' => &[b"delegate", b"dn", b"doctor", b"dpop"],
        b'e' => &[b"email", b"employee", b"eppn"],
        b'f' => &[b"fingerprint", b"from"],
        b'g' => &[b"groups", b"guest"],
        b'h' => &[b"hmac", b"household"],
        b'l' => &[b"licence", b"license"],
        b'm' => &[b"mac", b"merchant", b"msisdn"],
        b'n' => &[b"nonce"],
        b'o' => &[b"operator", b"org", b"organisation", b"organization", b"otp", b"owner"],
        b'p' => &[
            b"pass", b"patient", b"person", b"persona", b"phone", b"pin", b"player", b"profile", b"psk",
            b"pwd",
        ],
        b'r' => &[b"requester", b"role", b"roles"],
        b's' => &[
            b"saml", b"sess", b"sid", b"sign", b"spiffe", b"ssid", b"sso", b"staff", b"student", b"sub",
            b"subject", b"sudo",
        ],
        b't' => &[b"team", b"totp"],
        b'u' => &[b"uid", b"upn"],
        b'v' => &[b"verify", b"viewer", b"visitor"],
        b'w' => &[b"whoami", b"workspace", b"wsse"],
        _ => &[],
    }
}

/// What belongs to one person: its number identifies who asks (X-Device-Id, Client-UUID, X-VisitorId).
const OWNED: [&[u8]; 28] = [
    b"advertising",
    b"anonymous",
    b"browser",
    b"client",
    b"company",
    b"contact",
    b"device",
    b"employee",
    b"guest",
    b"handset",
    b"install",
    b"installation",
    b"machine",
    b"org",
    b"organisation",
    b"organization",
    b"patient",
    b"person",
    b"player",
    b"profile",
    b"student",
    b"subscriber",
    b"subscription",
    b"team",
    b"terminal",
    b"viewer",
    b"visitor",
    b"workspace",
];

/// Words for such a number, right after one of `OWNED`.
const NUMBERS: [&[u8]; 6] = [b"id", b"ident", b"identifier", b"guid", b"uuid", b"udid"];

/// Anywhere in a name, these mark a secret value: `access_token`, `clientSecret`, `X-Amz-Signature`, `passwd`
/// …
const SECRETS: [&[u8]; 15] = [
    b"accesskey",
    b"apikey",
    b"assertion",
    b"authenticat",
    b"authoriz",
    b"bearer",
    b"credential",
    b"jwt",
    b"passw",
    b"privatekey",
    b"secret",
    b"sessid",
    b"session",
    b"signature",
    b"token",
];

/// Between the signs of a name (`api_key`, `X-Auth`, `sig`), these mark a secret; a longer word means
/// something else (`author`).
const SECRET_SEGMENTS: [&[u8]; 14] = [
    b"auth",
    b"cookie",
    b"hmac",
    b"key",
    b"md5",
    b"nonce",
    b"otp",
    b"pass",
    b"passphrase",
    b"pin",
    b"pwd",
    b"sid",
    b"sig",
    b"ticket",
];

/// Beginnings of fields that identify no client: those that only a browser itself can set (Fetch Standard §2.2.2), and what Cloudflare and
/// CloudFront add to every request (the scheme, the country, the kind of device).
const OF_NOBODY: [&[u8]; 8] = [
    b"sec-fetch-",
    b"sec-ch-",
    b"sec-websocket-",
    b"sec-gpc",
    b"sec-purpose",
    b"cf-visitor",
    b"cloudfront-viewer-",
    b"cloudfront-is-",
];

/// Ends of fields that describe where or with which program somebody is, whatever else the name has: X-Visitor-Country, X-Original-User-Agent.
const DESCRIPTIONS: [&[u8]; 8] =
    [b"-country", b"-region", b"-city", b"-continent", b"-timezone", b"-time-zone", b"-asn", b"-user-agent"];

/// The longest name that is examined. A longer one is no known field, and its sender shares nothing.
const LONGEST_NAME: usize = 64;

#[inline]
pub fn is_credential(id: FieldId, name: &[u8]) -> bool {
    match id {
        FieldId::Authorization | FieldId::Cookie | FieldId::ProxyAuthorization => true,
        FieldId::Other => is_named_so(name),
        // No request has these; one that does has its reasons.
        FieldId::SurrogateKey | FieldId::WwwAuthenticate | FieldId::ProxyAuthenticate => true,
        _ => false,
    }
}

pub fn is_secret(name: &[u8]) -> bool {
    if name.len() > LONGEST_NAME {
        return true;
    }
    let has = |word: &[u8]| name.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    SECRETS.iter().any(|word| has(word))
        || name
            .split(|byte| !byte.is_ascii_alphanumeric())
            .any(|segment| SECRET_SEGMENTS.iter().any(|known| segment.eq_ignore_ascii_case(known)))
}

fn is_named_so(name: &[u8]) -> bool {
    if name.len() > LONGEST_NAME {
        return true;
    }
    let begins = |start: &&[u8]| name.get(..start.len()).is_some_and(|own| cgi_name::is_same(own, start));
    let ends =
        |end: &&[u8]| name.len().checked_sub(end.len()).is_some_and(|at| cgi_name::is_same(&name[at..], end));
    let is_nobodys = OF_NOBODY.iter().any(begins) || DESCRIPTIONS.iter().any(ends);
    !is_nobodys && ((0..name.len()).any(|at| begins_with_word(&name[at..])) || has_telling_segment(name))
}

/// Whether a segment between hyphens identifies the client, alone or as the number of something personal.
fn has_telling_segment(name: &[u8]) -> bool {
    let is_one = |segment: &[u8], of: &[&[u8]]| of.iter().any(|known| segment.eq_ignore_ascii_case(known));
    let is_joined = |segment: &[u8]| {
        NUMBERS.iter().any(|number| {
            let owner = segment.len().checked_sub(number.len()).and_then(|at| segment.split_at_checked(at));
            owner.is_some_and(|(owner, rest)| rest.eq_ignore_ascii_case(number) && is_one(owner, &OWNED))
        })
    };
    let mut before: &[u8] = b"";
    name.split(|byte| matches!(byte, b'-' | b'_')).any(|segment| {
        let owner = std::mem::replace(&mut before, segment);
        let telling = segment.first().map_or(&[][..], |letter| segments_from(letter | 0x20));
        is_one(segment, telling) || is_one(segment, &NUMBERS) && is_one(owner, &OWNED) || is_joined(segment)
    })
}

#[inline]
fn begins_with_word(text: &[u8]) -> bool {
    let [first, second, ..] = text else { return false };
    words_from(first | 0x20).iter().any(|word| {
        // Nearly all that is left is told apart here.
        word[1] == second | 0x20 && text.get(..word.len()).is_some_and(|start| cgi_name::is_same(start, word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_say_who_asks_are_told_by_name() {
        for name in [
            "Cookie",
            "Authorization",
            "Proxy-Authorization",
            "X-Api-Key",
            "api-key",
            "X-Pass",
            "X-Pwd",
            "X-Passphrase",
            "X-Sess",
            "X-Ssid",
            "Phpsessid",
            "Assertion",
            "X-Csrf",
            "X-Claims",
            "X-Phone",
            "X-Msisdn",
            "X-Staff",
            "X-Doctor",
            "X-Household",
            "X-Merchant",
            "X-Subscriber",
            "X-AUTH-TOKEN",
            "X-Access-Token",
            "Private-Token",
            "X-Session",
            "Client-Secret",
            "Apikey",
            "X-Amz-Security-Token",
            "Cf-Access-Jwt-Assertion",
            "X-MS-CLIENT-PRINCIPAL",
            "X-Forwarded-User",
            "X-Forwarded-Email",
            "Remote-User",
            "DPoP",
            "Signature-Input",
            "X-Password",
            "Client-Cert",
            "X-ARR-ClientCert",
            "X-Amzn-Mtls-Clientcert",
            "X-SSL-Cert",
            "X-SSL-Client-Subject",
            "k-key",
            "X-Username",
            "X-Forwarded-Preferred-Username",
            "X-Consumer-Username",
            "X-SSL-Client-S-DN",
            "X-Forwarded-Groups",
            "X-Account-Id",
            "X-On-Behalf-Of",
            "Sudo",
            "X-Member",
            "X-Bearer",
            "From",
            "Sec-Token",
            "X-Amzn-Oidc-Data",
            "X-Amzn-Oidc-Identity",
            "X-Device-Id",
            "Device-ID",
            "X-Device-UUID",
            "X-DeviceId",
            "x_device_id",
            "X-Client-Id",
            "Client-Id",
            "X-ClientID",
            "X-Visitor-Id",
            "X-Installation-Id",
            "X-MS-Anonymous-Id",
            "Passport",
            "X-Passport-Number",
            "X-Passcode",
            "X-Hmac",
            "X-License",
            "X-Licence",
            "X-Admin",
            "X-Sub",
            "X-Company",
            "X-Company-Id",
            "X-CompanyId",
            "X-WP-Nonce",
            "X-Org",
            "X-Org-Id",
            "X-OrgId",
            "X-Organization",
            "X-Organisation-Id",
            "X-Act-As",
            "X_Act_As",
            "X_On-Behalf_Of",
            "X_Api_Key",
            "Proxy_Authorization",
            "WWW_Authenticate",
            "X-Team",
            "X-TeamId",
            "X-Workspace",
            "x_workspace_id",
            "Cookie2",
            "X-Cookie",
            "X-Forwarded-Cookies",
            "X-WSSE",
            "X-PSK",
            "API-Sign",
            "X-SSO",
            "X-SSO-Uid",
            "X-SAML-Assertion",
            "X-MAC",
            "X-TOTP",
            "X-Actor",
            "X-Actor-Id",
            "X-Person",
            "X-Persona",
            "X-Profile",
            "X-Whoami",
            "X-Caller",
            "X-Delegate",
            "X-Employee",
            "X-Guest",
            "X-Visitor",
            "X-Owner",
            "X-Operator",
            "X-Requester",
            "X_Subscriber",
            "a-name-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on",
        ] {
            assert!(is_credential(FieldId::of(name.as_bytes()), name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_secret_is_what_lets_somebody_in_and_not_who_that_is() {
        for name in [
            "token",
            "access_token",
            "id-token",
            "api_key",
            "apiKey",
            "X-Api-Key",
            "key",
            "password",
            "passwd",
            "pwd",
            "client_secret",
            "sig",
            "X-Amz-Signature",
            "X-Amz-Credential",
            "sessionid",
            "JSESSIONID",
            "PHPSESSID_token",
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "Set-Cookie",
            "auth",
            "user[password]",
            "otp",
            "jwt",
        ] {
            assert!(is_secret(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "q",
            "page",
            "user",
            "email",
            "from",
            "author",
            "keyword",
            "monkey",
            "pinned",
            "sort",
            "id",
            "account",
            "lang",
            "Host",
            "Referer",
            "Accept-Language",
            "X-Forwarded-For",
        ] {
            assert!(!is_secret(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_letter_of_a_name_costs_the_few_words_that_it_begins() {
        for letter in 0..=u8::MAX {
            let words = words_from(letter);
            assert!(words.len() <= 5, "{letter}");
            for word in words {
                assert!(word[0] == letter && word.len() >= 2 && !word.iter().any(u8::is_ascii_uppercase));
                assert!(is_credential(FieldId::Other, &[b"x-a", *word, b"z"].concat()), "{letter}");
            }
            let segments = segments_from(letter);
            assert!(segments.len() <= 12, "{letter}");
            for segment in segments {
                assert!(segment[0] == letter && !segment.iter().any(u8::is_ascii_uppercase));
                assert!(is_credential(FieldId::Other, &[b"x-", *segment].concat()), "{letter}");
            }
        }
    }

    #[test]
    fn fields_that_everybody_sends_name_nobody() {
        for name in [
            "Accept",
            "Accept-Language",
            "Host",
            "User-Agent",
            "Referer",
            "Origin",
            "Cache-Control",
            "Sec-Fetch-User",
            "Sec-WebSocket-Key",
            "Sec-CH-UA",
            "Upgrade-Insecure-Requests",
            "X-Requested-With",
            "X-Tenant",
            "traceparent",
            "X-Request-ID",
            "X-Forwarded-For",
            "DNT",
            "Ke",
            "X-Client-Version",
            "X-Client-Request-Id",
            "X-Client-Trace-Id",
            "X-Device-Type",
            "X-App-Id",
            "X-Tenant-Id",
            "X-Client-IP",
            "X-Valid",
            "X-Subtitle",
            "X-Organic",
            "X-Administrative-Area",
            "X-Action",
            "X-Steam",
            "X-Design",
            "X-Assigned-Region",
            "X-Personal",
            "X-Factor",
            "X-Machine-Type",
            "CF-Visitor",
            "CloudFront-Viewer-Country",
            "CloudFront-Viewer-Country-Region-Name",
            "CloudFront-Viewer-ASN",
            "CloudFront-Viewer-JA3-Fingerprint",
            "CloudFront-Is-Mobile-Viewer",
            "X-Visitor-Country",
            "X_User_Region",
            "X-User-Agent",
            "X-Original-User-Agent",
        ] {
            assert!(!is_credential(FieldId::of(name.as_bytes()), name.as_bytes()), "{name}");
        }
    }
}
