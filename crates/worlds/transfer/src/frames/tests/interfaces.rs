//! Interfaces that go down or cannot be used.

use super::*;
use std::process::Command;
use std::slice;

in_rooms! {
    an_interface_that_goes_down_is_an_error
    unusable_interfaces_are_reported_with_a_hint
}

fn an_interface_that_goes_down_is_an_error() {
    let (mut left, mut right) = veth();
    assert!(
        Command::new("ip")
            .args(["link", "set", "far", "down"])
            .status()
            .unwrap()
            .success()
    );
    let error = right.receive(HEAD, &mut [], &[], LONG).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN));
    assert!(
        Command::new("ip")
            .args(["link", "set", "near", "down"])
            .status()
            .unwrap()
            .success()
    );
    let run = PacketRun {
        head: HEAD,
        heads: slice::from_ref(&PacketHeadBuffer::EMPTY),
        payload: &[],
        each: 0,
    };
    assert_eq!(
        left.send(run).unwrap_err().raw_os_error(),
        Some(libc::ENETDOWN)
    );
    let error = FrameCarrier::listen("far", None, options()).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::NetworkDown);
    assert!(
        error.to_string().contains("is down\nhint: `ip link set"),
        "{error}"
    );
}

fn unusable_interfaces_are_reported_with_a_hint() {
    for name in ["none-such", "", "a-name-that-is-too-long", "n\0l"] {
        let error = FrameCarrier::connect(name, options()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let why: &Unusable = error.get_ref().unwrap().downcast_ref().unwrap();
        assert!(why.message.contains(name) && why.hint.contains("ip link"));
    }
}
