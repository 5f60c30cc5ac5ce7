//! What is shown of a run: the table on a screen of 80 columns, the same again later, CSV, completions and manual pages.

use crate::support::Place;

#[test]
fn a_table_fits_a_screen_and_is_shown_again() {
    let place = Place::new();
    let text = "2 rr N*50 over tcp, unix, tcp(nodelay, receive = spin); N = 1, 64; 2 parallel: bulk_get 1 KiB*50 | rr 32*50";
    let first = place.stackline(&["run", "-e", text]);
    first.succeeds();
    assert!(
        first
            .out
            .lines()
            .all(|line| line.chars().count() <= 80 || line.starts_with("kept in")),
        "{}",
        first.out
    );
    for words in [
        "calls/s",
        "mean ± 95 % over n runs",
        "median / p99 over calls",
        "more with --notes all",
    ] {
        assert!(first.out.contains(words), "no `{words}` in {}", first.out);
    }
    let again = place.stackline(&["show"]).succeeds().out.clone();
    assert_eq!(
        again.split("kept in").next(),
        first.out.split("kept in").next()
    );
    let all = place
        .stackline(&[
            "show",
            "last",
            "--notes",
            "all",
            "--percentiles",
            "50,p99.9,max",
        ])
        .succeeds()
        .out
        .clone();
    for words in ["median / p99.9 / max", "waking a thread costs", " on core"] {
        assert!(all.contains(words), "no `{words}` in {all}");
    }
}

#[test]
fn any_percentile_is_the_same_in_table_csv_and_json_and_absent_where_calls_are_too_few() {
    let place = Place::new();
    let text = "2 rr 1*50 over unix";
    let show = |form: &str| {
        place
            .stackline(&["show", "--percentiles", "75,99,p99.99", form])
            .succeeds()
            .out
            .clone()
    };
    place.stackline(&["run", "-e", text]).succeeds();
    let table = show("--notes=all");
    assert!(
        table.contains("p75 / p99 / p99.99 over calls") && table.contains(" / - "),
        "{table}"
    );
    assert!(
        table.contains("p99.99 is absent: 10000 values needed, but only 100 measured"),
        "{table}"
    );
    let json: serde_json::Value = serde_json::from_str(&show("--json")).unwrap();
    let row = &json["measurements"][0];
    let further = &row["response_s"]["percentiles"];
    assert!(
        further["p75"].as_f64().unwrap() >= row["response_s"]["median"].as_f64().unwrap(),
        "{further}"
    );
    assert_eq!(further["p99"], row["response_s"]["p99"]);
    assert!(further["p99.99"].is_null(), "{further}");
    assert_eq!(
        row["absent"]["response_s p99.99"],
        "10000 values needed, but only 100 measured"
    );
    let csv = show("--csv");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let of = |name: &str| lines[1][lines[0].iter().position(|other| *other == name).unwrap()];
    assert_eq!(
        of("response_s_p75").parse::<f64>().ok(),
        further["p75"].as_f64()
    );
    assert_eq!(
        (
            of("response_s_p99.99"),
            csv.matches("response_s_p99,").count()
        ),
        ("", 1)
    );
    let wrong = place.stackline(&["show", "--percentiles", "p101"]);
    assert!(
        wrong.status.code() == Some(2) && wrong.err.contains("p99.99"),
        "{}",
        wrong.err
    );
}

#[test]
fn csv_has_a_line_a_row_and_the_figures_of_the_json() {
    let place = Place::new();
    let text = "2 rr N*20 over unix; N = 1, 8";
    let csv = place
        .stackline(&["run", "--csv", "-e", text])
        .succeeds()
        .out
        .clone();
    assert_eq!(csv, place.stackline(&["show", "--csv"]).succeeds().out);
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let at = |name: &str| lines[0].iter().position(|other| *other == name).unwrap();
    assert_eq!(lines.len(), 3);
    assert_eq!([lines[1][at("N")], lines[2][at("N")]], ["1", "8"]);
    let json = place.stackline(&["show", "--json"]).json();
    for (line, row) in lines[1..]
        .iter()
        .zip(json["measurements"].as_array().unwrap())
    {
        let p99: f64 = line[at("response_s_p99")].parse().unwrap();
        assert_eq!(Some(p99), row["response_s"]["p99"].as_f64());
    }
}

#[test]
fn shells_and_manuals_have_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place
            .stackline(&["completions", shell])
            .succeeds()
            .out
            .clone();
        assert!(
            script.contains("lifelines") && script.contains("fail-above"),
            "{shell}"
        );
    }
    place.stackline(&["man", "pages"]).succeeds();
    let read = |name: &str| std::fs::read_to_string(place.path("pages").join(name)).unwrap();
    assert!(
        read("stackline-run.1").contains("\\-\\-trace"),
        "{}",
        read("stackline-run.1")
    );
    assert!(
        read("stackline-net-exec.1").contains("HOST") && read("stackline.1").contains("diagnose")
    );
    let page = read("stackline-trace.1");
    for section in [
        ".SH \"SYNOPSIS\"\n.nf\nstackline trace [OPTIONS]",
        ".SH \"EXAMPLES\"\n.nf\nstackline trace ",
        ".SH \"SEE ALSO\"\n.nf\nstackline(1)",
    ] {
        assert!(page.contains(section), "{section:?} in {page}");
    }
    assert!(!read("stackline.1").contains("stackline\\-help"));
}
