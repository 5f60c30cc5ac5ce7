//! The benchmarks of a live display, one picture after another; and a display of this process, to be measured.

use crate::address::DisplayAddress;
use crate::bench::{DisplayBenchResult, DisplayBenchSubject, measure, rates};
use crate::client::DisplayClient;
use crate::listener::DisplayListener;
use crate::send_level::{DisplayPicture, DisplaySendLevel};
use crate::server::DisplayServer;
use stackline_core::error::{Error, Result};
use stackline_display::pixels;
use stackline_display::symbols::DisplayClientLimits;
use stackline_guard::interruptible::unless_stopped;
use stackline_guard::scratch::ScratchDirectory;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What is measured of a display, and how.
#[derive(Clone)]
pub struct LiveBench {
    /// Where the display is.
    pub address: DisplayAddress,
    /// Its secret; empty if it needs none.
    pub secret: Vec<u8>,
    /// The levels at which pictures are sent.
    pub levels: Vec<DisplaySendLevel>,
    /// Trials for each rate.
    pub trials: usize,
    /// Set by the user who stops it.
    pub stop: Arc<AtomicBool>,
    /// Gets what is measured next.
    pub show: Arc<dyn Fn(String) + Send + Sync>,
}

impl LiveBench {
    /// Whether the display is at the other end of this program's terminal or pipes: a single connection, which is reused, with its state,
    /// for all pictures.
    #[must_use]
    pub const fn is_single(&self) -> bool {
        matches!(
            self.address,
            DisplayAddress::Terminal | DisplayAddress::Pipe
        )
    }

    /// Measures a picture over a connection of its own, or over that of the picture `before` if there is a single one. The picture is shown
    /// until the connection is dropped.
    ///
    /// # Errors
    /// If the display cannot be reached, refuses something, or is lost; if the user stops it.
    pub fn measure(
        &self,
        picture: DisplayPicture,
        before: Option<DisplayClient>,
    ) -> Result<(DisplayClient, Vec<DisplayBenchResult>)> {
        let (bench, before) = (self.clone(), before.filter(|_| self.is_single()));
        unless_stopped(&self.stop, Duration::ZERO, Error::interrupted, move || {
            let mut client = match before {
                Some(client) => client,
                None => DisplayClient::connect(&bench.address, &bench.secret)?,
            };
            let mut on_trial = |rate: DisplayBenchSubject, trial: usize| {
                let (name, rate, number, of) = (picture.name, rate.name(), trial + 1, bench.trials);
                (bench.show)(format!("{name}, {rate}, trial {number} of {of}"));
                !bench.stop.load(Ordering::Relaxed)
            };
            let rates = rates(&picture, &bench.levels);
            let measured = measure(&mut client, &picture, &rates, bench.trials, &mut on_trial)?;
            Ok((client, measured))
        })
    }
}

/// A display on a Unix socket, served by a thread of this process.
pub struct OwnDisplay {
    server: DisplayServer,
    address: DisplayAddress,
    _directory: ScratchDirectory,
}

impl OwnDisplay {
    /// Starts it, with its socket in the directory. `say` gets why clients are disconnected.
    ///
    /// # Errors
    /// If its socket cannot be made.
    pub fn start(directory: ScratchDirectory, say: fn(&str)) -> Result<Self> {
        let address = DisplayAddress::Unix(directory.path().join("display"));
        let server = DisplayServer::new(DisplayClientLimits::default(), Vec::new());
        server.listen(DisplayListener::at(&address)?, say);
        Ok(Self {
            server,
            address,
            _directory: directory,
        })
    }

    /// Where its clients connect.
    #[must_use]
    pub const fn address(&self) -> &DisplayAddress {
        &self.address
    }

    /// The picture of its last window as PNG; `None` if it has no window.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn last_picture(&self) -> Result<Option<Vec<u8>>> {
        let png = self.server.last(|client, display| {
            let number = display.windows().map(|(_, number, _)| number).last()?;
            Some(pixels::png(display.draw(client, number)?.pixels()))
        });
        png.flatten().transpose().map_err(Error::measurement)
    }
}
