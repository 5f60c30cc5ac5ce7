//! Files of packets, byte by byte, and as tshark reads them where it is installed.

use super::*;
use std::path::Path;
use std::process::Command;

const EPOCH: u64 = 1_700_000_000 * 1_000_000_000;

fn ports() -> Vec<CaptureInterface> {
    let interface = |name: &str| CaptureInterface {
        name: name.into(),
        ..CaptureInterface::default()
    };
    vec![
        CaptureInterface {
            speed_bit_s: Some(100_000_000),
            description: "a link".into(),
            ..interface("khons>edge")
        },
        interface("edge>khons"),
    ]
}

/// An IPv4 packet of UDP from 10.71.0.1 to 10.71.0.2 with so many bytes in it, checksums right (UDP: none).
fn ip(data: usize) -> Vec<u8> {
    let (all, udp) = ((28 + data) as u16, (8 + data) as u16);
    let mut bytes = vec![
        0x45,
        0,
        (all >> 8) as u8,
        all as u8,
        0,
        1,
        0,
        0,
        64,
        17,
        0,
        0,
        10,
        71,
        0,
        1,
        10,
        71,
        0,
        2,
    ];
    let sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
        .sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend([0x30, 0x39, 0xd4, 0x31, (udp >> 8) as u8, udp as u8, 0, 0]);
    bytes.resize(28 + data, 0xab);
    bytes
}

fn capture(at_ns: u64, interface: u32, data: usize, comment: &str) -> PcapngPacket {
    let bytes = ip(data);
    let comments = if comment.is_empty() {
        vec![]
    } else {
        vec![comment.to_owned()]
    };
    PcapngPacket {
        at_ns,
        interface,
        length: bytes.len() as u32,
        bytes,
        comments,
    }
}

fn file(settings: PcapngSettings, captures: Vec<PcapngPacket>) -> (Vec<u8>, PcapngTotals) {
    let mut writer = PcapngWriter::new(Vec::new(), &ports(), settings).unwrap();
    captures
        .into_iter()
        .for_each(|capture| writer.put(capture).unwrap());
    writer.finish().unwrap()
}

/// Types of the blocks and, of packets, the low half of the time; asserts that lengths agree.
fn blocks(mut bytes: &[u8]) -> Vec<(u32, u32)> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (kind, length) = (word(bytes, 0), word(bytes, 4) as usize);
        assert_eq!(length % 4, 0);
        assert_eq!(word(bytes, length - 4) as usize, length);
        found.push((
            kind,
            if kind == ENHANCED_PACKET {
                word(bytes, 16)
            } else {
                0
            },
        ));
        bytes = &bytes[length..];
    }
    found
}

#[test]
fn packets_leave_sorted_and_of_one_instant_in_order() {
    let captures = vec![
        capture(9, 0, 1, ""),
        capture(2, 1, 2, "x"),
        capture(5, 0, 3, ""),
        capture(2, 0, 4, ""),
    ];
    let (bytes, written) = file(PcapngSettings::default(), captures);
    let kinds =
        [SECTION_HEADER, INTERFACE_DESCRIPTION, INTERFACE_DESCRIPTION].map(|kind| (kind, 0));
    assert_eq!(
        blocks(&bytes),
        [&kinds[..], &[2, 2, 5, 9].map(|at| (ENHANCED_PACKET, at))].concat()
    );
    assert_eq!(
        written,
        PcapngTotals {
            packets: 4,
            late: 0
        }
    );
}

#[test]
fn what_is_settled_is_written() {
    let mut writer = PcapngWriter::new(Vec::new(), &ports(), PcapngSettings::default()).unwrap();
    [7, 3, 5]
        .into_iter()
        .for_each(|at| writer.put(capture(at, 0, 0, "")).unwrap());
    writer.settle(5).unwrap();
    assert_eq!(
        writer.out.iter().len(),
        file(
            PcapngSettings::default(),
            vec![capture(3, 0, 0, ""), capture(5, 0, 0, "")]
        )
        .0
        .len()
    );
    writer.put(capture(6, 0, 0, "")).unwrap();
    let (bytes, written) = writer.finish().unwrap();
    assert_eq!(
        blocks(&bytes)[3..]
            .iter()
            .map(|block| block.1)
            .collect::<Vec<_>>(),
        [3, 5, 6, 7]
    );
    assert_eq!(written.late, 0);
}

