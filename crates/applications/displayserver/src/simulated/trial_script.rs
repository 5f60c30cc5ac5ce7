//! What a simulated client does, trial by trial, and what of that the display has to draw.

use super::scene::{
    DisplayDrawingCosts, DisplaySceneClass, SimulatedDisplayScene, SymbolDrawMoment,
};
use crate::bench::{DisplayBenchSubject, SYMBOL, WINDOW};
use crate::send_level::{DisplayPicture, DisplaySendLevel};
use stackline_display::item::{DisplayItem, DisplayItemKind};
use stackline_display::machine::FULL_SIZE;
use stackline_display::protocol::{DisplayRequest, VERSION, write_request};
use std::collections::{BTreeMap, VecDeque};

/// A request on its way to the display.
#[derive(Clone, Debug)]
pub(super) struct SimulatedDisplayRequest {
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

impl SimulatedDisplayRequest {
    /// Bytes that it has on its way.
    pub(super) const fn length(&self) -> usize {
        self.bytes.len().saturating_add_signed(self.beyond)
    }
}

/// What a client does next.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// It makes a request, which goes with others.
    Request(SimulatedDisplayRequest),
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
pub(super) struct DisplayTrialScript {
    pub(super) actions: VecDeque<Action>,
}

impl DisplayTrialScript {
    pub(super) fn of(
        scene: &SimulatedDisplayScene<'_>,
        picture: &DisplayPicture,
        rate: DisplayBenchSubject,
        trials: usize,
    ) -> Self {
        let costs = costs(&scene.drawing, picture);
        let mut writer = DisplayScriptWriter {
            scene,
            picture,
            costs,
            requests: 0,
            script: Self::default(),
        };
        writer.ask(
            &DisplayRequest::Hello {
                version: VERSION,
                token: b"",
            },
            None,
        );
        // What drawing takes is said, and nobody looks at pixels.
        writer.request(
            &DisplayRequest::CreateWindow(WINDOW, (1, 1), picture.name.as_bytes()),
            None,
        );
        for _ in 0..trials {
            writer.trial(rate);
        }
        writer.script
    }
}

/// What drawing each symbol takes, and `SYMBOL` the whole.
fn costs(drawing: &DisplayDrawingCosts, picture: &DisplayPicture) -> BTreeMap<u32, f64> {
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
fn of(
    drawing: &DisplayDrawingCosts,
    costs: &BTreeMap<u32, f64>,
    item: &DisplayItem,
    letters: usize,
) -> f64 {
    if item.kind == Some(DisplayItemKind::Call) {
        return costs.get(&item.data).copied().unwrap_or(0.0);
    }
    drawing.item(item, letters)
}

struct DisplayScriptWriter<'s> {
    scene: &'s SimulatedDisplayScene<'s>,
    picture: &'s DisplayPicture,
    costs: BTreeMap<u32, f64>,
    requests: u32,
    script: DisplayTrialScript,
}

impl DisplayScriptWriter<'_> {
    fn job(&mut self, request: &DisplayRequest<'_>, draw: Option<f64>, wants: bool, timed: bool) {
        let mut bytes = Vec::new();
        write_request(&mut bytes, request, wants);
        let beyond = match request {
            DisplayRequest::AddItem(item, _) if item.kind == Some(DisplayItemKind::Rectangle) => {
                self.scene.rectangle_bytes as isize
            }
            DisplayRequest::AddItem(item, _) if item.kind == Some(DisplayItemKind::Call) => {
                self.scene.call_bytes as isize - bytes.len() as isize
            }
            _ => 0,
        };
        let wants = wants
            || matches!(
                request,
                DisplayRequest::Hello { .. } | DisplayRequest::Sync(_)
            );
        let number = self.requests;
        self.requests += 1;
        self.script
            .actions
            .push_back(Action::Request(SimulatedDisplayRequest {
                number,
                bytes,
                beyond,
                draw,
                wants,
                timed,
            }));
    }

    fn request(&mut self, request: &DisplayRequest<'_>, draw: Option<f64>) {
        self.job(request, draw, false, false);
    }

    fn ask(&mut self, request: &DisplayRequest<'_>, draw: Option<f64>) {
        let asks = !matches!(
            request,
            DisplayRequest::Hello { .. } | DisplayRequest::Sync(_)
        );
        self.job(request, draw, asks, false);
        self.script.actions.push_back(Action::Await);
    }

