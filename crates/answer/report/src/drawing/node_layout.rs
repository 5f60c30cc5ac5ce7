//! Places the nodes of a network. The core is placed by stress minimisation (Kamada and Kawai 1989; Gansner, Koren and North 2004),
//! starting from classical scaling; the leaves (nodes with one neighbour) of each core node, their *hub*, are placed around it, in
//! the gaps between its links to the core.
//!
//! It uses no random numbers and no unordered iteration, so a network always has the same layout.

use std::f64::consts::{PI, TAU};

/// A point or a vector, in pixels; y grows downwards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DrawingPoint {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

impl DrawingPoint {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            x: self.x + other.x,
            y: self.y + other.y,
        }
    }

    pub(crate) const fn minus(self, other: Self) -> Self {
        Self {
            x: self.x - other.x,
            y: self.y - other.y,
        }
    }

    pub(crate) const fn times(self, factor: f64) -> Self {
        Self {
            x: self.x * factor,
            y: self.y * factor,
        }
    }

    pub(crate) fn length(self) -> f64 {
        self.x.hypot(self.y)
    }
}

/// The graph to lay out.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayoutGraph {
    /// Half the width and height of each node's box.
    pub(crate) half: Vec<DrawingPoint>,
    /// Pairs of joined nodes, once each, with the least length of the line between their boxes.
    pub(crate) lines: Vec<(usize, usize, f64)>,
}

impl LayoutGraph {
    fn neighbours(&self) -> Vec<Vec<(usize, f64)>> {
        let mut neighbours = vec![Vec::new(); self.half.len()];
        for &(a, b, length) in &self.lines {
            neighbours[a].push((b, length));
            neighbours[b].push((a, length));
        }
        neighbours
    }

    /// Half the diagonal of a node's box.
    fn radius(&self, node: usize) -> f64 {
        self.half[node].length()
    }

    /// The distance between the middles of two boxes with `between` pixels between them.
    fn span(&self, a: usize, b: usize, between: f64) -> f64 {
        between + self.radius(a) + self.radius(b)
    }
}

/// The widest angle between two leaves, so that they stay close together.
const WIDEST: f64 = PI / 4.0;

/// The start positions of the core.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LayoutStart {
    /// Classical scaling.
    Scaled,
    /// A circle: better for densely joined networks, as no line crosses a node then.
    Circle,
}

/// Half the height of the text at a line, pixels.
const TEXT: f64 = 16.0;

/// The place of each node. A `stretch` above 1 pulls the core apart; the caller increases it until nothing overlaps.
pub(crate) fn place_nodes(
    graph: &LayoutGraph,
    start: LayoutStart,
    stretch: f64,
) -> Vec<DrawingPoint> {
    let neighbours = graph.neighbours();
    let hub_of = find_hubs(&neighbours);
    let core: Vec<usize> = (0..neighbours.len())
        .filter(|node| hub_of[*node].is_none())
        .collect();
    let mut leaves = vec![Vec::new(); neighbours.len()];
    for (leaf, hub) in hub_of.iter().enumerate() {
        if let Some(hub) = hub {
            leaves[*hub].push(leaf);
        }
    }
    let fans: Vec<f64> = (0..neighbours.len())
        .map(|hub| fan_radius(graph, &neighbours, hub, &leaves[hub]))
        .collect();
    let distances = core_distances(graph, &neighbours, &core, &leaves, &fans, stretch);
    let mut points = vec![DrawingPoint::default(); neighbours.len()];
    let begun = match start {
        LayoutStart::Scaled => place_scaled(&distances),
        LayoutStart::Circle => place_on_circle(&distances),
    };
    let rooms: Vec<f64> = core
        .iter()
        .map(|node| room_around(*node, &leaves, &fans))
        .collect();
    for (node, point) in core.iter().zip(turn_level(move_apart(
        minimise_stress(&distances, begun),
        &rooms,
    ))) {
        points[*node] = point;
    }
    for &hub in &core {
        let towards = neighbours[hub]
            .iter()
            .filter(|(other, _)| hub_of[*other].is_none());
        let angles = towards
            .map(|(other, _)| points[*other].minus(points[hub]))
            .map(|v| v.y.atan2(v.x))
            .collect();
        for (leaf, angle) in leaves[hub]
            .iter()
            .zip(angles_between(angles, leaves[hub].len()))
        {
            let v = DrawingPoint {
                x: angle.cos(),
                y: angle.sin(),
            };
            points[*leaf] = points[hub].plus(v.times(fans[hub]));
        }
    }
    points
}

