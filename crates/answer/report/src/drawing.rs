//! Draws a network as self-contained SVG (no scripts, no external fonts), for light and dark screens.
//!
//! Hosts are boxes with their address, switches are dark boxes. A link is a line with its rate above and its delay below, thicker for
//! higher rates. Other properties of a node or link appear as a tooltip.

mod node_layout;
mod shape;

use crate::markup_escape::escaped;
use crate::topology::{
    address, describe_peculiarities, describe_switch, find_limited_switches, format_link_ends,
    heading, path_facts, queue,
};
use node_layout::{DrawingPoint, LayoutGraph, LayoutStart, place_nodes};
use shape::RotatedRectangle;
use stackline_core::network::{Network, NetworkLink};
use stackline_core::units;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A network with more nodes than this is not drawn: it would be unreadable.
pub const MOST_NODES: usize = 500;

/// Width of a character of a name, pixels.
const NAME: f64 = 8.0;
/// Width of a character of the small text, pixels.
const SMALL: f64 = 6.4;
/// Distance between two lines that join the same nodes, pixels: room for their text.
const BESIDE: f64 = 36.0;
const MARGIN: f64 = 24.0;
const HEADING: f64 = 28.0;

const STYLE: &str = "\
svg{--paper:#fff;--ink:#1f2933;--soft:#52606d;--line:#8795a1;--host:#e6f0fa;--edge:#3e7cb1;--switch:#334e68;--on:#fff}\
@media(prefers-color-scheme:dark){svg{--paper:#14181d;--ink:#e4e7eb;--soft:#9aa5b1;--line:#69788a;--host:#1d3349;\
--edge:#5b9bd5;--switch:#9fb3c8;--on:#14181d}}\
.paper{fill:var(--paper)}text{font:11px system-ui,sans-serif;fill:var(--ink);text-anchor:middle}\
.name{font-size:13px;font-weight:600}.head{font-size:14px;font-weight:600;text-anchor:start}.soft{fill:var(--soft)}\
.host rect{fill:var(--host);stroke:var(--edge)}.switch rect{fill:var(--switch)}.switch text{fill:var(--on)}\
.line{stroke:var(--line);fill:none}.busy1{stroke:#4c9a6a}.busy2{stroke:#c9a227}.busy3{stroke:#e07b39}\
.busy4{stroke:#c92a2a}.down{stroke-dasharray:6 5}.arrow{fill:var(--line)}\
.link text{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}";

/// How busy a link was in each direction, as a share of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkUse {
    /// From its first end to its second, 0 to 1.
    pub there: f64,
    /// From its second end to its first, 0 to 1.
    pub back: f64,
    /// Whether it was down.
    pub is_down: bool,
}

/// The network as SVG; `None` when it has more nodes than [`MOST_NODES`].
#[must_use]
pub fn drawing(network: &Network) -> Option<String> {
    drawing_in_use(network, &[])
}

/// The network as SVG, with the use of its links (in their order, if known): a line is coloured from green to red by its busier
/// direction, and shows that share in place of its delay.
#[must_use]
pub fn drawing_in_use(network: &Network, uses: &[Option<LinkUse>]) -> Option<String> {
    if network.hosts.len() + network.switches.len() > MOST_NODES {
        return None;
    }
    let mut scene = TopologyScene::from_network(network);
    for line in &mut scene.lines {
        if let (Some(Some(used)), Some(link)) =
            (uses.get(line.number), network.links.get(line.number))
        {
            line.is_used(link, *used);
        }
    }
    Some(scene.svg(network))
}

/// The shares from which on a line gets the next colour.
const BUSY: [f64; 4] = [0.1, 0.3, 0.6, 0.9];

/// A node as it is drawn.
struct DrawnNode {
    class: &'static str,
    name: String,
    below: String,
    title: String,
    half: DrawingPoint,
}

