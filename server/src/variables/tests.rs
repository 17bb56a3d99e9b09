//! What the variables say of a request, and that what cannot be known is told apart from what is empty.

use super::{Found, append, evaluate};
use crate::admission;
use crate::fixture::{admitted, parsed, variable, worker};
use crate::request::{Arguments, Request};
use millstream_conf::model::{Part, Template, Variable};

const HEAD: &str = "GET /a%20b/./c?x=1&Y=two&empty= HTTP/1.1\r\nHost: Api.Example:8080\r\nCookie: a=1; b=2\r\n\
    X-Thing: one\r\nX-Thing: two\r\nContent-Type: text/x\r\nContent-Type: text/y\r\nAuthorization: Basic dXNlcjpwYXNz\r\n\
    X-Forwarded-For: 203.0.113.9\r\n\r\n";

fn request(head: &str) -> Request {
    admitted(&worker("server { listen 80; server_name api.example; root /srv/$host; }"), head)
}

fn read(request: &Request, template: &Template) -> Option<String> {
    let Part::Variable(variable) = &template.parts[0] else { panic!("it is one variable") };
    let mut out = Vec::new();
    let found = append(variable, request, &mut out);
    (found == Found::Value).then(|| String::from_utf8_lossy(&out).into_owned())
}

fn family(variable: Variable) -> Template {
    Template { parts: [Part::Variable(variable)].into(), source: "".into() }
}

#[test]
fn variables_of_the_request_are_as_in_nginx() {
    let request = request(HEAD);
    let check = |name: &str, expected: Option<&str>| {
        assert_eq!(read(&request, &variable(name)).as_deref(), expected, "{name}");
    };
    check("uri", Some("/a b/c"));
    check("document_uri", Some("/a b/c"));
    check("request_uri", Some("/a%20b/./c?x=1&Y=two&empty="));
    check("request", Some("GET /a%20b/./c?x=1&Y=two&empty= HTTP/1.1"));
    check("args", Some("x=1&Y=two&empty="));
    check("is_args", Some("?"));
    check("request_method", Some("GET"));
    check("host", Some("api.example"));
    check("server_name", Some("api.example"));
    check("server_port", Some("8080"));
    check("server_addr", Some("198.51.100.1"));
    check("remote_addr", Some("192.0.2.1"));
    check("remote_port", Some("4000"));
    check("remote_user", Some("user"));
    check("scheme", Some("http"));
    check("https", Some(""));
    check("content_type", Some("text/x, text/y"));
    check("content_length", None);
    check("proxy_add_x_forwarded_for", Some("203.0.113.9, 192.0.2.1"));
    check("document_root", Some("/srv/api.example"));
    check("request_filename", Some("/srv/api.example/a b/c"));
    check("status", Some("000"));
    check("connection", Some("7"));
    check("pipe", Some("."));
    check("upstream_addr", None);
    check("upstream_cache_status", None);
    check("gzip_ratio", None);
    check("ssl_protocol", None);
}

