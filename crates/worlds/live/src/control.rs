//! The messages between the coordinator and its agents: one JSON object per line, over the agent's stdin and stdout.
//!
//! While a measurement's clock runs no message is sent, except at most one clock query a second to each host of a traced run that has a
//! clock of its own. A line has a maximum length; malformed input is an error, never a panic.

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

/// Version of this protocol, raised when an older peer would misunderstand; both sides must have the same.
pub const PROTOCOL: u32 = 5;
/// Longest line that either side reads, bytes.
pub const LONGEST_LINE: u64 = 64 << 20;

/// Most bytes of events in one [`FromAgent::EventLog`] message.
pub const LONGEST_EVENT_LOG: u64 = 256 << 20;
/// Most bytes of events of one run that an agent keeps; later events are lost.
pub const MAX_EVENT_LOG_BYTES: u64 = 32 << 30;

/// One side of one part of one run, for all its replicas, as an agent carries it out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentTask {
    /// The program and data of its endpoints.
    pub work: endpoint::EndpointTask,
    /// The stack.
    pub stack: Stack,
    /// Where this side's data comes from.
    pub source: DataAccess,
    /// Where the data that it receives goes.
    pub destination: DataAccess,
    /// The core that the specification pins its threads to, if any.
    pub cpu: Option<usize>,
    /// Without `cpu`: the cores that its threads are pinned to in turn; empty leaves them to the kernel's scheduler.
    #[serde(default)]
    pub cores: Vec<usize>,
    /// Nice value of its threads, 0 for the default.
    pub nice: i32,
    /// Random bytes by which endpoints of this part recognise each other.
    pub token: DatagramToken,
    /// The local address at which a responder listens.
    pub bind: IpAddr,
    /// In a traced run, the flow ID of the first replica; each further replica has the next ID. `None` if the run is not traced.
    pub flow: Option<u32>,
}

/// Most pairs in a part: as many as the language permits.
const MOST_REPLICAS: u32 = 10_000;

impl AgentTask {
    /// Checks the bounds that a checked plan keeps to (data unit sizes, options, number of pairs), so that no sender can make an agent
    /// take more memory than its host has.
    ///
    /// # Errors
    /// An [`Error`] naming what is out of bounds.
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
        let table = table.with_options_of(&self.stack);
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

/// The data unit sizes, in bytes, that are written as numbers in the procedure, nested loops included.
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

/// A message from the coordinator to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// Report what the machine is (answer: [`FromAgent::Environment`]).
    Environment,
    /// Report what the machine is doing (answer: [`FromAgent::Sample`]).
    Sample,
    /// Measure how long waking a core takes (answer: [`FromAgent::Calibrated`]).
    Calibrate,
    /// Report the length of a file that data units come from (answer: [`FromAgent::Length`]).
    Length {
        /// Name of the file.
        file: String,
    },
    /// Create the responders of a part.
    Listen {
        /// Number that names the job in later messages.
        job: u64,
        /// What to do.
        task: Box<AgentTask>,
    },
    /// Create the initiators of a part, which connect and then wait at the start of their clocks.
    Connect {
        /// Number that names the job in later messages.
        job: u64,
        /// What to do.
        task: Box<AgentTask>,
        /// The responders' addresses, one per replica.
        addresses: Vec<String>,
    },
    /// Let the initiators start their clocks (to responders: the measured period begins).
    Go {
        /// Which job.
        job: u64,
    },
    /// End a job: at once if `now`, otherwise its endless loops stop cleanly.
    End {
        /// Which job.
        job: u64,
        /// Whether to interrupt the operations under way.
        now: bool,
    },
    /// Report the time of the agent's clock (answer: [`FromAgent::Clock`]).
    Clock,
    /// The agent reads the same monotonic clock as the coordinator: take this offset from it for the time stamps of events.
    SameClock {
        /// The coordinator's event time (since 1970) minus its monotonic time, ns.
        ahead_ns: i64,
    },
    /// Start recording events (answer: [`FromAgent::Recording`]).
    Record {
        /// Host name to store with the events.
        host: String,
        /// Whether to record the machine's monitors too.
        monitors: bool,
    },
    /// Stop recording and summarise (answer: [`FromAgent::Recorded`]).
    StopRecording,
    /// Send the next piece of the recorded events (answer: [`FromAgent::EventLog`]).
    EventLog,
    /// Exit.
    Quit,
}

