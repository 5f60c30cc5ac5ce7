//! Visits the figures of a network. A figure is a value that may be a number or a variable; a visitor puts numbers in
//! the place of variables.

use super::{
    BucketItem, ClassItem, ClockKind, DelayItem, DisciplineItem, LinkItem, LossItem, NetworkItem,
    NodeItem, QueueItem, QueueLimit, RateItem, ScheduleItem, SettingItem, ShaperLimit, SpecUnit,
    SpecValue, SwitchItem,
};

/// Which kind of value a figure is, and so which units it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FigureKind {
    Plain,
    Size,
    Time,
    Rate,
    Percent,
    /// A setting or a parameter, whose own unit decides.
    Any,
}

/// The function that is called with each figure.
pub(crate) type Visit<'v> = dyn FnMut(&mut SpecValue, FigureKind) + 'v;

impl NetworkItem {
    /// Calls `visit` with every figure of the network's hosts, switches and links.
    pub(crate) fn figures(&mut self, visit: &mut Visit<'_>) {
        self.hosts.iter_mut().for_each(|host| node(host, visit));
        self.switches
            .iter_mut()
            .for_each(|item| switch(item, visit));
        self.links.iter_mut().for_each(|item| link(item, visit));
    }
}

fn all<'v>(
    values: impl IntoIterator<Item = &'v mut SpecValue>,
    figure: FigureKind,
    visit: &mut Visit<'_>,
) {
    values.into_iter().for_each(|value| visit(value, figure));
}

fn node(host: &mut NodeItem, visit: &mut Visit<'_>) {
    all(
        host.buffer_frames.iter_mut().chain(&mut host.cpu),
        FigureKind::Plain,
        visit,
    );
    all(
        host.copy_per_packet
            .iter_mut()
            .chain(&mut host.copy_per_byte),
        FigureKind::Time,
        visit,
    );
    let work = [
        &mut host.work_per_operation,
        &mut host.work_per_byte,
        &mut host.work_per_message,
    ];
    let others = [&mut host.work_per_switch, &mut host.polls];
    all(
        work.into_iter().chain(others).flatten(),
        FigureKind::Time,
        visit,
    );
    all(&mut host.pace, FigureKind::Rate, visit);
    all(&mut host.share, FigureKind::Percent, visit);
    if let Some((from, to, _)) = &mut host.down {
        all(core::iter::once(from).chain(to), FigureKind::Time, visit);
    }
    for clock in &mut host.clock {
        match &mut clock.kind {
            ClockKind::Drift => visit(&mut clock.value, FigureKind::Plain),
            ClockKind::Offset => visit(&mut clock.value, FigureKind::Time),
            ClockKind::Step(at) => all([&mut clock.value, at], FigureKind::Time, visit),
        }
    }
}

fn switch(item: &mut SwitchItem, visit: &mut Visit<'_>) {
    all(
        item.buffer.iter_mut().chain(&mut item.cells),
        FigureKind::Size,
        visit,
    );
    item.queue.iter_mut().for_each(|item| queue(item, visit));
    if let Some(imp) = &mut item.imp {
        let numbers = [
            &mut imp.reassembly,
            &mut imp.window,
            &mut imp.channels,
            &mut imp.buffers,
        ];
        all(numbers.into_iter().flatten(), FigureKind::Plain, visit);
    }
    if let Some(router) = &mut item.router {
        for gate in router.nat.iter_mut().chain(&mut router.firewall) {
            all(&mut gate.time, FigureKind::Time, visit);
            all(&mut gate.entries, FigureKind::Plain, visit);
        }
    }
}

fn link(link: &mut LinkItem, visit: &mut Visit<'_>) {
    match &mut link.rate {
        RateItem::Unlimited | RateItem::Trace(_) => {}
        RateItem::Constant(value) => visit(value, FigureKind::Rate),
        RateItem::Schedule(item) => {
            schedule(item, visit, |rate, visit| visit(rate, FigureKind::Rate))
        }
    }
    match &mut link.delay {
        DelayItem::Constant(value) => visit(value, FigureKind::Time),
        DelayItem::Schedule(item) => {
            schedule(item, visit, |delay, visit| visit(delay, FigureKind::Time))
        }
    }
    link.loss.iter_mut().for_each(|item| loss(item, visit));
    all(
        link.jitter
            .iter_mut()
            .flat_map(|jitter| &mut jitter.drawn.parameters),
        FigureKind::Any,
        visit,
    );
    all(&mut link.duplicate, FigureKind::Percent, visit);
    all(&mut link.mtu, FigureKind::Size, visit);
    link.queue.iter_mut().for_each(|item| queue(item, visit));
    traffic_control(link, visit);
}