impl DrawnNode {
    fn new(class: &'static str, name: &str, below: String, title: String) -> Self {
        let wide = (text_width(name, NAME)).max(text_width(&below, SMALL)) + 16.0;
        let high = if below.is_empty() { 26.0 } else { 36.0 };
        Self {
            class,
            name: name.to_owned(),
            below,
            title,
            half: DrawingPoint {
                x: wide / 2.0,
                y: high / 2.0,
            },
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "few characters")]
fn text_width(text: &str, character: f64) -> f64 {
    text.chars().count() as f64 * character
}

/// A link as it is drawn.
struct DrawnLink {
    /// Its index in the network's links.
    number: usize,
    class: String,
    ends: (usize, usize),
    above: String,
    below: String,
    title: String,
    one_way: bool,
    thickness: f64,
    /// How far it bends away from the straight line if several join the same nodes, pixels.
    beside: f64,
    /// The place of its text.
    label: RotatedRectangle,
    from: DrawingPoint,
    /// The control point of its quadratic curve.
    bend: DrawingPoint,
    to: DrawingPoint,
}

/// All nodes and links with their places.
struct TopologyScene {
    boxes: Vec<DrawnNode>,
    lines: Vec<DrawnLink>,
    shapes: Vec<RotatedRectangle>,
}

impl TopologyScene {
    fn from_network(network: &Network) -> Self {
        let boxes = boxes(network);
        let lines = lines(network);
        let graph = graph(&boxes, &lines);
        let mut scene = Self {
            boxes,
            lines,
            shapes: Vec::new(),
        };
        let mut best = None;
        for stretch in [1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.4, 3.0] {
            for start in [LayoutStart::Scaled, LayoutStart::Circle] {
                let points = place_nodes(&graph, start, stretch);
                let overlaps = scene.stand(&points);
                if overlaps == 0 {
                    return scene;
                }
                if best.as_ref().is_none_or(|(least, _)| overlaps < *least) {
                    best = Some((overlaps, points));
                }
            }
        }
        if let Some((_, points)) = best {
            scene.stand(&points);
        }
        scene
    }

    /// Places links and texts for nodes at these points; returns the number of overlaps.
    fn stand(&mut self, points: &[DrawingPoint]) -> usize {
        let shape = |(one, middle): (&DrawnNode, &DrawingPoint)| RotatedRectangle {
            middle: *middle,
            half: one.half,
            angle: 0.0,
        };
        self.shapes = self.boxes.iter().zip(points).map(shape).collect();
        for line in &mut self.lines {
            line.stretch(&self.shapes);
        }
        let drawn: Vec<RotatedRectangle> = self.lines.iter().map(DrawnLink::shape).collect();
        let mut labels: Vec<RotatedRectangle> = Vec::new();
        let mut overlaps = 0;
        for at in 0..self.lines.len() {
            let others = drawn
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
                .map(|(_, line)| line);
            let others: Vec<&RotatedRectangle> = others.collect();
            let (label, bad) = self.lines[at].write(&self.shapes, &labels, &others);
            overlaps += bad;
            labels.push(label);
        }
        overlaps + crowded(&self.shapes) + self.crossed(&drawn)
    }

    /// Counts how often a line crosses the box of a node that it does not join.
    fn crossed(&self, drawn: &[RotatedRectangle]) -> usize {
        let through = |(line, drawn): (&DrawnLink, &RotatedRectangle)| {
            let other = |at: usize| at != line.ends.0 && at != line.ends.1;
            self.shapes
                .iter()
                .enumerate()
                .filter(|(at, shape)| other(*at) && shape.overlaps(drawn))
                .count()
        };
        self.lines.iter().zip(drawn).map(through).sum()
    }

    fn svg(&self, network: &Network) -> String {
        let (least, most) = self.bounds();
        let heading = heading(network);
        let width =
            (most.x - least.x + 2.0 * MARGIN).max(text_width(&heading, NAME) + 2.0 * MARGIN);
        let height = most.y - least.y + 2.0 * MARGIN + HEADING;
        let (left, top) = (least.x - MARGIN, least.y - MARGIN - HEADING);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{left:.1} {top:.1} {width:.1} {height:.1}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
             <rect class=\"paper\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>\n\
             <text class=\"head\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
            escaped(&heading),
            left + MARGIN,
            top + MARGIN + 4.0,
            escaped(&heading)
        );
        self.lines.iter().for_each(|line| line.svg(&mut out));
        self.boxes
            .iter()
            .zip(&self.shapes)
            .for_each(|(one, shape)| one.svg(shape.middle, &mut out));
        out.push_str("</svg>\n");
        out
    }

