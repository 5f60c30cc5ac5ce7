//! Which line leads where: each IMP tells its neighbours how far it is from all others, every 640 ms (BBN 2499, 2.1.2), by the rule of
//! January 1973 or that of September. It knows nothing of packets.

use super::options::{ImpOptions, Rule};
use alloc::rc::Rc;
use alloc::vec::Vec;

/// Delay of what cannot be reached.
const FAR: u16 = 2047;
/// What a line costs beside its queue.
const LINE: u16 = 4;
/// A delay that grows by more is worse news.
const WORSE: u16 = 8;
/// Ticks that bad news are held.
const HELD: u8 = 3;

/// What an IMP says of all others: hops and delay of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// By IMP: hops, delay.
    pub entries: Vec<(u16, u16)>,
}

/// The route to another IMP.
#[derive(Clone, Copy, Debug)]
struct ImpRoute {
    line: Option<u16>,
    hops: u16,
    delay: u16,
    /// The line of fewest hops, and how long bad news of it or of the other is held.
    hop_line: Option<u16>,
    held: u8,
}

const NO_ROUTE: ImpRoute = ImpRoute {
    line: None,
    hops: u16::MAX,
    delay: FAR,
    hop_line: None,
    held: 0,
};

/// The routes to all IMPs.
#[derive(Debug)]
pub struct Routing {
    rule: Rule,
    own: u16,
    most_hops: u16,
    routes: Vec<ImpRoute>,
    /// What each neighbour said last.
    last_vectors: Vec<Option<Rc<Vector>>>,
}

impl Routing {
    pub(super) fn new(options: &ImpOptions, own: u16, imps: usize, lines: usize) -> Self {
        let mut routes = alloc::vec![NO_ROUTE; imps];
        if let Some(route) = routes.get_mut(usize::from(own)) {
            *route = ImpRoute {
                hops: 0,
                delay: 0,
                ..NO_ROUTE
            };
        }
        let last_vectors = alloc::vec![None; lines];
        Self {
            rule: options.rule,
            own,
            most_hops: options.most_hops,
            routes,
            last_vectors,
        }
    }

    /// The line towards an IMP.
    #[must_use]
    pub fn line(&self, to: u16) -> Option<usize> {
        let route = self
            .routes
            .get(usize::from(to))
            .filter(|route| route.hops < self.most_hops)?;
        route.line.map(usize::from)
    }

    /// How many hops away an IMP is; none where it cannot be reached.
    #[must_use]
    pub fn hops(&self, to: u16) -> Option<u16> {
        self.routes
            .get(usize::from(to))
            .map(|route| route.hops)
            .filter(|hops| *hops < self.most_hops)
    }

    /// A neighbour says how far it is from all; `queue`: what the line to it holds.
    pub(super) fn note_vector(&mut self, line: usize, vector: Rc<Vector>, queue: usize) {
        if self.rule == Rule::September {
            self.note_in_september(line, &vector, queue);
        }
        if let Some(last) = self.last_vectors.get_mut(line) {
            *last = Some(vector);
        }
    }

    /// The same over a line that is not used: it counts from when that is, so that what comes over it then can be answered.
    pub(super) fn note_unused_line(&mut self, line: usize, vector: Rc<Vector>) {
        if let Some(last) = self.last_vectors.get_mut(line) {
            *last = Some(vector);
        }
    }

    /// A line is used again.
    pub(super) fn mark_line_up(&mut self, line: usize) {
        if let Some(vector) = self.last_vectors.get_mut(line).and_then(Option::take) {
            self.note_vector(line, vector, 0);
        }
    }

    fn note_in_september(&mut self, line: usize, vector: &Vector, queue: usize) {
        let (own, local) = (usize::from(self.own), LINE + queue as u16);
        let line = line as u16;
        let all = self.routes.iter_mut().zip(&vector.entries).enumerate();
        for (_, (route, (hops, delay))) in all.filter(|(at, _)| *at != own) {
            let (hops, delay) = (hops.saturating_add(1), delay.saturating_add(local).min(FAR));
            let is_worse = (route.hop_line == Some(line) && hops > route.hops)
                || (route.line == Some(line) && delay > route.delay.saturating_add(WORSE));
            if is_worse && route.held == 0 {
                route.held = HELD;
            }
            if route.hop_line == Some(line) {
                route.hops = hops;
            } else if route.held == 0 && hops < route.hops {
                (route.hop_line, route.hops) = (Some(line), hops);
            }
            if route.line == Some(line) {
                route.delay = delay;
            } else if route.held == 0 && delay < route.delay {
                (route.line, route.delay) = (Some(line), delay);
            }
        }
    }

    /// A tick: what this one says now. `queues`: what each line holds, none where it is down.
    pub(super) fn tick(&mut self, queues: &[Option<usize>]) -> Rc<Vector> {
        match self.rule {
            Rule::January => self.choose(queues),
            Rule::September => self
                .routes
                .iter_mut()
                .for_each(|route| route.held = route.held.saturating_sub(1)),
        }
        Rc::new(Vector {
            entries: self
                .routes
                .iter()
                .map(|route| (route.hops, route.delay))
                .collect(),
        })
    }

    /// The least of what neighbours said last.
    fn choose(&mut self, queues: &[Option<usize>]) {
        let own = usize::from(self.own);
        let mut routes = alloc::vec![NO_ROUTE; self.routes.len()];
        for (line, (last, queue)) in self.last_vectors.iter().zip(queues).enumerate() {
            let (Some(vector), Some(queue)) = (last, queue) else {
                continue;
            };
            let (line, local) = (line as u16, LINE + *queue as u16);
            for (route, (hops, delay)) in routes.iter_mut().zip(&vector.entries) {
                let (hops, delay) = (hops.saturating_add(1), delay.saturating_add(local).min(FAR));
                if delay < route.delay {
                    (route.line, route.delay) = (Some(line), delay);
                }
                route.hops = route.hops.min(hops);
            }
        }
        routes[own] = ImpRoute {
            hops: 0,
            delay: 0,
            ..NO_ROUTE
        };
        self.routes = routes;
    }

    /// Another line of January's rule that leads as near, for packets that could take either: the explicit choice among several that
    /// BBN 2499 announces (2.2.1.5).
    #[must_use]
    pub fn other_line(&self, to: u16, queues: impl Fn(usize) -> Option<usize>) -> Option<usize> {
        let route = self.routes.get(usize::from(to))?;
        let mut best = None::<(usize, usize)>;
        for (line, last) in self.last_vectors.iter().enumerate() {
            let (Some(vector), Some(queue)) = (last, queues(line)) else {
                continue;
            };
            let hops = vector
                .entries
                .get(usize::from(to))
                .map_or(u16::MAX, |(hops, _)| hops.saturating_add(1));
            if hops == route.hops && best.is_none_or(|(_, least)| queue < least) {
                best = Some((line, queue));
            }
        }
        best.map(|(line, _)| line)
    }

    /// A line went down: nothing is reached over it.
    pub(super) fn mark_line_down(&mut self, line: usize) {
        if let Some(last) = self.last_vectors.get_mut(line) {
            *last = None;
        }
        for route in &mut self.routes {
            if route.line == Some(line as u16) {
                (route.line, route.delay) = (None, FAR);
            }
            if route.hop_line == Some(line as u16) {
                (route.hop_line, route.hops) = (None, u16::MAX);
            }
        }
    }
}
