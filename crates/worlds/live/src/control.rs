//! The messages between the coordinator and its agents: one JSON object a line, over the agent's stdin and stdout.
//!
//! Silent while a clock runs, except for one clock query a second to a traced host with a clock of its own. Lines have a greatest length; what is no message is an error, never a panic.

use crate::error::{self, Error, Result};
use crate::stacks;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stackline_core::plan::{DataAccess, ProcessorShare, Size, Stack};
use stackline_core::procedure::{OperationCall, ProcedureStep, SizeArgument};
use stackline_core::run_record::WakeUp;
use stackline_core::trace_index::KernelClock;
use stackline_endpoint::{self as endpoint, SideObservation};
use stackline_events::{clock, unit_ids};
use stackline_proto::datagram::DatagramToken;
use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};
use std::net::IpAddr;

/// Grows when an older peer would misunderstand.
pub const PROTOCOL: u32 = 5;
/// Longest line either side reads.
pub const LONGEST_LINE: u64 = 64 << 20;

/// Most bytes of events that are handed over at once.
pub const LONGEST_EVENT_LOG: u64 = 256 << 20;
/// Most bytes of events of one run that an agent keeps; what comes behind is counted as lost.
pub const MAX_EVENT_LOG_BYTES: u64 = 32 << 30;

/// One side of one part of one run, for all its replicas, as an agent carries it out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentTask {
    /// What its endpoints do.
    pub work: endpoint::EndpointTask,
    /// The stack.
    pub stack: Stack,
    /// Where this side's data comes from.
    pub source: DataAccess,
    /// Where it goes.
    pub destination: DataAccess,
    /// Core to be pinned to, as it is written.
    pub cpu: Option<usize>,
    /// Cores that its threads take in turn where none is written; none leaves them to the kernel.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// Nice value, 0 for the usual.
    pub nice: i32,
    /// Proof of belonging.
    pub token: DatagramToken,
    /// Where a responder listens.
    pub bind: IpAddr,
    /// When the run is traced: the flow of the first replica, from which the others follow.
    pub flow: Option<u32>,
}

/// As many pairs a part as the language permits.
const MOST_REPLICAS: u32 = 10_000;

impl AgentTask {
    /// An agent carries out nothing that a checked plan could not hold, whoever sends it: sizes, options and pairs are within
    /// their bounds, so that no answer to a message takes more memory than the host has.
    ///
    /// # Errors
    /// An [`Error`] naming what is not.
    pub fn check(&self) -> Result<()> {
        let refuse =
            |what: String| Err(Error::input(format!("this agent does not support {what}")));
        let table = stacks::require_stack(&self.stack.name)?.table();
        if !(1..=MOST_REPLICAS).contains(&self.work.replicas) {
            return refuse(format!("{} pairs at once", self.work.replicas));
        }
        if self.flow.is_some_and(|first| {
            u64::from(first) + u64::from(self.work.replicas) > u64::from(unit_ids::LAST_FLOW)
        }) {
            return refuse("more flows than there are flow IDs".into());
        }
        table.accepts(&self.stack)?;
        let fixed = [&self.work.data.unit, &self.work.data.reply]
            .into_iter()
            .filter_map(|size| match size {
                Size::Bytes(bytes) => Some(*bytes),
                Size::Drawn(_) => None,
            });
        for bytes in fixed.chain(written_sizes(&self.work.steps)) {
            if bytes > table.largest_unit {
                return refuse(format!("data units of {bytes} B over {}", table.name));
            }
        }
        if self.work.carries_data && written_sizes(&self.work.steps).contains(&0) {
            return refuse("empty data units".into());
        }
        Ok(())
    }
}

