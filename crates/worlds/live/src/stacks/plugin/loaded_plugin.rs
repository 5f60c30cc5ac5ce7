//! A plug-in that is loaded for an endpoint, the errors that blame it, and its handles, which are closed under watch.

use crate::cancel::LiveCancelFlags;
use crate::error::{self, Error, Result};
use crate::foreign_call::{ForeignCall, ForeignFunction};
use crate::stacks::contract::LiveConnectParameters;
use stackline_core::plan::Stack;
use stackline_os::plugin::{
    PLUGIN_VERSION, PluginEndpoint, PluginFailure, PluginLibrary, PluginRefusal, PluginResult,
};
use stackline_os::thread::keep_standard_streams_apart;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The plug-in, as errors name it.
pub(super) fn plugin_name(stack: &Stack) -> String {
    let library = stack.text("library").unwrap_or_default();
    format!("the plug-in {library}")
}

/// A library that is loaded for an endpoint.
pub(super) struct LoadedPlugin {
    /// As errors name it.
    pub(super) name: String,
    pub(super) library: PluginLibrary,
    pub(super) endpoint: PluginEndpoint,
    pub(super) foreign: Arc<ForeignCall>,
    pub(super) settings: BTreeMap<String, String>,
}

impl LoadedPlugin {
    pub(super) fn load(parameters: &LiveConnectParameters) -> Result<Self> {
        let (stack, name) = (&parameters.stack, plugin_name(&parameters.stack));
        // What the library prints must not come among the agent's messages.
        keep_standard_streams_apart()
            .map_err(|e| error::io_error("redirecting a thread's standard streams", &e))?;
        let path = Path::new(stack.text("library").unwrap_or_default());
        let loaded = parameters
            .foreign
            .within(ForeignFunction::Load, || PluginLibrary::load(path));
        let library = loaded.map_err(|refusal| refused(&name, &refusal))?;
        let options = stack.text("options").unwrap_or_default();
        let mut settings: BTreeMap<String, String> = ["library", "options"]
            .into_iter()
            .filter_map(|option| Some((option.to_owned(), stack.text(option)?.to_owned())))
            .collect();
        let of_itself = library.name();
        if !of_itself.is_empty() {
            settings.insert("name".to_owned(), of_itself);
        }
        Ok(Self {
            name,
            library,
            endpoint: PluginEndpoint::new(
                options,
                &parameters.bind.to_string(),
                parameters.replica,
            ),
            foreign: Arc::clone(&parameters.foreign),
            settings,
        })
    }

    /// The error for a function that has failed.
    #[cold]
    pub(super) fn failure(&self, function: &str, failure: &PluginFailure) -> Error {
        let name = &self.name;
        match failure {
            PluginFailure::Failed(why) if why.is_empty() => {
                Error::measurement(format!("{name} failed in {function}"))
                    .hint("its function `last_error` can say why")
            }
            PluginFailure::Failed(why) => {
                Error::measurement(format!("{name} failed in {function}: {why}"))
            }
            PluginFailure::Broke(what) => {
                Error::environment(format!("{name} broke the interface in {function}: {what}"))
                    .hint("clients/c/stackline_stack.h says what each function returns")
            }
        }
    }

    /// The result of a function; whatever it returned when the job was ended, that is the reason.
    #[inline]
    pub(super) fn checked<T>(
        &self,
        function: ForeignFunction,
        result: PluginResult<T>,
        flags: &LiveCancelFlags,
    ) -> Result<T> {
        result.map_err(|failure| match flags.ended() {
            true => Error::interrupted(),
            false => self.failure(function.name(), &failure),
        })
    }
}

/// The error for a library that cannot be used as a stack.
fn refused(name: &str, refusal: &PluginRefusal) -> Error {
    let of_ours = format!("this stackline has version {PLUGIN_VERSION}");
    let (message, hint) = match refusal {
        PluginRefusal::NotLoaded(why) if cfg!(target_feature = "crt-static") => (
            format!("{name} cannot be loaded: {why}"),
            "a statically linked stackline, as packages have it, loads no libraries: build it with cargo, or use `over program(...)`",
        ),
        PluginRefusal::NotLoaded(why) => (
            format!("{name} cannot be loaded: {why}"),
            "give the path of a shared library; a relative path begins where the agent was started",
        ),
        PluginRefusal::NoEntry => (
            format!("{name} exports no function stackline_stack"),
            "clients/c/stackline_stack.h has its declaration",
        ),
        PluginRefusal::NotForThisVersion => (
            format!("{name} was not made for this version of the interface: {of_ours}"),
            "compile it with this stackline's stackline_stack.h",
        ),
        PluginRefusal::OtherVersion(version) => (
            format!("{name} has version {version} of the interface, but {of_ours}"),
            "compile it with this stackline's stackline_stack.h",
        ),
        PluginRefusal::Lacks(function) => (
            format!("{name} lacks the function `{function}`"),
            "clients/c/stackline_stack.h says which functions every stack has",
        ),
        PluginRefusal::HalfAGroup(function) => (
            format!("{name} lacks the function `{function}`, but has others of its group"),
            "calls and bulk transfers have all functions of their group, or none",
        ),
    };
    Error::environment(message).hint(hint)
}

/// A handle of the library's, which is closed when this is dropped; what happens then is noted as `close`.
pub(super) struct WatchedHandle<T> {
    handle: T,
    closing: EndOfClosing,
}

/// Notes that closing is over. It is dropped after the handle, because it is declared behind it.
struct EndOfClosing(Arc<ForeignCall>);

impl Drop for EndOfClosing {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<T> WatchedHandle<T> {
    pub(super) fn new(handle: T, foreign: &Arc<ForeignCall>) -> Self {
        Self {
            handle,
            closing: EndOfClosing(Arc::clone(foreign)),
        }
    }

    /// Calls a function with the handle.
    #[inline]
    pub(super) fn call<R>(
        &mut self,
        function: ForeignFunction,
        call: impl FnOnce(&mut T) -> R,
    ) -> R {
        let handle = &mut self.handle;
        self.closing.0.within(function, || call(handle))
    }
}

impl<T> Drop for WatchedHandle<T> {
    fn drop(&mut self) {
        self.closing.0.begin(ForeignFunction::Close);
    }
}
