//! Says in one sentence what was analysed of a run without measurements (a trace, a capture, imported logs), and what could not be.

use crate::findings::{AnalysisInput, is_session};

/// How a run without measurements was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOrigin {
    /// `stackline watch`.
    Watch,
    /// Imported packet captures alone.
    Capture,
    /// Imported logs of programs, perhaps with packet captures.
    Import,
    /// Units that a stackline program (such as a block server) recorded itself.
    Session,
    /// Requests of other programs, recorded by `stackline trace`.
    Requests,
}

impl RunOrigin {
    /// A sentence for a heading.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Watch => "What `stackline watch` saw on this machine.",
            Self::Capture => "Connections in a capture.",
            Self::Import => "Imported events.",
            Self::Requests => "Requests of programs, as recorded by a trace.",
            Self::Session => "Paths of units, as recorded by a stackline program.",
        }
    }
}

/// How a run was recorded; `None` if it has measurements, or no events.
#[must_use]
pub fn origin(input: &AnalysisInput<'_>) -> Option<RunOrigin> {
    if !input.plan.measurements.is_empty() || input.events.is_empty() {
        return None;
    }
    let imports = &input.index.imports;
    let is_capture = |form: &str| form == "capture";
    let is_trace = ["REQUEST", "PROGRAM_END"]
        .into_iter()
        .any(|keyword| input.events.names.find(keyword).is_some());
    if is_trace && imports.is_empty() {
        return Some(RunOrigin::Requests);
    }
    Some(
        match imports.iter().all(|import| is_capture(&import.form)) {
            _ if imports.is_empty() && !input.lifelines.lines.is_empty() => RunOrigin::Session,
            _ if imports.is_empty() => RunOrigin::Watch,
            true => RunOrigin::Capture,
            false => RunOrigin::Import,
        },
    )
}

/// One sentence on what was analysed of a run without measurements, what was not, and why; `None` for a run with measurements.
#[must_use]
pub fn scope(input: &AnalysisInput<'_>) -> Option<String> {
    let has = |keyword: &str| input.events.names.find(keyword).is_some();
    let mut looked = vec!["clocks that disagree", "lost events"];
    if has("REQUEST") {
        looked.extend([
            "name lookups, connections and handshakes",
            "transit of requests and answers",
            "waits at both ends",
        ]);
        looked.extend(has("REQUEST_WORK").then_some("the activity of servers' threads"));
    } else if is_session(input) {
        looked.extend([
            "reasons why units waited inside hosts",
            "reasons why units were held up between hosts",
        ]);
    } else if has("TCP_CONNECTION") {
        looked.extend([
            "full receive windows",
            "retransmissions",
            "long quiet periods on connections",
        ]);
    } else if has("TCP_INFO") {
        looked.extend([
            "limiting windows",
            "retransmissions",
            "unread data on connections",
        ]);
    }
    if has("QUIC_SENT") && !is_session(input) {
        looked.extend([
            "lost QUIC packets",
            "reasons why QUIC senders were held back, where logged",
        ]);
    }
    let (last, first) = looked.split_last()?;
    let looked = format!("{} and {last}", first.join(", "));
    let rest = match origin(input)? {
        RunOrigin::Watch => {
            "not for how programs spent their time, because `watch` records only the kernel"
        }
        RunOrigin::Capture => {
            "not for what the programs did or what the network's queues held, because packets show neither"
        }
        RunOrigin::Requests if has("REQUEST_WORK") => {
            "not for what happens within programs apart from their waits"
        }
        RunOrigin::Requests if has("REQUEST_PROCESS") => {
            "not for what programs do between their calls"
        }
        RunOrigin::Requests => {
            "not for the activity of servers' threads, because it was not traced"
        }
        RunOrigin::Session if has("PORT_USE") && has("CPU_USE") && has("TCP_INFO") => {
            "not for anything that no event shows"
        }
        RunOrigin::Session if has("PORT_USE") && has("CPU_USE") => {
            "not for windows and buffers of connections, because no monitor recorded them"
        }
        RunOrigin::Session if has("PORT_USE") => {
            "not for the load on the hosts' processors, because no monitor recorded it"
        }
        RunOrigin::Session => "not for ports, links and windows, because no monitor recorded them",
        RunOrigin::Import if is_session(input) => "not for anything that no event shows",
        RunOrigin::Import => {
            "not for what limits the programs, because no measurement specifies what they should have done"
        }
    };
    Some(format!("Looked for: {looked}; {rest}."))
}
