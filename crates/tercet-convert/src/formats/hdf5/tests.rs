//! Files of h5py, compressed.

use std::io::Read;
use std::sync::Arc;

use base64::Engine;
use tercet_core::source::Memory;

use super::*;
use crate::arrays::{Fate, OutputFormat};

/// Links in the header of a group.
const COMPACT: &str = "\
    6/RwcePlkuJi5uBggIH/UMADFTKAihs8O3LJ38MliImhgkkIWSEMcDExMDIwsPEwACnGxM1QbWzCQD6HA0tOZl42JwNDhl6GKYN+\
    IgMbP0iYkSUlMS+dlUE/L78gFawTKFScn1bCBFQDNSl9PyPMaZsfvdsPdgJQmFGEgYGJkZGRGSoHp3kYGAWATmcB8xQYWIGuYubi\
    ALqYmZEB6iUemIE7GIYsYLXxNCYmOvgQ4czCAApmBjdqOWHmwsPHGEbBKBgFo2AUDFEAql2ZgBgA";

/// Links in a symbol table; marked as NetCDF-4, with empty attributes.
const SYMBOLS: &str = "\
    7ZnNTsJAEMdn29JUglqjB/RE9OJN4smLBwNoDwaIevCmGCtwkJJCTHwDvfkYHH0Ejx59I9zuzkJ3/YxGE2B+kPzZ2dnZ7XZmm9D7\
    oLw/n13LQoLngQM+pBkirQ29rfrPURnqHerAUnZH9OXR7mP8gi3bD2g/OapUEu+hgZrnyZFaAGIWCSp79URPsb2D+mzpfg3Uy0an\
    mehWJ+qGXHvRVV+00aFp5O1HebWE+WrmdQ4CHL8AK+DBWbVUj/lUcb8d9rh9lTEx0h/N4WnzzY1NwpbDFTBwIanC8Lrbv+XtZSb7\
    LfGV/SwViGFlMSYNWFYp9YWrz+dyUlea4bOIuJbF5FJkHFsF5CtK8931AbT+NS+Oq7VycsbgVsKj/bm/b5xrKn3yhl8R1XP1PFGJ\
    UnT1vDHjbU5YfTHxGe+Dynvzes06VPtZd/V4F0Z9Bb9eX+aP8z73bt6Pn1DTyUGpdshSN1I7nzg3YdxrR53dbWPcyyI9kwiCIAiC\
    IAiCIAhiksD/7978JgiCIAhiOvnqvXthXapHWzWTyPerbHT/By7tyU94BQ==";

/// Links in a fractal heap.
const DENSE: &str = "\
    6/RwcePlkuJi5uBggIH/UMADFTKAihs8O3LJ38MliImhh0kIJHAcKhHJCKG5mBhArBwGuoJi7po3bkEeAQzsQA4TgwADhkecoe6r\
    h9JAVag0FPATaSMLkk6IkQpA+jsLTEz+UTm3U4iHCwMrSB03UCRF4yIjzA6YLQVsCw+4BQNVMcDcx8iASiPsC2CoANoBk7kLtUmK\
    AZX+zrWD2SnEx42BdberuAhDPihKGN6LBygzRIOZc7z+mzJogplrMkttGYzBTL5jJe4MlQwghxpXsYYwtICZ0+SnhDLIgxWcv2uZ\
    y7AKyBRmeHrqRy2DO1h06uGv9Qz9QCYPw+K9DXsYRMGiO7rPn2BIBTOXPxO4yDAb7OXjktpvGGzBolsnrPzPEAhmLlq1dyrDKKAu\
    AGdQRgZGRhFgImVkZGSGisNpHgZGAQ5wGganW1ZgnmXm4gDmZ2ZGBmiG54EZtmPohgOrjaexW3CwKzzTMwJz2V4Qw0Q4Wd7Nw8UJ\
    XnyBwKsOdmlGDkamRAMmBv0kMMsQzjKCs4zhLBM4yxTOMoOzzOEsCzjLEspiTjQ0QDAhtjAwJl2ExhBQmCUlMS+dlUE/L78glZHD\
    gSUnMy+bk4EhQy/DlEE/cTSNjwKqAkZoTQgA";

/// Datasets and attributes without values, an enum, a named type.
const ODD: &str = "\
    7VnNbtNAEJ6142RbGeGWSjUFCR97QFUuSD1waCFuc4halBaJYwIqJMhKUHAhnLjCG/AI8BYc+xjc+wyoeHdnN/aiLFJVSCXmU6Tx\
    zM7+zX47Vsaf2629G8sbyyDAOdQggjIuEGtJVdftPZQM5SeUXz1t92VbjPYIx/8eKP0J2o+7aSq8LyzoeZo13Z/wP6Kd7kqqPEN9\
    B+WZV/Xro3w3nOSn/QxGp1km9En/vbS/GGfjSSFfZv1XQs8/vDkp8ze25mWwpNqY1pUHY8rgo99MRtI14gCKsuriBMCl3fM82ZHj\
    OD4rHiXCyrwhNHG+ANaKkUbjkVznSnLPjLvOYf0j+nvyJ/olpp+4zfnJNBf6Laa2oP30PZziPWybmWPnORwdHLYYNPSiIfHd57aJ\
    8v6G26+J8uEdt59eXeheJkYB4O5tt9+2zmMNt5/OO1H9avgcIoPV+caQDd/mrvPVfLOxgiuz8+5l+cOgfrV89zXf1TprfsjLb4xV\
    ZJLQeuc/X892cr3yTmLxYMfiS5Fftp4PRyaPRCZ/MGlLTLxiCBznsAhgXoD9x4cdVlq83ksLrJf8YGvwoMi0fsmEHKrsn5V00fbt\
    x9l5ed4vN+m9RiAQCAQCgUAgEAgEwr+vAwRW7Yfr/+6yNiRqF6JpXu1ifo3TruabCsA1j0f9r9R+G7BpaiOiOpRgLYlb8+uK8O9x\
    DC3P3oL48ad4bKtvP74iULSERCri9KjzNBVP+900PShkN8UqkzdjyXw+hSqwYBdjBwu+L9V46E8TnomHOvfYA8MThie8t9s5EgE5\
    7qq4iIb5+19NqiNrTCmJEQiEy6LIvgx+AQ==";

