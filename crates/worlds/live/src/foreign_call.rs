//! Which function of a plug-in an endpoint is in. A plug-in is code of others in the agent's process, so only this says, when a thread does
//! not come back, in what it hangs. Writing it is two stores in memory for each call.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// A function of a plug-in; loading it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ForeignFunction {
    Load = 1,
    Listen,
    Accept,
    Connect,
    Send,
    Receive,
    /// Receiving the token of a connection that has just been accepted.
    ReceiveToken,
    Finish,
    Close,
    Call,
    AwaitCall,
    Reply,
    StartBulk,
    AwaitStartBulk,
    StopBulk,
    AwaitStopBulk,
}

impl ForeignFunction {
    const ALL: [Self; 16] = [
        Self::Load,
        Self::Listen,
        Self::Accept,
        Self::Connect,
        Self::Send,
        Self::Receive,
        Self::ReceiveToken,
        Self::Finish,
        Self::Close,
        Self::Call,
        Self::AwaitCall,
        Self::Reply,
        Self::StartBulk,
        Self::AwaitStartBulk,
        Self::StopBulk,
        Self::AwaitStopBulk,
    ];

    /// Its name in the interface.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Load => "loading it",
            Self::Listen => "`listen`",
            Self::Accept => "`accept`",
            Self::Connect => "`connect`",
            Self::Send => "`send`",
            Self::Receive | Self::ReceiveToken => "`receive`",
            Self::Finish => "`finish`",
            Self::Close => "`close`",
            Self::Call => "`call`",
            Self::AwaitCall => "`await_call`",
            Self::Reply => "`reply`",
            Self::StartBulk => "`start_bulk`",
            Self::AwaitStartBulk => "`await_start_bulk`",
            Self::StopBulk => "`stop_bulk`",
            Self::AwaitStopBulk => "`await_stop_bulk`",
        }
    }
}

/// What one endpoint's thread writes and its agent reads.
#[derive(Debug, Default)]
pub struct ForeignCall {
    /// How many calls were begun, times 256, and the function that the thread is in; 0 for none.
    state: AtomicU64,
    /// Not 0 when a connection that has not shown the token is to be given up.
    pub(crate) expired: AtomicI32,
}

impl ForeignCall {
    /// Carries out a call of that function.
    #[inline]
    pub(crate) fn within<T>(&self, function: ForeignFunction, call: impl FnOnce() -> T) -> T {
        self.begin(function);
        let result = call();
        self.end();
        result
    }

    /// Notes that the thread is in that function from here on.
    #[inline]
    pub(crate) fn begin(&self, function: ForeignFunction) {
        // Only the endpoint's thread writes, so a load and a store are enough.
        let begun = (self.state.load(Ordering::Relaxed) | 0xff) + 1;
        self.state.store(begun | function as u64, Ordering::Relaxed);
    }

    /// Notes that the thread is in no function.
    #[inline]
    pub(crate) fn end(&self) {
        let begun = self.state.load(Ordering::Relaxed) & !0xff;
        self.state.store(begun, Ordering::Relaxed);
    }

    /// The function that the thread is in.
    pub(crate) fn function(&self) -> Option<ForeignFunction> {
        let function = self.state.load(Ordering::Relaxed) as u8;
        ForeignFunction::ALL
            .into_iter()
            .find(|known| *known as u8 == function)
    }

    /// Which call the thread is in: another number for each.
    pub(crate) fn present(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Relaxed);
        (state as u8 != 0).then_some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_known_while_it_lasts() {
        let call = ForeignCall::default();
        assert_eq!(call.function(), None);
        for function in ForeignFunction::ALL {
            let seen = call.within(function, || call.function());
            assert_eq!((seen, call.function()), (Some(function), None));
        }
    }

    #[test]
    fn two_calls_of_a_function_are_two() {
        let call = ForeignCall::default();
        let wait = || call.within(ForeignFunction::ReceiveToken, || call.present());
        let (first, second) = (wait(), wait());
        assert!(first.is_some() && second.is_some() && first != second);
        assert_eq!(call.present(), None);
    }
}
