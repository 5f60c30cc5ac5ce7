//! Data units as datagrams of QUIC: what is lost is counted, and what no packet can carry is refused.

use crate::support::{Place, number, skip};

#[test]
fn what_the_network_loses_is_counted() {
    let place = Place::new();
    let network = "network lossy { host a, b; link a - b 100 Mbit/s 2 ms loss 3%; }";
    let tried = place.stackline(&["net", "exec", "-e", network, "a", "--", "true"]);
    if tried.status.code() == Some(3) {
        skip(&tried.err);
        return;
    }
    let text = format!(
        "{network} 1 from a to b bulk_put 1000*2000 over quic(datagrams) across lossy;
        1 from b to a rr 100*200 over quic(datagrams, call_timeout = 50 ms) across lossy;"
    );
    let json = place
        .stackline(&["run", "--json", "-e", &text, "--in", "emulated"])
        .json();
    let put = |field: &str| number(&json, &format!("/measurements/0/{field}"));
    let (sent, received) = (put("initiator/sent_units"), put("responder/received_units"));
    assert_eq!(sent, 2000.0);
    assert!(
        put("lost") > 0.0 && put("lost") + received == sent,
        "{received} of {sent}"
    );
    let calls = |field: &str| number(&json, &format!("/measurements/1/{field}"));
    assert!(calls("lost") > 0.0, "calls are lost too");
    assert_eq!(calls("lost") + calls("response_s/n"), 200.0);
}

#[test]
fn units_that_no_packet_carries_are_refused() {
    let place = Place::new();
    place
        .run("1 rr 5000*5 over quic(datagrams)")
        .fails(
            2,
            &["a data unit of 5000 B does not fit into a QUIC datagram on this path"],
        )
        .hints("its packets carry at most ");
    for (what, cause) in [
        ("rr 65508*5", "carries data units of at most 65507 bytes"),
        ("bulk_put 7*5", "carries data units of at least 8 bytes"),
    ] {
        let text = format!("1 {what} over quic(datagrams) in live;");
        place.stackline(&["check", "-e", &text]).mistakes(&[cause]);
    }
    for (over, cause) in [
        (
            "quic(call_timeout = 1 s)",
            "has no effect without `datagrams`",
        ),
        (
            "quic(datagrams, streams = 2)",
            "takes either datagrams or streams",
        ),
        (
            "quic(datagrams, resume, early_data)",
            "takes either datagrams or early_data",
        ),
    ] {
        let text = format!("1 rr 32*10 over {over} in live;");
        place.stackline(&["check", "-e", &text]).mistakes(&[cause]);
    }
}
