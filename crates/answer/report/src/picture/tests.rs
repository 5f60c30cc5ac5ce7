//! Pictures of small runs.

use super::*;
use crate::scene::picture_file::PictureFileFormat;
use crate::testing::{golden, traced};

fn svg(picture: &LifelinePicture) -> String {
    String::from_utf8(picture.scene.encode(PictureFileFormat::Svg).unwrap()).unwrap()
}

fn png(picture: &LifelinePicture) -> Result<Vec<u8>, String> {
    picture.scene.encode(PictureFileFormat::Png)
}

fn all(traced: &traced::TracedFixture) -> LifelinePicture {
    let origin_ns = traced::ORIGIN_NS;
    picture(
        &traced.lifelines,
        &traced.index,
        &PictureSelection {
            origin_ns,
            ..PictureSelection::default()
        },
    )
    .unwrap()
}

#[test]
fn a_picture_of_three_calls() {
    golden("lifelines.svg", &svg(&all(&traced::few())));
}

#[test]
fn time_and_units_choose_lines() {
    let traced = traced::few();
    let of = |wanted: &PictureSelection| {
        picture(&traced.lifelines, &traced.index, wanted)
            .map(|picture| (picture.lines, picture.of_lines))
    };
    let begins = traced::ORIGIN_NS;
    assert_eq!(of(&PictureSelection::default()), Some((3, 3)));
    assert_eq!(
        of(&PictureSelection {
            from_ns: Some(begins + 50_000),
            ..PictureSelection::default()
        }),
        Some((2, 2))
    );
    assert_eq!(
        of(&PictureSelection {
            to_ns: Some(begins + 50_000),
            ..PictureSelection::default()
        }),
        Some((1, 1))
    );
    assert_eq!(
        of(&PictureSelection {
            units: vec![traced.lifelines.lines[2].unit.to_string()],
            ..PictureSelection::default()
        }),
        Some((1, 1))
    );
    assert_eq!(
        of(&PictureSelection {
            units: vec!["nobody".into()],
            ..PictureSelection::default()
        }),
        None
    );
    assert_eq!(
        of(&PictureSelection {
            from_ns: Some(begins + 1_000_000),
            ..PictureSelection::default()
        }),
        None
    );
}

#[test]
fn very_many_lines_are_thinned_and_that_is_said() {
    let picture = all(&traced::many(10_000));
    assert_eq!((picture.lines, picture.of_lines), (2_500, 10_000));
    assert!(svg(&picture).contains("2500 of 10000 lines"));
}

/// Each of 33 drops is on a line of its own; a third of the lines would be drawn if every so many were.
#[test]
fn of_very_many_lines_those_are_drawn_that_something_became_of() {
    let mut traced = traced::many(10_000);
    for number in (0..33).map(|number| number * 301) {
        let lifelines = &mut traced.lifelines;
        let line = &mut lifelines.lines[number];
        let passage = lifelines.passages[line.first as usize + 1];
        (line.count, line.outcome) = (2, LifelineOutcome::NeverArrived { after: 1 });
        (line.first_mark, line.mark_count) = (lifelines.marks.len() as u32, 1);
        lifelines.marks.push(LifelinePassage {
            point: 0,
            ..passage
        });
    }
    let dropped = |picture: &LifelinePicture| {
        let bars = picture.scene.shapes.iter().filter(|shape| {
            matches!(
                shape,
                SceneShape::Rect {
                    colour: DROPPED,
                    ..
                }
            )
        });
        let crosses = picture.scene.shapes.iter().filter(|shape| {
            matches!(
                shape,
                SceneShape::Line {
                    colour: DROPPED,
                    ..
                }
            )
        });
        (bars.count(), crosses.count() / 2)
    };
    assert_eq!(dropped(&all(&traced)), (33, 33));
}

