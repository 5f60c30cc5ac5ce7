//! Bytes that were not seen: what is known despite them, and what is not.

use super::*;

#[test]
fn data_that_was_not_seen_does_no_harm() {
    let mut fed = Fed::opened();
    fed.bytes('>', &get(1, "/big"));
    fed.bytes('<', &head(1, 0, &[(":status", "200")]));
    fed.bytes('<', &frame(0, 0, 1, &[7; 1000])[..20]);
    fed.unseen('<', 500);
    fed.unseen('<', 489);
    fed.bytes('<', &data(1, LAST, b"end"));
    assert_eq!(
        fed.dissect_lines()[3..],
        [
            "0 response begins < 9",
            "0 response is 200",
            "0 response ends < 1052"
        ]
    );
    // The end of a stream in a frame whose last bytes were cut, and one of a length that nobody would hold.
    fed.bytes('>', &get(3, "/huge"));
    fed.bytes('<', &head(3, 0, &[(":status", "200")]));
    fed.bytes('<', &[0xff, 0xff, 0xff, 0, LAST, 0, 0, 0, 3]);
    fed.unseen('<', 0xff_ffff);
    assert_eq!(
        fed.dissect_lines().last().unwrap(),
        "1 response ends < 16778298"
    );
}

#[test]
fn what_curl_and_a_server_in_python_really_said() {
    let there = "505249202a20485454502f322e300d0a0d0a534d0d0a0d0a000012040000000000000300000064000402000000000200000000
        00000408000000000001ff000100002301050000000182048360f51786418b089d5c0b8170dc0bc0781f7a8825b650c3abbcf2e153032a
        2f2a000000040100000000";
    let back = "00002a04000000000000010000100000020000000000040000ffff000500004000000800000000000300000064000600010000
        00000004010000000000000a010400000001887681f35c840880007f002ee00001000000016161";
    let mut fed = Fed::default();
    fed.bytes('>', &hpack::tests::hex(there));
    fed.bytes('<', &hpack::tests::hex(back));
    fed.unseen('<', 11_998);
    assert_eq!(
        fed.dissect_lines(),
        [
            "0 request begins > 64",
            "0 request is GET /one",
            "0 request ends > 108",
            "0 response begins < 60",
            "0 response is 200",
            "0 response ends < 12088",
        ]
    );
}

#[test]
fn messages_of_a_call_are_known_as_long_as_their_lengths_are() {
    let mut fed = Fed::opened();
    fed.bytes('>', &call(1, LAST));
    fed.bytes('<', &head(1, 0, &[(":status", "200")]));
    let messages = [message("abcdefgh"), message("x"), message("y")].concat();
    fed.bytes('<', &data(1, 0, &messages)[..15]);
    fed.unseen('<', 7);
    fed.bytes('<', &messages[13..19]);
    assert_eq!(fed.dissect_lines()[4..], ["0 part < 53", "0 part < 59"]);
    fed.unseen('<', 3);
    fed.bytes('<', &messages[22..]);
    fed.bytes('<', &data(1, 0, &message("z")));
    fed.bytes('<', &head(1, LAST, &[("grpc-status", "0")]));
    assert_eq!(
        fed.dissect_lines(),
        ["0 response is grpc-status 0", "0 response ends < 104"]
    );
}

#[test]
fn fields_that_were_not_seen_leave_later_names_of_their_side_unknown() {
    let mut fed = Fed::opened();
    fed.bytes('>', &get(1, "/1")[..20]);
    fed.unseen('>', get(1, "/1").len() as u64 - 20);
    fed.bytes('>', &get(3, "/3"));
    fed.bytes('<', &head(1, LAST, &[(":status", "200")]));
    fed.bytes('<', &head(3, LAST, &[(":status", "404")]));
    assert_eq!(
        fed.dissect_lines(),
        [
            "0 request begins > 33",
            "0 request ends > 79",
            "1 request begins > 79",
            "1 request ends > 125",
            "0 response begins < 9",
            "0 response is 200",
            "0 response ends < 31",
            "1 response begins < 31",
            "1 response is 404",
            "1 response ends < 53",
        ]
    );
}

#[test]
fn a_gap_between_frames_loses_its_side() {
    let mut fed = Fed::opened();
    fed.bytes('>', &get(1, "/1"));
    fed.bytes('<', &data(0, 0, b"")[..4]);
    fed.unseen('<', 100);
    fed.bytes('<', &head(1, LAST, &[(":status", "200")]));
    fed.bytes('>', &get(3, "/3"));
    assert_eq!(
        fed.dissect_lines()[3..],
        [
            "0 void: some bytes of its connection's frames were not captured",
            "1 request begins > 79",
            "1 request is GET /3",
            "1 request ends > 125",
            "1 void: some bytes of its connection's frames were not captured",
        ]
    );
    fed.unseen('>', 1);
    fed.bytes('>', &get(5, "/5"));
    assert!(fed.dissect_lines().is_empty());
}
