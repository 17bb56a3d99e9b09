//! `proxy_cache_ignore_args`: arguments of the query that tell no response apart, and so are no part of a key. The upstream is sent them.
//!
//! What is left stays as it was written, in its order. Only what a key takes from the query whole is changed: `$args`,
//! `$query_string`, `$is_args`, `$request_uri` and its like, not `$arg_name`. Next: `keyed`.

use crate::request::Request;
use crate::variables;
use millstream_conf::model::{IgnoredArg, Variable};
use millstream_conf::variables::Builtin;

pub fn append(variable: &Variable, request: &Request, ignored: &[IgnoredArg], key: &mut Vec<u8>) {
    let start = key.len();
    variables::append(variable, request, key);
    if ignored.is_empty() {
        return;
    }
    match variable {
        Variable::Builtin(Builtin::Args | Builtin::QueryString) => {
            let query = key.split_off(start);
            append_kept(&query, ignored, key);
        }
        Variable::Builtin(Builtin::IsArgs) => {
            let mut kept = Vec::new();
            append_kept(request.query().unwrap_or_default(), ignored, &mut kept);
            if kept.is_empty() {
                key.truncate(start);
            }
        }
        Variable::SentTarget | Variable::Builtin(Builtin::RequestUri | Builtin::Request) => {
            let value = key.split_off(start);
            append_without(&value, ignored, key);
        }
        _ => {}
    }
}

/// Without the question mark if no argument is left.
fn append_without(value: &[u8], ignored: &[IgnoredArg], key: &mut Vec<u8>) {
    let Some(mark) = memchr::memchr(b'?', value) else { return key.extend_from_slice(value) };
    let (path, query) = (&value[..mark], &value[mark + 1..]);
    let (query, behind) = query.split_at(memchr::memchr(b' ', query).unwrap_or(query.len()));
    key.extend_from_slice(path);
    let end = key.len();
    key.push(b'?');
    append_kept(query, ignored, key);
    if key.len() == end + 1 && !query.is_empty() {
        key.truncate(end);
    }
    key.extend_from_slice(behind);
}

fn append_kept(query: &[u8], ignored: &[IgnoredArg], out: &mut Vec<u8>) {
    let is_kept = |argument: &&[u8]| {
        // Some take `;` for a separator too: to them, more arguments may follow it.
        if memchr::memchr(b';', argument).is_some() {
            return true;
        }
        let name = argument.split(|byte| *byte == b'=').next().unwrap_or_default();
        !ignored.iter().any(|ignored| ignored.names(name))
    };
    for (at, argument) in query.split(|byte| *byte == b'&').filter(is_kept).enumerate() {
        if at > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(argument);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_query_is_as_it_was_written() {
        let ignored = ["utm_*", "gclid", "*_src", "a*z"].map(IgnoredArg::new);
        for (target, expected) in [
            ("/x", "/x"),
            ("/x?", "/x?"),
            ("/x?a=1&b=%20", "/x?a=1&b=%20"),
            ("/x?utm_source=n", "/x"),
            ("/x?utm_source=n&gclid", "/x"),
            ("/x?b=2&utm_medium=m&a=1", "/x?b=2&a=1"),
            ("/x?GCLID=1&b", "/x?b"),
            ("/x?my_src=1&src=2", "/x?src=2"),
            ("/x?abz=1&az=2&abzc=3&a=4", "/x?abzc=3&a=4"),
            ("/x?gclid2=1&utm=2", "/x?gclid2=1&utm=2"),
            ("/x?a&&b=&utm_x", "/x?a&&b="),
            ("/x?utm_source=n;b=1", "/x?utm_source=n;b=1"),
            ("/x?gclid;b&a=1&utm_x", "/x?gclid;b&a=1"),
            ("/x?utm_x;&a=1;gclid=2", "/x?utm_x;&a=1;gclid=2"),
            ("/x?utm_x=a%3bb=1&gclid=%26", "/x"),
            ("/x?q=utm_source&b=gclid=1", "/x?q=utm_source&b=gclid=1"),
            ("GET /x?gclid=1 HTTP/1.1", "GET /x HTTP/1.1"),
            ("GET /x?b&gclid=1 HTTP/1.1", "GET /x?b HTTP/1.1"),
        ] {
            let mut key = b"k".to_vec();
            append_without(target.as_bytes(), &ignored, &mut key);
            assert_eq!(String::from_utf8_lossy(&key), format!("k{expected}"), "{target}");
        }
    }
}
