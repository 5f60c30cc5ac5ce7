//! How a larger buffer is requested, in words: by the option of the part's own stack, and where a kernel keeps the buffer by
//! its setting too. It never decides how large one has to be.

use crate::findings::change::PlanChange;
use crate::findings::measured::part::MeasuredPart;
use stackline_core::catalogue::FlowControl;
use stackline_core::stack::OptionValue;

/// Which buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketBufferSide {
    Send,
    Receive,
}

impl SocketBufferSide {
    /// What requests it: `tcp(send_buffer = 65536)`, with `...` where the bytes are not known.
    pub(crate) fn option(self, part: &MeasuredPart<'_>, bytes: Option<u64>) -> String {
        let (stack, name) = (part.plan.stack.name.as_str(), self.name(part));
        let sysctl = if self == Self::Send {
            "net.ipv4.tcp_wmem"
        } else {
            "net.ipv4.tcp_rmem"
        };
        let bytes = bytes.map_or_else(|| "...".to_owned(), |bytes| bytes.to_string());
        let option = format!("`{stack}({name} = {bytes})`");
        if part.plan.stack.facts.flow_control == FlowControl::KernelBuffers {
            format!("{option}, or sysctl {sysctl}")
        } else {
            option
        }
    }

    fn name(self, part: &MeasuredPart<'_>) -> &'static str {
        match self {
            Self::Send => "send_buffer",
            Self::Receive if part.grants() => "buffer",
            Self::Receive => "receive_buffer",
        }
    }

    /// A buffer of so many bytes, as a change of the plan.
    pub(crate) fn change(self, part: &MeasuredPart<'_>, bytes: u64) -> PlanChange {
        PlanChange::Option(part.index, self.name(part), OptionValue::Number(bytes))
    }
}