    fn bounds(&self) -> (DrawingPoint, DrawingPoint) {
        let labels = self.lines.iter().map(|line| {
            let reach = line.label.half.length();
            RotatedRectangle {
                half: DrawingPoint { x: reach, y: reach },
                ..line.label
            }
        });
        let mut corners = self.shapes.iter().copied().chain(labels);
        let first = corners.next().map_or(
            (DrawingPoint::default(), DrawingPoint::default()),
            |shape| corner(&shape),
        );
        corners.fold(first, |(least, most), shape| {
            let (low, high) = corner(&shape);
            let least = DrawingPoint {
                x: least.x.min(low.x),
                y: least.y.min(low.y),
            };
            (
                least,
                DrawingPoint {
                    x: most.x.max(high.x),
                    y: most.y.max(high.y),
                },
            )
        })
    }
}

const fn corner(shape: &RotatedRectangle) -> (DrawingPoint, DrawingPoint) {
    (
        shape.middle.minus(shape.half),
        shape.middle.plus(shape.half),
    )
}

/// Counts the pairs of boxes that overlap or nearly touch.
fn crowded(shapes: &[RotatedRectangle]) -> usize {
    let wide = |shape: &RotatedRectangle| RotatedRectangle {
        half: shape.half.plus(DrawingPoint { x: 3.0, y: 3.0 }),
        ..*shape
    };
    let near = |(at, shape): (usize, &RotatedRectangle)| {
        shapes[..at]
            .iter()
            .filter(|other| wide(shape).overlaps(&wide(other)))
            .count()
    };
    shapes.iter().enumerate().map(near).sum()
}

fn boxes(network: &Network) -> Vec<DrawnNode> {
    let hosts = network.hosts.iter().enumerate().map(|(at, host)| {
        let address = address(at).unwrap_or_default();
        DrawnNode::new(
            "host",
            &host.name,
            address.clone(),
            format!("host {} {address}", host.name),
        )
    });
    let switches = network.switches.iter().map(|switch| {
        let kind = if switch.imp.is_some() {
            "IMP"
        } else {
            "switch"
        };
        DrawnNode::new(
            "switch",
            &switch.name,
            String::new(),
            format!("{kind} {}: {}", switch.name, describe_switch(switch)),
        )
    });
    hosts.chain(switches).collect()
}

fn lines(network: &Network) -> Vec<DrawnLink> {
    let names = network
        .hosts
        .iter()
        .map(|host| &host.name)
        .chain(network.switches.iter().map(|switch| &switch.name));
    let nodes: BTreeMap<&String, usize> = names.zip(0..).collect();
    let ends = |link: &NetworkLink| {
        nodes
            .get(&link.ends.0)
            .copied()
            .zip(nodes.get(&link.ends.1).copied())
    };
    // A link from a node to itself or to an unknown node cannot be drawn; checked networks have none.
    let numbered = network.links.iter().enumerate();
    let drawn = numbered.filter_map(|link| {
        ends(link.1)
            .filter(|(a, b)| a != b)
            .map(|ends| (link, ends))
    });
    let drawn: Vec<_> = drawn.collect();
    let mut joining: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
    drawn
        .iter()
        .for_each(|(_, (a, b))| joining.entry((*a.min(b), *a.max(b))).or_default().1 += 1);
    let rates: Vec<f64> = network
        .links
        .iter()
        .filter_map(|link| path_facts::mean_rate(&link.rate))
        .collect();
    let line = |((number, link), ends): &((usize, &NetworkLink), (usize, usize))| {
        let (done, all) = joining
            .entry((ends.0.min(ends.1), ends.0.max(ends.1)))
            .or_default();
        #[expect(clippy::cast_precision_loss, reason = "few links")]
        let beside = (*done as f64 - (*all as f64 - 1.0) / 2.0) * BESIDE;
        *done += 1;
        let beside = if ends.0 < ends.1 { beside } else { -beside };
        DrawnLink {
            number: *number,
            ..DrawnLink::new(link, *ends, network, thickness(link, &rates), beside)
        }
    };
    drawn.iter().map(line).collect()
}

/// The thickness of a line, 1.5 to 4.5 pixels, by the logarithm of its rate among all rates; 2 if all rates are equal, 4.5 if the
/// rate is unlimited.
fn thickness(link: &NetworkLink, rates: &[f64]) -> f64 {
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let Some(rate) = path_facts::mean_rate(&link.rate) else {
        return 4.5;
    };
    if most > least && least > 0.0 {
        1.5 + 3.0 * (rate / least).ln() / (most / least).ln()
    } else {
        2.0
    }
}

