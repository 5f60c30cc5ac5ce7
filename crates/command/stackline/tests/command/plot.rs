//! Curves of a simulated sweep: files, terminal, pipe, and what cannot be drawn.

use crate::support::{Place, has_program, skip};
use crate::terminal::in_terminal;
use std::fs;

/// A sweep over the size of calls and two stacks.
const SWEEP: &str = "network n { host a, b; link a - b 10 Mbit/s 1 ms; }
    2 from a to b rr N*20 over tcp, udp across n in simulated; N = 64, 256 ... 4096";

fn swept() -> Place {
    let place = Place::new();
    place
        .stackline(&["run", "--name", "sweep", "-e", SWEEP])
        .succeeds();
    place
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path(name)).unwrap()
}

#[test]
fn a_sweep_is_a_curve_in_every_form() {
    let place = swept();
    let files = ["c.svg", "c.png", "c.pdf", "c.html", "c.csv"];
    let mut words = vec!["plot", "sweep", "--y", "p90"];
    words.extend(files.iter().flat_map(|file| ["-o", file]));
    let finished = place.stackline(&words);
    assert_eq!(finished.succeeds().out, files.join("\n") + "\n");
    let svg = read(&place, "c.svg");
    for word in [">tcp<", ">udp<", ">4 KiB<", ">p90 of response time, ms<"] {
        assert!(svg.contains(word), "{word}\n{svg}");
    }
    assert!(
        fs::read(place.path("c.png"))
            .unwrap()
            .starts_with(b"\x89PNG")
    );
    assert!(fs::read(place.path("c.pdf")).unwrap().starts_with(b"%PDF"));
    let page = read(&place, "c.html");
    assert!(page.contains("<svg ") && page.contains("<table>"), "{page}");
    let csv = read(&place, "c.csv");
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0], ["x", "line", "y", "low", "high", "n"]);
    assert_eq!(rows.len(), 1 + 2 * 4);
    let sizes: Vec<&str> = rows[1..5].iter().map(|row| row[0]).collect();
    assert_eq!(sizes, ["64", "256", "1024", "4096"]);
    // A call takes a round trip at least: 2 ms.
    for row in &rows[1..] {
        let y: f64 = row[2].parse().unwrap();
        assert!((0.002..0.1).contains(&y) && row[5] == "2", "{row:?}");
    }
    // In a pipe the points are what is printed.
    let printed = place.stackline(&["plot", "sweep", "--y", "p90"]);
    assert_eq!(printed.succeeds().out, csv);
    // A picture alone says where its points are.
    let alone = place.stackline(&["plot", "sweep", "-o", "d.svg"]);
    assert!(
        alone.succeeds().err.contains("-o FILE.csv"),
        "{}",
        alone.err
    );
}

#[test]
fn a_terminal_has_characters_that_fit() {
    if !has_program("script", "bsdutils") {
        return skip("no script");
    }
    let place = swept();
    let utf8 = [("LC_ALL", "C.UTF-8")];
    for columns in [80, 40] {
        let finished = in_terminal(&place, columns, &["plot", "sweep"], &utf8);
        let text = finished.succeeds().out.replace('\r', "");
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(columns as usize), "{columns}\n{text}");
        for word in ["response time, ms", "64 B", "4 KiB", "a tcp   b udp"] {
            assert!(text.contains(word), "{word}\n{text}");
        }
        assert!(text.contains('┤') && text.contains('└'), "{text}");
    }
    let plain = in_terminal(&place, 80, &["plot", "sweep"], &[("LC_ALL", "C")]);
    assert!(plain.succeeds().out.is_ascii(), "{}", plain.out);
    let narrow = in_terminal(&place, 20, &["plot", "sweep"], &utf8);
    assert!(
        narrow.succeeds().out.starts_with("tcp: 64 B "),
        "{}",
        narrow.out
    );
}

