//! Whether latency grows under load: the specification that measures it, at a web server or across a modelled access line, and its runs.

use crate::unattended_runs::{UnattendedOptions, make_runs_that_succeed};
use stackline_analyze::bufferbloat::{BufferbloatAnswer, ProbeForm, answer_bufferbloat};
use stackline_core::error::{Error, Result};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Plan;
use stackline_runner::spec_source::{FlagMistake, SpecSource, plan_of_flag};
use stackline_runs::{RunDirectory, RunFileAccess, runs_root};
use stackline_spec::Overrides;
use std::time::SystemTime;

/// Bytes of each request that loads the way to a web server.
const UPLOAD_BYTES: u64 = 1 << 20;
/// How long the load runs before latency is looked at, s.
const RAMP_S: u32 = 2;
/// Mean pause between two probes of a pair, ms; pauses are exponential, so that no probe follows another in step.
const PAUSE_MS: u32 = 50;
/// Pairs that probe.
const PROBERS: u32 = 2;

/// A web server that is asked.
#[derive(Clone, Debug)]
pub struct BufferbloatServer {
    /// The address of something large: it is what is downloaded.
    pub url: String,
    /// What the probes request; something small.
    pub probe: String,
    /// Where uploads are posted.
    pub upload: String,
    /// The version of HTTP, as the option `version` names it.
    pub version: String,
    /// Whether any certificate is believed.
    pub insecure: bool,
}

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

/// The probe: a connection and a request on it.
const PROBE: &str = "\
# Latency: a connection of its own for each request, at random moments.
procedure latency_probe(ramp, pause) {
  initiator {
    Delay(ramp);
    StartMeasurement;
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
        let BufferbloatServer {
            url,
            probe,
            upload,
            version,
            insecure,
        } = server;
        let over = |url: &str| {
            let scheme = url.split("://").next().unwrap_or_default();
            let believes_all = *insecure && scheme == "https";
            let insecure = if believes_all { ", insecure" } else { "" };
            format!("over {scheme}(version = {version}{insecure})")
        };
        let probes = format!(
            "{PROBERS} to \"{probe}\" latency_probe 0 {} {}",
            self.probe_times(),
            over(probe)
        );
        let (limit, loads) = (self.seconds + RAMP_S, self.loads);
        let (get, post) = (over(url), over(upload));
        format!(
            "{PROBE}1 timelimit {limit} {probes};
1 timelimit {limit} background: {probes}
  | {loads} to \"{url}\" bulk_get 64 KiB {get};
1 timelimit {limit} background: {probes}
  | {loads} to \"{upload}\" request_response {UPLOAD_BYTES} {post};
"
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
            "{PROBERS} from home to server latency_probe 64, 64 {} over tcp",
            self.probe_times()
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

{PROBE}1 timelimit {limit} {probes} {place};
1 timelimit {limit} background {place}: {probes}
  | {loads} from home to server bulk_get 64 KiB over tcp;
1 timelimit {limit} background {place}: {probes}
  | {loads} from home to server bulk_put 64 KiB over tcp;
"
        )
    }

    fn probe_times(&self) -> String {
        format!("constant({RAMP_S} s) exponential({PAUSE_MS} ms)")
    }

    fn form(&self) -> ProbeForm {
        match &self.path {
            LoadedPath::Line(_) => ProbeForm {
                round_trips: 2,
                upload_call_bytes: None,
            },
            LoadedPath::Server(server) => {
                let is_over_tcp = server.version != "http3";
                let has_tls = server.probe.starts_with("https");
                ProbeForm {
                    // TCP's, TLS's and the request's, or QUIC's and the request's.
                    round_trips: 2 + u32::from(is_over_tcp && has_tls),
                    upload_call_bytes: Some(UPLOAD_BYTES),
                }
            }
        }
    }

    /// The question's plan.
    ///
    /// # Errors
    /// An [`Error`] of the input when an address, a rate or a queue is not valid.
    pub fn plan(&self) -> Result<Plan> {
        if let LoadedPath::Server(server) = &self.path {
            for url in [&server.url, &server.probe, &server.upload] {
                let address = FarEndAddress::parse(url)?;
                if !["http", "https"].contains(&address.scheme.as_str()) {
                    let message = format!("`{url}` is not the address of a web server");
                    return Err(Error::input(message).hint("it begins with http:// or https://"));
                }
            }
        }
        let source = SpecSource::made("bufferbloat", self.specification());
        let checked = source.checked(&Overrides::default());
        checked.plan.ok_or_else(|| {
            let mistake = checked.diagnostics.into_iter().next();
            let message = mistake.map_or_else(String::new, |mistake| mistake.message);
            Error::input(format!("the question cannot be put: {message}"))
                .hint("`--spec` prints the specification; `stackline check` shows the place")
        })
    }
}

/// An error of a run without the line of the specification, which the user has not written, and with a hint about flags.
fn own_words(error: Error) -> Error {
    let whole = error.message.as_str();
    let at = whole
        .rfind(": initiator: ")
        .map(|at| at + ": initiator: ".len());
    let message = whole[at.unwrap_or(0)..].to_owned();
    let hint = if message.contains("certificate") {
        Some("for a server of your own: SSL_CERT_FILE=ITS-AUTHORITY.pem, or --insecure")
    } else if message.contains("with status") {
        Some("--probe URL names something small on the server, --upload URL what takes uploads")
    } else if message.contains("HTTP/2") || message.contains("HTTP/3") {
        Some("--http http1 is what every web server speaks")
    } else {
        None
    };
    let plain = Error::new(error.blame, message);
    match hint.map(str::to_owned).or(error.hint) {
        Some(hint) => plain.hint(hint),
        None => plain,
    }
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
    let outcome = make_runs_that_succeed(&plan, directory, options)?;
    let mut given_up = outcome.given_up;
    if outcome.records.is_empty() && !given_up.is_empty() {
        return Err(own_words(given_up.remove(0).1));
    }
    let reasons: Vec<(usize, String)> = given_up
        .into_iter()
        .map(|(index, error)| (index, own_words(error).message))
        .collect();
    Ok(BufferbloatRun {
        answer: answer_bufferbloat(&outcome.records, &reasons, question.form()),
        directory: kept,
    })
}
