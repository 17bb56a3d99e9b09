//! `docs/openapi.json`: the table of endpoints as OpenAPI 3.1 has it. `xtask` writes the file; the binary has no need of it.

use super::shapes::SHAPES;
use super::{AnswerBody, Audience, ENDPOINTS, Endpoint, Operation, REFUSED};
use millstream_wire::Method;
use serde_json::{Map, Value, json};

pub fn openapi() -> String {
    let paths: Map<String, Value> =
        ENDPOINTS.iter().map(|endpoint| (endpoint.path.to_owned(), path(endpoint))).collect();
    let schemas: Map<String, Value> =
        SHAPES.iter().map(|(name, made_of)| ((*name).to_owned(), made_of.schema())).collect();
    let page = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Millstream",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The endpoints of the `dashboard` listener: the API in the format of NGINX Plus (version \
            9), endpoints for the cache, metrics, and health probes. HEAD is available wherever GET is.",
            "license": { "name": env!("CARGO_PKG_LICENSE") },
        },
        "servers": [{ "url": "http://127.0.0.1:8081" }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "The `api_token`, if one is configured." },
            },
        },
    });
    // A value of strings, numbers and lists is always JSON.
    let mut text = serde_json::to_string_pretty(&page).unwrap_or_default();
    text.push('\n');
    text
}

fn path(endpoint: &Endpoint) -> Value {
    let mut told: Map<String, Value> = endpoint
        .operations
        .iter()
        .map(|operation| (method(operation).to_ascii_lowercase(), described(operation)))
        .collect();
    let names = endpoint.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameters: Vec<Value> = names
        .map(|name| {
            json!({
                "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 },
                "description": "Write a slash in the name as %2F.",
            })
        })
        .collect();
    if !parameters.is_empty() {
        told.insert("parameters".to_owned(), parameters.into());
    }
    Value::Object(told)
}

fn method(operation: &Operation) -> &'static str {
    operation.method.name().unwrap_or_default()
}

fn described(operation: &Operation) -> Value {
    let mut answers = Map::new();
    let mut put = |status: u16, shape: &AnswerBody| {
        answers
            .insert(status.to_string(), json!({ "description": meaning(status), "content": content(shape) }));
    };
    for (status, shape) in operation.answers {
        put(*status, shape);
    }
    if operation.audience != Audience::Everybody {
        put(403, &REFUSED);
    }
    // A head that is none, or too long, is refused before anybody knows what it asks for.
    for status in ["400", "414"] {
        let html = content(&AnswerBody::Text(&["text/html"]));
        let answer = answers.entry(status).or_insert_with(
            || json!({ "description": "The request is malformed or too long.", "content": {} }),
        );
        answer["content"]["text/html"] = html["text/html"].clone();
    }
    let mut told = json!({ "summary": operation.says, "responses": answers });
    if operation.audience == Audience::Admitted {
        told["security"] = json!([{ "token": [] }, {}]);
    }
    if !operation.query.is_empty() {
        let parameter = |(name, says, required): &(&str, &str, bool)| json!({ "name": name, "in": "query", "description": says, "required": required, "schema": { "type": "string" } });
        told["parameters"] = operation.query.iter().map(parameter).collect();
    }
    if let Some(shape) = operation.body {
        let required = operation.method != Method::Delete;
        told["requestBody"] = json!({ "required": required, "content": content(&AnswerBody::Json(shape)) });
    }
    told
}

fn content(shape: &AnswerBody) -> Value {
    match shape {
        AnswerBody::Json(name) => {
            json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } })
        }
        AnswerBody::Text(types) => {
            let each =
                types.iter().map(|kind| ((*kind).to_owned(), json!({ "schema": { "type": "string" } })));
            Value::Object(each.collect())
        }
    }
}

fn meaning(status: u16) -> &'static str {
    match status {
        200 => "The request succeeded.",
        201 => "The server was created; Location contains its address.",
        400 => "The arguments or the body are invalid.",
        403 => "Only clients on this machine, or those admitted by api_allow or api_token, have access.",
        404 => "No object has this name.",
        405 => "This API is read-only; Allow lists the methods of the path.",
        413 => "The body is longer than 64 KiB.",
        415 => "The body is not application/json.",
        500 => "The change could not be written to disk.",
        503 => "Temporarily unavailable.",
        _ => "",
    }
}