#[test]
fn names_of_fields_are_those_of_credentials_or_those_that_may_matter() {
    let lines = "X-Api-Key: k\r\nX-Region: eu\r\nAccept: a/b\r\nOrigin: http://a\r\nX-Request-Id: 1\r\nDNT: 1\r\n\r\n";
    let asked = request(&HEAD.replace("\r\n\r\n", &format!("\r\n{lines}")));
    let read_of = |request: &Request, name: &str| read(request, &variable(name));
    assert_eq!(read_of(&asked, "credential_fields").as_deref(), Some("authorization,x-api-key"));
    let expected = "x-thing,x-thing,content-type,content-type,x-region,dnt";
    assert_eq!(read_of(&asked, "unlisted_fields").as_deref(), Some(expected));
    assert_eq!(read_of(&request("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "unlisted_fields"), None);
}

#[test]
fn families_of_variables_find_their_value_by_name() {
    let request = request(HEAD);
    let check = |variable: Variable, expected: Option<&str>| {
        assert_eq!(read(&request, &family(variable)).as_deref(), expected);
    };
    check(Variable::RequestHeader("x-thing".into()), Some("one, two"));
    check(Variable::RequestHeader("x-none".into()), None);
    check(Variable::Cookie("b".into()), Some("2"));
    check(Variable::Cookie("c".into()), None);
    check(Variable::Argument("x".into()), Some("1"));
    check(Variable::Argument("y".into()), Some("two"));
    check(Variable::Argument("empty".into()), Some(""));
    check(Variable::Argument("none".into()), None);
    check(Variable::UpstreamHeader("x".into()), None);
    check(Variable::Capture(1), None);
}

#[test]
fn the_authority_of_an_absolute_target_is_the_host_everywhere() {
    for (head, port) in [
        ("GET http://api.example:81/x HTTP/1.1\r\nHost: evil.test\r\n\r\n", ":81"),
        ("GET http://api.example/x HTTP/1.0\r\n\r\n", ""),
    ] {
        let request = request(head);
        assert_eq!(read(&request, &variable("host")).as_deref(), Some("api.example"));
        let field = read(&request, &family(Variable::RequestHeader("host".into())));
        assert_eq!(field.as_deref(), Some(format!("api.example{port}").as_str()));
        assert_eq!(read(&request, &variable("request_uri")).as_deref(), Some("/x"));
    }
}

#[test]
fn a_status_that_is_on_its_way_is_known_before_it_is_sent() {
    let mut request = request(HEAD);
    request.descent.error_status = Some(404);
    assert_eq!(read(&request, &variable("status")).as_deref(), Some("404"));
    request.descent.error_status = None;
    request.sent.status = 200;
    assert_eq!(read(&request, &variable("status")).as_deref(), Some("200"));
}

#[test]
fn a_field_as_sent_is_read_from_the_head() {
    let mut request = request(HEAD);
    request.sent.head = b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a:2\r\nX-B: \r\n\r\n".to_vec();
    let sent = |name: &str| read(&request, &family(Variable::SentHeader(name.into())));
    assert_eq!(sent("x-a").as_deref(), Some("1, 2"));
    assert_eq!(sent("x-b").as_deref(), Some(""));
    assert_eq!(sent("x-c"), None);
}

#[test]
fn an_internal_redirect_without_a_query_leaves_none() {
    let mut request = request(HEAD);
    request.route.arguments = Arguments::Replaced(Vec::new());
    assert_eq!(read(&request, &variable("args")), None);
    assert_eq!(read(&request, &variable("is_args")).as_deref(), Some(""));
}

#[test]
fn a_template_is_its_parts_one_after_the_other() {
    let request = request(HEAD);
    let host = variable("host").parts[0].clone();
    let parts = [Part::Literal("<".into()), host, Part::Literal(">".into())];
    let mut out = b"=".to_vec();
    evaluate(&Template { parts: parts.into(), source: "".into() }, &request, &mut out);
    assert_eq!(out, b"=<api.example>");
}

#[test]
fn requests_that_cannot_be_trusted_are_refused_with_their_status() {
    let worker = worker("server { listen 80; }");
    let check = |head: &str, status: u16| {
        assert_eq!(admission::admit(&mut parsed(&worker, head)), Err(status), "{head}");
    };
    check("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400);
    check("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400);
    check("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501);
    check("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405);
    check("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", 405);
    check("GET /../../etc HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    check("GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    check("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400);
}

#[test]
fn a_request_that_could_not_be_read_says_nothing_of_the_one_before() {
    let mut request = request("POST /x?y HTTP/1.0\r\nHost: other\r\n\r\n");
    let (connection, now) = (request.connection.clone(), request.received.started);
    request.reset(connection, now);
    let check = |name: &str, expected: Option<&str>| {
        assert_eq!(read(&request, &variable(name)).as_deref(), expected, "{name}");
    };
    check("request_method", None);
    check("request_uri", None);
    check("uri", None);
    check("args", None);
    check("host", Some("api.example"));
    check("request_length", Some("0"));
}
