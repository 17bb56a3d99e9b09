//! Scripts as instructions, and what is wrong with those that are none.

use std::path::Path;

use super::{Condition, FileKind, Goal, Instruction, Settable, Then};
use crate::load_text;
use crate::model::{Configuration, Location};

fn loaded(server: &str) -> Result<Configuration, String> {
    let text = format!("events {{}} http {{ server {{ {server} }} }}");
    let loaded = load_text("test.conf", &text, Path::new("/prefix"));
    let findings = loaded.diagnostics.sorted().into_iter().map(|finding| finding.message.clone());
    let findings: Vec<String> = findings.collect();
    loaded.configuration.ok_or_else(|| findings.join("; "))
}

fn own(configuration: &Configuration) -> &Location {
    configuration.http.location(configuration.http.servers[0].own)
}

fn script(server: &str) -> String {
    let configuration = loaded(server).expect("it is a configuration");
    let instructions =
        own(&configuration).settings.rewrite.script.iter().map(|instruction| match instruction {
            Instruction::Set { target: Settable::Slot(number), value } => {
                format!("{}={}", configuration.http.slots[usize::from(*number)].name, value.source)
            }
            Instruction::Set { target: Settable::Arguments, value } => format!("args={}", value.source),
            Instruction::Set { target: Settable::LimitRate, value } => format!("limit_rate={}", value.source),
            Instruction::If { condition, otherwise, .. } => {
                format!("if {} else {otherwise}", told(condition))
            }
            Instruction::Rewrite(rule) => {
                let keeps = if rule.keeps_arguments { "+" } else { "" };
                match &rule.goal {
                    Goal::Uri { path, arguments, then } => {
                        let part = |parts: &crate::template::Template| format!("{:?}", parts.parts.len());
                        let arguments = arguments.as_ref().map_or("-".to_owned(), part);
                        let then = match then {
                            Then::Next => "next",
                            Then::Last => "last",
                            Then::Break => "break",
                        };
                        format!("rewrite {}?{arguments}{keeps} {then}", part(path))
                    }
                    Goal::Redirect { status, has_query, .. } => {
                        format!("redirect {status} {has_query}{keeps}")
                    }
                }
            }
            Instruction::Return(rule) => format!("return {}", rule.status),
            Instruction::Break => "break".to_owned(),
        });
    instructions.collect::<Vec<_>>().join(", ")
}

fn told(condition: &Condition) -> String {
    let sign = |negated: &bool| if *negated { "!" } else { "" };
    match condition {
        Condition::Holds(variable) => variable.source.to_string(),
        Condition::Equals { variable, value, negated } => {
            format!("{} {}= {}", variable.source, sign(negated), value.source)
        }
        Condition::Matches { variable, regex, negated } => {
            let case = if regex.ignore_case { "*" } else { "" };
            format!("{} {}~{case} {}", variable.source, sign(negated), regex.source)
        }
        Condition::File { path, kind, negated } => {
            let kind = match kind {
                FileKind::File => "f",
                FileKind::Directory => "d",
                FileKind::Anything => "e",
                FileKind::Executable => "x",
            };
            format!("{}-{kind} {}", sign(negated), path.source)
        }
    }
}

