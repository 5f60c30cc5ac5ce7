//! Axes by hand.

use super::*;

fn axis(scale: AxisScale, from: f64, to: f64) -> Axis {
    Axis {
        name: "time".into(),
        scale,
        from,
        to,
    }
}

#[test]
fn ticks_are_round_numbers() {
    let names = |axis: Axis| {
        let ticks = axis.ticks().into_iter();
        ticks.map(|tick| tick.label).collect::<Vec<_>>()
    };
    assert_eq!(
        names(axis(AxisScale::Linear, 0.0, 64.0)),
        ["0", "10", "20", "30", "40", "50", "60"]
    );
    assert_eq!(
        names(axis(AxisScale::Linear, 100.0, 500.0)),
        [
            "100", "150", "200", "250", "300", "350", "400", "450", "500"
        ]
    );
    assert_eq!(
        names(axis(AxisScale::Linear, 0.0, 1.0)),
        ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
    );
    assert_eq!(
        names(axis(AxisScale::Logarithmic, 1e-5, 1e-1)),
        ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "0.1"]
    );
    assert_eq!(
        names(axis(AxisScale::Logarithmic, 2.0, 1.5e4)),
        ["10", "100", "1000", "10⁴"]
    );
}

#[test]
fn a_short_logarithmic_axis_has_twos_and_fives() {
    let values = |from, to, wanted| axis(AxisScale::Logarithmic, from, to).round_values(wanted);
    assert_eq!(values(1.0, 20.0, 8.0), [1.0, 2.0, 5.0, 10.0, 20.0]);
    assert_eq!(values(1.0, 1e6, 4.0), [1.0, 100.0, 1e4, 1e6]);
    // Without a round value inside, the ends are all there is.
    assert_eq!(values(2.5, 4.5, 8.0), [2.5, 4.5]);
}

#[test]
fn lines_are_cut_at_the_frame() {
    let frame = AxesFrame {
        left: 0.0,
        right: 100.0,
        top: 0.0,
        bottom: 100.0,
        x: axis(AxisScale::Linear, 0.0, 10.0),
        y: axis(AxisScale::Linear, 0.0, 10.0),
        x_ticks: vec![],
        y_ticks: vec![],
        has_y_labels: true,
        ground: None,
        letters: 11.0,
    };
    // Out over the upper edge and back: two pieces.
    let pieces = frame.cut_line(&[(0.0, 5.0), (5.0, 15.0), (10.0, 5.0)]);
    assert_eq!(
        pieces,
        [
            vec![(0.0, 50.0), (25.0, 0.0)],
            vec![(75.0, 0.0), (100.0, 50.0)]
        ]
    );
    assert_eq!(frame.cut_line(&[(0.0, 11.0), (10.0, 12.0)]).len(), 0);
    let whole = frame.cut_line(&[(0.0, 0.0), (1.0, 2.0), (10.0, 10.0)]);
    assert_eq!((whole.len(), whole[0].len()), (1, 3));
    assert!(frame.contains((10.0, 0.0)) && !frame.contains((10.1, 0.0)));
    // A value far away stays a number that SVG has.
    assert_eq!(frame.y(1e300), -100.0);
}
