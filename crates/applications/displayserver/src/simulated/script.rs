//! What a simulated client does, trial by trial, and what of that the display has to draw.

use super::scene::{Class, Drawing, Scene, Shown};
use crate::bench::{Rate, SYMBOL, WINDOW};
use crate::level::{Level, Picture};
use stackline_display::item::{Item, Kind};
use stackline_display::machine::FULL_SIZE;
use stackline_display::protocol::{Request, VERSION, put};
use std::collections::{BTreeMap, VecDeque};

/// A request on its way to the display.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Its number since `Hello`, which has none.
    pub(super) number: u32,
    /// The request as it is sent.
    pub(super) bytes: Vec<u8>,
    /// Bytes that it has on its way beyond those, or fewer.
    pub(super) beyond: isize,
    /// What the display draws for it, ns; nothing where it draws with what comes later.
    pub(super) draw: Option<f64>,
    /// Whether an answer is wanted.
    pub(super) wants: bool,
    /// Whether the trial is the time in which it is drawn.
    pub(super) timed: bool,
}

impl Job {
    /// Bytes that it has on its way.
    pub(super) const fn length(&self) -> usize {
        self.bytes.len().saturating_add_signed(self.beyond)
    }
}

/// What a client does next.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// It makes a request, which goes with others.
    Request(Job),
    /// It hands over what it has, and waits until all is answered that an answer was wanted of.
    Await,
    /// It hands over what it has.
    Hand,
    /// A trial begins.
    Begin,
    /// It ends.
    End,
}

/// All trials of a rate.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) actions: VecDeque<Action>,
}

impl Script {
    pub(super) fn of(scene: &Scene<'_>, picture: &Picture, rate: Rate, trials: usize) -> Self {
        let costs = costs(&scene.drawing, picture);
        let mut writer = Writer {
            scene,
            picture,
            costs,
            requests: 0,
            script: Self::default(),
        };
        writer.ask(
            &Request::Hello {
                version: VERSION,
                token: b"",
            },
            None,
        );
        // What drawing takes is said, and nobody looks at pixels.
        writer.request(
            &Request::CreateWindow(WINDOW, (1, 1), picture.name.as_bytes()),
            None,
        );
        for _ in 0..trials {
            writer.trial(rate);
        }
        writer.script
    }
}

/// What drawing each symbol takes, and `SYMBOL` the whole.
fn costs(drawing: &Drawing, picture: &Picture) -> BTreeMap<u32, f64> {
    let mut costs = BTreeMap::new();
    for (number, items) in &picture.symbols {
        let all = items.iter().map(|item| of(drawing, &costs, item, 0)).sum();
        costs.insert(*number, all);
    }
    let all = picture
        .items
        .iter()
        .map(|(item, letters)| drawing.item(item, letters.len()))
        .sum();
    costs.insert(SYMBOL, all);
    costs
}

/// What an item takes: a call what it calls.
fn of(drawing: &Drawing, costs: &BTreeMap<u32, f64>, item: &Item, letters: usize) -> f64 {
    if item.kind == Some(Kind::Call) {
        return costs.get(&item.data).copied().unwrap_or(0.0);
    }
    drawing.item(item, letters)
}

struct Writer<'s> {
    scene: &'s Scene<'s>,
    picture: &'s Picture,
    costs: BTreeMap<u32, f64>,
    requests: u32,
    script: Script,
}

