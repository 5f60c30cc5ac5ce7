//! Whether latency grows under load: the specification that measures it, at a web server or across a modelled access line, and its runs.
//!
//! Probes are those of the IETF's draft (draft-ietf-ippm-responsiveness-09, 5.3): *foreign* ones open a connection of their own for each
//! request, *self* ones are requests on the connections that carry the load.

mod web_server;

pub use web_server::{BufferbloatAddresses, BufferbloatServer, WebAddress};

use crate::unattended_runs::{UnattendedOptions, make_runs_that_succeed};
use stackline_analyze::bufferbloat::{
    BufferbloatAnswer, LoadedPhase, ProbeForm, answer_bufferbloat,
};
use stackline_core::error::{Error, Result};
use stackline_core::plan::Plan;
use stackline_runner::spec_source::{FlagMistake, SpecSource, plan_of_flag};
use stackline_runs::{RunDirectory, RunFileAccess, runs_root};
use stackline_spec::Overrides;
use std::time::SystemTime;
use web_server::{has_tls, shown_version};

/// How long the load runs before latency is looked at, s.
const RAMP_S: u32 = 2;
/// Mean pause between two foreign probes of a pair, ms; pauses are exponential, so that no probe follows another in step.
const PAUSE_MS: u32 = 50;
/// Pairs that make foreign probes.
const PROBERS: u32 = 2;

/// A modelled access line.
#[derive(Clone, Debug)]
pub struct AccessLine {
    /// Its rate towards the user, as the language writes rates.
    pub down: String,
    /// Its rate from the user.
    pub up: String,
    /// The round trip without load.
    pub rtt: String,
    /// The queues at its two ends, as the language writes them.
    pub queue: String,
    /// The world, `simulated` or `emulated`.
    pub world: String,
}

impl AccessLine {
    /// Checks what the flags say of the line.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn check(&self) -> std::result::Result<(), FlagMistake> {
        for (flag, value, unit) in [
            ("--down", &self.down, "Mbit/s"),
            ("--up", &self.up, "Mbit/s"),
            ("--rtt", &self.rtt, "ms"),
        ] {
            has_unit(flag, value, unit)?;
        }
        let rate = "network access { host a, b; link a - b ";
        let delay = "network access { host a, b; link a - b 1 Mbit/s ";
        let queue = "network access { host a, b; link a - b 1 Mbit/s 0 s queue ";
        let flags = [
            ("--down", [rate, &self.down, " 0 s; }"], "100 Mbit/s"),
            ("--up", [rate, &self.up, " 0 s; }"], "20 Mbit/s"),
            ("--rtt", [delay, &self.rtt, "; }"], "20 ms"),
            (
                "--queue",
                [queue, &self.queue, "; }"],
                "1000 packets fq_codel",
            ),
        ];
        flags
            .into_iter()
            .try_for_each(|(flag, text, example)| plan_of_flag(flag, text, example).map(drop))
    }
}

/// Refuses a number alone, with the unit that most likely is meant.
fn has_unit(flag: &str, value: &str, unit: &str) -> Result<()> {
    let number = value.trim();
    match number.parse::<f64>() {
        Ok(_) => Err(Error::input(format!("{flag}: `{number}` has no unit"))
            .hint(format!("write {flag} '{number} {unit}'"))),
        Err(_) => Ok(()),
    }
}

/// What is loaded.
#[derive(Clone, Debug)]
pub enum LoadedPath {
    /// The way to a web server.
    Server(BufferbloatServer),
    /// A modelled access line.
    Line(AccessLine),
}

/// The question.
#[derive(Clone, Debug)]
pub struct BufferbloatQuestion {
    /// What is loaded.
    pub path: LoadedPath,
    /// How long latency is looked at in each phase, s.
    pub seconds: u32,
    /// Connections that load the path.
    pub loads: u32,
}

/// The foreign probe: a connection and a request on it.
const FOREIGN_PROBE: &str = "\
# Latency: a connection of its own for each request, at random moments.
procedure foreign_probe(ramp, pause) {
  initiator {
    StartMeasurement;
    Delay(ramp);
    repeat count {
      Delay(pause);
      ConnectRequest;
      RPCCall(unit, reply);
      DisconnectRequest;
    }
    StopMeasurement;
  }
  responder {
    repeat count {
      AwaitConnectIndication;
      RPCAwaitCallInd(unit);
      RPCReturn(reply);
      AwaitDisconnectIndication;
    }
  }
}

";

/// The self probe: a request on a connection that is open.
const SELF_PROBE: &str = "\
# Latency on a connection that is open, and carries the load where there is one.
procedure self_probe(ramp, pause) {
  initiator {
    ConnectRequest;
    StartMeasurement;
    Delay(ramp);
    repeat count {
      Delay(pause);
      RPCCall(unit, reply);
    }
    StopMeasurement;
    DisconnectRequest;
  }
  responder {
    AwaitConnectIndication;
    repeat count {
      RPCAwaitCallInd(unit);
      RPCReturn(reply);
    }
    AwaitDisconnectIndication;
  }
}

