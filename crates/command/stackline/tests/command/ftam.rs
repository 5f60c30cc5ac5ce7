//! The stack `ftam`: what a run sends over the wire is what tshark knows as TPKT, COTP, session, presentation, ACSE and FTAM.

use crate::support::wire_capture::WireCapture;
use crate::support::{Place, number};
use std::collections::BTreeSet;

/// Runs of each application type.
const RUNS: [&str; 5] = [
    "conn_disc 0*2 over ftam(port = 20102)",
    "rr 32,100*3 over ftam(port = 20102)",
    "bulk_get 1024*5 over ftam(port = 20102)",
    "bulk_put 1024*5 over ftam(port = 20102, tpdu = 300)",
    "bulk_put 100 kB*2 over ftam(port = 20102)",
];
/// How tshark reads them.
const READING: [&str; 4] = [
    "-d",
    "tcp.port==20102,tpkt",
    // It knows this abstract syntax by name and has nothing that reads its values.
    "-o",
    r#"uat:oid:"1.0.8571.2.4","FTAM unstructured binary","OctetString""#,
];

#[test]
fn tshark_knows_every_layer_of_every_packet_and_the_services_of_the_report() {
    let Some(capture) = WireCapture::of_runs(&RUNS, &READING) else {
        return;
    };
    assert_eq!(capture.complaints(), Vec::<String>::new());
    let malformed = capture.fields(&["frame.number"], "_ws.malformed");
    assert_eq!(malformed, Vec::<Vec<String>>::new());
    let packets = capture.fields(
        &["frame.number", "frame.protocols"],
        "tcp.port == 20102 and tcp.len > 0",
    );
    assert!(packets.len() > 80, "{}", packets.len());
    let unknown = capture.fields(
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
    let requests = capture.fields(
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
    let sizes = capture.fields(&["cotp.tpdu_size"], "cotp.type == 0x0d and cotp.tpdu_size");
    assert_eq!(sizes, [["256"]], "rounded down to a power of two");
    services_are_those_of_the_report(&capture);
}

/// Each application type uses the services of Appendix A.
fn services_are_those_of_the_report(capture: &WireCapture) {
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
    let packets = capture.fields(&names, "ftam");
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
