//! FILE ends: byte for byte, and only inside the one directory an agent was given.

use crate::support::{Finished, Place, noise, program, stacks};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

/// A place with `data/in`, 100 003 bytes.
fn place() -> Place {
    let place = Place::new();
    place.write("data/in", noise(100_003, 1));
    place
}

fn run(place: &Place, text: &str) -> Finished {
    place.stackline(&["run", "--files", "data", "-e", text])
}

/// What `units` units of `size` bytes from `data/in` are: the file again and again.
fn expected(place: &Place, size: usize, units: usize) -> Vec<u8> {
    let file = fs::read(place.path("data/in")).unwrap();
    file.iter().copied().cycle().take(size * units).collect()
}

#[test]
fn files_arrive_byte_for_byte() {
    let place = place();
    // Blasts of which the last is short, and packets that are checked and sealed.
    let forms = [
        "window(n = 4)",
        "blast(partial, size = 20000)",
        "blast(checked, sealed, packet = 1000, size = 30000)",
    ];
    let stacks = stacks::with(stacks::which("live", |stack| stack.files), &forms);
    let mut text = String::new();
    let mut files = Vec::new();
    // The last are longer than the file, which then starts again.
    for (size, units) in [(1000, 100), (4096, 100), (70_001, 7)] {
        for (stack, what) in stacks
            .iter()
            .flat_map(|stack| ["bulk_get", "bulk_put"].map(|what| (stack, what)))
        {
            let name = format!("out{}", files.len());
            let measurement =
                format!("2 {what} {size}*{units} < file in > file {name} over {stack};\n");
            text += &measurement;
            files.push((name, measurement, expected(&place, size, units)));
        }
    }
    run(&place, &text).succeeds();
    for (name, measurement, expected) in files {
        assert!(
            fs::read(place.path("data").join(name)).unwrap() == expected,
            "{measurement}"
        );
    }
}

#[test]
fn a_file_is_copied_as_it_is_when_its_length_or_the_whole_is_given() {
    let place = place();
    let file = fs::read(place.path("data/in")).unwrap();
    let sizes = [
        "4 KiB 100003 B < file in",
        "4 KiB < whole file in",
        "uniform(64, 9000) < whole file in",
    ];
    let stacks = stacks::which("live", |stack| stack.files);
    let mut text = String::new();
    let mut outs = Vec::new();
    for (size, what) in sizes
        .iter()
        .flat_map(|size| ["bulk_get", "bulk_put"].map(|what| (size, what)))
    {
        for stack in &stacks {
            let name = format!("copy{}", outs.len());
            text += &format!("1 {what} {size} > file {name} over {stack};\n");
            outs.push(name);
        }
    }
    run(&place, &text).succeeds();
    assert!(outs.len() >= 18);
    for name in outs {
        assert!(
            fs::read(place.path("data").join(&name)).unwrap() == file,
            "{name}"
        );
    }
}

