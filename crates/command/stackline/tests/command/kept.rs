//! `net up`, `down`, `list`, `set`: networks that stay without programs, and what changes in them.

use crate::support::{Finished, Place, said, skip, until};
use nix::sys::signal::Signal;
use std::process::Output;
use std::time::Instant;

/// A network that is up, with a name of its own; it is ended when a test fails, too.
pub(crate) struct Kept {
    place: Place,
    pub(crate) name: String,
}

impl Kept {
    /// `None`, with the reason printed, where it cannot be made.
    pub(crate) fn up(test: &str, rate: &str) -> Option<Self> {
        let kept = Self {
            place: Place::new(),
            name: format!("{test}_{}", std::process::id()),
        };
        kept.write(rate);
        let output = kept.stackline(&["net", "up", "net.stackline"]);
        if output.status.code() == Some(3) {
            skip(&output.err);
            return None;
        }
        assert!(
            output
                .succeeds()
                .out
                .contains("khons 10.71.0.1, udjat 10.71.0.2"),
            "{}",
            output.out
        );
        Some(kept)
    }

    fn write(&self, rate: &str) {
        let inside = format!(
            "host khons, udjat; switch s; link khons - s {rate} 1 ms; link s - udjat {rate} 1 ms;"
        );
        self.place.write(
            "net.stackline",
            format!("network {} {{ {inside} }}", self.name),
        );
    }

