//! Interfaces, TCP's and UDP's counters, and the soft interrupts that take packets: files below `/proc/net`, which are of
//! the network namespace that the watching thread was started in.

use super::sample::{Monitor, Round, Sampled, Started, Step, grown};
use crate::file::Reader;
use crate::parse::{block, interfaces, softnet};
use stackline_events::{Keyword, Tape, Value, clock};

/// The monitors; of interfaces those named, or all.
pub(crate) fn all(names: &[String]) -> Vec<Started> {
    vec![
        ("interfaces", Interfaces::start(names)),
        Sampled::start(
            "protocols",
            ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"],
            read_protocols,
            tell_protocols,
        ),
        Sampled::start("softnet", ["/proc/thread-self/net/softnet_stat"], read_softnet, tell_softnet),
    ]
}

/// What went through each interface.
struct Interfaces {
    file: Reader,
    names: Vec<String>,
    last: Option<(u64, Vec<interfaces::Traffic>)>,
}

impl Interfaces {
    fn start(names: &[String]) -> Result<Box<dyn Monitor>, String> {
        let mut file = Reader::open("/proc/thread-self/net/dev")?;
        let there = interfaces::parse(file.text()?);
        if let Some(missing) = names.iter().find(|name| there.iter().all(|there| there.name != **name)) {
            return Err(format!("there is no interface {missing}"));
        }
        Ok(Box::new(Self { file, names: names.to_vec(), last: None }))
    }
}

impl Monitor for Interfaces {
    fn name(&self) -> &'static str {
        "interfaces"
    }

    fn look(&mut self, round: &mut Round<'_>) -> Result<(), String> {
        let at_ns = clock::now_ns();
        let mut now = interfaces::parse(self.file.text()?);
        now.retain(|interface| self.names.is_empty() || self.names.contains(&interface.name));
        if let Some((before_ns, before)) = &self.last {
            let step = Step { at_ns, interval_ns: at_ns.saturating_sub(*before_ns) };
            tell_interfaces(step, before, &now, round.tape);
        }
        self.last = Some((at_ns, now));
        Ok(())
    }
}

fn tell_interfaces(step: Step, before: &[interfaces::Traffic], now: &[interfaces::Traffic], tape: &mut Tape) {
    static NETIF: Keyword = Keyword::new("NETIF");
    for interface in now {
        let Some(earlier) = before.iter().find(|other| other.name == interface.name) else { continue };
        let mut data = [Value::Text(&interface.name); 9];
        // The file has errors before drops.
        for (at, column) in [0, 1, 3, 2, 4, 5, 7, 6].into_iter().enumerate() {
            data[at + 1] = grown(earlier.counters[column], interface.counters[column]);
        }
        step.tell(tape, &NETIF, &data);
    }
}

const TCP: [(&str, &str); 10] = [
    ("Tcp", "InSegs"),
    ("Tcp", "OutSegs"),
    ("Tcp", "RetransSegs"),
    ("Tcp", "EstabResets"),
    ("TcpExt", "TCPTimeouts"),
    ("TcpExt", "ListenDrops"),
    ("TcpExt", "TCPRcvQDrop"),
    ("TcpExt", "DelayedACKs"),
    ("TcpExt", "TCPLossProbes"),
    ("TcpExt", "TCPOFOQueue"),
];

const UDP: [(&str, &str); 5] = [
    ("Udp", "InDatagrams"),
    ("Udp", "OutDatagrams"),
    ("Udp", "RcvbufErrors"),
    ("Udp", "SndbufErrors"),
    ("Udp", "InCsumErrors"),
];

/// Counters of TCP and of UDP, where this kernel has them.
type Protocols = ([Option<u64>; TCP.len()], [Option<u64>; UDP.len()]);

fn read_protocols([snmp, netstat]: [&str; 2]) -> Option<Protocols> {
    let mut counters = block::parse(snmp);
    counters.extend(block::parse(netstat));
    let of = |name: (&str, &str)| counters.get(&name).and_then(|count| u64::try_from(*count).ok());
    let both = (TCP.map(of), UDP.map(of));
    both.0[0].map(|_| both)
}

fn tell_protocols(step: Step, before: &Protocols, now: &mut Protocols, tape: &mut Tape) {
    static NETSTAT_TCP: Keyword = Keyword::new("NETSTAT_TCP");
    static NETSTAT_UDP: Keyword = Keyword::new("NETSTAT_UDP");
    step.tell(tape, &NETSTAT_TCP, &differences(&before.0, &now.0));
    step.tell(tape, &NETSTAT_UDP, &differences(&before.1, &now.1));
}