#[test]
fn calls_are_distributions_and_two_variables_a_heat_map() {
    let place = Place::new();
    let text = "network n { host a, b; link a - b <R> <D>; }
        1 from a to b rr 64*50 across n in simulated; R = 1 Mbit/s, 10 Mbit/s; D = 1 ms, 5 ms, 20 ms";
    place
        .stackline(&["run", "--name", "two", "-e", text])
        .succeeds();
    let cdf = place.stackline(&["plot", "two", "--cdf", "--by", "R", "--panels", "D"]);
    let out = &cdf.succeeds().out;
    assert!(out.starts_with("x,panel,line,y,low,high,n\n"), "{out}");
    assert!(out.contains(",D = 20 ms,R = 10 Mbit/s,100,,,50"), "{out}");
    place
        .stackline(&["plot", "two", "--percentiles", "-o", "p.svg"])
        .succeeds();
    assert!(read(&place, "p.svg").contains(">percentile<"));
    place
        .stackline(&["plot", "two", "--x", "D", "--heat", "R", "-o", "h.svg"])
        .succeeds();
    let heat = read(&place, "h.svg");
    assert!(
        heat.contains(">20 ms<") && heat.contains(">10 Mbit/s<"),
        "{heat}"
    );
    // One run each: no band, and that is said.
    let single = place.stackline(&["plot", "two"]);
    let note = "6 points without an interval: one run each";
    assert!(single.succeeds().err.contains(note), "{}", single.err);
    // The page and the findings name the values.
    let page = place.stackline(&["report", "two", "-o", "page.html"]);
    page.succeeds();
    let found = place.stackline(&["diagnose", "two"]);
    assert!(
        found.succeeds().out.contains("R = 1 Mbit/s, D = 1 ms: "),
        "{}",
        found.out
    );
    let rows = place.stackline(&["show", "two", "--json"]).json();
    assert_eq!(rows["measurements"][5]["swept"], "R = 10 Mbit/s, D = 20 ms");
}

#[test]
fn what_cannot_be_drawn_is_said_with_what_there_is() {
    let place = swept();
    place
        .stackline(&["run", "--name", "one", "-e", "1 rr 32*10 in simulated"])
        .succeeds();
    place
        .stackline(&["plot", "one"])
        .fails(2, &["no variable has several values"])
        .hints("--cdf");
    place
        .stackline(&["plot", "sweep", "--x", "M"])
        .fails(2, &["no row has a value of `M`"])
        .hints("N (4 values)");
    place
        .stackline(&["plot", "sweep", "--y", "speed"])
        .fails(2, &["there is no metric `speed`", "throughput"]);
    place
        .stackline(&["plot", "sweep", "--y", "throughput"])
        .fails(2, &["no throughput"])
        .hints("--y");
    place
        .stackline(&["plot", "sweep", "--by", "colour"])
        .fails(2, &["`colour`"])
        .hints("stack");
    place
        .stackline(&["plot", "sweep", "-o", "curve.gif"])
        .fails(2, &["the type of curve.gif is unknown"])
        .hints(".svg");
    place
        .stackline(&[
            "plot", "sweep", "--x", "N", "--heat", "stack", "-o", "h.svg",
        ])
        .fails(2, &["two swept variables"])
        .hints("--heat");
    // A run without the variable is left out, and counted.
    let both = place.stackline(&["plot", "sweep", "one", "--x", "N"]);
    let note = "1 row was left out: no value of N";
    assert!(both.succeeds().err.contains(note), "{}", both.err);
    let bulk = "network n { host a, b; link a - b 10 Mbit/s 1 ms; }
        1 from a to b bulk_put 1000*20 across n in simulated";
    place
        .stackline(&["run", "--name", "bulk", "-e", bulk])
        .succeeds();
    place
        .stackline(&["plot", "bulk", "--cdf"])
        .fails(2, &["no times of single calls"])
        .hints("rr");
}

#[test]
fn the_page_on_curves_does_what_it_shows() {
    let place = Place::new();
    let document = include_str!("../../../../../docs/howto/CURVES.md");
    let blocks: Vec<&str> = document.split("```").skip(1).step_by(2).collect();
    place.write("sweep.stackline", blocks[0]);
    let lines = blocks.iter().filter_map(|block| block.strip_prefix("sh\n"));
    let lines = lines
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("stackline "));
    let mut ran = 0;
    for line in lines {
        // Words of a shell, of which one may be quoted.
        let mut words: Vec<&str> = Vec::new();
        for (at, piece) in line.split('\'').enumerate() {
            match at % 2 {
                0 => words.extend(piece.split_whitespace()),
                _ => words.push(piece),
            }
        }
        place.stackline(&words).succeeds();
        ran += 1;
    }
    assert_eq!(ran, 9, "commands of the page");
    for file in [
        "curve.svg",
        "curve.csv",
        "curve.pdf",
        "heat.png",
        "curve.html",
        "calls.svg",
    ] {
        assert!(place.path(file).exists(), "{file}");
    }
}