    /// Done by the command, which may leave the network behind.
    pub(crate) fn stackline(&self, words: &[&str]) -> Finished {
        let Output {
            status,
            stdout,
            stderr,
        } = self.place.command(words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Finished {
            status,
            out: text(stdout),
            err: text(stderr),
        }
    }

    fn exec(&self, more: &[&str], command: &str) -> Output {
        let words = [
            &["net", "exec"],
            more,
            &["net.stackline", "khons", "--", "sh", "-c", command],
        ]
        .concat();
        self.place.command(&words).output().unwrap()
    }

    /// The line of `net list` about it.
    fn listed(&self) -> Option<String> {
        let list = self.stackline(&["net", "list"]);
        list.succeeds()
            .out
            .lines()
            .find(|line| line.starts_with(&format!("{}:", self.name)))
            .map(str::to_owned)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.place.command(&["net", "down", &self.name]).output();
    }
}

#[test]
fn a_network_stays_until_it_is_taken_down() {
    let Some(net) = Kept::up("stays", "100 Mbit/s") else {
        return;
    };
    assert!(
        net.listed()
            .is_some_and(|line| line.contains("programs: 0") && line.contains("kept by `net up`"))
    );
    net.stackline(&["net", "up", "net.stackline"]).succeeds();
    let first = net.exec(&[], "readlink /proc/self/ns/net");
    let second = net.exec(&[], "readlink /proc/self/ns/net");
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    assert_eq!(
        first.stdout, second.stdout,
        "both programs were on the same host"
    );
    assert!(
        net.stackline(&["net", "down", "net.stackline"])
            .succeeds()
            .out
            .contains("is down")
    );
    assert_eq!(net.listed(), None);
    net.place.empties();
    net.stackline(&["net", "down", &net.name])
        .fails(2, &["kept by `net up`"])
        .hints("net list");
}

#[test]
fn programs_outlive_its_end_and_nothing_outlives_the_emulator() {
    let Some(net) = Kept::up("ends", "100 Mbit/s") else {
        return;
    };
    let words = ["net", "exec", "net.stackline", "khons", "--", "sleep", "60"];
    let mut program = net.place.command(&words).spawn().unwrap();
    until("its program is there", || {
        net.listed().filter(|line| line.contains("programs: 1"))
    });
    let down = net.stackline(&["net", "down", &net.name]);
    assert!(
        down.succeeds()
            .out
            .contains("will be taken down when the program running on it exits"),
        "{}",
        down.out
    );
    assert!(
        net.listed()
            .is_some_and(|line| line.contains("taken down when its last program exits"))
    );
    program.kill().unwrap();
    program.wait().unwrap();
    net.place.empties();

    net.stackline(&["net", "up", "net.stackline"]).succeeds();
    let [emulator] = net.place.processes()[..] else {
        panic!("one process keeps it")
    };
    emulator.signal(Signal::SIGKILL);
    net.place.empties();
    assert_eq!(net.listed(), None);
}

#[test]
fn another_text_of_that_name_is_a_second_network() {
    let Some(net) = Kept::up("second", "100 Mbit/s") else {
        return;
    };
    let here = |more: &[&str]| net.exec(more, "readlink /proc/self/ns/net");
    let first = here(&[]);
    net.write("200 Mbit/s");
    let second = here(&[]);
    assert_ne!(first.stdout, second.stdout);
    for words in [
        "so this is a second one",
        &format!("net exec {} HOST", net.name),
        &format!("net down {}", net.name),
    ] {
        assert!(
            said(&second).contains(words),
            "no `{words}` in {}",
            said(&second)
        );
    }
    // The second one ends with its last program, which takes a moment.
    until("the second network is gone", || {
        (net.place.processes().len() == 1).then_some(())
    });
    let joined = here(&["--join"]);
    assert_eq!(joined.stdout, first.stdout, "{}", said(&joined));
    net.stackline(&["net", "up", "net.stackline"])
        .fails(2, &["a network named"])
        .hints("net down");
    net.stackline(&["net", "down", &net.name]).succeeds();
    let lost = here(&["--join"]);
    assert_eq!(lost.status.code(), Some(2), "{}", said(&lost));
}

#[test]
fn a_network_that_is_up_goes_by_its_name() {
    let Some(net) = Kept::up("named", "100 Mbit/s") else {
        return;
    };
    let on = |word: &str, more: &[&str]| {
        let words = [
            &["net", "exec"],
            more,
            &[word, "khons", "--", "readlink", "/proc/self/ns/net"],
        ]
        .concat();
        net.stackline(&words)
    };
    let by_file = on("net.stackline", &[]);
    net.write("200 Mbit/s");
    let by_name = on(&net.name, &[]);
    assert_eq!(
        (by_name.succeeds().out.as_str(), by_name.err.as_str()),
        (by_file.succeeds().out.as_str(), "")
    );
    net.stackline(&["net", "set", &net.name, "khons-s", "--delay", "7 ms"])
        .succeeds();
    let shown = net.stackline(&["net", "show", &net.name]);
    assert!(
        shown.succeeds().out.contains("100 Mbit/s") && shown.out.contains("7.00 ms"),
        "{}",
        shown.out
    );

    on(&net.name, &["--seed", "7"])
        .fails(2, &["--seed has no effect", "is already up"])
        .hints("omit --seed");
    on(&net.name, &["--network", "x"])
        .fails(2, &["--network has no effect"])
        .hints("omit --network");
    on(&format!("{}x", net.name), &[])
        .fails(2, &["neither a file nor the name"])
        .hints(&net.name);
    on("nothing.stackline", &[])
        .fails(2, &["nothing.stackline cannot be read"])
        .hints("name a specification file");
    net.stackline(&["net", "exec", &net.name, "nobody", "--", "true"])
        .fails(2, &["has no host nobody"])
        .hints("khons");
    net.stackline(&["net", "down", &net.name]).succeeds();
    net.stackline(&["net", "show", &net.name])
        .fails(2, &["neither a file nor"])
        .hints("net up SPEC");
}

#[test]
fn a_link_changes_while_its_network_is_up() {
    let Some(net) = Kept::up("changes", "100 Mbit/s") else {
        return;
    };
    let set = |more: &[&str]| net.stackline(&[&["net", "set", &net.name], more].concat());
    set(&["udjat-s", "--delay", "80 ms", "--queue", "32 KiB"]).succeeds();
    let json = net.stackline(&["net", "list", "--json"]).json();
    let ours = json["networks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|up| up["network"]["name"] == net.name.as_str());
    let link = &ours.unwrap()["network"]["links"][1];
    assert_eq!(
        (&link["delay"], &link["queue"]["limit_bytes"]),
        (&80_000_000.into(), &32_768.into())
    );
    // Nobody listens there: the refusal takes a round trip.
    let begun = Instant::now();
    let refused = net.exec(&[], "bash -c 'exec 3<>/dev/tcp/udjat/9'");
    assert!(begun.elapsed().as_millis() >= 162, "{}", said(&refused));
    assert!(said(&refused).contains("refused"), "{}", said(&refused));

    set(&["udjat-s", "--loss", "100%"]).succeeds();
    let list = net.stackline(&["net", "list"]);
    assert!(
        list.out
            .contains("  link s - udjat: delay 80.0 ms, loss 100 %, queue 32 KiB (set)\n"),
        "{}",
        list.out
    );
    set(&["udjat-s"])
        .fails(2, &["nothing to change"])
        .hints("--rate");
    set(&["udjat-z", "--loss", "1%"])
        .fails(2, &["has no link udjat-z"])
        .hints("khons-s, s-udjat");
    set(&["udjat-s", "--queue", "64 KiB codel"])
        .fails(2, &["the queue discipline"])
        .hints("net down");
    set(&["udjat-s", "--loss", "1% mtu 900"])
        .fails(2, &["takes a single value"])
        .hints("give each flag one value");
    let incomplete = set(&["udjat-s", "--loss", "1"]);
    incomplete
        .mistakes(&["--loss does not contain a complete value"])
        .hints("write `1%`");
    set(&["udjat-s", "--rate", "2 Mbit/s 5 ms"])
        .mistakes(&["--rate does not"])
        .hints("--rate '2 Mbit/s'");
    let none = set(&["udjat-s", "--rate", "0 bit/s"]);
    none.mistakes(&["must be above zero"])
        .hints("`--loss 100%`");
    assert!(
        !none.err.contains("network set") && !incomplete.err.contains("link a"),
        "{}{}",
        none.err,
        incomplete.err
    );
    net.stackline(&["net", "set", "nowhere", "a-b", "--loss", "1%"])
        .fails(2, &["no network named"])
        .hints("net up");
}
