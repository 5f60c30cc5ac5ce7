//! Reports of alerts, to a command and a webhook. Neither is waited for while probes go on.

use crate::exit::{Error, Result};
use crate::flags::ProbeFlags;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use stackline_analyze::alerts::AlertChange;
use stackline_live::push::{PushQueue, PushUrl, PushedPost};
use stackline_report::probes::{alert_variables, alert_webhook};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long a command may take.
const LONGEST_COMMAND: Duration = Duration::from_secs(30);
/// How often it is looked whether a command has ended.
const LOOK: Duration = Duration::from_millis(20);
/// Most alerts that wait for the command, and for the webhook.
const MOST_WAITING: usize = 64;
/// How long the end of all waits for the webhook.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// The variables of a command.
type AlertVariables = Vec<(&'static str, String)>;

/// Reports alerts.
pub(super) struct AlertReports {
    probe: String,
    command: Option<AlertCommand>,
    webhook: Option<PushQueue>,
}

/// A command that a thread runs for each alert.
struct AlertCommand {
    alerts: SyncSender<AlertVariables>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
    shared: Arc<AlertCommandState>,
}

#[derive(Default)]
struct AlertCommandState {
    lost: AtomicU64,
    news: Mutex<Option<String>>,
}

impl AlertReports {
    /// Starts the threads that are needed.
    pub(super) fn start(flags: &ProbeFlags, probe: &str) -> Result<Self> {
        let webhook = flags.webhook.as_deref().map(PushUrl::parse).transpose();
        let webhook = webhook.map_err(|error| error.within("--webhook"))?;
        let webhook = webhook.map(|url| PushQueue::start(url, MOST_WAITING));
        let command = flags.on_alert.as_deref().map(AlertCommand::start);
        Ok(Self {
            probe: probe.to_owned(),
            command: command.transpose()?,
            webhook: webhook.transpose()?,
        })
    }

    /// Reports an alert.
    pub(super) fn report(&self, change: &AlertChange) {
        if let Some(command) = &self.command {
            command.give(alert_variables(change, &self.probe));
        }
        if let Some(webhook) = &self.webhook {
            webhook.push(PushedPost {
                below: "",
                content_type: "application/json",
                body: alert_webhook(change, &self.probe).to_string().into_bytes(),
            });
        }
    }

    /// Reports that are lost.
    pub(super) fn lost(&self) -> u64 {
        let command = self.command.as_ref();
        let command = command.map_or(0, |command| command.shared.lost.load(Ordering::Relaxed));
        let webhook = self.webhook.as_ref().map(PushQueue::counts);
        command + webhook.map_or(0, |counts| counts.dropped + counts.refused)
    }

    /// What there is to say since the last call.
    pub(super) fn take_news(&self) -> Option<String> {
        let of_command = self.command.as_ref().and_then(|command| {
            let mut news = command.shared.news.lock().ok()?;
            news.take()
        });
        let of_webhook = || self.webhook.as_ref().and_then(PushQueue::take_news);
        of_command.or_else(of_webhook)
    }

    /// Waits a bounded time for what was begun. Returns what to say of alerts that are lost.
    pub(super) fn finish(self) -> Option<String> {
        let mut lost = 0;
        if let Some(AlertCommand {
            alerts,
            ended,
            shared,
        }) = self.command
        {
            drop(alerts);
            let _ = ended.recv_timeout(LONGEST_COMMAND + LOOK);
            lost += shared.lost.load(Ordering::Relaxed);
        }
        if let Some(webhook) = self.webhook {
            let counts = webhook.finish(LAST_WAIT);
            lost += counts.dropped + counts.refused;
        }
        (lost > 0).then(|| format!("reports of alerts that are lost: {lost}"))
    }
}

impl AlertCommand {
    fn start(text: &str) -> Result<Self> {
        let (alerts, waiting) = sync_channel::<AlertVariables>(MOST_WAITING);
        let (end, ended) = channel();
        let shared = Arc::new(AlertCommandState::default());
        let (state, text) = (Arc::clone(&shared), text.to_owned());
        thread::Builder::new()
            .name("on-alert".to_owned())
            .spawn(move || {
                let _end = end;
                for variables in waiting {
                    if let Err(why) = carried_out(&text, variables) {
                        state.lose(why);
                    }
                }
            })
            .map_err(|cause| Error::environment(format!("cannot start a thread: {cause}")))?;
        Ok(Self {
            alerts,
            ended,
            shared,
        })
    }

    fn give(&self, variables: AlertVariables) {
        match self.alerts.try_send(variables) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.shared.lose("too many alerts wait for it".to_owned());
            }
        }
    }
}

impl AlertCommandState {
    fn lose(&self, why: String) {
        self.lost.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut news) = self.news.lock() {
            *news = Some(format!("the command of --on-alert failed: {why}"));
        }
    }
}

/// Runs the command. What it prints goes to stderr, since stdout has the results.
fn carried_out(text: &str, variables: AlertVariables) -> Result<(), String> {
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    let child = Command::new("/bin/sh")
        .args(["-c", text])
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(stderr.map_or_else(|_| Stdio::null(), Stdio::from))
        // Ctrl-C is for the probe; the command has its time.
        .process_group(0)
        .spawn();
    let mut child = child.map_err(|cause| format!("/bin/sh cannot be started: {cause}"))?;
    let end = Instant::now() + LONGEST_COMMAND;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("it ended with {status}")),
            Ok(None) if Instant::now() < end => thread::sleep(LOOK),
            Ok(None) => {
                kill_group(&mut child);
                let seconds = LONGEST_COMMAND.as_secs();
                return Err(format!("it took longer than {seconds} s and was killed"));
            }
            Err(cause) => return Err(format!("it cannot be waited for: {cause}")),
        }
    }
}

/// Kills a command with all that it has started.
fn kill_group(child: &mut Child) {
    if let Ok(id) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
    }
    let _ = child.wait();
}
