//! There and back, what other files are answered with, and that the published schema is of what is written.

use super::*;
use crate::report::samples;
use serde_json::json;

#[test]
fn what_is_written_is_read_again() {
    for outcome in
        [samples::closed(), samples::open(), samples::killed(), samples::failing(), samples::nothing()]
    {
        assert_eq!(read(&write(&outcome)).as_ref(), Ok(&outcome));
    }
}

#[test]
fn no_control_character_of_others_is_left_in_it() {
    let url = "http://a/\u{1b}[1m\u{7f}\u{9b}31mö";
    let outcome = Outcome { urls: vec![url.to_owned()], ..samples::closed() };
    let text = write(&outcome);
    assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text}");
    assert_eq!(read(&text).expect("what was written").urls, [url]);
}

#[test]
fn the_first_field_says_what_the_file_is() {
    assert!(write(&samples::closed()).starts_with("{\n  \"schema\": \"millstream.bench/2\",\n"));
}

#[test]
fn every_time_has_its_unit_in_its_name() {
    let written: Value = serde_json::from_str(&write(&samples::searched())).expect("JSON");
    let latency = written["latency"].as_object().expect("a latency");
    for name in ["p50_us", "p75_us", "p90_us", "p99_us", "p99_9_us", "p99_99_us", "mean_us", "max_us"] {
        assert!(latency[name].as_f64().is_some_and(|time| time > 0.0), "{name} in {latency:?}");
    }
    let mut values = vec![&written];
    while let Some(value) = values.pop() {
        let names = value.as_object().into_iter().flatten();
        for (name, inner) in names {
            let is_time = ["p50", "p99", "mean", "max", "min", "at", "warm_up", "cpu_per_answer"]
                .contains(&name.as_str());
            assert!(!is_time, "{name} has no unit");
            values.push(inner);
        }
        values.extend(value.as_array().into_iter().flatten());
    }
}

#[test]
fn other_files_are_told_apart_in_one_sentence() {
    let older = write(&samples::closed()).replacen("bench/2", "bench/1", 1);
    let damaged = write(&samples::closed()).replacen("\"answers\"", "\"answer\"", 1);
    let cases = [
        ("", "not JSON: EOF while parsing a value at line 1 column 0"),
        ("[1]", "not a file of millstream.bench: its \"schema\" must be millstream.bench/2"),
        ("{\"schema\": 1}", "not a file of millstream.bench: its \"schema\" must be millstream.bench/2"),
        ("{\"schema\": \"millstream.ladder/2\"}", "a file of millstream.ladder/2, not of millstream.bench"),
        (
            older.as_str(),
            "version 1 of millstream.bench; this program reads version 2 only: measure again, or use the program that wrote it",
        ),
        (damaged.as_str(), "the file does not match millstream.bench/2: missing field `answers`"),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text).map_err(|error| error.to_string()), Err(expected.to_owned()));
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let absent = folder.path().join("a.json");
    assert!(read_file(&absent).is_err_and(|error| error.to_string().contains("a.json: No such file")));
    std::fs::write(&absent, write(&samples::closed())).expect("the folder is writable");
    assert_eq!(read_file(&absent), Ok(samples::closed()));
    assert!(read_file(folder.path()).is_err());
}

#[test]
fn numbers_that_no_run_can_have_are_refused() {
    let with = |place: &str, value: Value| {
        let mut document: Value = serde_json::from_str(&write(&samples::closed())).expect("JSON was written");
        *document.pointer_mut(place).expect("the place is there") = value;
        read(&document.to_string()).map_err(|error| error.to_string())
    };
    assert!(with("/counts/answers", json!(1)).is_ok());
    for (place, value, words) in [
        ("/seconds", json!(-5), "invalid duration of a run"),
        ("/slices/0/seconds", json!(0), "invalid slice of a run"),
        ("/slices/3/at_seconds", json!(-1), "invalid slice of a run"),
        ("/counts/errors/tls", json!(u64::MAX), "too many requests for a run"),
    ] {
        assert!(with(place, value).is_err_and(|error| error.contains(words)), "{place}");
    }
}

#[test]
fn the_published_schema_is_the_present_one_and_holds_for_what_is_written() {
    let published = include_str!("../../../../docs/bench.schema.json");
    assert!(
        published == schema(),
        "docs/bench.schema.json is not of these types; cargo xtask docs writes it"
    );
    let schema: Value = serde_json::from_str(published).expect("the schema is JSON");
    for outcome in
        [samples::closed(), samples::open(), samples::killed(), samples::failing(), samples::nothing()]
    {
        let document: Value = serde_json::from_str(&write(&outcome)).expect("JSON was written");
        assert_eq!(breaches(&schema, &schema, &document, "$"), Vec::<String>::new());
    }
}