fn graph(boxes: &[DrawnNode], lines: &[DrawnLink]) -> LayoutGraph {
    let mut joined: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for line in lines {
        let bow = if line.beside == 0.0 { 0.0 } else { 40.0 };
        let needed = 2.0 * line.label.half.x + 16.0 + bow;
        let pair = joined
            .entry((line.ends.0.min(line.ends.1), line.ends.0.max(line.ends.1)))
            .or_insert(needed);
        *pair = pair.max(needed);
    }
    LayoutGraph {
        half: boxes.iter().map(|one| one.half).collect(),
        lines: joined
            .into_iter()
            .map(|((a, b), needed)| (a, b, needed))
            .collect(),
    }
}

impl DrawnLink {
    fn new(
        link: &NetworkLink,
        ends: (usize, usize),
        network: &Network,
        thickness: f64,
        beside: f64,
    ) -> Self {
        let above = match path_facts::mean_rate(&link.rate) {
            None => "unlimited".to_owned(),
            Some(rate) if matches!(link.rate, stackline_core::network::LinkRate::Constant(_)) => {
                units::format_rate(rate)
            }
            Some(rate) => format!("~{}", units::format_rate(rate)),
        };
        let loss = path_facts::loss(&link.loss);
        let lossy = if loss.is_empty() { "" } else { ", lossy" };
        let below = format!(
            "{}{}{lossy}",
            path_facts::delay(link),
            if link.jitter.is_some() {
                " + jitter"
            } else {
                ""
            }
        );
        let mut said = vec![format!(
            "{}: {}, {}",
            format_link_ends(link),
            path_facts::rate(&link.rate),
            path_facts::delay(link)
        )];
        said.extend((!loss.is_empty()).then(|| format!("loss {loss}")));
        said.push(format!(
            "MTU {}, queue {}",
            units::format_size(link.mtu()),
            queue(link, &find_limited_switches(network))
        ));
        said.extend(describe_peculiarities(link));
        let half = DrawingPoint {
            x: text_width(&above, SMALL).max(text_width(&below, SMALL)) / 2.0,
            y: 15.0,
        };
        let label = RotatedRectangle {
            middle: DrawingPoint::default(),
            half,
            angle: 0.0,
        };
        let (from, bend, to) = (
            DrawingPoint::default(),
            DrawingPoint::default(),
            DrawingPoint::default(),
        );
        let (one_way, title) = (link.one_way, said.join(", "));
        let (number, class) = (0, "line".to_owned());
        Self {
            number,
            class,
            ends,
            above,
            below,
            title,
            one_way,
            thickness,
            beside,
            label,
            from,
            bend,
            to,
        }
    }

    /// Makes the line show how busy its link was.
    fn is_used(&mut self, link: &NetworkLink, used: LinkUse) {
        let busier = used.there.max(used.back);
        let level = BUSY.iter().filter(|from| busier >= **from).count();
        self.class = if used.is_down {
            "line down".to_owned()
        } else {
            format!("line busy{level}")
        };
        self.below = if used.is_down {
            "down".to_owned()
        } else {
            format!("{:.0} %", 100.0 * busier)
        };
        let (first, second) = &link.ends;
        self.title = format!(
            "{first}>{second} {:.1} % busy, {second}>{first} {:.1} %; {}",
            100.0 * used.there,
            100.0 * used.back,
            self.title
        );
    }

    /// Lays the line from the edge of one box to that of the other, straight or bent.
    fn stretch(&mut self, shapes: &[RotatedRectangle]) {
        let (a, b) = (&shapes[self.ends.0], &shapes[self.ends.1]);
        let v = b.middle.minus(a.middle);
        let v = v.times(2.0 * self.beside / v.length().max(1e-9));
        self.bend = a
            .middle
            .plus(b.middle)
            .times(0.5)
            .plus(DrawingPoint { x: -v.y, y: v.x });
        (self.from, self.to) = (a.edge(self.bend), b.edge(self.bend));
        if self.beside == 0.0 {
            self.bend = self.from.plus(self.to).times(0.5);
        }
    }

