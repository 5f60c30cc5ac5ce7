//! Ports in use, peers that cannot be reached, addresses that mean nothing.

use crate::support::Place;
use crate::support::daemons::free_port;
use std::net::{TcpListener, UdpSocket};

#[test]
fn a_port_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::new();
    let port = taken.local_addr().unwrap().port();
    let output = place.run(&format!("1 rr 32*10 over tcp(port = {port})"));
    output
        .fails(
            3,
            &["responder", &format!("port {port} is in use on 127.0.0.1")],
        )
        .hints("omit the option `port`");
    assert!(place.runs().is_empty());

    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    Place::new()
        .run(&format!("1 rr 32*10 over udp(port = {port})"))
        .fails(3, &["is in use on 127.0.0.1"]);
}

#[test]
fn ports_are_as_written_run_after_run() {
    let port = free_port();
    Place::new()
        .run(&format!(
            "5 rr 32*10 over tcp(port = {port}), udp(port = {port})"
        ))
        .succeeds();
    Place::new()
        .run("1 parallel: 3 rr 32*10 over tcp(port = 65534)")
        .fails(2, &["below 65536"])
        .hints("consecutive ports");
}

/// A responder listens wherever it was said to be reached, so only an address that is nobody's is out of reach.
#[test]
fn a_wrong_responder_address_is_reported() {
    for stack in ["tcp", "udp"] {
        let place = Place::new();
        let output = place.run(&format!(
            "host b at \"255.255.255.255\" via local; 1 to b rr 32*10 over {stack};"
        ));
        output.fails(3, &["initiator", "cannot connect to 255.255.255.255:"]);
        assert!(place.runs().is_empty());
    }
}

#[test]
fn another_address_of_the_same_machine_will_do() {
    let text = "host b at \"127.0.0.2\" via local; 1 to b rr 32*10 over tcp; 1 to b bulk_put 1000*10 over tcp;";
    Place::new().run(text).succeeds();
}

#[test]
fn an_address_that_means_nothing() {
    let text = "host b at \"no.such.host.invalid\" via local; 1 to b rr 32*10;";
    Place::new()
        .run(text)
        .fails(3, &["no.such.host.invalid"])
        .hints("host NAME at");
}

#[test]
fn an_option_the_kernel_refuses() {
    let output = Place::new().run("1 rr 32*10 over tcp(congestion = nonesuch)");
    output
        .fails(3, &["congestion", "nonesuch"])
        .hints("tcp_available_congestion_control");
}