fn differences<const N: usize>(before: &[Option<u64>; N], now: &[Option<u64>; N]) -> [Value<'static>; N] {
    std::array::from_fn(|at| before[at].zip(now[at]).map(|(before, now)| grown(before, now)).into())
}

/// Each core's counters by its number.
struct Cores(Vec<(u32, softnet::Softnet)>);

fn read_softnet([text]: [&str; 1]) -> Option<Cores> {
    let cores = softnet::each(text);
    (!cores.is_empty()).then_some(Cores(cores))
}

/// A core that took nothing is left out.
fn tell_softnet(step: Step, before: &Cores, now: &mut Cores, tape: &mut Tape) {
    static SOFTNET: Keyword = Keyword::new("SOFTNET");
    for (core, softnet) in &now.0 {
        let Some((_, earlier)) = before.0.iter().find(|(other, before)| other == core && before != softnet) else {
            continue;
        };
        // The kernel's counters have 32 bits.
        let grew = |before: u64, now: u64| Value::from((now as u32).wrapping_sub(before as u32));
        let data = [
            Value::from(*core),
            grew(earlier.processed, softnet.processed),
            grew(earlier.dropped, softnet.dropped),
            grew(earlier.squeezed, softnet.squeezed),
        ];
        step.tell(tape, &SOFTNET, &data);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{lines, told};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn interfaces_tell_what_went_through() {
        let before =
            "Inter-|   Receive\n lo: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\nveth:7: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n";
        let after = "Inter-|   Receive\n lo: 40 3 7 8 0 0 0 0 50 4 5 6 0 0 0 0\nnew: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n";
        let mut tape = Tape::default();
        let step = Step { at_ns: 2, interval_ns: 1 };
        tell_interfaces(step, &interfaces::parse(before), &interfaces::parse(after), &mut tape);
        assert_eq!(lines(&tape), ["NETIF 1;lo;30;2;8;7;40;3;6;5"]);
    }

    #[test]
    fn protocols_tell_what_they_counted_where_the_kernel_counts_it() {
        let snmp = |segments, retransmits| {
            format!(
                "Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs EstabResets\nTcp: 1 -1 {segments} 9 {retransmits} 0\n\
                 Udp: InDatagrams OutDatagrams RcvbufErrors SndbufErrors\nUdp: 5 6 0 0\n"
            )
        };
        let netstat = |timeouts| format!("TcpExt: DelayedACKs TCPTimeouts\nTcpExt: 4 {timeouts}\n");
        let rows = told(read_protocols, tell_protocols, [&snmp(100, 3), &netstat(1)], [&snmp(150, 5), &netstat(2)]);
        assert_eq!(rows, ["NETSTAT_TCP 1000000000;50;0;2;0;1;;;0;;", "NETSTAT_UDP 1000000000;0;0;0;0;"]);
        assert!(read_protocols(["", ""]).is_none());
    }

    #[test]
    fn soft_interrupts_tell_of_each_core_over_the_wrap() {
        // Linux 6.18 writes the core in the 13th column; before 5.10 there were 11, and the line was the core.
        let new = |packets: &str, core| format!("{packets} 00000000 00000026 0 0 0 0 0 0 0 0 0 {core:08x} 0 0\n");
        let before = new("ffffffff", 0) + &new("00000005", 3);
        let after = new("00000009", 0) + &new("00000005", 3);
        assert_eq!(told(read_softnet, tell_softnet, [&before], [&after]), ["SOFTNET 1000000000;0;10;0;0"]);
        let old = ["00000001 0 0 0 0 0 0 0 0 0 0\n00000001 0 0 0 0 0 0 0 0 0 0\n"];
        let later = ["00000001 0 0 0 0 0 0 0 0 0 0\n00000003 1 2 0 0 0 0 0 0 0 0\n"];
        assert_eq!(told(read_softnet, tell_softnet, old, later), ["SOFTNET 1000000000;1;2;1;2"]);
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(before in "((Tcp|Udp|lo): ?[0-9A-Za-z -]{0,40}\n|[0-9a-f ]{0,60}\n){0,6}", now in "\\PC{0,80}") {
            let step = Step { at_ns: 2, interval_ns: 1 };
            let (before, now) = ([before.as_str()], [now.as_str()]);
            tell_interfaces(step, &interfaces::parse(before[0]), &interfaces::parse(now[0]), &mut Tape::default());
            if let (Some(before), Some(mut now)) = (read_softnet(before), read_softnet(now)) {
                tell_softnet(step, &before, &mut now, &mut Tape::default());
            }
            let _ = read_protocols([before[0], now[0]]);
        }
    }
}
