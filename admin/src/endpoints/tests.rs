//! The table against the paths that are read, and against itself.

use super::shapes::SHAPES;
use super::{ENDPOINTS, openapi};
use crate::resource;
use serde_json::Value;

#[test]
fn every_path_of_the_table_is_read_as_what_has_its_row() {
    for endpoint in ENDPOINTS {
        let sent = endpoint.path.replace("{upstream}", "a").replace("{zone}", "a").replace("{id}", "1");
        let named = resource::beside_page(&sent[1..]);
        let row = named.as_ref().and_then(super::of);
        let same = endpoint.path.ends_with("/metrics") || row.is_some_and(|row| row.path == endpoint.path);
        assert!(same, "{}: {named:?}", endpoint.path);
    }
}

#[test]
fn every_figure_of_the_api_has_a_row() {
    for path in ["", "http/"] {
        for name in super::Subject::names(!path.is_empty()) {
            let named = resource::beside_page(&format!("api/9/{path}{name}"));
            assert!(named.as_ref().and_then(super::of).is_some(), "{path}{name}");
        }
    }
    for unknown in ["api/9/nginx/a", "api/9/http/upstreams/a/peers", "api/9/http/upstreams/a/servers/1/b"] {
        let named = resource::beside_page(unknown);
        assert!(named.as_ref().and_then(super::of).is_none(), "{unknown}");
    }
}

#[test]
fn every_shape_is_named_and_every_name_has_a_shape() {
    let page: Value = serde_json::from_str(&openapi()).expect("JSON");
    let text = page.to_string();
    for (name, _) in SHAPES {
        assert!(text.contains(&format!("schemas/{name}\"")), "nothing is of the shape {name}");
    }
    let named = text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next());
    for name in named {
        assert!(SHAPES.iter().any(|(known, _)| *known == name), "{name} has no shape");
    }
}