/// Where each of too many lines was dropped, the bars still show all of them.
#[test]
fn bars_are_of_all_lines() {
    let mut traced = traced::many(7_000);
    let lifelines = &mut traced.lifelines;
    for (number, line) in lifelines.lines.iter_mut().enumerate() {
        (line.outcome, line.first_mark, line.mark_count) =
            (LifelineOutcome::Retried { times: 1 }, number as u32, 1);
        // One in each of many columns, the others in one.
        let at_ns = traced::ORIGIN_NS
            + if number % 70 == 1 {
                number as u64 * 50_000
            } else {
                0
            };
        lifelines.marks.push(LifelinePassage {
            at_ns,
            point: 0,
            row: u32::MAX,
        });
    }
    let picture = all(&traced);
    assert!(picture.lines < picture.of_lines);
    let bars = picture.scene.shapes.iter().filter(|shape| {
        matches!(
            shape,
            SceneShape::Rect {
                colour: DROPPED,
                ..
            }
        )
    });
    assert_eq!(bars.count(), 100);
}

#[test]
fn a_png_shows_lines_bars_and_letters() {
    let pixels = tiny_skia::Pixmap::decode_png(&png(&all(&traced::few())).unwrap()).unwrap();
    assert_eq!(pixels.width(), 1920);
    let count = |colour: u32| {
        let [_, red, green, blue] = colour.to_be_bytes();
        pixels
            .pixels()
            .iter()
            .filter(|p| (p.red(), p.green(), p.blue()) == (red, green, blue))
            .count()
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

/// Three hosts send to one: one row a stage, one colour a host.
#[test]
fn copies_of_a_point_share_a_row() {
    let mut table = stackline_events::EventTable::default();
    for unit in 0..9_u64 {
        let host = ["edc", "tioc", "usw"][unit as usize % 3];
        for (step, (keyword, host)) in [
            ("PUT_SEND", host),
            ("PUT_QUEUE", host),
            ("PUT_QUEUE", "asx"),
            ("PUT_TAKE", "onyx"),
        ]
        .into_iter()
        .enumerate()
        {
            table.push(
                keyword,
                host,
                unit * 1_000 + step as u64 * 100,
                &[(unit as i64).into()],
            );
        }
    }
    let lifelines = stackline_analyze::assemble::lifelines(&table, None, &Default::default());
    let picture = picture(&lifelines, &Index::default(), &PictureSelection::default()).unwrap();
    let texts = picture.scene.shapes.iter().filter_map(|shape| match shape {
        SceneShape::Text {
            text,
            anchor: TextAnchor::End,
            ..
        } if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    let rows = [
        "PUT_SEND",
        "edc, tioc, usw",
        "PUT_QUEUE",
        "edc, tioc, usw",
        "PUT_QUEUE",
        "asx",
        "PUT_TAKE",
        "onyx",
    ];
    assert_eq!(texts.collect::<Vec<_>>(), rows);
    for colour in &COLOURS[..3] {
        let of = |shape: &&SceneShape| matches!(shape, SceneShape::Line { colour: own, width: 1.2, .. } if own == colour);
        assert_eq!(
            picture.scene.shapes.iter().filter(of).count(),
            3,
            "{colour:x}"
        );
    }
}

#[test]
fn what_was_sent_again_beside_all_lines_has_a_bar_too() {
    let traced = traced::few();
    let bars = |beside: Vec<(u64, DataFate)>| {
        let wanted = PictureSelection {
            origin_ns: traced::ORIGIN_NS,
            beside,
            ..PictureSelection::default()
        };
        let picture = picture(&traced.lifelines, &traced.index, &wanted).unwrap();
        picture
            .scene
            .shapes
            .iter()
            .filter(|shape| matches!(shape, SceneShape::Rect { colour: AGAIN, .. }))
            .count()
    };
    let none = bars(Vec::new());
    let (within, without) = (
        (traced::ORIGIN_NS + 50_000, DataFate::SentAgain),
        (1, DataFate::SentAgain),
    );
    assert_eq!(
        bars(vec![
            within,
            without,
            (traced::ORIGIN_NS + 50_000, DataFate::Flushed)
        ]),
        none + 1
    );
}