/// For each node with one neighbour: that neighbour. Of two nodes that have only each other, the second is the leaf.
fn find_hubs(neighbours: &[Vec<(usize, f64)>]) -> Vec<Option<usize>> {
    let hub = |(node, near): (usize, &Vec<(usize, f64)>)| match near[..] {
        [(hub, _)] if neighbours[hub].len() > 1 || hub < node => Some(hub),
        _ => None,
    };
    neighbours.iter().enumerate().map(hub).collect()
}

/// The distance of leaves from their hub: room for the text at their lines, and for their boxes next to each other.
fn fan_radius(
    graph: &LayoutGraph,
    neighbours: &[Vec<(usize, f64)>],
    hub: usize,
    leaves: &[usize],
) -> f64 {
    let lengths = || {
        leaves.iter().filter_map(|leaf| {
            neighbours[*leaf]
                .first()
                .map(|(_, length)| (*leaf, *length))
        })
    };
    let needed = lengths().map(|(leaf, length)| graph.span(hub, leaf, length));
    let widest = leaves
        .iter()
        .map(|leaf| graph.radius(*leaf))
        .fold(0.0, f64::max);
    let half = (TAU / number(neighbours[hub].len().max(1)) / 2.0)
        .min(PI / 2.0)
        .sin();
    // Neighbouring boxes must not overlap, nor must the texts at the inner ends of their lines.
    let texts = TEXT / half + lengths().map(|(_, length)| length).fold(0.0, f64::max) + widest;
    let crowded = ((2.0 * widest + 6.0) / (2.0 * half)).max(texts);
    needed.fold(crowded, f64::max)
}

#[expect(clippy::cast_precision_loss, reason = "few enough to be drawn")]
const fn number(n: usize) -> f64 {
    n as f64
}

/// Angles for leaves in the gaps between the taken angles: the widest gaps are used first, and leaves are centred in each gap.
fn angles_between(mut taken: Vec<f64>, leaves: usize) -> Vec<f64> {
    let share = |gap: f64, n: usize| gap / number(n);
    if taken.is_empty() {
        return (0..leaves)
            .map(|leaf| PI + share(TAU, leaves) * number(leaf))
            .collect();
    }
    taken.sort_by(f64::total_cmp);
    let next = taken.iter().skip(1).copied().chain([taken[0] + TAU]);
    let gaps: Vec<(f64, f64)> = taken
        .iter()
        .zip(next)
        .map(|(from, to)| (*from, to - from))
        .collect();
    let mut counts = vec![0; gaps.len()];
    for _ in 0..leaves {
        // Adds a leaf to the gap where leaves are then widest apart; of gaps that are equal up to rounding, the first.
        let room = |at: usize| share(gaps[at].1, counts[at] + 2);
        let best = (1..gaps.len()).fold(0, |best, at| {
            if room(at) > room(best) + 1e-6 {
                at
            } else {
                best
            }
        });
        counts[best] += 1;
    }
    let fans = gaps.iter().zip(counts).flat_map(|((from, gap), count)| {
        let step = share(*gap, count + 1).min(WIDEST);
        let first = from + (gap - step * number(count.max(1) - 1)) / 2.0;
        // On the left side the order is reversed, so that the first leaf is the upper one there too.
        let left = (from + gap / 2.0).cos() < -1e-6;
        (0..count)
            .map(move |leaf| first + step * number(if left { count - 1 - leaf } else { leaf }))
    });
    fans.collect()
}

