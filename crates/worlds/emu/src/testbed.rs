//! Builds an emulated network's hosts: a network namespace each, connected to this process by a veth pair for each of its interfaces. This process is in the
//! central namespace, which holds the other ends of the pairs.
//!
//! ```text
//! host's namespace   eth0  10.71.x.y/32, default via 169.254.71.1; fd71::z/128, default via fe80::71:1
//!                     |
//! central namespace  port N: a packet socket receives what the host sends, and sends what it is to receive
//! ```
//! Namespaces and interfaces have no name outside this process: everything is gone when the process ends.

use crate::error::{self, Error, Result};
use crate::mptcp_endpoints::{self, MptcpEndpoint};
use crate::namespace;
use crate::namespace_links::{self, HostVethPair};
use crate::netlink_requests::{RefusedRtnlRequest, Rtnl, RtnlBatch};
use crate::packet_sockets;
use crate::path_mtu::{self, PathMtus};
use crate::veth_port::{self, VethPort};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use stackline_core::network::Network;
use stackline_core::plan::ProcessorShare;
use stackline_net::interfaces::{InterfaceOfHost, InterfaceTable};
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::thread;

/// File descriptors needed beside those of each host (its namespace) and each of its interfaces (a packet socket). A small network also needs one for each
/// transmit ring.
const SPARE_FILES: u64 = 128;

/// The hosts of a network; they exist as long as this value.
#[derive(Debug)]
pub struct Testbed {
    /// The user namespace that owns the hosts, if there is one.
    pub user: Option<File>,
    /// In the order of the network.
    pub hosts: Vec<TestbedHost>,
}

/// One host.
#[derive(Debug)]
pub struct TestbedHost {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its IPv6 address, if this kernel and its links carry IPv6.
    pub address_v6: Option<Ipv6Addr>,
    /// The addresses of its interfaces behind the first.
    pub further: Vec<IpAddr>,
    /// Its network namespace.
    pub net: File,
    /// The share of a processor that its programs get.
    pub share: Option<ProcessorShare>,
}

/// Makes the hosts and their ports. The process must have one thread; it leaves the machine's network for good.
pub fn build(network: &Network) -> Result<(Testbed, Vec<VethPort>)> {
    crate::CAPABILITIES.accepts(network)?;
    let interfaces = InterfaceTable::new(network);
    check_limits(network.hosts.len(), interfaces.all().len())?;
    let path_mtus = path_mtu::path_mtus(network, &interfaces);
    let user = namespace::unshare_network()?;
    set_up_central_namespace()?;
    let plan = HostInterfacesPlan {
        interfaces: &interfaces,
        path_mtus: &path_mtus,
        ecn: network.marks(),
    };
    let nets = hosts(&plan, network.hosts.len() as u32)?;
    let ports = (0..)
        .zip(interfaces.all().iter().zip(&path_mtus))
        .map(|(number, (interface, mtus))| port(number, interface, mtus))
        .collect::<Result<Vec<_>>>()?;
    let hosts = network.hosts.iter().zip(0..).zip(nets);
    let hosts = hosts.map(|((host, number), net)| TestbedHost {
        name: host.name.clone(),
        address: veth_port::address(number, 0),
        address_v6: plan
            .carries_ipv6(number as usize)
            .then(|| veth_port::address_v6(number, 0)),
        further: further_addresses(&plan, number),
        net,
        share: host.share,
    });
    Ok((
        Testbed {
            user,
            hosts: hosts.collect(),
        },
        ports,
    ))
}

/// How the interfaces of hosts are to be set up.
struct HostInterfacesPlan<'a> {
    interfaces: &'a InterfaceTable,
    /// By place of the interface among all.
    path_mtus: &'a [PathMtus],
    /// Whether TCP requests ECN.
    ecn: bool,
}

