//! A capture of runs on the loopback interface of a network of its own, and what tshark reads in it.

use super::{Place, has_program, program, skip};
use std::process::Command;

/// What `unshare` runs: the program, then what each run measures.
const LAB: &str = r#"
set -e
ip link set lo up
# Small packets: no segment is larger than what the capture keeps.
ip link set lo mtu 1500
timeout 60 dumpcap -q -i lo -s 65535 -w all.pcapng >/dev/null 2>&1 & dump=$!
trap 'kill $dump 2>/dev/null || true' EXIT
# The capture has begun when it has something.
for try in $(seq 100); do
    [ -s all.pcapng ] && [ "$(stat -c %s all.pcapng)" -gt 500 ] && break
    ping -c 1 -W 1 127.0.0.1 >/dev/null
    sleep 0.05
done
program=$1
shift
for what in "$@"; do
    "$program" run -e "1 $what" >/dev/null
done
# What was sent last has been captured when something after it has.
sleep 1
"#;

/// A capture of runs.
pub(crate) struct WireCapture {
    place: Place,
    /// How tshark is started for it: which port speaks which protocol.
    reading: &'static [&'static str],
}

impl WireCapture {
    /// Captures these runs; `None`, and the test is skipped, without the means for that.
    pub(crate) fn of_runs(runs: &[&str], reading: &'static [&'static str]) -> Option<Self> {
        let tools = [
            ("unshare", "util-linux"),
            ("dumpcap", "wireshark-common"),
            ("ip", "iproute2"),
            ("ping", "iputils-ping"),
            ("tshark", "tshark"),
        ];
        let mut tools = tools.iter();
        if !tools.all(|(tool, package)| has_program(tool, package)) {
            return None;
        }
        let place = Place::new();
        let done = Command::new("unshare")
            .args(["-Urn", "sh", "-c", LAB, "lab", program()])
            .args(runs)
            .env("STACKLINE_RUNS", place.path("runs"))
            .env("XDG_CONFIG_HOME", place.path("configuration"))
            .current_dir(place.path(""))
            .output()
            .unwrap();
        let size = std::fs::metadata(place.path("all.pcapng")).map_or(0, |about| about.len());
        if !done.status.success() || size < 1000 {
            skip(format_args!(
                "no capture could be made: {}",
                String::from_utf8_lossy(&done.stderr)
            ));
            return None;
        }
        Some(Self { place, reading })
    }

    /// What tshark prints of the capture.
    fn tshark(&self, arguments: &[&str]) -> String {
        let output = Command::new("tshark")
            .args(["-r", "all.pcapng"])
            .args(self.reading)
            .args(arguments)
            .current_dir(self.place.path(""))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What tshark says of each packet that passes a filter, of the fields that are named.
    pub(crate) fn fields(&self, names: &[&str], filter: &str) -> Vec<Vec<String>> {
        let mut arguments = vec!["-Y", filter, "-T", "fields"];
        names.iter().for_each(|name| arguments.extend(["-e", name]));
        let line = |line: &str| line.split('\t').map(str::to_owned).collect();
        self.tshark(&arguments).lines().map(line).collect()
    }

    /// The values of one field, of which a packet may hold several.
    pub(crate) fn values(&self, name: &str, filter: &str) -> Vec<String> {
        let packets = self.fields(&[name], filter);
        let values = packets
            .iter()
            .flat_map(|packet| packet[0].split_terminator(','));
        values.map(str::to_owned).collect()
    }

    /// Warnings and errors of tshark, but those of TCP itself, which has retransmitted on a busy machine.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let said = self.tshark(&["-q", "-z", "expert,warn"]);
        let is_one = |line: &&str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let counted = words
                .first()
                .is_some_and(|first| first.parse::<u64>().is_ok());
            counted && !words.contains(&"TCP")
        };
        said.lines().filter(is_one).map(str::to_owned).collect()
    }
}