impl Writer<'_> {
    fn job(&mut self, request: &Request<'_>, draw: Option<f64>, wants: bool, timed: bool) {
        let mut bytes = Vec::new();
        put(&mut bytes, request, wants);
        let beyond = match request {
            Request::AddItem(item, _) if item.kind == Some(Kind::Rectangle) => {
                self.scene.rectangle_bytes as isize
            }
            Request::AddItem(item, _) if item.kind == Some(Kind::Call) => {
                self.scene.call_bytes as isize - bytes.len() as isize
            }
            _ => 0,
        };
        let wants = wants || matches!(request, Request::Hello { .. } | Request::Sync(_));
        let number = self.requests;
        self.requests += 1;
        self.script.actions.push_back(Action::Request(Job {
            number,
            bytes,
            beyond,
            draw,
            wants,
            timed,
        }));
    }

    fn request(&mut self, request: &Request<'_>, draw: Option<f64>) {
        self.job(request, draw, false, false);
    }

    fn ask(&mut self, request: &Request<'_>, draw: Option<f64>) {
        let asks = !matches!(request, Request::Hello { .. } | Request::Sync(_));
        self.job(request, draw, asks, false);
        self.script.actions.push_back(Action::Await);
    }

    /// Nothing is there before, and the window shows it or nothing; then what is measured.
    fn trial(&mut self, rate: Rate) {
        let shows = |symbol| Request::DisplayView(WINDOW, symbol, (8, 8), FULL_SIZE);
        let has_picture = rate == Rate::Display || self.scene.class == Class::Distributed;
        self.request(&Request::DefineSymbol(SYMBOL), None);
        if has_picture {
            self.items(|_, _| None);
        }
        self.request(&Request::EndSymbol, None);
        let shown = if rate == Rate::Construction {
            0
        } else {
            SYMBOL
        };
        self.request(
            &shows(shown),
            (has_picture && rate != Rate::Display).then(|| self.whole()),
        );
        self.ask(&Request::Sync(0), None);
        if rate == Rate::Display {
            self.request(&shows(SYMBOL), None);
            let whole = self.whole();
            self.job(&Request::Sync(1), Some(whole), false, true);
            return self.script.actions.push_back(Action::Await);
        }
        self.script.actions.push_back(Action::Begin);
        match rate {
            Rate::At(level) if self.scene.class == Class::Distributed => self.edited(level),
            Rate::At(level) => self.level(level),
            _ => return self.constructed(),
        }
        self.script.actions.push_back(Action::End);
    }

    /// Nothing is seen, and nothing is waited for but that all is taken.
    fn constructed(&mut self) {
        self.request(&Request::DefineSymbol(SYMBOL), None);
        self.items(|_, _| None);
        self.job(&Request::EndSymbol, None, true, false);
        self.script
            .actions
            .extend([Action::Hand, Action::End, Action::Await]);
    }

    fn whole(&self) -> f64 {
        self.costs.get(&SYMBOL).copied().unwrap_or(0.0)
    }

    fn items(&mut self, draw: impl Fn(&Item, usize) -> Option<f64>) {
        let picture = self.picture;
        for (item, letters) in &picture.items {
            self.request(&Request::AddItem(*item, letters), draw(item, letters.len()));
        }
    }

    /// The whole as one symbol, which is seen or not.
    fn defined(&mut self, seen: bool) {
        let drawing = self.scene.drawing;
        let growing = seen && self.scene.shown == Shown::Growing;
        self.request(&Request::DefineSymbol(SYMBOL), None);
        self.items(|item, letters| growing.then(|| drawing.item(item, letters)));
        let rest = (seen && !growing).then(|| self.whole());
        self.ask(&Request::EndSymbol, rest);
    }

    fn level(&mut self, level: Level) {
        let (picture, drawing) = (self.picture, self.scene.drawing);
        match level {
            Level::StopAndWait | Level::Pipelined => {
                self.request(&Request::EditSymbol(SYMBOL), None);
                for (item, letters) in &picture.items {
                    let request = Request::AddItem(*item, letters);
                    let draw = Some(drawing.item(item, letters.len()) + drawing.alone(item));
                    if level == Level::StopAndWait {
                        self.ask(&request, draw);
                    } else {
                        self.request(&request, draw);
                        self.script.actions.push_back(Action::Hand);
                    }
                }
                self.ask(&Request::EndSymbol, None);
            }
            Level::Batched => self.defined(true),
            Level::Structured => {
                for (number, items) in &picture.symbols {
                    self.structured(*number, items);
                }
            }
        }
    }

    /// A symbol of a structure; the whole is seen.
    fn structured(&mut self, number: u32, items: &[Item]) {
        let is_whole = number == SYMBOL;
        let growing = is_whole && self.scene.shown == Shown::Growing;
        self.request(&Request::DefineSymbol(number), None);
        for item in items {
            let draw = growing.then(|| of(&self.scene.drawing, &self.costs, item, 0));
            self.request(&Request::AddItem(*item, b""), draw);
        }
        let rest = (is_whole && !growing).then(|| self.whole());
        self.ask(&Request::EndSymbol, rest);
    }

    /// An agent has the picture: an item of it changes, and it is drawn again from there.
    fn edited(&mut self, level: Level) {
        let Some((item, letters)) = self.picture.items.first() else {
            return;
        };
        self.request(&Request::EditSymbol(SYMBOL), None);
        let change = Request::ChangeItem(*item, letters);
        match level {
            Level::StopAndWait => self.ask(&change, None),
            _ => self.request(&change, None),
        }
        let whole = self.whole();
        self.ask(&Request::EndSymbol, Some(whole));
    }
}