";

/// The load upwards: what has left of a request counts before it is answered, so slow lines have a figure, and no request is longer than web
/// servers accept by default.
const UPLOAD: &str = "\
# Requests of 1 MiB, one after the other, of which every unit counts.
procedure upload {
  initiator {
    ConnectRequest;
    StartMeasurement;
    repeat count {
      StartBulkPut;
      repeat 16 { DataRequest(unit); }
      StopBulkPut;
    }
    StopMeasurement;
    DisconnectRequest;
  }
  responder {
    AwaitConnectIndication;
    repeat count {
      AwaitStartBulkPut;
      repeat 16 { AwaitDataIndication(unit); }
      AwaitStopBulkPut;
    }
    AwaitDisconnectIndication;
  }
}

";

impl BufferbloatQuestion {
    /// The specification: three measurements, whose first parts probe.
    #[must_use]
    pub fn specification(&self) -> String {
        match &self.path {
            LoadedPath::Server(server) => self.at_server(server),
            LoadedPath::Line(line) => self.across_line(line),
        }
    }

    fn at_server(&self, server: &BufferbloatServer) -> String {
        let (limit, loads) = (self.seconds + RAMP_S, self.loads);
        let over = |address: &WebAddress, shared: &str| {
            let scheme = if has_tls(&address.url) {
                "https"
            } else {
                "http"
            };
            let believes_all = server.insecure && has_tls(&address.url);
            let insecure = if believes_all { ", insecure" } else { "" };
            format!(
                "over {scheme}(version = {}{insecure}{shared})",
                address.version
            )
        };
        let probe = &server.probe;
        let foreign = format!(
            "{PROBERS} to \"{}\" foreign_probe 0 {} {}",
            probe.url,
            self.pauses(PAUSE_MS),
            over(probe, "")
        );
        let own = |shared: &str| {
            format!(
                "\n  | {loads} to \"{}\" self_probe 0 {} {}",
                probe.url,
                self.pauses(self.self_pause_ms()),
                over(probe, shared)
            )
        };
        // Without the probes the load has its connections to itself.
        let loaded = |address: &WebAddress, work: &str, method: &str| {
            let (own, shared) = match server.shares_with(address) {
                true => (own(&format!("{LOADED}{method}")), LOADED),
                false => (String::new(), ""),
            };
            let over = over(address, &format!("{shared}{method}"));
            format!(
                "1 timelimit {limit} background: {foreign}{own}\n  | {loads} to \"{}\" {work} {over};\n",
                address.url
            )
        };
        let (procedure, idle) = if self.probes_itself(LoadedPhase::Idle) {
            (SELF_PROBE, format!("background: {foreign}{}", own("")))
        } else {
            ("", foreign.clone())
        };
        format!(
            "{FOREIGN_PROBE}{procedure}{UPLOAD}1 timelimit {limit} {idle};\n{}{}",
            loaded(&server.download, "bulk_get 64 KiB", ""),
            loaded(
                &server.upload,
                "upload 64 KiB",
                ", method = post, content_length = 1 MiB"
            ),
        )
    }

    fn across_line(&self, line: &AccessLine) -> String {
        let AccessLine {
            down,
            up,
            rtt,
            queue,
            world,
        } = line;
        let probes = format!(
            "{PROBERS} from home to server foreign_probe 64, 64 {} over tcp",
            self.pauses(PAUSE_MS)
        );
        let (limit, loads) = (self.seconds + RAMP_S, self.loads);
        let place = format!("across access in {world}");
        format!(
            "network access {{
  host home, server;
  router gateway, provider;
  link home - gateway 10 Gbit/s 0 s;
  link gateway -> provider {up} 0 s queue {queue};
  link provider -> gateway {down} {rtt} queue {queue};
  link provider - server 10 Gbit/s 0 s;
}}

{FOREIGN_PROBE}1 timelimit {limit} {probes} {place};
1 timelimit {limit} background {place}: {probes}
  | {loads} from home to server bulk_get 64 KiB over tcp;
1 timelimit {limit} background {place}: {probes}
  | {loads} from home to server bulk_put 64 KiB over tcp;
"
        )
    }

    fn pauses(&self, mean_ms: u32) -> String {
        format!("constant({RAMP_S} s) exponential({mean_ms} ms)")
    }

    /// The pause of self probes, with which all connections together have as many as there are foreign ones.
    const fn self_pause_ms(&self) -> u32 {
        PAUSE_MS * self.loads / PROBERS
    }

    /// Whether a phase has self probes. Without load they are on connections that are open, so that they can be compared.
    fn probes_itself(&self, phase: LoadedPhase) -> bool {
        let LoadedPath::Server(server) = &self.path else {
            return false;
        };
        let shares = |load| server.shares_with(load);
        match phase {
            LoadedPhase::Idle => shares(&server.download) || shares(&server.upload),
            LoadedPhase::Download => shares(&server.download),
            LoadedPhase::Upload => shares(&server.upload),
        }
    }

    fn form(&self) -> ProbeForm {
        let phases = LoadedPhase::ALL.into_iter();
        ProbeForm {
            self_probed: phases.filter(|phase| self.probes_itself(*phase)).collect(),
            why_no_self_probes: match &self.path {
                LoadedPath::Line(_) => "over TCP a connection carries one thing at a time",
                LoadedPath::Server(server) => server.why_not_shared(),
            },
        }
    }

    /// The version of HTTP that is spoken, as people write it; absent across a line.
    #[must_use]
    pub fn shown_http_version(&self) -> Option<&'static str> {
        match &self.path {
            LoadedPath::Server(server) => Some(shown_version(&server.download.version)),
            LoadedPath::Line(_) => None,
        }
    }

    /// The question's plan.
    ///
    /// # Errors
    /// An [`Error`] of the input when a rate or a queue is not valid.
    pub fn plan(&self) -> Result<Plan> {
        let source = SpecSource::made("bufferbloat", self.specification());
        let checked = source.checked(&Overrides {
            keeps_calls: true,
            ..Overrides::default()
        });
        checked.plan.ok_or_else(|| {
            let mistake = checked.diagnostics.into_iter().next();
            let message = mistake.map_or_else(String::new, |mistake| mistake.message);
            Error::input(format!("the question cannot be put: {message}"))
                .hint("`--spec` prints the specification; `stackline check` shows the place")
        })
    }
}