#[test]
fn a_file_that_was_sent_more_than_once_has_a_note() {
    let place = place();
    let note = "FILE in is 100 kB long and was sent repeatedly from the start: 101 kB in total";
    // What is flagged besides may wrap the line.
    let said = |units: u32| {
        let output = run(&place, &format!("1 bulk_put 1000*{units} < file in"));
        output
            .succeeds()
            .out
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(said(101).contains(note));
    assert!(!said(100).contains("sent repeatedly"));
}

#[test]
fn one_end_may_be_memory() {
    let place = place();
    run(&place, "1 bulk_get 1000*200 < file in").succeeds();
    run(&place, "1 bulk_put 1000*200 > file out").succeeds();
    assert_eq!(fs::metadata(place.path("data/out")).unwrap().len(), 200_000);
}

#[test]
fn a_file_that_would_not_hold_what_came_is_refused() {
    let place = place();
    for text in [
        "1 bulk_get 1000*10 > file out over tcp(receive = truncate)",
        "1 2 bulk_put 1000*10 > file out",
    ] {
        run(&place, text).mistakes(&["FILE"]).hints("`> memory`");
    }
    assert!(place.runs().is_empty() && !place.path("data/out").exists());
}

#[test]
fn no_directory_no_file() {
    let place = place();
    place
        .run("1 bulk_get 1000*10 < file in")
        .fails(3, &["FILE in is not permitted"])
        .hints("--files DIR");
    assert!(place.runs().is_empty(), "what is refused leaves nothing");
}

#[test]
fn what_lies_outside_stays_outside() {
    let place = place();
    place.write("secret", "not for agents");
    symlink(place.path("secret"), place.path("data/link")).unwrap();
    symlink(place.path(""), place.path("data/up")).unwrap();
    for name in ["link", "\"up/secret\"", "\"up/new\""] {
        run(&place, &format!("1 bulk_get 1000*10 < file {name}"))
            .fails(3, &["cannot open FILE", "under data"]);
        run(&place, &format!("1 bulk_get 1000*10 > file {name}"))
            .fails(3, &["cannot open FILE", "under data"]);
    }
    let absolute = place.path("secret").display().to_string();
    for name in ["../secret", "a/../../secret", &absolute] {
        let output = run(&place, &format!("1 bulk_get 1000*10 < file \"{name}\""));
        output
            .mistakes(&["a FILE must be in the directory that the host's agent may use"])
            .hints("a name within it");
    }
    assert!(!place.path("new").exists());
    assert_eq!(
        fs::read_to_string(place.path("secret")).unwrap(),
        "not for agents"
    );
}

#[test]
fn files_that_cannot_serve() {
    let place = place();
    place.write("data/empty", "");
    fs::create_dir(place.path("data/directory")).unwrap();
    nix_fifo(&place);
    run(&place, "1 bulk_get 1000*10 < file missing")
        .fails(3, &["FILE missing", "ENOENT"])
        .hints("relative to");
    run(&place, "1 bulk_get 1000 < whole file missing")
        .fails(3, &["FILE missing", "ENOENT"])
        .hints("relative to");
    run(&place, "1 bulk_get 1000 < whole file empty").fails(3, &["FILE empty is empty"]);
    run(&place, "1 bulk_get 1000*10 < file empty").fails(3, &["FILE empty is empty"]);
    run(&place, "1 bulk_get 1000*10 < file directory")
        .fails(3, &["FILE directory is not a regular file"]);
    run(&place, "1 bulk_get 1000*10 < file pipe").fails(3, &["FILE pipe is not a regular file"]);
    run(&place, "1 bulk_get 1000*10 > file directory").fails(3, &["FILE directory", "EISDIR"]);
    run(&place, "1 bulk_get 1000*10 > file pipe").fails(3, &["FILE pipe"]);
    run(&place, "1 bulk_get 1000*10 > file \"nowhere/out\"").fails(3, &["FILE nowhere/out"]);
    for directory in ["nowhere", "data/pipe", "data/empty"] {
        let output = place.stackline(&[
            "run",
            "--files",
            directory,
            "-e",
            "1 bulk_get 1000*10 < file in",
        ]);
        output
            .fails(3, &["cannot open the directory", directory])
            .hints("an existing directory");
    }
}

fn nix_fifo(place: &Place) {
    let made = Command::new("mkfifo")
        .arg(place.path("data/pipe"))
        .status()
        .unwrap();
    assert!(made.success());
}

#[test]
fn a_file_without_permission() {
    let place = place();
    fs::set_permissions(place.path("data/in"), fs::Permissions::from_mode(0o000)).unwrap();
    // Root without the privilege to read every file; for other users this changes nothing.
    let mut command = Command::new("setpriv");
    command.args([
        "--bounding-set=-dac_override,-dac_read_search",
        program(),
        "run",
        "--files",
    ]);
    command
        .arg(place.path("data"))
        .args(["-e", "1 bulk_get 1000*10 < file in"]);
    place
        .finish(
            command
                .current_dir(place.path(""))
                .env("STACKLINE_RUNS", place.path("runs")),
        )
        .fails(3, &["FILE in", "EACCES"]);
}
