//! Finds out at which host a capture was taken, that is, which addresses are that host's. If the link header says which packets the host
//! sent, that decides. Otherwise, if several captures saw the same handshakes, the one with the longest wait for the answer was taken at
//! the client and the one with the shortest at the server. Otherwise the shorter half of a handshake is on this side, or packets whose
//! TTL shows no hop.

use super::survey::{Survey, SurveyedHandshake, SurveyedInterface};
use super::{clocks, host_names};
use stackline_core::trace_index::ClockCorrection;
use stackline_core::units;
use stackline_dissect::left_out::LeftOut;
use stackline_requests::exchange_events::HostsElsewhere;
use stackline_requests::{ObservedHost, PacketPassage};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// One half of a handshake counts as shorter if the other one takes at least this many times as long.
const CLEAR: u64 = 3;

/// The plan for captures that are read together: at which hosts they were taken, and how their clocks differ.
#[derive(Clone, Debug, Default)]
pub struct CapturePlan {
    /// The hosts at which captures were taken.
    pub hosts: Vec<ObservedHost>,
    /// Their clocks against the first host's; all zeroes where nothing is known.
    pub clocks: Vec<ClockCorrection>,
    /// For each capture, the index of the host by interface name.
    pub(super) places: Vec<BTreeMap<String, usize>>,
    /// Sentences for the user about each host: how it was recognised, and how its clock differs.
    pub notes: Vec<Vec<String>>,
    /// What the surveys left out because a limit was reached.
    pub left_out: LeftOut,
}

/// Votes on whether an address belongs to a host.
#[derive(Clone, Copy, Debug, Default)]
struct HostAddressVotes {
    /// Votes for this host.
    here: u64,
    /// Votes for another host.
    elsewhere: u64,
    /// Undecided votes.
    open: u64,
}

impl HostAddressVotes {
    const fn all(self) -> u64 {
        self.here + self.elsewhere + self.open
    }

    /// Whether most votes say that the address belongs to the host.
    const fn are_for_it(self) -> bool {
        self.here > self.elsewhere && 2 * self.here > self.all()
    }
}

/// What the decision about an address rests on, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum HostAddressBasis {
    /// The times of handshakes or hop counts, in this capture alone.
    Handshakes,
    /// The comparison of the same handshakes in several captures.
    Comparison,
    /// The link headers.
    Link,
}

impl CapturePlan {
    /// Makes the plan. Clocks in `given` (host name, ns ahead) are not compared.
    #[must_use]
    pub fn from_surveys(surveys: &[Survey], given: &BTreeMap<String, i64>) -> Self {
        let mut plan = Self::default();
        surveys
            .iter()
            .for_each(|survey| plan.left_out.merge(&survey.left_out));
        plan.name(surveys);
        let seen = plan.seen(surveys);
        let votes = compared(&seen);
        for (host, places) in seen.iter().enumerate() {
            let (addresses, note) = addresses(places, &votes[host]);
            let by_address = host_names::name_by_address(&plan.hosts[host].name, &addresses);
            let is_free = |name: &String| plan.hosts.iter().all(|other| other.name != *name);
            if let Some(name) = by_address.filter(is_free)
                && !plan.is_named(host, surveys)
            {
                plan.hosts[host].name = name;
            }
            plan.hosts[host].addresses = addresses.into_iter().collect();
            plan.notes[host]
                .extend(note.map(|note| format!("{} was captured {note}", plan.hosts[host].name)));
        }
        let (clocks, notes) = clocks::compare(&plan.hosts, &seen, given);
        plan.clocks = clocks;
        plan.notes
            .iter_mut()
            .zip(notes)
            .for_each(|(all, note)| all.extend(note));
        plan
    }

    /// Gives hosts the names in `named`, which belong to some of their addresses, and all addresses of that name. A host that was named
    /// with its capture keeps its name.
    #[must_use]
    pub fn naming(mut self, named: &HostsElsewhere, surveys: &[Survey]) -> Self {
        for host in 0..self.hosts.len() {
            let mut own = self.hosts[host].addresses.iter();
            let Some(name) = own.find_map(|address| named.get(address)).cloned() else {
                continue;
            };
            let all = named.iter().filter(|(_, of)| **of == name);
            let more: Vec<IpAddr> = all.map(|(address, _)| *address).collect();
            let known = &mut self.hosts[host].addresses;
            known.extend(more);
            known.sort_unstable();
            known.dedup();
            if !self.is_named(host, surveys) {
                self.hosts[host].name = name;
            }
        }
        self
    }