/// The distance that other core nodes keep from a hub; it grows with the number of its leaves.
fn room_around(node: usize, leaves: &[Vec<usize>], fans: &[f64]) -> f64 {
    match leaves[node].len() {
        0 => 0.0,
        1..=3 => 0.45 * fans[node],
        4..=6 => 0.8 * fans[node],
        _ => fans[node] + 40.0,
    }
}

/// The distances between all core nodes, along the lines (Floyd and Warshall).
fn core_distances(
    graph: &LayoutGraph,
    neighbours: &[Vec<(usize, f64)>],
    core: &[usize],
    leaves: &[Vec<usize>],
    fans: &[f64],
    stretch: f64,
) -> Vec<Vec<f64>> {
    let n = core.len();
    let mut place = vec![None; neighbours.len()];
    core.iter()
        .enumerate()
        .for_each(|(at, node)| place[*node] = Some(at));
    let room = |node: usize| room_around(node, leaves, fans);
    let mut distances = vec![vec![f64::INFINITY; n]; n];
    for (at, node) in core.iter().enumerate() {
        distances[at][at] = 0.0;
        for (other, length) in &neighbours[*node] {
            if let Some(to) = place[*other] {
                let wanted = graph
                    .span(*node, *other, *length)
                    .max(room(*node) + room(*other));
                distances[at][to] = wanted * stretch;
            }
        }
    }
    for via in 0..n {
        let (row, step) = (
            distances[via].clone(),
            (0..n).map(|from| distances[from][via]).collect::<Vec<_>>(),
        );
        for (from, first) in step.iter().enumerate() {
            for (to, second) in row.iter().enumerate() {
                distances[from][to] = distances[from][to].min(first + second);
            }
        }
    }
    // Nodes that are not connected are placed apart from each other.
    let farthest = distances
        .iter()
        .flatten()
        .copied()
        .filter(|d| d.is_finite())
        .fold(300.0, f64::max);
    distances
        .iter_mut()
        .flatten()
        .filter(|d| d.is_infinite())
        .for_each(|d| *d = farthest + 200.0);
    distances
}

/// Classical scaling: the two directions in which the distances spread most, by power iteration.
fn place_scaled(distances: &[Vec<f64>]) -> Vec<DrawingPoint> {
    let n = distances.len();
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / number(n);
    let rows: Vec<f64> = distances
        .iter()
        .map(|row| mean(&mut row.iter().map(|d| d * d)))
        .collect();
    let all = mean(&mut rows.iter().copied());
    let centred = |a: usize, b: usize| -0.5 * (distances[a][b].powi(2) - rows[a] - rows[b] + all);
    let mut matrix: Vec<Vec<f64>> = (0..n)
        .map(|a| (0..n).map(|b| centred(a, b)).collect())
        .collect();
    let mut axes = [
        principal_axis(&mut matrix, 1.0),
        principal_axis(&mut matrix, 2.0),
    ];
    // Small offsets, so that points never lie exactly on one line: stress minimisation could not leave it.
    for (at, y) in axes[1].iter_mut().enumerate() {
        let bend = number((at * 7919 + 13) % 101) / 101.0 - 0.5;
        *y += bend;
    }
    axes[0]
        .iter()
        .zip(&axes[1])
        .map(|(x, y)| DrawingPoint { x: *x, y: *y })
        .collect()
}

/// On a circle in the order of declaration, with the largest distance as its diameter.
fn place_on_circle(distances: &[Vec<f64>]) -> Vec<DrawingPoint> {
    let radius = distances.iter().flatten().copied().fold(0.0, f64::max) / 2.0;
    let angle = |at: usize| TAU * number(at) / number(distances.len());
    (0..distances.len())
        .map(|at| {
            DrawingPoint {
                x: -angle(at).cos(),
                y: -angle(at).sin(),
            }
            .times(radius)
        })
        .collect()
}