fn open(text: &str) -> Hdf5 {
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    let mut file = Vec::new();
    flate2::read::DeflateDecoder::new(&bytes[..]).read_to_end(&mut file).unwrap();
    Hdf5::open(Arc::new(Memory::new("test.h5", file)), tercet_core::Limits::default()).unwrap()
}

fn names(file: &Hdf5) -> Vec<&str> {
    file.header.variables.iter().map(|variable| variable.name.as_str()).collect()
}

fn unreadable(file: &Hdf5) -> Vec<(&str, &str)> {
    file.header.unreadable.iter().map(|(name, reason)| (name.as_str(), reason.as_str())).collect()
}

fn bytes(file: &Hdf5, name: &str, size: usize) -> Vec<u8> {
    let number = file.header.variables.iter().position(|variable| variable.name == name).unwrap();
    let shape = file.header.variables[number].shape.clone();
    let mut out = vec![0; size];
    file.read_box(number, &vec![0; shape.len()], &shape, &mut out).unwrap();
    out
}

const VALUES: [u8; 12] = [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0];
const MISSING: &str = "link to `/nope`, which does not exist";

#[test]
fn links_that_lead_nowhere_are_reported() {
    let file = open(COMPACT);
    assert_eq!(names(&file), ["a", "soft"]);
    assert_eq!(bytes(&file, "soft", 12), VALUES);
    let mut found = unreadable(&file);
    found.sort_unstable();
    let inner = ("g/dang", "link to `nope`, which does not exist");
    assert_eq!(found, [("dang", MISSING), inner, ("link", "external link to h.h5")]);
}

#[test]
fn links_of_symbol_tables_are_reported() {
    let file = open(SYMBOLS);
    assert_eq!(names(&file), ["a", "soft", "g/b"]);
    assert_eq!(bytes(&file, "g/b", 12), VALUES);
    assert_eq!(unreadable(&file), [("dang", MISSING)]);
}

#[test]
fn links_of_heaps_are_reported() {
    let file = open(DENSE);
    assert_eq!(names(&file).len(), 13);
    assert_eq!(bytes(&file, "a11", 12), VALUES);
    let mut found = unreadable(&file);
    found.sort_unstable();
    assert_eq!(found, [("dang", MISSING), ("link", "external link to h.h5")]);
}

#[test]
fn datasets_without_values_do_not_hide_others() {
    let file = open(ODD);
    assert_eq!(names(&file), ["a", "color", "flag"]);
    assert_eq!(bytes(&file, "a", 12), VALUES);
    assert_eq!(
        unreadable(&file),
        [
            (":none", attribute::NULL),
            ("null", attribute::NULL),
            ("raw", "the values are in the file raw.bin"),
            ("virtual", "virtual datasets are not supported"),
        ]
    );
}

#[test]
fn enums_and_attributes_without_values_have_notes() {
    let file = open(ODD);
    let notes: Vec<(&str, &str)> =
        file.header.notes.iter().map(|(name, note)| (name.as_str(), note.as_str())).collect();
    assert_eq!(
        notes,
        [
            ("a", "attribute `none` is not kept: it has no value (null dataspace)"),
            ("a", "attribute `text` is not kept: it has no value (null dataspace)"),
            ("color", "enum names are not kept: -1 = GREEN, 0 = RED, 2 = BLUE"),
        ]
    );
    // A list without elements is a value.
    let attrs: Vec<&str> = file.header.variables[0].attrs.iter().map(|attr| attr.name.as_str()).collect();
    assert_eq!(attrs, ["list"]);
    assert_eq!(bytes(&file, "color", 6), [0, 0, 2, 0, 255, 255]);
}

#[test]
fn netcdf_has_empty_texts_without_a_dataspace() {
    let file = open(SYMBOLS);
    assert_eq!(file.header.format, "NetCDF-4");
    let empty = crate::arrays::Attr::text("empty", "");
    assert_eq!(file.header.attrs, std::slice::from_ref(&empty));
    assert_eq!(file.header.variables[0].attrs, [empty]);
    assert_eq!(file.header.notes, []);
}

#[test]
fn variables_with_notes_are_not_exact() {
    let plan = crate::arrays::plan::plan(&open(ODD), OutputFormat::Zarr).unwrap();
    let fate = |name: &str| plan.fidelity.items.iter().find(|item| item.name == name).unwrap().fate;
    assert_eq!(["a", "color", "flag"].map(fate), [Fate::Changed, Fate::Changed, Fate::Exact]);
    assert_eq!(["null", "raw", "virtual", ":none"].map(fate), [Fate::NotCarried; 4]);
}