    /// Whether the user named this host with its capture.
    fn is_named(&self, host: usize, surveys: &[Survey]) -> bool {
        surveys.iter().zip(&self.places).any(|(survey, places)| {
            survey.pattern.is_some() && places.values().any(|place| *place == host)
        })
    }

    /// Whether a packet between these addresses leaves a host, arrives there, or passes between others.
    #[must_use]
    pub fn door(&self, host: usize, from: IpAddr, to: IpAddr) -> PacketPassage {
        let is_own = |address: &IpAddr| {
            address.is_loopback() || self.hosts[host].addresses.contains(address)
        };
        match (is_own(&from), is_own(&to)) {
            (true, _) => PacketPassage::Leaves,
            (false, true) => PacketPassage::Arrives,
            (false, false) => PacketPassage::Between,
        }
    }

    /// Converts a time of a host's clock to the first host's clock, ns.
    #[must_use]
    pub fn reference_ns(&self, host: usize, at_ns: u64) -> u64 {
        self.clocks
            .get(host)
            .map_or(at_ns, |clock| clock.reference_ns(at_ns))
    }

    /// Converts a time of the first host's clock to another host's clock, ns.
    #[must_use]
    pub fn own_ns(&self, host: usize, at_ns: u64) -> u64 {
        let Some(clock) = self.clocks.get(host) else {
            return at_ns;
        };
        let about = at_ns.saturating_add_signed(clock.ahead_ns(at_ns));
        at_ns.saturating_add_signed(clock.ahead_ns(about))
    }

    /// Names the hosts: after the interface, or as the user says. If two captures use the same name and saw the same packets, they were
    /// taken at two places, and are named after their files.
    fn name(&mut self, surveys: &[Survey]) {
        let name_of = |survey: &Survey, interface: &str| {
            let pattern = survey.pattern.as_deref().unwrap_or("*");
            pattern.replace('*', interface)
        };
        for (at, survey) in surveys.iter().enumerate() {
            let mut places = BTreeMap::new();
            for (interface, place) in &survey.places {
                let mut name = name_of(survey, interface);
                let clashes = surveys
                    .iter()
                    .enumerate()
                    .filter(|(other, _)| *other != at)
                    .any(|(_, other)| {
                        let alike = other
                            .places
                            .iter()
                            .filter(|(interface, _)| name_of(other, interface) == name);
                        survey.pattern.is_none()
                            && alike
                                .into_iter()
                                .any(|(_, other)| place.marks.common(&other.marks).next().is_some())
                    });
                let mut note = None;
                if clashes {
                    let stem = std::path::Path::new(&survey.source).file_stem();
                    let stem = stem.map_or_else(
                        || survey.source.clone(),
                        |stem| stem.to_string_lossy().into_owned(),
                    );
                    note = Some(format!(
                        "host {stem} is named after its file, because another capture of the same packets already uses the host name {name}; rename it with --host NAME={}",
                        survey.source
                    ));
                    name = stem;
                }
                let known = self.hosts.iter().position(|host| host.name == name);
                let host = known.unwrap_or_else(|| {
                    self.hosts.push(ObservedHost {
                        name,
                        addresses: Vec::new(),
                    });
                    self.notes.push(Vec::new());
                    self.hosts.len() - 1
                });
                self.notes[host].extend(note);
                places.insert(interface.clone(), host);
            }
            self.places.push(places);
        }
    }

    /// For each host, its interfaces and what was seen there.
    fn seen<'s>(&self, surveys: &'s [Survey]) -> Vec<Vec<(&'s str, &'s SurveyedInterface)>> {
        let mut seen = vec![Vec::new(); self.hosts.len()];
        for (survey, places) in surveys.iter().zip(&self.places) {
            for (interface, place) in &survey.places {
                if let Some(host) = places.get(interface) {
                    seen[*host].push((interface.as_str(), place));
                }
            }
        }
        seen
    }
}

