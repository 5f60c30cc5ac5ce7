//! Numbers the monitor points. A point is a keyword at a host, with a port of the network or a direction of a stream, and with a
//! service if hosts both answer and ask.

use super::roles::{EventClass, KeywordRole};
use super::services::{FlowServices, ServiceNumber};
use super::unit_id_index::ByNumber;
use crate::lifelines::LifelinePoint;
use stackline_events::EventTable;
use stackline_events::catalogue::Layer;
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::BTreeMap;

/// Where on a host a row happened: a direction of its stream, or a port by the number of its name in the table.
pub(crate) type DirectionOrPort = u32;
/// Neither a direction nor a port.
pub(crate) const NOWHERE: DirectionOrPort = 0;
/// From the initiator of the flow to its responder.
const THERE: DirectionOrPort = 1;
/// From the responder of the flow to its initiator.
const BACK: DirectionOrPort = 2;
/// Ports are numbered from here: `PORTS` + number of the name.
const PORTS: DirectionOrPort = 3;
/// Added to a port that sees both directions, for packets on the way back.
const BACKWARDS: DirectionOrPort = 1 << 19;

/// A point with its direction and the role of its keyword.
#[derive(Clone, Debug)]
pub(crate) struct ClassifiedPoint {
    pub(crate) point: LifelinePoint,
    /// The direction of its streams; at a port, the direction of most of its packets.
    pub(crate) direction: Option<EventStreamDirection>,
    pub(crate) role: KeywordRole,
}

/// Every point that events were recorded at.
#[derive(Debug, Default)]
pub(crate) struct Points {
    /// By point and direction (see [`code`]): its number.
    by_name: BTreeMap<(LifelinePoint, u8), u32>,
    /// The points by their numbers.
    known: Vec<ClassifiedPoint>,
    /// By number of a point of the network: how many of its events go there, and how many back.
    leans: Vec<[u64; 2]>,
    /// Cache for the current table, by service: the number of the point by keyword, host and direction or port.
    here: Vec<ByNumber<u64, u32>>,
    services: FlowServices,
}

impl Points {
    /// No points yet. `services` says which service each flow calls.
    pub(crate) fn new(services: FlowServices) -> Self {
        Self {
            services,
            ..Self::default()
        }
    }

    /// The service that a flow calls.
    #[inline]
    pub(crate) fn service(&self, flow: u32) -> ServiceNumber {
        self.services.number(flow)
    }

    /// Empties the cache before the next table: it numbers its names in its own way.
    pub(crate) fn forget_table(&mut self) {
        self.here.clear();
    }

    /// The number of the point that a row of the table was recorded at.
    #[inline]
    pub(crate) fn number(
        &mut self,
        table: &EventTable,
        row: usize,
        role: KeywordRole,
        place: DirectionOrPort,
        service: ServiceNumber,
    ) -> u32 {
        if self.here.len() <= service as usize {
            self.here
                .resize_with(service as usize + 1, ByNumber::default);
        }
        let key = u64::from(table.keyword[row]) << 40
            ^ u64::from(table.host[row]) << 20
            ^ u64::from(place);
        if let Some(number) = self.here[service as usize].get(&key) {
            return *number;
        }
        let number = self.find(table, row, role, place, service);
        // With more names than these bits can hold, two points would share a key.
        if table.names.len() < (BACKWARDS - PORTS) as usize {
            self.here[service as usize].insert(key, number);
        }
        number
    }

    fn find(
        &mut self,
        table: &EventTable,
        row: usize,
        role: KeywordRole,
        place: DirectionOrPort,
        service: ServiceNumber,
    ) -> u32 {
        let (port, direction) = match place {
            NOWHERE => ("", None),
            THERE => ("", Some(EventStreamDirection::There)),
            BACK => ("", Some(EventStreamDirection::Back)),
            port if port >= BACKWARDS => (
                table.names.text(port - BACKWARDS - PORTS),
                Some(EventStreamDirection::Back),
            ),
            port => (table.names.text(port - PORTS), None),
        };
        let (keyword, host) = (table.keyword(row).to_owned(), table.host(row).to_owned());
        let point = LifelinePoint {
            keyword,
            host,
            place: port.to_owned(),
            service: self.services.name(service).to_owned(),
        };
        let next = self.known.len() as u32;
        let number = *self
            .by_name
            .entry((point.clone(), code(direction)))
            .or_insert(next);
        if number == next {
            self.known.push(ClassifiedPoint {
                point,
                direction,
                role,
            });
            self.leans.push([0; 2]);
        }
        number
    }

