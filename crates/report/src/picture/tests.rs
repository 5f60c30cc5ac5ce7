//! Pictures of small runs.

use super::*;
use crate::testing::{golden, traced};

fn all(traced: &traced::Traced) -> Picture {
    let origin_ns = traced::ORIGIN_NS;
    picture(&traced.lifelines, &Wanted { origin_ns, ..Wanted::default() }).unwrap()
}

#[test]
fn a_picture_of_three_calls() {
    golden("lifelines.svg", &svg(&all(&traced::few())));
}

#[test]
fn time_and_units_choose_lines() {
    let traced = traced::few();
    let of = |wanted: &Wanted| picture(&traced.lifelines, wanted).map(|picture| (picture.lines, picture.of_lines));
    let begins = traced::ORIGIN_NS;
    assert_eq!(of(&Wanted::default()), Some((3, 3)));
    assert_eq!(of(&Wanted { from_ns: Some(begins + 50_000), ..Wanted::default() }), Some((2, 2)));
    assert_eq!(of(&Wanted { to_ns: Some(begins + 50_000), ..Wanted::default() }), Some((1, 1)));
    assert_eq!(of(&Wanted { units: vec![traced.lifelines.lines[2].unit.clone()], ..Wanted::default() }), Some((1, 1)));
    assert_eq!(of(&Wanted { units: vec!["nobody".into()], ..Wanted::default() }), None);
    assert_eq!(of(&Wanted { from_ns: Some(begins + 1_000_000), ..Wanted::default() }), None);
}

#[test]
fn very_many_lines_are_thinned_and_that_is_said() {
    let picture = all(&traced::many(10_000));
    assert_eq!((picture.lines, picture.of_lines), (2_500, 10_000));
    assert!(svg(&picture).contains("2500 of 10000 lines"));
}

#[test]
fn a_png_shows_lines_bars_and_letters() {
    let pixels = tiny_skia::Pixmap::decode_png(&png(&all(&traced::few())).unwrap()).unwrap();
    assert_eq!(pixels.width(), 1920);
    let count = |colour: u32| {
        let [_, red, green, blue] = colour.to_be_bytes();
        pixels.pixels().iter().filter(|p| (p.red(), p.green(), p.blue()) == (red, green, blue)).count()
    };
    assert!(count(COLOURS[0]) > 500, "lines: {}", count(COLOURS[0]));
    assert!(count(DROPPED) > 60, "a bar and a cross: {}", count(DROPPED));
    assert!(count(INK) > 300, "letters: {}", count(INK));
}

#[test]
fn hostile_names_are_text() {
    let svg = svg(&all(&traced::hostile()));
    assert!(!svg.contains("<script") && !svg.contains("<img"), "{svg}");
    assert!(png(&all(&traced::hostile())).is_ok());
}
