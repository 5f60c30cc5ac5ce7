//! Pictures, characters and rows of curves made by hand.

use super::plotted_axes::{PlottedAxes, is_geometric};
use super::*;
use crate::axes::AxisScale;
use crate::scene::picture_file::PictureFileFormat;
use crate::scene::{SceneShape, VectorScene};
use stackline_analyze::curves::{Curve, CurveAxis, CurveKind, CurvePoint, CurveSet};
use stackline_core::units::Quantity;
use std::collections::BTreeMap;

fn axis(name: &str, quantity: Quantity) -> CurveAxis {
    CurveAxis {
        name: name.to_owned(),
        quantity,
        unit: "",
    }
}

fn point(x: f64, y: f64) -> CurvePoint {
    CurvePoint {
        x,
        y,
        interval: Some((0.8 * y, 1.2 * y)),
        n: 5,
        begins: false,
    }
}

fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
    Curve {
        name: name.to_owned(),
        number: None,
        panel: 0,
        points: points.iter().map(|(x, y)| point(*x, *y)).collect(),
    }
}

/// Throughput over the size of data units, of two stacks.
fn sizes() -> CurveSet {
    let values = [1024.0, 4096.0, 16_384.0, 65_536.0];
    let of = |factor: f64| values.map(|size: f64| (size, factor * size.sqrt() * 1e6));
    CurveSet {
        kind: CurveKind::Sweep,
        x: axis("N", Quantity::Size),
        y: axis("throughput", Quantity::Rate),
        by: None,
        panels: vec![String::new()],
        curves: vec![curve("tcp", &of(1.0)), curve("quic", &of(0.5))],
        left_out: BTreeMap::new(),
    }
}

/// Response time over loss, for each of three delays.
fn delays() -> CurveSet {
    let line = |delay: f64| Curve {
        number: Some(delay),
        ..curve(
            &format!("D = {}", Quantity::Time.written(delay)),
            &[0.0, 1.0, 2.0].map(|loss| (loss, delay * (1.0 + loss))),
        )
    };
    CurveSet {
        kind: CurveKind::Sweep,
        x: axis("L", Quantity::Percent),
        y: axis("response time", Quantity::Time),
        by: Some(axis("D", Quantity::Time)),
        panels: vec![String::new()],
        curves: [0.01, 0.02, 0.04].map(line).to_vec(),
        left_out: BTreeMap::new(),
    }
}

fn svg(scene: &VectorScene) -> String {
    String::from_utf8(scene.encode(PictureFileFormat::Svg).unwrap()).unwrap()
}

fn texts(scene: &VectorScene) -> Vec<&str> {
    let each = scene.shapes.iter().filter_map(|shape| match shape {
        SceneShape::Text { text, .. } | SceneShape::Upwards { text, .. } => Some(text.as_str()),
        _ => None,
    });
    each.collect()
}

#[test]
fn a_geometric_sweep_is_one_of_equal_ratios_over_a_factor_of_eight() {
    assert!(is_geometric(&[1.0, 2.0, 4.0, 8.0]));
    assert!(is_geometric(&[1.0, 2.0, 5.0, 10.0, 20.0, 50.0]));
    assert!(is_geometric(&[1.0, 8.0, 64.0, 512.0, 4096.0]));
    assert!(!is_geometric(&[1.0, 2.0, 4.0]), "too narrow");
    assert!(!is_geometric(&[0.0, 1.0, 10.0, 100.0]), "zero has no place");
    assert!(!is_geometric(&[1.0, 5.0, 9.0]), "even steps");
    let even: Vec<f64> = (1..=20).map(f64::from).collect();
    assert!(!is_geometric(&even));
    assert!(!is_geometric(&[]) && !is_geometric(&[5.0]));
}