/// A message from an agent to the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromAgent {
    /// The greeting: the first message of every agent.
    Hello(AgentHello),
    /// The static environment.
    Environment(serde_json::Value),
    /// The dynamic environment: the present `state`, and what changed `since` the previous sample.
    Sample(serde_json::Value),
    /// How long waking a core takes.
    Calibrated(WakeUp),
    /// The length of a file in bytes, or why it cannot be read.
    Length(std::result::Result<u64, Error>),
    /// The responders listen.
    Listening {
        /// Which job.
        job: u64,
        /// One address per replica: a port or the name of a socket.
        addresses: Vec<String>,
    },
    /// All initiators wait at the start of their clocks.
    Ready {
        /// Which job.
        job: u64,
    },
    /// The time of the agent's clock.
    Clock {
        /// When the query arrived, ns since 1970 by the agent's clock.
        heard_ns: u64,
        /// When this answer was sent, ns since 1970 by the agent's clock.
        answered_ns: u64,
        /// When this answer arrived, ns by the coordinator's clock; filled in by the coordinator when it reads the message.
        #[serde(skip)]
        returned_ns: u64,
    },
    /// The answer to [`ToAgent::Record`].
    Recording {
        /// Why events cannot be recorded; `None` if they are being recorded.
        refused: Option<String>,
    },
    /// The recording has stopped; a summary of it.
    Recorded(Box<AgentRecordingSummary>),
    /// A piece of the recorded events, whose bytes follow this line; an empty piece if all were sent.
    EventLog {
        /// How many bytes follow the line.
        length: u64,
        /// The bytes that follow the line.
        #[serde(skip)]
        bytes: Vec<u8>,
    },
    /// All endpoints of the job are done.
    Done {
        /// Which job.
        job: u64,
        /// What they observed together.
        observed: Box<SideObservation>,
    },
    /// An endpoint of the job failed, or the job could not start; its other endpoints have been ended.
    Failed {
        /// Which job.
        job: u64,
        /// Why.
        error: Error,
    },
}

/// An agent's limited share of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldShare {
    /// The share that its control group's quota allows.
    pub given: ProcessorShare,
    /// The share that a busy loop got, in thousandths of a processor; `None` for a share of one processor or more, which one loop cannot
    /// measure.
    pub measured: Option<u32>,
    /// Longest time that it is stopped once its quota is used up, until the next period begins, us.
    pub waits_us: u64,
}

/// Who an agent is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHello {
    /// Version of stackline.
    pub version: String,
    /// [`PROTOCOL`] it speaks.
    pub protocol: u32,
    /// Its process ID.
    pub pid: u32,
    /// The machine's boot ID, by which agents on the same machine are recognised.
    pub machine: String,
    /// The coordinator's address as the agent sees it; known to an agent that was started by ssh or reached by TCP.
    pub coordinator: Option<String>,
    /// The source address of its packets to other networks.
    #[serde(default)]
    pub address: Option<String>,
    /// Identifies its monotonic clock: the machine's boot ID and the time namespace.
    pub clock: Option<String>,
    /// Identifies its network: the machine's boot ID and the network namespace.
    pub network: Option<String>,
    /// Its share of a processor, if it is limited.
    #[serde(default)]
    pub share: Option<HeldShare>,
}

/// What an agent recorded in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentRecordingSummary {
    /// How many events were kept.
    pub recorded: u64,
    /// How many events were dropped because there was no room.
    pub lost: u64,
    /// Greatest error of an event's time stamp, ns.
    pub stamp_error_ns: u64,
    /// CPU time that recording took, in seconds, by the task that used it.
    pub cost_s: BTreeMap<String, f64>,
    /// What could not be recorded, and the reason for each.
    pub absent: BTreeMap<String, String>,
    /// Notes for the report.
    pub notes: Vec<String>,
    /// The kernel's state of the wall clock's synchronisation.
    pub kernel: Option<KernelClock>,
}

/// Writes one message as a line, and flushes.
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
/// An [`Error`] for a line that is too long, cut off or not a message.
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

/// Sends a piece of the recorded events: the message, then the bytes.
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

/// Reads one message of an agent; `None` at the end of the stream. Fills in the bytes that follow an event log's line, and the time at
/// which a clock answer arrived.
///
/// # Errors
/// As [`read`]; also when an event log is longer than [`LONGEST_EVENT_LOG`] or ends early.
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
            // `read_to_end` grows the buffer as bytes arrive: an announced length alone takes no memory.
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
                takes_turns: false,
            },
            seed: Seed::root(1),
            replicas: 1,
            time_limit: None,
            background: false,
            reliable: false,
            keeps_calls: false,
            interval: None,
            pace: None,
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
