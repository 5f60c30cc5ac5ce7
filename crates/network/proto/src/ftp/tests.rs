//! Commands and replies as lines, those of the RFCs' examples among them.

use super::data_address::{read_extended_port, read_port};
use super::reply::MOST_LINES;
use super::*;
use alloc::string::String;
use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

#[test]
fn ports_for_files_are_read() {
    let said = "229 Entering Extended Passive Mode (|||6446|)";
    assert_eq!(read_extended_passive(said), Some(6446));
    assert_eq!(extended_passive_reply(6446), said);
    assert_eq!(read_extended_passive("229 ok (!!!7!)"), Some(7));
    for wrong in [
        "229 (|||0|)",
        "229 (|||99999|)",
        "229 (|||+1|)",
        "229 (||6446|)",
        "229 6446",
        "229 (",
    ] {
        assert_eq!(read_extended_passive(wrong), None, "{wrong}");
    }
    let place = SocketAddrV4::new(Ipv4Addr::new(192, 168, 1, 2), 25 * 256 + 46);
    let said = "227 Entering Passive Mode (192,168,1,2,25,46)";
    assert_eq!(passive_reply(place), said);
    for right in [said, "227 =192,168,1,2,25,46", "227 (192,168,1,2,25,46)."] {
        assert_eq!(read_passive(right), Some(place), "{right}");
    }
    for wrong in [
        "227 (1,2,3,4,5)",
        "227 (1,2,3,4,5,6,7)",
        "227 (1,2,3,4,0,0)",
        "227 (1,2,3,4,5,256)",
        "227",
        "227 none",
    ] {
        assert_eq!(read_passive(wrong), None, "{wrong}");
    }
}

#[test]
fn addresses_for_files_are_written_as_the_rfcs_have_them() {
    let v4: SocketAddr = "132.235.1.2:6275".parse().unwrap();
    assert_eq!(extended_port_command(v4), "EPRT |1|132.235.1.2|6275|");
    let v6: SocketAddr = "[1080::8:800:200c:417a]:5282".parse().unwrap();
    let command = "EPRT |2|1080::8:800:200c:417a|5282|";
    assert_eq!(extended_port_command(v6), command);
    for address in [v4, v6] {
        let command = extended_port_command(address);
        let read = FtpCommand::read(command.as_bytes());
        assert_eq!(read, FtpCommand::ExtendedPort(address));
    }
    let SocketAddr::V4(v4) = v4 else {
        unreachable!("it is one of IPv4")
    };
    assert_eq!(port_command(v4), "PORT 132,235,1,2,24,131");
    let read = FtpCommand::read(b"port 132,235,1,2,24,131");
    assert_eq!(read, FtpCommand::Port(v4));
    for wrong in [
        "",
        "|1|1.2.3.4|0|",
        "|1|1.2.3.4|5",
        "|2|1.2.3.4|5|",
        "|1|::1|5|",
        "|3|1.2.3.4|5|",
        "|1|1.2.3.4|5|6|",
        "x|1|1.2.3.4|5|",
        "\u{e9}1\u{e9}1.2.3.4\u{e9}5\u{e9}",
    ] {
        assert_eq!(read_extended_port(wrong.as_bytes()), None, "{wrong}");
    }
    for wrong in [
        "",
        "1,2,3,4,5",
        "1,2,3,4,5,6,7",
        "1,2,3,4,+5,6",
        " 1,2,3,4,5,6",
    ] {
        assert_eq!(read_port(wrong.as_bytes()), None, "{wrong}");
    }
}

#[test]
fn commands_are_read_in_any_case() {
    for (line, command) in [
        ("USER ann", FtpCommand::User(b"ann")),
        ("user ann b", FtpCommand::User(b"ann b")),
        ("USER", FtpCommand::Wrong),
        ("PASS sesame", FtpCommand::Pass(b"sesame")),
        ("PASS", FtpCommand::Pass(b"")),
        ("Type i", FtpCommand::ImageType),
        ("TYPE L 8", FtpCommand::ImageType),
        ("TYPE A", FtpCommand::Wrong),
        ("MODE S", FtpCommand::StreamMode),
        ("MODE B", FtpCommand::Wrong),
        ("STRU F", FtpCommand::FileStructure),
        ("STRU R", FtpCommand::Wrong),
        ("EPSV", FtpCommand::ExtendedPassive),
        ("EPSV ALL", FtpCommand::Wrong),
        ("PASV", FtpCommand::Passive),
        ("STOR a b", FtpCommand::Store(b"a b")),
        ("STOR ", FtpCommand::Wrong),
        ("RETR x", FtpCommand::Retrieve(b"x")),
        ("NOOP", FtpCommand::Noop),
        ("QUIT", FtpCommand::Quit),
        ("QUIT now", FtpCommand::Wrong),
        ("GET / HTTP/1.1", FtpCommand::Other),
        ("", FtpCommand::Other),
        ("USERann", FtpCommand::Other),
    ] {
        assert_eq!(FtpCommand::read(line.as_bytes()), command, "{line}");
    }
    assert_eq!(FtpCommand::read(&[0xff; 4]), FtpCommand::Other);
}

#[test]
fn a_reply_begins_with_its_code() {
    assert_eq!(reply_code(b"220 hello"), Some(220));
    assert_eq!(reply_code(b"220-hello"), Some(220));
    assert_eq!(reply_code(b"220"), Some(220));
    for wrong in [
        &b"22"[..],
        b"2200",
        b"999 x",
        b"HTTP/1.1 400",
        b"+12 x",
        b" 12 x",
    ] {
        assert_eq!(reply_code(wrong), None);
    }
}

#[test]
fn a_reply_ends_with_the_line_that_begins_as_the_first_does() {
    let mut lines = FtpReplyLines::default();
    for line in [
        "230-welcome",
        " 230 not yet",
        "230-nor here",
        "331 nor this",
        "23",
    ] {
        assert_eq!(lines.take(line.as_bytes()), Ok(None), "{line}");
    }
    assert_eq!(lines.take(b"230 you are in"), Ok(Some(230)));
    let mut lines = FtpReplyLines::default();
    assert_eq!(lines.take(b"hello"), Err(FtpReplyMistake::NoCode));
    let mut lines = FtpReplyLines::default();
    assert_eq!(lines.take(b"220-"), Ok(None));
    for _ in 1..MOST_LINES {
        assert_eq!(lines.take(b"more"), Ok(None));
    }
    assert_eq!(lines.take(b"220 end"), Err(FtpReplyMistake::TooLong));
}

#[test]
fn replies_say_what_can_be_done() {
    let reply = |code| FtpReply {
        code,
        text: String::new(),
    };
    assert!(!reply(350).is_refusal() && reply(425).is_refusal() && reply(530).is_refusal());
    assert!(reply(502).is_unknown() && reply(522).is_unknown() && !reply(550).is_unknown());
}