fn traffic_control(link: &mut LinkItem, visit: &mut Visit<'_>) {
    if let Some(shaper) = &mut link.shaper {
        bucket(&mut shaper.bucket, visit);
        match &mut shaper.limit {
            Some(ShaperLimit::Latency(time)) => visit(time, FigureKind::Time),
            Some(ShaperLimit::Bytes(size)) => visit(size, FigureKind::Size),
            None => {}
        }
    }
    if let Some(policer) = &mut link.policer {
        bucket(&mut policer.bucket, visit);
        all(&mut policer.remark, FigureKind::Plain, visit);
    }
    all(&mut link.dscp, FigureKind::Plain, visit);
    if let Some(reorder) = &mut link.reorder {
        let shares = core::iter::once(&mut reorder.share).chain(&mut reorder.correlation);
        all(shares, FigureKind::Percent, visit);
        all(&mut reorder.gap, FigureKind::Plain, visit);
    }
    let jitter = link.jitter.as_mut();
    all(
        jitter.and_then(|jitter| jitter.correlation.as_mut()),
        FigureKind::Percent,
        visit,
    );
}

fn bucket(bucket: &mut BucketItem, visit: &mut Visit<'_>) {
    visit(&mut bucket.rate, FigureKind::Rate);
    visit(&mut bucket.burst, FigureKind::Size);
}

fn schedule<T>(
    item: &mut ScheduleItem<T>,
    visit: &mut Visit<'_>,
    figure: impl Fn(&mut T, &mut Visit<'_>),
) {
    for (from, value) in &mut item.steps {
        visit(from, FigureKind::Time);
        figure(value, visit);
    }
    all(&mut item.every, FigureKind::Time, visit);
}

fn loss(loss: &mut LossItem, visit: &mut Visit<'_>) {
    match loss {
        LossItem::Schedule(item) => schedule(item, visit, self::loss),
        LossItem::Share(value) => visit(value, FigureKind::Percent),
        LossItem::BitErrors(value) | LossItem::Every(value) => visit(value, FigureKind::Plain),
        LossItem::Packets(values) => all(values, FigureKind::Plain, visit),
        LossItem::GilbertElliott(values)
        | LossItem::GeModel(values)
        | LossItem::FourStates(values) => all(values, FigureKind::Percent, visit),
    }
}

fn queue(queue: &mut QueueItem, visit: &mut Visit<'_>) {
    limit(&mut queue.limit, visit);
    let disciplines = queue.discipline.iter_mut();
    disciplines.for_each(|item| discipline(item, visit));
}

fn limit(limit: &mut Option<QueueLimit>, visit: &mut Visit<'_>) {
    match limit {
        Some(QueueLimit::Bytes(value)) => visit(value, FigureKind::Size),
        Some(QueueLimit::Packets(value)) => visit(value, FigureKind::Plain),
        None => {}
    }
}

fn discipline(item: &mut DisciplineItem, visit: &mut Visit<'_>) {
    let settings = &mut item.settings;
    settings.iter_mut().for_each(|item| setting(item, visit));
    item.classes.iter_mut().for_each(|item| class(item, visit));
}

fn class(class: &mut ClassItem, visit: &mut Visit<'_>) {
    let numbers = class.dscps.iter_mut().chain(&mut class.weight);
    all(numbers, FigureKind::Plain, visit);
    limit(&mut class.limit, visit);
    let disciplines = class.discipline.iter_mut();
    disciplines.for_each(|item| discipline(item, visit));
}

fn setting(setting: &mut SettingItem, visit: &mut Visit<'_>) {
    visit(&mut setting.value, FigureKind::Any);
    setting.percent |= setting.value.unit == SpecUnit::Percent;
}