    /// Counts a packet of a stream at a port of the network: the direction of most packets becomes the port's direction.
    #[inline]
    pub(crate) fn lean(&mut self, point: u32, stream: i64) {
        self.leans[point as usize][(stream & 1) as usize] += 1;
    }

    /// Whether a point is on the units' path; else something happens to them there, such as a drop.
    pub(crate) fn is_on_path(&self, point: u32) -> bool {
        is_on_path(&self.known[point as usize])
    }

    /// Whether a point is one of the network.
    pub(crate) fn is_network(&self, point: u32) -> bool {
        self.known[point as usize].role.layer == Some(Layer::Network)
    }

    /// All points by their numbers. The direction becomes part of a point's place if the same point exists in more than one direction.
    pub(crate) fn into_known(mut self) -> Vec<ClassifiedPoint> {
        let mut directions: BTreeMap<LifelinePoint, u32> = BTreeMap::new();
        self.known
            .iter()
            .for_each(|known| *directions.entry(known.point.clone()).or_default() += 1);
        for known in &mut self.known {
            if directions[&known.point] > 1 {
                let port = &known.point.place;
                known.point.place = match known.direction {
                    Some(EventStreamDirection::Back) if !port.is_empty() => format!("{port}, back"),
                    None if !port.is_empty() => port.clone(),
                    Some(EventStreamDirection::There) => "there".into(),
                    Some(EventStreamDirection::Back) => "back".into(),
                    None => String::new(),
                };
            }
        }
        for (known, [there, back]) in self.known.iter_mut().zip(self.leans) {
            if there + back > 0 {
                known.direction = Some(if there >= back {
                    EventStreamDirection::There
                } else {
                    EventStreamDirection::Back
                });
            }
        }
        self.known
    }
}

/// The direction as a number: 0 for none, 1 there, 2 back.
fn code(direction: Option<EventStreamDirection>) -> u8 {
    direction.map_or(0, |direction| 1 + direction as u8)
}

/// The direction of a stream: the lowest bit of its number is 0 on the way there, 1 on the way back.
#[inline]
pub(crate) const fn direction_code(stream: i64) -> DirectionOrPort {
    if stream & 1 == 0 { THERE } else { BACK }
}

/// A port of the network, by the number of its name in the table.
#[inline]
pub(crate) const fn at_port(name: u32) -> DirectionOrPort {
    PORTS + name
}

/// A place of the network where packets of both directions are seen, such as a captured interface; one number for each direction.
#[inline]
pub(crate) const fn at_watched_place(name: u32, stream: Option<i64>) -> DirectionOrPort {
    match stream {
        // Larger numbers of names would overlap those of the way back; both directions are one point then.
        Some(stream) if stream & 1 == 1 && name < BACKWARDS - PORTS => BACKWARDS + PORTS + name,
        _ => at_port(name),
    }
}

/// The rank of each point for ties that votes do not decide: the way there before the way back, then by stage, by row in the
/// catalogue, by name.
pub(crate) fn order_points(known: &[ClassifiedPoint]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..known.len()).collect();
    let key = |known: &ClassifiedPoint| (stage(known), known.role.row);
    order.sort_by(|a, b| {
        (key(&known[*a]), &known[*a].point).cmp(&(key(&known[*b]), &known[*b].point))
    });
    let mut ties = vec![0; known.len()];
    order
        .iter()
        .enumerate()
        .for_each(|(rank, point)| ties[*point] = rank as u32);
    ties
}

/// Where on a unit's way there and back a point lies: (direction, stage). Points without a direction count as on the way there:
/// sorted before that, a queue would come before the call that fills it.
pub(crate) fn stage(known: &ClassifiedPoint) -> (u8, u8) {
    (
        code(Some(known.direction.unwrap_or(EventStreamDirection::There))),
        known.role.stage,
    )
}

/// Whether a point is on the units' path; else something happens to them there, such as a drop.
pub(crate) fn is_on_path(known: &ClassifiedPoint) -> bool {
    known.role.class == EventClass::OnPath
}
