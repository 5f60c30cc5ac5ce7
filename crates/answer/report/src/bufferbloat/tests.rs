//! Tests of the answer whether latency grows under load.

use super::latency_plot::latency_plots;
use super::*;
use stackline_analyze::bufferbloat::{LoadedPhase, ProbeForm, RoundTripRates, answer_bufferbloat};

/// An answer in which latency is 20 ms when idle, 200 ms under a download, and grows to 400 ms under an upload.
fn answer() -> BufferbloatAnswer {
    let mut answer = answer_bufferbloat(&[], &[], &ProbeForm::default());
    for phase in &mut answer.phases {
        phase.absent = None;
        let latency = |at: u32| match phase.phase {
            LoadedPhase::Idle => 0.02,
            LoadedPhase::Download => 0.2,
            LoadedPhase::Upload => 0.4 * f64::from(at + 1) / 80.0,
        };
        let probe = |at| ProbedLatency {
            at_s: 2.0 + f64::from(at) / 10.0,
            latency_s: latency(at),
            probe: ProbeKind::Foreign,
        };
        phase.series = (0..80).map(probe).collect();
    }
    answer
}

fn titled() -> TitledBufferbloat {
    TitledBufferbloat {
        title: "queue <1000 packets>".into(),
        answer: answer(),
        http: None,
        directory: "runs/1".into(),
    }
}

fn plot(answer: &TitledBufferbloat, characters: PlotCharacters, columns: usize) -> String {
    let form = PlotForm {
        characters,
        columns,
    };
    let scale = LatencyScale {
        most_s: 0.4,
        ..LatencyScale::of_answers(std::slice::from_ref(answer)).unwrap()
    };
    latency_plots(&answer.answer, form, scale)
}

#[test]
fn the_plot_shows_phases_side_by_side() {
    let plot = plot(&titled(), PlotCharacters::Blocks, 200);
    let expected = "\
latency over time: █ median, ░ most of each interval, ▲ beyond the scale
on connections of their own
";
    assert!(plot.starts_with(expected), "{plot}");
    let lines: Vec<&str> = plot.lines().skip(2).collect();
    assert_eq!(lines.len(), 8, "{plot}");
    let fits = |line: &&str| line.chars().count() <= 80;
    assert!(lines.iter().all(fits), "{plot}");
    assert!(lines[0].starts_with("  400 ms │"), "{plot}");
    assert!(lines[3].starts_with("  200 ms │"), "{plot}");
    let panels: Vec<&str> = lines[5].split('│').collect();
    // 20 of 400 ms are two eighths of the lowest of six lines; under load it is full.
    assert_eq!(panels[1], "▂".repeat(22));
    assert_eq!(panels[2], "█".repeat(22));
    assert!(panels[3].ends_with('█'), "{plot}");
    assert!(lines[7].trim_start().starts_with("idle"), "{plot}");
}

#[test]
fn the_plot_can_be_ascii_and_narrow() {
    let plot = plot(&titled(), PlotCharacters::Ascii, 40);
    assert!(plot.is_ascii(), "{plot}");
    let mut lines = plot.lines().skip(2);
    assert!(lines.clone().all(|line| line.len() <= 40), "{plot}");
    assert!(lines.any(|line| line.contains("##")), "{plot}");
}

#[test]
fn a_few_probes_whose_packets_were_lost_do_not_make_the_rest_small() {
    let mut slow = titled();
    slow.answer.phases[1].series[40].latency_s = 9.0;
    let scale = LatencyScale::of_answers(&[slow]).unwrap();
    // A tenth of those of the upload is above 360 ms.
    assert!((0.4..0.5).contains(&scale.most_s), "{scale:?}");
    let mut slow = titled();
    slow.answer.phases[1].series[40].latency_s = 9.0;
    let drawn = plot(&slow, PlotCharacters::Blocks, 80);
    assert_eq!(drawn.matches('▲').count(), 2, "{drawn}");
    let svg = latency_picture(&[slow]).unwrap();
    let svg = svg.encode(crate::scene::picture_file::PictureFileFormat::Svg);
    let svg = String::from_utf8(svg.unwrap()).unwrap();
    assert!(svg.contains("1 beyond, up to 9.00 s"), "{svg}");
}

#[test]
fn nothing_is_drawn_of_nothing() {
    let mut empty = answer();
    empty
        .phases
        .iter_mut()
        .for_each(|phase| phase.series.clear());
    let titled = TitledBufferbloat {
        answer: empty,
        ..titled()
    };
    assert!(latency_picture(std::slice::from_ref(&titled)).is_none());
    let form = PlotForm {
        characters: PlotCharacters::Blocks,
        columns: 80,
    };
    assert!(!bufferbloat(&[titled], Some(form)).contains("over time"));
}

#[test]
fn the_picture_has_a_dot_for_each_probe_and_no_markup_of_others() {
    use crate::scene::picture_file::PictureFileFormat;
    let answers = [titled(), titled()];
    let scene = latency_picture(&answers).unwrap();
    let svg = String::from_utf8(scene.encode(PictureFileFormat::Svg).unwrap()).unwrap();
    // One in the legend, and the probes of three phases, twice.
    assert_eq!(svg.matches("<circle").count(), 1 + 2 * 3 * 80);
    assert!(svg.contains("queue &lt;1000 packets&gt;") && !svg.contains("<1000"));
    assert!(scene.encode(PictureFileFormat::Png).is_ok());
}

#[test]
fn the_text_says_why_there_are_no_self_probes_and_plots_when_asked() {
    let mut one = titled();
    for phase in &mut one.answer.phases {
        phase.self_absent = Some("HTTP/1.1".into());
    }
    let text = bufferbloat(&[one], None);
    let reason = "no requests on the loading connections: HTTP/1.1\n";
    assert_eq!(text.matches(reason).count(), 1, "{text}");
    assert!(!text.contains("over time"), "{text}");
    let form = PlotForm {
        characters: PlotCharacters::Ascii,
        columns: 80,
    };
    assert!(bufferbloat(&[titled()], Some(form)).contains("over time"));
    let json = bufferbloat_json(&[titled()]);
    assert_eq!(json[0]["phases"][1]["series"][0]["probe"], "foreign");
    let none = RoundTripRates::default();
    let rates = serde_json::to_value(none).unwrap();
    assert!(rates.get("self").is_some_and(Value::is_null), "{rates}");
}