    /// Nothing is there before, and the window shows it or nothing; then what is measured.
    fn trial(&mut self, rate: DisplayBenchSubject) {
        let shows = |symbol| DisplayRequest::DisplayView(WINDOW, symbol, (8, 8), FULL_SIZE);
        let has_picture = rate == DisplayBenchSubject::Display
            || self.scene.class == DisplaySceneClass::Distributed;
        self.request(&DisplayRequest::DefineSymbol(SYMBOL), None);
        if has_picture {
            self.items(|_, _| None);
        }
        self.request(&DisplayRequest::EndSymbol, None);
        let shown = if rate == DisplayBenchSubject::Construction {
            0
        } else {
            SYMBOL
        };
        self.request(
            &shows(shown),
            (has_picture && rate != DisplayBenchSubject::Display).then(|| self.whole()),
        );
        self.ask(&DisplayRequest::Sync(0), None);
        if rate == DisplayBenchSubject::Display {
            self.request(&shows(SYMBOL), None);
            let whole = self.whole();
            self.job(&DisplayRequest::Sync(1), Some(whole), false, true);
            return self.script.actions.push_back(Action::Await);
        }
        self.script.actions.push_back(Action::Begin);
        match rate {
            DisplayBenchSubject::At(level)
                if self.scene.class == DisplaySceneClass::Distributed =>
            {
                self.edited(level)
            }
            DisplayBenchSubject::At(level) => self.level(level),
            _ => return self.constructed(),
        }
        self.script.actions.push_back(Action::End);
    }

    /// Nothing is seen, and nothing is waited for but that all is taken.
    fn constructed(&mut self) {
        self.request(&DisplayRequest::DefineSymbol(SYMBOL), None);
        self.items(|_, _| None);
        self.job(&DisplayRequest::EndSymbol, None, true, false);
        self.script
            .actions
            .extend([Action::Hand, Action::End, Action::Await]);
    }

    fn whole(&self) -> f64 {
        self.costs.get(&SYMBOL).copied().unwrap_or(0.0)
    }

    fn items(&mut self, draw: impl Fn(&DisplayItem, usize) -> Option<f64>) {
        let picture = self.picture;
        for (item, letters) in &picture.items {
            self.request(
                &DisplayRequest::AddItem(*item, letters),
                draw(item, letters.len()),
            );
        }
    }

    /// The whole as one symbol, which is seen or not.
    fn defined(&mut self, seen: bool) {
        let drawing = self.scene.drawing;
        let growing = seen && self.scene.shown == SymbolDrawMoment::Growing;
        self.request(&DisplayRequest::DefineSymbol(SYMBOL), None);
        self.items(|item, letters| growing.then(|| drawing.item(item, letters)));
        let rest = (seen && !growing).then(|| self.whole());
        self.ask(&DisplayRequest::EndSymbol, rest);
    }

    fn level(&mut self, level: DisplaySendLevel) {
        let (picture, drawing) = (self.picture, self.scene.drawing);
        match level {
            DisplaySendLevel::StopAndWait | DisplaySendLevel::Pipelined => {
                self.request(&DisplayRequest::EditSymbol(SYMBOL), None);
                for (item, letters) in &picture.items {
                    let request = DisplayRequest::AddItem(*item, letters);
                    let draw = Some(drawing.item(item, letters.len()) + drawing.alone(item));
                    if level == DisplaySendLevel::StopAndWait {
                        self.ask(&request, draw);
                    } else {
                        self.request(&request, draw);
                        self.script.actions.push_back(Action::Hand);
                    }
                }
                self.ask(&DisplayRequest::EndSymbol, None);
            }
            DisplaySendLevel::Batched => self.defined(true),
            DisplaySendLevel::Structured => {
                for (number, items) in &picture.symbols {
                    self.structured(*number, items);
                }
            }
        }
    }

    /// A symbol of a structure; the whole is seen.
    fn structured(&mut self, number: u32, items: &[DisplayItem]) {
        let is_whole = number == SYMBOL;
        let growing = is_whole && self.scene.shown == SymbolDrawMoment::Growing;
        self.request(&DisplayRequest::DefineSymbol(number), None);
        for item in items {
            let draw = growing.then(|| of(&self.scene.drawing, &self.costs, item, 0));
            self.request(&DisplayRequest::AddItem(*item, b""), draw);
        }
        let rest = (is_whole && !growing).then(|| self.whole());
        self.ask(&DisplayRequest::EndSymbol, rest);
    }

    /// An agent has the picture: an item of it changes, and it is drawn again from there.
    fn edited(&mut self, level: DisplaySendLevel) {
        let Some((item, letters)) = self.picture.items.first() else {
            return;
        };
        self.request(&DisplayRequest::EditSymbol(SYMBOL), None);
        let change = DisplayRequest::ChangeItem(*item, letters);
        match level {
            DisplaySendLevel::StopAndWait => self.ask(&change, None),
            _ => self.request(&change, None),
        }
        let whole = self.whole();
        self.ask(&DisplayRequest::EndSymbol, Some(whole));
    }
}
