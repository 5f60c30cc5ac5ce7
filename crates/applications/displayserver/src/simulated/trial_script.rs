//! The script of a simulated client: its actions (requests, waits, begin and end of trials) and, for each request, how long the display
//! draws. A trial is one measurement of a rate: how long a picture takes to define or draw.

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
    /// Its number in the order of sending; `Hello` is 0.
    pub(super) number: u32,
    /// The request as it is sent.
    pub(super) bytes: Vec<u8>,
    /// The difference between its simulated length and the length of `bytes`, bytes; negative if it is shorter on the network.
    pub(super) beyond: isize,
    /// How long the display draws for it, ns at speed 1. None if its effect is drawn together with that of a later request.
    pub(super) draw: Option<f64>,
    /// Whether the display answers it.
    pub(super) wants: bool,
    /// Whether the time of drawing it is recorded as the time of a trial.
    pub(super) timed: bool,
}

impl SimulatedDisplayRequest {
    /// Its simulated length, bytes.
    pub(super) const fn length(&self) -> usize {
        self.bytes.len().saturating_add_signed(self.beyond)
    }
}

/// An action of the client.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Makes a request, which is gathered with others before they are handed over.
    Request(SimulatedDisplayRequest),
    /// Hands over the gathered requests, and waits until every request that asks for an answer has been answered.
    Await,
    /// Hands over the gathered requests.
    Hand,
    /// Begins a trial.
    Begin,
    /// Ends the trial.
    End,
}

/// The actions of a client for all trials of one rate.
#[derive(Debug, Default)]
pub(super) struct DisplayTrialScript {
    pub(super) actions: VecDeque<Action>,
}

impl DisplayTrialScript {
    pub(super) fn from_scene(
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
        // A window of one pixel: drawing times are given by the costs, and the pixels are never looked at.
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

/// The time to draw each symbol by its number, ns; that of `SYMBOL` is the time of the whole picture.
fn costs(drawing: &DisplayDrawingCosts, picture: &DisplayPicture) -> BTreeMap<u32, f64> {
    let mut costs = BTreeMap::new();
    for (number, items) in &picture.symbols {
        let all = items
            .iter()
            .map(|item| drawing_calls(drawing, &costs, item, 0))
            .sum();
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

/// The time to draw an item, ns; for a call, that of the symbol that it calls (0 if unknown).
fn drawing_calls(
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

/// Builds a [`DisplayTrialScript`].
struct DisplayScriptWriter<'s> {
    scene: &'s SimulatedDisplayScene<'s>,
    picture: &'s DisplayPicture,
    /// The time to draw each symbol, ns.
    costs: BTreeMap<u32, f64>,
    /// How many requests there are so far.
    requests: u32,
    script: DisplayTrialScript,
}

impl DisplayScriptWriter<'_> {
    /// Adds a request with its length on the network. `Hello` and `Sync` are always answered, others if `wants`.
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

    /// Adds a request that does not ask for an answer.
    fn request(&mut self, request: &DisplayRequest<'_>, draw: Option<f64>) {
        self.job(request, draw, false, false);
    }

    /// Adds a request that asks for an answer, and waits for it.
    fn ask(&mut self, request: &DisplayRequest<'_>, draw: Option<f64>) {
        let asks = !matches!(
            request,
            DisplayRequest::Hello { .. } | DisplayRequest::Sync(_)
        );
        self.job(request, draw, asks, false);
        self.script.actions.push_back(Action::Await);
    }

    /// Adds one trial. First the symbol is defined, empty or with the picture as the rate needs it, and the window set to show it or
    /// nothing; then come the measured requests.
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

    /// The measured part of `Construction`: the symbol is defined without being shown. The trial ends once all requests are handed over;
    /// the answer is awaited after it.
    fn constructed(&mut self) {
        self.request(&DisplayRequest::DefineSymbol(SYMBOL), None);
        self.items(|_, _| None);
        self.job(&DisplayRequest::EndSymbol, None, true, false);
        self.script
            .actions
            .extend([Action::Hand, Action::End, Action::Await]);
    }

    /// The time to draw the whole picture, ns.
    fn whole(&self) -> f64 {
        self.costs.get(&SYMBOL).copied().unwrap_or(0.0)
    }

    /// Adds all items of the picture; `draw` gives the drawing time of an item with that many letters.
    fn items(&mut self, draw: impl Fn(&DisplayItem, usize) -> Option<f64>) {
        let picture = self.picture;
        for (item, letters) in &picture.items {
            self.request(
                &DisplayRequest::AddItem(*item, letters),
                draw(item, letters.len()),
            );
        }
    }

    /// Defines the whole picture as one symbol, which is drawn if it is `seen`: item by item, or when it is complete.
    fn defined(&mut self, seen: bool) {
        let drawing = self.scene.drawing;
        let growing = seen && self.scene.shown == SymbolDrawMoment::Growing;
        self.request(&DisplayRequest::DefineSymbol(SYMBOL), None);
        self.items(|item, letters| growing.then(|| drawing.item(item, letters)));
        let rest = (seen && !growing).then(|| self.whole());
        self.ask(&DisplayRequest::EndSymbol, rest);
    }

    /// The measured part of a picture that is sent at a level.
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

    /// Defines one symbol of a structured picture. Only `SYMBOL`, the whole, is shown and therefore drawn.
    fn structured(&mut self, number: u32, items: &[DisplayItem]) {
        let is_whole = number == SYMBOL;
        let growing = is_whole && self.scene.shown == SymbolDrawMoment::Growing;
        self.request(&DisplayRequest::DefineSymbol(number), None);
        for item in items {
            let draw = growing.then(|| drawing_calls(&self.scene.drawing, &self.costs, item, 0));
            self.request(&DisplayRequest::AddItem(*item, b""), draw);
        }
        let rest = (is_whole && !growing).then(|| self.whole());
        self.ask(&DisplayRequest::EndSymbol, rest);
    }

    /// The measured part if the agent has the picture (class `Distributed`): one item is changed, and the whole picture is drawn again.
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
