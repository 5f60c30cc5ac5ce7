//! The stack `ftam`: what a run sends over the wire is what tshark knows as TPKT, COTP, session, presentation, ACSE and FTAM.

use crate::support::{Place, has_program, number, program, skip};
use std::collections::BTreeSet;
use std::process::Command;

/// Runs of each application type on loopback of a network of its own, and their capture: what `unshare` runs.
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
for what in 'conn_disc 0*2 over ftam(port = 20102)' 'rr 32,100*3 over ftam(port = 20102)' 'bulk_get 1024*5 over ftam(port = 20102)' \
    'bulk_put 1024*5 over ftam(port = 20102, tpdu = 300)' 'bulk_put 100 kB*2 over ftam(port = 20102)'; do
    "$1" run -e "1 $what" >/dev/null
done
# What was sent last has been captured when something after it has.
sleep 1
"#;

/// What tshark prints of the capture.
fn tshark(place: &Place, arguments: &[&str]) -> String {
    let output = Command::new("tshark")
        .args(["-r", "all.pcapng", "-d", "tcp.port==20102,tpkt"])
        // It knows this abstract syntax by name and has nothing that reads its values.
        .args([
            "-o",
            r#"uat:oid:"1.0.8571.2.4","FTAM unstructured binary","OctetString""#,
        ])
        .args(arguments)
        .current_dir(place.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What tshark says of each packet that passes a filter, of the fields that are named.
fn fields(place: &Place, names: &[&str], filter: &str) -> Vec<Vec<String>> {
    let mut arguments = vec!["-Y", filter, "-T", "fields"];
    names.iter().for_each(|name| arguments.extend(["-e", name]));
    let line = |line: &str| line.split('\t').map(str::to_owned).collect();
    tshark(place, &arguments).lines().map(line).collect()
}

/// Warnings and errors of tshark, but those of TCP itself, which has retransmitted on a busy machine.
fn complaints(place: &Place) -> Vec<String> {
    let said = tshark(place, &["-q", "-z", "expert,warn"]);
    let is_one = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let counted = words
            .first()
            .is_some_and(|first| first.parse::<u64>().is_ok());
        counted && !words.contains(&"TCP")
    };
    said.lines().filter(is_one).map(str::to_owned).collect()
}

/// Whether there is a capture; without the means for one the test is skipped.
fn capture(place: &Place) -> bool {
    let tools = [
        ("unshare", "util-linux"),
        ("dumpcap", "wireshark-common"),
        ("ip", "iproute2"),
        ("ping", "iputils-ping"),
        ("tshark", "tshark"),
    ];
    if !tools
        .iter()
        .all(|(tool, package)| has_program(tool, package))
    {
        return false;
    }
    let done = Command::new("unshare")
        .args(["-Urn", "sh", "-c", LAB, "lab", program()])
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
        return false;
    }
    true
}

#[test]
fn tshark_knows_every_layer_of_every_packet_and_the_services_of_the_report() {
    let place = Place::new();
    if !capture(&place) {
        return;
    }
    assert_eq!(complaints(&place), Vec::<String>::new());
    let malformed = fields(&place, &["frame.number"], "_ws.malformed");
    assert_eq!(malformed, Vec::<Vec<String>>::new());
    let packets = fields(
        &place,
        &["frame.number", "frame.protocols"],
        "tcp.port == 20102 and tcp.len > 0",
    );
    assert!(packets.len() > 80, "{}", packets.len());
    let unknown = fields(
        &place,
        &["frame.number"],
        "tcp.port == 20102 and (data or (tpkt and not cotp))",
    );
    assert_eq!(unknown, Vec::<Vec<String>>::new());
    let layers: BTreeSet<&str> = packets
        .iter()
        .flat_map(|packet| packet[1].split(':'))
        .collect();
    for layer in ["tpkt", "cotp", "ses", "pres", "acse", "ftam"] {
        assert!(layers.contains(layer), "{layer}: {layers:?}");
    }
    // The token is where TSAP-IDs are, and nothing is before it.
    let requests = fields(
        &place,
        &["cotp.src-tsap-bytes", "cotp.dst-tsap"],
        "cotp.type == 0x0e",
    );
    assert_eq!(requests.len(), 2 + 4);
    for request in &requests {
        assert_eq!(
            (request[0].len(), &*request[1]),
            (32, "ftam"),
            "{request:?}"
        );
    }
    let sizes = fields(
        &place,
        &["cotp.tpdu_size"],
        "cotp.type == 0x0d and cotp.tpdu_size",
    );
    assert_eq!(sizes, [["256"]], "rounded down to a power of two");
    services_are_those_of_the_report(&place);
}

/// Each application type uses the services of Appendix A.
fn services_are_those_of_the_report(place: &Place) {
    let services = [
        ("ftam.f_initialize_request_element", 6),
        ("ftam.f_initialize_response_element", 6),
        // One for the calls, one for each bulk transfer.
        ("ftam.f_begin_group_request_element", 2 * 4),
        ("ftam.f_select_request_element", 4),
        ("ftam.f_open_request_element", 4),
        // A call writes its request and reads its response.
        ("ftam.f_write_request_element", 3 + 2),
        ("ftam.f_read_request_element", 3 + 1),
        ("ftam.f_data_end_request_element", 6 + 3),
        ("ftam.f_transfer_end_request_element", 6 + 3),
        ("ftam.f_transfer_end_response_element", 6 + 3),
        ("ftam.f_close_response_element", 4),
        ("ftam.f_deselect_response_element", 4),
        ("ftam.f_terminate_request_element", 6),
        ("ftam.f_terminate_response_element", 6),
    ];
    let names: Vec<&str> = services.iter().map(|(field, _)| *field).collect();
    let packets = fields(place, &names, "ftam");
    for (column, (field, expected)) in services.into_iter().enumerate() {
        // A packet may hold several.
        let in_packet = |packet: &Vec<String>| packet[column].split_terminator(',').count();
        let count: usize = packets.iter().map(in_packet).sum();
        assert_eq!(count, expected, "{field}");
    }
}

#[test]
fn the_size_of_tpdus_is_what_both_agreed_on() {
    let place = Place::new();
    for (written, granted) in [("ftam", "65531 B"), ("ftam(tpdu = 300)", "256 B")] {
        let measured = place.measure(&format!("1 bulk_put 1 MB*3 over {written}"));
        for side in ["initiator", "responder"] {
            let settings = &measured[0][side]["settings"];
            assert_eq!(settings["tpdu"], granted, "{written}: {settings}");
        }
        let received = number(&measured[0], "/responder/received_bytes");
        assert_eq!(received, 3e6, "{written}");
    }
}
