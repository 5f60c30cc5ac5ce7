//! What a trace observes besides packets, as the user asks for it.

/// What is observed besides packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceScope {
    /// Nothing; this is the cheapest.
    Packets,
    /// The calls of programs at their sockets, and when their threads run.
    Calls,
    /// The calls of started programs at their sockets, by stopping the programs at these calls (ptrace).
    Ptrace,
}

stackline_core::named_values!(TraceScope,
    Packets = "packets", "Nothing (cheapest)";
    Calls = "calls", "What programs do at their sockets and when their threads run, from the kernel's trace events, or with `ptrace` where these are unavailable";
    Ptrace = "ptrace", "What the started programs do at their sockets: each is stopped at calls that send or receive (no root needed)");
