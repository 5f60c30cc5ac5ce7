//! Monitor points as numbers: a keyword at a host, and there a port of the network or a direction of a stream, for one service
//! where hosts both answer and ask.

use super::roles::{EventClass, KeywordRole};
use super::services::{FlowServices, ServiceNumber};
use super::unit_id_index::ByNumber;
use crate::lifelines::LifelinePoint;
use stackline_events::EventTable;
use stackline_events::catalogue::Layer;
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::BTreeMap;

/// Which direction or port, in the numbers of one table: 0 for none.
pub(crate) type DirectionOrPort = u32;
pub(crate) const NOWHERE: DirectionOrPort = 0;
const THERE: DirectionOrPort = 1;
const BACK: DirectionOrPort = 2;
const PORTS: DirectionOrPort = 3;
/// What is seen at a place of the network in both directions, on its way back.
const BACKWARDS: DirectionOrPort = 1 << 19;

/// A point and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct ClassifiedPoint {
    pub(crate) point: LifelinePoint,
    pub(crate) direction: Option<EventStreamDirection>,
    pub(crate) role: KeywordRole,
}

/// Every point that was met.
#[derive(Debug, Default)]
pub(crate) struct Points {
    by_name: BTreeMap<(LifelinePoint, u8), u32>,
    known: Vec<ClassifiedPoint>,
    /// Events there of either direction.
    leans: Vec<[u64; 2]>,
    /// Of the present table, by service: keyword and host, where.
    here: Vec<ByNumber<u64, u32>>,
    services: FlowServices,
}

impl Points {
    /// None so far, of flows that ask these services.
    pub(crate) fn new(services: FlowServices) -> Self {
        Self {
            services,
            ..Self::default()
        }
    }

    /// The service that a flow asks.
    #[inline]
    pub(crate) fn service(&self, flow: u32) -> ServiceNumber {
        self.services.number(flow)
    }

    /// Another table, with names of its own, comes.
    pub(crate) fn forget_table(&mut self) {
        self.here.clear();
    }

    /// The number of the point of a row.
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
        // Names beyond these bits would share a key.
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

    /// A port of the network carried something of a stream: most of the time it carries one direction.
    #[inline]
    pub(crate) fn lean(&mut self, point: u32, stream: i64) {
        self.leans[point as usize][(stream & 1) as usize] += 1;
    }

    /// Whether units pass a point, rather than that something happens to them there.
    pub(crate) fn is_on_path(&self, point: u32) -> bool {
        is_on_path(&self.known[point as usize])
    }

    /// Whether a point is one of the network.
    pub(crate) fn is_network(&self, point: u32) -> bool {
        self.known[point as usize].role.layer == Some(Layer::Network)
    }

    /// All of them, by their numbers; a direction is named where one keyword of a host has more than one.
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

fn code(direction: Option<EventStreamDirection>) -> u8 {
    direction.map_or(0, |direction| 1 + direction as u8)
}

/// Where on a host a row happened: the direction of its stream.
#[inline]
pub(crate) const fn direction_code(stream: i64) -> DirectionOrPort {
    if stream & 1 == 0 { THERE } else { BACK }
}

/// Where in the network: a port, by the number of its name in the table.
#[inline]
pub(crate) const fn at_port(name: u32) -> DirectionOrPort {
    PORTS + name
}

/// Where a watched place of the network sees a row of that stream: it sees both directions.
#[inline]
pub(crate) const fn at_watched_place(name: u32, stream: Option<i64>) -> DirectionOrPort {
    match stream {
        // Names beyond that have no number of their own for the way back.
        Some(stream) if stream & 1 == 1 && name < BACKWARDS - PORTS => BACKWARDS + PORTS + name,
        _ => at_port(name),
    }
}

/// The order of points that no unit's way decides: there before back, in the order of the way, of the catalogue, by name.
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

/// Where on a unit's way there and back a point lies. What has no direction lies among what goes there: ahead of all of it,
/// a queue would come before the call that fills it.
pub(crate) fn stage(known: &ClassifiedPoint) -> (u8, u8) {
    (
        code(Some(known.direction.unwrap_or(EventStreamDirection::There))),
        known.role.stage,
    )
}

/// Whether units pass there, rather than that something happens to them.
pub(crate) fn is_on_path(known: &ClassifiedPoint) -> bool {
    known.role.class == EventClass::OnPath
}
