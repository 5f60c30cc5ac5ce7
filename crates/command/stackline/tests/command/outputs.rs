//! Every option that names an output, on whatever may lie where it leads.

use crate::support::{Place, pair};
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A place with the traced run `base` and a network.
fn place() -> Place {
    let place = Place::new();
    let text = format!(
        "{} 1 from a to b bulk_put 1000*20 over tcp across n in simulated",
        pair("")
    );
    place
        .stackline(&["run", "--trace", "--name", "base", "-e", &text])
        .succeeds();
    place.write("n.stackline", pair(""));
    place
}

/// All options that name a file; it comes last.
const FILES: [&[&str]; 9] = [
    &["export", "base", "--text"],
    &["export", "base", "--tape"],
    &["export", "base", "--otlp"],
    &["export", "base", "--otlp-json"],
    &["export", "base", "--perfetto"],
    &["report", "base", "-o"],
    &["report", "base", "--svg"],
    &["report", "base", "--png"],
    &["net", "show", "n.stackline", "--svg"],
];

/// The command with that file.
fn onto(place: &Place, option: &[&str], file: &Path) -> Command {
    place.command(&[option, &[file.to_str().unwrap()]].concat())
}

/// What each option writes into a new file, whose name is as long as a name may be.
fn each(mut with: impl FnMut(&Place, &[&str], &[u8])) {
    let place = place();
    let new = place.path(&"x".repeat(255));
    for option in FILES {
        place.finish(&mut onto(&place, option, &new)).succeeds();
        let whole = fs::read(&new).unwrap();
        fs::remove_file(&new).unwrap();
        with(&place, option, &whole);
    }
}

#[test]
fn standard_output_goes_on_where_it_is() {
    each(|place, option, whole| {
        for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            place.write("log", "before\n");
            let log = File::options()
                .append(true)
                .open(place.path("log"))
                .unwrap();
            let status = onto(place, option, Path::new(name))
                .stdout(log)
                .stderr(Stdio::null())
                .status();
            assert!(status.unwrap().success());
            assert!(
                fs::read(place.path("log"))
                    .unwrap()
                    .starts_with(&[b"before\n", whole].concat()),
                "{option:?} {name}"
            );
        }
    });
}

#[test]
fn a_file_with_two_names_keeps_both() {
    each(|place, option, whole| {
        let (file, other) = (place.write("file", "old"), place.path("other"));
        fs::hard_link(&file, &other).unwrap();
        place.finish(&mut onto(place, option, &file)).succeeds();
        assert!(fs::read(&other).unwrap() == whole, "{option:?}");
        fs::remove_file(&other).unwrap();
    });
}

#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    each(|place, option, _| {
        let file = place.write("file", "precious");
        fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
        // Root may write every file.
        if File::options().write(true).open(&file).is_err() {
            place
                .finish(&mut onto(place, option, &file))
                .fails(3, &["Permission denied"])
                .hints("choose a writable directory");
            assert_eq!(fs::read(&file).unwrap(), b"precious");
        }
        fs::remove_file(&file).unwrap();
    });
}

#[test]
fn what_cannot_be_a_file_is_refused_and_stays() {
    each(|place, option, _| {
        let directory = place.path("directory");
        fs::create_dir_all(&directory).unwrap();
        for file in [
            directory.clone(),
            place.path("nowhere/file"),
            place.path("n.stackline/file"),
            place.path("new/"),
        ] {
            let output = place.finish(&mut onto(place, option, &file));
            output
                .fails(3, &[file.to_str().unwrap()])
                .hints("choose a writable directory");
        }
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    });
}

/// A command that finds no room: the files it writes may not be longer than 4 kB.
fn without_room(place: &Place, words: &[&str]) -> Command {
    let mut command = place.command(&["help"]);
    let program = command.get_program().to_owned();
    let script = "trap '' XFSZ; ulimit -f 4; exec \"$@\"";
    let mut limited = Command::new("sh");
    limited
        .args(["-c", script, "sh"])
        .arg(program)
        .args(words)
        .current_dir(place.path(""));
    limited.envs(
        command
            .stdout(Stdio::null())
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    limited
}

#[test]
fn without_room_the_old_file_stays() {
    let place = place();
    let untidy = "1   rr 32*1; ".repeat(1000);
    let file = place.write("file", &untidy);
    let other = place.path("other");
    for linked in [false, true] {
        if linked {
            fs::hard_link(&file, &other).unwrap();
        }
        place
            .finish(&mut without_room(&place, &["fmt", "--write", "file"]))
            .fails(3, &["File too large"]);
        assert!(
            fs::read_to_string(&file).unwrap() == untidy,
            "with two names: {linked}"
        );
        for option in FILES.iter().filter(|option| option[0] != "net") {
            let output = place.finish(&mut without_room(&place, &[*option, &["file"]].concat()));
            // A small picture has room.
            assert!(
                output.status.success() || fs::read_to_string(&file).unwrap() == untidy,
                "{option:?} {linked}"
            );
            place.write("file", &untidy);
        }
    }
}

#[test]
fn help_that_cannot_be_printed_is_an_error() {
    let place = Place::new();
    let watch = ["watch", "--for", "300ms", "--text"];
    for words in [
        &["--help"][..],
        &["run", "--help"],
        &["--version"],
        &["completions", "bash"],
        &watch,
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let child = place
            .command(words)
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{words}");
        assert!(
            words.starts_with("error: cannot write stdout") && words.contains("\nhint: "),
            "{words}"
        );
    }
    place.stackline(&["--help"]).succeeds();
    assert_eq!(place.stackline(&["--halp"]).status.code(), Some(2));
}

#[test]
fn files_of_a_directory_lead_where_they_lead() {
    let place = place();
    let pictures = [
        "reproduce",
        "blast",
        "--runs",
        "0",
        "--transfers",
        "10",
        "--precision",
        "50",
        "--pictures",
    ];
    for option in [&["man"][..], &["lifelines", "base", "--gnuplot"], &pictures] {
        let directory = place.path("directory");
        let words = [option, &[directory.to_str().unwrap()]].concat();
        place.stackline(&words).succeeds();
        let first = fs::read_dir(&directory)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let mut whole = Vec::new();
        File::open(&first).unwrap().read_to_end(&mut whole).unwrap();
        let to = place.write("to", "old");
        fs::remove_file(&first).unwrap();
        std::os::unix::fs::symlink(&to, &first).unwrap();
        place.stackline(&words).succeeds();
        assert!(
            first.is_symlink() && fs::read(&to).unwrap() == whole,
            "{option:?}"
        );
        fs::remove_file(&first).unwrap();
        fs::create_dir(&first).unwrap();
        place
            .stackline(&words)
            .fails(3, &[first.to_str().unwrap()])
            .hints("choose a writable directory");
        fs::remove_dir_all(&directory).unwrap();
        place.write("directory", "a file");
        place
            .stackline(&words)
            .fails(3, &["directory: File exists"])
            .hints("writable");
        fs::remove_file(&directory).unwrap();
    }
}
