//! The limits of everything that reads foreign traffic, in one table, and a count of what was left out at each.
//!
//! Memory is bounded, so something must be dropped when there is more than a limit allows. It is always counted: code that drops, cuts or
//! refuses at a limit adds to a [`LeftOut`], which ends up in the notes of the run and in the last lines of a command. To add a limit,
//! add a row to the table below, count where it is reached, and add a test case that goes one beyond it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

macro_rules! bounds {
    ($($bound:ident $name:literal $most:expr, $what:literal, $why:literal;)*) => {
        /// A limit of the readers of foreign traffic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Bound {
            $(#[doc = concat!($what, ": ", $why, ".")] $bound,)*
        }

        impl Bound {
            /// All limits.
            pub const ALL: &[Self] = &[$(Self::$bound,)*];

            /// The limit's name in JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$bound => $name,)* }
            }

            /// The largest number that is allowed.
            #[must_use]
            pub const fn most(self) -> usize {
                match self { $(Self::$bound => $most,)* }
            }

            /// What is left out beyond the limit, and why; `{}` stands for the limit's number.
            const fn words(self) -> (&'static str, &'static str) {
                match self { $(Self::$bound => ($what, $why),)* }
            }
        }
    };
}

bounds! {
    // --- capture files ---
    Block "block" 4 << 20, "captures that were not read to the end", "a block is larger than {} bytes";
    Interfaces "interfaces" 1 << 16, "capture interfaces", "a section has more than {}";
    InterfaceName "interface-name" 100, "interface names that were truncated", "they are longer than {} characters";
    Fragments "fragments" 1024, "fragmented packets", "more than {} were waiting for their remaining fragments";
    // --- streams of a capture ---
    Streams "streams" 1 << 18, "packets", "their captures have more than {} streams";
    Begun "begun" 1 << 20, "stream start positions that were not kept for other captures", "there are more than {}";
    Ranges "ranges" 1024, "gaps that are treated as filled", "a stream has more than {} of them";
    Flows "flows" 1 << 20, "emulated-network connections without offsets", "there are more than {}";
    // --- messages of a connection ---
    BehindHole "behind-hole" 1 << 20, "gaps that were skipped", "more than {} bytes were waiting behind them";
    Head "head" 16 << 10, "message headers", "they are longer than {} bytes";
    HeaderLines "header-lines" 128, "HTTP/1 headers", "they have more than {} lines";
    ChunkLine "chunk-line" 4096, "HTTP/1 messages", "a chunk-size line is longer than {} bytes";
    Waiting "waiting" 4096, "requests without their answers", "more than {} were waiting on one connection";
    Name "name" 256, "request names that fill the available space and may be truncated", "the limit is {} bytes";
    HeaderTable "header-table" 64 << 10, "HTTP/2 directions whose later headers cannot be decoded", "the header table is larger than {} bytes";
    Pointers "pointers" 8, "DNS messages", "a name in them has more than {} pointers";
    Statements "statements" 512, "prepared statements without their text", "there are more than {} on one connection";
    Line "line" 1024, "RESP lines that were truncated", "they are longer than {} bytes";
    Depth "depth" 64, "RESP values", "they are nested more than {} levels deep";
    Sessions "sessions" 1 << 16, "TLS secrets", "there are more than {} sessions";
    Places "places" 4096, "messages within TLS whose position is approximate", "they began more than {} records earlier";
    QuicStreams "quic-streams" 4096, "pieces of QUIC streams", "more than {} streams were open on one connection";
    // --- requests ---
    Open "open" 8192, "requests that were reported before they ended", "more than {} were open on one connection";
    Unread "unread" 64, "answers that were reported before they were read", "more than {} requests were open on one connection";
    Repeated "repeated" 4096, "retransmissions, holds and full windows", "a direction has more than {} of one kind";
    Moments "moments" 1 << 18, "timestamps of bytes that are therefore reported too late", "a message has more than {}";
    Ahead "ahead" 4096, "out-of-order segments", "more than {} arrived before the missing ones";
    Connections "connections" 1 << 16, "connections that were reported before they ended", "more than {} were open";
    QuicConnections "quic-connections" 1 << 14, "QUIC connections that were reported before they ended", "more than {} were open";
    Doors "doors" 4096, "QUIC datagrams that were not matched with the other end", "a connection had more than {} within two seconds";
    Origins "origins" 1 << 20, "connections that were not found in the network's own record", "there are more than {}";
    Lookups "lookups" 4096, "DNS questions that were reported without an answer", "more than {} were waiting for one";
    Answered "answered" 4096, "DNS answers that were not matched with a connection", "more than {} arrived within a short time";
    EarlyCalls "early-calls" 1024, "socket calls", "more than {} came before the first packet of their connection";
    Sockets "sockets" 1 << 17, "socket calls", "more than {} sockets were open";
    Parents "parents" 4096, "requests whose cause is not reported", "a host had more than {} at the same time";
    Spans "spans" 1 << 17, "requests whose parent request is not reported", "more than {} began and ended while it was open";
    // --- what a run keeps of requests ---
    Named "named" 1 << 20, "connections without a row in the index", "there are more than {}";
    Asked "asked" 1 << 20, "requests that were not matched with a log line", "there are more than {}";
    Numbers "numbers" (1 << 23) - 1, "packets of connections whose requests are not reported", "there are more than {} connections";
    Accounts "accounts" 1 << 19, "packets of connections without a TCP_CONNECTION event", "there are more than {} connections";
    Handshakes "handshakes" 1 << 16, "handshakes and addresses not used to determine where a capture was taken", "there are more than {}";
    SurveyedInterfaces "surveyed-interfaces" 1 << 16, "packets on some interfaces", "captures have more than {} interfaces";
    Owners "owners" 1 << 16, "requests whose program was not looked up by connection", "there are more than {} connections";
    Threads "threads" 1 << 20, "threads whose programs are unknown", "there are more than {}";
    Children "children" 1024, "processes whose exit is not matched with the thread that waited for it", "one thread started more than {}";
    // --- files of other tools ---
    Keyword "keyword" 200, "event names that were truncated", "they are longer than {} characters";
    Data "data" 4000, "pieces of event data that were truncated", "they are longer than {} bytes";
    Near "near" 64, "log lines that may describe further requests", "more than {} requests are close in time";
    Within "within" 4, "objects within a log line", "they are nested more than {} levels deep";
}