/// The option that puts probes on the connections of a load.
const LOADED: &str = ", connection = load";

/// An error of a run without the line of the specification, which the user has not written, and with a hint about flags.
fn own_words(error: Error) -> Error {
    let whole = error.message.as_str();
    let at = whole
        .rfind(": initiator: ")
        .map(|at| at + ": initiator: ".len());
    let message = whole[at.unwrap_or(0)..].to_owned();
    let wants_authority = |hint: &str| hint.contains("SSL_CERT_FILE");
    let hint = if error.hint.as_deref().is_some_and(wants_authority) {
        Some("for a server of your own: SSL_CERT_FILE=ITS-AUTHORITY.pem, or --insecure")
    } else if message.contains("certificate") {
        Some("--insecure accepts every certificate")
    } else if message.contains("with status") {
        Some(
            "URL names what is downloaded, --probe URL something small, --upload URL what takes uploads",
        )
    } else if message.contains("before it had received its body") {
        Some("--upload URL names what reads uploads")
    } else if ["HTTP/2", "HTTP/3", "ALPN"]
        .iter()
        .any(|word| message.contains(word))
    {
        Some("--http 1 is what every web server speaks")
    } else {
        None
    };
    let plain = Error::new(error.blame, message);
    match hint.map(str::to_owned).or(error.hint) {
        Some(hint) => plain.hint(hint),
        None => plain,
    }
}

/// The same of an error in the measurement with that index, with the address whose answer it is.
fn own_words_of(question: &BufferbloatQuestion, index: usize, error: Error) -> Error {
    let mut error = own_words(error);
    if let (LoadedPath::Server(server), true) =
        (&question.path, error.message.contains("with status"))
    {
        // Without load there are probes alone; with it, these have been answered before.
        let asked = [&server.probe, &server.download, &server.upload];
        let asked = asked.get(index).map(|address| address.url.as_str());
        error.message += &asked.map_or_else(String::new, |url| format!(": {url}"));
    }
    error
}

/// A question that was answered.
#[derive(Debug)]
pub struct BufferbloatRun {
    /// Its answer.
    pub answer: BufferbloatAnswer,
    /// The directory of its runs.
    pub directory: String,
}

/// Makes the runs of a question and answers it.
///
/// # Errors
/// If nothing could be measured.
pub fn measure_bufferbloat(
    question: &BufferbloatQuestion,
    access: RunFileAccess,
    options: UnattendedOptions<'_>,
) -> Result<BufferbloatRun> {
    let plan = question.plan()?;
    let directory = RunDirectory::create(&runs_root(), "bufferbloat", SystemTime::now(), access)?;
    directory.write_specification(&question.specification())?;
    let kept = directory.path().display().to_string();
    let outcome = make_runs_that_succeed(&plan, directory, options).map_err(own_words)?;
    let mut given_up = outcome.given_up;
    // Without load, or without what it is compared to, there is no answer.
    let (has_idle, failed) = (given_up.iter().all(|(index, _)| *index > 0), given_up.len());
    if failed > 0 && (!has_idle || failed == LoadedPhase::ALL.len() - 1) {
        let (index, error) = given_up.remove(0);
        return Err(own_words_of(question, index, error));
    }
    let reasons: Vec<(usize, String)> = given_up
        .into_iter()
        .map(|(index, error)| (index, own_words_of(question, index, error).message))
        .collect();
    let records = &outcome.records;
    Ok(BufferbloatRun {
        answer: answer_bufferbloat(records, &reasons, &question.form()).with_flags(&plan, records),
        directory: kept,
    })
}