/// Votes on the addresses at each host, from handshakes that several hosts saw.
fn compared(seen: &[Vec<(&str, &SurveyedInterface)>]) -> Vec<BTreeMap<IpAddr, HostAddressVotes>> {
    let mut votes = vec![BTreeMap::<IpAddr, HostAddressVotes>::new(); seen.len()];
    let mut by_handshake: BTreeMap<_, Vec<(usize, &SurveyedHandshake)>> = BTreeMap::new();
    for (host, places) in seen.iter().enumerate() {
        for (key, handshake) in places.iter().flat_map(|(_, place)| &place.handshakes) {
            by_handshake
                .entry(*key)
                .or_default()
                .push((host, handshake));
        }
    }
    for (((client, server), _), all) in by_handshake {
        let waits: Vec<(u64, u8, usize)> = all
            .iter()
            .filter_map(|(host, handshake)| Some((handshake.gaps()?.0, handshake.ttl, *host)))
            .collect();
        let (Some(longest), Some(shortest)) = (waits.iter().max(), waits.iter().min()) else {
            continue;
        };
        if longest.2 == shortest.2 || (longest.0, longest.1) == (shortest.0, shortest.1) {
            continue;
        }
        for (_, _, host) in &waits {
            for (address, at) in [(client.ip(), longest.2), (server.ip(), shortest.2)] {
                let votes = votes[*host].entry(address).or_default();
                *(if at == *host {
                    &mut votes.here
                } else {
                    &mut votes.elsewhere
                }) += 1;
            }
        }
    }
    votes
}

/// The addresses of a host, and a sentence on how this was found; no sentence if there was nothing to find out.
fn addresses(
    places: &[(&str, &SurveyedInterface)],
    compared: &BTreeMap<IpAddr, HostAddressVotes>,
) -> (BTreeSet<IpAddr>, Option<String>) {
    let mut evidence = HostAddressEvidence::from_places(places);
    if evidence.all == evidence.own {
        return (evidence.own, None);
    }
    let (found, looked) = evidence.judge(compared);
    let note = match found.last_key_value() {
        Some((by, addresses)) => evidence.describe(*by, addresses),
        None => evidence.describe_open(looked),
    };
    let of_host = found.into_values().flat_map(|found| found.addresses);
    evidence.own.extend(of_host);
    (evidence.own, Some(note))
}

/// What the interfaces of one host show of its addresses.
#[derive(Default)]
struct HostAddressEvidence {
    /// All addresses in packets.
    all: BTreeSet<IpAddr>,
    /// Addresses that are the host's without doubt: those of its loopback.
    own: BTreeSet<IpAddr>,
    /// What link headers say.
    link_votes: BTreeMap<IpAddr, HostAddressVotes>,
    /// What the halves of handshakes, or else hop counts, say.
    halves: BTreeMap<IpAddr, HostAddressVotes>,
    /// The times of both halves of each handshake, ns.
    gaps: Vec<(u64, u64)>,
}

/// Addresses that were found on one basis, and the votes for them.
#[derive(Default)]
struct FoundHostAddresses {
    here: u64,
    of: u64,
    addresses: BTreeSet<IpAddr>,
}

impl HostAddressEvidence {
    fn from_places(places: &[(&str, &SurveyedInterface)]) -> Self {
        let mut evidence = Self::default();
        for (name, place) in places {
            let ends = || place.ttls.keys().flat_map(|(from, to)| [*from, *to]);
            evidence.all.extend(ends());
            if *name == "lo" || *name == "lo0" || name.starts_with("Loopback") {
                evidence.own.extend(ends());
            }
            for (address, [here, elsewhere]) in &place.link_votes {
                let votes = evidence.link_votes.entry(*address).or_default();
                votes.here += here;
                votes.elsewhere += elsewhere;
            }
            evidence.add_handshakes(place);
        }
        let loopback = evidence.all.iter().filter(|address| address.is_loopback());
        evidence.own.extend(loopback);
        evidence
    }

    fn add_handshakes(&mut self, place: &SurveyedInterface) {
        for (((client, server), _), handshake) in &place.handshakes {
            let (client, server) = (client.ip(), server.ip());
            let Some((answer, rest)) = handshake.gaps() else {
                continue;
            };
            self.gaps.push((answer, rest));
            let at = match () {
                () if answer >= rest.max(1).saturating_mul(CLEAR) => Some(client),
                () if rest >= answer.max(1).saturating_mul(CLEAR) => Some(server),
                () => by_hops(place, client, server),
            };
            vote(&mut self.halves, client, server, at);
        }
        for (client, server) in place.ttls.keys().filter(|(from, to)| from < to) {
            if !self.halves.contains_key(client) && !self.halves.contains_key(server) {
                let at = by_hops(place, *client, *server);
                vote(&mut self.halves, *client, *server, at);
            }
        }
    }