#[test]
fn axes_have_scale_unit_and_values_of_the_sweep() {
    let axes = PlottedAxes::fit(&sizes(), None);
    assert_eq!(axes.x.scale, AxisScale::Logarithmic);
    let labels: Vec<&str> = axes
        .x_ticks
        .iter()
        .map(|tick| tick.label.as_str())
        .collect();
    assert_eq!(labels, ["1 KiB", "4 KiB", "16 KiB", "64 KiB"]);
    assert_eq!(
        (axes.x.name.as_str(), axes.y.name.as_str()),
        ("N", "throughput, Mbit/s")
    );
    assert_eq!((axes.y.scale, axes.y.from), (AxisScale::Linear, 0.0));
    let axes = PlottedAxes::fit(&delays(), None);
    assert_eq!(
        (axes.x.scale, axes.x.name.as_str()),
        (AxisScale::Linear, "L, %")
    );
    assert_eq!(axes.y.name, "response time, ms");
    // With --log x zero has no place, and the picture says so.
    let axes = PlottedAxes::fit(&delays(), Some(LogAxes::X));
    assert_eq!(axes.without_place(&delays()), 3);
    let picture = line_picture(&delays(), PlotWidth::Single, Some(LogAxes::X));
    let notes = texts(&picture).join(" ");
    assert!(notes.contains("3 points have no place"), "{notes}");
    // Values over more than a factor of 100.
    let mut wide = sizes();
    wide.curves[0].points[0].y = 1e3;
    assert_eq!(
        PlottedAxes::fit(&wide, None).y.scale,
        AxisScale::Logarithmic
    );
    let axes = PlottedAxes::fit(&wide, Some(LogAxes::Neither));
    assert_eq!(
        (axes.x.scale, axes.y.scale),
        (AxisScale::Linear, AxisScale::Linear)
    );
}

#[test]
fn nothing_but_one_point_or_zeros_is_drawn_too() {
    let mut one = sizes();
    one.curves.truncate(1);
    one.curves[0].points = vec![CurvePoint {
        x: 5.0,
        n: 1,
        ..CurvePoint::default()
    }];
    let picture = line_picture(&one, PlotWidth::Single, None);
    let text = svg(&picture);
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    assert!(
        texts(&picture)
            .join(" ")
            .contains("one run a point, no intervals")
    );
}

#[test]
fn lines_have_bands_and_differ_without_colours() {
    let picture = line_picture(&sizes(), PlotWidth::Single, None);
    assert!((picture.width - 3.3 * 72.0).abs() < 0.1);
    let areas = picture.shapes.iter().filter(|shape| {
        matches!(shape, SceneShape::Area { cover, points, .. } if *cover < 1.0 && points.len() == 8)
    });
    assert_eq!(
        areas.count(),
        2,
        "a band for each line, of four points up and four down"
    );
    let dashes: Vec<_> = picture
        .shapes
        .iter()
        .filter_map(|shape| match shape {
            SceneShape::Line { dashes, width, .. } if *width > 1.0 => Some(*dashes),
            _ => None,
        })
        .collect();
    assert!(dashes.iter().any(|one| one.is_empty()) && dashes.iter().any(|one| !one.is_empty()));
    let words = texts(&picture);
    for word in [
        "tcp",
        "quic",
        "N",
        "throughput, Mbit/s",
        "64 KiB",
        "bands: 95 % intervals",
    ] {
        assert!(words.contains(&word), "{word}: {words:?}");
    }
    let text = svg(&picture);
    assert!(
        text.contains("width=\"237.6pt\"") && text.contains("font-size=\"8\""),
        "{text}"
    );
    assert!(text.contains("prefers-color-scheme:dark"));
    for format in [PictureFileFormat::Png, PictureFileFormat::Pdf] {
        assert!(!picture.encode(format).unwrap().is_empty());
    }
    // A point of one run is open and has no band.
    let mut single = sizes();
    single.curves[0].points[1].interval = None;
    single.curves[0].points[1].n = 1;
    let words = texts(&line_picture(&single, PlotWidth::Single, None)).join(" ");
    assert!(words.contains("1 open point of one run"), "{words}");
}

#[test]
fn panels_stand_beside_each_other_with_common_axes() {
    let mut set = sizes();
    set.panels = ["L = 0 %", "L = 1 %", "L = 2 %"]
        .map(str::to_owned)
        .to_vec();
    for panel in 1..3 {
        let more = set.curves[..2].to_vec();
        set.curves
            .extend(more.into_iter().map(|one| Curve { panel, ..one }));
    }
    let picture = line_picture(&set, PlotWidth::Double, None);
    let words = texts(&picture);
    let count = |word: &str| words.iter().filter(|one| **one == word).count();
    assert_eq!(
        (count("L = 1 %"), count("tcp"), count("throughput, Mbit/s")),
        (1, 1, 1)
    );
    assert_eq!(count("1 KiB"), 3, "each frame has its values");
    let text = plot_csv(&set);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("x,panel,line,y,low,high,n"));
    assert!(lines.next().unwrap().starts_with("1024,L = 0 %,tcp,"));
}

