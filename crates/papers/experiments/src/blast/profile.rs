//! The host profiles of the paper: each is a network in the specification language, from which the costs of the paper's formulas follow.

use super::formulas::BlastCostModel;
use super::formulas::costs::Sizes;
use crate::profile;
use stackline_core::error::{Error, Result};
use stackline_core::network::{LinkRate, Network};

/// The specification of the profiles: two SUN workstations with 3-Com interfaces, as one network per profile.
pub(super) const TEXT: &str = include_str!("../../data/blast.stackline");

/// The networks of all profiles.
pub(super) struct Profiles {
    networks: Vec<Network>,
}

/// What a pair of hosts runs, and how many send buffers their interfaces have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlastHostProfile {
    /// Programs without an operating system, one send buffer.
    Standalone,
    /// Programs without an operating system, two send buffers.
    StandaloneDouble,
    /// The V kernel, one send buffer.
    Kernel,
}

impl BlastHostProfile {
    /// The name of its network in [`TEXT`].
    const fn name(self) -> &'static str {
        match self {
            Self::Standalone => "sun",
            Self::StandaloneDouble => "sun_double",
            Self::Kernel => "sun_kernel",
        }
    }
}

impl Profiles {
    /// Parses [`TEXT`].
    pub(super) fn read() -> Result<Self> {
        Ok(Self {
            networks: profile::networks(TEXT)?,
        })
    }

    /// The network of a profile.
    pub(super) fn network(&self, host: BlastHostProfile) -> Result<&Network> {
        let found = self
            .networks
            .iter()
            .find(|network| network.name == host.name());
        found.ok_or_else(|| Error::measurement(format!("unknown host profile {}", host.name())))
    }

    /// C, Ca, T, Ta and the latency of a profile, in seconds, rounded to the nanosecond as the network model charges them.
    pub(super) fn costs(&self, host: BlastHostProfile) -> Result<BlastCostModel> {
        let network = self.network(host)?;
        let (Some(first), [link]) = (network.hosts.first(), &network.links[..]) else {
            return Err(Error::measurement(format!(
                "the host profile {} does not consist of two hosts",
                host.name()
            )));
        };
        let LinkRate::Constant(rate) = link.rate else {
            return Err(Error::measurement(format!(
                "the host profile {} has no constant rate",
                host.name()
            )));
        };
        let copying = &first.interface;
        let (packet, byte) = (
            copying.copy_per_packet.seconds(),
            copying.copy_ns_per_byte / 1e9,
        );
        let BlastCostModel {
            copy_data,
            copy_ack,
            send_data,
            send_ack,
            latency,
        } = BlastCostModel::from_sizes(Sizes::PAPER, rate, packet, byte, link.delay.seconds());
        let [copy_data, copy_ack, send_data, send_ack, latency] =
            [copy_data, copy_ack, send_data, send_ack, latency]
                .map(|seconds| (seconds * 1e9).round() / 1e9);
        Ok(BlastCostModel {
            copy_data,
            copy_ack,
            send_data,
            send_ack,
            latency,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profiles_have_the_papers_costs() {
        let profiles = Profiles::read().unwrap();
        let paper = [
            (
                BlastHostProfile::Standalone,
                BlastCostModel::STANDALONE,
                true,
            ),
            (
                BlastHostProfile::StandaloneDouble,
                BlastCostModel::STANDALONE,
                false,
            ),
            (BlastHostProfile::Kernel, BlastCostModel::V_KERNEL, true),
        ];
        for (host, printed, single_buffered) in paper {
            let costs = profiles.costs(host).unwrap();
            assert_eq!(
                (costs.copy_data, costs.copy_ack),
                (printed.copy_data, printed.copy_ack)
            );
            assert_eq!(
                (costs.send_data, costs.send_ack, costs.latency),
                (819.2e-6, 51.2e-6, 10e-6)
            );
            let network = profiles.network(host).unwrap();
            assert!(
                network
                    .hosts
                    .iter()
                    .all(|host| host.interface.single_buffered == single_buffered)
            );
        }
    }

    #[test]
    fn the_text_is_in_the_usual_form() {
        assert_eq!(stackline_spec::format(TEXT).unwrap(), TEXT);
    }
}