/// The sizes of data units that stand in the procedure itself.
fn written_sizes(steps: &[ProcedureStep]) -> Vec<u64> {
    let of = |size: &SizeArgument| {
        if let SizeArgument::Bytes(bytes) = size {
            Some(*bytes)
        } else {
            None
        }
    };
    let within = |step: &ProcedureStep| match step {
        ProcedureStep::Repeat(_, body) => written_sizes(body),
        ProcedureStep::Call(OperationCall::RpcCall(request, reply)) => {
            of(request).into_iter().chain(of(reply)).collect()
        }
        ProcedureStep::Call(
            OperationCall::DataRequest(size)
            | OperationCall::AwaitDataIndication(size)
            | OperationCall::RpcAwaitCallInd(size)
            | OperationCall::RpcReturn(size),
        ) => of(size).into_iter().collect(),
        ProcedureStep::Call(_) => Vec::new(),
    };
    steps.iter().flat_map(within).collect()
}

/// From the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// Report what the machine is.
    Environment,
    /// Report what it is doing.
    Sample,
    /// Measure what waking a core costs.
    Calibrate,
    /// Report how long a file is that data units come from.
    Length {
        /// Its name.
        file: String,
    },
    /// Create the responders of a part.
    Listen {
        /// Names the job from now on.
        job: u64,
        /// What to do.
        task: Box<AgentTask>,
    },
    /// Create the initiators of a part and bring them to their clock start.
    Connect {
        /// Names the job.
        job: u64,
        /// What to do.
        task: Box<AgentTask>,
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
    /// Report what time it is there.
    Clock,
    /// Stamp events as the coordinator does, whose clock this one is: it is so much ahead of the monotonic one.
    SameClock {
        /// Time since 1970 less the monotonic clock's, ns.
        ahead_ns: i64,
    },
    /// Record events from now on.
    Record {
        /// Whose events they are.
        host: String,
        /// Whether the machine is watched too.
        monitors: bool,
    },
    /// Record no more, and report what there is.
    StopRecording,
    /// Hand over the next piece of what was recorded.
    EventLog,
    /// Exit.
    Quit,
}

/// From an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromAgent {
    /// First of all.
    Hello(AgentHello),
    /// The static environment.
    Environment(serde_json::Value),
    /// The dynamic environment: `state` now, and what happened `since` the last time.
    Sample(serde_json::Value),
    /// What waking a core costs.
    Calibrated(WakeUp),
    /// How long a file is, or why that cannot be said.
    Length(std::result::Result<u64, Error>),
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
    /// What time it is there.
    Clock {
        /// When the question came, ns since 1970 by the agent's clock.
        heard_ns: u64,
        /// When the answer left.
        answered_ns: u64,
        /// When that came, by the coordinator's clock: known there alone.
        #[serde(skip)]
        returned_ns: u64,
    },
    /// Events are being recorded, or why not.
    Recording {
        /// The reason.
        refused: Option<String>,
    },
    /// No more are; this is what there is.
    Recorded(Box<AgentRecordingSummary>),
    /// A piece of it; none when everything was handed over. Its bytes follow the line.
    EventLog {
        /// How many.
        length: u64,
        /// They themselves.
        #[serde(skip)]
        bytes: Vec<u8>,
    },
    /// All threads of the job are done.
    Done {
        /// Which job.
        job: u64,
        /// What they saw.
        observed: Box<SideObservation>,
    },
    /// One of them failed; the others are being ended.
    Failed {
        /// Which job.
        job: u64,
        /// Why.
        error: Error,
    },
}

/// An agent's share of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldShare {
    /// What its control group's quota gives it.
    pub given: ProcessorShare,
    /// What a loop had of a processor there, thousandths; of one processor and more a loop cannot tell.
    pub measured: Option<u32>,
    /// For how long it stands still at most, until the next period begins, us.
    pub waits_us: u64,
}