#[test]
fn ten_thousand_points_a_line_become_what_can_be_distinguished() {
    let mut set = sizes();
    let points: Vec<(f64, f64)> = (1..=100_000)
        .map(|at| (f64::from(at), 1e6 + f64::from(at % 100)))
        .collect();
    set.curves = vec![curve("", &points)];
    set.x.quantity = Quantity::Number;
    let text = svg(&line_picture(&set, PlotWidth::Single, None));
    assert!(text.len() < 200_000, "{}", text.len());
    assert_eq!(plot_csv(&set).lines().count(), 100_001);
}

#[test]
fn a_heat_map_has_a_cell_for_each_two_values() {
    let picture = heat_picture(&delays(), PlotWidth::Single).unwrap();
    let words = texts(&picture);
    for word in ["10.0", "120", "D", "L", "40 ms", "2 %", "response time, ms"] {
        assert!(words.contains(&word), "{word}: {words:?}");
    }
    let words = heat_picture(&sizes(), PlotWidth::Single).unwrap_err();
    assert!(words.contains("two swept variables"), "{words}");
}

#[test]
fn rows_are_in_base_units_and_absent_ends_empty() {
    let mut set = sizes();
    set.curves[1].points[0].interval = None;
    set.curves[1].name = "quic, \"new\"".to_owned();
    let text = plot_csv(&set);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "x,line,y,low,high,n");
    assert_eq!(lines[1], "1024,tcp,32000000,25600000,38400000,5");
    assert_eq!(lines[5], "1024,\"quic, \"\"new\"\"\",16000000,,,5");
}

#[test]
fn a_page_has_the_picture_and_the_table_and_loads_nothing() {
    let picture = line_picture(&sizes(), PlotWidth::Single, None);
    let notes = ["1 row was left out: <none>".to_owned()];
    let page = plot_page("a <title>", &sizes(), &picture, &notes).unwrap();
    assert!(page.contains("<h1>a &lt;title&gt;</h1>") && page.contains("left out: &lt;none&gt;"));
    assert!(page.contains("<svg ") && page.contains("<td>32000000</td>"));
    // The name of SVG's namespace is no address that is loaded.
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!addresses.contains("http:") && !addresses.contains("https:"));
    assert!(!addresses.contains("<script"));
}

fn form(columns: usize) -> TextPlotForm {
    TextPlotForm {
        columns,
        is_ascii: false,
        is_heat: false,
        log: None,
    }
}

#[test]
fn characters_fit_their_columns() {
    for columns in [40, 60, 80, 200] {
        let text = text_plot(&sizes(), form(columns));
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(columns.min(80)), "{columns}\n{text}");
        assert!(
            text.contains("throughput, Mbit/s") && text.contains("a tcp   b quic"),
            "{text}"
        );
        assert!(text.contains("1 KiB") && text.contains("64 KiB"), "{text}");
        assert!(text.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)));
    }
    let ascii = text_plot(
        &sizes(),
        TextPlotForm {
            is_ascii: true,
            ..form(80)
        },
    );
    assert!(ascii.is_ascii() && ascii.contains('.'), "{ascii}");
    // A narrow terminal has a list.
    let list = text_plot(&sizes(), form(20));
    assert_eq!(list.lines().next(), Some("tcp: 1 KiB 32.0 Mbit/s"));
    assert_eq!(list.lines().count(), 8);
}

#[test]
fn marks_stand_where_the_points_are() {
    let mut set = sizes();
    set.curves.truncate(1);
    set.curves[0].name.clear();
    let text = text_plot(&set, form(60));
    let marks = text.chars().filter(|c| *c == 'o').count();
    assert_eq!(marks, 4 + "throughput".matches('o').count(), "{text}");
    let heat = text_plot(
        &delays(),
        TextPlotForm {
            is_heat: true,
            ..form(80)
        },
    );
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        heat.lines().any(|line| words(line) == "L 0 % 1 % 2 %"),
        "{heat}"
    );
    assert!(
        heat.lines()
            .any(|line| words(line) == "D = 40 ms 40.0 80.0 120"),
        "{heat}"
    );
}
