//! Groups monitor points into stages of the units' way: the same point on several hosts or ports is one stage, which is one row of
//! a picture. Lifelines stay as they are.
//!
//! Points of one keyword are one stage as long as no line passes two of them: two queues that a unit passes one after the other are
//! two stages.

use crate::assemble::order::PointOrderVotes;
use crate::lifelines::{LifelinePoint, Lifelines};
use crate::names::point_name;
use std::collections::{BTreeMap, HashMap, HashSet};

/// If a stage is on more hosts or ports than this, segments are also given per stage.
const MOST_PLACES: usize = 8;

/// The stages, numbered in the order of the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// By monitor point: the number of its stage.
    pub of: Vec<u32>,
    /// By stage: its name.
    pub names: Vec<String>,
    /// By stage: the hosts or ports where lines pass it.
    pub places: Vec<Vec<String>>,
}

impl Stages {
    /// The stages of these lines.
    #[must_use]
    pub fn from_lifelines(lifelines: &Lifelines) -> Self {
        let depths = depths(lifelines);
        let mut numbers: BTreeMap<(&str, &str, u32), u32> = BTreeMap::new();
        let mut of: Vec<u32> = Vec::with_capacity(depths.len());
        for (point, depth) in lifelines.points.iter().zip(&depths) {
            let next = numbers.len() as u32;
            of.push(
                *numbers
                    .entry((point.keyword.as_str(), point.service.as_str(), *depth))
                    .or_insert(next),
            );
        }
        let ranks = ranks(lifelines, &of, numbers.len());
        of.iter_mut()
            .for_each(|stage| *stage = ranks[*stage as usize]);
        let mut stages = Self {
            names: vec![String::new(); ranks.len()],
            places: vec![Vec::new(); ranks.len()],
            of,
        };
        let mut met = vec![false; lifelines.points.len()];
        lifelines
            .passages
            .iter()
            .for_each(|passage| met[passage.point as usize] = true);
        for ((point, stage), met) in lifelines.points.iter().zip(&stages.of).zip(met) {
            stages.names[*stage as usize] = point_name(point);
            if !met {
                continue;
            }
            let places = &mut stages.places[*stage as usize];
            let place = place(point);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        stages
    }

    /// A representative point for each stage, which says on how many hosts or links the stage is. `None` if no stage is on more than
    /// `MOST_PLACES`.
    #[must_use]
    pub fn points(&self, lifelines: &Lifelines) -> Option<Vec<LifelinePoint>> {
        let most = self.places.iter().map(Vec::len).max().unwrap_or(0);
        (most > MOST_PLACES).then(|| {
            (0..self.names.len() as u32)
                .map(|stage| self.point(lifelines, stage))
                .collect()
        })
    }

    fn point(&self, lifelines: &Lifelines, stage: u32) -> LifelinePoint {
        let of = lifelines
            .points
            .iter()
            .zip(&self.of)
            .filter(|(_, own)| **own == stage)
            .map(|(point, _)| point);
        let of: Vec<&LifelinePoint> = of.collect();
        let first = of
            .first()
            .map_or_else(LifelinePoint::default, |point| (*point).clone());
        let count = self.places[stage as usize].len();
        let ports = of.iter().any(|point| point.place.contains('>'));
        match count {
            0 | 1 => of
                .into_iter()
                .find(|point| self.places[stage as usize].contains(&place(point)))
                .cloned()
                .unwrap_or(first),
            _ if ports => LifelinePoint {
                host: format!("{count} links"),
                place: format!("{count} links"),
                ..first
            },
            _ => LifelinePoint {
                host: format!("{count} hosts"),
                place: String::new(),
                ..first
            },
        }
    }

    /// The places of a stage as text: all of them if they fit into `room` characters, else their number and the first.
    #[must_use]
    pub fn place(&self, stage: u32, room: usize) -> String {
        let places = self
            .places
            .get(stage as usize)
            .map_or(&[][..], Vec::as_slice);
        let all = places.join(", ");
        let first = places.first().map_or("", String::as_str);
        if all.chars().count() <= room {
            all
        } else {
            format!("{} places, {first}...", places.len())
        }
    }
}

/// The place of a point as text: the port if it has one (its name contains the host), else the host with the direction, if any.
fn place(point: &LifelinePoint) -> String {
    match point.place.as_str() {
        "" => point.host.clone(),
        place if place == point.host || place.contains('>') => place.to_owned(),
        place => format!("{} {place}", point.host),
    }
}

/// By point: how many points of its keyword a line passes before it, at most (the longest path), so that it grows along every line.
fn depths(lifelines: &Lifelines) -> Vec<u32> {
    let points = &lifelines.points;
    let mut keywords: HashMap<&str, usize> = HashMap::new();
    let keyword: Vec<usize> = points
        .iter()
        .map(|point| {
            let next = keywords.len();
            *keywords.entry(point.keyword.as_str()).or_insert(next)
        })
        .collect();
    let mut follow: HashSet<(u32, u32)> = HashSet::new();
    let mut last: Vec<(usize, u32)> = vec![(usize::MAX, 0); keywords.len()];
    // A cache: the point that last followed each point; most often it does so again.
    let mut latest = vec![u32::MAX; points.len()];
    for (number, line) in lifelines.lines.iter().enumerate() {
        for passage in lifelines.passages_of(line) {
            let last = &mut last[keyword[passage.point as usize]];
            if last.0 == number && latest[last.1 as usize] != passage.point {
                latest[last.1 as usize] = passage.point;
                follow.insert((last.1, passage.point));
            }
            *last = (number, passage.point);
        }
    }
    // Points are numbered in the order of the way, so a point before another has a smaller number; other pairs come from wrong clocks.
    let mut follow: Vec<(u32, u32)> = follow
        .into_iter()
        .filter(|(before, after)| before < after)
        .collect();
    follow.sort_unstable_by_key(|(before, after)| (*after, *before));
    let mut depths = vec![0; points.len()];
    for (before, after) in follow {
        depths[after as usize] = depths[after as usize].max(depths[before as usize] + 1);
    }
    depths
}

/// The rank of each stage: in the order in which most lines pass them, stages of connections before those of units.
fn ranks(lifelines: &Lifelines, of: &[u32], stages: usize) -> Vec<u32> {
    let mut counts: HashMap<(u32, u32), u64> = HashMap::new();
    let mut pairs: HashMap<(u32, u32), u64> = HashMap::new();
    let mut latest = vec![(u32::MAX, 0_u64); lifelines.points.len()];
    for line in &lifelines.lines {
        for pair in lifelines.passages_of(line).windows(2) {
            let (from, to) = (pair[0].point, pair[1].point);
            let latest = &mut latest[from as usize];
            if latest.0 != to {
                *pairs.entry((from, latest.0)).or_default() += latest.1;
                *latest = (to, 0);
            }
            latest.1 += 1;
        }
    }
    let left = latest
        .iter()
        .enumerate()
        .map(|(from, (to, n))| ((from as u32, *to), *n));
    for ((from, to), n) in pairs.into_iter().chain(left).filter(|(_, n)| *n > 0) {
        *counts
            .entry((of[from as usize], of[to as usize]))
            .or_default() += n;
    }
    let mut votes = PointOrderVotes::default();
    counts
        .into_iter()
        .filter(|((a, b), _)| a != b)
        .for_each(|((a, b), n)| votes.cast_often(a, b, n));
    // Stages that no line orders stay in the order of their first points.
    let mut first = vec![u32::MAX; stages];
    let mut connects = vec![false; stages];
    for (point, stage) in of.iter().enumerate() {
        let stage = *stage as usize;
        first[stage] = first[stage].min(point as u32);
        connects[stage] |= lifelines.points[point].keyword.starts_with("APP_CONNECT");
    }
    let ranks = votes.ranks(&first);
    let mut order: Vec<usize> = (0..stages).collect();
    order.sort_by_key(|stage| (!connects[*stage], ranks[*stage]));
    let mut places = vec![0; stages];
    order
        .iter()
        .enumerate()
        .for_each(|(place, stage)| places[*stage] = place as u32);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::{LifelineOptions, lifelines};
    use stackline_events::{EventTable, EventValue};

    /// A table of units, each with its way: a keyword, host and place each.
    fn lifelines_of(paths: &[&[&str]]) -> Lifelines {
        let mut table = EventTable::default();
        for (unit, path) in paths.iter().enumerate() {
            for (step, point) in path.iter().enumerate() {
                let mut words = point.split(' ');
                let (keyword, host) = (words.next().unwrap(), words.next().unwrap());
                let at_ns = unit as u64 * 1_000 + step as u64;
                table.push(keyword, host, at_ns, &[EventValue::Number(unit as i64)]);
            }
        }
        lifelines(&table, None, &LifelineOptions::default())
    }

    fn rows(lifelines: &Lifelines) -> Vec<String> {
        let stages = Stages::from_lifelines(lifelines);
        stages
            .names
            .iter()
            .zip(&stages.places)
            .map(|(name, places)| format!("{name} {}", places.join(",")))
            .collect()
    }

    #[test]
    fn copies_on_several_hosts_are_one_row_and_queues_in_a_row_are_not() {
        let lifelines = lifelines_of(&[
            &["SEND a", "QUEUE a", "QUEUE s", "RECEIVED c"],
            &["SEND b", "QUEUE b", "QUEUE s", "RECEIVED c"],
            &["SEND a", "QUEUE a", "QUEUE s", "RECEIVED d"],
        ]);
        assert_eq!(
            rows(&lifelines),
            ["SEND a,b", "QUEUE a,b", "QUEUE s", "RECEIVED c,d"]
        );
    }

    #[test]
    fn a_longer_path_keeps_its_order() {
        let lifelines = lifelines_of(&[
            &["SEND a", "QUEUE a", "QUEUE r", "QUEUE s", "RECEIVED c"],
            &["SEND b", "QUEUE b", "QUEUE s", "RECEIVED c"],
            &["SEND b", "QUEUE b", "RECEIVED d"],
        ]);
        assert_eq!(
            rows(&lifelines),
            [
                "SEND a,b",
                "QUEUE a,b",
                "QUEUE r",
                "QUEUE s",
                "RECEIVED d,c"
            ]
        );
        // On every line each row is above the one before.
        let stages = Stages::from_lifelines(&lifelines);
        for line in &lifelines.lines {
            let rows = lifelines
                .passages_of(line)
                .iter()
                .map(|passage| stages.of[passage.point as usize]);
            assert!(rows.collect::<Vec<_>>().is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn many_places_are_counted() {
        let places = (0..200).map(|host| format!("c{host}")).collect();
        let stages = Stages {
            places: vec![places, vec!["srv".into()]],
            ..Stages::default()
        };
        assert_eq!(
            (stages.place(0, 30), stages.place(1, 30)),
            ("200 places, c0...".into(), "srv".into())
        );
    }
}
