//! What it costs to make requests of a capture of HTTP/1.1, beside tshark's count of requests in the same file: CPU seconds, a
//! gigabyte (of 200 MB, or of as many as the first argument says).
//!
//! `cargo bench -p stackline-exchange --bench dissect`. Promised: at most a tenth of tshark's.
#![allow(clippy::unwrap_used, reason = "what a benchmark cannot do ends it")]

use etherparse::PacketBuilder;
use stackline_exchange::capture::{
    CaptureEventReader, CapturePlan, CaptureReadOptions, StreamRegistry, Survey,
};
use stackline_testing::bench_arguments::BenchArguments;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;

/// Connections at once, each of which asks again and again.
const CONNECTIONS: u16 = 64;
/// Bytes of an answer's body.
const BODY: usize = 16_000;
const SEGMENT: usize = 1448;

fn main() {
    let megabytes: usize = BenchArguments::read().take_first_number().unwrap_or(200);
    let path = std::env::temp_dir().join(format!("stackline-dissect-{}.pcap", std::process::id()));
    let requests = generate(&path, megabytes << 20);
    let bytes = std::fs::metadata(&path).unwrap().len();
    let scale = 1e9 / bytes as f64;
    let (own, found) = ours(&path);
    assert_eq!(found, requests, "every request is found");
    println!("{} MB, {requests} requests", bytes / 1_000_000);
    println!(
        "stackline: {own:.2} s of CPU, {:.2} s a gigabyte",
        own * scale
    );
    match theirs(&path) {
        Some(their) => println!(
            "tshark -q -z http,tree: {their:.2} s of CPU, {:.1} s a gigabyte; ratio {:.3} ({})",
            their * scale,
            own / their,
            if own <= their / 10.0 {
                "at most a tenth"
            } else {
                "more than a tenth"
            }
        ),
        None => println!("no tshark: nothing to compare with"),
    }
    std::fs::remove_file(&path).unwrap();
}

/// A capture at the server; how many requests are in it.
fn generate(path: &Path, size: usize) -> u64 {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).unwrap());
    out.write_all(&0xa1b2_c3d4_u32.to_le_bytes()).unwrap();
    out.write_all(&[2, 0, 4, 0]).unwrap();
    [0_u32, 0, 65535, 1]
        .iter()
        .for_each(|word| out.write_all(&word.to_le_bytes()).unwrap());
    let (mut at_us, mut written, mut requests) = (0_u64, 24, 0);
    let mut sequences = vec![[1_u32; 2]; usize::from(CONNECTIONS)];
    let answer = [
        format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n").into_bytes(),
        vec![b'x'; BODY],
    ]
    .concat();
    let mut put =
        |connection: u16, there: bool, syn: bool, sequences: &mut [u32; 2], data: &[u8]| {
            let (client, server) = (
                [10, 0, (connection >> 8) as u8, connection as u8],
                [10, 1, 0, 1],
            );
            let (from, to, port, peer) = match there {
                true => (client, server, 40_000 + connection, 80),
                false => (server, client, 80, 40_000 + connection),
            };
            let own = usize::from(!there);
            let sequence = if syn { 0 } else { sequences[own] };
            let mut builder = PacketBuilder::ethernet2([1; 6], [2; 6])
                .ipv4(from, to, 64)
                .tcp(port, peer, sequence, 60_000);
            if syn {
                builder = builder.syn();
            }
            if !(syn && there) {
                builder = builder.ack(sequences[1 - own]);
            }
            sequences[own] += data.len() as u32;
            at_us += if there { 300 } else { 10 };
            let length = builder.size(data.len()) as u32;
            for word in [
                1_700_000_000 + (at_us / 1_000_000) as u32,
                (at_us % 1_000_000) as u32,
                length,
                length,
            ] {
                out.write_all(&word.to_le_bytes()).unwrap();
            }
            builder.write(&mut out, data).unwrap();
            16 + length as usize
        };
    for connection in 0..CONNECTIONS {
        let own = &mut sequences[usize::from(connection)];
        for (there, syn) in [(true, true), (false, true), (true, false)] {
            written += put(connection, there, syn, own, b"");
        }
    }
    while written < size {
        let connection = (requests % u64::from(CONNECTIONS)) as u16;
        let own = &mut sequences[usize::from(connection)];
        let get = format!(
            "GET /item/{requests}?q=1 HTTP/1.1\r\nHost: example\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"
        );
        written += put(connection, true, false, own, get.as_bytes());
        for segment in answer.chunks(SEGMENT) {
            written += put(connection, false, false, own, segment);
        }
        requests += 1;
    }
    out.flush().unwrap();
    requests
}

/// CPU seconds of this process and of children that ended.
fn cpu_s() -> [f64; 2] {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    let ticks = |field: usize| fields[field].parse::<f64>().unwrap();
    [
        (ticks(11) + ticks(12)) / 100.0,
        (ticks(13) + ticks(14)) / 100.0,
    ]
}

fn ours(path: &Path) -> (f64, u64) {
    let open = || File::open(path).unwrap();
    let before = cpu_s()[0];
    let plan = CapturePlan::from_surveys(
        &[Survey::read(open(), "bench.pcap", None).unwrap()],
        &BTreeMap::new(),
    );
    let surveyed = cpu_s()[0];
    let mut reader = CaptureEventReader::open(
        vec![Box::new(open())],
        &plan,
        StreamRegistry::default(),
        CaptureReadOptions::default(),
    )
    .unwrap();
    let mut events = 0;
    while let Some(tables) = reader.next_batch() {
        events += tables.map(stackline_events::EventTable::len).sum::<usize>();
    }
    let finished = reader.finish();
    let after = cpu_s()[0];
    println!(
        "{events} events; the first look took {:.2} s, the second {:.2} s",
        surveyed - before,
        after - surveyed
    );
    (
        after - before,
        finished.requests.values().sum::<u64>() - finished.void,
    )
}

fn theirs(path: &Path) -> Option<f64> {
    let before = cpu_s()[1];
    let output = Command::new("tshark")
        .args(["-q", "-z", "http,tree", "-r"])
        .arg(path)
        .output()
        .ok()?;
    output.status.success().then(|| cpu_s()[1] - before)
}