impl HostInterfacesPlan<'_> {
    /// Whether the interface at this place among all has IPv6.
    fn carries_ipv6(&self, place: usize) -> bool {
        self.path_mtus[place].carries_ipv6() && namespace::has_ipv6()
    }

    /// The addresses of a host, by interface, and the number of their interface.
    fn addresses(&self, host: u32) -> Vec<(IpAddr, u32)> {
        let of_interface = |(place, one): (usize, InterfaceOfHost)| {
            let four = IpAddr::V4(veth_port::address(host, one.index));
            let six = IpAddr::V6(veth_port::address_v6(host, one.index));
            let six = self.carries_ipv6(place).then_some((six, one.index));
            [Some((four, one.index)), six].into_iter().flatten()
        };
        self.interfaces
            .of_host(host)
            .flat_map(of_interface)
            .collect()
    }
}

/// The addresses of a host's interfaces behind the first.
fn further_addresses(plan: &HostInterfacesPlan<'_>, host: u32) -> Vec<IpAddr> {
    let all = plan.addresses(host).into_iter();
    let further = all.filter(|(_, interface)| *interface > 0);
    further.map(|(address, _)| address).collect()
}

/// Moves this process to a network namespace with nothing but loopback, for measurements between two threads. Called at
/// the start of the process, while it has one thread.
pub fn isolate() -> Result<()> {
    namespace::unshare_network()?;
    set_up_central_namespace()
}

/// Checks that this process may have enough file descriptors for so many hosts and their interfaces, and raises its limit to that.
fn check_limits(hosts: usize, interfaces: usize) -> Result<()> {
    let wanted = (hosts + interfaces) as u64 + SPARE_FILES;
    let limit = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|e| error::call_failed("reading the open-file limit", e))?;
    if limit.1 < wanted {
        let message = format!(
            "{hosts} emulated hosts need {wanted} file descriptors, but the limit is {}",
            limit.1
        );
        return Err(error::environment(message)
            .hint(format!("use `ulimit -Hn {wanted}` or `--in simulated`")));
    }
    setrlimit(Resource::RLIMIT_NOFILE, limit.0.max(wanted), limit.1)
        .map_err(|e| error::call_failed("raising the open-file limit", e))
}

/// Turns IPv6 off and loopback on in this process's namespace.
fn set_up_central_namespace() -> Result<()> {
    let failed = |error| error::call_failed("setting up the central namespace", error);
    namespace::disable_ipv6().map_err(failed)?;
    let mut batch = RtnlBatch::default();
    namespace_links::set_loopback_up(&mut batch);
    Rtnl::open()
        .map_err(failed)?
        .carry_out(batch)
        .map_err(refused)
}

/// Makes the hosts' namespaces with their interfaces, in the order of the network. Several threads make them at once, because the kernel
/// mostly waits meanwhile.
fn hosts(plan: &HostInterfacesPlan<'_>, count: u32) -> Result<Vec<File>> {
    let namespace = namespace::current()
        .map_err(|error| error::call_failed("opening the central namespace", error))?;
    let at_once = thread::available_parallelism()
        .map_or(2, usize::from)
        .clamp(2, 8);
    let next = Mutex::new(0..count);
    let made = Mutex::new(Vec::new());
    let make = || -> Result<()> {
        // Opened in the central namespace: the thread leaves it when it makes its first host.
        let central =
            Rtnl::open().map_err(|error| error::call_failed("opening rtnetlink", error))?;
        loop {
            let Some(number) = next.lock().ok().and_then(|mut next| next.next()) else {
                return Ok(());
            };
            let net = host(number, plan, &namespace, &central)?;
            if let Ok(mut made) = made.lock() {
                made.push((number, net));
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once.min(count as usize))
            .map(|_| scope.spawn(make))
            .collect();
        let panicked = |_| Err(Error::measurement("a thread panicked while creating hosts"));
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(panicked))
    })?;
    let mut made = made.into_inner().unwrap_or_default();
    made.sort_by_key(|(number, _)| *number);
    Ok(made.into_iter().map(|(_, net)| net).collect())
}

