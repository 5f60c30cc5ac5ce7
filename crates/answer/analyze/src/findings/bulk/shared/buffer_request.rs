//! How a larger buffer is requested, in words: by the option of the part's own stack, and where a kernel keeps the buffer by
//! its setting too, or bounds what may be asked for. It never decides how large one has to be.

use crate::cut_buffers::{BUFFER_LIMITS, find_cut_buffers};
use crate::findings::change::PlanChange;
use crate::findings::measured::part::MeasuredPart;
use stackline_core::catalogue::{ClosedForm, FlowControl};
use stackline_core::plan::World;
use stackline_core::stack::OptionValue;

/// What a kernel lets a program ask for where nobody raised it.
const USUAL_LIMIT: u64 = 212_992;

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
        let asked = bytes;
        let bytes = bytes.map_or_else(|| "...".to_owned(), |bytes| bytes.to_string());
        let option = format!("`{stack}({name} = {bytes})`{}", self.limit(part, asked));
        if part.plan.stack.facts.flow_control == FlowControl::KernelBuffers {
            format!("{option}, or sysctl {sysctl}")
        } else {
            option
        }
    }

    /// What has to be raised before a kernel gives so many bytes.
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
