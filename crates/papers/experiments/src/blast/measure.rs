//! The paper's programs on this machine, in a process of its own that leaves the machine's network.
//!
//! Table 1 is three busy-waiting programs on raw frames, Table 3 is MoveTo over UDP; both between two threads, over the
//! loopback interface of a network that nobody else uses. What cannot be measured has its reason in its place.

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
/// The one interface there is.
const LOOPBACK: &str = "lo";

/// What was measured, or why not.
#[derive(Serialize, Deserialize)]
pub(super) struct Measurements {
    pub(super) standalone: std::result::Result<Standalone, String>,
    pub(super) moves: std::result::Result<Vec<(u32, MeasuredTransfers)>, String>,
}

/// Tables 1 and 2.
#[derive(Serialize, Deserialize)]
pub(super) struct Standalone {
    /// A program's name, packets, times.
    pub(super) elapsed: Vec<(String, u32, MeasuredTransfers)>,
    /// One packet and its acknowledgement: sending and taking data, sending and taking the acknowledgement.
    pub(super) parts: [MeasuredTransfers; 4],
    /// The same as a whole, with no clock read in between.
    pub(super) observed: MeasuredTransfers,
}

impl Measurements {
    /// What the measuring process printed, or why it printed nothing.
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

    /// Why nothing at all was measured.
    fn none(reason: &str) -> Self {
        Self {
            standalone: Err(reason.into()),
            moves: Err(reason.into()),
        }
    }
}

/// Runs the programs so often. It leaves the network of this process, and ends when its standard input does.
pub(super) fn measure(runs: u32) -> Result<serde_json::Value> {
    let runs = runs.max(1);
    let isolated = testbed::isolate();
    // From here on there may be several threads.
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

/// MoveTo of so many packets into the memory of a client that waits for its reply, timed where it is called.
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
                measured(&StandaloneSample::of(
                    times.split_off(standalone::WARM_UP as usize),
                )),
            ));
        }
        request.reply(&[])?;
        client.join().unwrap_or(Err(ikp::IkpTransferError::Gone))?;
        Ok(found)
    })
}
