//! Measures the paper's programs on this machine, in a process of its own with its own network namespace.
//!
//! Table 1 is three busy-waiting programs on raw frames, Table 3 is MoveTo over UDP; both between two threads, over the
//! loopback interface of a network that nobody else uses. Where something cannot be measured, the result holds the reason.

use super::case::NUMBERS;
use crate::measuring::end_with_parent;
use serde::{Deserialize, Serialize};
use stackline_core::error::{Error, Result};
use stackline_emu::testbed;
use stackline_report::paper::MeasuredTransfers;
use stackline_transfer::ikp::{self, IkpClientSegments, IkpUdpClient, IkpUdpServer};
use stackline_transfer::papers::standalone::{
    self, StandaloneProgram, StandaloneSample, StandaloneSetup,
};
use std::thread;
use std::time::Instant;

/// Bytes of a packet.
const PACKET: usize = standalone::DATA;
/// The only interface of the isolated network.
const LOOPBACK: &str = "lo";

/// What was measured, or the reason why not. The measuring process prints it as JSON.
#[derive(Serialize, Deserialize)]
pub(super) struct Measurements {
    /// The programs of Tables 1 and 2.
    pub(super) standalone: std::result::Result<Standalone, String>,
    /// MoveTo of Table 3, by the number of packets.
    pub(super) moves: std::result::Result<Vec<(u32, MeasuredTransfers)>, String>,
}

/// The measurements of Tables 1 and 2.
#[derive(Serialize, Deserialize)]
pub(super) struct Standalone {
    /// For each program and number of packets: the program's name, the packets, the elapsed times.
    pub(super) elapsed: Vec<(String, u32, MeasuredTransfers)>,
    /// The parts of an exchange of one packet: sending and receiving the data, sending and receiving the acknowledgement.
    pub(super) parts: [MeasuredTransfers; 4],
    /// The exchange as a whole, measured without reading the clock in between.
    pub(super) observed: MeasuredTransfers,
}

impl Measurements {
    /// Reads what the measuring process printed; `Err` in `output` is the reason why it printed nothing.
    pub(super) fn read(output: std::result::Result<&[u8], &String>) -> Self {
        output.map_or_else(
            |reason| Self::none(reason),
            |output| {
                serde_json::from_slice(output).unwrap_or_else(|error| {
                    Self::none(&format!(
                        "cannot read the result of the measuring process: {error}"
                    ))
                })
            },
        )
    }

    /// The result if nothing was measured.
    fn none(reason: &str) -> Self {
        Self {
            standalone: Err(reason.into()),
            moves: Err(reason.into()),
        }
    }
}

/// Runs each program `runs` times, at least once. Moves this process to a network of its own; the process ends when its standard input
/// does.
pub(super) fn measure(runs: u32) -> Result<serde_json::Value> {
    let runs = runs.max(1);
    let isolated = testbed::isolate();
    // Only after `isolate`, which needs a process with a single thread: this starts one.
    end_with_parent();
    let measurements = match isolated {
        Ok(()) => Measurements {
            standalone: standalone(runs).map_err(|halt| halt.to_string()),
            moves: moves(runs).map_err(|error| error.to_string()),
        },
        Err(refusal) => {
            let hint = refusal
                .hint
                .map(|hint| format!(" (hint: {hint})"))
                .unwrap_or_default();
            Measurements::none(&format!("{}{hint}", refusal.message))
        }
    };
    serde_json::to_value(measurements)
        .map_err(|error| Error::measurement(format!("cannot write the times as JSON: {error}")))
}

/// Runs the programs of Tables 1 and 2.
fn standalone(runs: u32) -> std::result::Result<Standalone, standalone::Halt> {
    let setup = |packets| StandaloneSetup::new(LOOPBACK, LOOPBACK, packets, runs);
    let mut elapsed = Vec::new();
    for packets in NUMBERS {
        let found = standalone::elapsed(&setup(packets))?;
        let each = StandaloneProgram::ALL.into_iter().zip(found.all());
        elapsed.extend(
            each.map(|(program, sample)| (program.name().to_owned(), packets, measured(sample))),
        );
    }
    let costs = standalone::costs(&setup(1))?;
    let parts = [
        costs.send_data,
        costs.take_data,
        costs.send_acknowledgement,
        costs.take_acknowledgement,
    ];
    Ok(Standalone {
        elapsed,
        parts: parts.map(|part| measured(&part)),
        observed: measured(&costs.observed),
    })
}

const fn measured(sample: &StandaloneSample) -> MeasuredTransfers {
    let StandaloneSample {
        n,
        mean,
        sd,
        min,
        median,
        max,
    } = *sample;
    MeasuredTransfers {
        n,
        mean,
        sd,
        min,
        median,
        max,
    }
}

/// Times MoveTo of 1 to 64 packets into the memory of a client that waits for its reply, in the server that calls it.
fn moves(runs: u32) -> std::result::Result<Vec<(u32, MeasuredTransfers)>, ikp::IkpTransferError> {
    let options = ikp::IkpTransferOptions::default();
    let mut server = IkpUdpServer::bind(([127, 0, 0, 1], 0).into(), &options)?;
    let address = server.local()?;
    thread::scope(|scope| {
        let client = scope.spawn(move || {
            let mut memory = vec![0; NUMBERS[NUMBERS.len() - 1] as usize * PACKET];
            let mut client = IkpUdpClient::connect(address, &ikp::IkpTransferOptions::default())?;
            client.send(&[], IkpClientSegments::writable(&mut memory), &mut [])
        });
        let mut request = server.receive()?;
        let mut found = Vec::new();
        for packets in NUMBERS {
            let data = vec![7; packets as usize * PACKET];
            let mut times = Vec::new();
            for _ in 0..runs + standalone::WARM_UP {
                let begin = Instant::now();
                request.move_to(0, &data)?;
                times.push(begin.elapsed().as_secs_f64());
            }
            found.push((
                packets,
                measured(&StandaloneSample::new(
                    times.split_off(standalone::WARM_UP as usize),
                )),
            ));
        }
        request.reply(&[])?;
        client.join().unwrap_or(Err(ikp::IkpTransferError::Gone))?;
        Ok(found)
    })
}
