//! What is looked at beside packets, as a trace is asked for.

/// What is looked at beside packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceScope {
    /// Nothing: the cheapest.
    Packets,
    /// What programs do at their sockets and when their threads run.
    Calls,
    /// The same of programs that are stopped at their calls.
    Ptrace,
}

stackline_core::named_values!(TraceScope,
    Packets = "packets", "Nothing (cheapest)";
    Calls = "calls", "What programs do at their sockets and when their threads run, from the kernel's trace events, or with `ptrace` where these are unavailable";
    Ptrace = "ptrace", "What the started programs do at their sockets: each is stopped at calls that send or receive (no root needed)");
