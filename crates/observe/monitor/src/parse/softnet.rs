//! Parses `/proc/net/softnet_stat`: packets that the kernel dropped before any protocol received them, and receive work that it put
//! off.

/// Counters of one core, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Softnet {
    /// Packets processed.
    pub(crate) processed: u64,
    /// Packets dropped because a backlog was full.
    pub(crate) dropped: u64,
    /// Times the receive work ran out of its budget.
    pub(crate) squeezed: u64,
}

/// The sums over all cores; `None` when no line is complete.
pub(crate) fn parse(text: &str) -> Option<Softnet> {
    text.lines().filter_map(line).reduce(|a, b| Softnet {
        processed: a.processed.wrapping_add(b.processed),
        dropped: a.dropped.wrapping_add(b.dropped),
        squeezed: a.squeezed.wrapping_add(b.squeezed),
    })
}

fn line(line: &str) -> Option<Softnet> {
    let mut columns = line
        .split_ascii_whitespace()
        .map(|hex| u64::from_str_radix(hex, 16).ok());
    Some(Softnet {
        processed: columns.next()??,
        dropped: columns.next()??,
        squeezed: columns.next()??,
    })
}

/// Each core's counters by the core's number; in kernels before 5.10 that is the number of the line.
pub(crate) fn parse_cores(text: &str) -> Vec<(u32, Softnet)> {
    let numbered = |(at, text): (u32, &str)| {
        let number = text
            .split_ascii_whitespace()
            .nth(12)
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        Some((number.unwrap_or(at), line(text)?))
    };
    (0..).zip(text.lines()).filter_map(numbered).collect()
}