/// Who an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHello {
    /// Version of stackline.
    pub version: String,
    /// [`PROTOCOL`] it speaks.
    pub protocol: u32,
    /// Its process.
    pub pid: u32,
    /// Names the machine since its boot, so that two agents of one machine are known as such.
    pub machine: String,
    /// The address at which an agent that was started by ssh or reached by TCP reaches the coordinator.
    pub coordinator: Option<String>,
    /// The address that its packets to other networks leave from.
    #[serde(default)]
    pub address: Option<String>,
    /// Names its monotonic clock: the machine since its boot, and the time namespace.
    pub clock: Option<String>,
    /// Names its network: the machine since its boot, and the network namespace.
    pub network: Option<String>,
    /// Its share of a processor, where it has one.
    #[serde(default)]
    pub share: Option<HeldShare>,
}

/// What an agent recorded in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentRecordingSummary {
    /// Events kept.
    pub recorded: u64,
    /// Events there was no room for.
    pub lost: u64,
    /// How far a stamp may be from the agent's clock, ns.
    pub stamp_error_ns: u64,
    /// CPU seconds it took, by what took them.
    pub cost_s: BTreeMap<String, f64>,
    /// What could not be recorded, and why.
    pub absent: BTreeMap<String, String>,
    /// Notes for the report.
    pub notes: Vec<String>,
    /// What the kernel says of the wall clock.
    pub kernel: Option<KernelClock>,
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
/// An [`Error`] for a line that is too long or no message.
pub fn read<M: DeserializeOwned>(from: &mut impl BufRead) -> Result<Option<M>> {
    let mut line = Vec::new();
    let got = from
        .take(LONGEST_LINE)
        .read_until(b'\n', &mut line)
        .map_err(|e| error::io_error("reading a message", &e))?;
    if got == 0 {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        return Err(Error::measurement(
            "a control message was truncated or longer than 64 MiB",
        ));
    }
    serde_json::from_slice(&line).map(Some).map_err(|e| {
        let shown: String = String::from_utf8_lossy(&line).chars().take(60).collect();
        Error::measurement(format!("not a control message: {} ({e})", shown.trim_end().escape_debug()))
            .hint("`stackline agent` communicates only with `stackline run`; both must be the same version")
    })
}

/// Hands over a piece of what was recorded.
///
/// # Errors
/// When the pipe is closed.
pub fn write_event_log(to: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    write(
        to,
        &FromAgent::EventLog {
            length: bytes.len() as u64,
            bytes: Vec::new(),
        },
    )?;
    to.write_all(bytes)?;
    to.flush()
}

