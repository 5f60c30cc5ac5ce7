//! The messages between the coordinator and its agents: one JSON object a line, over the agent's stdin and stdout.
//!
//! Silent while a clock runs. Lines have a greatest length; what is no message is an error, never a panic.

use crate::fault::{Fault, Result};
use crate::stacks::Token;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stackline_core::plan::{Access, Data, Stack};
use stackline_core::program::{Side, Step};
use stackline_core::random::Seed;
use stackline_core::record::WakeUp;
use stackline_core::record::{Histogram, SideRecord};
use stackline_core::time::Duration;
use std::io::{BufRead, Read, Write};
use std::net::IpAddr;

/// Grows when an older peer would misunderstand.
pub const PROTOCOL: u32 = 1;
/// Longest line either side reads.
pub const LONGEST_LINE: u64 = 64 << 20;

/// One side of one part of one run, for all its replicas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Which side.
    pub side: Side,
    /// What it does.
    pub steps: Vec<Step>,
    /// Whether connections carry data units.
    pub carries_data: bool,
    /// Sizes and counts.
    pub data: Data,
    /// The stack.
    pub stack: Stack,
    /// Where this side's data comes from.
    pub source: Access,
    /// Where it goes.
    pub destination: Access,
    /// The run's and part's node in the tree of seeds; replicas are its numbered children.
    pub seed: Seed,
    /// Pairs at once.
    pub replicas: u32,
    /// Core to be pinned to.
    pub cpu: Option<usize>,
    /// Nice value, 0 for the usual.
    pub nice: i32,
    /// Most time the measured period may take.
    pub time_limit: Option<Duration>,
    /// Load: begins again until it is told to end.
    pub background: bool,
    /// Proof of belonging.
    pub token: Token,
    /// Where a responder listens.
    pub bind: IpAddr,
}

/// From the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// Tell what the machine is.
    Environment,
    /// Tell what it is doing.
    Sample,
    /// Measure what waking a core costs.
    Calibrate,
    /// Create the responders of a part.
    Listen {
        /// Names the job from now on.
        job: u64,
        /// What to do.
        task: Box<Task>,
    },
    /// Create the initiators of a part and bring them to their clock start.
    Dial {
        /// Names the job.
        job: u64,
        /// What to do.
        task: Box<Task>,
        /// One address a replica.
        addresses: Vec<String>,
    },
    /// Let the initiators start their clocks (to responders: the measured period begins).
    Go {
        /// Which job.
        job: u64,
    },
    /// End a job: cleanly where it loops, at once when `now`.
    End {
        /// Which job.
        job: u64,
        /// Interrupt whatever it waits for.
        now: bool,
    },
    /// Exit.
    Quit,
}

/// From an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromAgent {
    /// First of all.
    Hello(Hello),
    /// The static environment.
    Environment(serde_json::Value),
    /// The dynamic environment: `state` now, and what happened `since` the last time.
    Sample(serde_json::Value),
    /// What waking a core costs.
    Calibrated(WakeUp),
    /// The responders listen.
    Listening {
        /// Which job.
        job: u64,
        /// One address a replica: a port or a name.
        addresses: Vec<String>,
    },
    /// All initiators stand at their clock start.
    Ready {
        /// Which job.
        job: u64,
    },
    /// All threads of the job are done.
    Done {
        /// Which job.
        job: u64,
        /// What they saw.
        outcome: Box<Outcome>,
    },
    /// One of them failed; the others are being ended.
    Failed {
        /// Which job.
        job: u64,
        /// Why.
        fault: Fault,
    },
}

/// Who an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of stackline.
    pub version: String,
    /// [`PROTOCOL`] it speaks.
    pub protocol: u32,
    /// Its process.
    pub pid: u32,
    /// Names the machine since its boot, so that two agents of one machine are known as such.
    pub machine: String,
    /// The address the coordinator has, seen from an agent started by ssh.
    pub coordinator: Option<String>,
}

/// What one side of one part saw in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Counters and settings, all replicas together.
    pub record: SideRecord,
    /// Longest measured period of a replica, in ns.
    pub elapsed_ns: u64,
    /// From the first clock start to the last clock stop, in ns.
    pub span_ns: u64,
    /// Whether the limit cut it short.
    pub limited: bool,
    /// Response times in ns.
    pub calls: Histogram,
    /// Connect plus disconnect times in ns.
    pub connects: Histogram,
    /// Lateness of paced operations in ns.
    pub lateness: Histogram,
}

/// Writes one message.
///
/// # Errors
/// When the pipe is closed.
pub fn write<M: Serialize>(to: &mut impl Write, message: &M) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Reads one message; `None` at the end of the stream.
///
/// # Errors
/// A [`Fault`] for a line that is too long or no message.
pub fn read<M: DeserializeOwned>(from: &mut impl BufRead) -> Result<Option<M>> {
    let mut line = Vec::new();
    let got = from.take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(|e| Fault::io("reading a message", &e))?;
    if got == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        return Err(Fault::measurement("a control message was cut off or longer than 64 MiB"));
    }
    serde_json::from_slice(&line).map(Some).map_err(|e| {
        let shown: String = String::from_utf8_lossy(&line).chars().take(60).collect();
        Fault::measurement(format!("this is no control message: {} ({e})", shown.trim_end().escape_debug()))
            .hint("`stackline agent` speaks with `stackline run` only; both have to be of the same version")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_comes_back() {
        let mut pipe = Vec::new();
        write(&mut pipe, &ToAgent::End { job: 7, now: true }).unwrap();
        let mut reader = pipe.as_slice();
        assert_eq!(read(&mut reader).unwrap(), Some(ToAgent::End { job: 7, now: true }));
        assert_eq!(read::<ToAgent>(&mut reader).unwrap(), None);
    }

    proptest! {
        #[test]
        fn random_bytes_are_an_error(bytes in proptest::collection::vec(any::<u8>(), 1..200)) {
            let mut reader = bytes.as_slice();
            prop_assert!(read::<ToAgent>(&mut reader).is_err());
        }
    }
}
