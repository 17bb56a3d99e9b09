//! Names, epochs, and which file counts.

use super::*;
use millstream_wire::Headers;

const KEY: &[u8] = b"key";

fn language(value: &[u8]) -> Headers {
    let mut headers = Headers::default();
    headers.push(b"Accept-Language", value);
    headers
}

fn fields() -> VaryFields {
    VaryFields::new(vec![Box::from(&b"accept-language"[..])])
}

fn values(of: &Headers) -> Vec<u8> {
    let mut values = Vec::new();
    fields().write(of.view(), &mut values);
    values
}

#[test]
fn the_first_variant_gets_the_keys_own_file_and_the_others_one_beside_it_with_its_epoch() {
    let (german, french) = (values(&language(b"de")), values(&language(b"fr")));
    let first = place(KEY, None, Some(&german), || 7);
    assert_eq!(first, FilePlace { name: key::md5(KEY), epoch: 7, is_own: true });
    let base = BaseFile { epoch: first.epoch, values: Some(german.as_slice().into()) };
    let second = place(KEY, Some(&base), Some(&french), || unreachable!("there is an epoch"));
    let name = key::md5_of_variant(KEY, &french);
    assert_eq!(second, FilePlace { name, epoch: 7, is_own: false });
    // Written anew, each stays where it is.
    assert_eq!(place(KEY, Some(&base), Some(&german), || 8), first);
    for (values, place) in [(&german, first), (&french, second)] {
        assert_eq!(name_of(KEY, Some(&base), Some(values)), place.name);
        assert_eq!(is_beside(Some(&base), Some(values)), !place.is_own);
    }
    let all: Vec<_> = names(KEY, &[french.as_slice().into()]).collect();
    assert_eq!(all, [first.name, second.name]);
}

#[test]
fn a_file_beside_the_own_one_counts_only_with_its_epoch_its_fields_and_the_values_asked_for() {
    let (german, french) = (values(&language(b"de")), values(&language(b"fr")));
    let own = OwnFile::of(7, Some((fields(), german.as_slice().into())));
    assert_eq!(own.wanted(KEY, language(b"de").view()), Wanted::Own);
    let Wanted::Beside(name, wanted) = own.wanted(KEY, language(b"fr").view()) else {
        panic!("another file")
    };
    assert_eq!((name, &wanted), (key::md5_of_variant(KEY, &french), &french));
    let beside = |epoch, values: Option<&Vec<u8>>| {
        let vary = values.map(|values| (fields(), values.as_slice().into()));
        own.beside(&wanted, epoch, vary).map(|variant| variant.values.to_vec())
    };
    assert_eq!(beside(7, Some(&french)), Some(french.clone()));
    assert_eq!(beside(8, Some(&french)), None);
    assert_eq!(beside(7, Some(&german)), None);
    assert_eq!(beside(7, None), None);
}

#[test]
fn a_key_that_does_not_vary_has_its_own_file_alone() {
    let own = OwnFile::of(7, None);
    assert_eq!(own.wanted(KEY, language(b"fr").view()), Wanted::Own);
    assert!(own.base().values.is_none() && own.beside(b"x", 7, None).is_none());
}
