//! Files as they are written, with their mistakes, and what comes of templates.

use super::*;

fn read(format: RowsFormat, text: &str) -> Result<Rows, String> {
    Rows::read("f", format, text.as_bytes())
}

#[test]
fn csv_and_json_lines_give_the_same_rows() {
    let csv = read(RowsFormat::Csv, "id,name\r\n7,\"a \"\"b\"\",\nc\"\n8,ü\n").expect("it is CSV");
    let json =
        read(RowsFormat::JsonLines, "{\"id\":7,\"name\":\"a \\\"b\\\",\\nc\"}\n\n{\"name\":\"ü\",\"id\":8}")
            .expect("it is JSON");
    assert_eq!(csv, json);
    // A quote in the middle of a field is one.
    let inches = read(RowsFormat::Csv, "size\n5\"\n\"6\"\"\"\n").expect("it is CSV");
    assert_eq!(inches.rows, [["5\""], ["6\""]]);
    let nested = read(RowsFormat::JsonLines, "{\"a\": [1, {\"b\": null}], \"c\": true}").expect("it is JSON");
    assert_eq!(nested.rows, [["[1,{\"b\":null}]", "true"]]);
}

#[test]
fn a_mistake_has_its_place() {
    for (format, text, said) in [
        (RowsFormat::Csv, "", "f has no row"),
        (RowsFormat::Csv, "id,name\n", "f has no row"),
        (RowsFormat::Csv, "id,id\n1,2\n", "f:1: field 2: duplicate column \"id\""),
        (RowsFormat::Csv, "id,\n1,2\n", "f:1: field 2: the column has no name"),
        (
            RowsFormat::Csv,
            "id,name\n1,a\n2\n",
            "f:3: field 2: the row has 1 fields, but the first line has 2",
        ),
        (RowsFormat::Csv, "id,name\n1,a,b\n", "f:2: field 3: the row has 3 fields"),
        (RowsFormat::Csv, "id,name\n1,\"a\n2,b\n", "f:2: field 2: the quote is not closed"),
        (RowsFormat::Csv, "id,name\n1,\"a\nb\"\"\"\n\"2,b\n", "f:4: field 1: the quote is not closed"),
        (RowsFormat::JsonLines, "{\"id\":1}\n{\"id\":,}\n", "f:2:7: expected value"),
        (RowsFormat::JsonLines, "[1]\n", "f:1:1: invalid type"),
        (RowsFormat::JsonLines, "{\"id\":1}\n{\"ID\":1}\n", "f:2:1: \"id\" is missing"),
    ] {
        let error = read(format, text).expect_err(text);
        assert!(error.starts_with(said), "{text:?}: {error}");
    }
    let error = Rows::read("f", RowsFormat::Csv, &b"id\n\xff\n"[..]).expect_err("no UTF-8");
    assert!(error.starts_with("f:2: field 1: invalid UTF-8"), "{error}");
}

#[test]
fn what_is_too_much_is_refused() {
    let many = "id\n".to_owned() + &"1\n".repeat(ROWS + 1);
    assert!(read(RowsFormat::Csv, &many).is_err_and(|error| error.contains("more than 200000 rows")));
    let endless = std::io::BufReader::new(std::io::repeat(b'x'));
    let error = Rows::read("f", RowsFormat::JsonLines, endless).expect_err("it has no end");
    assert!(error.contains("larger than 64 MB"), "{error}");
}

#[test]
fn a_template_takes_its_values_from_a_row() {
    let rows = read(RowsFormat::Csv, "id,name\n7,a b/c?d#é\n").expect("it is CSV");
    let template = |text: &str| Template::parse("the URL", text, &rows);
    let url = template("/x/{{id}}/{{ name }}").expect("both are there");
    assert_eq!(url.url(&rows.all()[0]), "/x/7/a%20b/c?d%23%C3%A9");
    assert_eq!(url.text(&rows.all()[0]), "/x/7/a b/c?d#é");
    assert_eq!(
        template("{\"plain\": {}}").map(|plain| plain.text(&rows.all()[0])),
        Ok("{\"plain\": {}}".to_owned())
    );
    assert_eq!(
        template("/é/{{Id}}"),
        Err("the URL, column 4: the data file has no \"Id\"; it has id, name".to_owned())
    );
    assert_eq!(template("/{{id}"), Err("the URL, column 2: {{ has no }}".to_owned()));
}

#[test]
fn what_only_looks_like_a_template_is_none() {
    let (double, single) = (("{{", "}}"), ("{", "}"));
    for (text, braces, name) in [
        ("/x/{{id}}/{{ name }}", double, Some("{{id}}")),
        ("/{{ first name }}", double, Some("{{ first name }}")),
        ("/{{#if}}/{{id}}", double, Some("{{id}}")),
        ("{\"a\":{\"b\":{}}}", double, None),
        ("/{{id}", double, None),
        ("/{{}}", double, None),
        ("}} {{", double, None),
        ("{{#each items}}", double, None),
        ("/x/{id}/{name}", single, Some("{id}")),
        ("/x/{}?q={\"a\":1}", single, None),
        ("/x/{id", single, None),
    ] {
        assert_eq!(name_in(text, braces), name, "{text}");
    }
}