/// Makes one host: moves this thread to a new namespace, and creates the veth pairs from there.
fn host(
    number: u32,
    plan: &HostInterfacesPlan<'_>,
    namespace: &File,
    central: &Rtnl,
) -> Result<File> {
    let net = namespace::new_network()
        .map_err(|error| error::namespaces_failed("a network namespace for each host", error))?;
    let failed = |error: io::Error| error::call_failed("setting up a host's namespace", error);
    let places: Vec<usize> = plan.interfaces.of_host(number).map(|(at, _)| at).collect();
    let has_ipv6 = places.iter().any(|place| plan.carries_ipv6(*place));
    if has_ipv6 {
        namespace::prepare_ipv6().map_err(failed)?;
    } else {
        namespace::disable_ipv6().map_err(failed)?;
    }
    namespace::allow_ping();
    namespace::allow_fast_open();
    if plan.ecn {
        namespace::enable_ecn().map_err(failed)?;
    }
    let has_others = places.len() > 1;
    if has_others {
        namespace::accept_by_any_interface().map_err(failed)?;
    }
    let rtnl = Rtnl::open().map_err(failed)?;
    let mut batch = RtnlBatch::default();
    namespace_links::set_loopback_up(&mut batch);
    rtnl.carry_out(batch).map_err(refused)?;
    for place in places {
        let pair = HostVethPair {
            number: place as u32,
            all: plan.interfaces.all(),
            has_others,
            has_ipv6: plan.carries_ipv6(place),
            mtus: &plan.path_mtus[place],
            central: namespace.as_raw_fd(),
        };
        connect(&pair, &rtnl, central)?;
    }
    if has_others {
        let endpoints = plan.addresses(number).into_iter();
        let endpoints = endpoints.map(|(address, interface)| MptcpEndpoint {
            address,
            interface: namespace_links::host_index(interface),
        });
        // A kernel without Multipath TCP refuses: programs that ask for it get the kernel's own error.
        let _ = mptcp_endpoints::announce(&endpoints.collect::<Vec<_>>());
    }
    Ok(net)
}

/// Makes a pair and opens its host's end, which carries packets at once.
fn connect(pair: &HostVethPair<'_>, rtnl: &Rtnl, central: &Rtnl) -> Result<()> {
    let mut batch = RtnlBatch::default();
    pair.make(&mut batch);
    rtnl.carry_out(batch).map_err(refused)?;
    let mut batch = RtnlBatch::default();
    namespace_links::set_central_end_up(pair.number, &mut batch);
    central.carry_out(batch).map_err(refused)?;
    let mut batch = RtnlBatch::default();
    pair.open(&mut batch);
    rtnl.carry_out(batch).map_err(refused)
}

/// Opens the packet socket at the central end of an interface's pair.
fn port(number: u32, interface: &InterfaceOfHost, mtus: &PathMtus) -> Result<VethPort> {
    let socket =
        packet_sockets::packet_socket(namespace_links::central_index(number)).map_err(|error| {
            match error.raw_os_error() {
                Some(nix::libc::EAFNOSUPPORT) => {
                    error::environment("this kernel has no packet sockets (CONFIG_PACKET)")
                }
                _ => error::call_failed("opening a packet socket", error),
            }
        })?;
    Ok(VethPort {
        node: interface.node,
        host: interface.host.0,
        interface: interface.index,
        socket,
        host_mac: namespace_links::host_mac(number),
        gateway_mac: namespace_links::GATEWAY_MAC,
        address: veth_port::address(interface.host.0, interface.index),
        mtu: mtus.interface,
    })
}

/// The error for a request that the kernel refused.
fn refused(refused: RefusedRtnlRequest) -> Error {
    match refused.error.raw_os_error() {
        Some(nix::libc::EOPNOTSUPP) if refused.what == namespace_links::VETH => {
            error::environment("this kernel has no virtual Ethernet pairs (CONFIG_VETH)")
        }
        _ => error::call_failed(refused.what, refused.error),
    }
}