/// How much was left out at each limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<Bound, u64>);

impl LeftOut {
    /// Adds `count` to what was left out at a limit.
    pub fn add(&mut self, bound: Bound, count: u64) {
        if count > 0 {
            let known = self.0.entry(bound).or_default();
            *known = known.saturating_add(count);
        }
    }

    /// Adds the counts of another [`LeftOut`].
    pub fn merge(&mut self, other: &Self) {
        other
            .0
            .iter()
            .for_each(|(bound, count)| self.add(*bound, *count));
    }

    /// How much was left out at a limit.
    #[must_use]
    pub fn count_of(&self, bound: Bound) -> u64 {
        self.0.get(&bound).copied().unwrap_or(0)
    }

    /// Whether nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each limit that was reached, and how much was left out at it.
    pub fn iter(&self) -> impl Iterator<Item = (Bound, u64)> + '_ {
        self.0.iter().map(|(bound, count)| (*bound, *count))
    }

    /// The counts by the limits' names, as runs store them.
    #[must_use]
    pub fn names(&self) -> BTreeMap<String, u64> {
        self.iter()
            .map(|(bound, count)| (bound.name().to_owned(), count))
            .collect()
    }

    /// The inverse of [`LeftOut::names`]. Unknown names come from another version and are ignored.
    #[must_use]
    pub fn of_names(names: &BTreeMap<String, u64>) -> Self {
        let mut left_out = Self::default();
        for (name, count) in names {
            let bound = Bound::ALL.iter().find(|bound| bound.name() == name);
            bound
                .into_iter()
                .for_each(|bound| left_out.add(*bound, *count));
        }
        left_out
    }

    /// A line for each limit: `left out: requests that were reported before they ended (1,204): more than 8,192 were open on one
    /// connection`.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |(bound, count): (Bound, u64)| {
            let (what, why) = bound.words();
            format!(
                "left out: {what} ({}): {}",
                grouped(count),
                why.replace("{}", &grouped(bound.most() as u64))
            )
        };
        self.iter().map(line).collect()
    }
}

impl Bound {
    /// For tests: checks that nothing is left out when the limit is exactly reached, and that one more is counted and has words.
    ///
    /// # Panics
    /// If one of these does not hold.
    #[doc(hidden)]
    pub fn assert_reported(self, fill: impl Fn(usize) -> LeftOut) {
        // For large limits only the run beyond is made: it must leave out exactly one.
        let takes_long = self.most() >= 1 << 18
            && !matches!(self, Self::Block | Self::BehindHole | Self::Moments);
        if !takes_long {
            assert_eq!(
                fill(self.most()).count_of(self),
                0,
                "{}: there is room",
                self.name()
            );
        }
        let beyond = fill(self.most() + 1);
        let count = beyond.count_of(self);
        assert!(
            if takes_long { count == 1 } else { count > 0 },
            "{}: {beyond:?}",
            self.name()
        );
        let words = self.words().1.replace("{}", &grouped(self.most() as u64));
        assert!(
            beyond
                .lines()
                .iter()
                .any(|line| line.starts_with("left out: ") && line.ends_with(&words))
        );
    }
}

/// A number with thousands separators, such as `8,192`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        let separator = if at > 0 && (digits.len() - at).is_multiple_of(3) {
            ","
        } else {
            ""
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{digit}");
    }
    text
}

#[cfg(test)]
mod bound_cases;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted_and_has_words() {
        let mut left_out = LeftOut::default();
        assert!(left_out.is_empty() && left_out.lines().is_empty());
        left_out.add(Bound::Open, 1000);
        left_out.add(Bound::Name, 0);
        let mut other = LeftOut::default();
        other.add(Bound::Open, 204);
        left_out.merge(&other);
        assert_eq!(left_out.count_of(Bound::Open), 1204);
        let line = "left out: requests that were reported before they ended (1,204): more than 8,192 were open on one connection";
        assert_eq!(left_out.lines(), [line]);
        assert_eq!(LeftOut::of_names(&left_out.names()), left_out);
    }

    #[test]
    fn every_bound_has_a_name_of_its_own_and_says_how_much_there_is_room_for() {
        let names: std::collections::BTreeSet<&str> =
            Bound::ALL.iter().map(|bound| bound.name()).collect();
        assert_eq!(names.len(), Bound::ALL.len());
        for bound in Bound::ALL {
            assert_eq!(bound.words().1.matches("{}").count(), 1, "{}", bound.name());
        }
        assert_eq!(
            [0, 999, 1000, 1_048_576].map(grouped),
            ["0", "999", "1,000", "1,048,576"]
        );
    }
}