/// Reads one message of an agent, with the bytes that follow it and the moment it came; `None` at the end of the stream.
///
/// # Errors
/// As [`read`]; also when more bytes are to follow than a piece may have.
pub fn read_from_agent(from: &mut impl BufRead) -> Result<Option<FromAgent>> {
    let mut message = read(from)?;
    match &mut message {
        Some(FromAgent::Clock { returned_ns, .. }) => *returned_ns = clock::now_ns(),
        Some(FromAgent::EventLog { length, bytes }) => {
            if *length > LONGEST_EVENT_LOG {
                return Err(Error::measurement(
                    "an agent sent more than 256 MiB of events at once",
                ));
            }
            // What is not there takes no memory.
            let got = from
                .take(*length)
                .read_to_end(bytes)
                .map_err(|e| error::io_error("reading events", &e))?;
            if got as u64 != *length {
                return Err(Error::measurement("the agent's event transfer ended early"));
            }
        }
        _ => {}
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stackline_core::catalogue::OptionValue;
    use stackline_core::plan::{DataSpec, UnitCount, any_size};
    use stackline_core::procedure::PairSide;
    use stackline_core::random::Seed;
    use std::net::Ipv4Addr;

    #[test]
    fn a_message_comes_back() {
        let mut pipe = Vec::new();
        write(&mut pipe, &ToAgent::End { job: 7, now: true }).unwrap();
        let mut reader = pipe.as_slice();
        assert_eq!(
            read(&mut reader).unwrap(),
            Some(ToAgent::End { job: 7, now: true })
        );
        assert_eq!(read::<ToAgent>(&mut reader).unwrap(), None);
    }

    #[test]
    fn events_follow_their_line_and_are_bounded() {
        let mut pipe = Vec::new();
        write_event_log(&mut pipe, &[1, 2, 3, b'\n']).unwrap();
        write(&mut pipe, &FromAgent::Recording { refused: None }).unwrap();
        let mut reader = pipe.as_slice();
        let event_log = read_from_agent(&mut reader).unwrap();
        assert_eq!(
            event_log,
            Some(FromAgent::EventLog {
                length: 4,
                bytes: vec![1, 2, 3, b'\n']
            })
        );
        assert_eq!(
            read_from_agent(&mut reader).unwrap(),
            Some(FromAgent::Recording { refused: None })
        );
        let cut = &pipe[..pipe.iter().position(|byte| *byte == b'\n').unwrap() + 3];
        assert!(read_from_agent(&mut &cut[..]).is_err());
        let mut greedy = Vec::new();
        write(
            &mut greedy,
            &FromAgent::EventLog {
                length: u64::MAX,
                bytes: Vec::new(),
            },
        )
        .unwrap();
        assert!(read_from_agent(&mut greedy.as_slice()).is_err());
    }

    fn work() -> endpoint::EndpointTask {
        let unit = Size::Bytes(32);
        endpoint::EndpointTask {
            side: PairSide::Responder,
            steps: vec![ProcedureStep::Call(OperationCall::DataRequest(
                SizeArgument::Unit,
            ))],
            carries_data: true,
            data: DataSpec {
                reply: unit.clone(),
                unit,
                count: UnitCount::Units(1),
                timings: Vec::new(),
                least_drawn: any_size(),
            },
            seed: Seed::root(1),
            replicas: 1,
            time_limit: None,
            background: false,
            reliable: false,
        }
    }

    fn task() -> AgentTask {
        AgentTask {
            work: work(),
            stack: Stack::plain("udp"),
            source: DataAccess::Memory,
            destination: DataAccess::Memory,
            cpu: None,
            cores: Vec::new(),
            nice: 0,
            token: DatagramToken::default(),
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            flow: None,
        }
    }

    #[test]
    fn an_agent_does_nothing_that_no_checked_plan_holds() {
        assert_eq!(task().check(), Ok(()));
        let with = |work| AgentTask { work, ..task() };
        let option = |name: &str, value: OptionValue| BTreeMap::from([(name.to_string(), value)]);
        let over = |options| Stack {
            name: "udp".into(),
            options,
            ..Stack::default()
        };
        for wrong in [
            with(endpoint::EndpointTask {
                replicas: 0,
                ..work()
            }),
            with(endpoint::EndpointTask {
                replicas: u32::MAX,
                ..work()
            }),
            AgentTask {
                flow: Some(unit_ids::LAST_FLOW),
                ..task()
            },
            AgentTask {
                stack: Stack::plain("tpc"),
                ..task()
            },
            AgentTask {
                stack: over(option("batch", OptionValue::Number(1 << 40))),
                ..task()
            },
            AgentTask {
                stack: over(option("receive_buffer", OptionValue::Number(1 << 40))),
                ..task()
            },
            AgentTask {
                stack: over(option("timeout", OptionValue::Seconds(-1.0))),
                ..task()
            },
            AgentTask {
                stack: over(option("nodelay", OptionValue::Set)),
                ..task()
            },
            with(endpoint::EndpointTask {
                data: DataSpec {
                    unit: Size::Bytes(1 << 20),
                    ..work().data
                },
                ..work()
            }),
            with(endpoint::EndpointTask {
                steps: vec![ProcedureStep::Call(OperationCall::DataRequest(
                    SizeArgument::Bytes(0),
                ))],
                ..work()
            }),
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn random_bytes_are_an_error(bytes in proptest::collection::vec(any::<u8>(), 1..200)) {
            let mut reader = bytes.as_slice();
            prop_assert!(read::<ToAgent>(&mut reader).is_err());
        }
    }
}