#[test]
fn a_script_is_its_directives_in_the_order_of_the_file() {
    for (text, expected) in [
        ("set $a b; set $A \"$a c\"; break;", "a=b, a=$a c, break"),
        ("set $args x=1; return 204;", "args=x=1, return 204"),
        ("if ($arg_a) { set $b 1; return 403; } set $c 2;", "if $arg_a else 3, b=1, return 403, c=2"),
        ("if ($uri = /x) { } break;", "if $uri = /x else 1, break"),
        ("if ( $uri != \"/a b\" ) { break; }", "if $uri != /a b else 2, break"),
        ("if ($uri ~ ^/(.*)$) { break; }", "if $uri ~ ^/(.*)$ else 2, break"),
        ("if ($uri !~* \"\\.php$\") { break; }", "if $uri !~* \\.php$ else 2, break"),
        ("if (-f $document_root/x) { break; }", "if -f $document_root/x else 2, break"),
        ("if (!-e $request_filename) { break; }", "if !-e $request_filename else 2, break"),
        ("if (-d /a) { } if (!-x /b) { }", "if -d /a else 1, if !-x /b else 2"),
        ("if ($uri = '') { break; }", "if $uri =  else 2, break"),
        ("rewrite ^/(.*)$ /x/$1;", "rewrite 2?-+ next"),
        ("rewrite ^/(.*)$ /x?a=$1&b last;", "rewrite 1?3+ last"),
        ("rewrite ^/(.*)$ /x? break;", "rewrite 1?- break"),
        ("rewrite ^ https://$host/x?y=1?;", "redirect 302 true"),
        ("rewrite ^ /x permanent; rewrite ^ /y redirect;", "redirect 301 false+, redirect 302 false+"),
    ] {
        assert_eq!(script(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_script_is_told_as_in_nginx() {
    for (text, expected) in [
        ("if $uri { }", "invalid condition \"$uri\""),
        ("if (uri) { }", "invalid condition \"uri\""),
        ("if ($uri == /x) { }", "unexpected \"==\" in condition"),
        ("if ($uri = ) { }", "invalid condition \"$uri\""),
        ("if (-y /x) { }", "invalid condition \"-y\""),
        ("if ($uri) { if ($uri) { } }", "\"if\" directive is not allowed here"),
        ("if ($uri) { proxy_pass http://x; }", "\"proxy_pass\" directive is not allowed here"),
        ("set a b;", "invalid variable name \"a\""),
        ("set $uri b;", "the duplicate \"uri\" variable"),
        ("set $a $nothing;", "unknown \"nothing\" variable"),
        ("rewrite ^ \"\";", "empty replacement"),
        ("rewrite ^ /x lsat;", "invalid value \"lsat\""),
        (
            "location / { if ($uri) { proxy_pass http://127.0.0.1:1/x; } }",
            "\"proxy_pass\" cannot have URI part in an \"if\"",
        ),
        ("location / { if ($arg_a) { proxy_pas http://a; } }", "unknown directive \"proxy_pas\""),
        ("location / { if ($arg_a) { return nothing; } }", "invalid return code \"nothing\""),
        ("location / { if ($uri) { location /x { } } }", "\"location\" directive is not allowed here"),
    ] {
        assert_eq!(loaded(text).err().as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn an_if_in_a_location_has_all_settings_and_takes_what_it_leaves_open() {
    let configuration = loaded(
        "location /a/ {
            if ($arg_b) { add_header X-If 1; }
            if ($arg_c) { proxy_pass http://127.0.0.1:2; set $d 1; }
            root /files; proxy_pass http://127.0.0.1:1/x/; send_timeout 7s;
        }",
    )
    .expect("it is a configuration");
    let http = &configuration.http;
    let location = http.location(http.servers[0].locations.prefixes[0].1);
    let [first, second] = location.faces[..] else { panic!("it has two") };
    let script = &location.settings.rewrite.script;
    let entered = |instruction: &Instruction| match instruction {
        Instruction::If { location, .. } => *location,
        _ => None,
    };
    assert_eq!((entered(&script[0]), entered(&script[1]), script.len()), (Some(first), Some(second), 3));
    for (id, headers, uri) in [(first, 1, Some("/x/")), (second, 0, None)] {
        let settings = &http.location(id).settings;
        let pass = settings.pass().expect("it passes on");
        assert_eq!(
            (settings.headers.add.len(), pass.http().and_then(|http| http.uri.as_deref())),
            (headers, uri)
        );
        assert_eq!(settings.files.root.path.as_literal(), Some("/files"));
        assert_eq!(settings.send.timeout.as_secs(), 7);
        assert!(settings.rewrite.script.is_empty());
    }
}