    /// The point at a share of the curve, and its direction there.
    fn at(&self, share: f64) -> (DrawingPoint, DrawingPoint) {
        let (first, second) = (self.bend.minus(self.from), self.to.minus(self.bend));
        let (p, q) = (
            self.from.plus(first.times(share)),
            self.bend.plus(second.times(share)),
        );
        (
            p.plus(q.minus(p).times(share)),
            first.times(1.0 - share).plus(second.times(share)),
        )
    }

    /// The rectangle that the line covers; of a bent line, only its middle half.
    fn shape(&self) -> RotatedRectangle {
        if self.beside == 0.0 {
            RotatedRectangle::line(self.from, self.to)
        } else {
            RotatedRectangle::line(self.at(0.25).0, self.at(0.75).0)
        }
    }

    /// Places its text where it overlaps least; returns the place and the number of overlaps with nodes and other texts.
    fn write(
        &mut self,
        nodes: &[RotatedRectangle],
        labels: &[RotatedRectangle],
        lines: &[&RotatedRectangle],
    ) -> (RotatedRectangle, usize) {
        let v = self.at(0.5).1;
        // Turned so that the text reads from left to right, or from below.
        let upright = if v.x < -1e-3 * v.length() || (v.x < 1e-3 * v.length() && v.y > 0.0) {
            v.times(-1.0)
        } else {
            v
        };
        let angle = upright.y.atan2(upright.x);
        let mut best: Option<(usize, usize, RotatedRectangle)> = None;
        for share in [0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65, 0.3, 0.7] {
            let label = RotatedRectangle {
                middle: self.at(share).0,
                angle,
                ..self.label
            };
            let over = |shapes: &mut dyn Iterator<Item = &RotatedRectangle>| {
                shapes.filter(|other| label.overlaps(other)).count()
            };
            let bad = over(&mut nodes.iter()) + over(&mut labels.iter());
            let cost = 4 * bad + over(&mut lines.iter().copied());
            if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                best = Some((cost, bad, label));
            }
        }
        let (_, bad, label) = best.unwrap_or((0, 0, self.label));
        self.label = label;
        (label, bad)
    }

    fn svg(&self, out: &mut String) {
        let (from, to) = (self.from, self.to);
        let degrees = self.label.angle.to_degrees();
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "<g class=\"link\"><title>{}</title><path class=\"{}\" d=\"M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}\" \
             stroke-width=\"{:.1}\"/>{}<g transform=\"translate({:.1} {:.1}) rotate({degrees:.1})\">\
             <text y=\"-5\">{}</text><text class=\"soft\" y=\"14\">{}</text></g></g>",
            escaped(&self.title),
            self.class,
            from.x,
            from.y,
            self.bend.x,
            self.bend.y,
            to.x,
            to.y,
            self.thickness,
            self.arrow(),
            self.label.middle.x,
            self.label.middle.y,
            escaped(&self.above),
            escaped(&self.below)
        );
    }

    /// The arrow at the end of a one-way link.
    fn arrow(&self) -> String {
        if !self.one_way {
            return String::new();
        }
        let v = self.at(1.0).1;
        let (x, y, degrees) = (self.to.x, self.to.y, v.y.atan2(v.x).to_degrees());
        format!(
            "<path class=\"arrow\" d=\"M0 0L-12 -6L-12 6Z\" transform=\"translate({x:.1} {y:.1}) rotate({degrees:.1})\"/>"
        )
    }
}

impl DrawnNode {
    fn svg(&self, middle: DrawingPoint, out: &mut String) {
        let (x, y) = (middle.x - self.half.x, middle.y - self.half.y);
        let (width, height) = (2.0 * self.half.x, 2.0 * self.half.y);
        let round = if self.below.is_empty() { 13 } else { 5 };
        let _ = write!(
            out,
            "<g class=\"{}\"><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" rx=\"{round}\"/><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            self.class,
            escaped(&self.title),
            middle.x,
            if self.below.is_empty() {
                middle.y + 4.5
            } else {
                middle.y - 1.5
            },
            escaped(&self.name)
        );
        if !self.below.is_empty() {
            let (x, y, below) = (middle.x, middle.y + 12.0, escaped(&self.below));
            let _ = write!(
                out,
                "<text class=\"soft\" x=\"{x:.1}\" y=\"{y:.1}\">{below}</text>"
            );
        }
        out.push_str("</g>\n");
    }
}

#[cfg(test)]
mod tests;