#[test]
fn the_schema_refuses_what_is_no_outcome() {
    let schema: Value = serde_json::from_str(&schema()).expect("the schema is JSON");
    let sound: Value = serde_json::from_str(&write(&samples::closed())).expect("JSON was written");
    let changes: [(&str, Value); 7] = [
        ("/schema", json!("millstream.bench/1")),
        ("/counts/answers", json!(-1)),
        ("/counts/errors/timeout", json!("many")),
        ("/mode", json!("half open")),
        ("/latency/p99_us", json!(-1)),
        ("/slices/0", json!({ "at_seconds": 0.0 })),
        ("/counts/statuses", json!({ "ok": 1 })),
    ];
    for (place, value) in changes {
        let mut document = sound.clone();
        *document.pointer_mut(place).expect("the place is there") = value;
        assert_ne!(breaches(&schema, &schema, &document, "$"), Vec::<String>::new(), "{place}");
    }
}

/// Where `value` is not as `schema` says: the keywords that our schema uses, after JSON Schema 2020-12. A keyword that is
/// not known here is a breach too, so that none is silently left out.
fn breaches(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let Some(keywords) = schema.as_object() else {
        return if schema == &json!(false) { vec![format!("{place}: not allowed")] } else { Vec::new() };
    };
    let mut found = Vec::new();
    for (keyword, rule) in keywords {
        let broken =
            |is_broken: bool| if is_broken { vec![format!("{place}: {keyword} {rule}")] } else { Vec::new() };
        found.extend(match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" => Vec::new(),
            "$ref" => {
                let target = rule.as_str().and_then(|rule| root.pointer(rule.trim_start_matches('#')));
                target.map_or_else(|| broken(true), |target| breaches(root, target, value, place))
            }
            "type" => broken(!is_of_type(rule, value)),
            "const" => broken(rule != value),
            "enum" => broken(!rule.as_array().is_some_and(|allowed| allowed.contains(value))),
            "minimum" => {
                broken(value.as_f64().zip(rule.as_f64()).is_some_and(|(value, least)| value < least))
            }
            "maximum" => broken(value.as_f64().zip(rule.as_f64()).is_some_and(|(value, most)| value > most)),
            "minItems" => {
                broken(length(value).zip(rule.as_u64()).is_some_and(|(length, least)| length < least))
            }
            "maxItems" => {
                broken(length(value).zip(rule.as_u64()).is_some_and(|(length, most)| length > most))
            }
            "required" => rule
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .filter(|name| value.is_object() && value.get(name).is_none())
                .map(|name| format!("{place}: {name} is missing"))
                .collect(),
            "properties" => rule
                .as_object()
                .into_iter()
                .flatten()
                .filter_map(|(name, rule)| Some((name, rule, value.get(name)?)))
                .flat_map(|(name, rule, value)| breaches(root, rule, value, &format!("{place}.{name}")))
                .collect(),
            "items" => {
                let first = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .enumerate()
                    .skip(first)
                    .flat_map(|(number, item)| breaches(root, rule, item, &format!("{place}[{number}]")))
                    .collect()
            }
            "prefixItems" => rule
                .as_array()
                .into_iter()
                .flatten()
                .zip(value.as_array().into_iter().flatten())
                .enumerate()
                .flat_map(|(number, (rule, item))| breaches(root, rule, item, &format!("{place}[{number}]")))
                .collect(),
            "additionalProperties" => others(schema, value)
                .flat_map(|(name, item)| breaches(root, rule, item, &format!("{place}.{name}")))
                .collect(),
            "patternProperties" => numbered(rule, value)
                .flat_map(|(rule, name, item)| breaches(root, rule, item, &format!("{place}.{name}")))
                .collect(),
            "oneOf" | "anyOf" => {
                let fitting = rule
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|rule| breaches(root, rule, value, place).is_empty())
                    .count();
                broken(if keyword == "oneOf" { fitting != 1 } else { fitting == 0 })
            }
            _ => vec![format!("{place}: {keyword} is not known to this test")],
        });
    }
    found
}

fn length(value: &Value) -> Option<u64> {
    value.as_array().map(|items| items.len() as u64)
}

fn is_of_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        _ => false,
    };
    match rule {
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        name => name.as_str().is_some_and(is),
    }
}

/// Properties that neither `properties` nor `patternProperties` names.
fn others<'a>(schema: &'a Value, value: &'a Value) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.as_object().into_iter().flatten().filter(|(name, _)| {
        let is_named =
            schema.get("properties").is_some_and(|properties| properties.get(name.as_str()).is_some());
        let is_numbered = schema.get("patternProperties").is_some() && is_number(name);
        !is_named && !is_numbered
    })
}

/// Properties whose names are numbers, each with its rule: the only pattern that a map by number has.
fn numbered<'a>(
    patterns: &'a Value,
    value: &'a Value,
) -> impl Iterator<Item = (&'a Value, &'a String, &'a Value)> {
    let rule = patterns
        .as_object()
        .filter(|patterns| patterns.len() == 1)
        .and_then(|patterns| patterns.get(r"^\d+$"));
    let rule = rule.expect("a map by number has this one pattern");
    value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| is_number(name))
        .map(move |(name, item)| (rule, name, item))
}

fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}
