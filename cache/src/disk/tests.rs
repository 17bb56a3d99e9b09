//! Names and places of files.

use super::*;

#[test]
fn names_are_read_as_they_are_written_and_nothing_else_is_a_name() {
    let name: Name = std::array::from_fn(|at| (at * 17) as u8);
    assert_eq!(name_of(hex(&name).as_bytes()), Some(name));
    for text in ["", "0", &"0".repeat(31), &"0".repeat(33), &"g".repeat(32), &"A".repeat(32)] {
        assert_eq!(name_of(text.as_bytes()), None, "{text}");
    }
}