/// The eigenvector of the greatest eigenvalue times the eigenvalue's root, by power iteration; its part is removed from the matrix.
fn principal_axis(matrix: &mut [Vec<f64>], phase: f64) -> Vec<f64> {
    let n = matrix.len();
    let mut vector: Vec<f64> = (0..n)
        .map(|at| (phase * (number(at) + 1.0)).sin())
        .collect();
    let mut value = 0.0;
    for _ in 0..120 {
        let length = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
        if length < 1e-9 {
            return vec![0.0; n];
        }
        vector.iter_mut().for_each(|v| *v /= length);
        let next: Vec<f64> = matrix
            .iter()
            .map(|row| row.iter().zip(&vector).map(|(m, v)| m * v).sum())
            .collect();
        value = next.iter().zip(&vector).map(|(a, b)| a * b).sum::<f64>();
        vector = next;
    }
    let length = vector.iter().map(|v| v * v).sum::<f64>().sqrt().max(1e-12);
    vector.iter_mut().for_each(|v| *v /= length);
    for (row, a) in matrix.iter_mut().zip(&vector) {
        row.iter_mut()
            .zip(&vector)
            .for_each(|(m, b)| *m -= value * a * b);
    }
    let root = value.max(0.0).sqrt();
    vector.iter().map(|v| v * root).collect()
}

/// Moves the points iteratively until their distances are close to those wanted; short distances have more weight.
fn minimise_stress(distances: &[Vec<f64>], mut points: Vec<DrawingPoint>) -> Vec<DrawingPoint> {
    for _ in 0..300 {
        let mut farthest = 0.0_f64;
        for at in 0..points.len() {
            let (mut sum, mut weights) = (DrawingPoint::default(), 0.0);
            for (other, wanted) in distances[at]
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
            {
                let away = points[at].minus(points[other]);
                let pulled = points[other].plus(away.times(wanted / away.length().max(1e-3)));
                let weight = wanted.powi(-2);
                sum = sum.plus(pulled.times(weight));
                weights += weight;
            }
            if weights > 0.0 {
                let next = sum.times(1.0 / weights);
                farthest = farthest.max(next.minus(points[at]).length());
                points[at] = next;
            }
        }
        if farthest < 0.01 {
            break;
        }
    }
    points
}

/// Pushes apart hubs that stand among each other's leaves.
fn move_apart(mut points: Vec<DrawingPoint>, rooms: &[f64]) -> Vec<DrawingPoint> {
    for _ in 0..400 {
        let mut moved = false;
        for at in 1..points.len() {
            for other in 0..at {
                let v = points[at].minus(points[other]);
                let lacking = rooms[at] + rooms[other] - v.length();
                if lacking > 0.5 {
                    let push = v.times(lacking / 2.0 / v.length().max(1e-3));
                    (points[at], points[other]) =
                        (points[at].plus(push), points[other].minus(push));
                    moved = true;
                }
            }
        }
        if !moved {
            break;
        }
    }
    points
}

/// Rotates the points so that the layout is widest horizontally, with the first node on the left.
fn turn_level(points: Vec<DrawingPoint>) -> Vec<DrawingPoint> {
    if points.is_empty() {
        return points;
    }
    let middle = points
        .iter()
        .fold(DrawingPoint::default(), |sum, p| sum.plus(*p))
        .times(1.0 / number(points.len().max(1)));
    let points: Vec<DrawingPoint> = points.iter().map(|p| p.minus(middle)).collect();
    let sum = |f: &dyn Fn(&DrawingPoint) -> f64| points.iter().map(f).sum::<f64>();
    let (xx, yy, xy) = (
        sum(&|p| p.x * p.x),
        sum(&|p| p.y * p.y),
        sum(&|p| p.x * p.y),
    );
    let round = (xx - yy).hypot(2.0 * xy) < 0.05 * (xx + yy);
    // If the layout is as wide as high (such as a ring), it is rotated by its first node instead.
    let turn = if round {
        points[0].y.atan2(points[0].x)
    } else {
        (2.0 * xy).atan2(xx - yy) / 2.0
    };
    let (sin, cos) = (-turn).sin_cos();
    let turned = points.iter().map(|p| DrawingPoint {
        x: p.x * cos - p.y * sin,
        y: p.x * sin + p.y * cos,
    });
    let turned: Vec<DrawingPoint> = turned.collect();
    let flip = if turned[0].x > 1e-6 { -1.0 } else { 1.0 };
    turned.iter().map(|p| p.times(flip)).collect()
}