#[test]
fn memory_is_bounded_and_what_comes_too_late_is_counted_and_kept() {
    let settings = PcapngSettings {
        most_held: 2 * weight(&capture(0, 0, 0, "")),
        ..PcapngSettings::default()
    };
    let (bytes, written) = file(
        settings,
        [40, 30, 20, 10, 50]
            .map(|at| capture(at, 0, 0, ""))
            .to_vec(),
    );
    assert_eq!(
        blocks(&bytes)[3..]
            .iter()
            .map(|block| block.1)
            .collect::<Vec<_>>(),
        [20, 10, 30, 40, 50]
    );
    assert_eq!(
        written,
        PcapngTotals {
            packets: 5,
            late: 1
        }
    );
}

#[test]
fn an_interface_that_is_not_there_is_refused() {
    let mut writer = PcapngWriter::new(Vec::new(), &ports(), PcapngSettings::default()).unwrap();
    assert_eq!(
        writer.put(capture(0, 2, 0, "")).unwrap_err().to_string(),
        "no interface 2: the capture has only 2"
    );
}

#[test]
fn a_long_comment_is_cut_between_characters() {
    let mut body = Vec::new();
    option(&mut body, OPT_COMMENT, "é".repeat(40_000).as_bytes());
    assert_eq!(u16::from_le_bytes([body[2], body[3]]), u16::MAX - 1);
    assert_eq!(body.len(), 4 + 65_536);
}

/// The output of a program of Wireshark for a file, and nothing on stderr; `None` when it is not installed.
fn run(program: &str, arguments: &[&str], path: &Path) -> Option<String> {
    let output = match Command::new(program).args(arguments).arg(path).output() {
        Ok(output) => output,
        Err(error) => {
            stackline_testing::skip(format_args!(
                "{program} cannot be started ({error}); it comes with the package tshark"
            ));
            return None;
        }
    };
    let words = String::from_utf8_lossy(&output.stderr);
    // As root, tshark warns of that and of nothing else.
    let complaint = words
        .lines()
        .find(|line| !line.is_empty() && !line.contains("Running as user"));
    assert!(output.status.success() && complaint.is_none(), "{words}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn tshark_reads_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.pcapng");
    let settings = PcapngSettings {
        snaplen: 60,
        epoch_ns: EPOCH,
        ..PcapngSettings::default()
    };
    let captures = vec![
        capture(6_000_000_042, 1, 4, "dropped: queue full"),
        capture(1, 0, 100, ""),
        PcapngPacket {
            comments: vec!["one".into(), "two".into()],
            ..capture(2_500_000_000, 0, 0, "")
        },
    ];
    std::fs::write(&path, file(settings, captures).0).unwrap();
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.len",
        "frame.cap_len",
        "frame.comment",
        "ip.dst",
        "udp.dstport",
        "ip.checksum.status",
    ];
    let mut arguments = vec![
        "-n",
        "-o",
        "ip.check_checksum:TRUE",
        "-T",
        "fields",
        "-E",
        "separator=|",
    ];
    fields
        .iter()
        .for_each(|field| arguments.extend(["-e", field]));
    arguments.push("-r");
    let Some(read) = run("tshark", &arguments, &path) else {
        return;
    };
    let expected = [
        "1700000000.000000001|khons>edge|128|60||10.71.0.2|54321|1",
        "1700000002.500000000|khons>edge|28|28|one,two|10.71.0.2|54321|1",
        "1700000006.000000042|edge>khons|32|32|dropped: queue full|10.71.0.2|54321|1",
    ];
    assert_eq!(read.lines().collect::<Vec<_>>(), expected);
    let Some(output) = run("capinfos", &[], &path) else {
        return;
    };
    let words = [
        "pcapng",
        "Raw IP",
        "nanoseconds (9)",
        "Name = khons>edge",
        "Speed = 100000000",
        "Strict time order:   True",
    ];
    for words in words {
        assert!(output.contains(words), "no `{words}` in {output}");
    }
}
