//! How to request a larger socket buffer, in words: by the option of the part's stack, and for a kernel's buffer also by a sysctl, which
//! may limit what a program can request. How large the buffer has to be is decided elsewhere.

use crate::cut_buffers::{BUFFER_LIMITS, find_cut_buffers};
use crate::findings::change::PlanChange;
use crate::findings::measured::part::MeasuredPart;
use stackline_core::catalogue::{ClosedForm, FlowControl};
use stackline_core::plan::World;
use stackline_core::stack::OptionValue;

/// The default limit of what a program may request from a Linux kernel, bytes (`net.core.rmem_max`, `wmem_max`).
const USUAL_LIMIT: u64 = 212_992;

/// Which of a socket's two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketBufferSide {
    Send,
    Receive,
}

impl SocketBufferSide {
    /// The option that requests a buffer of `bytes`: `tcp(send_buffer = 65536)`, with `...` if the size is not known.
    pub(crate) fn option(self, part: &MeasuredPart<'_>, bytes: Option<u64>) -> String {
        let (stack, name) = (part.plan.stack.name.as_str(), self.name(part));
        let sysctl = if self == Self::Send {
            "net.ipv4.tcp_wmem"
        } else {
            "net.ipv4.tcp_rmem"
        };
        let asked = bytes;
        let bytes = bytes.map_or_else(|| "...".to_owned(), |bytes| bytes.to_string());
        let option = format!("`{stack}({name} = {bytes})`{}", self.limit(part, asked));
        if part.plan.stack.facts.flow_control == FlowControl::KernelBuffers {
            format!("{option}, or sysctl {sysctl}")
        } else {
            option
        }
    }

    /// In words, the sysctl that has to be raised before a kernel grants that many bytes; empty if none has to.
    fn limit(self, part: &MeasuredPart<'_>, asked: Option<u64>) -> String {
        let facts = &part.plan.stack.facts;
        let is_kernels =
            facts.flow_control == FlowControl::KernelBuffers || facts.form == ClosedForm::Udp;
        let Some(asked) = asked.filter(|_| is_kernels && part.world != World::Simulated) else {
            return String::new();
        };
        let Some((name, sysctl)) = BUFFER_LIMITS
            .into_iter()
            .find(|(name, _)| *name == self.name(part))
        else {
            return String::new();
        };
        let sides = part
            .records
            .iter()
            .flat_map(|r| [&r.initiator, &r.responder]);
        let cut = sides
            .flat_map(|side| find_cut_buffers(&part.plan.stack, part.world, side))
            .find(|cut| cut.option == name);
        match cut {
            Some(cut) if asked > cut.given_bytes => format!(
                " with sysctl {sysctl}, which limited it to {} B, raised to {asked}",
                cut.given_bytes
            ),
            None if asked > USUAL_LIMIT => {
                format!(", unless sysctl {sysctl} limits it to less")
            }
            _ => String::new(),
        }
    }

    /// The name of the stack's option for this buffer.
    fn name(self, part: &MeasuredPart<'_>) -> &'static str {
        match self {
            Self::Send => "send_buffer",
            Self::Receive if part.grants() => "buffer",
            Self::Receive => "receive_buffer",
        }
    }

    /// The change of the plan that requests a buffer of `bytes`.
    pub(crate) fn change(self, part: &MeasuredPart<'_>, bytes: u64) -> PlanChange {
        PlanChange::Option(part.index, self.name(part), OptionValue::Number(bytes))
    }
}
