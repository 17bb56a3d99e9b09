//! Values as scripts see them: what an expression captured is escaped where it goes into a query or a URL.
//!
//! As in nginx only of a request whose path came with escapes or a plus: else nothing in it can need them.

use crate::request::Request;
use crate::variables;
use millstream_conf::model::{Part, Template, Variable};
use millstream_wire::target;

pub(super) fn of(template: &Template, request: &Request, escapes: bool) -> Vec<u8> {
    let mut out = Vec::new();
    append(template, request, escapes, &mut out);
    out
}

/// With `escapes` captures are percent-encoded as parts of a query.
pub(super) fn append(template: &Template, request: &Request, escapes: bool, out: &mut Vec<u8>) {
    if !(escapes && came_escaped(request)) {
        return variables::evaluate(template, request, out);
    }
    for part in &template.parts {
        match part {
            Part::Literal(text) => out.extend_from_slice(text.as_bytes()),
            Part::Variable(variable @ Variable::Capture(_)) => {
                let mut raw = Vec::new();
                variables::append(variable, request, &mut raw);
                target::escape_argument(&raw, out);
            }
            Part::Variable(variable) => {
                variables::append(variable, request, out);
            }
        }
    }
}

fn came_escaped(request: &Request) -> bool {
    memchr::memchr2(b'%', b'+', request.received.head.path.of(&request.received.bytes)).is_some()
}
