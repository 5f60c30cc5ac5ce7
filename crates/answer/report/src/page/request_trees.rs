//! Requests of other (traced) programs for the page: the causes of the time of each, and which requests were made for which.

use super::packed_columns::EXACT;
use serde_json::{Value, json};
use stackline_analyze::findings::{AccountedCause, AccountedRequest};
use stackline_analyze::lifelines::Lifelines;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Most requests in the trees of a page.
const MOST: usize = 5_000;

/// The requests of a page's lines.
pub(super) struct PageRequests<'c> {
    all: &'c [AccountedRequest],
    /// By line: the index of its request in `all`.
    of_line: Vec<Option<usize>>,
    /// All causes with their numbers.
    causes: BTreeMap<&'c AccountedCause, usize>,
}

impl<'c> PageRequests<'c> {
    pub(super) fn from_requests(
        all: &'c [AccountedRequest],
        lifelines: &Lifelines,
        lines: &[u32],
    ) -> Self {
        let places: HashMap<i64, usize> = all
            .iter()
            .enumerate()
            .map(|(place, request)| (request.unit, place))
            .collect();
        let of_line = |line: &u32| {
            let unit = lifelines.lines[*line as usize].unit.number()?;
            places.get(&unit).copied()
        };
        let causes: BTreeSet<&AccountedCause> = all
            .iter()
            .flat_map(|request| &request.parts)
            .map(|(cause, _)| cause)
            .collect();
        Self {
            all,
            of_line: lines.iter().map(of_line).collect(),
            causes: causes.into_iter().zip(0..).collect(),
        }
    }

    /// The causes of the time of the lines' requests: causes as `[words, place, layer]`, and for each line its total time and pairs of a
    /// cause's number and its time, ns; null if the run has no requests.
    pub(super) fn accounts(&self) -> Value {
        if self.all.is_empty() {
            return Value::Null;
        }
        let of_line = |request: &Option<usize>| {
            let request = &self.all[(*request)?];
            let parts = request.parts.iter();
            let pairs = parts.flat_map(|(cause, ns)| [json!(self.causes[cause]), json!(ns)]);
            Some(Value::from_iter(
                [json!(request.total_ns)].into_iter().chain(pairs),
            ))
        };
        let causes = self.causes.keys();
        json!({
            "causes": causes.map(|one| json!([one.cause, one.place, one.layer])).collect::<Vec<_>>(),
            "lines": self.of_line.iter().map(of_line).collect::<Vec<_>>(),
        })
    }

    /// The lines' requests and those made for them: for each line the number of its request, and for each request
    /// `[number of its parent, begin, total time, name, number of the cause that took most, its time]`; the begin is in ns since the
    /// origin.
    pub(super) fn trees(&self, names: &HashMap<i64, String>, origin_ns: u64) -> Value {
        if self.all.is_empty() {
            return Value::Null;
        }
        let mut made_for: HashMap<i64, Vec<usize>> = HashMap::new();
        for (place, request) in self.all.iter().enumerate() {
            if let Some(parent) = request.parent {
                made_for.entry(parent).or_default().push(place);
            }
        }
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let mut rows: Vec<(usize, Option<usize>)> = Vec::new();
        let mut next: Vec<(usize, Option<usize>)> = Vec::new();
        for root in self.of_line.iter().flatten() {
            next.push((*root, None));
            while let Some((place, parent)) = next.pop() {
                if rows.len() >= MOST || numbers.contains_key(&place) {
                    continue;
                }
                let number = rows.len();
                numbers.insert(place, number);
                rows.push((place, parent));
                let children = made_for.get(&self.all[place].unit).into_iter().flatten();
                next.extend(children.map(|child| (*child, Some(number))));
            }
        }
        let row = |(place, parent): &(usize, Option<usize>)| {
            let request = &self.all[*place];
            let most = request.parts.iter().max_by_key(|(_, ns)| *ns);
            json!([
                parent,
                request.begin_ns.saturating_sub(origin_ns).min(EXACT as u64),
                request.total_ns,
                names.get(&request.unit),
                most.map(|(cause, _)| self.causes[cause]),
                most.map(|(_, ns)| ns),
            ])
        };
        let number = |request: &Option<usize>| numbers.get(&(*request)?).copied();
        json!({
            "of_line": self.of_line.iter().map(number).collect::<Vec<_>>(),
            "rows": rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}