    /// The host's addresses by what they were found on, and the most votes on any address. `compared` has the votes of several captures.
    fn judge(
        &self,
        compared: &BTreeMap<IpAddr, HostAddressVotes>,
    ) -> (BTreeMap<HostAddressBasis, FoundHostAddresses>, u64) {
        let mut found: BTreeMap<HostAddressBasis, FoundHostAddresses> = BTreeMap::new();
        let mut looked = 0;
        for address in &self.all {
            let [link, comparison, handshakes] = [&self.link_votes, compared, &self.halves]
                .map(|votes| votes.get(address).copied().unwrap_or_default());
            let (by, votes) = match () {
                () if link.all() > 0 => (HostAddressBasis::Link, link),
                () if comparison.all() > 0 => (HostAddressBasis::Comparison, comparison),
                () => (HostAddressBasis::Handshakes, handshakes),
            };
            looked = looked.max(votes.all());
            if votes.are_for_it() {
                let found = found.entry(by).or_default();
                found.here += votes.here;
                found.of += votes.all();
                found.addresses.insert(*address);
            }
        }
        (found, looked)
    }

    /// Where the capture was taken, and how that was found.
    fn describe(&self, by: HostAddressBasis, found: &FoundHostAddresses) -> String {
        let FoundHostAddresses {
            here,
            of,
            addresses,
        } = found;
        let names = listed(addresses);
        match by {
            HostAddressBasis::Link => format!(
                "at {names}, according to link headers that show which packets it sent ({here} of {of})"
            ),
            HostAddressBasis::Comparison => {
                format!(
                    "at {names}, according to {here} of {of} handshakes seen in several captures"
                )
            }
            HostAddressBasis::Handshakes => format!(
                "at {names}, according to {here} of {of} handshakes or hop counts{}",
                medians(&mut self.gaps.clone())
            ),
        }
    }

    /// That the capture was taken between hosts; `looked` is the most votes on any address.
    fn describe_open(&self, looked: u64) -> String {
        match looked {
            0 => "between hosts, as far as is known (the capture contains no handshake); request times do not separate network time from server time".to_owned(),
            _ => format!(
                "apparently between hosts, because neither half of its handshakes is clearly shorter{}; request times do not separate network time from server time",
                medians(&mut self.gaps.clone())
            ),
        }
    }
}

/// Adds a vote: `at` is the address that belongs to the host, if that is known.
fn vote(
    votes: &mut BTreeMap<IpAddr, HostAddressVotes>,
    client: IpAddr,
    server: IpAddr,
    at: Option<IpAddr>,
) {
    for address in [client, server] {
        let votes = votes.entry(address).or_default();
        match at {
            None => votes.open += 1,
            Some(at) if at == address => votes.here += 1,
            Some(_) => votes.elsewhere += 1,
        }
    }
}

/// The address whose packets took no hop, if those of the other one took some. The initial TTL is taken to be 64, 128 or 255.
fn by_hops(place: &SurveyedInterface, one: IpAddr, other: IpAddr) -> Option<IpAddr> {
    let hops = |from, to| {
        let left = *place.ttls.get(&(from, to))?;
        [64, 128, 255]
            .into_iter()
            .find(|first| *first >= left)
            .map(|first| first - left)
    };
    match (hops(one, other)?, hops(other, one)?) {
        (0, 1..) => Some(one),
        (1.., 0) => Some(other),
        _ => None,
    }
}

/// The median times of both halves of handshakes, for a sentence.
fn medians(gaps: &mut [(u64, u64)]) -> String {
    if gaps.is_empty() {
        return String::new();
    }
    let mut median = |of: fn(&(u64, u64)) -> u64| {
        gaps.sort_unstable_by_key(of);
        units::format_time(of(&gaps[gaps.len() / 2]) as f64 / 1e9)
    };
    let (answer, rest) = (median(|gap| gap.0), median(|gap| gap.1));
    format!(" (SYN to SYN-ACK {answer}, SYN-ACK to ACK {rest}; medians)")
}

/// Up to three addresses, and how many more there are.
fn listed(addresses: &BTreeSet<IpAddr>) -> String {
    let mut names: Vec<String> = addresses.iter().take(3).map(ToString::to_string).collect();
    if addresses.len() > 3 {
        names.push(format!("{} more", addresses.len() - 3));
    }
    names.join(", ")
}
