//! Routing: which line leads to which IMP. Each IMP sends its neighbours its distances to all others every 640 ms (BBN 2499, 2.1.2), and
//! chooses routes by the rule of January 1973 or that of September 1973 ([`Rule`]).

use super::options::{ImpOptions, Rule};
use alloc::rc::Rc;
use alloc::vec::Vec;

/// The delay of an unreachable IMP.
const FAR: u16 = 2047;
/// The delay of a line without its queue.
const LINE: u16 = 4;
/// A delay that grows by more than this is bad news.
const WORSE: u16 = 8;
/// Ticks for which bad news is held: meanwhile no other line is chosen (September's rule).
const HELD: u8 = 3;

/// The distances that an IMP reports: hops and delay to each other IMP.
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
    /// The line with the fewest hops; `line` is the one with the least delay.
    hop_line: Option<u16>,
    /// Ticks for which bad news of either line is still held.
    held: u8,
}

/// The route to an unreachable IMP.
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
    /// By line: the last vector from the neighbour.
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

    /// The line towards an IMP; `None` if it is unreachable.
    #[must_use]
    pub fn line(&self, to: u16) -> Option<usize> {
        let route = self
            .routes
            .get(usize::from(to))
            .filter(|route| route.hops < self.most_hops)?;
        route.line.map(usize::from)
    }

    /// How many hops away an IMP is; `None` if it is unreachable.
    #[must_use]
    pub fn hops(&self, to: u16) -> Option<u16> {
        self.routes
            .get(usize::from(to))
            .map(|route| route.hops)
            .filter(|hops| *hops < self.most_hops)
    }

    /// Handles a neighbour's vector; `queue` is the load of the line to it, in packets.
    pub(super) fn note_vector(&mut self, line: usize, vector: Rc<Vector>, queue: usize) {
        if self.rule == Rule::September {
            self.note_in_september(line, &vector, queue);
        }
        if let Some(last) = self.last_vectors.get_mut(line) {
            *last = Some(vector);
        }
    }

    /// Keeps a vector that came over a line that is down. It is used when the line comes up, so that routes over it are known at once.
    pub(super) fn note_unused_line(&mut self, line: usize, vector: Rc<Vector>) {
        if let Some(last) = self.last_vectors.get_mut(line) {
            *last = Some(vector);
        }
    }

    /// A line has come up.
    pub(super) fn mark_line_up(&mut self, line: usize) {
        if let Some(vector) = self.last_vectors.get_mut(line).and_then(Option::take) {
            self.note_vector(line, vector, 0);
        }
    }

    /// Updates the routes by September's rule.
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

    /// At a tick: the vector to send to the neighbours. `queues`: the load of each line, `None` where it is down.
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

    /// Chooses the routes by January's rule: the least delay among the neighbours' last vectors.
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

    /// Among the lines with as few hops to an IMP as its route, the one with the least load (`queues`): the explicit choice among several
    /// routes that BBN 2499 announces (2.2.1.5).
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

    /// A line has gone down: routes over it are removed.
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
