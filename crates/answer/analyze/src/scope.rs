//! What findings about a run without measurements were looked for in, and what could not be looked for. Plain sentences.

use crate::findings::{AnalysisInput, is_session};

/// Where a run without measurements comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOrigin {
    /// `stackline watch`.
    Watch,
    /// Captures alone.
    Capture,
    /// Logs of programs, perhaps with captures.
    Import,
    /// Units that a program recorded itself.
    Session,
    /// Requests of programs that are not ours.
    Requests,
}

impl RunOrigin {
    /// In words, as a heading.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Watch => "What `stackline watch` saw of this machine.",
            Self::Capture => "Connections of a capture.",
            Self::Import => "Events that were imported.",
            Self::Requests => "Requests of programs, as a trace saw them.",
            Self::Session => "Units on their ways, as a program of stackline recorded them.",
        }
    }
}

/// Where a run comes from; `None` when it has measurements, or no events.
#[must_use]
pub fn origin(input: &AnalysisInput<'_>) -> Option<RunOrigin> {
    if !input.plan.measurements.is_empty() || input.events.is_empty() {
        return None;
    }
    let imports = &input.index.imports;
    let is_capture = |form: &str| form == "capture";
    if input.events.names.find("REQUEST").is_some() && imports.is_empty() {
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

/// One sentence: what was looked for in a run without measurements, what was not, and why.
#[must_use]
pub fn scope(input: &AnalysisInput<'_>) -> Option<String> {
    let has = |keyword: &str| input.events.names.find(keyword).is_some();
    let mut looked = vec!["clocks that disagree", "lost events"];
    if has("REQUEST") {
        looked.extend([
            "name lookups, connections and handshakes",
            "ways of requests and answers",
            "waits at both ends",
        ]);
        looked.extend(has("REQUEST_WORK").then_some("what servers' threads did"));
    } else if is_session(input) {
        looked.extend([
            "what units waited for inside hosts",
            "what held them up between hosts",
        ]);
    } else if has("TCP_CONNECTION") {
        looked.extend([
            "windows without room",
            "retransmissions",
            "long quiet periods of its connections",
        ]);
    } else if has("TCP_INFO") {
        looked.extend([
            "windows that limit",
            "retransmissions",
            "unread data of its connections",
        ]);
    }
    if has("QUIC_SENT") && !is_session(input) {
        looked.extend([
            "packets of QUIC that were lost",
            "what held its senders back, where they log it",
        ]);
    }
    let (last, first) = looked.split_last()?;
    let looked = format!("{} and {last}", first.join(", "));
    let rest = match origin(input)? {
        RunOrigin::Watch => {
            "what programs did with their time was not, as `watch` records the kernel alone"
        }
        RunOrigin::Capture => {
            "what the programs did and what the network's queues held was not, as packets do not show it"
        }
        RunOrigin::Requests if has("REQUEST_WORK") => {
            "what happens within programs beside their waits was not"
        }
        RunOrigin::Requests => "what servers' threads did was not, as nothing looked at them",
        RunOrigin::Session if has("PORT_USE") && has("CPU_USE") && has("TCP_INFO") => {
            "what no event tells of was not"
        }
        RunOrigin::Session if has("PORT_USE") && has("CPU_USE") => {
            "windows and buffers of connections were not, as no monitor saw them"
        }
        RunOrigin::Session if has("PORT_USE") => {
            "what the processors of hosts were busy with was not, as no monitor saw work of theirs"
        }
        RunOrigin::Session => "ports, links and windows were not, as no monitor saw them",
        RunOrigin::Import if is_session(input) => "what no event tells of was not",
        RunOrigin::Import => {
            "what limits the programs was not, as no measurement says what they should have done"
        }
    };
    Some(format!("Looked for: {looked}; {rest}."))
}
